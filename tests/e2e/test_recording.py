"""A node's recording of a time when memory runs out: fetched, replayed under its own configuration and under another
one; and files that are no recordings."""
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import time
import unittest

from harness import (
    BINARY,
    PATIENCE,
    account_kubeconfig,
    can_write_cgroups,
    needs,
    one_node,
    pod,
    run,
    wait_for,
    workspace,
)

# Its way from the threshold to the end of memory takes four seconds: an agent that waits for a processor is in time.
HOG = ["spillway", "stress", "--memory", "400Mi", "--rate", "16Mi/s", "--hold", "1h"]
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
            wait_for("the eviction",
                     lambda: process.api.get("/api/v1/namespaces/default/pods/hog")["status"].get("reason")
                     == "Evicted")
            time_evicted = time.time()
            wait_for("the readings after it",
                     lambda: any(each.stat().st_mtime > time_evicted + 1
                                 for each in (cls.state / "recording").glob("*.rec")))
            cls.kubeconfig = cls.folder / "kubeconfig"
            cls.remote = {what: run("record", *arguments, "--kubeconfig", cls.kubeconfig) for what, arguments in {
                "node": ("n", "-o", cls.folder / "fetched.rec"), "list": ("n", "--list"),
                "controller": ("controller", "-o", cls.folder / "controller.rec"),
                "no node": ("m", "-o", cls.folder / "none.rec"),
                "no copy": ("n", "--kept", "20000101T000000Z-oom-kill", "-o", cls.folder / "none.rec"),
                "no folder": ("n", "-o", cls.folder / "none" / "x.rec"), "a folder": ("n", "-o", cls.folder),
                "a device": ("n", "-o", "/dev/null")}.items()}
            cls.direct = process.api.get("/api/v1/nodes/n/proxy/debug/spillway/recording")
            cls.refused = cls.as_somebody(process)
            cls.cut = cls.interrupted()
            cls.running_code, cls.running_text, cls.running_error = run("record", "--dir", cls.state, "-o",
                                                                        cls.folder / "running.rec")
        cls.file = cls.folder / "n.rec"
        cls.recorded = run("record", "--dir", cls.state, "-o", cls.file)

    @classmethod
    def as_somebody(cls, process):
        """Fetching with the rights of an account that has none."""
        process.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "curious"}})
        file = account_kubeconfig(process.api, cls.kubeconfig, "curious", "default")
        return [run("record", whose, "--kubeconfig", file, "-o", cls.folder / "none.rec")
                for whose in ("n", "controller")]

    @classmethod
    def interrupted(cls):
        """Ctrl-C while an answer is waited for: of a server that takes connections and says nothing."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            silent = cls.folder / "silent"
            silent.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c",
                                          "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                                          "clusters": [{"name": "c",
                                                        "cluster": {
                                                            "server": f"http://127.0.0.1:{server.getsockname()[1]}"}}],
                                          "users": [{"name": "u", "user": {"token": "x"}}]}))
            child = subprocess.Popen([BINARY, "record", "n", "--kubeconfig", silent, "-o", cls.folder / "cut.rec"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            server.settimeout(PATIENCE)
            connection, _ = server.accept()
            with connection:
                child.send_signal(signal.SIGINT)
                out, err = child.communicate(timeout=PATIENCE)
        return child.returncode, out, err

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

    def test_it_is_fetched_through_the_api_server(self):
        code, text, error = self.remote["node"]
        self.assertEqual((code, error), (0, ""))
        self.assertRegex(text, r"fetched.rec: \d+ segments, ")
        fetched = self.folder / "fetched.rec"
        self.assertEqual(mode_of(fetched), 0o600)
        self.assertTrue(self.file.read_bytes().startswith(fetched.read_bytes()))
        code, text, error = run("replay", fetched, "-o", "json")
        self.assertEqual((code, json.loads(text)["different"]), (0, 0), error)
        code, text, error = self.remote["controller"]
        self.assertEqual((code, error), (0, ""))
        code, text, error = run("replay", self.folder / "controller.rec", "-o", "json")
        self.assertEqual((code, json.loads(text)["kind"]), (0, "ControllerReplayReport"), error)
        segments = self.direct["segments"]
        self.assertEqual([sorted(each) for each in segments], [["bytes", "name"]] * len(segments))
        self.assertEqual((self.remote["list"][0], self.remote["list"][2]), (0, ""))

    def test_what_cannot_be_fetched_is_one_line_and_no_file(self):
        for what, words in (("no node", 'nodes "m" not found'),
                            ("no copy", "node n has kept no copy 20000101T000000Z-oom-kill"),
                            ("no folder", "there is no folder"),
                            ("a folder", "is no ordinary file"), ("a device", "is no ordinary file")):
            code, text, error = self.remote[what]
            self.assertEqual((code, text, len(error.splitlines())), (1, "", 1), error)
            self.assertIn(words, error)
        for (code, text, error), words in zip(self.refused,
                                              ('cannot get resource "nodes/proxy"',
                                               'cannot get path "/debug/spillway/recording"')):
            self.assertEqual((code, text, len(error.splitlines())), (1, "", 1), error)
            self.assertIn(words, error)
        code, text, error = self.cut
        self.assertEqual((code, text), (1, ""), error)
        self.assertEqual(error, "spillway: interrupted\n")
        left = [each.name for each in self.folder.iterdir() if ".rec" in each.name]
        self.assertEqual(sorted(left), ["controller.rec", "fetched.rec", "n.rec", "running.rec"])

    def test_wrong_command_lines(self):
        for arguments, words in ((("-o", "x"), "expected a node's name or"), (("n",), "-o FILE is missing"),
                                 (("node", "-o", "x"), "expected a node's name (node/node"),
                                 (("n", "--dir", "/x", "-o", "x"), "--dir DIR needs node or controller"),
                                 (("a/b", "-o", "x"), '"a/b" is no node\'s name'),
                                 (("node/", "-o", "x"), "is no node's name"), (("n", "--list", "-o", "x"), "excludes"),
                                 (("--dir", "/x", "--lease", "a/b", "-o", "x"), "excludes"),
                                 (("--dir", "/x", "--context", "c", "-o", "x"), "excludes"),
                                 (("n", "--recent", "-o", "x"), "--recent"),
                                 (("n", "--controller", "https://x", "-o", "x"), "use `record controller`, not a node"),
                                 (("n", "--kubeconfig", "/none", "-o", "x"), "/none")):
            code, text, error = run("record", *arguments)
            self.assertEqual((code, text, len(error.splitlines())), (2, "", 1), error)
            self.assertIn(words, error)

    def test_advice_from_a_recording(self):
        code, text, error = run("advise", self.file, "--memory-available", "1Mi,128Mi", "-o", "json")
        self.assertEqual(code, 0, error)
        costs = [each["cost"] for each in json.loads(text)["choices"]]
        self.assertEqual([(each["evicted"], each["keptFreeBytesPerNode"] >> 20, each["oomKills"]) for each in costs],
                         [(1, 64, None), (0, 1, None), (1, 128, None)])
        code, text, error = run("advise", self.file, "--system-reserved", "1Gi")
        self.assertEqual(code, 0, error)
        self.assertIn("cannot be: ", text)
        torn = self.folder / "damaged"
        content = bytearray(self.file.read_bytes())
        content[len(content) // 2] ^= 1
        torn.write_bytes(content)
        code, text, error = run("advise", torn, "--memory-available", "1Mi")
        self.assertEqual((code, text, len(error.splitlines())), (2, "", 1), error)
        self.assertIn("damaged at byte", error)

    def test_no_other_user_may_read_it_and_nothing_secret_is_in_it(self):
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

    def test_the_same_configuration_from_a_file_decides_the_same(self):
        code, text, error = run("replay", self.file, "--config", self.folder / "own.yaml")
        self.assertEqual(code, 0, text + error)

    def test_another_threshold_is_a_table_of_differences(self):
        code, text, error = run("replay", self.file, "--config", self.config("high.yaml", "128Mi"))
        self.assertEqual(code, 3, text + error)
        self.assertIn("WOULD BE", text)
        self.assertRegex(text, r"default/hog +evicted for memory.available.* s earlier")
        self.assertRegex(text, r"would be: memory\.available was \S+, below its threshold of 128Mi")
        self.assertNotIn("available_bytes=", text)
        code, text, _ = run("replay", self.file, "--config", self.config("low.yaml", "1Mi"), "-o", "json")
        self.assertEqual(code, 3)
        row = next(row for row in json.loads(text)["rows"] if row["subject"] == "default/hog")
        self.assertIn("decided", row)
        self.assertNotIn("wouldBe", row)

    def test_what_is_no_recording_is_refused_in_one_line(self):
        other = self.folder / "other"
        for content, words in ((b"", "not a recording"), (b"apiVersion: v1\n", "not a recording"),
                               (b"spillway agent recording 2\n", "holds nothing"),
                               (b"spillway controller recording 1\n", "holds nothing"),
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
        self.assertIn("are an incomplete record and were left out", text)

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
        code, text, error = run("record", "--dir", self.folder / "nonexistent", "--list")
        self.assertEqual((code, text, len(error.splitlines())), (1, "", 1), error)
        self.assertIn("nonexistent", error)


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class SwitchedOff(unittest.TestCase):
    def test_a_node_that_records_nothing_says_so(self):
        with workspace() as folder, one_node(folder, "--recording-max-size", "0"):
            for whose in ("n", "controller"):
                code, text, error = run("record", whose, "--kubeconfig", folder / "kubeconfig", "-o", folder / "x.rec")
                self.assertEqual((code, text, len(error.splitlines())), (1, "", 1), error)
                self.assertIn("nothing is recorded here: recording is switched off", error)
                self.assertFalse((folder / "x.rec").exists())


if __name__ == "__main__":
    unittest.main()
