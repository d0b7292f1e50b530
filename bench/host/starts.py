#!/usr/bin/env python3
"""The cost of confining a pod at its start: from the request that creates the pod to the first action of its container.

Two `spillway up` beside each other on this machine, one with --process-isolation=namespaces and one with none, take
turns: each creates a pod, bound to its node, that prints the time and ends. Prints for each: the time from the request
to that print, and from the container's creation (the log file's birth) to it, which leaves API server and agent out.
Needs root and writable cgroups.

    bench/host/starts.py [--pods 100] [--binary build/release/src/apps/spillway]
"""
import argparse
import contextlib
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
WAYS = ("none", "namespaces")


class Node:
    def __init__(self, stack, isolation):
        self.isolation, self.whole, self.spawn = isolation, [], []
        self.folder = stack.enter_context(harness.workspace())
        self.process = stack.enter_context(harness.running(self.folder, "up", "--data-dir", self.folder / "data",
                                                           "--port", 0, "--node-name", "n",
                                                           "--process-isolation", isolation))
        self.api = harness.serving(self.process, self.folder / "data" / "kubeconfig")
        harness.wait_for("the node", self.api.nodes_ready)

    def start(self, number):
        name = f"p{number}"
        document = harness.pod(name, ["/bin/sh", "-c", "exec /bin/date +%s%N"], restartPolicy="Never", nodeName="n")
        asked = time.time_ns()
        self.api.create(PODS, document)
        harness.wait_for("its end", lambda: self.api.pod_phases().get(name) == "Succeeded", interval=0.005)
        log = next((self.folder / "data" / "nodes" / "n" / "pods").glob(f"default_{name}_*/main/0.log"))
        begun = int(log.read_text().split(" F ")[1])
        self.whole.append((begun - asked) / 1e6)
        self.spawn.append((begun - made_at(log)) / 1e6)
        self.api.delete(f"{PODS}/{name}", grace=0)


def made_at(path):
    """When a file was made, in ns: its directory has not changed since."""
    return os.stat(path.parent).st_mtime_ns


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pods", type=int, default=100)
    arguments.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    given = arguments.parse_args()
    harness.BINARY = pathlib.Path(given.binary).resolve()
    if not harness.can_write_cgroups():
        print("starts: skipped: needs root and a writable cgroup hierarchy")
        return 77
    with contextlib.ExitStack() as stack:
        nodes = [Node(stack, isolation) for isolation in WAYS]
        for number in range(given.pods):
            for node in nodes:
                node.start(number)
    print(
        "| process isolation | pods | request to program ms, median | p90 | container to program ms, median | p90"
        " |\n|---|---|---|---|---|---|"
    )
    for node in nodes:
        print(
            f"| {node.isolation} | {len(node.whole)} | {statistics.median(node.whole):.2f} |"
            f" {quantile(node.whole, 0.9):.2f} | {statistics.median(node.spawn):.2f} |"
            f" {quantile(node.spawn, 0.9):.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
