#!/usr/bin/env python3
"""What an idle node with many sleeping pods costs: resident memory and processor time of the agent.

Starts the control plane as one process and `spillway agent` as another, runs the pods, waits for quiet, and measures the
agent for a while. Needs root and writable cgroups.

    bench/host/footprint.py [--pods 110] [--seconds 60] [--binary build/release/src/apps/spillway]
"""
import argparse
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402


def status_kib(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def cpu_ms(pid):
    """Processor time of all threads, in ms."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pods", type=int, default=110)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--binary")
    given = arguments.parse_args()
    if given.binary:
        harness.BINARY = pathlib.Path(given.binary).resolve()
    if not harness.can_write_cgroups():
        print("footprint: skipped: needs root and a writable cgroup hierarchy")
        return 77
    with harness.workspace() as folder:
        kubeconfig = folder / "data" / "kubeconfig"
        with harness.running(folder, "up", "--nodes", 0, "--data-dir", folder / "data", "--port", 0) as plane:
            api = harness.serving(plane, kubeconfig)
            with harness.running(folder, "agent", "--kubeconfig", kubeconfig, "--node-name", "idle", "--node-memory", "2Gi", "--state-dir", folder / "nodes",
                                 "--max-pods", given.pods) as agent:
                harness.wait_for("the node", api.nodes_ready)
                pid = agent.child.pid
                empty = status_kib(pid, "VmRSS")
                for number in range(given.pods):
                    api.create("/api/v1/namespaces/default/pods", harness.pod(f"sleeper-{number}", ["/bin/sleep", "100000"]))
                harness.wait_for("the pods", lambda: list(api.pod_phases().values()).count("Running") == given.pods, 180)
                time.sleep(15)  # what follows from a start has been told by then
                before, since = cpu_ms(pid), time.monotonic()
                time.sleep(given.seconds)
                used, passed = cpu_ms(pid) - before, time.monotonic() - since
                print("| pods | RSS MiB | of it anonymous | before the pods | CPU ms | share of a core |\n|---|---|---|---|---|---|")
                print(f"| {given.pods} | {status_kib(pid, 'VmRSS') / 1024:.1f} | {status_kib(pid, 'RssAnon') / 1024:.1f} | {empty / 1024:.1f} "
                      f"| {used:.0f} in {passed:.0f} s | {used / passed / 10:.2f} % |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
