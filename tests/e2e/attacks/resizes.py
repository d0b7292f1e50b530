"""Resizes of pods that run: who may change resources, and what else may be changed on that way."""
from attacks.attempt import Ask
from attacks.cluster import OURS, THEIRS

ON_N1 = f"{OURS}/pods/on-n1"
ENDPOINT = f"{ON_N1}/resize"


def resized(**resources):
    return {"spec": {"containers": [{"name": "main", "resources": resources}]}}


def by_others():
    body = resized(requests={"cpu": "1m"})
    for who in ("creator", "getter", "log-reader", "subresources", "alice", "pod-admin", "debugger", "n1", "n2",
                "nobody"):
        for method in ("PATCH", "PUT", "GET"):
            yield Ask(f"{method} by {who}", who, method, ENDPOINT, None if method == "GET" else body, type="strategic"
                      if method == "PATCH" else "json",
                      want=(401, 403), unchanged=ON_N1)
    yield Ask("of another namespace by who may in ours", "resizer", "PATCH", f"{THEIRS}/pods/other/resize", body,
              type="strategic",
              unchanged=f"{THEIRS}/pods/other")
    yield Ask("by an update of the pod", "pod-admin", "PATCH", ON_N1, body, type="strategic", want=422, unchanged=ON_N1)
    yield Ask("by a patch of its status", "pod-admin", "PATCH", f"{ON_N1}/status", body, type="strategic",
              want=(200, 422), unchanged=ON_N1)
    yield Ask("on the way of containers for debugging", "debugger", "PATCH", f"{ON_N1}/ephemeralcontainers", body,
              type="strategic",
              want=(200, 422), unchanged=ON_N1)


def on_that_way():
    """A user with the right to resize can do nothing else through the endpoint."""
    changes = {"an image": {"spec": {"containers": [{"name": "main", "image": "other"}]}},
               "another node": {"spec": {"nodeName": "n2"}},
               "a command": {"spec": {"containers": [{"name": "main", "command": ["sh"]}]}},
               "a container": {"spec": {"containers": [{"name": "more", "image": "none"}]}},
               "a container for debugging": {"spec": {"ephemeralContainers": [{"name": "looker", "image": "none"}]}},
               "a label": {"metadata": {"labels": {"x": "y"}}},
               "an annotation": {"metadata": {"annotations": {"x": "y"}}},
               "a finalizer": {"metadata": {"finalizers": ["a.example/b"]}},
               "an owner": {"metadata": {"ownerReferences": [
                   {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}},
               "the phase": {"status": {"phase": "Failed"}},
               "a volume": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
               "another account": {"spec": {"serviceAccountName": "default"}},
               "the network of the node": {"spec": {"hostNetwork": True}},
               "a security context": {"spec": {
                   "containers": [{"name": "main", "securityContext": {"privileged": True}}]}},
               "another class": resized(requests={"cpu": "1"}, limits={"cpu": "1", "memory": "1Gi"}),
               "a device": resized(limits={"example.com/gpu": "1"}),
               "a part of the disk": resized(requests={"ephemeral-storage": "1Gi"}),
               "a policy": {"spec": {"containers": [
                   {"name": "main", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]}}}
    for name, body in changes.items():
        yield Ask(f"{name} by who may resize", "resizer", "PATCH", ENDPOINT, body, type="strategic",
                  want=(200, 403, 409, 422), unchanged=ON_N1)
    for amount in ("-1", "1e30", "9223372036854775808", "x", "", "1" * 300):
        yield Ask(f"an amount of {amount[:20]!r}", "resizer", "PATCH", ENDPOINT, resized(requests={"memory": amount}),
                  type="strategic",
                  want=(400, 403, 422), unchanged=ON_N1)
    yield Ask("a DELETE", "resizer", "DELETE", ENDPOINT, want=(403, 405), unchanged=ON_N1)
    yield Ask("a POST", "resizer", "POST", ENDPOINT, resized(requests={"cpu": "1m"}), want=(403, 405), unchanged=ON_N1)
    yield Ask("of a pod that does not exist", "resizer", "PATCH", f"{OURS}/pods/no-such/resize",
              resized(requests={"cpu": "1m"}), type="strategic", want=404)


def attempts(_cluster):
    return [*by_others(), *on_that_way()]
