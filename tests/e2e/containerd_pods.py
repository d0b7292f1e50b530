"""Pods in a containerd of the test's own, for a test that has no gRPC: root, state and socket in one folder, no
network.

usage: containerd_pods.py FOLDER

Starts containerd, imports an image made of busybox-static, and prints {"ready": true}, or {"skip": why}. Then every
line of JSON on standard input makes or removes one pod and is answered by one line:
  {"run": {"name", "namespace", "uid", "cgroup_parent", "log_directory", "command"}} -> {"sandbox", "container"}
  {"remove": SANDBOX} -> {}
Ends with its standard input: all pods are removed and containerd is stopped.
"""
import contextlib
import hashlib
import importlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import peers
from patience import PATIENCE, wait_for

IMAGE = "spillway.test/busybox:1"
PROTO = pathlib.Path(__file__).resolve().parent / "cri_pods.proto"
BUSYBOX = pathlib.Path("/bin/busybox")
NODE, CONTAINER = 2, 1  # namespace modes

CONFIG = """version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{folder}/containerd.sock"
[ttrpc]
  address = "{folder}/containerd.sock.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  stats_collect_period = 1
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
"""


os.environ.update(peers.environment())


def missing():
    """Why containerd cannot be run here; empty: it can."""
    tools = [name for name in ("containerd", "ctr", "runc", "protoc") if shutil.which(name) is None]
    if tools:
        return f"{', '.join(tools)} not installed"
    if not BUSYBOX.exists():
        return "busybox not installed"
    return "" if os.geteuid() == 0 else "not root"


def generated():
    """The messages, compiled from the .proto."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--python_out={folder}", PROTO.name], check=True)
        sys.path.insert(0, folder)
        return importlib.import_module("cri_pods_pb2")


def applets():
    return subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True,
                          check=True).stdout.replace("busybox\n", "").split()


def write_image(path, image=IMAGE, ballast=b"", files=0, programs=(), entries=()):
    """An OCI image of one layer: busybox, links to it by all its names, further programs, a file of nothing but weight,
    and so many empty ones. `entries`: names of further ones, with their bytes and fields."""
    blobs = {}

    def blob(data, media_type, **more):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data), **more}

    def entry(archive, name, data=None, **fields):
        info = tarfile.TarInfo(name)
        info.size = len(data or b"")
        for field, value in fields.items():
            setattr(info, field, value)
        archive.addfile(info, io.BytesIO(data) if data is not None else None)

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for folder in ("bin", "data", "tmp"):
            entry(archive, folder, type=tarfile.DIRTYPE, mode=0o755)
        entry(archive, "bin/busybox", BUSYBOX.read_bytes(), mode=0o755)
        for name in applets():
            entry(archive, f"bin/{name}", type=tarfile.SYMTYPE, linkname="busybox")
        for program in programs:
            entry(archive, f"bin/{program.name}", program.read_bytes(), mode=0o755)
        if ballast:
            entry(archive, "data/ballast", ballast, mode=0o644)
        for number in range(files):
            entry(archive, f"data/{number}", b"", mode=0o644)
        for name, data, fields in entries:
            entry(archive, name, data, **fields)
    content = layer.getvalue()
    config = {"architecture": "amd64", "os": "linux",
              "config": {"Entrypoint": ["/bin/sleep", "100000"], "Env": ["PATH=/bin"]},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
                "layers": [blob(content, "application/vnd.oci.image.layer.v1.tar")]}
    index = {"schemaVersion": 2,
             "manifests": [blob(json.dumps(manifest).encode(), manifest["mediaType"],
                                platform={"architecture": "amd64", "os": "linux"},
                                                    annotations={"io.containerd.image.name": image})]}
    with tarfile.open(path, "w") as archive:
        entry(archive, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        entry(archive, "index.json", json.dumps(index).encode())
        for digest, data in blobs.items():
            entry(archive, f"blobs/sha256/{digest}", data)


class Containerd:
    def __init__(self, folder):
        self.folder = folder
        self.socket = folder / "containerd.sock"
        self.configure()
        self.log = open(folder / "containerd.log", "wb")
        self.daemon = subprocess.Popen(["containerd", "-c", folder / "config.toml"], stdin=subprocess.DEVNULL,
                                       stdout=self.log, stderr=self.log)

    def configure(self):
        (self.folder / "config.toml").write_text(CONFIG.format(folder=self.folder, image=IMAGE))

    def tail(self):
        return (self.folder / "containerd.log").read_text()[-1500:]

    def wait_until_it_answers(self):
        def answers():
            if self.daemon.poll() is not None:
                raise RuntimeError(f"containerd has ended: {self.tail()}")
            return subprocess.run(["ctr", "-a", self.socket, "version"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, check=False).returncode == 0
        wait_for(lambda: f"an answer of containerd: {self.tail()}", answers, interval=0.1)

    def import_image(self, image=IMAGE, ballast=b"", files=0):
        archive = self.folder / "image.tar"
        write_image(archive, image, ballast, files)
        done = subprocess.run(["ctr", "-a", self.socket, "-n", "k8s.io", "images", "import", archive],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"image not imported: {done.stdout}")
        archive.unlink()

    def stop(self):
        self.daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.wait(PATIENCE)
        if self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        self.log.close()


class Pods:
    """The part of the CRI that makes and removes pods."""

    def __init__(self, grpc, messages, socket):
        self.messages = messages
        self.channel = grpc.insecure_channel(f"unix:{socket}")
        self.sandboxes = []

    def call(self, method, request, answer):
        stub = self.channel.unary_unary(f"/runtime.v1.RuntimeService/{method}",
                                        request_serializer=lambda message: message.SerializeToString(),
                                        response_deserializer=answer.FromString)
        return stub(request, timeout=PATIENCE, wait_for_ready=True)

    def run(self, name, namespace, uid, cgroup_parent, log_directory, command):
        m = self.messages
        spaces = m.NamespaceOption(network=NODE, pid=CONTAINER)
        labels = {"io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace,
                  "io.kubernetes.pod.uid": uid}
        config = m.PodSandboxConfig(metadata=m.PodSandboxMetadata(name=name, uid=uid, namespace=namespace),
                                    log_directory=log_directory, labels=labels,
                                    linux=m.LinuxPodSandboxConfig(cgroup_parent=cgroup_parent,
                                                                  security_context=m.SandboxSecurityContext(
                                                                      namespace_options=spaces)))
        os.makedirs(f"{log_directory}/app", exist_ok=True)
        sandbox = self.call("RunPodSandbox", m.RunPodSandboxRequest(config=config),
                            m.RunPodSandboxResponse).pod_sandbox_id
        self.sandboxes.append(sandbox)
        container = m.ContainerConfig(metadata=m.ContainerMetadata(name="app"), image=m.ImageSpec(image=IMAGE),
                                      command=command, log_path="app/0.log",
                                      labels={**labels, "io.kubernetes.container.name": "app"},
                                      linux=m.LinuxContainerConfig(
                                          security_context=m.ContainerSecurityContext(namespace_options=spaces)))
        made = self.call("CreateContainer",
                         m.CreateContainerRequest(pod_sandbox_id=sandbox, config=container, sandbox_config=config),
                         m.CreateContainerResponse)
        self.call("StartContainer", m.StartContainerRequest(container_id=made.container_id), m.Empty)
        return {"sandbox": sandbox, "container": made.container_id}

    def remove(self, sandbox):
        """As a kubelet does: its containers go with it."""
        self.sandboxes.remove(sandbox)
        request = self.messages.PodSandboxRequest(pod_sandbox_id=sandbox)
        self.call("StopPodSandbox", request, self.messages.Empty)
        self.call("RemovePodSandbox", request, self.messages.Empty)
        return {}

    def close(self):
        for sandbox in list(self.sandboxes):
            self.remove(sandbox)
        self.channel.close()


def answer(document):
    print(json.dumps(document), flush=True)


def serve(containerd):
    import grpc  # only where it is needed: a machine without it skips
    pods = Pods(grpc, generated(), containerd.socket)
    try:
        answer({"ready": True})
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer(pods.run(**request["run"]) if "run" in request else pods.remove(request["remove"]))
            except grpc.RpcError as error:
                answer({"error": f"{error.code()}: {error.details()}"})
    finally:
        pods.close()


def main():
    why = missing()
    try:
        importlib.import_module("grpc")
    except ImportError:
        why = why or "python3-grpcio not installed"
    if why:
        return answer({"skip": why})
    containerd = Containerd(pathlib.Path(sys.argv[1]))
    try:
        containerd.wait_until_it_answers()
        containerd.import_image()
        serve(containerd)
    except (AssertionError, RuntimeError) as error:
        answer({"error": str(error)})
    finally:
        containerd.stop()


if __name__ == "__main__":
    main()
