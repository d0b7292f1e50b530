"""Programs in containers of others, connections that leave HTTP without a right to or with a lie, frames that are none,
and hundreds of them.
"""
import os
import socket
import struct
import time

from attacks.attempt import Act, Ask
from attacks.cluster import OURS, THEIRS
from harness import wait_for
from process_memory import resident

UPGRADE = (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
           ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"))
TELLER, TALKER = f"{THEIRS}/pods/teller/exec", f"{OURS}/pods/talker/exec"
QUERY = "command=id&stdout=true&stderr=true"


def without(name, value=None):
    changed = [header for header in UPGRADE if header[0] != name]
    return tuple(changed + [(name, value)] if value is not None else changed)


def of_others():
    for by in ("nobody", "alice", "log-reader", "editor", "any-log", "getter", "watcher", "n1", "n3", "proxier"):
        for method in ("GET", "POST"):
            yield Ask(f"{method} exec in theirs/teller by {by}", by, method, f"{TELLER}?{QUERY}", headers=UPGRADE,
                      want=(401, 403), hides="uid=")
    for by in ("nobody", "alice", "log-reader", "editor", "any-log", "getter", "watcher", "n1", "n3", "proxier"):
        yield Ask(f"attach in theirs/teller by {by}", by, "GET", f"{THEIRS}/pods/teller/attach?stdout=true",
                  headers=UPGRADE, want=(401, 403))
    yield Ask("exec by who may read logs", "log-reader", "GET", f"{TALKER}?{QUERY}", headers=UPGRADE, want=403,
              hides="uid=")
    for by in ("n1", "n3"):
        yield Ask(f"exec in a pod of its own namespace by node {by}", by, "GET", f"{TALKER}?{QUERY}", headers=UPGRADE,
                  want=403)
        yield Ask(f"exec by way of the proxy by node {by}", by, "GET",
                  f"/api/v1/nodes/n3/proxy/exec/theirs/teller/main?command=id&output=1",
            headers=UPGRADE, want=403)
    yield Ask("exec as a watch", "alice", "GET", f"{TELLER}?watch=1&{QUERY}", headers=UPGRADE, want=403)
    yield Ask("exec as HEAD", "alice", "HEAD", f"{TELLER}?{QUERY}", headers=UPGRADE, want=403)


def lies():
    yield Ask("no upgrade", "editor", "GET", f"{TALKER}?{QUERY}", want=400, says="Upgrade request required")
    yield Ask("no upgrade, POST", "editor", "POST", f"{TALKER}?{QUERY}", body={}, want=400,
              says="Upgrade request required")
    for name, headers in (("to something else", without("Upgrade", "h2c")),
                          ("without Connection", without("Connection")),
                          ("of version 8", without("Sec-WebSocket-Version", "8")),
                          ("without a key", without("Sec-WebSocket-Key")),
                          ("with a short key", without("Sec-WebSocket-Key", "x")),
                          ("with a protocol nobody speaks", without("Sec-WebSocket-Protocol", "chat")),
                          ("without a protocol", without("Sec-WebSocket-Protocol"))):
        yield Ask(f"an upgrade {name}", "editor", "GET", f"{TALKER}?{QUERY}", headers=headers, want=(400, 403, 500))
    for name, query in (("no stream", "command=id"), ("no command", "stdout=true"),
                        ("an empty command", "command=&stdout=true")):
        yield Ask(f"exec with {name}", "editor", "GET", f"{TALKER}?{query}", headers=UPGRADE, want=(101, 400))
    for name, container in (("of another pod", "teller"), ("that climbs", "..%2f..%2ftheirs%2fteller%2fmain"),
                            ("with a NUL", "main%00"),
                            ("with a line end", "main%0d%0aX: y"), ("with a query", "main%3Fcommand=id"),
                            ("of 10,000 letters", "a" * 10_000)):
        yield Ask(f"exec in a container {name}", "editor", "GET",
                  f"{TALKER}?{QUERY}&container={container.replace(' ', '%20')}", headers=UPGRADE,
            want=(400, 404), hides="uid=")
    yield Ask("exec in a pod that does not exist", "editor", "GET", f"{OURS}/pods/no-such/exec?{QUERY}",
              headers=UPGRADE, want=404)
    yield Ask("exec in a pod on a node that never was", "editor", "GET", f"{OURS}/pods/on-n1/exec?{QUERY}",
              headers=UPGRADE, want=(400, 404, 500, 503))
    yield Ask("attach, no upgrade", "editor", "GET", f"{OURS}/pods/talker/attach?stdout=true", want=400,
              says="Upgrade request required")
    yield Ask("attach to no stream", "editor", "GET", f"{OURS}/pods/talker/attach", headers=UPGRADE, want=400)
    yield Ask("attach with a command", "alice", "GET", f"{THEIRS}/pods/teller/attach?{QUERY}", headers=UPGRADE,
              want=403, hides="uid=")
    for path in ("exec/..", "exec/x", "exec/%2e%2e/log"):
        yield Ask(f"below exec: {path}", "editor", "GET", f"{OURS}/pods/talker/{path}?{QUERY}", headers=UPGRADE,
                  want=(403, 404))


def frame(payload, kind=2, mask=b"mask", last=True):
    size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
    return bytes([(0x80 if last else 0) | kind]) + size + mask + bytes(byte ^ mask[i % 4] for i,
                                                                       byte in enumerate(payload))


def upgraded(cluster, query, by="editor", target=TALKER):
    """A connection that has left HTTP, and what came behind the answer."""
    connection = cluster.open(by)
    head = "".join(f"{name}: {value}\r\n" for name, value in UPGRADE)
    connection.sendall(f"GET {target}?{query} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
    seen = b""
    while b"\r\n\r\n" not in seen:
        more = connection.recv(65536)
        assert more, f"closed after {seen!r}"
        seen += more
    head, rest = seen.split(b"\r\n\r\n", 1)
    return connection, head, rest


def until_closed(connection, seen=b"", seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            more = connection.recv(65536)
        except (TimeoutError, socket.timeout):
            return seen, False
        except OSError:
            return seen, True
        if not more:
            return seen, True
        seen += more
    return seen, False


def works(cluster):
    connection, head, rest = upgraded(cluster, "command=echo&command=it+works&stdout=true")
    with connection:
        seen, closed = until_closed(connection, rest)
    return None if b" 101 " in head and b"it works" in seen and b'"Success"' in seen and closed else f"{head} {seen}"


def is_cut(data):
    def act(cluster):
        connection, head, rest = upgraded(cluster, "command=cat&stdin=true&stdout=true")
        with connection:
            connection.sendall(data)
            seen, closed = until_closed(connection, rest)
        if b" 101 " not in head or not closed:
            return f"{head[:40]}: not closed after {seen[:100]}"
        return None
    return act


def nothing_left(cluster):
    """No program of an attempt keeps running once its client is gone."""
    connection, _, rest = upgraded(cluster, "command=sh&command=-c&command=cat+/proc/[0-9]*/cmdline&stdout=true")
    with connection:
        seen, _ = until_closed(connection, rest)
    return b"sleep\x007654" not in seen


def half_open(cluster):
    """A client that sends nothing and disconnects: its program ends with it."""
    connections = [upgraded(cluster, "command=sleep&command=7654&stdin=true&stdout=true")[0] for _ in range(5)]
    for connection in connections:
        connection.close()
    wait_for("the programs of clients that are gone", lambda: nothing_left(cluster))


def hundreds(cluster):
    """More than a node takes: the rest is refused, open ones continue, and afterwards there is room again."""
    opened, refused = [], 0
    try:
        for _ in range(300):
            connection, head, _ = upgraded(cluster, "command=sleep&command=7654&stdin=true&stdout=true", by="admin")
            if b" 101 " in head:
                opened.append(connection)
            else:
                refused += 1
                connection.close()
                if b" 429 " not in head:
                    return f"{head[:200]}"
        if len(opened) > 260 or refused == 0:
            return f"{len(opened)} streams are open, {refused} were refused"
    finally:
        for connection in opened:
            connection.close()
    wait_for("room for another stream", lambda: works(cluster) is None)
    wait_for("the programs of clients that are gone", lambda: nothing_left(cluster))
    return None


def does_not_read(cluster):
    """Endless output for a client that takes nothing: the node stops reading it."""
    connection, head, _ = upgraded(cluster, "command=cat&command=/dev/zero&stdout=true")
    with connection:
        before = resident(cluster.server, cluster.agent)
        time.sleep(3)
        grown = resident(cluster.server, cluster.agent) - before
    return None if b" 101 " in head and grown < 64 << 20 else f"{grown} bytes more"


def attempts(cluster):
    ping = frame(os.urandom(20), kind=9)
    return [*of_others(), *lies(), Act("exec by who may", works),
            Act("a frame that is not masked", is_cut(b"\x82\x05\x00hello")),
            Act("a frame of 2^62 bytes", is_cut(b"\x82\xff" + b"\x3f" * 8 + b"mask")),
            Act("a message of more than a mebibyte",
                is_cut(frame(b"\0" + b"x" * 60000, last=False) + frame(b"x" * 60000, kind=0, last=False) * 20)),
            Act("a frame of no kind", is_cut(frame(b"x", kind=3))),
            Act("a long ping", is_cut(b"\x89\xfe\x01\x00mask" + b"x" * 256)),
            Act("a part without a beginning", is_cut(frame(b"x", kind=0))),
            Act("10,000 pings, then the end", is_cut(ping * 10_000 + frame(b"", kind=8))),
            Act("HTTP on a connection that is none any more", is_cut(b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n")),
            Act("clients that go", half_open), Act("300 streams", hundreds),
            Act("output that nobody reads", does_not_read)]
