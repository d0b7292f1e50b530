"""What a node records while memory runs out: fetched, replayed under its own configuration and under another one; and files that are none."""
import json
import os
import pathlib
import stat
import time
import unittest

from harness import can_write_cgroups, needs, one_node, pod, run, wait_for, workspace

HOG = ["spillway", "stress", "--memory", "400Mi", "--rate", "40Mi/s", "--hold", "1h"]
CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: "%s"}
"""


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Recording(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = workspace()
        cls.folder = cls.stack.__enter__()
        cls.addClassCleanup(cls.stack.__exit__, None, None, None)
        cls.state = cls.folder / "state" / "n"
        cls.config("own.yaml", "64Mi")
        with one_node(cls.folder, "--eviction-hard", "memory.available<64Mi") as process:
            secret = pod("hog", HOG)
            secret["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter-seven"}]
            process.api.create("/api/v1/namespaces/default/pods", secret)
            wait_for("the eviction", lambda: process.api.get("/api/v1/namespaces/default/pods/hog")["status"].get("reason") == "Evicted")
            time_evicted = time.time()
            wait_for("the readings after it", lambda: any(each.stat().st_mtime > time_evicted + 1 for each in (cls.state / "recording").glob("*.rec")))
            cls.running_code, cls.running_text, cls.running_error = run("record", "--dir", cls.state, "-o", cls.folder / "running.rec")
        cls.file = cls.folder / "n.rec"
        cls.recorded = run("record", "--dir", cls.state, "-o", cls.file)

    @classmethod
    def config(cls, name, amount):
        (cls.folder / name).write_text(CONFIG % amount)
        return cls.folder / name

    def test_it_is_fetched_while_the_node_runs_and_after(self):
        self.assertEqual(self.running_code, 0, self.running_error)
        code, text, error = self.recorded
        self.assertEqual(code, 0, error)
        self.assertIn("n.rec: ", text)
        self.assertGreaterEqual(self.file.stat().st_size, (self.folder / "running.rec").stat().st_size)
        self.assertEqual(mode_of(self.file), 0o600)

    def test_nobody_else_may_read_it_and_nothing_secret_is_in_it(self):
        ring = self.state / "recording"
        self.assertEqual(mode_of(ring), 0o700)
        segments = list(ring.glob("*.rec"))
        self.assertTrue(segments)
        for each in segments:
            self.assertEqual(mode_of(each), 0o600)
        content = self.file.read_bytes()
        self.assertIn(b"hog", content)
        self.assertNotIn(b"hunter-seven", content)
        self.assertNotIn(b"PASSWORD", content)

    def test_its_own_configuration_decides_the_same(self):
        for file in (self.file, self.folder / "running.rec"):
            code, text, error = run("replay", file, "-o", "json")
            self.assertEqual(code, 0, text + error)
            report = json.loads(text)
            self.assertEqual((report["different"], report["drifts"], report["gaps"]), (0, 0, 0))
            self.assertIn("default/hog", [row["subject"] for row in report["rows"]])
        code, text, _ = run("replay", self.file)
        self.assertEqual(code, 0)
        self.assertRegex(text, r"under its own configuration: \d+ decisions, \d+ the same \(100 %\)")
        print(text)

    def test_the_same_configuration_from_a_file_decides_the_same(self):
        code, text, error = run("replay", self.file, "--config", self.folder / "own.yaml")
        self.assertEqual(code, 0, text + error)

    def test_another_threshold_is_a_table_of_differences(self):
        code, text, error = run("replay", self.file, "--config", self.config("high.yaml", "128Mi"))
        self.assertEqual(code, 3, text + error)
        self.assertIn("WOULD BE", text)
        self.assertRegex(text, r"default/hog +evicted for memory.available.* s earlier")
        print(text)
        code, text, _ = run("replay", self.file, "--config", self.config("low.yaml", "1Mi"), "-o", "json")
        self.assertEqual(code, 3)
        row = next(row for row in json.loads(text)["rows"] if row["subject"] == "default/hog")
        self.assertIn("decided", row)
        self.assertNotIn("wouldBe", row)

    def test_what_is_no_recording_is_refused_in_one_line(self):
        other = self.folder / "other"
        for content, words in ((b"", "not a recording"), (b"apiVersion: v1\n", "not a recording"), (b"spillway agent recording 1\n", "holds nothing"), (b"spillway controller recording 1\n", "holds nothing"),
                               (self.file.read_bytes()[:-1000].replace(b"memory", b"memoRy", 1), "damaged")):
            other.write_bytes(content)
            code, text, error = run("replay", other)
            self.assertEqual((code, text), (2, ""), error)
            self.assertIn(words, error)
            self.assertEqual(len(error.splitlines()), 1, error)
        for file in (self.folder / "none", self.folder, "/dev/zero"):
            code, _, error = run("replay", file)
            self.assertEqual((code, len(error.splitlines())), (2, 1), error)

    def test_a_torn_end_is_left_out_and_said(self):
        torn = self.folder / "torn"
        torn.write_bytes(self.file.read_bytes()[:-3])
        code, text, error = run("replay", torn)
        self.assertEqual(code, 0, text + error)
        self.assertIn("are torn and left out", text)

    def test_a_configuration_that_cannot_be_is_refused(self):
        code, _, error = run("replay", self.file, "--config", self.config("wrong.yaml", "much"))
        self.assertEqual(code, 2, error)
        code, _, error = run("replay", self.file, "--config", self.folder / "none.yaml")
        self.assertEqual(code, 2, error)

    def test_where_there_is_none_that_is_said(self):
        code, _, error = run("record", "--dir", self.folder / "data", "-o", self.folder / "x")
        self.assertEqual(code, 1, error)
        self.assertIn("there is no recording here", error)
        self.assertFalse((self.folder / "x").exists())


if __name__ == "__main__":
    unittest.main()
