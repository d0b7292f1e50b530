#!/usr/bin/env python3
"""Memory of one API server by owner, and lists of all nodes, with many nodes and pods; over TLS on loopback, SQLite.

Starts the server, creates the objects, waits until nothing is left to do, and prints the resident memory, the table of
/debug/memory, and the times of lists: JSON, the same with resourceVersion=0 (in turn), protobuf and gzip. Build the
server with the release preset; run it on a quiet machine. A server without that page is measured without the table.

    bench/load/memory.py [--nodes 5000] [--pods 20000] [--lists 10] [--rest 20] [--binary FILE] [-o json]
"""
import argparse
import contextlib
import json
import pathlib
import re
import time

from renewals import ROOT, credentials, harness
from scale import POD_BYTES, Client, Server, create_all, node, percentile, pod, progress

LISTS = (("JSON", "", {}), ("JSON, resourceVersion=0", "?resourceVersion=0", {}),
         ("protobuf", "", {"Accept": "application/vnd.kubernetes.protobuf"}),
         ("Table", "", {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}),
         ("gzip", "", {"Accept-Encoding": "gzip"}))


def table_of(client):
    """{owner: [count, bytes]} of the page; empty: there is none."""
    code, text = client.call("GET", "/debug/memory")
    if code != 200:
        return {}
    rows = (re.match(r"(.+?)\s+(\d+)\s+(\d+)$", line) for line in text.decode().splitlines()[1:])
    return {row.group(1): [int(row.group(2)), int(row.group(3))] for row in rows if row}


def timed_list(server, query, headers):
    """(ms to the first byte, ms, bytes) of a list of all nodes."""
    connection = server.connect()
    connection.request("GET", "/api/v1/namespaces")  # the connection is open before the list begins
    connection.getresponse().read()
    buffer, size = bytearray(1 << 20), 0
    began = time.monotonic()
    connection.request("GET", "/api/v1/nodes" + query, headers=headers)
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"memory.py: a list of nodes: {answer.status}")
    first = time.monotonic()
    while read := answer.readinto(buffer):
        size += read
    whole = time.monotonic()
    connection.close()
    return (first - began) * 1000, (whole - began) * 1000, size


def lists(server, rounds):
    times = {name: [] for name, _, _ in LISTS}
    for _ in range(rounds):
        for name, query, headers in LISTS:
            times[name].append(timed_list(server, query, headers))
    return {name: {"bytes": said[0][2], "first_byte_ms": percentile([one[0] for one in said], 0.5),
                   "p50_ms": percentile([one[1] for one in said], 0.5),
                   "most_ms": max(one[1] for one in said)} for name, said in times.items()}


def measure(arguments, server):
    began = time.monotonic()
    deadline = began + arguments.fill_seconds
    report = {"nodes": create_all(server, "nodes", node, "/api/v1/nodes", arguments.nodes, deadline, arguments.threads)}
    with contextlib.suppress(Exception):
        server.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    report["pods"] = create_all(server, "pods", lambda index: pod(index, arguments.nodes),
                                "/api/v1/namespaces/default/pods", arguments.pods, deadline, arguments.threads)
    report["fill_seconds"] = time.monotonic() - began
    report["filled_bytes"] = server.settled()
    progress(
        f"{report['nodes']} nodes, {report['pods']} pods of {POD_BYTES} bytes after {report['fill_seconds']:.0f} s")
    time.sleep(arguments.rest)
    report["rest_bytes"] = server.resident()
    report["table"] = table_of(Client(server))
    report["lists"] = lists(server, arguments.lists)
    report["after_lists_bytes"] = server.settled()
    server.api.close()
    longest = re.search(r'^spillway_loop_longest_turn_seconds\{loop="main"\} (\S+)$', server.metrics(), re.M)
    report["longest_turn_ms"] = float(longest.group(1)) * 1000 if longest else None
    return report


def text_of(report):
    mb = 1e6
    lines = [
        f"{report['nodes']} nodes, {report['pods']} pods, made in {report['fill_seconds']:.0f} s",
        (
            f"resident: filled {report['filled_bytes'] / mb:.0f} MB, at rest {report['rest_bytes'] / mb:.0f} MB, after"
            f" lists {report['after_lists_bytes'] / mb:.0f} MB"
        ),
    ]
    lines += [f"  {owner:52} {count:9} {size / mb:9.1f} MB" for owner, (count, size) in report["table"].items()]
    for name, said in report["lists"].items():
        lines.append(
            f"list, {name:24} {said['bytes'] / mb:6.1f} MB: first byte {said['first_byte_ms']:5.1f} ms, whole p50"
            f" {said['p50_ms']:4.0f} ms, most {said['most_ms']:4.0f} ms"
        )
    if report["longest_turn_ms"] is not None:
        lines.append(f"longest turn of the loop {report['longest_turn_ms']:.1f} ms")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--fill-seconds", type=float, default=600, help="at most")
    parser.add_argument("--threads", type=int, default=4, help="connections that create")
    parser.add_argument("--lists", type=int, default=10, help="of each sort")
    parser.add_argument("--rest", type=float, default=20, help="seconds between the last object and the measurement")
    parser.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    harness.BINARY = pathlib.Path(arguments.binary).resolve()
    with harness.workspace() as folder, contextlib.ExitStack() as stack:
        kubeconfig = folder / "kubeconfig"
        process = stack.enter_context(harness.running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                      "--write-kubeconfig", kubeconfig))
        report = measure(arguments,
                         Server(process, harness.serving(process, kubeconfig), credentials(kubeconfig, folder)))
    print(json.dumps(report) if arguments.output == "json" else text_of(report))


if __name__ == "__main__":
    main()
