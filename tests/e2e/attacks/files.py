"""Files with keys and tokens: whose they are, who may read them, and what lies in their place beforehand."""
import contextlib
import os
import pathlib
import stat
import subprocess

from attacks.attempt import Act
from harness import run, running, wait_for

NOBODY = 65534


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def others_may(path):
    """True if group or world may read or write."""
    return mode(path) & 0o077 != 0


def readable_by_others(folder):
    """Files below `folder` that other users can reach: all folders above them, up to `folder`, let them through."""
    found = []
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_symlink() or not path.is_file() or mode(path) & 0o044 == 0:
            continue
        above = [parent for parent in path.parents if parent == folder or folder in parent.parents]
        if all(mode(parent) & 0o011 for parent in above):
            found.append(path.name)
    return found


def keys_are_private(cluster):
    open_to_others = [path.name for path in cluster.pki.iterdir() if others_may(path)]
    return f"others may read {open_to_others}" if open_to_others or others_may(cluster.pki) else None


def database_is_private(cluster):
    found = readable_by_others(cluster.folder / "data")
    return f"others may read {found}" if found else None


def kubeconfig_is_private(cluster):
    path = cluster.folder / "kubeconfig"
    return None if mode(path) == 0o600 else oct(mode(path))


def nothing_is_left_over(cluster):
    """Drafts of files with keys."""
    found = [path.name for path in cluster.folder.rglob("*") if path.name.endswith((".new", ".tmp", "~"))]
    return f"left over: {found}" if found else None


def no_keys_among_arguments(cluster):
    for process in filter(None, (cluster.server, cluster.agent)):
        shown = pathlib.Path(f"/proc/{process.child.pid}/cmdline").read_bytes() + process.log.read_bytes()
        if b"PRIVATE KEY" in shown or b"eyJ" in shown or b"LS0tLS1CRUdJTi" in shown:
            return "a key or a token stands in the arguments or the log"
    return None


def descriptors_are_closed(cluster):
    """None of the server's goes to a child that a command starts: all of them are closed on exec, but for the first
    three.
    """
    left = []
    for number in os.listdir(f"/proc/{cluster.server.child.pid}/fdinfo"):
        with contextlib.suppress(OSError):
            flags = int(pathlib.Path(f"/proc/{cluster.server.child.pid}/fdinfo/{number}").read_text().split("flags:")[
                1].split()[0], 8)
            if int(number) > 2 and not flags & os.O_CLOEXEC:
                left.append(os.readlink(f"/proc/{cluster.server.child.pid}/fd/{number}"))
    return f"inherited by children: {left}" if left else None


class Place:
    """A folder that others may write, and a server that is to write its kubeconfig there."""

    def __init__(self, cluster, name):
        self.folder = cluster.folder / f"place-{name}"
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self.target, self.draft = self.folder / "config", self.folder / "config.new"
        self.victim = self.folder / "victim"
        self.victim.write_text("untouched")

    def serve(self, umask=0o022):
        """Runs a server until it has written its kubeconfig or ended; None, or what its end said."""
        before = os.umask(umask)
        try:
            with running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0",
                         "--write-kubeconfig", self.target,
                         "--log-level", "error") as process:
                wait_for("the kubeconfig or an end", lambda: not process.running() or is_written(self.target))
                return None if process.running() else process.tail()
        finally:
            os.umask(before)

    def judge(self):
        """None if the kubeconfig is ours alone, or was not written at all."""
        if self.victim.read_text() != "untouched":
            return "what the link led to was overwritten"
        if not is_written(self.target):
            return None
        if self.target.is_symlink():
            return "the kubeconfig was written through a link"
        seen = os.lstat(self.target)
        if seen.st_uid != os.geteuid() or others_may(self.target) or seen.st_nlink != 1:
            return f"the kubeconfig is of user {seen.st_uid}, mode {oct(mode(self.target))}, with {seen.st_nlink} names"
        return None


def is_written(path):
    return os.path.isfile(path) and b"client-key-data" in path.read_bytes()


def prepared(name, prepare, umask=0o022):
    """A path that is taken already: by a draft, a link, or another user's file."""
    def act(cluster):
        place = Place(cluster, name)
        prepare(place)
        place.serve(umask)
        return place.judge()
    return act


def of_another(place, path):
    path.write_text("")
    path.chmod(0o666)
    os.chown(path, NOBODY, NOBODY)


def linked(path, victim):
    path.symlink_to(victim)


def held_open(cluster):
    """A process that holds the draft open reads the text written into it."""
    place = Place(cluster, "held")
    of_another(place, place.draft)
    with open(place.draft, "rb") as held:
        place.serve()
        text = held.read()
    return "the key was written into a file of another" if b"key" in text else place.judge()


def pipe(cluster):
    place = Place(cluster, "pipe")
    os.mkfifo(place.draft)
    place.serve()
    return place.judge()


def folder_of_another(name, prepare):
    """A folder for keys that is not ours: no key is made in it."""
    def act(cluster):
        folder = cluster.folder / f"foreign-{name}"
        (folder / "data").mkdir(parents=True)
        prepare(folder)
        code, err = ended(folder)
        keys = [path for path in folder.rglob("*.key") if path.is_file()]
        if code == 0 or keys:
            return f"exit {code}, keys {[path.name for path in keys]}"
        return None if len(err.strip().splitlines()) == 1 else f"not one line: {err}"
    return act


def ended(folder):
    """(exit code, what was said) of a server that ends; code 0 if it serves instead."""
    with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig", folder / "k",
                 "--log-level",
            "error") as process:
        wait_for("the end", lambda: not process.running() or (folder / "k").exists())
        return (0 if process.running() else process.child.returncode), process.tail()


def owned_by_another(folder):
    pki = folder / "data/pki"
    pki.mkdir(mode=0o700)
    os.chown(pki, NOBODY, NOBODY)


def open_to_all(folder):
    (folder / "data/pki").mkdir()
    (folder / "data/pki").chmod(0o777)


def link_elsewhere(folder):
    (folder / "elsewhere").mkdir()
    (folder / "data/pki").symlink_to(folder / "elsewhere")


def a_file(folder):
    (folder / "data/pki").write_text("")


def no_such_folder(cluster):
    code, _, err = run("apiserver", "--data-dir", cluster.folder / "none-data", "--port", "0", "--write-kubeconfig",
                       cluster.folder / "none/config",
        "--log-level", "error")
    return None if code != 0 and len(err.strip().splitlines()) == 1 else f"exit {code}: {err}"


def state_is_private(cluster):
    if cluster.agent is None:
        return None
    found = readable_by_others(cluster.folder / "state")
    return f"others may read {found}" if found else None


def second_server(cluster):
    """A second server on the same data is refused and takes nothing."""
    code, _, err = run("apiserver", "--data-dir", cluster.folder / "data", "--port", "0", "--write-kubeconfig",
                       cluster.folder / "second",
        "--log-level", "error")
    return None if code != 0 and not (cluster.folder / "second").exists() else f"exit {code}: {err}"


def as_another_user(cluster):
    """Another user can read none of it, tried as that user."""
    if os.geteuid() != 0:
        return None
    secrets = [*cluster.pki.iterdir(), cluster.folder / "data/spillway.db", cluster.folder / "kubeconfig"]
    cluster.folder.chmod(0o755)
    try:
        for path in secrets:
            done = subprocess.run(["cat", path], capture_output=True, user=NOBODY, group=NOBODY, extra_groups=[],
                                  timeout=60, check=False)
            if done.returncode == 0:
                return f"read {path.name}"
    finally:
        cluster.folder.chmod(0o700)
    return None


def attempts(_):
    rows = [
        Act("keys and certificates below the data directory", keys_are_private),
        Act("the database", database_is_private),
        Act("the kubeconfig", kubeconfig_is_private), Act("drafts that are left over", nothing_is_left_over),
        Act("keys among arguments or in the log", no_keys_among_arguments),
        Act("descriptors that a child would inherit", descriptors_are_closed),
        Act("another user reads them", as_another_user), Act("a second server on the same data", second_server),
        Act("a kubeconfig where no folder is", no_such_folder),
        Act("the state of a node", state_is_private),
        Act("a umask that hides nothing", prepared("umask", lambda place: None, umask=0)),
        Act("the kubeconfig is a link", prepared("link", lambda place: linked(place.target, place.victim))),
        Act("its draft is a link", prepared("draft-link", lambda place: linked(place.draft, place.victim))),
        Act("its draft is a second name of another file",
            prepared("hard-link", lambda place: os.link(place.victim, place.draft))),
        Act("its draft is a link to nothing yet",
            prepared("dangling", lambda place: linked(place.draft, place.folder / "later"))),
        Act("its draft is a folder", prepared("folder", lambda place: place.draft.mkdir())),
        Act("its draft is a pipe", pipe),
        Act("a folder for keys that is a link", folder_of_another("link", link_elsewhere)),
        Act("a folder for keys that all may write", folder_of_another("open", open_to_all)),
        Act("a folder for keys that is a file", folder_of_another("file", a_file))]
    if os.geteuid() == 0:
        rows += [Act("its draft is another's", prepared("draft", lambda place: of_another(place, place.draft))),
            Act("its draft is another's, who holds it open", held_open),
                 Act("the kubeconfig is another's", prepared("target", lambda place: of_another(place, place.target))),
                 Act("a folder for keys that is another's", folder_of_another("owner", owned_by_another))]
    return rows

