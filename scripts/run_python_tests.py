#!/usr/bin/env python3
"""Runs unittest modules, each in a process of its own, and writes what became of every test method.

    scripts/run_python_tests.py --results build/proxy.xml --jobs 2 tests/proxy

Why not `python3 -m unittest discover` alone (which works too): its summary counts a class whose setup was skipped or
failed as one test or none, it names no result for a test in a module that died, and it runs one test at a time.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path


class Recorder(unittest.TextTestResult):
    """Remembers one (status, reason) for each test id; a failure is never overwritten by what follows it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.outcomes = {}

    def startTestRun(self):
        super().startTestRun()
        signal.signal(signal.SIGINT, self.interrupt)

    def interrupt(self, *_):
        """An error like any other: after KeyboardInterrupt unittest would leave out the test's cleanups."""
        self.stop()
        raise InterruptedError("interrupted")

    def record(self, test, status, reason=""):
        if self.outcomes.get(test.id(), ("passed",))[0] != "failed":
            self.outcomes[test.id()] = (status, reason)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.record(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.record(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.record(test, "failed", last_line(err))

    def addError(self, test, err):
        super().addError(test, err)
        self.record(test, "failed", last_line(err))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.record(test, "failed", f"{subtest}: {last_line(err)}")

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.record(test, "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.record(test, "failed", "was expected to fail and passed")


def last_line(err):
    return traceback.format_exception_only(err[0], err[1])[-1].strip()


def test_ids(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from test_ids(test)
        else:
            yield test.id()


def outcomes_by_method(ids, outcomes):
    """A skipped or failed setUpClass or setUpModule stands for each of the methods that it kept from running."""
    result = {test: outcomes[test] for test in ids if test in outcomes}
    for holder, outcome in outcomes.items():
        if holder in result:
            continue
        scope = holder.partition("(")[2].rstrip(")")  # "setUpClass (tests.proxy.test_relay.Relay)"
        kept = [test for test in ids if test not in result and scope and test.startswith(scope + ".")]
        result.update(dict.fromkeys(kept, outcome) if kept else {holder: outcome})
    for test in ids:
        result.setdefault(test, ("failed", "did not run"))
    return result


def write_results(path, outcomes):
    suite = ElementTree.Element("testsuite", tests=str(len(outcomes)))
    for test, (status, reason) in outcomes.items():
        case = ElementTree.SubElement(suite, "testcase", name=test, classname=test.rpartition(".")[0])
        if status != "passed":
            printable = "".join(c if c.isprintable() else " " for c in reason)
            ElementTree.SubElement(case, "skipped" if status == "skipped" else "failure", message=printable)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def run_module(module, results):
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    ids = list(test_ids(suite))  # before the run: a suite forgets its tests as it goes
    recorder = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Recorder).run(suite)
    outcomes = outcomes_by_method(ids, recorder.outcomes) or {module: ("failed", "holds no tests")}
    write_results(results, outcomes)
    return 1 if any(status == "failed" for status, _ in outcomes.values()) else 0


def failed_case(module, reason):
    case = ElementTree.Element("testcase", name=module, classname=module)
    ElementTree.SubElement(case, "failure", message=reason)
    return case


class ModuleRun:
    """A module under test in a process of its own; its output waits in a file, so that modules do not mix theirs."""

    def __init__(self, top, module, folder):
        self.module = module
        self.results = Path(folder) / f"{module}.xml"
        self.output = open(Path(folder) / f"{module}.log", "w+b")
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).resolve(), "--top", top, "--module", module, "--results", self.results],
            cwd=top, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)

    def stop(self):
        """An interrupt lets the module's tests clean up; what is left of its session after a while is killed."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def print_output(self):
        self.output.seek(0)
        sys.stdout.buffer.write(f"=== {self.module}\n".encode() + self.output.read())
        sys.stdout.buffer.flush()
        self.output.close()

    def cases(self):
        try:
            return list(ElementTree.parse(self.results).getroot())
        except (OSError, ElementTree.ParseError):
            return [failed_case(self.module, f"ended with status {self.process.returncode} and left no results")]


def run_modules(top, modules, jobs, folder, ended):
    """Calls `ended` with each run when it has ended; an interrupt ends those that are under way."""
    waiting, running = list(modules), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                run = ModuleRun(top, waiting.pop(0), folder)
                running[run.process.pid] = run
            # Looks, and leaves the collecting of the status to Popen.
            run = running.pop(os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid)
            run.process.wait()
            ended(run)
    finally:
        for run in running.values():
            run.stop()
            ended(run)


def modules_under(top, folders):
    for folder in folders:
        found = sorted((top / folder).rglob("test*.py"))
        if not found:
            sys.exit(f"there are no tests (test*.py) in {top / folder}")
        for path in found:
            yield ".".join(path.relative_to(top).with_suffix("").parts)


def run_all(top, modules, jobs, results):
    cases = {module: [failed_case(module, "not begun when the run was stopped")] for module in modules}
    failed = []

    def ended(run):
        run.print_output()
        cases[run.module] = run.cases()
        if run.process.returncode:
            failed.append(run.module)

    status = 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            run_modules(top, modules, jobs, folder, ended)
    except KeyboardInterrupt:
        status = 130
    suite = ElementTree.Element("testsuite")
    for module in modules:
        suite.extend(cases[module])
    ElementTree.ElementTree(suite).write(results, encoding="utf-8", xml_declaration=True)
    return status or (1 if failed else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", required=True, help="file for the results, in JUnit's format")
    parser.add_argument("--jobs", type=int, default=1, help="modules at a time")
    parser.add_argument("--top", type=Path, default=Path(__file__).resolve().parent.parent, help="where imports start")
    parser.add_argument("--module", help=argparse.SUPPRESS)
    parser.add_argument("folders", nargs="*", help="where the modules are, from the top")
    args = parser.parse_args()
    sys.path.insert(0, str(args.top))
    if args.module:
        return run_module(args.module, args.results)
    return run_all(args.top, list(modules_under(args.top, args.folders)), max(args.jobs, 1), args.results)


if __name__ == "__main__":
    sys.exit(main())
