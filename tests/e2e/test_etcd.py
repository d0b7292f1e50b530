"""Objects in an etcd: what kubectl sees, what others write, members that are killed and stopped, lost history, a full database."""
import base64
import http.client
import json
import shutil
import signal
import socket
import threading
import unittest
import urllib.request

import own_etcd
from harness import Api, ApiError, Kubectl, needs, run, running, serving, wait_for, workspace

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def own_maps(api):
    """The data of all but the one that every namespace has, by name."""
    return {each["metadata"]["name"]: each.get("data", {}) for each in api.get(MAPS)["items"] if each["metadata"]["name"] != "kube-root-ca.crt"}


def coded(text):
    return base64.b64encode(text.encode()).decode()


class Gateway:
    """What another client of etcd reads and writes, by its JSON gateway."""

    def __init__(self, member):
        self.url = member.url

    def call(self, path, **fields):
        body = {name: coded(value) if isinstance(value, str) else value for name, value in fields.items()}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode()), timeout=10) as answer:
            return json.load(answer)

    def value(self, key):
        found = self.call("kv/range", key=key).get("kvs", [])
        return (base64.b64decode(found[0]["value"]).decode(), found[0]["mod_revision"]) if found else None

    def put(self, key, value):
        return int(self.call("kv/put", key=key, value=value)["header"]["revision"])

    def compact(self, revision):
        self.call("kv/compaction", revision=revision)

    def revision(self):
        return int(self.call("kv/range", key="x")["header"]["revision"])


class Way:
    """A TCP connection to a member that can be cut."""

    def __init__(self, member):
        self.to = int(member.url.rsplit(":", 1)[1])
        self.open, self.sockets = True, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                client.close()
                continue
            try:
                member = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                client.close()
                continue
            self.sockets |= {client, member}
            for source, sink in ((client, member), (member, client)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            with_shutdown(each)

    def cut(self):
        self.open = False
        for each in list(self.sockets):
            with_shutdown(each)

    def close(self):
        self.cut()
        self.listener.close()


def with_shutdown(each):
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Recorder(threading.Thread):
    """A client that watches and resumes by resourceVersion; lists anew when history is gone."""

    def __init__(self, kubeconfig, since):
        super().__init__(daemon=True)
        self.api, self.version = Api(kubeconfig), since
        self.events, self.lists, self.ended = [], 0, False

    def run(self):
        while not self.ended:
            try:
                self.follow()
            except (OSError, http.client.HTTPException, ValueError):
                continue  # the server is away
        self.api.close()

    def follow(self):
        connection = self.api.connect()
        try:
            connection.request("GET", f"{MAPS}?watch=1&resourceVersion={self.version}")
            answer = connection.getresponse()
            if answer.status != 200:
                answer.read()
                return
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    self.lists += 1
                    self.version = self.api.get(MAPS)["metadata"]["resourceVersion"]
                    return
                self.version = event["object"]["metadata"]["resourceVersion"]
                self.events.append((int(self.version), event["type"], event["object"]["metadata"]["name"], (event["object"].get("data") or {}).get("count")))
        finally:
            connection.close()


class Writer(threading.Thread):
    """Counts in an object of its own; an update holds the version it read. What has no certain answer is read again."""

    def __init__(self, kubeconfig, name):
        super().__init__(daemon=True)
        self.api, self.name = Api(kubeconfig, timeout=40), name
        self.acknowledged, self.refused, self.ended, self.wrong = [], 0, False, []

    def run(self):
        try:
            self.count()
        finally:
            self.api.close()

    def count(self):
        made, count = None, 0
        while not self.ended:
            try:
                if made is None:
                    made = self.api.find(f"{MAPS}/{self.name}") or self.api.create(MAPS, config_map(self.name, count="0"))
                    count = int(made["data"]["count"])
                made["data"]["count"] = str(count + 1)
                made = self.api.request("PUT", f"{MAPS}/{self.name}", made)
            except ApiError as error:
                self.refused += 1
                if error.code not in (409, 429, 500, 503, 504):
                    self.wrong.append(str(error))
                made = None
                continue
            except (OSError, http.client.HTTPException):
                made = None
                continue
            count += 1
            self.acknowledged.append((int(made["metadata"]["resourceVersion"]), count))


@needs(own_etcd.PROGRAM is not None and shutil.which("kubectl"), own_etcd.NEEDS)
class Etcd(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())

    def server(self, cluster, *more, name="data", flag=None):
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        process = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / name, "--port", "0", "--write-kubeconfig", kubeconfig, flag or cluster.flag, *more))
        return process, serving(process, kubeconfig), kubeconfig

    def test_objects_live_in_etcd(self):
        cluster = self.enterContext(own_etcd.serving(self.folder))
        gateway = Gateway(cluster.members[0])
        process, api, kubeconfig = self.server(cluster)
        kubectl = Kubectl(kubeconfig)
        kubectl("create", "configmap", "kept", "--from-literal=colour=blue")
        version = kubectl.get("configmap", "kept")["metadata"]["resourceVersion"]
        text, revision = gateway.value("/registry/configmaps/default/kept")
        self.assertEqual((json.loads(text)["data"], revision), ({"colour": "blue"}, version))
        self.assertNotIn("resourceVersion", json.loads(text)["metadata"])
        process.kill()  # the next one has nothing but etcd
        _, api, kubeconfig = self.server(cluster)
        found = api.get(f"{MAPS}/kept")
        self.assertEqual((found["data"], found["metadata"]["resourceVersion"]), ({"colour": "blue"}, version))
        Kubectl(kubeconfig)("delete", "configmap", "kept")
        self.assertIsNone(gateway.value("/registry/configmaps/default/kept"))
        _, api, _ = self.server(cluster, "--etcd-prefix=/other", name="other")
        api.create(MAPS, config_map("elsewhere"))
        self.assertIsNotNone(gateway.value("/other/configmaps/default/elsewhere"))
        self.assertEqual(sorted(own_maps(api)), ["elsewhere"])

    def test_what_others_write_is_seen_at_once(self):
        cluster = self.enterContext(own_etcd.serving(self.folder))
        gateway = Gateway(cluster.members[0])
        _, api, kubeconfig = self.server(cluster)
        made = api.create(MAPS, config_map("shared", n="0"))
        recorder = Recorder(kubeconfig, made["metadata"]["resourceVersion"])
        recorder.start()
        document = json.loads(gateway.value("/registry/configmaps/default/shared")[0])
        for number in range(1, 200):
            document["data"]["n"] = str(number)
            revision = gateway.put("/registry/configmaps/default/shared", json.dumps(document))
            found = api.get(f"{MAPS}/shared")
            self.assertEqual((found["data"]["n"], found["metadata"]["resourceVersion"]), (str(number), str(revision)))
        wait_for("the watch", lambda: len(recorder.events) == 199)
        # Two objects in one revision are two events.
        pair = []
        for name in ("left", "right"):
            document["metadata"] = {**document["metadata"], "name": name, "uid": f"uid-{name}"}
            pair.append({"requestPut": {"key": coded(f"/registry/configmaps/default/{name}"), "value": coded(json.dumps(document))}})
        gateway.call("kv/txn", success=pair)
        wait_for("both", lambda: len(recorder.events) >= 201)
        self.assertEqual([name for _, _, name, _ in recorder.events[199:]], ["left", "right"])
        self.assertEqual(recorder.events[199][0], recorder.events[200][0])
        recorder.ended = True
        gateway.put("/others", "nothing of ours")
        self.assertGreaterEqual(int(api.get(MAPS)["metadata"]["resourceVersion"]), gateway.revision())
        # An update by the version that somebody else has overtaken is refused, and by the newest one is not.
        with self.assertRaises(ApiError) as refused:
            api.request("PUT", f"{MAPS}/shared", made)
        self.assertEqual(refused.exception.code, 409)
        api.request("PUT", f"{MAPS}/shared", api.get(f"{MAPS}/shared"))

    def test_of_two_servers_one_stands_by(self):
        cluster = self.enterContext(own_etcd.serving(self.folder))
        first, api, kubeconfig = self.server(cluster, name="first")
        shutil.copytree(self.folder / "first/pki", self.folder / "second/pki")  # the same authorities and keys
        api.create(MAPS, config_map("kept"))
        token = api.create("/api/v1/namespaces/default/serviceaccounts/default/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})["status"]["token"]
        later = self.folder / "second.kubeconfig"
        second = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "second", "--port", "0", "--write-kubeconfig", later, cluster.flag))
        wait_for("the second to stand by", lambda: "this one stands by" in second.log.read_text())
        self.assertFalse(later.exists())
        code, _, err = run("apiserver", "--data-dir", self.folder / "second", "--port", "0", cluster.flag)
        self.assertEqual(code, 1)
        self.assertIn("is in use by process", err)
        self.assertEqual(second.stop(5), 0)  # one that stands by holds nothing
        second = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "second", "--port", "0", "--write-kubeconfig", later, cluster.flag))
        wait_for("the second to stand by again", lambda: "this one stands by" in second.log.read_text())
        first.child.send_signal(signal.SIGSTOP)  # to others it is gone
        taken_over = serving(second, later, 40)
        self.assertIsNotNone(taken_over.find(f"{MAPS}/kept"))
        taken_over.create(MAPS, config_map("more"))
        review = taken_over.create("/apis/authentication.k8s.io/v1/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
        self.assertEqual(review["status"]["user"]["username"], "system:serviceaccount:default:default")
        first.child.send_signal(signal.SIGCONT)
        self.assertEqual(first.child.wait(20), 1)
        self.assertRegex(first.log.read_text(), "(has taken the lease|has not taken the lease of this server in time); this one ends")
        self.assertEqual(second.stop(), 0)
        third, _, _ = self.server(cluster, name="first")  # at once: the lease was given back
        self.assertNotIn("stands by", third.log.read_text())

    def load(self, kubeconfig, since):
        recorder = Recorder(kubeconfig, since)
        writers = [Writer(kubeconfig, f"counter-{number}") for number in range(6)]
        for each in (recorder, *writers):
            each.start()
        return recorder, writers

    def settle(self, recorder, writers, api):
        """Every acknowledged write is there and has been told once, in order; no counter was counted twice."""
        for each in writers:
            each.ended = True
        for each in writers:
            each.join(60)
            self.assertFalse(each.is_alive(), "a write has no end")
            self.assertEqual(each.wrong, [])
        last = int(api.get(MAPS)["metadata"]["resourceVersion"])
        marker = api.create(MAPS, config_map("marker"))
        wait_for("the last event", lambda: any(name == "marker" for _, _, name, _ in recorder.events))
        recorder.ended = True
        self.assertEqual(recorder.lists, 0, "history was lost")
        versions = [version for version, *_ in recorder.events]
        self.assertEqual(versions, sorted(set(versions)), "an event came twice or late")
        self.assertGreaterEqual(int(marker["metadata"]["resourceVersion"]), last)
        acknowledged = 0
        for writer in writers:
            told = [(version, int(count)) for version, _, name, count in recorder.events if name == writer.name]
            self.assertEqual([count for _, count in told], list(range(len(told))), f"{writer.name} has a gap")
            self.assertLessEqual(set(writer.acknowledged), set(told), "an acknowledged write is not in the history")
            acknowledged += len(writer.acknowledged)
        return acknowledged

    def test_a_member_that_is_killed_again_and_again(self):
        cluster = self.enterContext(own_etcd.serving(self.folder))
        _, api, kubeconfig = self.server(cluster)
        recorder, writers = self.load(kubeconfig, api.get(MAPS)["metadata"]["resourceVersion"])
        for kill in range(4):
            for each in writers:
                wait_for("writes", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before, 60)
            cluster.members[0].kill()
            cluster.members[0].start()
        for each in writers:
            wait_for("writes", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before, 60)
        print(f"one member killed 4 times: {self.settle(recorder, writers, api)} writes acknowledged, {sum(each.refused for each in writers)} refused, all told once", flush=True)

    def test_three_members_of_which_one_is_killed_or_stopped(self):
        cluster = self.enterContext(own_etcd.serving(self.folder, 3))
        _, api, kubeconfig = self.server(cluster)
        recorder, writers = self.load(kubeconfig, api.get(MAPS)["metadata"]["resourceVersion"])
        for number, how in ((0, signal.SIGKILL), (1, signal.SIGSTOP), (2, signal.SIGKILL)):
            for each in writers:
                wait_for("writes", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before, 60)
            member = cluster.members[number]
            member.kill(how)
            for each in writers:  # the others go on
                wait_for("writes without it", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before + 5, 60)
            if how == signal.SIGSTOP:
                member.kill(signal.SIGCONT)
            else:
                member.start()
        print(f"each of three members away once: {self.settle(recorder, writers, api)} writes acknowledged, {sum(each.refused for each in writers)} refused, all told once", flush=True)

    def test_history_that_was_compacted_meanwhile(self):
        cluster = self.enterContext(own_etcd.serving(self.folder))
        gateway = Gateway(cluster.members[0])
        way = Way(cluster.members[0])
        self.addCleanup(way.close)
        process, api, kubeconfig = self.server(cluster, flag=f"--etcd-servers={way.url}")
        kubectl = Kubectl(kubeconfig)
        for name in ("changed", "removed", "same"):
            kubectl("create", "configmap", name, "--from-literal=n=0")
        recorder = Recorder(kubeconfig, api.get(MAPS)["metadata"]["resourceVersion"])
        recorder.start()
        way.cut()
        document = json.loads(gateway.value("/registry/configmaps/default/changed")[0])
        document["data"]["n"] = "1"
        gateway.put("/registry/configmaps/default/changed", json.dumps(document))
        gateway.call("kv/deleterange", key="/registry/configmaps/default/removed")
        document["metadata"]["name"] = "added"
        gateway.put("/registry/configmaps/default/added", json.dumps(document))
        gateway.compact(gateway.revision())
        way.open = True
        def present():
            try:
                return {name: data.get("n") for name, data in own_maps(api).items()}
            except ApiError:
                return None
        wait_for("the present", lambda: present() == {"added": "1", "changed": "1", "same": "0"}, 60)
        self.assertIn("its present state is read", process.log.read_text())
        wait_for("the client to list anew", lambda: recorder.lists == 1)
        api.create(MAPS, config_map("after"))
        wait_for("its watch", lambda: any(name == "after" for _, _, name, _ in recorder.events))
        recorder.ended = True
        self.assertEqual(api.get("/readyz"), "ok")

    def test_a_full_database(self):
        cluster = self.enterContext(own_etcd.serving(self.folder, 1, "--quota-backend-bytes=2097152"))
        _, api, kubeconfig = self.server(cluster)
        refused = None
        for number in range(100):
            try:
                api.create(MAPS, config_map(f"large-{number}", x="x" * 100_000))
            except ApiError as error:
                refused = error
                break
        self.assertEqual(refused.code, 503)
        self.assertIn("database space exceeded", str(refused))
        with self.assertRaises(ApiError) as unready:
            api.get("/readyz/store-writes")
        self.assertIn("etcd is out of space", str(unready.exception.status))
        self.assertEqual(api.get("/livez"), "ok")
        api.delete(f"{MAPS}/large-0")
        self.assertIsNone(api.find(f"{MAPS}/large-0"))

    def test_no_etcd_at_all(self):
        kubeconfig = self.folder / "none"
        port = own_etcd.free_ports(1)[0]
        code, _, err = run("apiserver", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig", kubeconfig, f"--etcd-servers=http://127.0.0.1:{port}", timeout=60)
        self.assertEqual(code, 1)
        self.assertRegex(err, "(?m)^spillway: etcd: .*connect")
        self.assertFalse(kubeconfig.exists())

    def test_bad_flags(self):
        for flags, words in (
                (["--etcd-servers=127.0.0.1:2379"], "'127.0.0.1:2379' is no etcd server; expected http://HOST:PORT or https://HOST:PORT"),
                (["--etcd-servers=http://10.0.0.1:2379"], "use https or, where the network is trusted, --etcd-insecure"),
                (["--etcd-servers=http://127.0.0.1:2379", "--etcd-prefix=registry"], "must begin with a slash"),
                (["--etcd-certfile=/dev/null"], "--etcd-keyfile"),
                (["--etcd-cafile=/no/such/file"], "/no/such/file"),
                (["--etcd-server=x"], "--etcd-servers")):
            code, _, err = run("apiserver", "--data-dir", self.folder / "data", "--port", "0", *flags)
            self.assertNotEqual(code, 0, flags)
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()
