"""Logs: of others, with numbers beyond their range, and at the agent itself."""
import ssl

from attacks.attempt import Act, Ask, exposed, shown
from attacks.cluster import OURS, THEIRS
from attacks.connection import exchange, open_connection

TALKER, TELLER = f"{OURS}/pods/talker/log", f"{THEIRS}/pods/teller/log"
LINES = 2000


def of_others():
    for by in ("nobody", "alice", "log-reader", "editor", "any-log", "getter", "watcher", "n1", "n3", "proxier"):
        yield Ask(f"the log of theirs/teller by {by}", by, "GET", TELLER)
        yield Ask(f"the log of theirs/teller by {by}, as a watch", by, "GET", f"{TELLER}?watch=1&follow=true")
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        yield Ask(f"{method} of a log", "log-reader", method, TALKER, {} if method != "DELETE" else None,
            type="merge" if method == "PATCH" else "json", want=(403, 405))
    for name, container in (("of another pod", "teller"), ("that climbs", "../../theirs_teller/main"),
            ("that climbs, encoded", "..%2f..%2ftheirs%2fteller%2fmain"), ("that is absolute", "/etc/passwd"),
                            ("with a NUL", "main%00"), ("with a line end", "main%0a"),
                            ("with a query", "main?previous=true"), ("with a star", "*"),
                            ("of 10,000 letters", "a" * 10_000),
                            ("that does not exist", "no-such")):
        yield Ask(f"a container {name}", "log-reader", "GET", f"{TALKER}?container={container.replace('?', '%3F')}",
                  want=(400, 404),
            hides="root:x:0")
    yield Ask("the log of a pod that does not exist", "log-reader", "GET", f"{OURS}/pods/no-such/log", want=404)
    yield Ask("the log of a pod on a node that never was", "log-reader", "GET", f"{OURS}/pods/on-n1/log",
              want=(400, 404, 500, 503))
    yield Ask("the log of another namespace by a parameter", "log-reader", "GET",
              f"{TALKER}?namespace=theirs&name=teller&pod=teller", want=200,
        says="line 0 of")


def numbers():
    for name in ("tailLines", "limitBytes", "sinceSeconds"):
        for value in ("-1", "x", "9" * 30, str(2 ** 63), "1.5", "0x10", "1%00", "%20"):
            yield Ask(f"{name}={value}", "log-reader", "GET", f"{TALKER}?{name}={value}", want=(400, 422))
    for value in ("yesterday", "2026-13-01T00:00:00Z", "-1", "99999-01-01T00:00:00Z", "%00"):
        yield Ask(f"sinceTime={value}", "log-reader", "GET", f"{TALKER}?sinceTime={value}", want=(400, 422))
    yield Ask("sinceSeconds and sinceTime", "log-reader", "GET",
              f"{TALKER}?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", want=(400, 422))
    yield Ask("limitBytes=0", "log-reader", "GET", f"{TALKER}?limitBytes=0", want=(400, 422))
    yield Ask("sinceSeconds=0", "log-reader", "GET", f"{TALKER}?sinceSeconds=0", want=(400, 422))
    yield Ask("follow of a word", "log-reader", "GET", f"{TALKER}?follow=maybe&tailLines=1&limitBytes=5",
              want=(200, 400, 422))
    for name, value in (("tailLines", 2 ** 63 - 1), ("limitBytes", 2 ** 63 - 1), ("sinceSeconds", 2 ** 63 - 1),
                        ("sinceSeconds", 10 ** 12)):
        def all_of_it(cluster, name=name, value=value):
            code, text = cluster.ask("log-reader", "GET", f"{TALKER}?{name}={value}")
            lines = text.count("\n")
            return None if code in (400, 422) or (code == 200
                                                  and lines == LINES) else f"{code} with {lines} lines: {shown(text)}"
        yield Act(f"{name}={value}, refused or all of it", all_of_it)

    def counted(cluster):
        code, text = cluster.ask("log-reader", "GET", f"{TALKER}?tailLines=3&limitBytes=10")
        return None if code == 200 and len(text) <= 10 else f"{code}: {shown(text)}"
    yield Act("both limits hold at once", counted)


def at_the_agent():
    """The agent's own server, without the API server in between."""
    def asked(by, path, want, method="GET"):
        def act(cluster):
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            headers = ""
            if by in cluster.tokens:
                headers = f"Authorization: Bearer {cluster.tokens[by]}\r\n"
            elif by != "nobody":
                certificate = cluster.at_agent[by]
                context.load_cert_chain(str(certificate.chain), str(certificate.key))
            try:
                with open_connection("127.0.0.1", cluster.node_port(), context) as connection:
                    seen = exchange(
                        connection,
                        f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n".encode(),
                    )
            except (ssl.SSLError, ConnectionError):
                return None if () in want else "the connection was refused"
            if seen.codes not in want:
                return f"{seen.codes}: {shown(seen.text)}"
            return f"the hidden value: {shown(seen.text)}" if exposed(seen.text) else None
        return act
    log = "/containerLogs/theirs/teller/main"
    for by, want in (("nobody", {(401,)}), ("unknown token", {(401,)}), ("ours/app", {(403,)}),
                     ("alice", {(401,), (403,)}), ("n1", {(401,), (403,)}),
            ("stranger", {(401,), (403,), ()}),
                     ("expired", {(401,), ()}), ("for servers", {(401,), ()})):
        for path in (log, "/pods", "/runningpods/", "/logs/", "/logs/syslog", "/configz",
                "/debug/spillway", "/debug/spillway/recording",
                "/debug/spillway/recording/segments/1", "/metrics"):
            yield Act(f"agent: {path} by {by}", asked(by, path, want))
    for path in ("/containerLogs/../../etc/passwd", "/containerLogs/theirs/teller/..%2f..%2f..%2f..%2fetc%2fpasswd",
            "/containerLogs/..%2f/..%2f/..%2fetc", "/logs/../etc/passwd", "/healthz/../pods",
                 "/healthz/%2e%2e/pods", "//pods", "/PODS", "/pods/", "/run/theirs/teller/main?cmd=id",
                 "/exec/theirs/teller/main?command=id",
                 "/portForward/theirs/teller", "/checkpoint/theirs/teller/main"):
        yield Act(f"agent: {path} by nobody", asked("nobody", path, {(400,), (401,), (403,), (404,)}))
    yield Act("agent: impersonation", impersonated)


def impersonated(cluster):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with open_connection("127.0.0.1", cluster.node_port(), context) as connection:
        seen = exchange(
            connection,
            (
                b"GET /pods HTTP/1.1\r\nHost: x\r\nX-Remote-User: kubernetes-admin\r\nImpersonate-User:"
                b" kubernetes-admin\r\nImpersonate-Group: system:masters\r\nConnection: close\r\n\r\n"
            ),
        )
    return None if seen.codes == (401,) else f"{seen.codes}: {shown(seen.text)}"


def attempts(cluster):
    code, text = cluster.ask("log-reader", "GET", TALKER)
    assert code == 200 and text.count("\n") == LINES, f"{code} {shown(text)}"
    admin = "/O=system:masters/CN=kubernetes-admin"
    shop, own = cluster.workshop, cluster.authority
    cluster.at_agent = {"alice": cluster.signed("/CN=alice"), "n1": cluster.signed("/O=system:nodes/CN=system:node:n1"),
        "stranger": shop.self_signed(admin),
                        "expired": shop.sign(admin, own, begins=-20, ends=-1), "for servers": shop.sign(admin, own,
                            extensions="extendedKeyUsage=serverAuth\n")}
    cluster.bear("ours/app", cluster.token("app"))
    cluster.bear("unknown token", "nobody-knows-this")
    return [*of_others(), *numbers(), *at_the_agent()]


