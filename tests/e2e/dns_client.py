"""DNS messages for the end-to-end tests: queries by UDP and TCP, their answers as values, and a server that answers as
a test says.
"""
import collections
import contextlib
import ipaddress
import random
import socket
import struct
import threading

from patience import PATIENCE

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "OPT": 41,
         "AXFR": 252}
NAMES = {number: name for name, number in TYPES.items()}
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED"}

Answer = collections.namedtuple("Answer", "rcode truncated authoritative answers authority additional size")
Record = collections.namedtuple("Record", "name type ttl data")


def name_bytes(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.rstrip(".").split(".") if label) + b"\0"


def query(name, kind="A", number=None, edns=None, flags=0x0100, record_class=1):
    """The bytes of a query; `edns`: the size that the client takes."""
    head = struct.pack(">6H", random.randrange(65536) if number is None else number, flags, 1, 0, 0, 1 if edns else 0)
    option = b"\0" + struct.pack(">HHIH", TYPES["OPT"], edns, 0, 0) if edns else b""
    return head + name_bytes(name) + struct.pack(">2H", TYPES[kind], record_class) + option


def read_name(message, at):
    labels, end = [], None
    while True:
        length = message[at]
        if length >= 0xc0:
            end = end or at + 2
            at = struct.unpack(">H", message[at:at + 2])[0] & 0x3fff
        elif length == 0:
            return ".".join(labels) + ".", end or at + 1
        else:
            labels.append(message[at + 1:at + 1 + length].decode())
            at += 1 + length


def data_text(message, at, size, kind):
    data = message[at:at + size]
    if kind in ("A", "AAAA"):
        return str(ipaddress.ip_address(data))
    if kind in ("CNAME", "NS", "PTR"):
        return read_name(message, at)[0]
    if kind == "SRV":
        return (*struct.unpack(">3H", data[:6]), read_name(message, at + 6)[0])
    if kind == "TXT":
        return data[1:1 + data[0]].decode()
    return data


def records(message, at, count):
    found = []
    for _ in range(count):
        name, at = read_name(message, at)
        kind, _, ttl, size = struct.unpack(">2HIH", message[at:at + 10])
        kind = NAMES.get(kind, kind)
        found.append(Record(name, kind, ttl, data_text(message, at + 10, size, kind)))
        at += 10 + size
    return found, at


def parse(message):
    _, flags, questions, answers, authority, additional = struct.unpack(">6H", message[:12])
    at = 12
    for _ in range(questions):
        at = read_name(message, at)[1] + 4
    found = []
    for count in (answers, authority, additional):
        some, at = records(message, at, count)
        found.append([each for each in some if each.type != "OPT"])
    return Answer(RCODES.get(flags & 15, flags & 15), bool(flags & 0x200), bool(flags & 0x400), *found, len(message))


def ask_udp(port, message, host="127.0.0.1", timeout=PATIENCE, source=None):
    """The bytes of the answer; None if none came in time."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as channel:
        if source:
            channel.bind((source, 0))
        channel.settimeout(timeout)
        channel.sendto(message, (host, port))
        try:
            return channel.recvfrom(65535)[0]
        except socket.timeout:
            return None


def read_exactly(channel, size):
    data = b""
    while len(data) < size:
        more = channel.recv(size - len(data))
        if not more:
            raise EOFError("the connection has ended")
        data += more
    return data


def read_frame(channel):
    return read_exactly(channel, struct.unpack(">H", read_exactly(channel, 2))[0])


def ask_tcp(port, *messages, host="127.0.0.1", source=None):
    """The answers to all messages, which are sent in one piece, in the order in which they come."""
    with socket.create_connection((host, port), timeout=PATIENCE, source_address=(source, 0) if source
                                  else None) as channel:
        channel.sendall(b"".join(struct.pack(">H", len(message)) + message for message in messages))
        return [read_frame(channel) for _ in messages]


class Upstream:
    """A DNS server on a free port. `answer(message, over_tcp)` gives bytes, or None for silence. `asked` has what
    came.
    """

    def __init__(self, answer):
        self.answer, self.asked = answer, []
        while True:
            self.streams = socket.create_server(("127.0.0.1", 0))
            self.port = self.streams.getsockname()[1]
            self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self.datagrams.bind(("127.0.0.1", self.port))
                break
            except OSError:
                self.streams.close()
                self.datagrams.close()
        for serve in (self.serve_datagrams, self.serve_streams):
            threading.Thread(target=serve, daemon=True).start()

    def serve_datagrams(self):
        while True:
            try:
                message, peer = self.datagrams.recvfrom(65535)
            except OSError:
                return
            self.asked.append((read_name(message, 12)[0], "udp", peer[1], message[:2]))
            answers = self.answer(message, False)
            for each in answers if isinstance(answers, list) else [answers]:
                if each is not None:
                    self.datagrams.sendto(each, peer)

    def serve_streams(self):
        while True:
            try:
                channel, _ = self.streams.accept()
            except OSError:
                return
            with channel, contextlib.suppress(EOFError, OSError):  # a client that has left
                message = read_frame(channel)
                self.asked.append((read_name(message, 12)[0], "tcp", 0, message[:2]))
                answer = self.answer(message, True)
                if answer is not None:
                    channel.sendall(struct.pack(">H", len(answer)) + answer)

    def close(self):
        self.streams.close()
        self.datagrams.close()


def answer_to(message, *addresses, ttl=60, rcode=0, flags=0x8180, number=None):
    """An answer with A records to the question of `message`."""
    end = read_name(message, 12)[1] + 4
    head = (message[:2] if number is None else number) + struct.pack(">5H", flags | rcode, 1, len(addresses), 0, 0)
    body = b"".join(b"\xc0\x0c" + struct.pack(">2HIH", 1, 1, ttl, 4) + ipaddress.ip_address(each).packed
                    for each in addresses)
    return head + message[12:end] + body
