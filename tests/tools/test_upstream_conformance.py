"""`./dev conformance --upstream`: a program in place of e2e.test records its flags and writes a report as ginkgo does."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools/upstream_conformance.py"
REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="Kubernetes e2e suite">
<testcase name="[SynchronizedBeforeSuite]" status="passed"/>
<testcase name="[It] [sig-node] Pods should run [Conformance]" status="passed"/>
<testcase name="[It] [sig-node] Pods should restart [Conformance]" status="failed">
  <failure message="timed out after 300.001s" type="failed">[FAILED] timed out after 300.001s</failure></testcase>
<testcase name="[It] [sig-apps] Job should end [Conformance]" status="failed">
  <failure message="timed out after 61s" type="failed">more</failure></testcase>
<testcase name="[It] [sig-apps] Job should begin [Conformance]" status="panicked">
  <error message="">pod job-x7k2p of 0d3a4b5c-1111-2222-3333-444455556666 at 10.0.0.7:80 is gone</error></testcase>
<testcase name="[It] [sig-storage] Volumes" status="skipped"><skipped message="skipped"/></testcase>
</testsuite></testsuites>
"""
SUITE = """#!/bin/bash
printf '%s\\n' "$@" >"$(dirname "$0")/flags"
for flag in "$@"; do case $flag in --ginkgo.junit-report=*) report=${flag#*=} ;; esac; done
echo "running specs"
[ -e "$(dirname "$0")/report" ] && cp "$(dirname "$0")/report" "$report"
exit $(cat "$(dirname "$0")/code")
"""


class UpstreamConformance(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.suite = self.folder / "e2e.test"
        self.suite.write_text(SUITE)
        self.suite.chmod(0o755)
        (self.folder / "kubeconfig").write_text("apiVersion: v1\n")

    def run_tool(self, *arguments, report=REPORT, code=1):
        if report is not None:
            (self.folder / "report").write_text(report)
        (self.folder / "code").write_text(str(code))
        return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)

    def run_suite(self, *more, **kept):
        return self.run_tool(self.folder / "kubeconfig", "--binary", self.suite, "--reports", self.folder / "reports",
                             *more, **kept)

    def test_prints_specs_by_sig_and_causes(self):
        ended = self.run_suite()
        self.assertEqual(ended.returncode, 1, ended.stderr)
        for line in ("| sig-apps | 2 | 0 | 2 |", "| sig-node | 2 | 1 | 1 |", "| all | 4 | 1 | 3 |",
                     "2 x timed out after *", "    [sig-node] Pods should restart [Conformance]",
                     "1 x pod * of * at * is gone"):
            self.assertIn(line + "\n", ended.stdout)
        self.assertNotIn("sig-storage", ended.stdout)
        self.assertEqual((self.folder / "reports/e2e.log").read_text(), "running specs\n")

    def test_gives_the_suite_its_flags(self):
        self.run_suite("--skip", "Slow", "--", "--num-nodes=2")
        flags = (self.folder / "flags").read_text().splitlines()
        for flag in (f"--kubeconfig={self.folder}/kubeconfig", "--provider=skeleton", r"--ginkgo.focus=\[Conformance\]",
                     "--ginkgo.skip=Slow", "--num-nodes=2"):
            self.assertIn(flag, flags)

    def test_all_passed(self):
        begin = REPORT[:REPORT.index('<testcase name="[It] [sig-node] Pods should restart')]
        passed = begin + "</testsuite></testsuites>"
        ended = self.run_suite(report=passed, code=0)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertNotIn("cause", ended.stdout)
        self.assertEqual(self.run_suite(report=passed, code=3).returncode, 1, "the suite itself failed")

    def test_what_did_not_run_is_no_success(self):
        self.assertIn("no program", self.run_tool(self.folder / "kubeconfig", "--binary", "/none").stderr)
        self.assertIn("no file", self.run_tool("/none", "--binary", self.suite).stderr)
        (self.folder / "report").unlink()
        ended = self.run_suite(report=None, code=0)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("no report (exit code 0)", ended.stderr)
        self.assertIn("running specs", ended.stderr)
        for report in ("", "<testsuites>", "<testsuites/>"):
            self.assertEqual(self.run_suite(report=report).returncode, 2, report)

    def test_a_report_can_be_read_again(self):
        (self.folder / "junit.xml").write_text(REPORT)
        ended = self.run_tool("--from", self.folder / "junit.xml")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("| all | 4 | 1 | 3 |", ended.stdout)


if __name__ == "__main__":
    unittest.main()
