"""Volumes that `spillway up` makes: a StatefulSet's pod comes back with its data, policies Delete and Retain, what is
refused, and what a pod may leave in its directory."""
import os
import pathlib
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, pod, wait_for, workspace
from test_confined import can_confine
from test_persistent_volumes import claim, using

FOREVER = "exec sleep 1000"


def default_claim(name, **spec):
    made = claim(name, **spec)
    if "storageClassName" not in spec:
        del made["spec"]["storageClassName"]
    return made


@needs(shutil.which("kubectl") and can_write_cgroups() and can_confine(),
       "needs kubectl, root, a writable cgroup hierarchy and namespaces")
class LocalStorage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.process = cls.enterClassContext(one_node(cls.folder, "--storage", "on"))
        cls.kubectl = cls.process.kubectl
        cls.volumes = cls.folder / "state" / "n" / "local-volumes"
        wait_for("the class", lambda: "local-path (default)" in cls.kubectl("get", "storageclass"))

    def shown(self, kind, name, path):
        return self.kubectl("get", kind, name, "--ignore-not-found", "-o", f"jsonpath={{{path}}}")

    def wait_for_phase(self, kind, name, phase):
        wait_for(f"{kind}/{name} to be {phase or 'gone'}: {self.events()}",
                 lambda: self.shown(kind, name, ".status.phase") == phase)

    def events(self):
        return self.kubectl("get", "events", "-o",
                            "jsonpath={range .items[*]}{.involvedObject.name}: {.reason}: {.message}{'\\n'}{end}")

    def wait_for_event(self, text):
        wait_for(f"{text} in {self.events()}", lambda: text in self.events())

    def run_pod(self, name, script, of, phase="Succeeded"):
        self.kubectl.apply(using(pod(name, ["sh", "-c", script], restartPolicy="Never"), of))
        self.wait_for_phase("pod", name, phase)

    def directory_of(self, name):
        volume = self.shown("pvc", name, ".spec.volumeName")
        path = pathlib.Path(self.shown("pv", volume, ".spec.local.path"))
        self.assertEqual(path, self.volumes / volume)
        return volume, path

    def test_the_pod_of_a_stateful_set_is_replaced_with_its_data(self):
        # Only its owner may read and write the file, as a database has it.
        script = (
            "umask 077; echo born-$(cat /data/word 2>/dev/null | wc -l) >> /data/word && cat /data/word && " + FOREVER
        )
        container = {"name": "main", "image": "one", "command": ["sh", "-c", script],
                     "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
        self.kubectl.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
                            "spec": {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}},
                                     "template": {"metadata": {"labels": {"app": "db"}},
                                                  "spec": {"terminationGracePeriodSeconds": 0,
                                                           "containers": [container]}},
                                     "volumeClaimTemplates": [{"metadata": {"name": "data"},
                                                               "spec": {"accessModes": ["ReadWriteOnce"],
                                                                        "resources": {"requests": {
                                                                            "storage": "1Gi"}}}}]}})
        self.kubectl("rollout", "status", "statefulset/db")
        for each in ("db-0", "db-1"):
            self.assertEqual(self.kubectl.log_of(each), "born-0")
        before = self.shown("pod", "db-0", ".metadata.uid")
        self.kubectl("delete", "pod", "db-0")
        wait_for("another db-0", lambda: self.shown("pod", "db-0", ".metadata.uid") not in ("", before))
        self.wait_for_phase("pod", "db-0", "Running")
        wait_for(f"its data in {self.events()}",
                 lambda: self.kubectl("logs", "db-0").splitlines() == ["born-0", "born-1"])
        columns = self.kubectl("get", "pvc", "data-db-0", "--no-headers").split()
        self.assertEqual([columns[1], *columns[3:6]], ["Bound", "1Gi", "RWO", "local-path"])

    def test_a_claim_waits_for_a_pod_and_its_data_goes_with_it(self):
        self.kubectl.apply(default_claim("gone"))
        self.wait_for_event("gone: WaitForFirstConsumer: waiting for first consumer to be created before binding")
        self.run_pod(
            "writer",
            (
                "mkdir -p /data/a/b; ln -s /etc /data/a/etc; ln -s ../../.. /data/up; echo x > /data/a/b/c; mkfifo"
                " /data/a/p"
            ),
            "gone",
        )
        self.wait_for_event("gone: ProvisioningSucceeded: Successfully provisioned volume pvc-")
        volume, path = self.directory_of("gone")
        self.assertEqual((path / "a/b/c").read_text(), "x\n")
        self.assertEqual(os.stat(self.volumes).st_mode & 0o777, 0o700)
        self.kubectl("delete", "pvc", "gone", "--wait=false")
        self.kubectl("delete", "pod", "writer")
        self.wait_for_phase("pvc", "gone", "")
        self.wait_for_phase("pv", volume, "")
        self.assertFalse(path.exists())
        self.assertTrue(pathlib.Path("/etc/passwd").exists())
        self.assertTrue((self.folder / "state" / "n" / "pods").exists())

    def test_retain_keeps_the_data(self):
        self.kubectl.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "kept"},
                            "reclaimPolicy": "Retain",
                            "provisioner": "spillway.io/local-path", "volumeBindingMode": "WaitForFirstConsumer"})
        self.kubectl.apply(default_claim("kept", storageClassName="kept"))
        self.run_pod("keeper", "echo kept > /data/word", "kept")
        volume, path = self.directory_of("kept")
        self.kubectl("delete", "pod", "keeper")
        self.kubectl("delete", "pvc", "kept")
        self.wait_for_phase("pv", volume, "Released")
        self.assertEqual((path / "word").read_text(), "kept\n")

    def test_what_one_directory_cannot_be_is_said(self):
        self.kubectl.apply(default_claim("many", accessModes=["ReadWriteMany"]))
        self.kubectl.apply(using(pod("of-many", ["sh", "-c", FOREVER]), "many"))
        self.wait_for_event(
            'many: ProvisioningFailed: failed to provision volume with StorageClass "local-path": access mode'
            " ReadWriteMany is not supported"
        )

    def test_a_host_path_into_the_directory_of_another_is_refused(self):
        self.kubectl.apply(default_claim("own"))
        self.run_pod("owner", "echo secret > /data/word", "own")
        _, path = self.directory_of("own")
        made = pod("thief", ["sh", "-c", "cat /data/word"], restartPolicy="Never")
        made["spec"]["volumes"] = [{"name": "data", "hostPath": {"path": str(path)}}]
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        self.kubectl.apply(made)
        self.wait_for_event("it holds files of this node that no pod sees")
        self.kubectl("delete", "pod", "thief", "--grace-period=0", "--force")


if __name__ == "__main__":
    unittest.main()
