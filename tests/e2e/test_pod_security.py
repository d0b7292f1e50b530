"""The Pod Security Standards as an operator uses them: kubectl against `spillway apiserver`, and against a node."""
import json
import shutil
import subprocess
import unittest

from harness import (
    PATIENCE,
    Kubectl,
    can_write_cgroups,
    needs,
    one_node,
    pod,
    run,
    running,
    serving,
    wait_for,
    workspace,
)

LABEL = "pod-security.kubernetes.io"
OWN = (
    "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: PodSecurity\n  path:"
    " pods.yaml\n"
)
PODS = """apiVersion: pod-security.admission.config.k8s.io/v1
kind: PodSecurityConfiguration
defaults: {enforce: baseline, warn: restricted}
exemptions: {namespaces: [kube-system]}
"""


def bad(name, **spec):
    return pod(name, ["true"], hostNetwork=True, **spec)


def good(name):
    made = pod(name, ["sh", "-c", "echo up; exec tail -f /dev/null"],
               securityContext={"runAsNonRoot": True, "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"}})
    made["spec"]["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False,
                                                        "capabilities": {"drop": ["ALL"]}}
    return made


def replica_set(name, template):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template["spec"]}}}


class WithKubectl(unittest.TestCase):
    def told(self, *arguments, given=None, code=0):
        """(standard output, standard error) of kubectl."""
        done = subprocess.run(["kubectl", *arguments], input=given and json.dumps(given), capture_output=True,
                              text=True,
            env=self.kubectl.environment, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def make_namespace(self, name, *labels):
        self.kubectl("create", "namespace", name)
        if labels:
            self.kubectl("label", "namespace", name, *[f"{LABEL}/{each}" for each in labels])
        wait_for("the account", lambda: self.kubectl("get", "serviceaccount", "default", "-n", name,
                                                     "--ignore-not-found"))


@needs(shutil.which("kubectl"), "needs kubectl")
class PodSecurity(WithKubectl):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        kubeconfig = cls.folder / "kubeconfig"
        cls.process = cls.enterClassContext(
            running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port", "0", "--write-kubeconfig",
                    kubeconfig))
        cls.api, cls.kubectl = serving(cls.process, kubeconfig), Kubectl(kubeconfig)

    def test_what_is_enforced_is_refused(self):
        self.make_namespace("strict", "enforce=restricted")
        _, said = self.told("create", "-n", "strict", "-f", "-", given=bad("a"), code=1)
        self.assertIn(
            (
                'Error from server (Forbidden): error when creating "STDIN": pods "a" is forbidden: violates'
                ' PodSecurity "restricted:latest": host namespaces (hostNetwork), allowPrivilegeEscalation != false'
                ' (container "main" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities'
            ),
            said,
        )
        self.assertIn("pod/b created", self.told("create", "-n", "strict", "-f", "-", given=good("b"))[0])
        _, said = self.told("label", "namespace", "strict", f"{LABEL}/enforce=strong", "--overwrite", code=1)
        self.assertIn(
            (
                f'metadata.labels[{LABEL}/enforce]: Invalid value: "strong": must be one of privileged, baseline,'
                " restricted"
            ),
            said,
        )

    def test_warnings_are_shown(self):
        self.make_namespace("mild", "warn=baseline", "audit=baseline")
        made, said = self.told("create", "-n", "mild", "-f", "-", given=bad("a"))
        self.assertIn("pod/a created", made)
        self.assertIn('Warning: would violate PodSecurity "baseline:latest": host namespaces (hostNetwork)', said)
        # There is no audit log: what it would hold stands in the server's.
        wait_for("the line", lambda: any("decision=audit" in line and "name=a" in line
                                         for line in self.process.tail(200).splitlines()))

    def test_what_makes_pods_is_only_warned_of(self):
        self.make_namespace("makers", "enforce=baseline")
        made, said = self.told("create", "-n", "makers", "-f", "-", given=replica_set("w", bad("x")))
        self.assertIn("replicaset.apps/w created", made)
        self.assertIn('Warning: would violate PodSecurity "baseline:latest": host namespaces (hostNetwork)', said)

    def test_a_trial_shows_what_violates(self):
        self.make_namespace("trial")
        for name in ("one", "two"):
            self.kubectl("create", "-n", "trial", "-f", "-", given=json.dumps(bad(name)))
        _, said = self.told("label", "--dry-run=server", "--overwrite", "ns", "--all", f"{LABEL}/enforce=baseline")
        self.assertIn(
            'Warning: existing pods in namespace "trial" violate the new PodSecurity enforce level "baseline:latest"',
            said)
        self.assertIn("Warning: one (and 1 other pod): host namespaces", said)
        self.assertNotIn('in namespace "default"', said)
        self.assertNotIn(LABEL, self.kubectl("get", "ns", "trial", "-o", "yaml"))
        # Tightened in earnest, what is there stays, and can be labelled.
        self.kubectl("label", "ns", "trial", f"{LABEL}/enforce=baseline")
        self.kubectl("label", "pod", "one", "a=b", "-n", "trial")
        _, said = self.told("set", "image", "pod/one", "main=other", "-n", "trial", code=1)
        self.assertIn('violates PodSecurity "baseline:latest"', said)

    def test_decisions_are_counted(self):
        self.make_namespace("counted", "enforce=baseline", "enforce-version=v1.30")
        self.told("create", "-n", "counted", "-f", "-", given=bad("a"), code=1)
        counted = [line for line in self.kubectl("get", "--raw", "/metrics").splitlines()
                   if line.startswith("pod_security_evaluations_total")]
        wanted = ('decision="deny"', 'policy_level="baseline"', 'policy_version="v1.30"', 'mode="enforce"',
                  'request_operation="create"', 'resource="pod"')
        self.assertTrue(any(all(each in line for each in wanted) for line in counted), counted)


@needs(shutil.which("kubectl"), "needs kubectl")
class Configured(WithKubectl):
    def test_defaults_and_exemptions_of_a_file(self):
        with workspace() as folder:
            (folder / "admission.yaml").write_text(OWN)
            (folder / "pods.yaml").write_text(PODS)
            kubeconfig = folder / "kubeconfig"
            with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         kubeconfig,
                         "--admission-control-config-file", folder / "admission.yaml", "--log-level",
                         "debug") as process:
                serving(process, kubeconfig)
                self.kubectl = Kubectl(kubeconfig)
                self.make_namespace("plain")
                self.assertIn('violates PodSecurity "baseline:latest"',
                              self.told("create", "-n", "plain", "-f", "-", given=bad("a"), code=1)[1])
                wait_for("the line", lambda: any("decision=deny" in line and "namespace=plain" in line
                                                 for line in process.tail(500).splitlines()))
                self.assertIn('would violate PodSecurity "restricted:latest"',
                              self.told("create", "-n", "plain", "-f", "-", given=pod("b", ["true"]))[1])
                self.assertEqual(self.told("create", "-n", "kube-system", "-f", "-", given=bad("a"))[1], "")
                self.assertIn(
                    (
                        'Warning: namespace "kube-system" is exempt from Pod Security, and the policy'
                        " (enforce=restricted:latest) will be ignored"
                    ),
                    self.told("label", "ns", "kube-system", f"{LABEL}/enforce=restricted")[1],
                )

    def test_a_wrong_file_is_refused(self):
        with workspace() as folder:
            (folder / "admission.yaml").write_text(OWN)
            (folder / "pods.yaml").write_text(PODS.replace("exemptions", "exemption"))
            code, _, said = run("apiserver", "--data-dir", folder / "data", "--port", "0",
                                "--admission-control-config-file", folder / "admission.yaml")
            self.assertNotEqual(code, 0)
            self.assertIn("pods.yaml:4: exemption: unknown (did you mean exemptions?)", said)
            self.assertFalse((folder / "data").exists())
            code, _, said = run("apiserver", "--disable-admission-plugins", "PodSecurit")
            self.assertNotEqual(code, 0)
            self.assertIn("PodSecurity", said)


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class OnANode(WithKubectl):
    def test_good_pods_run_and_bad_ones_of_a_replica_set_are_never_made(self):
        with workspace() as folder, one_node(folder) as node:
            self.kubectl = node.kubectl
            self.make_namespace("strict", "enforce=restricted")
            self.kubectl("apply", "-n", "strict", "-f", "-", given=json.dumps(good("good")))
            self.kubectl("wait", "-n", "strict", "--for=jsonpath={.status.phase}=Running", "pod/good")
            self.told("apply", "-n", "strict", "-f", "-", given=replica_set("w", bad("x")))

            def event():
                return [each["message"] for each in self.kubectl.get("events", "-n", "strict")["items"]
                        if each["reason"] == "FailedCreate"]
            self.assertIn('violates PodSecurity "restricted:latest": host namespaces (hostNetwork)',
                          wait_for("the event", event)[0])
            self.assertEqual([each["metadata"]["name"] for each in self.kubectl.get("pods", "-n", "strict")["items"]],
                             ["good"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
