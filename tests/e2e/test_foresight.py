"""The forecast of `spillway simulate --from-cluster` for a lost node, compared with its real loss: the same taints and
deletions, in the same order, and none before its time.

Prints both, with their times in seconds since the loss.
"""
import datetime
import json
import time
import unittest

from harness import can_write_cgroups, needs, run, running, serving, wait_for, workspace

PODS = "/api/v1/namespaces/default/pods"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
LOST = "n1"
# Seconds. An agent renews its lease each second: one that waits for a processor keeps its node Ready.
GRACE, TOLERATION = 20, 5
SCENARIO = f"""name: a node is lost
config:
  agents: {{nodeLeaseDurationSeconds: 4, evictionHard: {{memory.available: 64Mi}}}}
  controllers: {{nodeMonitorPeriod: 1s, nodeMonitorGracePeriod: {GRACE}s}}
settle: 40s
timeline: [{{at: 0s, crash: {{names: [n1]}}}}]
duration: 60s
"""


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def web(replicas):
    patience = [{"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": TOLERATION} for why in ("not-ready", "unreachable")]
    return {"metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                     "template": {"metadata": {"labels": {"app": "web"}},
                                  "spec": {"tolerations": patience, "terminationGracePeriodSeconds": 1,
                                           "containers": [{"name": "main", "image": "none", "command": ["sleep", "1d"],
                                                           "resources": {"requests": {"memory": "20Mi"}}}]}}}}


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Foresight(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        kubeconfig = self.folder / "kubeconfig"
        server = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0",
                                           "--write-kubeconfig", kubeconfig))
        self.api, self.kubeconfig = serving(server, kubeconfig), kubeconfig
        self.enterContext(running(self.folder, "controller", "--kubeconfig", kubeconfig, "--node-monitor-period", "1s",
                                  "--node-monitor-grace-period", f"{GRACE}s",
                                  "--recording-dir", self.folder / "controller"))
        self.enterContext(running(self.folder, "scheduler", "--kubeconfig", kubeconfig))
        settings = self.folder / "kubelet.yaml"
        settings.write_text(json.dumps({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
                                        "nodeLeaseDurationSeconds": 4,
                                        "evictionHard": {"memory.available": "64Mi"}}))
        self.agents = {}
        for number in range(3):
            name = f"n{number}"
            self.agents[name] = self.enterContext(running(
                self.folder, "agent", "--kubeconfig", kubeconfig, "--config", settings, "--node-name", name,
                "--node-ip", "127.0.0.1", "--port", "0",
                "--node-memory", "1Gi", "--node-labels", "topology.kubernetes.io/zone=a", "--state-dir",
                self.folder / name))
        wait_for("the nodes", lambda: len(self.api.nodes_ready()) == 3)
        self.api.create(REPLICA_SETS, web(9))
        wait_for("the pods", lambda: list(self.api.pod_phases().values()).count("Running") == 9)

    def predicted(self):
        file = self.folder / "lost.yaml"
        file.write_text(SCENARIO)
        begun = time.monotonic()
        code, text, error = run("simulate", file, "--from-cluster", "--kubeconfig", self.kubeconfig, "-o", "json")
        self.assertEqual(code, 0, text + error)
        outcome = json.loads(text)
        print(f"simulated 100 s in {time.monotonic() - begun:.1f} s", flush=True)
        self.assertEqual((outcome["nodes"], outcome["pods"], outcome["leftOut"]), (3, 9, []))
        return [(each["what"], each["object"], each["atSeconds"]) for each in outcome["events"]]

    def look(self):
        """The acts on the lost node and its pods so far, with their times by the clock of the program that acted: whole
        seconds."""
        node = self.api.get(f"/api/v1/nodes/{LOST}")
        ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
        found = {("flips", LOST): moment(ready["lastTransitionTime"])} if ready["status"] != "True" else {}
        found |= {("taints", LOST): moment(each["timeAdded"]) for each in node["spec"].get("taints", [])
                  if each["effect"] == "NoExecute"}
        for each in self.api.get(PODS)["items"]:
            if at := each["metadata"].get("deletionTimestamp"):
                grace = datetime.timedelta(seconds=each["metadata"]["deletionGracePeriodSeconds"])
                found["deletions", each["metadata"]["name"]] = moment(at) - grace
        return found

    def seen(self, foreseen):
        """The course of the real loss, once all of `foreseen` has happened: (what, name, seconds since its last
        renewal)."""
        self.agents[LOST].kill()
        last = moment(self.api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{LOST}")["spec"][
            "renewTime"])
        wait_for(lambda: f"{foreseen - set(self.look())}", lambda: foreseen <= set(self.look()))
        return [(what, name, (at - last).total_seconds()) for (what, name), at in self.look().items()]

    def replayed(self, *more):
        """The decisions of the controllers, by their recording."""
        file = self.folder / "controller.rec"
        code, _, error = run("record", "controller", "--kubeconfig", self.kubeconfig, "-o", file)
        self.assertEqual(code, 0, error)
        code, text, error = run("replay", file, *more, "-o", "json")
        self.assertEqual(error, "")
        print(run("replay", file, *more)[1], flush=True)
        return code, json.loads(text)

    def test_a_lost_node_is_foreseen(self):
        on_it = {each["metadata"]["name"] for each in self.api.get(PODS)["items"] if each["spec"]["nodeName"] == LOST}
        self.assertTrue(on_it)
        predicted = self.predicted()
        self.assertLess(max(at for _, _, at in predicted), GRACE + TOLERATION + 3)  # in virtual time
        print("predicted", [(what, name, round(at, 1)) for what, name, at in predicted], flush=True)
        self.in_order_and_not_early(predicted)
        seen = self.seen({(what, name.split("/")[-1]) for what, name, _ in predicted})
        print("seen     ", [(what, name, round(at, 1)) for what, name, at in sorted(seen, key=lambda each: each[2])],
              flush=True)
        self.in_order_and_not_early(seen)
        self.assertEqual({name for what, name, _ in seen if what == "deletions"}, on_it)
        names = {kind: sorted(name for what, name, _ in seen if what == kind)
                 for kind in ("flips", "taints", "deletions")}
        foreseen = {kind: sorted(name.split("/")[-1] for what, name, _ in predicted if what == kind) for kind in names}
        self.assertEqual(foreseen, names)
        self.the_recording_says_the_same()
        self.it_is_fetched_as_it_lies_on_the_disk()
        self.advice_of_the_night()
        self.assertEqual(set(self.look()), {(what, name) for what, name, _ in seen}, "more has happened since")

    def in_order_and_not_early(self, events):
        """The clock may be a second old when an event is written down. A busy machine is late."""
        times = {kind: [at for what, _, at in events if what == kind] for kind in ("flips", "taints", "deletions")}
        self.assertEqual([len(times["flips"]), len(times["taints"])], [1, 1], events)
        self.assertGreaterEqual(times["flips"][0], GRACE - 1)
        self.assertGreaterEqual(times["taints"][0], times["flips"][0])
        self.assertGreaterEqual(min(times["deletions"]), times["taints"][0] + TOLERATION - 1)

    def it_is_fetched_as_it_lies_on_the_disk(self):
        """Recordings of a controller, which is found by its lease, and of a node over HTTPS. Both programs keep
        running: a recording that is read later begins like the one before.
        """
        for whose, directory in ((("controller",), self.folder / "controller"), (("n0",), self.folder / "n0" / "n0"),
                                 (("node/n0",), self.folder / "n0" / "n0")):
            fetched, read = self.folder / "fetched.rec", self.folder / "read.rec"
            code, text, error = run("record", *whose, "--kubeconfig", self.kubeconfig, "-o", fetched)
            self.assertEqual((code, error), (0, ""))
            self.assertRegex(text, r"fetched.rec: \d+ segments, \d+\.\dMi\n")
            code, _, error = run("record", "controller" if whose == ("controller",) else "node", "--dir", directory,
                                 "-o", read)
            self.assertEqual(code, 0, error)
            self.assertTrue(read.read_bytes().startswith(fetched.read_bytes()), whose)
        code, _, error = run("record", LOST, "--kubeconfig", self.kubeconfig, "-o", self.folder / "lost.rec")
        self.assertEqual((code, len(error.splitlines())), (1, 1), error)
        self.assertRegex(error, f'^spillway: .*cannot reach node "{LOST}"')
        self.assertFalse((self.folder / "lost.rec").exists())

    def advice_of_the_night(self):
        patient = self.folder / "patient.yaml"
        patient.write_text("controllers: {nodeMonitorGracePeriod: 10m}\n")
        code, text, error = run("advise", self.folder / "controller.rec", "--config", patient, "--brakes", "on", "-o",
                                "json")
        self.assertEqual(code, 0, error)
        print(run("advise", self.folder / "controller.rec", "--config", patient, "--brakes", "on")[1], flush=True)
        costs = [each["cost"] for each in json.loads(text)["choices"]]
        self.assertEqual([(each["flips"], each["tainted"], each["recordings"], each["keptFreeBytesPerNode"])
                          for each in costs], [(1, 1, 1, None), (0, 0, 1, None)])

    def the_recording_says_the_same(self):
        code, report = self.replayed()
        self.assertEqual((code, report["kind"], report["nodes"], report["runs"], report["gaps"], report["different"]),
                         (0, "ControllerReplayReport", 3, 1, 0, 0))
        decided = [(row["subject"], row["decided"]["what"]) for row in report["rows"]]
        self.assertIn((LOST, "marked Unknown"), decided)
        self.assertIn((LOST, "tainted unreachable"), decided)
        patient = self.folder / "patient.yaml"
        patient.write_text(f"controllers: {{nodeMonitorGracePeriod: {GRACE + 2}s}}\n")
        code, report = self.replayed("--config", patient)
        self.assertEqual(code, 3)
        marked = [row for row in report["rows"] if row["subject"] == LOST and "decided" in row
                  and row["decided"]["what"] == "marked Unknown"]
        self.assertEqual([row["same"] for row in marked], [False])
        self.assertEqual(marked[0]["wouldBe"]["what"], "marked Unknown")
        for wrong in ("controllers: {nodeMonitorGracePeriods: 15s}\n", "controllers: {nodeMonitorGracePeriod: soon}\n"):
            patient.write_text(wrong)
            code, _, error = run("replay", self.folder / "controller.rec", "--config", patient)
            self.assertEqual((code, len(error.splitlines())), (2, 1), error)


if __name__ == "__main__":
    unittest.main()
