"""Paths at the agent's own server, by a client that may read there (`get nodes/proxy`): however it spells them, it runs
no program in a pod, reaches no port of a pod, and sees nothing that needs another right."""
import ssl

from attacks.attempt import Act, shown
from attacks.authority import Certificate
from attacks.connection import codes_of, open_connection
from attacks.exec import UPGRADE
from attacks.ports import COMMANDS, PORTS

TUNNEL = tuple(header for header in UPGRADE
               if header[0] != "Sec-WebSocket-Protocol") + (("Sec-WebSocket-Protocol", "SPDY/3.1+portforward.k8s.io"),)
# Route, its rest, the upgrades that a client may request.
ROUTES = (
    ("exec", "/theirs/teller/main?command=id&output=1", (UPGRADE, COMMANDS)),
    ("attach", "/theirs/teller/main?output=1", (UPGRADE, COMMANDS)),
    ("portForward", "/theirs/teller?port=80", (TUNNEL, PORTS)),
    ("run", "/theirs/teller/main?cmd=id", (UPGRADE, COMMANDS)),
)
OUTSIDE_OF_LOGS = ("/logs/../../etc/passwd", "/logs/%2e%2e/%2e%2e/etc/passwd", "/logs/..%2f..%2fetc%2fpasswd",
                   "/logs//etc/passwd", "/logs/etc/passwd", "/logs/%2fetc%2fpasswd", "/logs/..;/..;/etc/passwd",
                   "/logs/..%5c..%5cetc%5cpasswd", "/logs/passwd%00",
                   "/logs/" + "a/" * 3000 + "b", "/logs/" + "a" * 5000)
REFUSED = {(400,), (403,), (404,), (405,)}


def spellings(word):
    """Spellings that some path parsers read as "/WORD"."""
    for i, letter in enumerate(word):
        for escape in {f"%{ord(letter):02x}", f"%{ord(letter):02X}", f"%25{ord(letter):02x}"}:
            yield f"/{word[:i]}{escape}{word[i + 1:]}"
    yield "/" + "".join(f"%{ord(letter):02x}" for letter in word)
    for before in ("//", "/./", "/../", "/%2e/", "/%2E%2E/", "/pods/../", "/pods/%2e%2e/", "/healthz/../",
                   "/healthz%2f..%2f", "/metrics/..;/", "/%2f", "/%00/",
            "/;/", "/\\", "/%5c", "/stats/summary/../../"):
        yield before + word
    for behind in ("/", ";x", "%00", "%20", "/.", "/pods/..", "%2f..", "%2ftheirs", "%3f", "%23", "?"):
        yield f"/{word}{behind}"
    yield "/" + word.upper()
    yield "/" + word.lower()
    yield "/" + word.capitalize()
    yield f"http://x/{word}"
    yield f"/{word}"


def ask(cluster, by, method, target, headers=(), behind=b""):
    """(codes, text) of one request: all of its answer; of a connection that was upgraded, what comes until there is
    `behind`.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    certificate = cluster.at_agent_paths[by]
    context.load_cert_chain(str(certificate.chain), str(certificate.key))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    seen = b""
    with open_connection("127.0.0.1", cluster.node_port(), context) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n{head}\r\n".encode(
            "latin-1"))
        while not codes_of(seen) or (codes_of(seen)[0] == 101 and behind not in seen):
            more = connection.recv(65536)
            if not more:
                break
            seen += more
    return codes_of(seen), seen.decode("latin-1")


def refused(method, word, behind, upgrade):
    """All spellings of one route."""
    def act(cluster):
        for spelling in dict.fromkeys(spellings(word)):
            codes, text = ask(cluster, "proxier", method, spelling + behind, upgrade)
            if codes not in REFUSED or "uid=" in text:
                return f"{method} {spelling}: {codes} {shown(text)}"
        return None
    return act


def other_right(path):
    """A page that `get nodes/proxy` does not open."""
    def act(cluster):
        for i, letter in enumerate(path[1:], 1):
            for escape in (f"%{ord(letter):02x}", f"%{ord(letter):02X}"):
                codes, text = ask(cluster, "proxier", "GET", path[:i] + escape + path[i + 1:])
                if codes not in REFUSED:
                    return f"{path[:i]}{escape}{path[i + 1:]}: {codes} {shown(text)}"
        codes, text = ask(cluster, "proxier", "GET", path)
        return None if codes == (403,) else f"{path}: {codes} {shown(text)}"
    return act


def outside_of_logs(path):
    """A file that is no log: the administrator, who may read logs, does not get it."""
    def act(cluster):
        codes, text = ask(cluster, "admin", "GET", path)
        return None if codes in REFUSED and "root:" not in text else f"{path}: {codes} {shown(text)}"
    return act


def may_still(cluster):
    """Without this, the refusals would say little."""
    codes, text = ask(cluster, "proxier", "GET", "/pods")
    if codes != (200,):
        return f"/pods by a reader: {codes} {shown(text)}"
    codes, text = ask(cluster, "admin", "GET", "/logs/")
    if codes != (200,):
        return f"/logs/ by the administrator: {codes} {shown(text)}"
    codes, text = ask(cluster, "admin", "GET", "/exec/theirs/teller/main?command=id&output=1", UPGRADE, b"uid=")
    return None if codes[:1] == (101,) and "uid=" in text else f"exec by the administrator: {codes} {shown(text)}"


def attempts(cluster):
    cluster.at_agent_paths = {"proxier": cluster.signed("/CN=proxier"),
                              "admin": Certificate(cluster.pki / "admin.crt", cluster.pki / "admin.key")}
    rows = [Act("who may still", may_still)]
    for word, behind, upgrades in ROUTES:
        count = len(set(spellings(word)))
        for method, upgrade in (("GET", upgrades[0]), ("GET", upgrades[1]), ("POST", upgrades[1])):
            name = dict(upgrade)["Upgrade"]
            rows.append(Act(f"{count} spellings of {word} by a reader, {method}, {name}",
                            refused(method, word, behind, upgrade)))
    rows += [Act(f"{path} with an escape by a reader", other_right(path))
             for path in ("/metrics", "/metrics/cadvisor", "/stats/summary", "/logs", "/logs/syslog",
                          "/checkpoint/theirs/teller/main")]
    rows += [Act(f"{path} by the administrator", outside_of_logs(path)) for path in OUTSIDE_OF_LOGS]
    return rows
