"""A companion that asks a container runtime: a real containerd with its own root, state and socket on small file
systems of the test's own, pods made through the CRI from an image of busybox, no network. One pod fills the disk:
its writable layer and its logs are seen growing, and it is the only pod that is evicted while the kubelet (the test)
has not yet deleted its files.

containerd and runc are those that tools/peers unpacks, else the machine's. Skipped where there are none, where
python3-grpcio is not installed, or where nothing can be mounted.
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import unittest
import urllib.request

from harness import can_write_cgroups, needs, PATIENCE, run, running, serving, skip, wait_for, workspace
from process_memory import resident
import test_companion as companion

MIB = companion.MIB
DISK = 256 * MIB
PYTHON = "/usr/bin/python3"  # the system's own: python3-grpcio is a package of it
PODS = pathlib.Path(__file__).resolve().parent / "containerd_pods.py"
FILL = (
    "echo filling; i=0; while [ $i -lt 60 ]; do dd if=/dev/zero of=/data/$i bs=1M count=4; i=$((i+1)); sleep 1; done;"
    " sleep 1000"
)


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs", folder],
                             stderr=subprocess.PIPE, text=True, check=False)
    if mounted.returncode != 0:
        skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Containerd:
    """containerd_pods.py: a line of JSON for a line of JSON."""

    def __init__(self, folder):
        self.child = subprocess.Popen([PYTHON, PODS, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self):
        said = json.loads(self.child.stdout.readline() or "{}")
        if "skip" in said:
            skip(said["skip"])
        if "error" in said or (not said and self.child.poll() is not None):
            raise AssertionError(f"containerd: {said.get('error', 'ended')}")
        return said

    def ask(self, **request):
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        return self.read()

    def close(self):
        self.child.stdin.close()
        self.child.wait(PATIENCE)
        self.child.stdout.close()


def remove_cgroups(name):
    """runc makes the parents of a container's cgroup in every hierarchy, and leaves them."""
    for hierarchy in (companion.V2.iterdir() if companion.is_v1() else [companion.V2]):
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


@needs(can_write_cgroups(), "cgroups cannot be written here")
class Disks(unittest.TestCase):
    @contextlib.contextmanager
    def node(self, apart=False, **config):
        """`apart`: images and containers have a file system of their own."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(workspace())
            disk = stack.enter_context(small_disk(folder / "disk"))
            (disk / "kubelet").mkdir()
            if apart:
                stack.enter_context(small_disk(disk / "containerd"))
            else:
                (disk / "containerd").mkdir()
            tree = companion.KubeletTree("cgroupfs")
            stack.callback(remove_cgroups, tree.name)
            stack.callback(tree.remove)
            tree.limit(tree.top, 1024 * MIB)  # files on the disk are in memory
            containerd = Containerd(disk / "containerd")
            stack.callback(containerd.close)
            containerd.read()
            server = stack.enter_context(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                 "--write-kubeconfig", folder / "kubeconfig"))
            api = serving(server, folder / "kubeconfig")
            kubelet = companion.FakeKubelet(companion.kubelet_config(tree, podLogsDir=str(disk / "logs"), **config))
            stack.callback(kubelet.close)
            api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": companion.NODE}})
            self.folder, self.disk, self.tree, self.containerd, self.api, self.kubelet = (
                folder,
                disk,
                tree,
                containerd,
                api,
                kubelet,
            )
            self.pods = {}
            yield

    def start_pod(self, name, command, named_by_status=True):
        uid = self.api.create("/api/v1/namespaces/default/pods", companion.pod_object(name))["metadata"]["uid"]
        made = self.containerd.ask(run={"name": name, "namespace": "default", "uid": uid,
                                        "command": ["/bin/sh", "-c", command],
                                        "cgroup_parent": f"/{self.tree.name}/kubepods/besteffort/pod{uid}",
                                        "log_directory": str(self.disk / "logs" / f"default_{name}_{uid}")})
        status = {"phase": "Running", "qosClass": "BestEffort"}
        if named_by_status:
            status["containerStatuses"] = [{"name": "app", "ready": True, "restartCount": 0, "image": "x",
                                            "imageID": "",
                                            "containerID": f"containerd://{made['container']}",
                                            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
        self.api.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": status}, "strategic-merge")
        self.pods[name] = made["sandbox"]

    def command(self, *more):
        return ("agent", "--companion", "--kubeconfig", self.folder / "kubeconfig", "--node-name", companion.NODE,
                "--kubelet", self.kubelet.url,
                "--node-memory", str(1024 * MIB), "--state-dir", self.folder / "state", "--pages-address",
                "127.0.0.1:0",
                "--container-runtime-endpoint", f"unix://{self.disk / 'containerd' / 'containerd.sock'}", "--root-dir",
                self.disk / "kubelet", *more)

    @contextlib.contextmanager
    def companion(self, *more):
        with running(self.folder, *self.command(*more)) as process:
            started = wait_for("the companion to run",
                               lambda: re.search(r"companion running.*?pages_port=(\d+)", process.log.read_text())
                               or (not process.running() and self.fail(process.tail())))
            port = int(started.group(1))
            process.page = lambda path: json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}{path}",
                                                                          timeout=PATIENCE).read())
            yield process

    def phase(self, name):
        return self.api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"]

    def journal(self):
        return (self.folder / "state" / companion.NODE / "journal.jsonl").read_text()

    @staticmethod
    def rootfs(summary, name):
        """Bytes in the writable layer of the pod's container; None: not measured."""
        for pod in summary.get("pods", []):
            if pod["podRef"]["name"] == name and pod.get("containers"):
                return pod["containers"][0].get("rootfs", {}).get("usedBytes")
        return None

    def is_measured(self, summary):
        """True once the layers of both pods and the logs of the one that grows are known: they are not read in one
        moment."""
        logs = [container["logs"].get("usedBytes", 0) for pod in summary.get("pods", [])
                if pod["podRef"]["name"] == "hog" for container in pod.get("containers", []) if "logs" in container]
        return (self.rootfs(summary, "hog") or 0) >= 8 * MIB and self.rootfs(summary, "idle") is not None and any(logs)

    def evicts_the_hog(self, filesystem, apart):
        def free(summary):
            """Bytes; 0: not measured just now."""
            node = summary["node"]
            figures = node.get("fs", {}) if filesystem == "nodefs" else node.get("runtime", {}).get("imageFs", {})
            return figures.get("availableBytes", 0)

        with self.node(apart, evictionHard={"memory.available": "16Mi"}):
            self.start_pod("idle", "sleep 1000", named_by_status=False)
            with self.companion("--eviction-hard", f"{filesystem}.available<96Mi") as process:
                self.start_pod("hog", FILL)  # the threshold is crossed 40 s later: all is measured by then
                first = wait_for("all that is measured",
                                 lambda: self.is_measured(summary := process.page("/stats/summary")) and summary)
                self.assertEqual(first["node"]["fs"]["capacityBytes"], DISK)
                images = first["node"]["runtime"]["imageFs"]
                self.assertEqual(images["capacityBytes"], DISK)
                self.assertGreater(images["usedBytes"], 0)
                self.assertEqual(first["node"]["runtime"]["containerFs"]["capacityBytes"], DISK)
                hog = next(pod for pod in first["pods"] if pod["podRef"]["name"] == "hog")
                self.assertEqual(hog["containers"][0]["name"], "app")
                self.assertGreater(hog["containers"][0]["logs"]["usedBytes"], 0)
                self.assertGreaterEqual(hog["ephemeral-storage"]["usedBytes"],
                                        hog["containers"][0]["rootfs"]["usedBytes"])
                self.assertIsNotNone(self.rootfs(first, "idle"), "named by the runtime, as its status names nothing")
                grown = wait_for("it to grow",
                                 lambda: (size := self.rootfs(process.page("/stats/summary"), "hog") or 0)
                                 > self.rootfs(first, "hog") and size)
                self.assertNotIn("fs", process.page("/stats/summary?only_cpu_and_memory=true")["node"])
                wait_for("the pod to be Failed", lambda: self.phase("hog") == "Failed")
                self.assertEqual(self.phase("idle"), "Running")
                status = self.api.get("/api/v1/namespaces/default/pods/hog")["status"]
                self.assertEqual(status["reason"], "Evicted")
                self.assertRegex(
                    status["message"],
                    r"^The node was low on resource: ephemeral-storage\. Threshold quantity: 96Mi, available:"
                    r" \d+[KM]i\. "
                    r"Container app was using \d+[KM]i, request is 0, has larger consumption of ephemeral-storage\. $",
                )
                self.assertNotIn("gone_after_seconds", self.journal(), "what it wrote is still there")
                self.containerd.ask(remove=self.pods.pop("hog"))  # as the kubelet does
                wait_for("the eviction to be over", lambda: "gone_after_seconds" in self.journal())
                wait_for("the disk to be free again", lambda: free(process.page("/stats/summary")) > 96 * MIB)
                evicted = [entry["evict"] for entry in map(json.loads, self.journal().splitlines())
                           if entry.get("evict")]
                self.assertEqual(len(evicted), 1, evicted)
                self.assertEqual(self.phase("idle"), "Running")
                ages = process.page("/debug/spillway")["statsAgeSeconds"]
                print(
                    f"{filesystem}: layer of hog {self.rootfs(first, 'hog') / MIB:.0f}Mi, then {grown / MIB:.0f}Mi;"
                    f" images {images['usedBytes'] / MIB:.1f}Mi; {status['message']}; ages {ages}; resident"
                    f" {resident(process) // MIB} MiB"
                )
            code, text, _ = run("explain", "--last", "--journal",
                                self.folder / "state" / companion.NODE / "journal.jsonl")
            self.assertEqual(code, 0)
            self.assertIn("pod default/hog was evicted", text)
            self.assertIn(f"{filesystem}.available", text)
            self.assertIn("the kubelet's to delete", text)

    def test_the_pod_that_fills_the_disk_is_evicted(self):
        self.evicts_the_hog("nodefs", apart=False)

    def test_the_pod_that_fills_the_disk_of_images_is_evicted(self):
        self.evicts_the_hog("imagefs", apart=True)

    def test_a_runtime_that_does_not_answer_leaves_its_figures_missing(self):
        with self.node():
            self.start_pod("idle", "sleep 1000")
            self.containerd.ask(remove=self.pods.pop("idle"))
            self.containerd.close()
            # There is no room left by this threshold, but the use of each pod is unknown.
            with self.companion("--eviction-hard", "nodefs.available<10Gi") as process:
                wait_for("the reason",
                         lambda: "containerd.sock" in process.page("/debug/spillway").get("storageProblem", ""))
                summary = process.page("/stats/summary")
                self.assertNotIn("imageFs", summary["node"].get("runtime", {}))
                self.assertIn("fs", summary["node"])
                standing = wait_for("a decision", lambda: process.page("/debug/spillway/decisions").get("now"))
                reasons = [(reason["code"], fact["value"]) for reason in standing["reasons"] for fact in reason["facts"]
                           if fact["name"] == "signal"]
                self.assertEqual(reasons, [("observation-missing", "nodefs.available")])

    def test_refuses_to_double_the_kubelets_thresholds(self):
        with self.node(evictionHard={"memory.available": "16Mi", "imagefs.available": "15%"}):
            code, _, said = run(*self.command("--eviction-hard", "nodefs.available<12%"))
            self.assertEqual(code, 1, said)
            self.assertIn("nodefs.available<12% would not come before the kubelet's imagefs.available<15%", said)
            self.assertIn("--eviction-hard='nodefs.available<30%'", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
