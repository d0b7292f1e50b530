"""`spillway proxy` with real nftables, in network namespaces of the test's own: this process moves into one, which is
the node; pods and a client from outside have one each. Objects are written to an API server of the test's own; nothing
leaves the namespaces."""
import collections
import ctypes
import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from harness import can_write_cgroups, needs, one_node, PATIENCE, pod, run, running, serving, wait_for, workspace

CLONE_NEWNET = 0x40000000
NODE, OUTSIDE, VIP = "192.0.2.1", "192.0.2.9", "198.51.100.7"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
# Answers each TCP connection and each datagram with its own name, and with the address of the sender.
SERVER = """
import select, socket, sys
name, port = sys.argv[1], int(sys.argv[2])
tcp = socket.create_server(("0.0.0.0", port), backlog=128)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", port))
print("ready", flush=True)
while True:
    for each in select.select([tcp, udp], [], [])[0]:
        if each is tcp:
            there, sender = tcp.accept()
            there.sendall(f"{name} {sender[0]}".encode())
            there.close()
        else:
            _, sender = udp.recvfrom(100)
            udp.sendto(f"{name} {sender[0]}".encode(), sender)
"""
# Asks so often, and prints the answers, or why there is none, one a line.
CLIENT = """
import socket, sys
protocol, host, port, times, patience = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
for _ in range(times):
    try:
        if protocol == "tcp":
            with socket.create_connection((host, port), timeout=patience) as there:
                print(there.recv(100).decode() or "nothing" if port != 443 else "connected")
        else:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
                there.settimeout(patience)
                there.connect((host, port))
                there.send(b"?")
                print(there.recv(100).decode())
    except TimeoutError:
        print("timeout")
    except ConnectionRefusedError:
        print("refused")
    except OSError as error:  # a network that does not lead there yet
        print("unreachable:", error)
"""


def sh(script):
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True, text=True)


def may_make_networks():
    return os.geteuid() == 0 and all(map(shutil.which, ("ip", "nft", "nsenter", "unshare"))) and subprocess.run(
        ["unshare", "-n", "nft", "add table ip probe"], capture_output=True, check=False).returncode == 0


class Network:
    """One network namespace beside the node's, with one address, which the node reaches by a route."""

    def __init__(self, name, address, outside=False):
        self.name, self.address, self.servers = name, address, []
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo ready; exec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n"
        pid = self.holder.pid
        sh(f"ip link add v-{name} type veth peer name eth0 netns {pid}; ip link set v-{name} up")
        if outside:
            sh(f"ip address add {NODE}/24 dev v-{name}; ip route add default via {address}")
            self.sh(
                f"ip address add {address}/24 dev eth0; ip link set eth0 up; ip link set lo up; ip route add {VIP} via"
                f" {NODE}"
            )
        else:
            sh(f"ip route add {address} dev v-{name}; echo 1 > /proc/sys/net/ipv4/conf/v-{name}/proxy_arp")
            self.sh(
                f"ip address add {address}/32 dev eth0; ip link set eth0 up; ip link set lo up; ip route add"
                " 169.254.1.1 dev eth0; ip route add default via 169.254.1.1"
            )

    def enter(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-n", *words]

    def sh(self, script):
        subprocess.run(self.enter("sh", "-ec", script), check=True, capture_output=True, text=True)

    def serve(self, port):
        server = subprocess.Popen(self.enter(sys.executable, "-c", SERVER, self.name, str(port)),
                                  stdout=subprocess.PIPE, text=True)
        self.servers.append(server)
        assert server.stdout.readline() == "ready\n"

    def ask(self, host, port, protocol="tcp", times=1, patience=PATIENCE):
        return ask(host, port, protocol, times, patience, self.enter())

    def close(self):
        for process in (*self.servers, self.holder):
            process.kill()
            process.wait()
            process.stdout.close()


def ask(host, port, protocol="tcp", times=1, patience=PATIENCE, enter=()):
    done = subprocess.run([*enter, sys.executable, "-c", CLIENT, protocol, host, str(port), str(times), str(patience)],
                          capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def names(answers):
    return collections.Counter(answer.split()[0] for answer in answers)


def service(name, cluster_ip, **spec):
    ports = spec.pop("ports", [{"name": "main", "port": 80, "protocol": "TCP"}])
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": cluster_ip, "ports": ports, **spec}}


def endpoint_slice(of, addresses, port=8080, protocol="TCP", node="node", **conditions):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": of, "labels": {"kubernetes.io/service-name": of}}, "addressType": "IPv4",
            "ports": [{"name": "main", "port": port, "protocol": protocol}],
            "endpoints": [{"addresses": [address], "nodeName": node, "conditions": {"ready": True, **conditions}}
                          for address in addresses]}


@needs(may_make_networks(), "needs root, ip, nft, and a kernel with nftables")
class ServiceProxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # This process is the node from here on. It ends with the test, and its namespace with it.
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        sh("ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward")
        cls.folder = cls.enterClassContext(workspace())
        cls.pods = []
        for index, name in enumerate(("one", "two", "caller")):
            cls.pods.append(Network(name, f"10.44.0.{index + 2}"))
            cls.addClassCleanup(cls.pods[-1].close)
        cls.one, cls.two, cls.caller = cls.pods
        cls.outside = Network("outside", OUTSIDE, outside=True)
        cls.addClassCleanup(cls.outside.close)
        for pod in (cls.one, cls.two):
            pod.serve(8080)
        sh("nft 'add table ip foreign { chain kept { type filter hook input priority 0 ; counter accept ; } ; }'")
        kubeconfig = cls.folder / "kubeconfig"
        server = cls.enterClassContext(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port",
                                               "0", "--write-kubeconfig", kubeconfig))
        cls.api = serving(server, kubeconfig)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}
        cls.api.create("/api/v1/nodes", node)
        cls.api.patch("/api/v1/nodes/node/status", {"status": {"addresses": [{"type": "InternalIP", "address": NODE}]}})
        cls.words = ("proxy", "--kubeconfig", kubeconfig, "--hostname-override", "node", "--cluster-cidr",
                     "10.44.0.0/16", "--min-sync-period", "10ms",
                     "--metrics-bind-address", "127.0.0.1:10249")
        cls.proxy = cls.enterClassContext(running(cls.folder, *cls.words))
        cls.wait_until_loaded()

    @classmethod
    def wait_until_loaded(cls):
        def loaded():
            assert cls.proxy.running(), cls.proxy.tail()
            return "packet rules loaded" in cls.proxy.log.read_text()
        wait_for("the first rules", loaded)

    def rules(self):
        return subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout

    def make(self, made, *slices):
        self.api.create(SERVICES, made)
        self.addCleanup(self.api.delete, f"{SERVICES}/{made['metadata']['name']}")
        for each in slices:
            self.api.create(SLICES, each)
            self.addCleanup(self.api.delete, f"{SLICES}/{each['metadata']['name']}")

    def wait_for_rule(self, text, there=True):
        wait_for(f"{text} {'in' if there else 'to leave'} the rules", lambda: (text in self.rules()) == there)

    def test_cluster_ip_leads_to_all_endpoints_from_pods_and_from_the_node(self):
        self.make(service("web", "10.96.1.1"), endpoint_slice("web", [self.one.address, self.two.address]))
        self.wait_for_rule("10.96.1.1 . tcp . 80 : goto")
        for answers in (self.caller.ask("10.96.1.1", 80, times=40), ask("10.96.1.1", 80, times=40)):
            self.assertEqual(set(names(answers)), {"one", "two"}, answers)
        self.assertEqual({answer.split()[1] for answer in self.caller.ask("10.96.1.1", 80, times=10)},
                         {self.caller.address}, "traffic of pods keeps its source")
        self.assertEqual(self.caller.ask("10.96.1.1", 81), ["refused"], "another port of an active address")

    def test_a_pod_reaches_itself_through_its_service(self):
        self.make(service("self", "10.96.1.2"), endpoint_slice("self", [self.one.address]))
        self.wait_for_rule("10.96.1.2 . tcp . 80 : goto")
        answers = self.one.ask("10.96.1.2", 80)
        self.assertEqual(names(answers), {"one": 1})
        self.assertNotEqual(answers[0].split()[1], self.one.address,
                            "its source is another one: it would not answer itself")

    def test_node_port_from_outside(self):
        self.make(service("np", "10.96.1.3", type="NodePort",
                          ports=[{"name": "main", "port": 80, "nodePort": 30333, "protocol": "TCP"}]),
                  endpoint_slice("np", [self.one.address, self.two.address]))
        self.wait_for_rule("tcp . 30333 : goto")
        self.assertEqual(set(names(self.outside.ask(NODE, 30333, times=40))), {"one", "two"})
        self.assertEqual(set(names(ask(NODE, 30333, times=40))), {"one", "two"}, "from the node itself")

    def test_local_policy_keeps_the_source_and_drops_without_local_endpoints(self):
        ports = [{"name": "main", "port": 80, "nodePort": 30334, "protocol": "TCP"}]
        self.make(service("local", "10.96.1.4", type="NodePort", ports=ports, externalTrafficPolicy="Local"),
                  endpoint_slice("local", [self.one.address]))
        self.wait_for_rule("tcp . 30334 : goto")
        self.assertEqual(self.outside.ask(NODE, 30334), [f"one {OUTSIDE}"])
        self.api.patch(f"{SLICES}/local",
                       {"endpoints": endpoint_slice("local", [self.one.address], node="other")["endpoints"]})
        self.wait_for_rule("tcp . 30334 : drop")
        self.assertEqual(self.outside.ask(NODE, 30334, patience=1), ["timeout"], "a load balancer tries another node")
        self.assertEqual(names(self.caller.ask(NODE, 30334)), {"one": 1}, "pods of the cluster are short-circuited")

    def test_source_ranges_of_a_load_balancer(self):
        self.make(service("lb", "10.96.1.5", type="LoadBalancer", loadBalancerSourceRanges=[f"{OUTSIDE}/32"]),
                  endpoint_slice("lb", [self.one.address]))
        self.api.patch(f"{SERVICES}/lb/status", {"status": {"loadBalancer": {"ingress": [{"ip": VIP}]}}})
        self.wait_for_rule(f"{VIP} . tcp . 80 : goto firewall")
        self.assertEqual(names(self.outside.ask(VIP, 80)), {"one": 1})
        self.assertEqual(self.caller.ask(VIP, 80, patience=1), ["timeout"], "not in the range")

    def test_session_affinity(self):
        self.make(service("sticky", "10.96.1.6", sessionAffinity="ClientIP"),
                  endpoint_slice("sticky", [self.one.address, self.two.address]))
        self.wait_for_rule("10.96.1.6 . tcp . 80 : goto")
        first = names(self.caller.ask("10.96.1.6", 80, times=30))
        self.assertEqual(len(first), 1, first)
        gone = list(first)[0]
        rest = self.two if gone == "one" else self.one
        self.api.patch(f"{SLICES}/sticky", {"endpoints": endpoint_slice("sticky", [rest.address])["endpoints"]})
        wait_for("the other endpoint", lambda: set(names(self.caller.ask("10.96.1.6", 80, times=5))) == {rest.name})

    def test_without_endpoints_connections_are_refused_and_an_endpoint_that_goes_gets_no_more(self):
        self.make(service("empty", "10.96.1.7"), endpoint_slice("empty", []))
        self.wait_for_rule("10.96.1.7 . tcp . 80 : goto reject-it")
        self.assertEqual([self.caller.ask("10.96.1.7", 80), ask("10.96.1.7", 80)], [["refused"], ["refused"]])
        self.api.patch(f"{SLICES}/empty",
                       {"endpoints": endpoint_slice("empty", [self.one.address, self.two.address])["endpoints"]})
        wait_for("both endpoints", lambda: set(names(self.caller.ask("10.96.1.7", 80, times=30))) == {"one", "two"})
        self.api.patch(f"{SLICES}/empty", {"endpoints": endpoint_slice("empty", [self.two.address])["endpoints"]})
        wait_for("one endpoint", lambda: set(names(self.caller.ask("10.96.1.7", 80, times=30))) == {"two"})

    def test_udp_flows_leave_an_endpoint_that_is_gone(self):
        self.make(service("dns", "10.96.1.8", ports=[{"name": "main", "port": 53, "protocol": "UDP"}]),
                  endpoint_slice("dns", [self.one.address], protocol="UDP"))
        self.wait_for_rule("10.96.1.8 . udp . 53 : goto")
        # One socket: the same flow for the kernel.
        flow = subprocess.Popen(self.caller.enter(sys.executable, "-uc", """
import socket, sys
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there.connect(("10.96.1.8", 53))
there.settimeout(0.2)
for _ in sys.stdin:
    try:
        there.send(b"?")
        print(there.recv(100).decode())
    except OSError:
        print("nothing")
"""), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (flow.kill(), flow.wait(), flow.stdin.close(), flow.stdout.close()))

        def answer():
            flow.stdin.write("\n")
            flow.stdin.flush()
            return flow.stdout.readline().split()[0]

        wait_for("the first endpoint", lambda: answer() == "one")
        self.api.patch(f"{SLICES}/dns", {"endpoints": endpoint_slice("dns", [self.two.address])["endpoints"]})
        wait_for("the second endpoint", lambda: answer() == "two")

    def test_health_check_of_a_load_balancer(self):
        self.make(service("checked", "10.96.1.9", type="LoadBalancer", externalTrafficPolicy="Local",
                          healthCheckNodePort=30399), endpoint_slice("checked", [self.one.address]))

        def answer():
            try:
                with urllib.request.urlopen(f"http://{NODE}:30399/any", timeout=PATIENCE) as there:
                    return there.status, json.load(there), there.headers["X-Load-Balancing-Endpoint-Weight"]
            except urllib.error.HTTPError as refused:
                return refused.code, json.load(refused), refused.headers["X-Load-Balancing-Endpoint-Weight"]
            except OSError:
                return None
        said = {"service": {"namespace": "default", "name": "checked"}, "localEndpoints": 1,
                "serviceProxyHealthy": True}
        wait_for("the server", lambda: answer() == (200, said, "1"))
        self.api.patch(f"{SLICES}/checked", {"endpoints": []})
        wait_for("no endpoint", lambda: answer() == (503, {**said, "localEndpoints": 0}, "0"))

    def test_health_and_metrics(self):
        with urllib.request.urlopen("http://127.0.0.1:10256/healthz", timeout=PATIENCE) as there:
            self.assertTrue(json.load(there)["nodeEligible"])
        with urllib.request.urlopen("http://127.0.0.1:10249/metrics", timeout=PATIENCE) as there:
            self.assertRegex(there.read().decode(), r"(?m)^kubeproxy_sync_proxy_rules_duration_seconds_count [1-9]")
        with urllib.request.urlopen("http://127.0.0.1:10249/proxyMode", timeout=PATIENCE) as there:
            self.assertEqual(there.read(), b"nftables")

    def test_rules_of_others_are_left_alone_and_a_second_proxy_is_refused(self):
        code, _, said = run(*self.words)
        self.assertEqual(code, 1)
        self.assertIn("another spillway proxy serves this machine already", said)
        self.assertIn("table ip foreign", self.rules())

    def test_rules_that_others_removed_are_restored_with_the_next_change(self):
        sh("nft delete table ip spillway-proxy")
        self.make(service("again", "10.96.1.10"), endpoint_slice("again", [self.one.address]))
        self.wait_for_rule("10.96.1.10 . tcp . 80 : goto")
        self.assertEqual(names(self.caller.ask("10.96.1.10", 80)), {"one": 1})

    def test_y_a_proxy_killed_twenty_times_loses_no_connection(self):
        """Rules belong to the kernel, and a new process changes them in one transaction: connections do not notice that
        it has died.
        """
        self.make(service("steady", "10.96.1.12"), endpoint_slice("steady", [self.one.address, self.two.address]))
        self.wait_for_rule("10.96.1.12 . tcp . 80 : goto")
        script = CLIENT + "    if sys.stdin in __import__('select').select([sys.stdin], [], [], 0.005)[0]: break\n"
        client = subprocess.Popen(self.caller.enter(sys.executable, "-c", script, "tcp", "10.96.1.12", "80", "1000000",
                                                    str(PATIENCE)),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(client.kill)
        for _ in range(20):
            self.proxy.kill()
            type(self).proxy = self.enterClassContext(running(self.folder, *self.words))
            self.wait_until_loaded()
        answers = names(client.communicate("end\n", timeout=PATIENCE)[0].splitlines())
        print(f"proxy killed 20 times: {answers.total()} connections, answered by {dict(answers)}")
        self.assertEqual(set(answers), {"one", "two"})

    def test_zz_the_rules_stay_at_a_stop_and_go_with_cleanup(self):
        self.make(service("stays", "10.96.1.11"), endpoint_slice("stays", [self.one.address]))
        self.wait_for_rule("10.96.1.11 . tcp . 80 : goto")
        self.assertEqual(self.proxy.stop(), 0)
        self.assertEqual(names(self.caller.ask("10.96.1.11", 80)), {"one": 1}, "connections go on without the process")
        self.assertEqual(run("proxy", "--cleanup"), (0, "", ""))
        left = self.rules()
        self.assertNotIn("spillway", left)
        self.assertIn("table ip foreign", left)
        self.assertEqual(run("proxy", "--cleanup"), (0, "", ""), "there is nothing left to remove")


@needs(may_make_networks() and can_write_cgroups(), "needs root, ip, nft, and a kernel with nftables")
class Up(unittest.TestCase):
    """`spillway up` carries Services of the machine that it runs on, and leaves nothing behind."""

    @classmethod
    def setUpClass(cls):
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        sh(
            f"ip link set lo up; ip link add d0 type veth peer name d1; ip address add {NODE}/24 dev d0; ip link set d0"
            f" up; ip link set d1 up; ip route add default via {OUTSIDE}"
        )

    def test_the_api_server_is_reached_by_the_address_of_its_service(self):
        with workspace() as folder:
            with one_node(folder, "--proxy", "on", "--bind-address", NODE, "--advertise-address", NODE):
                wait_for("the address of the Service kubernetes",
                         lambda: ask("10.96.0.1", 443, patience=1) == ["connected"])
                code, _, said = run("proxy", "--kubeconfig", folder / "kubeconfig")
                self.assertEqual(code, 1, said)
                self.assertIn("another spillway proxy serves this machine already", said)
            left = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
            self.assertNotIn("spillway", left)

    def test_a_pod_reaches_a_service_by_its_name(self):
        """Proxy and DNS together: a pod opens the page that another serves."""
        port = 8123
        script = ("import time, urllib.request\n"
                  "while True:\n"
                  "    try:\n"
                  "        print('answer', urllib.request.urlopen('http://web/', timeout=5).status, flush=True)\n"
                  "        break\n"
                  "    except OSError:\n"
                  "        time.sleep(0.2)\n")
        with workspace() as folder, one_node(folder, "--proxy", "auto") as process:
            server = pod("server", ["/usr/bin/python3", "-m", "http.server", str(port)])
            server["metadata"]["labels"] = {"app": "web"}
            process.api.create("/api/v1/namespaces/default/pods", server)
            process.api.create("/api/v1/namespaces/default/services", {
                "metadata": {"name": "web"},
                "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": port}]}})
            process.api.create("/api/v1/namespaces/default/pods",
                               pod("client", ["/usr/bin/python3", "-c", script], restartPolicy="Never"))
            wait_for("the client to end", lambda: process.api.pod_phases().get("client") == "Succeeded")
            self.assertEqual(process.kubectl("logs", "client"), "answer 200\n")


if __name__ == "__main__":
    unittest.main()
