"""Jobs as an operator uses them, with kubectl against `spillway up`."""
import json
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, wait_for, workspace


def job(name, command, pod=None, **spec):
    """The manifest of a Job whose pods run the shell command."""
    container = {"name": "main", "image": "img", "command": ["sh", "-c", command]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container], **(pod or {})}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": {"spec": pod}, **spec}}


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl

    def apply(self, manifest):
        path = self.folder / f"{manifest['metadata']['name']}.json"
        path.write_text(json.dumps(manifest))
        self.kubectl("apply", "-f", path)

    def ends(self, name, condition):
        self.kubectl("wait", f"--for=condition={condition}", f"job/{name}")
        return self.kubectl.get("job", name)["status"]

    def pods(self, name):
        return self.kubectl.get("pods", "-l", f"job-name={name}")["items"]

    def reason(self, status, condition):
        return next(each["reason"] for each in status["conditions"] if each["type"] == condition)

    def gone(self, name):
        wait_for(f"the pods of {name} to go", lambda: not self.pods(name))

    def test_the_first_thing_anybody_types(self):
        self.assertIn("created", self.kubectl("create", "job", "hello", "--image=one", "--", "true"))
        status = self.ends("hello", "complete")
        self.assertEqual((status["succeeded"], self.reason(status, "Complete")), (1, "CompletionsReached"))
        self.assertEqual(status["uncountedTerminatedPods"], {})
        self.assertRegex(self.kubectl("get", "jobs"), r"hello\s+Complete\s+1/1\s+\d+s")
        self.assertRegex(self.kubectl("describe", "job", "hello"),
                         r"Pods Statuses:\s+0 Active \(0 Ready\) / 1 Succeeded / 0 Failed")
        wait_for("its event", lambda: "Job completed" in self.kubectl("describe", "job", "hello"))
        [pod] = self.pods("hello")
        self.assertEqual(pod["status"]["phase"], "Succeeded")
        self.assertNotIn("finalizers", pod["metadata"])
        self.kubectl("delete", "job", "hello")
        self.gone("hello")

    def test_indexes_have_their_own_number_and_limit(self):
        self.apply(job("numbered", 'test "$JOB_COMPLETION_INDEX" != 2', completions=4, parallelism=2,
                       completionMode="Indexed", backoffLimitPerIndex=0))
        status = self.ends("numbered", "failed")
        self.assertEqual(self.reason(status, "Failed"), "FailedIndexes")
        self.assertEqual((status["completedIndexes"], status["failedIndexes"]), ("0,1,3", "2"))
        self.assertEqual((status["succeeded"], status["failed"]), (3, 1))
        names = sorted(pod["spec"]["hostname"] for pod in self.pods("numbered"))
        self.assertEqual(names, [f"numbered-{index}" for index in range(4)])

    def test_a_job_whose_pods_fail_ends(self):
        self.apply(job("broken", "exit 1", backoffLimit=0))
        self.assertEqual(self.reason(self.ends("broken", "failed"), "Failed"), "BackoffLimitExceeded")
        policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
        self.apply(job("wrong", "exit 42", backoffLimit=6, podFailurePolicy=policy))
        status = self.ends("wrong", "failed")
        self.assertEqual((self.reason(status, "Failed"), status["failed"]), ("PodFailurePolicy", 1))
        self.apply(job("slow", "sleep 1d", activeDeadlineSeconds=1))
        self.assertEqual(self.reason(self.ends("slow", "failed"), "Failed"), "DeadlineExceeded")
        self.gone("slow")

    def test_one_failure_is_tried_again_after_ten_seconds(self):
        failures = {"name": "FAILURES", "valueFrom": {"fieldRef": {
            "fieldPath": "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"}}}
        manifest = job("again", 'test "$FAILURES" = 1', completions=1, completionMode="Indexed", backoffLimitPerIndex=1)
        manifest["spec"]["template"]["spec"]["containers"][0]["env"] = [failures]
        self.apply(manifest)
        status = self.ends("again", "complete")
        self.assertEqual((status["succeeded"], status["failed"]), (1, 1))

    def test_a_job_is_suspended_and_resumed(self):
        self.apply(job("held", "until [ -e /tmp/go ] && ! pidof touch >/dev/null; do sleep 0.1; done", completions=2,
                       parallelism=2))
        wait_for("both to run", lambda: self.kubectl.get("job", "held")["status"].get("active") == 2)
        self.kubectl("patch", "job", "held", "-p", '{"spec":{"suspend":true}}')
        self.kubectl("wait", "--for=condition=suspended", "job/held")
        self.gone("held")
        self.assertNotIn("failed", self.kubectl.get("job", "held")["status"])
        self.assertRegex(self.kubectl("get", "job", "held"), r"held\s+Suspended\s+0/2")
        self.kubectl("patch", "job", "held", "-p", '{"spec":{"suspend":false}}')
        wait_for("both to run again", lambda: [pod["status"]["phase"] for pod in self.pods("held")] == ["Running"] * 2)
        for pod in self.pods("held"):
            self.kubectl("exec", pod["metadata"]["name"], "--", "touch", "/tmp/go")
        status = self.ends("held", "complete")
        self.assertEqual(status["succeeded"], 2)
        self.assertNotIn("failed", status)

    def test_finished_jobs_are_deleted_after_their_time(self):
        self.apply(job("brief", "true", ttlSecondsAfterFinished=0))
        wait_for("the job to go", lambda: not self.kubectl.get("jobs", "--field-selector=metadata.name=brief")["items"])
        self.gone("brief")

    def test_a_job_that_runs_is_deleted_with_its_pods(self):
        self.apply(job("left", "sleep 1d", completions=3, parallelism=3))
        wait_for("all to run", lambda: self.kubectl.get("job", "left")["status"].get("active") == 3)
        self.kubectl("delete", "job", "left")
        self.gone("left")


if __name__ == "__main__":
    unittest.main()
