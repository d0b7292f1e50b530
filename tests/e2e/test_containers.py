"""Pods in a real containerd: `spillway up --container-runtime-endpoint` with a containerd of the test's own (root,
state, socket and CNI configuration in one folder) and an image made of busybox-static.

containerd and runc are those that tools/peers unpacks, else the machine's. Skipped where there are none or where
cgroups cannot be written.
"""
import os
import pathlib
import time
import unittest

import containerd_pods
from harness import can_write_cgroups, needs, one_node, pids_in, wait_for, workspace
from own_containerd import IMAGE, NEEDS, Containerd

PODS = "/api/v1/namespaces/default/pods"
HIERARCHIES = pathlib.Path("/sys/fs/cgroup")


def pod(name, script, image=IMAGE, resources=None, **spec):
    container = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent",
                 "command": ["/bin/sh", "-c", script]}
    container.update(spec.pop("container", {}))
    if resources:
        container["resources"] = resources
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"hostNetwork": True, "containers": [container], "terminationGracePeriodSeconds": 2, **spec}}


def folders_named(name):
    return [folder for hierarchy in HIERARCHIES.iterdir() for folder, _, _ in os.walk(hierarchy) if name in folder]


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.containerd = Containerd(cls.folder / "containerd")
        cls.addClassCleanup(cls.containerd.stop)
        cls.containerd.wait_until_it_answers()
        cls.containerd.import_image()
        cls.node = cls.enterClassContext(one_node(cls.folder,
                                                  f"--container-runtime-endpoint=unix://{cls.containerd.socket}",
                                                  "--eviction-pressure-transition-period=1s"))
        cls.api = cls.node.api

    def setUp(self):
        self.addCleanup(self.remove_all)

    def remove_all(self):
        for name in self.api.pod_phases():
            self.api.delete(f"{PODS}/{name}", grace=0)
        wait_for("all pods to go", lambda: not self.api.pod_phases())

    def create(self, document):
        self.api.create(PODS, document)
        return document["metadata"]["name"]

    def status(self, name):
        found = self.api.find(f"{PODS}/{name}") or {}
        return (found.get("status", {}).get("containerStatuses") or [{}])[0]

    def wait_phase(self, name, phase):
        return wait_for(f"{name} to be {phase}", lambda: self.api.pod_phases().get(name) == phase)

    def events(self, name):
        return [(event["type"], event["reason"], event["message"])
                for event in self.api.get("/api/v1/namespaces/default/events")["items"]
                if event["involvedObject"]["name"] == name]

    def wait_for_events(self, name, *wanted):
        """Events that begin with these words; they are sent beside the status, and neither waits for the other."""
        def missing():
            said = self.events(name)
            return [each for each in wanted
                    if not any(reason == each[0] and message.startswith(each[1]) for _, reason, message in said)]
        wait_for(lambda: f"{missing()}; there is {self.events(name)}", lambda: not missing())

    def log(self, name, **query):
        text = "&".join(f"{key}={value}" for key, value in query.items())
        return self.api.get(f"{PODS}/{name}/log?{text}")

    def wait_for_log(self, name, text, **query):
        """The end of a container may be known before the last line of its log is in the file."""
        wait_for(lambda: f"{text!r} as the log of {name}; it is {self.log(name, **query)!r}",
                 lambda: self.log(name, **query) == text)

    def test_a_pod_runs_to_its_end(self):
        name = self.create(pod("ends", "echo hello $WHO; echo last words > /dev/termination-log; exit 3",
                               restartPolicy="Never",
                               container={"env": [{"name": "WHO", "value": "world"}],
                                          "terminationMessagePath": "/dev/termination-log"}))
        self.wait_phase(name, "Failed")
        status = self.status(name)
        ended = status["state"]["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"], ended["message"]), (3, "Error", "last words\n"))
        self.assertTrue(status["containerID"].startswith("containerd://"), status)
        self.assertIn("sha256:", status["imageID"])
        self.wait_for_log(name, "hello world\n")
        self.wait_for_events(name, ("Pulled", f'Container image "{IMAGE}" already present on machine'),
                             ("Created", "Container created"),
                             ("Started", "Container started"))

    def test_what_the_node_says_of_its_runtime(self):
        node = self.api.get("/api/v1/nodes/n")
        self.assertTrue(node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://1."))
        wait_for("images in the node's status",
                 lambda: any(IMAGE in image["names"]
                             for image in self.api.get("/api/v1/nodes/n")["status"].get("images", [])))

    def running(self):
        return {item["metadata"]["name"]: [(each["name"], each["image"]) for each in item["spec"]["containers"]]
                for item in self.api.get("/api/v1/nodes/n/proxy/runningpods/")["items"]}

    def test_the_pods_that_the_runtime_runs(self):
        stays, ends = self.create(pod("stays", "exec tail -f /dev/null")), self.create(
            pod("ends", "exit 0", restartPolicy="Never"))
        self.wait_phase(stays, "Running")
        self.wait_phase(ends, "Succeeded")
        wait_for("one pod", lambda: list(self.running()) == [stays])
        (name, image), = self.running()[stays]
        self.assertEqual(name, "main")
        self.assertTrue(image.endswith(IMAGE), image)
        self.api.delete(f"{PODS}/{stays}", grace=0)
        wait_for("no pod", lambda: not self.running())

    def test_a_container_starts_again_after_a_while(self):
        name = self.create(pod("again", "echo run; exit 1"))
        wait_for("CrashLoopBackOff",
                 lambda: self.status(name).get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff")
        wait_for("the next run", lambda: self.status(name).get("restartCount", 0) >= 2)
        self.wait_for_log(name, "run\n", previous="true")

    def test_volumes_and_the_hosts_file(self):
        self.api.create("/api/v1/namespaces/default/configmaps",
                        {"metadata": {"name": "settings"}, "data": {"colour": "blue"}})
        self.addCleanup(self.api.delete, "/api/v1/namespaces/default/configmaps/settings")
        volumes = [{"name": "settings", "configMap": {"name": "settings"}}, {"name": "scratch", "emptyDir": {}},
                   {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}}]
        mounts = [{"name": "settings", "mountPath": "/settings"},
                  {"name": "scratch", "mountPath": "/scratch", "subPath": "deep/er"},
                  {"name": "memory", "mountPath": "/memory"}]
        name = self.create(
            pod(
                "volumes",
                (
                    "cat /settings/colour; echo; echo x > /scratch/f && cat /scratch/f; echo y > /memory/f && cat"
                    " /memory/f; busybox grep seven /etc/hosts"
                ),
                restartPolicy="Never",
                volumes=volumes,
                container={"volumeMounts": mounts},
                hostAliases=[{"ip": "192.0.2.7", "hostnames": ["seven"]}],
            )
        )
        self.wait_phase(name, "Succeeded")
        self.wait_for_log(name, "blue\nx\ny\n192.0.2.7\tseven\n")

    def test_an_image_that_cannot_be_had(self):
        name = self.create(pod("absent", "true", image="127.0.0.1:1/none:1"))
        wait_for("ImagePullBackOff",
                 lambda: self.status(name).get("state", {}).get("waiting", {}).get("reason") == "ImagePullBackOff")
        self.wait_for_events(name, ("Pulling", 'Pulling image "127.0.0.1'),
                             ("Failed", 'Failed to pull image "127.0.0.1'), ("Failed", "Error: ErrImagePull"),
                             ("BackOff", 'Back-off pulling image "127.0.0.1'))
        never = self.create(pod("never", "true", image="127.0.0.1:1/none:2", container={"imagePullPolicy": "Never"}))
        wait_for("ErrImageNeverPull",
                 lambda: self.status(never).get("state", {}).get("waiting", {}).get("reason") == "ErrImageNeverPull")

    def test_nothing_is_left_of_a_deleted_pod(self):
        name = self.create(pod("gone", "trap 'exit 0' TERM; while true; do sleep 1; done"))
        self.wait_phase(name, "Running")
        uid = self.api.get(f"{PODS}/{name}")["metadata"]["uid"]
        self.assertTrue(self.containerd.ctr("tasks", "ls", "-q"))
        self.api.delete(f"{PODS}/{name}")
        wait_for("the pod to go", lambda: name not in self.api.pod_phases())
        wait_for("its containers to go", lambda: not self.containerd.ctr("containers", "ls", "-q"))
        wait_for("its cgroups to go", lambda: not folders_named(uid))
        wait_for("its mounts to go", lambda: uid not in pathlib.Path("/proc/mounts").read_text())

    def hog(self, name):
        """Takes more memory than the node has, in steps."""
        return pod(
            name,
            # so slow that an agent which waits for a processor is not too late
            r"m=$(busybox head -c 4194304 /dev/zero | busybox tr '\0' x); x=; while true; do x=$x$m; sleep 0.5; done",
            restartPolicy="Never",
        )

    def test_the_pod_that_takes_the_memory_is_evicted(self):
        quiet = self.create(pod("quiet", "sleep 1000",
                                resources={"requests": {"memory": "10Mi"}, "limits": {"memory": "20Mi"}}))
        self.wait_phase(quiet, "Running")
        name = self.create(self.hog("hog"))
        wait_for("the eviction", lambda: self.api.get(f"{PODS}/{name}")["status"].get("reason") == "Evicted")
        self.assertEqual(self.api.pod_phases()[quiet], "Running")

    def test_a_runtime_that_hangs_keeps_no_victim_alive(self):
        name = self.create(self.hog("hog"))
        self.wait_phase(name, "Running")
        uid = self.api.get(f"{PODS}/{name}")["metadata"]["uid"]
        began = time.monotonic()
        with self.containerd.stopped():
            wait_for("the victim's end",
                     lambda: not any(pids_in(pathlib.Path(folder) / "cgroup.procs") for folder in folders_named(uid)))
            print(f"dead {time.monotonic() - began:.2f} s after containerd was stopped", flush=True)
            wait_for("the eviction", lambda: self.api.get(f"{PODS}/{name}")["status"].get("reason") == "Evicted")
        wait_for("the node to be ready", lambda: self.api.nodes_ready() == ["n"])


if __name__ == "__main__":
    unittest.main()
