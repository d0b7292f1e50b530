"""Heartbeats wait for no other work (docs/adr/0074-heartbeats-of-their-own.md): a node whose loop is held keeps its
lease, and in `spillway up` the API server answers while the nodes' loop is held."""
import datetime
import time
import unittest

from harness import Api, PATIENCE, can_write_cgroups, needs, one_node, running, serving, wait_for, workspace
from held_thread import held, thread_named

HELD = 15.0  # seconds: longer than a period of renewals, shorter than the agent may be silent
# A lease is renewed after a quarter of this: 5 s, and 4 % of jitter. A call may be late by as much again on a busy
# machine.
SHORT_LEASE = ("--node-lease-duration-seconds", "20")
GAP_MAX = 14.0  # seconds between two renewals: without any in the time of the hold, it is longer than that
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"


def renewal(api, node):
    """When the node last renewed its lease, by its own clock; None: it has no lease yet."""
    lease = api.find(LEASE + node)
    return lease and datetime.datetime.fromisoformat(lease["spec"]["renewTime"])


def longest_gap(api, node, seconds):
    """The longest time between renewals that are seen in the next so many seconds, and from the last one to the end."""
    longest, last, end = 0.0, renewal(api, node), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.2)
        now = renewal(api, node)
        if now != last:
            longest, last = max(longest, (now - last).total_seconds()), now
    return max(longest, (datetime.datetime.now(datetime.timezone.utc) - last).total_seconds())


@needs(can_write_cgroups(), "needs root and writable cgroups")
class HeldLoops(unittest.TestCase):
    def test_an_agent_whose_loop_is_held_keeps_its_lease(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            with running(folder, "up", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig", kubeconfig,
                         "--nodes", "0") as cluster:
                api = serving(cluster, kubeconfig)
                with running(folder, "agent", "--kubeconfig", kubeconfig, "--node-name", "n1", "--state-dir",
                             folder / "n1", "--port", "0",
                             "--node-memory", "256Mi", *SHORT_LEASE) as agent:
                    wait_for("the node", lambda: api.nodes_ready() == ["n1"])
                    wait_for("the lease", lambda: renewal(api, "n1"))
                    with held(agent.child.pid):
                        gap = longest_gap(api, "n1", HELD)
                    print(f"agent held for {HELD:.0f} s: longest time between renewals {gap:.1f} s")
                    self.assertLess(gap, GAP_MAX)
                    self.assertEqual(api.nodes_ready(), ["n1"])

    def test_up_answers_while_the_nodes_loop_is_held(self):
        with workspace() as folder, one_node(folder, *SHORT_LEASE) as up:
            wait_for("the lease", lambda: renewal(up.api, "n"))
            waits = []
            with held(thread_named(up.child.pid, "spillway-nodes")):
                end = time.monotonic() + HELD
                while time.monotonic() < end:
                    stranger = Api(folder / "kubeconfig", timeout=PATIENCE)
                    began = time.monotonic()
                    stranger.get("/api/v1/namespaces/default")
                    waits.append(time.monotonic() - began)
                    stranger.close()
                    time.sleep(0.05)
                gap = (datetime.datetime.now(datetime.timezone.utc) - renewal(up.api, "n")).total_seconds()
            waits.sort()
            print(
                f"nodes' loop held for {HELD:.0f} s: {len(waits)} requests, median"
                f" {waits[len(waits) // 2] * 1000:.0f} ms, longest {waits[-1] * 1000:.0f} ms; last renewal"
                f" {gap:.1f} s ago"
            )
            self.assertLess(waits[len(waits) // 2], 1.0)
            self.assertLess(gap, GAP_MAX)
            self.assertEqual(up.api.nodes_ready(), ["n"])
            # A request that the node has to answer waits for its loop and no longer.
            self.assertIn("node", up.api.get("/api/v1/nodes/n/proxy/stats/summary"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
