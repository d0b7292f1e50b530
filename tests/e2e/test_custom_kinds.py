"""Custom kinds as their users meet them: kubectl, an operator in plain JavaScript, `spillway up`."""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import unittest

import own_etcd
from harness import can_write_cgroups, needs, one_node, ROOT, running, serving, wait_for, workspace

GREETINGS = "/apis/demo.example.com/v1/namespaces/default/greetings"


def definition(**more):
    """The definition of Greetings; `more`: of its only version."""
    spec = {"type": "object", "required": ["words"], "description": "What is to be said.", "properties": {
        "words": {"type": "string", "minLength": 1, "maxLength": 40, "description": "The words that are said."},
        "times": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2,
                  "description": "How often they are said."}},
        "x-kubernetes-validations": [{"rule": "!self.words.startsWith('!') || self.times == 1",
                                      "message": "shouts are said once"}]}
    version = {"name": "v1", "served": True, "storage": True,
               "schema": {"openAPIV3Schema": {"type": "object", "description": "A greeting.", "required": ["spec"],
                                              "properties": {
                   "spec": spec, "status": {"type": "object", "properties": {
                       "text": {"type": "string"}, "observedGeneration": {"type": "integer", "format": "int64"}}}}}},
               "subresources": {"status": {},
                                "scale": {"specReplicasPath": ".spec.times",
                                          "statusReplicasPath": ".status.observedGeneration"}},
               "additionalPrinterColumns": [{"name": "Words", "type": "string", "jsonPath": ".spec.words"},
                                            {"name": "Times", "type": "integer", "jsonPath": ".spec.times"},
                                            {"name": "Said", "type": "string", "jsonPath": ".status.text",
                                             "priority": 1},
                                            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
               **more}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "greetings.demo.example.com"},
            "spec": {"group": "demo.example.com", "scope": "Namespaced", "versions": [version],
                     "names": {"plural": "greetings", "singular": "greeting", "kind": "Greeting", "shortNames": ["hi"],
                               "categories": ["all"]}}}


def greeting(name, **spec):
    return {"apiVersion": "demo.example.com/v1", "kind": "Greeting", "metadata": {"name": name}, "spec": spec}


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class CustomKinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = cls.node.api, cls.node.kubectl

    def setUp(self):
        self.kubectl.apply(definition())
        self.kubectl("wait", "--for=condition=Established", "crd/greetings.demo.example.com")
        self.addCleanup(self.kubectl, "delete", "crd", "greetings.demo.example.com", "--ignore-not-found")

    def test_kubectl_knows_the_kind(self):
        self.assertRegex(self.kubectl("get", "crds"), r"greetings\.demo\.example\.com\s+20\d\d-")
        self.assertRegex(self.kubectl("api-resources", "--api-group=demo.example.com"),
                         r"greetings\s+hi\s+demo\.example\.com/v1\s+true\s+Greeting")
        told = self.kubectl("explain", "greetings.spec")
        self.assertIn("The words that are said.", told)
        self.assertRegex(told, r"words\s+<string>\s+-required-")
        self.kubectl.apply(greeting("a", words="good day"))
        self.assertRegex(self.kubectl("get", "hi"), r"NAME\s+WORDS\s+TIMES\s+AGE\na\s+good day\s+2\s+\d+s")
        self.assertRegex(self.kubectl("get", "hi", "-o", "wide"), r"NAME\s+WORDS\s+TIMES\s+SAID\s+AGE")
        self.assertIn("greeting.demo.example.com/a", self.kubectl("get", "all"))
        self.assertIn("good day", self.kubectl("describe", "greeting", "a"))
        self.assertIn("configured", self.kubectl.apply(greeting("a", words="good night")))
        self.assertIn("unchanged", self.kubectl.apply(greeting("a", words="good night")))
        self.kubectl("patch", "greeting", "a", "--type=merge", "-p", '{"spec":{"times":3}}')
        self.kubectl("scale", "greeting", "a", "--replicas=4")
        self.assertEqual(self.kubectl.get("greeting", "a")["spec"], {"words": "good night", "times": 4})
        self.kubectl("patch", "greeting", "a", "--subresource=status", "--type=merge", "-p", '{"status":{"text":"x"}}')
        self.assertEqual(self.kubectl.get("greeting", "a")["status"], {"text": "x"})
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-",
                     given=json.dumps(greeting("a", words="applied")))
        self.assertEqual(self.kubectl.get("greeting", "a")["spec"]["words"], "applied")
        self.kubectl("delete", "greeting", "a")
        self.assertIn("NotFound", self.kubectl("get", "greeting", "a", code=1))

    def refused(self, document, *arguments):
        return self.kubectl("create", "-f", "-", *arguments, given=json.dumps(document), code=1)

    def test_errors_are_in_upstreams_words(self):
        self.assertIn(
            (
                'The Greeting "b" is invalid: spec.times: Invalid value: 11: spec.times in body should be less than or'
                " equal to 9"
            ),
            self.refused(greeting("b", words="x", times=11)),
        )
        self.assertIn("spec.words: Required value", self.refused(greeting("b")))
        self.assertIn('spec.words: Invalid value: "integer": spec.words in body must be of type string: "integer"',
                      self.refused(greeting("b", words=5)))
        self.assertIn('spec: Invalid value: "object": shouts are said once',
                      self.refused(greeting("b", words="!now", times=2)))
        self.assertIn('unknown field "spec.tims"', self.refused(greeting("b", words="x", tims=1)))
        self.kubectl("create", "--validate=ignore", "-f", "-", given=json.dumps(greeting("kept", words="x", tims=1)))
        self.assertEqual(self.kubectl.get("greeting", "kept")["spec"], {"words": "x", "times": 2})
        self.assertIn("is not supported by demo.example.com/v1",
                      self.kubectl("patch", "greeting", "kept", "--type=strategic", "-p", '{"spec":{"times":1}}',
                                   code=1))
        wrong = definition()
        wrong["metadata"]["name"], wrong["spec"]["names"]["plural"] = "wrongs.demo.example.com", "wrongs"
        del wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"]
        self.assertIn("type: Required value: must not be empty for specified object fields", self.refused(wrong))

    def operator(self):
        kubeconfig = (self.folder / "kubeconfig").read_text()
        files = []
        for field, name in (("certificate-authority-data", "ca"), ("client-certificate-data", "cert"),
                            ("client-key-data", "key")):
            path = pathlib.Path(self.folder / f"{name}.pem")
            path.write_bytes(base64.b64decode(re.search(rf"{field}:\s*\"?([^\"\s]+)", kubeconfig).group(1)))
            files.append(path)
        server = re.search(r"server:\s*\"?([^\"\s]+)", kubeconfig).group(1)
        log = open(self.folder / "operator.log", "w+")
        self.addCleanup(log.close)
        process = subprocess.Popen(["node", ROOT / "tests/e2e/operator.mjs", server, *files], stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        said = lambda: (self.folder / "operator.log").read_text()
        wait_for(lambda: f"the operator: {said()}", lambda: "watching" in said() or process.poll() is not None)
        return process, said

    @needs(shutil.which("node"), "needs Node.js")
    def test_an_operator_makes_what_its_objects_ask_for(self):
        self.kubectl.apply(greeting("before", words="was here"))
        process, said = self.operator()
        self.kubectl.apply(greeting("one", words="hello", times=2))
        self.kubectl("wait", "--for=jsonpath={.status.text}=hello hello", "greeting/one")
        self.assertEqual(self.kubectl.get("configmap", "one")["data"], {"text": "hello hello"})
        self.assertEqual(self.kubectl.get("greeting", "before")["status"]["text"], "was here was here")
        self.kubectl("patch", "greeting", "one", "--type=json", "-p",
                     '[{"op":"replace","path":"/spec/times","value":1}]')
        self.kubectl("wait", "--for=jsonpath={.status.text}=hello", "greeting/one")
        kept = self.kubectl.get("greeting", "one")
        self.assertEqual(kept["status"]["observedGeneration"], kept["metadata"]["generation"])
        self.kubectl("delete", "greeting", "one")
        wait_for("its map to be collected", lambda: not self.api.find("/api/v1/namespaces/default/configmaps/one"))
        self.kubectl("delete", "crd", "greetings.demo.example.com")
        wait_for(lambda: f"the operator to see the end: {said()}", lambda: process.poll() is not None)
        self.assertEqual(process.returncode, 0, said())
        self.assertIn("gone before", said())
        self.assertIn("the kind is gone", said())
        self.assertIsNone(self.api.find(GREETINGS))

    def test_a_changed_definition_is_followed(self):
        self.kubectl.apply(greeting("a", words="x"))
        changed = definition()
        changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["tone"] = {
            "type": "string", "default": "kind"}
        older = {**changed["spec"]["versions"][0], "name": "v1beta1", "storage": False, "deprecated": True}
        changed["spec"]["versions"].append(older)
        self.kubectl.apply(changed)
        wait_for("the default", lambda: self.kubectl.get("greeting", "a")["spec"].get("tone") == "kind")
        self.assertEqual(self.kubectl.get("greetings.v1beta1.demo.example.com", "a")["apiVersion"],
                         "demo.example.com/v1beta1")
        self.assertRegex(self.kubectl("api-versions"), r"demo\.example\.com/v1\ndemo\.example\.com/v1beta1")

    def test_a_server_that_begins_again_serves_them(self):
        with workspace() as folder:
            with one_node(folder) as node:
                node.kubectl.apply(definition())
                node.kubectl("wait", "--for=condition=Established", "crd/greetings.demo.example.com")
                node.kubectl.apply(greeting("kept", words="still here"))
                before = node.api.get(f"{GREETINGS}/kept")
            with one_node(folder) as node:
                self.assertEqual(node.api.get(f"{GREETINGS}/kept"), before)
                node.kubectl("patch", "greeting", "kept", "--type=merge", "-p", '{"spec":{"times":5}}')
                self.assertRegex(node.kubectl("get", "hi"), r"kept\s+still here\s+5")


@needs(own_etcd.PROGRAM is not None and shutil.which("kubectl"), own_etcd.NEEDS)
class CustomKindsOfSeveralServers(unittest.TestCase):
    def test_each_server_of_an_etcd_serves_kinds_of_another(self):
        folder = self.enterContext(workspace())
        cluster = self.enterContext(own_etcd.serving(folder))
        apis = []
        for name in ("a", "b"):
            if apis:
                (folder / name).mkdir()
                shutil.copytree(folder / "a/pki", folder / name / "pki")
            kubeconfig = folder / f"kubeconfig-{name}"
            process = self.enterContext(running(folder, "apiserver", "--data-dir", folder / name, "--port", "0",
                                                "--write-kubeconfig", kubeconfig, cluster.flag))
            apis.append(serving(process, kubeconfig))
        a, b = apis
        wait_for("the namespace", lambda: a.find("/api/v1/namespaces/default") and b.find("/api/v1/namespaces/default"))
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for round in range(3):
            b.create(crds, definition())
            established = lambda: any(each["type"] == "Established" and each["status"] == "True"
                                      for each in a.get(f"{crds}/greetings.demo.example.com")["status"].get(
                                          "conditions") or [])
            wait_for("the kind", established)
            a.create(GREETINGS, greeting("one", words=f"round {round}"))
            self.assertEqual(b.get(f"{GREETINGS}/one")["spec"]["words"], f"round {round}",
                             "what one was told the other knows")
            b.create(GREETINGS, greeting("two", words="x"))
            self.assertEqual([each["metadata"]["name"] for each in a.get(GREETINGS)["items"]], ["one", "two"])
            a.delete(f"{crds}/greetings.demo.example.com")
            wait_for("the definition to go", lambda: b.find(f"{crds}/greetings.demo.example.com") is None)
            for each in apis:
                wait_for("the kind to go", lambda each=each: each.find(GREETINGS) is None)


if __name__ == "__main__":
    unittest.main()
