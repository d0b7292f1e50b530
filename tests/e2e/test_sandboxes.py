"""The remains of pods in a container runtime over time: sandboxes that die and are replaced, logs that are rotated,
leftovers that are removed; and RuntimeClasses and resolvers on both runtimes. The runtime is a containerd of the
test's own.
"""
import json
import os
import pathlib
import signal
import threading
import unittest

import containerd_pods
from harness import Api, can_write_cgroups, needs, one_node, PATIENCE, wait_for, workspace
from own_containerd import BRIDGE, IMAGE, NEEDS, Containerd
from test_containers import PODS, pod

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
STAYS = "trap 'exit 0' TERM; while true; do sleep 0.1; done"
LINES = 15000
WRITES = (
    f"i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); echo $i $PAD; [ $((i % 100)) != 0 ] || sleep 0.1; done; {STAYS}"
)


class Node(unittest.TestCase):
    @classmethod
    def configuration(cls, **fields):
        file = cls.folder / "kubelet.yaml"
        file.write_text(json.dumps({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
                                    **fields}))
        return file

    def setUp(self):
        self.addCleanup(self.remove_all)

    def remove_all(self):
        for name in self.api.pod_phases():
            self.api.delete(f"{PODS}/{name}", grace=0)
        wait_for("all pods to go", lambda: not self.api.pod_phases())

    def create(self, document):
        self.api.create(PODS, document)
        return document["metadata"]["name"]

    def add_class(self, name, handler, **fields):
        self.api.create(CLASSES,
                        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name},
                         "handler": handler, **fields})
        self.addCleanup(self.api.delete, f"{CLASSES}/{name}")

    def get(self, name):
        return self.api.get(f"{PODS}/{name}")

    def status(self, name, kind="containerStatuses"):
        return (self.get(name)["status"].get(kind) or [{}])[0]

    def wait_phase(self, name, phase):
        return wait_for(f"{name} to be {phase}", lambda: self.api.pod_phases().get(name) == phase)

    def events(self, name, reason):
        return [event["message"] for event in self.api.get("/api/v1/namespaces/default/events")["items"]
                if event["involvedObject"]["name"] == name and event["reason"] == reason]


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class InContainerd(Node):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.containerd = Containerd(cls.folder / "containerd", BRIDGE)
        cls.addClassCleanup(cls.containerd.stop)
        cls.containerd.wait_until_it_answers()
        cls.containerd.import_image()
        cls.resolver_file = cls.folder / "resolv.conf"
        cls.resolver_file.write_text("nameserver 192.0.2.53\n")
        cls.node = cls.enterClassContext(one_node(
            cls.folder, f"--container-runtime-endpoint=unix://{cls.containerd.socket}", "--config",
            cls.configuration(podLogsDir=str(cls.folder / "logs"), containerLogMaxSize="256Ki", containerLogMaxFiles=3,
                              containerLogMaxWorkers=2, evictionPressureTransitionPeriod="1s",
                              resolvConf=str(cls.resolver_file))))
        cls.api = cls.node.api

    def remove_all(self):
        """Pods that are deleted without a grace are gone before their sandboxes are, and the next test kills the only
        sandbox there is."""
        super().remove_all()
        wait_for("their sandboxes to end", lambda: not self.tasks())

    def tasks(self):
        words = self.containerd.ctr("tasks", "ls")[3:]
        return {words[at]: int(words[at + 1]) for at in range(0, len(words), 3) if words[at + 2] == "RUNNING"}

    def sandboxes(self):
        """Ids of all that there are, running or not."""
        return set(self.containerd.ctr("containers", "ls", "-q", 'labels."io.cri-containerd.kind"==sandbox'))

    def kill_sandbox(self):
        """The only one that runs: its first process."""
        tasks = self.tasks()
        sandbox = (self.sandboxes() & set(tasks)).pop()
        os.kill(tasks[sandbox], signal.SIGKILL)
        return sandbox

    def wait_restarts(self, name, count):
        def again():
            status = self.status(name)
            return status.get("restartCount", 0) >= count and "running" in status["state"]
        wait_for(f"restart {count}", again)
        self.assertEqual(self.status(name)["restartCount"], count)

    def test_a_sandbox_that_dies_is_replaced_and_nothing_is_left_of_it(self):
        first = {"name": "first", "image": IMAGE, "command": ["/bin/sh", "-c", "echo first"]}
        name = self.create(pod("dies", f"echo run; {STAYS}", hostNetwork=False, initContainers=[first]))
        self.wait_phase(name, "Running")
        address = wait_for("an address", lambda: self.get(name)["status"].get("podIP"))
        uid = self.get(name)["metadata"]["uid"]
        lost = self.kill_sandbox()
        self.wait_restarts(name, 1)
        wait_for("another address", lambda: self.get(name)["status"].get("podIP") not in (None, address))
        self.assertEqual(self.status(name, "initContainerStatuses")["restartCount"], 1)
        said = wait_for("the event", lambda: self.events(name, "SandboxChanged"))
        self.assertEqual(said, ["Pod sandbox changed, it will be killed and re-created."])
        self.assertNotIn(lost, self.tasks())
        # A container runs before its program has written anything.
        wait_for("its word", lambda: self.api.get(f"{PODS}/{name}/log") == "run\n")
        again = self.kill_sandbox()
        self.assertNotEqual(again, lost)
        self.wait_restarts(name, 2)
        self.assertEqual(self.api.get(f"{PODS}/{name}/log?previous=true"), "run\n")
        stray = self.folder / "state/n/pods/default_nobody_0e4c3a5e-0000-4000-8000-000000000000"
        (stray / "main").mkdir(parents=True)
        (stray / "main/0.log").write_text("old\n")
        wait_for("the first sandbox to go", lambda: lost not in self.sandboxes(), interval=0.5)
        wait_for("what is of no pod to go", lambda: not stray.exists())
        self.assertTrue((self.folder / f"state/n/pods/default_{name}_{uid}").exists())
        wait_for("the word about it",
                 lambda: any("garbage of pods is removed" in line and lost in line
                             for line in self.node.log.read_text().splitlines()))

    def test_no_sandbox_without_the_resolvers_file(self):
        """The resolver file is read anew for each sandbox: a pod that waits for it gets it."""
        kept = self.folder / "kept.conf"
        self.resolver_file.rename(kept)
        name = self.create(pod("resolver", f"cat /etc/resolv.conf; {STAYS}"))
        said = wait_for("the refusal", lambda: self.events(name, "FailedCreatePodSandBox"))
        self.assertEqual(said[0], f"Failed to create pod sandbox: open {self.resolver_file}: no such file or directory")
        self.assertEqual(self.api.pod_phases()[name], "Pending")
        kept.rename(self.resolver_file)
        self.wait_phase(name, "Running")
        wait_for("its resolver", lambda: "nameserver 192.0.2.53" in self.api.get(f"{PODS}/{name}/log"))

    def test_recursive_mounts_need_a_runtime_that_can(self):
        """This one lists no handlers."""
        self.assertNotIn("runtimeHandlers", self.api.get("/api/v1/nodes/n")["status"])
        mount = {"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "Enabled"}
        volumes = [{"name": "v", "emptyDir": {}}]
        name = self.create(pod("recursive", STAYS, volumes=volumes, container={"volumeMounts": [mount]}))
        waiting = wait_for("the refusal",
                           lambda: self.status(name).get("state", {}).get("waiting", {}).get("reason")
                           == "CreateContainerConfigError" and self.status(name)["state"]["waiting"])
        self.assertIn("it is not supported by the runtime", waiting["message"])
        name = self.create(pod("if-possible", STAYS, volumes=volumes,
                               container={"volumeMounts": [{**mount, "recursiveReadOnly": "IfPossible"}]}))
        self.wait_phase(name, "Running")

    def test_containers_that_end_with_their_sandbox(self):
        """The containers share the namespace of processes, and any of them can end it."""
        name = self.create(pod("shares", STAYS, hostNetwork=False, shareProcessNamespace=True))
        self.wait_phase(name, "Running")
        self.kill_sandbox()
        self.wait_restarts(name, 1)
        self.assertEqual(self.status(name)["lastState"]["terminated"]["exitCode"], 137)
        wait_for("the event", lambda: self.events(name, "SandboxChanged"))
        # On a busy machine the agent may hear of the container's end first, and start it once more in the sandbox that
        # has ended.
        failed = [message for message in self.events(name, "Failed")
                  if "failed to get sandbox container task" not in message]
        self.assertEqual((len(self.events(name, "SandboxChanged")), self.events(name, "BackOff"), failed), (1, [], []))

    def test_a_pod_that_never_restarts_fails_with_its_sandbox(self):
        name = self.create(pod("once", STAYS, hostNetwork=False, restartPolicy="Never"))
        self.wait_phase(name, "Running")
        self.kill_sandbox()
        wait_for("its end", lambda: self.api.pod_phases()[name] in ("Failed", "Succeeded"))
        self.assertEqual(self.status(name)["restartCount"], 0)
        self.assertEqual(self.events(name, "SandboxChanged"), [])

    def test_logs_are_rotated_and_followed(self):
        name = self.create(pod("writes", WRITES, container={"env": [{"name": "PAD", "value": "x" * 60}]}))
        self.wait_phase(name, "Running")
        followed = bytearray()
        reader = Api(self.folder / "kubeconfig")
        self.addCleanup(reader.close)
        reader.connection = reader.connect()
        headers = {"Authorization": f"Bearer {reader.token}"} if reader.token else {}
        reader.connection.request("GET", f"{PODS}/{name}/log?follow=true", headers=headers)
        answer = reader.connection.getresponse()

        def follow():
            while followed.count(b"\n") < LINES:
                piece = answer.read1()
                if not piece:
                    return
                followed.extend(piece)
        thread = threading.Thread(target=follow)
        thread.start()
        thread.join(PATIENCE)
        numbers = [int(line.split()[0]) for line in followed.decode().splitlines()]
        self.assertEqual(len(numbers), LINES)
        self.assertEqual(numbers, list(range(1, LINES + 1)))
        folder = self.folder / f"logs/default_{name}_{self.get(name)['metadata']['uid']}/main"

        def files():
            return sorted(each.name for each in folder.iterdir())
        wait_for(lambda: f"a packed part and one that is not: {files()}",
                 lambda: [(each == "0.log", each.endswith(".gz")) for each in files()]
                 == [(True, False), (False, True), (False, False)])
        (folder / "0.log").unlink()
        wait_for("another file", lambda: (folder / "0.log").exists())
        # The link by which collectors of logs find it, which goes with the pod.
        found = self.status(name)["containerID"].removeprefix("containerd://")
        link = pathlib.Path(f"/var/log/containers/{name}_default_main-{found}.log")
        self.assertEqual(os.readlink(link), str(folder / "0.log"))
        self.api.delete(f"{PODS}/{name}", grace=0)
        wait_for("its logs and the link to go", lambda: not folder.parent.exists() and not link.is_symlink())

    def test_the_handler_of_a_runtime_class(self):
        self.add_class("plain", "runc", overhead={"podFixed": {"memory": "8Mi"}},
                       scheduling={"nodeSelector": {"kubernetes.io/os": "linux"}})
        name = self.create(pod("plain", STAYS, runtimeClassName="plain"))
        self.wait_phase(name, "Running")
        spec = self.get(name)["spec"]
        self.assertEqual((spec["overhead"], spec["nodeSelector"]), ({"memory": "8Mi"}, {"kubernetes.io/os": "linux"}))
        self.add_class("sealed", "absent")
        name = self.create(pod("sealed", STAYS, runtimeClassName="sealed"))
        said = wait_for("what the runtime says", lambda: self.events(name, "FailedCreatePodSandBox"))
        self.assertIn('no runtime for "absent" is configured', said[0])


@needs(can_write_cgroups(), "needs root and cgroups that can be written")
class AsProcesses(Node):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.node = cls.enterClassContext(one_node(cls.folder, "--config",
                                                  cls.configuration(clusterDNS=["10.96.0.10"],
                                                                    clusterDomain="cluster.test")))
        cls.api = cls.node.api

    def resolver(self, name, **spec):
        self.create(pod(name, "cat /etc/resolv.conf", restartPolicy="Never", hostNetwork=False, **spec))
        self.wait_phase(name, "Succeeded")
        return self.api.get(f"{PODS}/{name}/log").splitlines()

    def test_resolvers(self):
        own = pathlib.Path("/etc/resolv.conf").read_text().splitlines()
        self.assertEqual(self.resolver("default", dnsPolicy="Default"), own)
        lines = self.resolver("cluster")
        self.assertTrue(lines[0].startswith("search default.svc.cluster.test svc.cluster.test cluster.test"), lines)
        self.assertEqual(lines[1], "nameserver 10.96.0.10")
        self.assertIn("ndots:5", lines[-1])
        config = {"nameservers": ["192.0.2.1", "192.0.2.2", "192.0.2.3"], "searches": ["example.test"],
                  "options": [{"name": "timeout", "value": "1"}]}
        self.assertEqual(self.resolver("none", dnsPolicy="None", dnsConfig=config),
                         ["search example.test", "nameserver 192.0.2.1", "nameserver 192.0.2.2", "nameserver 192.0.2.3",
                          "options timeout:1"])
        self.resolver("more", dnsConfig=config)
        self.assertEqual(len(wait_for("the event", lambda: self.events("more", "DNSConfigForming"))), 1)

    def test_processes_have_no_handlers(self):
        self.add_class("sealed", "kata")
        name = self.create(pod("sealed", STAYS, runtimeClassName="sealed"))
        said = wait_for("the refusal", lambda: self.events(name, "FailedCreatePodSandBox"))
        self.assertEqual(said[0],
                         'Failed to create pod sandbox: no runtime for "kata" is configured: this node runs processes')
        self.assertEqual(self.api.pod_phases()[name], "Pending")


if __name__ == "__main__":
    unittest.main()
