"""`spillway simulate`: help, wrong command lines and files, exit codes, the form of -o json, an interruption."""
import json
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from harness import BINARY, ROOT

FEW = "name: few\ncluster: {nodes: 4, zones: 2}\nsettle: 30s\n" \
      "timeline: [{at: 0s, partition: {zone: zone-0}, for: 2m}]\n"


def simulate(*arguments):
    return subprocess.run([BINARY, "simulate", *arguments], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)


class Simulate(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, text, name="few.yaml"):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def test_help_names_exit_codes(self):
        done = simulate("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("3 an expectation failed", done.stdout)

    def test_a_wrong_command_line(self):
        for arguments in (["--seeed", "1", "zone-outage"], [], ["zone-outage", "--config-a", "x"]):
            done = simulate(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_no_such_scenario(self):
        done = simulate("zone-outag")
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected a file, all, or one of 499-of-500", done.stderr)

    def test_a_bad_file_names_the_place(self):
        done = simulate("tests/scenarios/bad/02-unknown-event.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("02-unknown-event.yaml:4:3: timeline[0][partitoin]: unknown (did you mean partition?)", done.stderr)

    def test_expectations_decide_the_exit_code(self):
        done = simulate(self.write(FEW + "expect: [flips == 2, recovered]\n"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("pass flips == 2 (flips was 2)", done.stdout)
        done = simulate(self.write(FEW + "expect: [flips == 0]\n"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("FAIL flips == 0 (flips was 2)", done.stdout)

    def test_json_names_are_stable(self):
        done = simulate(self.write(FEW), "-o", "json", "--seed", "3")
        outcome = json.loads(done.stdout)
        self.assertEqual(sorted(outcome), sorted([
            "scenario", "seed", "interrupted", "nodes", "pods", "lastedSeconds", "counts", "taintedNodesMax",
            "recoveredAtSeconds", "timeToRecoverySeconds", "heldBy", "unplaced", "unrecovered", "disruptionByOwner",
            "disruptionByZone", "leftOut", "expectations", "violations", "events", "writes", "messages", "traceHash"]))
        self.assertEqual(outcome["counts"]["flips"], 2)
        self.assertEqual(outcome["seed"], 3)
        self.assertEqual({each["what"] for each in outcome["events"] if each["zone"] != "zone-0"}, set())

    def test_two_configurations_differ(self):
        fast = self.write("controllers: {nodeMonitorGracePeriod: 20s}\n", "a.yaml")
        slow = self.write("controllers: {nodeMonitorGracePeriod: 5m}\n", "b.yaml")
        done = simulate(self.write(FEW), "--config-a", fast, "--config-b", slow, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        differences = {each["what"]: (each["a"], each["b"]) for each in json.loads(done.stdout)["differences"]}
        self.assertEqual(differences["flips"], ("2", "0"))

    def test_an_imported_cluster_names_what_is_left_out(self):
        done = simulate("tests/scenarios/imported-zone.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("left out: Node b2: it is not Ready", done.stdout)

    def test_the_example_of_the_documentation(self):
        page = (ROOT / "docs/simulate.md").read_text()
        example = re.search(r"```yaml\n(name: .*?)```", page, re.S).group(1)
        done = simulate(self.write(example))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_an_interruption_ends_it_at_once(self):
        scenario = self.write("name: long\ncluster: {nodes: 50}\nduration: 1000h\n")
        child = subprocess.Popen([BINARY, "simulate", scenario], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.kill)
        status = pathlib.Path(f"/proc/{child.pid}/status")
        deadline = time.monotonic() + 20
        while not re.search(r"SigCgt:\s*[0-9a-f]*[2367abef]\n", status.read_text()):  # it minds SIGINT
            self.assertLess(time.monotonic(), deadline)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
        self.assertEqual(child.returncode, 128 + signal.SIGINT)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(out, "")
        self.assertRegex(err, r"^spillway: interrupted after \d+ s of virtual time of long; nothing is reported\n$")


if __name__ == "__main__":
    unittest.main()
