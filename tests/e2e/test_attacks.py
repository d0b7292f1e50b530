"""Attempts to get in, by groups: each row of attacks/*.py says what is sent, by whom, and what must come back.

Prints `GROUP: N attempts, N as expected` for each group and `N attempts, N as expected` at the end; fails with the list of those that went otherwise.
usage: test_attacks.py [GROUP...]
"""
import concurrent.futures
import importlib
import sys
import time
import traceback

from attacks.cluster import attacked_cluster
from harness import workspace

# Name of a group, its file, and whether it needs the node with an agent.
GROUPS = [
    ("identity", "identity", False), ("certificates", "certificates", False), ("tokens", "tokens", False), ("RBAC", "rbac", False),
    ("nodes", "nodes", False), ("mirror pods", "mirror_pods", False), ("signing", "signing", False), ("paths", "paths", False),
    ("HTTP", "http_messages", False), ("TLS", "tls", False), ("parsers", "parsers", False),
    ("patches", "patches", False), ("selectors", "selectors", False), ("resources", "resources", False), ("logs", "logs", True),
    ("streams", "streams", True), ("files", "files", False), ("pods", "pods", True),
]


def outcome(attempt, cluster):
    """None, or what was seen instead of what must be."""
    try:
        return attempt.run(cluster)
    except Exception as error:  # an attempt that cannot be made is not as expected
        return f"{type(error).__name__}: {error} ({traceback.extract_tb(error.__traceback__)[-1].lineno})"


def run_group(attempts, cluster):
    """[(attempt, what was seen)] of those not as expected. Slow ones run beside the rest."""
    slow = [each for each in attempts if getattr(each, "slow", False)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, len(slow))) as pool:
        waiting = [(each, pool.submit(outcome, each, cluster)) for each in slow]
        seen = [(each, outcome(each, cluster)) for each in attempts if each not in slow]
        seen += [(each, future.result()) for each, future in waiting]
    if not cluster.server.running():
        seen.append((None, f"the API server exited with {cluster.server.child.returncode}"))
    elif cluster.ask("admin", "GET", "/readyz")[0] != 200:
        seen.append((None, "the API server is not ready any more"))
    return [(each, what) for each, what in seen if what]


def main(wanted):
    unknown = set(wanted) - {name for name, _, _ in GROUPS}
    assert not unknown, f"no such group: {', '.join(sorted(unknown))}"
    total, failures = 0, []
    with workspace() as folder, attacked_cluster(folder) as cluster:
        for name, file, needs_agent in GROUPS:
            if wanted and name not in wanted:
                continue
            if needs_agent and cluster.agent is None:
                print(f"{name}: not tried, needs root and a writable cgroup hierarchy", flush=True)
                continue
            begun = time.monotonic()
            attempts = importlib.import_module(f"attacks.{file}").attempts(cluster)
            names = [each.name for each in attempts]
            assert len(set(names)) == len(names), f"{name}: two attempts have one name: {sorted({each for each in names if names.count(each) > 1})}"
            missed = run_group(attempts, cluster)
            total += len(attempts)
            failures += [(name, each, what) for each, what in missed]
            print(f"{name}: {len(attempts)} attempts, {len(attempts) - len(missed)} as expected ({time.monotonic() - begun:.1f} s)", flush=True)
    for name, attempt, what in failures:
        print(f"  {name}: {attempt.name if attempt else 'afterwards'}: {what}")
    print(f"{total} attempts, {total - len(failures)} as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
