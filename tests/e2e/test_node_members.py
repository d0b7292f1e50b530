"""Members of a KubeletConfiguration on a node's own servers and machine: address, serving certificate, TLS, debugging
handlers, the port without authentication, static pods of an address, kernel parameters."""
import contextlib
import http.client
import json
import pathlib
import socket
import ssl
import subprocess
import unittest

from harness import can_write_cgroups, needs, pod, run, running, serving, wait_for, workspace
from manifest_server import ManifestServer
from own_etcd import free_ports
from test_node_server import Node, code_of

CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
enableDebuggingHandlers: false
tlsCertFile: {certificate}
tlsPrivateKeyFile: {key}
address: 127.0.0.1
"""
WANTED = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
          "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"}


HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def handshake(port, version=None, suites=None):
    """(version, suite) of a connection that offers no more than these; nothing if the server refuses it."""
    context = ssl._create_unverified_context()
    if version:
        context.maximum_version = version
    if suites:
        context.set_ciphers(suites)
    with socket.create_connection(("127.0.0.1", port)) as plain, contextlib.suppress(ssl.SSLError, ConnectionError):
        with context.wrap_socket(plain) as secured:
            return secured.version(), secured.cipher()[0]
    return None


def read_only(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()


def static_pod(name):
    return {"apiVersion": "v1", "kind": "Pod", **pod(name, ["sh", "-c", "exec tail -f /dev/null"])}


def make_certificate(folder):
    key, certificate = folder / "own.key", folder / "own.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2",
                    "-subj", "/CN=node-of-the-test", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                   capture_output=True)
    return certificate, key


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class NodeMembers(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.kubeconfig = self.folder / "kubeconfig"
        server = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0",
                                           "--write-kubeconfig", self.kubeconfig))
        self.api = serving(server, self.kubeconfig)

    def agent(self, *more):
        return ("agent", "--kubeconfig", self.kubeconfig, "--node-name", "n", "--node-ip", "127.0.0.1", "--port", "0",
                "--node-memory", "256Mi", "--state-dir", self.folder / "state", *more)

    def test_the_server_has_the_given_certificate_and_no_debugging_handlers(self):
        certificate, key = make_certificate(self.folder)
        config = self.folder / "kubelet.yaml"
        config.write_text(CONFIG.format(certificate=certificate, key=key))
        self.enterContext(running(self.folder, *self.agent("--config", config)))
        wait_for("the node", lambda: self.api.nodes_ready() == ["n"])
        port = self.api.get("/api/v1/nodes/n")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        self.assertEqual(ssl.get_server_certificate(("127.0.0.1", port)).split(), certificate.read_text().split())
        node = Node(self.kubeconfig, port, "certificate")
        self.assertEqual(code_of(node, "/exec/default/web/c?command=id&output=1"),
                         (405, "Debug endpoints are disabled."))
        for path in ("/containerLogs/default/web/c", "/runningpods/", "/logs/"):
            self.assertEqual(code_of(node, path), (405, "Debug endpoints are disabled."), path)
        self.assertEqual(code_of(node, "/metrics")[0], 200)

    def started(self, *members):
        """The port of the node's own server, with an agent of these members."""
        config = self.folder / "kubelet.yaml"
        config.write_text(HEADER + "".join(f"{member}\n" for member in members))
        self.log = self.enterContext(running(self.folder, *self.agent("--config", config))).log
        wait_for("the node", lambda: self.api.nodes_ready() == ["n"])
        return self.api.get("/api/v1/nodes/n")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]

    def test_the_suites_of_tls(self):
        certificate, key = make_certificate(self.folder)  # a key of RSA
        port = self.started("tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]", f"tlsCertFile: {certificate}",
                            f"tlsPrivateKeyFile: {key}")
        self.assertEqual(handshake(port, ssl.TLSVersion.TLSv1_2), ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384"))
        self.assertIsNone(handshake(port, ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES128-GCM-SHA256"))
        self.assertEqual(handshake(port)[0], "TLSv1.3")

    def test_the_oldest_version_of_tls(self):
        port = self.started("tlsMinVersion: VersionTLS13")
        self.assertEqual(handshake(port)[0], "TLSv1.3")
        self.assertIsNone(handshake(port, ssl.TLSVersion.TLSv1_2))
        # The version holds for the certificate that the API server signs, too.
        wait_for("the signed certificate", lambda: self.is_signed_by_the_cluster(port))
        self.assertIsNone(handshake(port, ssl.TLSVersion.TLSv1_2))

    def is_signed_by_the_cluster(self, port):
        context = ssl.create_default_context(cafile=str(self.folder / "data/pki/kubelet-serving/ca.crt"))
        context.check_hostname = False
        with socket.create_connection(("127.0.0.1", port)) as plain, contextlib.suppress(ssl.SSLError):
            with context.wrap_socket(plain):
                return True
        return False

    def test_a_new_certificate_is_used_and_a_broken_one_is_not(self):
        certificate, key = make_certificate(self.folder)
        port = self.started(f"tlsCertFile: {certificate}", f"tlsPrivateKeyFile: {key}")
        served = lambda: ssl.get_server_certificate(("127.0.0.1", port)).split()
        first = certificate.read_text()
        self.assertEqual(served(), first.split())
        certificate.write_text("no certificate")
        wait_for("the refusal", lambda: "is not used" in self.log.read_text())
        self.assertEqual(served(), first.split())
        other = self.folder / "other"
        other.mkdir()
        for made, own in zip(make_certificate(other), (certificate, key), strict=True):
            made.replace(own)
        wait_for("the new certificate", lambda: served() == certificate.read_text().split())
        self.assertNotEqual(certificate.read_text(), first)

    def test_a_new_authority_of_clients_is_used(self):
        own, _ = make_certificate(self.folder)  # signs nothing
        authority = self.folder / "clients.crt"
        authority.write_text(own.read_text())
        port = self.started(f"authentication: {{x509: {{clientCAFile: {authority}}}}}")

        def code():
            node = Node(self.kubeconfig, port, "certificate")
            with contextlib.closing(node):
                return code_of(node, "/pods")[0]
        self.assertEqual(code(), 401)
        authority.write_text("")
        wait_for("the refusal", lambda: "is not used" in self.log.read_text())
        self.assertEqual(code(), 401)
        authority.write_text((self.folder / "data/pki/ca.crt").read_text())
        wait_for("the new authority", lambda: code() == 200)

    def test_logs_of_the_node_can_be_turned_off(self):
        node = Node(self.kubeconfig, self.started("enableSystemLogHandler: false"), "certificate")
        self.addCleanup(node.close)
        for path in ("/logs/", "/logs/messages", "/logs/?query=ssh"):
            self.assertEqual(code_of(node, path), (405, "logs endpoint is disabled."), path)

    def test_the_port_that_answers_everyone(self):
        read_only_port = free_ports(1)[0]
        self.started(f"readOnlyPort: {read_only_port}")
        self.assertEqual(read_only(read_only_port, "/healthz"), (200, "ok"))
        self.assertEqual(json.loads(read_only(read_only_port, "/pods")[1])["kind"], "PodList")
        self.assertEqual(json.loads(read_only(read_only_port, "/stats/summary")[1])["node"]["nodeName"], "n")
        for path in ("/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes", "/metrics/slis"):
            self.assertEqual(read_only(read_only_port, path)[0], 200, path)
        for path in ("/exec/default/web/c", "/attach/default/web/c", "/portForward/default/web",
                     "/containerLogs/default/web/c", "/logs", "/logs/messages", "/runningpods/"):
            self.assertEqual(read_only(read_only_port, path), (405, "Debug endpoints are disabled."), path)
        for path in ("/configz", "/debug/spillway", "/debug/spillway/decisions", "/debug/spillway/recording",
                     "/nothing"):
            self.assertEqual(read_only(read_only_port, path)[0], 404, path)
        self.assertEqual(read_only(read_only_port, "/pods", "POST")[0], 405)
        self.assertIn("everyone who reaches it reads pods", self.log.read_text())

    def test_static_pods_of_an_address(self):
        server = self.enterContext(ManifestServer())
        server.give(json.dumps(static_pod("first")))
        port = self.started(f"staticPodURL: {server.url('/pods?node=n')}",
                            'staticPodURLHeader: {"X-Token": ["a-secret"]}', "httpCheckFrequency: 1s")
        phase = lambda name: self.api.pod_phases().get(name)
        wait_for("the pod", lambda: phase("first-n") == "Running")
        path, headers = server.requests[0]
        self.assertEqual((path, {name.lower(): value for name, value in headers.items()}["x-token"]),
                         ("/pods?node=n", "a-secret"))
        self.assertEqual(self.api.get("/api/v1/namespaces/default/pods/first-n")["metadata"]["annotations"][
            "kubernetes.io/config.source"], "http")
        configuration = Node(self.kubeconfig, port, "certificate").get("/configz")
        self.assertIn("<masked>", json.dumps(configuration))
        self.assertNotIn("a-secret", json.dumps(configuration) + self.log.read_text())
        server.give("a server in trouble", status=500)
        wait_for("the problem", lambda: f"{server.url('/pods?node=n')}: 500" in self.log.read_text())
        self.assertEqual(phase("first-n"), "Running")
        server.give(json.dumps({"apiVersion": "v1", "kind": "PodList",
                                "items": [static_pod("first"), static_pod("second")]}))
        wait_for("the second pod", lambda: phase("second-n") == "Running")
        server.give(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [static_pod("second")]}))
        wait_for("the end of the first pod", lambda: self.api.pod_phases() == {"second-n": "Running"})
        server.give("")
        wait_for("the end of the second pod", lambda: self.api.pod_phases() == {})

    def test_values_that_are_none_end_the_start(self):
        config = self.folder / "kubelet.yaml"
        for member, says in (("tlsMinVersion: TLS1.3", 'unknown tls version "TLS1.3"'),
                             ("tlsCipherSuites: [AES]", "Cipher suite AES not supported or doesn't exist"),
                             ("readOnlyPort: 70000",
                              "readOnlyPort (--read-only-port) 70000 must be between 0 and 65535, inclusive"),
                             ("staticPodURL: /etc/pods",
                              "staticPodURL: expected http://HOST/PATH or https://HOST/PATH"),
                             ("eventRecordQPS: -1", "eventRecordQPS (--event-qps) -1 must not be a negative number"),
                             ("imageServiceEndpoint: tcp://1.2.3.4:5",
                              'imageServiceEndpoint: expected unix:///PATH of a socket, got "tcp://1.2.3.4:5"')):
            config.write_text(HEADER + member + "\n")
            code, _, error = run(*self.agent("--config", config))
            self.assertEqual(code, 2, error)
            self.assertIn(says, error)

    def test_a_machine_that_is_not_as_demanded_is_refused(self):
        config = self.folder / "kubelet.yaml"
        config.write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nprotectKernelDefaults: true\n")
        if all((pathlib.Path("/proc/sys") / name).read_text().strip() == value for name, value in WANTED.items()):
            return  # this machine is as demanded
        code, _, error = run(*self.agent("--config", config))
        self.assertNotEqual(code, 0)
        self.assertRegex(error, r"protectKernelDefaults is true, and \S+ is \S+: set it to \d+ \(sysctl -w ")


if __name__ == "__main__":
    unittest.main()
