"""Messages that two readers understand differently, that never end, or that are too much.

Where one message is refused, nothing behind it may be taken for another.
"""
import gzip
import http.client
import json
import threading
import time

from attacks.attempt import Act, Bytes, shown
from attacks.cluster import OURS, THEIRS
from attacks.connection import exchange, receive_all

HIDDEN = f"{THEIRS}/secrets/hidden"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
# the server's answer if it takes the message before for complete
LAST = "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
SMUGGLED = f"GET {HIDDEN} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
REFUSED = (400,)


def post(headers, body="", target=SELF):
    return f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}\r\n{body}"


def get(headers, target="/version"):
    return f"GET {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"


def two_lengths():
    """Refused and closed, whatever follows."""
    chunked = "2\r\n{}\r\n0\r\n\r\n"
    for name, headers, body in (
            ("Content-Length, then Transfer-Encoding", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunked),
            ("Transfer-Encoding, then Content-Length", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunked),
            ("two Content-Length that differ", "Content-Length: 2\r\nContent-Length: 3\r\n", "{}x"),
            ("a list of Content-Length", "Content-Length: 2, 3\r\n", "{}x"),
            ("Content-Length with a sign", "Content-Length: +2\r\n", "{}"),
            ("Content-Length below nothing", "Content-Length: -1\r\n", "{}"),
            ("Content-Length in hexadecimal", "Content-Length: 0x2\r\n", "{}"),
            ("Content-Length with a fraction", "Content-Length: 2.0\r\n", "{}"),
            ("Content-Length of nothing", "Content-Length: \r\n", "{}"),
            ("Content-Length beyond 64 bits", "Content-Length: 18446744073709551618\r\n",
                "{}"),
            ("Content-Length with a blank in it", "Content-Length: 1 2\r\n", "{}"),
            ("Content-Length with a letter", "Content-Length: 2a\r\n", "{}"),
            ("Transfer-Encoding twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked),
            ("Transfer-Encoding identity", "Transfer-Encoding: identity\r\n", "{}"),
            ("Transfer-Encoding gzip, chunked", "Transfer-Encoding: gzip, chunked\r\n", chunked),
            ("Transfer-Encoding chunked, identity", "Transfer-Encoding: chunked, identity\r\n", chunked),
            ("Transfer-Encoding xchunked", "Transfer-Encoding: xchunked\r\n", chunked),
            ("Transfer-Encoding in quotes", 'Transfer-Encoding: "chunked"\r\n', chunked),
            ("Transfer-Encoding behind a vertical tab", "Transfer-Encoding: \x0bchunked\r\n", chunked),
            ("Transfer-Encoding with a blank before its colon", "Transfer-Encoding : chunked\r\n", chunked),
            ("Content-Length with a blank before its colon", "Content-Length : 2\r\n", "{}"),
            ("Transfer-Encoding with a line feed alone", "X: y\nTransfer-Encoding: chunked\r\n", chunked)):
        yield Bytes(name, post(headers, body) + SMUGGLED, REFUSED, by="alice", hides='"secrets')


def chunks():
    def chunked(body):
        return post("Transfer-Encoding: chunked\r\n", body)
    for name, body in (
            ("a size in letters", "zz\r\n{}\r\n0\r\n\r\n"), ("a size with a sign", "+2\r\n{}\r\n0\r\n\r\n"),
            ("a size below nothing", "-2\r\n{}\r\n0\r\n\r\n"),
            ("a size with a prefix", "0x2\r\n{}\r\n0\r\n\r\n"),
            ("a size beyond 64 bits", "10000000000000002\r\n{}\r\n0\r\n\r\n"),
            ("no size", "\r\n{}\r\n0\r\n\r\n"),
            ("a chunk longer than its size", "1\r\n{}\r\n0\r\n\r\n"),
            ("no line end behind a chunk", "2\r\n{}0\r\n\r\n"),
            ("a line feed alone behind a size", "2\n{}\r\n0\r\n\r\n"),
            ("a carriage return alone behind a size", "2\r{}\r\n0\r\n\r\n"),
            ("a NUL in a size", "2\x00\r\n{}\r\n0\r\n\r\n")):
        yield Bytes(f"chunked: {name}", chunked(body) + SMUGGLED, {REFUSED, ()}, by="alice", hides='"secrets')
    yield Bytes("chunked: a size beyond the limit of bodies", chunked("7fffffff\r\n{}\r\n"), {(400,), (413,)},
                by="alice")
    yield Bytes("chunked: an extension that does not end", chunked("2;" + "x" * 200_000), {(400,), (431,)}, by="alice")
    yield Bytes("chunked: trailers that do not end", chunked("2\r\n{}\r\n0\r\n" + "X: y\r\n" * 40_000),
                {(400,), (431,), (201, 400)}, by="alice")
    trailer = (
        "2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\nImpersonate-User: kubernetes-admin\r\nContent-Length: 7\r\nHost:"
        " y\r\n\r\n"
    )
    yield Bytes("chunked: trailers that would be headers", chunked(trailer) + LAST, {(201, 200), (400,)}, by="alice",
                hides="kubernetes-admin")
    yield Bytes("chunked: a trailer that would be another user",
                chunked(trailer.replace("Content-Length: 7\r\n", "")) + LAST, {(201, 200), (400,)},
        by="alice", hides="kubernetes-admin")
    yield Bytes("chunked: the smallest chunks", chunked("1\r\n{\r\n1\r\n}\r\n0\r\n\r\n") + LAST, (201, 200), by="alice")
    yield Bytes("chunked on HTTP/1.0",
                post("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n").replace("HTTP/1.1", "HTTP/1.0"),
        {(201,), (400,)}, by="alice")


def heads():
    """Request lines and headers that no client sends."""
    for name, data in (
            ("a line without a colon", get("no colon here\r\n")),
            ("a header without a name", get(": x\r\n")),
            ("a blank before the first header", "GET /version HTTP/1.1\r\n Host: x\r\n\r\n"),
            ("a blank before a colon", get("X : y\r\n")),
            ("a NUL in a name", get("X\x00Y: z\r\n")), ("a NUL in a value", get("X: a\x00b\r\n")),
            ("a carriage return alone in a value", get("X: a\rInjected: b\r\n")),
            ("a line feed alone", "GET /version HTTP/1.1\nHost: x\n\n"),
            ("a line feed alone behind a header", get("X: y\nInjected: z\r\n")),
            ("letters beyond ASCII in a name", get("X\xe4: y\r\n")),
            ("no Host", "GET /version HTTP/1.1\r\n\r\n"), ("no version", "GET /version\r\n\r\n"),
            ("HTTP/0.9", "GET /version HTTP/0.9\r\n\r\n"),
            ("HTTP/2.0", "GET /version HTTP/2.0\r\nHost: x\r\n\r\n"),
            ("HTTP/9.9", "GET /version HTTP/9.9\r\nHost: x\r\n\r\n"),
            ("HTTP/1.1.1", "GET /version HTTP/1.1.1\r\nHost: x\r\n\r\n"),
            ("http/1.1", "GET /version http/1.1\r\nHost: x\r\n\r\n"),
            ("another protocol", "SSH-2.0-OpenSSH_9\r\n\r\n"),
            ("HTTP/2 prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            ("two blanks before the version", "GET /version  HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("a method with a NUL", "G\x00T /version HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("a method with a colon", "GET: /version HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("no method", " /version HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("bytes of no protocol", bytes(range(256)).decode("latin-1") * 4)):
        yield Bytes(name, data + SMUGGLED, {REFUSED, ()}, by="alice", hides='"secrets')
    for name, folded in (("another user", "X: a\r\n\tImpersonate-User: kubernetes-admin\r\n"),
            ("another length", "Content-Length: 2\r\n Content-Length: 200\r\n"),
                         ("another coding", "Content-Length: 2\r\nX: y\r\n Transfer-Encoding: chunked\r\n")):
        yield Bytes(f"a header that is folded and holds {name}",
                    post(folded + ("" if "Content" in folded else "Content-Length: 2\r\n"), "{}") + LAST,
            {(201, 200), (400,)}, by="alice",
                    hides="kubernetes-admin")
    yield Bytes("a Host that is folded", "GET /version HTTP/1.1\r\nHost: x\r\n\ty\r\nConnection: close\r\n\r\n",
                REFUSED, by="alice")
    yield Bytes("two Host headers", get("Host: y\r\nConnection: close\r\n"), REFUSED, by="alice")
    yield Bytes("a Host that is none", "GET /version HTTP/1.1\r\nHost: x y/z\r\nConnection: close\r\n\r\n", REFUSED,
                by="alice")
    for method, want in (("TRACE", {(400,), (403,), (405,)}), ("TRACK", {(400,), (403,), (405,)}),
                         ("PROPFIND", {(400,), (403,), (405,)}),
            ("get", {(400,), (403,), (405,)}),
                         ("A" * 20_000, {(400,), (403,), (405,), (414,), (431,)})):
        yield Bytes(f"method {method[:10]}",
                    f"{method} {HIDDEN} HTTP/1.1\r\nHost: x\r\nCookie: c\r\nConnection: close\r\n\r\n", want,
                    by="alice",
            hides="Cookie")
    yield Bytes("HEAD of the Secret", f"HEAD {HIDDEN} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                {(403,), (405,)}, by="alice")


def too_much():
    heads = [("one header of 100 KB", f"X: {'a' * 100_000}\r\n"), ("one name of 100 KB", f"{'a' * 100_000}: x\r\n"),
             ("a target of 100 KB", None),
             ("20,000 headers of three bytes", "a:b\r\n" * 20_000), ("20,000 empty headers", "a:\r\n" * 20_000),
             ("70 KB in headers of 1 KB", f"X: {'a' * 1000}\r\n" * 70)]
    for name, headers in heads:
        data = get("Connection: close\r\n" + headers) if headers else get("Connection: close\r\n", "/" + "a" * 100_000)
        yield Bytes(name, data, {(400,), (414,), (431,)}, by="alice")
    yield Bytes("a body of 3 MiB and one byte", post(f"Content-Length: {3 * 1024 * 1024 + 1}\r\n", "x" * 1000), (413,),
                by="alice")
    yield Bytes("a body of 2^62 bytes", post(f"Content-Length: {2 ** 62}\r\n", "x"), (413,), by="alice")
    yield Bytes("a body of 2^62 bytes from nobody", post(f"Content-Length: {2 ** 62}\r\n", "x"),
                {(401,), (403,), (413,)})
    yield Bytes("chunks of more than 3 MiB", lambda c: (part for part in [post("Transfer-Encoding: chunked\r\n"),
        *["10000\r\n" + "x" * 65536 + "\r\n"] * 64]), (413,), by="alice")
    packed = gzip.compress(b" " * 200_000_000)
    yield Bytes("a body of 200 MB, packed to 200 KB",
                post(f"Content-Encoding: gzip\r\nConnection: close\r\nContent-Length: {len(packed)}\r\n",
        packed.decode("latin-1")), {(400,), (415,)}, by="alice")
    yield Bytes("a body packed with something else",
                post("Content-Encoding: br\r\nConnection: close\r\nContent-Length: 2\r\n", "{}"),
        {(201,), (400,), (415,)}, by="alice")

    def wave(cluster):
        with cluster.open("alice") as connection:
            connection.sendall(get("").encode() * 500 + LAST.encode())
            seen = receive_all(connection)
        return None if set(seen.codes) == {200} and len(
            seen.codes) == 501 and seen.ended else f"{len(seen.codes)} answers: {set(seen.codes)}"
    yield Act("500 requests at once on one connection, each answered in its turn", wave)


def behind_a_refusal():
    """A request that is refused before its body was read: the body is not parsed as the next request."""
    body = SMUGGLED
    yield Bytes("a body that is a request, on a path nobody serves",
        f"POST /no/such HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}" + LAST,
                {(403, 200), (404, 200), (403,), (404,)},
                by="alice", hides='"secrets')
    yield Bytes("a body that is a request, of a GET",
                f"GET /version HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}" + LAST,
        {(200, 200), (400,)}, by="alice", hides='"secrets')
    yield Bytes("a body that is a request, of a DELETE", f"DELETE {THEIRS}/configmaps/settings HTTP/1.1\r\nHost: x\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}" + LAST, {(403, 200), (400,), (403,)}, by="alice",
                hides='"secrets')
    yield Bytes("a body that is a request, of an unknown token",
        f"POST {SELF} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                + LAST,
        {(401, 403), (401, 200), (401,)},
                hides='"secrets')
    yield Bytes("Expect: 100-continue of a body that is too large",
                post("Expect: 100-continue\r\nContent-Length: 99999999\r\n"), {(413,), (417,)},
        by="alice")
    yield Bytes("an expectation nobody knows",
                post("Expect: the-unexpected\r\nContent-Length: 2\r\nConnection: close\r\n", "{}"), {(201,), (417,)},
        by="alice")
    yield Bytes("an upgrade to HTTP/2 without TLS", get("Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"
                "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n") + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                {(200,), (400,), (200, 400)}, by="alice")
    yield Bytes("an upgrade to a websocket", get("Connection: Upgrade, close\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", HIDDEN),
                {(403,), (400,)},
                by="alice")
    yield Bytes("plain HTTP on the TLS port", lambda c: SMUGGLED, {(), (400,)}, by="plain", hides='"secrets')


def split_answers():
    """Text of a request that comes back in an answer must stay text."""
    evil = "x%0d%0aX-Injected:%20yes%0d%0a%0d%0aHTTP/1.1%20200%20OK"
    for name, target in (("a name", f"{OURS}/configmaps/{evil}"), ("a namespace", f"/api/v1/namespaces/{evil}/pods"),
                         ("a page", f"/{evil}"),
            ("a container", f"{OURS}/pods/on-n1/log?container={evil}"),
                         ("a selector", f"{OURS}/configmaps?labelSelector={evil}"),
                         ("a version", f"{OURS}/configmaps?resourceVersion={evil}"),
                         ("a field manager", f"{OURS}/configmaps/settings?fieldManager={evil}")):
        yield Bytes(f"split by {name}", get("Connection: close\r\n", target), {(200,), (400,), (403,), (404,), (422,)},
                    by="admin",
            hides=("\r\nX-Injected", "\nX-Injected"))
    yield Bytes("split by Accept", get("Accept: application/x\x0bInjected\r\nConnection: close\r\n", f"{OURS}/pods"),
                {(400,), (406,)}, by="admin")
    field = json.dumps({"metadata": {"name": "x"}, "x\r\nX-Injected: yes": 1})
    yield Bytes("split by a warning",
                post(f"Connection: close\r\nContent-Length: {len(field)}\r\n", field, f"{OURS}/configmaps?dryRun=All"),
        {(201,), (400,)}, by="admin", hides=("\r\nX-Injected", "\nX-Injected"))


def slow():
    """Clients that take their time: the server ends them and answers others meanwhile."""
    def drip(parts, seconds):
        def act(cluster):
            with cluster.open("alice", timeout=seconds) as connection:
                connection.sendall(parts[0])
                stop = threading.Event()
                sent = threading.Thread(target=dripping, args=(connection, parts[1:], stop), daemon=True)
                sent.start()
                begun = time.monotonic()
                seen = receive_all(connection, seconds)
                stop.set()
                sent.join()
            return None if seen.ended and set(seen.codes) <= {400,
                408} else f"still open after {time.monotonic() - begun:.0f} s: {seen.codes} {shown(seen.text)}"
        return act

    def dripping(connection, parts, stop):
        for part in parts:
            if stop.wait(0.5):
                return
            try:
                connection.sendall(part)
            except OSError:
                return
    head = b"GET /version HTTP/1.1\r\nHost: x\r\n"
    yield Act("a header that comes byte by byte", drip([head, *[b"X"] * 60], 25), slow=True)
    yield Act("headers that do not end", drip([head, *[b"X: y\r\n"] * 60], 25), slow=True)
    yield Act("half a request line", drip([b"GET /ver"], 25), slow=True)
    yield Act("a handshake that stops", half_a_handshake, slow=True)

    def body(cluster):
        client = http.client.HTTPSConnection(cluster.host, cluster.port, timeout=60, context=cluster.contexts["alice"])
        waiting = cluster.open("alice")
        try:
            waiting.sendall(post("Content-Length: 100\r\n", "{").encode())
            client.request("GET", "/version")
            return None if client.getresponse().status == 200 else "others were not served"
        finally:
            waiting.close()
            client.close()
    yield Act("a body that stops, and another client", body)


def half_a_handshake(cluster):
    plain = cluster.open("plain", timeout=25)
    try:
        seen = exchange(plain, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 25)  # the first bytes of a ClientHello
        return None if seen.ended else "still open after 25 s"
    finally:
        plain.close()


def attempts(cluster):
    cluster.contexts["plain"] = None
    return [*two_lengths(), *chunks(), *heads(), *too_much(), *behind_a_refusal(), *split_answers(), *slow()]
