"""Pages of pods and services through the API server: with kubectl, with a client of HTTP and with an upgraded
connection, to a program that runs in a pod and to a server of this test's own behind TLS."""
import json
import shutil
import ssl
import subprocess
import unittest

from harness import can_write_cgroups, needs, one_node, PATIENCE, pod, wait_for, workspace
from http_peer import Peer, own_address
from webhook_server import make_certificate

SHOP, SYSTEM = "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"
# Says what was asked of it, on a port that it prints.
PROGRAM = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = (self.command + ' ' + self.path + ' ' + str(self.headers['X-Forwarded-Uri'])).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_): pass
server = http.server.HTTPServer(('', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
@needs(own_address(), "needs an address of this machine besides loopback")
class Proxies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl
        served = pod("web", ["python3", "-c", PROGRAM], hostNetwork=True)
        served["metadata"]["labels"] = {"app": "web"}
        served["metadata"]["namespace"] = "kube-system"
        cls.api.create(f"{SYSTEM}/pods", served)
        cls.port = int(wait_for("the pod's port", lambda: cls.log_of("web")))
        cls.peer = Peer(own_address())
        cls.addClassCleanup(cls.peer.close)

    @classmethod
    def log_of(cls, name):
        if cls.api.pod_phases("kube-system").get(name) != "Running":
            return ""
        try:
            return cls.kubectl("logs", "-n", "kube-system", name).strip()
        except AssertionError:
            return ""

    def raw(self, path, code=0):
        return self.kubectl("get", "--raw", path, code=code)

    def fake(self, name):
        """A pod on no node, whose address is the peer's."""
        made = pod(name, ["true"])
        made["spec"]["schedulerName"] = "nobody"
        self.api.create(f"{SHOP}/pods", made)
        self.addCleanup(self.api.delete, f"{SHOP}/pods/{name}", 0)
        self.api.patch(f"{SHOP}/pods/{name}/status",
                       {"status": {"podIP": self.peer.address, "podIPs": [{"ip": self.peer.address}]}})
        return f"{SHOP}/pods/{name}"

    def test_a_pod(self):
        base = f"{SYSTEM}/pods/web:{self.port}/proxy"
        self.assertEqual(self.raw(f"{base}/a/b?c=d"), f"GET /a/b?c=d {base}/a/b")
        self.assertEqual(self.raw(f"{SYSTEM}/pods/http:web:{self.port}/proxy/"),
                         f"GET / {SYSTEM}/pods/http:web:{self.port}/proxy/")
        self.assertRegex(self.raw(f"{SYSTEM}/pods/web:1/proxy/", code=1), r"error trying to reach service: .*refused")
        self.assertIn('pods "absent" not found', self.raw(f"{SYSTEM}/pods/absent:80/proxy/", code=1))

    def test_a_service_of_the_cluster(self):
        self.api.create(f"{SYSTEM}/services",
                        {"metadata": {"name": "web",
                                      "labels": {"kubernetes.io/cluster-service": "true", "kubernetes.io/name": "Web"}},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "main", "port": 80, "targetPort": self.port}]}})
        self.addCleanup(self.api.delete, f"{SYSTEM}/services/web")
        base = f"{SYSTEM}/services/web:main/proxy"
        self.assertRegex(self.kubectl("cluster-info"), rf"Web.* is running at .*{base}")
        wait_for("its endpoints", lambda: (self.api.find(f"{SYSTEM}/endpoints/web") or {}).get("subsets"))
        self.assertEqual(self.raw(f"{base}/x"), f"GET /x {base}/x")
        self.assertEqual(self.raw(f"{SYSTEM}/services/web:80/proxy/x"), f"GET /x {SYSTEM}/services/web:80/proxy/x")
        self.assertIn('no endpoints available for service "web"',
                      self.raw(f"{SYSTEM}/services/web:other/proxy/x", code=1))
        self.assertIn('no service port 81 found for service "web"',
                      self.raw(f"{SYSTEM}/services/web:81/proxy/x", code=1))

    def test_through_kubectl_proxy(self):
        proxy = subprocess.Popen(["kubectl", "proxy", "--port=0"], stdout=subprocess.PIPE, text=True,
                                 env=self.kubectl.environment)
        with proxy:
            try:
                address = proxy.stdout.readline().split()[-1]
                base = f"{SYSTEM}/pods/web:{self.port}/proxy"
                for path in ("/x", ""):  # without a slash it is sent to where it has one
                    said = subprocess.run(["curl", "-sSL", f"http://{address}{base}{path}"], capture_output=True,
                                          text=True, check=True).stdout
                    self.assertEqual(said, f"GET {path or '/'} {base}{path or '/'}")
            finally:
                proxy.terminate()

    def test_methods_and_headers(self):
        base = f"{self.fake('methods')}:{self.peer.port}/proxy"
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
            with self.subTest(method):
                connection = self.api.connect()
                connection.request(method, f"{base}/x?y=1", b"hello" if method != "HEAD" else None,
                                   {"Authorization-Like": "kept", "Accept": "image/png"})
                answer = connection.getresponse()
                body = answer.read().decode()
                connection.close()
                self.assertEqual((answer.status, body), (200, "" if method == "HEAD" else f"{method} /x?y=1 hello"))
                self.assertEqual(answer.headers["X-Kind"], "pod")
                self.assertEqual(answer.headers["Access-Control-Allow-Origin"], None)
                _, _, headers, _ = self.peer.seen[-1]
                self.assertEqual(headers["accept"], "image/png")
                self.assertEqual(headers["x-forwarded-uri"], f"{base}/x")
                self.assertEqual(headers["host"], f"{self.api.host}:{self.api.port}")

    def test_a_redirect_and_an_answer_that_breaks_off(self):
        base = f"{self.fake('moves')}:{self.peer.port}/proxy"
        for path, code, place in ((f"{base}/moved", 302, f"{base}/elsewhere?a=1"), (base, 301, f"{base}/")):
            connection = self.api.connect()
            connection.request("GET", path)
            answer = connection.getresponse()
            self.assertEqual((answer.status, answer.headers["Location"]), (code, place))
            connection.close()
        connection = self.api.connect()
        connection.request("GET", f"{base}/cut")
        with self.assertRaises(Exception, msg="a cut answer must not look whole"):
            connection.getresponse().read()
        connection.close()

    def test_an_upgraded_connection(self):
        base = f"{self.fake('echo')}:{self.peer.port}/proxy"
        self.peer.left.clear()
        connection = self.api.connect()
        connection.connect()
        connection.sock.sendall(
            f"GET {base}/echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: twice\r\n\r\n".encode())
        seen = b""
        while b"\r\n\r\n" not in seen:
            seen += connection.sock.recv(4096)
        head, rest = seen.split(b"\r\n\r\n", 1)
        self.assertIn(b"101 ", head.split(b"\r\n")[0])
        self.assertIn(b"upgrade: twice", head.lower())
        connection.sock.sendall(b"ab")
        while len(rest) < 4:
            rest += connection.sock.recv(4096)
        self.assertEqual(rest, b"abab")
        connection.close()
        self.assertTrue(self.peer.left.wait(PATIENCE), "the pod hears of the end")

    def test_behind_tls(self):
        _, certificate, key = make_certificate(self.folder / "pod", "DNS:anybody")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        peer = Peer(own_address(), context)
        self.addCleanup(peer.close)
        path = self.fake("secure")
        self.assertEqual(self.raw(f"{SHOP}/pods/https:secure:{peer.port}/proxy/x"), "GET /x ")
        self.assertIn("error trying to reach service", self.raw(f"{path}:{peer.port}/proxy/x", code=1))

    def test_discovery(self):
        rows = {each["name"]: each for each in json.loads(self.raw("/api/v1"))["resources"]}
        for name, kind in (("pods/proxy", "PodProxyOptions"), ("services/proxy", "ServiceProxyOptions")):
            self.assertEqual((rows[name]["kind"], rows[name]["verbs"]),
                             (kind, ["create", "delete", "get", "patch", "update"]))


if __name__ == "__main__":
    unittest.main()
