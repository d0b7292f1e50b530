#!/usr/bin/env python3
"""Pods placed a second, from end to end: `spillway scheduler` beside `spillway apiserver` on this machine, over TLS on
loopback, each binding durable in SQLite (with --etcd in an etcd from build/peers) before it is answered.

The nodes, the pods that are bound already and those that wait are made first; then the scheduler is started, and a
watch shows when each binding was written. The rate is that of the middle 80 % of the bindings, so neither the start of
the scheduler nor its last event counts. --than compares with another build: both run in turns, --rounds times, and the
ratio of the medians is printed. Each run ends by itself. Build with the release preset; run it on a quiet machine.

    bench/load/placements.py [--nodes 5000] [--bound 0] [--pods 10000] [--sort alone|owned|spread] [--etcd] [--than
    BINARY] [-o json]
"""
import argparse
import contextlib
import json
import pathlib
import statistics
import sys
import threading
import time

from renewals import ROOT, Usage, credentials, harness, own_etcd
from scale import Client, create_all, progress, Server

PODS = "/api/v1/namespaces/default/pods"
AMOUNTS = {"cpu": "64", "memory": "256Gi", "pods": "1000"}


def node(index):
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": f"node-{index}",
                         "labels": {"kubernetes.io/hostname": f"node-{index}",
                                    "topology.kubernetes.io/zone": f"zone-{index % 3}"}},
            "status": {"capacity": AMOUNTS, "allocatable": AMOUNTS,
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, sort, owner, on=None):
    metadata = {"name": name, "labels": {"app": "web" if sort != "alone" else "batch"}}
    spec = {"containers": [{"name": "main", "image": "none",
                            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}
    if on is not None:
        spec["nodeName"] = on
    if sort == "owned":
        metadata["ownerReferences"] = [owner]
    if sort == "spread":
        spec["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                                              "whenUnsatisfiable": "DoNotSchedule",
                                              "labelSelector": {"matchLabels": {"app": "web"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Bindings(threading.Thread):
    """When each of so many pods was seen to have a node."""

    def __init__(self, server, version, expected):
        super().__init__(daemon=True)
        self.times, self.expected, self.failure = [], expected, None
        self.connection = server.connect()
        self.connection.request("GET", f"{PODS}?watch=1&resourceVersion={version}&fieldSelector=spec.nodeName!%3D")
        self.answer = self.connection.getresponse()
        self.start()

    def run(self):
        try:
            while len(self.times) < self.expected:
                line = self.answer.readline()
                if not line:
                    raise EOFError("the watch ended")
                # the watch selects pods with a node, so it adds a pod when it is bound
                if b'"type":"ADDED"' in line[:64]:
                    self.times.append(time.monotonic())
        except (OSError, EOFError, ValueError) as problem:
            self.failure = problem


def bare_node(server):
    """Returns a function that removes the taint of a new node: no controller runs here that would do it."""
    client = Client(server)

    def free(index):
        client.connection.request("PATCH", f"/api/v1/nodes/node-{index}", b'{"spec":{"taints":null}}',
                                  {"Content-Type": "application/merge-patch+json"})
        answer = client.connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"placements.py: a node's taints: {answer.status}")

    return free


def prepare(arguments, server):
    deadline = time.monotonic() + arguments.fill_seconds
    if create_all(server, "nodes", node, "/api/v1/nodes", arguments.nodes, deadline,
                  arguments.threads) < arguments.nodes:
        raise SystemExit("placements.py: not all nodes were made in --fill-seconds")
    free = bare_node(server)
    for index in range(arguments.nodes):
        free(index)
    harness.wait_for("the account of the namespace",
                     lambda: server.api.find("/api/v1/namespaces/default/serviceaccounts/default"))
    replicas = server.api.create("/apis/apps/v1/namespaces/default/replicasets",
                                 {"metadata": {"name": "web"},
                                  "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}},
                                           "template": {"metadata": {"labels": {"app": "web"}},
                                                        "spec": {"containers": [{"name": "main", "image": "none"}]}}}})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": replicas["metadata"]["uid"],
             "controller": True}
    bound = create_all(server, "bound pods",
                       lambda index: pod(f"bound-{index}", ("alone", "owned")[index % 2], owner,
                                         f"node-{index % arguments.nodes}"),
                       PODS, arguments.bound, deadline, arguments.threads)
    waiting = create_all(server, "pods", lambda index: pod(f"pod-{index}", arguments.sort, owner), PODS, arguments.pods,
                         deadline, arguments.threads)
    if waiting < arguments.pods:
        raise SystemExit(f"placements.py: only {bound} bound and {waiting} waiting pods were made in --fill-seconds")
    return bound


def run(arguments, binary):
    harness.BINARY = pathlib.Path(binary).resolve()
    with harness.workspace() as folder, contextlib.ExitStack() as stack:
        store = [stack.enter_context(own_etcd.serving(folder)).flag] if arguments.etcd else []
        kubeconfig = folder / "kubeconfig"
        process = stack.enter_context(harness.running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                      "--write-kubeconfig", kubeconfig, *store))
        server = Server(process, harness.serving(process, kubeconfig), credentials(kubeconfig, folder))
        began = time.monotonic()
        bound = prepare(arguments, server)
        progress(
            f"{arguments.nodes} nodes, {bound} bound pods, {arguments.pods} that wait, after"
            f" {time.monotonic() - began:.0f} s"
        )
        server.api.close()
        version = server.api.get(f"{PODS}?limit=1")["metadata"]["resourceVersion"]
        seen = Bindings(server, version, arguments.pods)
        started = time.monotonic()
        scheduler = stack.enter_context(harness.running(folder, "scheduler", "--kubeconfig", kubeconfig,
                                                        "--no-leader-elect"))
        before = Usage(process.child.pid), Usage(scheduler.child.pid)
        seen.join(arguments.run_seconds)
        if seen.failure or len(seen.times) < arguments.pods:
            raise SystemExit(
                f"placements.py: {len(seen.times)} of {arguments.pods} pods were bound in {arguments.run_seconds:.0f} s"
                f" {seen.failure or ''}\n{scheduler.tail()}"
            )
        tenth = max(1, arguments.pods // 10)
        first, last = seen.times[tenth - 1], seen.times[-tenth]
        used = [Usage(each).since(old)[1] * (time.monotonic() - old.at) for each,
                old in zip((process.child.pid, scheduler.child.pid), before)]
        return {"bound": bound, "placements_per_second": (arguments.pods - 2 * tenth + 1) / (last - first),
                "first_after_seconds": seen.times[0] - started,
                "apiserver_us_each": used[0] / arguments.pods * 1e6,
                "scheduler_us_each": used[1] / arguments.pods * 1e6,
                "scheduler_resident_bytes": Usage(scheduler.child.pid).resident}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--bound", type=int, default=0, help="pods that have a node before")
    parser.add_argument("--pods", type=int, default=10_000, help="pods to place, at least 10")
    parser.add_argument("--sort", choices=("alone", "owned", "spread"), default="alone",
                        help="pods that no Service or workload selects, of a ReplicaSet, or with a required topology spread")
    parser.add_argument("--etcd", action="store_true")
    parser.add_argument("--fill-seconds", type=float, default=400)
    parser.add_argument("--run-seconds", type=float, default=120)
    parser.add_argument("--threads", type=int, default=8, help="connections that create")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    parser.add_argument("--than", help="another build of spillway, to compare with")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    if arguments.pods < 10 or arguments.nodes < 1:
        parser.error("--pods must be at least 10 and --nodes at least 1")
    binaries = [arguments.binary] + ([arguments.than] if arguments.than else [])
    reports = {binary: [] for binary in binaries}
    for _ in range(arguments.rounds):
        for binary in binaries:
            report = run(arguments, binary)
            reports[binary].append(report)
            print(
                (
                    f"{binary}: {report['placements_per_second']:,.0f} placements/s ({arguments.sort};"
                    f" {arguments.nodes:,} nodes, {report['bound']:,} pods before); the first after"
                    f" {report['first_after_seconds']:.2f} s; processor per placement: API server"
                    f" {report['apiserver_us_each']:.0f} us, scheduler {report['scheduler_us_each']:.0f} us; scheduler"
                    f" {report['scheduler_resident_bytes'] >> 20} MiB"
                ),
                file=sys.stderr if arguments.output == "json" else sys.stdout,
                flush=True,
            )
    medians = [statistics.median(each["placements_per_second"] for each in reports[binary]) for binary in binaries]
    if arguments.output == "json":
        print(json.dumps(reports))
    elif arguments.than:
        print(f"ratio: {medians[0] / medians[1]:.2f}")


if __name__ == "__main__":
    main()
