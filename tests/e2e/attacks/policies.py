"""Admission policies: written without the right to write them, to read forbidden objects through them, and to keep the
server busy."""
import json
import time

from attacks.attempt import Act, Ask, shown
from attacks.cluster import OURS, rule
from process_memory import resident
from webhook_server import GROUP

POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
MAPS = f"{OURS}/configmaps"
# rights in a namespace; right to read; rights on policies, and on ConfigMaps in "ours"
KEEPER, READER, AUTHOR = "policy-keeper", "policy-reader", "policy-author"
SELECT = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ours"}}}
NUMBERS = "[" + ",".join(map(str, range(60))) + "]"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]


def policy(name, expression="true", rules=None, **spec):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": rules or RULES, **SELECT}, "validations": [{"expression": expression}],
        **spec}}


def binding(name, **spec):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"], **spec}}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def furnish(cluster):
    for who in (KEEPER, READER, AUTHOR):
        cluster.show(who, cluster.signed(f"/CN={who}"))
    cluster.grant(KEEPER, "ours", [rule("", "configmaps", "*"), rule("admissionregistration.k8s.io", "*", "*")])
    cluster.grant(READER, None, [rule("admissionregistration.k8s.io", "*", "get list watch")])
    cluster.grant(AUTHOR, None, [rule("admissionregistration.k8s.io", "*", "*")])
    cluster.grant(AUTHOR, "ours", [rule("", "configmaps", "get list")])


def strangers():
    """Only who may write policies says what others may write: they are of the cluster, so a grant in a namespace is
    none.
    """
    for who in ("nobody", "alice", "n1", "creator", "role-writer", KEEPER, READER):
        for what, path, body in (("policy", POLICIES, policy("taken")), ("binding", BINDINGS, binding("taken"))):
            yield Ask(f"{who} makes a {what}", who, "POST", path, body, want=(401, 403), absent=f"{path}/taken")
            yield Ask(f"{who} applies a {what}", who, "PATCH", f"{path}/taken?fieldManager=x", body, type="apply",
                      want=(401, 403), absent=f"{path}/taken")
            yield Ask(f"{who} removes every {what}", who, "DELETE", path, want=(401, 403))


def parameters(cluster):
    """A policy reads no object for its author that the author may not read."""
    for kind in ("Secret", "ConfigMap"):
        yield Ask(f"a policy over {kind}s", AUTHOR, "POST", POLICIES,
                  policy("taken", paramKind={"apiVersion": "v1", "kind": kind}), want=422,
                  says="permission on all objects of the referenced paramKind", absent=f"{POLICIES}/taken")
    yield Ask("a policy over a kind that is not there", AUTHOR, "POST", POLICIES,
              policy("taken", paramKind={"apiVersion": "v1", "kind": "Sekret"}),
              want=422, says="permission on all objects of the referenced paramKind", absent=f"{POLICIES}/taken")
    for name, kind in (("maps", "ConfigMap"), ("secrets", "Secret")):
        cluster.admin.create(POLICIES, policy(f"of-{name}", paramKind={"apiVersion": "v1", "kind": kind}))
    for name, target, ref in (
        ("a secret", "of-secrets", {"name": "a", "namespace": "ours"}),
        ("maps of others", "of-maps", {"name": "a", "namespace": "theirs"}),
        ("maps of all", "of-maps", {"name": "a"}),
        ("all maps of others", "of-maps", {"selector": {}, "namespace": "theirs"}),
        ("what a later policy is over", "to-come", {"name": "a", "namespace": "ours"}),
    ):
        yield Ask(f"a binding to {name}", AUTHOR, "POST", BINDINGS, {**binding("taken"), "spec": {
            "policyName": target, "validationActions": ["Deny"],
            "paramRef": {**ref, "parameterNotFoundAction": "Deny"}}}, want=422,
            says="spec.paramRef: Forbidden", absent=f"{BINDINGS}/taken")
    own = {"name": "a", "namespace": "ours", "parameterNotFoundAction": "Allow"}
    yield Ask("a binding to a map of one's own", AUTHOR, "POST", BINDINGS, binding("of-maps", paramRef=own), want=201)
    yield Ask("which is turned to others", AUTHOR, "PATCH", f"{BINDINGS}/of-maps",
              {"spec": {"paramRef": {"namespace": "theirs"}}}, type="merge",
              want=422, says="spec.paramRef: Forbidden", unchanged=f"{BINDINGS}/of-maps")
    yield Ask("which is turned to another policy", AUTHOR, "PATCH", f"{BINDINGS}/of-maps",
              {"spec": {"policyName": "of-secrets"}}, type="merge",
              want=422, says="spec.paramRef: Forbidden", unchanged=f"{BINDINGS}/of-maps")


def bombs():
    """Policies that are refused even from an administrator."""
    for name, expression, says in (
        ("that is deep", "(" * 20_000, "recursion limit exceeded"),
        ("that is wide", "object" + ".a" * 40_000, "max recursion depth exceeded"),
        ("that is long", "true" + " " * 200_000 + "|| true", "exceeds limit"),
        ("with a pattern that explodes", "'a'.matches('((((a{100}){100}){100}){100})')", "invalid matches argument"),
        ("of no bool", "object.a", "must evaluate to bool"),
        ("of a variable that is not there", "variables.a", "undeclared reference to 'variables'"),
    ):
        yield Ask(f"a validation {name}", "admin", "POST", POLICIES, policy("taken", expression), want=422, says=says,
                  absent=f"{POLICIES}/taken")
        # a variable may be anything, and may name those before it
        if name not in ("of no bool", "of a variable that is not there"):
            yield Ask(f"a variable {name}", "admin", "POST", POLICIES,
                      policy("taken", variables=[{"name": "v", "expression": expression}]), want=422,
                      says=says, absent=f"{POLICIES}/taken")
    yield Ask("a variable of a variable that is not there", "admin", "POST", POLICIES,
              policy("taken", variables=[{"name": "v", "expression": "variables.a"}]),
              want=422, says="undefined field 'a'", absent=f"{POLICIES}/taken")
    yield Ask("a variable of itself", "admin", "POST", POLICIES,
              policy("taken", variables=[{"name": "v", "expression": "variables.v"}]),
              want=422, says="undefined field 'v'", absent=f"{POLICIES}/taken")
    for name, first in (("calls", "true"), ("lists", "1")):
        chain = [{"name": "v0", "expression": first}]
        for i in range(1, 100):
            inner = f"variables.v{i - 1}"
            chain.append({"name": f"v{i}", "expression": "dyn(" * 240 + inner + ")" * 240 if name == "calls"
                          else "[" * 240 + inner + "]" * 240})
        yield Ask(f"a chain of 100 variables of 240 {name} each", "admin", "POST", POLICIES,
                  policy("taken", variables=chain), want=422,
                  says="recursion limit exceeded", absent=f"{POLICIES}/taken")
    yield Ask("21 notes", "admin", "POST", POLICIES,
              policy("taken", auditAnnotations=[{"key": f"k{i}", "valueExpression": "null"} for i in range(21)]),
              want=422, says="must not have more than 20", absent=f"{POLICIES}/taken")


def busy(name, document, body, says, seconds=20):
    """One ConfigMap past a policy that costs much: it is refused in time, and the server has not grown."""
    def act(cluster):
        cluster.admin.create(POLICIES, document)
        cluster.admin.create(BINDINGS, binding(document["metadata"]["name"]))
        before, began = resident(cluster.server), time.monotonic()
        try:
            code, text = cluster.ask(KEEPER, "POST", MAPS, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
        finally:
            cluster.admin.delete(f"{BINDINGS}/{document['metadata']['name']}")
            cluster.admin.delete(f"{POLICIES}/{document['metadata']['name']}")
        took, grown = time.monotonic() - began, resident(cluster.server) - before
        if code != 422 or says not in text:
            return f"{code}: {shown(text)}"
        if took > seconds:
            return f"it took {took:.1f} s"
        return f"the server has grown by {grown} bytes" if grown > 128 << 20 else None
    return Act(name, act)


def loops():
    huge = config_map("huge", **{f"key-{i:05}": "x" * 20 for i in range(9_000)})
    over_all = "object.data.all(a, object.data.all(b, object.data[a] == object.data[b] || a != b))"
    dear = f"{NUMBERS}.all(a, {NUMBERS}.all(b, {NUMBERS}.all(c, {NUMBERS}.all(d, true))))"
    yield busy("a loop over a huge object", policy("loop", over_all), huge, "cost limit exceeded")
    yield busy("many loops", policy("loops", validations=[{"expression": dear}] * 500), config_map("small"),
               "running out of cost budget")
    yield busy("a loop in a variable", policy("deep", variables=[{"name": "v", "expression": dear}], validations=[
        {"expression": "variables.v"}] * 500), config_map("small"), "running out of cost budget")
    words = "'" + "x" * 10_000 + "'"
    grows = (
        f"[{words}].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a +"
        " a).map(a, a + a).map(a, a + a)"
    )
    yield busy("a text that grows",
               policy("grows", f"size({grows}.map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a)) == 0"),
               config_map("small"), "")


def kept_out():
    """A policy that refuses everything does not keep itself."""
    def act(cluster):
        everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
        cluster.admin.create(POLICIES, policy("everything", "false", rules=everything))
        cluster.admin.create(BINDINGS, binding("everything"))
        refused, _ = cluster.ask(KEEPER, "POST", MAPS, json.dumps(config_map("any")).encode(),
                                 {"Content-Type": "application/json"})
        for path in (BINDINGS, POLICIES):
            code, text = cluster.ask("admin", "DELETE", f"{path}/everything")
            if code != 200:
                return f"{code}: {shown(text)}"
        return None if refused == 422 else f"a ConfigMap: {refused}"
    return Act("a policy that refuses everything", act)


def attempts(cluster):
    furnish(cluster)
    return [*strangers(), *parameters(cluster), *bombs(), *loops(), kept_out()]
