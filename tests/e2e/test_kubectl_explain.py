"""`kubectl explain` against an API server: every kind and field says what it is."""
import re
import shutil
import unittest

from harness import Kubectl, needs, running, serving, workspace

BOOKS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
         "metadata": {"name": "books.library.example.com"},
         "spec": {"group": "library.example.com", "scope": "Namespaced",
                  "names": {"plural": "books", "singular": "book", "kind": "Book"},
                  "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                      "type": "object", "description": "A book on a shelf.", "properties": {"spec": {
                          "type": "object", "description": "What book it is.",
                          "properties": {"title": {"type": "string", "description": "Its title."}}}}}}}]}}

# Questions, and words that the answer must contain: from the field itself, from its type, from a field below.
QUESTIONS = [
    ("pod", ["KIND:       Pod", "containers that run together on one node", "What is to run and where"]),
    ("pod.spec", ["What is to run and where", "how it is to be placed, run and ended",
                  "Seconds from SIGTERM to SIGKILL"]),
    ("pod.spec.tolerations", ["Taints that do not keep the pod away", "A kind of taint that the pod puts up with"]),
    ("pod.spec.tolerations.tolerationSeconds", ["FIELD: tolerationSeconds <integer>", "Absent: for ever"]),
    ("pod.spec.ephemeralContainers.ports", ["Not allowed in containers for debugging"]),
    ("pod.spec.volumes", ["configMap\t<ConfigMapVolumeSource>", "Entries of a ConfigMap as files"]),
    ("pod.metadata.labels", ["FIELD: labels <map[string]string>", "by which selectors choose"]),
    ("deployment.spec.strategy",
     ["FIELD: strategy <DeploymentStrategy>", "How old pods are replaced by new ones",
      "Recreate ends all old ones first"]),
    ("node.status.conditions",
     ["FIELD: conditions <[]NodeCondition>", "short of memory, disk or processes", "lastHeartbeatTime"]),
    ("lease.spec", ["since when and for how long", "Seconds after renewTime at which it is free"]),
    ("crd.spec", ["What it is called", "Its API group, a domain. Cannot be changed."]),
    ("crd.spec.versions.schema.openAPIV3Schema.items", ["Schema of the elements of a list"]),
    ("horizontalpodautoscalers.spec.metrics", ["asks for most replicas decides"]),
]


@needs(shutil.which("kubectl"), "needs kubectl")
class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(workspace())
        kubeconfig = folder / "kubeconfig"
        process = cls.enterClassContext(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                "--write-kubeconfig", kubeconfig))
        cls.api, cls.kubectl = serving(process, kubeconfig), Kubectl(kubeconfig)

    def told(self, *question):
        answer = self.kubectl("explain", *question)
        self.assertRegex(answer, r"DESCRIPTION:\n +\S")
        for nothing in ("<empty>", "<no description>"):
            self.assertNotIn(nothing, answer, question)
        return answer

    def test_kinds_and_fields_say_what_they_are(self):
        for question, words in QUESTIONS:
            with self.subTest(question):
                answer = self.told(question)
                flat = re.sub(r"\n *", " ", answer)  # kubectl breaks lines
                for each in words:
                    self.assertIn(each, flat)

    def test_a_whole_tree(self):
        answer = self.told("deployment.spec.strategy", "--recursive")
        self.assertRegex(
            answer, r"rollingUpdate\s<RollingUpdateDeployment>\n +maxSurge\s<string>\n +maxUnavailable\s<string>\n"
        )
        self.assertIn("tolerationSeconds", self.told("pod", "--recursive"))
        self.assertIn("x-kubernetes-validations", self.told("crd", "--recursive"))

    def test_what_must_be_given(self):
        self.assertRegex(self.told("deployment.spec"),
                         r"selector\t<LabelSelector> -required-\n(.|\n)*template\t<PodTemplateSpec> -required-\n")
        self.assertIn("containers\t<[]Container> -required-\n", self.told("pod.spec"))
        self.assertNotIn("-required-", self.told("configmap"))
        older = self.kubectl("explain", "deployment.spec", "--output=plaintext-openapiv2")
        self.assertRegex(older, r"template\t<Object> -required-\n")

    def test_every_kind_of_the_server(self):
        rows = [line.split() for line in self.kubectl("api-resources", "--no-headers").splitlines()]
        self.assertGreater(len(rows), 40)
        for name, *_, version, _, kind in rows:
            with self.subTest(name, version=version):
                self.assertIn(f"KIND:       {kind}\n", self.told(name, f"--api-version={version}"))

    def test_older_clients_read_the_same_from_version_2(self):
        for question, words in (("pod.spec.tolerations", "A kind of taint that the pod puts up with"),
                                ("node.status", "What a node says of itself"),
                                ("deployment.spec.replicas", "How many pods there are to be.")):
            answer = self.kubectl("explain", question, "--output=plaintext-openapiv2")
            self.assertIn(words, re.sub(r"\s+", " ", answer))
            self.assertNotIn("<empty>", answer)

    def test_a_custom_kind(self):
        self.kubectl.apply(BOOKS)
        self.kubectl("wait", "--for=condition=Established", "crd/books.library.example.com")
        self.addCleanup(self.kubectl, "delete", "crd", "books.library.example.com")
        self.assertIn("A book on a shelf.", self.told("book"))
        self.assertIn("Its title.", self.told("book.spec"))
        self.assertIn("Unique among objects of the kind", self.told("book.metadata"))
        self.assertIn("how it is to be placed",
                      re.sub(r"\s+", " ", self.kubectl("explain", "pod.spec", "--output=plaintext-openapiv2")))

    def test_a_merge_still_goes_by_the_keys_of_lists(self):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"}, "spec": {"containers": [
            {"name": name, "image": "x", "command": ["true"]} for name in ("a", "b")]}}
        self.kubectl.apply(pod)
        pod["spec"]["containers"][1]["image"] = "y"
        self.assertIn("configured", self.kubectl.apply(pod))
        self.assertEqual([each["image"] for each in self.kubectl.get("pod", "two")["spec"]["containers"]], ["x", "y"])
        self.assertIn("unchanged", self.kubectl.apply(pod))
        self.kubectl("delete", "pod", "two", "--grace-period=0", "--force")


if __name__ == "__main__":
    unittest.main()
