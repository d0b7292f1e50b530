"""The folder of `spillway up --manifests`, whose objects are applied with all rights: other users' folders and files,
files that are none, and files that cost more than their size. A file beside them is applied all the same, and the
process ends at SIGTERM."""
import json
import os
import pathlib
import threading

from attacks.attempt import Act, shown
from attacks.files import NOBODY
from harness import run, running, serving, wait_for
from process_memory import peak

MAPS = "/api/v1/namespaces/default/configmaps"
MEMORY_BYTES_MAX = 400 << 20
MANY = 1001  # files, one more than are read


def config_map(name):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


def refused_folder(cluster, name, prepare, says):
    """`up` ends with exit code 2 before it makes anything."""
    def act(_):
        place = cluster.folder / f"manifests-{name}"
        place.mkdir()
        code, _, err = run("up", "--nodes", "0", "--data-dir", place / "data", "--port", "0", "--manifests",
                           prepare(place))
        if (code, err.count("\n")) != (2, 1) or says not in err or (place / "data").exists():
            return f"exit {code}: {shown(err)}"
        return None
    return act


def folder(place, mode=0o755, owner=0):
    made = place / "folder"
    made.mkdir()
    made.chmod(mode)
    os.chown(made, owner, owner)
    return made


def linked_folder(place):
    (place / "link").symlink_to(folder(place, owner=NOBODY))
    return place / "link"


def written(path, text, mode=0o644, owner=0):
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, owner, owner)


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(8 << 30)


def bomb():
    """Aliases of aliases: ten to the ninth values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]"
                                                          for n in range(1, 9)]
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n" + "\n".join(lines)


# Name of the attempt: the file, how it is made, and a pattern that the log must have; empty: it is no file and is left
# out.
HOSTILE = {
    "a pipe": ("pipe.yaml", os.mkfifo, ""),
    "a device": ("device.yaml", lambda path: os.mknod(path, 0o20644, os.makedev(1, 5)), ""),
    "a link to a device": ("to-device.yaml", lambda path: path.symlink_to("/dev/zero"), ""),
    "a link to a pipe": ("to-pipe.yaml", lambda path: path.symlink_to("pipe.yaml"), ""),
    "a link to itself": ("to-itself.yaml", lambda path: path.symlink_to("to-itself.yaml"), ""),
    "a link to nothing": ("to-nothing.yaml", lambda path: path.symlink_to("/nowhere"), ""),
    "a folder": ("folder.yaml", lambda path: path.mkdir(), ""),
    "a link to a folder": ("to-folder.yaml", lambda path: path.symlink_to("/etc"), ""),
    "a link to memory of the process": ("memory.yaml", lambda path: path.symlink_to("/proc/self/mem"), "memory.yaml"),
    "a file of 8 GiB": ("large.yaml", sparse, "large.yaml: longer than"),
    "a file of 5 MiB": ("long.yaml", lambda path: path.write_text("#" * (5 << 20)), "long.yaml"),
    "aliases of aliases": ("aliases.yaml", lambda path: path.write_text(bomb()), "aliases.yaml"),
    "a hundred thousand levels": ("deep.yaml", lambda path: path.write_text("[" * 100_000), "deep.yaml"),
    "300,000 values": ("wide.yaml", lambda path: path.write_text("[" + "a," * 300_000 + "a]"), "wide.yaml"),
    "2,000 documents": ("documents.yaml", lambda path: path.write_text("---\n{a: b}\n" * 2000), "documents.yaml"),
    "no text": ("bytes.yaml", lambda path: path.write_bytes(bytes(range(256)) * 16), "bytes.yaml"),
    "a file of another user": ("of-another.yaml", lambda path: written(path, config_map("of-another"), owner=NOBODY),
                               "of-another.yaml: it belongs to user 65534"),
    "a file that every user can write": ("open.yaml", lambda path: written(path, config_map("open"), mode=0o666),
                                         "open.yaml: every user of this machine can write there"),
    "a link to a file of another user": ("to-another.yaml",
                                         lambda path: (written(path.parent.parent / "elsewhere",
                                                               config_map("to-another"), owner=NOBODY),
                                                                         path.symlink_to("../elsewhere")),
                                         "to-another.yaml: it belongs to user 65534"),
}


class Swaps(threading.Thread):
    """Replaces a file by a pipe, a device, a folder and a good file, over and over, while it is read."""

    def __init__(self, path):
        super().__init__()
        self.path, self.ended = path, threading.Event()

    def run(self):
        draft = self.path.parent / "draft"
        makes = (os.mkfifo, lambda path: pathlib.Path(path).symlink_to("/dev/zero"),
                 lambda path: written(pathlib.Path(path), config_map("swapped")))
        number = 0
        while not self.ended.is_set():
            makes[number % len(makes)](draft)
            os.replace(draft, self.path)
            number += 1


def applied(api, place, name):
    """A good file that comes later is applied: the folder is still read."""
    written(place / f"{name}.yaml", config_map(name))
    wait_for(f"the object of {name}.yaml", lambda: api.find(f"{MAPS}/{name}"))


def observed(cluster):
    """Complaints by attempt, after one `up` has read all of these files; "" has those about all together."""
    base = cluster.folder / "manifests-hostile"
    place = base / "folder"
    place.mkdir(parents=True)
    for file, make, _ in HOSTILE.values():
        make(place / file)
    wrong = {}
    with running(base, "up", "--nodes", "0", "--data-dir", base / "data", "--port", "0", "--write-kubeconfig",
                 base / "kubeconfig", "--manifests", place) as process:
        api = serving(process, base / "kubeconfig")
        applied(api, place, "good")
        swaps = Swaps(place / "swapped.yaml")
        swaps.start()
        try:
            for number in range(2):
                applied(api, place, f"during-{number}")
        finally:
            swaps.ended.set()
            swaps.join()
        for number in range(MANY):
            written(place / f"many-{number}.json", config_map("many"))
        wait_for("the complaint about many files", lambda: "more than 1000 files" in process.log.read_text())
        for number in range(MANY):
            (place / f"many-{number}.json").unlink()
        applied(api, place, "last")
        log, most = process.log.read_text(), peak(process)
        if most > MEMORY_BYTES_MAX:
            wrong[""] = f"{most >> 20} MiB of memory"
        names = {each["metadata"]["name"] for each in api.get(MAPS)["items"]}
        for name, (file, _, says) in HOSTILE.items():
            if file.removesuffix(".yaml") in names or (says
                                                       and f"{says}" not in log) or (not says and f" {file}" in log):
                wrong[name] = f"objects {sorted(names)}; {shown(log)}"
        code = process.stop()
        if code != 0:
            wrong[""] = f"exit {code}"
    return wrong


def attempts(cluster):
    yield Act("a folder that every user can write",
              refused_folder(cluster, "open", lambda place: folder(place, 0o777),
                             "every user of this machine can write there"))
    yield Act("a folder like /tmp",
              refused_folder(cluster, "sticky", lambda place: folder(place, 0o1777),
                             "every user of this machine can write there"))
    yield Act("a pipe as the folder",
              refused_folder(cluster, "pipe", lambda place: os.mkfifo(place / "pipe") or place / "pipe",
                             "expected a folder"))
    if os.geteuid() != 0:
        return
    yield Act("a folder of another user",
              refused_folder(cluster, "another", lambda place: folder(place, owner=NOBODY), "it belongs to user 65534"))
    yield Act("a link to a folder of another user",
              refused_folder(cluster, "link", linked_folder, "it belongs to user 65534"))
    wrong = observed(cluster)
    for name in HOSTILE:
        yield Act(name, lambda _, name=name: wrong.get(name))
    yield Act("a file that is replaced while it is read, and a thousand files more", lambda _: wrong.get(""))
