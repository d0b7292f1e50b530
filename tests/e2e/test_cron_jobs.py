"""CronJobs as an operator uses them, with kubectl against `spillway up`."""
import json
import re
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, wait_for, workspace


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class CronJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl

    def jobs(self, name):
        return [job for job in self.kubectl.get("jobs")["items"]
                if any(owner["name"] == name for owner in job["metadata"].get("ownerReferences", []))]

    def test_what_is_due_runs_and_the_history_is_kept_short(self):
        manifest = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
                    "spec": {"schedule": "@every 2s", "successfulJobsHistoryLimit": 1, "jobTemplate": {"spec": {
                        "template": {"spec": {"restartPolicy": "Never", "containers": [
                            {"name": "main", "image": "img", "command": ["true"]}]}}}}}}
        path = self.folder / "tick.json"
        path.write_text(json.dumps(manifest))
        self.kubectl("apply", "-f", path)
        first = wait_for("a job", lambda: self.jobs("tick"))[0]["metadata"]
        self.assertRegex(first["name"], r"^tick-\d+$")
        self.assertIn("batch.kubernetes.io/cronjob-scheduled-timestamp", first["annotations"])
        # The Job exists as long as no other is complete: not for long.
        wait_for("an end to be noted",
                 lambda: self.kubectl.get("cronjob", "tick").get("status", {}).get("lastSuccessfulTime"))
        wait_for("the first to make room",
                 lambda: first["name"] not in [job["metadata"]["name"] for job in self.jobs("tick")])
        self.assertRegex(self.kubectl("get", "cronjobs"), r"tick\s+@every 2s\s+<none>\s+False\s+\d+\s+\d+s")
        wait_for("its event", lambda: "SuccessfulCreate" in self.kubectl("describe", "cronjob", "tick"))
        self.kubectl("delete", "cronjob", "tick")
        wait_for("its jobs to go", lambda: not self.jobs("tick"))
        wait_for("their pods to go", lambda: not self.kubectl.get("pods", "-l", f"job-name={first['name']}")["items"])

    def test_one_is_made_by_hand(self):
        self.kubectl("create", "cronjob", "yearly", "--image=one", "--schedule=0 0 1 1 *", "--", "true")
        self.kubectl("create", "job", "now", "--from=cronjob/yearly")
        self.kubectl("wait", "--for=condition=complete", "job/now")
        [job] = self.jobs("yearly")
        self.assertEqual(job["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"], "manual")
        # The controller learns of the job's end later than kubectl may.
        wait_for("no active job", lambda: re.search(r"yearly\s+0 0 1 1 \*\s+<none>\s+False\s+0\s+<none>",
                                                    self.kubectl("get", "cronjobs")))
        self.kubectl("patch", "cronjob", "yearly", "-p", '{"spec":{"suspend":true}}')
        self.assertRegex(self.kubectl("get", "cronjobs"), r"yearly\s+0 0 1 1 \*\s+<none>\s+True")


if __name__ == "__main__":
    unittest.main()
