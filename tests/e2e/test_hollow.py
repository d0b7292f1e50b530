"""Hollow nodes against an API server, controllers and a scheduler of their own: they register, run pods, fall silent,
evict, and stay or go at the end.
"""
import contextlib
import signal
import unittest

from harness import PATIENCE, run, running, serving, wait_for, workspace

FAST = ("--node-monitor-period", "500ms", "--node-monitor-grace-period", "12s")
NODES = 50
PODS = 100


def ready_of(node):
    return next((each["status"] for each in node["status"].get("conditions", []) if each["type"] == "Ready"), None)


def deployment(name, replicas):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}}}


def annotate(api, path, **annotations):
    api.patch(path,
              {"metadata": {"annotations": {"spillway.io/hollow-" + name.replace("_", "-"): value for name,
                                            value in annotations.items()}}})


@contextlib.contextmanager
def control_plane(folder, kubeconfig):
    with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                 kubeconfig) as server:
        api = serving(server, kubeconfig)
        with running(folder, "controller", "--kubeconfig", kubeconfig, *FAST), running(folder, "scheduler",
                                                                                       "--kubeconfig", kubeconfig):
            yield api


class Hollow(unittest.TestCase):
    def ended(self, process):
        """Ends it as Ctrl-C does; its output."""
        process.child.send_signal(signal.SIGINT)
        self.assertEqual(process.child.wait(PATIENCE), 0)
        return process.log.read_text()

    def test_a_cluster_of_them(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            with control_plane(folder, kubeconfig) as api:
                with running(folder, "hollow", "--kubeconfig", kubeconfig, "--nodes", str(NODES), "--rate", "50",
                             "--zones", "2", "--memory", "2Gi",
                             "--observe-interval", "1s") as hollow:
                    wait_for("all nodes ready", lambda: len(api.nodes_ready()) == NODES)
                    nodes = api.get("/api/v1/nodes?labelSelector=spillway.io/hollow%3Dtrue")["items"]
                    self.assertEqual([node["metadata"]["name"] for node in nodes],
                                     [f"hollow-{i:05}" for i in range(NODES)])
                    self.assertEqual({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes},
                                     {"zone-0", "zone-1"})
                    self.assertEqual(len({node["status"]["addresses"][0]["address"] for node in nodes}), NODES)

                    api.create("/apis/apps/v1/namespaces/default/deployments", deployment("web", PODS))
                    wait_for("all pods running", lambda: list(api.pod_phases().values()).count("Running") == PODS)
                    pods = api.get("/api/v1/namespaces/default/pods")["items"]
                    self.assertEqual(len({pod["status"]["podIP"] for pod in pods}), PODS)
                    self.falls_silent(api)
                    self.evicts(api, kubeconfig)
                    text = self.ended(hollow)
                self.assertIn(f"{NODES} nodes are registered after", text)
                self.assertIn(
                    f"{NODES} Nodes stay registered; `kubectl delete nodes -l spillway.io/hollow` deletes them", text)
                self.assertEqual(len(api.get("/api/v1/nodes")["items"]), NODES)

                with running(folder, "hollow", "--kubeconfig", kubeconfig, "--nodes", "5", "--rate", "50",
                             "--name-prefix", "more", "--first-number", "50",
                             "--delete-nodes") as more:
                    wait_for("the others", lambda: {f"more-{i:05}" for i in range(50, 55)} <= set(api.nodes_ready()))
                    text = self.ended(more)
                self.assertIn("5 Nodes deleted", text)
                self.assertEqual(len(api.get("/api/v1/nodes")["items"]), NODES)

    def falls_silent(self, api):
        path = "/api/v1/nodes/hollow-00007"
        annotate(api, path, state="silent")
        # A fleet that waits for a processor may miss a heartbeat: then its nodes are unknown until the next one.
        wait_for("the silent node alone is unknown",
                 lambda: [ready_of(node) for node in api.get("/api/v1/nodes")["items"]].count("True") == NODES - 1
                 and ready_of(api.get(path)) == "Unknown")
        annotate(api, path, state=None)
        wait_for("it is back", lambda: ready_of(api.get(path)) == "True")

    def evicts(self, api, kubeconfig):
        pod = {"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": "leak",
                            "annotations": {"spillway.io/hollow-memory": "4Gi",
                                            "spillway.io/hollow-memory-rate": "100Mi/s"}},
               "spec": {"nodeName": "hollow-00003", "containers": [{"name": "main", "image": "nginx"}]}}
        api.create("/api/v1/namespaces/default/pods", pod)
        status = wait_for("the leak is evicted",
                          lambda: (s := api.get("/api/v1/namespaces/default/pods/leak")["status"]).get("reason")
                          == "Evicted" and s)
        self.assertEqual(status["phase"], "Failed")
        code, out, err = run("explain", "pod/leak", "--kubeconfig", kubeconfig)
        self.assertEqual(code, 0, err)
        self.assertIn("memory", out)
        self.assertIn("hollow-00003", out)

    def test_a_scenario(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            scenario = folder / "outage.yaml"
            scenario.write_text(
                "name: outage\nstory: a zone goes silent\ncluster: {nodes: 4, zones: 2, memory: 1Gi}\nsettle: 1s\n"
                                "timeline:\n- {at: 1s, partition: {zone: zone-1}, for: 30s}\n")
            with control_plane(folder, kubeconfig) as api:
                with running(folder, "hollow", scenario, "--kubeconfig", kubeconfig, "--rate", "50") as hollow:
                    wait_for("the zone is unknown",
                             lambda: [ready_of(node) for node in api.get("/api/v1/nodes")["items"]]
                             == ["True", "Unknown"] * 2)
                    wait_for("it is back", lambda: len(api.nodes_ready()) == 4)
                    text = self.ended(hollow)
                self.assertIn("s: partition\n", text)
                self.assertIn("s: end of partition\n", text)

    def test_what_cannot_be_is_refused_before_anything_starts(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            kubeconfig.write_text(
                "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: x\n  cluster: {server:"
                " 'http://127.0.0.1:1'}\nusers:\n- name: x\n  user: {}\ncontexts:\n- name: x\n  context: {cluster: x,"
                " user: x}\n"
            )
            scenario = folder / "servers.yaml"
            scenario.write_text(
                "name: servers\nstory: x\ncluster: {nodes: 2}\ntimeline:\n- {at: 1s, crash: controllers}\n")
            api = ("--kubeconfig", kubeconfig)
            for words, expected in (((), "--kubeconfig: is required"),
                                    ((*api, "--nodes", "0"), "--nodes"),
                                    ((*api, "--nodes", "16384", "--first-number", "1"),
                                     "expected numbers of nodes below 16384"),
                                    ((*api, "--rate", "0"), "--rate"),
                                    ((*api, "--memory", "x"), "--memory"),
                                    ((*api, "--name-prefix", "Big"), "expected at most 50 lower-case letters"),
                                    ((*api, "--eviction-hard", "memory.available<2Ti%"), "invalid syntax"),
                                    ((scenario, *api), "crash: hollow nodes cannot do that"),
                                    (("no-such", *api), "there is no such scenario")):
                with self.subTest(words=words):
                    code, out, err = run("hollow", *words)
                    self.assertEqual((code, out), (2, ""), err)
                    self.assertIn(expected, err)


if __name__ == "__main__":
    unittest.main()
