"""Priority and fairness: a client that floods with few rights, chooses the flow that is charged, or leaves its answers
unread shuts no other client out."""
import concurrent.futures
import http.client
import re
import socket
import struct

from attacks.attempt import Act, Ask
from attacks.cluster import OURS
from harness import wait_for

PAGES = "/debug/api_priority_and_fairness"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
LATER = "resourceVersion=999999999"  # a read of it holds its seat for three seconds
HELD = 60  # more than catch-all has seats


def counted(cluster, name, **labels):
    total = 0
    for found, value in re.findall(rf"^apiserver_flowcontrol_{name}\{{(.*)\}} (\S+)$", cluster.ask("admin", "GET", "/metrics")[1], re.M):
        if labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found)).items():
            total += float(value)
    return total


def one(cluster, by, path, headers=None):
    """(code, headers) of a request on a connection of its own."""
    connection = http.client.HTTPSConnection(cluster.host, cluster.port, timeout=60, context=cluster.contexts[by])
    try:
        connection.request("GET", path, None, headers or {})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        connection.close()


def flow_of(cluster, by, path, headers=None):
    found = one(cluster, by, path, headers)[1]
    return found["X-Kubernetes-PF-FlowSchema-UID"], found["X-Kubernetes-PF-PriorityLevel-UID"]


def flooded(cluster):
    """A client without rights asks from many connections at once; a node renews and a probe is answered meanwhile."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=HELD) as pool:
        asked = [pool.submit(one, cluster, "alice", f"{OURS}/secrets?{LATER}&n={i}") for i in range(4 * HELD)]
        node = [cluster.ask("n1", "GET", LEASE)[0] for _ in range(20)]
        probe = cluster.ask("nobody", "GET", "/readyz")[0]
        codes = {each.result()[0] for each in asked}
    if not codes <= {403, 429}:
        return f"the flood got {codes}"
    return None if set(node) == {200} and probe == 200 else f"the node got {node}, the probe {probe}"


def chosen(cluster):
    """Neither headers nor paths nor names of users that are only said put a request elsewhere."""
    own = flow_of(cluster, "lister", "/api/v1/pods")
    for name, headers, path in (("headers of flows", {"X-Kubernetes-PF-FlowSchema-UID": own[1], "X-Kubernetes-PF-PriorityLevel-UID": own[1]}, "/api/v1/pods"),
                                ("a user in a header", {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}, "/api/v1/pods"),
                                ("a user agent", {"User-Agent": "kube-controller-manager/v1.32"}, "/api/v1/pods"),
                                ("another namespace", {}, "/api/v1/namespaces/kube-system/pods"),
                                ("a path that ends as a probe's", {}, "/api/v1/namespaces/ours/pods/readyz")):
        found = flow_of(cluster, "lister", path, headers)
        if found != own:
            return f"{name}: {found} instead of {own}"
    code, headers = one(cluster, "lister", "/api/v1/pods", {"Impersonate-User": "system:kube-scheduler"})
    return None if code == 403 else f"to act as somebody else: {code}"


def left_waiting(cluster):
    """Seats of requests whose clients go away before the answer come back. A busy machine may not show it within the three seconds: it is tried until it does."""
    last = ""

    def once():
        nonlocal last
        try:
            return (left_once(cluster),)
        except AssertionError as error:
            last = str(error)
    return wait_for(lambda: f"seats that are held and come back: {last}", once)[0]


def left_once(cluster):
    held = [cluster.open("getter", 20) for _ in range(HELD)]
    before = counted(cluster, "current_executing_seats", flow_schema="global-default")
    for i, connection in enumerate(held):
        connection.sendall(f"GET {OURS}/pods/on-n1?{LATER}&n={i} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    wait_for("their seats", lambda: counted(cluster, "current_executing_seats", flow_schema="global-default") >= before + HELD - 1, timeout=2.5)
    for connection in held:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # gone, not only silent
        connection.close()
    wait_for("the seats", lambda: counted(cluster, "current_executing_seats", flow_schema="global-default") <= before, timeout=2)
    code = cluster.ask("getter", "GET", f"{OURS}/pods/on-n1")[0]
    return None if code == 200 else f"{code}"


def nobody_chokes(cluster):
    """Anonymous clients have a few seats of the lowest level and no queue; authenticated clients are not slowed
    down."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=HELD) as pool:
        asked = [pool.submit(one, cluster, "nobody", f"/api/v1/namespaces/{i}") for i in range(4 * HELD)]
        known = [cluster.ask("getter", "GET", f"{OURS}/pods/on-n1")[0] for _ in range(10)]
        answers = [each.result() for each in asked]
    for code, headers in answers:
        if code not in (403, 429) or (code == 429 and not headers["Retry-After"]):
            return f"{code} {dict(headers)}"
    return None if set(known) == {200} else f"who is known got {known}"


def attempts(_):
    rows = [Act("a flood without rights", flooded), Act("a flow of one's choice", chosen), Act("requests that nobody waits for", left_waiting),
            Act("a flood without a name", nobody_chokes)]
    for page in ("dump_queues", "dump_priority_levels", "dump_requests"):
        for by in ("nobody", "alice", "n1", "pod-admin"):
            rows.append(Ask(f"{page} as {by}", by, "GET", f"{PAGES}/{page}", want=(401, 403), hides="PriorityLevelName"))
    rows.append(Ask("a page beside them", "admin", "GET", f"{PAGES}/..%2fdump_queues", want=404))
    rows.append(Ask("a table that is written", "admin", "POST", f"{PAGES}/dump_queues", want=(404, 405)))
    rows.append(Ask("a time that is none", "getter", "GET", f"{OURS}/pods/on-n1?timeout=-9223372036854775808s", want=(200, 400)))
    rows.append(Ask("a time beyond all", "getter", "GET", f"{OURS}/pods/on-n1?timeout=99999999999999h", want=(200, 400)))
    return rows
