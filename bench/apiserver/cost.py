#!/usr/bin/env python3
"""The time that one request can delay all others: bombs and listers against a real API server.

Prints, per load: the longest turn of the loop, the longest interval between two renewals of a lease, the slowest other
request, memory at the peak and a minute later. Counts come from the environment:

    BOMBS=8 ROUNDS=4 LISTERS=40 OBJECTS=500 PODS=0 SECONDS=20 LATER=60 SPILLWAY=build/release/src/apps/spillway
    bench/apiserver/cost.py
"""
import os
import pathlib
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))

# noqa: E402  pylint: disable=wrong-import-position
from bombs import PODS, Lister, Prober, json_bomb, metric, protobuf_bomb, renew, slow_turns, throw
from harness import Api, running, serving, wait_for, workspace  # noqa: E402  pylint: disable=wrong-import-position
from process_memory import resident  # noqa: E402  pylint: disable=wrong-import-position


def number(name, default):
    return int(os.environ.get(name, default))


class Memory(threading.Thread):
    """The most a process has had."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.peak, self.stopped = process, 0, False

    def run(self):
        while not self.stopped:
            self.peak = max(self.peak, resident(self.process))
            time.sleep(0.01)


def get_small(api, _count):
    api.get("/api/v1/namespaces/default")


def measure(what, load, later):
    """`load` gets the process; a server of its own for every load."""
    with workspace() as folder:
        kubeconfig = folder / "kubeconfig"
        with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                     kubeconfig) as process:
            process.api, process.kubeconfig = serving(process, kubeconfig), kubeconfig
            run, prepare = load
            if prepare:
                prepare(process)
            memory = Memory(process)
            leases, others = Prober(kubeconfig, renew), Prober(kubeconfig, get_small)
            for thread in (memory, leases, others):
                thread.start()
            wait_for("the first renewal", lambda: leases.done)
            quiet, before = leases.slowest, resident(process)
            leases.slowest = leases.longest_interval = others.slowest = 0.0
            said = run(process)
            leases.end()
            others.end()
            peak, memory.stopped = memory.peak, True
            text = process.api.get("/metrics")
            longest = metric(text, "spillway_loop_longest_turn_seconds")
            slow = slow_turns(text, 0.05)
            if later:
                time.sleep(later)
            print(
                (
                    f"{what}: {said}\n  longest turn of the loop {longest * 1000:.1f} ms, turns over 50 ms"
                    f" {slow:.0f} of {metric(text, 'spillway_loop_turn_seconds_count'):.0f}\n  longest lease interval"
                    f" {leases.longest_interval:.2f} s (slowest renewal {leases.slowest:.2f} s, before {quiet:.3f} s),"
                    f" renewals {leases.done}, failed {leases.failed}\n  slowest other request {others.slowest:.2f} s,"
                    f" failed {others.failed}\n  memory before {before >> 20} MiB, peak {peak >> 20} MiB, {later} s"
                    f" later {resident(process) >> 20} MiB"
                ),
                flush=True,
            )
            for line in process.log.read_text(errors="replace").splitlines():
                if "loop was held up" in line:
                    print(f"  log: {line}")


def bombs(body, content_type):
    def run(process):
        outcomes = []
        for _ in range(number("ROUNDS", 4)):
            outcomes += throw(process.kubeconfig, body, content_type, number("BOMBS", 8))
        codes = sorted({code for code, _, _ in outcomes})
        return (
            f"{len(outcomes)} of {len(body)} bytes, answers {codes}, at most"
            f" {max(size for _, size, _ in outcomes)} bytes, slowest {max(took for _, _, took in outcomes):.2f} s"
        )
    return run, None


def fill(count):
    def prepare(process):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "a"}},
               "spec": {"containers": [{"name": "c", "image": "registry.example/app:1",
                                        "env": [{"name": f"V{i}", "value": "x" * 20} for i in range(10)],
                                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}

        def part(first, last):
            api = Api(process.kubeconfig, 60)
            for i in range(first, last):
                api.create(PODS, {**pod, "metadata": {"name": f"p{i}", **pod["metadata"]}})
            api.close()

        wait_for("the account", lambda: process.api.find("/api/v1/namespaces/default/serviceaccounts/default"))
        threads = [threading.Thread(target=part, args=(count * i // 8, count * (i + 1) // 8)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return prepare


def listers(count, objects, accept):
    def run(process):
        load = [Lister(process.kubeconfig, PODS, accept) for _ in range(count)]
        for thread in load:
            thread.start()
        time.sleep(number("SECONDS", 20))
        for thread in load:
            thread.stopped = True
        for thread in load:
            thread.join()
        return f"{sum(t.done for t in load)} lists in {number('SECONDS', 20)} s, failed {sum(t.failed for t in load)}"
    return run, fill(objects)


def main():
    later = number("LATER", 60)
    measure("pod bomb, JSON", bombs(json_bomb(), "application/json"), later)
    measure("pod bomb, protobuf", bombs(protobuf_bomb(), "application/vnd.kubernetes.protobuf"), later)
    count, objects = number("LISTERS", 40), number("OBJECTS", 500)
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    measure(f"{count} listers of {objects} pods", listers(count, objects, "application/json"), later)
    measure(f"{count} listers of {objects} pods as tables", listers(count, objects, table), later)
    if number("PODS", 0):
        measure(f"4 listers of {number('PODS', 0)} pods", listers(4, number("PODS", 0), "application/json"), later)
        measure(f"4 listers of {number('PODS', 0)} pods as tables", listers(4, number("PODS", 0), table), later)


if __name__ == "__main__":
    main()
