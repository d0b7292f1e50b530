"""kubectl as an operator would use it, against `spillway up`."""
import json
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, ROOT, wait_for, workspace


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Kubectl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl

    def test_a_day_of_an_operator(self):
        self.assertRegex(self.kubectl("get", "nodes", "-o", "wide"), r"n\s+Ready\s+<none>\s+\S+\s+v1\.\d+")
        self.kubectl("apply", "-f", str(ROOT / "examples/web.yaml"))
        self.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "replicaset/web")
        pods = self.kubectl("get", "pods", "-o", "wide", "-l", "app=web")
        self.assertEqual(pods.count("Running"), 3)
        name = self.kubectl("get", "pods", "-o", "name", "-l", "app=web").split()[0]
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
        self.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=3", "replicaset/web")
        self.kubectl("delete", "-f", str(ROOT / "examples/web.yaml"))
        self.kubectl("wait", "--for=delete", "pods", "-l", "app=web")
        self.assertIn("NotFound", self.kubectl("get", "pod", "none", code=1))

    def test_a_daemon_set_is_rolled_out(self):
        def live():
            pods = self.kubectl.get("pods", "-l", "app=watcher")["items"]
            return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

        def image():
            return [pod["spec"]["containers"][0]["image"] for pod in live()]
        self.kubectl.apply({"apiVersion": "apps/v1", "kind": "DaemonSet",
                            "metadata": {"name": "watcher", "namespace": "default"},
                            "spec": {"selector": {"matchLabels": {"app": "watcher"}},
                                     "template": {"metadata": {"labels": {"app": "watcher"}},
                                                  "spec": {"terminationGracePeriodSeconds": 0,
                                                           "containers": [{"name": "main", "image": "one",
                                                                           "command": ["sleep", "1d"]}]}}}})
        self.assertIn("successfully rolled out", self.kubectl("rollout", "status", "ds/watcher"))
        self.assertEqual(image(), ["one"])
        self.kubectl("set", "image", "ds/watcher", "main=two")
        self.assertIn("successfully rolled out", self.kubectl("rollout", "status", "ds/watcher"))
        self.assertEqual(image(), ["two"])
        old = live()[0]["metadata"]["name"]
        # From here on a pod is ready when this test says so: until then the one before it stays beside it.
        probe = {"exec": {"command": ["cat", "/tmp/go"]}, "periodSeconds": 1, "timeoutSeconds": 60}
        self.kubectl("patch", "ds", "watcher", "-p", json.dumps({"spec": {
            "minReadySeconds": 1, "updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"spec": {"containers": [{"name": "main", "image": "three", "readinessProbe": probe}]}}}}))

        def replaced_by(wanted):
            """Waits for two pods of these images, the newer of which then becomes ready; the names of both."""
            def both():
                pods = sorted(live(), key=lambda pod: pod["metadata"]["name"] != old)
                images = [pod["spec"]["containers"][0]["image"] for pod in pods]
                return [pod["metadata"]["name"] for pod in pods] if images == wanted else None
            names = wait_for("the new pod beside the old one", both)
            self.kubectl("wait", "--for=jsonpath={.status.phase}=Running", f"pod/{names[1]}")
            self.kubectl("exec", names[1], "--", "touch", "/tmp/go")
            self.assertIn("successfully rolled out", self.kubectl("rollout", "status", "ds/watcher"))
            wait_for("the old pod to go", lambda: [pod["metadata"]["name"] for pod in self.kubectl.get(
                "pods", "-l", "app=watcher")["items"]] == names[1:])
            return names[1]
        old = replaced_by(["two", "three"])
        self.assertEqual(image(), ["three"])
        self.kubectl("rollout", "restart", "ds/watcher")
        replaced_by(["three", "three"])
        self.kubectl("delete", "ds", "watcher")

    def test_both_kinds_of_apply_go_together(self):
        def settings(**data):
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"},
                    "data": data}

        def apply(document, *more):
            path = self.folder / "applied.json"
            path.write_text(json.dumps(document))
            return self.kubectl("apply", "-f", str(path), *more)
        apply(settings(a="1", b="2"))
        apply(settings(a="1", c="3"), "--server-side")
        self.assertEqual(self.kubectl.get("configmap", "settings")["data"], {"a": "1", "c": "3"})
        apply(settings(a="1"))
        self.assertEqual(self.kubectl.get("configmap", "settings")["data"], {"a": "1"})
        # Fields that admission gave a pod stay when it is moved to server-side apply.
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "moved", "namespace": "default"},
               "spec": {"terminationGracePeriodSeconds": 0,
                        "containers": [{"name": "main", "image": "one", "command": ["sleep", "1d"]}]}}
        apply(pod)
        apply(pod, "--server-side")
        apply(pod, "--server-side")  # whose fields kubectl has taken over by now
        self.assertEqual(len(self.kubectl.get("pod", "moved")["spec"]["tolerations"]), 2)
        self.kubectl("delete", "pod/moved", "configmap/settings")

    def test_endpoints_written_by_hand_are_in_slices(self):
        self.kubectl.apply({"apiVersion": "v1", "kind": "Service",
                            "metadata": {"name": "outside", "namespace": "default"},
                            "spec": {"ports": [{"port": 80}]}})
        self.kubectl.apply({"apiVersion": "v1", "kind": "Endpoints",
                            "metadata": {"name": "outside", "namespace": "default"},
                            "subsets": [{"addresses": [{"ip": "192.0.2.80"}], "ports": [{"port": 80}]}]})
        wait_for("its slice", lambda: "192.0.2.80" in self.kubectl("get", "endpointslices", "-l",
                                                                   "kubernetes.io/service-name=outside"))
        self.kubectl("delete", "service", "outside")

    def test_namespaces_take_their_content_along(self):
        self.kubectl("create", "namespace", "shop")
        self.kubectl("create", "configmap", "prices", "-n", "shop", "--from-literal=apple=1")
        self.kubectl("delete", "namespace", "shop")
        self.assertIn("NotFound", self.kubectl("get", "namespace", "shop", code=1))


if __name__ == "__main__":
    unittest.main()
