"""Admission policies as an operator uses them: written with kubectl, met by kubectl, with parameters from a ConfigMap
and a kind of one's own.
"""
import json
import subprocess
import unittest

from harness import ApiError, Kubectl, PATIENCE, running, serving, wait_for, workspace
from webhook_server import GROUP

POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"


def rule(group, resource, *operations):
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations or ("CREATE", "UPDATE")),
            "resources": [resource]}


def policy(name, rules, **spec):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": rules}, **spec}}


def binding(name, *actions, **spec):
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": list(actions or ("Deny",)), **spec}}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def definition(plural, kind):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.rules.test"},
            "spec": {"group": "rules.test", "scope": "Namespaced",
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "properties": {"maxReplicas": {"type": "integer"}}}}}]}}


class AdmissionPolicies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.kubeconfig = cls.folder / "kubeconfig"
        cls.audit = cls.folder / "audit.log"
        (cls.folder / "policy.yaml").write_text(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n")
        cls.process = cls.enterClassContext(
            running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port", "0", "--write-kubeconfig",
                    cls.kubeconfig,
                    "--audit-policy-file", cls.folder / "policy.yaml", "--audit-log-path", cls.audit))
        cls.api = serving(cls.process, cls.kubeconfig)
        cls.kubectl = Kubectl(cls.kubeconfig)

    def applied(self, *documents):
        """These documents, until the test ends."""
        for document in documents:
            self.kubectl("apply", "-f", "-", given=json.dumps(document))
            name = document["metadata"]["name"]
            self.addCleanup(self.kubectl, "delete", document["kind"].lower(), name, "--ignore-not-found")

    def deployment(self, name, replicas, code=0):
        self.addCleanup(self.kubectl, "delete", "deployment", name, "--ignore-not-found")
        return self.kubectl("create", "deployment", name, "--image=nginx", f"--replicas={replicas}", code=code)

    def refused(self, document):
        with self.assertRaises(ApiError) as caught:
            self.api.create(MAPS, document)
        return caught.exception.code, caught.exception.status

    def test_a_deployment_is_denied(self):
        self.applied(policy("replicas", [rule("apps", "deployments")], validations=[
            {"expression": "object.spec.replicas <= 5",
             "messageExpression": "'at most 5 replicas, not ' + string(object.spec.replicas)"}]))
        self.deployment("unbound", 6)
        self.applied(binding("replicas"))
        self.assertIn(
            "ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: at most 5 replicas, not 6",
                      self.deployment("many", 6, code=1))
        self.deployment("few", 2)
        self.assertIn("denied request",
                      self.kubectl("patch", "deployment", "few", "-p", '{"spec":{"replicas":9}}', code=1))
        shown = self.kubectl("get", "validatingadmissionpolicy")
        self.assertEqual(shown.split()[:4], ["NAME", "VALIDATIONS", "PARAMKIND", "AGE"])
        self.assertEqual(self.kubectl("get", "validatingadmissionpolicybinding").split()[:4],
                         ["NAME", "POLICYNAME", "PARAMREF", "AGE"])
        self.assertIn("Observed Generation:", self.kubectl("describe", "validatingadmissionpolicy", "replicas"))
        self.assertIn("matchConstraints", self.kubectl("explain", "validatingadmissionpolicy.spec"))

    def test_a_warning_and_an_annotation_of_the_audit_log(self):
        self.applied(policy("hint", [rule("", "configmaps")],
                            validations=[{"expression": "has(object.metadata.labels)", "message": "labels would help"}],
                            auditAnnotations=[{"key": "size", "valueExpression": "string(size(object.data))"}]),
                     binding("hint", "Warn", "Audit"))
        done = subprocess.run(["kubectl", "create", "configmap", "plain", "--from-literal=a=1"], capture_output=True,
                              text=True,
                              env=self.kubectl.environment, timeout=PATIENCE, check=True)
        self.assertIn(
            "Warning: Validation failed for ValidatingAdmissionPolicy 'hint' with binding 'hint': labels would help",
            done.stderr)
        line = wait_for("the audit log",
                        # without a line that is being written
                        lambda: next((each for each in self.audit.read_text().split("\n")[:-1]
                                      if "validation_failure" in each), None))
        noted = json.loads(line)["annotations"]
        self.assertEqual(json.loads(noted["validation.policy.admission.k8s.io/validation_failure"]), [
            {"message": "labels would help", "policy": "hint", "binding": "hint", "expressionIndex": 0,
             "validationActions": ["Warn", "Audit"]}])
        self.assertEqual(noted["hint/size"], "1")

    def test_parameters_from_a_config_map(self):
        maps = rule("", "configmaps")
        self.applied(policy("words", [], paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
                            matchConstraints={"resourceRules": [maps],
                                              "excludeResourceRules": [{**maps, "resourceNames": ["allowed"]}]},
                            matchConditions=[{"name": "not-passed", "expression": "object.metadata.name != 'passed'"}],
                            variables=[{"name": "words", "expression": "params.data.words.split(',')"}],
                            validations=[{"expression": "object.data.all(key, key in variables.words)",
                                          "reason": "Forbidden"}]))
        self.applied(binding("words", paramRef={"name": "allowed", "parameterNotFoundAction": "Deny"}))
        code, status = self.refused(config_map("first", a="1"))
        self.assertEqual((code, status["reason"]), (422, "Invalid"))
        self.assertIn(
            "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            status["message"])
        self.applied(config_map("allowed", words="a,b"))
        self.api.create(MAPS, config_map("first", a="1"))
        code, status = self.refused(config_map("second", c="1"))
        self.assertEqual((code, status["reason"]), (403, "Forbidden"))
        self.assertTrue(status["message"].endswith("failed expression: object.data.all(key, key in variables.words)"),
                        status)
        self.api.create(MAPS, config_map("passed", d="1"))
        self.applied(config_map("allowed", words="a,b,c"))  # counts at once
        self.api.create(MAPS, config_map("second", c="1"))

    def test_parameters_of_a_custom_kind(self):
        self.applied(policy("limits", [rule("apps", "deployments")],
                            paramKind={"apiVersion": "rules.test/v1", "kind": "ReplicaLimit"},
                            validations=[{"expression": "object.spec.replicas <= params.maxReplicas"}]),
                     binding("limits", paramRef={"selector": {"matchLabels": {"for": "deployments"}},
                                                 "parameterNotFoundAction": "Allow"}))
        self.assertIn("failed to find resource referenced by paramKind: 'rules.test/v1, Kind=ReplicaLimit'",
                      self.deployment("early", 2, code=1))
        self.applied(definition("replicalimits", "ReplicaLimit"))
        self.kubectl("wait", "--for=condition=Established", "crd/replicalimits.rules.test")
        self.deployment("free", 9)
        for name, most in (("wide", 8), ("narrow", 3)):
            self.kubectl("apply", "-f", "-",
                         given=json.dumps({"apiVersion": "rules.test/v1", "kind": "ReplicaLimit", "maxReplicas": most,
                                                                  "metadata": {"name": name,
                                                                               "labels": {"for": "deployments"}}}))
        self.assertIn("failed expression: object.spec.replicas <= params.maxReplicas",
                      self.deployment("bound", 5, code=1))
        self.deployment("small", 3)

    def test_failures_go_by_the_policy(self):
        self.applied(policy("open", [rule("", "configmaps")], failurePolicy="Ignore",
                            validations=[{"expression": "object.data.missing == '1'"}]),
                     binding("open"))
        self.api.create(MAPS, config_map("lucky", a="1"))
        self.kubectl("patch", "validatingadmissionpolicy", "open", "--type=merge", "-p",
                     '{"spec":{"failurePolicy":"Fail"}}')
        self.assertIn("resulted in error: no such key: missing",
                      self.refused(config_map("unlucky", a="1"))[1]["message"])

    def test_an_expensive_expression_is_stopped(self):
        numbers = "[" + ",".join(map(str, range(60))) + "]"
        dear = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, {numbers}.all(d, true))))"
        self.applied(policy("dear", [rule("", "configmaps")], validations=[{"expression": dear}] * 12), binding("dear"))
        self.assertIn("running out of cost budget", self.refused(config_map("costly", a="1"))[1]["message"])
        self.assertIn('error_type="out_of_budget",policy="dear"', self.kubectl("get", "--raw", "/metrics"))

    def test_what_does_not_compile_is_refused(self):
        said = self.kubectl("apply", "-f", "-", given=json.dumps(policy("broken", [rule("", "pods")], validations=[
            {"expression": "object.spec.replicas >"}, {"expression": "params.a == 1"}])), code=1)
        self.assertIn("spec.validations[0].expression: Invalid value", said)
        self.assertIn("undeclared reference to 'params'", said)

    def test_deletions(self):
        self.api.create(MAPS, config_map("kept", a="1"))
        self.applied(policy("keep", [rule("", "configmaps", "DELETE")],
                            validations=[{"expression": "oldObject.metadata.name != 'kept'", "message": "it is kept"}]),
                     binding("keep"))
        self.assertIn("it is kept", self.kubectl("delete", "configmap", "kept", code=1))
        self.kubectl("delete", "validatingadmissionpolicybinding", "keep")
        self.kubectl("delete", "configmap", "kept")


if __name__ == "__main__":
    unittest.main()
