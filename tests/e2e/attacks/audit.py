"""The audit log: clients try to write lines of their own into it, to fill the disk with it, or to read it."""
import itertools
import json
import os
import re
import stat

from attacks.attempt import Act, Ask, shown
from attacks.cluster import OURS
from harness import wait_for

LINE_MAX = 48 * 1024  # limit of one event without objects, whatever was sent
NUMBERS = itertools.count()
FORGED = (
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"forged","stage":"ResponseComplete","requestURI":"/","verb":"get",'
    '"user":{"username":"forged"}}'
)
IDENTITY = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
MAPS = f"{OURS}/configmaps"


def lines_since(cluster, begin, mark):
    """The lines from that byte on, once the log has a request whose URI holds `mark`. Only slow attempts send requests
    meanwhile."""
    def told():
        with open(cluster.audit_log, "rb") as log:
            log.seek(begin)
            data = log.read()
        return data.split(b"\n")[:-1] if data.endswith(b"\n") and mark.encode() in data else None
    return wait_for(f"{mark} in the audit log", told)


def judged(lines):
    """A text that describes the problem of these lines, or None."""
    for line in lines:
        if any(byte < 0x20 or byte == 0x7f for byte in line):
            return f"a control character: {line[:300]!r}"
        try:
            text = line.decode("utf-8")
            event = json.loads(text)
        except ValueError as error:
            return f"{error}: {line[:300]!r}"
        if re.search("[\x80-\x9f\u2028-\u202e\u2066-\u2069]", text):
            return f"a character that deceives: {line[:300]!r}"
        if event["kind"] != "Event" or not IDENTITY.match(event["auditID"]) or event["user"].get(
            "username") == "forged":
            return f"a forged event: {text[:300]}"
    return None


def written(cluster, ask, bytes_max=None):
    """Lets `ask` ask, then an anonymous client with a mark; None, or the error in the log's record of it."""
    begin, mark = os.path.getsize(cluster.audit_log), f"mark-{next(NUMBERS)}-"
    ask()
    cluster.ask("nobody", "GET", f"/api/v1/namespaces/{mark}")
    lines = lines_since(cluster, begin, mark)
    own = [line for line in lines if mark.encode() not in line]
    size = max(map(len, own), default=0)
    if bytes_max and size > bytes_max:
        return f"a line of {size} bytes"
    return judged(lines)


def forging():
    """Line ends, controls and broken UTF-8 wherever a client has a word."""
    for name, evil in (("a line feed", f"\n{FORGED}\n"), ("carriage return and line feed", f"\r\n{FORGED}\r\n"),
                       ("a carriage return", f"\r{FORGED}\r"),
                       ("NUL", f"\0{FORGED}\0"), ("escapes of a terminal", "\x1b[2J\x1b[1;1H" + FORGED),
                       ("DEL and C1", "\x7f\x80\x85\x9b2J" + FORGED),
                       ("the end of the string", f'"}}\n{FORGED}'), ("a backslash before the end", '\\"}}' + FORGED),
                       ("separators of Unicode", f"\u2028{FORGED}\u2029"),
                       ("writing backwards", f"\u202e{FORGED}\u2066")):
        encoded = evil.encode()
        escaped = "".join(f"%{byte:02x}" for byte in encoded)
        for place, ask in (
                ("the path", lambda c, e=escaped: c.ask("patcher", "DELETE", f"{MAPS}/{e}")),
                ("the query", lambda c, e=escaped: c.ask("patcher", "DELETE", f"{MAPS}/x?fieldManager={e}")),
                ("the namespace", lambda c, e=escaped: c.ask("patcher", "GET", f"/api/v1/namespaces/{e}/configmaps")),
                ("the resource", lambda c, e=escaped: c.ask("patcher", "GET", f"/apis/{e}/v1/{e}")),
                ("a path of no resource", lambda c, e=escaped: c.ask("patcher", "GET", f"/{e}")),
                ("a name in a body", lambda c,
                 e=evil: c.json("pod-admin", "POST", MAPS,
                                {"metadata": {"name": e, "annotations": {e: e}}, "data": {"k": e}})),
                ("data that are taken", lambda c,
                 e=evil: [c.json("pod-admin", "POST", MAPS, {"metadata": {"name": "taken", "annotations": {"k": e}}}),
                                                           c.json("pod-admin", "DELETE", f"{MAPS}/taken")]),
                ("a patch", lambda c, e=evil: c.json("patcher", "PATCH", f"{MAPS}/settings",
                                                     {"metadata": {"annotations": {"k": e}}},
                                                     {"Content-Type": "application/merge-patch+json"})),
                ("the user to act as", lambda c,
                 e=escaped: send(c, b"Impersonate-Extra-" + e.encode() + b": x\r\nImpersonate-User: x\r\n")),
                *((f"the header {header}", lambda c, h=header, e=encoded: send(c, h.encode() + b": " + e + b"\r\n"))
                  for header in ("User-Agent", "X-Forwarded-For", "X-Real-Ip", "Impersonate-User", "Impersonate-Group",
                                 "Authorization", "Audit-Id")),
                ("the request line", lambda c,
                 e=encoded: c.send("patcher",
                                   b"GET /api/v1/" + e + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")),
                ("the method", lambda c,
                 e=encoded: c.send("patcher", b"GET" + e + b" / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))):
            yield Act(f"{name} in {place}", lambda c, a=ask: written(c, lambda: a(c)))
    for name, broken in (("a byte alone", b"\xff"), ("too long for what it is", b"\xc0\x8a"),
                         ("half a pair", b"\xed\xa0\x80"), ("cut off", b"\xe2\x80"),
                         ("beyond Unicode", b"\xf5\x80\x80\x80")):
        yield Act(f"broken UTF-8, {name}, in User-Agent", lambda c,
                  b=broken: written(c, lambda: send(c, b"User-Agent: " + b + b'"' + b + b"\r\n")))
        yield Act(f"broken UTF-8, {name}, in the path",
                  lambda c, b=broken: written(c,
                                              lambda: c.ask("patcher", "DELETE",
                                                            f"{MAPS}/" + "".join(f"%{byte:02x}" for byte in b))))


def send(cluster, headers, target=f"{MAPS}/settings", method=b"GET"):
    return cluster.send("patcher",
                        method + b" " + target.encode() + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers
                        + b"\r\n")


def filling():
    """Much of what is sent, and little of it in the log."""
    much = b"x" * 30_000
    for name, ask in (
            ("User-Agent", lambda c: send(c, b"User-Agent: " + much + b"\r\n")),
            ("User-Agent of what is escaped", lambda c: send(c, b"User-Agent: " + b"\xff" * 30_000 + b"\r\n")),
            ("X-Forwarded-For", lambda c: send(c, b"X-Forwarded-For: " + b"192.0.2.1," * 3_000 + b"\r\n")),
            ("Impersonate-Group", lambda c: send(c, b"Impersonate-User: x\r\n" + b"Impersonate-Group: y\r\n" * 50)),
            ("the path", lambda c: c.ask("patcher", "GET", f"{MAPS}/" + "x" * 15_000)),
            ("the path, escaped", lambda c: c.ask("patcher", "GET", f"{MAPS}/" + "%01" * 5_000)),
            ("the namespace", lambda c: c.ask("patcher", "GET", "/api/v1/namespaces/" + "x" * 15_000 + "/configmaps")),
            ("the query", lambda c: c.ask("patcher", "GET", f"{MAPS}/settings?x=" + "x" * 15_000)),
            ("a body by who may not",
             lambda c: c.json("getter", "POST", MAPS, {"metadata": {"name": "x"}, "data": {"k": "x" * 2_000_000}})),
            ("a body by nobody", lambda c: c.json("nobody", "POST", MAPS,
                                                  {"metadata": {"name": "x"}, "data": {"k": "x" * 200_000}})),
            ("a body by nobody that is too long",
             lambda c: c.ask("nobody", "POST", MAPS, b"x" * 3_000_000, {"Content-Type": "application/json"})),
            ("a body beyond the limit",
             lambda c: c.ask("pod-admin", "POST", MAPS, b"x" * 4_000_000, {"Content-Type": "application/json"})),
            ("a token that is none",
             lambda c: c.send("nobody",
                              b"GET /api HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + much
                              + b"\r\n\r\n"))):
        yield Act(f"much in {name}", lambda c, a=ask: written(c, lambda: a(c), LINE_MAX))

    def one_event(cluster):
        begin, mark = os.path.getsize(cluster.audit_log), f"mark-{next(NUMBERS)}-"
        for _ in range(50):
            cluster.ask("nobody", "GET", f"/api/v1/namespaces/{mark}a")
        cluster.ask("nobody", "GET", f"/api/v1/namespaces/{mark}last")
        lines = [line for line in lines_since(cluster, begin, f"{mark}last") if f"{mark}a".encode() in line]
        return None if len(lines) == 100 else f"{len(lines)} lines of 50 requests"
    yield Act("two lines of a request that is refused, not more", one_event)


def reading():
    for path in ("/audit.log", "/logs/audit.log", "/logs/", "/audit", "/debug/audit", "/apis/audit.k8s.io/v1",
                 "/apis/audit.k8s.io/v1/events", "/static/audit.log",
                 "/..%2faudit.log", "/%2e%2e/audit.log", "/healthz/../audit.log",
                 "/api/v1/nodes/n1/proxy/logs/audit.log",
                 "/api/v1/nodes/n1/proxy/..%2f..%2faudit.log"):
        for by in ("nobody", "alice", "n1", "editor"):
            yield Ask(f"{path} by {by}", by, "GET", path, want=(400, 401, 403, 404), hides='"kind":"Event"')
    yield Ask("/audit.log by the administrator: it is served to nobody", "admin", "GET", "/audit.log", want=404)

    def mode(cluster):
        found = os.lstat(cluster.audit_log)
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != 0o600:
            return f"mode {found.st_mode:o}"
        return None
    yield Act("the file is its owner's alone", mode)

    def no_secret(cluster):
        """Levels of the policy hold for Secrets: their values are in no event."""
        cluster.ask("admin", "GET", "/api/v1/secrets")
        text = cluster.audit_log.read_text(errors="replace")
        tokens = [token for token in cluster.tokens.values() if token in text]
        return f"a token in the log: {shown(tokens[0])}" if tokens else None
    yield Act("no bearer token stands in it", no_secret)


def attempts(cluster):
    cluster.bear("unknown token", "nobody-knows-this")
    cluster.bear("ours/app", cluster.token("app"))
    assert cluster.ask("ours/app", "GET", MAPS)[0] == 403 and cluster.ask("unknown token", "GET", MAPS)[0] == 401
    return [*forging(), *filling(), *reading()]
