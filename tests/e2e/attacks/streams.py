"""Watches and followed logs: that do not read, that never end, that are too many."""
import resource
import socket
import threading
import time

from attacks.attempt import Act, shown
from attacks.cluster import OURS
from attacks.connection import exchange, receive_all
from harness import pod, wait_for
from process_memory import resident

MAPS = f"{OURS}/configmaps"
LOG = f"{OURS}/pods/talker/log"


def head(target, close=False):
    return (
        f"GET {target} HTTP/1.1\r\nHost: x\r\n{'Connection: close' + chr(13) + chr(10) if close else ''}\r\n".encode()
    )


def deaf(cluster, target, count, by="admin"):
    """Connections that ask and never read."""
    opened = []
    for _ in range(count):
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before it connects: a small window
        plain.settimeout(30)
        plain.connect((cluster.host, cluster.port))
        connection = cluster.contexts[by].wrap_socket(plain, server_hostname=cluster.host)
        connection.sendall(head(target))
        opened.append(connection)
    return opened


def close_all(connections):
    for connection in connections:
        connection.close()


def deaf_watchers(cluster):
    """Thirty that read nothing do not keep events from one that reads."""
    opened = deaf(cluster, f"{MAPS}?watch=1", 30, "pod-admin")
    try:
        with cluster.open("pod-admin") as reader:
            reader.sendall(head(f"{MAPS}?watch=1&fieldSelector=metadata.name%3Dlast"))
            for number in range(40):
                cluster.admin.create(MAPS, {"metadata": {"name": f"event-{number}"}, "data": {"a": "x" * 50_000}})
            cluster.admin.create(MAPS, {"metadata": {"name": "last"}})
            reader.settimeout(30)
            text = b""
            until = time.monotonic() + 30
            while b'"last"' not in text and time.monotonic() < until:
                text += reader.recv(65536)
        return None if b'"last"' in text else f"no event within 30 s: {text[-200:]!r}"
    finally:
        close_all(opened)
        for number in range(40):
            cluster.admin.delete(f"{MAPS}/event-{number}")
        cluster.admin.delete(f"{MAPS}/last")


def deaf_followers(cluster):
    """Twenty that follow a log and read nothing do not keep it from one that reads."""
    opened = deaf(cluster, f"{LOG}?follow=true", 20, "log-reader")
    try:
        with cluster.open("log-reader") as reader:
            seen = exchange(reader, head(f"{LOG}?tailLines=1", close=True))
        return None if seen.codes == (200,) and "line 1999" in seen.text else f"{seen.codes} {shown(seen.text)}"
    finally:
        close_all(opened)


def many_watches(cluster):
    """A hundred watches of one client, closed without a word: the server forgets them."""
    def watches():
        text = cluster.admin.get("/metrics")
        return float(next(line.split()[1] for line in text.splitlines()
                          if line.startswith("apiserver_longrunning_requests ")))
    opened = deaf(cluster, f"{MAPS}?watch=1", 100, "pod-admin")
    try:
        wait_for("the watches", lambda: watches() >= 90)
    finally:
        close_all(opened)
    wait_for("their end", lambda: watches() < 50)


def half_closed(cluster):
    """A client that has closed its sending side: its answer comes, its watch ends."""
    plain = socket.create_connection((cluster.host, cluster.port), timeout=30)
    with cluster.contexts["pod-admin"].wrap_socket(plain, server_hostname=cluster.host) as connection:
        connection.sendall(head(f"{MAPS}?watch=1"))
        connection.recv(1)
        connection.shutdown(socket.SHUT_WR)
        seen = receive_all(connection, 30)
    return None if seen.ended else "the watch went on"


def ends_by_itself(cluster):
    begun = time.monotonic()
    with cluster.open("pod-admin") as connection:
        seen = exchange(connection, head(f"{MAPS}?watch=1&timeoutSeconds=1", close=True))
    return (
        None
        if seen.codes == (200,) and seen.ended and time.monotonic() - begun < 15
        else f"{seen.codes} after {time.monotonic() - begun:.1f} s"
    )


def second_request_behind_a_watch(cluster):
    """A request sent behind a watch waits until the watch ends; its answer is not mixed into the stream."""
    with cluster.open("pod-admin") as connection:
        seen = exchange(connection, head(f"{MAPS}?watch=1&timeoutSeconds=1") + head("/version", close=True))
    return None if seen.codes == (200,
                                  200) and seen.text.index('"gitVersion"') > seen.text.index(
                                      "0\r\n\r\n") else f"{seen.codes} {shown(seen.text)}"


def reset(cluster):
    """Connections that are reset in the middle of an answer."""
    for _ in range(50):
        connection = cluster.open("admin")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.sendall(head("/api/v1/pods") + head("/openapi/v2"))
        connection.close()
    return None if cluster.ask("admin", "GET", "/readyz")[0] == 200 else "not ready"


def delete_apart(cluster, path):
    """On a connection of its own, since a thread asks."""
    with cluster.open("admin") as connection:
        exchange(connection,
                 f"DELETE {path}?gracePeriodSeconds=0 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())


def deleted_while_followed(cluster):
    """The log of a pod that goes: its stream ends."""
    cluster.admin.create(f"{OURS}/pods",
                         pod("passing", ["sh", "-c", "echo here; exec tail -f /dev/null"], nodeName="n3"))
    wait_for("the pod", lambda: cluster.admin.pod_phases("ours").get("passing") == "Running")
    with cluster.open("log-reader") as connection:
        connection.sendall(head(f"{OURS}/pods/passing/log?follow=true", close=True))
        connection.recv(1)
        threading.Thread(target=lambda: delete_apart(cluster, f"{OURS}/pods/passing"), daemon=True).start()
        seen = receive_all(connection, 30)
    return None if seen.ended else "the stream went on"


def grows_little(begin, most):
    """While `begin(cluster)` leaves connections that read nothing, server and agent grow by `most` bytes at most, and a
    node is served within 15 s.
    """
    def act(cluster):
        watched = (cluster.server, cluster.agent)
        before, opened = resident(*watched), begin(cluster)
        try:
            begun, peak = time.monotonic(), 0
            while time.monotonic() < begun + 3:  # requests of this time count
                peak = max(peak, resident(*watched))
                asked = time.monotonic()
                code, text = cluster.ask("n1", "GET", "/api/v1/nodes/n1")
                if code != 200 or time.monotonic() - asked > 15:
                    return f"a node: {code} after {time.monotonic() - asked:.1f} s {shown(text)}"
            return None if peak - before <= most else f"grew by {(peak - before) >> 20} MiB"
        finally:
            close_all(opened)
    return act


def deaf_listers(cluster):
    """100 lists of 3 MB: 300 MB if all of them waited."""
    for number in range(3):
        cluster.admin.create(MAPS,
                             {"metadata": {"name": f"large-{number}", "labels": {"large": ""}},
                              "data": {"a": "x" * 1_000_000}})
    return deaf(cluster, f"{MAPS}?labelSelector=large", 100, "pod-admin")


def silent(cluster):
    """More connections than the server takes, and not a byte on any."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    opened = []
    try:
        for _ in range(4_300):
            opened.append(socket.create_connection((cluster.host, cluster.port), timeout=20))
        cluster.close()  # open connections do not count
        for by in ("admin", "n1", "pod-admin"):
            begun = time.monotonic()
            code, text = cluster.ask(by, "GET", "/version")
            if code != 200 or time.monotonic() - begun > 15:
                return f"{by}: {code} after {time.monotonic() - begun:.1f} s {shown(text)}"
        return None
    finally:
        close_all(opened)
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))


def deaf_readers(cluster):
    """80 logs of 4 MB: 320 MB if all of them waited."""
    shouts = "yes of the pod that shouts | head -c 4000000; echo; echo THE-END; exec tail -f /dev/null"
    cluster.admin.create(f"{OURS}/pods", pod("shouter", ["sh", "-c", shouts], nodeName="n3"))
    wait_for("the log", lambda: "THE-END" in cluster.ask("admin", "GET", f"{OURS}/pods/shouter/log?tailLines=1")[1])
    return deaf(cluster, f"{OURS}/pods/shouter/log", 80, "log-reader")


def bounds():
    yield Act("listers that do not read", grows_little(deaf_listers, 128 << 20))
    yield Act("readers of a log that do not read", grows_little(deaf_readers, 96 << 20))
    yield Act("4,300 connections that say nothing", silent)


def attempts(_):
    return [Act("watchers that do not read", deaf_watchers), Act("followers that do not read", deaf_followers),
        Act("100 watches, left", many_watches), Act("a watch whose client has closed its side", half_closed),
            Act("a watch with an end", ends_by_itself), Act("a request behind a watch", second_request_behind_a_watch),
            Act("50 connections, reset", reset), Act("a log whose pod goes", deleted_while_followed), *bounds()]

