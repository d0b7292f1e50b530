"""`spillway dns` beside an API server, asked by sockets on loopback: every sort of name, TCP, EDNS, other servers,
clients that may not ask.
"""
import contextlib
import itertools
import os
import re
import socket
import struct
import subprocess
import sys
import unittest

import dns_client
from dns_client import answer_to, ask_tcp, ask_udp, parse, query, Upstream
from harness import needs, Process, run, running, serving, wait_for, workspace
from patience import PATIENCE

SERVICES = "/api/v1/namespaces/{}/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


def service(name, ip=None, **spec):
    ports = spec.pop("ports", [{"name": "http", "port": 80, "protocol": "TCP"}])
    body = {**({"clusterIP": ip} if ip else {}), **({"ports": ports} if ports else {}), **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body}


def endpoint_slice(name, of, endpoints, port=8080):
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": of}}, "addressType": "IPv4",
            "endpoints": endpoints, "ports": [{"name": "http", "protocol": "TCP", "port": port}]}


def port_of(process):
    """Where it listens, once it has listed everything."""
    def port():
        text = process.log.read_text()
        found = re.search(r'msg="dns serving" addresses=\S+?:(\d+)', text)
        return int(found.group(1)) if found and "dns records complete" in text else None

    return wait_for(lambda: "the DNS server:\n" + process.tail(), port)


class Dns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder_context = workspace()
        cls.folder = cls.folder_context.__enter__()
        cls.processes = []
        try:
            server = Process(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port", "0",
                             "--write-kubeconfig", cls.folder / "kubeconfig")
            cls.processes.append(server)
            cls.api = serving(server, cls.folder / "kubeconfig")
            cls.fill()
            cls.port, cls.process = cls.start_dns("--upstream", "127.0.0.1:9")
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        for process in reversed(cls.processes):
            process.kill()
        cls.folder_context.__exit__(None, None, None)

    @classmethod
    def fill(cls):
        api = cls.api
        for namespace in ("shop", "idle"):
            api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        api.create(SERVICES.format("shop"), service("web", "10.96.7.7"))
        api.create(SERVICES.format("shop"), service("db", "None"))
        api.create(SLICES.format("shop"), endpoint_slice("db-1", "db", [
            {"addresses": ["10.244.0.11"], "hostname": "db-0", "conditions": {"ready": True}},
            {"addresses": ["10.244.0.12"], "conditions": {"ready": True}},
            {"addresses": ["10.244.0.13"], "conditions": {"ready": False}}]))
        api.create(SERVICES.format("shop"), service("out", type="ExternalName", externalName="example.com", ports=None))
        api.create(SERVICES.format("shop"),
                   service("alias", type="ExternalName", externalName="web.shop.svc.cluster.local", ports=None))
        api.create(SERVICES.format("shop"), service("many", "None"))
        api.create(SLICES.format("shop"),
                   endpoint_slice("many-1", "many",
                                  [{"addresses": [f"10.245.{i // 200}.{i % 200 + 1}"]} for i in range(300)]))

    @classmethod
    def start_dns(cls, *arguments):
        """The port and the process of a server that has listed everything."""
        process = Process(cls.folder, "dns", "--kubeconfig", cls.folder / "kubeconfig", "--listen", "127.0.0.1:0",
                          "--secure-port", "0",
                          "--client-rate", "100000", *arguments)
        cls.processes.append(process)

        return port_of(process), process

    def ask(self, name, kind="A", port=None, **more):
        return parse(ask_udp(port or self.port, query(name, kind, **more)))

    def data(self, name, kind="A"):
        return sorted(each.data for each in self.ask(name, kind).answers)

    def test_every_sort_of_name(self):
        zone = "cluster.local"
        self.assertEqual(self.data(f"web.shop.svc.{zone}"), ["10.96.7.7"])
        self.assertEqual(self.data(f"db.shop.svc.{zone}"), ["10.244.0.11", "10.244.0.12"])
        self.assertEqual(self.data(f"db-0.db.shop.svc.{zone}"), ["10.244.0.11"])
        self.assertEqual(self.data(f"10-244-0-12.db.shop.svc.{zone}"), ["10.244.0.12"])
        self.assertEqual(self.data(f"_http._tcp.web.shop.svc.{zone}", "SRV"), [(0, 100, 80, f"web.shop.svc.{zone}.")])
        targets = self.ask(f"_http._tcp.db.shop.svc.{zone}", "SRV")
        self.assertEqual(sorted(each.data[2:] for each in targets.answers),
                         [(8080, f"10-244-0-12.db.shop.svc.{zone}."), (8080, f"db-0.db.shop.svc.{zone}.")])
        self.assertEqual(sorted(each.data for each in targets.additional), ["10.244.0.11", "10.244.0.12"])
        self.assertEqual(self.data("7.7.96.10.in-addr.arpa", "PTR"), [f"web.shop.svc.{zone}."])
        self.assertEqual(self.data("11.0.244.10.in-addr.arpa", "PTR"), [f"db-0.db.shop.svc.{zone}."])
        self.assertEqual(self.data(f"dns-version.{zone}", "TXT"), ["1.1.0"])
        self.assertEqual(self.data(f"10-244-0-99.shop.pod.{zone}"), ["10.244.0.99"])
        self.assertEqual([(each.type, each.data) for each in self.ask(f"alias.shop.svc.{zone}").answers],
                         [("CNAME", f"web.shop.svc.{zone}."), ("A", "10.96.7.7")])
        self.assertEqual(self.data(f"out.shop.svc.{zone}", "CNAME"), ["example.com."])
        for name, kind, rcode in ((f"web.shop.svc.{zone}", "AAAA", "NOERROR"), (f"shop.svc.{zone}", "A", "NOERROR"),
                                  (zone, "A", "NOERROR"),
                                  (f"nosuch.shop.svc.{zone}", "A", "NXDOMAIN"),
                                  (f"web.nosuch.svc.{zone}", "A", "NXDOMAIN")):
            answer = self.ask(name, kind)
            self.assertEqual((answer.rcode, answer.answers, [each.type for each in answer.authority]),
                             (rcode, [], ["SOA"]), name)
        self.assertEqual(self.ask(zone, "AXFR").rcode, "REFUSED")

    def test_spelling_is_repeated(self):
        answer = self.ask("WeB.shop.SVC.cluster.local")
        self.assertEqual(answer.answers[0].name, "WeB.shop.SVC.cluster.local.")
        self.assertTrue(answer.authoritative)

    def test_changes_are_followed(self):
        api, name = self.api, "fresh.idle.svc.cluster.local"
        self.assertEqual(self.ask(name).rcode, "NXDOMAIN")
        api.create(SERVICES.format("idle"), service("fresh", "10.96.8.8"))
        wait_for("the new Service", lambda: self.ask(name).rcode == "NOERROR")
        api.delete(SERVICES.format("idle") + "/fresh")
        wait_for("its end", lambda: self.ask(name).rcode == "NXDOMAIN")

    def test_sizes(self):
        name = "many.shop.svc.cluster.local"
        plain = self.ask(name)
        self.assertTrue(plain.truncated)
        self.assertLessEqual(plain.size, 512)
        self.assertGreater(len(plain.answers), 20)
        large = self.ask(name, edns=4096)
        self.assertTrue(large.truncated)
        self.assertLessEqual(large.size, 1232)
        self.assertGreater(len(large.answers), len(plain.answers))
        whole = parse(ask_tcp(self.port, query(name))[0])
        self.assertFalse(whole.truncated)
        self.assertEqual(len({each.data for each in whole.answers}), 300)
        self.assertGreater(len({self.ask(name).answers[0].data for _ in range(10)}), 1, "the addresses are not rotated")

    def test_streams(self):
        """Several queries on one connection; one that comes in pieces; one that never ends."""
        names = ["web.shop.svc.cluster.local", "db.shop.svc.cluster.local", "nosuch.shop.svc.cluster.local"] * 20
        answers = [parse(each) for each in ask_tcp(self.port, *[query(name) for name in names])]
        self.assertEqual(sorted(each.rcode for each in answers), ["NOERROR"] * 40 + ["NXDOMAIN"] * 20)
        message = query("web.shop.svc.cluster.local")
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as channel:
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in struct.pack(">H", len(message)) + message:
                channel.sendall(bytes([byte]))
            self.assertEqual(parse(dns_client.read_frame(channel)).rcode, "NOERROR")
            channel.sendall(b"\xff\xff\0")
            self.assertEqual(channel.recv(1), b"", "a query that does not end keeps its connection for ever")

    def test_broken_messages(self):
        head = struct.pack(">6H", 77, 0x0100, 1, 0, 0, 0)
        self.assertEqual(parse(ask_udp(self.port, struct.pack(">6H", 77, 0x0100, 0, 0, 0, 0))).rcode, "FORMERR")
        self.assertEqual(ask_udp(self.port, head + b"\xc0\x0c\0\1\0\1")[:2], struct.pack(">H", 77))
        self.assertEqual(self.ask("web.shop.svc.cluster.local", flags=0x2800).rcode, "NOTIMP")
        self.assertEqual(self.ask("version.bind", "TXT", record_class=3).rcode, "REFUSED")
        # Nothing is said to an answer, or to a piece of a header: the next thing that comes is the answer to a query.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
            channel.settimeout(PATIENCE)
            for message in (struct.pack(">6H", 1, 0x8100, 1, 0, 0, 0), b"abc",
                            query("web.shop.svc.cluster.local", number=99)):
                channel.sendto(message, ("127.0.0.1", self.port))
            self.assertEqual(channel.recv(65535)[:2], struct.pack(">H", 99))

    def test_other_servers(self):
        def answer(message, over_tcp):
            name = dns_client.read_name(message, 12)[0].lower()
            if name == "example.com.":  # each question gets another answer
                return answer_to(message, f"192.0.2.{10 + next(count)}", ttl=20)
            if name.startswith("large."):
                return answer_to(message,
                                 *[f"192.0.2.{i}" for i in range(100)]) if over_tcp else answer_to(
                                     message, flags=0x8380)
            if name.startswith("forged."):
                wrong = bytes([message[0] ^ 1, message[1]])
                return [answer_to(message, "203.0.113.66", number=wrong),
                        answer_to(query("other.example.org"), "203.0.113.66", number=message[:2]),
                        answer_to(message, "192.0.2.9")]
            if name.startswith("nosuch."):
                return answer_to(message, rcode=3)
            return answer_to(message, "192.0.2.7", ttl=20)

        count = itertools.count()
        upstream = Upstream(answer)
        self.addCleanup(upstream.close)
        port, _ = self.start_dns("--upstream", f"127.0.0.1:{upstream.port}")
        first = self.ask("Example.com", port=port)
        self.assertEqual([each.name for each in first.answers], ["Example.com."])
        self.assertFalse(first.authoritative)
        kept = first.answers[0].data
        self.assertRegex(kept, r"^192\.0\.2\.1\d$")
        again = self.ask("example.COM", port=port)
        self.assertEqual((again.answers[0].name, again.answers[0].data), ("example.COM.", kept),
                         "the answer is not kept")
        self.assertLessEqual(again.answers[0].ttl, 20)
        alias, address = self.ask("out.shop.svc.cluster.local", port=port).answers
        self.assertEqual((alias.type, alias.data, address.type), ("CNAME", "example.com.", "A"))
        self.assertRegex(address.data, r"^192\.0\.2\.1\d$")
        self.assertEqual(self.ask("nosuch.example.com", port=port).rcode, "NXDOMAIN")
        self.assertEqual([each.data for each in self.ask("forged.example.com", port=port).answers], ["192.0.2.9"])
        self.assertEqual(len(parse(ask_tcp(port, query("large.example.com"))[0]).answers), 100)
        # A question without an answer for long is asked again.
        ways = [way for name, way, *_ in upstream.asked if name.startswith("large")]
        self.assertEqual(list(dict.fromkeys(ways)), ["udp", "tcp"])
        for number in range(8):
            self.ask(f"n{number}.example.com", port=port)
        asked = [each for each in upstream.asked if each[1] == "udp"]
        self.assertGreater(len({source for _, _, source, _ in asked}), len(asked) // 2, "questions share their ports")
        self.assertGreater(len({number for *_, number in asked}), len(asked) // 2, "questions share their ids")

    def test_silent_servers(self):
        silent, speaking = Upstream(lambda *_: None), Upstream(lambda message, _: answer_to(message, "192.0.2.8"))
        self.addCleanup(silent.close)
        self.addCleanup(speaking.close)
        port, _ = self.start_dns("--upstream", f"127.0.0.1:{silent.port},127.0.0.1:{speaking.port}")
        self.assertEqual(self.ask("example.com", port=port).answers[0].data, "192.0.2.8")
        only, _ = self.start_dns("--upstream", f"127.0.0.1:{silent.port}")
        self.assertEqual(self.ask("example.com", port=only).rcode, "SERVFAIL")
        self.assertEqual(self.ask("web.shop.svc.cluster.local", port=only).rcode, "NOERROR")

    def test_bad_flags(self):
        for flags, expected in ((("--allow-from", "10.0.0.0"), "expected a range of addresses"),
                                (("--listen", "localhost:53"), "is no address"),
                                (("--cluster-domain", "a..b"), "expected a domain"),
                                (("--resolv-conf", "/nosuch"), "/nosuch"),
                                (("--pod-names", "maybe"), "expected insecure, verified or disabled")):
            place = () if "--listen" in flags else ("--listen", "127.0.0.1:0")
            code, _, error = run("dns", "--kubeconfig", self.folder / "kubeconfig", "--secure-port", "0", *place,
                                 *flags)
            self.assertNotEqual(code, 0)
            self.assertIn(expected, error)
            self.assertEqual(len(error.strip().splitlines()), 1, error)


class InUp(unittest.TestCase):
    """The server as a part of `spillway up`: its Service, which has no endpoint while it listens on loopback alone."""

    def test_has_its_service(self):
        with workspace() as folder:
            with running(folder, "up", "--nodes", "0", "--data-dir", folder / "data", "--port", "0",
                         "--write-kubeconfig", folder / "kubeconfig",
                         "--dns", "on", "--dns-listen", "127.0.0.1:0", "--dns-upstream", "127.0.0.1:9") as process:
                api = serving(process, folder / "kubeconfig")
                port = port_of(process)
                kube_dns = wait_for("the Service", lambda: api.find(SERVICES.format("kube-system") + "/kube-dns"))
                self.assertEqual(kube_dns["spec"]["clusterIP"], "10.96.0.10")
                self.assertEqual({(each["name"], each["port"], each["protocol"], each["targetPort"])
                                  for each in kube_dns["spec"]["ports"]},
                                 {("dns", 53, "UDP", port), ("dns-tcp", 53, "TCP", port)})
                name = "kube-dns.kube-system.svc.cluster.local"
                wait_for("its name", lambda: parse(ask_udp(port, query(name))).rcode == "NOERROR")
                self.assertEqual(parse(ask_udp(port, query(name))).answers[0].data, "10.96.0.10")
                self.assertEqual(parse(ask_udp(port, query("cluster.local", "NS"))).answers[0].data, name + ".")
                wait_for("the warning", lambda: "kube-dns has no endpoint" in process.log.read_text())

    def test_is_off_without_a_service_proxy(self):
        with workspace() as folder:
            with running(folder, "up", "--nodes", "0", "--data-dir", folder / "data", "--port", "0",
                         "--write-kubeconfig", folder / "kubeconfig") as process:
                api = serving(process, folder / "kubeconfig")
                wait_for("the start", lambda: 'msg="ready"' in process.log.read_text())
                self.assertIsNone(api.find(SERVICES.format("kube-system") + "/kube-dns"))


def can_isolate():
    return subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@needs(can_isolate(), "needs network namespaces")
class ForeignClients(unittest.TestCase):
    """A server that listens on all addresses, in a network namespace of its own, and a client on another machine:
    another namespace. The test runs itself again in the first one, as `Isolated`."""

    def test_get_no_answer(self):
        done = subprocess.run(["unshare", "--net", sys.executable, __file__, "--isolated"], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


CLIENT = """
import sys
sys.path.insert(0, {folder!r})
from dns_client import ask_tcp, ask_udp, parse, query
message = query("dns-version.cluster.local", "TXT")
way, port = {way!r}, {port}
try:
    host = "198.18.7.1"
    answer = ask_udp(port, message, host=host, timeout={timeout}) if way == "udp" else ask_tcp(port, message, host=host)[0]
    print(parse(answer).rcode if answer else "nothing")
except (EOFError, ConnectionError):
    print("nothing")
"""


def isolated():
    """In a network namespace that has nothing yet."""
    ip("link", "set", "lo", "up")
    other = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    inside = ("nsenter", "--net", "--target", str(other.pid))
    with contextlib.ExitStack() as left:
        left.callback(other.wait)
        left.callback(other.kill)
        own = os.readlink("/proc/self/ns/net")
        wait_for("the other namespace", lambda: os.readlink(f"/proc/{other.pid}/ns/net") != own)
        ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(other.pid))
        ip("addr", "add", "198.18.7.1/24", "dev", "near")
        ip("link", "set", "near", "up")
        subprocess.run([*inside, "ip", "addr", "add", "198.18.7.2/24", "dev", "far"], check=True)
        subprocess.run([*inside, "ip", "link", "set", "far", "up"], check=True)
        folder = left.enter_context(workspace())
        server = left.enter_context(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                            "--write-kubeconfig",
                                            folder / "kubeconfig"))
        serving(server, folder / "kubeconfig")

        def start(*arguments):
            process = left.enter_context(running(folder, "dns", "--kubeconfig", folder / "kubeconfig", "--listen",
                                                 "0.0.0.0:0", "--secure-port", "0",
                                                 "--upstream", "127.0.0.1:9", *arguments))
            return port_of(process)

        def ask(way, port, timeout):
            text = CLIENT.format(folder=os.path.dirname(os.path.abspath(__file__)), way=way, port=port, timeout=timeout)
            return subprocess.run([*inside, sys.executable, "-c", text], capture_output=True, text=True,
                                  check=True).stdout.strip()

        closed, opened = start(), start("--allow-from", "198.18.7.0/24")
        for way in ("udp", "tcp"):
            assert ask(way, opened, PATIENCE) == "NOERROR", f"a client that may ask gets no answer by {way}"
            assert ask(way, closed, 5) == "nothing", f"a client that may not ask gets an answer by {way}"
        assert parse(ask_udp(closed, query("dns-version.cluster.local", "TXT"))).rcode == "NOERROR"
        assert parse(ask_udp(closed, query("dns-version.cluster.local", "TXT"), host="198.18.7.1")).rcode == "NOERROR"


if __name__ == "__main__":
    isolated() if sys.argv[1:] == ["--isolated"] else unittest.main(verbosity=2)
