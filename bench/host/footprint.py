#!/usr/bin/env python3
"""The cost of a node: resident memory and processor time of the agent, without pods and with many sleeping ones, idle
and under memory pressure.

Starts the control plane as one process and `spillway agent` as another, waits for quiet, and measures the agent for a
while; then again while one hog after the other grows by 50 MiB a second and is evicted. The last rows are `spillway
up`: API server, controllers and a node in one process. Needs root and writable cgroups.

    bench/host/footprint.py [--pods 0,110] [--seconds 60] [--runtime process|containerd] [--process-isolation
    namespaces|none] [--binary build/release/src/apps/spillway]
"""
import argparse
import os
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
import own_containerd  # noqa: E402

PODS = "/api/v1/namespaces/default/pods"
NODE = ["--node-memory", "1Gi", "--eviction-hard", "memory.available<512Mi", "--eviction-pressure-transition-period",
        "1s"]
QUIET_AFTER = 20  # seconds: reports that follow from a start are sent by then, and its pages are given back


def status_mib(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_ms(pid):
    """Processor time of all threads, in ms."""
    return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


class Pressure:
    """Hogs, one after the other. They have a request: best-effort pods are turned away under pressure."""

    def __init__(self, api):
        self.api, self.count = api, 0

    def keep_up(self):
        if self.count and self.api.find(f"{PODS}/hog-{self.count}")["status"].get("phase") != "Failed":
            return
        self.count += 1
        self.api.create(PODS, harness.pod(f"hog-{self.count}",
                                          [harness.program_in_pods(), "stress", "--memory", "900Mi", "--rate",
                                           "50Mi/s"],
                                          resources={"requests": {"memory": "16Mi"}}))


def measure(what, pods, pid, seconds, pressure=None):
    before, since, peak = cpu_ms(pid), time.monotonic(), 0.0
    while time.monotonic() < since + seconds:
        if pressure:
            pressure.keep_up()
        peak = max(peak, status_mib(pid, "VmRSS"))
        time.sleep(0.2)
    used, passed = cpu_ms(pid) - before, time.monotonic() - since
    doing = f"{pressure.count - 1} evictions" if pressure else "idle"
    print(
        f"| {what} | {pods} | {doing} | {status_mib(pid, 'VmRSS'):.1f} | {status_mib(pid, 'RssAnon'):.1f} | {peak:.1f} "
          f"| {used:.0f} in {passed:.0f} s | {used / passed / 10:.2f} % |", flush=True)


def requests(api):
    """The number of requests that the API server has answered, without those of this script: pods created and
    listed.
    """
    found = re.findall(r'^apiserver_request_total\{(.*)\} (\d+)', api.get("/metrics"), re.M)
    labelled = [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), int(count)) for labels, count in found]
    own = {("POST", "pods", ""), ("LIST", "pods", "")}
    return sum(count for labels, count in labelled
               if (labels["verb"], labels["resource"], labels.get("subresource", "")) not in own)


def pod_cgroups():
    """The last thing of a pod that goes: is one left?"""
    roots = ("/sys/fs/cgroup/memory/spillway", "/sys/fs/cgroup/spillway")
    try:
        return any(path for root in roots for path in pathlib.Path(root).glob("*/*/kubepods/**/pod*"))
    except FileNotFoundError:  # the process ended while it was read
        return True


def rows(what, api, pid, pods, seconds):
    harness.wait_for("the node", api.nodes_ready)
    asked, began = requests(api), time.monotonic()
    for number in range(pods):
        api.create(PODS, harness.pod(f"sleeper-{number}", ["/bin/sleep", "100000"]))
    harness.wait_for("the pods", lambda: list(api.pod_phases().values()).count("Running") == pods, 240, interval=0.2)
    if pods:
        print(f"{pods} pods Running {time.monotonic() - began:.1f} s after the first was asked for, "
              f"{(requests(api) - asked) / pods:.1f} requests per pod", file=sys.stderr, flush=True)
    time.sleep(QUIET_AFTER)
    measure(what, pods, pid, seconds)
    measure(what, pods, pid, seconds, Pressure(api))
    for name in api.pod_phases():  # pods in a container runtime would outlive the agent
        api.delete(f"{PODS}/{name}", grace=0)
    harness.wait_for("the pods to go", lambda: not api.pod_phases() and not pod_cgroups(), 120, interval=0.2)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pods", default="0,110")
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--process-isolation", default="namespaces", help="namespaces or none")
    arguments.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    arguments.add_argument("--runtime", default="process", help="process or containerd")
    given = arguments.parse_args()
    os.environ["SPILLWAY_E2E_RUNTIME"] = given.runtime
    harness.BINARY = pathlib.Path(given.binary).resolve()
    if not harness.can_write_cgroups():
        print("footprint: skipped: needs root and a writable cgroup hierarchy")
        return 77
    print(
        (
            "| process | pods | doing | RSS MiB | of it anonymous | peak | CPU ms | share of a core"
            " |\n|---|---|---|---|---|---|---|---|"
        ),
        flush=True,
    )
    for pods in map(int, given.pods.split(",")):
        with harness.workspace() as folder:
            kubeconfig = folder / "data" / "kubeconfig"
            with harness.running(folder, "up", "--nodes", 0, "--data-dir", folder / "data", "--port", 0) as plane:
                api = harness.serving(plane, kubeconfig)
                with own_containerd.runtime_flags(folder) as runtime, harness.running(folder, "agent", "--kubeconfig",
                                                                                      kubeconfig, "--node-name", "idle",
                                                                                      "--state-dir", folder / "nodes",
                                     "--max-pods", max(pods + 10, 110), "--process-isolation", given.process_isolation,
                                                                                      *NODE, *runtime) as agent:
                    rows("agent", api, agent.child.pid, pods, given.seconds)
    with harness.workspace() as folder:
        with own_containerd.runtime_flags(folder) as runtime, harness.running(folder, "up", "--data-dir",
                                                                              folder / "data", "--port", 0, *NODE,
                                                                              *runtime) as process:
            rows("up", harness.serving(process, folder / "data" / "kubeconfig"), process.child.pid, 0, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
