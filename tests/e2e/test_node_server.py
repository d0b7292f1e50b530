"""A node's own HTTPS server: whom it lets in, for what, and that Prometheus can read all of its metrics."""
import shutil
import ssl
import subprocess
import unittest

from harness import Api, ApiError, can_write_cgroups, pod, running, serving, wait_for, workspace

METRICS = ("/metrics", "/metrics/resource", "/metrics/cadvisor")
# Names that are upstream's, which promtool would like to be others.
UPSTREAM_NAMES = {"kubelet_evictions", "resource_scrape_error", "container_memory_rss", "machine_cpu_cores"}


class Node(Api):
    """The node's server. Its certificate is of its own making, as a kubelet's by default."""

    def __init__(self, kubeconfig, port, credentials):
        super().__init__(kubeconfig)
        self.host, self.port = "127.0.0.1", port
        if credentials == "certificate":
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE
        else:
            self.context = ssl._create_unverified_context()
            self.token = credentials


def code_of(node, path, method="GET"):
    try:
        node.request(method, path)
    except ApiError as error:
        return error.code, error.status.get("message", "").strip()
    return 200, ""


@unittest.skipUnless(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class NodeServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = []
        cls.folder = cls.enter(workspace())
        cls.kubeconfig = cls.folder / "kubeconfig"
        server = cls.enter(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port", "0", "--write-kubeconfig", cls.kubeconfig))
        cls.api = serving(server, cls.kubeconfig)
        cls.agent = cls.enter(running(cls.folder, "agent", "--kubeconfig", cls.kubeconfig, "--node-name", "n", "--node-ip", "127.0.0.1", "--port", "0",
                                      "--node-memory", "256Mi", "--state-dir", cls.folder / "state"))
        wait_for("the node", lambda: cls.api.nodes_ready() == ["n"])
        cls.port = cls.api.get("/api/v1/nodes/n")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        cls.api.create("/api/v1/namespaces/default/pods", pod("web", ["sh", "-c", "echo hello; exec tail -f /dev/null"], nodeName="n",
                                                              resources={"limits": {"memory": "64Mi"}}))
        wait_for("the pod", lambda: cls.api.pod_phases().get("web") == "Running")

    @classmethod
    def enter(cls, context):
        value = context.__enter__()
        cls.stack.append(context)
        return value

    @classmethod
    def tearDownClass(cls):
        while cls.stack:
            cls.stack.pop().__exit__(None, None, None)

    def node(self, credentials=None):
        node = Node(self.kubeconfig, self.port, credentials)
        self.addCleanup(node.close)
        return node

    def account(self, name, *subresources):
        """The token of a new service account that may get these subresources of nodes."""
        self.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        if subresources:
            rbac = "/apis/rbac.authorization.k8s.io/v1"
            self.api.create(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": [
                {"apiGroups": [""], "resources": [f"nodes/{each}" for each in subresources], "verbs": ["get"]}]})
            self.api.create(f"{rbac}/clusterrolebindings", {
                "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}]})
        return self.api.create(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {"spec": {}})["status"]["token"]

    def test_strangers_stay_outside(self):
        self.assertEqual(code_of(self.node(), "/pods"), (401, "Unauthorized"))
        self.assertEqual(code_of(self.node("nobodys-token"), "/pods"), (401, "Unauthorized"))
        self.assertEqual(code_of(self.node(), "/no/such/page")[0], 404)
        user = "system:serviceaccount:default:stranger"
        self.assertEqual(code_of(self.node(self.account("stranger")), "/metrics"),
                         (403, f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[metrics])"))

    def test_a_token_opens_what_its_roles_name(self):
        node = self.node(self.account("scraper", "metrics", "stats"))
        for path in (*METRICS, "/stats/summary"):
            self.assertEqual(code_of(node, path), (200, ""), path)
        for path in ("/pods", "/healthz", "/configz", "/debug/spillway", "/containerLogs/default/web/main"):
            self.assertEqual(code_of(node, path)[0], 403, path)
        self.assertEqual(code_of(node, "/stats/summary", "POST")[0], 403)

    def test_a_certificate_of_the_cluster_opens_its_users_doors(self):
        node = self.node("certificate")
        self.assertEqual(node.get("/healthz"), "ok")
        self.assertIn("[+]syncloop ok", node.get("/healthz?verbose"))
        self.assertEqual([item["metadata"]["name"] for item in node.get("/pods")["items"]], ["web"])
        self.assertEqual(node.get("/configz")["kubeletconfig"]["port"], self.port)
        state = node.get("/debug/spillway")
        self.assertTrue(state["node"]["registered"])
        self.assertEqual([each["phase"] for each in state["pods"]], ["Running"])
        self.assertEqual(node.get("/stats/summary")["node"]["nodeName"], "n")
        self.assertEqual(code_of(node, "/pods", "DELETE")[0], 405)

    def test_the_api_server_is_let_in_for_logs(self):
        wait_for("the log", lambda: self.api.get("/api/v1/namespaces/default/pods/web/log") == "hello\n")

    def test_usage_is_what_the_node_measured(self):
        group = "/apis/metrics.k8s.io/v1beta1"
        node = wait_for("the node's usage", lambda: self.api.get(f"{group}/nodes")["items"])[0]
        self.assertEqual(node["metadata"]["name"], "n")
        self.assertRegex(node["usage"]["memory"], r"^[1-9][0-9]*Ki$")
        found = wait_for("the pod's usage", lambda: self.api.get(f"{group}/namespaces/default/pods")["items"])[0]
        self.assertEqual([each["name"] for each in found["containers"]], ["main"])
        self.assertRegex(found["containers"][0]["usage"]["cpu"], r"^[0-9]+n$")
        if shutil.which("kubectl"):
            for what, name in (("nodes", "n"), ("pods", "web")):
                done = subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig, "--cache-dir", self.folder / "cache", "top", what],
                                      capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, rf"NAME +CPU\(cores\).*\n{name} +\d+m")

    @unittest.skipUnless(shutil.which("promtool"), "needs promtool of the package prometheus")
    def test_promtool_reads_every_page_of_metrics(self):
        node = self.node("certificate")
        pages = {path: wait_for(path, lambda path=path: node.get(path)) for path in METRICS}
        pages["/metrics of the API server"] = self.api.get("/metrics")
        wait_for("figures of the pod", lambda: 'pod="web"' in node.get("/metrics/resource"))
        pages["/metrics/resource"], pages["/metrics/cadvisor"] = node.get("/metrics/resource"), node.get("/metrics/cadvisor")
        for path, text in pages.items():
            with self.subTest(path):
                done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
                complaints = [line for line in (done.stdout + done.stderr).splitlines() if line.split()[0] not in UPSTREAM_NAMES]
                self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: a question of style
                self.assertEqual(complaints, [])
        for name in ("container_memory_working_set_bytes", "pod_cpu_usage_seconds_total", "node_memory_working_set_bytes", "resource_scrape_error 0"):
            self.assertIn(name, pages["/metrics/resource"])
        self.assertIn('container_spec_memory_limit_bytes{container="main",namespace="default",pod="web"} 67108864', pages["/metrics/cadvisor"])
        self.assertIn('kubelet_node_name{node="n"} 1', pages["/metrics"])


if __name__ == "__main__":
    unittest.main()
