"""packaging/install.sh: releases in a folder and behind an address, damaged ones, ones without a valid signature, and
foreign files in its way.
"""
import base64
import hashlib
import http.server
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INSTALL = ROOT / "packaging/install.sh"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
# A checksum file, an OpenPGP key made for this test alone, and the signature of that file by that key.
SIGNED = "".join(f"{letter * 64}  spillway_1.0.0_{name}\n"
                 for letter, name in (("a", "amd64.deb"), ("b", "linux_amd64.tar.gz"), ("c", "arm64.deb"),
                                      ("d", "linux_arm64.tar.gz")))
KEY = "mDMEZ3SFgBYJKwYBBAHaRw8BAQdAXszvmOfCS1j/3KBcFLpmVrwo1v1DXLtrYcRo3ukbHA+0JFNwaWxsd2F5IHRlc3Qga2V5IDx0ZXN0QGV4YW1wbGUuY29tPoiQBBMWCAA4FiEEA71YgwR3YysFh31+hHlW4F/ecOkFAmd0hYACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQhHlW4F/ecOkn+AD/a9fAm63Jh/UfOksTsNhd/oR5h7WvzYPUWvwAzznGUS8A/iqxclcuuLig2wBjs0XQ2mQRs44U3FawbJVyh86uBjQO"
SIGNATURE = "iHUEABYIAB0WIQQDvViDBHdjKwWHfX6EeVbgX95w6QUCZ3SFgAAKCRCEeVbgX95w6UCjAPwJ4lMsEClT1dTcEFDPSGW1sKgJTo8xwrmQcebK4eWS8AEA1yZJXiB1DRaio+nvnLXszYpOR+WfyDJHFDx3ZtrAKQY="


def archive(version, program):
    """An archive of the shape of packaging/archive.py, whose program is a script."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as files:
        for name, data in (("bin/spillway", program), ("README", "words")):
            member = tarfile.TarInfo(f"spillway_{version}_linux_{MACHINE}/{name}")
            member.size, member.mode = len(data), 0o755
            files.addfile(member, io.BytesIO(data.encode()))
    return out.getvalue()


def release(folder, version="1.0.0", program="#!/bin/sh\necho spillway version\n"):
    folder.mkdir(exist_ok=True)
    name = f"spillway_{version}_linux_{MACHINE}.tar.gz"
    (folder / name).write_bytes(archive(version, program))
    (folder / f"spillway_{version}.sha256").write_text(
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n")
    return folder / name


class Install(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="spillway-install-")))
        self.release, self.prefix, self.temporary = (
            self.folder / "release",
            self.folder / "prefix",
            self.folder / "temporary",
        )
        self.temporary.mkdir()

    def run_it(self, *words, code=0):
        done = subprocess.run(["sh", INSTALL, *words], capture_output=True, text=True, check=False, timeout=300,
                              env={**os.environ, "TMPDIR": str(self.temporary), "HOME": str(self.folder)})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [], "nothing is left in the temporary directory")
        if code:
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertFalse(self.prefix.exists() and any(self.prefix.glob("lib/*")), "nothing is half installed")
        return done.stdout + done.stderr

    def unpacked(self, *words, code=0):
        return self.run_it("--archive", "--prefix", self.prefix, *words, code=code)

    def test_a_folder(self):
        release(self.release)
        self.assertIn(f"installed: {self.prefix}/bin/spillway\n{self.prefix}/bin is not on the PATH",
                      self.unpacked(self.release))
        self.assertEqual(subprocess.run([self.prefix / "bin/spillway"], capture_output=True, text=True,
                                        check=True).stdout, "spillway version\n")

    def test_again_and_a_later_version(self):
        release(self.release)
        self.unpacked(self.release)
        self.assertIn("is there already", self.unpacked(self.release))
        release(self.folder / "later", "1.1.0", "#!/bin/sh\necho later\n")
        self.unpacked(self.folder / "later")
        self.assertEqual(subprocess.run([self.prefix / "bin/spillway"], capture_output=True, text=True,
                                        check=True).stdout, "later\n")
        self.assertEqual(sorted(path.name for path in self.prefix.glob("*/*")),
                         ["spillway", "spillway-1.0.0", "spillway-1.1.0"])

    def test_an_address(self):
        release(self.release)

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def __init__(handler, *more):
                super().__init__(*more, directory=str(self.release))

            def log_message(handler, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            address = f"http://127.0.0.1:{server.server_port}/spillway_1.0.0.sha256"
            self.assertIn("anyone on the way can change what http carries", self.unpacked(address, code=1))
            (self.folder / "key").write_bytes(base64.b64decode(KEY))
            (self.release / "spillway_1.0.0.sha256").write_text(SIGNED)
            (self.release / "spillway_1.0.0.sha256.sig").write_bytes(base64.b64decode(SIGNATURE))
            told = self.unpacked("--key", self.folder / "key", address, code=1)
            self.assertIn("was damaged or changed", told,
                          "the signature is valid, and the archive is not the one it signs")

    def test_a_signature(self):
        self.release.mkdir()
        (self.folder / "key").write_bytes(base64.b64decode(KEY))
        sums = self.release / "spillway_1.0.0.sha256"
        sums.write_text(SIGNED)
        key = ("--key", self.folder / "key")
        self.assertIn("spillway_1.0.0.sha256.sig: no such file", self.unpacked(*key, sums, code=1))
        (self.release / "spillway_1.0.0.sha256.sig").write_bytes(base64.b64decode(SIGNATURE))
        self.assertIn("The signature of spillway_1.0.0.sha256 is valid.\nwould unpack spillway_1.0.0_linux_",
                      self.unpacked("--print", *key, sums))
        sums.write_text(SIGNED.replace("b" * 64, "e" * 64))
        self.assertIn("spillway_1.0.0.sha256 has no valid signature of", self.unpacked(*key, sums, code=1))

    def test_damaged_files(self):
        file = release(self.release)
        file.write_bytes(file.read_bytes() + b"x")
        self.assertIn("was damaged or changed; download it again", self.unpacked(self.release, code=1))
        file.unlink()
        self.assertIn(f"{file}: no such file", self.unpacked(self.release, code=1))
        (self.release / "spillway_1.0.0.sha256").write_text(f"{'0' * 64}  ../{file.name}\n")
        self.assertIn(f"does not list {file.name}", self.unpacked(self.release, code=1))

    def test_a_program_that_does_not_run_here(self):
        release(self.release, program="#!/nonexistent\n")
        done = subprocess.run(["sh", INSTALL, "--archive", "--prefix", self.prefix, self.release], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, list(self.prefix.glob("*/*")), list(self.prefix.glob("lib/.*"))),
                         (1, [], []))
        self.assertIn("the program does not run on this machine", done.stderr)

    def test_a_foreign_file_stays(self):
        release(self.release)
        for make in (lambda path: path.write_text("mine"), lambda path: path.symlink_to("/bin/true")):
            link = self.prefix / "bin/spillway"
            link.parent.mkdir(parents=True, exist_ok=True)
            make(link)
            self.assertIn("exists and this script did not make it", self.unpacked(self.release, code=1))
            self.assertTrue(link.exists())
            link.unlink()

    def test_several_releases_and_none(self):
        release(self.release)
        release(self.release, "1.1.0")
        self.assertIn("several releases, spillway_1.0.0.sha256 and spillway_1.1.0.sha256; name one",
                      self.unpacked(self.release, code=1))
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("holds no spillway_VERSION.sha256", self.unpacked(empty, code=1))
        self.unpacked(self.release / "spillway_1.1.0.sha256")

    def test_wrong_command_lines(self):
        for words, reason in (([], "a release is needed"), (["--nothing", "x"], "unknown option --nothing"),
                              (["a", "b"], "one release at a time: a or b"), (["--key"], "--key needs a value"),
                              (["ftp://host/spillway_1.sha256"], "is not the address of a checksum file"),
                              (["https://host/"], "is not the address of a checksum file")):
            with self.subTest(words=words):
                self.assertIn(reason, self.run_it(*words, code=2))
        self.assertIn("Exit codes: 0 installed", self.run_it("--help"))


if __name__ == "__main__":
    unittest.main()
