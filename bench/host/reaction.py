#!/usr/bin/env python3
"""How long a threshold's crossing takes until the process that crossed it is gone, on a node slice of this machine.

Starts `spillway up` with one node of 256Mi and a threshold of 64Mi, a neighbour within its request and a hog that grows
at a rate, and watches from outside: usage - inactive_file of the slice every half millisecond, the hog through a pidfd.
Prints one line per run and a table row. Needs root and writable cgroups (version 1 or 2). Source: docs/pressure-lab.md.

    bench/host/reaction.py [--runs 10] [--rate 60Mi] [--binary build/release/src/apps/spillway]
"""
import argparse
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402

MEBI = 1 << 20
PODS = "/api/v1/namespaces/default/pods"


class Slice:
    """The node's cgroup as its files show it."""

    def __init__(self, process):
        v1 = pathlib.Path("/sys/fs/cgroup/memory").is_dir()
        root = pathlib.Path("/sys/fs/cgroup/memory" if v1 else "/sys/fs/cgroup") / "spillway"
        own = {str(path) for path in root.glob("*/*") if path.is_dir() and (path / "kubepods").is_dir()}
        self.path = pathlib.Path(sorted(own - process.earlier)[0])
        self.usage = os.open(self.path / ("memory.usage_in_bytes" if v1 else "memory.current"), os.O_RDONLY)
        self.stat = os.open(self.path / "memory.stat", os.O_RDONLY)
        self.key = b"\ntotal_inactive_file " if v1 else b"\ninactive_file "
        self.limit = int((self.path / ("memory.limit_in_bytes" if v1 else "memory.max")).read_text())
        self.oom = self.path / ("memory.oom_control" if v1 else "memory.events")

    def available(self):
        stat = b"\n" + os.pread(self.stat, 16384, 0)
        at = stat.index(self.key) + len(self.key)
        return self.limit - max(0, int(os.pread(self.usage, 64, 0)) - int(stat[at:stat.index(b"\n", at)]))

    def oom_kills(self):
        return sum(int(line.split()[1]) for path in [self.oom, *self.path.rglob(self.oom.name)]
                   for line in path.read_text().splitlines() if line.startswith("oom_kill "))


def slices():
    return {str(path) for base in ("/sys/fs/cgroup/memory/spillway", "/sys/fs/cgroup/spillway") for path in pathlib.Path(base).glob("*/*")}


def child_pid(name):
    """The pid of the stress process of that rate, found by its command line."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[:4][1:] == [b"stress", b"--memory", name.encode()]:
                return int(path.parent.name)
        except OSError:
            pass
    return None


def measure(api, node, number, rate, threshold):
    """(crossing to exit in ms, lowest available in MiB, emergency?)"""
    name, size = f"hog-{number}", str(1_000_000_000 + os.getpid() * 100 + number)
    api.create(PODS, harness.pod(name, [str(harness.BINARY), "stress", "--memory", size, "--rate", rate]))
    pid = harness.wait_for("the hog", lambda: child_pid(size))
    pidfd = os.pidfd_open(pid)
    crossed, lowest, deadline = None, node.limit, time.monotonic() + 60
    while not select.select([pidfd], [], [], 0.0005)[0]:
        available = node.available()
        lowest = min(lowest, available)
        if crossed is None and available < threshold:
            crossed = time.monotonic()
        if time.monotonic() > deadline:
            raise SystemExit(f"the hog lives on: {available / MEBI:.0f} MiB available")
    died = time.monotonic()
    os.close(pidfd)
    harness.wait_for("the status", lambda: api.pod_phases().get(name) == "Failed")
    reason = api.get(f"{PODS}/{name}")["status"].get("reason")
    assert reason == "Evicted", reason
    return (died - crossed) * 1000 if crossed else 0.0, lowest / MEBI


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--rate", default="60Mi/s")
    arguments.add_argument("--threshold", type=int, default=64, help="MiB")
    arguments.add_argument("--memory", type=int, default=256, help="MiB")
    arguments.add_argument("--binary")
    given = arguments.parse_args()
    if given.binary:
        harness.BINARY = pathlib.Path(given.binary).resolve()
    if not harness.can_write_cgroups():
        print("reaction: skipped: needs root and a writable cgroup hierarchy")
        return 77
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except OSError:
        pass
    taken, lowest = [], []
    with harness.workspace() as folder:
        earlier = slices()
        with harness.running(folder, "up", "--data-dir", folder / "data", "--port", 0, "--node-memory", f"{given.memory}Mi", "--eviction-hard",
                             f"memory.available<{given.threshold}Mi", "--eviction-pressure-transition-period", "1s") as process:
            process.earlier = earlier
            api = harness.serving(process, folder / "data" / "kubeconfig")
            harness.wait_for("the node", api.nodes_ready)
            node = Slice(process)
            api.create(PODS, harness.pod("neighbour", [str(harness.BINARY), "stress", "--memory", "20Mi"],
                                         resources={"requests": {"memory": "40Mi"}}))
            harness.wait_for("the neighbour", lambda: api.pod_phases().get("neighbour") == "Running")
            for number in range(given.runs):
                harness.wait_for("the pressure to pass", lambda: not any(
                    c["type"] == "MemoryPressure" and c["status"] == "True" for n in api.get("/api/v1/nodes")["items"] for c in n["status"]["conditions"]))
                harness.wait_for("the taint to go", lambda: not any(n["spec"].get("taints") for n in api.get("/api/v1/nodes")["items"]))
                millis, low = measure(api, node, number, given.rate, given.threshold * MEBI)
                taken.append(millis)
                lowest.append(low)
                print(f"run {number + 1}: {millis:.1f} ms from crossing to exit, {low:.1f} MiB at the least", flush=True)
            neighbour = api.pod_phases()["neighbour"]
            kills = node.oom_kills()
            for line in process.log.read_text().splitlines():
                if "memory watch acted" in line or "evicting pod" in line:
                    print("  " + line[:240])
    print(f"| {given.rate} | {len(taken)} | {statistics.median(taken):.1f} | {max(taken):.1f} | {min(lowest):.1f} | {neighbour} | {kills} |")
    return 0 if neighbour == "Running" and kills == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
