"""Paths that authorization and the handler might read differently."""
from attacks.attempt import Ask, Bytes
from attacks.cluster import OURS, THEIRS

HIDDEN = f"{THEIRS}/secrets/hidden"
TAIL = "namespaces/theirs/secrets/hidden"


def line(target, method="GET", headers="", version="HTTP/1.1"):
    return f"{method} {target} {version}\r\nHost: x\r\nConnection: close\r\n{headers}\r\n"


def from_an_open_page():
    """An anonymous client may see /healthz and /version: nothing behind them."""
    for path in ("/healthz/../api/v1/" + TAIL, "/healthz/%2e%2e/api/v1/" + TAIL, "/healthz/%2E%2E/api/v1/" + TAIL,
                 "/healthz/..%2fapi/v1/" + TAIL,
            "/healthz/..;/api/v1/" + TAIL,
                 "/healthz/.%2e/api/v1/" + TAIL, "/healthz/%252e%252e/api/v1/" + TAIL, "/healthz/..\\api\\v1/" + TAIL,
                 "/healthz/..%5capi/v1/" + TAIL,
                 "/healthz/%c0%ae%c0%ae/api/v1/" + TAIL, "/healthz/%uff0e%uff0e/api/v1/" + TAIL,
                 "/healthz%00/../api/v1/" + TAIL,
                 "/healthz/%00/api/v1/" + TAIL,
                 "/version/../api/v1/" + TAIL, "/livez/../metrics", "/readyz/%2e%2e/metrics",
                 "/healthz/ping/../../api/v1/" + TAIL, "/healthzx",
                 "/healthz%2f..%2fmetrics",
                 "/version%2f..%2fmetrics", "/healthz?x=/../../api/v1/secrets/../metrics", "/healthz#/../metrics",
                 "/healthz;/../metrics",
                 "/readyz/store-writes", "/readyz/certificates", "/livez/ping", "/healthz/store",
                 "/readyz?verbose&exclude=a%0d%0aX-Smuggled:+1%0d%0a"):
        open_to_all = path.startswith(("/healthz?", "/healthz#", "/readyz?"))
        yield Bytes(f"open page: {path}", line(path), {(200,), (400,), (404,)} if open_to_all
                    else {(400,), (401,), (403,), (404,)},
            hides=("# TYPE", '"kind":"Secret"', "\nX-Smuggled"))


def into_another_namespace():
    """A user with rights in one namespace tries to reach another."""
    for path in (f"{OURS}/../theirs/secrets/hidden", f"{OURS}/%2e%2e/theirs/secrets/hidden",
                 f"{OURS}/pods/../../theirs/secrets/hidden",
            f"{OURS}%2f..%2ftheirs/secrets/hidden",
                 f"{OURS}/pods/..%2f..%2ftheirs%2fsecrets%2fhidden",
                 f"{OURS}/secrets/..%2f..%2ftheirs%2fsecrets%2fhidden",
                 f"{OURS}/secrets/%2e%2e%2f%2e%2e%2ftheirs%2fsecrets%2fhidden",
                 f"{OURS}/secrets/..%252f..%252ftheirs%252fsecrets%252fhidden",
                 f"{OURS}/secrets/..\\..\\theirs\\secrets\\hidden",
                 f"{OURS}/secrets/..%5c..%5ctheirs%5csecrets%5chidden",
                 f"{OURS}/secrets/hidden%00", f"{OURS}/secrets/hidden%00.yaml", f"{OURS}/secrets//hidden",
                 f"{OURS}//secrets/mounted/../../theirs",
                 f"{OURS}/./../theirs/secrets/hidden",
                 f"{OURS};x/../theirs/secrets/hidden", "/api/v1/namespaces/ours,theirs/secrets",
                 "/api/v1/namespaces/*/secrets/hidden",
                 "/api/v1/namespaces/ours%2ftheirs/secrets/hidden",
                 "/api/v1/namespaces//secrets/hidden", "//api/v1/" + TAIL, "/api//v1/" + TAIL, "/./api/v1/" + TAIL,
                 "/API/v1/" + TAIL,
                 "/api/V1/" + TAIL, "/api/v1/Namespaces/theirs/Secrets/hidden",
                 "/api/v1/namespaces/theirs/%73ecrets/hidden", "/%61pi/v1/" + TAIL,
                 "/api/v1/namespaces/theirs/secrets/%68idden",
                 "/api/v1/namespaces/theirs/secrets/hidden/",
                 "/api/v1/namespaces/theirs/secrets/hidden/status/x", "/api/v1/watch/" + TAIL,
                 "/api/v1/watch/watch/" + TAIL, "/api/v1/proxy/" + TAIL,
                 "/apis//v1/" + TAIL,
                 "/apis/v1/" + TAIL, "/apis/core/v1/" + TAIL, "/apis/%20/v1/" + TAIL, "/api/v1/secrets;a=b",
                 "/api/v1/secrets%3fx",
                 "/api/v1/secrets%23x", "/api/v1/secrets?x=%zz",
                 "/api/v1/namespaces/theirs/secrets/hidden%", "/api/v1/namespaces/theirs/secrets/hidden%2",
                 "/api/v1/namespaces/theirs/secrets/hidden%zz", "/" + "a/" * 4000 + "x",
                 "/api/v1/namespaces/" + "a" * 30_000 + "/secrets"):
        shown = path if len(path) < 100 else f"{path[:30]}... of {len(path)} bytes"
        yield Bytes(f"editor: {shown}", line(path), {(400,), (403,), (404,)}, by="editor")


def other_forms():
    """Request targets that are no path."""
    for target, method, want in (
            (f"http://x{HIDDEN}", "GET", {(403,)}), (f"https://elsewhere{HIDDEN}", "GET", {(400,), (403,)}),
            (f"http://x/healthz/..{HIDDEN}", "GET", {(400,), (403,), (404,)}),
            (f"file://{HIDDEN}", "GET", {(400,), (403,)}), ("file:///etc/passwd", "GET", {(400,), (403,), (404,)}),
            (HIDDEN[1:], "GET", {(400,)}),
            ("*", "GET", {(400,), (403,), (404,)}),
            ("*", "OPTIONS", {(400,), (403,), (404,), (405,)}),
            ("x:443", "CONNECT", {(400,), (403,), (404,), (405,), (501,)}),
            (HIDDEN, "CONNECT", {(400,), (403,), (404,), (405,)}), ("?x", "GET", {(400,)}), ("", "GET", {(400,)}),
            (f"{HIDDEN} x", "GET", {(400,)}),
            (f"{HIDDEN}\t", "GET", {(400,)}),
            (f"{HIDDEN}\x00", "GET", {(400,)}), (f"{HIDDEN}\x7f", "GET", {(400,), (403,)}),
            (f"{HIDDEN}\xff\xfe", "GET", {(400,), (403,)}),
            ("//elsewhere" + HIDDEN, "GET", {(400,), (403,), (404,)})):
        yield Bytes(f"target {method} {target!r}", line(target, method), want)


def below_a_proxy():
    """nodes/proxy leads to the node's own pages, and not past them."""
    for rest in ("../../secrets", "%2e%2e/%2e%2e/secrets", "..%2f..%2fsecrets", "x/../../../secrets", "//etc/passwd",
                 "logs/../../../etc/passwd",
            "logs/..%2f..%2fetc%2fpasswd",
                 "containerLogs/theirs/../theirs/teller/main", "containerLogs/..%2f..%2f..%2fetc/passwd/x",
                 "containerLogs/theirs/teller/..%2fmain",
                 "containerLogs/theirs/teller/main%00",
                 "containerLogs/%2e%2e/%2e%2e/state", "http://127.0.0.1/", "@127.0.0.1:1/", "%0d%0aX-Injected:%20yes",
                 "pods%20HTTP/1.1%0d%0aX-Injected:%20yes", "debug/spillway/recording/segments/..%2f..%2fjournal.jsonl",
                 "debug/spillway/recording/kept/../../../../etc/passwd",
                 "debug/spillway/recording/kept/..%2f../journal.jsonl",
                 "debug/spillway/recording/kept/%2e%2e/1", "debug/spillway/recording/segments/%00",
                 f"debug/spillway/recording/segments/{'9' * 40}"):
        yield Bytes(f"proxy: {rest}", line(f"/api/v1/nodes/n3/proxy/{rest}"),
                    {(400,), (403,), (404,), (500,), (502,), (503,)}, by="proxier",
            hides=("root:x:0", "X-Injected"))
    for name in ("n3%2f..%2fn1", "..%2fn3", "n3%2fproxy%2fpods", "n3:10250", "https:n3:10250", "n3%00"):
        yield Ask(f"proxy of the node {name}", "proxier", "GET", f"/api/v1/nodes/{name}/proxy/pods",
                  want=(400, 403, 404))
    for name in ("..%2f..%2fn3", "teller%2f..%2f..%2fx", "talker%2flog", "talker%3fwatch=1"):
        yield Ask(f"log of the pod {name}", "log-reader", "GET", f"{OURS}/pods/{name}/log", want=(400, 403, 404))
    for name in ("talker%2flog", "talker%2fstatus", "on-n1%2fbinding"):
        yield Ask(f"a subresource as a name: {name}", "getter", "GET", f"{OURS}/pods/{name}", want=(400, 403, 404))


def names_of_new_objects():
    """Names that would be other paths."""
    for name in ("../x", "..", ".", "a/b", "a%2fb", "/etc/passwd", "a\\b", "a\x00b", "a b", "a\nb", "ä", "A", "a" * 254,
                 "-", "a..b", "", "a;b",
            "a?b", "a#b", "\u202ea"):
        shown = name if len(name) < 50 else f"of {len(name)} letters"
        yield Ask(f"an object named {shown!r}", "pod-admin", "POST", f"{OURS}/configmaps", {"metadata": {"name": name}},
                  want=422)
    for path, name in ((f"{OURS}/configmaps/..%2fx", "../x"), (f"{OURS}/configmaps/other", "settings")):
        yield Ask(f"an object put at {path.rsplit('/', 1)[1]} as {name}", "pod-admin", "PUT", path,
                  {"metadata": {"name": name}},
            want=(400, 404, 422), unchanged=f"{OURS}/configmaps/settings")
    yield Ask("an object of another namespace", "pod-admin", "POST", f"{OURS}/configmaps",
              {"metadata": {"name": "x", "namespace": "theirs"}},
        want=400, absent=f"{THEIRS}/configmaps/x")
    yield Ask("a namespace that climbs", "admin", "POST", "/api/v1/namespaces", {"metadata": {"name": "../x"}},
              want=422)
    yield Ask("a generated name that climbs", "pod-admin", "POST", f"{OURS}/configmaps",
              {"metadata": {"generateName": "../x"}}, want=422)


def attempts(_):
    return [*from_an_open_page(), *into_another_namespace(), *other_forms(), *below_a_proxy(), *names_of_new_objects()]
