"""Several API servers of one etcd: all serve one history; what is handed out once is handed out once; one collects."""
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest

import own_etcd
from counting import MAPS, Servers, begin, config_map, settle
from etcd_gateway import Gateway
from harness import (
    PATIENCE,
    ROOT,
    Api,
    ApiError,
    account_kubeconfig,
    needs,
    run,
    running,
    serving,
    wait_for,
    workspace,
)

E2E = pathlib.Path(__file__).resolve().parent
SERVICES = "/api/v1/namespaces/default/services"
COLLECTS = "this server runs the garbage collector of its etcd"


def service(name, kind="NodePort", **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": kind, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}], **spec}}


def stock_client():
    """A folder with @kubernetes/client-node, as the conformance suite keeps it."""
    source = E2E.parent / "conformance/client"
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME",
                                         pathlib.Path.home() / ".cache")) / "spillway-conformance/informers"
    if not (folder / "node_modules/@kubernetes/client-node").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, folder / name)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
    return folder


def keys_below(gateway, prefix):
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return int(gateway.call("kv/range", key=prefix, range_end=end, count_only=True).get("count", 0))


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Follower(threading.Thread):
    """Keeps the spec of an object, with its version, of each event of a watch."""

    def __init__(self, api, target, since):
        super().__init__(daemon=True)
        self.connection, self.seen = api.connect(), []
        self.connection.request("GET", f"{target}&watch=1&resourceVersion={since}")
        self.start()

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            for line in self.connection.getresponse():
                made = json.loads(line)["object"]
                self.seen.append({**made["spec"], "version": int(made["metadata"]["resourceVersion"])})

    def end(self):
        self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.join()
        self.connection.close()


@needs(own_etcd.PROGRAM is not None and shutil.which("kubectl"), own_etcd.NEEDS)
class SeveralServers(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.cluster = self.enterContext(own_etcd.serving(self.folder))
        self.gateway = Gateway(self.cluster.members[0])

    def kubeconfig(self, name):
        return self.folder / f"{name}.kubeconfig"

    def start(self, name, port=0, *more):
        """All of them have the keys of the first."""
        if name != "first" and not (self.folder / name).exists():
            shutil.copytree(self.folder / "first/pki", self.folder / name / "pki",
                            ignore=shutil.ignore_patterns("apiserver*", "admin.*"))
        self.kubeconfig(name).unlink(missing_ok=True)
        process = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / name, "--port",
                                            str(port), "--write-kubeconfig", self.kubeconfig(name), self.cluster.flag,
                                            *more))
        return process, serving(process, self.kubeconfig(name))

    def test_what_one_acknowledges_the_other_shows_and_decides_by(self):
        _, first = self.start("first")
        _, second = self.start("second")
        servers = (first, second)
        first.create(MAPS, config_map("shared", n="0"))
        for number in range(200):
            one, other = servers[number % 2], servers[1 - number % 2]
            seen = other.get(f"{MAPS}/shared")
            self.assertEqual(seen["data"]["n"], str(number))
            seen["data"]["n"] = str(number + 1)
            one.request("PUT", f"{MAPS}/shared", seen)
            with self.assertRaises(ApiError) as stale:  # the version that has just been overtaken elsewhere
                other.request("PUT", f"{MAPS}/shared", seen)
            self.assertEqual(stale.exception.code, 409)
        for number in range(30):
            one, other = servers[number % 2], servers[1 - number % 2]
            one.create(MAPS, config_map(f"made-{number}"))
            with self.assertRaises(ApiError) as exists:
                other.create(MAPS, config_map(f"made-{number}"))
            self.assertEqual(exists.exception.status["reason"], "AlreadyExists")
            other.delete(f"{MAPS}/made-{number}")
            self.assertIsNone(one.find(f"{MAPS}/made-{number}"))
            one.create(MAPS, config_map(f"made-{number}"))
        # Rights and tokens: given by one, had at the other at once; taken by one, gone at the other at once.
        for number in range(20):
            one, other = servers[number % 2], servers[1 - number % 2]
            name = f"reader-{number}"
            account = account_kubeconfig(one, self.kubeconfig("first" if one is first else "second"),
                                         self.make_account(one, name), "default")
            there = Api(self.moved(account, other))
            one.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})
            for suffix in ("", "?resourceVersion=0"):
                there.get(MAPS + suffix)
            one.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}")
            with self.assertRaises(ApiError) as refused:
                there.get(MAPS)
            self.assertEqual(refused.exception.code, 403)
            one.delete(f"/api/v1/namespaces/default/serviceaccounts/{name}")
            with self.assertRaises(ApiError) as refused:
                there.get(MAPS)
            self.assertEqual(refused.exception.code, 401)
            there.close()
        # Pages of one, continued by the other.
        page = first.get(f"{MAPS}?limit=3")
        names = [each["metadata"]["name"] for each in page["items"]]
        while page["metadata"].get("continue"):
            page = random.choice(servers).get(f"{MAPS}?limit=3&continue={page['metadata']['continue']}")
            names += [each["metadata"]["name"] for each in page["items"]]
        self.assertEqual(names, [each["metadata"]["name"] for each in second.get(MAPS)["items"]])

    def make_account(self, api, name):
        api.create("/api/v1/namespaces/default/serviceaccounts",
                   {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        return name

    def moved(self, kubeconfig, api):
        """The same credentials, for another server."""
        text = kubeconfig.read_text()
        there = kubeconfig.with_suffix(".there")
        there.write_text("\n".join(f"{line.split('server:')[0]}server: {api.scheme}://{api.host}:{api.port}"
                                   if "server:" in line else line for line in text.splitlines()) + "\n")
        return there

    def test_no_address_and_no_port_twice(self):
        self.start("first")
        self.start("second")
        both = [self.kubeconfig("first"), self.kubeconfig("second")]

        def work(worker):
            servers, made = Servers(both, PATIENCE), []
            for number in range(12):
                name = f"s-{worker}-{number}"
                made.append(servers.any().create(SERVICES, service(name))["spec"])
                if number % 4 == 3:
                    servers.any().delete(f"{SERVICES}/{name}")
                    made.pop()
            servers.close()
            return made

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            specs = [spec for made in pool.map(work, range(8)) for spec in made]
        addresses = [spec["clusterIP"] for spec in specs]
        ports = [port["nodePort"] for spec in specs for port in spec["ports"]]
        self.assertEqual((len(addresses), len(ports)), (72, 144))
        self.assertEqual((len(set(addresses)), len(set(ports))), (72, 144), "handed out twice")
        # A port that is requested by number: exactly one service gets it, and when it is free again another one does at
        # once.
        servers = Servers(both, PATIENCE)
        for number in range(10):
            def ask(worker):
                mine = Servers(both, PATIENCE)
                try:
                    mine.any().create(SERVICES, service(f"fixed-{worker}", "ClusterIP", clusterIP="10.96.77.7"))
                    return f"fixed-{worker}"
                except ApiError as error:
                    self.assertIn("provided IP is already allocated", str(error))
                    return None
                finally:
                    mine.close()
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                got = [name for name in pool.map(ask, range(4)) if name]
            self.assertLessEqual(len(got), 1, "one address, two services")
            for name in got:
                servers.any().delete(f"{SERVICES}/{name}")
        servers.any().create(SERVICES, service("at-last", "ClusterIP", clusterIP="10.96.77.8"))
        servers.any().delete(f"{SERVICES}/at-last")
        self.assertEqual(servers.any().create(SERVICES,
                                              service("again", "ClusterIP",
                                                      clusterIP="10.96.77.8"))["spec"]["clusterIP"], "10.96.77.8")
        servers.close()

    def test_a_namespace_is_deleted_with_late_objects(self):
        _, first = self.start("first")
        _, second = self.start("second")
        for number in range(6):
            name = f"going-{number}"
            first.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

            def fill(worker):
                mine, made = Servers([self.kubeconfig("first"), self.kubeconfig("second")], PATIENCE), 0
                try:
                    while True:
                        mine.any().create(f"/api/v1/namespaces/{name}/configmaps", config_map(f"m-{worker}-{made}"))
                        made += 1
                except ApiError as error:
                    self.assertIn(error.code, (403, 404), str(error))
                finally:
                    mine.close()
                return made

            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                filling = [pool.submit(fill, worker) for worker in range(4)]
                wait_for("content", lambda: keys_below(self.gateway, f"/registry/configmaps/{name}/") > 20)
                (first, second)[number % 2].delete(f"/api/v1/namespaces/{name}")
                self.assertGreater(sum(each.result() for each in filling), 20)
            wait_for("the namespace to go", lambda: second.find(f"/api/v1/namespaces/{name}") is None)
            wait_for("what came late to go", lambda: keys_below(self.gateway, f"/registry/configmaps/{name}/") == 0)

    def test_one_collects_and_another_takes_its_place(self):
        one, first = self.start("first")
        two, second = self.start("second")
        wait_for("the first to collect", lambda: COLLECTS in one.log.read_text())
        self.assertNotIn(COLLECTS, two.log.read_text())

        def collected(api, name):
            owner = api.create(MAPS, config_map(f"{name}-owner"))
            child = config_map(f"{name}-child")
            child["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"{name}-owner",
                                                     "uid": owner["metadata"]["uid"]}]
            api.create(MAPS, child)
            api.delete(f"{MAPS}/{name}-owner")
            wait_for(f"{name} to be collected", lambda: api.find(f"{MAPS}/{name}-child") is None)

        collected(second, "by-the-other")
        self.assertEqual(one.stop(), 0)  # in order: the next one need not wait
        collected(second, "by-the-next")
        self.assertIn(COLLECTS, two.log.read_text())
        one, first = self.start("first")
        two.child.send_signal(signal.SIGSTOP)  # out of order
        collected(first, "by-the-first-again")
        two.child.send_signal(signal.SIGCONT)
        wait_for("the second to know", lambda: "this server does not collect any more" in two.log.read_text())
        self.assertIsNotNone(second.get(MAPS))  # keeps serving
        collected(second, "by-the-first-for-the-second")

    def test_clients_in_the_cluster_find_all_servers(self):
        processes = {}
        for number, name in ((1, "first"), (2, "second")):
            processes[name], api = self.start(name, 0, "--advertise-address", f"192.0.2.{number}")

        def told():
            found = api.find("/api/v1/namespaces/default/endpoints/kubernetes") or {}
            return sorted(address["ip"] for subset in found.get("subsets", []) for address in subset["addresses"])

        wait_for("both", lambda: told() == ["192.0.2.1", "192.0.2.2"])
        # The first one, which writes them, is killed: another one takes its place, and its address goes by itself.
        processes["first"].kill()
        wait_for("its address to go", lambda: told() == ["192.0.2.2"])
        _, back = self.start("first", 0, "--advertise-address", "192.0.2.1")
        wait_for("it to come back", lambda: told() == ["192.0.2.1", "192.0.2.2"])
        processes["second"].stop()
        api = back
        wait_for("the one that left to go", lambda: told() == ["192.0.2.1"])

        def in_slices():  # written after the Endpoints
            slices = api.get(
                "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=kubernetes"
            )["items"]
            return [address for each in slices for endpoint in each.get("endpoints") or []
                    for address in endpoint["addresses"]]

        wait_for("it to go from the slices", lambda: in_slices() == ["192.0.2.1"])

    def test_a_server_that_begins_knows_the_history(self):
        _, first = self.start("first")
        wait_for("the ConfigMap that the server writes itself", lambda: first.find(f"{MAPS}/kube-root-ca.crt"))
        since = first.create(MAPS, config_map("begin"))["metadata"]["resourceVersion"]
        for number in range(40):
            first.create(MAPS, config_map(f"m-{number}"))
        first.create(MAPS, config_map("end"))

        def told(api, version):
            """The events up to that of the last object, or to a refusal."""
            with contextlib.closing(api.connect()) as connection:
                connection.request("GET", f"{MAPS}?watch=1&resourceVersion={version}")
                answer, events = connection.getresponse(), []
                while not events or events[-1]["type"] != "ERROR" and events[-1]["object"]["metadata"]["name"] != "end":
                    events.append(json.loads(answer.readline()))
                return events

        def added(events):
            return [event["object"]["metadata"]["name"] for event in events if event["type"] == "ADDED"]

        _, second = self.start("second")
        self.assertEqual(added(told(second, since)), [*(f"m-{number}" for number in range(40)), "end"])
        # A client of a compacted store gets the history that is left.
        kept = second.get(f"{MAPS}/m-19")["metadata"]["resourceVersion"]
        self.gateway.put("compact_rev_key", kept)
        self.gateway.compact(int(kept))
        _, third = self.start("third")
        self.assertEqual(added(told(third, kept)), [*(f"m-{number}" for number in range(20, 40)), "end"])
        self.assertEqual(told(third, since)[0]["object"]["code"], 410)

    def test_servers_that_are_killed_in_turn(self):
        processes = {name: self.start(name)[0] for name in ("first", "second")}
        _, third = self.start("third")  # to look from
        recorder, writers = begin([self.kubeconfig("first"), self.kubeconfig("second")],
                                  third.get(MAPS)["metadata"]["resourceVersion"])
        for kill in range(6):
            for each in writers:
                wait_for("writes", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before + 5)
            name = ("first", "second")[kill % 2]
            processes[name].kill()
            for each in writers:
                wait_for("writes without it", lambda each=each,
                         before=len(each.acknowledged): len(each.acknowledged) > before)
            processes[name] = self.start(name)[0]
        told = settle(self, recorder, writers, third)
        print(
            (
                f"two servers killed 6 times: {told} writes acknowledged,"
                f" {sum(each.refused for each in writers)} refused, all told once over {recorder.connections} watches"
            ),
            flush=True,
        )

    def test_informers_of_the_stock_library_while_servers_are_killed(self):
        processes, ports, third, balanced = self.start_balanced()
        log = self.folder / "informers.log"
        with open(log, "w") as lines:
            informers = self.enterContext(
                subprocess.Popen(["node", E2E / "informers.mjs", stock_client(), balanced, "3"], stdout=lines,
                                 stderr=subprocess.DEVNULL))
        self.addCleanup(informers.kill)

        def whole_lines():
            """Lines with their end: the last one may be under way."""
            return log.read_text().rpartition("\n")[0].splitlines()
        wait_for("the informers", lambda: len(set(line.split(",")[0] for line in whole_lines())) == 3)
        recorder, writers = begin([self.kubeconfig("third")], third.get(MAPS)["metadata"]["resourceVersion"], writers=3)
        kubectl = {**os.environ, "KUBECONFIG": str(balanced), "HOME": str(self.folder)}
        for kill in range(4):
            for each in writers:
                wait_for("writes", lambda each=each,
                         before=len(each.acknowledged): len(each.acknowledged) > before + 40)
            name = ("first", "second")[kill % 2]
            processes[name][0].kill()
            wait_for("kubectl without it",
                     lambda: subprocess.run(["kubectl", "get", "configmaps"], env=kubectl, capture_output=True,
                                            check=False).returncode == 0)
            processes[name] = self.start(name, ports[name])
        acknowledged = settle(self, recorder, writers, third)
        told = {number: [] for number in range(3)}

        def read():
            for lines in told.values():
                lines.clear()
            for line in whole_lines():
                number, verb, name, version, count = json.loads(line)
                if name.startswith("counter-") or name == "marker":
                    told[number].append((version, name, count))
            return all(any(name == "marker" for _, name, _ in lines) for lines in told.values())

        wait_for("the last event", read)
        expected = [(version, name, count or "") for version, _, name, count in recorder.events
                    if name.startswith("counter-") or name == "marker"]
        for lines in told.values():
            self.assertEqual(lines, expected, "an informer lost, repeated or mixed up events")
        print(
            (
                f"3 informers over servers killed 4 times: {len(expected)} events each, lost 0, repeated 0;"
                f" {acknowledged} writes acknowledged"
            ),
            flush=True,
        )

    def start_balanced(self):
        """Two servers by name with their ports, a third to look from, and a kubeconfig for one of the two by chance."""
        # Ports that no program gets by chance while their server is started again.
        ports = dict(zip(("first", "second"), own_etcd.free_ports(2)))
        processes = {name: self.start(name, port) for name, port in ports.items()}
        _, third = self.start("third")
        urls = [f"https://127.0.0.1:{port}" for port in ports.values()]
        balancer = self.enterContext(subprocess.Popen(["node", E2E / "balancer.mjs", self.folder / "first/pki", *urls],
                                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        self.addCleanup(balancer.kill)
        balanced = account_kubeconfig(third, self.kubeconfig("third"), self.make_admin(third), "default")
        balanced.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{balancer.stdout.readline().strip()}",
                                   balanced.read_text()))
        return processes, ports, third, balanced

    def test_elections_while_servers_are_killed(self):
        """A server that is killed costs no leader its lease; a leader that is killed loses it when its lease has run
        out, and not before."""
        processes, ports, third, balanced = self.start_balanced()
        # Leases are followed from the moment at which the leader is killed: no other holder loses its lease.
        leases, lease_seconds = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", 8
        lease = Follower(third, f"{leases}?fieldSelector=metadata.name%3Dspillway-controller",
                         third.get(leases)["metadata"]["resourceVersion"])
        self.addCleanup(lease.end)
        candidates = []

        def stand():
            candidates.append(self.enterContext(running(
                self.folder, "controller", "--kubeconfig", balanced, "--leader-elect-lease-duration", "120s",
                "--leader-elect-renew-deadline", "100s", "--leader-elect-retry-period", "300ms")))

        for _ in range(3):
            stand()
        last_word = lambda each: (re.findall(r'msg="(leading|not the leader)', each.log.read_text()) or [""])[-1]
        leads = lambda: [each for each in candidates if each.running() and last_word(each) == "leading"]
        for kill in range(6):
            wait_for("renewals", lambda before=len(lease.seen): len(lease.seen) > before + 6)
            name = ("first", "second")[kill % 2]
            processes[name][0].kill()
            if kill == 2:
                (leader,) = leads()
                leader.kill()
                third.patch(f"{leases}/spillway-controller", {"spec": {"leaseDurationSeconds": lease_seconds}})
                stand()
            wait_for("renewals without it", lambda before=len(lease.seen): len(lease.seen) > before + 6)
            processes[name] = self.start(name, ports[name])
        changes = []
        for before, after in zip(lease.seen, lease.seen[1:]):
            self.assertLess(before["version"], after["version"])
            if before["holderIdentity"] != after["holderIdentity"]:
                changes.append((before, after))
                waited = moment(after["acquireTime"]) - moment(before["renewTime"])
                self.assertGreaterEqual(waited.total_seconds(), lease_seconds,
                                        "a lease was taken before it had run out")
        lost = re.findall(r'msg="not the leader.*', "".join(each.log.read_text() for each in candidates))
        self.assertEqual((len(changes), lost), (1, []), "one leader was killed")
        self.assertEqual(len(leads()), 1)
        self.assertEqual(lease.seen[-1]["leaseTransitions"], 1)
        print(
            (
                f"3 candidates over servers killed 6 times, the leader once: {len(lease.seen)} renewals, the lead"
                " changed hands once"
            ),
            flush=True,
        )

    def make_admin(self, api):
        self.make_account(api, "informers")
        api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "informers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "informers", "namespace": "default"}]})
        return "informers"

    def test_the_deployment_of_three(self):
        """Three servers by the command of the unit file, over three members of etcd."""
        cluster = self.enterContext(own_etcd.serving(self.folder / "three", 3))
        unit = (ROOT / "deploy/api-servers/spillway-apiserver.service").read_text().replace("\\\n", " ")
        program, command, *words = re.search(r"^ExecStart=(.*)$", unit, re.M).group(1).split()
        self.assertEqual((program, command), ("/usr/bin/spillway", "apiserver"))
        processes = {}
        for name in ("a", "b", "c"):
            if name != "a":
                (self.folder / name / "pki").mkdir(parents=True)
                for key in ("ca.crt", "ca.key", "sa.key", "kubelet-serving"):  # as docs/servers.md says
                    subprocess.run(["cp", "-a", self.folder / "a/pki" / key, self.folder / name / "pki"], check=True)
            own = {"--data-dir": self.folder / name, "--bind-address": "127.0.0.1", "--port": "0",
                   "--write-kubeconfig": self.kubeconfig(name)}
            flags = [word for word in words if word.split("=")[0] not in own
                     and not re.match("--etcd-(ca|cert|key)file", word)]
            text = " ".join(flags).replace("${ETCD_SERVERS}",
                                           cluster.flag.split("=", 1)[1]).replace("${ADVERTISED}",
                                                                                  "api.example.com").replace(
                                                                                      "${OWN_ADDRESS}", "10.0.0.11")
            self.assertNotIn("$", text)
            processes[name] = self.enterContext(running(self.folder, "apiserver", *text.split(),
                                                        *(f"{flag}={value}" for flag, value in own.items())))
            serving(processes[name], self.kubeconfig(name))
        apis = {name: Api(self.kubeconfig(name)) for name in processes}
        for api in apis.values():
            with socket.create_connection((api.host, api.port)) as plain, api.context.wrap_socket(
                plain, server_hostname="api.example.com"
            ) as secure:
                self.assertIn(("IP Address", "10.0.0.11"), secure.getpeercert()["subjectAltName"])
        apis["a"].create(MAPS, config_map("kept"))
        processes["a"].kill()
        cluster.members[0].kill()
        for name in ("b", "c"):
            def answer(name=name):
                try:
                    return apis[name].find(f"{MAPS}/kept")
                except ApiError as error:  # while the members that are left choose one
                    self.assertIn(error.code, (500, 503, 504))
                    return None
            self.assertIsNotNone(wait_for("an answer", answer))
        for api in apis.values():
            api.close()
        code, _, err = run("apiserver", "--data-dir", self.folder / "d", "--tls-san=not/a/name", "--port", "0")
        self.assertEqual(code, 2)
        self.assertRegex(err, r"(?m)^spillway: --tls-san: \"not/a/name\" is neither a name nor an address$")

    def test_other_keys_are_refused_while_a_server_runs(self):
        one, _ = self.start("first")
        code, _, err = run("apiserver", "--data-dir", self.folder / "stranger", "--port", "0", self.cluster.flag)
        self.assertEqual(code, 1)
        self.assertRegex(
            err,
            (
                r"(?m)^spillway: .*/stranger/pki: these keys differ from those of the running server \S+; copy ca.crt,"
                r" ca.key and sa.key"
            ),
        )
        one.kill()
        process, api = self.start_stranger()
        api.create(MAPS, config_map("mine"))
        self.assertEqual(process.stop(), 0)

    def test_of_two_with_one_name_the_later_ends(self):
        _, api = self.start("first")
        shutil.copytree(self.folder / "first", self.folder / "copy")
        code, _, err = run("apiserver", "--data-dir", self.folder / "copy", "--port", "0", self.cluster.flag)
        self.assertEqual(code, 1)
        self.assertRegex(err, r"(?m)^spillway: .*/copy/server-name: another server runs as \S+, and has for longer")
        api.create(MAPS, config_map("still-here"))

    def start_stranger(self):
        process = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "stranger", "--port",
                                            "0", "--write-kubeconfig", self.kubeconfig("stranger"), self.cluster.flag))
        return process, serving(process, self.kubeconfig("stranger"))


if __name__ == "__main__":
    unittest.main()
