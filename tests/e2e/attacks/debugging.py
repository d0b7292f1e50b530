"""Containers for debugging: who may add them, what else may be changed on that way, and what they can do on a node."""
from attacks.attempt import Act, Ask, shown
from attacks.cluster import OURS, THEIRS
from attacks.pods import PODS, start
from harness import ApiError, pod, wait_for

ON_N1 = f"{OURS}/pods/on-n1"
ENDPOINT = f"{ON_N1}/ephemeralcontainers"
LOOKER = {"name": "looker", "image": "none", "command": ["sh", "-c", "true"]}


def by_others():
    body = {"spec": {"ephemeralContainers": [LOOKER]}}
    for who in ("creator", "getter", "log-reader", "subresources", "alice", "n1", "n2", "nobody"):
        for method in ("PATCH", "PUT", "GET"):
            yield Ask(f"{method} by {who}", who, method, ENDPOINT, None if method == "GET" else body, type="strategic"
                      if method == "PATCH" else "json",
                      want=(401, 403), unchanged=ON_N1)
    yield Ask("of another namespace by who may in ours", "debugger", "PATCH",
              f"{THEIRS}/pods/other/ephemeralcontainers", body, type="strategic",
              unchanged=f"{THEIRS}/pods/other")
    yield Ask("by an update of the pod", "pod-admin", "PATCH", ON_N1, body, type="strategic", want=422, unchanged=ON_N1)
    yield Ask("by a patch of its status", "pod-admin", "PATCH", f"{ON_N1}/status", body, type="merge", want=(200, 422),
              unchanged=ON_N1)
    yield Ask("with a new pod", "creator", "POST", PODS,
              {**pod("with-looker", ["true"]), "spec": {**pod("x", ["true"])["spec"], "ephemeralContainers": [LOOKER]}},
              want=422, says="cannot be set on create", absent=f"{PODS}/with-looker")


def on_that_way():
    """A user with the right to debug can do nothing else through the endpoint."""
    changes = {"an image": {"spec": {"containers": [{"name": "main", "image": "other"}]}},
               "another node": {"spec": {"nodeName": "n2"}},
               "a label": {"metadata": {"labels": {"x": "y"}}},
               "an annotation": {"metadata": {"annotations": {"x": "y"}}},
               "a finalizer": {"metadata": {"finalizers": ["a.example/b"]}},
               "an owner": {"metadata": {"ownerReferences": [
                   {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}},
               "the phase": {"status": {"phase": "Failed"}},
               "a volume": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
               "another account": {"spec": {"serviceAccountName": "default"}},
               "the network of the node": {"spec": {"hostNetwork": True}},
               "a security context": {"spec": {"securityContext": {"runAsUser": 0}}}}
    for name, body in changes.items():
        yield Ask(f"{name} by who may debug", "debugger", "PATCH", ENDPOINT, body, type="strategic",
                  want=(200, 409, 422), unchanged=ON_N1)
    wrong = {"ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"limits": {"memory": "64Gi"}},
             "livenessProbe": {"tcpSocket": {"port": 1}},
             "lifecycle": {"preStop": {"exec": {"command": ["sh"]}}}, "restartPolicy": "Always",
             "targetContainerName": "looker", "image": "",
             "volumeMounts": [{"name": "none", "mountPath": "/x"}], "name": "main"}
    for member, value in wrong.items():
        yield Ask(f"{member} of a container for debugging", "debugger", "PATCH", ENDPOINT,
                  {"spec": {"ephemeralContainers": [{**LOOKER, member: value}]}},
                  type="merge", want=422, unchanged=ON_N1)


def debugged(name, container, wanted, script="exec tail -f /dev/null", **spec):
    """Adds one to a pod of the node with an agent; `wanted` checks its state and its log."""
    def act(cluster):
        label = "dbg-" + "".join(c if c.isalnum() else "-" for c in name.lower())[:50].strip("-")
        start(cluster, label, f"marker=24680; {script}", **spec)
        path = f"{PODS}/{label}"
        try:
            wait_for("the pod", lambda: cluster.admin.get(path)["status"].get("phase") == "Running")
            cluster.admin.patch(f"{path}/ephemeralcontainers",
                                {"spec": {"ephemeralContainers": [{**LOOKER, **container}]}}, "strategic-merge")

            def state():
                found = cluster.admin.get(path)["status"].get("ephemeralContainerStatuses") or [{}]
                each = found[0].get("state", {})
                return each if "terminated" in each or each.get("waiting", {}).get("message") else None
            ended = wait_for("its end", state)
            try:
                log = cluster.admin.get(f"{path}/log?container=looker")
            except ApiError as error:
                log = str(error)
            return None if wanted(ended, log) else f"{ended}: {shown(log)}"
        finally:
            cluster.admin.delete(path, 0)
    return Act(name, act)


def refused(state, log):
    return "waiting" in state and "RAN" not in log


def says(text):
    return lambda state, log: "terminated" in state and text in log


def runs(script, **more):
    return {"command": ["sh", "-c", f"echo RAN; {script}"], **more}


def on_a_node():
    yield debugged("privileged", runs("true", securityContext={"privileged": True}), refused)
    yield debugged("a user of the machine", runs("true", securityContext={"runAsUser": 70000}), refused)
    yield debugged("root where nobody may be", runs("true", securityContext={"runAsNonRoot": True, "runAsUser": 0}),
                   refused)
    yield debugged("an AppArmor profile", runs("true", securityContext={"appArmorProfile": {"type": "RuntimeDefault"}}),
                   refused)
    yield debugged("a seccomp profile of the machine",
                   runs("true", securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}),
                   refused)
    rights = runs("grep -E '^(CapBnd|NoNewPrivs)' /proc/self/status",
                  securityContext={"capabilities": {"add": ["ALL"]}}, targetContainerName="main")
    yield debugged("all rights, beside a target", rights, lambda state, log: refused(state, log)
                   or "NoNewPrivs:\t1" in log)
    yield debugged(
        "the machine's root by the target",
        runs(
            "ls /proc/1/root/root/ 2>&1; cat /proc/1/root/etc/shadow 2>&1 | grep -c root; ls /proc/1/root/data 2>&1",
            targetContainerName="main",
        ),
        lambda state, log: "terminated" in state and "spillway" not in log and "pki" not in log,
    )
    machine = runs("cat /proc/[0-9]*/comm | grep -c spillway; echo END", targetContainerName="main")
    yield debugged("processes of the machine by the target", machine, says("RAN\n0\nEND"))
    outer = runs("readlink /proc/self/ns/pid > /tmp/x; readlink /proc/1/ns/pid | cmp - /tmp/x && echo SAME",
                 targetContainerName="main")
    yield debugged("a pid namespace that is the target's", outer, says("SAME"))
    yield debugged("the clock of the machine by the target",
                   runs("date -s 2030-01-01 2>&1 || echo KEPT", targetContainerName="main"), says("KEPT"))


def lies_in_wait(cluster):
    """A target that inspects every new process, with the right to trace: the agent's copy, before it is the program,
    shows nothing.
    """
    look = (
        "for p in /proc/[0-9]*; do case $(readlink $p/exe 2>/dev/null) in *spillway*) echo LEAK $p;; esac; { read -r x"
        " < $p/environ; } 2>/dev/null; done"
    )
    start(cluster, "dbg-waits", f"echo begun; while :; do {look}; done",
          container={"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}})
    path = f"{PODS}/dbg-waits"
    try:
        wait_for("the pod", lambda: cluster.admin.get(path)["status"].get("phase") == "Running")
        many = [{**LOOKER, "name": f"looker-{number}", "targetContainerName": "main"} for number in range(30)]
        cluster.admin.patch(f"{path}/ephemeralcontainers", {"spec": {"ephemeralContainers": many}}, "strategic-merge")
        wait_for("their ends",
                 lambda: len([each for each in cluster.admin.get(path)["status"].get("ephemeralContainerStatuses") or []
                                            if "terminated" in each["state"]]) == len(many), 150)
        log = cluster.admin.get(f"{path}/log")
        return shown(log) if "LEAK" in log or "begun" not in log else None
    finally:
        cluster.admin.delete(path, 0)


def attempts(cluster):
    return [*by_others(), *on_that_way(), *on_a_node(), Act("the agent before it is the program", lies_in_wait)]
