"""Admission webhooks as an operator uses them: a real HTTPS server with its own authority beside `spillway
apiserver`.
"""
import json
import shutil
import socket
import subprocess
import threading
import time
import unittest

from harness import ApiError, Kubectl, needs, PATIENCE, running, serving, wait_for, workspace
from webhook_server import GROUP, WebhookServer, allow, configured, deny, patch

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def set_data(key, value="set"):
    return {"op": "add", "path": f"/data/{key}", "value": value}


@needs(shutil.which("openssl"), "needs openssl")
class Webhooks(unittest.TestCase):
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
        wait_for("the ConfigMaps of the server", lambda: len(cls.api.get("/api/v1/namespaces")["items"]) == len(
            [each for each in cls.api.get("/api/v1/configmaps")["items"]
             if each["metadata"]["name"] == "kube-root-ca.crt"]))
        cls.hooks = cls.enterClassContext(WebhookServer(cls.folder / "hooks"))

    def setUp(self):
        self.hooks.asked.clear()

    def refused(self, name, **data):
        with self.assertRaises(ApiError) as caught:
            self.api.create(MAPS, config_map(name, **data))
        return caught.exception.code, caught.exception.status["message"]

    def test_a_request_is_denied(self):
        self.hooks.on("/deny", lambda review: deny(review, "not on a Monday", warnings=["think again"],
                                                   auditAnnotations={"day": "monday"}))
        with configured(self.api, self.hooks.configuration("validating", "deny")):
            self.assertEqual(self.refused("a"),
                             (403, 'admission webhook "deny.hooks.test" denied the request: not on a Monday'))
        self.api.create(MAPS, config_map("a"))
        _, review, headers = self.hooks.asked[0]
        self.assertEqual(review["request"]["object"]["metadata"]["name"], "a")
        self.assertIn("system:masters", review["request"]["userInfo"]["groups"])
        self.assertNotIn("authorization", {name.lower() for name in headers})
        wait_for("the annotation", lambda: '"deny.hooks.test/day":"monday"' in self.audit.read_text())

    def conditions(self, *expressions, **more):
        return dict(more, matchConditions=[{"name": f"c{i}", "expression": text} for i, text in enumerate(expressions)])

    def test_conditions_say_who_is_asked(self):
        self.hooks.on("/picky", lambda review: deny(review, "no"))
        asks = self.conditions("request.operation == 'CREATE'", "object.metadata.name.matches('^in-[a-z]+$')",
                               "authorizer.group('').resource('pods').namespace('default').check('create').allowed()")
        with configured(self.api, self.hooks.configuration("validating", "picky", **asks)):
            self.assertEqual(self.refused("in-a"), (403, 'admission webhook "picky.hooks.test" denied the request: no'))
            self.api.create(MAPS, config_map("out-a"))
        self.assertEqual(len(self.hooks.asked), 1)
        self.assertIn(
            (
                'apiserver_admission_match_condition_exclusions_total{kind="webhook",name="picky.hooks.test",operation="CREATE",type="validating"} 1'
            ),
            self.api.get("/metrics"),
        )

    def test_conditions_without_a_value(self):
        self.hooks.on("/unclear", lambda review: deny(review, "no"))
        for phase in ("mutating", "validating"):
            with configured(self.api,
                            self.hooks.configuration(phase, "unclear",
                                                     **self.conditions("object.data.absent == 'a'",
                                                                       failurePolicy="Fail"))):
                self.assertEqual(self.refused("a", x="y"),
                                 (403,
                                  'configmaps "a" is forbidden: expression \'object.data.absent == \'a\'\' resulted in '
                                                                 "error: no such key: absent"))
            with configured(self.api,
                            self.hooks.configuration(phase, "unclear",
                                                     **self.conditions("object.data.absent == 'a'",
                                                                       failurePolicy="Ignore"))):
                self.api.create(MAPS, config_map(f"ignored-{phase}", x="y"))
            with configured(self.api,
                            self.hooks.configuration(phase, "unclear",
                                                     **self.conditions("object.data.absent == 'a'", "false"))):
                self.api.create(MAPS, config_map(f"false-{phase}", x="y"))
            loops = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a + b + c != d))))"
            with configured(self.api, self.hooks.configuration(phase, "unclear", **self.conditions(loops))):
                code, message = self.refused("many", **{f"k{i}": "v" for i in range(60)})
                self.assertEqual(code, 403)
                self.assertTrue(message.endswith("resulted in error: operation cancelled: actual cost limit exceeded"),
                                message)
        self.assertEqual(self.hooks.asked, [])

    def test_objects_are_changed(self):
        self.hooks.on("/first", lambda review: patch(review, set_data("first")))
        self.hooks.on("/second",
                      lambda review: patch(review, set_data("second", review["request"]["object"]["data"]["first"])))
        with configured(self.api, self.hooks.configuration("mutating", "second"),
                        self.hooks.configuration("mutating", "first")):
            made = self.api.create(MAPS, config_map("changed", own="1"))
            self.assertEqual(made["data"], {"own": "1", "first": "set", "second": "set"})
            self.api.patch(f"{MAPS}/changed", {"data": {"first": None}})
            self.assertEqual(self.api.get(f"{MAPS}/changed")["data"]["first"], "set")
        self.assertEqual(self.hooks.paths(), ["/first", "/second"] * 2)
        wait_for("the annotation",
                 lambda: "mutation.webhook.admission.k8s.io/round_0_index_0" in self.audit.read_text())

    def test_who_wants_is_asked_again(self):
        self.hooks.on("/again", lambda review: allow(review))
        self.hooks.on("/later", lambda review: patch(review, set_data("later")))
        with configured(self.api, self.hooks.configuration("mutating", "again", reinvocationPolicy="IfNeeded"),
                        self.hooks.configuration("mutating", "later")):
            self.api.create(MAPS, config_map("again", own="1"))
        self.assertEqual(self.hooks.paths(), ["/again", "/later", "/again"])
        self.assertEqual(self.hooks.asked[2][1]["request"]["object"]["data"]["later"], "set")

    def silent(self, review):
        """No answer until the server of the test ends."""
        self.hooks.gone.wait(PATIENCE)
        return allow(review)

    def test_a_silent_webhook(self):
        self.hooks.on("/silent", self.silent)
        for policy in ("Fail", "Ignore"):
            with configured(self.api,
                            self.hooks.configuration("validating", "silent", timeoutSeconds=1, failurePolicy=policy)):
                begun = time.monotonic()
                if policy == "Fail":
                    code, message = self.refused("silent")
                    self.assertEqual(code, 500)
                    self.assertEqual(
                        message,
                        (
                            'Internal error occurred: failed calling webhook "silent.hooks.test": failed to call'
                            f' webhook: Post "{self.hooks.url("/silent")}?timeout=1s": context deadline exceeded'
                        ),
                    )
                else:
                    self.api.create(MAPS, config_map("silent"))
                self.assertGreaterEqual(time.monotonic() - begun, 1)

    def test_others_are_served_meanwhile(self):
        quick_is_made = threading.Event()
        self.hooks.on("/slow", lambda review: allow(review) if quick_is_made.wait(PATIENCE) else None)
        with configured(self.api,
                        self.hooks.configuration("validating", "slow", timeoutSeconds=30,
                                                 objectSelector={"matchLabels": {"slow": "yes"}})):
            slow = config_map("slow")
            slow["metadata"]["labels"] = {"slow": "yes"}
            child = subprocess.Popen(["curl", "-sS", "--cacert", self.folder / "data/pki/ca.crt", "--cert",
                                      self.folder / "data/pki/admin.crt", "--key",
                self.folder / "data/pki/admin.key", "-H", "Content-Type: application/json", "-d", json.dumps(slow),
                f"https://{self.api.host}:{self.api.port}{MAPS}"], stdout=subprocess.PIPE, text=True)
            try:
                wait_for("the question", lambda: "/slow" in self.hooks.paths())
                self.api.create(MAPS, config_map("quick"))
                self.assertIsNone(child.poll())
                quick_is_made.set()
                self.assertEqual(json.loads(child.communicate(timeout=PATIENCE)[0])["metadata"]["name"], "slow")
            finally:
                child.kill()
                child.wait()

    def test_wrong_answers(self):
        wrong = {
            "html": (lambda review: b"<html>", "received invalid webhook response: "),
            "uid": (lambda review: {"uid": "other", "allowed": True},
                    "received invalid webhook response: expected response.uid="),
            "type": (lambda review: {**allow(review), "allowed": "yes"},
                     "response.allowed is a string, expected true or false"),
            "patch": (lambda review: patch(review, set_data("x")), "validating webhook may not return response.patch"),
            "cut": (lambda review: iter([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"]),
                    "failed to call webhook: Post "),
            "gone": (lambda review: iter([]), "failed to call webhook: Post "),
            "404": (lambda review: iter([b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]),
                    "the server could not find the requested resource"),
        }
        for name, (answer, says) in wrong.items():
            with self.subTest(name):
                self.hooks.on(f"/{name}", answer)
                with configured(self.api, self.hooks.configuration("validating", name)):
                    code, message = self.refused("wrong")
                    self.assertEqual(code, 500)
                    self.assertTrue(message.startswith(
                        f'Internal error occurred: failed calling webhook "{name}.hooks.test": '), message)
                    self.assertIn(says, message)

    def test_no_webhook_listens(self):
        with socket.socket() as silent:  # bound and not listening: no other program gets the port meanwhile
            silent.bind(("127.0.0.1", 0))
            dead = {"url": f"https://127.0.0.1:{silent.getsockname()[1]}/", "caBundle": self.hooks.bundle()}
            with configured(self.api, self.hooks.configuration("mutating", "dead", client=dead)):
                self.assertIn("refused", self.refused("dead")[1].lower())

    def test_only_the_authority_of_the_configuration_is_trusted(self):
        self.hooks.on("/plain", allow)
        system = {"url": self.hooks.url("/plain")}
        with configured(self.api, self.hooks.configuration("validating", "system", client=system)):
            self.assertIn("certificate", self.refused("unverified")[1])
        with WebhookServer(self.folder / "other", names="DNS:other.example") as other:
            other.on("/named", allow)
            with configured(self.api, other.configuration("validating", "named")):
                self.assertIn("certificate", self.refused("misnamed")[1])
            self.assertEqual(other.asked, [])
        self.assertEqual(self.hooks.asked, [])

    def test_a_service_is_reached(self):
        self.api.create("/api/v1/namespaces", {"metadata": {"name": "hooks"}})
        wait_for("the account", lambda: self.api.find("/api/v1/namespaces/hooks/serviceaccounts/default"))
        # The server writes a ConfigMap there, which the webhooks of these tests would be asked about.
        wait_for("the ConfigMap", lambda: self.api.find("/api/v1/namespaces/hooks/configmaps/kube-root-ca.crt"))
        client = {"service": {"namespace": "hooks", "name": "hook", "path": "/service"},
                  "caBundle": self.hooks.bundle()}
        self.hooks.on("/service", lambda review: deny(review, "by the service"))
        with configured(self.api, self.hooks.configuration("validating", "service", client=client)):
            self.assertIn('service "hook" not found', self.refused("served")[1])
            self.api.create("/api/v1/namespaces/hooks/services", {"metadata": {"name": "hook"}, "spec": {
                "clusterIP": "None", "selector": {"app": "hook"},
                "ports": [{"port": 443, "targetPort": self.hooks.port}]}})
            self.assertIn('no endpoints available for service "hook"', self.refused("served")[1])
            self.api.create("/api/v1/namespaces/hooks/pods", {"metadata": {"name": "hook", "labels": {"app": "hook"}},
                "spec": {"containers": [{"name": "a", "image": "x"}]}})
            self.api.request("PATCH", "/api/v1/namespaces/hooks/pods/hook/status",
                {"status": {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}},
                             "application/merge-patch+json")
            self.assertEqual(self.refused("served"),
                             (403, 'admission webhook "service.hooks.test" denied the request: by the service'))

    def test_a_dry_run(self):
        self.hooks.on("/dry", lambda review: patch(review, set_data("dry", str(review["request"]["dryRun"]))))
        with configured(self.api, self.hooks.configuration("mutating", "dry")):
            made = self.api.create(f"{MAPS}?dryRun=All", config_map("dry", own="1"))
        self.assertEqual(made["data"]["dry"], "True")
        self.assertIsNone(self.api.find(f"{MAPS}/dry"))

    def test_metrics(self):
        self.hooks.on("/counted", lambda review: deny(review, "no"))
        with configured(self.api, self.hooks.configuration("validating", "counted")):
            self.refused("counted")
        text = subprocess.run(["curl", "-sS", "--cacert", self.folder / "data/pki/ca.crt", "--cert",
                               self.folder / "data/pki/admin.crt", "--key",
            self.folder / "data/pki/admin.key", f"https://{self.api.host}:{self.api.port}/metrics"],
                              capture_output=True, text=True, check=True).stdout
        lines = [line for line in text.splitlines() if 'name="counted.hooks.test"' in line]
        self.assertTrue(any(line.startswith("apiserver_admission_webhook_admission_duration_seconds_count")
                            for line in lines), lines)
        self.assertTrue(any(line.startswith("apiserver_admission_webhook_rejection_count")
                            and 'rejection_code="403"' in line for line in lines), lines)

    @needs(shutil.which("kubectl"), "needs kubectl")
    def test_kubectl(self):
        kubectl = Kubectl(self.kubeconfig)
        for phase in ("mutating", "validating"):
            document = self.hooks.configuration(phase, f"by-kubectl-{phase}",
                                                objectSelector={"matchLabels": {"never": "there"}})
            kind = f"{phase}webhookconfiguration"
            self.assertIn("created", kubectl("apply", "-f", "-", given=json.dumps(document)))
            document["webhooks"][0]["timeoutSeconds"] = 3
            self.assertIn("configured", kubectl("apply", "-f", "-", given=json.dumps(document)))
            self.assertIn("unchanged", kubectl("apply", "-f", "-", given=json.dumps(document)))
            shown = kubectl("get", kind)
            self.assertEqual(shown.split()[:3], ["NAME", "WEBHOOKS", "AGE"])
            self.assertIn(f"by-kubectl-{phase}", shown)
            self.assertIn("Timeout Seconds:", kubectl("describe", kind, f"by-kubectl-{phase}"))
            self.assertIn("serverside-applied",
                          kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=json.dumps(document)))
            self.assertIn("deleted", kubectl("delete", kind, f"by-kubectl-{phase}"))
        self.assertIn("mutatingwebhookconfigurations",
                      kubectl("api-resources", "--api-group=admissionregistration.k8s.io"))
        self.assertEqual(self.api.get(f"{GROUP}/mutatingwebhookconfigurations")["items"], [])


if __name__ == "__main__":
    unittest.main()
