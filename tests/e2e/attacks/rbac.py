"""Escalation of rights: by each way to write a role or a binding, or by a request that is checked as one thing and
carried out as another."""
import json

from attacks.attempt import Act, Ask, TYPES
from attacks.cluster import OURS, RBAC, THEIRS, role_ref, rule, subject

ROLES, CLUSTER_ROLES = f"{RBAC}/namespaces/ours/roles", f"{RBAC}/clusterroles"
BINDINGS, CLUSTER_BINDINGS = f"{RBAC}/namespaces/ours/rolebindings", f"{RBAC}/clusterrolebindings"
SECRETS = [rule("", "secrets", "get")]
HELD = [rule("", "configmaps", "get")]
BY = "role-writer"


def document(kind, name, **more):
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **more}


def escalation():
    """A rule that its writer does not hold: refused on every way to write one."""
    for kind, path in (("Role", ROLES), ("ClusterRole", CLUSTER_ROLES)):
        mine = f"{path}/{BY}-s"
        more = document(kind, f"{BY}-s", rules=HELD + SECRETS)
        yield Ask(f"{kind} by POST", BY, "POST", path, document(kind, "taken", rules=SECRETS), absent=f"{path}/taken",
                  says="not currently held")
        yield Ask(f"{kind} by POST as YAML", BY, "POST", path,
                  f"kind: {kind}\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {{name: taken}}\n"
                  "rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n", type="yaml", want=(400, 403, 415),
                  absent=f"{path}/taken")
        yield Ask(f"{kind} by a POST that is only tried", BY, "POST", f"{path}?dryRun=All",
                  document(kind, "taken", rules=SECRETS))
        yield Ask(f"{kind} by PUT", BY, "PUT", mine, more, unchanged=mine)
        yield Ask(f"{kind} by merge patch", BY, "PATCH", mine, {"rules": SECRETS}, type="merge", unchanged=mine)
        yield Ask(f"{kind} by strategic patch", BY, "PATCH", mine, {"rules": SECRETS}, type="strategic", unchanged=mine)
        yield Ask(f"{kind} by JSON patch", BY, "PATCH", mine, [{"op": "add", "path": "/rules/-", "value": SECRETS[0]}],
                  type="jsonpatch",
            unchanged=mine)
        yield Ask(f"{kind} by JSON patch of one verb", BY, "PATCH", mine,
                  [{"op": "replace", "path": "/rules/0/verbs/0", "value": "*"}],
            type="jsonpatch", unchanged=mine)
        yield Ask(f"{kind} by apply", BY, "PATCH", f"{mine}?fieldManager=x&force=true", more, type="apply",
                  unchanged=mine)
        yield Ask(f"{kind} by an apply that makes it", BY, "PATCH", f"{path}/taken?fieldManager=x",
                  document(kind, "taken", rules=SECRETS),
            type="apply", absent=f"{path}/taken")
    for name, rules in (
            ("everything", [rule("*", "*", "*")]), ("all verbs", [rule("", "configmaps", "*")]),
            ("all groups", [rule("*", "configmaps", "get")]),
            ("all resources", [rule("", "*", "get")]), ("a subresource", [rule("", "pods/log", "get")]),
            ("all subresources", [rule("", "*/log", "get")]),
            ("another group", [rule("apps", "configmaps", "get")]),
            ("one name", [rule("", "secrets", "get", "hidden")]),
            ("the verb escalate", [rule("rbac.authorization.k8s.io", "clusterroles", "escalate")]),
            ("the verb bind", [rule("rbac.authorization.k8s.io", "clusterroles", "bind")]),
            ("the verb impersonate", [rule("", "users", "impersonate")]),
            ("paths", [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            ("all paths", [{"nonResourceURLs": ["*"], "verbs": ["*"]}]), ("the second of two", HELD + SECRETS)):
        yield Ask(f"ClusterRole with {name}", BY, "POST", CLUSTER_ROLES, document("ClusterRole", "taken", rules=rules),
            absent=f"{CLUSTER_ROLES}/taken")
    yield Ask("ClusterRole that collects the rules of others", BY, "POST", CLUSTER_ROLES,
              document("ClusterRole", "collector", aggregationRule={"clusterRoleSelectors": [
                  {"matchExpressions": [{"key": "kubernetes.io/bootstrapping", "operator": "Exists"}]}]}),
              absent=f"{CLUSTER_ROLES}/collector")
    yield Ask("ClusterRole that adds to admin", BY, "POST", CLUSTER_ROLES,
              {**document("ClusterRole", "taken", rules=SECRETS), "metadata": {"name": "taken",
                  "labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}}},
              absent=f"{CLUSTER_ROLES}/taken")
    yield Ask("the role cluster-admin, changed", BY, "PATCH", f"{CLUSTER_ROLES}/view", {"rules": [rule("*", "*", "*")]},
              type="merge",
        unchanged=f"{CLUSTER_ROLES}/view")
    yield Ask("Role with what is held in another namespace only", "role-writer-ours", "POST",
              f"{RBAC}/namespaces/theirs/roles",
              document("Role", "taken", rules=HELD), absent=f"{RBAC}/namespaces/theirs/roles/taken")
    yield Ask("ClusterRole by somebody whose rights end at a namespace", "role-writer-ours", "POST", CLUSTER_ROLES,
        document("ClusterRole", "taken", rules=[]),
              absent=f"{CLUSTER_ROLES}/taken")
    yield Ask("Role of the namespace's editor", "editor", "POST", ROLES, document("Role", "taken", rules=[]),
              absent=f"{ROLES}/taken")


ADDS_TO_VIEW = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}


def gathering():
    """A label that adds the rules of a role to those of all users who may view: set by a user without these rules."""
    labels = {"metadata": {"labels": ADDS_TO_VIEW}}
    for by in (BY, "labeller"):
        for name in ("cluster-admin", "system:kube-controller-manager", "system:controller:generic-garbage-collector",
                     "strong"):
            path = f"{CLUSTER_ROLES}/{name}"
            yield Ask(f"{name}, labelled by {by} with a merge patch", by, "PATCH", path, labels, type="merge",
                      says="not currently held", unchanged=path)
            yield Ask(f"{name}, labelled by {by} with a strategic patch", by, "PATCH", path, labels, type="strategic",
                      unchanged=path)
            yield Ask(f"{name}, labelled by {by} with a JSON patch", by, "PATCH", path,
                      [{"op": "add", "path": "/metadata/labels", "value": ADDS_TO_VIEW}],
                type="jsonpatch", unchanged=path)
            yield Ask(f"{name}, labelled by {by} with an apply", by, "PATCH", f"{path}?fieldManager=x",
                      {**document("ClusterRole", name), **{"metadata": {"name": name, "labels": ADDS_TO_VIEW}}},
                      type="apply", unchanged=path)
            yield Ask(f"{name}, labelled by {by} with a PUT", by, "PUT", path,
                      lambda cluster, at=path: {**(role := cluster.admin.get(at)),
                                                "metadata": {**role["metadata"], "labels": ADDS_TO_VIEW}},
                      unchanged=path)
        view = f"{CLUSTER_ROLES}/view"
        everything = {"aggregationRule": {"clusterRoleSelectors": [{}]}}
        yield Ask(f"view, told by {by} to gather everything", by, "PATCH", view, everything, type="merge",
                  says="cluster-admin privileges", unchanged=view)
        yield Ask(f"view, told by {by} to gather nothing", by, "PATCH", view, {"aggregationRule": None}, type="merge",
                  unchanged=view)
        yield Ask(f"view, given rules by {by}", by, "PATCH", view, {"rules": SECRETS}, type="merge", unchanged=view)
        yield Ask(f"view, labelled by {by}", by, "PATCH", view, {"metadata": {"labels": {"a": "b"}}}, type="merge",
                  unchanged=view)
        yield Ask(f"a new role of {by} for who may view", by, "POST", CLUSTER_ROLES,
                  {**document("ClusterRole", "taken", rules=SECRETS),
                   "metadata": {"name": "taken", "labels": ADDS_TO_VIEW}},
                  absent=f"{CLUSTER_ROLES}/taken")


def adds_what_he_holds(cluster):
    """A role with a label that its writer may make: its rules are his, and cannot become others."""
    name = f"{BY}-adds"
    made = {**document("ClusterRole", name, rules=HELD), "metadata": {"name": name, "labels": ADDS_TO_VIEW}}
    code, seen = cluster.json(BY, "POST", CLUSTER_ROLES, made)
    if code != 201:
        return f"{code} {seen}"
    code, seen = cluster.json(BY, "PATCH", f"{CLUSTER_ROLES}/{name}", {"rules": SECRETS},
                              {"Content-Type": TYPES["merge"]})
    cluster.admin.delete(f"{CLUSTER_ROLES}/{name}")
    if code != 403:
        return f"{code} {seen}"
    view = json.dumps(cluster.admin.get(f"{CLUSTER_ROLES}/view")["rules"])
    return view if "secrets" in view else None


def binding():
    """A role whose rules its binder does not hold."""
    me = {"subjects": [subject(BY)]}
    for kind, path in (("RoleBinding", BINDINGS), ("ClusterRoleBinding", CLUSTER_BINDINGS)):
        admin = role_ref("ClusterRole", "cluster-admin")
        strong = f"{path}/strong-{kind.lower()}"
        yield Ask(f"{kind} to cluster-admin by POST", BY, "POST", path, document(kind, "taken", roleRef=admin, **me),
                  absent=f"{path}/taken")
        yield Ask(f"{kind} to cluster-admin for a group", BY, "POST", path,
                  document(kind, "taken", roleRef=admin, subjects=[
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]),
                  absent=f"{path}/taken")
        yield Ask(f"{kind} to cluster-admin for nobody yet", BY, "POST", path, document(kind, "taken", roleRef=admin),
                  absent=f"{path}/taken")
        yield Ask(f"{kind} to cluster-admin by a POST that is only tried", BY, "POST", f"{path}?dryRun=All",
            document(kind, "taken", roleRef=admin, **me))
        yield Ask(f"{kind} to cluster-admin by an apply that makes it", BY, "PATCH", f"{path}/taken?fieldManager=x",
                  document(kind, "taken", roleRef=admin, **me), type="apply", absent=f"{path}/taken")
        yield Ask(f"{kind}: himself added by PUT", BY, "PUT", strong,
                  {**document(kind, strong.rsplit("/", 1)[1], roleRef=admin), **me},
            unchanged=strong)
        yield Ask(f"{kind}: himself added by merge patch", BY, "PATCH", strong, me, type="merge", unchanged=strong)
        yield Ask(f"{kind}: himself added by strategic patch", BY, "PATCH", strong, me, type="strategic",
                  unchanged=strong)
        yield Ask(f"{kind}: himself added by JSON patch", BY, "PATCH", strong,
                  [{"op": "add", "path": "/subjects/-", "value": subject(BY)}],
            type="jsonpatch", unchanged=strong)
        yield Ask(f"{kind}: himself added by apply", BY, "PATCH", f"{strong}?fieldManager=x&force=true",
                  {**document(kind, strong.rsplit("/", 1)[1], roleRef=admin), **me}, type="apply", unchanged=strong)
        weak = f"{path}/weak-{kind.lower()}"
        yield Ask(f"{kind}: another role by merge patch", BY, "PATCH", weak, {"roleRef": admin}, type="merge",
                  want=(403, 422), unchanged=weak)
        yield Ask(f"{kind}: another role by PUT", BY, "PUT", weak,
                  {**document(kind, weak.rsplit("/", 1)[1], roleRef=admin), **me}, want=(403, 422),
            unchanged=weak)
    yield Ask("RoleBinding to a role that is not there yet", BY, "POST", BINDINGS,
              document("RoleBinding", "taken", roleRef=role_ref("Role", "later"),
        **me),
              want=(403, 404), absent=f"{BINDINGS}/taken")
    yield Ask("RoleBinding to edit, by its own editor", "editor", "POST", BINDINGS,
        document("RoleBinding", "taken", roleRef=role_ref("ClusterRole", "edit"),
              subjects=[subject("alice")]), absent=f"{BINDINGS}/taken")


def other_verbs():
    """A right to one thing is none to another that looks like it."""
    hidden, settings = f"{THEIRS}/secrets/hidden", f"{OURS}/configmaps/settings"
    asked = [
        ("get by somebody who may watch", "watcher", "GET", hidden, None),
        ("list by somebody who may watch", "watcher", "GET", f"{THEIRS}/secrets", None),
        ("list with watch=0", "watcher", "GET", f"{THEIRS}/secrets?watch=0", None),
        ("list with watch=false", "watcher", "GET", f"{THEIRS}/secrets?watch=false", None),
        ("status as a watch", "watcher", "GET", f"{THEIRS}/pods/other/status?watch=1", None),
        ("log as a watch", "watcher", "GET", f"{THEIRS}/pods/other/log?watch=1", None),
        ("delete as a watch", "watcher", "DELETE", f"{hidden}?watch=1", None),
        ("get by somebody who may list", "lister", "GET", f"{THEIRS}/pods/other", None),
        ("watch by somebody who may list", "lister", "GET", f"{THEIRS}/pods?watch=1", None),
        ("watch by somebody who may list, by the old path", "lister", "GET", "/api/v1/watch/namespaces/theirs/pods",
         None),
        ("watch of one by the old path", "lister", "GET", "/api/v1/watch/namespaces/theirs/pods/other", None),
        ("watch with watch=yes", "lister", "GET", f"{THEIRS}/pods?watch=yes", None),
        ("watch by an empty watch parameter", "getter", "GET", f"{OURS}/pods?watch=", None),
        ("list by somebody who may get", "getter", "GET", f"{OURS}/pods", None),
        ("list of one by somebody who may get", "getter", "GET", f"{OURS}/pods?fieldSelector=metadata.name%3Don-n1",
         None),
        ("all namespaces by somebody who may get in one", "getter", "GET", "/api/v1/pods", None),
        ("another namespace", "getter", "GET", f"{THEIRS}/pods/other", None),
        ("log by somebody who may get pods", "getter", "GET", f"{OURS}/pods/on-n1/log", None),
        ("status by somebody who may get pods", "getter", "GET", f"{OURS}/pods/on-n1/status", None),
        ("log by somebody who may do everything with pods", "subresources", "GET", f"{OURS}/pods/on-n1/log", None),
        ("binding by somebody who may do everything with pods", "subresources", "POST", f"{OURS}/pods/on-n1/binding",
         {"target": {"name": "n2"}}),
        ("a binding of the namespace by somebody who may do everything with pods", "subresources", "POST",
         f"{OURS}/bindings",
            {"metadata": {"name": "on-n1"}, "target": {"name": "n2"}}),
        ("a binding of the namespace by somebody who may bind each pod", "pod-admin", "POST", f"{OURS}/bindings",
         {"metadata": {"name": "on-n1"}, "target": {"name": "n2"}}),
        ("a binding in another namespace, named in the body", "pod-admin", "POST", f"{THEIRS}/bindings",
            {"metadata": {"name": "on-n1", "namespace": "ours"}, "target": {"name": "n2"}}),
        ("how components are, by an editor", "editor", "GET", "/api/v1/componentstatuses", None),
        ("eviction by somebody who may do everything with pods", "subresources", "POST", f"{OURS}/pods/on-n1/eviction",
            {"metadata": {"name": "on-n1"}}),
        ("nodes by a rule of a namespace", "subresources", "GET", "/api/v1/nodes/n1", None),
        ("pods by a rule of their logs", "any-log", "GET", f"{OURS}/pods/on-n1", None),
        ("status by a rule of logs", "any-log", "GET", f"{OURS}/pods/on-n1/status", None),
        ("another name", "one-name", "GET", hidden, None),
        ("list by a rule of one name", "one-name", "GET", f"{THEIRS}/secrets", None),
        ("list of another name", "one-name", "GET", f"{THEIRS}/secrets?fieldSelector=metadata.name%3Dhidden", None),
        ("list of all names but one", "one-name", "GET", f"{THEIRS}/secrets?fieldSelector=metadata.name!%3Dx", None),
        ("list of two names", "one-name", "GET",
         f"{THEIRS}/secrets?fieldSelector=metadata.name%3Dhidden,metadata.name%3Dopen", None),
        ("watch of another name", "one-name", "GET", f"{THEIRS}/secrets?watch=1&fieldSelector=metadata.name%3Dhidden",
         None),
        ("list by a name that a second selector takes back", "one-name", "GET",
         f"{THEIRS}/secrets?fieldSelector=metadata.name%3Dhidden&fieldSelector=metadata.name%3Dopen", None),
        ("deletecollection by somebody who may delete", "deleter", "DELETE", f"{OURS}/configmaps", None),
        ("deletecollection of one", "deleter", "DELETE", f"{OURS}/configmaps?fieldSelector=metadata.name%3Dsettings",
         None),
        ("create by somebody who may delete", "deleter", "POST", f"{OURS}/configmaps", {"metadata": {"name": "x"}}),
        ("eviction by somebody who may create pods", "creator", "POST", f"{OURS}/pods/on-n1/eviction",
         {"metadata": {"name": "on-n1"}}),
        ("exec by somebody who may create pods", "creator", "POST", f"{OURS}/pods/on-n1/exec?command=id", None),
        ("portforward by somebody who may create pods", "creator", "POST", f"{OURS}/pods/on-n1/portforward", None),
        ("debug containers by somebody who may create pods", "creator", "PATCH",
         f"{OURS}/pods/on-n1/ephemeralcontainers",
            {"spec": {"ephemeralContainers": []}}),
        ("create in another namespace, named in the body", "creator", "POST", f"{THEIRS}/pods",
         {"metadata": {"name": "x", "namespace": "ours"}}),
        ("update by somebody who may patch", "patcher", "PUT", settings, {"metadata": {"name": "settings"}}),
        ("patch by somebody who may update", "updater", "PATCH", settings, {"data": {"b": "2"}}),
        ("scale by an editor of another namespace", "pod-admin", "PATCH",
         "/apis/apps/v1/namespaces/theirs/replicasets/x/scale",
            {"spec": {"replicas": 9}}),
        ("a Job by somebody who may create pods", "creator", "POST", "/apis/batch/v1/namespaces/ours/jobs",
         {"metadata": {"name": "x"}}),
        ("a Job of another namespace by an editor", "editor", "GET", "/apis/batch/v1/namespaces/theirs/jobs", None),
        ("a ReplicationController by somebody who may create pods", "creator", "POST", f"{OURS}/replicationcontrollers",
         {"metadata": {"name": "x"}}),
        ("a ReplicationController of another namespace by an editor", "editor", "GET",
         f"{THEIRS}/replicationcontrollers", None),
        ("the status of a ReplicationController by an editor", "editor", "PATCH",
         f"{OURS}/replicationcontrollers/x/status", {"status": {"replicas": 1}}),
        ("an open network by somebody who may create pods", "creator", "POST",
         "/apis/networking.k8s.io/v1/namespaces/ours/networkpolicies",
         {"metadata": {"name": "open"}, "spec": {"ingress": [{}]}}),
        ("the policies of another namespace by an editor", "editor", "DELETE",
         "/apis/networking.k8s.io/v1/namespaces/theirs/networkpolicies", None),
        ("an Ingress of another namespace by an editor", "editor", "POST",
         "/apis/networking.k8s.io/v1/namespaces/theirs/ingresses",
         {"metadata": {"name": "x"}, "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}}),
        ("where an Ingress takes requests, by an editor", "editor", "PATCH",
         "/apis/networking.k8s.io/v1/namespaces/ours/ingresses/x/status",
         {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.66"}]}}}),
        ("who is responsible for Ingresses, by an editor", "editor", "POST",
         "/apis/networking.k8s.io/v1/ingressclasses",
         {"metadata": {"name": "mine"}, "spec": {"controller": "example.com/mine"}}),
        ("an address kept from Services by an editor", "editor", "POST", "/apis/networking.k8s.io/v1/ipaddresses",
         {"metadata": {"name": "10.96.9.9"}, "spec": {"parentRef": {"resource": "pods", "namespace": "ours",
                                                                    "name": "x"}}}),
        ("an address of a Service, led to another by an editor", "editor", "PATCH",
         "/apis/networking.k8s.io/v1/ipaddresses/10.96.0.1",
         {"spec": {"parentRef": {"resource": "services", "namespace": "ours", "name": "web"}}}),
        ("all addresses by an editor", "editor", "DELETE", "/apis/networking.k8s.io/v1/ipaddresses", None),
        ("a range of addresses by an editor", "editor", "POST", "/apis/networking.k8s.io/v1/servicecidrs",
         {"metadata": {"name": "mine"}, "spec": {"cidrs": ["10.97.0.0/16"]}}),
        ("a range said to be ready, by an editor", "editor", "PATCH",
         "/apis/networking.k8s.io/v1/servicecidrs/kubernetes/status",
         {"status": {"conditions": []}}),
        ("a class of attributes by an editor", "editor", "POST", "/apis/storage.k8s.io/v1/volumeattributesclasses",
         {"metadata": {"name": "x"}, "driverName": "x", "parameters": {"a": "b"}}),
        ("a class of attributes by an editor, whose parameters are to change", "editor", "PATCH",
         "/apis/storage.k8s.io/v1/volumeattributesclasses/x",
         {"parameters": {"a": "c"}}),
        ("the attributes of a claim, said to be in force, by an editor", "editor", "PATCH",
         f"{OURS}/persistentvolumeclaims/data/status",
         {"status": {"currentVolumeAttributesClassName": "x"}}),
        ("an attachment by an editor", "editor", "POST", "/apis/storage.k8s.io/v1/volumeattachments",
         {"metadata": {"name": "x"}}),
        ("a PriorityClass by somebody who may create pods", "creator", "POST",
         "/apis/scheduling.k8s.io/v1/priorityclasses",
         {"metadata": {"name": "mine"}, "value": 1000000}),
        ("a priority without a class by somebody who may create pods", "creator", "POST", f"{OURS}/pods",
         {"metadata": {"name": "first"},
          "spec": {"priority": 1000000, "containers": [{"name": "c", "image": "none"}]}}),
        ("a promise of a node by somebody who may create pods", "creator", "PATCH", f"{OURS}/pods/on-n1/status",
         {"status": {"nominatedNodeName": "n2"}}),
        ("the mark of a victim by an editor", "editor", "PATCH", f"{OURS}/pods/on-n1/status",
         {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True",
                                     "reason": "PreemptionByScheduler"}]}}),
        ("the status of a Job by an editor", "editor", "PATCH", "/apis/batch/v1/namespaces/ours/jobs/x/status",
         {"status": {"succeeded": 1}}),
        ("what the namespace allows, by its editor", "editor", "POST", "/api/v1/namespaces/ours/limitranges",
         {"metadata": {"name": "mine"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "100"}}]}}),
        ("how much the namespace has, by its editor", "editor", "POST", "/api/v1/namespaces/ours/resourcequotas",
         {"metadata": {"name": "mine"}, "spec": {"hard": {"pods": "100"}}}),
        ("Endpoints by an editor: traffic led to another namespace", "editor", "POST", f"{OURS}/endpoints",
         {"metadata": {"name": "x"}, "subsets": [{"addresses": [{"ip": "192.0.2.66"}], "ports": [{"port": 80}]}]}),
        ("a slice by an editor: the same", "editor", "POST", "/apis/discovery.k8s.io/v1/namespaces/ours/endpointslices",
         {"metadata": {"name": "x"}, "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.66"]}]}),
        ("a slice changed by an editor", "editor", "PATCH",
         "/apis/discovery.k8s.io/v1/namespaces/ours/endpointslices/x", {"endpoints": []}),
        ("a CronJob by somebody who may create pods", "creator", "POST", "/apis/batch/v1/namespaces/ours/cronjobs",
         {"metadata": {"name": "x"}}),
        ("the status of a CronJob by an editor", "editor", "PATCH", "/apis/batch/v1/namespaces/ours/cronjobs/x/status",
         {"status": {"active": []}}),
        ("an autoscaler by somebody who may create pods", "creator", "POST",
         "/apis/autoscaling/v2/namespaces/ours/horizontalpodautoscalers",
         {"metadata": {"name": "x"}}),
        ("an autoscaler of another namespace by an editor", "editor", "POST",
         "/apis/autoscaling/v1/namespaces/theirs/horizontalpodautoscalers",
         {"metadata": {"name": "x"}}),
        ("the status of an autoscaler by an editor", "editor", "PATCH",
         "/apis/autoscaling/v2/namespaces/ours/horizontalpodautoscalers/x/status",
         {"status": {"desiredReplicas": 9}}),
        ("the status of an autoscaler by an editor, as v1", "editor", "PATCH",
         "/apis/autoscaling/v1/namespaces/ours/horizontalpodautoscalers/x/status", {"status": {"desiredReplicas": 9}}),
        ("a StatefulSet by somebody who may create pods", "creator", "POST",
         "/apis/apps/v1/namespaces/ours/statefulsets", {"metadata": {"name": "x"}}),
        ("scale of a StatefulSet by an editor of another namespace", "pod-admin", "PATCH",
         "/apis/apps/v1/namespaces/theirs/statefulsets/x/scale",
            {"spec": {"replicas": 9}}),
        ("the status of a StatefulSet by an editor", "editor", "PATCH",
         "/apis/apps/v1/namespaces/ours/statefulsets/x/status", {"status": {"replicas": 1}}),
        ("nodes by an editor", "editor", "GET", "/api/v1/nodes", None),
        ("secrets of others by an editor", "editor", "GET", hidden, None),
        ("the namespace itself by an editor", "editor", "DELETE", "/api/v1/namespaces/ours", None),
        ("a Table of the Secret", "alice", "GET", f"{hidden}?includeObject=Object", None),
        ("metrics of pods", "alice", "GET", "/apis/metrics.k8s.io/v1beta1/namespaces/theirs/pods", None),
        ("metrics of nodes", "editor", "GET", "/apis/metrics.k8s.io/v1beta1/nodes", None),
        ("a resource that is not served", "alice", "GET", "/apis/no.such/v1/things", None),
        ("a subresource that is not served", "getter", "GET", f"{OURS}/pods/on-n1/no-such", None)]
    asked += [
        ("get as a watch by somebody who may watch", "watcher", "GET", f"{hidden}?watch=1", None),
        ("get as a watch of its name", "watcher", "GET", f"{hidden}?watch=true&fieldSelector=metadata.name%3Dhidden",
         None),
        ("make by PUT by somebody who may update", "updater", "PUT",
         "/apis/coordination.k8s.io/v1/namespaces/ours/leases/new",
         {"metadata": {"name": "new", "namespace": "ours"}, "spec": {}}),
        ("make by apply by somebody who may patch", "patcher", "PATCH", f"{OURS}/configmaps/new?fieldManager=x",
         {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}})
    ]
    to_servers = {"/api/v1/namespaces/default/services/kubernetes": {"spec": {"externalIPs": ["192.0.2.66"]}},
                  "/api/v1/namespaces/default/endpoints/kubernetes": {
                      "subsets": [{"addresses": [{"ip": "192.0.2.66"}]}]},
                  "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes": {
                      "endpoints": [{"addresses": ["192.0.2.66"]}]}}
    asked += [(f"what leads clients to the API servers, without rights there, by {who}: {method} {path}", who, method,
               path, body)
              for path, change in to_servers.items() for who in ("n1", "editor", "creator") for method,
              body in (("PATCH", change), ("DELETE", None))]
    for name, by, method, path, body in asked:
        kind = "apply" if "apply" in name else "merge" if method == "PATCH" else "json"
        accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"} if "Table" in name else {}
        yield Ask(name, by, method, path, body, type=kind, headers=accept, unchanged=settings if "settings" in path
                  else None,
                  want=(400, 403) if "takes back" in name else 403)
    for method in ("PUT", "DELETE", "PATCH"):
        yield Ask(f"{method} of the Secret by alice", "alice", method, hidden, {} if method != "DELETE" else None,
            type="merge" if method == "PATCH" else "json", unchanged=hidden)
    for name in ("default", "kube-system", "kube-public"):
        yield Ask(f"the namespace {name}, deleted by an administrator", "admin", "DELETE", f"/api/v1/namespaces/{name}",
            unchanged=f"/api/v1/namespaces/{name}")


def promises_himself(cluster):
    """The status in a created pod is ignored."""
    body = {"metadata": {"name": "promised"},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "none"}]},
            "status": {"nominatedNodeName": "n2"}}
    code, text = cluster.ask("creator", "POST", f"{OURS}/pods", json.dumps(body).encode(),
                             {"Content-Type": "application/json"})
    if code != 201:
        return f"{code} {text}"
    status = cluster.admin.get(f"{OURS}/pods/promised")["status"]
    return None if "nominatedNodeName" not in status else status


def memory_page():
    """The memory of the server by owner is for administrators: its counts show the number of objects of others."""
    for by in ("nobody", "alice", "editor", "n1"):
        yield Ask(f"why {by} has no Service proxy", by, "GET", "/debug/spillway/services", want=(401, 403))
        for method, path in (("GET", "/debug/memory"), ("GET", "/debug/memory/"), ("GET", "/debug//memory"),
                             ("GET", "/debug/%6demory"), ("POST", "/debug/memory")):
            yield Ask(f"{method} {path} by {by}", by, method, path, want=(400, 401, 403, 404), hides="objects: texts")
    yield Ask("POST /debug/memory by the administrator", "admin", "POST", "/debug/memory", want=(404, 405),
              hides="objects: texts")


def attempts(cluster):
    make = cluster.admin.create
    for kind, path, bindings, binding_kind in (("Role", ROLES, BINDINGS, "RoleBinding"),
            ("ClusterRole", CLUSTER_ROLES, CLUSTER_BINDINGS, "ClusterRoleBinding")):
        make(path, document(kind, f"{BY}-s", rules=HELD))
        make(bindings, document(binding_kind, f"strong-{binding_kind.lower()}",
                                roleRef=role_ref("ClusterRole", "cluster-admin"),
            subjects=[subject("somebody")]))
        make(bindings, document(binding_kind, f"weak-{binding_kind.lower()}", roleRef=role_ref(kind, f"{BY}-s"),
                                subjects=[subject("somebody")]))
    make(CLUSTER_ROLES, document("ClusterRole", "strong", rules=SECRETS))
    return [*escalation(), *gathering(), Act("a role that adds to view, with other rules later", adds_what_he_holds),
            *binding(), *other_verbs(), *memory_page(),
            Act("a promise of a node in the status of a new pod", promises_himself)]
