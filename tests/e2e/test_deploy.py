"""deploy/controller and deploy/dashboard under RBAC: applied by kubectl, carried out by processes with the tokens of
their service accounts.

The controller does its whole work with exactly its permissions and nothing is refused; without any single one of them
something is. So none is missing and none is superfluous. The dashboard gets every list that its page requests, and may
write nothing.
"""
import collections
import contextlib
import http.client
import re
import shutil
import ssl
import time
import unittest
import urllib.request

from dashboard_process import dashboard
from harness import (
    account_kubeconfig,
    Api,
    ApiError,
    Kubectl,
    needs,
    PATIENCE,
    refusals,
    ROOT,
    run,
    running,
    serving,
    wait_for,
    workspace,
)
from test_leader import silent_node

RBAC = "/apis/rbac.authorization.k8s.io/v1"
SYSTEM = "/api/v1/namespaces/kube-system"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
OWN_LEASE = LEASES.format("kube-system") + "/spillway-controller"
ROLES = (f"{RBAC}/clusterroles/spillway-controller", f"{RBAC}/namespaces/kube-system/roles/spillway-controller",
         f"{RBAC}/namespaces/kube-node-lease/roles/spillway-controller-heartbeats")
FAST = ("--node-monitor-period=100ms", "--node-monitor-grace-period=1s")
BESIDE = "--beside-stock-controllers"

# One permission: a verb on a resource, of these names if there are any.
Permission = collections.namedtuple("Permission", "role group resource verb names")


def permissions_of(role):
    return [Permission(role["metadata"]["name"], group, resource, verb, tuple(rule.get("resourceNames", ())))
            for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"]]


def rule_of(permission):
    rule = {"apiGroups": [permission.group], "resources": [permission.resource], "verbs": [permission.verb]}
    return {**rule, "resourceNames": list(permission.names)} if permission.names else rule


def leaving_pod(name, node):
    """The pod does not tolerate a missing node, and needs no time to end."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "main", "image": "none"}],
                     "tolerations": [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
                                      "tolerationSeconds": 0}
                                     for key in ("not-ready", "unreachable")]}}


def conditions_of(thing):
    return {each["type"]: each["status"] for each in thing["status"].get("conditions", [])}


@needs(shutil.which("kubectl"), "needs kubectl")
class LifecycleController(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = stack.enter_context(workspace())
        self.kubeconfig = self.folder / "kubeconfig"
        self.api = serving(stack.enter_context(running(self.folder, "apiserver", "--data-dir", self.folder / "data",
                                                       "--port", "0",
                                                       "--write-kubeconfig", self.kubeconfig)), self.kubeconfig)
        Kubectl(self.kubeconfig)("apply", "-f", ROOT / "deploy/controller/lifecycle-controller.yaml")
        self.account = self.identity("spillway-controller")
        self.beats, self.beaten = 0, 0.0
        self.api.create("/api/v1/nodes", silent_node("well"))
        self.api.create(LEASES.format("kube-node-lease"),
                        {"metadata": {"name": "well"}, "spec": {"holderIdentity": "well", "leaseDurationSeconds": 40}})

    def identity(self, account):
        return account_kubeconfig(self.api, self.kubeconfig, account)

    def command(self, account):
        """The manifest's, with this account and an address of its own."""
        deployment = self.api.get(f"/apis/apps/v1/namespaces/kube-system/deployments/{account}")
        program, *words = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
        self.assertEqual(program, "spillway")
        self.assertEqual(deployment["spec"]["template"]["spec"]["serviceAccountName"], account)
        return [*(word for word in words
                  if not re.match(r"--(kubeconfig|bind-address|secure-port|advertise-address)=", word)),
                f"--kubeconfig={self.account}", *FAST]

    def wait(self, what, condition):
        """As wait_for, while the node `well` renews its lease and posts its status: not every zone is down."""
        def beat_and_look():
            if time.monotonic() - self.beaten > 0.2:
                self.beats, self.beaten = self.beats + 1, time.monotonic()
                minutes, seconds = divmod(self.beats, 60)
                now = f"2026-01-01T00:{minutes:02}:{seconds:02}"
                self.api.patch(LEASES.format("kube-node-lease") + "/well", {"spec": {"renewTime": now + ".000000Z"}})
                status = silent_node("well")["status"]
                status["conditions"][0]["lastHeartbeatTime"] = now + "Z"
                self.api.patch("/api/v1/nodes/well/status", {"status": status})
            return condition()
        return wait_for(what, beat_and_look)

    def fail_node(self, name):
        """A node that was ready and says nothing any more, with a pod."""
        self.api.create("/api/v1/nodes", silent_node(name))
        self.api.create("/api/v1/namespaces/default/pods", leaving_pod(name, name))
        self.api.patch(f"/api/v1/namespaces/default/pods/{name}/status",
                       {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})

    def pod_is_gone(self, name):
        return self.api.find(f"/api/v1/namespaces/default/pods/{name}") is None

    def metrics_of_the_leader(self, account):
        """The page that a scraper with the token of this account gets; the empty string if it is not let in."""
        lease = self.api.find(OWN_LEASE)
        address = lease and lease["metadata"].get("annotations", {}).get("spillway.dev/controller-url")
        if not address or not lease["spec"].get("holderIdentity"):
            return ""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(address + "/metrics",
                                         headers={"Authorization": f"Bearer {Api(account).token}"})
        try:
            return urllib.request.urlopen(request, context=context, timeout=PATIENCE).read().decode()
        except (OSError, http.client.HTTPException):  # not let in, or the leader before this one
            return ""

    def bind(self, account, *roles):
        """A new service account of kube-system with these roles of the manifest."""
        self.api.create(f"{SYSTEM}/serviceaccounts", {"metadata": {"name": account}})
        for kind, name in roles:
            where = RBAC if kind == "ClusterRole" else f"{RBAC}/namespaces/kube-system"
            self.api.create(f"{where}/{kind.lower().replace('role', 'rolebindings')}", {
                "metadata": {"name": f"{account}-{name}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": account}]})
        return self.identity(account)

    def test_its_work_with_its_permissions(self):
        viewer = self.bind("viewer", ("ClusterRole", "spillway-controller-viewer"),
                           ("Role", "spillway-controller-viewer"))
        holder = self.bind("holder", ("Role", "spillway-controller-holder"))
        with running(self.folder, *self.command("spillway-controller")) as process:
            self.wait("the lease", lambda: (self.api.find(OWN_LEASE) or {}).get("spec", {}).get("holderIdentity"))
            self.api.create("/api/v1/nodes", silent_node("n1"))
            self.api.create("/api/v1/namespaces/default/pods",
                            leaving_pod("stays", "n1")
                            | {"metadata": {"name": "stays", "finalizers": ["test/watched"]}})
            self.api.patch("/api/v1/namespaces/default/pods/stays/status",
                           {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
            pod = lambda: self.api.get("/api/v1/namespaces/default/pods/stays")
            self.wait("the deletion", lambda: "deletionTimestamp" in pod()["metadata"])
            self.wait("its conditions",
                      lambda: {"Ready": "False", "DisruptionTarget": "True"}.items() <= conditions_of(pod()).items())
            self.assertEqual(conditions_of(self.api.get("/api/v1/nodes/n1"))["Ready"], "Unknown")
            self.wait("both taints",
                      lambda: {(taint["key"], taint["effect"])
                               for taint in self.api.get("/api/v1/nodes/n1")["spec"].get("taints", [])}
                      == {("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")})
            self.wait("the events", lambda: {"RegisteredNode", "NodeNotReady", "TaintManagerEviction"}
                      <= {event["reason"] for event in self.api.get("/api/v1/events")["items"]})
            self.assertIn('rest_client_requests_total{code="200"',
                          self.wait("its metrics", lambda: self.metrics_of_the_leader(viewer)))
            self.assertNotIn('code="403"', self.metrics_of_the_leader(viewer))
            code, out, error = run("zones", "--kubeconfig", viewer)
            self.assertEqual(code, 0, error)
            self.assertIn("::n1", out)
            code, _, error = run("hold", "--kubeconfig", holder)
            self.assertEqual(code, 0, error)
            self.wait("the hold", lambda: "held by hand" in process.log.read_text())
            self.assertEqual(run("resume", "--kubeconfig", holder)[0], 0)
            self.assertNotRegex(process.log.read_text(),
                                r"(?i)forbidden|cannot (get|list|watch|create|patch|update|delete)")
            self.assertEqual(refusals(self.api), {})

            # Requests that the manifests do not allow.
            controller = Api(self.account)
            self.addCleanup(controller.close)
            for path in (f"{SYSTEM}/secrets", LEASES.format("kube-system"), f"{SYSTEM}/configmaps/other",
                         "/api/v1/namespaces/default/pods/stays"):
                with self.assertRaisesRegex(ApiError, "403"):
                    controller.get(path)
            with self.assertRaisesRegex(ApiError, "403"):
                controller.delete("/api/v1/nodes/n1")
            self.assertEqual(self.metrics_of_the_leader(holder), "")
            self.assertEqual(run("hold", "--kubeconfig", viewer)[0], 1)
            Kubectl(self.account)("auth", "can-i", "list", "secrets", "-A", code=1)

    def test_budgets_need_no_deletion(self):
        """With --respect-disruption-budgets the controllers need no right to delete pods, as the manifest says."""
        role = self.api.get(ROLES[0])
        role["rules"] = [rule for rule in role["rules"] if rule["verbs"] != ["delete"]]
        self.api.request("PUT", ROLES[0], role)
        self.fail_node("n1")
        with running(self.folder, *self.command("spillway-controller"), "--respect-disruption-budgets"):
            self.wait("the eviction", lambda: self.pod_is_gone("n1"))
        self.assertEqual(refusals(self.api), {})

    def test_every_permission_is_needed(self):
        roles = [self.api.get(path) for path in ROLES]
        everything = [permission for role in roles for permission in permissions_of(role)]
        scraper = self.bind("scraper", ("ClusterRole", "spillway-controller-viewer"))
        rows = []
        for number, permission in enumerate(everything):
            taken, flags, provoke = self.provocation(permission, f"n{number}", scraper)
            for path, role in zip(ROLES, roles):
                rules = [rule_of(each) for each in permissions_of(role) if each not in taken]
                self.api.patch(path, {"rules": rules})
            with contextlib.suppress(ApiError):
                self.api.delete(OWN_LEASE)
            before = refusals(self.api)
            self.fail_node(f"n{number}")
            expected = (permission.verb, permission.resource.split("/")[0])
            started = time.monotonic()
            words = [word for word in self.command("spillway-controller") if word not in flags]
            with running(self.folder, *words, *(flag for flag in flags if flag != BESIDE)):
                try:
                    self.wait(f"{permission} to be missed", lambda: provoke()
                              or refusals(self.api)[expected] > before[expected])
                except AssertionError as error:
                    raise AssertionError(f"{error}; refused was {dict(refusals(self.api) - before)}") from None
            refused = refusals(self.api) - before
            rows.append((permission, time.monotonic() - started,
                         " ".join(sorted(f"{verb} {resource}" for verb, resource in refused))))
            self.api.delete(f"/api/v1/nodes/n{number}")
            with contextlib.suppress(ApiError):
                self.api.delete(f"/api/v1/namespaces/default/pods/n{number}", grace=0)
        print(f"\n{'WITHOUT':<58} {'AFTER':<7} REFUSED")
        for permission, seconds, refused in rows:
            names = f" {','.join(permission.names)}" if permission.names else ""
            print(f"{permission.verb + ' ' + permission.resource + names:<58} {seconds:.1f} s   {refused}")
        print(f"{len(rows)} permissions, each refused when it is missing", flush=True)

    def provocation(self, permission, node, scraper):
        """The permissions that must be missing as well, the flags that differ, and the event on the node or the leader
        that makes the program use the permission."""
        key = (permission.group, permission.resource, permission.verb)
        taken, flags, provoke = {permission}, (), lambda: False
        if key == ("", "nodes", "get"):  # read again when a write failed
            taken.add(permission._replace(resource="nodes/status", verb="patch"))
        elif permission.resource in ("pods/eviction", "poddisruptionbudgets"):
            flags = ("--respect-disruption-budgets",)
        elif permission.names == ("kube-controller-manager",):
            flags = (BESIDE,)
        elif permission.resource in ("tokenreviews", "subjectaccessreviews"):
            provoke = lambda: self.metrics_of_the_leader(scraper) and False
        elif key == ("", "events", "patch"):  # the same again is the same event: the node comes back and goes once more
            def provoke():
                if conditions_of(self.api.get(f"/api/v1/nodes/{node}"))["Ready"] == "Unknown":
                    status = silent_node(node)["status"]
                    status["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:01:00Z"
                    self.api.patch(f"/api/v1/nodes/{node}/status", {"status": status})
        return taken, flags, provoke


@needs(shutil.which("kubectl"), "needs kubectl")
class DashboardAccount(unittest.TestCase):
    def test_the_page_may_read_all_that_it_requests(self):
        folder = self.enterContext(workspace())
        kubeconfig = folder / "kubeconfig"
        api = serving(self.enterContext(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                "--write-kubeconfig", kubeconfig)), kubeconfig)
        Kubectl(kubeconfig)("apply", "-k", ROOT / "deploy/dashboard")
        account = account_kubeconfig(api, kubeconfig, "spillway-dashboard")
        requests = sorted(set(re.findall(r"'(/apis?/[\w./-]+)[?']", (ROOT / "ui/src/live/cluster.ts").read_text())))
        self.assertGreater(len(requests), 9)
        with dashboard(folder, account) as page:
            for path in requests:
                with self.subTest(path=path):
                    code, text = page.ask(path.removeprefix("/"))
                    self.assertEqual(code, 200, text)
            # may be read, and is not there
            self.assertEqual(page.ask("api/v1/namespaces/kube-system/configmaps/spillway-hold")[0], 404)
        self.assertEqual(refusals(api), {})
        for refused in (("create", "configmaps"), ("delete", "pods"), ("list", "secrets"),
                        ("get", "nodes", "--subresource=proxy")):
            Kubectl(account)("auth", "can-i", *refused, "-n", "kube-system", code=1)


if __name__ == "__main__":
    unittest.main()
