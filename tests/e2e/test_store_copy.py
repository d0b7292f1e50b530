"""`spillway store copy` and `check` between the embedded store and an etcd: both ways, refused, interrupted, killed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import own_etcd
from harness import BINARY, Kubectl, needs, PATIENCE, run, running, serving, wait_for, workspace
from test_at_rest import Bytes, config_map, field, metadata

MARK = "/registry/spillway.dev/incomplete-copy"
KEYS = "/registry/configmaps/default/"


def listed(kubectl):
    """All objects of kinds with content, as kubectl sees them, without the fields that a move changes."""
    seen = {}
    for kind in ("namespaces", "configmaps", "secrets", "serviceaccounts", "priorityclasses", "clusterroles",
                 "deployments", "pods"):
        for each in kubectl.get(kind, "-A")["items"]:
            del each["metadata"]["resourceVersion"]
            seen[kind, each["metadata"].get("namespace"), each["metadata"]["name"]] = each
    return seen


@needs(own_etcd.PROGRAM is not None and shutil.which("kubectl"), own_etcd.NEEDS)
class Copy(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.cluster = self.enterContext(own_etcd.serving(self.folder))
        self.etcd = Bytes(self.cluster.members[0])
        wait_for("etcd", self.etcd.answers)
        self.to_etcd = ("copy", "--from", f"sqlite:{self.folder / 'data'}", "--to",
                        f"etcd:{self.cluster.members[0].url}")
        self.to_file = ("copy", "--from", f"etcd:{self.cluster.members[0].url}", "--to",
                        f"sqlite:{self.folder / 'data'}")

    def store(self, *arguments, code=0):
        done, out, err = run("store", *arguments)
        self.assertEqual(done, code, f"store {arguments}: exit {done}, expected {code}\n{out}{err}")
        return err if code else out

    def server(self, *more):
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        process = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0",
                                            "--write-kubeconfig", kubeconfig, *more))
        return process, serving(process, kubeconfig), Kubectl(kubeconfig)

    def fill(self, count=300):
        """A store in a file with objects of several kinds; what kubectl sees of it, and its revision."""
        process, api, kubectl = self.server()
        kubectl("create", "deployment", "shop", "--image=shop:1")
        for number in range(count):
            api.create("/api/v1/namespaces/default/configmaps",
                       {"metadata": {"name": f"m{number}"}, "data": {"text": "ü" * number}})
        self.wait_for_own_objects(api)
        seen, revision = listed(kubectl), int(api.get("/api/v1/namespaces")["metadata"]["resourceVersion"])
        process.stop()
        return seen, revision

    def wait_for_own_objects(self, api):
        """Waits for the objects that a server makes by itself in every namespace, some time after its start: the next
        one would make them.
        """
        def is_made():
            spaces = {each["metadata"]["name"] for each in api.get("/api/v1/namespaces")["items"]}
            return all(spaces == {each["metadata"]["namespace"] for each in api.get(f"/api/v1/{kind}")["items"]
                                  if each["metadata"]["name"] == name}
                       for kind, name in (("configmaps", "kube-root-ca.crt"), ("serviceaccounts", "default")))
        wait_for("the objects of every namespace", is_made)

    def raise_revision(self, beyond):
        while self.etcd.revision() <= beyond:
            self.etcd.put("/others", "x")

    def refused_to_start(self):
        code, _, err = run("apiserver", "--data-dir", self.folder / "data", "--port", "0", self.cluster.flag)
        return code, err

    def test_both_ways_kubectl_sees_the_same(self):
        seen, revision = self.fill()
        self.assertIn("clients would see revisions fall", self.store(*self.to_etcd, code=1))
        self.assertIn(f"--bump-revision {revision + 10**9}", self.store(*self.to_etcd, code=1))
        self.raise_revision(revision + 20)
        self.etcd.put("/registryother/x", "not ours")
        told = json.loads(self.store(*self.to_etcd, "-o", "json"))
        self.assertEqual(self.etcd.value(MARK), None)
        checked = json.loads(self.store("check", self.cluster.flag, "-o", "json"))
        self.assertEqual((checked["objects"], checked["problemCount"], checked["noteCount"]), (told["objects"], 0, 0))
        process, api, kubectl = self.server(self.cluster.flag)
        self.assertEqual(listed(kubectl), seen)
        self.assertGreater(int(api.get("/api/v1/namespaces")["metadata"]["resourceVersion"]), revision)
        self.assertIn("serves from this etcd", self.store(*self.to_file, "--overwrite", code=1))
        kubectl("create", "configmap", "written-in-etcd")
        there = listed(kubectl)
        process.stop()
        self.etcd.put_bytes(KEYS + "by-hand", config_map(metadata("by-hand"), {"n": "1"}))
        self.etcd.put_bytes("/registry/storagemigration.k8s.io/storageversionmigrations/one", b"\x00\xff")
        self.assertIn("there is a store already; --overwrite", self.store(*self.to_file, code=1))
        back = json.loads(self.store(*self.to_file, "--overwrite", "-o", "json"))
        self.assertEqual(back["objects"], checked["objects"] + 3)
        self.assertTrue(pathlib.Path(back["kept"]).exists())
        self.assertGreater(back["revision"], self.etcd.revision() + 10**8)
        self.assertEqual(json.loads(self.store("check", "--data-dir", self.folder / "data", "-o",
                                               "json"))["problemCount"], 0)
        process, api, kubectl = self.server()
        found = listed(kubectl)
        self.assertEqual(found.pop(("configmaps", "default", "by-hand"))["data"], {"n": "1"})
        self.assertEqual(found, there)
        self.assertIn("in use by process", self.store(*self.to_etcd, code=1))
        process.stop()

    def test_what_is_no_command_line(self):
        for ends in (("sqlite:/a", "sqlite:/b"), ("etcd:http://127.0.0.1:1", "etcd:http://127.0.0.1:2"),
                     ("/a", "etcd:http://127.0.0.1:1"), ("sqlite:/a", "etcd:http://10.0.0.1:2379")):
            err = self.store("copy", "--from", ends[0], "--to", ends[1], code=2)
            self.assertEqual(err.strip().count("\n"), 0, err)
        self.assertIn("there is no store",
                      self.store("copy", "--from", f"sqlite:{self.folder / 'none'}", "--to",
                                 f"etcd:{self.cluster.members[0].url}", code=1))

    def test_killed_in_the_middle_the_target_is_marked(self):
        seen, revision = self.fill(1500)
        self.raise_revision(revision)
        for number in (signal.SIGKILL, signal.SIGINT):
            for _ in range(20):  # on a busy machine it may be done before it is seen
                before = self.etcd.value(MARK)
                child = subprocess.Popen([BINARY, "store", *self.to_etcd, "--overwrite"], stderr=subprocess.PIPE,
                                         text=True)
                wait_for("its beginning", lambda: self.etcd.value(MARK) != before or child.poll() is not None,
                         interval=0.001)
                child.send_signal(number)
                err = child.communicate(timeout=PATIENCE)[1]
                if child.returncode != 0:
                    break
            self.assertEqual(child.returncode, -number if number == signal.SIGKILL else 128 + number, err)
            self.assertIsNotNone(self.etcd.value(MARK), "it was done before it was ended")
            code, said = self.refused_to_start()
            self.assertEqual(code, 1)
            self.assertIn("a copy of", said)
            self.assertIn("--overwrite removes them", self.store(*self.to_etcd, code=1))
            self.assertIn("expected a whole store", run("store", "check", self.cluster.flag)[1])
        self.store(*self.to_etcd, "--overwrite")
        process, _, kubectl = self.server(self.cluster.flag)
        self.assertEqual(listed(kubectl), seen)
        process.stop()
        # Into a file: it has its name when it is whole.
        (self.folder / "data").rename(self.folder / "before")
        shutil.copytree(self.folder / "before/pki", self.folder / "data/pki")
        for _ in range(20):
            child = subprocess.Popen([BINARY, "store", *self.to_file])
            wait_for("its beginning", lambda: (self.folder / "data/spillway.db.copying").exists()
                     or child.poll() is not None, interval=0.001)
            child.kill()
            if child.wait() != 0:
                break
            (self.folder / "data/spillway.db").unlink()
        self.assertEqual(child.returncode, -signal.SIGKILL, "it was done before it was ended")
        self.assertFalse((self.folder / "data/spillway.db").exists())
        self.store(*self.to_file)
        _, _, kubectl = self.server()
        self.assertEqual(listed(kubectl), seen)

    def test_check_names_what_a_version_would_lose(self):
        self.etcd.put_bytes(KEYS + "good", config_map(metadata("good"), {"a": "b"}))
        self.etcd.put_bytes(KEYS + "new", config_map(metadata("new"), {"a": "b"}, more=field(77, "of the future")))
        self.etcd.put_bytes(KEYS + "late",
                            config_map(metadata("late"), {"a": "b"},
                                       more=field(2, field(2, "value first") + field(1, "k"))))
        report = json.loads(self.store("check", self.cluster.flag, "-o", "json", code=0))
        self.assertEqual((report["problemCount"], report["resources"]), (0, {"configmaps": 3}))
        self.assertTrue(any("late: is written in other bytes" in note for note in report["notes"]), report)
        self.assertTrue(any("field 77 of core/v1.ConfigMap" in note for note in report["notes"]))
        self.etcd.put_bytes(KEYS + "bad", b"k8s:enc:aescbc:v1:k:\x01")
        code, out, _ = run("store", "check", self.cluster.flag)
        self.assertEqual(code, 3)
        self.assertIn("is encrypted, and this server has no key", out)


if __name__ == "__main__":
    unittest.main()
