"""Ten clusters that do not work as their users want: for each `spillway explain` without arguments names the object and
the cause in one sentence. Nine of the causes are in one cluster, side by side, each in a namespace or on a node of its
own; the tenth takes containers with images."""
import json
import pathlib
import re
import shutil
import subprocess
import unittest

import containerd_pods
from harness import Kubectl, can_write_cgroups, needs, pod, run, running, serving, wait_for, workspace
from own_containerd import NEEDS
from test_own_images import programs

DISK_KIB = 16 << 10  # size of the node's disk that is full
QUIET = ("--node-monitor-grace-period", "20s")
# Each node renews its lease each second: one that waits for a processor stays Ready.
BEATS = ("--node-lease-duration-seconds", "4")


def concerns(kubeconfig):
    """The sentence and the command of each object that needs a look, by kind, namespace and name."""
    code, out, err = run("explain", "-o", "json", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, ""), (code, err)
    return {f"{each['subject']['kind']} {each['subject'].get('namespace', '')}/{each['subject']['name']}": (
        each["sentence"], each["command"])
            for each in json.loads(out)["items"]}


class Broken(unittest.TestCase):
    def wait_for_sentences(self, kubeconfig, wanted):
        """Waits until each object has its sentence and no other object needs a look."""
        seen = {}

        def strange():
            """The sentences that are missing, and those that are too many."""
            nonlocal seen
            seen = concerns(kubeconfig)
            missing = {name: seen.get(name, ("nothing",))[0] for name, text in wanted.items()
                       if not re.fullmatch(text, seen.get(name, ("",))[0])}
            # A busy machine may forecast anything.
            return missing | {name: text for name, (text, _) in seen.items() if name not in wanted
                              and "will reach its threshold" not in text}
        wait_for(lambda: f"sentences; seen instead: {json.dumps(strange(), indent=1)}", lambda: not strange(),
                 interval=0.2)
        for name, (sentence, command) in sorted(seen.items()):
            print(f"{sentence}\n    {command}", flush=True)
            self.assertEqual(run(*command.split()[1:], "--kubeconfig", kubeconfig)[0], 0,
                             f"the command that says more of {name}")


def restarting(name, *command, **more):
    return pod(name, list(command), restartPolicy="Always", **more)


def deployment(name):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": pod(name, ["sleep", "1000"])["spec"]}}}


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Processes(Broken):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(workspace()))
        self.kubeconfig = self.folder / "kubeconfig"
        self.process = self.enterContext(running(self.folder, "up", "--data-dir", self.folder / "data", "--port", "0",
                                                 "--write-kubeconfig", self.kubeconfig,
                                                 "--node-name", "n", "--nodes", "2", "--node-memory", "256Mi",
                                                 "--storage", "off", *QUIET, *BEATS))
        self.api = serving(self.process, self.kubeconfig)
        self.kubectl = Kubectl(self.kubeconfig)

    def agent(self, name, *more):
        return self.enterContext(running(self.folder, "agent", "--kubeconfig", self.kubeconfig, "--node-name", name,
                                         "--node-memory", "64Mi", "--node-ip", "127.0.0.1",
                                         "--port", "0", "--state-dir", self.folder / name, *BEATS, *more))

    def taints(self, name):
        return {each["key"] for each in self.api.get(f"/api/v1/nodes/{name}")["spec"].get("taints", [])}

    def disk(self, name):
        """A file system of its own for the node's files, which is nearly full."""
        place = self.folder / name
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_KIB}k", "none", place], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", place], check=True)
        (place / "ballast").write_bytes(bytes((DISK_KIB << 10) * 95 // 100))

    def break_it(self):
        apply, tight, hooked = self.kubectl.apply, ("-n", "tight"), ("-n", "hooked")
        self.kubectl("taint", "node", "n-2", "team=db:NoSchedule")
        items = [restarting("crashes", "sh", "-c", "exit 3"),
                 restarting("greedy", "python3", "-c", "x = b'1' * (200 << 20)",
                            resources={"limits": {"memory": "48Mi"}}),
                 restarting("elsewhere", "sleep", "1000", nodeSelector={"kubernetes.io/hostname": "n-2"}),
                 {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                  "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
                 {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"},
                  "spec": {"selector": {"app": "shoop"}, "ports": [{"port": 80}]}}]
        for each in items[:2]:
            each["spec"]["nodeName"] = "n-1"
        apply({"apiVersion": "v1", "kind": "List", "items": items})
        for namespace in ("tight", "hooked"):
            self.kubectl("create", "namespace", namespace)
        self.kubectl("create", "quota", "team", *tight, "--hard=pods=0")
        apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
               "metadata": {"name": "gate"}, "webhooks": [{
            "name": "gate.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1,
            "failurePolicy": "Fail",
            "clientConfig": {"url": "https://127.0.0.1:9/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooked"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}]})
        wait_for("the quota", lambda: self.kubectl.get("quota", "team", *tight).get("status", {}).get("hard"))
        for name, namespace in (("over", tight), ("held", hooked)):
            self.kubectl("apply", *namespace, "-f", "-", given=json.dumps(deployment(name)))

    def test_each_is_one_sentence_with_the_object_and_the_cause(self):
        self.disk("full")
        self.agent("full", "--eviction-hard", "nodefs.available<10%")
        dead = self.agent("dead")
        wait_for("the nodes", lambda: sorted(self.api.nodes_ready()) == ["dead", "full", "n-1", "n-2"])
        dead.kill()
        # The scheduler counts the nodes with taints when it tries the pod, and not again when another node gets one.
        for name, taint in (("dead", "node.kubernetes.io/unreachable"), ("full", "node.kubernetes.io/disk-pressure")):
            wait_for(f"the taint of {name}", lambda name=name, taint=taint: taint in self.taints(name))
        self.break_it()
        self.wait_for_sentences(
            self.kubeconfig,
            {
                "Node /dead": r"node dead: its agent does not report: Kubelet stopped posting node status\.",
                "Node /full": (
                    r"node full: it reports DiskPressure \(nodefs\.available [\d.]+[KM]i < 1\.6Mi\): it may evict pods,"
                    r" and takes no new ones .*"
                ),
                "Pod default/crashes": r"pod default/crashes: container main crashes repeatedly: exit code 3 .*",
                "Pod default/greedy": (
                    r"pod default/greedy: the kernel killed container main: out of memory, its limit is 48Mi; .*"
                ),
                "Pod default/elsewhere": (
                    r"pod default/elsewhere: no node takes it: 0/4 nodes are available: .*3 node\(s\) had untolerated"
                    r" taint.*"
                ),
                "Deployment tight/over": (
                    r"deployment tight/over: its pods are refused, last at \S+: .*exceeded quota: team, requested:"
                    r" pods=1, used: pods=0, limited: pods=0"
                ),
                "Deployment hooked/held": (
                    r"deployment hooked/held: its pods are refused, last at \S+: .*failed calling webhook"
                    r' "gate\.example\.com".*(refused|127\.0\.0\.1).*'
                ),
                "PersistentVolumeClaim default/data": (
                    r"persistentVolumeClaim default/data: no volume fits, and no StorageClass can make one: .*no class"
                    r" is the default.*"
                ),
                "Service default/shop": (
                    r"service default/shop: no pod answers: no pod of its namespace has the labels app=shoop"
                ),
            },
        )


@needs(can_write_cgroups() and not containerd_pods.missing(), NEEDS)
class Containers(Broken):
    def test_an_image_that_does_not_exist(self):
        folder = pathlib.Path(self.enterContext(workspace()))
        self.addCleanup(run, "end-pods", folder / "data")
        kubeconfig = folder / "kubeconfig"
        process = self.enterContext(running(folder, "up", "--data-dir", folder / "data", "--port", "0",
                                            "--write-kubeconfig", kubeconfig, "--node-name", "n",
                                            "--runtime", "containerd", *programs()))
        api = serving(process, kubeconfig)
        wait_for(lambda: f"the node; {process.tail()}", lambda: process.running() and api.nodes_ready() == ["n"])
        container = {"name": "main", "image": "127.0.0.1:9/shop/web:1.0"}
        api.create("/api/v1/namespaces/default/pods",
                   {"metadata": {"name": "web"}, "spec": {"hostNetwork": True, "containers": [container]}})
        self.wait_for_sentences(
            kubeconfig,
            {
                "Pod default/web": (
                    r"pod default/web: container main waits for its image 127\.0\.0\.1:9/shop/web:1\.0"
                    r" \((ErrImagePull|ImagePullBackOff)\): .*"
                )
            },
        )


if __name__ == "__main__":
    unittest.main()
