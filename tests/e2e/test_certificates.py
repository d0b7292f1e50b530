"""The API server's own certificates: their ends are told, and one that is about to end is replaced while the server runs."""
import datetime
import re
import ssl
import subprocess
import unittest

from harness import Api, running, serving, wait_for, workspace

KEPT = datetime.timedelta(days=30)  # a certificate that has less left is renewed
LEFT = datetime.timedelta(seconds=20)  # until that is so of the one that is planted


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
    openssl("req", "-new", "-key", pki / f"{name}.key", "-subj", f"/CN={fields['commonName']}", "-utf8", "-out", folder / "request")
    openssl("ca", "-batch", "-notext", "-config", folder / "config", "-cert", pki / "ca.crt", "-keyfile", pki / "ca.key", "-in", folder / "request",
            "-out", folder / "made", "-startdate", "20200101000000Z", "-enddate", end.strftime("%Y%m%d%H%M%SZ"))
    (pki / f"{name}.crt").write_text((folder / "made").read_text())


def shown(api):
    """The certificate that a new connection sees."""
    return ssl.get_server_certificate((api.host, api.port))


def ends(api):
    """Seconds until each certificate ends, by its role."""
    return {role: float(left) for role, left in re.findall(r'^apiserver_own_certificate_expiration_seconds\{role="([^"]*)"\} (\S+)$', api.get("/metrics"), re.M)}


def server(folder):
    (folder / "kubeconfig").unlink(missing_ok=True)
    return running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig", folder / "kubeconfig")


class Certificates(unittest.TestCase):
    def test_ends_are_told_and_a_certificate_is_replaced_in_time(self):
        with workspace() as folder:
            pki = folder / "data/pki"
            with server(folder) as process:
                api = serving(process, folder / "kubeconfig")
                made = shown(api)
                left = ends(api)
                self.assertEqual(sorted(left), ["administrator", "authority", "kubelet-client", "kubelet-serving-authority", "serving"])
                year = datetime.timedelta(days=365).total_seconds()
                for role in ("administrator", "kubelet-client", "serving"):
                    self.assertAlmostEqual(left[role], year, delta=120)
                for role in ("authority", "kubelet-serving-authority"):
                    self.assertAlmostEqual(left[role], 10 * year, delta=120)
                self.assertRegex(api.get("/metrics"), r'apiserver_client_certificate_expiration_seconds_bucket\{le="\+Inf"\} [1-9]')
                self.assertIn("[+]certificates ok\n", api.get("/readyz?verbose"))
                self.assertEqual(api.get("/readyz/certificates"), "ok")
            due = datetime.datetime.now(datetime.timezone.utc) + LEFT
            plant(pki, "apiserver", due + KEPT)
            planted = (pki / "apiserver.crt").read_text()
            with server(folder) as process:
                api = serving(process, folder / "kubeconfig")
                self.assertNotEqual(planted.strip(), made.strip())
                self.assertEqual(shown(api).strip(), planted.strip(), "it was renewed at the start: it has to last longer")
                self.assertLess(ends(api)["serving"], (KEPT + LEFT).total_seconds())
                wait_for("another certificate", lambda: shown(api).strip() != planted.strip(), timeout=90, interval=0.2)
                self.assertGreaterEqual(datetime.datetime.now(datetime.timezone.utc), due - datetime.timedelta(seconds=1))
                self.assertEqual(shown(api).strip(), (pki / "apiserver.crt").read_text().strip())
                api.get("/version")  # on the connection of before
                other = Api(folder / "kubeconfig")
                other.get("/version")
                other.close()
                wait_for("the new end", lambda: ends(api)["serving"] > KEPT.total_seconds() * 2)
                self.assertIn("certificates are renewed", process.log.read_text())


if __name__ == "__main__":
    unittest.main()
