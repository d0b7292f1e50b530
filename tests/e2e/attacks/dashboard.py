"""The dashboard: its files at the API server, and `spillway dashboard`, by people who do not know its path, by pages of
other sites and names that lead there, and by its own page gone bad: it runs with the administrator's credentials."""
import os

from attacks.attempt import Act, Ask, exposed, shown
from attacks.cluster import THEIRS
from dashboard_process import dashboard

HOLDS = "api/v1/namespaces/kube-system/configmaps"
JSON = {"Content-Type": "application/json"}
MAP = '{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "%s", "namespace": "kube-system"}, "data": {}}'
OTHER = f"/{HOLDS}/other"


def of_the_page(cluster):
    """The row that reads the page. A program without a dashboard passes it outside CI, and a line says so."""
    page = "app.js"
    if not os.environ.get("CI") and "Built without the dashboard" in cluster.ask("admin", "GET", "/ui/")[1]:
        page = "Built without the dashboard"
        print(
            (
                "dashboard: the page itself was not tried, because this program was built without it: ./dev build"
                " needs npm"
            ),
            flush=True,
        )
    return Ask("/ui/ by alice", "alice", "GET", "/ui/", want=200, says=page)


def at_the_server():
    for path in ("/ui", "/ui/", "/ui/app.js", "/ui/door.json"):
        yield Ask(f"{path} by nobody", "nobody", "GET", path, want=(401, 403))
    yield Ask("/ui/ written to by alice", "alice", "POST", "/ui/", body={}, want=(403, 404, 405))
    ask = {"zone": "a", "minutes": 1}
    for who in ("nobody", "n1", "alice", "lister", "editor"):
        yield Ask(f"a future for {who}", who, "POST", "/ui/what-if", body=ask, want=(401, 403), hides="api/v1")
    yield Ask("a future of what the player may not read", "player", "POST", "/ui/what-if", body=ask, want=403,
              says=('cannot list resource \\"nodes\\"', "objects that you may read"))
    yield Ask("a future of pods the player may not read", "player-of-nodes", "POST", "/ui/what-if", body=ask, want=403,
              says='cannot list resource \\"pods\\"')
    yield Ask("a future as the administrator", "player", "POST", "/ui/what-if", body=ask,
              headers=(("Impersonate-User", "admin"), ("Impersonate-Group", "system:masters")), want=403)
    yield Ask("a future for a form of another site", "admin", "POST", "/ui/what-if", body=ask, type="text/plain",
              want=400)
    yield Ask("a future for a page of another origin", "admin", "POST", "/ui/what-if", body=ask,
              headers=(("Origin", "https://evil.example"),), want=403)
    yield Ask("a future for an image on another site", "admin", "POST", "/ui/what-if", body=ask,
              headers=(("Sec-Fetch-Site", "cross-site"),), want=403)
    yield Ask("a future of a file of the server", "admin", "POST", "/ui/what-if", body={**ask, "import": "/etc/passwd"},
              want=422, says="is not asked")
    yield Ask("a future as a flag", "admin", "POST", "/ui/what-if", body={"nodes": ["--report=/tmp/x"], "minutes": 1},
              want=422)
    yield Ask("a future of hours", "admin", "POST", "/ui/what-if", body={"zone": "a", "minutes": 100000}, want=422)
    yield Ask("a question without end", "admin", "POST", "/ui/what-if", body='"' + "x" * 400_000 + '"', want=413)
    yield Ask("a deep question", "admin", "POST", "/ui/what-if", body="[" * 100_000, want=400)
    yield Ask("a future by reading", "alice", "GET", "/ui/what-if", want=(404, 405))
    yield Ask("a path below it", "player", "POST", "/ui/what-if/x", body=ask, want=403)
    yield Ask("a path beside the files", "alice", "GET", "/ui/../api/v1/secrets", want=(400, 401, 403, 404))
    yield Ask("another path that begins so", "alice", "GET", "/uix", want=403)


# Name, path (from "/": without the token), what is sent besides, the code.
SENT = (
    ("no token", "/api/v1/nodes", {}, 404), ("a token of zeros", "/" + "0" * 32 + "/api/v1/nodes", {}, 404),
    ("no path but the page's", "/ui/", {}, 404),
    ("a name that was made to lead here", "api/v1/nodes", {"host": "evil.example:{port}"}, 403),
    ("a name without port", "ui/", {"host": "localhost"}, 403),
    ("another port", "ui/", {"host": "127.0.0.1:1"}, 403), ("no name", "ui/", {"host": ""}, (400, 403)),
    ("a page of another origin", "api/v1/nodes", {"headers": {"Origin": "http://evil.example"}}, 403),
    ("a page without origin", "api/v1/nodes", {"headers": {"Origin": "null"}}, 403),
    ("an image on another site", "api/v1/nodes", {"headers": {"Sec-Fetch-Site": "cross-site"}}, 403),
    ("another port of this machine", "api/v1/nodes", {"headers": {"Sec-Fetch-Site": "same-site"}}, 403),
    ("a question before a request", HOLDS,
     {"method": "OPTIONS", "headers": {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}}, 403),
    ("a form of another site", HOLDS,
     {"method": "POST", "body": MAP % "spillway-hold", "headers": {"Content-Type": "text/plain"}}, 400),
    ("Secrets", "api/v1/secrets", {}, 403), ("one Secret", "{theirs}/secrets/hidden", {}, 403),
    ("a list of another kind", "api/v1/namespaces/theirs/configmaps", {}, 403),
    ("dots", "api/v1/nodes/../secrets", {}, 403), ("encoded dots", "api/v1/nodes/%2e%2e/secrets", {}, 403),
    ("an encoded slash", "api/v1/nodes%2f..%2fsecrets", {}, 403),
    ("a broken escape", "api/v1/nodes/%", {}, (400, 403)), ("a NUL", "api/v1/nodes/%00", {}, (400, 403)),
    ("logs of a node", "api/v1/nodes/n1/proxy/logs/", {}, 403),
    ("commands at a node", "api/v1/nodes/n1/proxy/run/a/b/c", {}, 403),
    ("a log without a bound", "{theirs}/pods/teller/log", {}, 403),
    ("a log with a bound that is too large", "{theirs}/pods/teller/log?limitBytes=1048577", {}, 403),
    ("a log with two bounds", "{theirs}/pods/teller/log?limitBytes=1&limitBytes=9999999", {}, 400),
    ("a log with a negative bound", "{theirs}/pods/teller/log?limitBytes=-1", {}, 403),
    ("a log that is followed", "{theirs}/pods/teller/log?limitBytes=1000&follow=true", {}, 403),
    ("a command in a pod", "{theirs}/pods/teller/exec?command=id&limitBytes=1000", {}, 403),
    ("a proxy to a pod", "{theirs}/pods/teller/proxy/?limitBytes=1000", {}, 403),
    ("a port of a pod", "{theirs}/pods/teller/portforward?limitBytes=1000", {}, 403),
    ("Secrets behind a list of workloads", "apis/apps/v1/deployments/../../../../api/v1/secrets", {}, 403),
    ("a list of workloads with a parameter that is not needed", "apis/apps/v1/deployments?pretty=1", {}, 403),
    ("a workload that is scaled", "apis/apps/v1/namespaces/theirs/deployments/x/scale",
     {"method": "PATCH", "body": '{"spec": {"replicas": 0}}',
      "headers": {"Content-Type": "application/merge-patch+json"}}, 403),
    ("slices that are written", "apis/discovery.k8s.io/v1/namespaces/theirs/endpointslices",
     {"method": "POST", "body": "{}", "headers": JSON}, 403),
    ("a watch of everything", "api/v1/secrets?watch=1", {}, 403),
    ("a parameter that is not needed", "api/v1/nodes?pretty=1", {}, 403),
    ("a pod that is deleted", "api/v1/namespaces/theirs/pods/teller",
     {"method": "DELETE", "body": '{"kind": "DeleteOptions"}', "headers": JSON}, 403),
    ("a node that is cordoned", "api/v1/nodes/n1",
     {"method": "PATCH", "body": '{"spec": {"unschedulable": true}}',
      "headers": {"Content-Type": "application/merge-patch+json"}}, 403),
    ("another ConfigMap", HOLDS, {"method": "POST", "body": MAP % "other", "headers": JSON}, 403),
    ("two names in one", HOLDS,
     {"method": "POST",
      "body": '{"kind": "ConfigMap", "metadata": {"name": "spillway-hold"}, "metadata": {"name": "other"}}',
      "headers": JSON}, (400, 403)),
    ("another kind by the name of a ConfigMap", HOLDS,
     {"method": "POST", "body": '{"kind": "Secret", "metadata": {"name": "spillway-hold"}}', "headers": JSON}, 403),
    ("a review of somebody else", "apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
     {"method": "POST", "body": '{"kind": "SubjectAccessReview"}', "headers": JSON}, 403),
    ("a future for a form of another site", "ui/what-if",
     {"method": "POST", "body": '{"zone": "a", "minutes": 1}', "headers": {"Content-Type": "text/plain"}}, 400),
    ("a future for a page of another origin", "ui/what-if",
     {"method": "POST", "body": '{"zone": "a", "minutes": 1}', "headers": {**JSON, "Origin": "http://evil.example"}},
     403),
    ("a future without the token", "/ui/what-if",
     {"method": "POST", "body": '{"zone": "a", "minutes": 1}', "headers": JSON}, 404),
    ("a future of a file of this machine", "ui/what-if",
     {"method": "POST", "body": '{"zone": "a", "minutes": 1, "import": "/etc/passwd"}', "headers": JSON}, 422),
    ("a future of a file by a line feed", "ui/what-if",
     {"method": "POST", "body": '{"zone": "a\\nimport: /etc/passwd", "minutes": 1}', "headers": JSON}, 422),
    ("a future as a flag", "ui/what-if",
     {"method": "POST", "body": '{"nodes": ["--report=/tmp/x"], "minutes": 1}', "headers": JSON}, 422),
    ("a future of hours", "ui/what-if", {"method": "POST", "body": '{"zone": "a", "minutes": 100000}', "headers": JSON},
     422),
    ("a future that is no JSON", "ui/what-if", {"method": "POST", "body": "zone: a", "headers": JSON}, 400),
    ("a future by reading", "ui/what-if", {}, 403),
    ("a body without end", HOLDS, {"method": "POST", "body": '"' + "x" * 100_000 + '"', "headers": JSON}, (400, 413)),
)


def at_the_dashboard(cluster):
    """All rows at one process; the first that goes otherwise."""
    with dashboard(cluster.folder, cluster.folder / "kubeconfig") as page:
        port = page.base.split(":")[2].split("/")[0]
        if page.ask("api/v1/nodes?limit=1")[0] != 200:
            return "the dashboard does not pass on what it should"
        for name, path, sent, want in SENT:
            more = {key: value.format(port=port) if key == "host" else value for key, value in sent.items()}
            code, text = page.ask(path.replace("{theirs}", THEIRS.lstrip("/")), **more)
            if code not in (want if isinstance(want, tuple) else (want,)):
                return f"{name}: {code} instead of {want}: {shown(text)}"
            if exposed(text) or "PRIVATE KEY" in text:
                return f"{name}: the answer holds a secret"
        if cluster.admin.find(OTHER) is not None:
            return "another ConfigMap was made"
        mode = page.log.read_text()
        return None if mode.count("/ui/") == 1 else f"the address stands in the log more than once: {shown(mode)}"


def attempts(cluster):
    return [of_the_page(cluster), *at_the_server(),
            Act(f"{len(SENT)} ways into `spillway dashboard` and out of its list", at_the_dashboard)]
