"""Real processes for the end-to-end tests: starts `spillway`, talks to it, and leaves nothing behind."""
import atexit
import base64
import collections
import contextlib
import copy
import functools
import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest

import own_containerd
import turns
from patience import PATIENCE, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HIERARCHIES = pathlib.Path("/sys/fs/cgroup")
BINARY = pathlib.Path(os.environ.get("SPILLWAY", ROOT / "build/release/src/apps/spillway"))


def skip(reason):
    """Ends a test that this machine cannot run. In CI every test runs: there it fails."""
    if os.environ.get("CI"):
        raise AssertionError(f"in CI nothing is skipped: {reason}")
    raise unittest.SkipTest(reason)


def needs(condition, reason):
    """Skips a test, or a class of them, where `condition` is false; fails in CI."""
    if condition or not os.environ.get("CI"):
        return unittest.skipUnless(condition, reason)
    raise AssertionError(f"in CI nothing is skipped: {reason}")


class ApiError(Exception):
    def __init__(self, code, status):
        super().__init__(f"{code}: {status.get('message', status)}")
        self.code, self.status = code, status


class Api:
    """A client for one kubeconfig as Spillway writes it."""

    def __init__(self, kubeconfig, timeout=PATIENCE):
        text = pathlib.Path(kubeconfig).read_text()

        def field(name):
            found = re.search(rf'^\s*-?\s*{name}:\s*"?([^"\s]+)"?\s*$', text, re.M)
            return found.group(1) if found else None

        server = re.match(r"(https?)://\[?([^\]]+?)\]?:(\d+)", field("server"))
        self.scheme, self.host, self.port = server.group(1), server.group(2), int(server.group(3))
        self.timeout, self.token, self.context = timeout, field("token"), None
        if self.scheme == "https":
            self.context = ssl.create_default_context(
                cadata=base64.b64decode(field("certificate-authority-data")).decode())
            if field("client-certificate-data"):
                with tempfile.NamedTemporaryFile("wb", suffix=".pem") as pem:
                    pem.write(base64.b64decode(field("client-certificate-data")) + b"\n"
                              + base64.b64decode(field("client-key-data")))
                    pem.flush()
                    self.context.load_cert_chain(pem.name)
        self.connection = None

    def connect(self):
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.context)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)

    def close(self):
        """Ends the connection; the next request opens another."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def request(self, method, path, body=None, content_type="application/json"):
        """The parsed answer; ApiError for a failure, OSError or HTTPException if no answer came."""
        headers = {"Content-Type": content_type} if body is not None else {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        text = body if body is None or isinstance(body, bytes) else json.dumps(body)
        try:
            kept = self.connection is not None
            self.send(method, path, text, headers)
            try:
                answer = self.connection.getresponse()
            except ConnectionResetError:  # the server may end a connection that was idle for long just then
                if not kept or method != "GET":
                    raise
                self.close()
                self.send(method, path, text, headers)
                answer = self.connection.getresponse()
            data = answer.read()
        except Exception:
            self.close()
            raise
        document = json.loads(data) if answer.headers.get_content_type() == "application/json" else data.decode()
        if answer.status >= 400:
            raise ApiError(answer.status, document if isinstance(document, dict) else {"message": document})
        return document

    def send(self, method, path, body, headers):
        """On the connection of the last request if the server has kept it, else on another one."""
        if self.has_ended():
            self.close()
        if self.connection is not None:
            try:
                return self.connection.request(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                self.close()
        self.connection = self.connect()
        self.connection.request(method, path, body, headers)

    def has_ended(self):
        """True if the server has ended the connection of the last request, because it was idle for long: its end is all
        that there is to read on it."""
        if self.connection is None or self.connection.sock is None:
            return False
        if self.connection.sock.fileno() < 0:
            return True
        poller = select.poll()
        poller.register(self.connection.sock, select.POLLIN)
        return bool(poller.poll(0))

    def get(self, path):
        return self.request("GET", path)

    def find(self, path):
        """The object, or None if there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def create(self, path, body):
        if own_containerd.is_wanted() and path.endswith(("/pods", "/replicasets", "/daemonsets")):
            body = own_containerd.adapted(copy.deepcopy(body))
        return self.request("POST", path, body)

    def delete(self, path, grace=None):
        return self.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace}
                            if grace is not None else None)

    def patch(self, path, body, kind="merge"):
        return self.request("PATCH", path, body, f"application/{kind}-patch+json")

    def nodes_ready(self):
        """Names of the nodes whose Ready condition is True."""
        return [node["metadata"]["name"] for node in self.get("/api/v1/nodes")["items"]
                if any(c["type"] == "Ready" and c["status"] == "True"
                       for c in node.get("status", {}).get("conditions", []))]

    def pod_phases(self, namespace="default"):
        return {pod["metadata"]["name"]: pod["status"].get("phase")
                for pod in self.get(f"/api/v1/namespaces/{namespace}/pods")["items"]}


def account_kubeconfig(api, administrator, account, namespace="kube-system"):
    """A kubeconfig beside the administrator's, with a new token of a service account, which the server may still have
    to make."""
    wait_for(f"the account {account}", lambda: api.find(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}"))
    token = api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                       {"spec": {}})["status"]["token"]
    text = pathlib.Path(administrator).read_text()
    server, authority = (re.search(rf"{field}: *\"?([^\"\s]+)", text).group(1)
                         for field in ("server", "certificate-authority-data"))
    file = pathlib.Path(administrator).parent / f"{account}.kubeconfig"
    file.write_text(
        f"apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: x\n  cluster:\n    server: {server}\n"
                    f"    certificate-authority-data: {authority}\nusers:\n- name: x\n  user:\n    token: {token}\n"
                    "contexts:\n- name: x\n  context:\n    cluster: x\n    user: x\n")
    return file


def let_run_out(api, lease):
    """Lets the lease of a leader that was killed or stopped end a second from now. Leases are long in tests: a leader
    that waits for a processor keeps its own."""
    api.patch(lease, {"spec": {"leaseDurationSeconds": 1}})


def refusals(api):
    """The number of requests that the API server has refused as forbidden, by verb and resource."""
    found = re.findall(r"^apiserver_request_total\{(.*)\} (\d+)", api.get("/metrics"), re.M)
    labelled = [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), int(count)) for labels, count in found]
    return collections.Counter({(labels["verb"], labels["resource"]): count for labels, count in labelled
                                if labels["code"] == "403"})


def program_in_pods():
    """The name of the program under test in a pod. Pods of the process runtime have it in their PATH wherever it lies,
    and not by its path if it lies below /tmp: that is a directory of their own."""
    return str(BINARY) if own_containerd.is_wanted() else "spillway"


def pod(name, command, **spec):
    resources = spec.pop("resources", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "none", "command": command, "resources": resources}],
                     "terminationGracePeriodSeconds": 1, **spec}}


def has_default_thresholds(arguments):
    """Does this command line begin a node whose eviction thresholds its test has not chosen?"""
    words = [str(each) for each in arguments]
    if words[0] not in ("up", "agent") or {"--companion", "--config-dir", "--eviction-hard"} & set(words):
        return False
    return "--config" not in words or "evictionHard" not in pathlib.Path(words[words.index("--config") + 1]).read_text()


@functools.cache
def room_on_disks():
    """Flags for a node that refuses no pod because a disk of this machine is nearly full: a drop-in directory for its
    configuration.
    """
    directory = tempfile.TemporaryDirectory(prefix="spillway-e2e-conf-")
    atexit.register(directory.cleanup)
    (pathlib.Path(directory.name) / "room.conf").write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "mergeDefaultEvictionSettings": True,
        "evictionHard": {f"{disk}.{what}": "0.1%" for disk in ("nodefs", "imagefs")
                         for what in ("available", "inodesFree")},
        "imageGCHighThresholdPercent": 100}))
    return "--config-dir", directory.name


def leaves_runtime_open(arguments):
    """Does this command line begin an `up` that would take a containerd of this machine if there is one?"""
    words = [str(each) for each in arguments]
    if words[0] != "up" or any(word.startswith(("--runtime", "--container-runtime-endpoint")) for word in words):
        return False
    return "--config" not in words or "containerRuntimeEndpoint" not in pathlib.Path(
        words[words.index("--config") + 1]).read_text()


class Process:
    """One running spillway. Its output goes to a file, shown when a test fails; `stdout`: an open file for standard
    output alone.
    """

    def __init__(self, folder, *arguments, stdout=None):
        if has_default_thresholds(arguments):
            arguments = (*arguments, *room_on_disks())
        if leaves_runtime_open(arguments):
            arguments = (*arguments, "--runtime", "process")
        if arguments[0] == "up" and "--proxy" not in arguments:
            # one process on a machine carries Services; tests run beside each other
            arguments = (*arguments, "--proxy", "off")
        if arguments[0] == "scheduler" and "--secure-port" not in arguments:
            arguments = (*arguments, "--secure-port", "0")  # any free one: its default is one of all machines
        self.clients = []  # closed with the process
        self.log = pathlib.Path(folder) / f"{arguments[0]}-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen([BINARY, *map(str, arguments)], stdout=stdout or log, stderr=log,
                                          stdin=subprocess.DEVNULL)

    def running(self):
        return self.child.poll() is None

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.close_clients()

    def close_clients(self):
        while self.clients:
            self.clients.pop().close()

    def stop(self, timeout=PATIENCE):
        """SIGTERM; the exit code."""
        self.close_clients()
        if self.running():
            self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not stop within {timeout} s of SIGTERM: {self.tail()}") from None

    def tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def instance_of(state):
    """The folder of a node's cgroup, as the agent names it: the state directory's 64-bit FNV-1a, cut to half."""
    value = 0xcbf29ce484222325
    for byte in str(state).encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value % 2**32:08x}"


def node_cgroups(state):
    found = [hierarchy / "spillway" / instance_of(state) for hierarchy in [HIERARCHIES, *HIERARCHIES.iterdir()]]
    return [folder for folder in found if folder.exists()]


def state_folders(folder):
    """State directories of nodes that have run pods below `folder`, at most three folders deep. Folders that go away
    meanwhile are skipped."""
    found = []
    for at, names, _ in os.walk(folder):
        depth = len(pathlib.Path(at).relative_to(folder).parts)
        if depth and "pods" in names:
            found.append(pathlib.Path(at))
        if depth == 3:
            names.clear()
    return found


def pids_in(procs):
    """The processes in a cgroup.procs that may go away meanwhile."""
    try:
        return [int(pid) for pid in procs.read_text().split()]
    except OSError:
        return []


def processes_of_pods(folder, part="kubepods"):
    """Processes of `spillway up` or of agents whose files are below the folder; part "supervisors": what runs beside
    their containers.
    """
    tops = [top for state in [pathlib.Path(folder) / "data", *state_folders(folder)] for top in node_cgroups(state)]
    # Cgroups that go away meanwhile are skipped.
    nodes = [os.path.join(top, name) for top in tops for name in next(os.walk(top), (top, [], []))[1]]
    groups = [group for node in nodes for group, _, _ in os.walk(os.path.join(node, part))]
    return sorted({pid for group in groups for pid in pids_in(pathlib.Path(group, "cgroup.procs"))})


def end_cgroups(*states):
    """Ends the processes of nodes with these state directories, then removes their cgroups."""
    for state in states:
        for node in node_cgroups(state):
            for at, _, _ in os.walk(node, topdown=False):
                def is_gone(at=at):
                    for pid in pids_in(pathlib.Path(at, "cgroup.procs")):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    with contextlib.suppress(OSError):
                        os.rmdir(at)
                    return not os.path.exists(at)
                wait_for(f"{at} to go", is_gone)


def end_left_pods(folder):
    """An agent leaves its pods to the next one: those of this folder's have none."""
    end_cgroups(*state_folders(folder))


@contextlib.contextmanager
def workspace():
    folder = tempfile.mkdtemp(prefix="spillway-e2e-")
    try:
        yield pathlib.Path(folder)
    finally:
        end_left_pods(folder)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running(folder, *arguments, stdout=None):
    process = Process(folder, *arguments, stdout=stdout)
    try:
        yield process
    except BaseException:
        print(f"--- {process.log.name}\n{process.tail(40)}", flush=True)
        raise
    finally:
        process.close_clients()
        if process.running():
            process.stop()
        if turns.judge is not None:
            turns.judge.add(arguments[0], process.log)


def serving(process, kubeconfig):
    """An Api once the server has written its kubeconfig; it lives as long as the process."""
    def ready():
        assert process.running(), f"exited with {process.child.returncode}: {process.tail()}"
        return os.path.exists(kubeconfig)
    wait_for("the kubeconfig", ready)
    process.clients.append(Api(kubeconfig))
    return process.clients[-1]


class Kubectl:
    """kubectl with the identity of a kubeconfig; each call gives what it printed: on standard error if it is to fail.
    A command that waits gives up after PATIENCE, and prints what it has waited for.
    """

    def __init__(self, kubeconfig):
        self.environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(pathlib.Path(kubeconfig).parent)}

    def __call__(self, *arguments, given=None, code=0):
        if arguments[0] in ("wait", "delete") or arguments[:2] == ("rollout", "status"):
            arguments = (*arguments, f"--timeout={PATIENCE:.0f}s")
        done = subprocess.run(["kubectl", *arguments], input=given, capture_output=True, text=True,
                              env=self.environment, timeout=2 * PATIENCE, check=False)
        assert (
            done.returncode == code
        ), f"kubectl {' '.join(arguments)}: exit {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
        return done.stderr if code else done.stdout

    def log_of(self, name):
        """The log of the pod's container, once it has begun and written something."""
        def written():
            if self("get", "pod", name, "-o", "jsonpath={.status.phase}") == "Pending":
                return ""
            try:
                return self("logs", name).strip()
            except AssertionError:  # an agent that has just begun anew has not started it yet
                return ""
        return wait_for(f"the log of {name}", written)

    def apply(self, document):
        if own_containerd.is_wanted():
            document = own_containerd.adapted(copy.deepcopy(document))
        return self("apply", "-f", "-", given=json.dumps(document))

    def get(self, *arguments):
        return json.loads(self("get", *arguments, "-o", "json"))


@contextlib.contextmanager
def one_node(folder, *more):
    """`spillway up` with one node "n" of 256Mi, once it is ready; `api` and `kubectl` of the process talk to it."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)
    with contextlib.ExitStack() as stack:
        if own_containerd.is_wanted() and not any(str(each).startswith("--container-runtime-endpoint")
                                                  for each in more):
            more = (*more,
                    f"--container-runtime-endpoint=unix://{stack.enter_context(own_containerd.serving(folder)).socket}")
        process = stack.enter_context(running(folder, "up", "--data-dir", folder / "data", "--state-dir",
                                              folder / "state", "--port", "0", "--write-kubeconfig", kubeconfig,
                                              "--node-name", "n", "--node-memory", "256Mi", *more))
        process.api = serving(process, kubeconfig)
        process.kubectl = Kubectl(kubeconfig)
        wait_for("the node", lambda: process.api.nodes_ready() == ["n"])
        yield process


def run(*arguments, timeout=PATIENCE):
    """Runs spillway to its end: (exit code, standard output, standard error)."""
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def can_write_cgroups():
    return os.geteuid() == 0 and any(os.access(path, os.W_OK)
                                     for path in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/cgroup.procs"))
