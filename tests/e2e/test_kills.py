"""`spillway up` with a containerd of its own, killed (SIGKILL) again and again while it starts and while pods come and
go: no container restarts that did not have to, no request at a Service fails, and after a stop nothing is left of pods,
of their networks or of killed servers.

SPILLWAY_KILL_ROUNDS says how often (4), SPILLWAY_KILL_SEED when. It runs in a network and mount namespace of its own.
"""
import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

import containerd_pods
import dns_client
import test_pod_network
from containerd_pods import IMAGE, write_image
from harness import Kubectl, can_write_cgroups, needs, node_cgroups, run, running, serving, wait_for, workspace
from own_containerd import NEEDS
from test_own_images import mounts_of, processes_of, programs
from test_pod_network import INSIDE, IPTABLES, PLUGINS, bridges, devices, in_own_network, offer_iptables, veths

ROUNDS = int(os.environ.get("SPILLWAY_KILL_ROUNDS", "4"))
SEED = int(os.environ.get("SPILLWAY_KILL_SEED", "1"))
PODS = "/api/v1/namespaces/default/pods"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
WEB, DB, CHURN_MAX = 6, 2, 3


def container(command, **more):
    return {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", command], **more}


def workload(kind, name, replicas, made, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"terminationGracePeriodSeconds": 1, "containers": [made]}}, **spec}}


def objects():
    probe = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    serve = container("echo answer > /tmp/word; exec busybox httpd -f -p 80 -h /tmp", readinessProbe=probe)
    store = container("echo begun >> /data/word; exec sleep 100000",
                      volumeMounts=[{"name": "data", "mountPath": "/data"}])
    claims = [{"metadata": {"name": "data"},
               "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
               "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    return {"apiVersion": "v1", "kind": "List", "items": [
        workload("Deployment", "web", WEB, serve), service,
        workload("Deployment", "churn", 0, container("exec sleep 100000")),
        workload("StatefulSet", "db", DB, store, serviceName="db", volumeClaimTemplates=claims)]}


class Load:
    """Sends requests to an address, each on a connection of its own, between enter and exit."""

    def __init__(self, address):
        self.address, self.answers, self.failures = address, collections.Counter(), []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ended.wait(0.02):
            try:
                with socket.create_connection((self.address, 80), timeout=60) as connection:
                    connection.sendall(b"GET /word HTTP/1.0\r\n\r\n")
                    words = connection.makefile().read().split()
                if words:
                    self.answers[words[-1]] += 1
                else:
                    self.failures.append(f"an empty answer at {time.time():.3f}")
            except OSError as error:
                self.failures.append(f"{error} at {time.time():.3f}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
@needs(PLUGINS and IPTABLES and shutil.which("nft") and shutil.which("kubectl"),
       "the CNI plug-ins, iptables, nft and kubectl (tools/peers)")
class Kills(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(workspace()))
        self.addCleanup(run, "end-pods", self.folder / "data")
        offer_iptables(self.folder / "tools")
        self.random = random.Random(SEED)
        self.mounts = None  # number of mounts of the first pods

    def up(self, dns="auto"):
        (self.folder / "kubeconfig").unlink(missing_ok=True)
        return running(self.folder, "up", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig",
                       self.folder / "kubeconfig",
                       "--node-name", "n", "--runtime", "containerd", "--proxy", "on", "--dns", dns, "--log-level",
                       "info", *programs())

    def begin(self, process):
        self.api = serving(process, self.folder / "kubeconfig")
        self.kubectl = Kubectl(self.folder / "kubeconfig")
        wait_for(lambda: f"the node; {process.tail()}", lambda: process.running() and self.api.nodes_ready() == ["n"])

    # The state of the cluster and of the machine.

    def pods(self):
        return {each["metadata"]["name"]: each for each in self.api.get(PODS)["items"]}

    def containers(self):
        """(container id, restarts) of the pods that no one ends, by pod."""
        found = {}
        for name, each in self.pods().items():
            statuses = each["status"].get("containerStatuses", [])
            if not name.startswith("churn") and statuses and "running" in statuses[0]["state"]:
                found[name] = (statuses[0]["containerID"], statuses[0]["restartCount"])
        return found

    def held(self):
        """The number of things of each sort that pods have on this machine."""
        base = self.folder / "data"
        # Running ones count: a container created and not started before a kill stays until its pod ends, as dead ones
        # do.
        tasks = subprocess.run(["ctr", "-a", base / "containerd/containerd.sock", "-n", "k8s.io", "tasks", "ls"],
                               capture_output=True, text=True, check=False).stdout.split()
        pods = {name for top in node_cgroups(base) for _, folders, _ in os.walk(top) for name in folders
                if re.fullmatch("pod[0-9a-f]+(-[0-9a-f]+){4}", name)}
        shims = [pid for pid in processes_of(self.folder) if b"containerd-shim" in words_of(pid)]
        return {"containers": tasks.count("RUNNING") / 2, "shims": len(shims), "cgroups": len(pods),
                "veths": len(veths()),
                "network namespaces": len(namespaces(base)), "addresses": len(addresses(base))}

    def settled(self, process, churn):
        """Waits until pods and what they have on the machine are as wanted, no more and no less."""
        wanted = WEB + DB + churn

        def is_settled():
            pods = self.pods().values()
            ready = [each for each in pods
                     if any(c["type"] == "Ready" and c["status"] == "True"
                            for c in each["status"].get("conditions", []))]
            return len(pods) == len(ready) == wanted and not any("deletionTimestamp" in each["metadata"]
                                                                 for each in pods)
        wait_for(lambda: f"{wanted} pods; {self.kubectl('get', 'pods')} {process.tail()}", is_settled, interval=0.1)
        wait_for(lambda: f"{wanted} of each, no more: {self.held()}", lambda: set(self.held().values()) == {wanted},
                 interval=0.1)
        if churn == 0:
            mounts = len(mounts_of(self.folder))
            self.mounts = self.mounts or mounts
            wait_for(lambda: f"{self.mounts} mounts: {mounts_of(self.folder)}",
                     lambda: len(mounts_of(self.folder)) == self.mounts, interval=0.1)

    def check_dns(self):
        """Every endpoint of kube-dns answers, and there is one."""
        def answers():
            found = [(address, each["ports"][0]["port"]) for each in self.api.get(SLICES)["items"]
                     for endpoint in each["endpoints"] for address in endpoint["addresses"]]
            return found if len(found) == 1 and is_answered(*found[0]) else None
        wait_for("one endpoint of kube-dns that answers", answers, interval=0.1)

    # The test.

    def kill_while_it_starts(self):
        """At any moment of a start, which takes some two seconds."""
        with self.up() as process:
            time.sleep(self.random.uniform(0.01, 2.5))
            process.kill()

    def kill_while_pods_come_and_go(self):
        with self.up() as process:
            self.begin(process)
            self.settled(process, self.churn)
            self.assertEqual(self.containers(), self.before)
            self.check_dns()
            self.churn = CHURN_MAX - self.churn
            self.kubectl("scale", "deployment", "churn", f"--replicas={self.churn}")
            time.sleep(self.random.uniform(0, 1.5))
            process.kill()

    def test_nothing_restarts_and_nothing_is_left(self):
        self.churn = 0
        with self.up() as process:
            self.begin(process)
            write_image(self.folder / "busybox.tar")
            self.assertEqual(run("images", "import", self.folder / "busybox.tar", "--data-dir", self.folder / "data"),
                             (0, f"{IMAGE}\n", ""))
            self.kubectl.apply(objects())
            self.settled(process, 0)
            self.before = self.containers()
            self.assertEqual(len(self.before), WEB + DB)
            address = self.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
            wait_for("the rules of the Service", lambda: test_pod_network.reaches(address, 80))
            process.kill()
        with Load(address) as load:
            for number in range(1, ROUNDS - 1):
                self.kill_while_it_starts() if number % 2 else self.kill_while_pods_come_and_go()
            with self.up() as process:
                self.begin(process)
                self.kubectl("scale", "deployment", "churn", "--replicas=0")
                self.settled(process, 0)
                after = self.containers()
                self.check_dns()
                words = [self.kubectl("exec", f"db-{each}", "--", "cat", "/data/word") for each in range(DB)]
                process.kill()
        restarted = [name for name, identity in self.before.items() if after.get(name) != identity]
        print(
            (
                f"{ROUNDS} kills (seed {SEED}): {len(restarted)} containers restarted;"
                f" {load.answers['answer']} answers, {len(load.failures)} failures"
            ),
            flush=True,
        )
        self.assertEqual((restarted, words), ([], ["begun\n"] * DB))
        self.assertEqual((load.failures, set(load.answers)), ([], {"answer"}))
        with self.up(dns="off") as process:
            self.begin(process)
            self.settled(process, 0)
            wait_for("the slice of the killed DNS server to go", lambda: self.api.get(SLICES)["items"] == [])
            self.assertEqual(self.containers(), self.before)
            self.assertEqual(process.stop(), 0, process.tail())
        self.check_nothing_is_left()

    def check_nothing_is_left(self):
        base = self.folder / "data"
        rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
        left = {"processes": processes_of(self.folder), "mounts": mounts_of(self.folder), "cgroups": node_cgroups(base),
                "veths": veths(), "bridges": bridges(),
                "network namespaces": namespaces(base), "addresses": addresses(base),
                "tables": [line for line in rules.splitlines() if "spillway" in line],
                "devices": devices() - {"lo", "machine"}, "pod directories": list(base.glob("nodes/*/pods/*"))}
        print(f"left after the stop: { {name: len(found) for name, found in left.items()} }", flush=True)
        self.assertEqual({name: found for name, found in left.items() if found}, {})


def words_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def files(base):
    """Files of nodes and of the containerd's state, without those of containers. Folders may go away meanwhile."""
    for top in (base / "nodes", base / "containerd/state"):
        for at, folders, names in os.walk(top):
            folders[:] = [each for each in folders if each != "rootfs"]
            yield from (pathlib.Path(at, name) for name in names)


def namespaces(base):
    return [path for path in files(base) if path.parent.name == "netns"]


def addresses(base):
    """Addresses that are reserved for pods: files of the plug-in host-local."""
    return [path for path in files(base) if re.fullmatch(r"10(\.\d+){3}", path.name)]


def is_answered(address, port):
    try:
        answer = dns_client.ask_udp(port, dns_client.query("web.default.svc.cluster.local"), host=address, timeout=1)
    except OSError:
        return False
    return answer is not None and bool(dns_client.parse(answer).answers)


if __name__ == "__main__":
    if os.geteuid() == 0 and PLUGINS and IPTABLES and INSIDE not in os.environ:
        in_own_network(f"mount -t tmpfs none /opt && mkdir -p /opt/cni/bin && mount --bind {PLUGINS} /opt/cni/bin")
    unittest.main(verbosity=2)
