#!/usr/bin/env python3
"""Sums what the steps of ./test.sh left behind: scripts/summary.py build/test-logs

The folder's file `steps` has a line a step, in order: NAME KIND STATUS. Kinds:
  tests  wrote NAME.xml (JUnit's format, as ctest and run_python_tests.py write it): each test counts
  check  one test, passed if the status is 0
  build  no test, unless it failed
A step that failed without a failed test in its results counts as one failed: nothing that went wrong adds up to zero.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


class Step:
    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.failed = []   # (test, reason)
        self.skipped = []  # (test, reason)


def skip_reason(case, skipped):
    """Tests of ours that skip themselves print a line "skipped: REASON"; ctest itself only knows how it noticed."""
    printed = re.search(r"^\s*skipped: (.*)", case.findtext("system-out") or "", re.MULTILINE)
    return printed[1].strip() if printed else skipped.get("message", "")


def read_results(step, path):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, skipped, failure = case.get("name"), case.find("skipped"), case.find("failure")
        if failure is None:
            failure = case.find("error")
        # ctest says "skipped" of a test whose program was not built, too.
        not_built = (skipped is not None and case.get("status") == "notrun"
                     and not skipped.get("message", "").startswith("SKIP_"))
        if failure is not None:
            step.failed.append((name, failure.get("message", "")))
        elif not_built:
            step.failed.append((name, skipped.get("message")))
        elif skipped is not None:
            step.skipped.append((name, skip_reason(case, skipped)))
        elif case.get("status") == "disabled":
            step.skipped.append((name, "disabled"))
        else:
            step.passed += 1


def read_step(logs, name, kind, status):
    step = Step(name)
    ended = "took too long and was stopped" if status in (124, 137) else f"ended with status {status}"
    if kind == "tests":
        try:
            read_results(step, logs / f"{name}.xml")
        except (OSError, ElementTree.ParseError):
            step.failed.append((name, ended + " and left no results"))
    elif kind == "check" and status == 0:
        step.passed = 1
    if status != 0 and not step.failed:
        step.failed.append((name, ended))
    return step


def main():
    logs = Path(sys.argv[1])
    steps = []
    for line in (logs / "steps").read_text().splitlines():
        name, kind, status = line.split()
        steps.append(read_step(logs, name, kind, int(status)))

    skips = {}  # of a reason that a whole class shares, one line
    for step in steps:
        for test, reason in step.skipped:
            skips.setdefault((step.name, reason), []).append(test)
    for (step, reason), tests in skips.items():
        which = tests[0] if len(tests) == 1 else f"{len(tests)} tests"
        print(f"skipped in {step}: {which}: {reason}")
    for step in steps:
        for test, reason in step.failed:
            print(f"failed in {step.name}: {test}" + (f": {reason}" if reason else ""))

    passed = sum(step.passed for step in steps)
    failed = sum(len(step.failed) for step in steps)
    print(f"{passed} passed, {failed} failed, {sum(len(step.skipped) for step in steps)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
