"""`spillway top`: how near nodes are to evictions, of agents of ours and of what any kubelet shows."""
import contextlib
import http.server
import json
import shutil
import signal
import subprocess
import threading
import unittest

from harness import (
    account_kubeconfig,
    ApiError,
    BINARY,
    can_write_cgroups,
    needs,
    one_node,
    PATIENCE,
    pod,
    run,
    wait_for,
    workspace,
)

OURS = "/proxy/debug/spillway"


class StockCluster(http.server.BaseHTTPRequestHandler):
    """The cluster as one without agents of ours: their pages are not found."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if OURS in self.path:
            return self.answer(404, {"kind": "Status", "code": 404, "reason": "NotFound",
                                     "message": "404 page not found"})
        try:
            self.answer(200, self.server.api.get(self.path))
        except ApiError as error:
            self.answer(error.code, error.status)

    def answer(self, code, document):
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def stock(api, folder):
    """The kubeconfig of a cluster without agents of ours."""
    server = http.server.HTTPServer(("127.0.0.1", 0), StockCluster)
    server.api = api
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        kubeconfig = folder / "stock"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "x", "user": {}}]}))
        yield kubeconfig
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def signals_of(standing):
    """The signals and thresholds in a standing, without the measurements, which change."""
    found = set()
    for reason in standing["reasons"]:
        facts = {each["name"]: each["value"] for each in reason["facts"]}
        if "signal" in facts:
            found |= {(facts["signal"], name, value) for name, value in facts.items()
                      if name.startswith(("threshold", "capacity"))}
    return found


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Top(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.cluster = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubeconfig = cls.cluster.api, cls.folder / "kubeconfig"
        for name, request in (("modest", "200Mi"), ("hog", "1Mi")):
            body = pod(name, ["sh", "-c",
                              "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo grown; tail -f /dev/null & wait"])
            body["spec"]["containers"][0]["resources"] = {"requests": {"memory": request}}
            cls.api.create("/api/v1/namespaces/default/pods", body)
        wait_for("the pods to have grown",
                 lambda: all("grown" in cls.cluster.kubectl.log_of(each) for each in ("modest", "hog")))

    def top(self, *arguments, code=0, kubeconfig=None):
        got, out, err = run("top", "--kubeconfig", kubeconfig or self.kubeconfig, *arguments)
        self.assertEqual(got, code, out + err)
        return err if code else out

    def standing(self, kubeconfig=None):
        return json.loads(self.top("n", "-o", "json", kubeconfig=kubeconfig))["items"][0]["standing"]

    def the_hog_comes_first(self, kubeconfig=None):
        """Once the pods are measured as they are now."""
        def names():
            code, out, _ = run("top", "--kubeconfig", kubeconfig or self.kubeconfig, "n", "-o", "json")
            # Before the first measurement there is nothing to rank.
            standing = json.loads(out)["items"][0].get("standing") or {} if code == 0 else {}
            return [each["subject"]["name"] for each in standing.get("candidates", [])]
        wait_for(lambda: f"the hog to come first: {names()}", lambda: names() == ["hog", "modest"])

    def test_all_nodes(self):
        self.the_hog_comes_first()
        head, node = self.top().splitlines()
        self.assertEqual(head.split("  ")[0], "NODE")
        self.assertRegex(node, r"^n +Ready +\S+ .* default/hog$")

    def test_one_node_with_its_thresholds_and_pods(self):
        self.the_hog_comes_first()
        for name in ("n", "node/n"):
            text = self.top(name)
            for each in ("memory.available", "nodefs.available", "imagefs.inodesFree", "default/hog", "default/modest"):
                self.assertIn(each, text)

    def test_a_cluster_without_agents_of_ours(self):
        """The same thresholds and the same order, from the kubelet's own pages."""
        with stock(self.api, self.folder) as kubeconfig:
            self.the_hog_comes_first()
            self.the_hog_comes_first(kubeconfig)
            theirs, ours = signals_of(self.standing(kubeconfig)), signals_of(self.standing())
            self.assertTrue({signal for signal, _, _ in theirs}
                            >= {"memory.available", "nodefs.available", "nodefs.inodesFree"}, theirs)
            self.assertEqual(theirs - ours, set())
            self.assertIn("default/hog", self.top(kubeconfig=kubeconfig))
            code, out, err = run("explain", "node/n", "--kubeconfig", kubeconfig)
            self.assertEqual(code, 0, err)
            self.assertIn("default/hog", out)

    def test_yaml_and_wide(self):
        for line in (r"\A---\n", r"(?m)^kind: NodeStandingList$", r"(?m)^apiVersion: spillway/v1$",
                     r"(?m)^items:\n  - node: "):
            self.assertRegex(self.top("-o", "yaml"), line)
        wide = self.top("n", "-o", "wide").split("\n\n")[0]
        for signal in ("memory.available", "nodefs.available", "imagefs.inodesFree"):
            self.assertRegex(wide, rf"(?m)^n +Ready +{signal} ")

    def test_again_and_again(self):
        with subprocess.Popen([BINARY, "top", "-w", "--interval", "100ms", "-o", "json", "--kubeconfig",
                               self.kubeconfig], stdout=subprocess.PIPE, text=True) as child:
            looks = [json.loads(child.stdout.readline())["kind"] for _ in range(3)]
            child.send_signal(signal.SIGINT)
            child.stdout.read()
            self.assertEqual((looks, child.wait(PATIENCE)), (["NodeStandingList"] * 3, 0))

    def test_without_the_right_to_ask_nodes(self):
        self.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "reader"}})
        reader = account_kubeconfig(self.api, self.kubeconfig, "reader", "default")
        self.assertIn('cannot list resource "nodes"', self.top(code=1, kubeconfig=reader))
        rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]
        self.api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles",
                        {"metadata": {"name": "reader"}, "rules": rules})
        self.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]})
        silent = wait_for("the role to count", lambda: (got := run("top", "--kubeconfig", reader))[0] == 0 and got[1])
        self.assertRegex(silent, r"n +Ready +-")
        self.assertIn("nodes/proxy", silent)
        self.top("n", code=1, kubeconfig=reader)

    def test_what_cannot_be_shown(self):
        self.assertIn('nodes "nobody" not found', self.top("nobody", code=3))
        self.assertIn('"pod/x" is no node; expected nodes, NAME or node/NAME', self.top("pod/x", code=2))
        self.assertIn("must be at least 100ms", self.top("-w", "--interval", "1ms", code=2))
        self.assertIn("--watch", self.top("--interval", "1s", code=2))
        gone = self.folder / "gone"
        gone.write_text(self.kubeconfig.read_text().replace(f":{self.api.port}", ":1"))
        self.assertIn("127.0.0.1:1", self.top(code=1, kubeconfig=gone))


if __name__ == "__main__":
    unittest.main()
