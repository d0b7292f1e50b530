"""StatefulSets as an operator uses them, with kubectl against `spillway up`."""
import os
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, wait_for, workspace
from test_confined import can_confine


def stateful_set(name, command, replicas=3, pod=None, **spec):
    """The manifest of a StatefulSet whose pods run the shell command."""
    container = {"name": "main", "image": "one", "command": ["sh", "-c", command], **(pod or {})}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "default"},
            "spec": {"serviceName": name, "replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}, **spec}}


@needs(shutil.which("kubectl") and can_write_cgroups() and can_confine(),
       "needs kubectl, root, a writable cgroup hierarchy and namespaces")
class StatefulSets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.kubectl = cls.enterClassContext(one_node(cls.folder, "--storage", "off")).kubectl

    def rolled_out(self, name):
        self.kubectl("rollout", "status", f"statefulset/{name}")

    def pods(self, name):
        """By name; those that are not on their way out, once none is."""
        def settled():
            pods = self.kubectl.get("pods", "-l", f"app={name}")["items"]
            return None if any("deletionTimestamp" in pod["metadata"] for pod in pods) else pods or [None]
        return {pod["metadata"]["name"]: pod for pod in wait_for("pods to end", settled) if pod}

    def images(self, name):
        return {key: pod["spec"]["containers"][0]["image"] for key, pod in self.pods(name).items()}

    def volume(self, name):
        path = self.folder / "disks" / name
        path.mkdir(parents=True)
        os.chmod(path, 0o777)
        self.kubectl.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                                     "hostPath": {"path": str(path)}}})
        return path

    def test_pods_have_their_name_and_are_brought_up_to_date_in_order(self):
        self.kubectl.apply(stateful_set("web", "sleep 1d"))
        self.rolled_out("web")
        pods = self.pods("web")
        self.assertEqual(sorted(pods), ["web-0", "web-1", "web-2"])
        born = [pods[name]["metadata"]["creationTimestamp"] for name in sorted(pods)]
        self.assertEqual(born, sorted(born))
        self.assertEqual(pods["web-2"]["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "2")
        self.assertRegex(self.kubectl("get", "statefulsets"), r"web\s+3/3\s+\d+[sm]")
        self.kubectl("patch", "sts", "web", "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}}}}')
        self.kubectl("set", "image", "sts/web", "main=two")
        wait_for("the last one to be new",
                 lambda: self.images("web") == {"web-0": "one", "web-1": "one", "web-2": "two"})
        self.kubectl("patch", "sts", "web", "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}')
        self.rolled_out("web")
        self.assertEqual(set(self.images("web").values()), {"two"})
        history = self.kubectl("rollout", "history", "sts/web")
        self.assertRegex(history, r"(?m)^1\s")
        self.assertRegex(history, r"(?m)^2\s")
        self.kubectl("rollout", "undo", "sts/web")
        self.rolled_out("web")
        self.assertEqual(set(self.images("web").values()), {"one"})
        self.kubectl("scale", "sts/web", "--replicas=1")
        wait_for("two to go", lambda: sorted(self.pods("web")) == ["web-0"])
        self.kubectl("scale", "sts/web", "--replicas=2")
        self.rolled_out("web")
        wait_for("its event", lambda: "SuccessfulDelete" in self.kubectl("describe", "sts", "web"))
        self.kubectl("delete", "sts", "web")
        wait_for("its pods to go", lambda: not self.kubectl.get("pods", "-l", "app=web")["items"])
        wait_for("its revisions to go", lambda: not self.kubectl.get("controllerrevisions", "-l", "app=web")["items"])

    def test_each_pod_has_its_own_volume_and_finds_it_again(self):
        disks = [self.volume(f"disk-{number}") for number in range(2)]
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                                                        "resources": {"requests": {"storage": "1Gi"}}}}
        self.kubectl.apply(stateful_set("db", "hostname > /data/$(ls /data | wc -l); sleep 1d", replicas=2,
                                        pod={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
                                        volumeClaimTemplates=[claim], podManagementPolicy="Parallel",
                                        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete",
                                                                              "whenScaled": "Retain"}))
        self.rolled_out("db")

        def written():
            """The names of the pods that have used each disk, in their order."""
            return sorted([file.read_text().strip() for file in sorted(disk.iterdir())] for disk in disks)
        wait_for("each to write its name", lambda: written() == [["db-0"], ["db-1"]])
        self.assertEqual({each["metadata"]["name"] for each in self.kubectl.get("pvc")["items"]},
                         {"data-db-0", "data-db-1"})
        self.kubectl("scale", "sts/db", "--replicas=1")
        wait_for("one to go", lambda: sorted(self.pods("db")) == ["db-0"])
        self.assertEqual(len(self.kubectl.get("pvc")["items"]), 2)
        self.kubectl("scale", "sts/db", "--replicas=2")
        self.rolled_out("db")
        wait_for("the second to find its volume", lambda: written() == [["db-0"], ["db-1", "db-1"]])
        self.kubectl("delete", "sts", "db")
        wait_for("its claims to go with it", lambda: not self.kubectl.get("pvc")["items"])


if __name__ == "__main__":
    unittest.main()
