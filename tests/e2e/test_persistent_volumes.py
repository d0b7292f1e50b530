"""PersistentVolumes of type hostPath and local, their claims and classes, through kubectl: bound, mounted, kept,
protected.
"""
import os
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, pod, run, wait_for, workspace
from test_confined import can_confine

FOREVER = "exec sleep 1000"


def claim(name, size="1Gi", **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}},
                     "storageClassName": "", **spec}}


def using(document, name, **source):
    document["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name, **source}}]
    document["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return document


@needs(shutil.which("kubectl") and can_write_cgroups() and can_confine(),
       "needs kubectl, root, a writable cgroup hierarchy and namespaces")
class PersistentVolumes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.process = cls.enterClassContext(one_node(cls.folder, "--storage", "off"))
        cls.kubectl = cls.process.kubectl
        cls.kubectl.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
                           "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})

    def directory(self, name, mode=0o777):
        path = self.folder / "disks" / name
        path.mkdir(parents=True)
        os.chmod(path, mode)
        return path

    def volume(self, name, source, **spec):
        self.kubectl.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source,
                                     **spec}})

    def local(self, name, node="n", **spec):
        path = self.directory(name, 0o700)
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
        self.volume(name, {"local": {"path": str(path)}}, nodeAffinity={"required": {"nodeSelectorTerms": terms}},
                    **spec)
        return path

    def phase(self, kind, name):
        return self.kubectl("get", kind, name, "--ignore-not-found", "-o", "jsonpath={.status.phase}")

    def wait_for_phase(self, kind, name, phase):
        wait_for(f"{kind}/{name} to be {phase or 'gone'}: {self.kubectl('get', kind)}",
                 lambda: self.phase(kind, name) == phase)

    def run_pod(self, name, script, of, phase="Succeeded", source=None, **spec):
        self.kubectl.apply(using(pod(name, ["sh", "-c", script], restartPolicy="Never", **spec), of, **(source or {})))
        wait_for(f"{name} to be {phase}: {self.events()}", lambda: self.phase("pod", name) == phase)

    def remove(self, kind, name, *more):
        self.kubectl("delete", kind, name, "--grace-period=0", "--force",
                     *more) if kind == "pod" else self.kubectl("delete", kind, name, *more)

    def events(self):
        return self.kubectl("get", "events", "-o",
                            "jsonpath={range .items[*]}{.involvedObject.name}: {.reason}: {.message}{'\\n'}{end}")

    def wait_for_event(self, text):
        wait_for(f"{text} in {self.events()}", lambda: text in self.events())

    def test_what_one_pod_wrote_the_next_one_reads_and_the_volume_is_kept(self):
        path = self.directory("kept")
        self.kubectl.apply(claim("kept"))
        self.wait_for_event(
            "kept: FailedBinding: no persistent volumes available for this claim and no storage class is set")
        self.volume("kept", {"hostPath": {"path": str(path)}})
        self.wait_for_phase("pvc", "kept", "Bound")
        self.wait_for_phase("pv", "kept", "Bound")
        shown = self.kubectl("get", "pv", "kept", "--no-headers").split()
        self.assertEqual(shown[:6], ["kept", "1Gi", "RWO", "Retain", "Bound", "default/kept"])
        self.assertEqual(self.kubectl("get", "pvc", "kept", "--no-headers").split()[:5],
                         ["kept", "Bound", "kept", "1Gi", "RWO"])
        self.run_pod("writer", "echo from-the-first > /data/word", "kept")
        self.remove("pod", "writer")
        self.assertEqual((path / "word").read_text(), "from-the-first\n")
        self.run_pod("reader", f"cat /data/word; {FOREVER}", "kept", phase="Running")
        self.assertEqual(self.kubectl.log_of("reader"), "from-the-first")
        # Deleted while a pod uses them: both stay until it is gone.
        self.remove("pvc", "kept", "--wait=false")
        self.remove("pv", "kept", "--wait=false")
        self.assertIn("Terminating", self.kubectl("get", "pvc", "kept"))
        self.assertEqual(self.phase("pvc", "kept"), "Bound")
        self.run_pod("late", "true", "kept", phase="Pending")
        wait_for("the scheduler's word", lambda: 'persistentvolumeclaim "kept" is being deleted' in self.events())
        self.remove("pod", "late")
        self.remove("pod", "reader")
        self.wait_for_phase("pvc", "kept", "")
        self.wait_for_phase("pv", "kept", "")
        self.assertTrue((path / "word").exists())

    def test_a_released_volume_keeps_its_data_and_waits(self):
        path = self.directory("released")
        self.volume("released", {"hostPath": {"path": str(path)}})
        self.kubectl.apply(claim("released", volumeName="released"))
        self.run_pod("wrote", "echo x > /data/word", "released")
        self.remove("pod", "wrote")
        self.remove("pvc", "released")
        self.wait_for_phase("pv", "released", "Released")
        self.kubectl.apply(claim("after", volumeName="released"))
        self.wait_for_event('after: FailedBinding: volume "released" already bound to a different claim.')
        self.assertTrue((path / "word").exists())
        self.remove("pvc", "after")

    def test_a_local_volume_is_bound_where_its_pod_goes(self):
        path = self.local("local", storageClassName="late")
        self.kubectl.apply(claim("local", storageClassName="late"))
        self.wait_for_event("local: WaitForFirstConsumer: waiting for first consumer to be created before binding")
        self.wait_for_phase("pv", "local", "Available")
        self.assertEqual(self.phase("pvc", "local"), "Pending")
        self.run_pod("grouped", f"touch /data/made && id && ls -lan /data && {FOREVER}", "local", phase="Running",
                     securityContext={"fsGroup": 4000})
        self.wait_for_phase("pvc", "local", "Bound")
        wait_for("the group of the pod", lambda: "4000" in self.kubectl("logs", "grouped"))
        self.assertTrue((path / "made").exists())
        self.assertEqual(path.stat().st_mode & 0o7777, 0o2770)
        self.remove("pod", "grouped")

    def test_a_volume_of_another_node_keeps_its_pod_back(self):
        self.local("elsewhere", node="other", storageClassName="late")
        self.kubectl.apply(claim("elsewhere", storageClassName="late", volumeName="elsewhere"))
        self.wait_for_phase("pvc", "elsewhere", "Bound")
        self.kubectl.apply(using(pod("stranded", ["sh", "-c", FOREVER]), "elsewhere"))
        self.wait_for_event("0/1 nodes are available: 1 node(s) had volume node affinity conflict.")
        # A pod that is put there by hand shows that the node itself checks.
        forced = using(pod("forced", ["sh", "-c", FOREVER], nodeName="n"), "elsewhere")
        self.kubectl.apply(forced)
        self.wait_for_event(
            'MountVolume.NodeAffinity check failed for volume "elsewhere" : no matching NodeSelectorTerms')
        for name in ("stranded", "forced"):
            self.remove("pod", name)

    def drivers(self, volumes):
        self.kubectl.apply({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"},
                            "spec": {"drivers": [{"name": "disk.example.com", "nodeID": "n",
                                                  "allocatable": {"count": volumes}}]}})

    def test_a_node_takes_no_more_volumes_than_its_driver_attaches(self):
        self.drivers(0)
        self.volume("far", {"csi": {"driver": "disk.example.com", "volumeHandle": "far"}})
        self.kubectl.apply(claim("far", volumeName="far"))
        self.wait_for_phase("pvc", "far", "Bound")
        self.kubectl.apply(using(pod("crowded", ["sh", "-c", FOREVER]), "far"))
        self.wait_for_event("0/1 nodes are available: 1 node(s) exceed max volume count.")
        code, said, problem = run("explain", "pod/crowded", "--kubeconfig", self.folder / "kubeconfig")
        self.assertEqual(code, 0, problem)
        self.assertIn("node(s) exceed max volume count", said)
        self.assertIn("disk.example.com", said)
        print(said)
        self.kubectl("delete", "csinode", "n")
        self.drivers(1)
        wait_for("the pod to get a node",
                 lambda: self.kubectl("get", "pod", "crowded", "-o", "jsonpath={.spec.nodeName}") == "n")
        self.remove("pod", "crowded")

    def test_a_claim_may_be_mounted_read_only(self):
        path = self.directory("shown")
        (path / "word").write_text("kept\n")
        self.volume("shown", {"hostPath": {"path": str(path)}})
        self.kubectl.apply(claim("shown", volumeName="shown"))
        self.run_pod("looks", "cat /data/word; echo no > /data/word || exit 0; exit 1", "shown",
                     source={"readOnly": True})
        self.assertEqual((path / "word").read_text(), "kept\n")
        self.remove("pod", "looks")

    def test_a_local_directory_that_is_not_there_is_said(self):
        path = self.local("missing")
        path.rmdir()
        self.kubectl.apply(claim("missing", volumeName="missing"))
        self.kubectl.apply(using(pod("hopes", ["sh", "-c", FOREVER]), "missing"))
        self.wait_for_event(
            f'MountVolume.NewMounter initialization failed for volume "missing" : path "{path}" does not exist')
        path.mkdir()
        wait_for("the pod to run", lambda: self.phase("pod", "hopes") == "Running")
        self.remove("pod", "hopes")


if __name__ == "__main__":
    unittest.main(verbosity=2)
