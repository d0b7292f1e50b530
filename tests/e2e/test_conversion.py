"""Conversion webhooks of custom kinds: a real HTTPS server that is right, slow, wrong and gone beside `spillway
apiserver`.
"""
import json
import shutil
import threading
import unittest

from harness import Api, ApiError, needs, running, serving, wait_for, workspace
from webhook_server import WebhookServer, dead_port

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1, V2 = (f"/apis/conversion.example.com/{version}/namespaces/default/convs" for version in ("v1", "v2"))


def schema(**members):
    spec = {"type": "object", "properties": {name: {"type": "string"} for name in members}}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}


def definition(client):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "convs.conversion.example.com"},
            "spec": {"group": "conversion.example.com", "scope": "Namespaced",
                     "names": {"plural": "convs", "singular": "conv", "kind": "Conv"},
                     "conversion": {"strategy": "Webhook",
                                    "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema(hostPort=1)},
                                  {"name": "v2", "served": True, "storage": False, "schema": schema(host=1, port=1)}]}}


def converted(one, version):
    made = dict(one, apiVersion=version)
    if version.endswith("/v2"):
        host, _, port = one["spec"]["hostPort"].partition(":")
        made["spec"] = {"host": host, "port": port}
    else:
        made["spec"] = {"hostPort": f"{one['spec']['host']}:{one['spec']['port']}"}
    return made


def right(review, change=lambda one: one):
    request = review["request"]
    objects = [change(converted(one, request["desiredAPIVersion"])) for one in request["objects"]]
    response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                       "response": response}).encode()


def conv(name, version="v1", **spec):
    return {"apiVersion": f"conversion.example.com/{version}", "kind": "Conv", "metadata": {"name": name}, "spec": spec}


@needs(shutil.which("openssl"), "needs openssl")
class Conversion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        kubeconfig = cls.kubeconfig = cls.folder / "kubeconfig"
        process = cls.enterClassContext(
            running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port", "0", "--write-kubeconfig",
                    kubeconfig))
        cls.api = serving(process, kubeconfig)
        cls.hooks = cls.enterClassContext(WebhookServer(cls.folder / "hooks"))
        cls.hooks.on("/convert", right)
        cls.api.create(DEFINITIONS, definition({"url": cls.hooks.url("/convert"), "caBundle": cls.hooks.bundle()}))
        wait_for("the kind", lambda: cls.is_served())

    @classmethod
    def is_served(cls):
        try:
            return cls.api.get(V1) is not None
        except ApiError:
            return False

    def setUp(self):
        self.hooks.on("/convert", right)

    def tearDown(self):
        for one in self.api.get(V1)["items"]:
            self.api.delete(f"{V1}/{one['metadata']['name']}")

    def failure(self, path):
        with self.assertRaises(ApiError) as caught:
            self.api.get(path)
        self.assertEqual(caught.exception.code, 500)
        return caught.exception.status["message"]

    def test_both_versions_are_served(self):
        self.api.create(V2, conv("a", "v2", host="one", port="1"))
        self.api.create(V1, conv("b", hostPort="two:2"))
        self.assertEqual(self.api.get(f"{V1}/a")["spec"], {"hostPort": "one:1"})
        self.assertEqual(self.api.get(f"{V2}/b")["spec"], {"host": "two", "port": "2"})
        self.hooks.asked.clear()
        listed = self.api.get(V2)
        self.assertEqual([one["spec"]["host"] for one in listed["items"]], ["one", "two"])
        self.assertLessEqual(len(self.hooks.asked), 1, "one review for a list")
        for _, review, headers in self.hooks.asked:
            self.assertEqual(review["kind"], "ConversionReview")
            self.assertNotIn("authorization", {name.lower() for name in headers})

    def test_a_slow_webhook_delays_its_own_requests_alone(self):
        self.api.create(V1, conv("slow", hostPort="one:1"))
        asked, may_answer = threading.Event(), threading.Event()

        def slow(review):
            asked.set()
            may_answer.wait(60)
            return right(review)

        self.hooks.on("/convert", slow)
        got = []
        other = Api(self.kubeconfig)
        reader = threading.Thread(target=lambda: got.append(other.get(f"{V2}/slow")))
        reader.start()
        self.assertTrue(asked.wait(60))
        for _ in range(5):
            self.assertEqual(self.api.get(f"{V1}/slow")["spec"], {"hostPort": "one:1"})
        self.assertEqual(got, [])
        may_answer.set()
        reader.join(60)
        self.assertEqual(got[0]["spec"], {"host": "one", "port": "1"})

    def test_a_wrong_webhook_is_refused(self):
        self.api.create(V1, conv("wrong", hostPort="one:1"))
        self.hooks.on("/convert",
                      lambda review: right(review, lambda one: dict(one, metadata=dict(one["metadata"], name="other"))))
        self.assertEqual(
            self.failure(f"{V2}/wrong"),
            (
                "conversion webhook for conversion.example.com/v1, Kind=Conv returned invalid object: must have the"
                " same name: wrong != other"
            ),
        )
        self.hooks.on("/convert", lambda review: b"nonsense")
        self.assertIn("conversion webhook for conversion.example.com/v1, Kind=Conv failed: ",
                      self.failure(f"{V2}/wrong"))
        self.assertIn("conversion webhook for conversion.example.com/v1, Kind=ConvList failed: ", self.failure(V2))
        self.hooks.on("/convert", right)
        self.assertEqual(self.api.get(f"{V2}/wrong")["spec"]["host"], "one", "no failure is kept")

    def test_a_webhook_that_is_gone(self):
        self.api.create(V1, conv("gone", hostPort="one:1"))
        path = f"{DEFINITIONS}/convs.conversion.example.com"
        there = {"url": self.hooks.url("/convert"), "caBundle": self.hooks.bundle()}
        gone = dict(there, url=f"https://127.0.0.1:{dead_port()}/convert")

        def point_to(client):
            self.api.patch(path, {"spec": {"conversion": {"webhook": {"clientConfig": client}}}})

        point_to(gone)
        wait_for("the other address", lambda: "refused" in self.message_of(f"{V2}/gone"))
        self.assertEqual(self.api.get(f"{V1}/gone")["spec"], {"hostPort": "one:1"},
                         "the stored version needs no webhook")
        self.api.patch(f"{V1}/gone", {"spec": {"hostPort": "two:2"}})
        point_to(there)
        wait_for("the webhook again", lambda: not self.message_of(f"{V2}/gone"))
        self.assertEqual(self.api.get(f"{V2}/gone")["spec"], {"host": "two", "port": "2"})

    def message_of(self, path):
        try:
            self.api.get(path)
        except ApiError as error:
            return error.status["message"]
        return ""


if __name__ == "__main__":
    unittest.main()
