"""A root of Debian with nothing but a few packages, made of this machine's own files in seconds and without a network.

Each package is copied as dpkg lists it, with its entry in dpkg's status, so `dpkg -i` in the root checks dependencies
as on a machine that has only these packages installed. What their maintainer scripts made (users, alternatives, the
loader's cache) is made again.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from patience import PATIENCE

STATUS = pathlib.Path("/var/lib/dpkg/status")
INFO = pathlib.Path("/var/lib/dpkg/info")
# Beside what is essential to Debian: what runs maintainer scripts that ask, makes users, and checks units.
BASE = ("adduser", "debconf", "init-system-helpers", "passwd", "systemd", "util-linux")


def stanzas():
    """{package: its entry} of all that is installed, of this machine's architecture."""
    own = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    rows = {}
    for entry in STATUS.read_text().split("\n\n"):
        name, architecture = (re.search(rf"^{field}: (.*)$", entry, re.M) for field in ("Package", "Architecture"))
        if name and architecture.group(1) in (own, "all") and "install ok installed" in entry:
            rows[name.group(1)] = entry
    return rows


def wanted_by(entry):
    """For each dependency of an entry the names of which one will do."""
    for field in ("Depends", "Pre-Depends"):
        if line := re.search(rf"^{field}: (.*)$", entry, re.M):
            yield from ([re.sub(r"[ (:].*", "", choice.strip()) for choice in each.split("|")]
                        for each in line.group(1).split(","))


def closure(names, entries):
    provided = {name: package for package, entry in entries.items()
                for line in re.findall(r"^Provides: (.*)$", entry, re.M)
                for name in re.findall(r"(?:^|, )([^ ,(]+)", line)}
    found, left = set(), list(names)
    while left:
        name = left.pop()
        name = name if name in entries else provided.get(name, name)
        assert name in entries, f"this machine does not have {name}"
        if name not in found:
            found.add(name)
            for choices in wanted_by(entries[name]):
                left.append(next((choice for choice in choices if choice in entries or choice in provided), choices[0]))
    return sorted(found)


def make(root, more=()):
    """The root at this path, with these packages and what they need beside the base. Gives the names of all."""
    entries = stanzas()
    essential = [name for name, entry in entries.items()
                 if re.search(r"^(Essential: yes|Priority: required)$", entry, re.M)]
    names = closure([*essential, *BASE, *more], entries)
    for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/lib32", "usr/libx32", "var/lib/dpkg/info",
                   "var/lib/dpkg/updates", "var/lib/dpkg/alternatives",
                   "etc/alternatives", "proc", "sys", "dev", "run", "tmp", "root", "var/cache/debconf", "var/log",
                   "outside"):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64", "lib32", "libx32"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "tmp").chmod(0o1777)
    listed = set()
    for name in names:
        lists = [file for file in INFO.glob(f"{name}[.:]*")
                 if re.fullmatch(rf"{re.escape(name)}(:\w+)?\.\w+", file.name)]
        for file in lists:
            shutil.copy2(file, root / "var/lib/dpkg/info" / file.name)
            if file.suffix == ".list":
                listed |= set(file.read_text().splitlines())
    links = ("/.", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
    paths = sorted("." + re.sub(r"^/(bin|sbin|lib\w*)(?=/)", r"/usr/\1", path) for path in listed
                   if path not in links and not path.startswith(("/usr/share/locale/", "/usr/share/doc/"))
                   and os.path.lexists(path))
    with tempfile.TemporaryFile() as archive:
        subprocess.run(["tar", "--create", "--directory=/", "--no-recursion", "--verbatim-files-from",
                        "--files-from=-"], input="\n".join(paths).encode(), stdout=archive, check=True)
        archive.seek(0)
        subprocess.run(["tar", "--extract", "--keep-directory-symlink", f"--directory={root}"], stdin=archive,
                       check=True)
    (root / "var/lib/dpkg/status").write_text("".join(entries[name] + "\n\n" for name in names))
    for name, file in (("format", INFO / "format"), ("arch", INFO.parent / "arch")):
        if file.exists():
            shutil.copy2(file, root / ("var/lib/dpkg/info" if name == "format" else "var/lib/dpkg") / name)
    for file in ("passwd", "group"):
        shutil.copy2(f"/usr/share/base-passwd/{file}.master", root / "etc" / file)
    for file in pathlib.Path("/etc/pam.d").glob("common-*"):
        shutil.copy2(file, root / "etc/pam.d")
    for link in pathlib.Path("/etc/alternatives").iterdir():
        if link.is_symlink() and (root / os.readlink(link).lstrip("/")).exists():
            (root / "etc/alternatives" / link.name).symlink_to(os.readlink(link))
            name = next(iter((INFO.parent / "alternatives").glob(link.name)), None)
            place = name and pathlib.Path(name.read_text().splitlines()[1])
            if place and not os.path.lexists(root / str(place).lstrip("/")):
                (root / str(place).lstrip("/")).symlink_to(f"/etc/alternatives/{link.name}")
    (root / "etc/hostname").write_text("fresh\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost fresh\n")
    (root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    for words in (["ldconfig", "-r"], ["pwconv", "-R"], ["grpconv", "-R"]):
        subprocess.run([*words, root], check=True)
    return names


# In a mount namespace of its own the root becomes /, by pivot_root: below chroot the kernel refuses user namespaces,
# which pods need.
ENTER = """set -e
mount --rbind "$0" "$0"; cd "$0"
mount --rbind /sys sys; mount --rbind /dev dev; mount -t proc proc proc; mount -t tmpfs tmpfs run; mkdir -p run/lock
pivot_root . outside; umount -l /outside; cd /
exec "$@"
"""


def inside(root, *words, user=None):
    """The command line that runs these words in the root, as root or as a user of its passwd."""
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    return ["unshare", "--mount", "--propagation=private", "bash", "-c", ENTER, str(root), *as_user, *map(str, words)]


ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
               "HOME": "/root"}


def run(root, *words, code=0, given=None):
    """The output of the command, both streams."""
    done = subprocess.run(inside(root, *words), capture_output=True, text=True, check=False, env=ENVIRONMENT,
                          input=given, timeout=PATIENCE)
    assert (
        done.returncode == code
    ), f"{' '.join(map(str, words))}: exit {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@contextlib.contextmanager
def started(root, words, log, user=None):
    with open(log, "ab") as out:
        child = subprocess.Popen(inside(root, *words, user=user), stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                 env=ENVIRONMENT)
    try:
        yield child
    finally:
        child.terminate()
        child.wait(PATIENCE)
