"""Volumes of pods, against a real `spillway up`."""
import base64
import contextlib
import http.client
import json
import pathlib
import re
import ssl
import unittest
import urllib.parse

import own_containerd
from harness import can_write_cgroups, needs, one_node, PATIENCE, pod, wait_for, workspace
from test_confined import can_confine

CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"
# life of a token: renewed after four fifths of it, and still good when a busy machine comes to use it
TOKEN_SECONDS = 40


def mounted(document, volumes, mounts, container=0):
    document["spec"]["volumes"] = volumes
    document["spec"]["containers"][container]["volumeMounts"] = mounts
    return document


def mounts_of_node():
    return pathlib.Path("/proc/self/mountinfo").read_text()


def processes_of(uid):
    """Processes in a cgroup of that pod."""
    found = set()
    for place in pathlib.Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            if uid in place.read_text():
                found.add(place.parent.name)
    return found


@needs(can_write_cgroups() and can_confine(), "needs root, a writable cgroup hierarchy and namespaces")
class Volumes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.process = cls.enterClassContext(one_node(cls.folder, "--sync-frequency", "1s",
                                                     "--service-account-max-token-expiration", f"{TOKEN_SECONDS}s"))
        cls.api = cls.process.api
        cls.count = 0

    def create(self, plural, document):
        self.api.create(f"{CORE}/{plural}", document)
        path = f"{CORE}/{plural}/{document['metadata']['name']}"
        self.addCleanup(lambda: self.api.find(path)
                        and self.api.delete(path, **({"grace": 0} if plural == "pods" else {})))
        return path

    def config_map(self, name, **data):
        return self.create("configmaps",
                           {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})

    def secret(self, name, **data):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        return self.create("secrets",
                           {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded})

    def log(self, name, container="main"):
        try:
            return self.api.get(f"{PODS}/{name}/log?container={container}")
        except Exception:  # not started yet
            return ""

    def place(self, script, volumes, mounts, **spec):
        type(self).count += 1
        name = f"v{self.count}"
        self.create("pods", mounted(pod(name, ["sh", "-c", script], **spec), volumes, mounts))
        return name

    def said_by(self, script, volumes=(), mounts=(), **spec):
        """The pod that has run this script to its end."""
        name = self.place(script, list(volumes), list(mounts), restartPolicy="Never", **spec)
        wait_for(f"the end of {script}: {self.events(name)}",
                 lambda: self.api.pod_phases().get(name) in ("Succeeded", "Failed"))
        return name

    def said(self, script, volumes, mounts, **spec):
        """The output of a container that runs this script to its end."""
        return self.log(self.said_by(script, volumes, mounts, **spec))

    def events(self, name, reason=None):
        items = self.api.get(f"{CORE}/events")["items"]
        return [event["message"] for event in items if event["involvedObject"]["name"] == name
                and reason in (None, event["reason"])]

    def test_containers_share_an_empty_directory(self):
        document = pod("shared", ["sh", "-c", "echo from-first > /data/x; exec sleep 1000"])
        document["spec"]["containers"].append(
            {
                "name": "second",
                "image": "i",
                "command": [
                    "sh",
                    "-c",
                    "until cat /other/x; do sleep 0.05; done; stat -c %a:%u /other; exec sleep 1000",
                ],
                "volumeMounts": [{"name": "d", "mountPath": "/other", "readOnly": True}],
            }
        )
        self.create("pods", mounted(document, [{"name": "d", "emptyDir": {}}], [{"name": "d", "mountPath": "/data"}]))
        wait_for("the file", lambda: "from-first\n777:0" in self.log("shared", "second"))
        found = list(self.folder.rglob("default_shared_*/_volumes"))
        self.assertTrue(found)
        self.api.delete(f"{PODS}/shared", grace=0)
        wait_for("the volume to be gone", lambda: not any(path.exists() for path in found))

    def test_every_pod_can_speak_to_the_api_server(self):
        place = "/var/run/secrets/kubernetes.io/serviceaccount"
        name = self.said_by(
            f"cat {place}/token; echo; cat {place}/namespace; echo; cat {place}/ca.crt; (echo no > {place}/token)"
            " 2>/dev/null || id -u"
        )
        token, namespace, *authority = self.log(name).splitlines()
        self.assertEqual((namespace, authority[0], authority[-1]), ("default", "-----BEGIN CERTIFICATE-----", "0"))
        context = ssl.create_default_context(cadata="\n".join(authority[:-1]))
        server = urllib.parse.urlsplit(re.search(r"server: (\S+)", (self.folder / "kubeconfig").read_text()).group(1))
        client = http.client.HTTPSConnection(server.hostname, server.port, timeout=PATIENCE, context=context)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(review), headers)
        user = json.load(client.getresponse())["status"]["userInfo"]
        client.close()
        self.assertEqual(user["username"], "system:serviceaccount:default:default")
        self.assertEqual(user["extra"]["authentication.kubernetes.io/pod-name"], [name])

    def test_services_are_in_the_environment(self):
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "my-db"},
                   "spec": {"ports": [{"name": "sql", "port": 5432}]}}
        address = self.api.get(self.create("services", service))["spec"]["clusterIP"]
        # The agent learns of the Service by its watch: a pod that starts before has no variables, as everywhere.
        wait_for("the variables", lambda: f"MY_DB_SERVICE_HOST={address}\n" in self.said("env", [], []))
        text = self.said("env", [], [])
        for wanted in (f"MY_DB_PORT=tcp://{address}:5432", "MY_DB_SERVICE_PORT_SQL=5432",
                       f"MY_DB_PORT_5432_TCP_ADDR={address}"):
            self.assertIn(wanted, text.splitlines())
        self.assertNotIn("MY_DB", self.said("env", [], [], enableServiceLinks=False))

    def test_memory_is_a_file_system_of_its_size(self):
        text = self.said(
            (
                "stat -f -c %T /m; df -k /m | tail -1 | awk '{print $2}'; dd if=/dev/zero of=/m/x bs=1M count=20 2>&1 |"
                " grep -c 'No space'; id -u"
            ),
            [{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
            [{"name": "m", "mountPath": "/m"}],
        )
        self.assertEqual(text.split()[:4], ["tmpfs", "8192", "1", "0"])
        if not own_containerd.is_wanted():  # a container runtime mounts what the machine has mounted
            self.assertNotIn("kubernetes.io~empty-dir", mounts_of_node(), "the machine does not see it")

    def test_files_of_objects(self):
        self.config_map("settings", **{"color": "red", "size": "big"})
        self.secret("password", token="s3cret")
        volumes = [{"name": "c", "configMap": {"name": "settings"}},
                   {"name": "s", "secret": {"secretName": "password", "defaultMode": 0o400}},
                   {"name": "d",
                    "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                                                           {"path": "cpu/limit",
                                                            "resourceFieldRef": {"containerName": "main",
                                                                                 "resource": "limits.memory"}}]}},
                   {"name": "p",
                    "projected": {"sources": [
                        {"configMap": {"name": "settings", "items": [{"key": "color", "path": "a/b", "mode": 0o440}]}},
                                                           {"secret": {"name": "password"}}]}},
                   {"name": "o", "configMap": {"name": "nothing", "optional": True}}]
        mounts = [{"name": name, "mountPath": f"/{name}"}
                  for name in "csdp"] + [{"name": "o", "mountPath": "/etc/not-there/o"}]
        text = self.said(
            (
                "cat /c/color; echo; cat /s/token; echo; stat -L -c %a /s/token /c/size /p/a/b; cat /p/a/b /p/token;"
                " echo; ls /etc/not-there/o; ls /etc/hosts;readlink /c/color; touch /c/x 2>/dev/null || echo kept; cat"
                " /d/cpu/limit"
            ),
            volumes,
            mounts,
        )
        self.assertEqual(text.splitlines()[:6], ["red", "s3cret", "400", "644", "440", "reds3cret"])
        self.assertEqual(text.splitlines()[6:9], ["/etc/hosts", "..data/color", "kept"])

    def test_changes_are_seen_in_the_pod(self):
        path = self.config_map("live", key="one")
        name = self.place("while sleep 0.1; do cat /c/key /sub; echo; done",
                          [{"name": "c", "configMap": {"name": "live"}}],
                          [{"name": "c", "mountPath": "/c"}, {"name": "c", "mountPath": "/sub", "subPath": "key"}])
        wait_for("the first content", lambda: "oneone" in self.log(name))
        self.api.patch(path, {"data": {"key": "two"}})
        wait_for("the second content", lambda: "twoone" in self.log(name))
        self.assertNotIn("twotwo", self.log(name), "a subPath stays as it was")

    def test_a_pod_waits_for_what_is_missing(self):
        name = self.place("cat /c/key; echo; exec sleep 1000", [{"name": "c", "configMap": {"name": "late"}}],
                          [{"name": "c", "mountPath": "/c"}])
        wait_for("the event",
                 lambda: 'MountVolume.SetUp failed for volume "c" : configmap "late" not found' in self.events(
                     name, "FailedMount"))
        state = wait_for("its state",
                         lambda: (self.api.get(f"{PODS}/{name}")["status"].get("containerStatuses")
                                  or [{}])[0].get("state"))
        self.assertEqual(state["waiting"]["reason"], "ContainerCreating")
        self.config_map("late", key="came")
        wait_for("its start", lambda: "came" in self.log(name))

    def test_a_kind_that_is_not_there(self):
        name = self.place("true", [{"name": "n", "nfs": {"server": "10.0.0.1", "path": "/x"}}],
                          [{"name": "n", "mountPath": "/n"}])
        wait_for(
            "the event",
            lambda: 'MountVolume.SetUp failed for volume "n" : the process runtime has no volumes of type nfs'
            in self.events(name, "FailedMount"),
        )

    def test_a_token_of_the_service_account(self):
        sources = [{"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}}]
        text = self.said("cut -d. -f2 /t/token; stat -L -c %a:%u:%g /t/token",
                         [{"name": "t", "projected": {"sources": sources}}], [{"name": "t", "mountPath": "/t"}],
                         securityContext={"runAsUser": 1000, "fsGroup": 2000})
        claims, stat = text.splitlines()
        decoded = base64.urlsafe_b64decode(claims + "==").decode()
        self.assertIn('"vault"', decoded)
        self.assertIn("system:serviceaccount:default:default", decoded)
        self.assertEqual(stat, "640:1000:2000")

    def test_a_token_is_renewed_in_the_pod(self):
        """The container reads one file until there is another token in it; both identify the pod, and both were
        accepted when they were read.
        """
        sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}]
        name = self.place(
            "was=; while sleep 0.2; do now=$(cat /t/token); [ \"$now\" = \"$was\" ] || echo $now; was=$now; done",
                          [{"name": "t", "projected": {"sources": sources}}], [{"name": "t", "mountPath": "/t"}])
        first, second = wait_for("the second token", lambda: len(found := self.log(name).split()) > 1 and found[:2])
        claims = [json.loads(base64.urlsafe_b64decode(each.split(".")[1] + "==")) for each in (first, second)]
        self.assertEqual([each["exp"] - each["iat"] for each in claims], [TOKEN_SECONDS, TOKEN_SECONDS])
        self.assertTrue(claims[0]["iat"] + 5 < claims[1]["iat"] <= claims[0]["exp"], claims)
        self.assertEqual([each["sub"] for each in claims], ["system:serviceaccount:default:default"] * 2)
        review = self.api.create("/apis/authentication.k8s.io/v1/tokenreviews",
                                 {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                                  "spec": {"token": second}})
        self.assertTrue(review["status"]["authenticated"], review)
        self.assertEqual(review["status"]["user"]["extra"]["authentication.kubernetes.io/pod-name"], [name])

    def test_fs_group(self):
        text = self.said("stat -c %a:%g /d; touch /d/x; stat -c %g /d/x", [{"name": "d", "emptyDir": {}}],
                         [{"name": "d", "mountPath": "/d"}],
                         securityContext={"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000})
        self.assertEqual(text.split(), ["2777:2000", "2000"])

    def test_sub_paths_and_expressions(self):
        text = self.said("echo x > /a/f; ls -d /b/*/*; cat /b/$NAME/deep/f", [{"name": "d", "emptyDir": {}}],
                         [{"name": "d", "mountPath": "/a", "subPathExpr": "mine/deep"},
                          {"name": "d", "mountPath": "/b"}])
        self.assertIn("/b/mine/deep", text)

    def test_paths_of_the_machine(self):
        place = self.folder / "shared"
        place.mkdir()
        self.folder.chmod(0o755)
        place.chmod(0o777)
        (place / "given").write_text("by the machine\n")
        text = self.said(
            "cat /h/given; echo by the pod > /h/made; touch /r/x 2>/dev/null || echo kept; stat -c %F /dir",
                         [{"name": "h", "hostPath": {"path": str(place), "type": "Directory"}},
                          {"name": "dir", "hostPath": {"path": str(place / "new"), "type": "DirectoryOrCreate"}}],
                         [{"name": "h", "mountPath": "/h"}, {"name": "h", "mountPath": "/r", "readOnly": True},
                          {"name": "dir", "mountPath": "/dir"}])
        self.assertEqual(text, "by the machine\nkept\ndirectory\n")
        self.assertEqual((place / "made").read_text(), "by the pod\n")
        name = self.place("true", [{"name": "h", "hostPath": {"path": str(place), "type": "File"}}],
                          [{"name": "h", "mountPath": "/h"}])
        wait_for("the event", lambda: any("hostPath type check failed" in each
                                          for each in self.events(name, "FailedMount")))

    def test_the_pod_knows_its_name(self):
        text = self.said("cat /etc/hosts; getent hosts $(hostname)", [], [],
                         hostAliases=[{"ip": "1.2.3.4", "hostnames": ["far.example"]}])
        self.assertRegex(text, r"(?m)^# Kubernetes-managed hosts file\.$")
        self.assertRegex(text, r"(?m)^\S+\tv\d+$")
        self.assertIn("1.2.3.4\tfar.example", text)

    def test_a_volume_over_its_limit(self):
        name = self.place("dd if=/dev/zero of=/d/x bs=1M count=20 2>/dev/null; exec sleep 1000",
                          [{"name": "d", "emptyDir": {"sizeLimit": "5Mi"}}],
                          [{"name": "d", "mountPath": "/d"}])
        status = wait_for("the eviction",
                          lambda: (found := self.api.get(f"{PODS}/{name}")["status"]).get("reason") == "Evicted"
                          and found)
        self.assertEqual(status["message"], 'Usage of EmptyDir volume "d" exceeds the limit "5Mi". ')

    @unittest.skipIf(own_containerd.is_wanted(), "its pods live on")
    def test_a_crash_ends_no_pod_and_a_stop_after_it_leaves_nothing(self):
        with workspace() as folder:
            with one_node(folder) as process:
                process.api.create(PODS,
                                   mounted(pod("p", ["sleep", "1000"]),
                                           [{"name": "m", "emptyDir": {"medium": "Memory"}},
                                            {"name": "d", "emptyDir": {}}],
                                                 [{"name": "m", "mountPath": "/m"}, {"name": "d", "mountPath": "/d"}]))
                wait_for("the pod", lambda: process.api.pod_phases().get("p") == "Running")
                uid = process.api.get(f"{PODS}/p")["metadata"]["uid"]
                process.child.kill()
                process.child.wait()
            self.assertEqual([line for line in mounts_of_node().splitlines()
                              if re.search(rf"{re.escape(str(folder))}\S*_volumes", line)], [])
            left = processes_of(uid)
            self.assertTrue(left)
            with one_node(folder) as process:  # takes the pod over, and ends it with itself
                wait_for("the pod", lambda: "pods of an earlier process found" in process.log.read_text())
                self.assertEqual(processes_of(uid), left)
            wait_for("its processes to end", lambda: not processes_of(uid))
            self.assertEqual([line for line in mounts_of_node().splitlines()
                              if re.search(rf"{re.escape(str(folder))}\S*_volumes", line)], [])


if __name__ == "__main__":
    unittest.main()
