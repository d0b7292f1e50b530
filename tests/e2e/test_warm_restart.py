"""An agent that is killed, stopped and started again: no container, no Ready and no restart count notices. Beside a
real containerd, and with processes.

test_killed_again_and_again prints what the kills came to. KILLS in the environment says how many; 8 without it.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import socket
import threading
import time
import unittest

import containerd_pods
from harness import (
    PATIENCE,
    Api,
    ApiError,
    Process,
    can_write_cgroups,
    needs,
    node_cgroups,
    pids_in,
    processes_of_pods,
    run,
    running,
    serving,
    wait_for,
    workspace,
)
from test_containers import PODS, Containerd, folders_named, pod
from test_node_server import code_of, Node

KILLS = int(os.environ.get("KILLS", "8"))
SETTINGS = "/api/v1/namespaces/default/configmaps"
STAYS = "trap 'exit 0' TERM; while true; do sleep 1; done"
KINDS = ("containerStatuses", "initContainerStatuses")


class Watched:
    """Collects from a watch of the pods every time that a container which was ready becomes not ready."""

    def __init__(self, kubeconfig):
        self.api = Api(kubeconfig, timeout=None)
        self.falls, self.ready, self.changes = [], set(), 0
        self.response = self.open()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def open(self):
        self.api.connection = self.api.connect()
        headers = {"Authorization": f"Bearer {self.api.token}"} if self.api.token else {}
        self.api.connection.request("GET", f"{PODS}?watch=true", headers=headers)
        return self.api.connection.getresponse()

    def follow(self):
        try:
            for line in self.response:
                self.take(json.loads(line))
        except (OSError, ValueError, AttributeError):
            pass  # the server is gone

    def take(self, event):
        document = event["object"]
        self.changes += event["type"] == "MODIFIED"
        if document["metadata"].get("deletionTimestamp") or document["status"].get("phase") in ("Failed", "Succeeded"):
            return
        for condition in document["status"].get("conditions", []):
            key = (document["metadata"]["uid"], condition["type"])
            if condition["status"] == "True":
                self.ready.add(key)
            elif key in self.ready and condition["type"] != "DisruptionTarget":
                self.falls.append((document["metadata"]["name"], condition))

    def close(self):
        self.api.connection.sock.shutdown(socket.SHUT_RDWR)  # a reader that waits holds what close() needs
        self.thread.join()
        self.api.close()


def own_uid(metadata):
    """The uid of the pod itself, where this is the mirror of a static one."""
    return metadata.get("annotations", {}).get("kubernetes.io/config.mirror", metadata["uid"])


def has_ended(pid):
    """The process may still exist for its parent."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class WarmRestart:
    """Tests of every runtime. A subclass says with which flags the agent starts, which first process a container has,
    and where containers and mounts are found."""

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.arguments = cls.open_runtime()
        cls.kubeconfig = cls.folder / "kubeconfig"
        server = cls.enterClassContext(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port",
                                               "0", "--write-kubeconfig", cls.kubeconfig))
        cls.api = serving(server, cls.kubeconfig)
        cls.manifests = cls.folder / "manifests"
        cls.manifests.mkdir()
        (cls.folder / "kubelet.yaml").write_text(
            json.dumps({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
                                                             "staticPodPath": str(cls.manifests),
                        "syncFrequency": "10s", "evictionPressureTransitionPeriod": "1s"}))
        cls.agent = None
        cls.addClassCleanup(cls.end_all)
        cls.start()

    @classmethod
    def start(cls, wait=True):
        cls.agent = Process(cls.folder, "agent", "--kubeconfig", cls.kubeconfig, "--config",
                            cls.folder / "kubelet.yaml", "--node-name", "n", "--node-ip", "127.0.0.1",
                            "--port", "0", "--node-memory", "256Mi", "--state-dir", cls.folder / "state",
                            *cls.arguments)
        if wait:
            wait_for("the node", lambda: cls.api.nodes_ready() == ["n"])

    @classmethod
    def end_all(cls):
        """An agent leaves its pods: they went first."""
        wait_for("their containers to go", lambda: not cls.left())
        cls.agent.stop()
        remove_cgroups(cls.folder / "state/n")

    @classmethod
    def delete(cls, name, grace=None):
        try:
            cls.api.delete(f"{PODS}/{name}", grace=grace)
        except ApiError as error:
            if error.code != 404:
                raise

    def again(self, kill=True):
        self.agent.kill() if kill else self.assertEqual(self.agent.stop(), 0)
        self.start(wait=False)

    def setUp(self):
        self.addCleanup(self.remove_all)
        wait_for("the node's pressure to pass", lambda: "MemoryPressure" not in self.conditions())

    def conditions(self):
        return [each["type"] for each in self.api.get("/api/v1/nodes/n")["status"]["conditions"]
                if each["status"] == "True"]

    def remove_all(self):
        for file in self.manifests.iterdir():
            file.unlink()
        for name in self.api.pod_phases():
            self.delete(name, 0)
        wait_for("all pods to go", lambda: not self.api.pod_phases())

    def create(self, document):
        self.api.create(PODS, {**document, "spec": {"nodeName": "n", **document["spec"]}})
        return document["metadata"]["name"]

    def wait_ready(self, *names):
        def ready():
            return all(any(each["type"] == "Ready" and each["status"] == "True"
                           for each in self.api.get(f"{PODS}/{name}")["status"].get("conditions", []))
                       for name in names)
        try:
            wait_for(f"{names} to be ready", ready)
        except AssertionError:
            print([self.api.get(f"{PODS}/{name}")["status"] for name in names], self.agent.tail(20), flush=True)
            raise

    def containers(self):
        """By pod and container: id, restarts, first process. On a busy machine the runtime leaves out one that runs,
        for a moment.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            found = {(document["metadata"]["name"], each["name"]): (own_uid(document["metadata"]), each)
                     for document in self.api.get(PODS)["items"] for kind in KINDS
                     for each in document["status"].get(kind, [])}
            pids = self.first_processes()
            told = {key: (each.get("containerID"), each["restartCount"], pids.get(self.process_key(uid, each))) for key,
                    (uid, each) in found.items()}
            missing = [key for key, (_, each) in found.items() if "running" in each.get("state", {})
                       and told[key][2] is None]
            if not missing or time.monotonic() > deadline:
                return told
            time.sleep(0.2)

    def status(self, name):
        found = self.api.find(f"{PODS}/{name}") or {}
        return (found.get("status", {}).get("containerStatuses") or [{}])[0]

    def test_a_kill_disturbs_no_pod(self):
        self.api.create(SETTINGS, {"metadata": {"name": "settings"}, "data": {"colour": "blue"}})
        self.addCleanup(self.api.delete, f"{SETTINGS}/settings")
        probe = {"readinessProbe": {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1,
                                    "timeoutSeconds": 120}}
        names = [
            self.create(pod("probed", f"echo > /tmp/ready; {STAYS}", container=probe)),
            self.create(pod("after-init", STAYS,
                            initContainers=[{"name": "first", "image": containerd_pods.IMAGE,
                                             "command": ["/bin/sh", "-c", "exit 0"]}])),
            self.create(pod("sidecar", STAYS,
                            initContainers=[{"name": "beside", "image": containerd_pods.IMAGE,
                                             "command": ["/bin/sh", "-c", STAYS],
                                                              "restartPolicy": "Always"}])),
            self.create(pod("volumes", STAYS,
                            volumes=[{"name": "settings", "configMap": {"name": "settings"}},
                                     {"name": "memory", "emptyDir": {"medium": "Memory"}},
                                                       {"name": "disk", "emptyDir": {}}],
                            container={"volumeMounts": [{"name": "settings", "mountPath": "/settings"},
                                                        {"name": "memory", "mountPath": "/memory"},
                                                        {"name": "disk", "mountPath": "/disk", "subPath": "deep"}]})),
            self.create(pod("restarted",
                            f"echo x >> /count/n; busybox test $(busybox wc -l < /count/n) -gt 2 || exit 1; {STAYS}",
                            volumes=[{"name": "count", "emptyDir": {}}],
                            container={"volumeMounts": [{"name": "count", "mountPath": "/count"}]})),
        ]
        wait_for("two restarts", lambda: self.status("restarted").get("restartCount") == 2
                 and "running" in self.status("restarted")["state"])
        self.wait_ready(*names)
        (self.manifests / "own.json").write_text(json.dumps(pod("own", f"echo > /tmp/ready; {STAYS}", container=probe)))
        names.append("own-n")
        wait_for("the mirror", lambda: "own-n" in self.api.pod_phases())
        self.wait_ready(*names)
        before, mounts = self.containers(), self.mounts()
        watched = Watched(self.kubeconfig)
        self.addCleanup(watched.close)
        for kill in (True, False, True):
            self.again(kill)
            wait_for("the pods to be taken over",
                     lambda: self.agent.log.read_text().count("syncloop add") >= len(names))
            time.sleep(3)  # until then it reports a change of its mind
            self.assertEqual(self.containers(), before)
            self.assertEqual(self.mounts(), mounts)
        self.assertEqual(watched.falls, [])
        self.assertGreaterEqual(len(watched.ready), len(names), "the watch says nothing")
        print(f"changes of {len(names)} pods in three restarts: {watched.changes}", flush=True)
        self.api.patch(f"{SETTINGS}/settings", {"data": {"colour": "green"}})
        pid = self.containers()[("volumes", "main")][2]
        wait_for("the file to follow", lambda: pathlib.Path(f"/proc/{pid}/root/settings/colour").read_text() == "green")
        (self.manifests / "own.json").unlink()

    def limits_of(self, name):
        """Bytes of memory and microseconds of CPU per period that the container's cgroup allows, and bytes of its
        pod's.
        """
        document = self.api.get(f"{PODS}/{name}")
        ids = {"main", self.status(name).get("containerID", "").split("/")[-1]}
        found = {}
        for top in node_cgroups(self.folder / "state/n"):
            for folder, _, _ in os.walk(top / "n/kubepods"):
                place = pathlib.Path(folder)
                if place.parent.name != f"pod{document['metadata']['uid']}" or place.name not in ids:
                    continue
                for key, at, files in (("memory", place, ("memory.max", "memory.limit_in_bytes")),
                                       ("cpu", place, ("cpu.max", "cpu.cfs_quota_us")),
                                       ("pod", place.parent, ("memory.max", "memory.limit_in_bytes"))):
                    found.update({key: int((at / file).read_text().split()[0]) for file in files
                                  if (at / file).exists()})
        return found.get("memory"), found.get("cpu"), found.get("pod")

    def resize(self, name, cpu, memory):
        resources = {"requests": {"cpu": "50m", "memory": "8Mi"}, "limits": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}
        self.api.patch(f"{PODS}/{name}/resize", {"spec": {"containers": [{"name": "main", "resources": resources}]}},
                       kind="strategic-merge")
        return memory << 20, cpu * 100, memory << 20

    def conditions_of(self, name):
        return [each["type"] for each in self.api.get(f"{PODS}/{name}")["status"]["conditions"]]

    def wait_resized(self, name, limits, message):
        def is_resized():
            told = self.status(name).get("resources", {}).get("limits", {}).get("memory")
            return self.limits_of(name) == limits and told == f"{limits[0] >> 20}Mi" and not any(
                "Resize" in each for each in self.conditions_of(name))
        try:
            wait_for(message, is_resized)
        except AssertionError:
            print(self.limits_of(name), limits, self.api.get(f"{PODS}/{name}")["status"], self.agent.tail(20),
                  flush=True)
            raise

    def test_a_resize_survives_kills(self):
        name = self.create(pod("resized", STAYS,
                               resources={"requests": {"cpu": "50m", "memory": "8Mi"},
                                          "limits": {"cpu": "100m", "memory": "32Mi"}}))
        self.wait_ready(name)
        before = self.containers()
        self.wait_resized(name, self.resize(name, 200, 64), "it to grow")
        self.agent.kill()
        smaller = self.resize(name, 150, 48)
        self.start(wait=False)
        self.wait_resized(name, smaller, "it to shrink with the next agent")
        for cpu, memory in ((300, 72), (120, 40), (250, 80), (180, 56)):
            limits = self.resize(name, cpu, memory)
            self.again()
        self.wait_resized(name, limits, "the last resize")
        status = self.status(name)
        self.assertEqual((status["resources"]["limits"], status["allocatedResources"]),
                         ({"cpu": "180m", "memory": "56Mi"}, {"cpu": "50m", "memory": "8Mi"}))
        self.assertEqual(self.containers(), before, "no restart")

    def test_a_resize_waits_for_room(self):
        room = int(self.api.get("/api/v1/nodes/n")["status"]["allocatable"]["memory"].removesuffix("Mi"))
        names = [self.create(pod(name, STAYS, resources={"requests": {"memory": f"{memory}Mi"}})) for name,
                 memory in (("waiting", 8), ("other", room - 24))]
        self.wait_ready(*names)
        body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"memory": "32Mi"}}}]}}
        self.api.patch(f"{PODS}/waiting/resize", body, kind="strategic-merge")
        wait_for("it to be deferred", lambda: "PodResizePending" in self.conditions_of("waiting"))
        said = run("explain", "pod/waiting", "--kubeconfig", self.kubeconfig)
        self.assertIn("pod default/waiting is not resized yet: Node didn't have enough resource: memory",
                      " ".join(said[1].split()), said)
        self.delete("other", 0)
        wait_for("its room", lambda: "PodResizePending" not in self.conditions_of("waiting")
                 and self.status("waiting")["resources"]["requests"]["memory"] == "32Mi")

    def test_a_pod_deleted_meanwhile_goes(self):
        names = [self.create(pod(name, STAYS)) for name in ("asked", "forced")]
        self.wait_ready(*names)
        uids = [self.api.get(f"{PODS}/{name}")["metadata"]["uid"] for name in names]
        self.agent.kill()
        self.delete("asked")
        self.delete("forced", 0)
        self.start(wait=False)
        wait_for("the pods to go", lambda: not self.api.pod_phases())
        for uid in uids:
            wait_for("its cgroups to go", lambda uid=uid: not folders_named(uid))
            wait_for("its mounts to go", lambda uid=uid: uid not in pathlib.Path("/proc/mounts").read_text())
        wait_for("their containers to go", lambda: not self.left())

    def test_a_container_that_ended_meanwhile_is_counted_once(self):
        script = "trap 'echo bye > /dev/termination-log; exit 7' TERM; echo > /tmp/minds; while true; do sleep 1; done"
        probe = {"exec": {"command": ["cat", "/tmp/minds"]}, "periodSeconds": 1, "timeoutSeconds": 120}
        name = self.create(pod("ends", script,
                               container={"terminationMessagePath": "/dev/termination-log", "readinessProbe": probe}))
        self.wait_ready(name)
        pid = self.containers()[(name, "main")][2]
        self.agent.kill()
        os.kill(int(pid), 15)
        wait_for("its end", lambda: has_ended(pid))
        self.start(wait=False)
        wait_for("one restart", lambda: self.status(name).get("restartCount") == 1)
        ended = self.status(name)["lastState"]["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"], ended["message"]), (7, "Error", "bye\n"))

    def hog(self, name):
        return pod(
            name,
            r"m=$(busybox head -c 4194304 /dev/zero | busybox tr '\0' x); x=; while true; do x=$x$m; sleep 0.05; done",
            restartPolicy="Never",
        )

    def test_killed_again_and_again(self):
        """Pods come, go and take all memory while the agent is killed."""
        dice = random.Random(50)
        lasting = [self.create(pod(f"lasting-{number}", STAYS,
                                   resources={"requests": {"memory": "8Mi"}, "limits": {"memory": "16Mi"}}))
                   for number in range(4)]
        self.wait_ready(*lasting)
        before = self.containers()
        watched = Watched(self.kubeconfig)
        self.addCleanup(watched.close)
        evicted, hogs, made, alive = {}, [], 0, []
        for kill in range(KILLS):
            for _ in range(2):
                made += 1
                alive.append(self.create(pod(f"passing-{made}", STAYS if dice.random() < 0.7 else "exit 0",
                                             restartPolicy="Never")))
            if kill % 4 == 1:
                hogs.append(self.create(self.hog(f"hog-{kill}")))
            while len(alive) > 3:
                self.delete(alive.pop(dice.randrange(len(alive))), dice.choice([None, 0]))
            time.sleep(dice.uniform(0, 2.5))
            self.again()
            time.sleep(dice.uniform(0, 1.5))
            evicted.update(self.evicted())
        wait_for("every hog to end",
                 lambda: all(self.api.get(f"{PODS}/{name}")["status"].get("phase") == "Failed" for name in hogs))
        evicted.update(self.evicted())
        after = self.containers()
        restarted = [name for name in lasting if after[(name, "main")] != before[(name, "main")]]
        second = sorted(set(evicted.values()) - set(hogs))
        self.remove_all()
        wait_for("their containers to go", lambda: not self.left())
        orphans = self.orphans()
        wait_for("their cgroups to go", lambda: not self.cgroups_of_pods())
        pods = self.folder / "state/n/pods"
        wait_for("their directories to go", lambda: not os.listdir(pods))
        mounts, folders = self.mounts(), os.listdir(pods)
        print(
            (
                f"{type(self).__name__}: kills {KILLS}, pods {made + len(hogs) + len(lasting)}, evictions"
                f" {len(set(evicted.values()) & set(hogs))} of {len(hogs)} hogs: restarted needlessly {len(restarted)},"
                f" Ready lost {len(watched.falls)}, second victims {len(second)}, orphans {len(orphans)}, leaked"
                f" cgroups {len(self.cgroups_of_pods())}, mounts {len(mounts)}, directories {len(folders)}"
            ),
            flush=True,
        )
        self.assertEqual((restarted, second, orphans, mounts, folders), ([], [], [], [], []))
        self.assertEqual([name for name, _ in watched.falls if name in lasting], [])

    def evicted(self):
        """Not those that a node under pressure refused before anything of them ran."""
        return {document["metadata"]["uid"]: document["metadata"]["name"] for document in self.api.get(PODS)["items"]
                if document["status"].get("reason") == "Evicted" and document["status"].get("containerStatuses")}

    def cgroups_of_pods(self):
        """Below the node's own cgroup, in every hierarchy."""
        return [folder for top in node_cgroups(self.folder / "state/n") for folder, _, _ in os.walk(top / "n/kubepods")
                if "/pod" in folder[len(str(top / "n/kubepods")):]]


def remove_cgroups(state):
    """An agent that leaves its pods leaves their parents as well."""
    for node in node_cgroups(state):
        for folder, _, _ in os.walk(node, topdown=False):
            os.rmdir(folder)


@needs(can_write_cgroups() and not containerd_pods.missing(),
       "needs root, cgroups that can be written, containerd and runc")
class ContainerdWarmRestart(WarmRestart, unittest.TestCase):
    @classmethod
    def open_runtime(cls):
        cls.containerd = Containerd(cls.folder / "containerd")
        cls.addClassCleanup(cls.containerd.stop)
        cls.containerd.wait_until_it_answers()
        cls.containerd.import_image()
        return [f"--container-runtime-endpoint=unix://{cls.containerd.socket}"]

    @classmethod
    def left(cls):
        """Containers that exist. containerd 1.6 may lose the task of a container whose start was cancelled, as by the
        kill of its client: it refuses to delete such a container from then on, although no process of it is left. Such
        tasks are deleted here, as an operator would; the agent has to remove the rest."""
        states = cls.containerd.ctr("tasks", "ls")[3:]
        states = dict(zip(states[::3], states[2::3]))
        for lost in set(re.findall(r"cannot delete running task (\w{64}): failed precondition", cls.agent.tail(200))):
            if states.get(lost) == "STOPPED":
                print(f"containerd has lost the task {lost}", flush=True)
                cls.containerd.ctr("tasks", "rm", lost)
        return cls.containerd.ctr("containers", "ls", "-q")

    def orphans(self):
        return self.containerd.ctr("tasks", "ls", "-q")

    def first_processes(self):
        """By container, of those that run. One that has ended shows its process or 0, depending on when containerd
        looked.
        """
        words = self.containerd.ctr("tasks", "ls")
        return dict(words[at:at + 2] for at in range(3, len(words), 3) if words[at + 2] == "RUNNING")

    def process_key(self, uid, status):
        return status.get("containerID", "").split("//")[-1]

    def mounts(self):
        return sorted(line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()
                      if str(self.folder / "state") in line)

    def test_runs_that_the_runtime_has_forgotten_are_counted_by_their_logs(self):
        """The container has never begun, but there is the log of a fifth run."""
        name = self.create(pod("counted", f"cat /c/key; {STAYS}",
                               volumes=[{"name": "c", "configMap": {"name": "late"}}],
                               container={"volumeMounts": [{"name": "c", "mountPath": "/c"}]}))
        uid = self.api.get(f"{PODS}/{name}")["metadata"]["uid"]
        place = self.folder / f"state/n/pods/default_{name}_{uid}"
        wait_for("its directory", place.exists)
        self.agent.kill()
        (place / "main").mkdir(exist_ok=True)
        (place / "main/4.log").write_text("2026-01-02T03:04:05.000000000Z stdout F before\n")
        self.api.create(SETTINGS,
                        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"},
                         "data": {"key": "now\n"}})
        self.addCleanup(self.api.delete, f"{SETTINGS}/late")
        self.start(wait=False)
        self.wait_ready(name)
        self.assertEqual(self.status(name)["restartCount"], 5)
        wait_for("its log", lambda: self.api.get(f"{PODS}/{name}/log") == "now\n")
        self.assertEqual((place / "main/4.log").read_text().count("before"), 1)

    def test_a_runtime_without_checkpoints_says_so(self):
        name = self.create(pod("whole", STAYS))
        self.wait_ready(name)
        port = self.api.get("/api/v1/nodes/n")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        node = Node(self.kubeconfig, port, "certificate")
        self.addCleanup(node.close)
        for path, code, says in (("whole/main", 500, "checkpointing of default/whole/main failed .*Unimplemented"),
                                 ("whole/other", 404, "container other does not exist"),
                                 ("nothing/main", 404, "pod does not exist")):
            got, said = code_of(node, f"/checkpoint/default/{path}", "POST")
            self.assertEqual(got, code, said)
            self.assertRegex(said, says)
        self.assertEqual((self.folder / "state/n/checkpoints").stat().st_mode & 0o777, 0o700)

    def test_a_runtime_that_starts_later(self):
        name = self.create(pod("waits", STAYS))
        self.wait_ready(name)
        before = self.containers()
        with self.containerd.stopped():
            self.again()

            def message():
                return [each["message"] for each in self.api.get("/api/v1/nodes/n")["status"]["conditions"]
                        if each["type"] == "Ready" and each["status"] == "False"]
            said = wait_for("the node not to be ready", message)
            print(f"Ready: {said[0]}", flush=True)
            self.assertIn("container runtime", said[0])
        wait_for("the node to be ready", lambda: self.api.nodes_ready() == ["n"])
        self.assertTrue(self.api.get("/api/v1/nodes/n")["status"]["nodeInfo"]["containerRuntimeVersion"].startswith(
            "containerd://1."))
        self.assertEqual(self.containers(), before)


@needs(can_write_cgroups(), "needs root and cgroups that can be written")
class ProcessWarmRestart(WarmRestart, unittest.TestCase):
    @classmethod
    def open_runtime(cls):
        return []

    @classmethod
    def left(cls):
        return processes_of_pods(cls.folder) + processes_of_pods(cls.folder, "supervisors")

    def orphans(self):
        wait_for("the supervisors to go", lambda: not self.left())
        return self.left()

    def first_processes(self):
        """By pod and container: the one that is the first of its pid namespace."""
        found = {}
        for top in node_cgroups(self.folder / "state/n"):
            for folder, _, _ in os.walk(top / "n/kubepods"):
                parts = pathlib.Path(folder).parts
                if not parts[-2].startswith("pod"):
                    continue
                for pid in pids_in(pathlib.Path(folder, "cgroup.procs")):
                    try:
                        numbers = re.search(r"NSpid:(.*)", pathlib.Path(f"/proc/{pid}/status").read_text())[1].split()
                    except (FileNotFoundError, ProcessLookupError):
                        continue
                    if len(numbers) > 1 and numbers[-1] == "1":
                        found[parts[-2], parts[-1]] = str(pid)
        return found

    def process_key(self, uid, status):
        return f"pod{uid}", status["name"]

    def mounts(self):
        """None of them is the machine's."""
        return sorted(line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()
                      if str(self.folder / "state") in line)

    def log(self, name):
        return self.api.get(f"{PODS}/{name}/log").splitlines()

    def test_logs_go_on_without_a_gap(self):
        name = self.create(pod("counts", "i=0; while true; do echo $i; i=$((i+1)); sleep 0.01; done"))
        self.wait_ready(name)
        for _ in range(3):
            self.again()
            count = len(self.log_when_answered(name))
            wait_for("more lines", lambda count=count: len(self.log_when_answered(name)) > count + 50)
        lines = self.log_when_answered(name)
        self.assertEqual(lines, [str(number) for number in range(len(lines))])

    def log_when_answered(self, name):
        def answer():
            try:
                return self.log(name)
            except ApiError:  # the agent has only just begun
                return None
        return wait_for("the log", answer)

    def test_memory_volumes_and_secrets_are_there_for_the_next_container(self):
        volumes = [{"name": "memory", "emptyDir": {"medium": "Memory"}}]
        script = f"if [ -e /memory/word ]; then cat /memory/word; {STAYS}; fi; echo kept > /memory/word; exit 3"
        name = self.create(pod("remembers", script, volumes=volumes,
                               container={"volumeMounts": [{"name": "memory", "mountPath": "/memory"}]}))
        wait_for("its second run", lambda: self.status(name).get("restartCount") == 1
                 and "running" in self.status(name)["state"])
        self.assertEqual(self.log_when_answered(name), ["kept"])
        self.again()
        pid = self.containers()[(name, "main")][2]
        wait_for("the pod to be taken over", lambda: "syncloop add" in self.agent.log.read_text())
        os.kill(int(pid), 9)
        wait_for("its third run", lambda: self.status(name).get("restartCount") == 2
                 and "running" in self.status(name)["state"])
        self.assertEqual(self.log_when_answered(name), ["kept"])

    def test_another_node_takes_nothing_over(self):
        name = self.create(pod("stays", STAYS))
        self.wait_ready(name)
        before = self.containers()
        self.agent.kill()
        with running(self.folder, "agent", "--kubeconfig", self.kubeconfig, "--node-name", "other", "--node-ip",
                     "127.0.0.1", "--port", "0",
                     "--node-memory", "64Mi", "--state-dir", self.folder / "state") as other:
            wait_for("the other node", lambda: "other" in self.api.nodes_ready())
            self.assertNotIn("pods of an earlier process found", other.log.read_text())
            self.assertEqual(self.containers(), before)
        self.api.delete("/api/v1/nodes/other")
        self.start(wait=False)
        wait_for("the pod to be taken over", lambda: "syncloop add" in self.agent.log.read_text())
        self.assertEqual(self.containers(), before)

    def test_a_supervisor_that_is_killed(self):
        """Its container ends with it, and that is said; the next one has another."""
        name = self.create(pod("orphaned", STAYS))
        self.wait_ready(name)
        for kill_agent in (False, True):
            count = self.status(name)["restartCount"]
            if kill_agent:
                self.agent.kill()
            for pid in processes_of_pods(self.folder, "supervisors"):
                with contextlib.suppress(ProcessLookupError):  # one of an earlier pod, at its end
                    os.kill(pid, 9)
            if kill_agent:
                self.start(wait=False)
            wait_for("a restart", lambda count=count: self.status(name).get("restartCount") == count + 1
                     and "running" in self.status(name)["state"])
            ended = self.status(name)["lastState"]["terminated"]
            self.assertEqual((ended["exitCode"], ended["reason"]), (137, "ContainerStatusUnknown"))

    def test_a_record_that_was_tampered_with_harms_its_pod_alone(self):
        names = [self.create(pod(name, STAYS)) for name in ("first", "second")]
        self.wait_ready(*names)
        before = self.containers()
        self.agent.kill()
        for record in (self.folder / "state/n/pods").glob("default_first_*/_pod.json"):
            record.write_text('{"uid": ["no"]}')
        self.start(wait=False)
        wait_for("the first to begin anew", lambda: self.status("first").get("restartCount") == 1
                 and "running" in self.status("first")["state"])
        self.assertEqual(self.containers()[("second", "main")], before[("second", "main")])


if __name__ == "__main__":
    unittest.main()
