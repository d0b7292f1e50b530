"""`spillway watch`: decisions as they happen, of agents and controllers of ours and of any cluster by its events."""
import contextlib
import json
import os
import pty
import queue
import signal
import subprocess
import threading
import unittest

import stock_api
from harness import (
    account_kubeconfig,
    BINARY,
    can_write_cgroups,
    needs,
    one_node,
    PATIENCE,
    pod,
    run,
    wait_for,
    workspace,
)
from own_etcd import free_ports

stock_api.LISTS["/api/v1/namespaces/shop/events"] = ("EventList", "events")
HOG = ["spillway", "stress", "--memory", "400Mi", "--rate", "60Mi/s", "--hold", "1h"]


class Watched:
    """A running `spillway watch`, and what it has printed."""

    def __init__(self, kubeconfig, *arguments, stdout=None, environment=None):
        self.child = subprocess.Popen([BINARY, "watch", "--kubeconfig", str(kubeconfig), *arguments], stdout=stdout
                                      or subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, env={**os.environ, **(environment or {})})
        self.lines, self.errors, self.seen, self.said = queue.Queue(), queue.Queue(), [], []
        self.ended = False
        self.threads = [threading.Thread(target=self.read, args=each, daemon=True)
                        for each in ([(self.child.stdout, self.lines)] if self.child.stdout else [])
                        + [(self.child.stderr, self.errors)]]
        for each in self.threads:
            each.start()

    @staticmethod
    def read(stream, into):
        for line in stream:
            into.put(line.rstrip("\n"))

    def told(self):
        """All lines so far."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.seen.append(self.lines.get_nowait())
        return self.seen

    def complaints(self):
        with contextlib.suppress(queue.Empty):
            while True:
                self.said.append(self.errors.get_nowait())
        return self.said

    def see(self, *words, timeout=PATIENCE):
        """The first line with all of these words."""
        def found():
            assert self.child.poll() is None, (self.child.returncode, self.complaints())
            return next((line for line in self.told() if all(word in line for word in words)), None)
        try:
            return wait_for(f"{words}", found, timeout)
        except AssertionError:
            raise AssertionError(f"no line with {words}:\n" + "\n".join(self.told() + self.complaints())) from None

    def end(self):
        self.ended = True
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        code = self.child.wait(PATIENCE)
        for each in self.threads:
            each.join(PATIENCE)
        for each in (self.child.stdout, self.child.stderr):
            if each:
                each.close()
        return code


@contextlib.contextmanager
def watching(*arguments, **more):
    watched = Watched(*arguments, **more)
    try:
        yield watched
    finally:
        if not watched.ended:
            watched.end()


def line_from(descriptor):
    """However many pieces it comes in."""
    text = b""
    while not text.endswith(b"\n") and (more := os.read(descriptor, 4096)):
        text += more
    return text


def event(name, reason, about, count=1, seconds_ago=0, host="", message="said", component="kubelet"):
    kind, _, who = about.partition(" ")
    ns, _, called = who.rpartition("/")
    return {"metadata": {"name": name, "namespace": ns or "default", "uid": f"uid-{name}"}, "reason": reason,
            "message": message, "type": "Warning", "count": count,
            "firstTimestamp": stock_api.stamp(seconds_ago), "lastTimestamp": stock_api.stamp(seconds_ago),
            "source": {"component": component, **({"host": host} if host else {})},
            "involvedObject": {"kind": kind, **({"namespace": ns} if ns else {}), "name": called,
                               "uid": f"uid-{called}"}}


class Stock(unittest.TestCase):
    """A cluster without any Spillway."""

    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.api = stock_api.StockApi()
        self.api.port = free_ports(1)[0]  # no other program gets it while the server is stopped
        self.api.start()
        self.addCleanup(lambda: self.api.ended.is_set() or self.api.stop())
        self.kubeconfig = stock_api.kubeconfig_for(self.api, self.folder)

    def watch(self, *arguments, **more):
        # watches of an ended process stay until data are written to them
        before = {id(waiting) for _, _, waiting in self.api.watches}
        watched = self.enterContext(watching(self.kubeconfig, *arguments, **more))
        wanted = {"events"} if "/api/v1/nodes" in self.api.refused else {"events", "nodes"}
        wait_for("its watches", lambda: {kind for kind, _, waiting in self.api.watches if id(waiting) not in before}
                 >= wanted)
        return watched

    def test_events_about_decisions(self):
        watched = self.watch()
        self.api.put("events", event("a", "Pulled", "Pod shop/cart"))
        self.api.put("events", event("b", "Evicted", "Pod shop/cart", host="worker-1",
                                     message="The node was low on resource: memory."))
        self.api.put("events", event("c", "TaintManagerEviction", "Pod shop/cart",
                                     component="taint-eviction-controller",
                                     message="Marking for deletion Pod shop/cart"))
        self.api.put("events", event("d", "NodeHasDiskPressure", "Node worker-2"))
        self.assertRegex(watched.see("NodeHasDiskPressure"),
                         r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  worker-2 +NodeHasDiskPressure +node worker-2 +said$")
        self.assertRegex(watched.see("TaintManagerEviction", "Marking"),
                         r"Z  - +TaintManagerEviction +pod shop/cart +Marking for deletion Pod shop/cart$")
        self.assertRegex(watched.see("Evicted "),
                         r"Z  worker-1 +Evicted +pod shop/cart +The node was low on resource: memory\.$")
        self.assertEqual(len(watched.told()), 3, watched.told())  # nothing of before, and not that an image was pulled
        self.assertEqual((watched.end(), watched.complaints()), (0, []))

    def test_a_taint_that_evicts(self):
        watched = self.watch()
        self.api.put("nodes", stock_api.node("worker-1", "a",
                                             taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]))
        self.assertIn("node.kubernetes.io/unreachable:NoExecute: pods without a toleration", watched.see("worker-1", "Tainted"))

    def test_what_is_filtered(self):
        for filters, wanted in ((("--node", "worker-1"), ["x"]), (("-n", "shop"), ["x", "y"]),
                                (("--pod", "shop/y"), ["y"]), (("--reason", "preempted,Started"), ["y", "z"])):
            with self.subTest(filters), watching(self.kubeconfig, "-o", "json", "--since", "1m", *filters) as watched:
                self.api.put("events", event("x", "Evicted", "Pod shop/x", host="worker-1"))
                self.api.put("events", event("y", "Preempted", "Pod shop/y", host="worker-2"))
                self.api.put("events", event("z", "Started", "Pod other/z", host="worker-3"))
                for name in wanted:
                    watched.see(f'"name":"{name}"')
                self.assertEqual(sorted(json.loads(line)["subject"]["name"] for line in watched.told()
                                        if json.loads(line)["subject"]["name"] in "xyz"), wanted)

    def test_one_object_a_line(self):
        watched = self.watch("-o", "json")
        self.api.put("events", event("b", "Evicted", "Pod shop/cart", host="worker-1", message="two\nlines \x1b[31m"))
        told = json.loads(watched.see("Evicted"))
        self.assertEqual({key: told[key] for key in ("kind", "apiVersion", "source", "node", "reason", "message")},
                         {"kind": "Happening", "apiVersion": "spillway/v1", "source": "event", "node": "worker-1",
                          "reason": "Evicted", "message": "two\nlines \x1b[31m"})
        self.assertEqual(told["subject"], {"kind": "Pod", "namespace": "shop", "name": "cart", "uid": "uid-cart"})

    def test_what_was_decided_before(self):
        self.api.put("events", event("a", "Evicted", "Pod shop/long-ago", seconds_ago=900, host="worker-1"))
        self.api.put("events", event("b", "Evicted", "Pod shop/lately", seconds_ago=100, host="worker-1"))
        watched = self.watch("--since", "5m")
        watched.see("shop/lately")
        self.assertFalse([line for line in watched.told() if "shop/long-ago" in line])

    def test_the_past_is_in_order_of_time_and_aligned(self):
        for name, reason, about, ago, host in (("a", "Evicted", "Pod shop/third", 100, "worker-1"),
                                               ("b", "NodeHasDiskPressure", "Node worker-2", 300, ""),
                                               ("c", "Evicted", "Pod shop/fourth", 50, "worker-2"),
                                               ("d", "NodeHasNoDiskPressure", "Node worker-2", 200, ""),
                                               ("e", "NodeHasSufficientMemory", "Node worker-1", 150, ""),
                                               ("f", "FailedCreate", "ReplicaSet shop/fifth", 40, "")):
            self.api.put("events", event(name, reason, about, seconds_ago=ago, host=host))
        watched = self.watch("--since", "10m")
        watched.see("shop/fifth")
        lines = watched.told()
        self.assertEqual([line.split()[2] for line in lines],
                         ["NodeHasDiskPressure", "NodeHasNoDiskPressure", "Evicted", "Evicted", "FailedCreate"], lines)
        self.assertEqual(sorted(line[:20] for line in lines), [line[:20] for line in lines])
        self.assertEqual(len({line.index("said") for line in lines}), 1, lines)

    def test_a_server_that_stops_and_starts_again(self):
        watched = self.watch()
        self.api.put("events", event("a", "Evicted", "Pod shop/before", host="worker-1"))
        watched.see("shop/before")
        self.api.stop()
        wait_for("its complaint", lambda: any("does not answer, trying again" in line for line in watched.complaints()))
        self.api.put("events", event("b", "Evicted", "Pod shop/meanwhile", host="worker-1"))
        self.api.start()
        watched.see("shop/meanwhile")
        # The line is on another stream than the output.
        wait_for("its relief", lambda: any("answers again" in line for line in watched.complaints()))
        self.assertEqual(len([line for line in watched.told() if "shop/before" in line]), 1)
        self.assertEqual(watched.end(), 0)

    def test_history_that_is_gone_is_listed_again(self):
        watched = self.watch()
        self.api.put("events", event("a", "Evicted", "Pod shop/before", host="worker-1"))
        watched.see("shop/before")
        self.api.stop()
        self.api.put("events", event("b", "Evicted", "Pod shop/meanwhile", host="worker-1"))
        self.api.put("events", event("gone", "Evicted", "Pod shop/gone", host="worker-1"))
        self.api.remove("events", "shop", "gone")  # a watch from before it is answered with 410
        self.api.start()
        watched.see("shop/meanwhile")
        self.assertEqual(len([line for line in watched.told() if "shop/before" in line]), 1)

    def test_colour_only_on_a_terminal(self):
        def line_on_terminal(environment):
            controller, terminal = pty.openpty()
            try:
                watched = self.watch(stdout=terminal, environment={"TERM": "xterm", **environment})
                self.api.put("events", event(f"t{len(self.api.objects['events'])}", "Evicted", "Pod shop/painted",
                                             host="worker-1"))
                text = line_from(controller)
                watched.end()
                return text
            finally:
                os.close(terminal)
                os.close(controller)
        self.assertIn(b"\x1b[31mEvicted", line_on_terminal({"NO_COLOR": ""}))
        self.assertNotIn(b"\x1b", line_on_terminal({"NO_COLOR": "1"}))
        watched = self.watch(environment={"TERM": "xterm"})
        self.api.put("events", event("plain", "Evicted", "Pod shop/plain", host="worker-1"))
        self.assertNotIn("\x1b", watched.see("shop/plain"))

    def test_who_may_read_events_only(self):
        self.api.refused = ["/api/v1/nodes", "/debug/"]
        watched = self.watch()
        self.api.put("events", event("b", "Evicted", "Pod shop/cart", host="worker-1"))
        watched.see("shop/cart")
        wait_for("its complaint", lambda: any("taints of nodes are not shown" in line for line in watched.complaints()))
        watched.end()
        self.api.refused = ["/api/v1/events"]
        code, _, err = run("watch", "--kubeconfig", self.kubeconfig)
        self.assertEqual((code, "cannot get path" in err), (1, True), err)

    def test_a_reader_that_has_gone(self):
        """As `spillway watch | head -1`."""
        reads, writes = os.pipe()
        watched = self.watch(stdout=writes)
        os.close(writes)
        self.api.put("events", event("a", "Evicted", "Pod shop/one", host="worker-1"))
        self.assertIn(b"shop/one", line_from(reads))
        os.close(reads)
        self.api.put("events", event("b", "Evicted", "Pod shop/two", host="worker-1"))
        self.assertIn(watched.child.wait(PATIENCE), (1, -signal.SIGPIPE))

    def test_wrong_command_lines(self):
        for arguments, words in ((("--pod", "a/b/c"), "expected NAME or NAMESPACE/NAME"),
                                 (("--since", "-1s"), "must not be negative"), (("--since", "soon"), "soon"),
                                 (("--nod", "x"), "did you mean --node?")):
            code, _, err = run("watch", "--kubeconfig", self.kubeconfig, *arguments)
            self.assertEqual((code, words in err), (2, True), err)


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Ours(unittest.TestCase):
    """`spillway up`: what agents and controllers of ours say."""

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.cluster = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubeconfig = cls.cluster.api, cls.folder / "kubeconfig"

    def test_an_eviction_with_its_reasons(self):
        with watching(self.kubeconfig, "-o", "json") as watched, watching(self.kubeconfig) as text:
            self.api.create("/api/v1/namespaces/default/pods",
                            pod("hog", HOG, resources={"requests": {"memory": "8Mi"}}))
            told = json.loads(watched.see('"reason":"Evicted"', "default", "hog"))
            self.assertEqual((told["source"], told["node"], told["decision"]["action"]), ("decision", "n", "evict"))
            self.assertRegex(text.see("Evicted ", "pod default/hog"),
                             r"Z  n +Evicted +pod default/hog +memory.available was \S+, below its threshold of \S+")
            watched.see("EvictionThresholdMet")
            wait_for("its event", lambda: [each for each in self.api.get("/api/v1/events")["items"]
                                           if each["reason"] == "Evicted"])
            watched.see("NodeHasInsufficientMemory")  # later than the event
            self.assertEqual(len([line for line in watched.told() if '"reason":"Evicted"' in line]), 1, watched.told())

    def test_a_zone_that_is_held(self):
        with watching(self.kubeconfig) as watched:
            wait_for("the first look at zones", lambda: self.held_once(watched))
            run("resume", "--kubeconfig", self.kubeconfig)
            watched.see("zone ", "Resumed")

    def held_once(self, watched):
        """Holds and resumes until a look fell before a hold."""
        run("resume", "--kubeconfig", self.kubeconfig)
        run("hold", "--kubeconfig", self.kubeconfig, "--why", "racks")
        with contextlib.suppress(AssertionError):
            return watched.see("zone all", "Held", "held by hand: racks", timeout=6)

    def test_without_the_right_to_ask_nodes(self):
        self.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "reader"}})
        reader = account_kubeconfig(self.api, self.kubeconfig, "reader", "default")
        code, _, err = run("watch", "--kubeconfig", reader)
        self.assertEqual((code, 'cannot list resource "events"' in err), (1, True), err)
        self.api.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
                        {"metadata": {"name": "reader"},
                         "rules": [{"apiGroups": [""], "resources": ["events"], "verbs": ["list", "watch"]}]})
        self.api.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]})
        with watching(reader, "-n", "default") as watched:
            wait_for("the role to count", lambda: any("are not shown" in line for line in watched.complaints()))
            self.api.create("/api/v1/namespaces/default/events",
                            event("quiet", "Evicted", "Pod default/quiet", host="n"))
            watched.see("pod default/quiet")


if __name__ == "__main__":
    unittest.main()
