"""`spillway scheduler` with extenders that are processes of others: they filter, score, choose victims and bind, over
HTTP and HTTPS; those that mean ill, lie or keep silent cost a line in the log and a turn of the pod."""
import contextlib
import json
import unittest

from extender_server import ExtenderServer
from harness import Api, PATIENCE, Process, run, serving, wait_for, workspace
from process_memory import resident

PODS = "/api/v1/namespaces/default/pods"
NODES = ("n0", "n1", "n2")


def node(name):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "1"}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": {"example.com/free": name[1]}},
            "status": {"capacity": amounts, "allocatable": amounts,
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, cpu="100m", priority=None, gpu=False):
    requests = {"cpu": cpu}
    resources = {"requests": requests, "limits": {"example.com/gpu": "1"}} if gpu else {"requests": requests}
    spec = {"containers": [{"name": "main", "image": "none", "resources": resources}]}
    if priority:
        spec["priorityClassName"] = priority
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": {"example.com/wants": "much"}},
            "spec": spec}


def configuration(*extenders, **members):
    return json.dumps({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                       "leaderElection": {"leaderElect": False},
                       "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1, "extenders": extenders, **members})


class Cluster:
    def __init__(self, folder, api):
        self.folder, self.api, self.count, self.scheduler = folder, api, 0, None

    @contextlib.contextmanager
    def scheduling(self, *extenders, flags=(), **members):
        (self.folder / "scheduler.yaml").write_text(configuration(*extenders, **members))
        self.scheduler = Process(self.folder, "scheduler", "--kubeconfig", self.folder / "kubeconfig", "--config",
                                 self.folder / "scheduler.yaml", *flags)
        try:
            yield self.scheduler
        except BaseException:
            print(self.scheduler.tail(12))
            raise
        finally:
            self.scheduler.kill()
            for each in self.api.get(PODS)["items"]:
                self.api.request("DELETE", f"{PODS}/{each['metadata']['name']}?gracePeriodSeconds=0")

    def create(self, **more):
        self.count += 1
        name = f"p{self.count}"
        self.api.create(PODS, pod(name, **more))
        return name

    def node_of(self, name):
        return wait_for(f"a node for {name}", lambda: self.api.get(f"{PODS}/{name}")["spec"].get("nodeName"))

    def told(self, name, text):
        def condition():
            for each in self.api.get(f"{PODS}/{name}")["status"].get("conditions", []):
                if each["type"] == "PodScheduled" and text in each.get("message", ""):
                    return each["message"]
        return wait_for(f"{name} to be told {text!r}", condition)


class Extenders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        folder = cls.stack.enter_context(workspace())
        server = Process(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         folder / "kubeconfig")
        cls.stack.callback(server.kill)
        api = serving(server, folder / "kubeconfig")
        for name in NODES:
            api.create("/api/v1/nodes", node(name))
            api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        wait_for("the account of the namespace", lambda: api.find("/api/v1/namespaces/default/serviceaccounts/default"))
        cls.cluster, cls.folder = Cluster(folder, api), folder

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def test_filter_score_and_bind(self):
        cluster = self.cluster
        with ExtenderServer() as extender:
            extender.answers["filter"] = lambda a: {
                "Nodes": {"items": [n for n in a["Nodes"]["items"]
                                    if n["metadata"]["annotations"]["example.com/free"] != "0"]},
                                                    "FailedNodes": {"n0": "no device is free"}}
            extender.answers["rank"] = lambda a: [{"Host": n["metadata"]["name"],
                                                   "Score": int(n["metadata"]["annotations"]["example.com/free"])}
                                                  for n in a["Nodes"]["items"]]

            api = Api(self.folder / "kubeconfig")  # the extender has threads and a connection of its own
            self.addCleanup(api.close)

            def bind(a):
                api.create(f"{PODS}/{a['PodName']}/binding",
                           {"apiVersion": "v1", "kind": "Binding",
                            "metadata": {"name": a["PodName"], "uid": a["PodUID"]},
                                                              "target": {"kind": "Node", "name": a["Node"]}})
                return {}

            extender.answers["bind"] = bind
            with cluster.scheduling({"urlPrefix": extender.url, "filterVerb": "filter", "prioritizeVerb": "rank",
                                     "bindVerb": "bind", "weight": 100}):
                self.assertEqual(cluster.node_of(cluster.create()), "n2")
            verbs = [verb for verb, _ in extender.asked]
            self.assertEqual(verbs, ["filter", "rank", "bind"])
            asked = extender.asked[0][1]
            self.assertEqual(asked["Pod"]["metadata"]["annotations"]["example.com/wants"], "much")
            self.assertEqual(asked["Pod"]["spec"]["containers"][0]["terminationMessagePolicy"], "File", "the whole pod")
            self.assertIsNone(asked["NodeNames"])

    def test_the_extender_that_left_a_node_out_is_named(self):
        cluster = self.cluster
        with ExtenderServer() as extender:
            extender.answers["filter"] = lambda a: {"NodeNames": [],
                                                    "FailedNodes": {name: "no device is free"
                                                                    for name in a["NodeNames"]}}
            entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True,
                     "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}
            with cluster.scheduling(entry):
                free, held = cluster.create(), cluster.create(gpu=True)
                self.assertIn(cluster.node_of(free), NODES)
                said = f"0/3 nodes are available: 3 no device is free (extender {extender.url})."
                self.assertIn(said, cluster.told(held, "no device"))
                code, text, problems = run("explain", f"pod/{held}", "--kubeconfig", cluster.folder / "kubeconfig",
                                           "--scheduler-config", cluster.folder / "scheduler.yaml")
                self.assertEqual(code, 0, problems)
                self.assertIn(f"extender {extender.url}", text)
                self.assertIn("the extenders are not called again", problems)
                # Events are sent beside the condition.
                wait_for("its event", lambda: [e for e in cluster.api.get("/api/v1/namespaces/default/events")["items"]
                                               if e["involvedObject"]["name"] == held and said in e["message"]])
                extender.answers["filter"] = lambda a: {"nodenames": ["n1"]}
                self.wake(held)
                self.assertEqual(cluster.node_of(held), "n1")
            self.assertEqual({a["Pod"]["metadata"]["name"] for _, a in extender.asked}, {held})

    def wake(self, name):
        """A change of a pod's labels is a reason to try it again."""
        self.cluster.api.patch(f"{PODS}/{name}", {"metadata": {"labels": {"again": "yes"}}})

    def test_tls(self):
        cluster = self.cluster
        with ExtenderServer(self.folder / "own", names="DNS:gpu.example") as extender:
            extender.answers["filter"] = lambda a: {"NodeNames": ["n1"]}
            entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True, "enableHTTPS": True}
            believed = {"caFile": str(extender.ca), "serverName": "gpu.example"}
            with cluster.scheduling({**entry, "tlsConfig": believed}):
                self.assertEqual(cluster.node_of(cluster.create()), "n1")
            with cluster.scheduling({**entry, "tlsConfig": {"insecure": True}}):
                self.assertEqual(cluster.node_of(cluster.create()), "n1")
            count = len(extender.asked)
            for tls in ({}, {"caFile": str(extender.ca)}):
                with cluster.scheduling({**entry, "tlsConfig": tls}):
                    self.assertRegex(cluster.told(cluster.create(), "extender"), "certificate|verif|name")
            self.assertEqual(len(extender.asked), count, "nobody is told anything who is not known")
        with ExtenderServer(self.folder / "mutual", client_ca=extender.ca) as strict:
            strict.answers["filter"] = lambda a: {"NodeNames": ["n0"]}
            shown = {"caFile": str(strict.ca), "certFile": str(extender.certificate), "keyFile": str(extender.key)}
            with cluster.scheduling({**entry, "urlPrefix": strict.url, "tlsConfig": shown}):
                self.assertEqual(cluster.node_of(cluster.create()), "n0")

    def test_those_that_mean_ill(self):
        cluster = self.cluster
        with ExtenderServer() as extender, ExtenderServer() as elsewhere:
            def endless():
                yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"NodeNames\":[\""
                while not extender.gone.is_set():
                    yield b"x" * 65536

            def silent():
                extender.gone.wait(PATIENCE)
                yield b""

            bad = {
                "a node it invents": (lambda a: {"NodeNames": ["n9"]}, 'claims a filtered node "n9"'),
                "a redirect": (lambda a: (307, {"Location": elsewhere.url + "/filter"}, b""), "code 307"),
                "an error": (lambda a: (500, {}, b"x" * 4096), "code 500"),
                "no JSON": (lambda a: (200, {}, b"\x1b[2Jhello"), "did not answer in JSON"),
                "a deep answer": (lambda a: (200, {}, b"[" * 1_000_000), "did not answer in JSON"),
                "words for terminals": (lambda a: {"Error": "\x1b[31mred\r\nforged line"}, "forged line"),
                "no end": (lambda a: endless(), "extender"),
                "nothing": (lambda a: silent(), "did not answer within 5s"),
            }
            entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "5s",
                     "managedResources": [{"name": "example.com/gpu"}]}
            with cluster.scheduling(entry) as scheduler:
                self.assertIn(cluster.node_of(cluster.create()), NODES)
                before = resident(scheduler)
                for name, (answer, says) in bad.items():
                    with self.subTest(name):
                        extender.answers["filter"] = answer
                        held = cluster.create(gpu=True)
                        message = cluster.told(held, says)
                        self.assertTrue(message.isprintable(), message)
                        self.assertLess(len(message), 600)
                        self.assertIn(cluster.node_of(cluster.create()), NODES, "others go on")
                        cluster.api.delete(f"{PODS}/{held}")
                self.assertEqual(elsewhere.asked, [])
                self.assertLess(resident(scheduler) - before, 300 << 20)
                extender.answers["filter"] = lambda a: {"NodeNames": ["n1"]}
                self.assertEqual(cluster.node_of(cluster.create(gpu=True)), "n1")
                self.assertTrue(scheduler.running())

    def test_victims(self):
        cluster = self.cluster
        with ExtenderServer() as extender:
            extender.answers["preempt"] = lambda a: {"NodeNameToMetaVictims": {"n1": a["NodeNameToMetaVictims"]["n1"]}}
            with cluster.scheduling({"urlPrefix": extender.url, "preemptVerb": "preempt", "nodeCacheCapable": True}):
                lower = [cluster.create(cpu="3") for _ in NODES]
                victim = next(name for name in lower if cluster.node_of(name) == "n1")
                important = cluster.create(cpu="3", priority="high")
                wait_for("the victim to be told to leave",
                         lambda: cluster.api.get(f"{PODS}/{victim}")["metadata"].get("deletionTimestamp"))
                cluster.api.request("DELETE", f"{PODS}/{victim}?gracePeriodSeconds=0")
                self.assertEqual(cluster.node_of(important), "n1")

    def test_budgets_are_respected(self):
        cluster = self.cluster
        cluster.api.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"},
            "spec": {"minAvailable": 3, "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}})
        with cluster.scheduling(flags=("--respect-disruption-budgets",)):
            lower = [cluster.create(cpu="3") for _ in NODES]
            for name in lower:
                cluster.api.patch(f"{PODS}/{name}", {"metadata": {"labels": {"app": "web"}}})
                cluster.node_of(name)
            important = cluster.create(cpu="3", priority="high")
            cluster.told(important,
                         "preemption: 0/3 nodes are available: 3 Disruption budgets do not allow the preemption.")
            code, text, problems = run("explain", f"pod/{important}", "--kubeconfig", cluster.folder / "kubeconfig")
            self.assertIn("Disruption budgets do not allow the preemption", text + problems)
            self.assertFalse([p for p in cluster.api.get(PODS)["items"] if p["metadata"].get("deletionTimestamp")])
        cluster.api.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/all")

    def test_deletions_are_limited(self):
        cluster = self.cluster
        with cluster.scheduling(flags=("--limit-deletions", "1/1h")):
            lower = [cluster.create(cpu="3") for _ in NODES]
            for name in lower:
                cluster.node_of(name)
            first = cluster.create(cpu="3", priority="high")
            wait_for("a promise", lambda: cluster.api.get(f"{PODS}/{first}")["status"].get("nominatedNodeName"))
            second = cluster.create(cpu="3", priority="high")
            cluster.told(second, "preemption: held back: act-limit-reached")
            leaving = [p["metadata"]["name"] for p in cluster.api.get(PODS)["items"]
                       if p["metadata"].get("deletionTimestamp")]
            self.assertEqual(len(leaving), 1)

    def test_mistakes_are_reported(self):
        path = self.folder / "wrong.yaml"
        for entry, says in (({"urlPrefix": "http://x", "prioritizeVerb": "p"},
                             "must have a positive weight applied to it"),
                            ({"urlPrefix": "https://x", "tlsConfig": {"caFile": "/nowhere"}}, "/nowhere")):
            path.write_text(configuration(entry))
            code, _, problems = run("scheduler", "--kubeconfig", self.folder / "kubeconfig", "--config", path)
            self.assertEqual(code, 2)
            self.assertIn(says, problems)
            self.assertIn("wrong.yaml:1: extenders[0]", problems)
        code, _, problems = run("scheduler", "--kubeconfig", self.folder / "kubeconfig", "--limit-deletions", "many")
        self.assertEqual(code, 2)
        self.assertIn("--limit-deletions: ", problems)


if __name__ == "__main__":
    unittest.main()
