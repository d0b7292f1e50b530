"""Ports of pods, and SPDY: users who may reach none, ports that are not the pod's, and clients that break the
protocol.
"""
import os
import socket
import struct
import zlib

from attacks.attempt import Act, Ask
from attacks.cluster import OURS, THEIRS
from attacks.exec import TALKER, until_closed
from harness import wait_for

SPDY = (("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"))
PORTS = SPDY + (("X-Stream-Protocol-Version", "portforward.k8s.io"),)
COMMANDS = SPDY + (("X-Stream-Protocol-Version", "v4.channel.k8s.io"),)
FORWARD = f"{OURS}/pods/talker/portforward"


def of_others():
    for by in ("nobody", "alice", "log-reader", "editor", "any-log", "getter", "watcher", "n1", "n3", "proxier"):
        for method in ("GET", "POST"):
            yield Ask(f"{method} portforward in theirs/teller by {by}", by, method, f"{THEIRS}/pods/teller/portforward",
                      headers=PORTS, want=(401, 403))
        yield Ask(f"exec by SPDY in theirs/teller by {by}", by, "POST",
                  f"{THEIRS}/pods/teller/exec?command=id&stdout=true", headers=COMMANDS, want=(401, 403))
    for by in ("n1", "n3"):
        yield Ask(f"portforward by way of the proxy by node {by}", by, "GET",
                  "/api/v1/nodes/n3/proxy/portForward/theirs/teller", headers=PORTS, want=403)


def lies():
    yield Ask("portforward, no upgrade", "editor", "POST", FORWARD, body={}, want=400, says="Upgrade request required")
    yield Ask("portforward, no protocol", "editor", "POST", FORWARD, headers=SPDY, want=400,
              says="X-Stream-Protocol-Version is required")
    yield Ask("portforward, a protocol nobody speaks", "editor", "POST", FORWARD,
              headers=SPDY + (("X-Stream-Protocol-Version", "v4.channel.k8s.io"),), want=403)
    yield Ask("portforward, a WebSocket of commands", "editor", "GET", FORWARD, want=400,
              headers=(("Connection", "Upgrade"), ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                       ("Sec-WebSocket-Protocol", "v5.channel.k8s.io")))
    yield Ask("portforward of a pod that does not exist", "editor", "POST", f"{OURS}/pods/no-such/portforward",
              headers=PORTS, want=404)
    yield Ask("exec by SPDY, a protocol of ports", "editor", "POST", f"{TALKER}?command=id&stdout=true", headers=PORTS,
              want=403)


class Spdy:
    """A client of its own, which can lie."""

    def __init__(self, cluster, target, headers, by="editor", method="POST"):
        self.deflate = zlib.compressobj()
        self.connection = cluster.open(by)
        head = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self.connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n{head}\r\n".encode())
        seen = b""
        while b"\r\n\r\n" not in seen:
            more = self.connection.recv(65536)
            assert more, f"closed after {seen!r}"
            seen += more
        self.head, self.rest = seen.split(b"\r\n\r\n", 1)

    def open(self, stream, **headers):
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        text = struct.pack(">I", len(pairs)) + b"".join(struct.pack(">I", len(text)) + text for pair in pairs
                                                        for text in pair)
        return control(1, struct.pack(">IIH", stream, 0, 0) + self.deflate.compress(text)
                       + self.deflate.flush(zlib.Z_SYNC_FLUSH))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def control(kind, payload, flags=0, version=3):
    return struct.pack(">HHI", 0x8000 | version, kind, flags << 24 | len(payload)) + payload


def data(stream, payload, last=False):
    return struct.pack(">II", stream, (1 if last else 0) << 24 | len(payload)) + payload


def is_cut(make, target=f"{TALKER}?command=cat&stdin=true&stdout=true", headers=COMMANDS, method="POST"):
    def act(cluster):
        with Spdy(cluster, target, headers, method=method) as client:
            try:
                client.connection.sendall(make(client))
            except OSError:
                pass  # cut already
            seen, closed = until_closed(client.connection, client.rest)
        return None if b" 101 " in client.head and closed else f"{client.head[:60]}: not closed after {seen[:100]}"
    return act


def command(client):
    return client.open(1, streamtype="error") + client.open(3, streamtype="stdin") + client.open(5, streamtype="stdout")


def works(cluster):
    with Spdy(cluster, f"{TALKER}?command=cat&stdin=true&stdout=true", COMMANDS) as client:
        client.connection.sendall(command(client) + data(3, b"it works", last=True))
        seen, closed = until_closed(client.connection, client.rest)
    return None if b"it works" in seen and b'"Success"' in seen and closed else f"{client.head} {seen}"


def first_error(cluster, port):
    """The error stream's text for a port."""
    with Spdy(cluster, FORWARD, PORTS) as client:
        client.connection.sendall(client.open(1, streamtype="error", port=str(port), requestid="0")
                                  + client.open(3, streamtype="data", port=str(port), requestid="0")
                                  + data(3, b"GET / HTTP/1.1\r\n\r\n"))
        seen = client.rest
        while b"error forwarding" not in seen and b"HTTP/1" not in seen:
            more = client.connection.recv(65536)
            if not more:
                break
            seen += more
    return seen


def machine_stays_closed(cluster):
    """Ports of the machine that others listen on: the API server's, and one of ours."""
    with socket.create_server(("127.0.0.1", 0)) as ours, socket.create_server(("::1", 0),
                                                                              family=socket.AF_INET6) as six:
        for port in (cluster.port, ours.getsockname()[1], six.getsockname()[1]):
            seen = first_error(cluster, port)
            if b"no process of the pod listens on port" not in seen:
                return f"port {port}: {seen}"
        for server in (ours, six):
            server.setblocking(False)
            try:
                server.accept()
                return "somebody got through"
            except BlockingIOError:
                pass
    return None


def too_many_pairs(cluster):
    """More halves than a client may have: the rest is refused one by one, and the connection continues."""
    with Spdy(cluster, FORWARD, PORTS) as client:
        client.connection.sendall(b"".join(client.open(2 * i + 1, streamtype="error", port="1", requestid=str(i))
                                           for i in range(1000)) + control(6, struct.pack(">I", 77)))
        seen = client.rest
        while control(6, struct.pack(">I", 77)) not in seen:
            more = client.connection.recv(65536)
            if not more:
                return f"cut after {len(seen)} bytes"
            seen += more
    refused = sum(control(3, struct.pack(">II", 2 * i + 1, 3)) in seen for i in range(1000))
    return None if refused == 1000 - 128 else f"{refused} refused"


def attempts(cluster):
    bomb = zlib.compress(struct.pack(">II", 1, 1 << 30) + b"\0" * (8 << 20))
    ping = control(6, struct.pack(">I", 1))
    return [*of_others(), *lies(), Act("exec by SPDY by who may", works),
            Act("a frame of version 2", is_cut(lambda client: control(6, b"\0\0\0\1", version=2))),
            Act("a frame of no kind", is_cut(lambda client: control(5, b"\0" * 8))),
            Act("headers that inflate to 8 MiB",
                is_cut(lambda client: control(1, struct.pack(">IIH", 1, 0, 0) + bomb))),
            Act("headers that are none",
                is_cut(lambda client: control(1, struct.pack(">IIH", 1, 0, 0) + os.urandom(100)))),
            Act("a control frame of 16 MiB",
                is_cut(lambda client: struct.pack(">HHI", 0x8003, 1, 0xffffff) + b"x" * 100_000)),
            Act("a stream opened twice",
                is_cut(lambda client: client.open(1, streamtype="error") + client.open(1, streamtype="stdin"))),
            Act("a stream of the server's", is_cut(lambda client: client.open(2, streamtype="error"))),
            Act("10,000 pings, then nonsense", is_cut(lambda client: ping * 10_000 + b"\xff" * 8)),
            Act("SPDY that is not in messages",
                is_cut(lambda client: ping, FORWARD,
                       (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                        ("Sec-WebSocket-Protocol", "SPDY/3.1+portforward.k8s.io")), "GET")),
            Act("ports of the machine", machine_stays_closed), Act("1,000 halves of pairs", too_many_pairs),
            Act("exec by SPDY afterwards",
                lambda cluster: wait_for("a stream that works", lambda: works(cluster) is None) and None)]
