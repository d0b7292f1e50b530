"""`spillway simulate` and `spillway advise`: help, wrong command lines and files, exit codes, the form of -o json, an
interruption.
"""
import json
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from harness import BINARY, PATIENCE, ROOT, wait_for

FEW = "name: few\ncluster: {nodes: 4, zones: 2}\nsettle: 30s\n" \
      "timeline: [{at: 0s, partition: {zone: zone-0}, for: 2m}]\n"


def catches_interrupts(child):
    return re.search(r"SigCgt:\s*[0-9a-f]*[2367abef]\n", pathlib.Path(f"/proc/{child.pid}/status").read_text())


def simulate(*arguments):
    return subprocess.run([BINARY, "simulate", *arguments], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT,
                          check=False)


class Simulate(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, text, name="few.yaml"):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def test_help_names_exit_codes(self):
        done = simulate("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("3: an expectation failed", done.stdout)
        named = re.search(r"Built-in scenarios: ([^(]+)", done.stdout).group(1)
        self.assertEqual(sorted(re.findall(r"[a-z0-9-]+", named)),
                         sorted(each.stem for each in (ROOT / "examples/incidents").glob("*.yaml")))

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
        self.assertIn("02-unknown-event.yaml:4:3: timeline[0][partitoin]: unknown (did you mean partition?)",
                      done.stderr)

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
            "disruptionByZone", "leftOut", "expectations", "violations", "violated", "events", "writes", "messages",
            "traceHash"]))
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
        child = subprocess.Popen([BINARY, "simulate", scenario], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        self.addCleanup(child.kill)
        wait_for("SIGINT to be caught", lambda: catches_interrupts(child))
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
        self.assertEqual(child.returncode, 128 + signal.SIGINT)
        self.assertEqual(out, "")
        self.assertRegex(err, r"^spillway: interrupted after \d+ s of virtual time of long; nothing is reported\n$")

    def advise(self, *arguments):
        return subprocess.run([BINARY, "advise", *arguments], capture_output=True, text=True, timeout=PATIENCE,
                              cwd=ROOT, check=False)

    def test_advice_says_what_each_setting_costs(self):
        scenario = self.write(FEW + "expect: [flips == 0]\n")
        done = self.advise(scenario, "--system-reserved", "1Gi,900Gi", "--brakes", "on,off", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        choices = json.loads(done.stdout)["choices"]
        self.assertEqual([(each.get("systemReserved"), each.get("brakes")) for each in choices],
                         [(None, None), ("1Gi", True), ("1Gi", False), ("900Gi", True), ("900Gi", False)])
        self.assertEqual({name for each in choices[:3] for name in each["cost"]},
                         {"oomKills", "evicted", "withoutEvidence", "deleted", "tainted", "recordings", "flips",
                          "unplaced", "failedExpectations", "violations", "keptFreeBytesPerNode", "runs"})
        self.assertEqual(choices[0]["cost"]["failedExpectations"], 1)
        self.assertEqual(choices[2]["cost"]["keptFreeBytesPerNode"] - choices[0]["cost"]["keptFreeBytesPerNode"],
                         1 << 30)
        self.assertEqual(choices[2]["noBetterThan"], 0)
        self.assertIn("Resource \"memory\" has a reservation", choices[3]["impossible"])
        again = self.advise(scenario, "--seeds", "2")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertRegex(again.stdout, r"KEPT FREE\n +0 .* 2 +64Mi  as it is\n$")

    def test_advice_with_a_wrong_command_line(self):
        for arguments, said in ((["zone-outage", "--brakes", "maybe"], "--brakes: expected on or off, got \"maybe\""),
                                (["zone-outage", "--memory-available", "much"],
                                 "--memory-available: expected quantities or percentages"),
                                (["zone-outage", "--system-reserved", "-1"],
                                 "expected quantities such as 512Mi, got \"-1\""),
                                (["zone-outage", "--config", "none.yaml"], "none.yaml"),
                                (["zone-outage", "--seeds", "0"], "--seeds"), ([], "SCENARIO is required"),
                                (["none"], "there is no such scenario"),
                                (["zone-outge"], "(did you mean zone-outage?)")):
            done = self.advise(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)


class Swarm(unittest.TestCase):
    def swarm(self, *arguments):
        return subprocess.run([BINARY, "swarm", *arguments], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT,
                              check=False)

    def test_the_same_seeds_are_the_same_runs(self):
        one, two = (json.loads(self.swarm("--seeds", "1..3", "--jobs", jobs, "-o", "json").stdout)
                    for jobs in ("1", "2"))
        self.assertEqual((one["firstSeed"], one["done"], one["failed"], one["minimised"]), (1, 3, [], None))
        self.assertEqual(one["traces"], two["traces"])

    def test_a_range_that_ends_before_it_begins(self):
        done = self.swarm("--seeds", "9..3")
        self.assertEqual(done.returncode, 2)
        self.assertIn('expected a number above 0, or a range as 1..20000, got "9..3"', done.stderr)

    def test_an_interruption_ends_with_the_summary_so_far(self):
        child = subprocess.Popen([BINARY, "swarm", "--seeds", "100000", "--jobs", "1"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE,
                                 text=True, cwd=ROOT)
        self.addCleanup(child.kill)
        wait_for("SIGINT to be caught", lambda: catches_interrupts(child))
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=PATIENCE)
        self.assertEqual(child.returncode, 128 + signal.SIGINT)
        self.assertRegex(out, r"^\d+ of 100000 seeds from 1 on: 0 with violations")
        self.assertRegex(error, r"^spillway: interrupted after \d+ of 100000 seeds\n$")


if __name__ == "__main__":
    unittest.main()
