"""The API server's own certificates: metrics show their ends, and one that is about to end is replaced while the server
runs."""
import datetime
import http.client
import json
import re
import ssl
import subprocess
import unittest

from harness import Api, PATIENCE, running, serving, wait_for, workspace

KEPT = datetime.timedelta(days=30)  # a certificate that has less left is renewed
LEFT = datetime.timedelta(seconds=35)  # until that is so of the one that is planted


def openssl(*arguments, **more):
    return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, text=True, **more).stdout


def plant(pki, name, end):
    """Replaces NAME.crt by one that says the same, and ends then."""
    subject = openssl("x509", "-in", pki / f"{name}.crt", "-noout", "-subject", "-nameopt", "multiline")
    fields = dict(re.findall(r"^ +(\w+) += (.*)$", subject, re.M))
    self_said = openssl("x509", "-in", pki / f"{name}.crt", "-noout", "-ext", "subjectAltName")
    names = self_said.splitlines()[1].strip().replace("IP Address:", "IP:").replace(", ", ",")
    folder = pki.parent / "ca"
    folder.mkdir()
    (folder / "index").touch()
    (folder / "config").write_text(f"""
[ca]
default_ca = it
[it]
new_certs_dir = {folder}
database = {folder}/index
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = more
string_mask = utf8only
[any]
commonName = supplied
[more]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
authorityKeyIdentifier = keyid
subjectAltName = {names}
""")
    openssl("req", "-new", "-key", pki / f"{name}.key", "-subj", f"/CN={fields['commonName']}", "-utf8", "-out",
            folder / "request")
    openssl("ca", "-batch", "-notext", "-config", folder / "config", "-cert", pki / "ca.crt", "-keyfile",
            pki / "ca.key", "-in", folder / "request",
            "-out", folder / "made", "-startdate", "20200101000000Z", "-enddate", end.strftime("%Y%m%d%H%M%SZ"))
    (pki / f"{name}.crt").write_text((folder / "made").read_text())


def shown(api):
    """The certificate that a new connection sees."""
    return ssl.get_server_certificate((api.host, api.port))


def ends(api):
    """Seconds until each certificate ends, by its role."""
    return {role: float(left) for role,
            left in re.findall(r'^apiserver_own_certificate_expiration_seconds\{role="([^"]*)"\} (\S+)$',
                               api.get("/metrics"), re.M)}


def server(folder):
    (folder / "kubeconfig").unlink(missing_ok=True)
    return running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                   folder / "kubeconfig")


class Certificates(unittest.TestCase):
    def test_ends_are_reported_and_a_certificate_is_replaced_in_time(self):
        with workspace() as folder:
            pki = folder / "data/pki"
            with server(folder) as process:
                api = serving(process, folder / "kubeconfig")
                made = shown(api)
                left = ends(api)
                self.assertEqual(sorted(left),
                                 ["administrator", "authority", "front-proxy-authority", "front-proxy-client",
                                  "kubelet-client",
                                                "kubelet-serving-authority", "serving"])
                year = datetime.timedelta(days=365).total_seconds()
                for role in ("administrator", "front-proxy-client", "kubelet-client", "serving"):
                    self.assertAlmostEqual(left[role], year, delta=120)
                for role in ("authority", "front-proxy-authority", "kubelet-serving-authority"):
                    self.assertAlmostEqual(left[role], 10 * year, delta=120)
                self.assertRegex(api.get("/metrics"),
                                 r'apiserver_client_certificate_expiration_seconds_bucket\{le="\+Inf"\} [1-9]')
                self.assertIn("[+]certificates ok\n", api.get("/readyz?verbose"))
                self.assertEqual(api.get("/readyz/certificates"), "ok")
            due = datetime.datetime.now(datetime.timezone.utc) + LEFT
            plant(pki, "apiserver", due + KEPT)
            planted = (pki / "apiserver.crt").read_text()
            with server(folder) as process:
                api = serving(process, folder / "kubeconfig")
                self.assertNotEqual(planted.strip(), made.strip())
                self.assertEqual(shown(api).strip(), planted.strip(),
                                 "it was renewed at the start: it has to last longer")
                self.assertLess(ends(api)["serving"], (KEPT + LEFT).total_seconds())
                wait_for("another certificate", lambda: shown(api).strip() != planted.strip(), interval=0.2)
                self.assertGreaterEqual(datetime.datetime.now(datetime.timezone.utc),
                                        due - datetime.timedelta(seconds=1))
                self.assertEqual(shown(api).strip(), (pki / "apiserver.crt").read_text().strip())
                api.get("/version")  # on the connection of before
                other = Api(folder / "kubeconfig")
                other.get("/version")
                other.close()
                wait_for("the new end", lambda: ends(api)["serving"] > KEPT.total_seconds() * 2)
                wait_for("the word about it", lambda: "certificates are renewed" in process.log.read_text())


class Brought:
    """A foreign authority, and certificates that it signs."""

    def __init__(self, folder, name):
        self.folder, self.certificate, self.key = folder, folder / f"{name}.crt", folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                "-out", self.certificate,
                "-subj", f"/CN={name}", "-days", "2")
        self.key.chmod(0o600)

    def sign(self, name, subject, extensions, days=2):
        request, certificate, key = (self.folder / f"{name}.{suffix}" for suffix in ("csr", "crt", "key"))
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out",
                request, "-subj", subject)
        key.chmod(0o600)
        (self.folder / "extensions").write_text(extensions)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-out",
                certificate, "-days", str(days),
                "-extfile", self.folder / "extensions")
        return certificate, key


SERVER = "subjectAltName = IP:127.0.0.1,DNS:localhost\nextendedKeyUsage = serverAuth\n"
CLIENT = "extendedKeyUsage = clientAuth\n"


def ask(api, client, authority, path):
    """The status and the body that a client with this certificate gets from a server that `authority` has signed."""
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(*client)
    connection = http.client.HTTPSConnection(api.host, api.port, context=context, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class CertificatesOfOthers(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.own = self.folder / "brought"
        self.own.mkdir()
        self.authority = Brought(self.own, "authority")
        self.used, self.used_key = self.own / "used.crt", self.own / "used.key"
        self.use(self.authority.sign("server", "/CN=api", SERVER))

    def use(self, pair):
        for source, target in zip(pair, (self.used, self.used_key), strict=True):
            temporary = target.with_suffix(".new")
            temporary.write_text(source.read_text())
            temporary.chmod(0o600)
            temporary.rename(target)

    def start(self, **flags):
        wanted = {"--client-ca-file": self.authority.certificate, "--tls-cert-file": self.used,
                  "--tls-private-key-file": self.used_key} | flags
        arguments = [text for pair in wanted.items() for text in pair if pair[1] is not None]
        return running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0",
                       "--write-kubeconfig", self.folder / "kubeconfig", *arguments)

    def refused(self, **flags):
        """The last output of a server that does not start."""
        with self.start(**flags) as process:
            process.child.wait(timeout=PATIENCE)
            self.assertNotEqual(process.child.returncode, 0)
            return process.tail()

    def test_clients_and_the_server_show_what_was_brought(self):
        admin = self.authority.sign("admin", "/O=system:masters/CN=brought", CLIENT)
        user = self.authority.sign("user", "/CN=somebody", CLIENT)
        stranger = Brought(self.own, "stranger").sign("them", "/O=system:masters/CN=them", CLIENT)
        with self.start() as process:
            api = serving(process, self.folder / "kubeconfig")
            self.assertEqual(shown(api).split(), self.used.read_text().split())
            believed = self.authority.certificate
            there = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
            wait_for("who is believed", lambda: ask(api, admin, believed, there)[0] == 200)
            told = json.loads(ask(api, admin, believed, there)[1])["data"]["client-ca-file"]
            for certificate in (believed, self.folder / "data/pki/ca.crt"):
                self.assertIn(certificate.read_text().strip(), told)
            self.assertEqual(ask(api, admin, believed, "/api/v1/secrets")[0], 200)
            code, text = ask(api, user, believed, "/api/v1/secrets")
            self.assertEqual(code, 403)
            self.assertIn("somebody", text)
            self.assertEqual(ask(api, stranger, believed, "/api/v1/secrets")[0], 401)
            self.assertEqual(ask(api, self.administrator(), believed, "/api/v1/secrets")[0], 200,
                             "our own authority stays")
            # A pair that does not belong together is logged, and not used; one that does is, without a restart.
            before = shown(api)
            other = self.authority.sign("other", "/CN=api", SERVER)
            self.use((other[0], user[1]))
            wait_for("the word about it", lambda: "does not belong to the certificate" in process.log.read_text())
            self.assertEqual(shown(api), before)
            self.use(other)
            wait_for("the new certificate", lambda: shown(api).split() == other[0].read_text().split())
            newcomers = Brought(self.own, "newcomers")
            newcomer = newcomers.sign("new", "/O=system:masters/CN=new", CLIENT)
            self.authority.certificate.write_text(believed.read_text() + newcomers.certificate.read_text())
            wait_for("the new authority", lambda: ask(api, newcomer, believed, "/api/v1/secrets")[0] == 200)

    def administrator(self):
        return self.folder / "data/pki/admin.crt", self.folder / "data/pki/admin.key"

    def test_what_cannot_be_used_ends_the_start(self):
        other = self.authority.sign("other", "/CN=api", SERVER)
        self.assertIn("does not belong to the certificate", self.refused(**{"--tls-private-key-file": other[1]}))
        self.assertIn("--tls-private-key-file", self.refused(**{"--tls-private-key-file": None}))
        self.assertIn("--tls-cert-file", self.refused(**{"--tls-cert-file": None}))
        self.assertIn("does not exist", self.refused(**{"--tls-cert-file": self.own / "none"}))
        (self.own / "text").write_text("text")
        self.assertIn(str(self.own / "text"), self.refused(**{"--client-ca-file": self.own / "text"}))
        ended = self.authority.sign("ended", "/CN=api", SERVER, days=0)
        wait_for("its end", lambda: subprocess.run(["openssl", "x509", "-in", ended[0], "-noout", "-checkend", "0"],
                                                   capture_output=True, check=False).returncode)
        self.assertIn("the certificate ended at",
                      self.refused(**{"--tls-cert-file": ended[0], "--tls-private-key-file": ended[1]}))
        self.used_key.chmod(0o644)
        self.assertIn(str(self.used_key), self.refused())


if __name__ == "__main__":
    unittest.main()
