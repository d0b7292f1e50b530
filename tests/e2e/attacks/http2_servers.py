"""Servers of HTTP/2 that mean ill, met by the API server as their client: as webhooks, whose address any user with the
right to configure one chooses.
"""
import base64
import contextlib
import json
import socket
import ssl
import struct
import threading

from attacks.attempt import Act, shown
from attacks.cluster import OURS
from attacks.http2 import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, GROWTH_MAX, HEADERS, OK, PING,
                           PRIORITY, PUSH, RESET, SETTINGS,
                           WINDOW, frame, head, number)
from process_memory import resident
from webhook_server import WebhookServer, allow, in_review, make_certificate, path_of

MAPS = f"{OURS}/configmaps"
STATUS_200, STATUS_103 = bytes([OK]), b"\x08\x03103"
CONNECTIONS_MAX = 20  # for one request, however often the server sends it away


class FrameServer:
    """Speaks HTTP/2 in frames by hand: `answer(stream, question)` is an iterable of bytes for each request that has
    come whole.
    """

    def __init__(self, folder):
        self.ca, certificate, key = make_certificate(folder, "IP:127.0.0.1")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.answer, self.connections = None, 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            plain, _ = self.listener.accept()
            self.connections += 1
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        with contextlib.suppress(OSError, EOFError), self.context.wrap_socket(plain, server_side=True) as connection:
            stream = connection.makefile("rb")
            stream.read(24)
            connection.sendall(frame(SETTINGS) + frame(SETTINGS, ACK))
            questions = {}
            while True:
                start = stream.read(9)
                if len(start) < 9:
                    return
                payload = stream.read(int.from_bytes(start[:3], "big"))
                kind, flags, number_of = start[3], start[4], int.from_bytes(start[5:], "big")
                if kind == DATA:
                    questions[number_of] = questions.get(number_of, b"") + payload
                if kind in (HEADERS, DATA) and flags & END_STREAM:
                    for piece in self.answer(number_of, questions.pop(number_of, b"")):
                        connection.sendall(piece)


def honest(stream, question):
    yield frame(HEADERS, END_HEADERS, stream, STATUS_200 + head(("content-type", "application/json")))
    yield frame(DATA, END_STREAM, stream, in_review(allow(json.loads(question))))


def begins(*pieces):
    """An answer that has begun, and then this."""
    def answer(stream, _):
        yield frame(HEADERS, END_HEADERS, stream, STATUS_200)
        for piece in pieces:
            yield piece(stream) if callable(piece) else piece
    return answer


def says(*pieces):
    """This in place of an answer."""
    def answer(stream, _):
        for piece in pieces:
            yield piece(stream) if callable(piece) else piece
    return answer


def endless(stream, _):
    yield frame(HEADERS, END_HEADERS, stream, STATUS_200)
    while True:
        yield frame(DATA, 0, stream, bytes(16_384)) * 16


def meeting(server, hooks, name, answer, code=500, says_code="failed calling webhook"):
    """One ConfigMap past a webhook at that server."""
    def act(cluster):
        server.answer, before, connections = answer, resident(cluster.server), server.connections
        # no name of the cluster's own objects
        key = "meets-" + "".join(each if each.isalnum() else "-" for each in name.lower())
        client = {"url": f"https://127.0.0.1:{server.port}/{key}", "caBundle": bundle(server)}
        document = hooks.configuration("validating", key, client=client, operations=("CREATE",),
                                       objectSelector={"matchLabels": {"meets": key}},
                                       timeoutSeconds=3)
        cluster.admin.create(path_of(document), document)
        try:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key, "labels": {"meets": key}}}
            got, text = cluster.ask("admin", "POST", MAPS, json.dumps(body).encode(),
                                    {"Content-Type": "application/json"})
        finally:
            cluster.admin.delete(f"{path_of(document)}/{key}")
            if cluster.admin.find(f"{MAPS}/{key}") is not None:
                cluster.admin.delete(f"{MAPS}/{key}")
        if got != code or says_code not in text:
            return f"{got} instead of {code}: {shown(text)}"
        if server.connections - connections > CONNECTIONS_MAX:
            return f"{server.connections - connections} connections for one request"
        grown = resident(cluster.server) - before
        return f"the server has grown by {grown >> 20} MiB" if grown > GROWTH_MAX else None
    return Act(name, act)


def bundle(server):
    return base64.b64encode(server.ca.read_bytes()).decode()


def attempts(cluster):
    return list(rows(cluster))


def rows(cluster):
    hooks = WebhookServer(cluster.folder / "hooks-of-http2")  # its threads end with this process
    server = FrameServer(cluster.folder / "frames")
    # an entry that fills the table, then a reference, again and again
    bomb = STATUS_200 + b"\x40\x01a\x7f\x81\x1e" + b"v" * 4000 + b"\xbe" * 12_000
    hostile = {
        "pings": begins(frame(PING, 0, 0, bytes(8)) * 20_000),
        "settings": begins(frame(SETTINGS) * 20_000),
        "settings with a thousand entries": begins(frame(SETTINGS, 0, 0, struct.pack("!HI", 3, 100) * 1000)),
        "empty data": begins(lambda stream: frame(DATA, 0, stream) * 20_000),
        "window updates": begins(frame(WINDOW, 0, 0, number(1)) * 20_000),
        "priorities": begins(lambda stream: frame(PRIORITY, 0, stream, number(0) + b"\x10") * 20_000),
        "a head of ten thousand frames": says(lambda stream: frame(HEADERS, 0, stream, STATUS_200)
                                              + frame(CONTINUATION, 0, stream, head(("a", "b"))) * 10_000),
        "a head that unpacks to a hundred times its size": says(lambda stream: frame(HEADERS, END_HEADERS, stream,
                                                                                     bomb)),
        "interim answers without end": says(lambda stream: frame(HEADERS, END_HEADERS, stream, STATUS_103) * 20_000),
        "an answer that was not requested": begins(lambda stream: frame(PUSH, END_HEADERS, stream,
                                                                        number(2)
                                                                        + head((":method", "GET"), (":path", "/")))),
        "an answer on another stream": says(frame(HEADERS, END_HEADERS | END_STREAM, 777, STATUS_200)),
        "data before a head": says(lambda stream: frame(DATA, END_STREAM, stream, b"{}")),
        "a body longer than it says": says(lambda stream: frame(HEADERS, END_HEADERS, stream,
                                                                STATUS_200 + head(("content-length", "1")))
                                           + frame(DATA, END_STREAM, stream, b"{}{}")),
        "a status that is none": says(lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream,
                                                           head((":status", "2x0")))),
        "a frame longer than agreed": begins(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(40_000)),
        "a window beyond 2^31": begins(frame(WINDOW, 0, 0, number(0x7FFFFFFF)) * 2),
        "each stream refused": says(lambda stream: frame(RESET, 0, stream, number(7))),
        "sent away each time": says(frame(GOAWAY, 0, 0, number(0) + number(0))),
        "a body without end": endless,
        "an answer that never comes": says(),
        "words of HTTP/1.1": says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
    }
    yield meeting(server, hooks, "an honest one", honest, code=201, says_code='"ConfigMap"')
    for name, answer in hostile.items():
        yield meeting(server, hooks, name, answer)
    yield meeting(server, hooks, "an honest one afterwards", honest, code=201, says_code='"ConfigMap"')
