"""An etcd of a test's own: one member or three, on loopback ports, with everything below one folder.

As a program: own_etcd.py FOLDER prints the URL of one member and serves until it is ended.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import urllib.request

import peers
import way
from patience import PATIENCE, wait_for

PROGRAM = next((path for path in (peers.ROOT / "usr/bin/etcd", pathlib.Path("/usr/bin/etcd"))
                if os.access(path, os.X_OK)), None)
NEEDS = "needs etcd"


def free_ports(count):
    """Free ports below those that the kernel gives out by itself: they are bound later, and again after a kill."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    sockets = []
    while len(sockets) < count:
        with contextlib.suppress(OSError):
            sockets.append(socket.create_server(("127.0.0.1", random.randrange(10_000, first) if first > 11_000
                                                 else 0)))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Member:
    def __init__(self, folder, name, client, peer, advertised, cluster, more):
        self.url = f"http://127.0.0.1:{client}"
        self.log, self.data = folder / f"{name}.log", folder / name
        self.command = [PROGRAM, f"--name={name}", f"--data-dir={self.data}", f"--listen-client-urls={self.url}",
                        f"--advertise-client-urls={self.url}",
                        f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls={advertised}",
                        f"--initial-cluster={cluster}", *more]
        self.child = None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                          env=peers.environment())

    def answers(self):
        """True if it serves clients and knows a leader."""
        assert self.child.poll() is None, f"etcd has ended: {self.log.read_text()[-1500:]}"
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=PATIENCE) as answer:
                return json.load(answer)["health"] == "true"
        except (OSError, http.client.HTTPException):
            return False

    def kill(self, number=signal.SIGKILL):
        self.child.send_signal(number)
        if number == signal.SIGKILL:
            self.child.wait()


class Cluster:
    def __init__(self, folder, members, more, ways):
        folder.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 * members)
        peers_at = [f"http://127.0.0.1:{port}" for port in ports[members:]]
        # Messages of the other members to a member pass through its way.
        self.ways = [way.Way(url) for url in peers_at] if ways else []
        advertised = [each.url for each in self.ways] or peers_at
        cluster = ",".join(f"m{i}={url}" for i, url in enumerate(advertised))
        self.members = [Member(folder, f"m{i}", ports[i], ports[members + i], advertised[i], cluster, more)
                        for i in range(members)]

    @property
    def flag(self):
        return "--etcd-servers=" + ",".join(each.url for each in self.members)

    def wait_until_up(self):
        """A server that starts waits for its etcd, but not as long as a busy machine may need to start one."""
        for each in self.members:
            wait_for(lambda each=each: f"{each.url}: {each.log.read_text()[-1500:]}", each.answers)

    def stop(self):
        for each in self.members:
            with contextlib.suppress(ProcessLookupError):
                each.kill(signal.SIGCONT)
                each.kill()
        for each in self.ways:
            each.close()


@contextlib.contextmanager
def serving(folder, members=1, *more, ways=False):
    """`ways`: members can be cut off from each other (Cluster.ways)."""
    cluster = Cluster(folder / "etcd", members, more, ways)
    try:
        cluster.wait_until_up()
        yield cluster
    finally:
        cluster.stop()


if __name__ == "__main__":
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # or they end this program, and leave etcd
    with serving(pathlib.Path(sys.argv[1])) as own:
        print(own.members[0].url, flush=True)
        signal.sigwait(ends)
