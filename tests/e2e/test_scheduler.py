"""`spillway scheduler` with a KubeSchedulerConfiguration: profiles place their own pods, mistakes are told, and of two schedulers one acts."""
import unittest

from harness import account_kubeconfig, Process, run, running, serving, wait_for, workspace

PODS = "/api/v1/namespaces/default/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
CONFIGURATION = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 16
leaderElection: {leaderElect: true, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 300ms}
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
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, scheduler):
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"schedulerName": scheduler, "containers": [container]}}


class Scheduler(unittest.TestCase):
    def test_profiles_and_takeover(self):
        with workspace() as folder:
            (folder / "scheduler.yaml").write_text(CONFIGURATION)
            server = Process(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig", folder / "kubeconfig")
            schedulers = []
            try:
                api = serving(server, folder / "kubeconfig")
                for name in ("n0", "n1"):
                    api.create("/api/v1/nodes", node(name, "ab"[int(name[1])]))
                    api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
                wait_for("the account of the namespace", lambda: api.find("/api/v1/namespaces/default/serviceaccounts/default"))

                def start():
                    schedulers.append(Process(folder, "scheduler", "--kubeconfig", folder / "kubeconfig", "--config", folder / "scheduler.yaml"))

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
                events = [e for e in api.get("/api/v1/namespaces/default/events")["items"] if e["involvedObject"]["name"] == "b0"]
                self.assertEqual([e["source"]["component"] for e in events if e["reason"] == "Scheduled"], ["pool-b"])
                self.check_explain(api, folder)
                schedulers[0].kill()
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
        """A pod that waits is judged by the profile that it names."""
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
        self.assertIn('the pod names the scheduler "pool-b"; its profile is not known here: --scheduler-config FILE', problems)
        said, problems = explain("--scheduler-config", folder / "scheduler.yaml")
        self.assertRegex(said, r"n0 +node selector mismatch")
        self.assertRegex(said, r"n1 +insufficient resource +- +cpu")
        self.assertNotIn("is not known here", problems)
        (folder / "other.yaml").write_text(CONFIGURATION.replace("pool-b", "pool-c"))
        self.assertIn('other.yaml has no profile of that name', explain("--scheduler-config", folder / "other.yaml")[1])
        self.assertEqual(run("explain", "pod/big", "--kubeconfig", folder / "kubeconfig", "--scheduler-config", folder / "kubeconfig")[0], 2)
        api.delete(f"{PODS}/big")

    def test_a_missing_right_is_told(self):
        with workspace() as folder, running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig", folder / "kubeconfig") as server:
            api = serving(server, folder / "kubeconfig")
            api.create("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "few"}})
            with running(folder, "scheduler", "--kubeconfig", account_kubeconfig(api, folder / "kubeconfig", "few")) as scheduler:
                wait_for("the line", lambda: "the lease cannot be read" in scheduler.log.read_text())
                self.assertIn('cannot get resource \\"leases\\"', scheduler.log.read_text())

    def test_mistakes_are_told(self):
        with workspace() as folder:
            file = folder / "scheduler.yaml"
            for text, expected in [
                    ("apiVersion: v1\nkind: Pod\n", "expected kubescheduler.config.k8s.io/v1"),
                    (CONFIGURATION.replace("MostAllocated", "Most"), "expected LeastAllocated, MostAllocated or RequestedToCapacityRatio"),
                    (CONFIGURATION.replace("NodeResourcesFit}]", "NodeResourceFit}]"), "(did you mean NodeResourcesFit?)"),
                    (CONFIGURATION + "extenders: [{urlPrefix: 'ftp://x'}]\n", "expected urlPrefix: http://HOST:PORT/PATH or https")]:
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
