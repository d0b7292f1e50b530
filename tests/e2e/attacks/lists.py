"""Lists that are long, and clients that do not read them: they hold little memory, and do not delay other clients."""
import contextlib
import socket
import time

from attacks.attempt import Act
from attacks.cluster import OURS
from process_memory import resident

SECRETS = f"{OURS}/secrets"  # the audit policy wants no body of them: an answer that it wants is held up to 6 MiB
LISTS = 20  # more than one user has places
EACH_MAX = 3 << 20  # memory for a list of 6 MB that is not read
UNREAD_MAX = 55  # seconds: an answer that is not read is cut after 30
LEFT_MAX = 20  # seconds: less than those 30, on a slow machine too


def fill(cluster):
    """A list of 6 MB, which is more than the kernel takes for a client that does not read."""
    for at in range(60):
        cluster.json("admin", "POST", SECRETS, {"metadata": {"name": f"large-{at}"}, "stringData": {"k": "x" * 75_000}})


def begin(cluster, path):
    """A connection that asks and does not read."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(20)
    raw.connect((cluster.host, cluster.port))
    connection = cluster.contexts["admin"].wrap_socket(raw, server_hostname=cluster.host)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return connection


def unread(cluster):
    """Many lists that are not read: memory stays bounded, and the list of another client is answered."""
    fill(cluster)
    before = resident(cluster.server)
    with contextlib.ExitStack() as stack:
        for _ in range(LISTS):
            stack.enter_context(begin(cluster, SECRETS))
        began = time.monotonic()
        code, text = cluster.ask("admin", "GET", SECRETS)  # waits until one of sixteen is cut
        took, grown = time.monotonic() - began, resident(cluster.server) - before
    if code != 200 or not text.endswith("]}\n"):
        return f"{code} {text[-60:]}"
    if grown > LISTS * EACH_MAX:
        return f"{grown >> 20} MiB more"
    return None if took < UNREAD_MAX else f"answered after {took:.1f} s"


def left(cluster):
    """Lists whose clients go away in the middle leave no place taken."""
    for _ in range(LISTS):
        connection = begin(cluster, SECRETS)
        connection.recv(1024)
        connection.close()
    began = time.monotonic()
    code, text = cluster.ask("admin", "GET", SECRETS)
    took = time.monotonic() - began
    return None if code == 200 and text.endswith("]}\n") and took < LEFT_MAX else f"{code} after {took:.1f} s"


def attempts(_):
    return [Act("lists that nobody reads", unread), Act("lists that are left", left)]
