"""Priority and fairness with real clients: a flood of lists is held back and refused, renewals of nodes and other
accounts do not feel it; the configuration is a file, and its mistakes are reported. The tests check which clients
are refused, never how fast."""
import contextlib
import http.client
import json
import re
import threading
import unittest

from harness import PATIENCE, Api, ApiError, run, running, serving, wait_for, workspace

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PAGES = "/debug/api_priority_and_fairness"
# A list that costs the server many times what it costs the client, however fast the machine is: every object is
# compared with 3,000 terms, and none fits.
COSTLY = f"{MAPS}?labelSelector={','.join([*(f'!k{i:04}' for i in range(3000)), 'z=none'])}"
FLOODERS = 90   # more than the seats that one account can come by, and the places in its queue
REFUSALS = 300  # number of refusals after which the flood ends
RENEWALS = 20   # renewals of each node meanwhile, at least
NODES = 4
TOKENS = "".join([*(f'node-{i},system:node:n{i},{i},"system:nodes"\n' for i in range(NODES)),
                  'flood,system:serviceaccount:shop:flood,10,"system:serviceaccounts"\n',
                  'calm,system:serviceaccount:shop:calm,11,"system:serviceaccounts"\n',
                  'ann,ann,12,"people"\n'])
RBAC = "/apis/rbac.authorization.k8s.io/v1/clusterrole"


class Client:
    """A connection of a client with a token."""

    def __init__(self, api, token):
        self.connection, self.token = http.client.HTTPSConnection(api.host, api.port, timeout=PATIENCE,
                                                                  context=plain_context(api)), token

    def ask(self, method, path, body=None, **headers):
        """(code, headers, document or text)."""
        self.connection.request(method, path, json.dumps(body) if body else None,
                                {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
                                 **headers})
        answer = self.connection.getresponse()
        data = answer.read()
        return answer.status, answer.headers, json.loads(
            data) if answer.headers.get_content_type() == "application/json" else data.decode()

    def close(self):
        self.connection.close()


def plain_context(api):
    """Believes the server, shows no certificate."""
    return api.bare_context


@contextlib.contextmanager
def server(*more):
    with workspace() as folder, contextlib.ExitStack() as stack:
        (folder / "tokens").write_text(TOKENS)
        process = stack.enter_context(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                              "--write-kubeconfig", folder / "kubeconfig",
                                              "--token-auth-file", folder / "tokens",
                                              *[each(folder) if callable(each) else each for each in more]))
        process.api = serving(process, folder / "kubeconfig")
        bare = "\n".join(line for line in (folder / "kubeconfig").read_text().splitlines() if "client-" not in line)
        (folder / "bare").write_text(bare)
        process.api.bare_context = Api(folder / "bare").context
        process.api.create(RBAC + "s",
                           {"metadata": {"name": "reader"},
                            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]})
        process.api.create(RBAC + "bindings",
                           {"metadata": {"name": "reader"},
                            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                        "name": "reader"},
                                               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                                                             "name": group}
                                                            for group in ("system:serviceaccounts", "people")]})
        yield process


def counted(api, name, **labels):
    """The sum of a metric over all of these labels."""
    total = 0
    for found, value in re.findall(rf"^{name}\{{(.*)\}} (\S+)$", api.get("/metrics"), re.M):
        have = dict(re.findall(r'(\w+)="([^"]*)"', found))
        total += float(value) if labels.items() <= have.items() else 0
    return total


class Flood:
    """FLOODERS connections of one account that list until they are stopped; a refused one comes again at once, as long
    as few have been refused."""

    def __init__(self, api):
        self.refused, self.wrong, self.listed, self.lock, self.over = [], [], 0, threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.flood, args=(api,)) for _ in range(FLOODERS)]
        for thread in self.threads:
            thread.start()

    def flood(self, api):
        client = Client(api, "flood")
        with contextlib.closing(client):
            while not self.over.is_set():
                code, headers, document = client.ask("GET", COSTLY)
                if code == 429 and len(self.refused) >= REFUSALS:
                    self.over.wait(int(headers["Retry-After"]))
                with self.lock:
                    if code == 429:
                        self.refused.append((headers, document))
                    elif code == 200:
                        self.listed += 1
                    else:
                        self.wrong.append((code, document))
                        return

    def end(self):
        """Once enough have been refused."""
        wait_for("refusals", lambda: len(self.refused) >= REFUSALS or self.wrong)
        self.over.set()
        for thread in self.threads:
            thread.join()


class Renewals:
    """Nodes that renew their leases, one behind the other, and an account that reads."""

    def __init__(self, api):
        self.codes = {"renewal": [], "read": []}
        nodes = [Client(api, f"node-{i}") for i in range(NODES)]
        calm = Client(api, "calm")
        leases = [node.ask("GET", f"{LEASES}/n{i}")[2] for i, node in enumerate(nodes)]
        for _ in range(RENEWALS):
            for i, node in enumerate(nodes):
                leases[i]["spec"]["renewTime"] = f"2026-01-01T00:00:00.{len(self.codes['renewal']):06}Z"
                code, _, document = node.ask("PUT", f"{LEASES}/n{i}", leases[i])
                self.codes["renewal"].append(code)
                leases[i] = document if code == 200 else leases[i]
            self.codes["read"].append(calm.ask("GET", f"{MAPS}/m0")[0])
        for each in [*nodes, calm]:
            each.close()


class AFlood(unittest.TestCase):
    def test_is_refused_and_nodes_do_not_feel_it(self):
        with server("--max-requests-inflight", "20", "--max-mutating-requests-inflight", "10") as process:
            api = process.api
            for i in range(150):
                api.create(MAPS, {"metadata": {"name": f"m{i}"}, "data": {"k": "x" * 20_000}})
            for i in range(NODES):
                api.create("/api/v1/nodes", {"metadata": {"name": f"n{i}"}})
                api.create(LEASES, {"metadata": {"name": f"n{i}"},
                                    "spec": {"holderIdentity": f"n{i}", "leaseDurationSeconds": 40}})
            flood = Flood(api)
            wait_for("the queue of the account",
                     lambda: "system:serviceaccount:shop:flood" in api.get(f"{PAGES}/dump_queues"))
            renewals = Renewals(api)
            flood.end()
            self.assertEqual(flood.wrong, [])
            self.assertGreaterEqual(len(flood.refused), REFUSALS)
            self.assertGreater(flood.listed, 0)
            for headers, document in flood.refused:
                self.assertIn(int(headers["Retry-After"]), (1, 2, 4, 8, 16, 32))
                self.assertEqual((document["reason"], document["code"], document["message"]),
                                 ("TooManyRequests", 429, "Too many requests, please try again later."))
                self.assertEqual(len(headers["X-Kubernetes-PF-PriorityLevel-UID"]), 36)
            self.assertEqual(len(renewals.codes["renewal"]), NODES * RENEWALS)
            self.assertEqual(set(renewals.codes["renewal"]), {200})
            self.assertEqual(set(renewals.codes["read"]), {200})
            self.assertEqual(counted(api, "apiserver_flowcontrol_rejected_requests_total",
                                     flow_schema="service-accounts"), len(flood.refused))
            self.assertEqual(counted(api, "apiserver_flowcontrol_rejected_requests_total", priority_level="node-high"),
                             0)
            self.assertGreaterEqual(counted(api, "apiserver_flowcontrol_dispatched_requests_total",
                                            priority_level="node-high"), len(renewals.codes["renewal"]))
            wait_for("all seats", lambda: counted(api, "apiserver_flowcontrol_current_executing_seats",
                                                  priority_level="workload-low") == 0)
            rows = [re.split(r", +", line) for line in api.get(f"{PAGES}/dump_priority_levels").splitlines()]
            low = dict(zip(rows[0], next(row for row in rows if row[0] == "workload-low")))
            self.assertEqual((low["WaitingRequests"], low["ExecutingRequests"], low["NominalSeats"]), ("0", "0", "13"))
            self.assertEqual(int(low["RejectedRequests"]), len(flood.refused))


SCHEMA = """apiVersion: v1
kind: List
items:
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: PriorityLevelConfiguration
  metadata: {name: people}
  spec: {type: Limited, limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}}
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: FlowSchema
  metadata: {name: people}
  spec:
    priorityLevelConfiguration: {name: people}
    matchingPrecedence: 800
    rules:
    - subjects: [{kind: Group, group: {name: people}}]
      resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}]
"""


def file_of(text):
    def written(folder):
        (folder / "flow.yaml").write_text(text)
        return folder / "flow.yaml"
    return written


class Configuration(unittest.TestCase):
    def test_is_a_file(self):
        with server("--flow-config", file_of(SCHEMA)) as process:
            ann, calm = Client(process.api, "ann"), Client(process.api, "calm")
            self.assertEqual(ann.ask("GET", MAPS)[0], 200)
            self.assertNotEqual(ann.ask("GET", MAPS)[1]["X-Kubernetes-PF-FlowSchema-UID"],
                                calm.ask("GET", MAPS)[1]["X-Kubernetes-PF-FlowSchema-UID"])
            self.assertEqual(counted(process.api, "apiserver_flowcontrol_dispatched_requests_total",
                                     priority_level="people"), 2)
            self.assertIn("people, ", process.api.get(f"{PAGES}/dump_priority_levels"))
            self.assertEqual(ann.ask("GET", f"{PAGES}/dump_queues")[0], 403)
            with self.assertRaises(ApiError) as missing:
                process.api.get(f"{PAGES}/dump_nothing")
            self.assertEqual(missing.exception.code, 404)
            ann.close()
            calm.close()

    def test_is_read_strictly(self):
        with workspace() as folder:
            for text, want in ((SCHEMA.replace("matchingPrecedence", "precedence"),
                                "flow.yaml:13: items[1][spec][precedence]: unknown"),
                               (SCHEMA.replace("lendable", "x").replace("Reject", "Drop"), "expected Queue or Reject"),
                               (SCHEMA.replace("{name: people}\n    matching", "{name: gone}\n    matching"),
                                'there is no priority level "gone"')):
                code, out, err = run("apiserver", "--data-dir", folder / "data", "--port", "0", "--flow-config",
                                     file_of(text)(folder))
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn(want, err)
            code, _, err = run("apiserver", "--data-dir", folder / "data", "--port", "0", "--max-requests-inflight",
                               "0")
            self.assertEqual(code, 2, err)


if __name__ == "__main__":
    unittest.main()
