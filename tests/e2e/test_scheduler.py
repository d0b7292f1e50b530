"""`spillway scheduler` with a KubeSchedulerConfiguration: profiles place their own pods, mistakes are reported, and of
two schedulers one acts."""
import http.client
import json
import os
import pathlib
import re
import ssl
import subprocess
import unittest

from harness import account_kubeconfig, let_run_out, PATIENCE, Process, run, running, serving, wait_for, workspace

PODS = "/api/v1/namespaces/default/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
CONFIGURATION = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 16
leaderElection: {leaderElect: true, leaseDuration: 120s, renewDeadline: 100s, retryPeriod: 300ms}
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}}
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}
- schedulerName: pool-b
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [b]}]}]
"""


def node(name, pool):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": pool}},
            "status": {"capacity": amounts, "allocatable": amounts,
                       "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, scheduler):
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"schedulerName": scheduler, "containers": [container]}}


class Pages:
    """The pages of a scheduler. Its certificate is self-made and not checked: these tests are about the clients that it
    lets in."""

    def __init__(self, process):
        found = wait_for("its port", lambda: re.search(r"serving\b.*https://[^\s\"]*:(\d+)", process.log.read_text()))
        self.port = int(found.group(1))

    def ask(self, path, token=None):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE,
                                                 context=ssl._create_unverified_context())
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


class Scheduler(unittest.TestCase):
    def test_profiles_and_takeover(self):
        with workspace() as folder:
            (folder / "scheduler.yaml").write_text(CONFIGURATION)
            server = Process(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                             folder / "kubeconfig")
            schedulers = []
            try:
                api = serving(server, folder / "kubeconfig")
                for name in ("n0", "n1"):
                    api.create("/api/v1/nodes", node(name, "ab"[int(name[1])]))
                    api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
                wait_for("the account of the namespace",
                         lambda: api.find("/api/v1/namespaces/default/serviceaccounts/default"))

                def start():
                    schedulers.append(Process(folder, "scheduler", "--kubeconfig", folder / "kubeconfig", "--config",
                                              folder / "scheduler.yaml"))

                def place(name, scheduler):
                    api.create(PODS, pod(name, scheduler))
                    return wait_for(f"a node for {name}", lambda: api.get(f"{PODS}/{name}")["spec"].get("nodeName"))

                def leading():
                    return [each for each in schedulers if each.running() and 'msg="leading"' in each.log.read_text()]

                start()
                wait_for("the first to lead", leading)
                start()
                wait_for("the second to stand by", lambda: 'msg="standing by"' in schedulers[1].log.read_text())
                self.assertIn("scheduler.yaml:3: parallelism: has no effect here", schedulers[0].log.read_text())
                self.assertEqual({place("d0", "default-scheduler"), place("d1", "default-scheduler")}, {"n0", "n1"})
                self.assertEqual(place("p0", "packing"), place("p1", "packing"))
                self.assertEqual({place(f"b{i}", "pool-b") for i in range(3)}, {"n1"})
                # Events are written beside the bindings.
                scheduled = wait_for("its event", lambda: [
                    e["source"]["component"] for e in api.get("/api/v1/namespaces/default/events")["items"]
                    if e["involvedObject"]["name"] == "b0" and e["reason"] == "Scheduled"])
                self.assertEqual(scheduled, ["pool-b"])
                self.check_explain(api, folder)
                schedulers[0].kill()
                let_run_out(api, LEASE)
                self.assertEqual(place("late", "pool-b"), "n1")
                self.assertEqual(api.get(LEASE)["spec"]["leaseTransitions"], 1)
                self.assertIn('msg="leading"', schedulers[1].log.read_text())
                self.assertEqual(schedulers[1].stop(), 0)
                self.assertEqual(api.get(LEASE)["spec"].get("holderIdentity", ""), "", "it gives the lease back")
            except BaseException:
                for each in schedulers:
                    print(each.log.name, each.tail(8))
                raise
            finally:
                for each in schedulers + [server]:
                    each.kill()

    def check_explain(self, api, folder):
        """A pod that waits is explained by the profile that it names."""
        big = pod("big", "pool-b")
        big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100"
        api.create(PODS, big)
        wait_for("it to be refused", lambda: api.get(f"{PODS}/big")["status"].get("conditions"))

        def explain(*more):
            code, said, problems = run("explain", "pod/big", "--kubeconfig", folder / "kubeconfig", *more)
            self.assertEqual(code, 0, problems)
            return said, problems

        said, problems = explain()
        self.assertNotIn("n1 ", said)
        self.assertIn('the pod names the scheduler "pool-b"; its profile is unknown: use --scheduler-config FILE',
                      problems)
        said, problems = explain("--scheduler-config", folder / "scheduler.yaml")
        self.assertRegex(said, r"n0 +node selector mismatch")
        self.assertRegex(said, r"n1 +insufficient resource +- +cpu")
        self.assertNotIn("its profile is unknown", problems)
        (folder / "other.yaml").write_text(CONFIGURATION.replace("pool-b", "pool-c"))
        self.assertIn('other.yaml has no profile of that name', explain("--scheduler-config", folder / "other.yaml")[1])
        self.assertEqual(run("explain", "pod/big", "--kubeconfig", folder / "kubeconfig", "--scheduler-config",
                             folder / "kubeconfig")[0], 2)
        api.delete(f"{PODS}/big")

    def test_a_missing_right_is_reported(self):
        with workspace() as folder, running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                            "--write-kubeconfig", folder / "kubeconfig") as server:
            api = serving(server, folder / "kubeconfig")
            api.create("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "few"}})
            with running(folder, "scheduler", "--kubeconfig",
                         account_kubeconfig(api, folder / "kubeconfig", "few")) as scheduler:
                wait_for("the line", lambda: "the lease cannot be read" in scheduler.log.read_text())
                self.assertIn('cannot get resource \\"leases\\"', scheduler.log.read_text())

    def test_its_pages_list_waiting_pods(self):
        with workspace() as folder, running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                            "--write-kubeconfig", folder / "kubeconfig") as server:
            api = serving(server, folder / "kubeconfig")
            wait_for("the account of the namespace",
                     lambda: api.find("/api/v1/namespaces/default/serviceaccounts/default"))
            api.create("/api/v1/nodes", node("n0", "a"))
            api.patch("/api/v1/nodes/n0", {"spec": {"taints": None}})
            for who, verbs in (("reader",
                                {"nonResourceURLs": ["/metrics", "/configz", "/debug/spillway/waiting",
                                                     "/debug/spillway/waiting/*"], "verbs": ["get"]}),
                               ("stranger", None)):
                api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": who}})
                if verbs:
                    api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles",
                               {"metadata": {"name": who}, "rules": [verbs]})
                    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                        "metadata": {"name": who},
                        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": who},
                        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": who}]})
            tokens = {who: api.create(f"/api/v1/namespaces/default/serviceaccounts/{who}/token",
                                      {"spec": {}})["status"]["token"] for who in ("reader", "stranger")}
            (folder / "scheduler.yaml").write_text(CONFIGURATION)
            arguments = ("scheduler", "--kubeconfig", folder / "kubeconfig", "--config", folder / "scheduler.yaml",
                         "--authentication-kubeconfig", folder / "kubeconfig")
            with running(folder, *arguments) as scheduler:
                pages = Pages(scheduler)
                self.assertEqual([pages.ask(path)[0] for path in ("/healthz", "/livez", "/readyz")], [200] * 3)
                self.assertIn("--authentication-kubeconfig", scheduler.log.read_text())
                for path in ("/metrics", "/configz", "/debug/spillway/waiting"):
                    self.assertEqual([pages.ask(path)[0], pages.ask(path, tokens["stranger"])[0]], [401, 403], path)
                wait_for("its caches", lambda: pages.ask("/debug/spillway/waiting", tokens["reader"])[0] == 200)
                api.create(PODS, pod("nowhere", "pool-b"))
                waiting = wait_for("the pod to be refused",
                                   lambda: next((each
                                                 for each in json.loads(pages.ask("/debug/spillway/waiting",
                                                                                  tokens["reader"])[1])["pods"]
                                                                          if each["queue"] == "unschedulable"), None))
                self.assertEqual((waiting["name"], waiting["refused_by"], waiting["attempts"]),
                                 ("nowhere", ["NodeAffinity"], 1))
                self.assertIn("0/1 nodes are available", waiting["message"])
                self.assertEqual(json.loads(pages.ask("/debug/spillway/waiting/default/nowhere",
                                                      tokens["reader"])[1])["name"], "nowhere")
                self.assertEqual(pages.ask("/debug/spillway/waiting/default/other", tokens["reader"])[0], 404)
                metrics = pages.ask("/metrics", tokens["reader"])[1]
                self.assertIn('scheduler_unschedulable_pods{plugin="NodeAffinity",profile="pool-b"} 1', metrics)
                self.assertRegex(metrics, r"scheduler_scheduling_algorithm_duration_seconds_count [1-9]")
                shown = json.loads(pages.ask("/configz", tokens["reader"])[1])["componentconfig"]
                self.assertEqual([each["schedulerName"] for each in shown["profiles"]],
                                 ["default-scheduler", "packing", "pool-b"])
                with running(folder, *arguments) as second:
                    other = Pages(second)
                    code, said = wait_for("it to stand by",
                                          lambda: [answer
                                                   for answer in [other.ask("/debug/spillway/waiting",
                                                                            tokens["reader"])]
                                                   if "standing by" in answer[1]])[0]
                    self.assertEqual((code, other.ask("/healthz")[0]), (503, 200), said)
                taken = run("scheduler", "--kubeconfig", folder / "kubeconfig", "--secure-port", pages.port)
                self.assertEqual(taken[0], 1, taken)
                self.assertIn(str(pages.port), taken[2])

    def test_the_configuration_in_effect_is_written(self):
        with workspace() as folder:
            (folder / "scheduler.yaml").write_text(CONFIGURATION)
            for source, names in ((("--config", folder / "scheduler.yaml"), ["default-scheduler", "packing", "pool-b"]),
                                  ((), ["default-scheduler"])):
                code, _, said = run("scheduler", *source, "--write-config-to", folder / "written.yaml")
                self.assertEqual(code, 0, said)
                written = (folder / "written.yaml").read_text()
                self.assertEqual([line.split(": ")[1] for line in written.splitlines() if "schedulerName: " in line],
                                 names)
                self.assertEqual((folder / "written.yaml").stat().st_mode & 0o777, 0o600)
                code, _, said = run("scheduler", "--config", folder / "written.yaml", "--write-config-to",
                                    folder / "again.yaml")
                self.assertEqual((code, said), (0, ""))
                self.assertEqual((folder / "again.yaml").read_text(), written)
            code, _, said = run("scheduler", "--write-config-to", folder / "missing" / "file")
            self.assertEqual(code, 1)
            self.assertIn("missing", said)
            code, _, said = run("scheduler", "--write-config-to", "")
            self.assertEqual((code, len(said.splitlines())), (2, 1), said)
            code, text, said = run("scheduler", "--write-config-to", "/dev/stdout")
            self.assertEqual((code, said), (0, ""))
            self.assertEqual(text, written)
            self.assertEqual(run("scheduler", "--write-config-to", "/dev/null"), (0, "", ""))
            self.assertTrue(pathlib.Path("/dev/null").is_char_device())
            pipe = folder / "pipe"
            os.mkfifo(pipe)
            with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
                code, _, said = run("scheduler", "--write-config-to", pipe)
                self.assertEqual((code, reader.communicate()[0]), (0, written), said)
            self.assertTrue(pipe.is_fifo())

    def test_mistakes_are_reported(self):
        with workspace() as folder:
            file = folder / "scheduler.yaml"
            for text, expected in [
                    ("apiVersion: v1\nkind: Pod\n", "expected kubescheduler.config.k8s.io/v1"),
                    (CONFIGURATION.replace("MostAllocated", "Most"),
                     "expected LeastAllocated, MostAllocated or RequestedToCapacityRatio"),
                    (CONFIGURATION.replace("NodeResourcesFit}]", "NodeResourceFit}]"),
                     "(did you mean NodeResourcesFit?)"),
                    (CONFIGURATION + "extenders: [{urlPrefix: 'ftp://x'}]\n",
                     "expected urlPrefix: http://HOST:PORT/PATH or https")]:
                file.write_text(text)
                for command in (["scheduler", "--config"], ["up", "--data-dir", folder / "data", "--scheduler-config"]):
                    code, _, said = run(*command, file)
                    self.assertEqual(code, 2, said)
                    self.assertIn(expected, said)
                    self.assertIn(f"{file}:", said)
            self.assertFalse((folder / "data").exists(), "nothing was begun")
            code, _, said = run("scheduler", "--config", file, "--no-leader-elect")
            self.assertEqual(code, 2)
            self.assertIn("excludes", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
