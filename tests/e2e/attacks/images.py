"""Archives for `spillway images import`: names, sizes, links and lists that lead out of the archive or cost more than
their size. Each is refused with one line, before anything is sent to the runtime."""
import io
import json
import os
import resource
import subprocess
import tarfile
import time

from attacks.attempt import Act, shown
from harness import BINARY

SECONDS_MAX = 60
MEMORY_BYTES_MAX = 1 << 30  # the address space of the import
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DIGEST = "sha256:" + "a" * 64


def archive(*entries):
    """A tar of (name, bytes, fields of its header) each."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data, fields in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in fields.items():
                setattr(info, field, value)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def file(name, document):
    return name, document if isinstance(document, bytes) else json.dumps(document).encode(), {}


def header(size_field):
    """The header of index.json with these 12 bytes as its size, and a right checksum."""
    made = bytearray(tarfile.TarInfo("index.json").tobuf(tarfile.USTAR_FORMAT)[:512])
    made[124:136] = size_field
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def entry(digest=DIGEST, kind=MANIFEST, name="a/b:1"):
    return {"mediaType": kind, "digest": digest, "size": 1, "annotations": {"io.containerd.image.name": name}}


def layout(*manifests, more=()):
    return archive(file("index.json", {"manifests": list(manifests)}), *more)


def blob(document):
    return file(f"blobs/sha256/{'a' * 64}", document)


def tagged(name):
    """A complete older archive whose image has this name."""
    return archive(file("manifest.json", [{"Config": "c", "RepoTags": [name], "Layers": []}]),
                   file("c", {"rootfs": {"diff_ids": []}}))


# Name: the bytes, and a part of the answer.
ARCHIVES = {
    "no archive": (lambda: b"x" * 4096, "expected a tar archive"),
    "an empty file": (lambda: b"", "expected a tar archive"),
    "a compressed one": (lambda: b"\x1f\x8b" + bytes(600), "compressed"),
    "an entry that is longer than the archive": (lambda: header(b"77777777777\0") + bytes(512),
                                                 "ends within an entry|expected a tar archive"),
    "a size of 2^63": (lambda: header(b"\x80\0\0\0\x80" + bytes(7)) + bytes(512),
                       "ends within an entry|expected a tar archive"),
    "a negative size": (lambda: header(b"\xff" * 12) + bytes(512), "ends within an entry|expected a tar archive"),
    "a size that is no number": (lambda: header(b"-1\0" + bytes(9)) + bytes(512), "expected a tar archive"),
    "100,001 files": (lambda: archive(*((f"f{n}", b"", {}) for n in range(100_001))), "more than 100000 files"),
    "a name of 70,000 bytes": (lambda: archive(("x" * 70_000, b"", {})), "name of 70001 bytes is too long"),
    "index.json is a link": (lambda: archive(("index.json", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})),
                             "expected an archive of images"),
    "index.json is a hard link": (
        lambda: archive(("index.json", b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"})),
        "expected an archive of images"),
    "index.json is a device": (
        lambda: archive(("index.json", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5})),
        "expected an archive of images"),
    "index.json is a pipe": (lambda: archive(("index.json", b"", {"type": tarfile.FIFOTYPE})),
                             "expected an archive of images"),
    "index.json lies above": (lambda: archive(file("../index.json", {}), file("/index.json", {})),
                              "expected an archive of images"),
    "index.json of 9 MiB": (lambda: archive(file("index.json", b" " * (9 << 20))), "at most 8388608 bytes"),
    "index.json of 100,000 levels": (lambda: archive(file("index.json", b"[" * 100_000)), "index.json"),
    "a digest that is a path": (lambda: layout(entry("sha256:../../../../etc/passwd")), "as digest"),
    "a digest of another length": (lambda: layout(entry("sha256:aa")), "as digest"),
    "a blob that is not there": (lambda: layout(entry()), "missing"),
    "a configuration by a path of the machine": (
        lambda: archive(file("manifest.json", [{"Config": "/etc/passwd", "Layers": []}])), "missing"),
    "a layer by a path of the machine": (
        lambda: archive(file("manifest.json", [{"Config": "c", "RepoTags": ["a:1"], "Layers": ["../../etc/passwd"]}]),
                                                         file("c", {"rootfs": {"diff_ids": [DIGEST]}})), "missing"),
    "an index that names itself": (lambda: layout(entry(kind=INDEX, name=""),
                                                  more=[blob({"manifests": [entry(kind=INDEX)] * 20_000})]),
                                   "no image in it has a name"),
    "an image that is no image": (lambda: layout(entry(kind="text/plain"), more=[blob({})]), "no type of an image"),
    "2,000 images": (lambda: layout(*[entry()] * 2000, more=[blob({})]), "more than 1000 images"),
    "a thousand images with one configuration of 4 MiB": (
        lambda: archive(file("manifest.json", [{"Config": "c", "Layers": []}] * 1000),
                        file("c", {"x": "x" * (4 << 20)})),
                                                          "more than 64Mi"),
    "a name with control characters": (lambda: tagged("a:\x1b[2J\x1b]0;x\x07"), "no name of an image"),
    "a name of two lines": (lambda: tagged("a:1\nspillway: all is well"), "no name of an image"),
    "a name for a shell": (lambda: tagged("a:$(reboot)"), "no name of an image"),
}


def imported(cluster, path):
    """Exit code, answer and seconds of an import from that path."""
    socket = cluster.folder / "no-socket"
    socket.touch()
    began = time.monotonic()
    done = subprocess.run([BINARY, "images", "import", path, "--runtime", socket], capture_output=True,
                          timeout=SECONDS_MAX, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                                (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX)))
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace"), time.monotonic() - began


def judged(cluster, path, says):
    code, said, _ = imported(cluster, path)
    is_one_line = said.count("\n") == 1 and said.endswith("\n") and all(c == "\n" or c.isprintable() for c in said)
    if code != 1 or not is_one_line or not any(part in said for part in says.split("|")):
        return f"exit {code}: {shown(said)!r}"
    return None


def refused(make, says):
    def act(cluster):
        path = cluster.folder / "archive.tar"
        path.write_bytes(make())
        try:
            return judged(cluster, path, says)
        finally:
            path.unlink()
    return act


def place(make, says):
    def act(cluster):
        path = cluster.folder / "archive-place"
        make(path)
        try:
            return judged(cluster, path, says)
        finally:
            path.unlink()
    return act


def attempts(_):
    for name, (make, says) in ARCHIVES.items():
        yield Act(name, refused(make, says))
    yield Act("a pipe in place of the archive", place(os.mkfifo, "expected a file, not a pipe"))
    yield Act("a device in place of the archive", place(lambda path: path.symlink_to("/dev/zero"), "expected a"))
    yield Act("a file of 1 TiB of zeros",
              place(lambda path: path.touch() or os.truncate(path, 1 << 40), "expected a tar archive"))
