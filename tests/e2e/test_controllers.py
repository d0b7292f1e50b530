"""The controllers beside a real API server, each part its own process: no pod too many, and an API server that goes
away.

`SPILLWAY_REPLICASET_ROUNDS=50` for more rounds of each size (2 in a test run), `SPILLWAY_REPLICASET_SIZES=50` for some
sizes only; `SPILLWAY_AWAY_SECONDS=50` for longer absences (8).
"""
import contextlib
import json
import os
import re
import signal
import socket
import threading
import unittest

import own_etcd
from harness import can_write_cgroups, let_run_out, needs, run, running, serving, wait_for, workspace
from test_leader import LEASE, silent_node

ROUNDS = int(os.environ.get("SPILLWAY_REPLICASET_ROUNDS", "2"))
SIZES = tuple(map(int, os.environ.get("SPILLWAY_REPLICASET_SIZES", "1,3,5,50").split(",")))
AWAY_SECONDS = float(os.environ.get("SPILLWAY_AWAY_SECONDS", "8"))
PODS = "/api/v1/namespaces/default/pods"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
# The first is lost while the API server is away; the second is not lost for want of a processor.
SHORT_LEASE = ("--leader-elect-lease-duration", "6s", "--leader-elect-renew-deadline", "4s",
               "--leader-elect-retry-period", "400ms")
LONG_LEASE = ("--leader-elect-lease-duration", "120s", "--leader-elect-renew-deadline", "100s",
              "--leader-elect-retry-period", "400ms")
HAS_NODES = can_write_cgroups()


def workload(kind, name, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, **spec,
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"terminationGracePeriodSeconds": 0,
                                           "containers": [{"name": "main", "image": "none",
                                                           "command": ["sleep", "1d"]}]}}}}


class Births:
    """Collects every pod that ever came, by its workload, from a watch of the API server."""

    def __init__(self, api):
        self.seen = {}
        version = api.get(PODS)["metadata"]["resourceVersion"]
        self.connection = api.connect()
        self.connection.timeout = 600
        self.connection.request("GET", f"{PODS}?watch=1&resourceVersion={version}")
        self.answer = self.connection.getresponse()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(Exception):  # the end of the connection
            for line in self.answer:
                event = json.loads(line)
                if event["type"] == "ADDED":
                    self.seen.setdefault(event["object"]["metadata"]["labels"]["app"],
                                         set()).add(event["object"]["metadata"]["uid"])

    def of(self, name):
        return len(self.seen.get(name, ()))

    def close(self):
        self.connection.sock and self.connection.sock.close()


class Controllers(unittest.TestCase):
    @contextlib.contextmanager
    def parts(self, folder, *controller, nodes=2, port=0):
        """An API server, a controller, and with cgroups a scheduler and agents, each a process of its own. `port`: of
        the API server; 0: any."""
        kubeconfig = folder / "kubeconfig"
        with contextlib.ExitStack() as stack:
            started = {}
            started["apiserver"] = stack.enter_context(running(folder, "apiserver", "--data-dir", folder / "data",
                                                               "--port", port, "--write-kubeconfig", kubeconfig))
            api = serving(started["apiserver"], kubeconfig)
            started["controller"] = stack.enter_context(running(folder, "controller", "--kubeconfig", kubeconfig,
                                                                *controller))
            if HAS_NODES:
                started["scheduler"] = stack.enter_context(running(folder, "scheduler", "--kubeconfig", kubeconfig))
                for number in range(nodes):
                    started[f"n{number}"] = stack.enter_context(running(folder, "agent", "--kubeconfig", kubeconfig,
                                                                        "--node-name", f"n{number}",
                                                                        "--node-ip", "127.0.0.1", "--port", "0",
                                                                        "--node-memory", "2Gi",
                                                                        "--state-dir", folder / f"n{number}"))
                wait_for("the nodes", lambda: len(api.nodes_ready()) == nodes)
            yield started, api

    def full(self, api, name, replicas):
        status = api.get(f"{REPLICA_SETS}/{name}").get("status", {})
        return status.get("readyReplicas" if HAS_NODES else "replicas", 0) == replicas

    def test_no_pod_too_many(self):
        with workspace() as folder, self.parts(folder) as (_, api):
            births = Births(api)
            try:
                for replicas in SIZES:
                    beyond = 0
                    for number in range(ROUNDS):
                        name = f"web-{replicas}-{number}"
                        api.create(REPLICA_SETS, workload("ReplicaSet", name, replicas=replicas))
                        wait_for(f"{name} to be full", lambda: self.full(api, name, replicas))
                        api.delete(f"{REPLICA_SETS}/{name}")
                        wait_for(f"the pods of {name} to be gone",
                                 lambda: not api.get(f"{PODS}?labelSelector=app%3D{name}")["items"])
                        wait_for("the watch", lambda: births.of(name) >= replicas)
                        beyond += births.of(name) - replicas
                    print(f"{replicas} replicas, {ROUNDS} rounds: {beyond} pods beyond", flush=True)
                    self.assertEqual(beyond, 0)
                for number in range(ROUNDS if HAS_NODES else 0):
                    name = f"agent-{number}"
                    api.create(DAEMON_SETS, workload("DaemonSet", name))
                    wait_for(f"{name} to be ready",
                             lambda: api.get(f"{DAEMON_SETS}/{name}").get("status", {}).get("numberReady") == 2)
                    api.delete(f"{DAEMON_SETS}/{name}")
                    wait_for(f"the pods of {name} to be gone",
                             lambda: not api.get(f"{PODS}?labelSelector=app%3D{name}")["items"])
                    wait_for("the watch", lambda: births.of(name) >= 2)
                    self.assertEqual(births.of(name), 2)
            finally:
                births.close()

    def away(self, folder, *controller):
        """The API server is stopped, then killed and started again: all other parts are the same processes, and act
        afterwards."""
        # A port that the kernel gives to no other program while the API server is away.
        with self.parts(folder, *controller, nodes=1, port=own_etcd.free_ports(1)[0]) as (parts, api):
            others = {name: each for name, each in parts.items() if name != "apiserver"}
            known = {}

            def acts(name):
                api.create(REPLICA_SETS, workload("ReplicaSet", name, replicas=2))
                wait_for(f"{name} to be full", lambda: self.full(api, name, 2))
                known[name] = {pod["metadata"]["uid"] for pod in api.get(f"{PODS}?labelSelector=app%3D{name}")["items"]}

            def nothing_ended():
                for name, each in others.items():
                    self.assertTrue(each.running(), f"{name} ended: {each.tail()}")

            acts("before")
            server = parts["apiserver"].child
            os.kill(server.pid, signal.SIGSTOP)
            gone = threading.Event()
            gone.wait(AWAY_SECONDS)  # this long is what is tried, not a wait for something
            nothing_ended()
            os.kill(server.pid, signal.SIGCONT)
            acts("after-a-stop")
            port, data = str(api.port), folder / "data"
            parts["apiserver"].kill()
            # One more that starts while there is no API server.
            with running(folder, "controller", "--kubeconfig", folder / "kubeconfig", *controller) as late:
                gone.wait(AWAY_SECONDS)
                nothing_ended()
                self.assertTrue(late.running(), late.tail())
                with running(folder, "apiserver", "--data-dir", data, "--port", port, "--write-kubeconfig",
                             folder / "again") as server:
                    api = serving(server, folder / "again")
                    acts("after-a-restart")
                    nothing_ended()
                    for name, before in known.items():
                        now = {pod["metadata"]["uid"] for pod in api.get(f"{PODS}?labelSelector=app%3D{name}")["items"]}
                        self.assertEqual(now, before, f"pods of {name} were replaced")
            return parts["controller"].log.read_text()

    def test_an_api_server_that_is_away(self):
        with workspace() as folder:
            log = self.away(folder, *SHORT_LEASE)
            self.assertIn("not the leader any more", log)

    def test_an_api_server_that_is_away_without_an_election(self):
        with workspace() as folder:
            self.away(folder, "--leader-elect=false")

    @needs(HAS_NODES, "needs root and a writable cgroup hierarchy")
    def test_an_agent_whose_port_is_taken(self):
        with workspace() as folder, socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            kubeconfig = folder / "kubeconfig"
            with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         kubeconfig) as server:
                serving(server, kubeconfig)
                code, _, error = run("agent", "--kubeconfig", kubeconfig, "--node-name", "n", "--node-ip", "127.0.0.1",
                                     "--node-memory", "64Mi",
                                     "--state-dir", folder / "n", "--port", taken.getsockname()[1])
                self.assertEqual(code, 1, error)
                self.assertRegex(error,
                                 r"(?i)address already in use; --port chooses another port, --port 0 any free one")

    def test_a_leader_that_was_stopped_waits_and_leads_again(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            fast = ("--node-monitor-period", "200ms", "--node-monitor-grace-period", "1s", *LONG_LEASE)
            with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         kubeconfig) as server:
                api = serving(server, kubeconfig)
                holder = lambda: (api.find(LEASE + "spillway-controller") or {}).get("spec",
                                                                                     {}).get("holderIdentity", "")
                is_unknown = lambda node: "Unknown" in str(api.get(f"/api/v1/nodes/{node}")["status"]["conditions"])
                with running(folder, "controller", "--kubeconfig", kubeconfig, *fast) as first:
                    a = wait_for("a leader", holder)
                    with running(folder, "controller", "--kubeconfig", kubeconfig, *fast) as second:
                        wait_for("the second to stand by", lambda: "standing by" in second.log.read_text())
                        os.kill(first.child.pid, signal.SIGSTOP)
                        let_run_out(api, LEASE + "spillway-controller")
                        b = wait_for("the takeover", lambda: holder() not in ("", a) and holder())
                        os.kill(first.child.pid, signal.SIGCONT)
                        wait_for("the first to notice", lambda: "not the leader any more" in first.log.read_text())
                        api.create("/api/v1/nodes", silent_node("n1"))
                        wait_for("n1 to be Unknown", lambda: is_unknown("n1"))
                        self.assertTrue(first.running(), first.tail())
                        self.assertNotIn("node is silent", first.log.read_text())
                        code, out, err = run("zones", "--kubeconfig", kubeconfig)
                        self.assertEqual((code, err), (0, ""))
                        self.assertEqual(holder(), b)
                    wait_for("the first to lead again", lambda: holder() == a)
                    api.create("/api/v1/nodes", silent_node("n2"))
                    wait_for("n2 to be Unknown", lambda: is_unknown("n2"))
                    self.assertEqual(len(re.findall('msg="leading"', first.log.read_text())), 2)
                    # The log has it once the write is answered, which others may see before.
                    wait_for("its word about n2", lambda: "node is silent\" node=n2" in first.log.read_text())


if __name__ == "__main__":
    unittest.main()
