"""`spillway proxy` and `spillway dns` with 1, 100 and 5,000 Services of ten endpoints: how long the rules take, what
one endpoint's change costs, how long a connection takes, and the memory of both. In network namespaces of the test's
own, as test_service_proxy. It prints the figures; what it asserts is that a connection costs about the same with one
Service and with all, and that one change costs a small part of the whole.

SPILLWAY_SERVICES says how many there are (5000).
"""
import concurrent.futures
import ctypes
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time
import unittest

import dns_client
import process_memory
from harness import Api, needs, running, serving, wait_for, workspace
from test_service_proxy import (
    CLONE_NEWNET,
    NODE,
    OUTSIDE,
    SERVICES,
    SLICES,
    Network,
    endpoint_slice,
    may_make_networks,
    service,
    sh,
)

MOST = int(os.environ.get("SPILLWAY_SERVICES", "5000"))
STEPS = sorted({1, min(100, MOST), MOST})
ENDPOINTS = 10
PROBES = 400
CHANGES = 10
# Connects so often, and prints the microseconds of each connection.
CONNECT = """
import socket, sys, time
for _ in range(int(sys.argv[3])):
    began = time.perf_counter()
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) as there:
        connected = time.perf_counter()
        there.recv(100)
    print(int((connected - began) * 1e6))
"""


def cluster_ip(number):
    return f"10.96.{1 + number // 250}.{1 + number % 250}"


def elsewhere(number):
    """Endpoints that no machine has."""
    return [f"10.45.{number * ENDPOINTS // 250 % 250}.{1 + (number * ENDPOINTS + each) % 250}"
            for each in range(ENDPOINTS)]


def processor_seconds(process):
    """The processor time of the process and of the programs that it ran."""
    fields = pathlib.Path(f"/proc/{process.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def answers(address):
    try:
        with socket.create_connection((address, 80), timeout=0.05) as there:
            return there.recv(100) != b""
    except OSError:
        return False


@needs(may_make_networks(), "needs root, ip, nft, and a kernel with nftables")
class ManyServices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # This process is the node from here on. It ends with the test, and its namespace with it.
        assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        sh(
            "ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward; ip link add d0 type veth peer name d1; ip link"
            f" set d0 up; ip link set d1 up; ip address add {NODE}/24 dev d0; ip route add default via {OUTSIDE}"
        )
        cls.folder = cls.enterClassContext(workspace())
        cls.server, cls.caller = Network("server", "10.44.0.2"), Network("caller", "10.44.0.3")
        cls.addClassCleanup(cls.server.close)
        cls.addClassCleanup(cls.caller.close)
        cls.server.serve(8080)
        cls.kubeconfig = cls.folder / "kubeconfig"
        process = cls.enterClassContext(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port",
                                                "0", "--write-kubeconfig", cls.kubeconfig))
        cls.api = serving(process, cls.kubeconfig)
        cls.api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})
        cls.api.patch("/api/v1/nodes/node/status", {"status": {"addresses": [{"type": "InternalIP", "address": NODE}]}})
        cls.dns = cls.enterClassContext(running(cls.folder, "dns", "--kubeconfig", cls.kubeconfig, "--listen",
                                                "127.0.0.1:0", "--secure-port", "0", "--upstream", "127.0.0.1:9"))
        cls.dns_port = int(wait_for("the DNS server",
                                    lambda: re.search(r"127\.0\.0\.1:(\d+)", cls.dns.log.read_text()))[1])
        cls.made = 0

    def start_proxy(self):
        began = time.monotonic()
        proxy = self.enterContext(running(self.folder, "proxy", "--kubeconfig", self.kubeconfig, "--hostname-override",
                                          "node", "--cluster-cidr", "10.44.0.0/16",
                                          "--min-sync-period", "10ms", "--metrics-bind-address", "",
                                          "--healthz-bind-address", ""))
        wait_for(lambda: f"the rules; {proxy.tail()}", lambda: "packet rules loaded" in proxy.log.read_text(),
                 interval=0.01)
        return proxy, time.monotonic() - began

    def make_services(self, count):
        """So many in all. The first one's endpoint is a real one; of the others nothing answers."""
        def make(numbers):
            api = Api(self.kubeconfig)
            for number in numbers:
                addresses = [self.server.address] if number == 0 else elsewhere(number)
                api.create(SERVICES, service(f"s{number}", cluster_ip(number)))
                api.create(SLICES, endpoint_slice(f"s{number}", addresses))
            api.close()
        wanted = range(self.made, count)
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            list(threads.map(make, [wanted[start::4] for start in range(4)]))
        type(self).made = count

    def connect_microseconds(self):
        """The median of many connections to the first Service, from a pod."""
        words = self.caller.enter(sys.executable, "-c", CONNECT, cluster_ip(0), "80", str(PROBES))
        return statistics.median(map(int,
                                     subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()))

    def change_seconds(self, proxy):
        """(wall, processor) seconds of one change: a Service of dead endpoints gets the real one, and answers. The mean
        of ten.
        """
        walls, before = [], processor_seconds(proxy)
        for number in range(self.made - CHANGES, self.made):
            began = time.monotonic()
            self.api.patch(f"{SLICES}/s{number}",
                           {"endpoints": endpoint_slice("x", [self.server.address])["endpoints"]})
            wait_for("the change in the rules", lambda: answers(cluster_ip(number)), interval=0.001)
            walls.append(time.monotonic() - began)
        return statistics.mean(walls), (processor_seconds(proxy) - before) / CHANGES

    def test_the_cost_of_many(self):
        connects, changes = {}, {}
        for count in STEPS:
            self.make_services(count)
            proxy, first = self.start_proxy()
            connects[count] = self.connect_microseconds()
            cost = processor_seconds(proxy)
            wall, changes[count] = self.change_seconds(proxy) if count > 1 else (0.0, 0.0)
            name = f"s{count - 1}.default.svc.cluster.local"
            wait_for("the name",
                     lambda: dns_client.parse(dns_client.ask_udp(self.dns_port, dns_client.query(name))).answers)
            print(
                (
                    f"{count} Services of {ENDPOINTS} endpoints: first rules {first:.2f} s ({cost:.2f} s of processor),"
                    f" a change {wall * 1000:.0f} ms ({changes[count] * 1000:.1f} ms of processor), a connection"
                    f" {connects[count]:.0f} us; memory of the proxy {process_memory.resident(proxy) / 2**20:.1f} MiB,"
                    f" of the DNS server {process_memory.resident(self.dns) / 2**20:.1f} MiB"
                ),
                flush=True,
            )
            self.assertEqual(proxy.stop(), 0)
        # Times of a busy machine: a cost that grew with the number of Services would be thousands of times larger.
        self.assertLess(connects[MOST], 20 * connects[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
