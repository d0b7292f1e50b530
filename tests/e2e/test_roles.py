"""The roles that every cluster has, as kubectl gives them away, and the rights of their holders. No controllers run:
the API server alone."""
import base64
import json
import re
import shutil
import unittest

from harness import account_kubeconfig, Kubectl, needs, running, serving, wait_for, workspace

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
STOCK_ROLES = 64  # number in kube-apiserver 1.32.3 with its default feature gates
PEOPLE = ("viewer", "editor", "admin", "nobody")


def crontabs(name, label, verbs):
    """A role of the kind CronTab that adds to one of those of every cluster."""
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {f"rbac.authorization.k8s.io/aggregate-to-{label}": "true"}},
            "rules": [{"apiGroups": ["stable.example.com"], "resources": ["crontabs"], "verbs": verbs}]}


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {"group": "stable.example.com", "scope": "Namespaced",
             "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object",
                 "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}


@needs(shutil.which("kubectl"), "needs kubectl")
class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        (cls.folder / "tokens").write_text("".join(f"token-of-{who},{who},{who}\n" for who in PEOPLE))
        (cls.folder / "tokens").chmod(0o600)
        cls.kubeconfig = cls.folder / "kubeconfig"
        cls.server = cls.enterClassContext(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port",
                                                   "0", "--write-kubeconfig",
                                                   cls.kubeconfig, "--token-auth-file", cls.folder / "tokens"))
        cls.api = serving(cls.server, cls.kubeconfig)
        cls.root = Kubectl(cls.kubeconfig)
        cls.root("create", "namespace", "shop")
        for who, role in (("viewer", "view"), ("editor", "edit"), ("admin", "admin")):
            cls.root("create", "rolebinding", who, f"--clusterrole={role}", f"--user={who}", "-n", "shop")
            setattr(cls, who, cls.kubectl_of(who))
        cls.nobody = cls.kubectl_of("nobody")
        cls.root("create", "secret", "generic", "keys", "--from-literal=a=b", "-n", "shop")
        cls.root("create", "configmap", "settings", "--from-literal=a=b", "-n", "shop")

    @classmethod
    def kubectl_of(cls, who):
        cluster = dict(re.findall(r"(server|certificate-authority-data): (\S+)", cls.kubeconfig.read_text()))
        path = cls.folder / f"{who}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": f"token-of-{who}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}]}))
        path.chmod(0o600)
        return Kubectl(path)

    def test_service_accounts_verify_tokens_with_the_keys_that_are_published(self):
        self.root("create", "serviceaccount", "verifier", "-n", "shop")
        pod = Kubectl(account_kubeconfig(self.api, self.kubeconfig, "verifier", "shop"))
        document = json.loads(pod("get", "--raw", "/.well-known/openid-configuration"))
        keys = json.loads(pod("get", "--raw", "/openid/v1/jwks"))["keys"]
        self.assertTrue(document["jwks_uri"].endswith("/openid/v1/jwks"), document)
        self.assertEqual(document["id_token_signing_alg_values_supported"], ["ES256"])
        token = self.api.create("/api/v1/namespaces/shop/serviceaccounts/verifier/token",
                                {"spec": {}})["status"]["token"]
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2])
        self.assertEqual([(key["kid"], key["alg"]) for key in keys], [(header["kid"], header["alg"])])
        self.assertEqual(document["issuer"], claims["iss"])
        self.nobody("get", "--raw", "/openid/v1/jwks", code=1)

    def test_who_has_no_role_reads_nothing(self):
        self.assertIn("forbidden", self.nobody("get", "configmaps", code=1))
        self.assertIn("selfsubjectreviews.authentication.k8s.io", self.nobody("auth", "can-i", "--list"))

    def test_view_reads_but_no_secrets_and_no_roles(self):
        self.assertIn("settings", self.viewer("get", "configmaps"))
        for what in ("pods", "services", "deployments", "events", "endpoints", "namespaces/shop"):
            self.viewer("get", what)
        for what in ("secrets", "roles", "rolebindings"):
            self.assertIn("forbidden", self.viewer("get", what, code=1), what)
        self.assertIn("forbidden", self.viewer("create", "configmap", "x", code=1))
        self.assertIn("forbidden", self.viewer("get", "configmaps", "-n", "default", code=1))

    def test_edit_writes_but_no_roles(self):
        self.assertIn("keys", self.editor("get", "secrets"))
        self.editor("create", "configmap", "of-the-editor")
        self.editor("create", "deployment", "web", "--image=none")
        self.editor("delete", "configmap", "of-the-editor")
        self.assertIn("forbidden", self.editor("create", "role", "r", "--verb=get", "--resource=pods", code=1))
        self.assertIn("forbidden", self.editor("create", "rolebinding", "r", "--clusterrole=view", "--user=x", code=1))
        self.assertIn("forbidden", self.editor("create", "quota", "q", "--hard=pods=1", code=1))

    def test_admin_grants_what_he_holds_in_his_namespace(self):
        self.admin("create", "role", "r", "--verb=get", "--resource=pods")
        self.admin("create", "rolebinding", "given", "--clusterrole=edit", "--user=somebody")
        self.assertIn("not currently held",
                      self.admin("create", "role", "strong", "--verb=get", "--resource=nodes", code=1))
        self.assertIn("not currently held",
                      self.admin("create", "rolebinding", "strong", "--clusterrole=cluster-admin", "--user=x", code=1))
        self.assertIn("forbidden", self.admin("create", "clusterrole", "c", "--verb=get", "--resource=pods", code=1))
        self.assertIn("forbidden",
                      self.admin("create", "role", "r", "--verb=get", "--resource=pods", "-n", "default", code=1))

    def test_kubectl_lists_what_one_may_do(self):
        listed = self.viewer("auth", "can-i", "--list")
        self.assertRegex(listed, r"configmaps\s+\[\]\s+\[\]\s+\[get list watch\]")
        self.assertNotRegex(listed, r"(?m)^secrets\s")
        self.assertRegex(self.editor("auth", "can-i", "--list"), r"secrets\s+\[\]\s+\[\]\s+\[.*create.*\]")
        self.assertRegex(self.admin("auth", "can-i", "--list"),
                         r"rolebindings\.rbac\.authorization\.k8s\.io\s+\[\]\s+\[\]\s+\[.*create.*\]")
        self.assertEqual(self.editor("auth", "can-i", "create", "deployments").strip(), "yes")

    def test_a_list_with_a_limit_has_pages(self):
        names, token, pages = [], "", 0
        while True:
            page = self.api.get(f"{ROLES}?limit=10&continue={token}")
            names += [each["metadata"]["name"] for each in page["items"]]
            pages, token = pages + 1, page["metadata"].get("continue", "")
            if not token:
                break
            self.assertEqual(len(page["items"]), 10)
        self.assertGreater(pages, STOCK_ROLES // 10)
        self.assertEqual(len(names), len(set(names)))
        stock = [name for name in names if not name.startswith("spillway:") and not name.startswith("crontabs")]
        self.assertEqual(len(stock), STOCK_ROLES)
        self.assertIn("system:controller:job-controller",
                      self.root("get", "clusterroles", "--chunk-size=7", "-o", "name"))

    def test_roles_of_a_custom_kind_add_to_those_of_every_cluster(self):
        self.root.apply(DEFINITION)
        self.root("wait", "--for=condition=Established", "crd/crontabs.stable.example.com")
        self.addCleanup(self.root, "delete", "crd", "crontabs.stable.example.com")
        self.assertIn("forbidden", self.viewer("get", "crontabs", code=1))
        self.root.apply(crontabs("crontabs-view", "view", ["get", "list", "watch"]))
        self.root.apply(crontabs("crontabs-edit", "edit", ["create", "delete", "patch", "update"]))
        self.addCleanup(self.root, "delete", "clusterroles", "crontabs-view", "crontabs-edit", "--ignore-not-found")

        def allows(role, verb):
            return any(verb in rule["verbs"] for rule in self.root.get("clusterrole", role)["rules"]
                       if rule.get("apiGroups") == ["stable.example.com"])
        # Each role gathers those before it, and each is written by itself.
        for role, verb in (("view", "get"), ("edit", "create"), ("admin", "delete")):
            wait_for(f"{role} to have {verb}", lambda role=role, verb=verb: allows(role, verb))
        self.viewer("get", "crontabs")
        self.editor("create", "-f", "-",
                    given=json.dumps({"apiVersion": "stable.example.com/v1", "kind": "CronTab",
                                      "metadata": {"name": "c"}, "spec": {}}))
        self.assertIn("forbidden", self.viewer("delete", "crontab", "c", code=1))
        self.admin("delete", "crontab", "c")
        self.root("delete", "clusterrole", "crontabs-edit")
        wait_for("edit to lose the kind's verbs", lambda: not allows("edit", "create"))

    def test_reconcile_of_the_same_roles_changes_nothing(self):
        before = self.api.get(f"{ROLES}/view")
        reconciled = self.root("auth", "reconcile", "-f", "-", given=json.dumps(before))
        self.assertIn("clusterrole.rbac.authorization.k8s.io/view reconciled", reconciled)
        self.assertEqual(self.api.get(f"{ROLES}/view")["metadata"]["resourceVersion"],
                         before["metadata"]["resourceVersion"])


class Restart(unittest.TestCase):
    def test_what_was_taken_from_the_roles_is_back(self):
        with workspace() as folder:
            def server():
                (folder / "kubeconfig").unlink(missing_ok=True)
                return running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                               folder / "kubeconfig")

            with server() as process:
                api = serving(process, folder / "kubeconfig")
                api.delete(f"{ROLES}/system:aggregate-to-edit")
                api.patch(f"{ROLES}/system:kube-dns", {"rules": None})
                api.patch(f"{ROLES}/system:heapster",
                          {"rules": None,
                           "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}})
                wait_for("edit to lose its rules",
                         lambda: "secrets" not in json.dumps(api.get(f"{ROLES}/edit")["rules"]))
                process.kill()
            with server() as process:
                api = serving(process, folder / "kubeconfig")
                wait_for("edit to have its rules again",
                         lambda: "secrets" in json.dumps(api.get(f"{ROLES}/edit")["rules"]))
                wait_for("the DNS server to have its rule again",
                         lambda: len(api.get(f"{ROLES}/system:kube-dns")["rules"] or []) == 1)
                self.assertIsNone(api.get(f"{ROLES}/system:heapster")["rules"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
