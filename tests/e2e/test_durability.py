"""kill -9 of `spillway up` under write load: no acknowledged write is lost, revisions never go back, the node returns.

Rounds: 5 in a test run; `SPILLWAY_KILL_ROUNDS=50` for more.
"""
import http.client
import os
import random
import threading
import time
import unittest

from harness import Api, ApiError, Process, can_write_cgroups, serving, wait_for, workspace

ROUNDS = int(os.environ.get("SPILLWAY_KILL_ROUNDS", "5"))
WRITERS = 4


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
                answer = self.api.create(path, body) if name not in self.acknowledged else self.api.request("PUT", f"{path}/{name}", body)
            except ApiError as error:
                if error.code != 409:
                    raise
                continue
            except (OSError, http.client.HTTPException):
                return  # killed; this write may or may not be there
            self.acknowledged[name] = count
            self.revision = int(answer["metadata"]["resourceVersion"])


class Durability(unittest.TestCase):
    def start(self, folder):
        kubeconfig = folder / "kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        node = ["--node-memory", "128Mi"] if can_write_cgroups() else ["--nodes", "0"]
        process = Process(folder, "up", "--data-dir", folder / "data", "--state-dir", folder / "state", "--port", "0",
                          "--write-kubeconfig", kubeconfig, "--node-name", "n", *node)
        return process, serving(process, kubeconfig)

    def test_no_acknowledged_write_is_lost(self):
        rng = random.Random(1)
        expected, revision, writes = {}, 0, 0
        with workspace() as folder:
            for round_number in range(ROUNDS):
                process, api = self.start(folder)
                try:
                    found = {item["metadata"]["name"]: int(item["data"]["count"])
                             for item in api.get("/api/v1/namespaces/default/configmaps")["items"] if "count" in item.get("data", {})}
                    for name, count in expected.items():
                        self.assertGreaterEqual(found.get(name, -1), count, f"round {round_number}: {name} lost an acknowledged write")
                    self.assertGreaterEqual(int(api.get("/api/v1/namespaces/default/configmaps")["metadata"]["resourceVersion"]), revision)
                    writers = [Writer(folder / "kubeconfig", f"r{round_number}-w{i}") for i in range(WRITERS)]
                    for writer in writers:
                        writer.start()
                    time.sleep(rng.uniform(0.1, 0.8))
                finally:
                    process.kill()
                for writer in writers:
                    writer.stopped = True
                    writer.join()
                    expected.update(writer.acknowledged)
                    writes += sum(writer.acknowledged.values())
                    revision = max(revision, writer.revision)
                self.assertTrue(any(writer.acknowledged for writer in writers))
            process, api = self.start(folder)
            try:
                for name, count in expected.items():
                    self.assertGreaterEqual(int(api.get(f"/api/v1/namespaces/default/configmaps/{name}")["data"]["count"]), count)
                if can_write_cgroups():
                    wait_for("the node", lambda: api.nodes_ready() == ["n"])
            finally:
                process.stop()
        print(f"{ROUNDS} kills, {len(expected)} objects, 0 acknowledged writes lost")


if __name__ == "__main__":
    unittest.main()
