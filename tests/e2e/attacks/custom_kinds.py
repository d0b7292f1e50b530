"""Definitions of custom kinds: by users that may not write them, too large, too deep, too many, in place of what is
built in, and with expressions that
cost too much."""
import json

from attacks.attempt import Act, Ask
from attacks.cluster import rule
from harness import wait_for

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# rights in a namespace; rights on custom objects there, but not on their definition
KEEPER, USER = "kind-keeper", "kind-user"
THINGS = "/apis/attacks.example.com/v1/namespaces/ours/things"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural, schema=None, group="attacks.example.com", kind=None, **version):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"plural": plural, "kind": kind or plural.capitalize()},
                     "versions": [{"name": "v1", "served": True, "storage": True,
                                   "schema": {"openAPIV3Schema": schema or OPEN}, **version}]}}


def thing(name, **more):
    return {"apiVersion": "attacks.example.com/v1", "kind": "Thing", "metadata": {"name": name}, **more}


def furnish(cluster):
    for who in (KEEPER, USER):
        cluster.show(who, cluster.signed(f"/CN={who}"))
    cluster.grant(KEEPER, "ours", [rule("apiextensions.k8s.io", "*", "*"), rule("attacks.example.com", "*", "*")])
    cluster.grant(USER, "ours", [rule("attacks.example.com", "things", "get list watch create")])
    code, answer = cluster.json("admin", "POST", DEFINITIONS,
                                definition("things", kind="Thing", subresources={"status": {}}, schema={
        "type": "object", "properties": {"spec": {"type": "object", "properties": {
            "words": {"type": "string", "pattern": "^(a+)+$"},
            "list": {"type": "array", "maxItems": 1000, "items": {"type": "integer"},
                     "x-kubernetes-validations": [{"rule": "self.all(a, self.exists(b, a == b))"}]}}},
                                         "status": OPEN}}))
    assert code == 201, answer
    path = f"{DEFINITIONS}/things.attacks.example.com"
    wait_for("the kind", lambda: [each for each in cluster.admin.get(path).get("status", {}).get("conditions") or []
                                  if (each["type"], each["status"]) == ("Established", "True")])


def strangers():
    for who in ("nobody", "alice", "n1", "editor", "role-writer", KEEPER, USER):
        body = definition("taken")
        path = f"{DEFINITIONS}/taken.attacks.example.com"
        yield Ask(f"{who} defines a kind", who, "POST", DEFINITIONS, body, want=(401, 403), absent=path)
        yield Ask(f"{who} applies a definition", who, "PATCH", f"{path}?fieldManager=x", body, type="apply",
                  want=(401, 403), absent=path)
        yield Ask(f"{who} removes all definitions", who, "DELETE", DEFINITIONS, want=(401, 403),
                  unchanged=f"{DEFINITIONS}/things.attacks.example.com")
        yield Ask(f"{who} establishes one", who, "PATCH", f"{DEFINITIONS}/things.attacks.example.com/status",
                  {"status": {"conditions": []}}, type="merge",
                  want=(401, 403), unchanged=f"{DEFINITIONS}/things.attacks.example.com")


def few_rights():
    """Rights to a custom kind are rights to it alone, verb by verb."""
    for who, want in (("nobody", (401, 403)), ("alice", 403), ("n1", 403), ("editor", 403)):
        yield Ask(f"{who} reads custom objects", who, "GET", THINGS, want=want)
        yield Ask(f"{who} makes a custom object", who, "POST", THINGS, thing("taken"), want=want,
                  absent=f"{THINGS}/taken")
    yield Ask("who may create may not remove", USER, "DELETE", THINGS)
    yield Ask("who may create may not write the status", USER, "PATCH", f"{THINGS}/taken/status", {"status": {"a": 1}},
              type="merge")
    yield Ask("who may create may not patch", USER, "PATCH", f"{THINGS}/taken", {"spec": {}}, type="merge")
    yield Ask("who may in one namespace may not in all", USER, "GET", "/apis/attacks.example.com/v1/things")
    yield Ask("who may in one namespace may not in another", USER, "GET",
              "/apis/attacks.example.com/v1/namespaces/theirs/things")
    yield Ask("a custom object that claims another namespace", USER, "POST", THINGS,
              {**thing("taken"), "metadata": {"name": "taken", "namespace": "theirs"}},
              want=400)


def shadows():
    for group, plural, kind in (("rbac.authorization.k8s.io", "roles", "Role"),
                                ("rbac.authorization.k8s.io", "others", "Other"),
                                ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition"),
                                ("authentication.k8s.io", "tokenreviews", "TokenReview"),
                                ("apps", "deployments", "Deployment"),
                                ("", "secrets", "Secret"), ("metrics.k8s.io", "pods", "PodMetrics")):
        yield Ask(f"a kind {plural} in the group \"{group}\"", "admin", "POST", DEFINITIONS,
                  definition(plural, group=group, kind=kind), want=(403, 422),
                  absent=f"{DEFINITIONS}/{plural}.{group}" if group else None)
    yield Ask("a kind whose name leaves its folder", "admin", "POST", DEFINITIONS, definition("../minions"),
              want=(400, 422))
    yield Ask("a group that leaves its folder", "admin", "POST", DEFINITIONS,
              definition("things", group="../..example.com"), want=(400, 422))


def nested(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def heavy_schemas():
    def refused(name, schema, want=(413, 422), **more):
        return Ask(name, "admin", "POST", DEFINITIONS, definition("taken", schema, **more), want=want,
                   absent=f"{DEFINITIONS}/taken.attacks.example.com")
    yield refused("a schema 101 deep", nested(101))
    yield Ask("a schema 5,000 deep", "admin", "POST", DEFINITIONS,
              json.dumps(definition("taken", {"type": "object"})).replace(
        '{"type": "object"}', '{"type":"object","properties":{"a":' * 5000 + '{"type":"string"}' + "}}" * 5000),
              want=(400, 413, 422))
    yield refused("a schema of 200,000 values",
                  {"type": "object", "properties": {f"p{i}": {"type": "string", "maxLength": 5}
                                                    for i in range(70_000)}})
    yield refused("a schema of two megabytes", {"type": "object", "description": "x" * 2_000_000})
    yield refused("a pattern that explodes",
                  {"type": "object",
                   "properties": {"a": {"type": "string", "pattern": "((((a{100}){100}){100}){100})"}}})
    yield refused("a rule that is no expression", {"type": "object", "x-kubernetes-validations": [{"rule": "self.("}]})
    yield refused("a schema that refers to another", {"$ref": "http://127.0.0.1/schema"})


def conversion_addresses():
    """Addresses of conversion webhooks that even an administrator does not configure."""
    for name, client in {
        "plain HTTP": {"url": "http://127.0.0.1/"}, "a file": {"url": "file:///etc/passwd"},
        "credentials": {"url": "https://a:b@127.0.0.1/"},
        "a query": {"url": "https://127.0.0.1/?a=b"}, "a header": {"url": "https://127.0.0.1/ HTTP/1.1\r\nX: y"},
        "nothing": {},
        "a path that leaves": {"service": {"namespace": "a", "name": "b", "path": "/../x"}},
    }.items():
        body = definition("taken")
        body["spec"]["conversion"] = {"strategy": "Webhook",
                                      "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}
        yield Ask(f"a conversion webhook with {name}", "admin", "POST", DEFINITIONS, body, want=422,
                  absent=f"{DEFINITIONS}/taken.attacks.example.com")


def many_versions():
    body = definition("taken")
    body["spec"]["versions"] = [{**body["spec"]["versions"][0], "name": f"v{i + 1}", "storage": i == 0}
                                for i in range(33)]
    yield Ask("33 versions", "admin", "POST", DEFINITIONS, body, want=(413, 422),
              absent=f"{DEFINITIONS}/taken.attacks.example.com")


def heavy_objects():
    yield Ask("a text that a bad pattern would take long for", USER, "POST", THINGS,
              thing("taken", spec={"words": "a" * 30_000 + "b"}), want=422,
              absent=f"{THINGS}/taken")
    yield Ask("a list that a rule would take long for", USER, "POST", THINGS,
              thing("taken", spec={"list": list(range(1000, 0, -1))}), want=(201, 422))
    yield Ask("an object of a million values", USER, "POST", THINGS,
              json.dumps(thing("taken2", status=[0] * 1_000_000)), want=413, absent=f"{THINGS}/taken2")
    yield Ask("an object 2,000 deep", USER, "POST", THINGS,
              json.dumps(thing("taken2")).replace('"Thing"', '"Thing","status":{"a":' + "[" * 2000 + "]" * 2000 + "}"),
              want=400, absent=f"{THINGS}/taken2")
    yield Ask("protobuf", USER, "POST", THINGS, b"k8s\x00\x0a\x00", type="protobuf", want=415)
    yield Ask("a strategic patch", "admin", "PATCH", f"{THINGS}/taken", {"spec": {}}, type="strategic", want=415)


def crowd(cluster):
    """Five hundred are held, the thousandth is not; the server stays as quick as it was, and gives them all back."""
    codes = [cluster.json("admin", "POST", DEFINITIONS, definition(f"many{i}", group="many.example.com"))[0]
             for i in range(600)]
    held = codes.count(201)
    problem = None
    if not 490 <= held <= 500 or codes[-1] != 403:
        problem = f"{held} were made, the last was answered {codes[-1]}"
    elif cluster.ask("admin", "GET", "/openapi/v2")[0] != 200 or cluster.ask("admin", "GET", "/apis")[0] != 200:
        problem = "discovery fails"
    cluster.ask("admin", "DELETE", DEFINITIONS)
    return problem


def attempts(cluster):
    furnish(cluster)
    wait_for("the kind", lambda: cluster.ask("admin", "GET", THINGS)[0] == 200)
    return [*strangers(), *few_rights(), *shadows(), *heavy_schemas(), *conversion_addresses(), *many_versions(),
            *heavy_objects(), Act("a thousand definitions", crowd)]
