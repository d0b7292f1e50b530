"""kubectl as an operator would use it, against `spillway up`."""
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, ROOT, wait_for, workspace


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Kubectl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        node = cls.enterClassContext(one_node(cls.enterClassContext(workspace())))
        cls.api, cls.kubectl = node.api, node.kubectl

    def test_a_day_of_an_operator(self):
        self.assertRegex(self.kubectl("get", "nodes", "-o", "wide"), r"n\s+Ready\s+<none>\s+\S+\s+v1\.\d+")
        self.kubectl("apply", "-f", str(ROOT / "examples/web.yaml"))
        self.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "replicaset/web", "--timeout=60s")
        pods = self.kubectl("get", "pods", "-o", "wide")
        self.assertEqual(pods.count("Running"), 3)
        name = self.kubectl("get", "pods", "-o", "name").split()[0]
        wait_for("its first words", lambda: "hello from" in self.kubectl("logs", name))
        self.assertIn("Node:", self.kubectl("describe", name))
        wait_for("the scheduler's event", lambda: "Scheduled" in self.kubectl("describe", name))
        self.assertIn("MemoryPressure", self.kubectl("describe", "node", "n"))
        self.kubectl("label", name, "tier=front")
        self.assertIn(name.split("/")[1], self.kubectl("get", "pods", "-l", "tier=front"))
        self.kubectl("cordon", "n")
        self.assertIn("SchedulingDisabled", self.kubectl("get", "nodes"))
        self.kubectl("uncordon", "n")
        self.kubectl("taint", "node", "n", "maintenance=yes:NoSchedule")
        self.assertIn("maintenance=yes:NoSchedule", self.kubectl("describe", "node", "n"))
        self.kubectl("taint", "node", "n", "maintenance-")
        self.kubectl("delete", name)
        self.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "replicaset/web", "--timeout=60s")
        self.kubectl("delete", "-f", str(ROOT / "examples/web.yaml"))
        self.kubectl("wait", "--for=delete", "pods", "-l", "app=web", "--timeout=60s")
        self.assertIn("NotFound", self.kubectl("get", "pod", "none", code=1))

    def test_a_daemon_set_is_rolled_out(self):
        def image():
            pods = self.kubectl.get("pods", "-l", "app=watcher")["items"]
            return [pod["spec"]["containers"][0]["image"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        self.kubectl.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "watcher", "namespace": "default"},
                            "spec": {"selector": {"matchLabels": {"app": "watcher"}},
                                     "template": {"metadata": {"labels": {"app": "watcher"}},
                                                  "spec": {"terminationGracePeriodSeconds": 0,
                                                           "containers": [{"name": "main", "image": "one", "command": ["sleep", "1d"]}]}}}})
        self.assertIn("successfully rolled out", self.kubectl("rollout", "status", "ds/watcher", "--timeout=60s"))
        self.assertEqual(image(), ["one"])
        self.kubectl("set", "image", "ds/watcher", "main=two")
        self.assertIn("successfully rolled out", self.kubectl("rollout", "status", "ds/watcher", "--timeout=60s"))
        self.assertEqual(image(), ["two"])
        before = self.kubectl.get("pods", "-l", "app=watcher")["items"][0]["metadata"]["uid"]
        self.kubectl("rollout", "restart", "ds/watcher")
        self.kubectl("rollout", "status", "ds/watcher", "--timeout=60s")
        self.assertNotIn(before, [pod["metadata"]["uid"] for pod in self.kubectl.get("pods", "-l", "app=watcher")["items"]])
        self.kubectl("delete", "ds", "watcher", "--timeout=60s")

    def test_namespaces_take_their_content_along(self):
        self.kubectl("create", "namespace", "shop")
        self.kubectl("create", "configmap", "prices", "-n", "shop", "--from-literal=apple=1")
        self.kubectl("delete", "namespace", "shop", "--timeout=60s")
        self.assertIn("NotFound", self.kubectl("get", "namespace", "shop", code=1))


if __name__ == "__main__":
    unittest.main()
