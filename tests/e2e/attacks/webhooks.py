"""Admission webhooks: written without the right to do so, and malicious webhooks."""
import json

from attacks.attempt import Act, Ask, shown
from attacks.cluster import OURS, rule
from process_memory import resident
from webhook_server import GROUP, WebhookServer, allow, deny, path_of, patch

MUTATING, VALIDATING = f"{GROUP}/mutatingwebhookconfigurations", f"{GROUP}/validatingwebhookconfigurations"
MAPS = f"{OURS}/configmaps"
KEEPER, READER = "hook-keeper", "hook-reader"  # rights in a namespace; rights to read configurations
SELECT = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ours"}}}


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"hooked": "yes"}},
            "data": {"a": "1"}}


def furnish(cluster):
    for who in (KEEPER, READER):
        cluster.show(who, cluster.signed(f"/CN={who}"))
    cluster.grant(KEEPER, "ours",
                  [rule("", "configmaps services pods", "*"), rule("admissionregistration.k8s.io", "*", "*")])
    cluster.grant(READER, None, [rule("admissionregistration.k8s.io", "*", "get list watch")])
    return WebhookServer(cluster.folder / "hooks")  # its threads end with this process


def strangers(hooks):
    """Only who may write configurations chooses addresses: they are of the cluster, so a grant in a namespace is
    none.
    """
    inside = "https://169.254.169.254/latest/meta-data"
    for who in ("nobody", "alice", "n1", "creator", "role-writer", KEEPER, READER):
        for phase, path in (("mutating", MUTATING), ("validating", VALIDATING)):
            body = hooks.configuration(phase, "taken", client={"url": inside})
            yield Ask(f"{who} makes a {phase} one", who, "POST", path, body, want=(401, 403), absent=f"{path}/taken")
            yield Ask(f"{who} applies a {phase} one", who, "PATCH", f"{path}/taken?fieldManager=x", body, type="apply",
                      want=(401, 403),
                      absent=f"{path}/taken")
            yield Ask(f"{who} removes all {phase} ones", who, "DELETE", path, want=(401, 403))


def addresses(hooks):
    """Configurations that are refused even from an administrator."""
    for name, client in {
        "plain HTTP": {"url": "http://127.0.0.1/"}, "a file": {"url": "file:///etc/passwd"},
        "credentials": {"url": "https://a:b@127.0.0.1/"},
        "a query": {"url": "https://127.0.0.1/?a=b"}, "a header": {"url": "https://127.0.0.1/ HTTP/1.1\r\nX: y"},
        "no host": {"url": "https:///a"},
        "nothing": {}, "a path that leaves": {"service": {"namespace": "a", "name": "b", "path": "/../x"}},
        "a path with a query": {"service": {"namespace": "a", "name": "b", "path": "/a?b=c"}},
    }.items():
        yield Ask(f"an address with {name}", "admin", "POST", VALIDATING,
                  hooks.configuration("validating", "taken", client=client), want=422,
                  absent=f"{VALIDATING}/taken")
    for name, expression, says in (
        ("of a function that is not there", "'a'.nothing() == ''", "undeclared reference to 'nothing'"),
        ("that is deep", "(" * 20_000, "recursion limit exceeded"),
        ("that is wide", "object" + ".a" * 40_000, "max recursion depth exceeded"),
        ("that is long", "true" + " " * 200_000 + "|| true", "exceeds limit"),
        ("with a pattern that explodes", "'a'.matches('((((a{100}){100}){100}){100})')", "invalid matches argument"),
        ("of no bool", "object.a", "must evaluate to bool"),
    ):
        yield Ask(f"a condition {name}", "admin", "POST", VALIDATING,
                  hooks.configuration("validating", "taken", matchConditions=[
            {"name": "a", "expression": expression}]), want=422, says=says, absent=f"{VALIDATING}/taken")
    yield Ask("65 conditions", "admin", "POST", VALIDATING, hooks.configuration("validating", "taken", matchConditions=[
        {"name": f"c{i}", "expression": "true"} for i in range(65)]), want=422, says="must have at most 64 items",
              absent=f"{VALIDATING}/taken")


def meeting(hooks, name, answer, judge, phase="validating", **more):
    """One ConfigMap past a webhook that answers so; `judge(code, text, headers asked with)` says what is wrong, or
    nothing.
    """
    def act(cluster):
        key = name.lower().replace(" ", "-").replace(",", "")
        hooks.on(f"/{key}", answer)
        document = hooks.configuration(phase, key, operations=("CREATE",),
                                       objectSelector={"matchLabels": {"meets": key}}, timeoutSeconds=5, **more)
        cluster.admin.create(path_of(document), document)
        try:
            body = config_map(key)
            body["metadata"]["labels"]["meets"] = key
            code, text = cluster.ask(KEEPER, "POST", MAPS, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
        finally:
            cluster.admin.delete(f"{path_of(document)}/{key}")
        asked = [headers for path, _, headers in hooks.asked if path == f"/{key}"]
        problem = judge(code, text, asked)
        if problem is None and code >= 400 and cluster.admin.find(f"{MAPS}/{key}") is not None:
            return "it was made"
        return problem and f"{problem}: {code} {shown(text)}"
    return Act(name, act)


def failed(saying):
    return lambda code, text, _: None if code == 500 and saying in text else f"not 500 with {saying!r}"


def head(length):
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length


def gigabyte(_):
    yield head(1 << 30)
    for _ in range(1 << 14):
        yield b" " * (1 << 16)


def endless_head(_):
    yield b"HTTP/1.1 200 OK\r\n"
    for i in range(1 << 20):
        yield b"X-%d: y\r\n" % i


def dripping(hooks):
    def answer(_):
        yield head(1 << 20)
        while not hooks.gone.wait(0.1):
            yield b" "
    return answer


def judge_credentials(_, __, asked):
    if not asked:
        return "it was not asked"
    told = {name.lower() for headers in asked for name in headers}
    return f"it was sent {told}" if told & {"authorization", "cookie", "x-remote-user"} else None


def bounded_memory(attempt):
    """The server has not kept what it was sent."""
    def act(cluster):
        before = resident(cluster.server)
        problem = attempt.run(cluster)
        grown = resident(cluster.server) - before
        return problem or (f"the server has grown by {grown} bytes" if grown > 64 << 20 else None)
    return Act(attempt.name, act)


def redirected(hooks):
    def answer(_):
        yield (
            f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {hooks.url('/elsewhere')}\r\nContent-Length: 0\r\n\r\n"
            .encode()
        )

    def judge(code, text, _):
        if "/elsewhere" in hooks.paths():
            return "it went elsewhere"
        return failed("the status code 307")(code, text, _)
    hooks.on("/elsewhere", allow)
    return meeting(hooks, "a redirect", answer, judge)


def nested(review):
    return b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":' + b"[" * 1_000_000


def grown(review):
    """Each operation doubles the object."""
    double = [{"op": "copy", "from": "/data", "path": f"/data/x{i}"} for i in range(64)]
    return patch(review, *double)


def fat(review):
    return patch(review, *[{"op": "add", "path": f"/data/x{i}", "value": "y" * 1000} for i in range(3000)])


def flood(review):
    return allow(review, warnings=[f"{i} " + "w" * 1000 for i in range(4000)])


def judge_flood(cluster_hooks):
    def act(cluster):
        hooks = cluster_hooks
        hooks.on("/flood", flood)
        document = hooks.configuration("validating", "flood", operations=("CREATE",),
                                       objectSelector={"matchLabels": {"meets": "flood"}})
        cluster.admin.create(path_of(document), document)
        try:
            body = config_map("flood")
            body["metadata"]["labels"]["meets"] = "flood"
            connection = cluster.admin.connect()
            connection.request("POST", MAPS, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            size = sum(len(name) + len(value) for name, value in answer.getheaders())
            connection.close()
            if answer.status != 201:
                return f"{answer.status}"
            return f"{size} bytes of headers" if size > 16 << 10 else None
        finally:
            cluster.admin.delete(f"{path_of(document)}/flood")
    return Act("a flood of warnings", act)


def split_header(review):
    return allow(review, warnings=["a\r\nX-Injected: yes", "b\nSet-Cookie: c", "\"quoted\\"])


def own_server(hooks):
    """A webhook that is this API server: it is refused, not asked in a circle."""
    def act(cluster):
        client = {"url": f"https://{cluster.host}:{cluster.port}{MAPS}", "caBundle": hooks.bundle()}
        document = hooks.configuration("validating", "circle", client=client, operations=("CREATE",),
                                       objectSelector={"matchLabels": {"meets": "circle"}})
        cluster.admin.create(path_of(document), document)
        try:
            body = config_map("circle")
            body["metadata"]["labels"]["meets"] = "circle"
            code, text = cluster.ask(KEEPER, "POST", MAPS, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
            return (
                None
                if code == 500 and "failed calling webhook" in text and "certificate" not in text
                else f"{code}: {shown(text)}"
            )
        finally:
            cluster.admin.delete(f"{path_of(document)}/circle")
    return Act("a webhook that is this server", act)


def refuses_itself_away(hooks):
    """A webhook that refuses everything does not keep its own configuration."""
    def act(cluster):
        hooks.on("/everything", lambda review: deny(review, "never"))
        document = hooks.configuration("validating", "everything", resources=("*/*",), groups=("*",), **SELECT)
        cluster.admin.create(path_of(document), document)
        code, text = cluster.ask("admin", "DELETE", f"{VALIDATING}/everything")
        return None if code == 200 else f"{code}: {shown(text)}"
    return Act("a webhook that refuses everything", act)


def ill_meant(hooks):
    yield bounded_memory(meeting(hooks, "an answer of a gigabyte", gigabyte, failed("answer larger than")))
    yield bounded_memory(meeting(hooks, "a head without end", endless_head, failed("failed to call webhook")))
    yield meeting(hooks, "an answer that never ends", dripping(hooks), failed("context deadline exceeded"))
    yield meeting(hooks, "deep JSON", nested, failed("received invalid webhook response"))
    yield meeting(hooks, "an answer to somebody else", lambda review: {"uid": "1", "allowed": True},
                  failed("expected response.uid"))
    yield meeting(hooks, "credentials", allow, judge_credentials)
    yield bounded_memory(meeting(hooks, "a patch that doubles", grown, failed("Internal error occurred"),
                                 phase="mutating"))
    yield meeting(hooks, "a patch that fattens", fat, lambda code, text, _: None if code in (413, 422, 500)
                  else "taken", phase="mutating")
    for name, operation in {
        "another name": {"op": "replace", "path": "/metadata/name", "value": "kube-root-ca.crt"},
        "another namespace": {"op": "replace", "path": "/metadata/namespace", "value": "theirs"},
        "another kind": {"op": "replace", "path": "/kind", "value": "Secret"},
    }.items():
        yield meeting(hooks, f"a patch to {name}", lambda review, operation=operation: patch(review, operation),
                      lambda code, text, _: None if code in (400, 500) else "taken", phase="mutating")
    yield meeting(hooks, "a patch that is no patch",
                  lambda review: {**allow(review), "patchType": "JSONPatch", "patch": "!"},
                  failed("received invalid webhook response"), phase="mutating")
    yield meeting(hooks, "headers in warnings", split_header, lambda code, text, _: None if code == 201 else "refused")
    yield meeting(hooks, "a refusal that says success", lambda review: deny(review, "no", code=200),
                  lambda code, text, _: None if code == 400 else "not 400")
    yield meeting(hooks, "a code that is none", lambda review: deny(review, "no", code=10 ** 12), lambda code, text,
                  _: None if code == 400 else "not 400")
    yield redirected(hooks)
    yield judge_flood(hooks)
    yield own_server(hooks)
    yield refuses_itself_away(hooks)


def attempts(cluster):
    hooks = furnish(cluster)
    return [*strangers(hooks), *addresses(hooks), *ill_meant(hooks)]
