"""Reservations that are enforced on daemons, and a node whose object another client makes, against `spillway agent`."""
import os
import pathlib
import unittest

from harness import can_write_cgroups, needs, PATIENCE, Process, running, serving, wait_for, workspace

CGROUPS = pathlib.Path("/sys/fs/cgroup")
UNIFIED = (CGROUPS / "cgroup.controllers").exists()


def directories(name):
    """Where a cgroup is on this machine, by controller."""
    if UNIFIED:
        return {controller: CGROUPS / name for controller in ("memory", "cpu", "pids")}
    return {controller: CGROUPS / controller / name for controller in ("memory", "cpu", "pids")}


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Reservations(unittest.TestCase):
    def setUp(self):
        self.folder = self.enter(workspace())
        self.kubeconfig = self.folder / "kubeconfig"
        server = self.enter(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0",
                                    "--write-kubeconfig", self.kubeconfig))
        self.api = serving(server, self.kubeconfig)
        self.cgroup = f"spillway-e2e-{os.getpid()}-daemons"
        for directory in set(directories(self.cgroup).values()):
            directory.mkdir()
            self.addCleanup(directory.rmdir)

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def arguments(self, *more):
        (self.folder / "kubelet.yaml").write_text(
            "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, port: 0}")
        return ("agent", "--kubeconfig", self.kubeconfig, "--config", self.folder / "kubelet.yaml", "--node-name", "n",
                "--node-ip", "127.0.0.1",
                "--node-memory", "256Mi", "--state-dir", self.folder / "state", *more)

    def limit(self, controller, file):
        return (directories(self.cgroup)[controller] / file).read_text().strip()

    def test_daemons_are_held_to_what_is_reserved_for_them(self):
        self.enter(running(self.folder,
                           *self.arguments("--system-reserved", "cpu=250m,memory=64Mi,pid=50",
                                           "--system-reserved-cgroup", f"/{self.cgroup}",
                                                        "--enforce-node-allocatable", "pods,system-reserved")))
        wait_for("the node", lambda: self.api.nodes_ready() == ["n"])
        messages = wait_for("two events", lambda: self.messages("NodeAllocatableEnforced", 2))
        self.assertEqual(self.limit("memory", "memory.max" if UNIFIED else "memory.limit_in_bytes"), str(64 << 20))
        self.assertEqual(self.limit("pids", "pids.max"), "50")
        self.assertEqual(self.limit("cpu", "cpu.weight" if UNIFIED else "cpu.shares"), "10" if UNIFIED else "256")
        self.assertEqual(messages,
                         {"Updated Node Allocatable limit across pods",
                          f"Updated limits on system reserved cgroup /{self.cgroup}"})

    def messages(self, reason, number):
        found = {event["message"] for event in self.api.get("/api/v1/namespaces/default/events")["items"]
                 if event["reason"] == reason}
        return found if len(found) == number else None

    def test_a_cgroup_that_is_not_there_ends_the_start(self):
        missing = f"{self.cgroup}-not"
        agent = Process(self.folder, *self.arguments("--kube-reserved", "cpu=100m", "--kube-reserved-cgroup", missing,
                                                     "--enforce-node-allocatable", "kube-reserved-compressible"))
        self.assertEqual(agent.child.wait(timeout=PATIENCE), 1)
        self.assertIn(f'Failed to enforce Kube Reserved Cgroup Limits on "{missing}": ', agent.log.read_text())
        self.assertEqual(self.api.get("/api/v1/nodes")["items"], [])

    def test_a_node_of_others_is_reported_and_not_made(self):
        self.enter(running(self.folder,
                           *self.arguments("--register-node=false", "--register-with-taints", "mine=x:NoSchedule")))
        wait_for("the agent", lambda: self.messages("Starting", 1))
        self.assertEqual(self.api.get("/api/v1/nodes")["items"], [])
        self.api.create("/api/v1/nodes", {"metadata": {"name": "n", "labels": {"by": "somebody"}}})
        wait_for("the node", lambda: self.api.nodes_ready() == ["n"])
        node = self.api.get("/api/v1/nodes/n")
        self.assertEqual(node["metadata"]["labels"]["by"], "somebody")
        self.assertNotIn(node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"], (0, 10250),
                         "any free port, as the file says")
        self.assertNotIn("mine", [taint["key"] for taint in node["spec"].get("taints", [])])
        wait_for("the lease", lambda: self.api.find("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"))


if __name__ == "__main__":
    unittest.main()
