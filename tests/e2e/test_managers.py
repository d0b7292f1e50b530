"""CPUs of their own, kernel parameters that hold, and a node that shuts down, against `spillway up`."""
import json
import os
import pathlib
import shutil
import subprocess
import time
import unittest

from harness import can_write_cgroups, needs, one_node, pod, wait_for, workspace

CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
topologyManagerPolicy: single-numa-node
allowedUnsafeSysctls: ["kernel.msg*", "kernel.shm*"]
shutdownGracePeriod: 120s
shutdownGracePeriodCriticalPods: 60s
"""


def can_isolate():
    return subprocess.run(["unshare", "--ipc", "--net", "true"], capture_output=True, check=False).returncode == 0


def has_cpusets():
    controllers = pathlib.Path("/sys/fs/cgroup/cgroup.controllers")
    return pathlib.Path("/sys/fs/cgroup/cpuset").is_dir() or (controllers.exists()
                                                              and "cpuset" in controllers.read_text().split())


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
@needs(can_isolate(), "namespaces are not permitted here")
@needs(has_cpusets() and os.cpu_count() >= 2, "needs a cpuset controller and two CPUs")
class Managers(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        (self.folder / "kubelet.yaml").write_text(CONFIG)
        self.process = self.enterContext(one_node(self.folder, "--config", self.folder / "kubelet.yaml"))
        self.api, self.kubectl = self.process.api, self.process.kubectl

    def place(self, name, script, annotations=None, **spec):
        document = pod(name, ["sh", "-c", script], nodeName="n", **spec)
        document["metadata"]["annotations"] = annotations or {}
        self.kubectl.apply(document)

    def reason(self, name):
        return wait_for(f"the end of {name}",
                        lambda: self.api.get(f"/api/v1/namespaces/default/pods/{name}")["status"].get("reason"))

    def test_a_guaranteed_pod_has_its_cpu(self):
        amount = {"cpu": "1", "memory": "16Mi"}
        self.place("own", "grep Cpus_allowed_list /proc/self/status; sleep 600",
                   resources={"requests": amount, "limits": amount})
        own = self.kubectl.log_of("own").split()[-1]
        self.place("others", "sleep 1; grep Cpus_allowed_list /proc/self/status; sleep 600")
        others = self.kubectl.log_of("others").split()[-1]
        print("own", own, "others", others)
        self.assertRegex(own, r"^[1-9]\d*$")
        self.assertTrue(others.startswith("0"), others)
        state = json.loads((self.folder / "state" / "n" / "cpu_manager_state").read_text())
        self.assertEqual(list(state["entries"].values()), [{"main": own}])
        self.assertEqual(state["defaultCpuSet"], others)
        amount = {"cpu": str(os.cpu_count()), "memory": "16Mi"}
        self.place("greedy", "sleep 600", resources={"requests": amount, "limits": amount})
        self.assertEqual(self.reason("greedy"), "TopologyAffinityError")
        print(self.kubectl("get", "pod", "greedy"))

    def test_sysctls_hold(self):
        def sysctls(**values):
            return {"sysctls": [{"name": name.replace("__", "."), "value": value} for name, value in values.items()]}

        self.place("ipc", "cat /proc/sys/kernel/msgmax; sleep 600", securityContext=sysctls(kernel__msgmax="12345"))
        self.assertEqual(self.kubectl.log_of("ipc"), "12345")
        ports = sysctls(net__ipv4__ip_local_port_range="2000 3000")
        self.place("net", "cat /proc/sys/net/ipv4/ip_local_port_range; sleep 600", {"spillway.io/network": "loopback"},
                   securityContext=ports)
        self.assertEqual(self.kubectl.log_of("net").split(), ["2000", "3000"])
        self.place("cut-off", "sleep 600", securityContext=ports)
        self.assertEqual(self.reason("cut-off"), "SysctlForbidden")
        self.place("wrong", "sleep 600", securityContext=sysctls(kernel__shmmni="many"))

        def waiting():
            states = self.api.get("/api/v1/namespaces/default/pods/wrong")["status"].get("containerStatuses") or [{}]
            return states[0].get("state", {}).get("waiting", {}).get("message")

        message = wait_for("the refusal", waiting)
        print(message)
        self.assertIn('sysctl "kernel.shmmni" cannot be set to "many": Invalid argument', message)
        self.assertIn("ok", self.kubectl("get", "--raw", "/api/v1/nodes/n/proxy/healthz"))

    def test_a_shutdown_ends_pods_with_their_grace(self):
        # The containers' last actions go to one file of the host, in the order they happen: for that they must not be
        # confined.
        self.process.stop()
        self.process = self.enterContext(one_node(self.folder, "--config", self.folder / "kubelet.yaml",
                                                  "--process-isolation=none"))
        self.api, self.kubectl = self.process.api, self.process.kubectl
        marks = self.folder / "marks"
        for name, more in (("web", {}), ("dns", {"priorityClassName": "system-cluster-critical"})):
            self.place(
                name,
                f"trap 'echo {name} $(date +%s%N) >> {marks}; exit 0' TERM; echo up; while :; do sleep 0.05; done",
                terminationGracePeriodSeconds=60,
                **more,
            )
            self.kubectl.log_of(name)
        begun = time.monotonic()
        self.process.stop()
        order = [line.split()[0] for line in marks.read_text().splitlines()]
        print("ended", order, "after", round(time.monotonic() - begun, 2), "s")
        self.assertEqual(order, ["web", "dns"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
