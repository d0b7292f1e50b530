"""Pods that their namespace does not allow, by users that may create pods there: by every request that creates or
extends a pod."""
import json

from attacks.attempt import Act, Ask, shown
from attacks.cluster import THEIRS, rule
from harness import pod, wait_for

WALLED = "/api/v1/namespaces/walled"
PODS, CALM = f"{WALLED}/pods", f"{WALLED}/pods/calm"
APPS = "/apis/apps/v1/namespaces/walled"
LABEL = "pod-security.kubernetes.io/enforce"
STANDARD = 'violates PodSecurity "restricted:latest"'
CREATOR, KEEPER = "walled-creator", "walled-keeper"
POWER = {"privileged": True}
CONTEXT = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def good(name, **spec):
    made = pod(name, ["true"], **{"securityContext": CONTEXT, **spec})
    made["spec"]["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False,
                                                        "capabilities": {"drop": ["ALL"]}}
    return made


def with_container(name, **security):
    made = good(name)
    made["spec"]["containers"][0]["securityContext"].update(security)
    return made


def furnish(cluster):
    cluster.admin.create("/api/v1/namespaces", {"metadata": {"name": "walled", "labels": {LABEL: "restricted"}}})
    wait_for("its account", lambda: cluster.admin.find(f"{WALLED}/serviceaccounts/default"))
    for who, rules in ((CREATOR, [rule("", "pods", "create")]),
                       (KEEPER, [rule("", "pods pods/ephemeralcontainers pods/status", "*"),
                                 rule("apps", "replicasets deployments daemonsets", "*")])):
        cluster.show(who, cluster.signed(f"/CN={who}"))
        cluster.grant(who, "walled", rules)
    cluster.admin.create(PODS, good("calm"))


def new_pods():
    """Each is good but for one thing."""
    wrong = {
        "with the node's network": good("taken", hostNetwork=True),
        "with the node's processes": good("taken", hostPID=True),
        "with a path of the node": good("taken", volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        "with a disk of another kind": good("taken", volumes=[{"name": "v", "nfs": {"server": "a", "path": "/"}}]),
        "that is privileged": with_container("taken", privileged=True, allowPrivilegeEscalation=True),
        "that gains rights": with_container("taken", allowPrivilegeEscalation=True),
        "with a capability": with_container("taken", capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
        "with a capability of another case": with_container("taken", capabilities={"drop": ["all"]}),
        "without a filter": with_container("taken", seccompProfile={"type": "Unconfined"}),
        "as root": with_container("taken", runAsUser=0),
        "that may be root": with_container("taken", runAsNonRoot=False),
        "with a sysctl": good("taken",
                              securityContext={**CONTEXT, "sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        "that says nothing": pod("taken", ["true"]),
    }
    for name, body in wrong.items():
        yield Ask(f"a pod {name}", CREATOR, "POST", PODS, body, says=STANDARD.replace('"', '\\"'),
                  absent=f"{PODS}/taken")
    power = wrong["that is privileged"]
    more = good("taken", initContainers=[{**power["spec"]["containers"][0], "name": "first"}])
    yield Ask("among its init containers", CREATOR, "POST", PODS, more, says="privileged (container",
              absent=f"{PODS}/taken")
    yield Ask("behind a good container", CREATOR, "POST", PODS,
              {**good("taken"), "spec": {**good("x")["spec"], "containers": [
        good("x")["spec"]["containers"][0], {**power["spec"]["containers"][0], "name": "second"}]}}, says="second",
              absent=f"{PODS}/taken")
    yield Ask("with a name of the server's", CREATOR, "POST", PODS, {**power, "metadata": {"generateName": "taken-"}},
              says="pods \\\"taken-")
    yield Ask("by a POST that is only tried", CREATOR, "POST", f"{PODS}?dryRun=All", power)
    yield Ask("by an apply that makes it", KEEPER, "PATCH", f"{PODS}/taken?fieldManager=x&force=true", power,
              type="apply", absent=f"{PODS}/taken")
    yield Ask("as YAML", CREATOR, "POST", PODS, json.dumps(power), type="yaml", absent=f"{PODS}/taken")
    yield Ask("by an administrator", "admin", "POST", PODS, power, absent=f"{PODS}/taken")
    yield Ask("of Windows, with Linux' rights", CREATOR, "POST", PODS,
              good("taken", os={"name": "windows"}, hostNetwork=True), want=(403, 422),
              absent=f"{PODS}/taken")
    yield Ask("that names an exempt runtime of nobody", CREATOR, "POST", PODS,
              {**power, "spec": {**power["spec"], "runtimeClassName": "privileged"}},
              absent=f"{PODS}/taken")
    yield Ask("that labels itself", CREATOR, "POST", PODS,
              {**power, "metadata": {"name": "taken", "labels": {LABEL: "privileged"},
        "annotations": {LABEL: "privileged"}}}, absent=f"{PODS}/taken")
    yield Ask("in a namespace that asks for nothing, where he may not", CREATOR, "POST", f"{THEIRS}/pods", power,
              absent=f"{THEIRS}/pods/taken")


def changes():
    """Changes of an existing pod."""
    debugger = [{"name": "e", "image": "x", "securityContext": POWER}]
    for method, type in (("PATCH", "strategic"), ("PATCH", "merge")):
        yield Ask(f"a container for debugging by {type}", KEEPER, method, f"{CALM}/ephemeralcontainers",
                  {"spec": {"ephemeralContainers": debugger}},
                  type=type, says="privileged (container", unchanged=CALM)
    yield Ask("a container for debugging by PUT", KEEPER, "PUT", f"{CALM}/ephemeralcontainers",
              lambda cluster: {**cluster.admin.get(CALM),
                               "spec": {**cluster.admin.get(CALM)["spec"], "ephemeralContainers": debugger}},
              says="privileged (container", unchanged=CALM)
    yield Ask("a container for debugging that says nothing", KEEPER, "PATCH", f"{CALM}/ephemeralcontainers",
              {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, type="strategic",
              says="allowPrivilegeEscalation", unchanged=CALM)
    yield Ask("a container for debugging by who may create pods", CREATOR, "PATCH", f"{CALM}/ephemeralcontainers",
              {"spec": {"ephemeralContainers": debugger}}, type="strategic", unchanged=CALM)
    for name, body in (("the node's network", {"spec": {"hostNetwork": True}}),
                       ("root", {"spec": {"securityContext": {"runAsUser": 0}}}),
                       ("privileges", {"spec": {"containers": [{"name": "main", "securityContext": POWER}]}}),
                       ("another container",
                        {"spec": {"containers": [{"name": "more", "image": "x", "securityContext": POWER}]}}),
                       ("an init container",
                        {"spec": {"initContainers": [{"name": "more", "image": "x", "securityContext": POWER}]}}),
                       ("a path of the node", {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}})):
        yield Ask(f"a pod gets {name}", KEEPER, "PATCH", CALM, body, type="strategic", want=(403, 422), unchanged=CALM)
        yield Ask(f"a pod gets {name} through its status", KEEPER, "PATCH", f"{CALM}/status", body, type="strategic",
                  want=(200, 403, 422), unchanged=CALM)


def labels():
    """Without a right to namespaces the standard stays."""
    for who in (CREATOR, KEEPER, "n1", "alice", "nobody"):
        for path in (WALLED, f"{WALLED}/status", f"{WALLED}/finalize"):
            yield Ask(f"the label, through {path.rsplit('/', 1)[1]} by {who}", who, "PUT" if path.endswith("finalize")
                      else "PATCH", path,
                      {"apiVersion": "v1", "kind": "Namespace",
                       "metadata": {"name": "walled", "labels": {LABEL: None}}},
                      type="json" if path.endswith("finalize") else "merge", want=(401, 403), unchanged=WALLED)
    yield Ask("a namespace of his own", KEEPER, "POST", "/api/v1/namespaces", {"metadata": {"name": "taken"}},
              absent="/api/v1/namespaces/taken")
    yield Ask("a wrong level, even by an administrator", "admin", "PATCH", WALLED,
              {"metadata": {"labels": {LABEL: "none"}}}, type="merge", want=422,
              says="must be one of privileged, baseline, restricted", unchanged=WALLED)


def by_way_of(kind, plural):
    """A workload may be created, but its pods are refused, whichever user or controller creates them."""
    def act(cluster):
        path = f"{APPS}/{plural}"
        power = with_container("x", privileged=True, allowPrivilegeEscalation=True)
        body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "maker"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": power["spec"]}}}
        code, text = cluster.ask(KEEPER, "POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        if code != 201:
            return f"{code}: {shown(text)}"
        made = json.loads(text)
        try:
            owner = {"apiVersion": "apps/v1", "kind": kind, "name": "maker", "uid": made["metadata"]["uid"],
                     "controller": True}
            its = {**power, "metadata": {"generateName": "maker-", "labels": {"a": "b"}, "ownerReferences": [owner]}}
            return Ask("", "admin", "POST", PODS, its, says="privileged (container").run(cluster)
        finally:
            cluster.admin.delete(f"{path}/maker", 0)
    return Act(f"a pod by way of a {kind}", act)


def thousand(cluster):
    """The refusal of a large pod is small."""
    made = pod("taken", ["true"])
    made["spec"]["containers"] = [{"name": f"a-rather-long-name-of-a-container-that-says-little-{i}", "image": "x"}
                                  for i in range(1000)]
    code, text = cluster.ask(CREATOR, "POST", PODS, json.dumps(made).encode(), {"Content-Type": "application/json"})
    if code != 403 or STANDARD.replace('"', '\\"') not in text:
        return f"{code}: {shown(text)}"
    return None if len(text) < 20_000 else f"{len(text)} bytes"


def mirrored(cluster):
    """A node's word that a pod runs already is none about what it may."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": cluster.uid("/api/v1/nodes/n1"),
             "controller": True}
    made = good("taken", hostNetwork=True, nodeName="n1")
    made["metadata"].update({"annotations": {"kubernetes.io/config.mirror": "1"}, "ownerReferences": [owner]})
    return Ask("", "n1", "POST", PODS, made, says=STANDARD.replace('"', '\\"'), absent=f"{PODS}/taken").run(cluster)


def attempts(cluster):
    furnish(cluster)
    ready = Ask("", CREATOR, "POST", PODS, good("plain"), want=201).run(cluster)
    assert ready is None, f"a good pod: {ready}"
    return [*new_pods(), *changes(), *labels(),
            *[by_way_of(*each) for each in (("ReplicaSet", "replicasets"), ("Deployment", "deployments"),
        ("DaemonSet", "daemonsets"))], Act("a pod of 1,000 containers", thousand),
            Act("a mirror pod of a node", mirrored)]
