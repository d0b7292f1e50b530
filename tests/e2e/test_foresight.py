"""What `spillway simulate --from-cluster` says of a node that is lost, and what then happens when it is lost: the same taints and deletions, at nearly the same times.

Prints both, with their times in seconds since the loss.
"""
import json
import time
import unittest

from harness import can_write_cgroups, needs, run, running, serving, wait_for, workspace

PODS = "/api/v1/namespaces/default/pods"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
LOST = "n1"
SCENARIO = """name: a node is lost
config:
  agents: {nodeLeaseDurationSeconds: 4, evictionHard: {memory.available: 64Mi}}
  controllers: {nodeMonitorPeriod: 1s, nodeMonitorGracePeriod: 10s}
settle: 40s
timeline: [{at: 0s, crash: {names: [n1]}}]
duration: 60s
"""
# Seconds: heartbeats and node health passes of the two begin at other moments. A busy machine is late, and never early.
EARLY, LATE = 3.5, 8


def web(replicas):
    patience = [{"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5} for why in ("not-ready", "unreachable")]
    return {"metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                     "template": {"metadata": {"labels": {"app": "web"}},
                                  "spec": {"tolerations": patience, "terminationGracePeriodSeconds": 1,
                                           "containers": [{"name": "main", "image": "none", "command": ["sleep", "1d"], "resources": {"requests": {"memory": "20Mi"}}}]}}}}


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Foresight(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        kubeconfig = self.folder / "kubeconfig"
        server = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig", kubeconfig))
        self.api, self.kubeconfig = serving(server, kubeconfig), kubeconfig
        self.enterContext(running(self.folder, "controller", "--kubeconfig", kubeconfig, "--node-monitor-period", "1s", "--node-monitor-grace-period", "10s",
                                  "--recording-dir", self.folder / "controller"))
        self.enterContext(running(self.folder, "scheduler", "--kubeconfig", kubeconfig))
        settings = self.folder / "kubelet.yaml"
        settings.write_text(json.dumps({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1", "nodeLeaseDurationSeconds": 4,
                                        "evictionHard": {"memory.available": "64Mi"}}))
        self.agents = {}
        for number in range(3):
            name = f"n{number}"
            self.agents[name] = self.enterContext(running(
                self.folder, "agent", "--kubeconfig", kubeconfig, "--config", settings, "--node-name", name, "--node-ip", "127.0.0.1", "--port", "0",
                "--node-memory", "1Gi", "--node-labels", "topology.kubernetes.io/zone=a", "--state-dir", self.folder / name))
        wait_for("the nodes", lambda: len(self.api.nodes_ready()) == 3)
        self.api.create(REPLICA_SETS, web(9))
        wait_for("the pods", lambda: list(self.api.pod_phases().values()).count("Running") == 9)

    def predicted(self):
        file = self.folder / "lost.yaml"
        file.write_text(SCENARIO)
        begun = time.monotonic()
        code, text, error = run("simulate", file, "--from-cluster", "--kubeconfig", self.kubeconfig, "-o", "json", timeout=60)
        self.assertEqual(code, 0, text + error)
        outcome = json.loads(text)
        print(f"simulated 100 s in {time.monotonic() - begun:.1f} s", flush=True)
        self.assertEqual((outcome["nodes"], outcome["pods"], outcome["leftOut"]), (3, 9, []))
        return [(each["what"], each["object"], each["atSeconds"]) for each in outcome["events"]]

    def look(self):
        """What has come to pass so far: what and of whom."""
        node = self.api.get(f"/api/v1/nodes/{LOST}")
        ready = next(each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready")
        found = {("flips", LOST)} if ready != "True" else set()
        found |= {("taints", LOST) for each in node["spec"].get("taints", []) if each["effect"] == "NoExecute"}
        return found | {("deletions", name) for name in self.there if self.gone(name)}

    def gone(self, name):
        found = self.api.find(f"{PODS}/{name}")
        return found is None or "deletionTimestamp" in found["metadata"]

    def seen(self, seconds):
        self.there = [each["metadata"]["name"] for each in self.api.get(PODS)["items"]]
        self.agents[LOST].kill()
        lost, times = time.monotonic(), {}
        while time.monotonic() < lost + seconds:
            for each in self.look():
                times.setdefault(each, time.monotonic() - lost)
        return [(what, name, at) for (what, name), at in times.items()]

    def replayed(self, *more):
        """What the controllers decided, told by their recording."""
        file = self.folder / "controller.rec"
        code, _, error = run("record", "controller", "--kubeconfig", self.kubeconfig, "-o", file)
        self.assertEqual(code, 0, error)
        code, text, error = run("replay", file, *more, "-o", "json", timeout=60)
        self.assertEqual(error, "")
        print(run("replay", file, *more, timeout=60)[1], flush=True)
        return code, json.loads(text)

    def test_a_lost_node_is_foreseen(self):
        on_it = {each["metadata"]["name"] for each in self.api.get(PODS)["items"] if each["spec"]["nodeName"] == LOST}
        self.assertTrue(on_it)
        predicted = self.predicted()
        print("predicted", [(what, name, round(at, 1)) for what, name, at in predicted], flush=True)
        seen = self.seen(35)
        print("seen     ", [(what, name, round(at, 1)) for what, name, at in sorted(seen, key=lambda each: each[2])], flush=True)
        self.assertEqual({name for what, name, _ in seen if what == "deletions"}, on_it)
        names = {kind: sorted(name for what, name, _ in seen if what == kind) for kind in ("flips", "taints", "deletions")}
        foreseen = {kind: sorted(name.split("/")[-1] for what, name, _ in predicted if what == kind) for kind in names}
        self.assertEqual(foreseen, names)
        for kind in names:
            for best in (min, max):
                apart = best(at for what, _, at in seen if what == kind) - best(at for what, _, at in predicted if what == kind)
                self.assertTrue(-EARLY < apart < LATE, f"{kind}: {apart:.1f} s after what was foreseen")
        self.the_recording_says_the_same()
        self.it_is_fetched_as_it_lies_on_the_disk()
        self.advice_of_the_night()

    def it_is_fetched_as_it_lies_on_the_disk(self):
        """Of a controller that is found by its lease, and of a node over HTTPS. Both go on: what is read later begins as what was read before."""
        for whose, directory in ((("controller",), self.folder / "controller"), (("n0",), self.folder / "n0" / "n0"), (("node/n0",), self.folder / "n0" / "n0")):
            fetched, read = self.folder / "fetched.rec", self.folder / "read.rec"
            code, text, error = run("record", *whose, "--kubeconfig", self.kubeconfig, "-o", fetched)
            self.assertEqual((code, error), (0, ""))
            self.assertRegex(text, r"fetched.rec: \d+ segments, \d+\.\d MiB\n")
            code, _, error = run("record", "controller" if whose == ("controller",) else "node", "--dir", directory, "-o", read)
            self.assertEqual(code, 0, error)
            self.assertTrue(read.read_bytes().startswith(fetched.read_bytes()), whose)
        code, _, error = run("record", LOST, "--kubeconfig", self.kubeconfig, "-o", self.folder / "lost.rec")
        self.assertEqual((code, len(error.splitlines())), (1, 1), error)
        self.assertRegex(error, f'^spillway: .*cannot reach node "{LOST}"')
        self.assertFalse((self.folder / "lost.rec").exists())

    def advice_of_the_night(self):
        patient = self.folder / "patient.yaml"
        patient.write_text("controllers: {nodeMonitorGracePeriod: 10m}\n")
        code, text, error = run("advise", self.folder / "controller.rec", "--config", patient, "--brakes", "on", "-o", "json", timeout=120)
        self.assertEqual(code, 0, error)
        print(run("advise", self.folder / "controller.rec", "--config", patient, "--brakes", "on", timeout=120)[1], flush=True)
        costs = [each["cost"] for each in json.loads(text)["choices"]]
        self.assertEqual([(each["flips"], each["tainted"], each["recordings"], each["keptFreeBytesPerNode"]) for each in costs], [(1, 1, 1, None), (0, 0, 1, None)])

    def the_recording_says_the_same(self):
        code, report = self.replayed()
        self.assertEqual((code, report["kind"], report["nodes"], report["runs"], report["gaps"], report["different"]), (0, "ControllerReplayReport", 3, 1, 0, 0))
        decided = [(row["subject"], row["decided"]["what"]) for row in report["rows"]]
        self.assertIn((LOST, "marked Unknown"), decided)
        self.assertIn((LOST, "tainted unreachable"), decided)
        patient = self.folder / "patient.yaml"
        patient.write_text("controllers: {nodeMonitorGracePeriod: 15s}\n")
        code, report = self.replayed("--config", patient)
        self.assertEqual(code, 3)
        marked = [row for row in report["rows"] if row["subject"] == LOST and "decided" in row and row["decided"]["what"] == "marked Unknown"]
        self.assertEqual([row["same"] for row in marked], [False])
        self.assertEqual(marked[0]["wouldBe"]["what"], "marked Unknown")
        for wrong in ("controllers: {nodeMonitorGracePeriods: 15s}\n", "controllers: {nodeMonitorGracePeriod: soon}\n"):
            patient.write_text(wrong)
            code, _, error = run("replay", self.folder / "controller.rec", "--config", patient)
            self.assertEqual((code, len(error.splitlines())), (2, 1), error)


if __name__ == "__main__":
    unittest.main()
