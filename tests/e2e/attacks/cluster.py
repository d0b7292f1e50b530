"""The cluster under attack: an API server, a node with a real agent (n3), nodes that are objects only (n1, n2), and the
attackers.

The objects worth stealing are in the namespace "theirs": the Secret "hidden", whose value stands in the log of the pod
"teller" as well.
Attackers have their rights, if any, in the namespace "ours".
"""
import contextlib
import http.client
import json
import ssl

from attacks.attempt import HIDDEN
from attacks.authority import Certificate, Workshop
from attacks.connection import exchange, open_connection
from harness import ApiError, can_write_cgroups, pod, running, serving, wait_for

TALK = "i=0; while [ $i -lt 2000 ]; do echo line $i of the pod that talks; i=$((i+1)); done; exec tail -f /dev/null"
# Bodies of ConfigMaps are written down, so that they can be tried as well.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, userGroups: [system:nodes], verbs: [get, list, watch]}
- {level: RequestResponse, resources: [{resources: [configmaps]}]}
- {level: Metadata}
"""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OURS, THEIRS = "/api/v1/namespaces/ours", "/api/v1/namespaces/theirs"
# Rights of the attackers: (name, namespace or None for everywhere, rules as (API groups, resources, verbs, names)).
GRANTS = [
    ("creator", "ours", [("", "pods", "create", "")]),
    ("watcher", None, [("", "pods secrets", "watch", "")]),
    ("lister", None, [("", "pods", "list", "")]),
    ("getter", "ours", [("", "pods configmaps", "get", "")]),
    ("patcher", "ours", [("", "configmaps", "patch get", "")]),
    ("updater", "ours", [("", "configmaps", "update get", ""), ("coordination.k8s.io", "leases", "update get", "")]),
    ("deleter", "ours", [("", "configmaps", "delete", "")]),
    ("one-name", "theirs", [("", "secrets", "get list watch", "open")]),
    ("role-writer", None,
     [("rbac.authorization.k8s.io", "roles rolebindings clusterroles clusterrolebindings",
       "get create update patch delete", ""),
                           ("", "configmaps", "get list", "")]),
    ("role-writer-ours", "ours",
     [("rbac.authorization.k8s.io", "roles rolebindings", "get create update patch delete", "")]),
    ("labeller", None, [("rbac.authorization.k8s.io", "clusterroles", "get create update patch", "")]),
    ("subresources", "ours", [("", "pods", "*", ""), ("", "nodes", "*", "")]),
    ("any-log", "ours", [("", "*/log", "get", "")]),
    ("requester", None, [("certificates.k8s.io", "certificatesigningrequests", "get list create update patch", "")]),
    ("approver", None,
     [("certificates.k8s.io", "certificatesigningrequests certificatesigningrequests/approval", "get update patch",
       "")]),
    ("issuer", None,
     [("certificates.k8s.io", "certificatesigningrequests certificatesigningrequests/status", "get update patch", "")]),
    ("pod-proxier", "ours", [("", "pods/proxy services/proxy", "get create", "")]),
    ("silent-reader", "ours", [("", "pods/proxy", "get", "")]),
    ("proxier", None, [("", "nodes/proxy", "get", ""), ("", "nodes", "get", "")]),
    ("token-maker", "ours", [("", "serviceaccounts/token", "create", "app")]),
    ("pod-admin", "ours",
     [("", "pods pods/log pods/status pods/eviction pods/binding pods/ephemeralcontainers", "*", ""),
        ("", "configmaps", "*", ""),
                           ("apps", "replicasets replicasets/scale deployments daemonsets", "*", "")]),
    ("debugger", "ours", [("", "pods/ephemeralcontainers", "get update patch", ""), ("", "pods", "get", "")]),
    ("resizer", "ours", [("", "pods/resize", "get update patch", ""), ("", "pods", "get", "")]),
    ("player", None, []),
    ("player-of-nodes", None, [("", "nodes", "list", "")]),
    ("log-reader", "ours", [("", "pods/log", "get", ""), ("", "pods", "get list watch", "")]),
]


def rule(groups, resources, verbs, names=""):
    """An RBAC rule; each argument holds words parted by blanks, the first one API groups ("" is the core group)."""
    made = {"apiGroups": groups.split(" "), "resources": resources.split(), "verbs": verbs.split()}
    return {**made, "resourceNames": names.split()} if names else made


def secret(name, value, namespace):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "stringData": {"value": value}}


def role_ref(kind, name):
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def subject(user):
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}


class Cluster:
    """An API server, and every identity as a client of it. One thread per Cluster asks; connections of `send` are their
    own.
    """

    def __init__(self, folder, server, admin):
        self.folder, self.server, self.admin = folder, server, admin
        self.host, self.port = admin.host, admin.port
        self.pki = folder / "data" / "pki"
        self.audit_log = folder / "audit.log"
        self.workshop = Workshop(folder / "certificates")
        self.authority = Certificate(self.pki / "ca.crt", self.pki / "ca.key")
        self.contexts, self.tokens, self.connections = {}, {}, {}
        self.contexts["nobody"] = ssl.create_default_context(cafile=str(self.authority.chain))
        self.show("admin", Certificate(self.pki / "admin.crt", self.pki / "admin.key"))
        self.show("alice", self.signed("/CN=alice"))
        for name in ("n1", "n2", "n3"):
            self.show(name, self.signed(f"/O=system:nodes/CN=system:node:{name}"))
        for name, _, _ in GRANTS:
            self.show(name, self.signed(f"/CN={name}"))
        self.agent = None

    # Identities.
    def signed(self, subject_text, **more):
        return self.workshop.sign(subject_text, self.authority, **more)

    def show(self, identity, certificate):
        """From now on `identity` shows this certificate."""
        self.contexts[identity] = certificate.context(self.authority.chain)

    def bear(self, identity, token):
        """From now on `identity` sends this token, without a certificate."""
        self.contexts[identity], self.tokens[identity] = self.contexts["nobody"], token

    # Requests.
    def ask(self, by, method, path, body=None, headers=None):
        """(status code, text) of one request; code 0 and the problem if no answer came."""
        headers = dict(headers or {})
        if by in self.tokens:
            headers.setdefault("Authorization", f"Bearer {self.tokens[by]}")
        for attempt in (0, 1):
            fresh = by not in self.connections
            if fresh:
                self.connections[by] = http.client.HTTPSConnection(self.host, self.port, timeout=60,
                                                                   context=self.contexts[by])
            try:
                self.connections[by].request(method, path, body, headers)
                answer = self.connections[by].getresponse()
                text = answer.read().decode("utf-8", errors="replace")
                if answer.will_close:
                    self.connections.pop(by).close()
                return answer.status, text
            except (OSError, http.client.HTTPException) as error:
                self.connections.pop(by).close()
                if fresh or attempt:
                    return 0, repr(error)
        raise AssertionError("not reached")

    def json(self, by, method, path, body=None, headers=None):
        """(status code, document) of one request."""
        code, text = self.ask(by, method, path, None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json", **(headers or {})})
        return code, json.loads(text)

    def open(self, by="nobody", timeout=15.0):
        return open_connection(self.host, self.port, self.contexts[by], timeout)

    def send(self, by, data):
        with self.open(by) as connection:
            return exchange(connection, data)

    def close(self):
        while self.connections:
            self.connections.popitem()[1].close()

    # Objects.
    def uid(self, path):
        return self.admin.get(path)["metadata"]["uid"]

    def furnish(self):
        """Creates the objects that the attempts target."""
        make = self.admin.create
        for name in ("ours", "theirs"):
            make("/api/v1/namespaces", {"metadata": {"name": name}})
        make(f"{THEIRS}/secrets", secret("hidden", HIDDEN, "theirs"))
        make(f"{THEIRS}/secrets", secret("open", "no matter", "theirs"))
        make(f"{OURS}/secrets", secret("mounted", "a pod of n1 uses this", "ours"))
        make(f"{OURS}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        make(f"{THEIRS}/configmaps", {"metadata": {"name": "settings"}, "data": {"a": "1"}})
        for namespace in (OURS, THEIRS):
            for account in ("default", "app", "spare"):
                try:
                    make(f"{namespace}/serviceaccounts", {"metadata": {"name": account}})
                except ApiError as error:  # the server makes "default", some time after its namespace
                    if error.code != 409:
                        raise
        for name in ("n1", "n2"):
            make("/api/v1/nodes", {"metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}},
                                   "spec": {"taints": [{"key": "kept", "effect": "NoSchedule"}]}})
            make("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
                 {"metadata": {"name": name}, "spec": {"holderIdentity": name}})
            make("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": name}, "spec": {"drivers": []}})
            make("/apis/storage.k8s.io/v1/volumeattachments", {"metadata": {"name": f"to-{name}"}, "spec": {
                "attacher": "csi.example.com", "nodeName": name, "source": {"persistentVolumeName": "disk"}}})
        for namespace, claim in (("ours", "data"), ("theirs", "data")):
            size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"],
                    "storageClassName": ""}
            make(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {"metadata": {"name": claim},
                "spec": {**size, "volumeName": f"{namespace}-disk"}})
            make("/api/v1/persistentvolumes",
                 {"metadata": {"name": f"{namespace}-disk"}, "spec": {"capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"], "hostPath": {"path": f"/srv/{namespace}"},
                                                                      "claimRef": {"namespace": namespace,
                                                                                   "name": claim}}})
        disk = [{"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}]
        reference = [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "mounted", "key": "value"}}},
                     {"name": "W", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]
        self.bound_pod("ours", "on-n1", "n1", serviceAccountName="app", env=reference, volumes=disk)
        self.bound_pod("ours", "on-n2", "n2", serviceAccountName="app")
        self.bound_pod("theirs", "other", "n2", volumes=disk,
                       env=[{"name": "V", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "value"}}}])
        for name, namespace, rules in GRANTS:
            paths = [{"nonResourceURLs": ["/ui/what-if"], "verbs": ["post"]}] if name.startswith("player") else []
            self.grant(name, namespace, [rule(*each) for each in rules] + paths)
        make(f"{RBAC}/namespaces/ours/rolebindings",
             {"metadata": {"name": "editor"}, "roleRef": role_ref("ClusterRole", "edit"),
                                                     "subjects": [subject("editor")]})
        self.show("editor", self.signed("/CN=editor"))

    def bound_pod(self, namespace, name, node, env=(), **spec):
        made = pod(name, ["true"], nodeName=node, tolerations=[{"operator": "Exists"}], **spec)
        made["spec"]["containers"][0]["env"] = list(env)
        return self.admin.create(f"/api/v1/namespaces/{namespace}/pods", made)

    def grant(self, user, namespace, rules):
        local = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        kind = "Role" if namespace else "ClusterRole"
        self.admin.create(f"{local}/{kind.lower()}s", {"metadata": {"name": user}, "rules": rules})
        self.admin.create(f"{local}/{kind.lower()}bindings",
                          {"metadata": {"name": user}, "roleRef": role_ref(kind, user),
            "subjects": [subject(user)]})

    def token(self, account, namespace="ours", spec=None):
        return self.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                                 {"spec": spec or {}})["status"]["token"]

    # The node with an agent.
    def kubeconfig_of(self, identity, certificate):
        authority = self.authority.chain
        file = self.folder / f"{identity}.kubeconfig"
        file.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x",
                          "cluster": {"server": f"https://{self.host}:{self.port}",
                                      "certificate-authority": str(authority)}}],
            "users": [{"name": "x", "user": {"client-certificate": str(certificate.chain),
                                             "client-key": str(certificate.key)}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}))
        return file

    def node_port(self):
        """Address of the agent's own server."""
        return self.admin.get("/api/v1/nodes/n3")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]

    def run_pods(self):
        """The pods of n3, once they run: "teller" prints the hidden value, "talker" its own activity."""
        for namespace, name, script in (("theirs", "teller", f"echo {HIDDEN}; exec tail -f /dev/null"),
                                        ("ours", "talker", TALK)):
            self.admin.create(f"/api/v1/namespaces/{namespace}/pods", pod(name, ["sh", "-c", script], nodeName="n3"))
        for namespace, name in (("theirs", "teller"), ("ours", "talker")):
            wait_for(f"pod {name}", lambda n=namespace, p=name: self.admin.pod_phases(n).get(p) == "Running")
            log = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
            wait_for(f"the log of {name}", lambda path=log: self.ask("admin", "GET", path)[0] == 200)
            wait_for(f"all of the log of {name}", lambda path=log: self.admin.get(path).count("\n") in (1, 2000))


@contextlib.contextmanager
def attacked_cluster(folder):
    """A Cluster; with an agent where this machine lets cgroups be made."""
    kubeconfig = folder / "kubeconfig"
    with contextlib.ExitStack() as stack:
        (folder / "audit-policy.yaml").write_text(AUDIT_POLICY)
        server = stack.enter_context(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                             "--write-kubeconfig", kubeconfig,
            "--enable-bootstrap-token-auth", "--audit-policy-file", folder / "audit-policy.yaml", "--audit-log-path",
                                             folder / "audit.log"))
        cluster = Cluster(folder, server, serving(server, kubeconfig))
        stack.callback(cluster.close)
        cluster.furnish()
        if can_write_cgroups():
            node = cluster.kubeconfig_of("n3", cluster.signed("/O=system:nodes/CN=system:node:n3"))
            cluster.agent = stack.enter_context(running(folder, "agent", "--kubeconfig", node, "--node-name", "n3",
                                                        "--node-ip", "127.0.0.1",
                "--port", "0",
                                                        "--node-memory", "256Mi", "--state-dir", folder / "state"))
            wait_for("the node", lambda: cluster.admin.nodes_ready() == ["n3"])
            cluster.run_pods()
        yield cluster


