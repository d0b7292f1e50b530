"""Bounds on clients: connections that say nothing, answers and logs that are not read, plain HTTP beyond this
machine.
"""
import contextlib
import http.client
import re
import socket
import time
import unittest

from harness import (
    ApiError,
    can_write_cgroups,
    needs,
    one_node,
    PATIENCE,
    pod,
    run,
    running,
    serving,
    wait_for,
    workspace,
)
from process_memory import peak, resident

MEBIBYTE = 1 << 20
HANDSHAKE_MAX = 5.0  # seconds that the server gives a client for its handshake
TRIES = 3


def metric(api, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", api.get("/metrics"), re.M)
    return float(found.group(1)) if found else 0.0


class Silent:
    """A connection that sends a request, if at all, and reads nothing of the answer. `known`: it has authenticated."""

    def __init__(self, api, known=False):
        self.begun = False
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that answers wait with the server
        raw.settimeout(PATIENCE)
        raw.connect((api.host, api.port))
        self.socket = raw
        if known:
            self.socket = api.context.wrap_socket(raw, server_hostname=api.host)
            self.ask("/healthz")

    def hear(self):
        """The answer to its first question."""
        answer = b""
        while not answer.endswith(b"ok"):
            more = self.socket.recv(4096)
            assert more, f"disconnected after {answer!r}"
            answer += more

    def ask(self, path):
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def answered(self):
        """True once the answer has begun. Takes a piece of it at each call: a client that takes nothing for some seconds
        is disconnected, and a busy machine may need these for the others."""
        self.socket.setblocking(False)
        with contextlib.suppress(OSError):  # nothing is there
            self.begun = bool(self.socket.recv(4096)) or self.begun
        return self.begun

    def close(self):
        self.socket.close()


@contextlib.contextmanager
def silent(api, count, path=None):
    """So many clients. They send when all are connected: clients that read nothing for some seconds are
    disconnected.
    """
    clients = []
    try:
        for _ in range(count):
            clients.append(Silent(api, known=path is not None))
        for client in clients if path else []:
            client.hear()
        for client in clients if path else []:
            client.ask(path)
        yield clients
    finally:
        for client in clients:
            client.close()


class InsecureHttp(unittest.TestCase):
    def test_serves_this_machine_alone(self):
        with workspace() as folder:
            code, out, err = run("apiserver", "--insecure-http", "--bind-address", "0.0.0.0", "--data-dir",
                                 folder / "d", "--port", "0")
            self.assertEqual((code, out, len(err.splitlines())), (2, "", 1), err)
            self.assertIn("loopback", err)
            with running(folder, "apiserver", "--insecure-http", "--data-dir", folder / "d", "--port", "0",
                         "--write-kubeconfig", folder / "k") as process:
                serving(process, folder / "k").get("/api/v1/namespaces")
                self.assertIn("level=warning",
                              next(line for line in process.log.read_text().splitlines() if "--insecure-http" in line))


class Server(unittest.TestCase):
    def setUp(self):
        context = contextlib.ExitStack()
        self.addCleanup(context.close)
        folder = context.enter_context(workspace())
        self.process = context.enter_context(running(folder, "apiserver", "--data-dir", folder / "d", "--port", "0",
                                                     "--write-kubeconfig", folder / "k"))
        self.api = serving(self.process, folder / "k")

    def fresh(self, path):
        """The answer to a request over a new connection."""
        self.api.close()
        return self.api.get(path)

    def test_unread_answers(self):
        for i in range(16):
            self.api.create("/api/v1/namespaces/default/configmaps",
                            {"metadata": {"name": f"c{i}"}, "data": {"x": "y" * 1_000_000}})
        before = resident(self.process)
        # A lease is answered while the lists wait. They make room some seconds after they have begun, and a busy
        # machine may be later than that: then once more.
        self.assertTrue(any(self.lease_beside_lists(before, f"n{number}") for number in range(TRIES)),
                        "the lease was answered when the lists had made room")
        names = {each["metadata"]["name"]
                 for each in self.api.get("/api/v1/namespaces/default/configmaps?limit=500")["items"]}
        self.assertEqual(names - {"kube-root-ca.crt"}, {f"c{i}" for i in range(16)})

    def lease_beside_lists(self, before, name):
        """True if the lease of this name was made and read before lists that take all places had made room. `before`:
        the memory of the server without lists."""
        with silent(self.api, 40, "/api/v1/configmaps"):  # 16 MB each, 640 MB together
            wait_for("lists that wait", lambda: metric(self.api, "spillway_http_waiting_bytes") > 8 * MEBIBYTE)
            lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
            self.api.create(lease, {"metadata": {"name": name}, "spec": {"holderIdentity": name}})
            self.assertEqual(self.fresh(f"{lease}/{name}")["metadata"]["name"], name)
            were_waiting = metric(self.api, "spillway_http_connections") > 16 + 1
            # A user has 16 requests under way. Connections that take nothing make room for those that wait, one after
            # the other.
            wait_for("the end of those that others wait for",
                     lambda: metric(self.api, "spillway_http_connections") <= 16 + 1)
            # 1 MiB and a piece that waits for each, one piece of one object of 1 MB being made, and what the
            # connections keep.
            self.assertLessEqual(metric(self.api, "spillway_http_waiting_bytes"), 16 * 3 * MEBIBYTE)
            self.assertLess(peak(self.process) - before, 40 * 4 * MEBIBYTE)
        wait_for("the memory", lambda: metric(self.api, "spillway_http_waiting_bytes") == 0)
        return were_waiting

    def test_connections_that_say_nothing(self):
        began = time.monotonic()
        with silent(self.api, 900):
            for _ in range(20):
                self.assertEqual(self.fresh("/api/v1/namespaces/default")["metadata"]["name"], "default")
            # the share of one address, and ours
            self.assertLessEqual(metric(self.api, "spillway_http_connections"), 513)
            displaced = metric(self.api, 'spillway_http_refusals_total{reason="displaced"}')
            if time.monotonic() - began < HANDSHAKE_MAX:  # later the first ones have ended by themselves
                self.assertGreater(displaced, 300)
            wait_for("the end of those that say nothing", lambda: metric(self.api, "spillway_http_connections") <= 1)
        self.assertGreater(metric(self.api, 'spillway_http_refusals_total{reason="handshake_time"}'), 400)

    def test_many_headers(self):
        context = self.api.context
        for head, want in ((b"a:b\r\n" * 20_000, 431), (b"A: " + b"x" * 70_000 + b"\r\n", 431),
                           (b"a:b\r\n" * 200, 200)):
            with context.wrap_socket(socket.create_connection((self.api.host, self.api.port), PATIENCE),
                                     server_hostname=self.api.host) as raw:
                with contextlib.suppress(OSError):  # an answer may come, and the connection end, before all is sent
                    raw.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n")
                answer = http.client.HTTPResponse(raw)
                answer.begin()
                self.assertEqual(answer.status, want)


@needs(can_write_cgroups(), "needs cgroups")
class Logs(unittest.TestCase):
    READERS = 110  # ten more than there are places
    LINES = 80_000
    LINE = "x" * 99

    @contextlib.contextmanager
    def separate(self, folder):
        """An API server, and an agent with a node; the process that reads logs comes last."""
        node = ("--state-dir", folder / "state", "--node-name", "n", "--node-ip", "127.0.0.1", "--port", "0",
                "--node-memory", "256Mi")
        with running(folder, "apiserver", "--data-dir", folder / "d", "--port", "0", "--write-kubeconfig",
                     folder / "k") as server:
            api = serving(server, folder / "k")
            with running(folder, "agent", "--kubeconfig", folder / "k", *node) as agent:
                wait_for("the node", lambda: api.nodes_ready() == ["n"])
                yield api, agent

    @contextlib.contextmanager
    def together(self, folder):
        with one_node(folder) as process:
            yield process.api, process

    def test_of_an_agent(self):
        with workspace() as folder, self.separate(folder) as (api, agent):
            self.check(api, agent)

    def test_in_one_process(self):
        with workspace() as folder, self.together(folder) as (api, process):
            self.check(api, process)

    def check(self, api, process):
        script = f"yes {self.LINE} | head -n {self.LINES}; echo end; sleep 1000"
        api.create("/api/v1/namespaces/default/pods", pod("talker", ["/bin/sh", "-c", script], nodeName="n"))
        path = "/api/v1/namespaces/default/pods/talker/log"

        def read(query=""):
            """The text; None if there is no place."""
            try:
                return api.get(path + query)
            except ApiError as error:
                self.assertIn("logs are being read already", str(error))
                return None

        wait_for("the pod", lambda: api.pod_phases().get("talker") == "Running")
        wait_for("the log", lambda: api.get(path + "?tailLines=1") == "end\n")
        before = resident(process)
        for query in ("", "?follow=true"):
            with silent(api, self.READERS, path + query) as clients:
                wait_for("all logs to be read", lambda: all([client.answered() for client in clients]))
                self.assertIsNone(read("?tailLines=1"), "a log that nobody has taken has given up its place")
                # Logs of 880 MB are requested. Of each a slice and as much again waits, here and on the way.
                self.assertLess(resident(process) - before, 100 * MEBIBYTE)
            text = wait_for("a place", read)
            self.assertEqual(text, (self.LINE + "\n") * self.LINES + "end\n")
        self.assertLess(resident(process) - before, 60 * MEBIBYTE)


if __name__ == "__main__":
    unittest.main()
