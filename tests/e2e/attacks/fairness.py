"""Priority and fairness: a client that floods with few rights, chooses the flow that is charged, or leaves its answers
unread shuts no other client out. A client that may write flow schemas takes neither the heartbeats of nodes nor every
seat."""
import concurrent.futures
import http.client
import json
import re
import socket
import struct

from attacks.attempt import Act, Ask
from attacks.cluster import OURS, rule
from harness import wait_for

PAGES = "/debug/api_priority_and_fairness"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
LATER = "resourceVersion=999999999"  # a read of it holds its seat for three seconds
HELD = 60  # more than catch-all has seats
FLOW_API = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = f"{FLOW_API}/flowschemas", f"{FLOW_API}/prioritylevelconfigurations"
AUTHOR, READER = "flow-author", "flow-reader"
EVERYTHING = {"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
                                 "clusterScope": True}],
              "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}


def schema(name, level, precedence=2, group="system:authenticated", **rules):
    return {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name}, "spec": {
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence,
        "rules": [{"subjects": [{"kind": "Group", "group": {"name": group}}], **(rules or EVERYTHING)}]}}


def level(name, shares=0, **spec):
    return {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
            "metadata": {"name": name}, "spec": {
        "type": "Limited", "limited": {"nominalConcurrencyShares": shares, "limitResponse": {"type": "Reject"}},
        **spec}}


def furnish(cluster):
    for who in (AUTHOR, READER):
        cluster.show(who, cluster.signed(f"/CN={who}"))
    cluster.grant(AUTHOR, None, [rule("flowcontrol.apiserver.k8s.io", "*", "*")])
    cluster.grant(READER, None, [rule("flowcontrol.apiserver.k8s.io", "*", "get list watch")])


def counted(cluster, name, **labels):
    total = 0
    for found, value in re.findall(rf"^apiserver_flowcontrol_{name}\{{(.*)\}} (\S+)$",
                                   cluster.ask("admin", "GET", "/metrics")[1], re.M):
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
    for name, headers, path in (("headers of flows",
                                 {"X-Kubernetes-PF-FlowSchema-UID": own[1],
                                  "X-Kubernetes-PF-PriorityLevel-UID": own[1]}, "/api/v1/pods"),
                                ("a user in a header", {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"},
                                 "/api/v1/pods"),
                                ("a user agent", {"User-Agent": "kube-controller-manager/v1.32"}, "/api/v1/pods"),
                                ("another namespace", {}, "/api/v1/namespaces/kube-system/pods"),
                                ("a path that ends as a probe's", {}, "/api/v1/namespaces/ours/pods/readyz")):
        found = flow_of(cluster, "lister", path, headers)
        if found != own:
            return f"{name}: {found} instead of {own}"
    code, headers = one(cluster, "lister", "/api/v1/pods", {"Impersonate-User": "system:kube-scheduler"})
    return None if code == 403 else f"to act as somebody else: {code}"


def left_waiting(cluster):
    """Seats of requests whose clients go away before the answer come back. A busy machine may not show it within the
    three seconds: it is tried until it does.
    """
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
    wait_for("their seats", lambda: counted(cluster, "current_executing_seats", flow_schema="global-default") >= before
             + HELD - 1, timeout=2.5)
    for connection in held:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # gone, not only silent
        connection.close()
    wait_for("the seats", lambda: counted(cluster, "current_executing_seats", flow_schema="global-default") <= before,
             timeout=2)
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


def strangers():
    for who in ("nobody", "alice", "n1", "creator", READER):
        for path, body in ((SCHEMAS, schema("taken", "exempt")), (LEVELS, level("taken"))):
            yield Ask(f"{who} makes {path.rpartition('/')[2]}", who, "POST", path, body, want=(401, 403),
                      absent=f"{path}/taken")
            yield Ask(f"{who} removes all {path.rpartition('/')[2]}", who, "DELETE", path, want=(401, 403))


def overreach():
    """Objects that would give their author more than a share."""
    yield Ask("a schema before the administrators'", AUTHOR, "POST", SCHEMAS, schema("taken", "exempt", 1), want=422,
              says="only the schema named 'exempt' may have matchingPrecedence 1", absent=f"{SCHEMAS}/taken")
    yield Ask("a second level without limits", AUTHOR, "POST", LEVELS, {**level("taken"), "spec": {"type": "Exempt"}},
              want=422,
              says="type must be 'Exempt' if and only if name is 'exempt'", absent=f"{LEVELS}/taken")
    yield Ask("other clients as administrators", AUTHOR, "PATCH", f"{SCHEMAS}/exempt", schema("exempt", "exempt", 1),
              type="merge", want=422,
              says="must equal the fixed value")
    yield Ask("limits of the level without limits", AUTHOR, "PATCH", f"{LEVELS}/exempt", {"spec": {"type": "Limited"}},
              type="merge", want=422)
    yield Ask("a schema of 2,000 words", AUTHOR, "POST", SCHEMAS, schema("taken", "exempt", 3, nonResourceRules=[
        {"verbs": ["get"], "nonResourceURLs": [f"/p{i}" for i in range(2_000)]}]), want=422,
              says="must have at most 1024 items", absent=f"{SCHEMAS}/taken")
    yield Ask("queues without end", AUTHOR, "POST", LEVELS,
              {**level("taken"), "spec": {"type": "Limited", "limited": {"limitResponse": {
        "type": "Queue", "queuing": {"queues": 2 ** 31 - 1, "handSize": 1, "queueLengthLimit": 2 ** 31 - 1}}}}},
              want=422, says="must not be greater than 10000000",
              absent=f"{LEVELS}/taken")


def renewed(cluster, times=20):
    """The codes of a node's requests about its lease."""
    return {cluster.ask("n1", "GET", LEASE)[0] for _ in range(times)}


def jailed(cluster):
    """A schema for all clients leads to a level without seats; the schema and the level of heartbeats lead there,
    too.
    """
    kept = {"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}}}
    steps = [("POST", LEVELS, level("jail"), 201), ("POST", LEVELS, level("greedy", 1_000_000_000), 201),
             ("POST", SCHEMAS, schema("jail", "jail"), 201),
             ("PATCH", f"{SCHEMAS}/system-node-high",
              {**kept, "spec": {"priorityLevelConfiguration": {"name": "jail"}, "distinguisherMethod": None}}, 200),
             ("PATCH", f"{LEVELS}/node-high",
              {**kept, "spec": {"limited": {"nominalConcurrencyShares": 0, "lendablePercent": 100, "limitResponse": {
                 "type": "Reject", "queuing": None}}}}, 200)]
    try:
        for method, path, body, want in steps:
            headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
            # The author's own requests would be in the jail, too.
            by = AUTHOR if path != f"{SCHEMAS}/system-node-high" and path != f"{LEVELS}/node-high" else "admin"
            code, text = cluster.ask(by, method, path, json.dumps(body), headers)
            if code != want:
                return f"{method} {path}: {code} {text[:200]}"
        others = {one(cluster, "getter", f"{OURS}/pods/on-n1")[0] for _ in range(5)}
        codes = renewed(cluster)
        return None if codes == {200} else f"the node got {codes}, others {others}"
    finally:
        for path in (f"{SCHEMAS}/jail", f"{LEVELS}/jail", f"{LEVELS}/greedy", f"{SCHEMAS}/system-node-high",
                     f"{LEVELS}/node-high"):
            cluster.ask("admin", "DELETE", path)
        wait_for("the server's own objects", lambda: all(cluster.ask("admin", "GET", path)[0] == 200
                                                         for path in (f"{SCHEMAS}/system-node-high",
                                                                      f"{LEVELS}/node-high")))


def exempted(cluster):
    """A client that is exempt by a schema of its own floods; nodes and others are served, and it holds no more than a
    quarter of the seats.
    """
    made = cluster.ask(AUTHOR, "POST", SCHEMAS, json.dumps(schema("free", "exempt", 3, group="system:authenticated")),
                       {"Content-Type": "application/json"})
    if made[0] != 201:
        return f"the schema: {made}"
    try:
        with concurrent.futures.ThreadPoolExecutor(max_workers=4 * HELD) as pool:
            asked = [pool.submit(one, cluster, "getter", f"{OURS}/pods/on-n1?{LATER}&n={i}") for i in range(4 * HELD)]
            most = max(counted(cluster, "current_executing_seats", flow_schema="free") for _ in range(10))
            codes, known = renewed(cluster), cluster.ask("admin", "GET", f"{OURS}/pods/on-n1")[0]
            answers = {each.result()[0] for each in asked}
        if not answers <= {200, 429, 504} or most > 150:
            return f"the flood got {answers} and held {most} seats"
        return None if codes == {200} and known == 200 else f"the node got {codes}, the administrator {known}"
    finally:
        cluster.ask("admin", "DELETE", f"{SCHEMAS}/free")


def churned(cluster):
    """Schemas and levels of ever new names: the metrics have no end of labels, and nodes are served."""
    headers = {"Content-Type": "application/json"}
    for i in range(40):
        for path, body in ((LEVELS, level(f"churn-{i}", 1)),
                           (SCHEMAS, schema(f"churn-{i}", f"churn-{i}", 3, group="churners"))):
            code, text = cluster.ask(AUTHOR, "POST", path, json.dumps(body), headers)
            if code != 201:
                return f"{path}: {code} {text[:200]}"
        for path in (SCHEMAS, LEVELS):
            cluster.ask(AUTHOR, "DELETE", f"{path}/churn-{i}")
    codes = renewed(cluster)
    return None if codes == {200} else f"the node got {codes}"


def attempts(cluster):
    furnish(cluster)
    rows = [*strangers(), *overreach(), Act("the heartbeats of all nodes, without a seat", jailed),
            Act("an exemption of one's own", exempted),
            Act("ever new schemas", churned)]
    rows += [Act("a flood without rights", flooded), Act("a flow of one's choice", chosen),
             Act("requests whose clients have gone", left_waiting),
            Act("a flood without a name", nobody_chokes)]
    for page in ("dump_queues", "dump_priority_levels", "dump_requests"):
        for by in ("nobody", "alice", "n1", "pod-admin"):
            rows.append(Ask(f"{page} as {by}", by, "GET", f"{PAGES}/{page}", want=(401, 403),
                            hides="PriorityLevelName"))
    rows.append(Ask("a page beside them", "admin", "GET", f"{PAGES}/..%2fdump_queues", want=404))
    rows.append(Ask("a table that is written", "admin", "POST", f"{PAGES}/dump_queues", want=(404, 405)))
    rows.append(Ask("a time that is none", "getter", "GET", f"{OURS}/pods/on-n1?timeout=-9223372036854775808s",
                    want=(200, 400)))
    rows.append(Ask("a time beyond all", "getter", "GET", f"{OURS}/pods/on-n1?timeout=99999999999999h",
                    want=(200, 400)))
    return rows
