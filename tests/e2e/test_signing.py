"""Certificate signing requests as users, approvers and signers handle them, against `spillway apiserver`."""
import base64
import re
import shutil
import subprocess
import unittest

from harness import account_kubeconfig, ApiError, Kubectl, needs, running, serving, wait_for, workspace

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def field(number, value):
    """A protobuf field of bytes; a string counts as its bytes."""
    data = value.encode() if isinstance(value, str) else value
    size, length = b"", len(data)
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


def protobuf(metadata, spec, status=b""):
    """A CertificateSigningRequest as stock components send it."""
    kind = field(1, "certificates.k8s.io/v1") + field(2, "CertificateSigningRequest")
    return b"k8s\0" + field(1, kind) + field(2, field(1, metadata) + field(2, spec) + field(3, status))


@needs(shutil.which("kubectl") and shutil.which("openssl"), "needs kubectl and openssl")
class Signing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        kubeconfig = cls.folder / "kubeconfig"
        process = cls.enterClassContext(
            running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port", "0", "--write-kubeconfig",
                    kubeconfig))
        cls.api, cls.kubectl = serving(process, kubeconfig), Kubectl(kubeconfig)
        cls.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "asker"}})
        cls.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "asker"}, "rules": [
            {"apiGroups": ["certificates.k8s.io"], "verbs": ["*"],
             "resources": ["certificatesigningrequests", "certificatesigningrequests/approval",
                           "certificatesigningrequests/status"]}]})
        cls.api.create(f"{RBAC}/clusterrolebindings", {
            "metadata": {"name": "asker"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "asker"},
            "subjects": [{"kind": "ServiceAccount", "name": "asker", "namespace": "default"}]})
        cls.asker = Kubectl(account_kubeconfig(cls.api, kubeconfig, "asker", "default"))

    def request(self, name, subject, signer="kubernetes.io/kube-apiserver-client", **spec):
        """A CertificateSigningRequest with a key of its own in `folder`/NAME.key."""
        key, request = self.folder / f"{name}.key", self.folder / f"{name}.csr"
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                "-subj", subject, "-out", request)
        return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
                "spec": {"request": base64.b64encode(request.read_bytes()).decode(), "signerName": signer,
                         "usages": ["client auth", "digital signature"], **spec}}

    def row(self, name):
        header, row = self.kubectl("get", "csr", name).splitlines()
        self.assertEqual(header.split(), ["NAME", "AGE", "SIGNERNAME", "REQUESTOR", "REQUESTEDDURATION", "CONDITION"])
        return row.split()

    def test_a_request_is_approved_and_denied(self):
        for name, decision in (("yes", "Approved,Issued"), ("no", "Denied")):
            self.kubectl.apply(self.request(name, "/O=dev/CN=ann", expirationSeconds=86400))
            self.assertEqual(self.row(name)[2:],
                             ["kubernetes.io/kube-apiserver-client", "kubernetes-admin", "24h", "Pending"])
            self.kubectl("certificate", "approve" if name == "yes" else "deny", name)
            wait_for(decision, lambda name=name, decision=decision: self.row(name)[5] == decision)
            condition = self.api.get(f"{REQUESTS}/{name}")["status"]["conditions"][0]
            self.assertRegex(condition["lastTransitionTime"], r"^20\d\d-")
            self.assertRegex(condition["lastUpdateTime"], r"^20\d\d-")
        # A decision stays.
        self.assertIn("already Approved", self.kubectl("certificate", "deny", "yes", code=1))

    def test_the_requestor_cannot_be_forged(self):
        document = self.request("forged", "/O=system:nodes/CN=system:node:k1",
                                "kubernetes.io/kube-apiserver-client-kubelet",
                                username="system:node:k1", groups=["system:nodes", "system:masters"], uid="0",
                                extra={"a": ["b"]})
        self.asker.apply(document)
        spec = self.api.get(f"{REQUESTS}/forged")["spec"]
        self.assertEqual(spec["username"], "system:serviceaccount:default:asker")
        self.assertNotIn("system:nodes", spec["groups"])
        self.assertNotIn("system:masters", spec["groups"])
        self.assertNotIn("a", spec.get("extra", {}))

    def test_a_signer_has_its_approvers(self):
        self.kubectl.apply(self.request("held", "/CN=ann"))
        refused = self.asker("certificate", "approve", "held", code=1)
        self.assertIn('user not permitted to approve requests with signerName "kubernetes.io/kube-apiserver-client"',
                      refused)
        self.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "approver"}, "rules": [
            {"apiGroups": ["certificates.k8s.io"], "verbs": ["approve"], "resources": ["signers"],
             "resourceNames": ["kubernetes.io/*"]}]})
        self.kubectl("create", "clusterrolebinding", "approver", "--clusterrole=approver",
                     "--serviceaccount=default:asker")
        self.asker("certificate", "approve", "held")
        wait_for("a certificate", lambda: self.row("held")[5] == "Approved,Issued")

    def test_who_is_approved_gets_in(self):
        self.kubectl.apply(self.request("bob", "/O=dev/CN=bob"))
        self.kubectl("certificate", "approve", "bob")
        wait_for("a certificate", lambda: self.row("bob")[5] == "Approved,Issued")
        certificate = self.folder / "bob.crt"
        certificate.write_bytes(base64.b64decode(self.api.get(f"{REQUESTS}/bob")["status"]["certificate"]))
        self.kubectl("config", "set-credentials", "bob", f"--client-certificate={certificate}",
                     f"--client-key={self.folder / 'bob.key'}")
        known = self.kubectl("auth", "whoami", "--user=bob")
        self.assertRegex(known, r"Username\s+bob\b")
        self.assertIn("dev", known)
        refused = self.kubectl("get", "secrets", "--user=bob", code=1)
        self.assertIn('User "bob" cannot list resource "secrets"', refused)

    def test_what_may_not_be_signed_fails(self):
        document = self.request("both", "/CN=ann")
        document["spec"]["usages"] = ["client auth", "server auth"]
        self.kubectl.apply(document)
        self.kubectl("certificate", "approve", "both")
        wait_for("the refusal", lambda: self.row("both")[5] == "Approved,Failed")
        failed = self.api.get(f"{REQUESTS}/both")["status"]["conditions"][1]
        self.assertEqual((failed["reason"], failed["message"]),
                         ("SignerValidationFailure", "invalid usage for client certificate: server auth"))

    def test_a_certificate_is_issued(self):
        self.kubectl.apply(self.request("issued", "/CN=ann", "example.com/own"))
        self.kubectl("certificate", "approve", "issued")
        certificate = self.folder / "issued.crt"
        openssl("req", "-x509", "-key", self.folder / "issued.key", "-subj", "/CN=ann", "-out", certificate)
        status = {"status": {"certificate": base64.b64encode(certificate.read_bytes()).decode()}}
        with self.assertRaisesRegex(ApiError, "at least one CERTIFICATE PEM block"):
            self.api.patch(f"{REQUESTS}/issued/status", {"status": {"certificate": "eA=="}})
        self.api.patch(f"{REQUESTS}/issued/status", status)
        self.assertEqual(self.row("issued")[5], "Approved,Issued")

    def test_a_stock_controller_speaks_protobuf(self):
        def send(method, path, body):
            return self.api.request(method, path, body, "application/vnd.kubernetes.protobuf")
        document = self.request("pb", "/O=system:nodes/CN=system:node:k1",
                                "kubernetes.io/kube-apiserver-client")["spec"]
        spec = (field(1, base64.b64decode(document["request"])) + field(2, "system:node:k1")
                + field(4, "system:masters")
                + field(5, "client auth") + field(5, "digital signature") + field(7, document["signerName"]))
        send("POST", REQUESTS, protobuf(field(1, "pb"), spec))
        stored = self.api.get(f"{REQUESTS}/pb")
        self.assertEqual(stored["spec"]["username"], "kubernetes-admin")
        self.assertEqual(stored["spec"]["request"], document["request"])
        condition = field(1, "Approved") + field(2, "AutoApproved") + field(3,
                                                                            "m") + field(4, b"") + field(
                                                                                5, b"") + field(6, "True")
        metadata = field(1, "pb") + field(5, stored["metadata"]["uid"]) + field(6,
                                                                                stored["metadata"]["resourceVersion"])
        send("PUT", f"{REQUESTS}/pb/approval", protobuf(metadata, spec, field(1, condition)))
        approved = self.api.get(f"{REQUESTS}/pb")["status"]["conditions"][0]
        self.assertRegex(approved.pop("lastUpdateTime"), r"^20\d\d-")
        self.assertRegex(approved.pop("lastTransitionTime"), r"^20\d\d-")
        self.assertEqual(approved, {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": "m"})

    def test_forbidden_requests(self):
        document = self.request("master", "/O=system:masters/CN=ann")
        with self.assertRaisesRegex(
            ApiError, "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
        ):
            self.api.create(REQUESTS, document)
        broken = self.request("broken", "/CN=ann")
        pem = base64.b64decode(broken["spec"]["request"]).decode()
        der = bytearray(base64.b64decode("".join(re.findall(r"^[^-].*$", pem, re.M))))
        der[-1] ^= 1
        pem = "-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(
            bytes(der)).decode() + "-----END CERTIFICATE REQUEST-----\n"
        broken["spec"]["request"] = base64.b64encode(pem.encode()).decode()
        with self.assertRaisesRegex(ApiError, "not signed with the key that it names"):
            self.api.create(REQUESTS, broken)


if __name__ == "__main__":
    unittest.main()
