"""Aggregated APIs: a small aggregated API server with TLS and two versions beside `spillway apiserver`: discovery,
`kubectl`, identities, streams, unavailable and back, deletion."""
import base64
import contextlib
import json
import shutil
import unittest

from aggregated_server import GROUP, VERSIONS, AggregatedServer, ware
from harness import Api, ApiError, Kubectl, needs, running, serving, wait_for, workspace
from http_peer import own_address

APIS = "/apis/apiregistration.k8s.io/v1/apiservices"
WARES = f"/apis/{GROUP}/v1/namespaces/default/wares"
SHOP = "/api/v1/namespaces/shop"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def api_service(version, ca, **spec):
    number = 100 if version == "v1" else 50
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"{version}.{GROUP}"},
            "spec": {"group": GROUP, "version": version, "groupPriorityMinimum": 1000, "versionPriority": number,
                     "service": {"namespace": "shop", "name": "wares", "port": 443}, "caBundle": ca, **spec}}


@needs(own_address() and shutil.which("openssl"), "needs an address of this machine besides loopback, and openssl")
class Aggregation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.kubeconfig = cls.folder / "kubeconfig"
        process = cls.enterClassContext(
            running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port", "0", "--write-kubeconfig",
                    cls.kubeconfig))
        cls.api = serving(process, cls.kubeconfig)
        believed = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        wait_for("how servers know this one",
                 lambda: "requestheader-client-ca-file" in (cls.api.find(believed) or {}).get("data", {}))
        data = cls.api.get(believed)["data"]
        assert json.loads(data["requestheader-allowed-names"]) == ["front-proxy-client"], data
        cls.wares = AggregatedServer(cls.folder / "wares", own_address(), data["requestheader-client-ca-file"])
        cls.wares.start()
        cls.addClassCleanup(cls.wares.stop)
        cls.api.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        cls.api.create(f"{SHOP}/services",
                       {"metadata": {"name": "wares"}, "spec": {"ports": [{"name": "https", "port": 443}]}})
        cls.api.create(f"{SHOP}/endpoints", {"metadata": {"name": "wares"}, "subsets": [
            {"addresses": [{"ip": cls.wares.address}], "ports": [{"name": "https", "port": cls.wares.port}]}]})
        cls.ca = base64.b64encode(cls.wares.ca.read_bytes()).decode()

    def setUp(self):
        for version in VERSIONS:
            self.api.create(APIS, api_service(version, self.ca))
        self.wait_until("True", "Passed")

    def tearDown(self):
        for version in VERSIONS:
            with contextlib.suppress(ApiError):
                self.api.delete(f"{APIS}/{version}.{GROUP}")

    def condition(self, version="v1"):
        conditions = self.api.get(f"{APIS}/{version}.{GROUP}").get("status", {}).get("conditions", [])
        return conditions[0] if conditions else {}

    def wait_until(self, status, reason):
        for version in VERSIONS:
            wait_for(f"{version} to be {status} {reason}",
                     lambda version=version: (self.condition(version).get("status"),
                                              self.condition(version).get("reason")) == (status, reason))

    def raw(self, path, **headers):
        """(code, body, headers) of a GET with the administrator's certificate."""
        api = Api(self.kubeconfig)
        try:
            api.send("GET", path, None, headers)
            answer = api.connection.getresponse()
            return answer.status, answer.read().decode(errors="replace"), answer.headers
        finally:
            api.close()

    def discovered(self):
        """{version: (freshness, names of resources)} of the group in aggregated discovery."""
        groups = json.loads(self.raw("/apis", Accept=AGGREGATED)[1])["items"]
        found = [group for group in groups if group["metadata"]["name"] == GROUP]
        return {one["version"]: (one["freshness"], [row["resource"] for row in one.get("resources", [])])
                for group in found for one in group["versions"]}

    def test_discovery_in_all_forms(self):
        wait_for("both versions",
                 lambda: self.discovered() == {version: ("Current", ["wares"]) for version in VERSIONS})
        group = self.api.get(f"/apis/{GROUP}")
        self.assertEqual([one["version"] for one in group["versions"]], ["v1", "v1beta1"])
        self.assertIn(GROUP, [one["name"] for one in self.api.get("/apis")["groups"]])
        self.assertEqual(self.api.get(f"/apis/{GROUP}/v1")["resources"][0]["kind"], "Ware")
        self.assertIn(f"/apis/{GROUP}/v1", self.api.get("/")["paths"])
        wait_for("the index", lambda: f"apis/{GROUP}/v1" in self.api.get("/openapi/v3")["paths"])
        document = self.api.get(self.api.get("/openapi/v3")["paths"][f"apis/{GROUP}/v1"]["serverRelativeURL"])
        self.assertIn("com.example.wares.v1.Ware", document["components"]["schemas"])
        local = self.api.get(f"{APIS}/v1.apps")
        self.assertEqual((local["spec"]["groupPriorityMinimum"], local["status"]["conditions"][0]["reason"]),
                         (17800, "Local"))

    def test_openapi_v2(self):
        names = {f"com.example.wares.{version}.Ware" for version in VERSIONS}
        wait_for("the definitions", lambda: names <= self.api.get("/openapi/v2")["definitions"].keys())
        document = self.api.get("/openapi/v2")
        meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
        self.assertEqual(document["definitions"][f"{meta}_v2"]["description"], "As the wares have it.")
        self.assertNotEqual(document["definitions"][meta]["description"], "As the wares have it.")
        for name in names:
            self.assertEqual(document["definitions"][name]["properties"]["metadata"]["$ref"],
                             f"#/definitions/{meta}_v2")
        self.assertIn(f"/apis/{GROUP}/v1/namespaces/{{namespace}}/wares", document["paths"])
        self.assertNotIn("/apis/apps/v1/deployments", document["paths"])
        protobuf = self.raw("/openapi/v2", Accept="application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        self.assertIn("com.example.wares.v1.Ware", protobuf[1])
        for version in VERSIONS:
            self.api.delete(f"{APIS}/{version}.{GROUP}")
        wait_for("the definitions to go", lambda: not names & self.api.get("/openapi/v2")["definitions"].keys())
        self.assertNotIn(f"{meta}_v2", self.api.get("/openapi/v2")["definitions"])

    @needs(shutil.which("kubectl"), "needs kubectl")
    def test_kubectl(self):
        kubectl = Kubectl(self.kubeconfig)
        wait_for("discovery", lambda: self.discovered() == {version: ("Current", ["wares"]) for version in VERSIONS})
        self.assertIn("one", kubectl("get", "wares"))
        self.assertIn("colour: red", kubectl("get", "ware", "one", "-o", "yaml"))
        self.assertIn("wares.example.com/v1beta1", kubectl("get", "wares.v1beta1.wares.example.com", "-o", "yaml"))
        rows = {row.split()[0]: row.split()[1:3] for row in kubectl("get", "apiservices", "--no-headers").splitlines()}
        self.assertEqual(rows[f"v1.{GROUP}"], ["shop/wares", "True"])
        self.assertEqual(rows["v1.apps"], ["Local", "True"])
        wait_for("the schema", lambda: f"apis/{GROUP}/v1" in self.api.get("/openapi/v3")["paths"])
        self.assertIn("A thing to sell.", kubectl("explain", "ware"))

    def test_the_user_is_named_and_forged_names_are_not_passed_on(self):
        self.wares.seen.clear()
        forged = {"X-Remote-User": "root", "X-Remote-Group": "kings", "X-Remote-Extra-Scopes": "all",
                  "Connection": "X-Remote-User"}
        self.assertEqual(self.raw(WARES, **forged)[0], 200)
        _, _, headers, name = next(one for one in self.wares.seen if one[1] == WARES)
        told = [(key.lower(), value) for key, value in headers]
        self.assertEqual(name, "front-proxy-client")
        self.assertEqual([value for key, value in told if key == "x-remote-user"], ["kubernetes-admin"])
        self.assertIn(("x-remote-group", "system:masters"), told)
        self.assertNotIn(("x-remote-group", "kings"), told)
        self.assertFalse([key for key, _ in told if key.startswith("x-remote-extra")])
        self.assertNotIn("authorization", dict(told))

    def test_objects_are_made_and_watched(self):
        self.api.create(WARES, ware("two", colour="blue"))
        self.addCleanup(self.wares.wares.pop, "two")
        self.assertEqual(self.api.get(f"{WARES}/two")["spec"], {"colour": "blue"})
        api = Api(self.kubeconfig)
        self.addCleanup(api.close)
        api.send("GET", f"{WARES}?watch=1", None, {})
        answer = api.connection.getresponse()
        events = [json.loads(answer.readline()) for _ in range(2)]
        self.assertEqual([event["object"]["metadata"]["name"] for event in events], ["one", "two"])

    def test_a_redirect_and_endless_answers_do_no_harm(self):
        self.assertEqual(self.raw(f"{WARES}/moved")[:2],
                         (502, "the backend attempted to redirect this request, which is not permitted"))
        silent, endless = Api(self.kubeconfig), Api(self.kubeconfig)
        self.addCleanup(silent.close)
        self.addCleanup(endless.close)
        silent.send("GET", f"{WARES}/silent", None, {})
        endless.send("GET", f"{WARES}/endless", None, {})
        self.assertEqual(len(endless.connection.getresponse().read(1 << 20)), 1 << 20)
        for _ in range(20):
            self.assertEqual(self.api.get("/api/v1/namespaces/default")["metadata"]["name"], "default")
        self.assertEqual(self.raw(f"{WARES}/one")[0], 200)

    def test_a_server_with_another_certificate_is_not_trusted(self):
        other = base64.b64encode((self.folder / "data/pki/ca.crt").read_bytes()).decode()
        self.api.patch(f"{APIS}/v1.{GROUP}", {"spec": {"caBundle": other}})
        wait_for("the failure", lambda: self.condition().get("reason") == "FailedDiscoveryCheck")
        self.assertEqual(self.raw(WARES)[:2], (503, "service unavailable\n"))
        self.api.patch(f"{APIS}/v1.{GROUP}", {"spec": {"caBundle": None, "insecureSkipTLSVerify": True}})
        wait_for("it without verification", lambda: self.condition().get("status") == "True")
        self.assertEqual(self.raw(WARES)[0], 200)

    def test_unavailable_and_back_then_deleted(self):
        self.wares.stop()
        self.wait_until("False", "FailedDiscoveryCheck")
        self.assertIn("failing or missing response from https://", self.condition()["message"])
        self.assertEqual(self.raw(WARES)[:2], (503, "service unavailable\n"))
        wait_for("a stale group", lambda: {one[0] for one in self.discovered().values()} == {"Stale"})
        self.assertEqual(self.api.get("/apis/apps/v1")["groupVersion"], "apps/v1", "other groups are as they were")
        self.wares.start()
        self.wait_until("True", "Passed")
        self.assertEqual(self.raw(WARES)[0], 200)
        self.api.patch(f"{SHOP}/endpoints/wares", {"subsets": None})
        self.wait_until("False", "MissingEndpoints")
        self.api.patch(f"{SHOP}/endpoints/wares", {"subsets": [
            {"addresses": [{"ip": self.wares.address}], "ports": [{"name": "https", "port": self.wares.port}]}]})
        self.wait_until("True", "Passed")
        for version in VERSIONS:
            self.api.delete(f"{APIS}/{version}.{GROUP}")
        wait_for("the group to go", lambda: not self.discovered())
        self.assertEqual(self.raw(WARES)[0], 404)

    def test_the_loopback_is_no_service(self):
        self.api.create(f"{SHOP}/services",
                        {"metadata": {"name": "home"}, "spec": {"type": "ExternalName", "externalName": "localhost"}})
        self.addCleanup(self.api.delete, f"{SHOP}/services/home")
        own = {"namespace": "shop", "name": "home", "port": self.api.port}
        self.api.patch(f"{APIS}/v1.{GROUP}", {"spec": {"service": own}})
        wait_for("the refusal", lambda: "address not allowed" in self.condition().get("message", ""))
        self.assertEqual(self.raw(WARES)[0], 503)


if __name__ == "__main__":
    unittest.main()
