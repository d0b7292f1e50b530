"""`spillway explain` of jobs, cron jobs, autoscalers, services and pods whose containers fail, against `spillway up`
with kubectl.
"""
import json
import shutil
import unittest

from harness import account_kubeconfig, can_write_cgroups, needs, one_node, run, running, serving, wait_for, workspace


def pod_spec(command, **more):
    container = {"name": "main", "image": "img", "command": ["sh", "-c", command], **more.pop("container", {})}
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container], **more}


def job(name, command, namespace="default", container=None, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace},
            "spec": {"template": {"spec": pod_spec(command, container=container or {})}, **spec}}


def cron_job(name, schedule, command="true", **spec):
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod_spec(command)}}}, **spec}}


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl

    def ask(self, what, *more, kubeconfig=None):
        return run("explain", what, "--kubeconfig", kubeconfig or self.folder / "kubeconfig", *more)

    def explain(self, what, *more):
        code, said, problems = self.ask(what, *more)
        self.assertEqual((code, problems), (0, ""), said)
        return said

    def comes_to(self, what, words, *more):
        """The explanation, once it contains these words."""
        return wait_for(lambda: f"{words!r} of {what}: {self.explain(what, *more)}",
                        lambda: (said := self.explain(what, *more)) and words in said and said)

    def apply(self, *documents):
        for document in documents:
            self.kubectl.apply(document)

    def test_a_job_says_what_it_waits_for_and_how_it_ended(self):
        self.apply(job("import", "sleep 1d", suspend=True, completions=3))
        self.assertIn("job default/import: it is suspended (spec.suspend)", self.explain("job/import"))
        self.kubectl("patch", "job", "import", "-p", '{"spec":{"suspend":false}}')
        said = self.comes_to("job/import", "1 pod runs")
        self.assertIn("0 of 3 succeeded, 1 running, 0 pending, 0 failed (backoffLimit 6)", said)
        self.apply(job("huge", "true", container={"resources": {"requests": {"memory": "100Gi"}}}))
        self.assertIn("Insufficient memory", self.comes_to("job/huge", "none of its pods runs").splitlines()[0])
        self.apply(job("breaks", "exit 3", backoffLimit=4))
        said = self.comes_to("job/breaks", "the next pod is created in")
        self.assertRegex(said.splitlines()[0], r"in \d+s, at \d{4}-\d\d-\d\dT[\d:]+Z: \d+ failures? in a row")
        self.assertIn("main exited with 3", said)
        self.apply(job("once", "true", ttlSecondsAfterFinished=1000))
        self.assertIn("(ttlSecondsAfterFinished)", self.comes_to("job/once", "it is complete: 1 pod has succeeded"))
        self.apply(job("never", "exit 1", backoffLimit=0))
        self.comes_to("job/never", "it has failed (BackoffLimitExceeded)")

    def test_a_quota_that_refuses_is_named(self):
        self.kubectl("create", "namespace", "tight")
        self.kubectl("create", "quota", "none", "-n", "tight", "--hard=pods=0")
        wait_for("the quota", lambda: self.kubectl.get("quota", "none", "-n", "tight").get("status", {}).get("hard"))
        self.apply(job("import", "true", namespace="tight"))
        said = self.comes_to("job/tight/import", "its pods are refused")
        self.assertIn("exceeded quota", said.splitlines()[0])

    def test_a_cron_job_says_when_it_runs_and_why_not(self):
        self.apply(cron_job("yearly", "0 0 1 1 *", timeZone="Asia/Tokyo"))
        said = self.explain("cj/yearly")
        self.assertRegex(said.splitlines()[0], r"the next run is in \d+h, at \d{4}-12-31T15:00:00Z")
        self.assertIn("it has never run", said)
        self.kubectl("patch", "cronjob", "yearly", "-p", '{"spec":{"suspend":true}}')
        self.assertIn("it is suspended", self.explain("cronjob/yearly").splitlines()[0])
        self.apply(cron_job("long", "@every 2s", "sleep 1d", concurrencyPolicy="Forbid"))
        # The jobs of one minute have one name, so that the next minute's is the first that is held back.
        said = self.comes_to("cj/long", "does not start before the last one")
        self.assertRegex(said.splitlines()[0], r"the last one, long-\d+, has ended \(concurrencyPolicy Forbid\)")
        self.assertRegex(said, r"long-\d+ +running")
        self.kubectl("delete", "cronjob", "long")

    def test_a_service_says_who_answers_and_why_others_do_not(self):
        self.kubectl("create", "deployment", "web", "--image=one", "--port=8080", "--", "sleep", "1d")
        self.kubectl("expose", "deployment", "web", "--port=80", "--target-port=8080")
        said = self.comes_to("svc/web", "1 of its 1 pod answers, but no Service proxy of Spillway leads")  # `up --proxy off`
        self.assertIn("1 ready", said)
        self.assertRegex(said.splitlines()[0], r"leads 10\.\d+\.\d+\.\d+ to them \(--proxy off\): use kubectl port-forward svc/web 8080:80$")
        self.assertRegex(said, r"NAME +PORT +TARGET +PODS\n +- +80/TCP +8080 +1\n")
        said = self.comes_to("svc/web", "1 endpoint slice, 1 endpoint")
        self.assertRegex(said, r"10\.\d+\.\d+\.\d+:80/TCP +ClusterIP +1 endpoint +Cluster")
        self.kubectl("patch", "service", "web", "-p", '{"spec":{"selector":{"app":"wbe"}}}')
        said = self.explain("svc/web")
        self.assertIn("no pod answers: no pod of its namespace has the labels app=wbe", said.splitlines()[0])
        self.assertIn("its label app is web, not wbe", said)
        self.kubectl("patch", "service", "web", "-p",
                     '{"spec":{"selector":{"app":"web"},"ports":[{"port":80,"targetPort":"metrics"}]}}')
        self.assertIn("they have no port named metrics", self.explain("svc/web").splitlines()[0])
        self.kubectl("create", "service", "externalname", "db", "--external-name", "db.example.com")
        self.assertIn("it is another name for db.example.com", self.explain("service/db"))

    def test_an_autoscaler_says_what_it_measures_and_what_holds_it(self):
        self.kubectl("create", "deployment", "idle", "--image=one", "--", "sleep", "1d")
        self.kubectl("autoscale", "deployment", "idle", "--min=1", "--max=3", "--cpu-percent=50")
        said = self.comes_to("hpa/idle", "missing request for cpu")
        self.assertIn("it stays at 1 replica: 1 of 1 metric cannot be read", said.splitlines()[0])
        self.kubectl("set", "resources", "deployment", "idle", "--requests=cpu=10m")
        # Its first recommendation holds it, until that is five minutes old.
        said = self.comes_to(
            "hpa/idle", "its metrics propose 0 replicas, and it stays at 1: more were recommended within the last 5m"
        )
        self.assertRegex(said, r"cpu +read +0% +50% +")
        self.assertIn("Deployment idle has 1 replica", said)
        self.kubectl("autoscale", "deployment", "idle", "--name=second", "--min=1", "--max=2", "--cpu-percent=80")
        self.assertIn("controlled by multiple HPAs: [default/idle default/second]",
                      self.explain("hpa/second").splitlines()[0])
        self.kubectl("delete", "hpa", "second")
        # Another target whose selector selects the same pods, and one whose selector does not.
        for name, labels in (("rival", {"app": "idle"}), ("apart", {"app": "apart"})):
            self.kubectl.apply({"apiVersion": "v1", "kind": "ReplicationController",
                                "metadata": {"name": name, "namespace": "default"}, "spec": {
                "replicas": 0, "selector": labels, "template": {"metadata": {"labels": labels}, "spec": {
                    "containers": [{"name": "main", "image": "img", "command": ["sleep", "1d"]}]}}}})
            self.kubectl("autoscale", "rc", name, "--min=1", "--max=2", "--cpu-percent=80")
        self.assertIn("controlled by multiple HPAs: [default/idle default/rival]",
                      self.explain("hpa/idle").splitlines()[0])
        self.assertNotIn("multiple HPAs", self.explain("hpa/apart"))
        self.kubectl("delete", "hpa/rival", "hpa/apart", "rc/rival", "rc/apart")
        self.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "lost"},
                    "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nowhere"}, "maxReplicas": 3}})
        self.assertIn('the scale of Deployment nowhere cannot be read: deployments.apps "nowhere" not found',
                      self.explain("hpa/lost").splitlines()[0])

    def test_a_pod_says_which_container_fails(self):
        def pod(name, command):
            return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
                "restartPolicy": "Always", "containers": [{"name": "main", "image": "img", "command": command}]}}

        self.apply(pod("crashes", ["sh", "-c", "exit 3"]), pod("missing", ["/no/such/program"]))
        said = self.comes_to("pod/crashes", "crashes repeatedly: exit code 3 (Error)")
        self.assertTrue(said.startswith("pod default/crashes: container main crashes repeatedly"), said)
        said = self.comes_to("pod/missing", "container main cannot be started (RunContainerError)")
        self.assertIn("/no/such/program", said)

        def code():
            return json.loads(self.explain("pod/missing", "-o", "json"))["outlook"]["remarks"][0]["code"]
        wait_for("its code", lambda: code() == "pod-no-start")  # between two tries it has another one
        self.kubectl("delete", "pod", "crashes", "missing", "--now", "--wait=false")

    def test_a_pod_whose_volume_cannot_be_mounted(self):
        spec = pod_spec("sleep 1d", container={"volumeMounts": [{"name": "c", "mountPath": "/c"}]})
        self.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mountless"},
                    "spec": {**spec, "volumes": [{"name": "c", "configMap": {"name": "nope"}}]}})
        said = self.comes_to("pod/mountless", "container main cannot be started (FailedMount)")
        self.assertRegex(said.splitlines()[0], r'^pod default/mountless: container main cannot be started \(FailedMount\): .*configmap "nope" not found')

    def test_json_has_the_same_answer(self):
        self.apply(job("told", "true", suspend=True))
        document = json.loads(self.explain("job/told", "-o", "json"))
        self.assertEqual((document["kind"], document["outlook"]["verdict"]), ("Explanation", "waits"))
        self.assertEqual(document["headline"], self.explain("job/told").splitlines()[0])
        self.assertEqual(document["outlook"]["remarks"][0]["code"], "job-suspended")

    def test_a_wrong_name_or_kind_gets_a_suggestion(self):
        self.apply(job("nightly-import", "true", suspend=True))
        code, said, problem = self.ask("job/nightly-improt")
        self.assertEqual((code, said), (3, ""))
        self.assertRegex(problem, r'^spillway: .*"nightly-improt" not found; did you mean nightly-import\?\n$')
        code, said, problem = self.ask("jobb/import")
        self.assertEqual((code, said, problem.count("\n")), (2, "", 1))
        self.assertIn("did you mean job/import?", problem)

    def test_a_node_that_is_not_there_is_one_line(self):
        code, said, problem = self.ask("node/nope")
        self.assertEqual((code, said), (3, ""))
        self.assertRegex(problem, r'^spillway: .*nodes "nope" not found\n$')

    def test_what_may_not_be_read_hides_nothing_else(self):
        self.apply(job("guarded", "sleep 1d"))
        self.comes_to("job/guarded", "1 pod runs")
        self.kubectl("create", "serviceaccount", "looker")
        self.kubectl("create", "role", "jobs", "--verb=get", "--resource=jobs.batch")
        self.kubectl("create", "rolebinding", "jobs", "--role=jobs", "--serviceaccount=default:looker")
        self.api.close()  # perhaps idle for too long
        config = account_kubeconfig(self.api, self.folder / "kubeconfig", "looker", "default")
        code, said, problems = wait_for("the role", lambda: (answer := self.ask("job/guarded", kubeconfig=config))
                                        and answer[0] == 0 and answer)
        self.assertIn("job default/guarded: 1 pod runs", said)
        self.assertIn("its pods could not be read", said)
        self.assertRegex(problems, r"pods is forbidden")
        self.assertLessEqual(problems.count("\n"), 2)  # a line each: pods, events
        code, said, problems = self.ask("svc/kubernetes", kubeconfig=config)
        self.assertEqual((code, said), (1, ""))
        self.assertRegex(problems, r'^spillway: .*services "kubernetes" is forbidden.*\n$')


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class NoRuntime(unittest.TestCase):
    def test_the_socket_that_does_not_answer_is_named_first(self):
        folder = self.enterContext(workspace())
        kubeconfig, socket = folder / "kubeconfig", folder / "nope.sock"
        process = self.enterContext(running(folder, "up", "--data-dir", folder / "data", "--port", "0",
                                            "--write-kubeconfig", kubeconfig, "--node-name", "n",
                                            "--container-runtime-endpoint", f"unix://{socket}"))
        serving(process, kubeconfig)
        why = f"{socket}: No such file or directory"
        first = wait_for("the node's reason", lambda: (said := run("explain", "node/n", "--kubeconfig",
                                                                   kubeconfig)[1].splitlines()) and why in said[0]
                                                                   and said[0])
        self.assertRegex(first, r"^node n: it is not ready: container runtime status check may not have completed yet \(")
        self.assertIn(f"node n: it is not ready: container runtime status check may not have completed yet ({why})",
                      run("explain", "--kubeconfig", kubeconfig)[1])


if __name__ == "__main__":
    unittest.main()
