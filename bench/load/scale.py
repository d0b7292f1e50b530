#!/usr/bin/env python3
"""The capacity of one API server, and how lists and heartbeats get on together: memory with many nodes, leases and
pods; bytes per watch and per idle TLS connection; lists of all nodes; heartbeats in quiet and while ten times as many
lists are requested as are answered one after the other. Over TLS on loopback; SQLite.

Starts the server and ends by itself: making the objects takes --fill-seconds at most (the report has their number), the
rest about a minute. Build both with the release preset; run it on a quiet machine.

    bench/load/scale.py [--nodes 5000] [--pods 150000] [--fill-seconds 220] [-o json]
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import threading
import time


from renewals import ROOT, Usage, credentials, harness

NODE_BYTES, POD_BYTES = 8_000, 5_000
LISTER = "lister"


def progress(text):
    print(text, file=sys.stderr, flush=True)


def node(index):
    images = [{"names": [f"registry.example/team/image-{at}@sha256:{index:064x}"], "sizeBytes": 10_000_000 + at}
              for at in range(48)]
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": f"node-{index}", "labels": {"zone": f"z{index % 3}"}}, "status": {"images": images}}


def pod(index, nodes):
    filler = "x" * (POD_BYTES - 2_400)
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"pod-{index}", "labels": {"app": f"a{index % 100}"},
                         "annotations": {"filler": filler}},
            "spec": {"nodeName": f"node-{index % nodes}",
                     "containers": [{"name": "c", "image": "registry.example/i:1"}]}}


class Client:
    """Requests one after the other on a connection of its own."""

    def __init__(self, server):
        self.server = server
        self.connection = server.connect()

    def call(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body),
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        return answer.status, answer.read()


class Server:
    def __init__(self, process, api, flags):
        self.process, self.api, self.flags = process, api, [str(flag) for flag in flags]
        given = dict(zip(self.flags[::2], self.flags[1::2]))
        self.context = ssl.create_default_context(cafile=given["--ca"])
        self.context.load_cert_chain(given["--cert"], given["--key"])
        self.ca = given["--ca"]

    def connect(self):
        return http.client.HTTPSConnection(self.api.host, self.api.port, timeout=60, context=self.context)

    def stream(self):
        return self.context.wrap_socket(socket.create_connection((self.api.host, self.api.port), timeout=30),
                                        server_hostname=self.api.host)

    def resident(self):
        return Usage(self.process.child.pid).resident

    def settled(self):
        """Memory once the last requests have gone."""
        time.sleep(0.5)
        return self.resident()

    def metrics(self):
        self.api.close()  # the server ends connections that are idle for long
        return self.api.get("/metrics")

    def metric(self, name):
        found = re.search(rf"^{name} (\S+)$", self.metrics(), re.M)
        return float(found.group(1))

    def turns(self):
        """(turns, [upper bound in s, turns up to it])."""
        text = self.metrics()
        buckets = re.findall(r'^spillway_loop_turn_seconds_bucket\{loop="main",le="([^"]+)"\} (\S+)$', text, re.M)
        return {bound: float(count) for bound, count in buckets}


def longest_turn(before, after):
    """The upper bound of the bucket of the longest turn between the two, in ms; the text "Inf" beyond the last."""
    longest, below = None, 0
    for bound in after:
        seen = after[bound] - before.get(bound, 0)
        if seen > below:
            longest = bound
        below = max(below, seen)
    return longest if longest in (None, "+Inf") else f"<= {float(longest) * 1000:g} ms"


def create_all(server, what, make, path, count, deadline, threads):
    """Creates them from several connections; how many before the time was up."""
    made, lock, next_index = [0], threading.Lock(), iter(range(count))

    def work():
        client = Client(server)
        while time.monotonic() < deadline:
            with lock:
                index = next(next_index, None)
            if index is None:
                return
            code, said = client.call("POST", path, make(index))
            if code not in (201, 409):
                raise SystemExit(f"scale.py: {what}: {code} {said[:300]}")
            with lock:
                made[0] += 1

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()
    return made[0]


def held_each(server, count, path_of):
    """The server's memory for each of so many connections that have requested a path and stay."""
    before, open_ones = server.settled(), []
    for index in range(count):
        stream = server.stream()
        stream.sendall(f"GET {path_of(index)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        stream.recv(4096)
        open_ones.append(stream)
    held = server.settled() - before
    for stream in open_ones:
        stream.close()
    return held / count


def idle_connections(server, count):
    return held_each(server, count, lambda _: "/readyz")


def watches(server, count, nodes):
    query = f"watch=1&resourceVersion={server.version}&fieldSelector=metadata.name%3Dnode-"
    return held_each(server, count, lambda index: f"/api/v1/nodes?{query}{index % nodes}")


class Peak(threading.Thread):
    """The greatest memory of the server until it is ended."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.bytes, self.ended = server, 0, threading.Event()
        self.start()

    def run(self):
        status = pathlib.Path(f"/proc/{self.server.process.child.pid}/status")
        while not self.ended.wait(0.005):
            self.bytes = max(self.bytes, int(re.search(r"^VmRSS:\s+(\d+)", status.read_text(), re.M).group(1)) << 10)

    def end(self):
        self.ended.set()
        self.join()
        return self.bytes


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def lists(server, rounds):
    first, whole, size = [], [], 0
    connection = server.connect()
    base, before = server.settled(), server.turns()
    peak = Peak(server)
    for _ in range(rounds):
        began = time.monotonic()
        connection.request("GET", "/api/v1/nodes")
        answer = connection.getresponse()
        answer.read(1)
        first.append((time.monotonic() - began) * 1000)
        size = 1
        while piece := answer.read(1 << 20):
            size += len(piece)
        whole.append((time.monotonic() - began) * 1000)
        if answer.status != 200:
            raise SystemExit(f"scale.py: a list of nodes: {answer.status}")
    extra = peak.end() - base
    return {"bytes": size, "first_byte_p50_ms": percentile(first, 0.5), "first_byte_p99_ms": percentile(first, 0.99),
            "p50_ms": percentile(whole, 0.5),
            "p99_ms": percentile(whole, 0.99), "peak_bytes_more": max(0, extra),
            "longest_turn": longest_turn(before, server.turns())}


def account(server, folder):
    """A token of a service account that may list: floods are not an administrator's."""
    server.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": LISTER}})
    server.api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles",
                      {"metadata": {"name": LISTER},
                       "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]})
    server.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                      {"metadata": {"name": LISTER},
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": LISTER},
                       "subjects": [{"kind": "ServiceAccount", "name": LISTER, "namespace": "default"}]})
    code, said = Client(server).call("POST", f"/api/v1/namespaces/default/serviceaccounts/{LISTER}/token",
                                     {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                      "spec": {"expirationSeconds": 3600}})
    if code != 201:
        raise SystemExit(f"scale.py: a token: {code} {said[:300]}")
    file = folder / "token"
    file.write_text(json.loads(said)["status"]["token"])
    return file


def generator(arguments, server, flags, *more):
    command = ["timeout", "90", arguments.generator, "--server", f"{server.api.host}:{server.api.port}", *flags, "-o",
               "json", "--warm-up", "1", *more]
    return subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said_by(child):
    out, errors = child.communicate()
    if child.returncode:
        raise SystemExit(f"scale.py: the generator: {errors.strip()[-300:]}")
    return json.loads(out) if out.strip() else {}


def heartbeats(arguments, server, folder, list_ms):
    leases = ["--leases", arguments.nodes]
    said_by(generator(arguments, server, server.flags, *leases, "fill"))
    renew = [*leases, "--rate", arguments.heartbeats, "--seconds", arguments.seconds, "renew"]
    before = server.turns()
    quiet = said_by(generator(arguments, server, server.flags, *renew))["renewals"]
    quiet["longest_turn"] = longest_turn(before, server.turns())
    rate = max(1.0, 10 * 1000 / list_ms)
    token = ["--ca", server.ca, "--token-file", account(server, folder)]
    flood = generator(arguments, server, token, "--list-path", "/api/v1/nodes", "--list-rate", rate,
                      "--list-connections", 32, "--seconds", float(arguments.seconds) + 3, "list")
    time.sleep(2)
    before = server.turns()
    beside = said_by(generator(arguments, server, server.flags, *renew))["renewals"]
    beside["longest_turn"] = longest_turn(before, server.turns())
    return quiet, beside, said_by(flood)["lists"]


def table(report):
    mib = 1 << 20
    one = report["list"]
    rows = [
        (f"memory, {report['nodes']:,} nodes, {report['pods']:,} pods", f"{report['resident_bytes'] / mib:,.0f} MiB"),
        ("an idle TLS connection", f"{report['idle_connection_bytes'] / 1000:.1f} kB"),
        (
            "a watch with its connection; without it",
            (
                f"{report['watch_bytes'] / 1000:.1f} kB;"
                f" {(report['watch_bytes'] - report['idle_connection_bytes']) / 1000:.1f} kB"
            ),
        ),
        (
            f"list of all nodes, {one['bytes'] / mib:.1f} MiB: first byte p50, p99",
            f"{one['first_byte_p50_ms']:.1f} ms, {one['first_byte_p99_ms']:.1f} ms",
        ),
        ("  whole, p50, p99", f"{one['p50_ms']:.0f} ms, {one['p99_ms']:.0f} ms"),
        ("  memory more at its peak; longest turn", f"{one['peak_bytes_more'] / mib:.1f} MiB; {one['longest_turn']}"),
    ]
    for name, said in (("quiet", report["heartbeats_quiet"]), ("beside the flood", report["heartbeats_flooded"])):
        rows.append(
            (
                f"heartbeats, {said['achieved_per_second']:,.0f}/s, {name}: p50, p99; longest turn",
                (
                    f"{said['p50_ms']:.2f} ms, {said['p99_ms']:.2f} ms; {said['longest_turn']}; errors"
                    f" {said['errors'] or 'none'}"
                ),
            )
        )
    flood = report["flood"]
    rows.append(
        (
            "the flood: lists asked for, answered",
            (
                f"{flood['offered_per_second']:.0f}/s, {flood['achieved_per_second']:.1f}/s; others"
                f" {flood['errors'] or 'none'}"
            ),
        )
    )
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows)


def measure(arguments, server, folder):
    began = time.monotonic()
    deadline = began + arguments.fill_seconds
    report = {"nodes": create_all(server, "nodes", node, "/api/v1/nodes", arguments.nodes, deadline, arguments.threads)}
    progress(f"{report['nodes']} nodes after {time.monotonic() - began:.0f} s")
    server.api.create("/api/v1/namespaces/default/serviceaccounts",
                      {"metadata": {"name": "default"}}) if server.api.find(
                          "/api/v1/namespaces/default/serviceaccounts/default") is None else None
    report["pods"] = create_all(server, "pods", lambda index: pod(index, arguments.nodes),
                                "/api/v1/namespaces/default/pods", arguments.pods, deadline, arguments.threads)
    progress(f"{report['pods']} pods after {time.monotonic() - began:.0f} s")
    report["resident_bytes"] = server.settled()
    server.version = json.loads(Client(server).call("GET", "/api/v1/nodes?limit=1")[1])["metadata"]["resourceVersion"]
    # so that the first connections do not pay for memory that all share
    idle_connections(server, min(100, arguments.watches))
    report["idle_connection_bytes"] = idle_connections(server, arguments.watches)
    report["watch_bytes"] = watches(server, arguments.watches, arguments.nodes)
    progress(f"watches after {time.monotonic() - began:.0f} s")
    report["list"] = lists(server, arguments.lists)
    progress(f"lists after {time.monotonic() - began:.0f} s")
    report["heartbeats_quiet"], report["heartbeats_flooded"], report["flood"] = heartbeats(
        arguments, server, folder, report["list"]["p50_ms"])
    report["seconds"] = time.monotonic() - began
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--fill-seconds", type=float, default=220)
    parser.add_argument("--threads", type=int, default=8, help="connections that create")
    parser.add_argument("--watches", type=int, default=1_000)
    parser.add_argument("--lists", type=int, default=30)
    parser.add_argument("--heartbeats", type=float, default=500, help="a second")
    parser.add_argument("--seconds", type=float, default=15, help="that heartbeats are measured, each time")
    parser.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    parser.add_argument("--generator", default=str(ROOT / "build/release/bench/load/spillway_load"))
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    arguments = parser.parse_args()
    harness.BINARY = pathlib.Path(arguments.binary).resolve()
    with harness.workspace() as folder, contextlib.ExitStack() as stack:
        kubeconfig = folder / "kubeconfig"
        process = stack.enter_context(harness.running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                      "--write-kubeconfig", kubeconfig))
        api = harness.serving(process, kubeconfig)
        report = measure(arguments, Server(process, api, credentials(kubeconfig, folder)), folder)
    report["fill_seconds"] = arguments.fill_seconds
    print(json.dumps(report) if arguments.output == "json" else table(report))


if __name__ == "__main__":
    main()
