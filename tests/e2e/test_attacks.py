"""Attempts to get in, by groups: each row of attacks/*.py has a request, its user, and the expected answer.

Prints `GROUP: N attempts, N as expected` for each group, with its seconds and the most memory that the API server had
meanwhile, and `N attempts, N as expected` at the end; fails with the list of those that went otherwise, and where a
turn of a loop took too long (turns.py).
usage: test_attacks.py [GROUP...]
"""
import concurrent.futures
import importlib
import sys
import time
import traceback

import turns
from attacks.cluster import attacked_cluster
from harness import workspace
from process_memory import forget_peak, peak

# Name of a group, its file, and whether it needs the node with an agent.
GROUPS = [
    ("identity", "identity", False), ("certificates", "certificates", False), ("tokens", "tokens", False),
    ("RBAC", "rbac", False),
    ("nodes", "nodes", False), ("mirror pods", "mirror_pods", False), ("pod security", "pod_security", False),
    ("webhooks", "webhooks", False), ("policies", "policies", False), ("custom kinds", "custom_kinds", False),
    ("signing", "signing", False), ("bootstrap", "bootstrap", False), ("paths", "paths", False),
    ("proxies", "proxy", False), ("aggregated APIs", "aggregation", False),
    ("HTTP", "http_messages", False), ("HTTP/2", "http2", False), ("servers of HTTP/2", "http2_servers", False),
    ("TLS", "tls", False), ("parsers", "parsers", False),
    ("patches", "patches", False), ("selectors", "selectors", False), ("resources", "resources", False),
    ("logs", "logs", True),
    ("streams", "streams", True), ("exec", "exec", True), ("ports", "ports", True),
    ("paths of an agent", "agent_paths", True), ("openings of an agent", "agent_openings", True),
    ("files", "files", False), ("manifests", "manifests", False), ("images", "images", False),
    ("audit log", "audit", False), ("fairness", "fairness", False), ("lists", "lists", False),
    ("credential programs", "programs", False), ("pods", "pods", True), ("debugging", "debugging", True),
    ("resizes", "resizes", False), ("volumes", "volumes", True),
    ("dashboard", "dashboard", False), ("pages of controllers", "controller_pages", False),
]
SLOW_MAX = 16  # attempts that wait beside the others


def outcome(attempt, cluster):
    """None, or what was seen instead of what must be."""
    try:
        return attempt.run(cluster)
    except Exception as error:  # an attempt that cannot be made is not as expected
        return f"{type(error).__name__}: {error} ({traceback.extract_tb(error.__traceback__)[-1].lineno})"


class Group:
    """The attempts of one group. Slow ones, which wait for time-outs of the server, continue beside the following
    groups.
    """

    def __init__(self, name, attempts, cluster, pool):
        self.name, self.attempts, self.begun = name, attempts, time.monotonic()
        names = [each.name for each in attempts]
        assert len(set(names)) == len(
            names), f"{name}: two attempts have one name: {sorted({each for each in names if names.count(each) > 1})}"
        forget_peak(cluster.server)
        slow = [each for each in attempts if getattr(each, "slow", False)]
        self.waiting = [(each, pool.submit(outcome, each, cluster)) for each in slow]
        self.seen = [(each.name, outcome(each, cluster)) for each in attempts if each not in slow]
        self.peak = peak(cluster.server) if cluster.server.running() else 0
        if not self.peak:
            self.seen.append(("afterwards", f"the API server exited with {cluster.server.child.returncode}"))
        elif cluster.ask("admin", "GET", "/readyz")[0] != 200:
            self.seen.append(("afterwards", "the API server is not ready any more"))

    def finish(self):
        """Prints its line, and returns [(attempt, what was seen)] of those not as expected."""
        self.seen += [(each.name, future.result()) for each, future in self.waiting]
        missed = [(name, what) for name, what in self.seen if what]
        print(
            (
                f"{self.name}: {len(self.attempts)} attempts, {len(self.attempts) - len(missed)} as expected"
                f" ({time.monotonic() - self.begun:.1f} s, {self.peak >> 20} MiB)"
            ),
            flush=True,
        )
        return [(f"{self.name}: {name}", what) for name, what in missed]


def main(wanted):
    unknown = set(wanted) - {name for name, _, _ in GROUPS}
    assert not unknown, f"no such group: {', '.join(sorted(unknown))}"
    total, failures, slow = 0, [], []
    turns.judge = turns.Turns()
    with workspace() as folder, attacked_cluster(folder) as cluster, concurrent.futures.ThreadPoolExecutor(
        max_workers=SLOW_MAX) as pool:
        for name, file, needs_agent in GROUPS:
            if wanted and name not in wanted:
                continue
            if needs_agent and cluster.agent is None:
                print(f"{name}: not tried, needs root and a writable cgroup hierarchy", flush=True)
                continue
            group = Group(name, list(importlib.import_module(f"attacks.{file}").attempts(cluster)), cluster, pool)
            total += len(group.attempts)
            if group.waiting:
                slow.append(group)
            else:
                failures += group.finish()
        for group in slow:
            failures += group.finish()
    print(f"{total} attempts, {total - len(failures)} as expected")
    failures += [("turns", line) for line in turns.judge.too_long()]
    for name, what in failures:
        print(f"  {name}: {what}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
