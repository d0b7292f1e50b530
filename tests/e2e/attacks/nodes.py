"""The key of a node (n1) gives access to itself and to the objects its own pods refer to, and to nothing else."""
import json

from attacks.attempt import Act, Ask, exposed, shown
from attacks.cluster import OURS, RBAC, THEIRS

N1, N2 = "/api/v1/nodes/n1", "/api/v1/nodes/n2"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
OTHER = f"{THEIRS}/pods/other"
ON_N2 = f"{OURS}/pods/on-n2"
OWN = f"{OURS}/pods/on-n1"
SELECTS_SELF = "fieldSelector=spec.nodeName%3Dn1"


def n1(name, method, path, body=None, type="json", **more):
    return Ask(name, "n1", method, path, body, type=type, **more)


def of_other_nodes():
    for name, method, path, body, kind in (
            ("GET of another node", "GET", N2, None, "json"),
            ("status of another node", "GET", f"{N2}/status", None, "json"),
            ("patch of another node", "PATCH", N2, {"metadata": {"labels": {"a": "b"}}}, "merge"),
            ("patch of another node's status", "PATCH", f"{N2}/status", {"status": {"conditions": []}}, "strategic"),
            ("PUT of another node", "PUT", N2, {"metadata": {"name": "n2"}}, "json"),
            ("PUT of another node's status", "PUT", f"{N2}/status", {"metadata": {"name": "n2"}}, "json"),
            ("deletion of another node", "DELETE", N2, None, "json"),
            ("deletion of itself", "DELETE", N1, None, "json"),
            ("deletion of all nodes", "DELETE", "/api/v1/nodes", None, "json"),
            ("another node, registered", "POST", "/api/v1/nodes", {"metadata": {"name": "n9"}}, "json"),
            ("another node, made by apply", "PATCH", "/api/v1/nodes/n9?fieldManager=x",
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n9"}}, "apply"),
            ("list of nodes", "GET", "/api/v1/nodes", None, "json"),
            ("watch of nodes", "GET", "/api/v1/nodes?watch=1", None, "json"),
            ("list of another node", "GET", "/api/v1/nodes?fieldSelector=metadata.name%3Dn2", None, "json"),
            ("list of nodes that are not another", "GET", "/api/v1/nodes?fieldSelector=metadata.name!%3Dn2", None,
             "json"),
            ("watch of another node by the old path", "GET", "/api/v1/watch/nodes/n2", None, "json"),
            ("PUT of another lease", "PUT", f"{LEASES}/n2",
             {"metadata": {"name": "n2"}, "spec": {"holderIdentity": "n1"}}, "json"),
            ("patch of another lease", "PATCH", f"{LEASES}/n2", {"spec": {"holderIdentity": "n1"}}, "merge"),
            ("deletion of another lease", "DELETE", f"{LEASES}/n2", None, "json"),
            ("GET of another lease", "GET", f"{LEASES}/n2", None, "json"),
            ("list of leases", "GET", LEASES, None, "json"),
            ("another node's lease, made", "POST", LEASES, {"metadata": {"name": "n9"}}, "json"),
            ("a lease with a made-up name", "POST", LEASES, {"metadata": {"generateName": "n1-"}}, "json"),
            ("the lease of a controller", "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
             {"metadata": {"name": "n1"}}, "json"),
            ("GET of a controller's lease", "GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/n1",
             None, "json"),
            ("another CSINode, made", "POST", CSI_NODES, {"metadata": {"name": "n9"}, "spec": {"drivers": []}}, "json"),
            ("patch of another CSINode", "PATCH", f"{CSI_NODES}/n2", {"metadata": {"labels": {"a": "b"}}}, "merge"),
            ("deletion of another CSINode", "DELETE", f"{CSI_NODES}/n2", None, "json")):
        watched = path.split("?")[0]
        yield n1(name, method, path, body, kind, unchanged=watched if watched.endswith(("/n2", "/n1"))
                 and "watch" not in watched else None)


def recordings():
    """A node's recording names the pods of all users: it needs the right to the node's other pages."""
    for by in ("nobody", "alice", "log-reader", "editor", "getter", "n1", "n3"):
        for below in ("", "/segments/1"):
            yield Ask(f"recording{below} of a node by {by}", by, "GET",
                      f"/api/v1/nodes/n3/proxy/debug/spillway/recording{below}", want=(401, 403))


def of_itself():
    """Labels and taints decide which pods come to a node: it may not choose its own."""
    for label in ("node-restriction.kubernetes.io/secure", "x.node-restriction.kubernetes.io/a",
                  "node-role.kubernetes.io/control-plane",
            "kubernetes.io/made-up", "a.k8s.io/b"):
        yield n1(f"label {label}", "PATCH", N1, {"metadata": {"labels": {label: "1"}}}, "merge", unchanged=N1)
    label = {"node-restriction.kubernetes.io/secure": "1"}
    whole = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": label},
        "spec": {"taints": [{"key": "kept", "effect": "NoSchedule"}]}}
    yield n1("label by PUT", "PUT", N1, whole, unchanged=N1)
    yield n1("label by strategic patch", "PATCH", N1, {"metadata": {"labels": label}}, "strategic", unchanged=N1)
    yield n1("label by JSON patch", "PATCH", N1,
             [{"op": "add", "path": "/metadata/labels/node-restriction.kubernetes.io~1secure", "value": "1"}],
        "jsonpatch", unchanged=N1)
    yield n1(
        "label by JSON patch copy",
        "PATCH",
        N1,
        [
            {
                "op": "move",
                "from": "/metadata/labels/node-role.kubernetes.io~1worker",
                "path": "/metadata/labels/node-restriction.kubernetes.io~1secure",
            }
        ],
        "jsonpatch",
        unchanged=N1,
    )
    yield n1("label by apply", "PATCH", f"{N1}?fieldManager=x&force=true", whole, "apply", unchanged=N1)
    yield n1("label by its status", "PATCH", f"{N1}/status", {"metadata": {"labels": label}}, "merge", unchanged=N1)
    yield n1("label by PUT of its status", "PUT", f"{N1}/status", whole, unchanged=N1)
    yield n1("a role's label, taken away", "PATCH", N1,
             {"metadata": {"labels": {"node-role.kubernetes.io/worker": None}}}, "merge", unchanged=N1)
    yield n1("all labels, taken away", "PATCH", N1, [{"op": "remove", "path": "/metadata/labels"}], "jsonpatch",
             unchanged=N1)
    yield n1("taints by merge patch", "PATCH", N1, {"spec": {"taints": None}}, "merge", unchanged=N1)
    yield n1("taints by strategic patch", "PATCH", N1,
             {"spec": {"taints": [{"$patch": "delete", "key": "kept", "effect": "NoSchedule"}]}},
        "strategic", unchanged=N1)
    yield n1("taints by JSON patch", "PATCH", N1, [{"op": "remove", "path": "/spec/taints/0"}], "jsonpatch",
             unchanged=N1)
    yield n1("taints by PUT", "PUT", N1,
             {"metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/worker": ""}}, "spec": {}}, unchanged=N1)
    yield n1("an owner of itself", "PATCH", N1,
             lambda c: {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n2",
        "uid": c.uid(N2)}]}}, "merge", unchanged=N1)
    for part in ("proxy", "proxy/metrics", "proxy/containerLogs/theirs/teller/main", "log", "stats", "spec", "configz",
                 "exec", "proxy/run/x"):
        yield n1(f"nodes/n1/{part}", "GET", f"{N1}/{part}")
    yield n1("nodes/n1/proxy as a watch", "GET", f"{N1}/proxy/pods?watch=1")
    yield n1("nodes/n1/proxy as a watch with a selector", "GET",
             f"{N1}/proxy/pods?watch=1&fieldSelector=metadata.name%3Dn1")
    yield n1("nodes/n3/proxy", "GET", "/api/v1/nodes/n3/proxy/pods")


def of_pods():
    for query in ("", "?watch=1", f"?{SELECTS_SELF}", f"?watch=1&{SELECTS_SELF}",
                  "?watch=true&fieldSelector=metadata.name%3Dother,spec.nodeName%3Dn1"):
        for part in ("", "/log", "/status"):
            yield n1(f"GET of a pod of another node{part}{query}", "GET", f"{OTHER}{part}{query}")
    for name, query in (("no selector", ""), ("another node's selector", "?fieldSelector=spec.nodeName%3Dn2"),
            ("a selector of all nodes but one", "?fieldSelector=spec.nodeName!%3Dn2"),
                        ("an empty node", "?fieldSelector=spec.nodeName%3D"),
                        ("another selector", "?fieldSelector=status.phase%3DPending"),
                        ("a label selector", "?labelSelector=spec.nodeName%3Dn1"),
                        ("a selector in capitals", "?FieldSelector=spec.nodeName%3Dn1")):
        yield n1(f"list of pods with {name}", "GET", f"/api/v1/pods{query}")
        yield n1(f"watch of pods with {name}", "GET", f"/api/v1/pods{query}{'&' if query else '?'}watch=1")
    for query in ("fieldSelector=spec.nodeName%3Dn2&fieldSelector=spec.nodeName%3Dn1",
            "fieldSelector=spec.nodeName%3Dn1&fieldSelector=spec.nodeName%3Dn2",
                  "fieldSelector=spec.nodeName%3Dn2,spec.nodeName%3Dn1"):
        yield n1(f"list of pods with {query}", "GET", f"/api/v1/namespaces/theirs/pods?{query}", want=(200, 400, 403),
                 hides='"name":"other"')
    yield n1("deletion of all pods", "DELETE", f"{THEIRS}/pods?{SELECTS_SELF}", unchanged=OTHER)
    for name, method, path, body, kind in (
            ("status of a pod of another node", "PATCH", f"{OTHER}/status", {"status": {"phase": "Failed"}}, "merge"),
            ("status of a pod of another node, by PUT", "PUT", f"{OTHER}/status",
             {"metadata": {"name": "other"}, "spec": {"nodeName": "n1"}},
                "json"),
            ("deletion of a pod of another node", "DELETE", OTHER, None, "json"),
            ("eviction of a pod of another node", "POST", f"{OTHER}/eviction",
                {"metadata": {"name": "other"}}, "json"),
            ("patch of its own pod", "PATCH", OWN, {"metadata": {"labels": {"a": "b"}}}, "merge"),
            ("PUT of its own pod", "PUT", OWN, {"metadata": {"name": "on-n1"}}, "json"),
            ("image of its own pod", "PATCH", OWN, {"spec": {"containers": [{"name": "main", "image": "evil"}]}},
             "strategic"),
            ("labels of its own pod by its status", "PATCH", f"{OWN}/status", {"metadata": {"labels": {"app": "web"}}},
             "merge"),
            ("its own pod, moved", "POST", f"{OWN}/binding", {"target": {"kind": "Node", "name": "n2"}}, "json"),
            ("another pod, bound to it", "POST", f"{OTHER}/binding", {"target": {"kind": "Node", "name": "n1"}},
             "json"),
            ("its own pod, moved by a binding of the namespace", "POST", f"{OURS}/bindings",
             {"metadata": {"name": "on-n1"}, "target": {"name": "n2"}}, "json"),
            ("other resources for its own pod", "PATCH", f"{OWN}/resize",
             {"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "64Gi"}}}]}}, "strategic"),
            ("debug containers of its own pod", "PATCH", f"{OWN}/ephemeralcontainers",
             {"spec": {"ephemeralContainers": []}}, "merge"),
            ("log of its own pod", "GET", f"{OWN}/log", None, "json"),
            ("exec in its own pod", "POST", f"{OWN}/exec?command=id", None, "json"),
            ("a pod of its own", "POST", f"{OURS}/pods", {"metadata": {"name": "evil"},
                "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}]}}, "json")):
        yield n1(name, method, path, body, kind, unchanged=OTHER if path.startswith(OTHER) else OWN)
    missing = [("GET", "", None), ("DELETE", "", None), ("GET", "/status", None), ("PATCH", "/status", {}),
               ("GET", "/log", None),
               ("POST", "/eviction", {"metadata": {"name": "x"}})]
    for method, part, body in missing:
        # an agent that confirms the end of a pod may find that it is gone
        gone_already = (403, 404) if method == "DELETE" else 403
        yield n1(f"{method} of a pod that does not exist{part}", method, f"{THEIRS}/pods/no-such{part}", body,
            "merge" if method == "PATCH" else "json", want=gone_already)


def of_what_pods_refer_to():
    for name, method, path in (
            ("a Secret of a pod of another node", "GET", f"{THEIRS}/secrets/hidden"),
            ("that Secret as a watch", "GET", f"{THEIRS}/secrets/hidden?watch=1"),
            ("that Secret by a list of its name", "GET", f"{THEIRS}/secrets?fieldSelector=metadata.name%3Dopen"),
            ("all Secrets", "GET", "/api/v1/secrets"),
            ("Secrets of a namespace", "GET", f"{OURS}/secrets"),
            ("watch of Secrets", "GET", f"{OURS}/secrets?watch=1"),
            ("a Secret of its pod's name in another namespace", "GET", f"{THEIRS}/secrets/mounted"),
            ("a Secret that does not exist", "GET", f"{OURS}/secrets/no-such"),
            ("deletion of its pod's Secret", "DELETE", f"{OURS}/secrets/mounted"),
            ("all ConfigMaps", "GET", "/api/v1/configmaps"),
            ("a ConfigMap of another namespace", "GET", f"{THEIRS}/configmaps/settings"),
            ("deletion of its pod's ConfigMap", "DELETE", f"{OURS}/configmaps/settings"),
            ("an account none of its pods uses", "GET", f"{OURS}/serviceaccounts/spare"),
            ("all accounts", "GET", f"{OURS}/serviceaccounts"),
            ("a claim of another namespace", "GET", f"{THEIRS}/persistentvolumeclaims/data"),
            ("all claims", "GET", f"{OURS}/persistentvolumeclaims"), ("watch of its pod's claim", "GET",
                f"{OURS}/persistentvolumeclaims?watch=1&fieldSelector=metadata.name%3Ddata"),
            ("its pod's claim by its status", "GET", f"{OURS}/persistentvolumeclaims/data/status"),
            ("a volume of another namespace", "GET", "/api/v1/persistentvolumes/theirs-disk"),
            ("all volumes", "GET", "/api/v1/persistentvolumes"),
            ("a volume that does not exist", "GET", "/api/v1/persistentvolumes/no-such"),
            ("classes of storage", "GET", "/apis/storage.k8s.io/v1/storageclasses"),
            ("addresses of Services", "GET", "/apis/networking.k8s.io/v1/ipaddresses"),
            ("the address of the API server, given back", "DELETE", "/apis/networking.k8s.io/v1/ipaddresses/10.96.0.1"),
            ("ranges of addresses", "GET", "/apis/networking.k8s.io/v1/servicecidrs"),
            ("classes of attributes", "GET", "/apis/storage.k8s.io/v1/volumeattributesclasses"),
            ("what is attached to another node", "GET", "/apis/storage.k8s.io/v1/volumeattachments/to-n2"),
            ("all that is attached", "GET", "/apis/storage.k8s.io/v1/volumeattachments"),
            ("what is attached to it, as a watch", "GET",
             "/apis/storage.k8s.io/v1/volumeattachments?watch=1&fieldSelector=metadata.name%3Dto-n1"),
            ("an attachment that does not exist", "GET", "/apis/storage.k8s.io/v1/volumeattachments/no-such"),
            ("its detachment", "DELETE", "/apis/storage.k8s.io/v1/volumeattachments/to-n1"),
            ("where storage is left", "GET", "/apis/storage.k8s.io/v1/csistoragecapacities"),
            ("Ingresses", "GET", "/apis/networking.k8s.io/v1/ingresses"),
            ("policies of the network", "GET", "/apis/networking.k8s.io/v1/networkpolicies"),
            ("templates of pods", "GET", "/api/v1/podtemplates"),
            ("ReplicationControllers", "GET", "/api/v1/replicationcontrollers"),
            ("all namespaces", "GET", "/api/v1/namespaces"), ("a namespace", "GET", "/api/v1/namespaces/theirs"),
            ("all roles", "GET", f"{RBAC}/clusterroles"),
            ("all bindings", "GET", f"{RBAC}/clusterrolebindings"), ("events", "GET", f"{THEIRS}/events"),
            ("workloads", "GET", "/apis/apps/v1/replicasets"), ("Jobs", "GET", "/apis/batch/v1/namespaces/ours/jobs"),
            ("who is behind Services", "GET", "/api/v1/endpoints"),
            ("slices of that", "GET", "/apis/discovery.k8s.io/v1/namespaces/ours/endpointslices"),
            ("CronJobs", "GET", "/apis/batch/v1/cronjobs"),
            ("autoscalers", "GET", "/apis/autoscaling/v2/horizontalpodautoscalers"),
            ("StatefulSets", "GET", "/apis/apps/v1/statefulsets"),
            ("budgets", "GET", "/apis/policy/v1/poddisruptionbudgets"),
            ("metrics of pods", "GET", "/apis/metrics.k8s.io/v1beta1/pods"),
            ("metrics of the server", "GET", "/metrics")):
        yield n1(name, method, path, unchanged=path if method == "DELETE" else None)
    for name, path, body in (
        ("a Secret, made", f"{OURS}/secrets", {"metadata": {"name": "evil"}}),
        ("a Service, made", f"{OURS}/services", {"metadata": {"name": "evil"}, "spec": {"ports": [{"port": 1}]}}),
        (
            "traffic led to itself by Endpoints",
            f"{OURS}/endpoints",
            {"metadata": {"name": "evil"}, "subsets": [{"addresses": [{"ip": "192.0.2.66"}], "ports": [{"port": 80}]}]},
        ),
        (
            "traffic led to itself by a slice",
            "/apis/discovery.k8s.io/v1/namespaces/ours/endpointslices",
            {
                "metadata": {"name": "evil", "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["192.0.2.66"]}],
            },
        ),
        ("a namespace, made", "/api/v1/namespaces", {"metadata": {"name": "evil"}}),
        (
            "a binding to cluster-admin",
            f"{RBAC}/clusterrolebindings",
            {
                "metadata": {"name": "evil"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:nodes"}],
            },
        ),
        ("a workload", "/apis/apps/v1/namespaces/ours/daemonsets", {"metadata": {"name": "evil"}, "spec": {}}),
        (
            "a volume",
            "/api/v1/persistentvolumes",
            {
                "metadata": {"name": "evil"},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}},
            },
        ),
        (
            "a claim",
            f"{OURS}/persistentvolumeclaims",
            {
                "metadata": {"name": "evil"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        ),
        (
            "a class of storage",
            "/apis/storage.k8s.io/v1/storageclasses",
            {"metadata": {"name": "evil"}, "provisioner": "x"}),
            ("an address", "/apis/networking.k8s.io/v1/ipaddresses",
             {"metadata": {"name": "10.96.9.9"}, "spec": {"parentRef": {
                "resource": "nodes", "name": "n1"}}}),
            ("a range of addresses", "/apis/networking.k8s.io/v1/servicecidrs",
             {"metadata": {"name": "evil"}, "spec": {"cidrs": ["10.97.0.0/16"]}}),
            ("a class of attributes", "/apis/storage.k8s.io/v1/volumeattributesclasses",
             {"metadata": {"name": "evil"}, "driverName": "x",
                "parameters": {"a": "b"}},
        ),
        (
            "an attachment to itself",
            "/apis/storage.k8s.io/v1/volumeattachments",
            {
                "metadata": {"name": "evil"},
                "spec": {"attacher": "x", "nodeName": "n1", "source": {"persistentVolumeName": "theirs-disk"}},
            },
        ),
        (
            "a policy of the network",
            "/apis/networking.k8s.io/v1/namespaces/ours/networkpolicies",
            {"metadata": {"name": "evil"}, "spec": {}},
        ),
        ("a ReplicationController", f"{OURS}/replicationcontrollers", {"metadata": {"name": "evil"}, "spec": {}}),
        ("a priority class", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "evil"}, "value": 1}),
        ("a runtime class", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": "evil"}, "handler": "x"}),
    ):
        yield n1(name, "POST", path, body, absent=f"{path}/{body['metadata']['name']}")
    yield n1("PUT of its pod's Secret", "PUT", f"{OURS}/secrets/mounted", {"metadata": {"name": "mounted"}},
             unchanged=f"{OURS}/secrets/mounted")
    for name, path, body in (
            ("its pod's claim, led to another volume", f"{OURS}/persistentvolumeclaims/data",
             {"spec": {"volumeName": "theirs-disk"}}),
            ("attributes of its pod's claim", f"{OURS}/persistentvolumeclaims/data",
             {"spec": {"volumeAttributesClassName": "evil"}}),
            ("status of its pod's claim", f"{OURS}/persistentvolumeclaims/data/status",
             {"status": {"capacity": {"storage": "9Gi"}}}),
            ("its pod's volume, led elsewhere", "/api/v1/persistentvolumes/ours-disk",
             {"spec": {"hostPath": {"path": "/"}}}),
            ("another volume, claimed for its pod", "/api/v1/persistentvolumes/theirs-disk",
             {"spec": {"claimRef": {"namespace": "ours"}}}),
            ("status of its pod's volume", "/api/v1/persistentvolumes/ours-disk/status",
             {"status": {"phase": "Failed"}}),
            ("what is attached to it, led elsewhere", "/apis/storage.k8s.io/v1/volumeattachments/to-n1",
             {"spec": {"nodeName": "n2"}}),
            ("its attachment, said to be done", "/apis/storage.k8s.io/v1/volumeattachments/to-n1/status",
             {"status": {"attached": True}})):
        yield n1(name, "PATCH", path, body, "merge")
    for path in (f"{OURS}/persistentvolumeclaims/data", "/api/v1/persistentvolumes/ours-disk",
                 "/api/v1/persistentvolumes/theirs-disk"):
        yield n1(f"deletion of {path}", "DELETE", path)
    yield n1("patch of its pod's ConfigMap", "PATCH", f"{OURS}/configmaps/settings", {"data": {"a": "2"}}, "merge",
        unchanged=f"{OURS}/configmaps/settings")


def of_tokens():
    token = f"{OURS}/serviceaccounts/app/token"

    def bound(pod, path=None, **more):
        return lambda c: {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": pod,
                                                      "uid": c.uid(path or f"{OURS}/pods/{pod}"),
            **more}}}
    for name, path, body in (
            ("bound to nothing", token, {"spec": {}}), ("bound to a pod of another node", token, bound("on-n2")),
            ("bound to its pod, of an account it does not use",
             f"{OURS}/serviceaccounts/spare/token", bound("on-n1")), ("bound to a pod that is not there", token,
             {"spec": {"boundObjectRef": {"kind": "Pod", "name": "no-such", "uid": "1"}}}),
            ("bound to its pod with another uid", token, bound("on-n1", ON_N2)),
            ("bound to its pod without a uid", token,
                {"spec": {"boundObjectRef": {"kind": "Pod", "name": "on-n1"}}}),
            ("bound to its pod, for an audience that no volume of it names", token,
             lambda c: {"spec": {"audiences": ["vault"], **bound("on-n1")(c)["spec"]}}),
            ("bound to itself", token,
             lambda c: {"spec": {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "n1",
                                                    "uid": c.uid(N1)}}}),
            ("bound to a Secret", token,
             lambda c: {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "mounted",
                "uid": c.uid(f"{OURS}/secrets/mounted")}}}),
            ("of another namespace", f"{THEIRS}/serviceaccounts/app/token", bound("on-n1")),
            ("of an account of kube-system", "/api/v1/namespaces/kube-system/serviceaccounts/default/token",
             {"spec": {}})):
        yield n1(f"a token {name}", "POST", path, body, hides='"token":"ey')


def through_the_gateway():
    """A node reports its own address: the API server must reach only the node there."""
    def led_astray(address, port, path, by="proxier"):
        def act(cluster):
            where = port(cluster)
            code, text = cluster.ask("n1", "PATCH", f"{N1}/status", json.dumps({"status": {
                "addresses": [{"type": "InternalIP", "address": address}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": where}}}}).encode(),
                {"Content-Type": "application/merge-patch+json"})
            if code not in (200, 403, 422):
                return f"the status: {code} {shown(text)}"
            try:
                for reader in (by, "admin"):
                    code, text = cluster.ask(reader, "GET", path)
                    if code < 400 or exposed(text):
                        return f"{reader}: {code} {shown(text)}"
                return None
            finally:
                cluster.admin.patch(f"{N1}/status", {"status": {"addresses": None, "daemonEndpoints": None}})
        return act

    def server(cluster):
        return cluster.port
    for name, address in (("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("::1", "::1"),
                          ("0.0.0.0", "0.0.0.0"), ("127.1", "127.1"),
            ("::ffff:127.0.0.1", "::ffff:127.0.0.1"),
                          ("127.0.0.2", "127.0.0.2")):
        yield Act(f"an address that is the API server's: {name}",
                  led_astray(address, server, f"{N1}/proxy/api/v1/secrets"))
    yield Act("the API server's address, for its metrics", led_astray("127.0.0.1", server, f"{N1}/proxy/metrics"))
    yield Act("the API server's address, for a log", led_astray("127.0.0.1", server, f"{OWN}/log"))
    yield Act("the API server's address, and a path that climbs",
              led_astray("127.0.0.1", server, f"{N1}/proxy/x/../api/v1/secrets"))


def at_another_agent():
    """The agent of n3 is not n1, whatever n1's status says."""
    def act(cluster):
        if cluster.agent is None:
            return None
        cluster.admin.patch(f"{N1}/status", {"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                                                        "daemonEndpoints": {"kubeletEndpoint": {
                                                            "Port": cluster.node_port()}}}})
        try:
            code, text = cluster.ask("admin", "GET", f"{N1}/proxy/containerLogs/theirs/teller/main")
            return f"{code} {shown(text)}" if code < 400 or exposed(text) else None
        finally:
            cluster.admin.patch(f"{N1}/status", {"status": {"addresses": None, "daemonEndpoints": None}})
    yield Act("an address that is another agent's", act)


def as_others():
    yield n1("a signing request, approved", "PATCH", f"{CSRS}/x/approval", {}, "merge")
    yield n1("a signing request, deleted", "DELETE", f"{CSRS}/x")
    yield n1("a webhook, made", "POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {})
    yield Ask("a node without a name, registering", "nameless node", "POST", "/api/v1/nodes",
              {"metadata": {"name": "n9"}}, absent="/api/v1/nodes/n9")
    yield Ask("a node without a name, listing its pods", "nameless node", "GET",
              "/api/v1/pods?fieldSelector=spec.nodeName%3D")


def may_still(cluster):
    """Without these, the refusals above would say little."""
    for method, path, body, kind in (
            ("GET", N1, None, "json"), ("GET", f"/api/v1/pods?{SELECTS_SELF}", None, "json"),
            ("GET", OWN, None, "json"),
            ("GET", f"{OURS}/secrets/mounted", None, "json"),
            ("GET", f"{OURS}/configmaps/settings", None, "json"),
            ("PATCH", f"{OWN}/status", {"status": {"reason": "x"}}, "merge"),
            ("PATCH", f"{LEASES}/n1", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}, "merge"),
            ("PATCH", f"{N1}/status", {"status": {"conditions": []}}, "merge")):
        refused = n1("", method, path, body, kind, want=200).run(cluster)
        assert refused is None, f"{method} {path} by its own node: {refused}"


def attempts(cluster):
    may_still(cluster)
    cluster.show("nameless node", cluster.signed("/O=system:nodes/CN=system:node:"))
    return [*of_other_nodes(), *of_itself(), *of_pods(), *of_what_pods_refer_to(), *of_tokens(), *through_the_gateway(),
            *recordings(),
            *at_another_agent(), *as_others()]
