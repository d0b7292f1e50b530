"""The packages of the program under test: made twice they are equal; the .deb is installed in a fresh root, its units
are started as they say, upgraded, removed and purged; the image runs in containerd, the archive in a root without its
libraries; kustomize and the chart give objects the server takes."""
import contextlib
import gzip
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "packaging"))
import man_pages  # noqa: E402

import containerd_pods
import fresh_root
import peers
from harness import (
    Api,
    BINARY,
    can_write_cgroups,
    end_cgroups,
    Kubectl,
    needs,
    pod,
    room_on_disks,
    ROOT,
    run,
    running,
    serving,
    wait_for,
    workspace,
)

PACKAGE = ROOT / "packaging/package.py"
VERSION, LATER = "0.2.0", "0.2.1"
UNITS = ("up", "apiserver", "agent", "controller", "companion")
HOG = ["spillway", "stress", "--memory", "400Mi", "--rate", "60Mi/s", "--hold", "1h"]


def package(out, *more, **environment):
    done = subprocess.run([sys.executable, PACKAGE, "--binary", BINARY, "--out", out, *more], capture_output=True,
                          text=True, check=False,
                          env={**os.environ, **environment}, umask=0o077 if environment else -1)
    assert done.returncode == 0, done.stdout + done.stderr


def sums(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def setUpModule():
    global made
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="spillway-packages-")))
    package(folder, "--version", VERSION)
    made = folder


def the(suffix, version=VERSION, folder=None):
    return next((folder or made).glob(f"spillway_{version}{suffix}"))


def depended_on(deb):
    """Names of the packages that a .deb depends on: of alternatives the first."""
    depends = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
    return [re.split(r"[ |(]", each.strip())[0] for each in depends.split(",")]


def names_of(bill, *relations):
    """Names of the packages to which the program has these relations."""
    related = {row["relatedSpdxElement"] for row in bill["relationships"] if row["relationshipType"] in relations}
    return {row["name"] for row in bill["packages"] if row["SPDXID"] in related}


class Made(unittest.TestCase):
    def test_two_runs_give_the_same_bytes(self):
        with workspace() as folder:
            package(folder / "again", "--version", VERSION, TZ="Asia/Tokyo", LANG="C", HOME="/nonexistent")
            self.assertEqual(sums(made), sums(folder / "again"))
            self.assertEqual(len(sums(made)), 7)
        listed = dict(reversed(line.split()) for line in the(".sha256").read_text().splitlines())
        self.assertEqual(listed, {name: value for name, value in sums(made).items() if not name.endswith(".sha256")})

    def test_the_time_is_the_commits(self):
        with workspace() as folder:
            package(folder, "--version", VERSION, "--only", "kubernetes", SOURCE_DATE_EPOCH="1000000000")
            with tarfile.open(the("_kubernetes.tar.gz", folder=folder)) as archive:
                self.assertEqual({member.mtime for member in archive}, {1000000000})
            self.assertEqual(json.loads(the(".spdx.json", folder=folder).read_text())["creationInfo"]["created"],
                             "2001-09-09T01:46:40Z")

    def test_wrong_command_lines(self):
        for words, reason in ((["--binary", "/nonexistent"], "not a program"),
                              (["--binary", BINARY, "--only", "rpm"], "expected some of deb,image"), ([], "--binary")):
            done = subprocess.run([sys.executable, PACKAGE, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(reason, done.stderr)

    def test_the_bill_of_materials_names_every_library(self):
        bill = json.loads(the(".spdx.json").read_text())
        names = [row["name"] for row in bill["packages"]]
        identifiers = [row["SPDXID"] for row in bill["packages"]]
        self.assertEqual(len(set(identifiers)), len(identifiers))
        related = {(row["relationshipType"], row["relatedSpdxElement"]) for row in bill["relationships"]}
        self.assertEqual({element for _, element in related}, set(identifiers))
        paths = re.findall(r"=> (/\S+)",
                           subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout)
        for path in paths:
            found = subprocess.run(["dpkg-query", "-S", f"*/{pathlib.Path(path).name}"], capture_output=True, text=True,
                                   check=True).stdout
            owners = {line.split(":")[0] for line in found.splitlines()}
            self.assertTrue(owners & set(names), f"{path} of {owners}")
        compiled_in = names_of(bill, "CONTAINS")
        self.assertLess({"preact", "uplot", "libcli11-dev"}, compiled_in)
        # Packages that are compiled into the program have their notice in the program's copyright file.
        notice = (ROOT / "packaging/debian/copyright").read_text()
        words = {"preact": "Preact", "uplot": "uPlot", "libcli11-dev": "(CLI11)", "libboost1.81-dev": "Boost.Asio",
                 "libboost-url1.81-dev": "URL)"}
        self.assertEqual({name for name in compiled_in if name not in words or words[name] not in notice}, set())
        licences = set(re.findall(r"^License: (.*)$", notice, re.M))
        self.assertLessEqual({"Apache-2.0", "Expat", "BSD-3-clause", "BSL-1.0"}, licences)
        program = bill["packages"][0]["checksums"][0]["checksumValue"]
        with workspace() as folder:
            subprocess.run(["dpkg-deb", "-x", the("_*.deb"), folder], check=True)
            self.assertEqual(program, hashlib.sha256((folder / "usr/bin/spillway").read_bytes()).hexdigest())

    def test_the_program_is_hardened(self):
        """docs/security.md, "The program". Marks of jump targets are counted: the note that promises them needs every
        library to have them.
        """
        def shown(*flags):
            return subprocess.run(["readelf", "-W", *flags, BINARY], capture_output=True, text=True, check=True).stdout
        self.assertRegex(shown("-h"), r"Type:\s+DYN \(Position-Independent Executable")
        segments = shown("-l")
        self.assertIn("GNU_RELRO", segments)
        self.assertRegex(segments, r"GNU_STACK\s.* RW\s", "a stack on which nothing runs")
        self.assertNotRegex(segments, r"LOAD\s.* RWE\s")
        self.assertRegex(shown("-d"), r"FLAGS_1.*\bNOW\b.*\bPIE\b")
        imported = shown("--dyn-syms")
        self.assertIn("__stack_chk_fail", imported)
        self.assertRegex(imported, r"__\w+_chk@", "functions that check the size of a buffer")
        if os.uname().machine == "x86_64":
            self.assertGreater(BINARY.read_bytes().count(b"\xf3\x0f\x1e\xfa"), 10_000, "endbr64")

    def test_the_image_has_the_time_zones_of_cron_jobs(self):
        with tarfile.open(the("_*.oci.tar")) as layout:
            blobs = [layout.extractfile(member) for member in layout if member.isfile()]
            [layer] = [blob for blob in blobs if (blob.read(2), blob.seek(0))[0] == b"\x1f\x8b"]
            with tarfile.open(fileobj=layer) as files:
                self.assertTrue(files.getmember("usr/share/zoneinfo/Europe/Berlin").isfile())
                # Every distributed part has its notice.
                bill = json.loads(the(".spdx.json").read_text())
                noticed = {member.name.split("/")[-2] for member in files if member.isfile()
                           and member.name.startswith("usr/share/doc/")}
                self.assertEqual(noticed, names_of(bill, "DYNAMIC_LINK", "DEPENDS_ON") | {"spillway"})
        control = subprocess.run(["dpkg-deb", "-f", the("_*.deb"), "Depends"], capture_output=True, text=True,
                                 check=True).stdout
        self.assertIn("tzdata", control.strip().split(", "))

    @needs(peers.lintian(), "needs lintian (tools/peers)")
    def test_lintian(self):
        words, environment = peers.lintian("--no-cfg", "--show-overrides", the("_*.deb"))
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
        # The run shows in the remarks that the package overrides, each with its reason ("N: …").
        remarks = sorted(re.findall(r"^([A-MO-Z]: \S+: \S+)", done.stdout, re.M))
        self.assertEqual(remarks, ["O: spillway: no-debconf-config"], done.stdout + done.stderr)

    @needs(shutil.which("man"), "needs man")
    def test_man_pages_say_what_help_says(self):
        with workspace() as folder:
            subprocess.run(["dpkg-deb", "-x", the("_*.deb"), folder], check=True)
            pages = folder / "usr/share/man/man1"
            commands = man_pages.subcommands(run("--help")[1])
            self.assertGreater(len(commands), 15)
            for command in commands:
                page = pages / f"spillway-{command}.1.gz"
                shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True,
                                       env={**os.environ, "MANWIDTH": "200", "MAN_KEEP_FORMATTING": ""})
                self.assertEqual(shown.stderr, "")
                text = re.sub(r"\s+", " ", shown.stdout.replace("\u2010", "-"))
                for flag, meaning in re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)[^\n]*?(?:\n {20,}| {2,})(\S[^\n]*)",
                                                run(command, "--help-all")[1], re.M):
                    self.assertIn(flag, text)
                    self.assertIn(meaning.split()[0], text)
            self.assertEqual({page.name for page in pages.iterdir() if "-store-" in page.name},
                             {f"spillway-store-{each}.1.gz"
                              for each in ("backup", "restore", "check", "defrag", "copy")})


class Unit:
    """Does with a unit file what systemd would do: state directories, environment, user, command line."""

    def __init__(self, root, name):
        self.text = (root / f"usr/lib/systemd/system/spillway-{name}.service").read_text()
        self.root, self.name = root, name

    def values(self, key):
        return re.findall(rf"^{key}=(.*)$", self.text, re.M)

    def words(self):
        flags = ""
        for file in self.values("EnvironmentFile"):
            for key, value in re.findall(r"^(\w+)=(.*)$", (self.root / file.lstrip("-/")).read_text(), re.M):
                assert key == "SPILLWAY_FLAGS", f"{file}: {key}"
                flags = value
        command, = self.values("ExecStart")
        assert command.endswith(" $SPILLWAY_FLAGS"), command
        return [*command.split()[:-1], *flags.split()]

    @contextlib.contextmanager
    def started(self, log):
        user = next(iter(self.values("User")), None)
        mode, = self.values("StateDirectoryMode") or ["0755"]
        for folder in " ".join(self.values("StateDirectory")).split():
            place = self.root / "var/lib" / folder
            place.mkdir(exist_ok=True)
            place.chmod(int(mode, 8))
            if user:
                os.chown(place, *map(int,
                                     re.search(rf"^{user}:x:(\d+):(\d+)", (self.root / "etc/passwd").read_text(),
                                               re.M).groups()))
        try:
            with fresh_root.started(self.root, self.words(), log, user) as child:
                yield child
        except BaseException:
            print(f"--- spillway-{self.name}\n{log.read_text()[-3000:]}", flush=True)
            raise


def processes_of(document):
    """Processes in a pod's cgroup, on this machine."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if document["metadata"]["uid"] in (process / "cgroup").read_text():
                found.add(process.name)
    return found


def set_flags(root, name, flags):
    if name in ("up", "agent"):
        shutil.copytree(room_on_disks()[1], root / "opt/room", dirs_exist_ok=True)
        flags += " --config-dir=/opt/room"
    file = root / f"etc/spillway/{name}.env"
    file.write_text(re.sub(r"^SPILLWAY_FLAGS=.*$", lambda _: f"SPILLWAY_FLAGS={flags}", file.read_text(), flags=re.M))


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Debian(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.root = self.folder / "root"
        self.root.mkdir()
        self.log = self.folder / "unit.log"
        self.names = fresh_root.make(self.root, depended_on(the("_*.deb")))
        self.addCleanup(end_cgroups, "/var/lib/spillway", "/var/lib/spillway-agent/nodes")  # the machine's

    def number_of(self, file):
        """The id of the user or group spillway."""
        return int(re.search(r"^spillway:x:(\d+)", (self.root / "etc" / file).read_text(), re.M).group(1))

    def install(self, deb):
        shutil.copy(deb, self.root / "tmp/spillway.deb")
        return fresh_root.run(self.root, "dpkg", "-i", "/tmp/spillway.deb")

    def api(self, kubeconfig):
        wait_for("the kubeconfig", lambda: (self.root / kubeconfig).exists())
        api = Api(self.root / kubeconfig)
        self.addCleanup(api.close)
        return api

    def test_files_and_units(self):
        shutil.copytree(made, self.root / "tmp/release")
        said = fresh_root.run(self.root, "sh", "/tmp/release/install.sh", "/tmp/release")
        self.assertIn("spillway: nothing runs yet. A cluster of this machine: systemctl enable --now spillway-up", said)
        self.assertIn(f"Spillway {VERSION} is installed.", said)
        self.assertEqual(fresh_root.run(self.root, "dpkg-query", "-W", "-f=${Status}", "spillway"),
                         "install ok installed")
        self.assertEqual(fresh_root.run(self.root, "dpkg", "--verify", "spillway"), "")
        listed = dict(reversed(line.split("  "))
                      for line in (self.root / "var/lib/dpkg/info/spillway.md5sums").read_text().splitlines())
        self.assertEqual(listed["usr/bin/spillway"],
                         hashlib.md5((self.root / "usr/bin/spillway").read_bytes()).hexdigest())
        self.assertIn("spillway", fresh_root.run(self.root, "spillway", "--version"))
        for path, mode in (("usr/bin/spillway", 0o755), ("etc/spillway", 0o755), ("etc/spillway/kubelet.yaml", 0o644),
                           ("usr/lib/systemd/system/spillway-up.service", 0o644)):
            found = (self.root / path).stat()
            self.assertEqual((found.st_mode & 0o7777, found.st_uid, found.st_gid), (mode, 0, 0), path)
        self.assertRegex((self.root / "etc/passwd").read_text(),
                         r"\nspillway:x:\d+:\d+::?[^:]*:/nonexistent:/usr/sbin/nologin\n")
        self.assertIn(VERSION, fresh_root.run(self.root, "kubectl-spillway", "--version"))
        # 4: warnings, of the stock defaults
        self.assertEqual(fresh_root.run(self.root, "spillway", "lint", "/etc/spillway/kubelet.yaml", "--memory", "64Gi",
                                        code=4).count("(default)"), 5)
        units = [f"/usr/lib/systemd/system/spillway-{name}.service" for name in UNITS]
        self.assertEqual(fresh_root.run(self.root, "systemd-analyze", "verify", "--man=no", *units), "")
        print()
        for unit, most in zip(units, (10, 2, 10, 2, 4)):
            said = fresh_root.run(self.root, "systemd-analyze", "security", "--offline=yes", unit).splitlines()[-1]
            print(said)
            self.assertLess(float(re.search(r"service: ([\d.]+)", said).group(1)), most)

    def test_a_node_through_upgrade_removal_and_purge(self):
        self.install(the("_*.deb"))
        flags = "--port=0 --node-name=n --node-memory=256Mi"
        set_flags(self.root, "up", flags)
        kubeconfig = self.root / "var/lib/spillway/kubeconfig"
        with Unit(self.root, "up").started(self.log) as process:
            api = self.api("var/lib/spillway/kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}, "data": {"a": "b"}})
            api.create("/api/v1/namespaces/default/pods", pod("steady", ["sleep", "3600"]))
            wait_for("the pod", lambda: api.pod_phases().get("steady") == "Running")
            api.create("/api/v1/namespaces/default/pods", pod("hog", HOG, restartPolicy="Never"))
            wait_for("the eviction",
                     lambda: api.get("/api/v1/namespaces/default/pods/hog")["status"].get("reason") == "Evicted")
            said = fresh_root.run(self.root, "spillway", "explain", "pod/hog")
            print(f"\n{said}")
            self.assertIn("memory.available", said)
            steady = api.get("/api/v1/namespaces/default/pods/steady")
            processes = processes_of(steady)
            self.assertTrue(processes)
            process.terminate()  # as a restart does
            process.wait()
            self.assertEqual(processes_of(steady), processes)
        kubeconfig.unlink()

        with workspace() as folder:
            package(folder, "--version", LATER, "--only", "deb")
            said = self.install(the("_*.deb", LATER, folder))
        self.assertIn(f"({LATER}) over ({VERSION})", said)
        self.assertIn(f"SPILLWAY_FLAGS={flags} ", (self.root / "etc/spillway/up.env").read_text())
        with Unit(self.root, "up").started(self.log):
            api = self.api("var/lib/spillway/kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            self.assertEqual(api.get("/api/v1/namespaces/default/configmaps/kept")["data"], {"a": "b"})
            # The container ran on through all of it.
            now = api.get("/api/v1/namespaces/default/pods/steady")
            self.assertEqual([each["containerID"] for each in now["status"]["containerStatuses"]],
                             [each["containerID"] for each in steady["status"]["containerStatuses"]])
            self.assertEqual((now["metadata"]["uid"], now["status"]["phase"],
                              now["status"]["containerStatuses"][0]["restartCount"]),
                             (steady["metadata"]["uid"], "Running", 0))
            self.assertEqual(processes_of(steady), processes)
            api.delete("/api/v1/namespaces/default/pods/hog")
            wait_for("its end", lambda: list(api.pod_phases()) == ["steady"])
            # Processes under a running node are not ended.
            self.assertIn("is run by another process",
                          fresh_root.run(self.root, "spillway", "end-pods", "/var/lib/spillway", code=1))
            self.assertEqual(processes_of(steady), processes)
        self.assertEqual(processes_of(steady), processes)
        # as prerm and the unit do under systemd
        fresh_root.run(self.root, "spillway", "end-pods", "/var/lib/spillway/")
        self.assertEqual(processes_of(steady), set())

        fresh_root.run(self.root, "dpkg", "--remove", "spillway")
        self.assertFalse((self.root / "usr/bin/spillway").exists())
        self.assertTrue(kubeconfig.exists())
        self.assertIn(flags, (self.root / "etc/spillway/up.env").read_text())
        self.assertIn("the state in /var/lib/spillway is left",
                      fresh_root.run(self.root, "dpkg", "--purge", "spillway"))
        self.assertTrue(kubeconfig.exists())
        self.assertFalse((self.root / "etc/spillway").exists())

        # Installed anew the node continues; a purge removes the state where debconf has that answer.
        self.install(the("_*.deb"))
        self.assertIn("SPILLWAY_FLAGS=\n", (self.root / "etc/spillway/up.env").read_text())
        self.assertTrue(kubeconfig.exists())
        fresh_root.run(self.root, "debconf-set-selections", given="spillway spillway/remove-state boolean true\n")
        fresh_root.run(self.root, "dpkg", "--purge", "spillway")
        self.assertEqual(list((self.root / "var/lib").glob("spillway*")), [])

    def test_the_parts_alone(self):
        self.install(the("_*.deb"))
        set_flags(self.root, "apiserver", "--port=0")
        state = self.root / "var/lib/spillway-apiserver"
        number = self.number_of("passwd")
        with Unit(self.root, "apiserver").started(self.log):
            api = self.api("var/lib/spillway-apiserver/kubeconfig")
            self.assertEqual(api.get("/readyz"), "ok")
            owners = set()
            for file in [state, *state.rglob("*")]:
                with contextlib.suppress(FileNotFoundError):  # the server's, which comes and goes
                    owners.add(file.stat().st_uid)
            self.assertEqual(owners, {number})
            self.assertEqual(state.stat().st_mode & 0o777, 0o700)

            (self.root / "var/lib/spillway-agent").mkdir()
            shutil.copy(state / "kubeconfig", self.root / "var/lib/spillway-agent/kubeconfig")
            set_flags(self.root, "agent", "--port=0 --node-ip=127.0.0.1 --node-name=alone --node-memory=128Mi")
            agent = Unit(self.root, "agent")
            bootstrap = self.root / "etc/spillway/bootstrap.kubeconfig"
            shutil.copy(state / "kubeconfig", bootstrap)
            bootstrap.chmod(0o600)
            with agent.started(self.folder / "agent.log"):
                wait_for("the node", lambda: api.nodes_ready() == ["alone"])

            file = self.root / "etc/spillway/controller.kubeconfig"
            shutil.copy(state / "kubeconfig", file)
            os.chown(file, 0, self.number_of("group"))
            file.chmod(0o640)
            self.assertIn("--shadow", Unit(self.root, "controller").words())
            set_flags(self.root, "controller",
                      "--shadow --controllers=node-lifecycle-controller,taint-eviction-controller --secure-port=0")
            log = self.folder / "controller.log"
            with Unit(self.root, "controller").started(log) as controller:
                wait_for("its caches", lambda: "caches are filled" in log.read_text() or controller.poll() is not None)
                self.assertIsNone(controller.poll())

            shutil.copy(file, self.root / "etc/spillway/companion.kubeconfig")
            self.assertIn("--shadow", Unit(self.root, "companion").words())
            set_flags(self.root, "companion",
                      "--shadow --pages-address=0 --node-name=alone --kubelet=https://127.0.0.1:1")
            log = self.folder / "companion.log"
            with Unit(self.root, "companion").started(log) as companion:
                wait_for("a word of the kubelet", lambda: "127.0.0.1:1" in log.read_text()
                         or companion.poll() is not None)
                self.assertIsNone(companion.poll(), log.read_text())


class Archive(unittest.TestCase):
    @needs(os.geteuid() == 0, "needs root")
    def test_it_runs_where_its_libraries_are_not(self):
        with workspace() as folder:
            root = folder / "root"
            root.mkdir()
            names = fresh_root.make(root)
            self.assertNotIn("libgrpc29", names)
            with tarfile.open(the("_linux_*.tar.gz")) as archive:
                archive.extractall(root / "opt", filter="fully_trusted")
            place = next((root / "opt").iterdir())
            self.assertEqual(fresh_root.run(root, f"/opt/{place.name}/bin/spillway", "--version"),
                             f"spillway {VERSION}\n")
            said = fresh_root.run(root, "ldd", f"/opt/{place.name}/bin/spillway")
            elsewhere = {pathlib.Path(path).name for path in re.findall(r"(/\S+) \(0x", said)
                         if not path.startswith("/opt/")}
            self.assertEqual(elsewhere, {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})
            readme = (place / "README").read_text()
            listed = set(re.findall(r"^  (\S+) \S+$", readme, re.M))
            self.assertGreater(len(listed), 10)
            self.assertEqual({notice.parent.name for notice in (place / "share/doc").glob("*/copyright")},
                             listed | {"spillway"})
            self.assertRegex(readme, r"It is not fully static\.[^§]*glibc 2\.3\d or newer")


class Image(unittest.TestCase):
    def test_what_it_holds(self):
        with tarfile.open(the("_*.oci.tar")) as archive:
            blob = lambda row: archive.extractfile(f"blobs/{row['digest'].replace(':', '/')}").read()
            index = json.load(archive.extractfile("index.json"))
            manifest = json.loads(blob(index["manifests"][0]))
            config = json.loads(blob(manifest["config"]))
            self.assertEqual((config["config"]["User"], config["config"]["Entrypoint"]),
                             ("65532:65532", ["/usr/bin/spillway"]))
            layer = gzip.decompress(blob(manifest["layers"][0]))
            self.assertEqual(config["rootfs"]["diff_ids"], [f"sha256:{hashlib.sha256(layer).hexdigest()}"])
            for row in (manifest["config"], *manifest["layers"], index["manifests"][0]):
                self.assertEqual((f"sha256:{hashlib.sha256(blob(row)).hexdigest()}", len(blob(row))),
                                 (row["digest"], row["size"]))

    @needs(not containerd_pods.missing(), containerd_pods.missing())
    def test_containerd_runs_it(self):
        with workspace() as folder:
            containerd = containerd_pods.Containerd(folder)
            self.addCleanup(containerd.stop)
            containerd.wait_until_it_answers()
            ctr = lambda *words: subprocess.run(["ctr", "-a", containerd.socket, *map(str, words)], capture_output=True,
                                                text=True, check=False, env=peers.environment())
            imported = ctr("images", "import", the("_*.oci.tar"))
            self.assertEqual(imported.returncode, 0, imported.stderr)
            image = f"docker.io/library/spillway:{VERSION}"
            names = (f"container-{number}" for number in itertools.count())

            def ran(flags, *words):
                """The result of a container; once more without output, as ctr may lose that of a program that ends at
                once."""
                def with_output():
                    done = ctr("run", "--rm", *flags, image, next(names), "/usr/bin/spillway", *words)
                    return done if done.stdout + done.stderr else None
                return wait_for(f"output of {words}", with_output)
            done = ran(["--read-only"], "--version")
            self.assertEqual((done.stdout, done.returncode), (f"spillway {VERSION}\n", 0), done.stderr)
            # Not as root: what only root may do is refused.
            done = ran([], "apiserver", "--data-dir=/usr/bin")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("ermission denied", done.stdout + done.stderr)


class Chart:
    """A chart rendered by the template engine that Helm uses (chart_templates.go), by Debian's Go."""
    GO = peers.ROOT / "usr/lib/go-1.19"

    def __init__(self, chart, folder):
        self.chart, self.program = chart, folder / "chart_templates"
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GOROOT": str(self.GO),
                       "GOPATH": str(peers.ROOT / "usr/share/gocode"), "GO111MODULE": "off",
                       "CGO_ENABLED": "0", "GOCACHE": str(folder / "go-cache")}
        subprocess.run([self.GO / "bin/go", "build", "-o", self.program,
                        pathlib.Path(__file__).with_name("chart_templates.go")], env=environment, check=True)

    def rendered(self, values="", code=0):
        done = subprocess.run([self.program, self.chart], input=values, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr


@needs(shutil.which("kubectl") and Chart.GO.exists(), "needs kubectl, and Debian's Go (tools/peers)")
class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        with tarfile.open(the("_kubernetes.tar.gz")) as archive:
            archive.extractall(self.folder, filter="data")
        self.files = self.folder / f"spillway_{VERSION}_kubernetes"

    def objects(self, kubectl, text):
        """By kind and name, as the server would store them."""
        lines = kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", given=text)
        items = json.loads(lines)["items"]
        for item in items:
            item["metadata"] = {key: item["metadata"].get(key) for key in ("name", "namespace", "labels")}
        return {(item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}

    def test_the_server_takes_them_and_the_chart_says_the_same(self):
        kubeconfig = self.folder / "kubeconfig"
        with running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig",
                     kubeconfig) as process:
            serving(process, kubeconfig)
            kubectl = Kubectl(kubeconfig)
            customized = {}
            for folder in sorted(file.parent for file in (self.files / "deploy").glob("*/kustomization.yaml")):
                text = kubectl("kustomize", folder)
                self.assertIn(f"image: spillway:{VERSION}\n", text)
                customized[folder.name] = self.objects(kubectl, text)
                for item in customized[folder.name].values():
                    item.get("spec", {}).pop("creationTimestamp", None)
            self.assertEqual(set(customized),
                             {"companion", "companion-acting", "controller", "controller-in-charge", "dashboard",
                              "dns"})
            chart = Chart(self.files / "chart", self.folder)
            self.assertEqual(chart.rendered(), "", "nothing is on before it is asked for")
            for part in ("companion", "controller", "dashboard"):
                self.assertEqual(self.objects(kubectl, chart.rendered(f"{part}: {{enabled: true}}")), customized[part])
            acting = self.objects(kubectl,
                                  chart.rendered(
                                      "companion: {enabled: true, flags: ['--eviction-hard=memory.available<300Mi']}"))
            self.assertEqual(acting, customized["companion-acting"])
            others = chart.rendered(
                "image: registry.example/spillway:1\ncontroller: {enabled: true, flags: []}\ndashboard: {enabled: true}"
            )
            self.assertEqual(set(re.findall(r"image: (\S+)", others)), {"registry.example/spillway:1"})
            self.assertIn("can't evaluate", chart.rendered("companion: yes", code=1))

            def words(name):
                return next(item["spec"]["template"]["spec"]["containers"][0]["command"]
                            for item in customized[name].values() if "template" in item.get("spec", {}))
            self.assertIn("--shadow", words("companion"))
            self.assertIn("--shadow", words("controller"))
            self.assertNotIn("--beside-stock-controllers", words("controller"))
            self.assertIn("--eviction-hard=memory.available<300Mi", words("companion-acting"))
            self.assertIn("--beside-stock-controllers", words("controller-in-charge"))


if __name__ == "__main__":
    unittest.main()
