"""A connection on which bytes are sent as they are, and the answers on it taken apart."""
import dataclasses
import re
import socket
import ssl
import time

HEAD = re.compile(rb"HTTP/1\.1 (\d{3})[^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")
LENGTH = re.compile(rb"^content-length: *(\d+)\r?$", re.I | re.M)
CHUNKED = re.compile(rb"^transfer-encoding: *chunked\r?$", re.I | re.M)
WAIT = 15.0  # seconds until a silent server counts as one that keeps the connection


@dataclasses.dataclass(frozen=True)
class Seen:
    codes: tuple  # codes of the answers, in their order
    text: str     # everything that came
    ended: bool   # the server closed the connection


def body_end(data, at, head):
    """Where the body that begins at `at` ends; None while it is incomplete."""
    length = LENGTH.search(head)
    if length:
        end = at + int(length.group(1))
        return end if end <= len(data) else None
    if not CHUNKED.search(head):
        return at
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return None
        size = int(data[at:line].split(b";")[0], 16)
        at = line + 2 + size + 2
        if size == 0 or at > len(data):
            return at if at <= len(data) else None


def codes_of(data):
    """Status codes of the answers that stand one behind the other in `data`."""
    codes, at = [], 0
    while True:
        head = HEAD.match(data, at)
        if not head:
            return tuple(codes)
        codes.append(int(head.group(1)))
        end = body_end(data, head.end(), head.group(2))
        if end is None:
            return tuple(codes)
        at = end


def open_connection(host, port, context=None, timeout=WAIT):
    plain = socket.create_connection((host, port), timeout=timeout)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        return context.wrap_socket(plain, server_hostname=host) if context else plain
    except BaseException:
        plain.close()
        raise


def receive_all(connection, wait=WAIT):
    """Everything until the server closes, or is silent for `wait` seconds."""
    data, ended, until = b"", False, time.monotonic() + wait
    while not ended and time.monotonic() < until:
        connection.settimeout(max(0.01, until - time.monotonic()))
        try:
            part = connection.recv(65536)
        except (TimeoutError, ssl.SSLWantReadError):
            break
        except OSError:
            part = b""
        data += part
        ended = not part
    return Seen(codes_of(data), data.decode("latin-1"), ended)


def exchange(connection, data, wait=WAIT):
    """Sends `data`, an iterable of parts or bytes, and takes everything that comes."""
    for part in (data,) if isinstance(data, (bytes, str)) else data:
        try:
            connection.sendall(part.encode("latin-1") if isinstance(part, str) else part)
        except OSError:
            break  # the server has answered and left
    return receive_all(connection, wait)
