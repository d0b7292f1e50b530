"""Events and leases in an etcd of their own: what lives where, watches that resume, one of the two etcds away, servers
that do not agree.
"""
import json
import shutil
import signal
import threading
import time
import unittest

import own_etcd
from counting import MAPS, ROOT_CA, config_map
from etcd_gateway import Gateway
from harness import Api, ApiError, needs, one_node, pod, run, running, serving, wait_for, workspace

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/api/v1/namespaces/default/events"


def lease(name, **spec):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, **spec}}


def event(name):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": {"namespace": "default"},
            "reason": "Tested", "type": "Normal"}


def overrides(cluster, *resources):
    urls = ";".join(each.url for each in cluster.members)
    return "--etcd-servers-overrides=" + ",".join(f"{each}#{urls}" for each in resources
                                                  or ("/events", "coordination.k8s.io/leases"))


class Watch(threading.Thread):
    """Collects the events of the objects below a path from a revision on: ["ADDED name"]."""

    def __init__(self, kubeconfig, path, version):
        super().__init__(daemon=True)
        self.told, self.ended = [], threading.Event()
        self.api = Api(kubeconfig)
        self.path = f"{path}?watch=1&resourceVersion={version}"
        self.start()

    def run(self):
        connection = self.api.connect()
        try:
            connection.request("GET", self.path)
            answer = connection.getresponse()
            while line := answer.readline():
                found = json.loads(line)
                name = found["object"].get("metadata", {}).get("name")
                if name != ROOT_CA:  # which the server makes some time after its start
                    self.told.append(f"{found['type']} {name}")
        except OSError:
            pass
        finally:
            connection.close()
            self.ended.set()


@needs(own_etcd.PROGRAM is not None, own_etcd.NEEDS)
class EtcdOverrides(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        for name in ("main", "apart"):
            (self.folder / name).mkdir()
            setattr(self, name, self.enterContext(own_etcd.serving(self.folder / name)))
        self.in_main, self.in_apart = Gateway(self.main.members[0]), Gateway(self.apart.members[0])

    def server(self, *more, name="data"):
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        process = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / name, "--port", "0",
                                            "--write-kubeconfig", kubeconfig, self.main.flag,
                                            *(more or [overrides(self.apart)])))
        return process, serving(process, kubeconfig), kubeconfig

    def copy_keys(self):
        shutil.copytree(self.folder / "data/pki", self.folder / "data2/pki",
                        ignore=shutil.ignore_patterns("apiserver*", "admin.*"))

    def keys(self, gateway, prefix="/registry/"):
        found = gateway.call("kv/range", key=prefix, range_end=prefix[:-1] + chr(ord(prefix[-1]) + 1),
                             keys_only=True).get("kvs", [])
        return [each["key"] for each in found]

    def refusal(self, call, *arguments):
        with self.assertRaises(ApiError) as refused:
            call(*arguments)
        return refused.exception

    def test_heartbeats_and_events_of_a_node(self):
        with one_node(self.folder, self.main.flag, overrides(self.apart), "--event-ttl=10m") as node:
            key = "/registry/leases/kube-node-lease/n"
            wait_for("the first heartbeat", lambda: self.in_apart.value(key))
            first = self.in_apart.value(key)
            wait_for("the next heartbeat", lambda: self.in_apart.value(key)[1] != first[1])
            node.api.create("/api/v1/namespaces/default/pods", pod("p", ["true"]))
            wait_for("events", lambda: node.api.get(EVENTS)["items"])
            name = node.api.get(EVENTS)["items"][0]["metadata"]["name"]
            kept = self.in_apart.call("kv/range", key=f"/registry/events/default/{name}")["kvs"][0]
            self.assertGreater(int(kept["lease"]), 0, "etcd takes it away")
            for prefix in ("/registry/leases/", "/registry/events/"):
                self.assertEqual(self.keys(self.in_main, prefix), [])
            self.assertIsNotNone(self.in_main.value("/registry/pods/default/p"))
            self.assertEqual(self.keys(self.in_apart, "/registry/pods/"), [])
            metrics = node.api.get("/metrics")
            self.assertRegex(metrics, r'(?m)^spillway_store_revision \d')
            self.assertRegex(metrics, r'(?m)^spillway_store_revision\{store="events,leases.coordination.k8s.io"\} \d')

    def test_revisions_and_watches_of_two_servers(self):
        _, first, _ = self.server()
        self.copy_keys()
        process, second, kubeconfig = self.server(name="data2")
        for number in range(20):
            first.create(MAPS, config_map(f"m{number}"))
        made = first.create(LEASES, lease("l0"))
        self.assertEqual(made["metadata"]["resourceVersion"], self.in_apart.value("/registry/leases/default/l0")[1])
        for number in range(50):
            made["spec"]["renewTime"] = f"2027-01-15T08:00:{number:02}.000000Z"
            made = first.request("PUT", f"{LEASES}/l0", made)
            found = second.get(f"{LEASES}/l0")
            self.assertEqual((found["spec"]["renewTime"], found["metadata"]["resourceVersion"]),
                             (made["spec"]["renewTime"], made["metadata"]["resourceVersion"]))
            self.assertEqual(second.get(f"{MAPS}/m{number % 20}")["metadata"]["name"], f"m{number % 20}")
        versions = {path: second.get(path)["metadata"]["resourceVersion"] for path in (LEASES, MAPS, EVENTS)}
        watches = {path: Watch(kubeconfig, path, versions[path]) for path in versions}
        first.create(LEASES, lease("l1"))
        first.create(MAPS, config_map("new"))
        first.create(EVENTS, event("e1"))
        for path, name in ((LEASES, "l1"), (MAPS, "new"), (EVENTS, "e1")):
            wait_for(path, lambda path=path, name=name: watches[path].told == [f"ADDED {name}"])
        process.kill()  # the next one resumes them, by the revisions of each store
        for path, name in ((LEASES, "l2"), (MAPS, "newer"), (EVENTS, "e2")):
            first.create(path, lease(name) if path == LEASES else config_map(name) if path == MAPS else event(name))
        _, second, kubeconfig = self.server(name="data2")
        for path, names in ((LEASES, ("l1", "l2")), (MAPS, ("new", "newer")), (EVENTS, ("e1", "e2"))):
            again = Watch(kubeconfig, path, versions[path])
            wait_for(path, lambda again=again, names=names: again.told == [f"ADDED {name}" for name in names])

    def test_the_etcd_of_leases_is_killed(self):
        _, api, kubeconfig = self.server()
        api.create(LEASES, lease("l"))
        watch = Watch(kubeconfig, LEASES, api.get(LEASES)["metadata"]["resourceVersion"])
        maps = Watch(kubeconfig, MAPS, api.get(MAPS)["metadata"]["resourceVersion"])
        self.apart.members[0].kill()
        refused = self.refusal(api.create, LEASES, lease("m"))
        self.assertIn(refused.code, (503, 504))
        self.assertIn("the etcd of events,leases.coordination.k8s.io", str(refused))
        slowest = 0.0
        for number in range(50):
            begun = time.monotonic()
            api.create(MAPS, config_map(f"m{number}"))
            self.assertEqual(api.get(f"{MAPS}/m{number}")["metadata"]["name"], f"m{number}")
            slowest = max(slowest, time.monotonic() - begun)
        wait_for("their watch", lambda: maps.told == [f"ADDED m{number}" for number in range(50)])
        self.assertEqual(api.get(f"{LEASES}/l?resourceVersion=0")["metadata"]["name"], "l")
        ready = self.refusal(api.get, "/readyz?verbose")
        self.assertIn("[-]store-writes/events,leases.coordination.k8s.io failed", str(ready.status))
        self.assertIn("[+]store-writes ok", str(ready.status))
        self.assertIn("does not answer",
                      str(self.refusal(api.get, "/readyz/store-writes/events,leases.coordination.k8s.io").status))
        self.assertEqual(api.get("/livez"), "ok")
        self.apart.members[0].start()

        def is_ready():  # without a request for anything that lives there
            try:
                return api.get("/readyz") == "ok"
            except ApiError:
                return False
        wait_for("the server", is_ready)
        wait_for("leases", lambda: self.made(api, LEASES, lease("n")))
        wait_for("the watch of leases goes on", lambda: "ADDED n" in watch.told)
        self.assertFalse(watch.ended.is_set() or maps.ended.is_set())
        print(f"etcd of leases killed: slowest write and read of the other kinds {slowest * 1000:.0f} ms", flush=True)

    def test_the_main_etcd_is_stopped(self):
        _, api, kubeconfig = self.server()
        made = api.create(LEASES, lease("l"))
        patient = Api(kubeconfig)
        self.main.members[0].kill(signal.SIGSTOP)
        try:
            self.assertIn(self.refusal(patient.create, MAPS, config_map("m")).code, (503, 504))
            times = []
            for number in range(20):
                begun = time.monotonic()
                made["spec"]["renewTime"] = f"2027-01-15T08:00:{number:02}.000000Z"
                made = patient.request("PUT", f"{LEASES}/l", made)
                times.append(time.monotonic() - begun)
            self.assertIn("[-]store-writes failed", str(self.refusal(patient.get, "/readyz?verbose").status))
        finally:
            self.main.members[0].kill(signal.SIGCONT)
        # A renewal that waited for the main etcd would wait until its call is given up.
        self.assertLess(sorted(times)[-2], 8, "the machine may have stood still once")
        patient.close()
        wait_for("the main etcd", lambda: self.made(api, MAPS, config_map("after")))
        print(f"main etcd stopped: slowest renewal {max(times) * 1000:.0f} ms", flush=True)

    def made(self, api, path, body):
        try:
            return api.create(path, body)
        except ApiError as error:
            return error.code == 409  # an attempt that had no answer

    def test_servers_that_do_not_agree(self):
        self.server()
        self.copy_keys()
        for flags in ([], [overrides(self.apart, "/events")]):
            code, _, err = run("apiserver", "--data-dir", self.folder / "data2", "--port", "0", self.main.flag, *flags)
            self.assertEqual(code, 1)
            self.assertRegex(
                err,
                (
                    r"(?m)^spillway: --etcd-servers-overrides: other resources than those of server \S+, which runs;"
                    r" all servers of an etcd keep the same ones elsewhere$"
                ),
            )

    def test_objects_from_before(self):
        self.server(self.main.flag)[0].stop()
        process, api, _ = self.server(self.main.flag)
        api.create(LEASES, lease("old"))
        process.stop()
        process, api, _ = self.server()
        self.assertIsNone(api.find(f"{LEASES}/old"))
        self.assertIn("are not served: their resource has a store of its own", process.log.read_text())

    def test_no_etcd_for_leases(self):
        port = own_etcd.free_ports(1)[0]
        code, _, err = run("apiserver", "--data-dir", self.folder / "data", "--port", "0", self.main.flag,
                           f"--etcd-servers-overrides=/events#http://127.0.0.1:{port}")
        self.assertEqual(code, 1)
        self.assertRegex(err, "(?m)^spillway: the etcd of events: etcd: .*connect")
        self.assertEqual(err.count("spillway: "), 1)

    def test_bad_flags(self):
        url = "http://127.0.0.1:2379"
        main = "--etcd-servers=http://127.0.0.1:23790"
        form = "expected GROUP/RESOURCE#URL;URL, as in /events#https://etcd-0:2379"
        for command in ("apiserver", "up"):
            for flags, words in (
                    ([main, "/event#" + url], 'unknown resource "/event" (did you mean /events?)'),
                    ([main, "/leases#" + url], "(did you mean coordination.k8s.io/leases?)"),
                    ([main, "/pods#" + url], "/pods: other requests are authorized by its objects"),
                    ([main, f"/events#{url},/events#http://127.0.0.1:2380"], "/events is given twice"),
                    ([main, "/events#http://127.0.0.1:23790"], "http://127.0.0.1:23790 is one of --etcd-servers"),
                    ([main, "/events"], form),
                    ([main, "/events#"], form),
                    ([main, "events#" + url], form),
                    ([main, "/events#127.0.0.1:2379"], "expected http://HOST:PORT or https://HOST:PORT"),
                    ([main, f"/events#{url};"], "expected http://HOST:PORT or https://HOST:PORT"),
                    ([main, "/events#http://10.0.0.1:2379"], "--etcd-insecure"),
                    (["/events#" + url], "needs --etcd-servers")):
                code, out, err = run(command, "--data-dir", self.folder / "bad", *flags[:-1],
                                     f"--etcd-servers-overrides={flags[-1]}")
                self.assertEqual(code, 2, (flags, err))
                self.assertIn("--etcd-servers-overrides", err)
                self.assertIn(words, err)
                self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertFalse((self.folder / "bad").exists())
        for flags, words in ((["--etcd-compaction-interval=1m"], "needs --etcd-servers"),
                             ([main, "--etcd-compaction-interval=1s"], "at least 10 seconds")):
            code, _, err = run("apiserver", "--data-dir", self.folder / "bad", *flags)
            self.assertEqual(code, 2)
            self.assertIn(words, err)
        for command, words in ((["check", main], "give its URLs"),
                               (["copy", "--from", f"sqlite:{self.folder}", "--to", f"etcd:{url}"],
                                "copy the whole store into each etcd")):
            code, _, err = run("store", *command, f"--etcd-servers-overrides=/events#{url}")
            self.assertEqual(code, 2)
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()
