"""The pages of a process with controllers, which show decisions about nodes and pods, and those of a scheduler, which
show waiting pods: attacked by users without the right, by paths that lead elsewhere, and by methods that write.
"""
import http.client
import re

from attacks.attempt import Act, Ask, exposed, shown
from harness import running, wait_for

PAGES = ("/debug/spillway/pods/theirs/teller", "/debug/spillway/pods/", "/debug/spillway/nodes/n1",
         "/debug/spillway/zones",
    "/debug/spillway/evictions/ReplicaSet/theirs/x", "/debug/spillway/recording",
         "/debug/spillway/recording/segments/1", "/metrics", "/configz")
OUTSIDERS = ("nobody", "alice", "lister", "getter", "log-reader", "editor", "proxier", "n1", "ours/app",
             "unknown token")
PODS = "/debug/spillway/pods"
RECORDING = "/debug/spillway/recording"
# Name, user, method, path, headers, the codes.
ODD_RECORDINGS = (
    ("the list of segments", "admin", "GET", RECORDING, {}, (200,)),
    *((f"a segment that is none: {below!r}", "admin", "GET", f"{RECORDING}/{below}", {}, (400, 404))
        for below in ("segments/", "segments/999", "segments/../../../etc/passwd",
                      "segments/..%2f..%2f..%2fetc%2fpasswd", "kept/..%2f..%2f/1",
            "kept/../1", "kept/%2e%2e/1", "kept//1", "segments/%00", "segments/" + "9" * 4_000)),
)
WAITING_PAGES = ("/debug/spillway/waiting", "/debug/spillway/waiting/theirs/teller", "/debug/spillway/waiting/",
                 RECORDING, "/metrics", "/configz")
NO_RECORDING = (("a scheduler has no recording", "admin", "GET", RECORDING, {}, (404,)),)
# A profile that no pod names: it places none.
IDLE = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: idle}]
extenders: [{urlPrefix: "http://127.0.0.1:1", tlsConfig: {certData: aWRsZQ==, keyData: aWRsZSBrZXk=}}]
"""


def odd(folder):
    """Below the folder of one page for each pod: name, user, method, path, headers, the codes."""
    return (
        ("a pod nobody is about to delete", "admin", "GET", f"{folder}/theirs/teller", {}, (404,)),
        ("a pod without a name", "admin", "GET", f"{folder}/theirs/", {}, (404,)),
        ("no pod", "admin", "GET", f"{folder}/", {}, (404,) if folder == PODS else (200,)),
        ("dots", "admin", "GET", f"{folder}/../../../etc/passwd", {}, (400, 404)),
        ("encoded dots", "admin", "GET", f"{folder}/%2e%2e/%2e%2e/metrics", {}, (400, 404)),
        ("an encoded slash", "admin", "GET", f"{folder}/theirs%2fteller", {}, (400, 404)),
        ("a NUL", "admin", "GET", f"{folder}/theirs/%00", {}, (400, 404)),
        ("a long name", "admin", "GET", f"{folder}/theirs/{'x' * 4_000}", {}, (400, 404, 414, 431)),
        ("dots by nobody", "nobody", "GET", f"/healthz/..{folder}/theirs/teller", {}, (400, 401, 403, 404)),
        ("dots in disguise by nobody", "nobody", "GET", f"/healthz/%2e%2e{folder}/theirs/teller", {},
         (400, 401, 403, 404)),
        ("two slashes by nobody", "nobody", "GET", f"/{folder}/theirs/teller", {}, (400, 401, 403, 404)),
        ("capitals by nobody", "nobody", "GET", folder.upper() + "/theirs/teller", {}, (401, 403, 404)),
        ("a query that says health, by nobody", "nobody", "GET", f"{folder}/theirs/teller?/healthz", {}, (401, 403)),
        ("the administrator's name by nobody", "nobody", "GET", f"{folder}/theirs/teller",
         {"X-Remote-User": "kubernetes-admin", "X-Remote-Group": "system:masters"}, (401, 403)),
        ("impersonation by nobody", "nobody", "GET", f"{folder}/theirs/teller",
         {"Impersonate-User": "kubernetes-admin", "Impersonate-Group": "system:masters"}, (401, 403)),
        ("impersonation by alice", "alice", "GET", f"{folder}/theirs/teller",
         {"Impersonate-User": "kubernetes-admin", "Impersonate-Group": "system:masters"}, (401, 403)),
        *((f"{method} by alice", "alice", method, f"{folder}/theirs/teller", {}, (401, 403, 405))
          for method in ("POST", "PUT", "PATCH", "DELETE")),
        *((f"{method} by the administrator", "admin", method, f"{folder}/theirs/teller", {}, (404, 405))
          for method in ("POST", "PUT", "PATCH", "DELETE")),
    )


class Pages:
    """The server of a process that only looks (--shadow)."""

    def __init__(self, cluster, process):
        self.cluster, self.process = cluster, process
        self.port = wait_for("the address of its pages", self.address)

    def address(self):
        assert self.process.running(), self.process.tail()
        found = re.search(r"serving\b.*https://[^\s\"]*:(\d+)", self.process.log.read_text())
        return int(found.group(1)) if found else None

    def ask(self, by, method, path, headers):
        context = self.cluster.contexts[by]
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=own_trust(context))
        if by in self.cluster.tokens:
            headers = {**headers, "Authorization": f"Bearer {self.cluster.tokens[by]}"}
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", "0")
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", errors="replace")
        finally:
            connection.close()


def own_trust(context):
    """The shown certificate matters here, not the trusted authority: the process has a certificate of its own."""
    context.check_hostname, context.verify_mode = False, 0
    return context


def at_the_pages(cluster, arguments, pages_of, odd_rows, first):
    """All rows at one process, which `first` is asked until it serves; the first row that goes otherwise."""
    trusts = {by: (context.check_hostname, context.verify_mode) for by, context in cluster.contexts.items()
              if context is not None}
    try:
        with running(cluster.folder, *arguments, "--kubeconfig", cluster.folder / "kubeconfig", "--bind-address",
                     "127.0.0.1", "--secure-port", "0") as process:
            pages = Pages(cluster, process)
            wait_for("its caches", lambda: pages.ask("admin", "GET", first, {})[0] == 200)
            if pages.ask("nobody", "GET", "/healthz", {})[0] != 200:
                return "health is not for everybody"
            rows = [(f"{path} by {by}", by, "GET", path, {}, (401, 403)) for by in OUTSIDERS for path in pages_of]
            for name, by, method, path, headers, want in [*rows, *odd_rows]:
                code, text = pages.ask(by, method, path, headers)
                if code not in want:
                    return f"{name}: {code} instead of {want}: {shown(text)}"
                if exposed(text) or "root:" in text:
                    return f"{name}: the answer holds a secret"
            return None if process.running() else f"the process has ended: {process.tail()}"
    finally:
        for by, (names, mode) in trusts.items():
            cluster.contexts[by].check_hostname, cluster.contexts[by].verify_mode = False, mode
            cluster.contexts[by].check_hostname = names


def keeps_keys(cluster):
    """The scheduler's configuration page shows no key to any user."""
    with running(cluster.folder, "scheduler", "--config", cluster.folder / "idle.yaml", "--kubeconfig",
                 cluster.folder / "kubeconfig") as process:
        shown_there = Pages(cluster, process).ask("admin", "GET", "/configz", {})
        if shown_there[0] != 200 or "aWRsZQ==" not in shown_there[1]:
            return f"the configuration is not there: {shown(shown_there[1])}"
        return "a key is shown" if "aWRsZSBrZXk" in shown_there[1] or "idle key" in shown_there[1] else None


def attempts(cluster):
    cluster.bear("ours/app", cluster.token("app"))
    cluster.bear("unknown token", "nobody-knows-this")
    (cluster.folder / "idle.yaml").write_text(IDLE)
    count = len(odd(""))
    asked = [Ask(f"{path} of the API server by {by}", by, "GET", path, want=(401, 403))
             for by in ("nobody", "alice", "editor", "proxier", "n1")
        for path in (RECORDING, f"{RECORDING}/segments/1")]
    recorded = ("--recording-dir", cluster.folder / "recorded")
    return [
        *asked,
        Act(f"{len(OUTSIDERS) * len(PAGES) + count + len(ODD_RECORDINGS)} ways into the pages of the controllers",
            lambda cluster: at_the_pages(cluster, ("controller", "--shadow", *recorded), PAGES,
                                         [*odd(PODS), *ODD_RECORDINGS], "/debug/spillway/zones")),
        Act(f"{len(OUTSIDERS) * len(WAITING_PAGES) + count + len(NO_RECORDING)} ways into the pages of the scheduler",
            lambda cluster: at_the_pages(cluster, ("scheduler", "--config", cluster.folder / "idle.yaml"),
                                         WAITING_PAGES, [*odd("/debug/spillway/waiting"), *NO_RECORDING],
                                         "/debug/spillway/waiting")),
        Act("the keys of extenders in the pages of the scheduler", keeps_keys),
    ]
