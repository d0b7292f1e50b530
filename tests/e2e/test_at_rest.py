"""Values at rest in an etcd: in protobuf as kube-apiserver writes it, encrypted, from the future, hostile."""
import base64
import calendar
import json
import shutil
import subprocess
import time
import unittest
import urllib.request

import own_etcd
from counting import ROOT_CA
from harness import ApiError, Kubectl, needs, PATIENCE, run, running, serving, wait_for, workspace
from test_etcd import Gateway

MAPS = "/api/v1/namespaces/default/configmaps"
KEYS = "/registry/configmaps/default/"
# Keys that live for ten seconds share a lease that was granted less than LEASE_AGE_MAX before; three writes may take
# longer than SHARED, and are then tried again.
SHARED, LEASE_AGE_MAX, TRIES = 0.8, 1.1, 50  # seconds, seconds, number


def varint(number):
    out = b""
    while number >= 0x80:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def field(number, value):
    """Encodes a field of a message: bytes, text or a number that is not negative."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def moment(text):
    return field(1, calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))) + field(2, 0)


def managed(entry):
    fields = json.dumps(entry["fieldsV1"], separators=(",", ":"), sort_keys=True)
    return (field(1, entry["manager"]) + field(2, entry["operation"]) + field(3, entry["apiVersion"])
            + field(4, moment(entry["time"]))
            + field(6, entry["fieldsType"]) + field(7, field(1, fields)) + field(8, entry.get("subresource", "")))


def config_map(metadata, data, more=b""):
    """A v1 ConfigMap as kube-apiserver stores it: numbers ascending, what is no pointer written even when it is
    empty.
    """
    meta = field(1, metadata["name"]) + field(2, "") + field(3,
                                                             metadata["namespace"]) + field(4, "") + field(
                                                                 5, metadata["uid"]) + field(6, "") + field(7, 0)
    meta += field(8, moment(metadata["creationTimestamp"]))
    for key, value in sorted(metadata.get("labels", {}).items()):
        meta += field(11, field(1, key) + field(2, value))
    for entry in metadata.get("managedFields", []):
        meta += field(17, managed(entry))
    raw = field(1, meta)
    for key, value in sorted(data.items()):
        raw += field(2, field(1, key) + field(2, value))
    return b"k8s\0" + field(1, field(1, "v1") + field(2, "ConfigMap")) + field(2,
                                                                               raw + more) + field(3, "") + field(4, "")


def metadata(name):
    return {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"made": "by-hand"}}


def kubectl_says(kubeconfig, *arguments):
    """With what is on standard error: warnings."""
    return subprocess.run(["kubectl", f"--kubeconfig={kubeconfig}", *arguments], capture_output=True, text=True,
                          timeout=PATIENCE, check=True)


class Bytes(Gateway):
    """Another client of etcd that reads and writes any bytes."""

    def put_bytes(self, key, value):
        body = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/v3/kv/put", json.dumps(body).encode()),
                                    timeout=PATIENCE) as answer:
            return int(json.load(answer)["header"]["revision"])

    def answers(self):
        try:
            return self.revision() > 0
        except OSError:
            return False

    def bytes_of(self, key):
        found = self.call("kv/range", key=key).get("kvs", [])
        return (base64.b64decode(found[0]["value"]), int(found[0]["mod_revision"])) if found else (None, 0)


@needs(own_etcd.PROGRAM is not None and shutil.which("kubectl"), own_etcd.NEEDS)
class AtRest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.cluster = self.enterContext(own_etcd.serving(self.folder))
        self.etcd = Bytes(self.cluster.members[0])
        wait_for("etcd", self.etcd.answers)

    def server(self, *more, name="data"):
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        process = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / name, "--port", "0",
                                            "--write-kubeconfig", kubeconfig, self.cluster.flag, *more))
        return process, serving(process, kubeconfig), kubeconfig

    def test_what_another_server_wrote_in_protobuf_is_served_and_written_back_byte_by_byte(self):
        for number in range(5):
            name = f"m{number}"
            self.etcd.put_bytes(KEYS + name, config_map(metadata(name), {"n": str(number), "empty": ""}))
        process, api, kubeconfig = self.server()
        self.assertIn("application/vnd.kubernetes.protobuf", process.log.read_text())
        kubectl = Kubectl(kubeconfig)
        found = kubectl.get("configmap", "m3")
        self.assertEqual((found["data"], found["metadata"]["uid"], found["metadata"]["labels"]),
                         ({"empty": "", "n": "3"}, "uid-of-m3", {"made": "by-hand"}))
        # A change that changes nothing writes nothing.
        before, revision = self.etcd.bytes_of(KEYS + "m3")
        kubectl("patch", "configmap", "m3", "--type=merge", "-p", '{"data":{"n":"3"}}')
        self.assertEqual(self.etcd.bytes_of(KEYS + "m3"), (before, revision))
        # A patch with a change leaves the bytes that kube-apiserver would have written.
        kubectl("patch", "configmap", "m3", "--type=merge", "-p", '{"data":{"n":"4"}}')
        served = api.get(f"{MAPS}/m3")
        after, revision = self.etcd.bytes_of(KEYS + "m3")
        self.assertEqual(after,
                         config_map({**metadata("m3"), "managedFields": served["metadata"].get("managedFields", [])},
                                    {"empty": "", "n": "4"}))
        self.assertEqual(served["metadata"]["resourceVersion"], str(revision))
        # A client that read the version before gets a conflict.
        with self.assertRaises(ApiError) as refused:
            api.request("PUT", f"{MAPS}/m3", found)
        self.assertEqual(refused.exception.code, 409)
        # Objects that the server makes are protobuf as well, until it is configured otherwise.
        kubectl("create", "configmap", "new", "--from-literal=a=b")
        self.assertTrue(self.etcd.bytes_of(KEYS + "new")[0].startswith(b"k8s\0"))
        as_protobuf = api.get(f"{MAPS}/new")
        process.stop()
        _, api, kubeconfig = self.server("--storage-media-type=application/json")
        self.assertEqual(api.get(f"{MAPS}/new"), as_protobuf)
        Kubectl(kubeconfig)("label", "configmap", "new", "x=y")
        self.assertEqual(json.loads(self.etcd.bytes_of(KEYS + "new")[0])["data"], {"a": "b"})

    def test_a_value_that_cannot_be_read_stays_as_it_is(self):
        good = config_map(metadata("good"), {"a": "b"})
        bad = {"encrypted": b"k8s:enc:aescbc:v1:key1:\x00\x01", "cbor": b"\xd9\xd9\xf7\xa0",
               "cut": config_map(metadata("cut"), {"a": "b"})[:40],
               "deep": b"k8s\0" + field(1, field(1, "v1") + field(2, "ConfigMap")) + field(2, b"\x9b\x06" * 600_000),
               "json": b'{"a":' * 200_000}
        self.etcd.put_bytes(KEYS + "good", good)
        for name, value in bad.items():
            self.etcd.put_bytes(KEYS + name, value)
        strange = {"/registry/storagemigration.k8s.io/storageversionmigrations/one": b"k8s\0\xff",
                   "/registry/masterleases/10.0.0.1": b"\x00"}
        for key, value in strange.items():
            self.etcd.put_bytes(key, value)
        process, api, kubeconfig = self.server()
        wait_for("the map that the server makes", lambda: api.find(f"{MAPS}/{ROOT_CA}"))  # some time after its start
        listed = kubectl_says(kubeconfig, "get", "configmaps", "-o", "name")
        self.assertEqual(sorted(listed.stdout.split()), ["configmap/good", f"configmap/{ROOT_CA}"])
        self.assertIn("Warning: the list lacks objects that cannot be decoded", listed.stderr)
        log = process.log.read_text()
        for name, value in bad.items():
            for verb, body in (("GET", None),
                               ("PUT", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
                               ("DELETE", None)):
                with self.assertRaises(ApiError) as refused:
                    api.request(verb, f"{MAPS}/{name}", body)
                self.assertEqual(refused.exception.code, 500)
                self.assertIn(f"StorageError: corrupt object, Code: 7, Key: {KEYS}{name}", str(refused.exception))
            self.assertEqual(self.etcd.bytes_of(KEYS + name)[0], value)
            self.assertEqual(log.count(f"key={KEYS}{name} "), 1)
        for key, value in strange.items():
            self.assertEqual(self.etcd.bytes_of(key)[0], value)
        self.assertIn(f"spillway_storage_unreadable_values {len(bad)}", Kubectl(kubeconfig)("get", "--raw", "/metrics"))
        self.etcd.put_bytes(KEYS + "cut", config_map(metadata("cut"), {"a": "b"}))  # another client has repaired it
        self.assertEqual(api.get(f"{MAPS}/cut")["data"], {"a": "b"})

    def test_fields_of_a_newer_version_are_not_lost(self):
        self.etcd.put_bytes(KEYS + "new", config_map(metadata("new"), {"a": "b"}, more=field(77, "of the future")))
        before = self.etcd.bytes_of(KEYS + "new")
        process, api, kubeconfig = self.server()
        seen = kubectl_says(kubeconfig, "get", "configmap", "new", "-o", "name")
        self.assertIn("field 77 of core/v1.ConfigMap", seen.stderr)
        with self.assertRaises(ApiError) as refused:
            api.request("PATCH", f"{MAPS}/new", {"data": {"a": "c"}}, "application/merge-patch+json")
        self.assertEqual(refused.exception.code, 500)
        self.assertIn("was stored by a newer version", str(refused.exception))
        self.assertEqual(self.etcd.bytes_of(KEYS + "new"), before)
        process.stop()
        _, api, _ = self.server("--storage-drop-unknown-fields")
        api.request("PATCH", f"{MAPS}/new", {"data": {"a": "c"}}, "application/merge-patch+json")
        self.assertNotIn(b"of the future", self.etcd.bytes_of(KEYS + "new")[0])

    def test_events_go_by_a_lease(self):
        process, api, kubeconfig = self.server("--event-ttl=10s")
        events = "/api/v1/namespaces/default/events"
        version = api.get(events)["metadata"]["resourceVersion"]
        for number in range(TRIES):
            names, began = [f"{letter}{number}" for letter in "abc"], time.monotonic()
            for name in names:
                api.create(events, {"metadata": {"name": name},
                                    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}})
            ended = time.monotonic()
            if ended - began < SHARED:
                break
            wait_for("the lease to be too old for others", lambda since=ended: time.monotonic() - since > LEASE_AGE_MAX)
        connection = api.connect()
        self.addCleanup(connection.close)
        connection.request("GET", f"{events}?watch=1&resourceVersion={version}")
        answer = connection.getresponse()
        told = []
        while len(told) < 6:  # three come, and go
            event = json.loads(answer.readline())
            if event["object"]["metadata"]["name"] in names:
                told.append(event)
        self.assertEqual([each["type"] for each in told], ["ADDED"] * 3 + ["DELETED"] * 3)
        self.assertEqual(sorted(each["object"]["metadata"]["name"] for each in told[3:]), names)
        self.assertEqual(len({each["object"]["metadata"]["resourceVersion"] for each in told[3:]}), 1)
        self.assertEqual(self.etcd.bytes_of(f"/registry/events/default/{names[0]}"), (None, 0))
        process.stop()

    def test_an_etcd_that_asks_for_passwords(self):
        def ask(path, **body):
            urllib.request.urlopen(urllib.request.Request(f"{self.etcd.url}/v3/auth/{path}", json.dumps(body).encode()),
                                   timeout=PATIENCE).close()
        ask("user/add", name="root", password="secret")
        ask("user/grant", user="root", role="root")
        ask("enable")
        secret = self.folder / "password"
        secret.write_text("wrong\n")
        user = ("--etcd-username=root", f"--etcd-password-file={secret}")
        for more, word in (((), "user name is empty"), (user, "authentication failed")):
            code, _, err = run("apiserver", "--data-dir", self.folder / "refused", "--port", "0", self.cluster.flag,
                               *more)
            self.assertEqual(code, 1)
            self.assertIn(word, err)
        secret.write_text("secret\n")
        _, api, _ = self.server(*user)
        api.create(MAPS, {"metadata": {"name": "a"}})
        member = self.cluster.members[0]
        member.kill()
        member.start()  # which knows no token of before
        def written():
            try:
                return api.request("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, "application/merge-patch+json")
            except ApiError as error:
                self.assertIn(error.code, (500, 503, 504))
        version = wait_for("a write", written)["metadata"]["resourceVersion"]
        def read():
            try:
                return api.get(f"{MAPS}/a")
            except ApiError as error:
                self.assertIn(error.code, (500, 503, 504))
        self.assertEqual(wait_for("a read", read)["metadata"]["resourceVersion"], version)

    def test_wrong_flags_are_one_line(self):
        for flags in (("--etcd-servers=localhost:2379",), ("--etcd-servers=https://a",),
                      (self.cluster.flag, "--etcd-cafile=/none"), (self.cluster.flag, "--etcd-keyfile=/none"),
                      (self.cluster.flag, "--etcd-username=root"), ("--token-auth-file=/none",),
                      ("--storage-media-type=text/yaml",), ("--event-ttl=0s",)):
            code, _, err = run("apiserver", "--data-dir", self.folder / "wrong", "--port", "0", *flags)
            self.assertEqual((code, err.strip().count("\n")), (2, 0), err)


if __name__ == "__main__":
    unittest.main()
