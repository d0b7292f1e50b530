"""A containerd of a test's own for the pods of a node: its root, state, socket and network in one folder.

With SPILLWAY_E2E_RUNTIME=containerd a test that was written for the process runtime runs its pods there as well:
harness.one_node starts one, and every container's image is replaced by the one that there is, which holds busybox under
all its names.
"""
import contextlib
import copy
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import containerd_pods
import peers

IMAGE = containerd_pods.IMAGE
LOOPBACK = {"cniVersion": "0.4.0", "name": "test", "plugins": [{"type": "loopback"}]}
BRIDGE = {"cniVersion": "0.4.0", "name": "test",
          "plugins": [{"type": "bridge", "bridge": "spillway-e2e", "isGateway": True,
                       "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.231.99.0/24"}]],
                                "routes": [{"dst": "0.0.0.0/0"}]}}]}
CONFIG = containerd_pods.CONFIG + """
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs}"
    conf_dir = "{folder}/cni"
"""
NEEDS = "needs root, cgroups that can be written, containerd and runc"


@contextlib.contextmanager
def runtime_flags(folder):
    """The flags of a node for the wanted runtime."""
    if not is_wanted():
        yield []
        return
    with serving(folder) as containerd:
        yield [f"--container-runtime-endpoint=unix://{containerd.socket}"]


def is_wanted():
    """Are the pods of this run to be in a containerd?"""
    wanted = os.environ.get("SPILLWAY_E2E_RUNTIME", "process")
    assert wanted in ("process", "containerd"), f"SPILLWAY_E2E_RUNTIME={wanted}: expected process or containerd"
    return wanted == "containerd"


def configure(folder, network, place=None, programs=peers.ROOT / "usr/lib/cni"):
    """config.toml and cni/ in a folder, for a containerd that finds the folder at `place` and the CNI plug-ins at
    `programs`.
    """
    place = place or folder
    (folder / "cni").mkdir(parents=True, exist_ok=True)
    data = copy.deepcopy(network)
    for plugin in data["plugins"]:
        if "ipam" in plugin:
            plugin["ipam"]["dataDir"] = str(place / "leases")
    (folder / "cni/10-test.conflist").write_text(json.dumps(data))
    (folder / "config.toml").write_text(CONFIG.format(folder=place, image=IMAGE, programs=programs))


class Containerd(containerd_pods.Containerd):
    def __init__(self, folder, network=LOOPBACK):
        self.network = network
        self.bridges = [plugin["bridge"] for plugin in network["plugins"] if "bridge" in plugin]
        super().__init__(folder)

    def configure(self):
        configure(self.folder, self.network)

    def ctr(self, *arguments):
        done = subprocess.run(["ctr", "-a", self.socket, "-n", "k8s.io", *arguments], capture_output=True, text=True,
                              check=True)
        return done.stdout.split()

    @contextlib.contextmanager
    def stopped(self):
        """Stops the daemon for a while, so that it answers no call."""
        self.daemon.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.daemon.send_signal(signal.SIGCONT)

    def stop(self):
        super().stop()
        for bridge in self.bridges:
            subprocess.run(["ip", "link", "del", bridge], stderr=subprocess.DEVNULL, check=False)


@contextlib.contextmanager
def serving(folder, network=BRIDGE):
    """Starts a containerd that answers and has the image; yields the flags that a node of `spillway up` needs for
    it.
    """
    place = pathlib.Path(tempfile.mkdtemp(prefix="containerd-", dir=folder))
    containerd = Containerd(place, network)
    try:
        containerd.wait_until_it_answers()
        containerd.import_image()
        yield containerd
    finally:
        containerd.stop()


def lend_machine(pod, container):
    """A program of this machine runs in the image with the machine's libraries."""
    program = pathlib.Path((container.get("command") or [""])[0])
    if not program.is_absolute() or program.parent in (pathlib.Path("/bin"),
                                                       pathlib.Path("/usr/bin")) or not program.is_file():
        return
    for number, folder in enumerate(["/usr", "/lib", "/lib64", str(program.parent)]):
        volume = {"name": f"machine-{number}", "hostPath": {"path": os.path.realpath(folder)}}
        if volume not in pod.setdefault("volumes", []):
            pod["volumes"].append(volume)
        container.setdefault("volumeMounts", []).append({"name": volume["name"], "mountPath": folder, "readOnly": True})


def adapted(document):
    """A pod, or a list of objects, with the image that there is."""
    for each in document.get("items", [document]) if isinstance(document, dict) else []:
        spec = each.get("spec") or {}
        pods = [spec] if each.get("kind", "Pod") == "Pod" else [(spec.get("template") or {}).get("spec") or {}]
        for pod in pods:
            for container in [*pod.get("initContainers", []), *pod.get("containers", [])]:
                if not container.get("image", "").startswith("spillway.test/"):
                    container.update(image=IMAGE, imagePullPolicy="IfNotPresent")
                    lend_machine(pod, container)
    return document
