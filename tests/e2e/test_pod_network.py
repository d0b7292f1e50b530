"""Pods with addresses of their own: `spillway up --pod-network on` with the CNI plug-ins, inside a network namespace of this test's own, so that
bridges, rules and addresses are seen by nothing else on the machine, and nothing is left of them after it."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest

import peers
from harness import Kubectl, can_write_cgroups, needs, pod, run, running, serving, wait_for, workspace

PLUGINS = next((folder for folder in (peers.ROOT / "usr/lib/cni", pathlib.Path("/usr/lib/cni"), pathlib.Path("/opt/cni/bin")) if (folder / "bridge").exists()), None)
IPTABLES = next((file for file in (peers.ROOT / "usr/sbin/xtables-nft-multi", pathlib.Path("/usr/sbin/xtables-nft-multi")) if file.exists()), None)
INSIDE = "SPILLWAY_E2E_OWN_NETWORK"
MACHINE = "192.0.2.10"

# Answers each connection on its port with its name and the address that it was reached from.
SERVER = """
import socket, sys
server = socket.create_server(("", int(sys.argv[2])))
print("serving", flush=True)
while True:
    connection, peer = server.accept()
    with connection:
        connection.sendall((sys.argv[1] + " " + peer[0]).encode())
"""

ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as connection:
    print(connection.recv(1000).decode())
"""


def server(name, node, port=8080, **spec):
    made = pod(name, ["/usr/bin/python3", "-c", SERVER, name, str(port)], nodeName=node, **spec)
    made["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    return made


def asked(address, port):
    with socket.create_connection((address, port), timeout=60) as connection:
        return connection.recv(1000).decode()


def devices():
    return {device["ifname"] for device in json.loads(subprocess.check_output(["ip", "-json", "link"]))}


def bridges():
    return {name for name in devices() if name.startswith("spill")}


def veths():
    return {name for name in devices() if name.startswith("veth")}


@needs(can_write_cgroups() and shutil.which("ip"), "root, a writable cgroup hierarchy and iproute2")
@needs(PLUGINS and IPTABLES, "the CNI plug-ins and iptables (tools/peers)")
class PodNetwork(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(workspace()))
        tools = self.folder / "tools"
        tools.mkdir()
        libraries = ":".join(str(folder) for folder in peers.ROOT.glob("usr/lib/*-linux-gnu"))
        extensions = next(iter(peers.ROOT.glob("usr/lib/*-linux-gnu/xtables")), "")
        for name in ("iptables", "ip6tables"):
            own = f"LD_LIBRARY_PATH={libraries} XTABLES_LIBDIR={extensions} " if IPTABLES.is_relative_to(peers.ROOT) else ""
            (tools / name).write_text(f'#!/bin/sh\n{own}exec {IPTABLES} {name} "$@"\n')
            (tools / name).chmod(0o755)
        os.environ["PATH"] = f"{tools}:{os.environ['PATH']}"

    @contextlib.contextmanager
    def up(self, *more, plugins=PLUGINS):
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        with running(self.folder, "up", "--data-dir", self.folder / "data", "--state-dir", self.folder / "state", "--port", "0",
                     "--write-kubeconfig", kubeconfig, "--node-name", "n", "--nodes", "2", "--node-memory", "256Mi",
                     "--cni-bin-dir", plugins, *(more or ("--pod-network", "on"))) as process:
            process.api = serving(process, kubeconfig)
            process.kubectl = Kubectl(kubeconfig)
            wait_for("the nodes", lambda: sorted(process.api.nodes_ready()) == ["n-1", "n-2"])
            yield process

    def ready(self, process, *names):
        """The addresses of these pods, once they are ready."""
        def addresses():
            pods = {each["metadata"]["name"]: each["status"] for each in process.api.get("/api/v1/namespaces/default/pods")["items"]}
            if all(any(c["type"] == "Ready" and c["status"] == "True" for c in pods.get(name, {}).get("conditions", [])) for name in names):
                return [pods[name]["podIP"] for name in names]
            return None
        return wait_for(lambda: f"{names} to be ready\n{process.kubectl('get', 'pods', '-o', 'wide')}{process.kubectl('get', 'events')}", addresses)

    def network_files(self):
        return sorted(file.name for file in self.folder.glob("state/*/network/*"))

    def reserved(self):
        return sorted(file.name for file in self.folder.glob("state/*/cni/addresses/spillway/*.*.*.*"))

    def test_pods_have_addresses_of_their_own(self):
        with self.up() as process:
            process.kubectl.apply({"apiVersion": "v1", "kind": "List", "items": [
                server("a", "n-1"), server("b", "n-1"), server("c", "n-2"), server("d", "n-2"),
                server("outer", "n-1", port=8081, hostNetwork=True)]})
            names = ["a", "b", "c", "d"]
            ips = self.ready(process, *names)
            self.assertEqual(len(set(ips)), 4, "one address each, and all listen on one port")
            ranges = {node["metadata"]["name"]: node["spec"]["podCIDRs"] for node in process.api.get("/api/v1/nodes")["items"]}
            for ip, node in zip(ips, ("n-1", "n-1", "n-2", "n-2")):
                self.assertEqual(ranges[node], [ip.rsplit(".", 1)[0] + ".0/24"])
            self.assertEqual(len(bridges()), 2)
            for name, ip in zip(names, ips):
                with self.subTest("from the machine", pod=name):
                    self.assertEqual(asked(ip, 8080).split()[0], name)
                with self.subTest("from another pod, also of another node", pod=name):
                    self.assertEqual(process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK, ip, "8080").split()[0], name)
            with self.subTest("inside, loopback and the pod's own address"):
                self.assertEqual(process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK, "127.0.0.1", "8080").strip(), "a 127.0.0.1")
                self.assertEqual(process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK, ips[0], "8080").strip(), f"a {ips[0]}")
            with self.subTest("a pod claims the address of another"):
                for claim in ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
                              f"socket.create_server(('{ips[1]}', 9090))"):
                    process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", f"import socket; {claim}", code=1)
            with self.subTest("kubectl port-forward enters the namespace"):
                forward = subprocess.Popen(["kubectl", "port-forward", "pod/b", ":8080"], stdout=subprocess.PIPE, text=True, env=process.kubectl.environment)
                try:
                    port = int(re.search(r"127.0.0.1:(\d+)", forward.stdout.readline())[1])
                    self.assertEqual(asked("127.0.0.1", port), "b 127.0.0.1")
                finally:
                    forward.kill()
                    forward.communicate()
            with self.subTest("a pod of the machine's network"):
                outer = self.ready(process, "outer")[0]
                self.assertEqual(asked(MACHINE, 8081).split()[0], "outer")
                self.assertNotIn(outer, self.reserved())

            with self.subTest("hostPort"):
                published = server("published", "n-2")
                published["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 18080}]
                process.kubectl.apply(published)
                inner = self.ready(process, "published")[0]
                answer = process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK, MACHINE, "18080")
                self.assertEqual(answer.split()[0], "published")
                self.assertIn(inner, self.reserved())

            with self.subTest("an end leaves nothing"):
                process.kubectl("delete", "pod", *names, "outer", "published")
                wait_for(lambda: f"networks to end: {self.network_files()} {veths()} {self.reserved()}",
                         lambda: not self.network_files() and not veths() and not self.reserved())
        self.assertEqual(bridges(), set(), "spillway up has removed its bridges")

    def test_addresses_outlive_the_agent(self):
        options = ("--pod-network", "on", "--pods-at-stop", "leave")
        with self.up(*options) as process:
            process.kubectl.apply({"apiVersion": "v1", "kind": "List", "items": [server("a", "n-1"), server("gone", "n-1")]})
            before = self.ready(process, "a", "gone")
            started = process.kubectl("get", "pod", "a", "-o", "jsonpath={.status.containerStatuses[0].containerID}")
            process.kill()
            self.assertEqual(asked(before[0], 8080).split()[0], "a", "the pod runs on, with its address")
            # A crash may leave files of a network and no pod: they alone say which attachment is to be ended.
            end_pod(self.folder, "gone")
        with self.up() as process:
            self.assertEqual(self.ready(process, "a")[0], before[0])
            self.assertEqual(process.kubectl("get", "pod", "a", "-o", "jsonpath={.status.containerStatuses[0].containerID}"), started)
            self.assertEqual(asked(before[0], 8080).split()[0], "a")
            process.kubectl("delete", "pod", "a", "gone")
            wait_for(lambda: f"networks to end: {self.network_files()} {veths()} {self.reserved()}",
                     lambda: not self.network_files() and not veths() and not self.reserved())
        self.assertEqual(bridges(), set())

    def test_a_start_that_fails_half_way_leaves_no_address(self):
        broken = self.folder / "plugins"
        shutil.copytree(PLUGINS, broken)
        (broken / "portmap").write_text("#!/bin/sh\n[ $CNI_COMMAND != ADD ] || { echo '{\"code\": 7, \"msg\": \"no rules here\"}'; exit 1; }\n")
        with self.up("--pod-network", "on", plugins=broken) as process:
            process.kubectl.apply(server("a", "n-1"))
            def told():
                events = [event["message"] for event in process.api.get("/api/v1/namespaces/default/events")["items"] if event["reason"] == "FailedCreatePodSandBox"]
                return [each for each in events if 'plugin type="portmap" failed (add): no rules here' in each]
            wait_for("the event", told)
            wait_for("nothing to be left", lambda: not self.network_files() and not veths() and not self.reserved())
            shutil.copy(PLUGINS / "portmap", broken / "again")
            os.replace(broken / "again", broken / "portmap")
            self.ready(process, "a")

    def test_without_plugins_pods_use_the_network_of_the_machine(self):
        with self.up("--pod-network", "auto", plugins=self.folder) as process:
            process.kubectl.apply(server("a", "n-1"))
            self.ready(process, "a")
            self.assertEqual(asked("127.0.0.1", 8080).split()[0], "a")
            self.assertIn("containernetworking-plugins", process.log.read_text())
        code, _, error = run("up", "--data-dir", self.folder / "other", "--pod-network", "on", "--cni-bin-dir", self.folder)
        self.assertEqual(code, 2)
        self.assertIn("install containernetworking-plugins", error)


def end_pod(folder, name):
    """Kills what runs of the pod, its supervisors included, and removes its directory."""
    for directory in folder.glob(f"state/*/pods/default_{name}_*"):
        uid = directory.name.rsplit("_", 1)[1]
        for procs in pathlib.Path("/sys/fs/cgroup").glob(f"**/pod{uid}/**/cgroup.procs"):
            for pid in procs.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
        shutil.rmtree(directory, ignore_errors=True)


def in_own_network():
    """This script again, in a network and mount namespace whose machine has one device and one address."""
    setup = (f"ip link set lo up && ip link add machine type bridge && ip addr add {MACHINE}/24 dev machine && ip link set machine up && "
             "ip route add default via 192.0.2.1 && exec \"$@\"")
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", setup, "sh", sys.executable, *sys.argv])


if __name__ == "__main__":
    if os.geteuid() == 0 and PLUGINS and IPTABLES and INSIDE not in os.environ:
        in_own_network()
    unittest.main(verbosity=2)
