"""Objects in an etcd: what kubectl sees, what others write, members that are killed and stopped, lost history, a full
database.
"""
import base64
import json
import shutil
import signal
import unittest

import own_etcd
from counting import MAPS, Recorder, begin, config_map, own_maps, settle
from etcd_gateway import Gateway, coded
from harness import ApiError, Kubectl, needs, run, running, serving, wait_for, workspace
from way import Way


@needs(own_etcd.PROGRAM is not None and shutil.which("kubectl"), own_etcd.NEEDS)
class Etcd(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())

    def server(self, cluster, *more, name="data", flag=None):
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        process = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / name, "--port", "0",
                                            "--write-kubeconfig", kubeconfig, flag or cluster.flag, *more))
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
        recorder = Recorder([kubeconfig], made["metadata"]["resourceVersion"])
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
            pair.append({"requestPut": {"key": coded(f"/registry/configmaps/default/{name}"),
                                        "value": coded(json.dumps(document))}})
        gateway.call("kv/txn", success=pair)
        wait_for("both", lambda: len(recorder.events) >= 201)
        self.assertEqual([name for _, _, name, _ in recorder.events[199:]], ["left", "right"])
        self.assertEqual(recorder.events[199][0], recorder.events[200][0])
        recorder.ended = True
        # The revision is read before the list: the server writes objects of its own at any time.
        others = gateway.put("/others", "nothing of ours")
        self.assertGreaterEqual(int(api.get(MAPS)["metadata"]["resourceVersion"]), others)
        # An update by a version that another client has overtaken is refused, and by the newest one is not.
        with self.assertRaises(ApiError) as refused:
            api.request("PUT", f"{MAPS}/shared", made)
        self.assertEqual(refused.exception.code, 409)
        api.request("PUT", f"{MAPS}/shared", api.get(f"{MAPS}/shared"))

    def test_a_member_that_is_killed_again_and_again(self):
        cluster = self.enterContext(own_etcd.serving(self.folder))
        _, api, kubeconfig = self.server(cluster)
        recorder, writers = begin([kubeconfig], api.get(MAPS)["metadata"]["resourceVersion"])
        for kill in range(4):
            for each in writers:
                wait_for("writes", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before)
            cluster.members[0].kill()
            cluster.members[0].start()
        for each in writers:
            wait_for("writes", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before)
        print(
            (
                f"one member killed 4 times: {settle(self, recorder, writers, api)} writes acknowledged,"
                f" {sum(each.refused for each in writers)} refused, all told once"
            ),
            flush=True,
        )

    def test_three_members_of_which_one_is_killed_or_stopped(self):
        cluster = self.enterContext(own_etcd.serving(self.folder, 3))
        _, api, kubeconfig = self.server(cluster)
        recorder, writers = begin([kubeconfig], api.get(MAPS)["metadata"]["resourceVersion"])
        for number, how in ((0, signal.SIGKILL), (1, signal.SIGSTOP), (2, signal.SIGKILL)):
            for each in writers:
                wait_for("writes", lambda each=each, before=len(each.acknowledged): len(each.acknowledged) > before)
            member = cluster.members[number]
            member.kill(how)
            for each in writers:  # the others continue
                wait_for("writes without it", lambda each=each,
                         before=len(each.acknowledged): len(each.acknowledged) > before + 5)
            if how == signal.SIGSTOP:
                member.kill(signal.SIGCONT)
            else:
                member.start()
        print(
            (
                f"each of three members away once: {settle(self, recorder, writers, api)} writes acknowledged,"
                f" {sum(each.refused for each in writers)} refused, all told once"
            ),
            flush=True,
        )

    def test_history_that_was_compacted_meanwhile(self):
        cluster = self.enterContext(own_etcd.serving(self.folder))
        gateway = Gateway(cluster.members[0])
        way = Way(cluster.members[0].url)
        self.addCleanup(way.close)
        process, api, kubeconfig = self.server(cluster, flag=f"--etcd-servers={way.url}")
        kubectl = Kubectl(kubeconfig)
        for name in ("changed", "removed", "same"):
            kubectl("create", "configmap", name, "--from-literal=n=0")
        recorder = Recorder([kubeconfig], api.get(MAPS)["metadata"]["resourceVersion"])
        recorder.start()
        wait_for("its watch", lambda: recorder.connections)
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
            except (ApiError, TimeoutError):
                return None
        wait_for("the present", lambda: present() == {"added": "1", "changed": "1", "same": "0"})
        self.assertIn("reading its present state", process.log.read_text())
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
        code, _, err = run("apiserver", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig",
                           kubeconfig, f"--etcd-servers=http://127.0.0.1:{port}")
        self.assertEqual(code, 1)
        self.assertRegex(err, "(?m)^spillway: etcd: .*connect")
        self.assertFalse(kubeconfig.exists())

    def test_bad_flags(self):
        for flags, words in (
                (["--etcd-servers=127.0.0.1:2379"],
                 "--etcd-servers: expected http://HOST:PORT or https://HOST:PORT, got \"127.0.0.1:2379\""),
                (["--etcd-servers=http://10.0.0.1:2379"],
                 "use https or, where the network is trusted, --etcd-insecure"),
                (["--etcd-servers=http://127.0.0.1:2379", "--etcd-prefix=registry"], "must begin with a slash"),
                (["--etcd-certfile=/dev/null"], "--etcd-keyfile"),
                (["--etcd-cafile=/no/such/file"], "/no/such/file"),
                (["--etcd-server=x"], "--etcd-servers")):
            code, _, err = run("apiserver", "--data-dir", self.folder / "data", "--port", "0", *flags)
            self.assertNotEqual(code, 0, flags)
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()
