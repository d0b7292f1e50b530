"""Probes, hooks and the order of containers, as kubectl shows them, against `spillway up`."""
import http.server
import json
import shutil
import socketserver
import ssl
import subprocess
import threading
import unittest

from harness import can_write_cgroups, needs, one_node, pod, wait_for, workspace
from test_confined import can_confine

SLEEP = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]


class Answering(http.server.ThreadingHTTPServer):
    """Answers every request with a status that the test sets for its path; keeps what was asked. With `certificate`, a
    file of it and its key, by HTTPS."""

    def __init__(self, certificate=None):
        self.status = {}
        self.asked = []
        super().__init__(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class Plain(socketserver.ThreadingTCPServer):
    """Knows no TLS, and says so at once; keeps the first lines of other requests."""
    daemon_threads = True

    def __init__(self):
        self.asked = []
        super().__init__(("127.0.0.1", 0), PlainHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class PlainHandler(socketserver.BaseRequestHandler):
    def handle(self):
        heard = self.request.recv(65536)
        if heard.startswith(b"GET "):
            self.server.asked.append(heard.split(b"\r\n")[0].decode())
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        else:
            self.request.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("User-Agent")))
        self.send_response(self.server.status.get(self.path, 200))
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Probes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(folder))
        cls.kubectl = node.kubectl
        cls.server = Answering()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        certificate = folder / "server.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "1", "-subj", "/CN=nobody.example",
                        "-keyout", certificate, "-out", folder / "only.pem"], check=True, capture_output=True)
        certificate.write_bytes(certificate.read_bytes() + (folder / "only.pem").read_bytes())
        cls.secure = Answering(certificate)
        cls.addClassCleanup(cls.secure.server_close)
        cls.addClassCleanup(cls.secure.shutdown)

    def start(self, document):
        name = document["metadata"]["name"]
        self.kubectl.apply(document)
        self.addCleanup(lambda: self.kubectl("delete", "pod", name, "--ignore-not-found", "--force",
                                             "--grace-period=0"))
        return name

    def asks(self, path, **more):
        return {"httpGet": {"host": "127.0.0.1", "port": self.server.port, "path": path}, "periodSeconds": 1,
                "timeoutSeconds": 60, **more}

    def status(self, name, path):
        return self.kubectl("get", "pod", name, "-o", f"jsonpath={{{path}}}")

    def ready(self, name):
        return self.status(name, ".status.conditions[?(@.type=='Ready')].status")

    def events(self, name, reason):
        items = self.kubectl.get("events")["items"]
        return [event["message"] for event in items if event["involvedObject"]["name"] == name
                and event["reason"] == reason]

    def wait_for_event(self, name, reason, message):
        """Events and statuses go out beside each other: neither waits for the other."""
        wait_for(lambda: f"{reason}: {message}; there is {self.events(name, reason)}",
                 lambda: message in self.events(name, reason))

    def test_readiness_follows_the_probe(self):
        document = pod("web", SLEEP)
        document["spec"]["containers"][0]["readinessProbe"] = self.asks("/ready", failureThreshold=2)
        self.server.status["/ready"] = 503
        name = self.start(document)
        self.wait_for_event(name, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
        wait_for("its status", lambda: self.ready(name))
        self.assertEqual(self.ready(name), "False")
        self.server.status["/ready"] = 200
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")
        self.server.status["/ready"] = 500
        self.kubectl("wait", "--for=condition=Ready=false", f"pod/{name}")
        self.assertEqual(self.status(name, ".status.containerStatuses[0].restartCount"), "0")
        self.assertIn(("/ready", "kube-probe/1.36"), self.server.asked)

    def asks_securely(self, path, port=None, **more):
        return {"httpGet": {"scheme": "HTTPS", "host": "127.0.0.1", "port": port or self.secure.port, "path": path},
                "periodSeconds": 1, "timeoutSeconds": 60, **more}

    def test_https_accepts_every_certificate(self):
        document = pod("secure", SLEEP)
        document["spec"]["containers"][0]["readinessProbe"] = self.asks_securely("/safe", failureThreshold=1)
        self.secure.status["/safe"] = 503
        name = self.start(document)
        self.wait_for_event(name, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
        self.secure.status["/safe"] = 200
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")
        self.assertIn(("/safe", "kube-probe/1.36"), self.secure.asked)

    def test_https_where_http_is_spoken(self):
        with Plain() as server:
            self.addCleanup(server.shutdown)
            document = pod("plain", SLEEP, terminationGracePeriodSeconds=120)
            container = document["spec"]["containers"][0]
            container["readinessProbe"] = self.asks_securely("/plain", server.port, failureThreshold=1)
            container["lifecycle"] = {"postStart": {"httpGet": self.asks_securely("/fallen", server.port)["httpGet"]}}
            name = self.start(document)
            url = f"https://127.0.0.1:{server.port}/plain"
            self.wait_for_event(name, "Unhealthy",
                                f'Readiness probe failed: Get "{url}": http: server gave HTTP response to HTTPS client')
            fallback = (
                f"request to HTTPS lifecycle hook 127.0.0.1:{server.port} got HTTP response, retry with HTTP succeeded"
            )
            self.wait_for_event(name, "LifecycleHTTPFallback", fallback)
            self.assertEqual(self.events(name, "LifecycleHTTPFallback"), [fallback])
            self.assertEqual(server.asked, ["GET /fallen HTTP/1.1"])

    def test_health_without_a_server(self):
        document = pod("unserved", SLEEP)
        document["spec"]["containers"][0]["readinessProbe"] = {"grpc": {"port": 1}, "periodSeconds": 1,
                                                               "failureThreshold": 1}
        name = self.start(document)
        wait_for("an event", lambda: self.events(name, "Unhealthy"))
        self.assertRegex(
            self.events(name, "Unhealthy")[0],
            r'Readiness probe failed: timeout: failed to connect service ".*:1" within 1s: context deadline exceeded',
        )

    def test_liveness_restarts_the_container(self):
        document = pod("live", SLEEP, terminationGracePeriodSeconds=120)
        document["spec"]["containers"][0]["livenessProbe"] = self.asks("/live", failureThreshold=2)
        name = self.start(document)
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")
        self.server.status["/live"] = 500
        wait_for("a restart", lambda: self.status(name, ".status.containerStatuses[0].restartCount") not in ("", "0"))
        self.server.status["/live"] = 200
        self.wait_for_event(name, "Killing", "Container main failed liveness probe, will be restarted")
        self.wait_for_event(name, "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500")
        self.assertEqual(self.status(name, ".status.containerStatuses[0].lastState.terminated.exitCode"), "0")

    def test_a_connection_that_is_refused(self):
        document = pod("closed", SLEEP)
        document["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"host": "127.0.0.1", "port": 1},
                                                               "periodSeconds": 1, "timeoutSeconds": 60}
        name = self.start(document)
        self.wait_for_event(name, "Unhealthy",
                            "Readiness probe failed: dial tcp 127.0.0.1:1: connect: connection refused")

    def test_commands_run_inside(self):
        document = pod("inside", ["sh", "-c", "touch ready; " + SLEEP[2]])
        # The first one may come before the file: it waits.
        waits = ["sh", "-c", "until cat ready; do sleep 0.1; done"]
        document["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": waits}, "periodSeconds": 1,
                                                               "timeoutSeconds": 120, "failureThreshold": 1}
        document["spec"]["containers"][0]["lifecycle"] = {
            "postStart": {"exec": {"command": ["sh", "-c", "echo from the hook > hooked"]}}}
        name = self.start(document)
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")
        self.assertEqual(self.events(name, "Unhealthy"), [])

    def test_a_hook_that_fails(self):
        document = pod("unhooked", SLEEP)
        document["spec"]["containers"][0]["lifecycle"] = {
            "postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 3"]}}}
        name = self.start(document)
        self.wait_for_event(name, "FailedPostStartHook", "PostStartHook failed")
        self.wait_for_event(name, "Killing", "FailedPostStartHook")

    def test_last_words(self):
        document = pod("words", ["sh", "-c", "echo log; echo because > /dev/termination-log; exit 3"],
                       restartPolicy="Never")
        second = {"name": "second", "image": "none", "command": ["sh", "-c", "echo the log says why; exit 4"],
                  "terminationMessagePolicy": "FallbackToLogsOnError"}
        document["spec"]["containers"].append(second)
        name = self.start(document)
        self.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", f"pod/{name}")
        self.assertEqual(self.status(name, ".status.containerStatuses[?(@.name=='second')].state.terminated.message"),
                         "the log says why\n")
        if can_confine():
            self.assertEqual(self.status(name, ".status.containerStatuses[?(@.name=='main')].state.terminated.message"),
                             "because\n")

    def test_hooks_around_a_life(self):
        document = pod("hooked", SLEEP, terminationGracePeriodSeconds=120)
        document["spec"]["containers"][0]["lifecycle"] = {"postStart": {"httpGet": self.asks("/begun")["httpGet"]},
                                                          "preStop": {"httpGet": self.asks("/ending")["httpGet"]}}
        name = self.start(document)
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")
        self.assertIn(("/begun", "kube-lifecycle/1.36"), self.server.asked)
        self.kubectl("delete", "pod", name)
        self.assertIn(("/ending", "kube-lifecycle/1.36"), self.server.asked)

    def test_order_both_ways(self):
        says = "trap 'echo {0} ends >> $LOG; exit 0' TERM; echo {0} begins >> $LOG; {1}"
        waits = "while :; do sleep 0.05; done"
        document = pod("order", ["sh", "-c", says.format("main", waits)], terminationGracePeriodSeconds=120)
        spec = document["spec"]

        def container(name, rest, **more):
            return {"name": name, "image": "none", "command": ["sh", "-c", says.format(name, rest)], **more}

        spec["initContainers"] = [container("first", waits, restartPolicy="Always"),
                                  container("once", "echo once is over >> $LOG"),
                                  container("second", waits, restartPolicy="Always")]
        folder = self.enterContext(workspace())
        folder.chmod(0o777)
        (folder / "log").touch()
        (folder / "log").chmod(0o666)
        spec["volumes"] = [{"name": "log", "hostPath": {"path": str(folder)}}]
        for each in [*spec["initContainers"], *spec["containers"]]:
            each["env"] = [{"name": "LOG", "value": str(folder / "log")}]
            each["volumeMounts"] = [{"name": "log", "mountPath": str(folder)}]
        # A container counts as started before its program has come to its first line: what follows waits for that line.
        for each in [spec["initContainers"][0], spec["initContainers"][2], *spec["containers"]]:
            begun = f"until grep -q '^{each['name']} begins' {folder}/log; do sleep 0.1; done"
            each["startupProbe"] = {"exec": {"command": ["sh", "-c", begun]}, "periodSeconds": 1, "timeoutSeconds": 120}
        name = self.start(document)
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")
        self.kubectl("delete", "pod", name)
        self.assertEqual((folder / "log").read_text().splitlines(),
                         ["first begins", "once begins", "once is over", "second begins", "main begins", "main ends",
                          "second ends", "first ends"])

    def test_readiness_gates(self):
        document = pod("gated", SLEEP, readinessGates=[{"conditionType": "example.com/lb"}])
        name = self.start(document)
        self.kubectl("wait", "--for=condition=ContainersReady", f"pod/{name}")
        self.assertEqual(self.ready(name), "False")
        patch = {"status": {"conditions": [{"type": "example.com/lb", "status": "True"}]}}
        self.kubectl("patch", "pod", name, "--subresource=status", "-p", json.dumps(patch))
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")


if __name__ == "__main__":
    unittest.main()
