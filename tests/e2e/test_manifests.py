"""`spillway up --manifests DIR`: a folder's objects come up in whatever order the files have, follow their files, and
mistakes have a place.
"""
import json
import re
import shutil
import unittest

from harness import needs, one_node, run, wait_for, workspace

DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
              "metadata": {"name": "taps.e.io"},
              "spec": {"group": "e.io", "scope": "Cluster",
                       "names": {"plural": "taps", "singular": "tap", "kind": "Tap", "listKind": "TapList"},
                       "versions": [{"name": "v1", "served": True, "storage": True,
                                     "schema": {"openAPIV3Schema": {"type": "object",
                                                                    "x-kubernetes-preserve-unknown-fields": True}}}]}}
SHOP = """# The shop.
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings, namespace: shop}
  data: {word: %s}
- apiVersion: v1
  kind: Secret
  metadata: {name: key, namespace: shop}
  stringData: {word: hidden}
"""
SETTINGS = "/api/v1/namespaces/shop/configmaps/settings"


@needs(shutil.which("kubectl"), "needs kubectl")
class Manifests(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.manifests = self.folder / "manifests"
        self.manifests.mkdir()

    def start(self):
        self.process = self.enterContext(one_node(self.folder, "--manifests", self.manifests))
        self.api = self.process.api

    def word(self):
        return (self.api.find(SETTINGS) or {}).get("data", {}).get("word")

    def test_objects_follow_their_files(self):
        (self.manifests / "a-tap.json").write_text(
            json.dumps({"apiVersion": "e.io/v1", "kind": "Tap", "metadata": {"name": "t"}}))
        (self.manifests / "b-definition.json").write_text(json.dumps(DEFINITION))
        (self.manifests / "shop.yaml").write_text(SHOP % "first")
        (self.manifests / "notes.txt").write_text("no manifest")
        self.start()
        wait_for("the objects", lambda: self.word() == "first" and self.api.find("/api/v1/namespaces/shop/secrets/key"))
        wait_for("the custom object, which comes before its definition", lambda: self.api.find("/apis/e.io/v1/taps/t"))
        # A mistake leaves the objects of the sound version as they are, and names its line.
        (self.manifests / "shop.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop\n")
        wait_for("the mistake", lambda: re.search(r'manifest not read.*shop.yaml:\d+', self.process.log.read_text()))
        (self.manifests / "shop.yaml").write_text(SHOP % "second")
        wait_for("the change", lambda: self.word() == "second")
        self.process.kubectl("delete", "configmap", "-n", "shop", "settings")
        (self.manifests / "new.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n")
        wait_for("an object of a new file, in the namespace default",
                 lambda: self.api.find("/api/v1/namespaces/default/configmaps/new"))
        wait_for("the removed object to come back", lambda: self.word() == "second")

    def test_a_folder_that_does_not_exist_is_refused_before_anything_starts(self):
        code, _, err = run("up", "--data-dir", self.folder / "data", "--manifests", self.folder / "missing")
        self.assertEqual(code, 2)
        self.assertIn(f"--manifests {self.folder}/missing: expected a folder: No such file or directory", err)
        self.assertFalse((self.folder / "data").exists())

    def test_a_folder_that_every_user_can_write_is_refused(self):
        self.manifests.chmod(0o777)
        code, _, err = run("up", "--data-dir", self.folder / "data", "--manifests", self.manifests)
        self.assertEqual(code, 2)
        self.assertIn(f"--manifests {self.manifests}: every user of this machine can write there", err)
        self.assertFalse((self.folder / "data").exists())


if __name__ == "__main__":
    unittest.main()
