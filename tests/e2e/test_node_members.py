"""Members of a KubeletConfiguration on a node's own server and machine: address, serving certificate, debugging handlers, kernel parameters."""
import pathlib
import ssl
import subprocess
import unittest

from harness import can_write_cgroups, needs, run, running, serving, wait_for, workspace
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


def make_certificate(folder):
    key, certificate = folder / "own.key", folder / "own.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                    "-subj", "/CN=node-of-the-test", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class NodeMembers(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.kubeconfig = self.folder / "kubeconfig"
        server = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig", self.kubeconfig))
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
        self.assertEqual(code_of(node, "/exec/default/web/c?command=id&output=1"), (405, "Debug endpoints are disabled."))
        self.assertEqual(code_of(node, "/containerLogs/default/web/c"), (405, "Debug endpoints are disabled."))
        self.assertEqual(code_of(node, "/metrics")[0], 200)

    def test_a_machine_that_is_not_as_demanded_is_refused(self):
        config = self.folder / "kubelet.yaml"
        config.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nprotectKernelDefaults: true\n")
        if all((pathlib.Path("/proc/sys") / name).read_text().strip() == value for name, value in WANTED.items()):
            return  # this machine is as demanded
        code, _, error = run(*self.agent("--config", config))
        self.assertNotEqual(code, 0)
        self.assertRegex(error, r"protectKernelDefaults is true, and \S+ is \S+: set it to \d+ \(sysctl -w ")


if __name__ == "__main__":
    unittest.main()
