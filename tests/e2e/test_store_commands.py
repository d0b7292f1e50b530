"""`spillway store backup | restore | check | defrag`: beside a running server, after its death, on a full disk, and
interrupted.
"""
import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import sqlite3
import subprocess
import threading
import unittest

from harness import (
    BINARY,
    PATIENCE,
    Api,
    ApiError,
    Kubectl,
    Process,
    needs,
    run,
    running,
    serving,
    skip,
    wait_for,
    workspace,
)

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@contextlib.contextmanager
def server(folder, data, *more):
    """`spillway up` without nodes on that directory; `api` and `kubectl` talk to it."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    with running(folder, "up", "--nodes", "0", "--data-dir", data, "--port", "0", "--write-kubeconfig", kubeconfig,
                 *more) as process:
        process.kubeconfig = kubeconfig
        process.api = serving(process, kubeconfig)
        process.kubectl = Kubectl(kubeconfig)
        yield process


def store(*arguments, code=0):
    """The output of the command: standard error if it is to fail."""
    done, out, err = run("store", *arguments)
    assert done == code, f"store {arguments}: exit {done}, expected {code}\n{out}{err}"
    return err if code else out


def names(folder):
    """Files, but for the journal that readers of a store at rest leave empty."""
    return sorted(file.name for file in folder.iterdir() if not file.name.endswith(("-wal", "-shm")))


def newest(api):
    return int(api.get(MAPS)["metadata"]["resourceVersion"])


class Load(threading.Thread):
    """Updates two ConfigMaps in turns, so that the second is never ahead of the first nor more than one behind."""

    def __init__(self, kubeconfig):
        super().__init__()
        self.api, self.count, self.ended, self.revision = Api(kubeconfig), 0, False, 0

    def run(self):
        with contextlib.suppress(OSError, ApiError):
            while not self.ended:
                self.count += 1
                for name in ("first", "second"):
                    answer = self.api.request("PUT", f"{MAPS}/{name}", config_map(name, count=str(self.count)))
                    self.revision = int(answer["metadata"]["resourceVersion"])
        self.api.close()


@contextlib.contextmanager
def small_disk(folder, size):
    disk = folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", disk],
                      check=False).returncode != 0:
        skip("may not mount")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def make_large(data, rows=60_000):
    """Puts that many objects of a good half KiB into a store at rest, as its server would have."""
    with contextlib.closing(sqlite3.connect(data / "spillway.db")) as file, file:
        head, = file.execute("SELECT revision FROM state").fetchone()
        added = 0
        for i in range(rows):
            key = f"/registry/configmaps/default/large-{i:06}"
            value = json.dumps({"apiVersion": "v1", "kind": "ConfigMap",
                                "metadata": {"name": f"large-{i:06}", "namespace": "default", "uid": f"u{i}"},
                                "data": {"x": "x" * 700}})
            file.execute("INSERT INTO current VALUES(?, ?, ?, 1, ?)", (key, head + i + 1, head + i + 1, value.encode()))
            added += 40 + len(key) + len(value)
        file.execute("DELETE FROM log")
        file.execute(
            (
                "UPDATE state SET revision = revision + ?, compacted = revision + ?, live_bytes = live_bytes + ?,"
                " history_bytes = 0"
            ),
            (rows, rows, added),
        )


class StoreCommands(unittest.TestCase):
    def test_a_backup_under_load_is_restored_elsewhere(self):
        with workspace() as folder:
            backup = folder / "backup.db"
            with server(folder, folder / "data") as process:
                api = process.api
                for i in range(40):
                    api.create(MAPS, config_map(f"m{i}", value=str(i)))
                for name in ("first", "second"):
                    api.create(MAPS, config_map(name, count="0"))
                # The server makes it some time after its start; the restored one would make another.
                wait_for("the ConfigMap that the server writes itself", lambda: api.find(f"{MAPS}/kube-root-ca.crt"))
                process.kubectl("label", "configmap", "m3", "kept=yes")
                load = Load(process.kubeconfig)
                load.start()
                try:
                    wait_for("load", lambda: load.count > 5)
                    told = json.loads(store("backup", "--data-dir", folder / "data", "--to", backup, "-o", "json"))
                    self.assertIn("sound", store("check", "--data-dir", folder / "data"))
                    after = load.count
                    wait_for("writes after the backup", lambda: load.count > after + 5)
                    api.delete(f"{MAPS}/m7")
                finally:
                    load.ended = True
                    load.join()
                before = json.loads(process.kubectl("get", "--raw", f"{MAPS}"))["items"]
                seen = newest(api)
                process.kill()
            self.assertEqual(os.stat(backup).st_mode & 0o7777, 0o600)
            self.assertEqual(told["bytes"], backup.stat().st_size)
            self.assertLess(told["revision"], seen)
            self.assertIn(f"a backup as of revision {told['revision']}, {told['objects']} objects: sound",
                          store("check", "--file", backup))

            code, out, err = run("store", "restore", "--from", backup, "--data-dir", folder / "new")
            self.assertEqual(code, 0, err)
            self.assertIn(f"as of revision {told['revision']}, {told['objects']} objects", out)
            self.assertIn("pki does not exist: copy it from the old server", err)
            shutil.copytree(folder / "data/pki", folder / "new/pki")
            with server(folder, folder / "new") as process:
                found = {each["metadata"]["name"]: each
                         for each in json.loads(process.kubectl("get", "--raw", MAPS))["items"]}
                self.assertGreater(newest(process.api), seen, "the resourceVersion fell")
                same = [each for each in before if each["metadata"]["name"] not in ("first", "second")]
                for each in same:
                    self.assertEqual(found[each["metadata"]["name"]], each)
                self.assertIn("m7", found, "it was deleted after the backup")
                self.assertEqual(process.kubectl("get", "configmaps", "-l", "kept=yes", "-o", "name").split(),
                                 ["configmap/m3"])
                first, second = (int(found[name]["data"]["count"]) for name in ("first", "second"))
                self.assertIn(first - second, (0, 1), "two revisions in one backup")
                with self.assertRaises(ApiError) as gone:
                    self.watch(process.api, seen)
                self.assertEqual(gone.exception.code, 410)

    @staticmethod
    def watch(api, revision):
        """Raises the error that a watch from there gets, as its answer or as its first event."""
        answer = api.get(f"{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=2")
        event = json.loads(answer.splitlines()[0]) if isinstance(answer, str) else answer
        if event["type"] == "ERROR":
            raise ApiError(event["object"]["code"], event["object"])

    def test_a_store_in_use_is_left_alone(self):
        with workspace() as folder:
            data, backup = folder / "data", folder / "backup.db"
            with server(folder, data) as process:
                store("backup", "--data-dir", data, "--to", backup)
                in_use = f"spillway: data directory {data} is in use by process {process.child.pid}\n"
                self.assertEqual(store("restore", "--from", backup, "--data-dir", data, code=1), in_use)
                self.assertEqual(store("restore", "--from", backup, "--data-dir", data, "--force", code=1), in_use)
                (folder / "rubbish").write_text("told first is what needs no look at the file")
                self.assertEqual(store("restore", "--from", folder / "rubbish", "--data-dir", data, code=1), in_use)
                self.assertEqual(store("defrag", "--data-dir", data, code=1), in_use)
                second = Process(folder, "up", "--nodes", "0", "--data-dir", data, "--port", "0")
                self.assertEqual(second.child.wait(PATIENCE), 1)
                self.assertIn("is in use by process", second.tail())
                self.assertIn("is a file of the store itself",
                              store("backup", "--data-dir", data, "--to", data / "spillway.db", "--force", code=2))
                process.api.create(MAPS, config_map("after"))
            self.assertIn("there is a store already; --force keeps it",
                          store("restore", "--from", backup, "--data-dir", data, code=1))
            out = store("restore", "--from", backup, "--data-dir", data, "--force")
            kept = pathlib.Path(out.splitlines()[1].partition(": ")[0])
            self.assertRegex(kept.name, r"^spillway\.db\.replaced-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$")
            self.assertIn("sound", store("check", "--file", kept))
            with server(folder, data) as process:
                self.assertIsNone(process.api.find(f"{MAPS}/after"), "the backup is older")

    def test_mistakes_are_reported_in_one_line(self):
        for words, said in ((("store",), "see `spillway store --help`"),
                            (("store", "bakcup"), 'unknown command "store bakcup" (did you mean backup?)'),
                            (("storee", "backup"), 'unknown command "storee" (did you mean store?)'),
                            (("store", "backup", "--to", "x", "--data-dirr", "y"),
                             "unknown flag --data-dirr (did you mean --data-dir?)"),
                            (("store", "backup"), "--to is required; see `spillway store backup --help`"),
                            (("store", "restore"), "--from is required"),
                            (("store", "check", "--file", "x", "--data-dir", "y"), "--data-dir excludes --file"),
                            (("store", "defrag", "--force"), "unknown flag --force")):
            code, out, err = run(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertIn(said, err)
            self.assertEqual(err.count("\n"), 1, err)
        with workspace() as folder:
            self.assertIn("No such file", store("backup", "--data-dir", folder, "--to", folder / "b", code=1))
            self.assertIn("No such file", store("defrag", "--data-dir", folder, code=1))
            self.assertIn("No such file", store("check", "--data-dir", folder, code=2))
            (folder / "text").write_text("this is no database at all, whatever somebody may have hoped")
            self.assertIn("not a Spillway database", store("check", "--file", folder / "text", code=2))
            self.assertIn("not a Spillway database",
                          store("restore", "--from", folder / "text", "--data-dir", folder / "new", code=2))
            self.assertEqual(names(folder), ["text"])

    def test_planted_damage_is_found_and_not_restored(self):
        with workspace() as folder:
            data = folder / "data"
            with server(folder, data) as process:
                for name in ("a", "b"):
                    process.api.create(MAPS, config_map(name))
            sound = (data / "spillway.db").read_bytes()
            keys = "/registry/configmaps/default/"
            for statement, said in (
                (f"UPDATE current SET value = substr(value, 1, 40) WHERE key = '{keys}a'", f"{keys}a: is no JSON ("),
                (
                    (
                        f"UPDATE current SET value = (SELECT value FROM current WHERE key = '{keys}b') WHERE key ="
                        f" '{keys}a'"
                    ),
                    f'{keys}a: says it is "default/b", expected "default/a" as its key does',
                ),
                (f"DELETE FROM current WHERE key = '{keys}a'", f"{keys}a: is missing"),
                ("UPDATE state SET revision = revision - 1", "expected none beyond"),
            ):
                (data / "spillway.db").write_bytes(sound)
                with contextlib.closing(sqlite3.connect(data / "spillway.db")) as file, file:
                    file.execute(statement)
                code, out, _ = run("store", "check", "--data-dir", data)
                self.assertEqual(code, 3, statement)
                self.assertIn(said, out)
                self.assertIn("problems", out.splitlines()[-1])
                report = json.loads(store_json("check", "--data-dir", data))
                self.assertGreater(report["problemCount"], 0)
                err = store("restore", "--from", data / "spillway.db", "--data-dir", folder / "new", code=1)
                self.assertIn(said, err)
                self.assertIn("nothing was restored", err)
                self.assertFalse((folder / "new").exists())

    def test_defrag_gives_space_back(self):
        with workspace() as folder:
            data = folder / "data"
            with server(folder, data) as process:
                process.api.create(MAPS, config_map("stays", x="1"))
            make_large(data, rows=5_000)
            self.assertIn("sound", store("check", "--data-dir", data))
            with contextlib.closing(sqlite3.connect(data / "spillway.db")) as file, file:
                gone, = file.execute(
                    "SELECT sum(40 + length(key) + length(value)) FROM current WHERE key LIKE '%large-%'").fetchone()
                file.execute("DELETE FROM current WHERE key LIKE '%large-%'")
                file.execute("UPDATE state SET live_bytes = live_bytes - ?", (gone,))
            told, report = store("defrag", "--data-dir", data).splitlines()
            self.assertRegex(told, r"Mi; needs .* of free space, .* are free$")
            self.assertRegex(report, r"Mi before, .*Ki after")
            self.assertLess((data / "spillway.db").stat().st_size, 1_000_000)
            self.assertIn("sound", store("check", "--data-dir", data))
            with server(folder, data) as process:
                self.assertEqual(process.api.get(f"{MAPS}/stays")["data"], {"x": "1"})

    def test_an_interrupted_backup_leaves_nothing(self):
        with workspace() as folder:
            data, out = folder / "data", folder / "out"
            out.mkdir()
            with server(folder, data):
                pass
            make_large(data)
            partial = out / "b.db.partial"

            def size():
                with contextlib.suppress(FileNotFoundError):
                    return partial.stat().st_size
                return 0
            for _ in range(20):  # on a busy machine it may be done before it is seen to grow
                main, side = pty.openpty()
                child = subprocess.Popen([BINARY, "store", "backup", "--data-dir", data, "--to", out / "b.db"],
                                         stderr=side, stdout=subprocess.PIPE)
                os.close(side)
                wait_for("the copy to grow", lambda: child.poll() is not None or size() > 1 << 20, interval=0.001)
                child.send_signal(signal.SIGINT)
                code, said = child.wait(PATIENCE), b""
                with contextlib.suppress(OSError):  # a terminal ends like this
                    while more := os.read(main, 65536):
                        said += more
                os.close(main)
                self.assertEqual(child.stdout.read(), b"")
                child.stdout.close()
                if code != 0:
                    break
                (out / "b.db").unlink()
            self.assertEqual(code, 128 + signal.SIGINT)
            said = said.decode()
            self.assertIn("backup", said)
            self.assertIn("interrupted: nothing was changed", said)
            self.assertEqual(names(out), [])
            # The death of one is none for the next.
            partial.write_bytes(b"of one that was killed")
            os.chmod(partial, 0o600)
            store("backup", "--data-dir", data, "--to", out / "b.db")
            self.assertEqual(names(out), ["b.db"])

    @needs(os.geteuid() == 0, "mounts a file system of its own")
    def test_a_full_disk_leaves_nothing_half_done(self):
        with workspace() as folder, small_disk(folder, "4m") as disk:
            data, backup = folder / "data", folder / "backup.db"
            with server(folder, data):
                pass
            make_large(data, rows=6_000)
            store("backup", "--data-dir", data, "--to", backup)
            self.assertIn("full", store("backup", "--data-dir", data, "--to", disk / "b.db", code=1))
            self.assertEqual(names(disk), [])
            self.assertIn("full", store("restore", "--from", backup, "--data-dir", disk / "data", code=1))
            self.assertEqual([name for name in names(disk / "data") if name != "spillway.db.lock"], [])
            shutil.rmtree(disk / "data")
            # A store that fits, and whose copy does not.
            with server(folder, folder / "other"):
                pass
            make_large(folder / "other", rows=1_500)
            (disk / "data").mkdir(0o700)
            shutil.copy(folder / "other/spillway.db", disk / "data")
            (disk / "eater").write_bytes(b"x" * (1 << 20))
            before = (disk / "data/spillway.db").read_bytes()
            self.assertIn("not enough free space", store("defrag", "--data-dir", disk / "data", code=1))
            self.assertIn("full", store("restore", "--from", backup, "--data-dir", disk / "data", "--force", code=1))
            self.assertEqual((disk / "data/spillway.db").read_bytes(), before)
            self.assertEqual(names(disk / "data"), ["spillway.db", "spillway.db.lock"])


def store_json(*arguments):
    return run("store", *arguments, "-o", "json")[1]


if __name__ == "__main__":
    unittest.main()
