"""The node suites of docs/spec/e2e-eviction.md, scaled down: small file systems in memory, seconds for minutes. They
run on the process runtime, and with SPILLWAY_E2E_RUNTIME=containerd in a containerd of their own.

usage: test_eviction_suites.py [SUITE …]    prints the suite, its result and its seconds
"""
import json
import os
import pathlib
import subprocess
import time
import unittest

import containerd_pods
import own_containerd
from harness import can_write_cgroups, needs, one_node, PATIENCE, pids_in, pod, wait_for, workspace

MIB = 1 << 20
CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"
SETTLED = 5.0  # seconds for which a condition that has cleared stays clear
SLEEP = "exec sleep 1000"
INODES = 20_000


def config(**more):
    return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "evictionPressureTransitionPeriod": "2s",
            "imageMinimumGCAge": "1ms", **more}


def takes_memory(mebibytes, step=4, every=0.1):
    """A shell that holds that much, a step at a time, and then sleeps. While it takes a step it holds twice as much. One
    that is to be evicted takes seconds from the threshold to the limit: an agent may have to wait for a processor."""
    return (f"m=$(head -c {step * MIB} /dev/zero | tr '\\0' x); x=; i=0; "
            f"while [ $i -lt {mebibytes} ]; do x=$x$m; i=$((i+{step})); sleep {every}; done; sleep 1000")


def writes(mebibytes, place="/v"):
    return (
        f"i=0; while [ $i -lt {mebibytes} ]; do head -c {MIB} /dev/zero >> {place}/data; i=$((i+1)); sleep 0.02; done;"
        " sleep 1000"
    )


def with_directory(document, **source):
    document["spec"]["volumes"] = [{"name": "v", "emptyDir": source}]
    document["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    return document


def shell(name, script, **spec):
    return pod(name, ["sh", "-c", script], restartPolicy="Never", **spec)


def guaranteed(memory):
    return {"limits": {"memory": memory, "cpu": "50m"}, "requests": {"memory": memory, "cpu": "50m"}}


class Suite(unittest.TestCase):
    def setUp(self):
        self.began = time.monotonic()
        self.addCleanup(lambda: print(f"{self.id().split('.')[-1]}: {time.monotonic() - self.began:.1f} s", flush=True))
        self.folder = self.enterContext(workspace())

    def serve(self, settings, size_mib=256, node_memory=None):
        """A node whose files are on a file system of that size."""
        state = self.folder / "state"
        state.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m,nr_inodes={INODES}", "state", state],
                       check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", state], check=True)
        file = self.folder / "kubelet.yaml"
        file.write_text(json.dumps(settings))
        more = ("--node-memory", node_memory) if node_memory else ()
        self.node = self.enterContext(one_node(self.folder, "--config", file, *more))
        self.api = self.node.api
        self.calm = {each["type"]: each["lastTransitionTime"] for each in self.conditions()}
        self.addCleanup(self.remove_all)

    def remove_all(self):
        for name in self.api.pod_phases():
            self.api.delete(f"{PODS}/{name}", grace=0)
        wait_for("all pods to go", lambda: not self.api.pod_phases())

    def create(self, *documents):
        for document in documents:
            self.api.create(PODS, document)

    def priority(self, name, value):
        self.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        return {"priorityClassName": name}

    def conditions(self):
        return self.api.get("/api/v1/nodes/n")["status"]["conditions"]

    def condition(self, kind):
        return next(each["status"] for each in self.conditions() if each["type"] == kind) == "True"

    def phases(self):
        return {each["metadata"]["name"]: (each["status"].get("phase"), each["status"].get("reason"))
                for each in self.api.get(PODS)["items"]}

    def run_until_evicted(self, *order, survivors=(), pressure=None):
        """Pods of `order` are evicted, in this order; no pod of `survivors` fails, neither then nor later."""
        seen, pressed = [], False

        def all_evicted():
            nonlocal pressed
            phases = self.phases()
            for name, (phase, reason) in phases.items():
                if phase == "Failed" and name not in seen:
                    self.assertEqual(reason, "Evicted", name)
                    self.assertNotIn(name, survivors)
                    seen.append(name)
            pressed = pressed or (pressure is not None and self.condition(pressure))
            return len(seen) >= len(order)

        wait_for(lambda: f"the evictions of {order}: {seen} so far, {self.phases()}", all_evicted)
        self.assertEqual(seen, list(order))
        if pressure:
            wait_for(pressure, lambda: pressed or self.pressed_since(pressure))
        for name in order:
            self.assert_told_once(name)
        return seen

    def pressed_since(self, pressure):
        """The condition is there, or came and went between two looks: it has changed since the node began. Its event may
        be there before it."""
        return any(each["lastTransitionTime"] != self.calm[pressure] for each in self.conditions()
                   if each["type"] == pressure)

    def assert_told_once(self, name):
        events = wait_for(f"the event of {name}", lambda: [each for each in self.api.get(f"{CORE}/events")["items"]
                                                           if each["involvedObject"]["name"] == name
                                                           and each["reason"] == "Evicted"])
        self.assertEqual([each.get("count", 1) for each in events], [1], events)
        return events[0]

    def told(self):
        """Every event, a line each."""
        return "\n".join(
            f"{each['involvedObject']['name']} {each['reason']} {each.get('lastTimestamp')}: {each.get('message')}"
                         for each in self.api.get(f"{CORE}/events")["items"])

    def settle(self, pressure, survivors):
        """The condition clears and stays clear, no other pod fails, and a fresh pod is admitted."""
        wait_for(f"{pressure} to clear", lambda: not self.condition(pressure))
        until = time.monotonic() + SETTLED
        while time.monotonic() < until:
            self.assertFalse(self.condition(pressure))
            for name in survivors:
                if self.phases()[name][0] != "Running":
                    self.fail(f"{name} is {self.phases()[name]}: {self.told()}\n{self.node.tail(40)}")
            time.sleep(0.2)
        self.create(shell("fresh", SLEEP))
        wait_for("a fresh pod", lambda: self.phases().get("fresh", ("",))[0] == "Running")

    def available(self):
        state = os.statvfs(self.folder / "state")
        return state.f_bavail * state.f_frsize


@needs(can_write_cgroups() and (not own_containerd.is_wanted() or not containerd_pods.missing()),
       "needs root and cgroups that can be written")
class Suites(Suite):
    def test_inode_eviction(self):
        self.serve(config(evictionHard={"nodefs.inodesFree": "5000"}))
        hog = "i=0; while [ $i -lt 17000 ]; do : > /v/$i; i=$((i+1)); done; sleep 1000"
        self.create(shell("innocent", SLEEP), with_directory(shell("hog", hog)))
        self.run_until_evicted("hog", survivors=["innocent"], pressure="DiskPressure")
        self.settle("DiskPressure", ["innocent"])

    def test_memory_allocatable_eviction(self):
        self.serve(config(evictionHard={"memory.available": "20Mi"}, kubeReserved={"memory": "170Mi"},
                          enforceNodeAllocatable=["pods"]))
        self.create(shell("innocent", SLEEP, resources=guaranteed("10Mi")),
                    shell("hog", takes_memory(200, step=1, every=0.3)))
        self.run_until_evicted("hog", survivors=["innocent"], pressure="MemoryPressure")
        event = self.assert_told_once("hog")
        notes = event["metadata"].get("annotations", {})
        for wanted in ("starved_resource", "offending_containers", "offending_containers_usage"):
            self.assertIn(wanted, notes)
        self.settle("MemoryPressure", ["innocent"])

    def test_local_storage_eviction(self):
        self.serve(config(evictionHard={"nodefs.available": "150Mi"}))
        self.create(shell("innocent", SLEEP), with_directory(shell("hog", writes(140))))
        self.run_until_evicted("hog", survivors=["innocent"], pressure="DiskPressure")
        self.settle("DiskPressure", ["innocent"])

    def soft(self, grace, pod_grace):
        self.serve(config(evictionHard={"nodefs.available": "0%", "memory.available": "0%"},
                          evictionSoft={"nodefs.available": "150Mi"},
                          evictionSoftGracePeriod={"nodefs.available": f"{grace}s"}, evictionMaxPodGracePeriod=3))
        hog = with_directory(shell("hog", f"trap '' TERM; {writes(115)}"))
        hog["spec"]["terminationGracePeriodSeconds"] = pod_grace
        self.create(shell("innocent", SLEEP), hog)
        crossed = time.monotonic()

        def is_crossed():
            nonlocal crossed
            now = time.monotonic()
            if self.available() < 150 * MIB:
                return True
            crossed = now  # not yet then
            return False
        wait_for("the threshold to be crossed", is_crossed, interval=0.005)
        return crossed

    def test_local_storage_soft_eviction(self):
        crossed = self.soft(grace=6, pod_grace=1)
        self.run_until_evicted("hog", survivors=["innocent"], pressure="DiskPressure")
        self.assertGreaterEqual(time.monotonic() - crossed, 5.5, "not before the grace")
        self.settle("DiskPressure", ["innocent"])

    def test_soft_eviction_keeps_the_grace_of_the_pod(self):
        # evictionMaxPodGracePeriod: 3; with its own grace it would outlast the wait
        self.soft(grace=3, pod_grace=round(10 * PATIENCE))
        self.run_until_evicted("hog", survivors=["innocent"])
        uid = self.api.get(f"{PODS}/hog")["metadata"]["uid"]
        wait_for("its processes to go", lambda: not any(
            uid in folder and pids_in(pathlib.Path(folder, "cgroup.procs")) for folder, _,
            _ in os.walk("/sys/fs/cgroup/memory")))

    def test_local_storage_capacity_isolation(self):
        self.serve(config(evictionHard={"nodefs.available": "5Mi"}))
        limit = {"limits": {"ephemeral-storage": "20Mi"}}
        self.create(with_directory(shell("directory-over", writes(14)), sizeLimit="10Mi"),
                    with_directory(shell("directory-under", writes(8)), sizeLimit="10Mi"),
                    with_directory(shell("limit-over", writes(25), resources=limit)),
                    with_directory(shell("limit-under", writes(8), resources=limit)),
                    shell("layer-over", writes(25, "/tmp"), resources=limit),
                    with_directory(shell("memory-under", writes(8)), medium="Memory", sizeLimit="10Mi"))
        over = {"directory-over", "limit-over", "layer-over"}
        wait_for("the evictions",
                 lambda: {name for name, (phase, _) in self.phases().items() if phase == "Failed"} >= over)
        time.sleep(SETTLED)
        self.assertEqual({name for name, (phase, reason) in self.phases().items()
                          if (phase, reason) == ("Failed", "Evicted")}, over)
        self.assertIn('Usage of EmptyDir volume "v" exceeds the limit "10Mi"',
                      self.assert_told_once("directory-over")["message"])
        self.assertIn("20Mi", self.assert_told_once("limit-over")["message"])
        self.assertIn("20Mi", self.assert_told_once("layer-over")["message"])

    def test_priority_memory_eviction_ordering(self):
        self.serve(config(evictionHard={"memory.available": "60Mi"}))
        high = self.priority("high", 1000)
        self.create(shell("steady", SLEEP, resources=guaranteed("20Mi")),
                    shell("high-hog", takes_memory(60), **high), shell("low-hog", takes_memory(200, step=2, every=0.3)))
        self.run_until_evicted("low-hog", survivors=["steady", "high-hog"], pressure="MemoryPressure")
        self.settle("MemoryPressure", ["steady", "high-hog"])

    def test_priority_local_storage_eviction_ordering(self):
        self.serve(config(evictionHard={"nodefs.available": "100Mi"}))
        high = self.priority("high", 1000)
        within = {"limits": {"ephemeral-storage": "50Mi"}, "requests": {"ephemeral-storage": "50Mi"}}
        self.create(with_directory(shell("within", writes(40), resources=within)),
                    with_directory(shell("high-hog", writes(30), **high)))
        wait_for("what they write", lambda: self.available() < (256 - 69) * MIB)
        self.create(with_directory(shell("low-hog", writes(120))))
        self.run_until_evicted("low-hog", survivors=["within", "high-hog"], pressure="DiskPressure")
        self.settle("DiskPressure", ["within", "high-hog"])


@needs(can_write_cgroups() and (not own_containerd.is_wanted() or not containerd_pods.missing()),
       "needs root and cgroups that can be written")
class Pids(Suite):
    """The numbers of processes are the machine's, so nothing else may begin or end many of them meanwhile."""

    def test_priority_pid_eviction_ordering(self):
        most = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
        threads = int(pathlib.Path("/proc/loadavg").read_text().split()[3].split("/")[1])
        most = min(most, int(pathlib.Path("/proc/sys/kernel/threads-max").read_text()))
        self.serve(config(evictionHard={"pid.available": str(most - threads - 900)}))
        high = self.priority("high", 1000)
        forks = "i=0; while [ $i -lt {0} ]; do sleep 1000 & i=$((i+1)); done; wait"
        self.create(shell("innocent", SLEEP), shell("high-hog", forks.format(100), **high))
        wait_for("the first", lambda: self.phases()["high-hog"][0] == "Running")
        self.create(shell("low-hog", forks.format(1200)))
        self.run_until_evicted("low-hog", survivors=["innocent", "high-hog"], pressure="PIDPressure")
        targets = [each for each in self.api.get(f"{PODS}/low-hog")["status"]["conditions"]
                   if each["type"] == "DisruptionTarget"]
        self.assertEqual([(each["status"], each["reason"]) for each in targets], [("True", "TerminationByKubelet")])
        self.settle("PIDPressure", ["innocent", "high-hog"])


if __name__ == "__main__":
    unittest.main()
