"""Patches that grow, that write past an end, that change immutable fields, or that claim fields of another manager."""
import json

from attacks.attempt import Act, Ask, shown
from attacks.cluster import OURS

MAPS = f"{OURS}/configmaps"
TARGET = f"{MAPS}/target"
SETS = "/apis/apps/v1/namespaces/ours/replicasets"


def patch(name, body, kind="jsonpatch", want=422, path=TARGET, by="pod-admin", **more):
    more.setdefault("unchanged", path.split("?")[0])
    return Ask(name, by, "PATCH", path, body, type=kind, want=want, **more)


def json_patches():
    def one(op, path, **more):
        return [{"op": op, "path": path, **more}]
    for name, body in (
            ("test that fails", one("test", "/data/a", value="other")),
            ("test of what is not there", one("test", "/data/none", value="1")),
            ("test that fails behind a change", [
                {"op": "replace", "path": "/data/a", "value": "2"}, {"op": "test", "path": "/data/a", "value": "1"}]),
            ("remove of what is not there", one("remove", "/data/none")),
            ("replace of what is not there", one("replace", "/none/a", value="1")),
            ("move of what is not there", one("move", "/data/b", **{"from": "/data/none"})),
            ("copy of what is not there", one("copy", "/data/b", **{"from": "/none"})),
            ("move into itself", one("move", "/metadata/labels/x", **{"from": "/metadata"})),
            ("add below text", one("add", "/data/a/b", value="1")),
            ("index 2^63", one("add", "/metadata/finalizers/9223372036854775808", value="x")),
            ("index 2^64", one("add", "/metadata/finalizers/18446744073709551616", value="x")),
            ("index 2^31", one("add", "/metadata/finalizers/2147483648", value="x")),
            ("index of 10,000 digits", one("add", "/metadata/finalizers/" + "9" * 10_000, value="x")),
            ("index behind the end", one("add", "/metadata/finalizers/7", value="x.y/z")),
            ("index that is a word", one("add", "/metadata/finalizers/a", value="x.y/z")),
            ("index with blanks", one("add", "/metadata/finalizers/ 0", value="x.y/z")),
            ("index in hexadecimal", one("add", "/metadata/finalizers/0x0", value="x.y/z")),
            ("remove of the end", one("remove", "/metadata/finalizers/-")),
            ("remove behind the end", one("remove", "/metadata/finalizers/1")),
            ("metadata removed", one("remove", "/metadata")),
            ("everything replaced by null", one("replace", "", value=None)),
            ("everything replaced by a list", one("replace", "", value=[])),
            ("everything replaced by text", one("replace", "", value="x")), ("everything removed", one("remove", ""))):
        yield patch(f"JSON patch: {name}", body, want=(400, 422, 500) if "removed" in name or "replaced" in name
                    else 422)
    for name, body in (
            ("an object", {"op": "remove", "path": "/data"}), ("a number", 1), ("null", None),
            ("operations that are text", ["remove"]),
            ("operations that are lists", [[]]),
            ("no operation", [{"path": "/data"}]), ("an unknown operation", one("drop", "/data")),
            ("no path", [{"op": "remove"}]),
            ("no from", one("copy", "/data/b")),
            ("no value to test", one("test", "/data/a")), ("a path without a slash", one("remove", "data")),
            ("a path that is a list", one("remove", ["data"])),
            ("a path that climbs", one("remove", "/data/../metadata")),
            ("an escape that does not exist", one("remove", "/data/~2a"))):
        raw = "null" if body is None else "1" if body == 1 else body
        yield patch(f"JSON patch that is {name}" if "a" == name[:1] or name == "null" else f"JSON patch with {name}",
                    raw, want=(400, 422))
    grows = [{"op": "add", "path": "/data/x", "value": "x" * 1000}] + [{"op": "copy", "from": "/data",
        "path": f"/metadata/annotations/a{n}"} for n in range(30)]
    yield patch("JSON patch: copies of everything that came before", grows, want=(400, 413, 422))
    doubling = [{"op": "add", "path": "/metadata/annotations",
                 "value": {"a": "b"}}] + [{"op": "copy", "from": "/metadata/annotations",
        "path": f"/metadata/annotations/{n}"} for n in range(60)]
    yield patch("JSON patch: sixty copies that double", doubling, want=(400, 413, 422))
    yield patch("JSON patch: 10,001 operations", [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001, want=413)
    yield patch("JSON patch: a path 100,000 deep", one("add", "/data" + "/a" * 100_000, value="1"), want=(400, 422))
    yield patch("JSON patch: values 20,000 deep",
                '[{"op":"add","path":"/data/x","value":' + "[" * 20_000 + "]" * 20_000 + "}]", want=(400, 422))


def merge_patches():
    for name, body in (("a list", []), ("text", '"x"'), ("a number", "1"), ("null", "null"), ("nothing", ""),
                       ("half an object", '{"data":'),
            ("lists 100,000 deep", '{"data":' + "[" * 100_000),
                       ("objects 50,000 deep", '{"data":' * 50_000 + "1" + "}" * 50_000)):
        yield patch(f"merge patch that is {name}", body, "merge", want=(400, 422))
        yield patch(f"strategic patch that is {name}", body, "strategic", want=(400, 422))
    for name, body in (("data that is a list", {"data": ["a"]}), ("data that is a number", {"data": 1}),
            ("a value that is an object", {"data": {"a": {"b": "c"}}}),
                       ("labels that are text", {"metadata": {"labels": "x"}}),
                       ("a label that is no label", {"metadata": {"labels": {"a b": "c"}}}),
                       ("metadata that is text", {"metadata": "x"}),
                       ("finalizers without a domain", {"metadata": {"finalizers": ["x"]}}),
                       ("an owner without a uid",
                        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]}})):
        yield patch(f"merge patch with {name}", body, "merge", want=(400, 422))
    yield patch("a patch of no kind", "{}", "application/json", want=415)
    yield patch("a patch of another kind", "{}", "application/x-patch", want=415)


def strategic_patches():
    path = f"{SETS}/target"
    for name, body in (
            ("an unknown directive",
             {"spec": {"template": {"spec": {"containers": [{"$patch": "explode", "name": "c"}]}}}}),
            ("a directive that is a list", {"spec": {"$patch": ["replace"]}}),
            ("a list member without its key", {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}),
            ("a list member that is text", {"spec": {"template": {"spec": {"containers": ["c"]}}}}),
            ("$retainKeys that leave a key out",
             {"spec": {"template": {"spec": {"$retainKeys": ["volumes"], "containers": []}}}}),
            ("$retainKeys that are text", {"spec": {"$retainKeys": "x"}}),
            ("$setElementOrder that is text", {"spec": {"template": {"spec": {"$setElementOrder/containers": "c"}}}}),
            ("$setElementOrder of something else", {"spec": {"template": {"spec": {
                "$setElementOrder/containers": [{"name": "d"}], "containers": [{"name": "c", "image": "y"}]}}}}),
            ("$deleteFromPrimitiveList that is text", {"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}}),
            ("$patch: delete of everything", {"$patch": "delete"}),
            ("$patch: delete of all containers",
             {"spec": {"template": {"spec": {"containers": [{"$patch": "delete", "name": "c"}]}}}}),
            ("$patch: replace of the spec", {"spec": {"$patch": "replace", "replicas": 1}})):
        yield patch(f"strategic patch: {name}", body, "strategic", want=(400, 422, 500), path=path)


def what_nobody_may_change():
    """The server's own fields: refused, or left as they were."""
    def left(name, path, kind, body, keys, by="pod-admin", allowed=(200, 400, 403, 409, 422)):
        def act(cluster):
            before = cluster.admin.get(path.replace("/status", ""))
            code, text = cluster.ask(by, "PATCH", path + ("?fieldManager=x&force=true" if kind == "apply" else ""),
                                     json.dumps(body).encode(),
                                     {"Content-Type": {"merge": "application/merge-patch+json",
                                                       "strategic": "application/strategic-merge-patch+json",
                                                       "jsonpatch": "application/json-patch+json",
                                                       "apply": "application/apply-patch+yaml"}[kind]})
            if code not in allowed:
                return f"{code}: {shown(text)}"
            after = cluster.admin.get(path.replace("/status", ""))
            changed = [key for key in keys if member(before, key) != member(after, key)]
            return f"{code}, and {changed[0]} became {member(after, changed[0])!r}" if changed else None
        return Act(name, act)

    def member(document, path):
        for part in path.split("."):
            document = document.get(part) if isinstance(document, dict) else None
        return document
    own = {"uid": "00000000-0000-0000-0000-000000000000", "creationTimestamp": "2000-01-01T00:00:00Z",
           "deletionTimestamp": "2000-01-01T00:00:00Z",
        "generation": 99, "name": "other",
           "namespace": "theirs", "resourceVersion": "1", "selfLink": "/x", "deletionGracePeriodSeconds": 1,
           "generateName": "x"}
    for key, value in own.items():
        if key in ("selfLink", "generateName"):
            continue
        yield left(f"metadata.{key} by merge patch", f"{SETS}/target", "merge", {"metadata": {key: value}},
                   [f"metadata.{key}", "metadata.uid"])
        yield left(f"metadata.{key} by JSON patch", f"{SETS}/target", "jsonpatch",
                   [{"op": "add", "path": f"/metadata/{key}", "value": value}],
            [f"metadata.{key}", "metadata.uid"])
    yield left("metadata.uid by apply", f"{SETS}/target", "apply", {"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "target", "uid": own["uid"]}}, ["metadata.uid"])
    yield left("status by the main resource", f"{SETS}/target", "merge",
               {"status": {"replicas": 99, "readyReplicas": 99}}, ["status"])
    yield left("status by a strategic patch of the main resource", f"{OURS}/pods/patched", "strategic",
        {"status": {"phase": "Succeeded", "podIP": "10.0.0.1"}}, ["status"])
    yield left("status by apply of the main resource", f"{SETS}/target", "apply",
               {"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "target"}, "status": {"replicas": 9}}, ["status"])
    yield left("spec by the status", f"{OURS}/pods/patched/status", "merge",
               {"spec": {"nodeName": "n2", "hostNetwork": True}}, ["spec"])
    yield left("an owner by the status", f"{OURS}/pods/patched/status", "merge", {"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": own["uid"]}]}}, ["metadata.ownerReferences", "spec"])
    yield left("a node's providerID, changed", "/api/v1/nodes/n1", "merge", {"spec": {"podCIDR": "10.0.0.0/8"}},
               ["metadata.uid"], by="admin")
    for name, spec in (("nodeName", {"nodeName": "n2"}), ("serviceAccountName", {"serviceAccountName": "spare"}),
            ("hostNetwork", {"hostNetwork": True}), ("hostPID", {"hostPID": True}),
                       ("priority", {"priority": 2_000_001_000}), ("restartPolicy", {"restartPolicy": "Never"}),
                       ("securityContext", {"securityContext": {"runAsUser": 0}}),
                       ("tolerations taken away", {"tolerations": []}),
                       ("volumes", {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
                       ("a deadline of 2^63", {"activeDeadlineSeconds": 2 ** 63}),
                       ("imagePullSecrets", {"imagePullSecrets": [{"name": "mounted"}]}),
                       ("a longer grace", {"terminationGracePeriodSeconds": 9999})):
        yield patch(f"pod spec: {name}", {"spec": spec}, "merge", path=f"{OURS}/pods/patched", want=(400, 403, 422))
    yield patch("pod spec: a deadline beyond 32 bits", {"spec": {"activeDeadlineSeconds": 2 ** 31}}, "merge",
                path=f"{OURS}/pods/patched")
    for name, container in (("privileged", {"securityContext": {"privileged": True}}),
                            ("a command", {"command": ["id"]}),
            ("a variable", {"env": [{"name": "A", "value": "b"}]}),
                            ("another name", {"name": "other"}),
                            ("a limit", {"resources": {"limits": {"memory": "1Ti"}}}),
                            ("a mount", {"volumeMounts": [{"name": "v", "mountPath": "/"}]})):
        yield patch(f"container of a pod: {name}", {"spec": {"containers": [{"name": "main", **container}]}},
                    "strategic",
            path=f"{OURS}/pods/patched", want=422)
    yield patch("a container added to a pod", {"spec": {"containers": [{"name": "second", "image": "x"}]}}, "strategic",
                path=f"{OURS}/pods/patched",
        want=422)
    yield patch("debug containers taken for containers",
                {"spec": {"ephemeralContainers": [{"name": "d", "image": "x"}]}}, "strategic",
        path=f"{OURS}/pods/patched", want=422)


def applied(cluster):
    """Server-side apply: fields of others stay theirs."""
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "target"}, "data": {"a": "2"}}

    def apply(name, body, query="fieldManager=mallory", want=409, path=TARGET):
        return patch(f"apply: {name}", body, "apply", want=want, path=f"{path}?{query}")
    yield apply("a field of somebody else", document)
    yield apply("a field of somebody else, with the same name in another spelling", document, "fieldManager=OWNER")
    yield apply("a field of somebody else, not forced", document, "fieldManager=mallory&force=false")
    yield apply("no manager", document, "", (400, 422))
    yield apply("a manager of 129 letters", document, "fieldManager=" + "a" * 129, 422)
    yield apply("a manager with a line end", document, "fieldManager=a%0ab", 422)
    yield apply("managedFields of its own", {**document, "metadata": {"name": "target",
        "managedFields": [{"manager": "owner", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:a": {}}}}]}}, want=(400, 422))
    yield apply("another kind", {**document, "kind": "Secret"}, want=400)
    yield apply("another version", {**document, "apiVersion": "v2"}, want=400)
    yield apply("no version", {key: value for key, value in document.items() if key != "apiVersion"}, want=400)
    yield apply("another name", {**document, "metadata": {"name": "other"}}, want=400)
    yield apply("another namespace", {**document, "metadata": {"name": "target", "namespace": "theirs"}}, want=400)
    yield apply("another resourceVersion", {**document, "metadata": {"name": "target", "resourceVersion": "1"}},
                want=409)
    yield apply("another uid", {**document, "metadata": {"name": "target", "uid": "1"}},
                "fieldManager=mallory&force=true", want=(409, 422))
    yield apply("a document that is a list", [], want=400)
    for name, fields in (("fields that are no tree", {"f:data": "x"}),
                         ("fields with keys that are none", {"x:data": {}}),
            ("a list key that is no JSON", {"f:data": {"k:{": {}}}), ("a type nobody knows", None)):
        entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"
                 if fields is not None else "FieldsV9",
            "fieldsV1": fields or {}}
        yield patch(f"managedFields: {name}", {"metadata": {"managedFields": [entry]}}, "merge", want=(200, 400, 422),
                    unchanged=None)
    deep = {}
    for _ in range(5_000):
        deep = {"f:a": deep}
    text = (
        '{"metadata":{"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",'
        '"fieldsV1":'
        + '{"f:a":' * 5_000
        + "{}"
        + "}" * 5_000
        + "}]}}"
    )
    yield patch("managedFields: 5,000 deep", text, "merge", want=(400, 422))
    assert cluster.admin.get(TARGET)["data"] == {"a": "1"}


def attempts(cluster):
    make = cluster.admin.create
    make(MAPS, {"metadata": {"name": "target", "annotations": {"k": "v"}, "finalizers": ["example.com/kept"]}})
    cluster.admin.request("PATCH", f"{TARGET}?fieldManager=owner",
                          {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "target"},
        "data": {"a": "1"}}, "application/apply-patch+yaml")
    make(SETS, {"metadata": {"name": "target"},
                "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}})
    cluster.bound_pod("ours", "patched", "n1", serviceAccountName="app")
    rows = [*json_patches(), *merge_patches(), *strategic_patches(), *applied(cluster), *what_nobody_may_change()]
    return rows
