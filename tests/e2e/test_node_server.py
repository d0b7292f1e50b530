"""A node's own HTTPS server: which clients it lets in, to which pages, the contents of these compared with a kubelet's,
and that Prometheus can read all of its metrics.

samples/ holds what a kubelet 1.32 answered. Every member of it must be in our answer, but for those in the ABSENT
lists; docs/compat says why.
"""
import json
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import time
import unittest

from harness import Api, ApiError, can_write_cgroups, needs, PATIENCE, pod, running, serving, wait_for, workspace

METRICS = ("/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/slis")
# Names that are upstream's, which promtool would like to be others.
UPSTREAM_NAMES = {"kubelet_evictions", "resource_scrape_error", "container_memory_rss", "machine_cpu_cores",
                  "cadvisor_version_info"}


SAMPLES = pathlib.Path(__file__).parent / "samples"
ABSENT_IN_SUMMARY = re.compile(r"pods\[\]\.volume\b")
# Fields of a spec that the agent does not read, volumes, and fields that the test itself changes in the sample.
ABSENT_IN_POD = re.compile(
    r"metadata\.annotations\b|spec\.(volumes|dnsPolicy|automountServiceAccountToken|enableServiceLinks)\b|"
    r"spec\.(initContainers|containers)\[\]\.(imagePullPolicy|terminationMessage\w+|volumeMounts|args|lifecycle)\b|"
    r"status\.containerStatuses\[\]\.volumeMounts\b"
)


def members(document, at=""):
    """Paths of all members that are not null; elements of a list share one."""
    if document is None:
        return set()
    if isinstance(document, dict):
        return {path for name, value in document.items() for path in members(value, f"{at}.{name}" if at else name)}
    if isinstance(document, list):
        return {path for value in document for path in members(value, at + "[]")} or {at}
    return {at}


def has_interface(name):
    return any(line.split(":")[0].strip() == name for line in pathlib.Path("/proc/net/dev").read_text().splitlines())


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


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class NodeServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.kubeconfig = cls.folder / "kubeconfig"
        server = cls.enterClassContext(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port",
                                               "0", "--write-kubeconfig", cls.kubeconfig))
        cls.api = serving(server, cls.kubeconfig)
        cls.agent = cls.enterClassContext(running(cls.folder, "agent", "--kubeconfig", cls.kubeconfig, "--node-name",
                                                  "n", "--node-ip", "127.0.0.1", "--port", "0",
                                      "--node-memory", "256Mi", "--state-dir", cls.folder / "state"))
        wait_for("the node", lambda: cls.api.nodes_ready() == ["n"])
        cls.port = cls.api.get("/api/v1/nodes/n")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        cls.api.create("/api/v1/namespaces/default/pods",
                       pod("web", ["sh", "-c", "echo hello; exec tail -f /dev/null"], nodeName="n",
                                                              resources={"limits": {"memory": "64Mi"}}))
        wait_for("the pod", lambda: cls.api.pod_phases().get("web") == "Running")

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
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}]})
        return self.api.create(f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
                               {"spec": {}})["status"]["token"]

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
        for path in ("/pods", "/runningpods/", "/logs/", "/logs/syslog", "/healthz", "/configz", "/debug/spillway",
                     "/containerLogs/default/web/main"):
            self.assertEqual(code_of(node, path)[0], 403, path)
        for path in ("/stats/summary", "/checkpoint/default/web/main"):
            self.assertEqual(code_of(node, path, "POST")[0], 403, path)

    def test_no_other_server_answers_for_a_node(self):
        """A node says itself where it lives: another agent, or the API server, is not it."""
        for name, port, words in (("elsewhere", self.port, 'belongs to "system:node:n"'),
                                  ("back", self.api.port, "leads back to this server")):
            self.api.create("/api/v1/nodes", {"metadata": {"name": name}, "status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}})
            code, said = code_of(self.api, f"/api/v1/nodes/{name}/proxy/api/v1/secrets")
            self.assertEqual(code, 503, said)
            self.assertIn(words, said)
            self.api.delete(f"/api/v1/nodes/{name}")
        wait_for("the node's own answer", lambda: code_of(self.api, "/api/v1/nodes/n/proxy/healthz")[0] == 200)

    def test_the_way_to_agents_has_no_rights_in_the_api(self):
        folder = self.folder / "data/pki"
        client = Api(self.kubeconfig)
        self.addCleanup(client.close)
        client.context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        client.context.load_cert_chain(folder / "apiserver-kubelet-client.crt", folder / "apiserver-kubelet-client.key")
        for path in ("/api/v1/secrets", "/api/v1/nodes", "/api/v1/pods", "/metrics"):
            self.assertEqual(code_of(client, path)[0], 403, path)

    def test_a_certificate_of_the_cluster_opens_its_users_doors(self):
        node = self.node("certificate")
        self.assertEqual(node.get("/healthz"), "ok")
        self.assertIn("[+]syncloop ok", node.get("/healthz?verbose"))
        self.assertIn('kubernetes_healthcheck{name="syncloop",type="healthz"} 1', node.get("/metrics/slis"))
        self.assertEqual(node.get("/metrics/probes"), "")
        self.assertEqual([item["metadata"]["name"] for item in node.get("/pods")["items"]], ["web"])
        log = pathlib.Path("/var/log") / f"spillway-{self.folder.name}.log"
        log.write_text("a line\n")
        self.addCleanup(log.unlink)
        self.assertEqual(node.get(f"/logs/{log.name}"), "a line\n")
        self.assertIn(f'<a href="{log.name}">{log.name}</a>', node.get("/logs/?query=nothing"))
        self.assertEqual(self.api.get(f"/api/v1/nodes/n/proxy/logs/{log.name}"), "a line\n")
        running, = node.get("/runningpods/")["items"]
        self.assertEqual((running["metadata"]["name"], running["spec"]["containers"]),
                         ("web", [{"name": "main", "image": "none", "resources": {}}]))
        config = node.get("/configz")["kubeletconfig"]
        self.assertEqual((config["port"], config["enableServer"], config["maxPods"]), (self.port, True, 110))
        self.assertEqual(config["evictionHard"]["memory.available"], "25Mi", "the default of a node of this size")
        state = node.get("/debug/spillway")
        self.assertLessEqual({"admission", "decisions", "loop", "managers", "reaction", "requestGate", "runtime",
                              "shutdown", "staticPods"}, set(state))
        self.assertEqual(list(state), sorted(state), "members in a stable order")
        self.assertEqual(state["runtime"], {"pods": 1})
        self.assertTrue(state["node"]["registered"])
        self.assertTrue(state["allocatable"]["pods"]["enforced"])
        wait_for("a lease renewed in its time",
                 lambda: (node.get("/debug/spillway")["lease"]["renewalAgeSeconds"] or 99) < 20)
        wait_for("figures of the pod",
                 lambda: {"filesystem", "node", "pods"} <= set(node.get("/debug/spillway")["statistics"]["ageSeconds"]))
        self.assertEqual([each["phase"] for each in state["pods"]], ["Running"])
        self.assertEqual(node.get("/stats/summary")["node"]["nodeName"], "n")
        self.assertEqual(code_of(node, "/pods", "DELETE")[0], 405)

    def test_the_api_server_is_let_in_for_logs(self):
        wait_for("the log", lambda: self.api.get("/api/v1/namespaces/default/pods/web/log") == "hello\n")

    def test_usage_is_what_the_node_measured(self):
        group = "/apis/metrics.k8s.io/v1beta1"
        node = wait_for("the node's usage", lambda: self.api.get(f"{group}/nodes")["items"])[0]
        self.assertEqual(node["metadata"]["name"], "n")
        self.assertRegex(node["usage"]["memory"], r"^[1-9][0-9]*[KM]i$")
        found = wait_for("the pod's usage", lambda: self.api.get(f"{group}/namespaces/default/pods")["items"])[0]
        self.assertEqual([each["name"] for each in found["containers"]], ["main"])
        self.assertRegex(found["containers"][0]["usage"]["cpu"], r"^[0-9]+n$")
        if shutil.which("kubectl"):
            for what, name in (("nodes", "n"), ("pods", "web")):
                done = subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig, "--cache-dir", self.folder / "cache",
                                       "top", what],
                                      capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, rf"NAME +CPU\(cores\).*\n{name} +\d+m")

    def test_the_summary_has_every_member_of_a_kubelets(self):
        node = self.node("certificate")
        wanted = members(json.loads((SAMPLES / "summary.json").read_text()))

        def missing():
            found = {path for path in wanted - members(node.get("/stats/summary")) if not ABSENT_IN_SUMMARY.match(path)}
            return found if has_interface("eth0") else {path for path in found if ".network." not in path}
        # Some figures need two measurements, or a walk of the pod's files.
        wait_for(lambda: f"{missing()}", lambda: not missing())

    def test_resource_metrics_have_every_family_of_a_kubelets(self):
        families = re.compile(r"^# TYPE (\S+) (\S+)$", re.M)
        wanted = set(families.findall((SAMPLES / "metrics_resource.txt").read_text()))
        node = self.node("certificate")
        missing = lambda: wanted - set(families.findall(node.get("/metrics/resource")))
        wait_for(lambda: f"figures of the pod: {missing()}", lambda: not missing())

    def test_a_pod_is_listed_with_every_member_of_a_kubelets(self):
        sample = json.loads((SAMPLES / "pod.json").read_text())
        name = sample["metadata"]["name"] = "sample"
        spec = sample["spec"]
        for gone in ("volumes", "nodeName"):
            spec.pop(gone)
        for container in spec["containers"] + spec["initContainers"]:
            container.pop("volumeMounts", None)
            container.update(command=["sh", "-c", "exit 0" if container["name"] == "init"
                                      else "exec tail -f /dev/null"], args=[])
        spec["containers"][0]["lifecycle"].pop("preStop")
        self.api.create("/api/v1/namespaces/default/pods",
                        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
                                                            "spec": {**spec, "nodeName": "n"}})
        self.addCleanup(self.api.delete, f"/api/v1/namespaces/default/pods/{name}", 0)
        wait_for("the pod", lambda: self.api.pod_phases().get(name) == "Running")
        node, wanted = self.node("certificate"), members(json.loads((SAMPLES / "pod.json").read_text()))

        def missing():
            listed = next(each for each in node.get("/pods")["items"] if each["metadata"]["name"] == name)
            return {path for path in wanted - members(listed) if not ABSENT_IN_POD.match(path)}
        wait_for(lambda: f"{missing()}", lambda: not missing())

    def test_top_shows_a_load_that_is_known(self):
        self.api.create("/api/v1/namespaces/default/pods",
                        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "load"}, "spec": {
            "nodeName": "n", "terminationGracePeriodSeconds": 1, "containers": [
                {"name": "memory", "image": "none",
                 "command": ["spillway", "stress", "--memory", "48Mi", "--hold", "1h"]},
                {"name": "processor", "image": "none", "command": ["sh", "-c", "while :; do :; done"],
                 "resources": {"limits": {"cpu": "200m"}}}]}})
        self.addCleanup(self.api.delete, "/api/v1/namespaces/default/pods/load", 0)

        def usage():
            found = [each for each in self.api.get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")["items"]
                     if each["metadata"]["name"] == "load"]
            each = {container["name"]: container["usage"] for pod in found for container in pod["containers"]}
            return each if len(each) == 2 else {}

        def plausible():  # on a machine that is short of processors, it gets less than its limit
            each = usage()
            return each and 48 * 1024 <= int(each["memory"]["memory"].removesuffix("Ki")) <= 64 * 1024 and \
                20_000_000 <= int(each["processor"]["cpu"].removesuffix("n")) <= 250_000_000
        try:
            wait_for("200m and 48Mi", plausible, interval=0.5)
        except AssertionError:
            self.fail(f"not what the load uses: {usage()}")

    def test_a_configuration_says_who_is_let_in(self):
        config = self.folder / "open.yaml"
        config.write_text(
            "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, authentication: {anonymous:"
            " {enabled: true}}, authorization: {mode: AlwaysAllow}}"
        )
        with running(self.folder, "agent", "--kubeconfig", self.kubeconfig, "--config", config, "--node-name", "open",
                     "--node-ip", "127.0.0.1",
                     "--port", "0", "--node-memory", "64Mi", "--state-dir", self.folder / "state"):
            self.addCleanup(self.api.delete, "/api/v1/nodes/open")
            wait_for("the node", lambda: "open" in self.api.nodes_ready())
            node = Node(self.kubeconfig,
                        self.api.get("/api/v1/nodes/open")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"],
                        None)
            self.addCleanup(node.close)
            self.assertEqual(code_of(node, "/pods")[0], 200)

    def test_an_agent_of_old_times_reports_out_of_disk(self):
        with running(self.folder, "agent", "--kubeconfig", self.kubeconfig, "--node-name", "old", "--node-ip",
                     "127.0.0.1", "--port", "0",
                     "--node-memory", "128Mi", "--state-dir", self.folder / "old", "--node-status-compat", "v1.12"):
            def conditions():
                node = self.api.find("/api/v1/nodes/old")
                return node and {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
            wait_for("the node", conditions)
            self.assertEqual(conditions()["OutOfDisk"], "False")
            self.assertNotIn("PIDPressure", conditions())
            self.assertIsNone(self.api.find("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/old"))
        self.api.delete("/api/v1/nodes/old")

    def test_heartbeats_end_with_the_agent(self):
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/frozen"

        def renewed():
            found = self.api.find(lease)
            return found and found["spec"]["renewTime"]
        with running(self.folder, "agent", "--kubeconfig", self.kubeconfig, "--node-name", "frozen", "--node-ip",
                     "127.0.0.1", "--port", "0",
                     "--node-memory", "128Mi", "--state-dir", self.folder / "frozen", "--node-lease-duration-seconds",
                     "2") as agent:
            first = wait_for("the lease", renewed)
            wait_for("a renewal", lambda: renewed() != first)

            def rests():
                """The renewal after which four periods pass without another; one may be under way when the agent is
                stopped.
                """
                last = renewed()
                time.sleep(2)
                return last if renewed() == last else None
            agent.child.send_signal(signal.SIGSTOP)
            try:
                at_rest = wait_for("the last renewal", rests)
                self.assertGreaterEqual(at_rest, first)
            finally:
                agent.child.send_signal(signal.SIGCONT)
            wait_for("a renewal", lambda: renewed() != at_rest)
        self.api.delete("/api/v1/nodes/frozen")

    @needs(shutil.which("promtool"), "needs promtool of the package prometheus")
    def test_promtool_reads_every_page_of_metrics(self):
        node = self.node("certificate")
        pages = {path: wait_for(path, lambda path=path: node.get(path)) for path in METRICS}
        pages["/metrics of the API server"] = self.api.get("/metrics")
        resource = ("container_memory_working_set_bytes", "pod_cpu_usage_seconds_total",
                    "node_memory_working_set_bytes", 'pod="web"')
        for path, figures in (("/metrics/resource", resource),
                              ("/metrics/cadvisor", ("container_spec_memory_limit_bytes", 'pod="web"'))):
            wait_for(f"figures of the pod in {path}",
                     lambda path=path, figures=figures: all(each in node.get(path) for each in figures))
            pages[path] = node.get(path)
        for path, text in pages.items():
            with self.subTest(path):
                done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                                      timeout=PATIENCE)
                complaints = [line for line in (done.stdout + done.stderr).splitlines()
                              if line.split()[0] not in UPSTREAM_NAMES]
                self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: a question of style
                self.assertEqual(complaints, [])
        for name in ("container_memory_working_set_bytes", "pod_cpu_usage_seconds_total",
                     "node_memory_working_set_bytes", "resource_scrape_error 0"):
            self.assertIn(name, pages["/metrics/resource"])
        self.assertIn('container_spec_memory_limit_bytes{container="main",namespace="default",pod="web"} 67108864',
                      pages["/metrics/cadvisor"])
        self.assertIn('kubelet_node_name{node="n"} 1', pages["/metrics"])


if __name__ == "__main__":
    unittest.main()
