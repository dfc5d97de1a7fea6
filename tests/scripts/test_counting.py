"""The last line of ./test.sh says what happened: no failure is lost, and what did not run has not passed."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

# As ctest of CMake 3.25 and 3.31 writes it.
CTEST_RESULTS = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Linux-c++" tests="6" failures="1" disabled="1" skipped="3">
  <testcase name="codec: a" classname="codec: a" time="0.1" status="run"><system-out></system-out></testcase>
  <testcase name="codec: b" classname="codec: b" time="0.1" status="run"><system-out></system-out></testcase>
  <testcase name="codec: c" classname="codec: c" time="0.1" status="fail"><failure message=""/></testcase>
  <testcase name="codec: d" classname="codec: d" time="0.1" status="notrun">
    <skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>Filters: "d"
skipped: Kafka's message definitions are not here
</system-out>
  </testcase>
  <testcase name="mapping_tests_NOT_BUILT" classname="x" time="0" status="notrun">
    <skipped message="Unable to find executable"/>
  </testcase>
  <testcase name="codec: e" classname="codec: e" time="0" status="disabled"><system-out>Disabled</system-out></testcase>
</testsuite>
"""


def run_script(name, *arguments):
    command = [sys.executable, SCRIPTS / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Summary(unittest.TestCase):
    def summary(self, steps, **results):
        with tempfile.TemporaryDirectory() as logs:
            Path(logs, "steps").write_text(steps)
            for name, text in results.items():
                Path(logs, f"{name}.xml").write_text(text)
            run = run_script("summary.py", logs)
        self.assertEqual(run.stderr, "")
        return run.returncode, run.stdout.splitlines()

    def test_ctest_results_are_counted_and_a_program_not_built_has_failed(self):
        status, lines = self.summary("unit tests 8\n", unit=CTEST_RESULTS)
        self.assertEqual(lines[-1], "2 passed, 2 failed, 2 skipped")
        self.assertEqual(status, 1)
        self.assertIn("skipped in unit: codec: d: Kafka's message definitions are not here", lines)
        self.assertIn("failed in unit: mapping_tests_NOT_BUILT: Unable to find executable", lines)

    def test_steps_are_summed_and_a_build_is_no_test(self):
        good = '<testsuite><testcase name="a"/><testcase name="b"/></testsuite>'
        status, lines = self.summary("make build 0\none tests 0\ntwo tests 0\nformat check 0\n", one=good, two=good)
        self.assertEqual((status, lines), (0, ["5 passed, 0 failed, 0 skipped"]))

    def test_a_step_that_ended_without_results_is_one_failed(self):
        for step_status, reason in (
                (139, "ended with status 139"), (124, "took too long and was stopped"), (0, "ended with status 0")):
            with self.subTest(step_status=step_status):
                status, lines = self.summary(f"proxy tests {step_status}\n")
                self.assertEqual(status, 1)
                self.assertEqual(
                    lines, [f"failed in proxy: proxy: {reason} and left no results", "0 passed, 1 failed, 0 skipped"])

    def test_a_step_that_failed_after_its_tests_passed_is_one_failed(self):
        status, lines = self.summary("proxy tests 1\n", proxy='<testsuite><testcase name="a"/></testsuite>')
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_failed_build_and_a_failed_check_are_one_failed_each(self):
        status, lines = self.summary("make build 1\nformat check 123\n")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 2 failed, 0 skipped"))

    def test_nothing_at_all_is_no_success(self):
        self.assertEqual(self.summary("make build 0\n"), (1, ["0 passed, 0 failed, 0 skipped"]))

    def test_tests_skipped_for_one_reason_take_one_line(self):
        case = '<testcase name="{}"><skipped message="no Maven repository answers"/></testcase>'
        results = "<testsuite>" + case.format("a") + case.format("b") + '<testcase name="c"/></testsuite>'
        status, lines = self.summary("kafka tests 0\n", kafka=results)
        self.assertEqual((status, lines), (
            0, ["skipped in kafka: 2 tests: no Maven repository answers", "1 passed, 0 failed, 2 skipped"]))


class PythonTests(unittest.TestCase):
    def outcomes(self, module_text):
        """Runs one module, and returns the exit status and, for each test's last name, what became of it."""
        with tempfile.TemporaryDirectory() as folder:
            tests = Path(folder, "suite")
            tests.mkdir()
            Path(tests, "test_module.py").write_text("import os, unittest\n" + textwrap.dedent(module_text))
            results = Path(folder, "results.xml")
            run = run_script("run_python_tests.py", "--top", folder, "--results", results, "--jobs", "2", "suite")
            cases = ElementTree.parse(results).getroot() if results.exists() else []
        became = {}
        for case in cases:
            outcome = (case[0].tag, case[0].get("message")) if len(case) else ("passed", "")
            became[case.get("name").removeprefix("suite.test_module.")] = outcome
        return run.returncode, became

    def test_each_kind_of_end_is_told_apart(self):
        status, became = self.outcomes("""
            class T(unittest.TestCase):
                def test_good(self): pass
                def test_wrong(self): self.assertEqual(1, 2)
                def test_raises(self): raise OSError("no such thing")
                def test_skips(self): self.skipTest("no reason")
                def test_tear_down_fails(self): self.addCleanup(lambda: 1 / 0)
                def test_two_bad_parts(self):
                    for part in (1, 2, 3):
                        with self.subTest(part=part): self.assertEqual(part, 3)
                @unittest.expectedFailure
                def test_known_bad(self): self.fail()
                @unittest.expectedFailure
                def test_known_bad_works(self): pass
        """)
        self.assertEqual(status, 1)
        self.assertEqual({name.removeprefix("T.test_"): kind for name, (kind, _) in became.items()}, {
            "good": "passed", "wrong": "failure", "raises": "failure", "skips": "skipped",
            "tear_down_fails": "failure",
            "two_bad_parts": "failure", "known_bad": "passed", "known_bad_works": "failure",
        })
        self.assertEqual(became["T.test_skips"], ("skipped", "no reason"))
        self.assertEqual(became["T.test_raises"], ("failure", "OSError: no such thing"))

    def test_a_class_or_module_that_skips_itself_skips_each_of_its_tests(self):
        for where in ("def setUpModule", "class T(unittest.TestCase):\n    @classmethod\n    def setUpClass"):
            with self.subTest(where=where):
                argument = "cls" if "Class" in where else ""
                indent = "        " if "Class" in where else "    "
                status, became = self.outcomes(
                    f"{where}({argument}):\n{indent}raise unittest.SkipTest('no broker')\n"
                    + ("class T(unittest.TestCase):\n" if "Module" in where else "")
                    + "    def test_a(self): pass\n    def test_b(self): pass\n"
                    + "class Other(unittest.TestCase):\n    def test_c(self): pass\n")
                skipped = ("skipped", "no broker")
                self.assertEqual(status, 0)
                self.assertEqual(became, {"T.test_a": skipped, "T.test_b": skipped,
                                          "Other.test_c": skipped if "Module" in where else ("passed", "")})

    def test_a_setup_that_fails_fails_each_test_that_it_kept_from_running(self):
        status, became = self.outcomes("""
            class T(unittest.TestCase):
                @classmethod
                def setUpClass(cls): raise OSError("no broker")
                def test_a(self): pass
                def test_b(self): pass
        """)
        failed = ("failure", "OSError: no broker")
        self.assertEqual((status, became), (1, {"T.test_a": failed, "T.test_b": failed}))

    def test_a_class_that_cannot_clean_up_is_a_failure_beside_its_tests(self):
        status, became = self.outcomes("""
            class T(unittest.TestCase):
                @classmethod
                def tearDownClass(cls): raise OSError("left over")
                def test_a(self): pass
        """)
        self.assertEqual(status, 1)
        self.assertEqual([kind for kind, _ in became.values()], ["passed", "failure"])

    def test_a_module_that_dies_or_holds_nothing_or_does_not_load_is_one_failure(self):
        dies = "class T(unittest.TestCase):\n    def test_a(self): os.abort()\n"
        for text in (dies, "x = 1\n", "import no_such_module\n"):
            with self.subTest(text=text):
                status, became = self.outcomes(text)
                self.assertEqual((status, [kind for kind, _ in became.values()]), (1, ["failure"]))

    def test_an_interrupt_keeps_what_is_known_and_lets_the_running_test_clean_up(self):
        with tempfile.TemporaryDirectory() as folder:
            tests = Path(folder, "suite")
            tests.mkdir()
            Path(tests, "test_first.py").write_text(
                "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n")
            # It tells through a pipe that it runs, and that it cleans up.
            pipe = Path(folder, "pipe")
            os.mkfifo(pipe)
            Path(tests, "test_second.py").write_text(textwrap.dedent(f"""
                import signal, unittest
                class T(unittest.TestCase):
                    def test_waits(self):
                        pipe = open({str(pipe)!r}, "w")
                        self.addCleanup(pipe.close)
                        self.addCleanup(pipe.write, "cleaned up\\n")
                        print("runs", file=pipe, flush=True)
                        signal.pause()
                    def test_would_be_next(self): pass
            """))
            results = Path(folder, "results.xml")
            run = subprocess.Popen(
                [sys.executable, SCRIPTS / "run_python_tests.py", "--top", folder, "--results", results, "suite"],
                stdout=subprocess.DEVNULL)
            with open(pipe) as told:
                self.assertEqual(told.readline(), "runs\n")
                run.send_signal(signal.SIGINT)
                self.assertEqual(told.readline(), "cleaned up\n")
            self.assertNotEqual(run.wait(), 0)
            cases = ElementTree.parse(results).getroot()
        self.assertEqual([(case.get("name"), len(case)) for case in cases],
                         [("suite.test_first.T.test_a", 0), ("suite.test_second.T.test_waits", 1),
                          ("suite.test_second.T.test_would_be_next", 1)])

    def test_a_folder_without_tests_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            run = run_script("run_python_tests.py", "--top", folder, "--results", f"{folder}/r.xml", "suite")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("there are no tests", run.stderr)


if __name__ == "__main__":
    unittest.main()
