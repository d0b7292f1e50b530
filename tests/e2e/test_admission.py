"""A node that says no, and a critical pod that makes room for itself, through kubectl."""
import json
import re
import shutil
import unittest

from harness import Kubectl, can_write_cgroups, needs, one_node, pod, run, running, serving, wait_for, workspace

SLEEP = ["sleep", "600"]


def memory(amount):
    return {"requests": {"memory": str(amount)}}


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Admission(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.manifests = cls.folder / "manifests"
        cls.manifests.mkdir()
        cls.process = cls.enterClassContext(one_node(cls.folder, "--pod-manifest-path", cls.manifests))
        cls.api, cls.kubectl = cls.process.api, cls.process.kubectl

    def place(self, name, **spec):
        """Binds a pod to the node by hand, so that the agent alone decides."""
        self.kubectl.apply(pod(name, SLEEP, nodeName="n", **spec))

    def wait_phase(self, name, phase):
        self.kubectl("wait", f"--for=jsonpath={{.status.phase}}={phase}", f"pod/{name}")

    def status(self, name):
        return self.kubectl.get("pod", name)["status"]

    def event(self, name, reason, message=None):
        """The event with this reason, and with this message if one is given, once it is there: events are sent beside
        the status."""
        def found():
            wanted = f"involvedObject.name={name},reason={reason}"
            items = self.kubectl.get("events", "--field-selector", wanted)["items"]
            return [each for each in items if message in (None, each["message"])]
        return wait_for(f"an event {reason} of {name}: {message}", found)[0]

    def write_manifest(self, name, document):
        """As an editor does: a new file takes the place of the old one."""
        part = self.folder / "part"
        part.write_text(document if isinstance(document, str) else json.dumps(document))
        part.rename(self.manifests / name)

    def memory_part(self, percent):
        node = self.kubectl.get("node", "n")["status"]["allocatable"]["memory"]
        number, unit = re.fullmatch(r"(\d+)(|Ki|Mi)", node).groups()
        return percent * int(number) * {"": 1, "Ki": 1024, "Mi": 1024 * 1024}[unit] // 100

    def explain(self, what, *more):
        code, text, problem = run("explain", what, "--kubeconfig", self.folder / "kubeconfig", *more)
        self.assertEqual(code, 0, problem)
        return text

    def setUp(self):
        # A deployment of the test before is deleted by its cleanup: its pods end some time after that.
        wait_for("pods of before to go", lambda: not self.api.pod_phases())

    def tearDown(self):
        for file in self.manifests.iterdir():
            file.unlink()
        wait_for("the end of static pods", lambda: not [name for name in self.api.pod_phases() if name.endswith("-n")]
                 or None)
        self.kubectl("delete", "pods", "--all")

    def test_too_little_memory(self):
        self.place("big", resources=memory("1Gi"))
        self.wait_phase("big", "Failed")
        status = self.status("big")
        self.assertEqual(status["reason"], "OutOfmemory")
        self.assertRegex(status["message"],
                         r"^Pod was rejected: Node didn't have enough resource: memory, requested: 1073741824, "
                                            r"used: \d+, capacity: \d+$")
        event = self.event("big", "OutOfmemory")
        self.assertEqual(event["type"], "Warning")
        self.assertEqual("Pod was rejected: " + event["message"], status["message"])
        why = self.explain("pod/big")
        self.assertIn("handler predicates", why)
        print(self.kubectl("get", "pod", "big"), status["message"], why, sep="\n")

    def test_what_the_namespace_allows(self):
        self.kubectl.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
                            "spec": {"limits": [
            {"type": "Container", "max": {"memory": "32Mi"}, "default": {"memory": "16Mi"},
             "defaultRequest": {"memory": "8Mi"}}]}})
        self.addCleanup(self.kubectl, "delete", "limitrange", "small")
        self.assertRegex(self.kubectl("get", "limits"), r"NAME +CREATED AT\nsmall +20\d\d-")
        self.assertRegex(self.kubectl("describe", "namespace", "default"), r"Container +memory +- +32Mi +8Mi +16Mi")
        self.place("modest")
        self.wait_phase("modest", "Running")
        self.assertEqual(self.kubectl.get("pod", "modest")["spec"]["containers"][0]["resources"],
                         {"limits": {"memory": "16Mi"}, "requests": {"memory": "8Mi"}})
        with self.assertRaisesRegex(AssertionError, "maximum memory usage per Container is 32Mi, but limit is 64Mi"):
            self.place("greedy", resources={"limits": {"memory": "64Mi"}})

    def test_what_the_namespace_has_room_for(self):
        self.kubectl("create", "quota", "small", "--hard=pods=2,requests.memory=64Mi,limits.cpu=1")
        self.addCleanup(self.kubectl, "delete", "quota", "small")
        resources = {"requests": {"memory": "32Mi"}, "limits": {"cpu": "100m", "memory": "48Mi"}}
        with self.assertRaisesRegex(
            AssertionError,
            (
                r'pods "vague" is forbidden: failed quota: small: must specify limits.cpu for: main; requests.memory'
                r" for: main"
            ),
        ):
            self.place("vague")
        for name in ("one", "two"):
            self.place(name, resources=resources)
        with self.assertRaisesRegex(
            AssertionError,
            r'pods "three" is forbidden: exceeded quota: small, requested: pods=1,requests.memory=32Mi, '
            r"used: pods=2,requests.memory=64Mi, limited: pods=2,requests.memory=64Mi",
        ):
            self.place("three", resources=resources)
        self.assertRegex(
            self.kubectl("get", "quota"),
            r"NAME +REQUEST +LIMIT +AGE\nsmall +pods: 2/2, requests.memory: 64Mi/64Mi +limits.cpu: 200m/1 ",
        )
        shown = self.kubectl("describe", "quota", "small")
        self.assertRegex(shown,
                         r"Resource +Used +Hard\n.*\nlimits.cpu +200m +1\npods +2 +2\nrequests.memory +64Mi +64Mi")
        self.assertRegex(self.kubectl("describe", "namespace", "default"), r"pods +2 +2")
        print(shown)
        self.kubectl("delete", "pod", "one")
        wait_for("room", lambda: self.kubectl.get("quota", "small")["status"]["used"]["pods"] == "1")
        self.place("three", resources=resources)
        self.wait_phase("three", "Running")

    def test_a_deployment_beyond_the_quota_says_so(self):
        self.kubectl("create", "quota", "one-pod", "--hard=pods=1,count/deployments.apps=1")
        self.addCleanup(self.kubectl, "delete", "quota", "one-pod")
        self.kubectl("create", "deployment", "many", "--image=img", "--replicas=3", "--", *SLEEP)
        self.addCleanup(self.kubectl, "delete", "deployment", "many")
        event = wait_for(
            "its event",
            lambda: [
                each
                for each in self.kubectl.get("events", "--field-selector", "reason=FailedCreate")["items"]
                if "exceeded quota: one-pod, requested: pods=1, used: pods=1, limited: pods=1" in each["message"]
            ],
        )
        print(event[0]["message"])
        self.assertEqual(len(self.kubectl.get("pods")["items"]), 1)
        with self.assertRaisesRegex(AssertionError, "exceeded quota: one-pod, requested: count/deployments.apps=1"):
            self.kubectl("create", "deployment", "more", "--image=img")

    def test_forbidden_sysctls(self):
        for name, reason in (("kernel.msgmax", "not allowlisted"),
                             ("net.ipv4.tcp_syncookies", "not allowed with host Net enabled")):
            with self.subTest(name):
                self.place("tuned", securityContext={"sysctls": [{"name": name, "value": "1"}]})
                self.wait_phase("tuned", "Failed")
                status = self.status("tuned")
                self.assertEqual(status["reason"], "SysctlForbidden")
                self.assertEqual(status["message"], f'Pod was rejected: forbidden sysctl: "{name}" {reason}')
                print(self.kubectl("get", "pod", "tuned"), status["message"])
                self.kubectl("delete", "pod", "tuned")

    def test_a_critical_pod_preempts_exactly_whom_it_must(self):
        part = self.memory_part(1)
        guaranteed = {"memory": str(25 * part), "cpu": "10m"}
        self.place("guaranteed", resources={"requests": guaranteed, "limits": guaranteed})
        self.place("larger", resources=memory(30 * part))
        self.place("smaller", resources=memory(20 * part))
        self.place("free-of-charge")
        for name in ("guaranteed", "larger", "smaller", "free-of-charge"):
            self.wait_phase(name, "Running")
        self.place("critical", priorityClassName="system-node-critical", resources=memory(50 * part))
        self.wait_phase("critical", "Running")
        self.wait_phase("larger", "Failed")
        self.assertEqual(self.api.pod_phases(), {"guaranteed": "Running", "larger": "Failed", "smaller": "Running",
                                                 "free-of-charge": "Running", "critical": "Running"})
        victim = self.status("larger")
        self.assertEqual((victim["reason"], victim["message"]),
                         ("Preempting", "Preempted in order to admit critical pod"))
        disruption = next(each for each in victim["conditions"] if each["type"] == "DisruptionTarget")
        self.assertEqual((disruption["status"], disruption["reason"]), ("True", "TerminationByKubelet"))
        self.assertEqual(self.event("larger", "Preempting")["type"], "Warning")
        print(self.kubectl("get", "pods"))

    def test_a_pod_of_high_priority_displaces_one_of_low_priority(self):
        self.kubectl.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                            "metadata": {"name": "urgent"}, "value": 1000})
        large = {"resources": memory(self.memory_part(60)), "terminationGracePeriodSeconds": 1}
        self.kubectl.apply(pod("ordinary", SLEEP, **large))
        self.kubectl.apply(pod("small", SLEEP, resources=memory(self.memory_part(1))))
        self.wait_phase("ordinary", "Running")
        self.wait_phase("small", "Running")
        self.kubectl.apply(pod("urgent", SLEEP, priorityClassName="urgent", **large))
        self.wait_phase("urgent", "Running")
        self.assertEqual(self.api.pod_phases(), {"small": "Running", "urgent": "Running"})
        urgent = self.kubectl.get("pod", "urgent")
        preempted = self.event("ordinary", "Preempted")
        self.assertEqual((preempted["type"], preempted["message"]),
                         ("Normal", f"Preempted by pod {urgent['metadata']['uid']} on node n"))
        failed = self.event("urgent", "FailedScheduling", "0/1 nodes are available: 1 Insufficient memory.")
        self.assertEqual(failed["type"], "Warning")
        print(self.kubectl("get", "events"))

    def test_a_critical_static_pod_preempts_exactly_whom_it_must(self):
        guaranteed = {"memory": str(self.memory_part(25)), "cpu": "10m"}
        self.place("guaranteed", resources={"requests": guaranteed, "limits": guaranteed})
        self.place("larger", resources=memory(self.memory_part(30)))
        self.place("smaller", resources=memory(self.memory_part(20)))
        for name in ("guaranteed", "larger", "smaller"):
            self.wait_phase(name, "Running")
        self.write_manifest("proxy.json", pod("proxy", SLEEP, priorityClassName="system-node-critical",
                                              resources=memory(self.memory_part(50))))
        wait_for("the mirror", lambda: self.api.pod_phases().get("proxy-n") == "Running")
        self.wait_phase("larger", "Failed")
        self.assertEqual(self.api.pod_phases(), {"guaranteed": "Running", "larger": "Failed", "smaller": "Running",
                                                 "proxy-n": "Running"})
        self.assertEqual(self.status("larger")["reason"], "Preempting")
        why = self.explain("pod/larger")
        self.assertIn("was preempted by n", why)
        self.assertIn("DISTANCE", why)
        print(self.kubectl("get", "pods"), why, sep="\n")

    def test_a_static_pod_lives_as_long_as_its_file(self):
        self.write_manifest("web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
                                        "  - {name: main, image: none, command: [sleep, '600']}\n")
        wait_for("the mirror", lambda: self.api.pod_phases().get("web-n") == "Running")
        mirror = self.kubectl.get("pod", "web-n")
        marks = mirror["metadata"]["annotations"]
        self.assertEqual(marks["kubernetes.io/config.source"], "file")
        self.assertEqual(marks["kubernetes.io/config.mirror"], marks["kubernetes.io/config.hash"])
        self.assertEqual(mirror["metadata"]["ownerReferences"][0]["kind"], "Node")

        self.kubectl("delete", "pod", "web-n", "--wait=false")  # recreated before kubectl waits for its end
        again = wait_for("another mirror",
                         lambda: (lambda found: found if found and found["metadata"]["uid"] != mirror["metadata"]["uid"]
                                                    and found["status"].get("phase") == "Running" else None)(
                                                        self.api.find("/api/v1/namespaces/default/pods/web-n")))
        self.assertEqual(again["status"]["containerStatuses"][0]["state"],
                         mirror["status"]["containerStatuses"][0]["state"],
                         "the container knows nothing of it")

        self.write_manifest("web.yaml", "kind: Pod\nmetadata: [\n")
        wait_for("a word about the file", lambda: "web.yaml:" in self.process.log.read_text())
        self.assertEqual(self.api.pod_phases()["web-n"], "Running", "a bad file keeps the pod it last made")
        print(self.kubectl("get", "pod", "web-n"),
              next(line for line in self.process.log.read_text().splitlines() if "web.yaml:" in line))

        (self.manifests / "web.yaml").unlink()
        wait_for("its end", lambda: "web-n" not in self.api.pod_phases() or None)

    def test_a_pod_that_fits_nowhere_waits_and_says_why(self):
        self.kubectl.apply(pod("waiting", SLEEP, resources=memory("1Gi")))
        self.kubectl("wait", "--for=condition=PodScheduled=false", "pod/waiting")
        scheduled = next(each for each in self.status("waiting")["conditions"] if each["type"] == "PodScheduled")
        self.assertEqual(scheduled["reason"], "Unschedulable")
        self.assertTrue(scheduled["message"].startswith("0/1 nodes are available: 1 Insufficient memory."),
                        scheduled["message"])
        self.assertEqual(self.event("waiting", "FailedScheduling")["type"], "Warning")
        self.assertIn("preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
                      scheduled["message"])
        answer = json.loads(self.explain("pod/waiting", "-o", "json"))["decision"]
        self.assertEqual(answer["candidates"][0]["reason"]["code"], "insufficient-resource")
        print(self.kubectl("get", "pod", "waiting"), scheduled["message"], self.explain("pod/waiting"), sep="\n")


LIMITED = """apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources:
    - resource: pods
      matchContains: [example.com/gpu]
      matchScopes:
      - {scopeName: PriorityClass, operator: In, values: [system-node-critical]}
"""


@needs(shutil.which("kubectl"), "needs kubectl")
class Limited(unittest.TestCase):
    def test_what_no_quota_covers_is_refused(self):
        with workspace() as folder:
            config, kubeconfig = folder / "admission.yaml", folder / "kubeconfig"
            config.write_text(LIMITED)
            with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         kubeconfig,
                         "--admission-control-config-file", config) as process:
                serving(process, kubeconfig)
                self.kubectl = kubectl = Kubectl(kubeconfig)
                kubectl("create", "namespace", "lab")
                wait_for("the account", lambda: kubectl("get", "serviceaccount", "default", "-n", "lab",
                                                        "--ignore-not-found"))
                gpu = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
                self.place("plain")
                self.refuse(r'pods "gpu" is forbidden: insufficient quota to consume: requests.example.com/gpu', "gpu",
                            resources=gpu)
                self.refuse(
                    r"insufficient quota to match these scopes: \[\{PriorityClass In \[system-node-critical\]\}\]",
                    "critical",
                            priorityClassName="system-node-critical")
                kubectl("create", "quota", "gpus", "-n", "lab", "--hard=requests.example.com/gpu=1")
                kubectl("create", "quota", "critical", "-n", "lab", "--hard=pods=5", "--scopes=PriorityClass")
                self.place("gpu", resources=gpu)
                self.place("critical", priorityClassName="system-node-critical")
                self.refuse("exceeded quota: gpus", "more", resources=gpu)

    def place(self, name, **spec):
        self.kubectl("create", "-n", "lab", "-f", "-", given=json.dumps(pod(name, SLEEP, **spec)))

    def refuse(self, why, name, **spec):
        with self.assertRaisesRegex(AssertionError, why):
            self.place(name, **spec)

    def test_a_wrong_file_is_refused(self):
        with workspace() as folder:
            config = folder / "admission.yaml"
            config.write_text(LIMITED.replace("matchContains", "matchContain"))
            code, _, said = run("apiserver", "--data-dir", folder / "data", "--port", "0",
                                "--admission-control-config-file", config)
            self.assertNotEqual(code, 0)
            self.assertIn(
                (
                    "admission.yaml:10: plugins[0].configuration.limitedResources[0].matchContain: unknown (did you"
                    " mean matchContains?)"
                ),
                said,
            )
            self.assertFalse((folder / "data").exists())


if __name__ == "__main__":
    unittest.main()
