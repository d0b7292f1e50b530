"""Nodes with containers and nodes with processes in one `spillway up`: which pod goes where, and the sentence for one
that cannot go anywhere.
"""
import re
import shutil
import unittest

import containerd_pods
import test_containers
from harness import Kubectl, can_write_cgroups, needs, pod, run, running, serving, wait_for, workspace
from own_containerd import NEEDS, Containerd

SLEEP = ["sh", "-c", "exec sleep 1000"]


@needs(shutil.which("kubectl") and can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class MixedNodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        containerd = Containerd(cls.folder / "containerd")
        cls.addClassCleanup(containerd.stop)
        containerd.wait_until_it_answers()
        containerd.import_image()
        cls.kubeconfig = cls.folder / "kubeconfig"
        cls.process = cls.enterClassContext(running(
            cls.folder, "up", "--data-dir", cls.folder / "data", "--state-dir", cls.folder / "state", "--port", "0",
            "--write-kubeconfig", cls.kubeconfig,
            "--node-name", "n", "--node-memory", "256Mi", "--process-nodes", "1",
            f"--container-runtime-endpoint=unix://{containerd.socket}"))
        cls.api = serving(cls.process, cls.kubeconfig)
        cls.kubectl = Kubectl(cls.kubeconfig)
        wait_for("the nodes", lambda: sorted(cls.api.nodes_ready()) == ["n", "n-process"])
        wait_for("the RuntimeClass", lambda: cls.api.find("/apis/node.k8s.io/v1/runtimeclasses/process"))

    def place_of(self, name):
        found = self.api.get(f"/api/v1/namespaces/default/pods/{name}")
        return (found["spec"].get("nodeName"), found["status"].get("phase"))

    def test_a_pod_with_an_image_runs_where_containers_run(self):
        self.api.create(test_containers.PODS, test_containers.pod("container", "sleep 1000"))
        wait_for("the pod", lambda: self.place_of("container") == ("n", "Running"))

    def test_a_pod_of_the_class_process_runs_as_a_process(self):
        self.kubectl.apply(pod("process", SLEEP, runtimeClassName="process"))
        wait_for("the pod", lambda: self.place_of("process") == ("n-process", "Running"))
        node = self.api.get("/api/v1/nodes/n-process")
        self.assertEqual(node["metadata"]["labels"]["spillway.io/runtime"], "process")
        self.assertTrue(node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("process://"))
        self.assertNotIn("spillway.io/runtime", self.api.get("/api/v1/nodes/n")["metadata"]["labels"])

    def test_explain_of_a_pod_that_fits_neither(self):
        self.kubectl.apply(pod("nowhere", SLEEP, nodeSelector={"spillway.io/runtime": "process"}))
        said = wait_for("the reasons", lambda: self.explained("nowhere", "untolerated taint"))
        self.assertTrue(re.search(r"spillway.io/runtime", said), said)

    def explained(self, name, text):
        _, said, _ = run("explain", f"pod/{name}", "--kubeconfig", self.kubeconfig)
        return said if text in said else None

    def test_process_nodes_need_nodes_with_containers(self):
        code, _, said = run("up", "--data-dir", self.folder / "other", "--runtime", "process", "--process-nodes", "1")
        self.assertEqual(code, 2)
        self.assertIn("--process-nodes: there are no nodes with containers beside them", said)


if __name__ == "__main__":
    unittest.main()
