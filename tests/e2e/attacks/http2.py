"""HTTP/2: frames that cost the server work and ask nothing, heads that two readers would read in two ways, streams and
windows that are none.
"""
import ssl
import struct
import time

from attacks.attempt import Act, HIDDEN_FORMS
from attacks.cluster import THEIRS
from attacks.connection import open_connection, receive_all
from process_memory import resident

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
CALM, PROTOCOL, INTERNAL, COMPRESSION = 11, 1, 2, 9
BEGIN = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
OK = 0x88  # the field ":status: 200", of the static table
GROWTH_MAX = 64 << 20


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def number(value):
    return struct.pack("!I", value)


def head(*fields):
    """Fields as they are, outside any table."""
    return b"".join(b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode("latin-1")
                    for name, value in fields)


PSEUDO = ((":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", "/version"))


def ask(stream, *more, path="/version", flags=END_STREAM | END_HEADERS):
    return frame(HEADERS, flags, stream,
                 head((":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", path), *more))


def frames_in(data):
    at, found = 0, []
    while at + 9 <= len(data):
        size = int.from_bytes(data[at:at + 3], "big")
        found.append((data[at + 3], data[at + 4], int.from_bytes(data[at + 5:at + 9], "big"),
                      data[at + 9:at + 9 + size]))
        at += 9 + size
    return found


def connect(cluster, timeout=15):
    context = ssl.create_default_context(cafile=str(cluster.authority.chain))
    context.set_alpn_protocols(["h2"])
    connection = open_connection(cluster.host, cluster.port, context, timeout)
    assert connection.selected_alpn_protocol() == "h2", connection.selected_alpn_protocol()
    return connection


def sent(cluster, *parts, wait=5.0, begin=BEGIN + frame(SETTINGS)):
    """The frames that came back, and whether the server closed the connection."""
    with connect(cluster) as connection:
        try:
            connection.sendall(begin + b"".join(parts))
        except OSError:
            pass  # the server has left
        seen = receive_all(connection, wait)
    assert not any(form in seen.text for form in HIDDEN_FORMS), "the answer holds the value of the hidden Secret"
    return frames_in(seen.text.encode("latin-1")), seen.ended


def flood(name, *parts, codes=(CALM,)):
    """The connection is closed, with this word; the server's memory stays."""
    def act(cluster):
        before = resident(cluster.server)
        frames, ended = sent(cluster, *parts)
        words = [int.from_bytes(payload[4:8], "big") for kind, _, _, payload in frames if kind == GOAWAY]
        if not ended:
            return f"the connection was not closed: {[each[0] for each in frames][:20]}"
        if words and words[-1] not in codes:
            return f"GOAWAY {words} instead of {codes}"
        grown = resident(cluster.server) - before
        return f"the server has grown by {grown >> 20} MiB" if grown > GROWTH_MAX else None
    return Act(name, act)


def refused(name, payload, flags=END_STREAM | END_HEADERS, more=b""):
    """A head that must not be answered with 200."""
    def act(cluster):
        frames, _ = sent(cluster, frame(HEADERS, flags, 1, payload) + more, wait=2.0)
        answers = [each for each in frames if each[0] == HEADERS]
        if any(payload and payload[0] == OK for _, _, _, payload in answers):
            return "answered with 200"
        turned_away = answers or any(kind in (RESET, GOAWAY) for kind, _, _, _ in frames)
        return None if turned_away else f"neither refused nor closed: {[each[0] for each in frames]}"
    return Act(name, act)


def floods():
    posts = frame(HEADERS, END_HEADERS, 1, head((":method", "POST"), *PSEUDO[1:]))
    yield flood("rapid resets", *[ask(n) + frame(RESET, 0, n, number(8)) for n in range(1, 4001, 2)])
    yield flood("resets that the server has to send",
                *[frame(HEADERS, END_STREAM | END_HEADERS, n, head(("x", "y"))) for n in range(1, 2001, 2)],
                codes=(CALM, PROTOCOL))
    yield flood("pings", frame(PING, 0, 0, bytes(8)) * 20_000)
    yield flood("settings", frame(SETTINGS) * 20_000)
    yield flood("settings with a thousand entries", frame(SETTINGS, 0, 0, struct.pack("!HI", 3, 100) * 1000),
                codes=(CALM, PROTOCOL))
    yield flood("empty data", posts, frame(DATA, 0, 1) * 20_000)
    yield flood("window updates", frame(WINDOW, 0, 0, number(1)) * 20_000)
    yield flood("a head of ten thousand frames", frame(HEADERS, END_STREAM, 1, head(*PSEUDO)),
                frame(CONTINUATION, 0, 1, head(("a", "b"))) * 10_000,
                codes=(CALM, PROTOCOL, INTERNAL))
    # one entry that fills the table, then a reference to it, again and again
    bomb = b"\x40\x01a\x7f\x81\x1e" + b"v" * 4000
    yield flood("a head that unpacks to a hundred times its size",
                *[frame(HEADERS, END_STREAM | END_HEADERS, n, head(*PSEUDO) + bomb + b"\xbe" * 12_000)
                for n in range(1, 801, 2)], codes=(CALM, PROTOCOL, COMPRESSION, 0))


def heads():
    yield refused("without a path", head(*[each for each in PSEUDO if each[0] != ":path"]))
    yield refused("two paths", head(*PSEUDO, (":path", f"{THEIRS}/secrets/hidden")))
    yield refused("a path after a field", head(*PSEUDO[:3], ("a", "b"), PSEUDO[3]))
    yield refused("an empty path", head(*PSEUDO[:3], (":path", "")))
    yield refused("a path that is none", head(*PSEUDO[:3], (":path", "version")))
    yield refused("another site's address as path", head(*PSEUDO[:3], (":path", "http://elsewhere.example/version")))
    yield refused("a pseudo field nobody knows", head(*PSEUDO, (":user", "admin")))
    yield refused("a field in capitals", head(*PSEUDO, ("Authorization", "Bearer x")))
    for field, value in (("connection", "close"), ("transfer-encoding", "chunked"), ("upgrade", "websocket"),
                         ("keep-alive", "1"), ("te", "gzip")):
        yield refused(f"the field {field}", head(*PSEUDO, (field, value)))
    for name, value in (("a line end", "a\r\nx-remote-user: admin"), ("a zero", "a\0b")):
        yield refused(f"a value with {name}", head(*PSEUDO, ("a", value)))
    yield refused("a name with a line end", head(*PSEUDO, ("a\r\nb", "c")))
    yield refused("two lengths",
                  head((":method", "POST"), *PSEUDO[1:], ("content-length", "1"), ("content-length", "2")), END_HEADERS,
                  frame(DATA, END_STREAM, 1, b"x"))
    yield refused("a body that is longer than it says", head((":method", "POST"), *PSEUDO[1:], ("content-length", "1")),
                  END_HEADERS,
                  frame(DATA, END_STREAM, 1, b"xxx"))
    yield refused("CONNECT", head((":method", "CONNECT"), (":authority", "x:1")))
    yield refused("a websocket over a stream", head((":method", "CONNECT"), (":protocol", "websocket"), *PSEUDO[1:]))
    yield refused("an index that no table has", b"\xff\xff\xff\xff\x0f")
    yield refused("a padding longer than its frame", b"\xff" + head(*PSEUDO), END_STREAM | END_HEADERS | PADDED)
    yield refused("somebody else by a header",
                  head(*PSEUDO[:3], (":path", f"{THEIRS}/secrets/hidden"), ("x-remote-user", "admin"),
                       ("x-remote-group", "system:masters")))
    yield refused("acting as an administrator",
                  head(*PSEUDO[:3], (":path", f"{THEIRS}/secrets/hidden"), ("impersonate-user", "admin")))


def streams():
    def closed(name, *parts, begin=BEGIN + frame(SETTINGS)):
        def act(cluster):
            frames, ended = sent(cluster, *parts, wait=3.0, begin=begin)  # before it is idle for too long
            return None if ended or any(kind == GOAWAY for kind, _, _,
                                        _ in frames) else f"still open: {[each[0] for each in frames]}"
        return Act(name, act)
    yield closed("no preface", begin=b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
    yield closed("a preface without settings", ask(1), begin=BEGIN)
    yield closed("a stream of the server's numbers", ask(2))
    yield closed("a stream that goes back", ask(5) + ask(3))
    yield closed("data of no stream", frame(DATA, END_STREAM, 7, b"x"))
    yield closed("a frame longer than agreed",
                 frame(PING, 0, 0, bytes(8)) + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(40_000))
    yield closed("a window beyond 2^31", frame(WINDOW, 0, 0, number(0x7FFFFFFF)) * 2)
    yield closed("a window update of nothing", frame(WINDOW, 0, 0, number(0)))
    yield closed("a promise by a client", frame(PUSH, END_HEADERS, 1, number(2) + head(*PSEUDO)))
    yield closed("a ping of seven bytes", frame(PING, 0, 0, bytes(7)))
    yield closed("settings that acknowledge and say something", frame(SETTINGS, ACK, 0, struct.pack("!HI", 3, 1)))
    yield closed("another frame within a head",
                 frame(HEADERS, END_STREAM, 1, head(*PSEUDO)) + frame(PING, 0, 0, bytes(8)))
    yield Act("who shows nothing asks once", once)
    yield Act("a window of one byte", tiny_window, slow=True)


def once(cluster):
    frames, ended = sent(cluster, ask(1), wait=20.0)
    answers = [payload for kind, _, _, payload in frames if kind == HEADERS]
    if len(answers) != 1 or answers[0][0] != OK:
        return f"{len(answers)} answers"
    return None if ended and any(kind == GOAWAY for kind, _, _, _ in frames) else "the connection stays"


def tiny_window(cluster):
    """An answer that is taken byte by byte delays no other client."""
    with connect(cluster, 60) as connection:
        connection.sendall(BEGIN + frame(SETTINGS, 0, 0, struct.pack("!HI", 4, 1)) + ask(1, path="/openapi/v2"))
        begun = time.monotonic()
        code = cluster.ask("admin", "GET", "/readyz")[0]
        seen = receive_all(connection, 50)
    if code != 200:
        return f"/readyz answered {code}"
    return None if seen.ended else f"still open after {time.monotonic() - begun:.0f} s"


def attempts(_):
    return [*floods(), *heads(), *streams()]
