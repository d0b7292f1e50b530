"""Certificates of any kind, made with `openssl`: by the cluster's own authority, as a thief of its key could, or by a
foreign one."""
import datetime
import itertools
import pathlib
import ssl
import subprocess

CONFIG = """
[ca]
default_ca = authority
[authority]
dir = {folder}
database = $dir/index.txt
new_certs_dir = $dir
default_md = sha256
policy = any
unique_subject = no
rand_serial = yes
[any]
localityName = optional
organizationName = optional
organizationalUnitName = optional
commonName = optional
emailAddress = optional
"""
CLIENT = "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\n"
SERVER = CLIENT.replace("clientAuth", "serverAuth")
AUTHORITY = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign,digitalSignature\n"


def openssl(*arguments, given=None):
    done = subprocess.run(["openssl", *map(str, arguments)], input=given, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, f"openssl {' '.join(map(str, arguments))}: {done.stderr.decode(errors='replace')}"
    return done.stdout


def days(count):
    """A time `count` days from now, as openssl takes it."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=count)).strftime("%Y%m%d%H%M%SZ")


class Certificate:
    """A chain and its key, as one file. With a key, it can sign others."""

    def __init__(self, chain, key):
        self.chain, self.key = pathlib.Path(chain), pathlib.Path(key)

    def context(self, authority):
        """A client's TLS that shows this certificate, its chain as it stands."""
        context = ssl.create_default_context(cafile=str(authority))
        context.load_cert_chain(str(self.chain), str(self.key))
        return context


class Workshop:
    """Makes keys and certificates below one folder."""

    def __init__(self, folder):
        self.folder, self.numbers = pathlib.Path(folder), itertools.count()
        self.folder.mkdir()
        (self.folder / "index.txt").touch()
        self.config = self.folder / "openssl.cnf"
        self.config.write_text(CONFIG.format(folder=self.folder))
        self.key = self.new_key()

    def file(self, suffix):
        return self.folder / f"{next(self.numbers)}.{suffix}"

    def new_key(self, *kind):
        key = self.file("key")
        openssl("genpkey", *(kind or ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")), "-out", key)
        return key

    def request(self, subject, key=None, extensions=""):
        """A signing request in PEM. `subject` as openssl's -subj takes it."""
        config = self.file("cnf")
        config.write_text("[req]\ndistinguished_name=dn\n[dn]\n[more]\n" + extensions)
        more = ("-reqexts", "more") if extensions else ()
        return openssl("req", "-new", "-config", config, "-utf8", "-key", key or self.key, "-subj", subject, *more)

    def sign(self, subject, by, extensions=CLIENT, begins=-1, ends=365, key=None, digest="sha256", with_chain=False):
        """A certificate signed by `by` (a Certificate), valid from `begins` to `ends`, in days from now."""
        request, chain, more = self.file("csr"), self.file("crt"), self.file("ext")
        request.write_bytes(self.request(subject, key))
        more.write_text(extensions)
        openssl("ca", "-batch", "-notext", "-preserveDN", "-config", self.config, "-cert", by.chain, "-keyfile", by.key,
                "-in", request, "-out",
            chain, "-extfile", more,
                "-startdate", days(begins), "-enddate", days(ends), "-md", digest)
        if with_chain:
            chain.write_bytes(chain.read_bytes() + by.chain.read_bytes())
        return Certificate(chain, key or self.key)

    def self_signed(self, subject, extensions=CLIENT, key=None):
        config, chain = self.file("cnf"), self.file("crt")
        config.write_text("[req]\ndistinguished_name=dn\nx509_extensions=more\n[dn]\n[more]\n" + extensions)
        openssl("req", "-x509", "-new", "-config", config, "-key", key or self.key, "-subj", subject, "-days", "30",
                "-out", chain)
        return Certificate(chain, key or self.key)
