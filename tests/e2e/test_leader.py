"""Two controllers over one lease: the leader is killed again and again, the other takes over when the lease has run
out, and nothing is done twice.

Rounds: 3 in a test run; `SPILLWAY_LEADER_ROUNDS=20` for more.
"""
import os
import time
import unittest

from harness import let_run_out, Process, run, running, serving, wait_for, workspace

ROUNDS = int(os.environ.get("SPILLWAY_LEADER_ROUNDS", "3"))
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"


def silent_node(name):
    """A node of a zone of its own that was Ready once and never speaks again."""
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": name}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
                                       "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                                       "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


class Leader(unittest.TestCase):
    def server(self, folder):
        return Process(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                       folder / "kubeconfig")

    def controller(self, folder, *arguments):
        return Process(folder, "controller", "--kubeconfig", folder / "kubeconfig", "--node-monitor-period", "200ms",
                       "--node-monitor-grace-period", "1s", "--leader-elect-lease-duration", "120s",
                       "--leader-elect-renew-deadline", "100s",
                       "--leader-elect-retry-period", "400ms", *arguments)

    def leading(self, controllers):
        """The controllers that say they lead; one that was killed leads nothing."""
        return [each for each in controllers if each.running() and 'msg="leading"' in each.log.read_text()]

    def test_takeover(self):
        with workspace() as folder:
            server = self.server(folder)
            controllers, everyone, takeovers = [], [], []
            try:
                api = serving(server, folder / "kubeconfig")
                holder = lambda: (api.find(LEASE + "spillway-controller") or {}).get("spec",
                                                                                     {}).get("holderIdentity", "")
                controllers = [self.controller(folder), self.controller(folder)]
                everyone += controllers
                wait_for("a leader", holder)
                for number in range(ROUNDS):
                    leader = wait_for("one leader", lambda: self.leading(controllers))
                    self.assertEqual(len(leader), 1)
                    before = holder()
                    name = f"n{number}"
                    api.create("/api/v1/nodes", silent_node(name))
                    time.sleep(0.3 * (number % 6))  # killed at any stage of marking
                    leader[0].kill()
                    controllers.remove(leader[0])
                    self.assertEqual(holder(), before, "the lead changed hands before its lease had run out")
                    let_run_out(api, LEASE + "spillway-controller")
                    let_go = time.monotonic()
                    wait_for("the takeover", lambda: holder() not in ("", before), interval=0.01)
                    takeovers.append((time.monotonic() - let_go, 0.3 * (number % 6)))
                    controllers.append(self.controller(folder))
                    everyone.append(controllers[-1])
                    wait_for(f"{name} to be Unknown",
                             lambda: "Unknown" in str(api.get(f"/api/v1/nodes/{name}")["status"]["conditions"]))
                texts = [each.log.read_text() for each in everyone]
                acts = []
                for number in range(ROUNDS):
                    marked = sum(f"node is silent\" node=n{number} " in text for text in texts)
                    self.assertLessEqual(marked, 1, f"n{number} was marked by {marked} leaders")
                    events = [e for e in api.get("/api/v1/events")["items"]
                              if e["reason"] == "NodeNotReady" and e["involvedObject"]["name"] == f"n{number}"]
                    self.assertLessEqual(sum(e.get("count", 1) for e in events), 1, f"n{number} was marked twice")
                    acts.append((marked, len(events)))
                transitions = api.get(LEASE + "spillway-controller")["spec"]["leaseTransitions"]
                self.assertEqual(transitions, ROUNDS)
                print("\nKILL   NODE SILENT FOR   TAKEOVER   MARKED BY   EVENTS")
                for number, ((takeover, silent), (marked, events)) in enumerate(zip(takeovers, acts)):
                    print(f"{number + 1:<6} {silent:.1f} s{'':<13} {takeover:.2f} s     {marked:<11} {events}")
                times = sorted(takeover for takeover, _ in takeovers)
                print(
                    (
                        f"{ROUNDS} kills: takeover after {times[0]:.2f} to {times[-1]:.2f} s, median"
                        f" {times[len(times) // 2]:.2f} s (a lease that runs out in 1 s); {transitions} transitions, no"
                        " node marked twice"
                    ),
                    flush=True,
                )
            except BaseException:
                for each in everyone:
                    print(each.log.name, each.tail(8))
                raise
            finally:
                for each in controllers:
                    each.stop()
                server.stop()

    def test_a_leader_that_stops_hands_over_at_once(self):
        with workspace() as folder:
            server = self.server(folder)
            try:
                api = serving(server, folder / "kubeconfig")
                with running(folder, "controller", "--kubeconfig", folder / "kubeconfig") as process:
                    # The lease is there before its holder has the answer to its request.
                    wait_for("a leader", lambda: self.leading([process]))
                self.assertEqual(api.get(LEASE + "spillway-controller")["spec"]["holderIdentity"], "")
            finally:
                server.stop()

    def test_refuses_beside_the_stock_controllers(self):
        with workspace() as folder:
            server = self.server(folder)
            try:
                api = serving(server, folder / "kubeconfig")
                api.create(LEASE.rstrip("/"),
                           {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                            "metadata": {"name": "kube-controller-manager"},
                                               "spec": {"holderIdentity": "stock", "leaseDurationSeconds": 15,
                                                        "renewTime": "2026-01-01T00:00:00.000000Z"}})
                process = self.controller(folder)
                seconds = 0

                def renewed_until_it_ends():
                    nonlocal seconds
                    seconds += 1
                    api.patch(LEASE + "kube-controller-manager",
                              {"spec": {"renewTime": f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}.000000Z"}})
                    return not process.running()
                wait_for("the refusal", renewed_until_it_ends, interval=0.2)
                self.assertEqual(process.child.returncode, 1)
                self.assertIn("kube-controller-manager (stock) holds its lease", process.tail())
                self.assertIsNone(api.find(LEASE + "spillway-controller"))
            finally:
                server.stop()

    def test_a_shadow_writes_nothing(self):
        with workspace() as folder:
            server = self.server(folder)
            try:
                api = serving(server, folder / "kubeconfig")
                api.create("/api/v1/nodes", silent_node("n"))
                labels = {"app": "web"}
                api.create("/apis/apps/v1/namespaces/default/replicasets",
                           {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
                            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                                     "template": {"metadata": {"labels": labels},
                                                  "spec": {"containers": [{"name": "main", "image": "none"}]}}}})
                with running(folder, "controller", "--kubeconfig", folder / "kubeconfig", "--shadow",
                             "--node-monitor-period", "1s",
                             "--node-monitor-grace-period", "1s") as process:
                    for words in ("the cluster differs", "PATCH /api/v1/nodes/n",
                                  "POST /api/v1/namespaces/default/pods"):
                        wait_for(words, lambda words=words: words in process.log.read_text())
                    self.assertNotIn("was not created", process.log.read_text())  # a shadow only pretends
                self.assertEqual(api.get("/api/v1/namespaces/default/pods")["items"], [])
                self.assertIn("'True'", str(api.get("/api/v1/nodes/n")["status"]["conditions"]))
            finally:
                server.stop()

    def test_bad_flags_are_named(self):
        for flag, value in (("--leader-elect-renew-deadline", "20s"), ("--limit-taints", "many"),
                            ("--controllers", "nonsense"),
                            ("--hold-config-map", "x")):
            code, _, error = run("controller", "--kubeconfig", "/dev/null", flag, value)
            self.assertEqual(code, 2, error)
            self.assertEqual(len(error.strip().splitlines()), 1, error)


if __name__ == "__main__":
    unittest.main()
