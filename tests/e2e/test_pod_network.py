"""Pods with addresses of their own: `spillway up --pod-network on` with the CNI plug-ins, inside a network namespace of
this test's own, so that bridges, rules and addresses are seen by nothing else on the machine, and nothing is left of
them after it."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest

import peers
from harness import (
    ApiError,
    Kubectl,
    can_write_cgroups,
    needs,
    pids_in,
    pod,
    run,
    running,
    serving,
    wait_for,
    workspace,
)

PLUGINS = next((folder for folder in (peers.ROOT / "usr/lib/cni", pathlib.Path("/usr/lib/cni"),
                                      pathlib.Path("/opt/cni/bin")) if (folder / "bridge").exists()), None)
IPTABLES = next((file for file in (peers.ROOT / "usr/sbin/xtables-nft-multi",
                                   pathlib.Path("/usr/sbin/xtables-nft-multi")) if file.exists()), None)
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

# A server like SERVER that serves on for ten seconds after SIGTERM, as servers do that clients must not miss. On a busy
# machine the rules of its Service may lead to it for seconds.
LEAVING_SERVER = """
import signal, socket, sys, threading
signal.signal(signal.SIGTERM, lambda *_: threading.Timer(10, sys.stdout.close).start())
server = socket.create_server(("", int(sys.argv[2])), backlog=1024)
server.settimeout(0.1)
while not sys.stdout.closed:
    try:
        connection, _ = server.accept()
    except TimeoutError:
        continue
    with connection:
        connection.sendall(sys.argv[1].encode())
"""

ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as connection:
    print(connection.recv(1000).decode())
"""


# Asks the API server with the files and variables that every pod has: prints where it is, and the status of the answer.
ASK_API = """
import os, ssl, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
request = urllib.request.Request(f"https://{host}:{port}/api", headers={"Authorization": "Bearer " + open(folder + "token").read()})
print(host, port, urllib.request.urlopen(request, context=ssl.create_default_context(cafile=folder + "ca.crt"), timeout=60).status)
"""

# Asks the API server without credentials.
ANONYMOUS = """
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    print(urllib.request.urlopen(f"https://{sys.argv[1]}:{sys.argv[2]}/api/v1/secrets", context=context, timeout=60).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""

# Listens at an address.
CLAIM = """
import socket, sys
try:
    socket.create_server((sys.argv[1], 9090))
    print("claimed")
except OSError as error:
    print(error.strerror)
"""

# Connects to the machine's loopback with packets that go to the gateway: a route for that takes a right.
BY_WAY_OF = """
import socket, sys
try:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
        connection.settimeout(5)
        connection.connect(("127.0.0.1", int(sys.argv[2])))
        print("connected")
except TimeoutError:
    print("refused")
except OSError as error:
    print("refused" if isinstance(error, ConnectionRefusedError) else error.strerror)
"""

HANDSHAKE = """
import socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as connection, context.wrap_socket(connection):
        print("served")
except ConnectionRefusedError:
    print("refused")
except (ConnectionResetError, ssl.SSLEOFError):
    print("closed")
"""


def server(name, node, port=8080, **spec):
    made = pod(name, ["/usr/bin/python3", "-c", SERVER, name, str(port)], nodeName=node, **spec)
    made["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    return made


def asked(address, port):
    with socket.create_connection((address, port), timeout=60) as connection:
        return connection.recv(1000).decode()


def reaches(address, port):
    """The machine can connect to it."""
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False


class Load:
    """Asks an address 200 times a second, a new connection each time, between enter and exit."""
    THREADS = 8
    PERIOD = THREADS / 200

    def __init__(self, address, port):
        self.address, self.port = address, port
        self.answers, self.failures, self.slowest = collections.Counter(), [], 0.0
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(self.THREADS)]

    def run(self):
        while not self.ended.wait(self.PERIOD):
            began, doing = time.monotonic(), "connecting"
            try:
                with socket.create_connection((self.address, self.port), timeout=60) as connection:
                    doing = f"reading, from port {connection.getsockname()[1]}"
                    self.answers[connection.recv(1000).decode()] += 1
            except OSError as error:
                self.failures.append(
                    f"{error} after {time.monotonic() - began:.3f} s, {doing}, begun"
                    f" {time.time() - time.monotonic() + began:.3f}"
                )
            self.slowest = max(self.slowest, time.monotonic() - began)

    def __enter__(self):
        for each in self.threads:
            each.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for each in self.threads:
            each.join()


def hardware_addresses():
    """The hardware address of each bridge of spillway, by name."""
    return {device["ifname"]: device["address"]
            for device in json.loads(subprocess.check_output(["ip", "-json", "link"]))
            if device["ifname"].startswith("spill")}


@contextlib.contextmanager
def another_machine():
    """Runs a program of Python on a machine of the same network, whose packets for pods come here."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        wait_for("the other machine",
                 lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
        enter = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        for command in ("ip link add there type veth peer name here", "ip link set here master machine up",
                        f"ip link set there netns {holder.pid}"):
            subprocess.run(command.split(), check=True)
        for command in ("ip link set lo up", "ip addr add 192.0.2.11/24 dev there", "ip link set there up",
                        f"ip route add 10.0.0.0/8 via {MACHINE}"):
            subprocess.run([*enter, *command.split()], check=True)
        yield lambda program, *arguments: subprocess.check_output([*enter, sys.executable, "-c", program, *arguments],
                                                                  text=True).strip()
    finally:
        holder.kill()
        holder.wait()
        subprocess.run(["ip", "link", "delete", "here"], stderr=subprocess.DEVNULL, check=False)


def offer_iptables(tools):
    """From now on programs find iptables, which tools/peers unpacks, by their PATH."""
    tools.mkdir()
    libraries = ":".join(str(folder) for folder in peers.ROOT.glob("usr/lib/*-linux-gnu"))
    extensions = next(iter(peers.ROOT.glob("usr/lib/*-linux-gnu/xtables")), "")
    for name in ("iptables", "ip6tables"):
        own = f"LD_LIBRARY_PATH={libraries} XTABLES_LIBDIR={extensions} " if IPTABLES.is_relative_to(peers.ROOT) else ""
        (tools / name).write_text(f'#!/bin/sh\n{own}exec {IPTABLES} {name} "$@"\n')
        (tools / name).chmod(0o755)
    os.environ["PATH"] = f"{tools}:{os.environ['PATH']}"


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
        offer_iptables(self.folder / "tools")

    @contextlib.contextmanager
    def up(self, *more, plugins=PLUGINS):
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        with running(self.folder, "up", "--data-dir", self.folder / "data", "--state-dir", self.folder / "state",
                     "--port", "0",
                     "--write-kubeconfig", kubeconfig, "--node-name", "n", "--nodes", "2", "--node-memory", "256Mi",
                     "--cni-bin-dir", plugins, *(more or ("--pod-network", "on"))) as process:
            process.api = serving(process, kubeconfig)
            process.kubectl = Kubectl(kubeconfig)
            wait_for("the nodes", lambda: sorted(process.api.nodes_ready()) == ["n-1", "n-2"])
            yield process

    def ready(self, process, *names):
        """The addresses of these pods, once they are ready."""
        def addresses():
            pods = {each["metadata"]["name"]: each["status"]
                    for each in process.api.get("/api/v1/namespaces/default/pods")["items"]}
            if all(any(c["type"] == "Ready" and c["status"] == "True" for c in pods.get(name, {}).get("conditions", []))
                   for name in names):
                return [pods[name]["podIP"] for name in names]
            return None
        return wait_for(
            lambda: (
                f"{names} to be ready\n{process.kubectl('get', 'pods', '-o', 'wide')}{process.kubectl('get', 'events')}"
            ),
            addresses,
        )

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
            ranges = {node["metadata"]["name"]: node["spec"]["podCIDRs"]
                      for node in process.api.get("/api/v1/nodes")["items"]}
            for ip, node in zip(ips, ("n-1", "n-1", "n-2", "n-2")):
                self.assertEqual(ranges[node], [ip.rsplit(".", 1)[0] + ".0/24"])
            self.assertEqual(len(bridges()), 2)
            for name, ip in zip(names, ips):
                with self.subTest("from the machine", pod=name):
                    self.assertEqual(asked(ip, 8080).split()[0], name)
                with self.subTest("from another pod, also of another node", pod=name):
                    self.assertEqual(process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK, ip,
                                                     "8080").split()[0], name)
            with self.subTest("inside, loopback and the pod's own address"):
                self.assertEqual(process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK, "127.0.0.1",
                                                 "8080").strip(), "a 127.0.0.1")
                self.assertEqual(process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK, ips[0],
                                                 "8080").strip(), f"a {ips[0]}")
            with self.subTest("a pod claims the address of another"):
                for claim in ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
                              "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
                              f"socket.create_server(('{ips[1]}', 9090))"):
                    process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", f"import socket; {claim}", code=1)
            with self.subTest("kubectl port-forward enters the namespace"):
                forward = subprocess.Popen(["kubectl", "port-forward", "pod/b", ":8080"], stdout=subprocess.PIPE,
                                           text=True, env=process.kubectl.environment)
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
            process.kubectl.apply({"apiVersion": "v1", "kind": "List",
                                   "items": [server("a", "n-1"), server("gone", "n-1")]})
            before = self.ready(process, "a", "gone")
            started = process.kubectl("get", "pod", "a", "-o", "jsonpath={.status.containerStatuses[0].containerID}")
            process.kill()
            self.assertEqual(asked(before[0], 8080).split()[0], "a", "the pod runs on, with its address")
            # A crash may leave files of a network and no pod: they alone say which attachment is to be ended.
            end_pod(self.folder, "gone")
        with self.up() as process:
            self.assertEqual(self.ready(process, "a")[0], before[0])
            self.assertEqual(process.kubectl("get", "pod", "a", "-o",
                                             "jsonpath={.status.containerStatuses[0].containerID}"), started)
            self.assertEqual(asked(before[0], 8080).split()[0], "a")
            process.kubectl("delete", "pod", "a", "gone")
            wait_for(lambda: f"networks to end: {self.network_files()} {veths()} {self.reserved()}",
                     lambda: not self.network_files() and not veths() and not self.reserved())
        self.assertEqual(bridges(), set())

    def test_a_start_that_fails_half_way_leaves_no_address(self):
        broken = self.folder / "plugins"
        shutil.copytree(PLUGINS, broken)
        (broken / "portmap").write_text(
            "#!/bin/sh\n[ $CNI_COMMAND != ADD ] || { echo '{\"code\": 7, \"msg\": \"no rules here\"}'; exit 1; }\n")
        with self.up("--pod-network", "on", plugins=broken) as process:
            process.kubectl.apply(server("a", "n-1"))
            def told():
                events = [event["message"] for event in process.api.get("/api/v1/namespaces/default/events")["items"]
                          if event["reason"] == "FailedCreatePodSandBox"]
                return [each for each in events if 'plugin type="portmap" failed (add): no rules here' in each]
            wait_for("the event", told)
            wait_for("nothing to be left", lambda: not self.network_files() and not veths() and not self.reserved())
            shutil.copy(PLUGINS / "portmap", broken / "again")
            os.replace(broken / "again", broken / "portmap")
            self.ready(process, "a")

    def test_by_default_replicas_of_one_node_listen_on_one_port(self):
        """The first thing that a newcomer does: a Deployment, its Service, and a call by name, with the API server on
        loopback as it is by default.
        """
        with self.up("--pod-network", "auto", "--proxy", "auto") as process:
            template = server("web", "n-1")
            process.kubectl.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                                   "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                                            "template": {"metadata": {"labels": {"app": "web"}},
                                                         "spec": template["spec"] | {"nodeName": "n-1"}}}})
            process.kubectl("expose", "deployment", "web", "--port", "80", "--target-port", "8080", "--type",
                            "LoadBalancer")
            process.kubectl.apply({"apiVersion": "v1", "kind": "List",
                                   "items": [server("near", "n-1"), server("far", "n-2"),
                                                                                server("outer", "n-2", port=8081,
                                                                                       hostNetwork=True)]})
            process.kubectl("rollout", "status", "deployment/web")
            self.ready(process, "near", "far", "outer")
            replicas = process.kubectl.get("pods", "-l", "app=web")["items"]
            self.assertEqual(len({each["status"]["podIP"] for each in replicas}), 2)
            self.assertEqual([each["status"]["containerStatuses"][0]["restartCount"] for each in replicas], [0, 0])
            cluster_ip = process.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
            wait_for("the rules of the Service", lambda: reaches(cluster_ip, 80))
            with self.subTest("the Service, from the machine"):
                self.assertEqual(asked(cluster_ip, 80).split()[0], "web")
            with self.subTest("the Service at the machine's address, as a load balancer"):
                wait_for("its address", lambda: process.kubectl(
                    "get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}") == MACHINE)
                self.assertRegex(process.kubectl("get", "service", "web"),
                                 rf"LoadBalancer +[0-9.]+ +{re.escape(MACHINE)} ")
                wait_for("the rules of the address", lambda: reaches(MACHINE, 80))
                self.assertEqual(asked(MACHINE, 80).split()[0], "web")
            with self.subTest("the Service at its node port"):
                node_port = int(process.kubectl("get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}"))
                self.assertEqual(asked(MACHINE, node_port).split()[0], "web")
            wait_for("the API server at its Service", lambda: reaches("10.96.0.1", 443))

            def finds(name):
                """True once the pod finds the Service by its name: the DNS server and its rules come in their own
                time.
                """
                try:
                    return process.kubectl("exec", name, "--", "/usr/bin/python3", "-c", ASK, "web", "80") != ""
                except AssertionError:
                    return False
            for name in ("near", "far"):
                wait_for(f"the name of the Service in {name}", lambda name=name: finds(name))
                with self.subTest("the Service by its name, also from the node of its endpoints", pod=name):
                    for _ in range(4):
                        self.assertEqual(process.kubectl("exec", name, "--", "/usr/bin/python3", "-c", ASK, "web",
                                                         "80").split()[0], "web")
                with self.subTest("the API server, with the pod's own token, at the Service kubernetes", pod=name):
                    self.assertEqual(process.kubectl("exec", name, "--", "/usr/bin/python3", "-c", ASK_API).split(),
                                     ["10.96.0.1", "443", "200"])
            with self.subTest("explain"):
                code, said, _ = run("explain", "svc/web", "--node", "n-2", "--kubeconfig", self.folder / "kubeconfig")
                self.assertEqual(code, 0)
                self.assertRegex(said, r"(?m)^ +ADDRESS +KIND")
                self.assertRegex(said, rf"{re.escape(cluster_ip)}:80/TCP +ClusterIP +2 endpoints +Cluster +kept +none")
                for each in replicas:
                    self.assertRegex(said, rf"{re.escape(each['status']['podIP'])}:8080 +used +80 +yes +yes +no +no")
            with self.subTest("a pod of the machine's network is told of loopback"):
                self.assertEqual(process.kubectl("exec", "outer", "--", "/usr/bin/python3", "-c", ASK_API).split()[::2],
                                 ["127.0.0.1", "200"])
            with self.subTest("the API server at its Service, from the machine"):
                self.assertTrue(reaches("10.96.0.1", 443))
            with self.subTest("the API server at the bridge: another machine is not served"):
                endpoint = process.kubectl.get("endpoints", "kubernetes")["subsets"][0]
                gateway, port = endpoint["addresses"][0]["ip"], endpoint["ports"][0]["port"]
                self.assertTrue(reaches(gateway, port))
                with another_machine() as elsewhere:
                    self.assertEqual(elsewhere(HANDSHAKE, MACHINE, "9"), "refused")  # the machine is reached
                    self.assertEqual(elsewhere(HANDSHAKE, gateway, str(port)), "closed")
            bridge_count = len(bridges())
        self.assertEqual(bridge_count, 2)
        self.assertEqual(bridges() | veths(), set(), "spillway up has removed its bridges, and the pods' devices")
        self.assertNotIn("spillway",
                         subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout)

    def test_a_rollout_under_load_loses_no_request(self):
        def deployment(version):
            template = server("web", "n-1")
            del template["spec"]["nodeName"]
            template["spec"]["terminationGracePeriodSeconds"] = 60
            template["spec"]["containers"][0]["command"] = ["/usr/bin/python3", "-c", LEAVING_SERVER, version, "8080"]
            return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                    "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}},
                             "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                             "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]}}}
        with self.up("--pod-network", "auto", "--proxy", "auto") as process:
            wait_for("the bridges", lambda: len(bridges()) == 2)
            before = hardware_addresses()
            process.kubectl.apply(deployment("first"))
            process.kubectl("expose", "deployment", "web", "--port", "80", "--target-port", "8080")
            process.kubectl("rollout", "status", "deployment/web")
            cluster_ip = process.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
            wait_for("the rules of the Service", lambda: reaches(cluster_ip, 80))
            with Load(cluster_ip, 80) as load:
                wait_for("answers", lambda: load.answers["first"] > 100)
                process.kubectl.apply(deployment("second"))
                process.kubectl("rollout", "status", "deployment/web")
                wait_for("the old pods to end",
                         lambda: len(process.api.get("/api/v1/namespaces/default/pods")["items"]) == 4)
                since = load.answers["second"]
                wait_for("answers of the new pods", lambda: load.answers["second"] > since + 100)
            self.assertEqual(hardware_addresses(), before,
                             "pods keep the address of their gateway, so it must not follow the ports")
            print(
                f"a rollout of 4 pods: {sum(load.answers.values())} answers, {len(load.failures)} failures, slowest"
                f" {load.slowest * 1000:.0f} ms"
            )
            self.assertEqual(load.failures, [])
            self.assertEqual(set(load.answers), {"first", "second"})

    def test_the_slice_of_the_dns_server_goes_with_it(self):
        def slices(process):
            return [each["metadata"]["name"]
                    for each in process.api.get("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices")[
                        "items"]]
        with self.up("--proxy", "auto") as process:
            names = wait_for("the slice of kube-dns", lambda: slices(process))
            self.assertEqual([bool(re.fullmatch("kube-dns-[0-9a-f]{8}", name)) for name in names], [True])
        with self.up("--proxy", "auto", "--dns", "off") as process:
            self.assertEqual(slices(process), [])

    def test_doors_of_network_and_services(self):
        """Pods and users that try to get at what is not theirs: refused, or led nowhere, as upstream does."""
        services, slices = (
            "/api/v1/namespaces/default/services",
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        )
        with self.up("--proxy", "auto") as process:
            process.kubectl.apply({"apiVersion": "v1", "kind": "List",
                                   "items": [server("a", "n-1"), server("thief", "n-2")]})
            own, thief = self.ready(process, "a", "thief")
            wait_for("the API server at its Service", lambda: reaches("10.96.0.1", 443))

            def from_pod(program, *arguments):
                return process.kubectl("exec", "thief", "--", "/usr/bin/python3", "-c", program,
                                       *map(str, arguments)).strip()

            def refused(path, document):
                with self.assertRaises(ApiError) as caught:
                    process.api.create(path, document)
                self.assertEqual(caught.exception.code, 422)
                return str(caught.exception)

            port = {"ports": [{"name": "p", "port": 443, "targetPort": 8080}]}
            with self.subTest("a Service asks for the address of the API server's"):
                self.assertIn("provided IP is already allocated",
                              refused(services, {"metadata": {"name": "thief"},
                                                 "spec": {"clusterIP": "10.96.0.1", **port}}))
            with self.subTest(
                "a Service names the address of the API server's Service as external: the older one keeps it"):
                process.api.create(services,
                                   {"metadata": {"name": "thief"},
                                    "spec": {"externalIPs": ["10.96.0.1", "198.51.100.9"], **port}})
                process.api.create(slices,
                                   {"metadata": {"name": "thief-1", "labels": {"kubernetes.io/service-name": "thief"}},
                                    "addressType": "IPv4",
                                            "ports": [{"name": "p", "port": 8080, "protocol": "TCP"}],
                                    "endpoints": [{"addresses": [thief]}]})
                wait_for("the rules of its other address", lambda: reaches("198.51.100.9", 443))
                self.assertEqual(asked("198.51.100.9", 443).split()[0], "thief")
                for _ in range(8):
                    self.assertEqual(process.kubectl("exec", "a", "--", "/usr/bin/python3", "-c", ASK_API).split()[-1],
                                     "200")
            with self.subTest(
                "a Service asks for a port at which a program of the machine listens, by the machine's address"):
                with socket.create_server((MACHINE, 0)) as program:
                    taken = program.getsockname()[1]
                    process.api.create(services,
                                       {"metadata": {"name": "greedy"},
                                        "spec": {"type": "LoadBalancer",
                                                 "ports": [{"port": taken, "targetPort": 8080}]}})
                    wait_for("the event", lambda: f"listens at port {taken}/TCP" in process.kubectl("get", "events"))
                    self.assertEqual(process.api.get(f"{services}/greedy")["status"]["loadBalancer"], {})
                process.api.delete(f"{services}/greedy")
            with self.subTest("endpoints on loopback, link-local and multicast addresses"):
                for address in ("127.0.0.1", "169.254.169.254", "224.0.0.1"):
                    refused(slices, {"metadata": {"name": "loop", "labels": {"kubernetes.io/service-name": "thief"}},
                                     "addressType": "IPv4", "endpoints": [{"addresses": [address]}]})
            with self.subTest("a pod asks the API server at the bridge, and has no token: as any client"):
                endpoint = process.kubectl.get("endpoints", "kubernetes")["subsets"][0]
                gateway, api_port = endpoint["addresses"][0]["ip"], endpoint["ports"][0]["port"]
                self.assertEqual(from_pod(ANONYMOUS, gateway, api_port), "403")
            with self.subTest("loopback of the machine, where the API server listens, is not the pod's"):
                self.assertEqual(from_pod(HANDSHAKE, "127.0.0.1", api_port), "refused")
                self.assertTrue(reaches("127.0.0.1", api_port))
            with self.subTest("an address on loopback that is sent to the bridge"):
                self.assertIn(from_pod(BY_WAY_OF, gateway, api_port), ("refused", "Operation not permitted"))
            with self.subTest("the store, and the networks of other pods, are no files of the pod"):
                for path in (self.folder / "data", self.folder / "state", "/proc/1/root" + str(self.folder)):
                    self.assertEqual(from_pod(
                        "import os, sys; print(os.path.exists(sys.argv[1]) and os.listdir(sys.argv[1]))", path),
                                     "False")
            with self.subTest("a pod takes the address of another, or that of its gateway"):
                for address in (own, gateway, "10.96.0.1"):
                    self.assertTrue(from_pod(CLAIM, address).startswith("Cannot assign requested address"))

    def test_without_plugins_pods_use_the_network_of_the_machine(self):
        with self.up("--pod-network", "auto", plugins=self.folder) as process:
            process.kubectl.apply(server("a", "n-1"))
            self.ready(process, "a")
            self.assertEqual(asked("127.0.0.1", 8080).split()[0], "a")
            self.assertIn("containernetworking-plugins", process.log.read_text())
        code, _, error = run("up", "--data-dir", self.folder / "other", "--pod-network", "on", "--cni-bin-dir",
                             self.folder)
        self.assertEqual(code, 2)
        self.assertIn("install containernetworking-plugins", error)

    def test_a_machine_that_may_not_forward_packets_is_found_before_anything_starts(self):
        forwarding = pathlib.Path("/proc/sys/net/ipv4/ip_forward")
        before = forwarding.read_text()
        self.addCleanup(forwarding.write_text, before)
        forwarding.write_text("0")
        subprocess.run(["mount", "--bind", "/proc/sys", "/proc/sys"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/proc/sys"], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", "/proc/sys"], check=True)
        code, _, error = run("up", "--data-dir", self.folder / "other", "--pod-network", "on", "--cni-bin-dir", PLUGINS)
        self.assertEqual(code, 2, error)
        self.assertIn("--pod-network on: /proc/sys/net/ipv4/ip_forward is not 1 and cannot be written here", error)


def end_pod(folder, name):
    """Kills what runs of the pod, its supervisors included, and removes its directory."""
    for directory in folder.glob(f"state/*/pods/default_{name}_*"):
        uid = directory.name.rsplit("_", 1)[1]
        groups = [at for at, _, _ in os.walk("/sys/fs/cgroup") if f"/pod{uid}" in at]  # skips what goes away meanwhile
        for group in groups:
            for pid in pids_in(pathlib.Path(group, "cgroup.procs")):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
        shutil.rmtree(directory, ignore_errors=True)


def in_own_network(more="true"):
    """This script again, in a network and mount namespace whose machine has one device and one address. `more`:
    commands before it.
    """
    setup = (
        f"ip link set lo up && ip link add machine type bridge && ip addr add {MACHINE}/24 dev machine && ip link set"
        f' machine up && ip route add default via 192.0.2.1 && {more} && exec "$@"'
    )
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", setup, "sh",
                          sys.executable, *sys.argv])


if __name__ == "__main__":
    if os.geteuid() == 0 and PLUGINS and IPTABLES and INSIDE not in os.environ:
        in_own_network()
    unittest.main(verbosity=2)
