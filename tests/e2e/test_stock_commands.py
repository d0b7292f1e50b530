"""Commands of kubectl and requests of clients that a stock server answers and this one once did not: each row is one of
them. Those that have a test of their own are not repeated here (rollouts, apply of both kinds, explain, CSRs, streams,
jobs)."""
import json
import re
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, wait_for, workspace


def labelled(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": {"set": "pruned"}}, "data": data}


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class StockCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl

    def write(self, *documents):
        path = self.folder / "list.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
        return str(path)

    def raw(self, path):
        return self.kubectl("get", "--raw", path)

    def test_what_is_made_by_a_command(self):
        rows = ((("create", "job", "one", "--image=img", "--", "true"), "job.batch/one created"),
                (("create", "cronjob", "nightly", "--image=img", "--schedule=0 3 * * *", "--", "true"),
                 "cronjob.batch/nightly created"),
                (("create", "job", "now", "--from=cronjob/nightly"), "job.batch/now created"),
                (("create", "quota", "roomy", "--hard=configmaps=500"), "resourcequota/roomy created"),
                (("create", "ingress", "web", "--rule=a.example.com/*=web:80"),
                 "ingress.networking.k8s.io/web created"),
                (("create", "deployment", "shop", "--image=img", "--replicas=0"), "deployment.apps/shop created"),
                (("autoscale", "deployment", "shop", "--min=1", "--max=3"),
                 "horizontalpodautoscaler.autoscaling/shop autoscaled"),
                (("expose", "deployment", "shop", "--port=80"), "service/shop exposed"),
                (("create", "pdb", "shop", "--selector=app=shop", "--min-available=1"),
                 "poddisruptionbudget.policy/shop created"))
        for command, answer in rows:
            with self.subTest(" ".join(command)):
                self.assertIn(answer, self.kubectl(*command))
        for kind in ("job", "cronjob", "quota", "ingress", "hpa", "service", "endpoints", "endpointslices", "pdb", "pv",
                     "pvc", "sc", "sts", "rc",
                     "volumeattachments", "vac", "ipaddresses", "servicecidrs", "csistoragecapacities", "netpol",
                     "crd", "validatingadmissionpolicies",
                     "componentstatuses"):
            with self.subTest(f"get {kind}"):
                self.kubectl("get", kind)
        wait_for("its endpoints", lambda: "shop" in self.kubectl("get", "endpoints"))
        for kind in ("job/now", "cronjob/nightly", "quota/roomy", "ingress/web", "hpa/shop", "service/shop",
                     "deployment/shop", "pdb/shop"):
            with self.subTest(f"describe {kind}"):
                self.assertIn("Name:", self.kubectl("describe", kind))
        self.kubectl("delete", "job/one", "cronjob/nightly", "job/now", "quota/roomy", "ingress/web", "hpa/shop",
                     "service/shop", "deployment/shop",
                     "pdb/shop", "--ignore-not-found")

    def test_cluster_info(self):
        self.assertIn("is running at", self.kubectl("cluster-info"))
        dump = self.folder / "dump"
        self.kubectl("cluster-info", "dump", f"--output-directory={dump}")
        self.assertTrue({"nodes.json", "kube-system", "default"} <= {each.name for each in dump.iterdir()})
        self.assertEqual([each["metadata"]["name"] for each in json.loads((dump / "nodes.json").read_text())["items"]],
                         ["n"])

    def test_proxies_without_a_server(self):
        self.kubectl("create", "service", "clusterip", "lone", "--tcp=80:8080")
        wait_for("its endpoints", lambda: "lone" in self.kubectl("get", "endpoints"))
        rows = (("services/lone:80/proxy/", '(ServiceUnavailable): no endpoints available for service "lone"'),
                ("services/lone:81/proxy/", '(ServiceUnavailable): no service port 81 found for service "lone"'),
                ("services/absent:80/proxy/", '(NotFound): services "absent" not found'),
                ("services/a:b:c/proxy/", '(BadRequest): invalid service request "a:b:c"'),
                ("pods/absent:80/proxy/", '(NotFound): pods "absent" not found'),
                ("pods/ftp:absent:80/proxy/", '(BadRequest): invalid pod request "ftp:absent:80"'))
        for path, words in rows:
            with self.subTest(f"get --raw {path}"):
                self.assertIn(words, self.kubectl("get", "--raw", f"/api/v1/namespaces/default/{path}", code=1))
        self.kubectl("delete", "service", "lone")

    def test_what_a_list_no_longer_names_is_pruned(self):
        prune = ("--prune", "-l", "set=pruned")
        self.kubectl("apply", "-f", self.write(labelled("first", a="1"), labelled("second", a="1")), *prune)
        one = self.write(labelled("first", a="2"))
        self.kubectl("diff", "-f", one, *prune, code=1)  # there are differences
        self.assertIn("configmap/second pruned", self.kubectl("apply", "-f", one, *prune))
        self.assertIn("NotFound", self.kubectl("get", "configmap", "second", code=1))
        self.kubectl("diff", "-f", one, *prune)
        self.kubectl("delete", "configmap", "first")

    def test_discovery_is_as_clients_know_it(self):
        text = self.raw("/api/v1")
        self.assertTrue(text.startswith(
            '{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"bindings"'), text[:120])
        pods = next(each for each in json.loads(text)["resources"] if each["name"] == "pods")
        self.assertRegex(pods["storageVersionHash"], r"^[A-Za-z0-9+/]{11}=$")
        self.assertIn('"apiVersion":"v1"', self.raw("/apis/apps/v1"))
        for path in ("/", "/api", "/apis", "/version", "/healthz", "/livez", "/readyz?verbose", "/metrics",
                     "/openapi/v2", "/openapi/v3"):
            with self.subTest(f"get --raw {path}"):
                self.assertTrue(self.raw(path))

    def test_json_is_indented_for_people(self):
        self.assertRegex(self.raw("/api/v1/namespaces/default?pretty=true"),
                         r'^\{\n  "apiVersion": "v1",\n  "kind": "Namespace",\n  "metadata": \{\n    "')
        self.assertNotIn("\n  ", self.raw("/api/v1/namespaces/default"))

    def test_a_write_of_any_version(self):
        self.kubectl("create", "configmap", "old", "--from-literal=a=1")
        document = self.kubectl.get("configmap", "old")
        document["metadata"]["resourceVersion"], document["data"] = "0", {"a": "2"}
        self.kubectl("replace", "-f", "-", given=json.dumps(document))
        self.assertEqual(self.kubectl.get("configmap", "old")["data"], {"a": "2"})
        self.assertIn("cannot restore map from string",
                      self.kubectl("patch", "configmap", "old", "-p", '{"metadata":{"labels":"none"}}', code=1))
        self.kubectl("delete", "configmap", "old")

    def test_columns(self):
        self.kubectl.apply({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
                            "metadata": {"name": "disks.example.com"}, "spec": {}})
        rows = (
            (
                "csidrivers",
                r"NAME +ATTACHREQUIRED +PODINFOONMOUNT +STORAGECAPACITY +TOKENREQUESTS +REQUIRESREPUBLISH +MODES +AGE",
            ),
            ("nodes", r"NAME +STATUS +ROLES +AGE +VERSION"),
            ("clusterroles", r"NAME +CREATED AT"),
        )
        for kind, columns in rows:
            with self.subTest(f"get {kind}"):
                self.assertRegex(self.kubectl("get", kind), "^" + columns)
        self.kubectl("delete", "csidriver", "disks.example.com")

    def test_a_long_list_has_pages(self):
        page = json.loads(self.raw("/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=20"))
        self.assertEqual(len(page["items"]), 20)
        self.assertGreater(page["metadata"]["remainingItemCount"], 40)
        self.assertEqual(len(self.kubectl("get", "clusterroles", "--chunk-size=20", "-o", "name").split()),
                         20 + page["metadata"]["remainingItemCount"])

    def test_logs_that_are_not_there(self):
        self.kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "idle", "namespace": "default"},
                            "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "img", "command": ["sleep", "1d"]}]}})
        self.kubectl("wait", "--for=condition=Ready", "pod/idle")
        self.assertRegex(
            self.kubectl("logs", "idle", "--previous", code=1),
            r'Error from server \(BadRequest\): previous terminated container "main" in pod "idle" not found',
        )
        self.kubectl("delete", "pod", "idle")

    def test_words_of_a_body_that_is_none(self):
        said = self.kubectl("create", "--raw", "/api/v1/namespaces", "-f", self.broken(), code=1)
        self.assertTrue(re.search("the object provided is unrecognized|couldn't get version/kind", said), said)

    def broken(self):
        path = self.folder / "broken.json"
        path.write_text("{no json")
        return str(path)


if __name__ == "__main__":
    unittest.main()
