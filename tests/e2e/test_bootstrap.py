"""A machine becomes a node by a bootstrap token, renews its certificate while it runs, and starts again with the one it
has.
"""
import base64
import datetime
import json
import re
import subprocess
import unittest

from harness import can_write_cgroups, needs, run, running, serving, wait_for, workspace

TOKEN = "abcdef.0123456789abcdef"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
GROUP = "system:bootstrappers:kubeadm:default-node-token"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def serial_of(kubeconfig):
    """Serial number and subject of the client certificate in the kubeconfig."""
    data = re.search(r"client-certificate-data: (\S+)", kubeconfig.read_text()).group(1)
    return subprocess.run(["openssl", "x509", "-noout", "-serial", "-subject"], input=base64.b64decode(data),
                          capture_output=True, check=True).stdout


@needs(can_write_cgroups(), "root and writable cgroups")
class Bootstrap(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.admin = self.folder / "kubeconfig"
        self.server = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port",
                                                "0",
            "--write-kubeconfig", self.admin, "--enable-bootstrap-token-auth"))
        self.api = serving(self.server, self.admin)
        self.kubeconfig, self.bootstrap = self.folder / "agent/kubeconfig", self.folder / "bootstrap"
        self.kubeconfig.parent.mkdir()

    def make_token(self):
        self.api.create(SECRETS,
                        {"metadata": {"name": f"bootstrap-token-{TOKEN.split('.')[0]}"},
                         "type": "bootstrap.kubernetes.io/token",
            "data": {"token-id": encoded(TOKEN.split(".")[0]), "token-secret": encoded(TOKEN.split(".")[1]),
                     "usage-bootstrap-authentication": encoded("true"), "auth-extra-groups": encoded(GROUP)}})

    def write_bootstrap(self):
        cluster = dict(re.findall(r"(server|certificate-authority-data): (\S+)", self.admin.read_text()))
        self.bootstrap.write_text(json.dumps({
            "current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        self.bootstrap.chmod(0o600)

    def agent(self):
        return running(self.folder, "agent", "--kubeconfig", self.kubeconfig, "--bootstrap-kubeconfig", self.bootstrap,
                       "--node-name", "fresh",
                       "--node-ip", "127.0.0.1", "--port", "0", "--node-memory", "256Mi", "--state-dir",
                       self.folder / "state")

    def test_a_machine_becomes_a_node_and_stays_one(self):
        self.make_token()
        self.write_bootstrap()
        with self.agent():
            wait_for("the node", lambda: "fresh" in self.api.nodes_ready())
        self.assertIn(b"CN = system:node:fresh", serial_of(self.kubeconfig))
        self.assertEqual(self.kubeconfig.stat().st_mode & 0o777, 0o600)
        self.assertNotIn(TOKEN, self.kubeconfig.read_text())
        asked = len(self.client_requests())
        self.api.delete(f"{SECRETS}/bootstrap-token-abcdef")
        since = datetime.datetime.now(datetime.timezone.utc)
        with self.agent():  # with what it has: the token is gone
            wait_for("a heartbeat", lambda: self.renewed(since))
        self.assertEqual(len(self.client_requests()), asked)

    def test_it_waits_for_its_token(self):
        self.write_bootstrap()
        with self.agent() as process:
            wait_for("a word about it", lambda: "no signed client certificate" in process.log.read_text())
            self.assertTrue(process.running())
            self.make_token()
            wait_for("the node", lambda: "fresh" in self.api.nodes_ready())

    def client_requests(self):
        return [each for each in self.api.get(CSRS)["items"]
                if each["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"]

    def renewed(self, since):
        lease = self.api.find("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/fresh")
        return lease and datetime.datetime.fromisoformat(lease["spec"]["renewTime"].replace("Z", "+00:00")) > since

    def test_a_wrong_file_is_one_line(self):
        self.bootstrap.write_text("clusters: 1\n")
        code, _, err = run("agent", "--kubeconfig", self.kubeconfig, "--bootstrap-kubeconfig", self.bootstrap)
        self.assertEqual((code, len(err.strip().splitlines())), (2, 1), err)
        self.assertIn(str(self.bootstrap), err)
        code, _, err = run("agent", "--bootstrap-kubeconfig", self.bootstrap)
        self.assertEqual(code, 2)
        self.assertIn("--kubeconfig", err)


if __name__ == "__main__":
    unittest.main()
