"""Ten clients of two servers over three members of etcd that are killed, stopped, cut off or full: one history explains
every answer.

SPILLWAY_HISTORY_SECONDS: how long (default: a short run); SPILLWAY_HISTORY_SEED: of the clients and faults.
"""
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import own_etcd
from counting import MAPS, Recorder
from etcd_gateway import Gateway
from harness import ApiError, needs, PATIENCE, running, serving, wait_for, workspace
from history import NAMES, Check, Client, Operation

SECONDS = float(os.environ.get("SPILLWAY_HISTORY_SECONDS", "16"))
SEED = os.environ.get("SPILLWAY_HISTORY_SEED", "1")
MEMBER_BYTES = 160 * 1024 * 1024  # etcd keeps 64 MiB ahead for its log


class TheCheck(unittest.TestCase):
    """Histories that the checker refuses, and histories that it accepts."""

    EVENTS = [(5, "x/key-0", '{"data": {"token": "a"}}'), (7, "x/key-0", '{"data": {"token": "b"}}'),
              (9, "x/key-0", None)]

    def violations(self, *operations):
        return [each.split(":")[0] for each in Check([Operation(*each) for each in operations], self.EVENTS).violations]

    def test_answers(self):
        made = ("create", "key-0", "a", 1, 2, 200, 5, "a")
        changed = ("update", "key-0", "b", 3, 4, 200, 7, "b")
        self.assertEqual(self.violations(made, changed, ("get", "key-0", "", 1.5, 3.5, 200, 5, "a"),
                                         ("get", "key-0", "", 5, 6, 404, 0, None)), [])
        self.assertEqual(self.violations(made, changed, ("get", "key-0", "", 5, 6, 200, 5, "a")),
                         ["shows what had been overwritten at 7"])
        self.assertEqual(self.violations(made, changed, ("list", "", "", 5, 6, 200, 6, {"key-0": (5, "a")})),
                         ["a list that is older than 7"])
        self.assertEqual(self.violations(("list", "", "", 5, 6, 200, 7, {})), ["a list that shows no state there was"])
        self.assertEqual(self.violations(("get", "key-0", "", 1, 2, 200, 5, "b")), ["shows what never was"])
        self.assertEqual(self.violations(("update", "key-0", "z", 1, 2, 200, 6, "z")),
                         ["acknowledged, and not in the history"])
        self.assertEqual(self.violations(("update", "key-0", "b", 1, 2, 409, 0, None)), ["refused, and in the history"])
        self.assertEqual(self.violations(("update", "key-0", "b", 1, 2, 504, 0, None)), [])
        self.assertEqual(self.violations(("update", "key-0", "b", 1, 2, 200, 7, "b"),
                                         ("create", "key-0", "a", 3, 4, 200, 5, "a")),
                         ["its revision is not after 7, which had been answered"])
        twice = Check([Operation("update", "key-0", "a", 1, 2, None, 0, None)],
                      [*self.EVENTS, (11, "x/key-0", '{"data": {"token": "a"}}')])
        self.assertEqual([each.split(":")[0] for each in twice.violations], ["written twice"])
        gone = Check([Operation("list", "", "", 1, 2, 200, 7, {"key-0": (7, "b")}),
                      Operation("get", "key-0", "", 3, 4, 404, 0, None)], self.EVENTS[:2])
        self.assertEqual([each.split(":")[0] for each in gone.violations], ["not found, and it is there since 7"])


@needs(own_etcd.PROGRAM is not None and os.geteuid() == 0, own_etcd.NEEDS + " and root")
class Histories(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.random = random.Random(SEED)
        self.servers, self.counts = {}, {}

    def kubeconfig(self, name):
        return self.folder / f"{name}.kubeconfig"

    def start(self, name):
        if name != "first" and not (self.folder / name).exists():
            shutil.copytree(self.folder / "first/pki", self.folder / name / "pki")
        self.kubeconfig(name).unlink(missing_ok=True)
        self.servers[name] = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / name,
                                                       "--port", "0", "--write-kubeconfig", self.kubeconfig(name),
                                                       self.cluster.flag))
        return serving(self.servers[name], self.kubeconfig(name))

    def disk(self, number):
        """A small disk of its own for the data of a member."""
        path = self.folder / f"etcd/m{number}"
        path.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEMBER_BYTES},mode=0700", "none", path], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)

    def kill_member(self, member):
        member.kill()
        time.sleep(0.5)
        member.start()

    def stop_member(self, member):
        member.kill(signal.SIGSTOP)
        time.sleep(self.random.choice([0.5, 2, 4]))
        member.kill(signal.SIGCONT)

    def cut_member_off(self, member):
        way = self.cluster.ways[self.cluster.members.index(member)]
        way.cut()
        time.sleep(self.random.choice([1, 3]))
        way.mend()

    def fill_disk(self, member):
        """The etcd cannot write its log, and ends or hangs; then there is room again."""
        with open(member.data / "filler", "wb") as filler:
            try:
                while filler.write(b"x" * 1024 * 1024):
                    filler.flush()
            except OSError:
                pass
        time.sleep(1)
        member.kill()
        (member.data / "filler").unlink()
        member.start()

    def kill_server(self, _):
        name = self.random.choice(list(self.servers))
        self.servers[name].kill()
        self.start(name)

    def test_one_history(self):
        for number in range(3):
            self.disk(number)
        self.cluster = self.enterContext(own_etcd.serving(self.folder, 3, "--heartbeat-interval=50",
                                                          "--election-timeout=500", ways=True))
        self.start("first")
        api = self.start("second")
        since = api.get(MAPS)["metadata"]["resourceVersion"]
        both = [self.kubeconfig("first"), self.kubeconfig("second")]
        clients = [Client(both, number, SEED) for number in range(10)]
        watchers = [Recorder(both, since) for _ in range(3)]
        for each in (*clients, *watchers):
            each.start()
        faults = [self.kill_member, self.stop_member, self.cut_member_off, self.fill_disk, self.kill_server]
        ends, turn = time.monotonic() + SECONDS, 0
        while time.monotonic() < ends or turn < len(faults):
            fault, member = faults[turn % len(faults)], self.random.choice(self.cluster.members)
            self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
            fault(member)
            turn += 1
            for each in clients[:2]:  # healed by now
                wait_for("operations", lambda each=each, before=self.done(each): self.done(each) > before + 3)
        for each in clients:
            each.ended = True
        for each in clients:
            each.join(PATIENCE)
            self.assertFalse(each.is_alive(), "an operation has no end")
        operations = [operation for each in clients for operation in each.operations]
        last = self.mark()
        events = [event for event in Gateway(self.cluster.members[0]).history("/registry/configmaps/default/", last)
                  if event[1].rsplit("/", 1)[1] in NAMES]
        violations = Check(operations, events).violations
        self.assertEqual(violations, [], "\n".join(violations[:20]))
        for each in watchers:
            wait_for("the last event", lambda each=each: any(name == "last" for _, _, name, _ in each.events))
            each.ended = True
            told = [version for version, _, name, _ in each.events if name in NAMES]
            self.assertEqual(each.lists, 0)
            self.assertEqual(told, [revision for revision, _, _ in events if revision > int(since)],
                             "a watch has a gap, a repeat or another order")
        done = sum(operation.code == 200 for operation in operations)
        print(
            (
                f"seed {SEED}: {len(operations)} operations of 10 clients, {done} done,"
                f" {sum(operation.code is None or operation.code >= 500 for operation in operations)} of unknown"
                f" outcome, {len(events)} events told once to each of 3 watches; {self.counts}; 0 violations"
            ),
            flush=True,
        )

    def done(self, client):
        return sum(operation.code == 200 for operation in client.operations)

    def mark(self):
        api = serving(self.servers["first"], self.kubeconfig("first"))

        def made():
            try:
                return api.create(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last"}})
            except ApiError as error:  # 409: an attempt without a certain answer has made it
                self.assertIn(error.code, (409, 429, 500, 503, 504))
                return error.code == 409 and api.find(f"{MAPS}/last")
        revision = int(wait_for("the last object", made)["metadata"]["resourceVersion"])
        api.close()
        return revision


if __name__ == "__main__":
    unittest.main()
