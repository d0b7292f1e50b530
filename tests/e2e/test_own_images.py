"""`spillway up` with a containerd of its own: images come from an archive, a Deployment runs them, and the containers
outlive a killed `spillway up`. Nothing of containerd is left at the end, and images are there at the next start. And
what it says on a machine without containerd.

containerd and runc are those that tools/peers unpacks, named by flags.
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import unittest

import containerd_pods
import peers
from containerd_pods import IMAGE, write_image
from harness import (
    BINARY,
    Kubectl,
    PATIENCE,
    can_write_cgroups,
    needs,
    node_cgroups,
    room_on_disks,
    run,
    running,
    serving,
    wait_for,
    workspace,
)
from own_containerd import NEEDS
from test_up import terminal

PODS = "/api/v1/namespaces/default/pods"
MACHINE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # without programs of tools/peers


def programs():
    """Flags that name containerd and runc."""
    return [f"--{name}={shutil.which(name)}" for name in ("containerd", "runc")]


def deployment(replicas):
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never",
                 "command": ["/bin/sh", "-c", "echo begun; exec sleep 1000"]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                     "template": {"metadata": {"labels": {"app": "web"}},
                                  "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 1,
                                           "containers": [container]}}}}


def processes_of(folder):
    """Processes whose command line names a file of the folder's containerd: the daemon and its shims."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if f"{folder}/data/containerd/" in words and pathlib.Path(words.split("\0")[0]).name.startswith(
                "containerd"):
                found.append(int(entry.name))
    return sorted(found)


def mounts_of(folder):
    return [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines() if f" {folder}/" in line]


def plain_pod(name, *command):
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": list(command)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}


def run_with_network(folder):
    """Where CNI plug-ins are installed: without a wish for a runtime, pods have images and addresses, and reach each
    other.
    """
    archive, kubeconfig = folder / "busybox.tar", folder / "kubeconfig"
    write_image(archive)
    with running(folder, "up", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig", kubeconfig,
                 "--node-name", "n", "--runtime", "auto",
                 *programs()) as process:
        api, kubectl = serving(process, kubeconfig), Kubectl(kubeconfig)
        wait_for(lambda: f"the node; {process.tail()}", lambda: process.running() and api.nodes_ready() == ["n"])
        imported = run("images", "import", archive, "--data-dir", folder / "data")
        assert imported == (0, f"{IMAGE}\n", ""), imported
        api.create(PODS, plain_pod("server", "/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/bin"))
        api.create(PODS, plain_pod("client", "/bin/sleep", "1000"))
        wait_for(lambda: f"the pods; {api.pod_phases()}",
                 lambda: api.pod_phases() == {"client": "Running", "server": "Running"})
        status = api.get(f"{PODS}/server")["status"]
        assert status["podIP"].startswith("10.244.0."), status
        # A pod runs before its program listens.
        fetched = lambda: int(kubectl("exec", "client", "--", "/bin/sh", "-c",
                                      f"busybox wget -q -O - http://{status['podIP']}/busybox | busybox wc -c"))
        wait_for("the whole file", lambda: fetched() == containerd_pods.BUSYBOX.stat().st_size)
        assert process.stop() == 0, process.tail()
    assert (processes_of(folder), mounts_of(folder)) == ([], [])


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class OwnImages(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.archive = self.folder / "busybox.tar"
        write_image(self.archive)
        self.addCleanup(self.end_left)

    def end_left(self):
        run("end-pods", self.folder / "data")

    def up(self, *more):
        (self.folder / "kubeconfig").unlink(missing_ok=True)
        return running(self.folder, "up", "--data-dir", self.folder / "data", "--state-dir", self.folder / "state",
                       "--port", "0", "--write-kubeconfig",
                       self.folder / "kubeconfig", "--node-name", "n", "--runtime", "containerd", *programs(), *more)

    def begin(self, process):
        self.api = serving(process, self.folder / "kubeconfig")
        self.kubectl = Kubectl(self.folder / "kubeconfig")
        wait_for(lambda: f"the node; {process.tail()}", lambda: process.running() and self.api.nodes_ready() == ["n"])

    def images(self, *words):
        code, out, error = run("images", *words, "--data-dir", self.folder / "data")
        self.assertEqual((code, error), (0, ""), out)
        return out

    def containers(self):
        """(container id, restart count) of running pods, by pod."""
        found = {}
        for each in self.api.get(PODS)["items"]:
            for status in each["status"].get("containerStatuses", []):
                if "running" in status["state"]:
                    found[each["metadata"]["name"]] = (status["containerID"], status["restartCount"])
        return found

    def running_pods(self, count):
        return wait_for(lambda: f"{count} pods to run; {self.api.pod_phases()}",
                        lambda: (lambda found: found if len(found) == count else None)(self.containers()))

    def answered(self, *words):
        """Waits for kubectl to succeed: a node that has just begun does not know its pods yet. The output."""
        def output():
            try:
                return self.kubectl(*words)
            except AssertionError:
                return None
        return wait_for(f"an answer to {words}", output)

    def wait_for_log(self, name):
        wait_for(f"the log of {name}", lambda: self.answered("logs", name) == "begun\n")

    def test_images_run_and_outlive_a_killed_up(self):
        with self.up() as process:
            self.begin(process)
            node = self.api.get("/api/v1/nodes/n")
            self.assertTrue(node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://"),
                            node["status"]["nodeInfo"])
            self.assertEqual(self.images("import", self.archive), f"{IMAGE}\n")
            listed = {name for each in json.loads(self.images("list", "-o", "json"))["images"]
                      for name in each["repoTags"]}
            self.assertIn(IMAGE, listed)
            self.api.create("/apis/apps/v1/namespaces/default/deployments", deployment(2))
            first = self.running_pods(2)
            self.assertTrue(all(identity.startswith("containerd://") for identity, _ in first.values()), first)
            name = sorted(first)[0]
            self.assertEqual(self.kubectl("exec", name, "--", "/bin/busybox", "echo", "inside"), "inside\n")
            self.wait_for_log(name)
            self.assertEqual(self.images("prune"), "Freed: 0\n")
            self.assertNotEqual(node_cgroups(self.folder / "data"), [])
            process.kill()
        daemons = processes_of(self.folder)
        self.assertNotEqual(daemons, [])
        with self.up() as process:
            self.begin(process)
            self.assertEqual(self.running_pods(2), first)
            self.assertEqual(processes_of(self.folder), daemons)
            self.assertEqual(self.answered("exec", name, "--", "/bin/busybox", "echo", "again"), "again\n")
            self.assertEqual(process.stop(), 0, process.tail())
        self.assertEqual(processes_of(self.folder), [])
        self.assertEqual(mounts_of(self.folder), [])
        self.assertEqual(node_cgroups(self.folder / "data"), [])
        # network namespaces lie in state
        self.assertEqual(sorted(os.listdir(self.folder / "data/containerd")), ["config.toml", "containerd.log", "root"])
        with self.up() as process:
            self.begin(process)
            # The objects may still say what ran before the stop.
            ended = {identity for identity, _ in first.values()}
            wait_for(lambda: f"other containers than {ended}; {self.containers()}",
                     lambda: len(found := self.containers()) == 2
                     and ended.isdisjoint(identity for identity, _ in found.values()))

    def test_containerd_that_is_killed_is_started_again(self):
        with self.up() as process:
            self.begin(process)
            self.images("import", self.archive)
            self.api.create("/apis/apps/v1/namespaces/default/deployments", deployment(1))
            first = self.running_pods(1)

            def process_id():
                try:
                    return (self.folder / "data/containerd/process").read_text().split()[0]
                except FileNotFoundError:  # between the end of one and the start of the next
                    return ""
            pid = process_id()
            os.kill(int(pid), 9)
            wait_for("another containerd", lambda: process_id() not in ("", pid))
            wait_for("it to answer", lambda: run("images", "list", "--data-dir", self.folder / "data")[0] == 0)
            self.assertEqual(self.running_pods(1), first)
            self.wait_for_log(sorted(first)[0])

    def test_by_itself_it_takes_containerd_and_pods_have_addresses(self):
        """In a mount namespace where the plug-ins lie at their usual place."""
        place = (
            'mount --make-rprivate /; mount -t tmpfs none /opt; mkdir -p /opt/cni/bin; mount --bind "$0" /opt/cni/bin;'
            ' exec "$@"'
        )
        done = subprocess.run(["unshare", "-m", "sh", "-ec", place, peers.ROOT / "usr/lib/cni", sys.executable,
                               __file__, "--network", self.folder],
                              capture_output=True, text=True, timeout=4 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_only_root_reaches_it(self):
        with self.up() as process:
            self.begin(process)
            base = self.folder / "data/containerd"
            self.assertEqual(stat.S_IMODE(base.stat().st_mode), 0o700)
            self.assertEqual(base.stat().st_uid, 0)
            for path in (base, base / "containerd.sock"):
                refused = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", path],
                                         capture_output=True, text=True,
                                         timeout=PATIENCE)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn("Permission denied", refused.stderr)

    def test_no_pod_without_a_host_path_reaches_it(self):
        """Also not one that uses the network of the machine, and with it the sockets that have no file."""
        with self.up() as process:
            self.begin(process)
            self.images("import", self.archive)
            made = plain_pod("near", "/bin/sleep", "1000")
            made["spec"]["hostNetwork"] = True
            self.api.create(PODS, made)
            self.running_pods(1)
            base = self.folder / "data/containerd"
            for path in (base, base / "containerd.sock", f"/proc/1/root{base}", "/run/containerd"):
                self.kubectl("exec", "near", "--", "/bin/ls", str(path), code=1)
            sockets = self.kubectl("exec", "near", "--", "/bin/cat", "/proc/net/unix")
            self.assertEqual([line for line in sockets.splitlines() if " @" in line and "containerd" in line], [])

    def test_layers_stay_inside_their_image(self):
        """Names upwards, absolute names, links and hard links out of the layer, devices: nothing is written or read
        beside the image.
        """
        away, escape = self.folder / "away", "../" * 20
        away.mkdir()
        (away / "secret").write_text("of the machine")
        entries = [("/absolute-name", b"x", {}), (f"{escape}upwards", b"x", {}), ("data/../../../middle", b"x", {}),
                   ("out", None, {"type": tarfile.SYMTYPE, "linkname": str(away)}), ("out/through-a-link", b"x", {}),
                   ("up", None, {"type": tarfile.SYMTYPE, "linkname": escape + str(away).strip("/")}),
                   ("up/through-another", b"x", {}),
                   ("disk", None, {"type": tarfile.BLKTYPE, "devmajor": 7, "devminor": 0, "mode": 0o666}),
                   ("memory", None, {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 1, "mode": 0o666})]
        hard = [("hard", None, {"type": tarfile.LNKTYPE, "linkname": escape + str(away / "secret").strip("/")})]
        names = ("spillway.test/links:1", "spillway.test/hard:1")
        with self.up() as process:
            self.begin(process)
            for name, more in zip(names, (entries, hard)):
                write_image(self.archive, image=name, entries=more)
                self.images("import", self.archive)
                made = plain_pod(name.split("/")[1].split(":")[0], "/bin/sleep", "1000")
                made["spec"]["hostNetwork"] = True
                made["spec"]["containers"][0]["image"] = name
                self.api.create(PODS, made)

            def states():
                return {each["metadata"]["name"]: each["status"].get("containerStatuses", [{}])[0].get("state", {})
                        for each in self.api.get(PODS)["items"]}
            seen = wait_for(lambda: f"an end of both: {states()}", lambda: (found := states()) and all(
                "running" in each or each.get("waiting", {}).get("reason", "").startswith(("Create", "Err", "Image"))
                for each in found.values()) and found)
            print(f"layers that lead out: { {name: next(iter(state)) for name, state in seen.items()} }", flush=True)
            if "running" in seen["links"]:
                for path in ("/disk", "/memory"):
                    self.kubectl("exec", "links", "--", "/bin/dd", f"if={path}", "of=/dev/null", "count=1", code=1)
            if "running" in seen["hard"]:
                self.kubectl("exec", "hard", "--", "/bin/cat", "/hard", code=1)
        self.assertEqual(sorted(os.listdir(away)), ["secret"])
        self.assertEqual([name for name in ("absolute-name", "upwards", "middle") if (pathlib.Path("/") / name).exists()
                          or list(self.folder.glob(name))], [])

    def test_it_says_what_it_would_start(self):
        code, out, error = run("up", "--runtime", "containerd", *programs(), "--data-dir", self.folder / "data",
                               "--print-config")
        self.assertEqual((code, error), (0, ""))
        self.assertIn(f"unix://{self.folder}/data/containerd/containerd.sock", out)
        self.assertIn(f'#   root = "{self.folder}/data/containerd/root"', out)
        self.assertFalse((self.folder / "data").exists())


@needs(shutil.which("containerd", path=MACHINE_PATH) is None and can_write_cgroups(),
       "needs root, cgroups that can be written, and no installed containerd")
class Texts(unittest.TestCase):
    """On a machine without containerd."""

    def setUp(self):
        self.folder = self.enterContext(workspace())

    def test_containerd_is_wished_for_and_absent(self):
        done = subprocess.run([BINARY, "up", "--runtime", "containerd", "--data-dir", self.folder / "data"],
                              env={**os.environ, "PATH": MACHINE_PATH},
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--runtime: containerd is not complete on this machine; install it: apt install containerd ",
                      done.stderr)
        self.assertFalse((self.folder / "data").exists())

    def test_the_first_screen_names_what_images_need(self):
        flags = ["up", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig",
                 self.folder / "kubeconfig", "--node-name", "n", *room_on_disks()]
        with terminal(*flags, PATH=MACHINE_PATH) as shown:
            shown.wait_for("Stop ")
            self.assertRegex(shown.text(),
                             r"Images .* apt install containerd .*runc, then start again: pods run images\n")
            self.assertEqual(shown.interrupt(), 0)

    def test_a_runtime_that_cannot_be(self):
        code, _, error = run("up", "--runtime", "docker")
        self.assertEqual(code, 2)
        self.assertIn("--runtime: expected auto, containerd, process or the path of a socket, got \"docker\"", error)

    def test_images_without_a_containerd(self):
        code, _, error = run("images", "list", "--data-dir", self.folder / "data")
        self.assertEqual(code, 1)
        self.assertIn("no containerd of `spillway up` runs here", error)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--network"]:
        run_with_network(pathlib.Path(sys.argv[2]))
    else:
        unittest.main()
