"""Ports of pods through kubectl port-forward: by SPDY in a WebSocket and by SPDY alone; in one process and over TLS to
an agent of its own.
"""
import concurrent.futures
import contextlib
import os
import re
import shutil
import socket
import subprocess
import unittest

import containerd_pods
import own_containerd
from harness import PATIENCE, Kubectl, can_write_cgroups, needs, one_node, pod, running, serving, wait_for, workspace

# Prints its port, then repeats its input; a "!" alone ends a connection at once.
REPEATER = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
def repeat(connection):
    with connection:
        while data := connection.recv(65536):
            if data == b"!":
                return
            connection.sendall(data)
        connection.sendall(b"<end>")
while True:
    threading.Thread(target=repeat, args=(server.accept()[0],), daemon=True).start()
"""


def received(connection):
    seen = b""
    while data := connection.recv(65536):
        seen += data
    return seen


def said(port, data):
    """The answer to `data` and the end of input."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(received, connection)
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return answer.result(PATIENCE)


class Forwarder:
    @contextlib.contextmanager
    def forwarded(self, name, port):
        """kubectl, and the port here."""
        child = subprocess.Popen(["kubectl", "port-forward", f"pod/{name}", f":{port}"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE,
            env=self.kubectl.environment)
        try:
            line = child.stdout.readline().decode()
            here = re.match(r"Forwarding from 127\.0\.0\.1:(\d+) ->", line)
            assert here, f"{line} {child.stderr.read() if not line else ''}"
            yield child, int(here[1])
        finally:
            child.kill()
            child.communicate()

    def refusal(self, name, port):
        with self.forwarded(name, port) as (child, here):
            with socket.create_connection(("127.0.0.1", here), timeout=PATIENCE) as connection:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"hello")
                    self.assertEqual(received(connection), b"")
            lines = iter(child.stderr.readline, b"")
            return next(line for line in lines if b"error forwarding port" in line).decode()


class Ports(Forwarder):
    """The same for every way to a node."""

    def test_sent_bytes_are_echoed(self):
        with self.forwarded("repeater", self.port) as (_, here):
            self.assertEqual(said(here, b"hello"), b"hello<end>")
            blob = os.urandom(1 << 20) * 5
            self.assertEqual(said(here, blob), blob + b"<end>")

    def test_many_at_once(self):
        with self.forwarded("repeater", self.port) as (_, here), concurrent.futures.ThreadPoolExecutor(20) as pool:
            blobs = [os.urandom(200_000) for _ in range(20)]
            self.assertEqual(list(pool.map(lambda blob: said(here, blob), blobs)), [blob + b"<end>" for blob in blobs])
            for _ in range(100):
                self.assertEqual(said(here, b"x"), b"x<end>")

    def test_the_port_ends_it(self):
        with self.forwarded("repeater", self.port) as (_, here):
            with socket.create_connection(("127.0.0.1", here), timeout=PATIENCE) as connection:
                connection.sendall(b"!")
                self.assertEqual(received(connection), b"")
            self.assertEqual(said(here, b"on"), b"on<end>")

    def test_a_port_without_a_listener(self):
        with socket.socket() as unused:  # bound and not listening: no other program gets the port meanwhile
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            self.assertIn(f"connect to localhost:{port}: connection refused", self.refusal("repeater", port))

    def test_the_machine_is_not_reached(self):
        """The pod has the machine's network, but what others listen on is not the pod's."""
        with socket.create_server(("127.0.0.1", 0)) as others:
            port = others.getsockname()[1]
            self.assertIn(f"no process of the pod listens on port {port} of this machine",
                          self.refusal("repeater", port))
            with self.assertRaises(BlockingIOError):
                others.setblocking(False)
                others.accept()

    def test_what_cannot_be(self):
        self.assertIn("not found", self.kubectl("port-forward", "no-such", ":80", code=1))


def started(kubectl):
    kubectl.apply(pod("repeater", ["/usr/bin/python3", "-c", REPEATER], nodeName="n"))
    return int(kubectl.log_of("repeater"))


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class InOneProcess(Ports, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.kubectl = cls.enterClassContext(one_node(cls.folder)).kubectl
        cls.port = started(cls.kubectl)


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class ThroughAnAgent(Ports, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        kubeconfig = cls.folder / "kubeconfig"
        server = cls.enterClassContext(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port",
                                               "0", "--write-kubeconfig", kubeconfig))
        api = serving(server, kubeconfig)
        cls.kubectl = Kubectl(kubeconfig)
        cls.enterClassContext(running(cls.folder, "agent", "--kubeconfig", kubeconfig, "--node-name", "n", "--node-ip",
                                      "127.0.0.1", "--port", "0",
                                      "--node-memory", "256Mi", "--state-dir", cls.folder / "state"))
        wait_for("the node", lambda: api.nodes_ready() == ["n"])
        cls.port = started(cls.kubectl)


class OverSpdy:
    """As clients before 1.31 speak."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kubectl.environment["KUBECTL_PORT_FORWARD_WEBSOCKETS"] = "false"


class InOneProcessOverSpdy(OverSpdy, InOneProcess):
    pass


class ThroughAnAgentOverSpdy(OverSpdy, ThroughAnAgent):
    pass


@needs(shutil.which("kubectl") and can_write_cgroups() and not containerd_pods.missing(), own_containerd.NEEDS)
class InContainerd(Forwarder, unittest.TestCase):
    """A pod with a network of its own, whose ports containerd serves."""

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        containerd = cls.enterClassContext(own_containerd.serving(cls.folder))
        cls.kubectl = cls.enterClassContext(
            one_node(cls.folder, f"--container-runtime-endpoint=unix://{containerd.socket}")
        ).kubectl
        cls.kubectl.apply(
            own_containerd.adapted(
                pod(
                    "page",
                    [
                        "/bin/sh",
                        "-c",
                        "mkdir /w; head -c 3000000 /dev/zero > /w/x; httpd -p 8080 -h /w; echo up; exec sleep 100000",
                    ],
                    nodeName="n",
                )
            )
        )
        cls.kubectl.log_of("page")

    def test_a_page(self):
        with self.forwarded("page", 8080) as (_, here):
            for _ in range(5):
                head, body = said(here, b"GET /x HTTP/1.0\r\n\r\n").split(b"\r\n\r\n", 1)
                self.assertEqual((head.split()[1], len(body)), (b"200", 3_000_000))

    def test_a_port_without_a_listener(self):
        self.assertIn("connection refused", self.refusal("page", 81))


class InContainerdOverSpdy(OverSpdy, InContainerd):
    pass


if __name__ == "__main__":
    unittest.main()
