"""Openings of an agent that its configuration makes: the port without authentication (readOnlyPort), by clients of the
network, and the address of static pods (staticPodURL), by its server."""
import concurrent.futures
import contextlib
import http.client
import json
import socket
import time

from attacks.agent_paths import spellings
from attacks.attempt import Act, exposed, shown
from harness import pod, running, wait_for
from manifest_server import ManifestServer
from own_etcd import free_ports
from process_memory import peak

MEMORY_BYTES_MAX = 300 << 20
SECRET = "header-that-stays-secret"
CONFIG = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
readOnlyPort: {port}
staticPodURL: {url}
staticPodURLHeader: {{Authorization: ["Bearer {secret}"]}}
httpCheckFrequency: 500ms
"""
CLOSED = ("/configz", "/debug/spillway", "/debug/spillway/decisions", "/debug/spillway/recording", "/logs/?query=ssh",
          "/runningpods/", "/logs/", "/logs/syslog", "/logs/..%2fetc%2fpasswd",
          "/run/theirs/teller/main?cmd=id",
          "/exec/theirs/teller/main?command=id&output=1", "/attach/theirs/teller/main?output=1",
          "/portForward/theirs/teller?port=80",
          "/containerLogs/theirs/teller/main", "/checkpoint/theirs/teller/main", "/debug/pprof/heap", "/api/v1/secrets",
          "/")
UPGRADES = ({}, {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"},
            {"Authorization": "Bearer x", "X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"})


class Openings:
    """An agent beside the one of the cluster, for the first attempt that needs it, and the server of its static
    pods.
    """

    def __init__(self, cluster):
        self.cluster, self.stack = cluster, contextlib.ExitStack()

    def start(self):
        cluster, folder = self.cluster, self.cluster.folder / "openings"
        folder.mkdir()
        self.pods, self.elsewhere = self.stack.enter_context(ManifestServer()), self.stack.enter_context(
            ManifestServer())
        self.port = free_ports(1)[0]
        self.give("steady")
        (folder / "kubelet.yaml").write_text(CONFIG.format(port=self.port, url=self.pods.url("/pods"), secret=SECRET))
        kubeconfig = cluster.kubeconfig_of("n4", cluster.signed("/O=system:nodes/CN=system:node:n4"))
        self.agent = self.stack.enter_context(running(folder, "agent", "--kubeconfig", kubeconfig, "--node-name", "n4",
                                                      "--node-ip", "127.0.0.1",
                                                      "--port", "0", "--node-memory", "256Mi", "--state-dir",
                                                      folder / "state", "--config", folder / "kubelet.yaml"))
        wait_for("the node", lambda: "n4" in cluster.admin.nodes_ready())
        wait_for("its static pod", lambda: self.runs("steady"))
        self.resources = wait_for("its socket",
                                  lambda: next((folder / "state").glob("**/pod-resources/kubelet.sock"), None)).parent

    def give(self, *names):
        items = [pod(name, ["sh", "-c", "exec tail -f /dev/null"]) for name in names]
        self.pods.give(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items}))

    def release(self):
        """Ends an answer that hangs."""
        self.pods.hangs.clear()
        self.pods.released.set()

    def runs(self, name):
        return self.cluster.admin.pod_phases("default").get(f"{name}-n4") == "Running"

    def log(self):
        return self.agent.log.read_text(errors="replace")

    def ask(self, target, method="GET", headers=(), body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_host=False, skip_accept_encoding=True)
            for name, value in dict(headers).items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body or b"")))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("latin-1")

    def calm(self, *wanted):
        """Asks until the pace of the port allows it."""
        while True:
            code, text = self.ask(*wanted)
            if code != 429:
                return code, text
            time.sleep(0.1)


def closed(opening, target):
    def act(_):
        for headers in UPGRADES:
            for method in ("GET", "POST"):
                code, text = opening.calm(target, method, headers)
                if code not in (400, 404, 405) or "uid=" in text or exposed(text):
                    return f"{method} {target} {headers}: {code} {shown(text)}"
        return None
    return act


def closed_in_any_spelling(opening, word, behind):
    def act(_):
        for spelling in dict.fromkeys(spellings(word)):
            if any(character in spelling for character in "\0 "):
                continue  # no client of this test sends it
            code, text = opening.calm(spelling + behind)
            if code not in (400, 403, 404, 405) or exposed(text):
                return f"{spelling}: {code} {shown(text)}"
        return None
    return act


def writes_nothing(opening, method):
    def act(_):
        for target in ("/pods", "/healthz", "/metrics"):
            code, text = opening.calm(target, method, {}, b"x" * 100)
            if code not in (400, 405):
                return f"{method} {target}: {code} {shown(text)}"
        return None
    return act


def tells_no_secret(opening):
    def act(_):
        for target in ("/pods", "/stats/summary", "/metrics", "/metrics/cadvisor", "/metrics/resource",
                       "/healthz?verbose"):
            code, text = opening.calm(target)
            if code != 200 or exposed(text) or SECRET in text:
                return f"{target}: {code} {shown(text)}"
        return None
    return act


def flood(opening):
    """Refused with 429 beyond its pace; the node answers others and stays Ready."""
    def act(cluster):
        codes = []

        def refused():  # a client on a busy machine may be slower than the pace: then once more
            with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
                codes.extend(pool.map(lambda _: opening.ask("/stats/summary")[0], range(300)))
            return 429 in codes
        wait_for("refusals", refused)
        if set(codes) - {200, 429}:
            return f"{ {code: codes.count(code) for code in codes} }"
        return None if "n4" in cluster.admin.nodes_ready() else "the node is not Ready"
    return act


def many_connections(opening):
    """Silent connections take no place from clients that ask."""
    def act(_):
        with contextlib.ExitStack() as stack:
            for _ in range(400):
                with contextlib.suppress(OSError):
                    stack.enter_context(socket.create_connection(("127.0.0.1", opening.port), timeout=10))
            code, text = opening.calm("/healthz")
            return None if (code, text) == (200, "ok") else f"{code} {shown(text)}"
    return act


def answer(opening, name, give, says):
    """An answer that changes no pod: the log says why, and a good one afterwards is read."""
    def act(_):
        before = len(opening.log())
        try:
            give()
            wait_for(f"the problem: {says}", lambda: says in opening.log()[before:])
            if not opening.runs("steady"):
                return "the pod that ran is gone"
            if peak(opening.agent) > MEMORY_BYTES_MAX:
                return f"the agent took {peak(opening.agent) >> 20} MiB"
            opening.release()
            opening.give("steady", name)
            wait_for("a pod of the next answer", lambda: opening.runs(name))
            return None
        finally:
            opening.release()
            opening.give("steady")
    return act


def other_users_stay_out(opening):
    def act(_):
        folder = opening.resources.stat()
        if not (opening.resources / "kubelet.sock").is_socket() or folder.st_uid != 0 or folder.st_mode & 0o007:
            return f"user {folder.st_uid}, mode {folder.st_mode:o}"
        return None
    return act


def noise(opening):
    """Clients that speak no gRPC hold nothing up."""
    def act(cluster):
        connected = 0
        with contextlib.ExitStack() as clients:
            for _ in range(100):
                client = clients.enter_context(socket.socket(socket.AF_UNIX))
                client.settimeout(60)
                # as many wait as the socket lets wait
                with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                    client.connect(str(opening.resources / "kubelet.sock"))
                    connected += 1
                    client.sendall(b"\xff" * 65_536)
            if connected == 0:
                return "no client could connect"
            return None if "n4" in cluster.admin.nodes_ready() else "the node is not Ready"
    return act


def hang(opening):
    opening.pods.released.clear()
    opening.pods.hangs.set()


def moved(opening):
    """A redirect leads nowhere: no other server gets the headers."""
    give = answer(opening, "after-redirect",
                  lambda: opening.pods.give("", status=302, Location=opening.elsewhere.url("/pods")), "/pods: 302")

    def act(cluster):
        problem = give(cluster)
        return problem or (f"the other server was asked: {opening.elsewhere.requests}" if opening.elsewhere.requests
                           else None)
    return act


def keeps_its_header(opening):
    def act(cluster):
        shown_configuration = json.dumps(cluster.admin.get("/api/v1/nodes/n4/proxy/configz"))
        if "<masked>" not in shown_configuration or SECRET in shown_configuration + opening.log():
            return f"{shown(shown_configuration)}"
        return None
    return act


def bomb():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]"
                                                          for i in range(1, 10)]
    return "\n".join(lines)


def attempts(cluster):
    opening = Openings(cluster)
    rows = [Act("the agent with these openings", lambda _: opening.start())]
    rows += [Act(f"{target} without authentication", closed(opening, target)) for target in CLOSED]
    rows += [Act(f"spellings of {word} without authentication", closed_in_any_spelling(opening, word, behind))
             for word, behind in (("exec", "/theirs/teller/main?command=id&output=1"), ("configz", ""),
                                  ("containerLogs", "/theirs/teller/main"))]
    rows += [Act(f"{method} without authentication", writes_nothing(opening, method))
             for method in ("PUT", "PATCH", "DELETE", "OPTIONS")]
    rows += [Act("secrets on the pages for all", tells_no_secret(opening)), Act("300 requests at once", flood(opening)),
             Act("400 silent connections", many_connections(opening)),
             Act("the socket of the pod-resources API for other users", other_users_stay_out(opening)),
             Act("noise at the socket of the pod-resources API", noise(opening))]
    many = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [pod(f"p{i}", ["true"]) for i in range(257)]})
    answers = (("after-error", lambda: opening.pods.give("no", status=503), "/pods: 503"),
               ("after-noise", lambda: opening.pods.give(b"\x00\xff\xfe{"), "/pods:"),
               ("after-size", lambda: opening.pods.give(b"#" * (5 << 20)), "static pod manifest"),
               ("after-bomb", lambda: opening.pods.give(bomb()), "static pod manifest"),
               ("after-many", lambda: opening.pods.give(many), "expected at most 256 pods, there are 257"),
               ("after-kind", lambda: opening.pods.give('{"apiVersion": "v1", "kind": "Secret"}'),
                'got kind \\"Secret\\"'),
               ("after-depth", lambda: opening.pods.give("[" * 100_000), "static pod manifest"),
               ("after-silence", lambda: hang(opening), "static pod manifest"))
    rows += [Act(f"an answer of the address of static pods: {name}", answer(opening, name, give, says)) for name, give,
             says in answers]
    rows += [Act("a redirect by the address of static pods", moved(opening)),
             Act("the header for the address of static pods", keeps_its_header(opening)),
             Act("the end of that agent", lambda _: opening.stack.close())]
    return rows
