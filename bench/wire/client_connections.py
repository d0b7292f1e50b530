#!/usr/bin/env python3
"""The cost of connections of our own clients: a controller and a scheduler at an API server over HTTP/1.1 and over
HTTP/2, in silence and while a pod that all of them watch is changed again and again.

Starts processes of its own on loopback ports, and prints a line per protocol and round: connections, resident memory,
processor time. HTTP/1.1 is the peer. Rounds alternate; run it on a quiet machine.

    bench/wire/client_connections.py [--changes 2000] [--rounds 2] [--binary build/release/src/apps/spillway]
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

PODS = "/api/v1/namespaces/default/pods"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "changed"},
       "spec": {"nodeName": "nowhere", "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "a", "image": "a", "command": ["a"]}]}}


def resident_kib(process):
    with open(f"/proc/{process.child.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def processor_ms(process):
    fields = pathlib.Path(f"/proc/{process.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")


def connections(api):
    return int(re.search(r"^spillway_http_connections (\d+)$", api.get("/metrics"), re.M).group(1))


def settled(api):
    """The number of connections once it has not changed for two seconds."""
    last, since = connections(api), time.monotonic()
    while time.monotonic() - since < 2:
        now = connections(api)
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.1)
    return last


def measure(folder, serving_flags, changes):
    folder.mkdir()
    kubeconfig = folder / "kubeconfig"
    with harness.running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         kubeconfig, *serving_flags) as server:
        api = harness.serving(server, kubeconfig)
        alone = settled(api)
        with harness.running(folder, "controller", "--kubeconfig", kubeconfig) as controller, \
                harness.running(folder, "scheduler", "--kubeconfig", kubeconfig) as scheduler:
            harness.wait_for("the controller's lease",
                             lambda: api.find(
                                 "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/spillway-controller"), 30)
            api.create(PODS, POD)
            held = settled(api) - alone
            parts = (server, controller, scheduler)
            before = [processor_ms(each) for each in parts]
            for number in range(changes):
                api.patch(f"{PODS}/changed", {"metadata": {"annotations": {"turn": str(number)}}})
            settled(api)
            return held, [resident_kib(each) for each in parts], [processor_ms(each) - was for each,
                                                                  was in zip(parts, before)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    arguments = parser.parse_args()
    harness.BINARY = pathlib.Path(arguments.binary).resolve()
    print(
        "| protocol | connections | MiB of the server | controller | scheduler | ms of processor for"
        f" {arguments.changes} changes: server | controller | scheduler |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with harness.workspace() as folder:
        for round_ in range(arguments.rounds):
            for name, flags in (("http/1.1", ("--disable-http2-serving",)), ("h2", ())):
                held, memory, processor = measure(folder / f"{round_}-{len(flags)}", flags, arguments.changes)
                print(
                    (
                        f"| {name} | {held} | {' | '.join(f'{each / 1024:.1f}' for each in memory)} |"
                        f" {' | '.join(map(str, processor))} |"
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
