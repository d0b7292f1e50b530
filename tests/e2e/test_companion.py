"""A companion beside a kubelet that is a script: a cgroup tree as kubelet and containerd or CRI-O lay it out, with real
processes in the containers, an API server of ours with the node and its pods, and an HTTP server that answers /configz
and /pods. One container takes all the memory there is: its pod, and no other, becomes Evicted; a shadow only says so.

The node is a cgroup of its own with a limit, so nothing else on the machine is touched.
"""
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest
import urllib.request

from harness import (
    account_kubeconfig,
    Api,
    BINARY,
    can_write_cgroups,
    Kubectl,
    needs,
    PATIENCE,
    refusals,
    ROOT,
    run,
    running,
    serving,
    wait_for,
    workspace,
)

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")
MIB = 1 << 20
NODE_MEMORY = 192 * MIB
NODE = "edge-1"


def is_v1():
    return (V1 / "memory.limit_in_bytes").exists() or (V1 / "memory.use_hierarchy").exists()


class KubeletTree:
    """Makes cgroups as a kubelet and its runtime do, below a root of its own."""

    def __init__(self, driver, runtime="containerd"):
        self.driver, self.runtime = driver, runtime
        self.name = f"spwtest{os.getpid()}x{time.monotonic_ns() % 1000000}"
        self.base = V1 if is_v1() else V2
        self.cgroup_root = f"/{self.name}"
        self.top = self.base / (f"{self.name}.slice" if driver == "systemd" else self.name)
        self.children = []
        self.make(self.top)
        self.limit(self.top, NODE_MEMORY)
        self.kubepods = self.top / (f"{self.name}-kubepods.slice" if driver == "systemd" else "kubepods")
        self.make(self.kubepods)

    def make(self, path):
        path.mkdir(exist_ok=True)
        if not is_v1():
            (path / "cgroup.subtree_control").write_text("+memory")

    def limit(self, path, amount):
        (path / ("memory.limit_in_bytes" if is_v1() else "memory.max")).write_text(str(amount))

    def pod(self, uid, qos):
        if self.driver == "systemd":
            prefix = f"{self.name}-kubepods"
            parent = self.kubepods
            if qos != "guaranteed":
                prefix += f"-{qos}"
                parent = parent / f"{prefix}.slice"
            path = parent / f"{prefix}-pod{uid.replace('-', '_')}.slice"
        else:
            parent = self.kubepods / qos if qos != "guaranteed" else self.kubepods
            path = parent / f"pod{uid}"
        self.make(parent)
        self.make(path)
        return path

    def container(self, pod, container_id):
        names = {("cgroupfs", "containerd"): container_id, ("cgroupfs", "crio"): f"crio-{container_id}",
                 ("systemd", "containerd"): f"cri-containerd-{container_id}.scope",
                 ("systemd", "crio"): f"crio-{container_id}.scope"}
        path = pod / names[self.driver, self.runtime]
        path.mkdir()
        return path

    def run(self, cgroup, *command):
        """A process that is in the cgroup before it begins."""
        child = subprocess.Popen(["/bin/sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; exec \"$@\"", "sh",
                                  *map(str, command)],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.append(child)
        wait_for("the process to join", lambda: str(child.pid) in (cgroup / "cgroup.procs").read_text().split())
        return child

    def remove(self):
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            child.wait()

        def is_gone():  # children of those that were killed end by themselves
            for folder, _, _ in os.walk(self.top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            return not self.top.exists()
        wait_for(f"{self.top} to go", is_gone)


class FakeKubelet:
    """/configz and /pods of a kubelet, on a loopback port of its own."""

    def __init__(self, config):
        self.config, self.pods = config, lambda: []
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if self.path == "/configz":
                    document = {"kubeletconfig": kubelet.config}
                elif self.path == "/pods":
                    document = {"kind": "PodList", "apiVersion": "v1", "items": kubelet.pods()}
                else:
                    document = None
                body = json.dumps(document).encode()
                self.send_response(200 if document else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def kubelet_config(tree, **more):
    return {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "cgroupRoot": tree.cgroup_root,
            "cgroupDriver": tree.driver, "evictionHard": {"memory.available": "16Mi", "nodefs.available": "10%"},
            "evictionPressureTransitionPeriod": "5m0s", "enforceNodeAllocatable": ["pods"], **more}


def pod_object(name, request=None):
    resources = {"requests": {"memory": request}} if request else {}
    spec = {"nodeName": NODE,
            "containers": [{"name": "app", "image": "registry.k8s.io/none:1", "resources": resources}],
            "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 30}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@needs(can_write_cgroups(), "cgroups cannot be written here")
class Companion(unittest.TestCase):
    """Three pods: a hog, a steady one and one without a memory request."""

    @contextlib.contextmanager
    def node(self, driver, runtime="containerd", **config):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(workspace())
            tree = KubeletTree(driver, runtime)
            stack.callback(tree.remove)
            server = stack.enter_context(running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                 "--write-kubeconfig", folder / "kubeconfig"))
            api = serving(server, folder / "kubeconfig")
            self.identity = folder / "kubeconfig"
            if shutil.which("kubectl"):  # with the permissions of its manifest
                Kubectl(folder / "kubeconfig")("apply", "-f", ROOT / "deploy/companion/companion.yaml")
                self.identity = account_kubeconfig(api, folder / "kubeconfig", "spillway-companion")
            kubelet = FakeKubelet(kubelet_config(tree, **config))
            stack.callback(kubelet.close)
            api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
            self.folder, self.tree, self.api, self.kubelet, self.pods = folder, tree, api, kubelet, {}
            self.kubelet_url = kubelet.url
            pods_of_the_kubelet = threading.Lock()
            watching = Api(folder / "kubeconfig")  # connections are not shared between threads
            stack.callback(watching.close)

            def pods():
                with pods_of_the_kubelet:
                    return [watching.get(f"/api/v1/namespaces/default/pods/{name}") for name in list(self.pods)]
            kubelet.pods = pods
            yield

    def start_pod(self, name, *command, request=None):
        made = self.api.create("/api/v1/namespaces/default/pods", pod_object(name, request))
        uid = made["metadata"]["uid"]
        cgroup = self.tree.pod(uid, "burstable" if request else "besteffort")
        sandbox_id, container_id = (f"{abs(hash((name, part))):x}".rjust(16, "0") * 4 for part in ("sandbox", "app"))
        sandbox = self.tree.run(self.tree.container(cgroup, sandbox_id[:64]), "sleep", "600")
        main = self.tree.run(self.tree.container(cgroup, container_id[:64]), *command)
        self.api.patch(f"/api/v1/namespaces/default/pods/{name}/status",
                       {"status": {"phase": "Running", "qosClass": "Burstable" if request else "BestEffort",
                                   "conditions": [{"type": "Ready", "status": "True",
                                                   "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                                   "containerStatuses": [{"name": "app", "ready": True, "restartCount": 0, "image": "x",
                                                          "imageID": "",
                                                          "containerID": f"containerd://{container_id[:64]}",
                                                          "state": {
                                                              "running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}},
                       "strategic-merge")
        self.pods[name] = (main, sandbox, cgroup)

    def start_steady_pods(self):
        self.start_pod("steady", BINARY, "stress", "--memory", "24Mi", "--hold", "10m", request="64Mi")
        self.start_pod("idle", "sleep", "600")

    def start_hog(self, process, memory="400Mi", rate="10Mi"):
        """Starts a pod whose memory grows only once the companion has found it: an unknown pod cannot be chosen. From
        the threshold to the limit it takes six seconds, which a companion may have to wait for a processor."""
        go = self.folder / "go"
        self.start_pod(
            "hog",
            "sh",
            "-c",
            f"until [ -e {go} ]; do sleep 0.05; done; exec {BINARY} stress --memory {memory} --rate {rate} --hold 10m",
            request="32Mi",
        )
        self.wait_evictable(process, *(name for name in self.pods if self.pod_status(name)["phase"] == "Running"))
        go.touch()

    def command(self, *more):
        return ("agent", "--companion", "--kubeconfig", self.identity, "--node-name", NODE, "--kubelet",
                self.kubelet_url,
                "--node-memory", str(NODE_MEMORY), "--state-dir", self.folder / "state", "--pages-address",
                "127.0.0.1:0", *more)

    @contextlib.contextmanager
    def companion(self, *more):
        with running(self.folder, *self.command(*more)) as process:
            started = wait_for("the companion to run",
                               lambda: re.search(r"companion running.*?pages_port=(\d+)", process.log.read_text())
                               or (not process.running() and self.fail(process.tail())))
            port = int(started.group(1))
            process.page = lambda path: urllib.request.urlopen(f"http://127.0.0.1:{port}{path}",
                                                               timeout=PATIENCE).read().decode()
            yield process

    def pod_status(self, name):
        return self.api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]

    def wait_evictable(self, process, *names):
        def found():
            pods = json.loads(process.page("/debug/spillway"))["pods"]
            return {pod["name"] for pod in pods if pod["evictable"]} >= set(names)
        wait_for(f"{names} to be found", found)

    @contextlib.contextmanager
    def agent_as_kubelet(self):
        """A kubelet's server over HTTPS, which asks the API server for the identity and the rights of each client: an
        agent of ours, a node of its own, whose configuration says where the tree is. The companion is the service
        account of deploy/companion/companion.yaml. Yields the authority's file."""
        config = self.folder / "kubelet.conf"
        config.write_text(json.dumps(kubelet_config(self.tree, evictionHard={"memory.available": "16Mi"})))
        with running(self.folder, "agent", "--kubeconfig", self.folder / "kubeconfig", "--node-name", "served",
                     "--node-ip", "127.0.0.1", "--port", "0",
                     "--node-memory", "128Mi", "--config", config, "--state-dir", self.folder / "served") as kubelet:
            wait_for("the kubelet", lambda: self.api.nodes_ready() == ["served"])
            port = self.api.get("/api/v1/nodes/served")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
            self.kubelet_url = f"https://127.0.0.1:{port}"
            own = self.identity.read_text()
            self.identity = self.folder / "with-a-token-file"
            self.identity.write_text(re.sub(r"token: .*", "tokenFile: token", own))
            self.write_token(self.token_of("kube-system", "spillway-companion"))
            wait_for("its serving certificate", lambda: "serving certificate installed" in kubelet.log.read_text())
            yield self.folder / "data/pki/kubelet-serving/ca.crt"

    def token_of(self, namespace, account):
        return self.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                               {"spec": {}})["status"]["token"]

    def write_token(self, text):
        (self.folder / "token").write_text(text + "\n")

    def evicts_the_hog(self, driver, runtime="containerd", *more):
        with self.node(driver, runtime):
            self.evicts_the_hog_here(driver, runtime, *more)

    def evicts_the_hog_here(self, driver, runtime, *more):
        self.start_steady_pods()
        with self.companion("--eviction-hard", "memory.available<64Mi", *more) as process:
            self.start_hog(process)
            main, sandbox, cgroup = self.pods["hog"]
            main.wait(PATIENCE)
            died = time.monotonic()
            status = wait_for("the pod to be Failed", lambda: self.pod_status("hog")["phase"] == "Failed"
                              and self.pod_status("hog"))
            late = time.monotonic() - died
            self.assertEqual(status["reason"], "Evicted")
            self.assertRegex(
                status["message"],
                r"^The node was low on resource: memory\. Threshold quantity: 64Mi, available: \d+[KM]i\. "
                r"Container app was using \d+[KM]i, request is 32Mi, has larger consumption of memory\. $",
            )
            conditions = {each["type"]: each for each in status["conditions"]}
            self.assertEqual(conditions["DisruptionTarget"]["reason"], "TerminationByKubelet")
            self.assertEqual(conditions["Ready"]["status"], "False")
            for name in ("steady", "idle"):
                self.assertIsNone(self.pods[name][0].poll(), name)
                self.assertEqual(self.pod_status(name)["phase"], "Running", name)
            oom = int(re.search(r"(?:^|\n)oom_kill (\d+)",
                                (self.tree.top / "memory.oom_control" if is_v1()
                                 else self.tree.top / "memory.events").read_text()).group(1))
            self.assertEqual(oom, 0)
            events = wait_for("the event",
                              lambda: [event["source"]["component"]
                                       for event in self.api.get("/api/v1/namespaces/default/events")["items"]
                                                    if event["reason"] == "Evicted"])
            self.assertEqual(events, ["spillway-companion"])
            self.assertEqual(refusals(self.api), {})
            metrics = process.page("/metrics")
            self.assertIn('kubelet_evictions{eviction_signal="memory.available"} 1', metrics)
            # A companion is no node: nothing was registered, reported or renewed.
            node = self.api.get(f"/api/v1/nodes/{NODE}")
            self.assertNotIn("conditions", node.get("status", {}))
            self.assertIsNone(self.api.find(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"))
            print(
                f"{driver}, {runtime}: hog evicted, status {late * 1000:.0f} ms after its death, no kernel OOM; others"
                " untouched"
            )
        code, text, _ = run("explain", "--last", "--journal", self.folder / "state" / NODE / "journal.jsonl")
        self.assertEqual(code, 0)
        self.assertIn("pod default/hog was evicted", text)

    def test_cgroupfs(self):
        self.evicts_the_hog("cgroupfs")

    def test_systemd(self):
        self.evicts_the_hog("systemd")

    def test_systemd_crio_with_the_kubelets_pods(self):
        self.evicts_the_hog("systemd", "crio", "--pods-from", "kubelet")

    def test_cgroupfs_crio(self):
        self.evicts_the_hog("cgroupfs", "crio")

    @needs(shutil.which("kubectl"), "needs kubectl")
    def test_over_https_as_the_service_account_of_the_manifest(self):
        with self.node("systemd"), self.agent_as_kubelet() as authority:
            self.evicts_the_hog_here("systemd", "containerd", "--kubelet-certificate-authority", authority)

    @needs(shutil.which("kubectl"), "needs kubectl")
    def test_a_token_that_is_replaced_while_it_runs(self):
        with self.node("cgroupfs"), self.agent_as_kubelet():
            self.start_steady_pods()
            with self.companion("--eviction-hard", "memory.available<64Mi", "--pods-from", "kubelet") as process:
                wait_for("the kubelet's pods", lambda: json.loads(process.page("/debug/spillway"))["podsTold"])
            with self.companion("--eviction-hard", "memory.available<64Mi") as process:
                self.wait_evictable(process, "steady", "idle")
                account = "/api/v1/namespaces/kube-system/serviceaccounts/spillway-companion"
                self.api.delete(account)  # and with it every token of its
                wait_for("the account to be gone", lambda: self.api.find(account) is None)
                self.api.create("/api/v1/namespaces/kube-system/serviceaccounts",
                                {"metadata": {"name": "spillway-companion"}})
                self.write_token(self.token_of("kube-system", "spillway-companion"))
                self.start_hog(process)
                self.pods["hog"][0].wait(PATIENCE)
                wait_for("the pod to be Failed", lambda: self.pod_status("hog").get("reason") == "Evicted")

    @needs(shutil.which("kubectl"), "needs kubectl")
    def test_a_kubelet_that_refuses_is_reported_in_one_line(self):
        with self.node("systemd"), self.agent_as_kubelet() as authority:
            self.api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "stranger"}})
            for token, expected in (
                (
                    self.token_of("default", "stranger"),
                    r"/configz: .*Forbidden.*stranger.*: allow get of nodes/configz, or of nodes/proxy",
                ),
                ("nobodys-token", r"/configz: .*Unauthorized.*: the kubelet does not know who asks"),
            ):
                self.write_token(token)
                code, _, said = run(*self.command("--eviction-hard", "memory.available<64Mi"))
                self.assertEqual(code, 1, said)
                line = [each for each in said.splitlines() if each.startswith("spillway:")]
                self.assertEqual(len(line), 1, said)
                self.assertRegex(line[0], expected)
                print(line[0])
            with running(self.folder,
                         *self.command("--eviction-hard", "memory.available<64Mi", "--kubelet-certificate-authority",
                                                    self.folder / "data/pki/ca.crt")) as process:
                waiting = wait_for("the complaint",
                                   lambda: re.findall(r".*waiting for the kubelet.*", process.log.read_text()))
                self.assertIn("certificate not trusted", waiting[0])
                print(waiting[0])
            self.assertEqual(len(re.findall("waiting for the kubelet", process.log.read_text())), 1)

    def test_the_guard_and_another_estimator_than_the_kubelets(self):
        with self.node("cgroupfs"):
            self.start_steady_pods()
            with self.companion("--eviction-hard", "memory.available<17Mi", "--memory-estimator", "available",
                                "--mem-available-floor", "64Mi") as process:
                told = re.findall(r".*is defined differently by the kubelet.*", process.log.read_text())
                self.assertEqual(len(told), 1)
                self.assertIn("estimator=available kubelets_estimator=workingset", told[0])
                self.start_hog(process)
                self.pods["hog"][0].wait(PATIENCE)
                wait_for("the pod to be Failed", lambda: self.pod_status("hog").get("reason") == "Evicted")
                self.assertIn('kubelet_evictions{eviction_signal="memory.memAvailable"} 1', process.page("/metrics"))
                for name in ("steady", "idle"):
                    self.assertIsNone(self.pods[name][0].poll(), name)

    def test_a_shadow_kills_no_pod_and_agrees_with_the_kubelet(self):
        with self.node("systemd"):
            self.start_steady_pods()
            with self.companion("--shadow", "--eviction-hard", "memory.available<64Mi") as process:
                self.start_hog(process, memory="130Mi", rate="60Mi")
                wait_for("the shadow to choose", lambda: "would evict pod" in process.log.read_text())
                self.assertIn("pod=default/hog", process.log.read_text())
                for name, (main, sandbox, _) in self.pods.items():
                    self.assertIsNone(main.poll(), name)
                    self.assertEqual(self.pod_status(name)["phase"], "Running", name)
                events = [event for event in self.api.get("/api/v1/namespaces/default/events")["items"]]
                self.assertEqual(events, [])
                # Now the kubelet does the same.
                self.pods["hog"][0].kill()
                self.api.patch(
                    "/api/v1/namespaces/default/pods/hog/status",
                    {
                        "status": {
                            "phase": "Failed",
                            "reason": "Evicted",
                            "message": (
                                "The node was low on resource: memory. Threshold quantity: 16Mi, available: 15Mi. "
                            ),
                        }
                    },
                )
                wait_for(
                    "the agreement",
                    lambda: 'spillway_shadow_agreements_total{eviction_signal="memory.available"} 1'
                    in process.page("/metrics"),
                )
                self.assertNotIn("spillway_shadow_disagreements_total{", process.page("/metrics"))
                self.assertNotIn("kubelet_evictions{", process.page("/metrics"))
            code, text, _ = run("explain", "--last", "--journal", self.folder / "state" / NODE / "journal.jsonl")
            self.assertEqual(code, 0)
            self.assertIn("pod default/hog would have been evicted", text)
            self.assertIn("agreed", text)
            print(text)

    def test_a_shadow_reports_where_the_kubelet_differs(self):
        with self.node("cgroupfs"):
            self.start_steady_pods()
            with self.companion("--shadow", "--eviction-hard", "memory.available<64Mi", "--shadow-window",
                                "1s") as process:
                self.wait_evictable(process, "steady", "idle")
                # The kubelet evicts one although there is memory enough.
                self.api.patch(
                    "/api/v1/namespaces/default/pods/idle/status",
                    {
                        "status": {
                            "phase": "Failed",
                            "reason": "Evicted",
                            "message": (
                                "The node was low on resource: memory. Threshold quantity: 16Mi, available: 15Mi. "
                            ),
                        }
                    },
                )
                wait_for("kubelet-only",
                         lambda: 'spillway_shadow_disagreements_total{kind="kubelet-only"} 1' in process.page(
                             "/metrics"))
                # And does nothing about one that we would have evicted.
                self.start_hog(process, memory="130Mi", rate="60Mi")
                wait_for("companion-only",
                         lambda: 'spillway_shadow_disagreements_total{kind="companion-only"}' in process.page(
                             "/metrics"))
                self.assertIsNone(self.pods["hog"][0].poll())
            entries = [json.loads(line)
                       for line in (self.folder / "state" / NODE / "journal.jsonl").read_text().splitlines()]
            self.assertTrue(any("kubelet-evicted" in json.dumps(each) for each in entries))
            self.assertFalse(any(each.get("eviction") for each in entries),
                             "nothing that would be finished after a crash")

    def test_refuses_to_double_the_kubelets_thresholds(self):
        with self.node("systemd"):
            for thresholds in ((), ("--eviction-hard", "memory.available<16Mi"),
                               ("--eviction-hard", "memory.available<5%")):
                code, _, said = run(*self.command(*thresholds))
                self.assertEqual(code, 1, said)
                line = [each for each in said.splitlines() if each.startswith("spillway:")]
                self.assertEqual(len(line), 1, said)
                self.assertIn("both would evict", line[0])
                self.assertIn("--eviction-hard='memory.available<32Mi'", line[0])
                self.assertIn("--shadow", line[0])
                print(line[0])
            with self.companion("--shadow") as process:  # looking is always allowed, by the kubelet's own thresholds
                self.assertIn("memory.available<16Mi", process.log.read_text())

    def test_one_companion_at_a_time(self):
        with self.node("systemd"), self.companion("--eviction-hard", "memory.available<64Mi"):
            code, _, said = run(*self.command("--eviction-hard", "memory.available<64Mi"))
            self.assertEqual(code, 1)
            self.assertIn("another companion works in this directory", said)

    def test_flags_that_do_not_go_together(self):
        with workspace() as folder:
            config = folder / "kubeconfig"
            config.write_text(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user:"
                " u}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n"
            )
            for flags, expected in ((("--shadow",), "need --companion"),
                                    (("--pods-from", "kubelet"), "need --companion"),
                                    (("--companion", "--node-labels", "a=b"), "--node-labels"),
                                    (("--companion", "--port", "1"), "--port"),
                                    (("--companion", "--shadow-window", "2m"), "needs --shadow"),
                                    (("--companion", "--shadow", "--memory-brake"), "--memory-brake"),
                                    (("--companion", "--print-config"), "--print-config"),
                                    (("--companion", "--max-pods", "7"), "maxPods"),
                                    (("--companion", "--eviction-hard", "nodefs.available<10%"),
                                     "evicts for disks only with"),
                                    (("--companion", "--kubelet", "https://192.0.2.1:10250"),
                                     "--kubelet-certificate-authority"),
                                    (("--companion", "--pods-from", "nowhere"), "expected api or kubelet")):
                code, _, said = run("agent", "--kubeconfig", config, *flags)
                self.assertEqual((code, len(said.strip().splitlines())), (2, 1), (flags, said))
                self.assertIn(expected, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
