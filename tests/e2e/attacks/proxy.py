"""pods/proxy and services/proxy: users who may reach nothing, nodes that lie about where their pods are, names and
paths that mean something else to the server behind, answers without an end, and what must not get there or come
back."""
import contextlib
import json
import re
import time

from attacks.attempt import Act, Ask, exposed, shown
from attacks.cluster import OURS, THEIRS
from harness import wait_for
from http_peer import Peer, own_address

POD = f"{OURS}/pods/on-n1"
SILENT = f"{OURS}/pods/silent-on-n1"  # a pod of its own: other attempts move theirs
ENDPOINTS = f"{OURS}/endpoints/front"
MERGE = {"Content-Type": "application/merge-patch+json"}
BEGINNINGS = ("", "http:", "https:")


def place(cluster, address, pod=POD):
    """(code, text): the node says that its pod has this address."""
    return cluster.ask("n1", "PATCH", f"{pod}/status",
                       json.dumps({"status": {"phase": "Running", "podIP": address or None,
        "podIPs": [{"ip": address}] if address else None}}).encode(), MERGE)


def by_others():
    for by in ("nobody", "alice", "getter", "watcher", "lister", "log-reader", "any-log", "proxier", "subresources",
               "debugger", "n1", "n3"):
        for path in (f"{POD}:80/proxy/", f"{POD}/proxy/", f"{OURS}/services/front/proxy/",
                     f"{THEIRS}/pods/other:80/proxy/",
                f"{THEIRS}/services/kubernetes/proxy/"):
            for method in ("GET", "POST"):
                yield Ask(f"{method} {path} by {by}", by, method, path, want=(401, 403))
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        yield Ask(f"{method} by who may get and create", "pod-proxier", method, f"{POD}:80/proxy/", want=403)
    for path in (f"{THEIRS}/pods/other:80/proxy/", f"{THEIRS}/services/front/proxy/", "/api/v1/nodes/n1/proxy/",
                 f"{OURS}/pods/on-n1/exec?command=id"):
        yield Ask(f"{path} by who may proxy in another namespace", "pod-proxier", "GET", path)
    for path in ("/api/v1/proxy/namespaces/ours/pods/on-n1/", "/api/v1/pods/on-n1/proxy/", f"{OURS}/proxy/pods/on-n1/",
                 f"{OURS}/pods/proxy/on-n1"):
        yield Ask(f"{path}, no path to a proxy", "pod-proxier", "GET", path, want=(403, 404))


def lies(cluster, peer):
    """A node writes the addresses of its pods, and users with rights on endpoints direct services."""
    def reached(address, ports):
        def act(_):
            code, text = place(cluster, address)
            if code not in (200, 422):
                return f"the status: {code} {shown(text)}"
            before = len(peer.seen)
            for port in ports:
                for beginning in BEGINNINGS:
                    code, text = cluster.ask(
                        "admin",
                        "GET",
                        f"{OURS}/pods/{beginning}on-n1:{port}/proxy/api/v1/namespaces/theirs/secrets/hidden",
                    )
                    if code < 400 or exposed(text):
                        return f"{beginning}{port}: {code} {shown(text)}"
            return "the server was asked" if len(peer.seen) > before else None
        return act
    for address in ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "169.254.169.254",
                    "::ffff:169.254.169.254", "fe80::1", "224.0.0.1",
            "255.255.255.255", "localhost", "127.1", "2130706433", "metadata.google.internal", f"{peer.address}:80",
                    f"x@{peer.address}", ""):
        yield Act(f"a pod at {address!r}", reached(address, (peer.port, cluster.port)))
    yield Act("a pod at the API server itself", reached(peer.address, (cluster.port,)))

    def names_others(reference):
        def act(_):
            place(cluster, peer.address)
            cluster.admin.request("PUT", ENDPOINTS,
                                  {"metadata": {"name": "front"},
                                   "subsets": [{"addresses": [{"ip": peer.address, **reference}],
                "ports": [{"port": peer.port}]}]})
            before = len(peer.seen)
            code, text = cluster.ask("pod-proxier", "GET", f"{OURS}/services/front/proxy/")
            return f"{code} {shown(text)}" if code != 503 or len(peer.seen) > before else None
        return act
    for name, reference in (("nobody", {}),
                            ("a pod of another namespace",
                             {"targetRef": {"kind": "Pod", "namespace": "theirs", "name": "other"}}),
            ("a pod elsewhere", {"targetRef": {"kind": "Pod", "namespace": "ours", "name": "on-n2"}}),
            ("no pod", {"targetRef": {"kind": "Node", "namespace": "ours", "name": "on-n1"}})):
        yield Act(f"an endpoint of {name}", names_others(reference))


def names(peer):
    for name in ("http:https:on-n1:80", "ftp:on-n1:80", "file:on-n1:", "HTTPS:on-n1:80", ":80", "::", "http::80",
                 "a:b:c:d", "on-n1:80:80:80",
            "on-n1:80%0d%0aX-Injected:%20yes", "on-n1%00:80"):
        yield Ask(f"a pod named {name}", "pod-proxier", "GET", f"{OURS}/pods/{name}/proxy/", want=(400, 404))
    for name in (f"user@on-n1:{peer.port}", f"on-n1%2f..%2f..%2ftheirs:{peer.port}",
                 f"..%2ftheirs%2fpods%2fother:{peer.port}", f"on-n1%2fproxy:{peer.port}",
            f"on-n1%3f:{peer.port}", f"on-n1%23:{peer.port}", f"%2e%2e:{peer.port}", f"{peer.address}:{peer.port}",
                 f"on-n1.:{peer.port}", f"ON-N1:{peer.port}"):
        yield Ask(f"a pod named {name}", "pod-proxier", "GET", f"{OURS}/pods/{name}/proxy/", want=(400, 404))
    for port in ("0", "65536", "-1", "1e3", "80@elsewhere", "80%2fx", "0x50", "99999999999999999999", "%20", "ssh",
                 "*"):
        yield Ask(f"a pod's port {port}", "pod-proxier", "GET", f"{OURS}/pods/on-n1:{port}/proxy/", want=(400, 503))


def paths(cluster, peer):
    """The server behind the proxy receives one request, below its root, with nothing added."""
    def act(rest):
        def one(_):
            before = len(peer.seen)
            target = f"{POD}:{peer.port}/proxy/{rest}"
            seen = cluster.send("pod-proxier",
                                f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode("latin-1"))
            new = peer.seen[before:]
            if len(new) > 1 or any("x-injected" in headers or not path.startswith("/") or " " in path for _, path,
                                   headers, _ in new):
                return f"asked {new}"
            if any(code not in (200, 400, 403, 404, 414, 431) for code in seen.codes) or exposed(seen.text):
                return f"{seen.codes} {shown(seen.text)}"
            return None
        return one
    for rest in ("%0d%0aX-Injected:%20yes", "x%20HTTP/1.1%0d%0aX-Injected:%20yes%0d%0a%0d%0aGET%20/y",
                 "x?a=%0d%0aX-Injected:%20yes", "..%2f..%2fsecrets",
            "../../../secrets/hidden", "%2e%2e/%2e%2e/secrets/hidden", "x/../../y", "//elsewhere/x",
                 "http://elsewhere/x", "@elsewhere/", "x#y", "x%23y?z", "x\\y",
            "x\x7fy", "x\xff\xfe", "x?\xff", "%00", "a" * 20_000, "?" + "a=b&" * 5_000):
        yield Act(f"a path {rest[:60]!r}", act(rest))


def credentials(cluster, peer):
    def act(_):
        token = cluster.token("app")
        before = len(peer.seen)
        secrets = {"Authorization": f"Bearer {token}", "Proxy-Authorization": "Basic c2VjcmV0",
                   "X-Remote-User": "c2VjcmV0", "X-Remote-Group": "c2VjcmV0",
            "X-Remote-Extra-Scopes": "c2VjcmV0", "X-Forwarded-Uri": "c2VjcmV0", "X-Forwarded-Host": "c2VjcmV0",
                   "Connection": "X-Forwarded-For, Host, close",
            "Sec-WebSocket-Protocol": "base64url.bearer.authorization.k8s.io.c2VjcmV0"}
        code, text = cluster.ask("admin", "GET", f"{POD}:{peer.port}/proxy/x", headers=secrets)
        if code == 401:
            return None  # a client that shows a certificate and a token is asked which
        told = json.dumps(peer.seen[before:], default=str)
        if code != 200 or len(peer.seen) != before + 1 or token in told or "c2VjcmV0" in told:
            return f"{code} {shown(text)}: {told}"
        return None
    yield Act("credentials of every kind, passed on", act)

    def impersonated(_):
        before = len(peer.seen)
        code, text = cluster.ask("admin", "GET", f"{POD}:{peer.port}/proxy/x",
                                 headers={"Impersonate-User": "pod-proxier", "Impersonate-Extra-Secret": "c2VjcmV0"})
        told = json.dumps(peer.seen[before:], default=str)
        return f"{code} {shown(text)}: {told}" if code != 200 or "mpersonate" in told or "c2VjcmV0" in told else None
    yield Act("who is impersonated, passed on", impersonated)

    def forged(_):
        with cluster.open("pod-proxier") as connection:
            connection.sendall(
                f"GET {POD}:{peer.port}/proxy/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode().lower()
        bad = [each for each in ("forged", "access-control", "service-worker") if each in text]
        return f"{bad} in {shown(text)}" if bad or "x-kind: pod" not in text else None
    yield Act("headers that speak for the API server", forged)


def answers(cluster, peer):
    def open_to(what, by="pod-proxier"):
        connection = cluster.open(by, timeout=60.0)
        connection.sendall(f"GET {POD}:{peer.port}/proxy/{what} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return connection

    def endless(_):
        peer.left.clear()
        with open_to("endless") as connection:
            got = 0
            while got < 8 << 20:
                got += len(connection.recv(1 << 16))
        return None if peer.left.wait(60) else "the pod is read on although its client has gone"
    yield Act("an answer without an end", endless)

    def unread(_):
        peer.left.clear()
        with open_to("endless") as connection:
            wait_for("the answer", lambda: connection.recv(1))
            if cluster.ask("admin", "GET", "/readyz")[0] != 200:
                return "not ready"
        return None if peer.left.wait(60) else "the pod is read on although its client has gone"
    yield Act("an answer without an end that nobody reads", unread)

    def cut(_):
        with open_to("cut") as connection:
            text = b"".join(iter(lambda: connection.recv(65536), b""))
        # Bytes that were not sent yet may be lost with the connection. The client must be able to see that some are
        # missing.
        head, _, body = text.partition(b"\r\n\r\n")
        length = re.search(rb"(?im)^content-length: (\d+)", head)
        chunked = re.search(rb"(?im)^transfer-encoding: chunked", head)
        whole = len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n") if chunked else bool(text)
        return f"a cut answer looks whole: {text[-80:]!r}" if whole else None
    yield Act("an answer that breaks off", cut)

    def many(_):
        held = [open_to("silent") for _ in range(60)]
        refused = set()

        def all_heard():
            for connection in set(held) - refused:
                connection.settimeout(0.01)
                with contextlib.suppress(OSError):
                    if b" 429 " in connection.recv(4096)[:20]:
                        refused.add(connection)
            return len(refused) >= 60 - 32
        try:
            wait_for(lambda: f"28 refusals: {len(refused)}", all_heard, timeout=25)
            others = cluster.ask("admin", "GET", f"{POD}:{peer.port}/proxy/x")[0]
            if cluster.ask("admin", "GET", "/readyz")[0] != 200 or others != 200:
                return f"others get {others}"
            return None if len(refused) == 60 - 32 else f"{len(refused)} of 60 were refused"
        finally:
            for connection in held:
                connection.close()
    yield Act("many at once without an answer", many)

    def silent(_):
        begun = time.monotonic()
        code, text = cluster.ask("silent-reader", "GET", f"{SILENT}:{peer.port}/proxy/silent")
        took = time.monotonic() - begun
        return (
            None
            if code == 503 and "no answer within" in text and took < 60
            else f"{code} after {took:.0f} s: {shown(text)}"
        )
    yield Act("an answer that never begins", silent, slow=True)


def attempts(cluster):
    address = own_address()
    if address is None:
        return list(by_others())
    peer = Peer(address)
    if not cluster.admin.find(SILENT):
        cluster.admin.create(f"{OURS}/pods",
                             {"metadata": {"name": "silent-on-n1"},
                              "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    place(cluster, address, SILENT)
    if not cluster.admin.find(ENDPOINTS):
        cluster.admin.create(f"{OURS}/services", {"metadata": {"name": "front"}, "spec": {"ports": [{"port": 80}]}})
        cluster.admin.create(f"{OURS}/endpoints", {"metadata": {"name": "front"}, "subsets": []})

    def may_still(_):
        """Without this, the refusals would say little."""
        place(cluster, address)
        for path in (f"{POD}:{peer.port}/proxy/x", f"{OURS}/pods/http:on-n1:{peer.port}/proxy/x"):
            code, text = cluster.ask("pod-proxier", "GET", path)
            if (code, text) != (200, "GET /x "):
                return f"{path}: {code} {shown(text)}"
        cluster.admin.request("PUT", ENDPOINTS,
                              {"metadata": {"name": "front"}, "subsets": [{"addresses": [{"ip": address,
            "targetRef": {"kind": "Pod", "namespace": "ours", "name": "on-n1"}}], "ports": [{"port": peer.port}]}]})
        code, text = cluster.ask("pod-proxier", "GET", f"{OURS}/services/front:80/proxy/x")
        return None if (code, text) == (200, "GET /x ") else f"the service: {code} {shown(text)}"
    return [*by_others(), *lies(cluster, peer), Act("what is allowed", may_still), *names(peer), *paths(cluster, peer),
            *credentials(cluster, peer),
            *answers(cluster, peer)]
