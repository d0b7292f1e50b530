"""Old versions, weak ciphers, renegotiation, records that are none; and who the server says it is."""
import socket
import ssl
import struct
import subprocess
import warnings

from attacks.attempt import Act
from attacks.connection import exchange
from attacks.cluster import THEIRS

ALERT, HANDSHAKE = 0x15, 0x16


def trusting(cluster):
    return ssl.create_default_context(cafile=str(cluster.authority.chain))


def refused_with(make, reasons):
    """The server ends the handshake, for one of these reasons."""
    def act(cluster):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context = make(cluster)
        try:
            with socket.create_connection((cluster.host, cluster.port), timeout=10) as plain, context.wrap_socket(plain,
                    server_hostname=cluster.host) as connection:
                return f"{connection.version()} with {connection.cipher()}"
        except ssl.SSLError as error:
            return None if any(reason in str(error) for reason in reasons) else f"refused for another reason: {error}"
        except ConnectionResetError as error:
            return None if "RESET" in reasons else str(error)
    return act


def limited(version, ciphers="ALL:eNULL:@SECLEVEL=0"):
    def make(cluster):
        context = trusting(cluster)
        context.set_ciphers(ciphers)
        context.minimum_version = context.maximum_version = version
        return context
    return make


def weak(ciphers):
    return limited(ssl.TLSVersion.TLSv1_2, ciphers + ":@SECLEVEL=0")


def hello_of(version):
    """A ClientHello of a version that this machine's OpenSSL does not speak any more."""
    suites = struct.pack("!8H", 0x002F, 0x0035, 0x000A, 0x0005, 0x0004, 0xC013, 0xC014, 0x0001)
    body = struct.pack("!H", version) + bytes(32) + b"\0" + struct.pack("!H", len(suites)) + suites + b"\x01\0"
    return struct.pack("!BHH", HANDSHAKE, version, len(body) + 4) + b"\x01" + len(body).to_bytes(3, "big") + body


def no_hello_back(data):
    """The server closes, with an alert or without: never a ServerHello."""
    def act(cluster):
        with socket.create_connection((cluster.host, cluster.port), timeout=15) as plain:
            text = exchange(plain, data).text.encode("latin-1")
        return f"answered {text[:40]!r}" if text and text[0] != ALERT else None
    return act


def renegotiation(cluster):
    """`openssl s_client` requests it when it reads a line with R; a client's request is refused by a warning, or the
    connection ends.
    """
    done = subprocess.run(["openssl", "s_client", "-connect", f"{cluster.host}:{cluster.port}", "-tls1_2", "-CAfile",
                           str(cluster.authority.chain)],
                          input=b"R\nGET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                          capture_output=True, timeout=20, check=False)
    text = (done.stdout + done.stderr).decode(errors="replace")
    if "RENEGOTIATING" not in text:
        return f"renegotiation was not tried: {text[-300:]}"
    return (
        f"a second handshake was made: {text[-300:]}"
        if "HTTP/1.1 200" in text and "no renegotiation" not in text
        else None
    )


def early_data(cluster):
    """A session that allows 0-RTT would let a request be sent twice."""
    with cluster.open() as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        exchange(connection, b"")
        session = connection.session
    if session is None:
        return None
    shown = subprocess.run(["openssl", "s_client", "-connect", f"{cluster.host}:{cluster.port}", "-CAfile",
                            str(cluster.authority.chain)], input=b"",
        capture_output=True, timeout=20, check=False)
    text = shown.stdout.decode(errors="replace")
    return "early data is offered" if "Max Early Data: 0" not in text and "Max Early Data" in text else None


def resumed_as_another(cluster):
    """A session made with an administrator's certificate, resumed without one, must not be an administrator's."""
    context = cluster.contexts["admin"]
    with socket.create_connection((cluster.host, cluster.port), timeout=10) as plain, context.wrap_socket(plain,
            server_hostname=cluster.host) as first:
        exchange(first, b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        session = first.session
    if session is None:
        return None
    other = trusting(cluster)
    try:
        with socket.create_connection((cluster.host, cluster.port),
                                      timeout=10) as plain, other.wrap_socket(plain, server_hostname=cluster.host,
                session=session) as second:
            seen = exchange(second,
                            f"GET {THEIRS}/secrets/hidden HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return None if seen.codes == (403,) else f"{seen.codes}"
    except ValueError:
        return None  # Python does not resume a session of another context


def server_is_not(change):
    """A client that trusts something else must not be content with this server."""
    def act(cluster):
        context, name = change(cluster)
        try:
            with socket.create_connection((cluster.host, cluster.port),
                                          timeout=10) as plain, context.wrap_socket(plain, server_hostname=name):
                return "the client was content"
        except ssl.SSLCertVerificationError:
            return None
    return act


def stranger(cluster):
    return ssl.create_default_context(cafile=str(cluster.workshop.self_signed("/CN=stranger").chain)), cluster.host


def chain_of_clients(cluster):
    """Twelve authorities, one below the other, each eight times."""
    shop, last = cluster.workshop, cluster.authority
    pem = b""
    for number in range(12):
        last = shop.sign(f"/CN=level {number}", last,
                         extensions="basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n", key=shop.key)
        pem = last.chain.read_bytes() + pem
    leaf = shop.sign("/CN=alice", last)
    leaf.chain.write_bytes(leaf.chain.read_bytes() + pem * 8)
    try:
        with socket.create_connection((cluster.host, cluster.port),
                                      timeout=10) as plain, leaf.context(cluster.authority.chain).wrap_socket(plain,
                server_hostname=cluster.host) as connection:
            seen = exchange(connection,
                            f"GET {THEIRS}/secrets/hidden HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return None if seen.codes in ((), (401,), (403,)) else f"{seen.codes}"
    except (ssl.SSLError, ConnectionError):
        return None


def attempts(_):
    old = ("ALERT_PROTOCOL_VERSION", "alert protocol version", "UNSUPPORTED_PROTOCOL", "WRONG_VERSION_NUMBER")
    none = ("HANDSHAKE_FAILURE", "handshake failure", "alert insufficient security", "INSUFFICIENT_SECURITY")
    rows = [Act("TLS 1.0", refused_with(limited(ssl.TLSVersion.TLSv1), old)),
            Act("TLS 1.1", refused_with(limited(ssl.TLSVersion.TLSv1_1), old)),
            Act("SSL 3.0", no_hello_back(hello_of(0x0300))), Act("TLS 1.0 by hand", no_hello_back(hello_of(0x0301))),
            Act("TLS 1.1 by hand", no_hello_back(hello_of(0x0302))),
            Act("TLS 1.2 with weak ciphers by hand", no_hello_back(hello_of(0x0303))),
            Act("a version from the future", no_hello_back(hello_of(0x0500))),
            Act("SSL 2.0", no_hello_back(b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + bytes(37)))]
    for name, ciphers in (("no encryption", "eNULL"), ("nobody's certificate", "aNULL"), ("a key of RSA", "kRSA"),
            ("CBC with SHA-1", "ECDHE-RSA-AES128-SHA")):
        rows.append(Act(f"a cipher with {name}", refused_with(weak(ciphers), none)))
    rows += [Act("renegotiation", renegotiation), Act("early data", early_data),
             Act("a session resumed by another", resumed_as_another),
             Act("a record of 64 KiB", no_hello_back(struct.pack("!BHH", HANDSHAKE, 0x0301, 0xFFFF) + bytes(65_535))),
             Act("a hello longer than any", no_hello_back((struct.pack("!BHH", HANDSHAKE, 0x0301,
                 16_384) + b"\x01\xff\xff\xff" + bytes(16_380)) * 20)),
             Act("a record of data before any handshake",
                 no_hello_back(struct.pack("!BHH", 0x17, 0x0303, 5) + b"hello")),
             Act("an alert before any handshake", no_hello_back(struct.pack("!BHH", ALERT, 0x0303, 2) + b"\x02\x28")),
             Act("a heartbeat that asks for more than it brings",
                 no_hello_back(struct.pack("!BHH", 0x18, 0x0302, 3) + b"\x01\x40\x00")),
             Act("bytes of no protocol", no_hello_back(bytes(range(256)) * 100)),
             Act("a client that trusts another authority", server_is_not(stranger)),
             Act("a client that wants another name", server_is_not(lambda c: (trusting(c), "elsewhere.example"))),
             Act("a chain of a hundred certificates", chain_of_clients)]
    return rows
