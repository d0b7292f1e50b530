"""kill -9 of `spillway up` under write load: no acknowledged write is lost, revisions never go back, the node returns,
and a watch of leases from before the kill gets their later states.

Rounds: 5 in a test run; `SPILLWAY_KILL_ROUNDS=50` for more. `SPILLWAY_E2E_STORE=etcd`: the objects are in an etcd,
which is killed as well in every fourth round.
"""
import contextlib
import http.client
import json
import os
import random
import threading
import time
import unittest

import own_etcd
from harness import PATIENCE, Api, ApiError, Process, can_write_cgroups, needs, serving, wait_for, workspace

ROUNDS = int(os.environ.get("SPILLWAY_KILL_ROUNDS", "5"))
ON_ETCD = os.environ.get("SPILLWAY_E2E_STORE") == "etcd"
WRITERS = 4
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Writer(threading.Thread):
    """Creates and updates ConfigMaps until the server dies; remembers what was acknowledged."""

    def __init__(self, kubeconfig, name):
        super().__init__()
        self.api, self.prefix = Api(kubeconfig), name
        self.acknowledged, self.revision, self.stopped = {}, 0, False

    def run(self):
        try:
            self.write_until_killed()
        finally:
            self.api.close()

    def write_until_killed(self):
        path = "/api/v1/namespaces/default/configmaps"
        count = 0
        while not self.stopped:
            count += 1
            name, value = f"{self.prefix}-{count % 7}", str(count)
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"count": value}}
            try:
                answer = self.api.create(path,
                                         body) if name not in self.acknowledged else self.api.request(
                                             "PUT", f"{path}/{name}", body)
            except ApiError as error:
                if error.code != 409:
                    raise
                continue
            except (OSError, http.client.HTTPException):
                return  # killed; this write may or may not be there
            self.acknowledged[name] = count
            self.revision = int(answer["metadata"]["resourceVersion"])


class Renewer(Writer):
    """Renews a lease of its own as a kubelet does: with the version of the last answer, nothing else changed."""

    def write_until_killed(self):
        renewed = "2026-01-01T00:00:00.{:06}Z".format
        new = {"metadata": {"name": self.prefix},
               "spec": {"holderIdentity": "h", "leaseDurationSeconds": 40, "renewTime": renewed(0)}}
        with contextlib.suppress(OSError, http.client.HTTPException):  # killed
            lease, count = self.api.create(LEASES, new), 0
            while not self.stopped:
                count += 1
                lease["spec"]["renewTime"] = renewed(count)
                lease = self.api.request("PUT", f"{LEASES}/{self.prefix}", lease)
                self.acknowledged[self.prefix] = count
                self.revision = int(lease["metadata"]["resourceVersion"])


def leases_of(api):
    """The revision and when each lease was renewed."""
    answer = api.get(LEASES)
    return answer["metadata"]["resourceVersion"], {item["metadata"]["name"]: item["spec"]["renewTime"]
                                                   for item in answer["items"]}


def resume(api, revision, leases, expected):
    """The counts by a watch from that revision, read until they are as expected and in the second after that."""
    connection, last = api.connect(), int(revision)
    with contextlib.closing(connection), contextlib.suppress(TimeoutError):
        headers = {"Authorization": f"Bearer {api.token}"} if api.token else {}
        connection.request("GET", f"{LEASES}?watch=1&timeoutSeconds={PATIENCE:.0f}&resourceVersion={revision}",
                           headers=headers)
        answer = connection.getresponse()
        while True:
            if leases == expected:
                connection.sock.settimeout(1)
            line = answer.readline()
            if not line:
                break
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise AssertionError(f"from {revision}: {event['object']}")
            lease = event["object"]
            if int(lease["metadata"]["resourceVersion"]) <= last:
                raise AssertionError(f"from {revision}: out of order, {event}")
            last = int(lease["metadata"]["resourceVersion"])
            leases = dict(leases)
            if event["type"] == "DELETED":
                del leases[lease["metadata"]["name"]]
            else:
                leases[lease["metadata"]["name"]] = lease["spec"]["renewTime"]
    return leases


@needs(not ON_ETCD or own_etcd.PROGRAM, own_etcd.NEEDS)
class Durability(unittest.TestCase):
    def setUp(self):
        self.cluster = None

    def start(self, folder):
        kubeconfig = folder / "kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        more = [self.cluster.flag] if self.cluster else []
        node = ["--node-memory", "128Mi"] if can_write_cgroups() else ["--nodes", "0"]
        process = Process(folder, "up", "--data-dir", folder / "data", "--state-dir", folder / "state", "--port", "0",
                          "--write-kubeconfig", kubeconfig, "--node-name", "n", *node, *more)
        return process, serving(process, kubeconfig)

    def counts(self, api):
        """The stored counts, by name."""
        found = {item["metadata"]["name"]: int(item["data"]["count"])
                 for item in api.get("/api/v1/namespaces/default/configmaps")["items"]
                 if "count" in item.get("data", {})}
        return found | {item["metadata"]["name"]: int(item["spec"]["renewTime"][-7:-1])
                        for item in api.get(LEASES)["items"]}

    def check(self, api, expected, revision, when):
        found = self.counts(api)
        for name, count in expected.items():
            self.assertGreaterEqual(found.get(name, -1), count, f"{when}: {name} lost an acknowledged write")
        self.assertGreaterEqual(int(api.get("/api/v1/namespaces/default/configmaps")["metadata"]["resourceVersion"]),
                                revision)

    def kill(self, process, round_number):
        process.kill()
        if self.cluster and round_number % 4 == 3:
            for member in self.cluster.members:
                member.kill()
                member.start()
            self.cluster.wait_until_up()

    def test_no_acknowledged_write_is_lost(self):
        rng = random.Random(1)
        expected, revision, before = {}, 0, None
        with workspace() as folder, contextlib.ExitStack() as stack:
            if ON_ETCD:
                self.cluster = stack.enter_context(own_etcd.serving(folder))
            for round_number in range(ROUNDS):
                process, api = self.start(folder)
                try:
                    self.check(api, expected, revision, f"round {round_number}")
                    if before:
                        now = leases_of(api)[1]
                        self.assertEqual(resume(api, *before, now), now, f"round {round_number}")
                    before = leases_of(api)
                    writers = [Writer(folder / "kubeconfig", f"r{round_number}-w{i}") for i in range(WRITERS)]
                    writers += [Renewer(folder / "kubeconfig", f"r{round_number}-l{i}") for i in range(WRITERS)]
                    for writer in writers:
                        writer.start()
                    wait_for("a write", lambda: any(writer.acknowledged for writer in writers))
                    time.sleep(rng.uniform(0.1, 0.8))
                finally:
                    self.kill(process, round_number)
                for writer in writers:
                    writer.stopped = True
                    writer.join()
                    expected.update(writer.acknowledged)
                    revision = max(revision, writer.revision)
            process, api = self.start(folder)
            try:
                self.check(api, expected, revision, "at the end")
                if can_write_cgroups():
                    wait_for("the node", lambda: api.nodes_ready() == ["n"])
            finally:
                process.stop()
        print(
            f"{ROUNDS} kills on {'etcd' if ON_ETCD else 'SQLite'}, {len(expected)} objects, 0 acknowledged writes lost")


if __name__ == "__main__":
    unittest.main()
