#!/usr/bin/env python3
"""The time from a threshold's crossing until the process that crossed it is gone, on node slices of this machine.

The lab's scenarios s1, s2, s3 and s9 (tests/lab/README.md) without a machine of their own: for each, `spillway up` with
one node of 512Mi and a threshold of 100Mi, its pods, and a hog per run. Watched from outside: usage - inactive_file of
the slice every half millisecond, the hog through a pidfd; all other pods must be running afterwards. Prints a line per
run and a table. A run in which two samples lay more than 10 ms apart is distrusted: its time is left out unless all
are. "Not seen": the pod was evicted before a sample showed the crossing, such a run has no time. Needs root and
writable cgroups (version 1 or 2). Source: docs/pressure-lab.md.

    bench/host/reaction.py [--runs 20] [--scenarios s1,s2,s3,s9] [--runtime process,containerd] [--process-isolation
    namespaces|none] [--binary build/release/src/apps/spillway]
"""
import argparse
import itertools
import os
import pathlib
import select
import signal
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
import own_containerd  # noqa: E402

MEBI = 1 << 20
PODS = "/api/v1/namespaces/default/pods"
MEMORY, THRESHOLD = 512, 100  # MiB
GAP_MAX = 0.010
CRITICAL, HIGH, HIGHEST = 2000001000, 100000, 1000000


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
    return {str(path) for base in ("/sys/fs/cgroup/memory/spillway", "/sys/fs/cgroup/spillway")
            for path in pathlib.Path(base).glob("*/*")}


def child_pid(name):
    """The pid of the stress process of that rate, found by its command line."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[:4][1:] == [b"stress", b"--memory", name.encode()]:
                return int(path.parent.name)
        except OSError:
            pass
    return None


def stress(name, size, request=None, limit=None, priority=0, rate=None):
    """A pod that holds `size` MiB, reached at `rate` MiB/s if given; requests and limits in MiB."""
    resources = {}
    if request:
        resources["requests"] = {"memory": f"{request}Mi"}
    if limit:
        resources = {kind: {"memory": f"{limit}Mi", "cpu": "10m"} for kind in ("requests", "limits")}
    command = [harness.program_in_pods(), "stress", "--memory", size if isinstance(size, str) else f"{size}Mi"]
    pod = harness.pod(name, command + (["--rate", f"{rate}Mi/s"] if rate else []), resources=resources)
    if priority:
        pod["spec"]["priorityClassName"] = class_of(priority)
    return pod


def class_of(priority):
    return "system-node-critical" if priority == CRITICAL else f"p{priority}"


def webs():
    return [stress("web-a", 24, request=64), stress("web-b", 24, request=64),
            stress("system", 16, limit=32, priority=CRITICAL)]


def crowd():
    return ([stress(f"crit-{i}", 4, limit=16, priority=CRITICAL) for i in range(6)]
            + [stress(f"web-{i}", 8, request=20) for i in range(6)]
            + [stress(f"be-{i}", 8) for i in range(6)] + [stress("be-6", 8, priority=HIGHEST)])


# The pods beside the hog, the rate of the hog in MiB/s, its request in MiB.
SCENARIOS = {
    "s1": (webs, 20, None),
    "s2": (webs, 400, None),
    "s3": (crowd, 50, 96),
    "s9": (lambda: [webs()[0], webs()[2], stress("store", 180, priority=HIGH)], 20, None),
}


def measure(api, node, name, rate, request):
    """(crossing to exit in s, None if no sample shows one; lowest available in bytes; longest time between two samples
    in s)
    """
    size = str(1_000_000_000 + os.getpid() * 1000 + int(name.split("-")[-1]))  # the size identifies the process
    api.create(PODS, stress(name, size, request=request, rate=rate))
    pid = harness.wait_for("the hog", lambda: child_pid(size))
    pidfd = os.pidfd_open(pid)
    crossed, lowest, deadline = None, node.limit, time.monotonic() + harness.PATIENCE
    before, gap = time.monotonic(), 0.0
    while not select.select([pidfd], [], [], 0.0005)[0]:
        now = time.monotonic()
        before, gap = now, max(gap, now - before)
        available = node.available()
        lowest = min(lowest, available)
        if crossed is None and available < THRESHOLD * MEBI:
            crossed = now
        if now > deadline:
            raise SystemExit(f"the hog lives on: {available / MEBI:.0f} MiB available")
    died = time.monotonic()
    os.close(pidfd)
    harness.wait_for("the status", lambda: api.pod_phases().get(name) == "Failed")
    reason = api.get(f"{PODS}/{name}")["status"].get("reason")
    assert reason == "Evicted", reason
    return died - crossed if crossed else None, lowest, gap


def calm(api):
    """No condition and no taint is left of the run before."""
    return not any(node["spec"].get("taints")
                   or any(c["type"] == "MemoryPressure" and c["status"] == "True" for c in node["status"]["conditions"])
                   for node in api.get("/api/v1/nodes")["items"])


def run_scenario(scenario, runtime, runs, isolation):
    """(a row of the table, whether all was right)"""
    os.environ["SPILLWAY_E2E_RUNTIME"] = runtime
    beside, rate, request = SCENARIOS[scenario]
    taken, trusted, lowest, right, done = [], [], [], 0, 0
    with harness.workspace() as folder:
        earlier = slices()
        with own_containerd.runtime_flags(folder) as flags, harness.running(folder, "up", "--data-dir", folder / "data",
                                                                            "--port", 0, "--node-memory", f"{MEMORY}Mi",
                                                                            "--eviction-hard",
                             f"memory.available<{THRESHOLD}Mi", "--eviction-pressure-transition-period", "1s",
                             "--process-isolation", isolation, *flags) as process:
            process.earlier = earlier
            api = harness.serving(process, folder / "data" / "kubeconfig")
            harness.wait_for("the node", api.nodes_ready)
            node = Slice(process)
            for priority in (CRITICAL, HIGH, HIGHEST):
                path = "/apis/scheduling.k8s.io/v1/priorityclasses"
                if api.find(f"{path}/{class_of(priority)}") is None:
                    api.create(path, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                      "metadata": {"name": class_of(priority)}, "value": priority})
            others = beside()
            for pod in others:
                api.create(PODS, pod)
            names = [pod["metadata"]["name"] for pod in others]
            harness.wait_for("the pods", lambda: all(api.pod_phases().get(name) == "Running" for name in names))
            for number in range(runs):
                harness.wait_for("the pressure to pass", lambda: calm(api))
                seconds, low, gap = measure(api, node, f"hog-{number}", rate, request)
                phases = api.pod_phases()
                unharmed = all(phases[name] == "Running" for name in names)
                right += unharmed
                done += 1
                lowest.append(low / MEBI)
                if seconds is not None:
                    taken.append(seconds * 1000)
                if seconds is not None and gap <= GAP_MAX:
                    trusted.append(seconds * 1000)
                told = (
                    "ended between two samples" if seconds is None else f"{seconds * 1000:.1f} ms from crossing to exit"
                )
                print(f"{scenario} {runtime} run {number + 1}: {told}, {low / MEBI:.1f} MiB at the least, "
                      f"{'right victim' if unharmed else f'WRONG: {phases}'}, samples up to {gap * 1000:.1f} ms apart",
                      flush=True)
                if not unharmed:
                    break
            kills = node.oom_kills()
            acted = sum("memory watch acted" in line for line in process.log.read_text().splitlines())
    counted = trusted or taken or [0.0]
    row = (
        f"| {scenario} | {runtime} | {done} | {len(taken) - len(trusted)} | {done - len(taken)} |"
        f" {statistics.median(counted):.1f} | {max(counted):.1f} | {max(taken, default=0.0):.1f} | {min(lowest):.1f} |"
        f" {right}/{done} | {kills} | {acted} |"
    )
    return row, right == runs and kills == 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--scenarios", default=",".join(SCENARIOS))
    arguments.add_argument("--process-isolation", default="namespaces", help="namespaces or none")
    arguments.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    arguments.add_argument("--runtime", default="process", help="process, containerd, or both with a comma")
    given = arguments.parse_args()
    harness.BINARY = pathlib.Path(given.binary).resolve()
    if not harness.can_write_cgroups():
        print("reaction: skipped: needs root and a writable cgroup hierarchy")
        return 77
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        pass  # then more runs will be distrusted
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leaves nothing behind
    rows, good = [], True
    for scenario, runtime in itertools.product(given.scenarios.split(","), given.runtime.split(",")):
        row, right = run_scenario(scenario, runtime, given.runs, given.process_isolation)
        rows.append(row)
        good = good and right
    print(
        "| scenario | runtime | runs | distrusted | not seen | crossing to exit ms, median | max | max of all | least"
        " memory.available MiB | right victim | kernel OOM kills | by the watch |\n"
        + "|---" * 12
        + "|"
    )
    print("\n".join(rows))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
