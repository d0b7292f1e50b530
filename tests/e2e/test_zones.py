"""The pages and commands of a controller process: health, metrics, configuration, zones, holds, an explained node."""
import json
import re
import shutil
import ssl
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from harness import PATIENCE, run, running, serving, wait_for, workspace
from test_leader import silent_node

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/spillway-controller"
FAST = ("--node-monitor-period", "200ms", "--node-monitor-grace-period", "1s")
# Names that are upstream's, which promtool would like to be others.
UPSTREAM_NAMES = ("endpoint_slice_controller_changes ", "endpoint_slice_controller_syncs ")


class Zones(unittest.TestCase):
    def page(self, url, path, api=None):
        """Status and text of a page, with the administrator's certificate if `api` is given."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if api:
            context = api.context
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(url + path, context=context, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def test_a_controller_process(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         kubeconfig) as server:
                api = serving(server, kubeconfig)
                code, _, err = run("zones", "--kubeconfig", kubeconfig)
                self.assertEqual(code, 1)
                self.assertIn("no controller found", err)
                for name in ("n1", "n2"):
                    api.create("/api/v1/nodes", silent_node(name))
                with running(folder, "controller", "--kubeconfig", kubeconfig, *FAST):
                    def zones():
                        code, out, _ = run("zones", "--kubeconfig", kubeconfig, "-o", "json")
                        return json.loads(out) if code == 0 else None
                    found = wait_for("two disrupted zones", lambda: (z := zones())
                                     and [i["state"] for i in z["items"]] == ["FullDisruption"] * 2 and z)
                    self.assertEqual([item["zone"] for item in found["items"]], ["::n1", "::n2"])
                    code, out, err = run("zones", "--kubeconfig", kubeconfig)
                    self.assertEqual((code, err), (0, ""))
                    self.assertRegex(out, r"(?m)^ZONE +STATE +READY +RATE +QUEUE +NEXT +BRAKE$")
                    self.assertRegex(out, r"(?m)^::n1 +FullDisruption +0/1 +stopped")

                    code, out, err = run("explain", "node/n1", "--kubeconfig", kubeconfig)
                    self.assertEqual(code, 0, err)
                    self.assertIn("zone ::n1 is FullDisruption: 0 of 1 nodes are ready", out)
                    code, out, _ = run("explain", "node/n1", "-o", "json", "--kubeconfig", kubeconfig)
                    self.assertEqual(json.loads(out)["lifecycle"]["subject"]["name"], "n1")

                    url = api.get(LEASE)["metadata"]["annotations"]["spillway.dev/controller-url"]
                    for path in ("/healthz", "/livez", "/readyz"):
                        self.assertEqual(self.page(url, path), (200, "ok"))
                    self.assertEqual(self.page(url, "/metrics")[0], 401)
                    self.assertEqual(self.page(url, "/nothing", api)[0], 404)
                    self.assertEqual(json.loads(self.page(url, "/configz",
                                                          api)[1])["kubeCloudShared"]["nodeMonitorPeriod"], "200ms")
                    self.assertEqual(self.page(url, "/debug/spillway/nodes/n9", api)[0], 404)
                    status, metrics = self.page(url, "/metrics", api)
                    self.assertEqual(status, 200)
                    for name in ('node_collector_zone_health{zone="::n1"} 0', 'node_collector_zone_size{zone="::n1"} 1',
                                 'node_collector_unhealthy_nodes_in_zone{zone="::n1"} 1',
                                 'node_collector_evictions_total{zone="::n1"} 0',
                                 "node_collector_update_all_nodes_health_duration_seconds_count",
                                 "node_collector_update_node_health_duration_seconds_bucket",
                                 "taint_eviction_controller_pod_deletions_total",
                                 "taint_eviction_controller_pod_deletion_duration_seconds_bucket",
                                 'leader_election_master_status{name="spillway-controller"} 1',
                                 "rest_client_requests_total{", 'workqueue_depth{name="replicaset"} 0',
                                 'workqueue_adds_total{name="daemonset"} 0',
                                 'workqueue_retries_total{name="replicaset"} 0',
                                 'workqueue_queue_duration_seconds_count{name="daemonset"} 0'):
                        self.assertIn(name, metrics)
                    if shutil.which("promtool"):
                        checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True,
                                                 capture_output=True)
                        said = (checked.stdout + checked.stderr).splitlines()
                        self.assertEqual([line for line in said if not line.startswith(UPSTREAM_NAMES)], [])

    def test_holds(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            with running(folder, "up", "--nodes", "0", "--data-dir", folder / "data", "--port", "0",
                         "--write-kubeconfig", kubeconfig, *FAST) as server:
                api = serving(server, kubeconfig)
                status = lambda name: api.get(f"/api/v1/nodes/{name}")["status"]["conditions"][0]["status"]
                # Until the controllers lead, it also says that they do not answer.
                explained = lambda: run("explain", "pod/nothing", "--kubeconfig", kubeconfig)
                nothing = 'spillway: explain: pods "default/nothing" not found, and nothing has been decided about it\n'
                wait_for(lambda: f"nothing to explain: {explained()}", lambda: explained() == (3, "", nothing))
                first = silent_node("n0")
                first["metadata"]["labels"]["topology.kubernetes.io/zone"] = "n1"
                api.create("/api/v1/nodes", first)
                wait_for("n0 to be Unknown", lambda: status("n0") == "Unknown")
                for zone, words in (("nozone", 'there is no zone "nozone": the nodes are in ::n1'),
                                    ("m1", "did you mean ::n1?"), ("-", "there is no zone")):
                    code, out, err = run("hold", "--kubeconfig", kubeconfig, "--zone", zone)
                    self.assertEqual((code, out), (2, ""), err)
                    self.assertIn(words, err)
                self.assertIsNone(api.find("/api/v1/namespaces/kube-system/configmaps/spillway-hold"))
                # the value of the label
                code, out, err = run("hold", "--kubeconfig", kubeconfig, "--zone", "n1", "--why", "moving racks")
                self.assertEqual(code, 0, err)
                self.assertRegex(out, r"^zone ::n1 is held on 127\.0\.0\.1:\d+\n")
                wait_for("the hold", lambda: "moving racks" in run("zones", "--kubeconfig", kubeconfig)[1])
                for name in ("n1", "n2"):
                    api.create("/api/v1/nodes", silent_node(name))
                wait_for("n2 to be Unknown", lambda: status("n2") == "Unknown")
                code, out, _ = run("zones", "--kubeconfig", kubeconfig)
                self.assertRegex(out, r"(?m)^::n1 .*zone ::n1 is held by hand: moving racks$")
                self.assertEqual(status("n1"), "True")
                _, out, _ = run("explain", "node/n1", "--kubeconfig", kubeconfig)
                self.assertIn("moving racks", out)
                self.assertEqual(run("resume", "--kubeconfig", kubeconfig, "--zone", "::n9")[0], 2)
                self.assertRegex(run("resume", "--kubeconfig", kubeconfig, "--zone", "::n1")[1],
                                 r"^zone ::n1 is resumed on 127\.0\.0\.1:\d+\n$")
                wait_for("n1 to be Unknown", lambda: status("n1") == "Unknown")
                self.assertIsNone(api.find("/api/v1/namespaces/kube-system/configmaps/spillway-hold"))
                self.assertRegex(run("resume", "--kubeconfig", kubeconfig)[1],
                                 r"^nothing is held on 127\.0\.0\.1:\d+\n$")
                run("hold", "--kubeconfig", kubeconfig)
                wait_for("the hold", lambda: "everything is held by hand" in run("zones", "--kubeconfig",
                                                                                 kubeconfig)[1])

    def test_a_machine_that_is_gone(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            plugin = folder / "plugin.py"
            plugin.write_text(
                "import json, sys\nasked = json.load(sys.stdin)['nodes']\nprint(json.dumps({'nodes': [{'name':"
                " n['name'], 'exists': 'gone' not in n['providerID'], 'shutdown': 'off' in n['providerID']} for n in"
                " asked]}))\n"
            )
            with running(folder, "up", "--nodes", "0", "--data-dir", folder / "data", "--port", "0",
                         "--write-kubeconfig", kubeconfig, *FAST,
                         "--cloud-instance-check-command", f"python3 {plugin}") as server:
                api = serving(server, kubeconfig)
                for name, machine in (("n1", "test://gone"), ("n2", "test://off")):
                    node = silent_node(name)
                    node["spec"] = {"providerID": machine}
                    api.create("/api/v1/nodes", node)
                wait_for("n1 to be deleted", lambda: api.find("/api/v1/nodes/n1") is None)
                wait_for("n2 to be tainted",
                         lambda: "node.cloudprovider.kubernetes.io/shutdown" in str(
                             api.get("/api/v1/nodes/n2")["spec"].get("taints")))
                events = wait_for("the event",
                                  lambda: [e for e in api.get("/api/v1/events")["items"]
                                           if e["reason"] == "DeletingNode"])
                self.assertEqual([e["involvedObject"]["name"] for e in events], ["n1"])

    def test_configuration_files(self):
        with workspace() as folder:
            file = folder / "config.yaml"
            head = (
                "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"
            )
            file.write_text(
                head
                + "kubeCloudShared:\n  nodeMonitorPeriod: 7s\n  clusterName: x\nNodeLifecycleController:\n "
                " NodeEvictionRate: 0.5\ngeneric:\n  controllers: ['*', -replicaset-controller]\n  leaderElection:\n "
                "   leaderElect: false\nspillway:\n  limitTaints: 5/1m\n"
            )
            code, out, err = run("controller", "--config", file, "--node-eviction-rate", "0.25",
                                 "--use-service-account-credentials=true", "--print-config")
            self.assertEqual(code, 0, err)
            self.assertRegex(err, r"config.yaml:5: kubeCloudShared.clusterName: has no effect here")
            self.assertIn(
                "--use-service-account-credentials has no effect here: all requests use the kubeconfig's user", err)
            for line in ("nodeMonitorPeriod: 7s", "nodeEvictionRate: 0.25", "leaderElect: false", "limitTaints: 5/1m",
                         "- -replicaset-controller"):
                self.assertIn(line, out.replace('"', ""))
            (folder / "again.yaml").write_text(out)
            self.assertEqual(run("controller", "--config", folder / "again.yaml", "--print-config")[1], out)
            for text, expected in (
                (
                    head + "nodeLifecycleController:\n  nodeEvictionRat: 1\n",
                    (
                        ":4: nodeLifecycleController.nodeEvictionRat: unknown (did you mean"
                        " nodeLifecycleController.nodeEvictionRate?)"
                    ),
                ),
                (
                    head + "kubeCloudShared:\n  clusterNam: x\n",
                    ":4: kubeCloudShared.clusterNam: unknown (did you mean kubeCloudShared.clusterName?)",
                ),
                (
                    head + "kubeCloudShared:\n  nodeMonitorPeriod: 5\n",
                    ":4: kubeCloudShared.nodeMonitorPeriod: expected a duration",
                ),
                (head + "nodeLifecycleController: 3\n", ":3: nodeLifecycleController: expected a mapping"),
                (head + "nodeLifecycleController:\n  nodeEvictionRate: -1\n", "--node-eviction-rate"),
                ("kind: KubeControllerManagerConfiguration\n", "apiVersion is missing"),
            ):
                file.write_text(text)
                code, out, err = run("controller", "--config", file, "--print-config")
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn(expected, err)
                self.assertEqual(len(err.strip().splitlines()), 1, err)

    def test_a_drop_in_directory(self):
        with workspace() as folder:
            head = (
                "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"
            )
            drop_ins = folder / "conf.d"
            drop_ins.mkdir()
            (folder / "base.yaml").write_text(
                head
                + "kubeCloudShared:\n  nodeMonitorPeriod: 7s\nnodeLifecycleController:\n  nodeEvictionRate: 0.5\n  "
                "nodeMonitorGracePeriod: 41s\ngeneric:\n  controllers: [a, b]\n  clientConnection: {qps: 7, burst: 9}\n"
                "spillway:\n  evictionMode: timeout\n"
            )
            (drop_ins / "20-late.conf").write_text(
                head + "nodeLifecycleController:\n  nodeEvictionRate: 0.3\n  enableTaintManager: true\n"
            )
            (drop_ins / "10-early.conf").write_text(
                head
                + "nodeLifecycleController:\n  nodeEvictionRate: 0.4\n  nodeMonitorGracePeriod: 42s\n"
                "generic:\n  controllers: ['*']\n"
            )
            (drop_ins / "30-empty.conf").write_text("")
            (drop_ins / "90-no.yaml").write_text("this is not looked at")
            command = ("controller", "--config", folder / "base.yaml", "--config-dir", drop_ins, "--print-config")
            code, out, err = run(*command, "--node-monitor-grace-period=43s")
            self.assertEqual((code, err), (0, ""))
            for line in ("nodeMonitorPeriod: 7s", "nodeEvictionRate: 0.3", "nodeMonitorGracePeriod: 43s",
                         "evictionMode: taint", "qps: 7", "burst: 9"):
                self.assertIn(line, out.replace('"', ""))
            self.assertEqual(re.findall(r"controllers:\n((?: +- .*\n)+)", out.replace('"', ""))[0].split(), ["-", "*"])
            self.assertIn("evictionMode: timeout", run(*command, "--enable-taint-manager=false")[1].replace('"', ""))
            # Everything that is wrong is said at once.
            (drop_ins / "10-early.conf").write_text(
                head + "nodeLifecycleController:\n  nodeEvictionRat: 1\nkubeCloudShared:\n  clusterName: x\n"
            )
            (drop_ins / "20-late.conf").write_text(head + "nodeLifecycleController:\n  nodeEvictionRate: fast\n")
            code, out, err = run(*command)
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, r"warning: \S*10-early.conf:6: kubeCloudShared.clusterName: has no effect here")
            self.assertRegex(
                err,
                (
                    r"10-early.conf:4: nodeLifecycleController.nodeEvictionRat: unknown \(did you mean"
                    r" nodeLifecycleController.nodeEvictionRate\?\)"
                ),
            )
            self.assertRegex(err, r"20-late.conf:4: nodeLifecycleController.nodeEvictionRate: expected a number")
            self.assertEqual(len(err.strip().splitlines()), 3, err)
            self.assertIn("--config-dir", run("controller", "--config-dir", folder / "nowhere", "--print-config")[2])

    def test_a_rate_of_writes(self):
        with workspace() as folder:
            kubeconfig = folder / "kubeconfig"
            with running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--write-kubeconfig",
                         kubeconfig) as server:
                api = serving(server, kubeconfig)
                nodes = [f"n{number}" for number in range(8)]
                for name in nodes:
                    api.create("/api/v1/nodes", silent_node(name))
                started = time.monotonic()
                with running(folder, "controller", "--kubeconfig", kubeconfig, *FAST, "--kube-api-qps", "4",
                             "--kube-api-burst", "1"):
                    wait_for("all to be Unknown",
                             lambda: all("Unknown" in str(api.get(f"/api/v1/nodes/{name}")["status"]["conditions"])
                                         for name in nodes))
                    took = time.monotonic() - started
                    lease = api.get(LEASE)
                    metrics = self.page(lease["metadata"]["annotations"]["spillway.dev/controller-url"], "/metrics",
                                        api)[1]
                # At least eight statuses and eight events, four writes a second. The lease is renewed all the same, and
                # reads do not wait.
                self.assertGreater(took, 15 / 4)
                self.assertGreater(lease["spec"]["renewTime"], lease["spec"]["acquireTime"])
                waits = {verb: float(total) for verb,
                         total in re.findall(
                             r'rest_client_rate_limiter_duration_seconds_sum\{host="[^"]*",verb="(\w+)"\} (\S+)',
                             metrics)}
                self.assertGreater(waits["PATCH"], 1.0, waits)
                self.assertNotIn("GET", waits)
                print(f"\neight nodes at 4 writes per second: {took:.1f} s; waited in all {waits}", flush=True)

    def test_flags_of_kube_controller_manager(self):
        taken = {"--node-monitor-period": "6s", "--node-monitor-grace-period": "41s",
                 "--node-startup-grace-period": "61s", "--pod-eviction-timeout": "3m",
                 "--node-eviction-rate": "0.2", "--secondary-node-eviction-rate": "0.02",
                 "--large-cluster-size-threshold": "60",
                 "--unhealthy-zone-threshold": "0.6", "--terminated-pod-gc-threshold": "100", "--kube-api-qps": "50",
                 "--kube-api-burst": "100",
                 "--leader-elect": "true", "--leader-elect-lease-duration": "30s",
                 "--leader-elect-renew-deadline": "20s",
                 "--leader-elect-retry-period": "3s", "--leader-elect-resource-lock": "leases",
                 "--leader-elect-resource-name": "x",
                 "--leader-elect-resource-namespace": "y", "--bind-address": "127.0.0.2", "--secure-port": "0",
                 "--controllers": "*,bootstrapsigner",
                 "--enable-taint-manager": "false", "--feature-gates": "TaintBasedEvictions=false,Other=true",
                 "--concurrent-gc-syncs": "3",
                 "--authentication-kubeconfig": "/x", "--cluster-cidr": "10.0.0.0/8",
                 "--horizontal-pod-autoscaler-sync-period": "20s",
                 "--horizontal-pod-autoscaler-tolerance": "0.2",
                 "--horizontal-pod-autoscaler-downscale-stabilization": "0s",
                 "--horizontal-pod-autoscaler-cpu-initialization-period": "4m",
                 "--horizontal-pod-autoscaler-initial-readiness-delay": "45s"}
        code, out, err = run("controller", "--print-config", *(f"{flag}={value}" for flag, value in taken.items()))
        self.assertEqual(code, 0, err)
        out = out.replace('"', "")
        for line in ("nodeMonitorPeriod: 6s", "nodeMonitorGracePeriod: 41s", "nodeStartupGracePeriod: 1m1s",
                     "podEvictionTimeout: 3m0s", "nodeEvictionRate: 0.2",
                     "secondaryNodeEvictionRate: 0.02", "largeClusterSizeThreshold: 60", "unhealthyZoneThreshold: 0.6",
                     "terminatedPodGCThreshold: 100",
                     "qps: 50", "burst: 100", "leaseDuration: 30s", "renewDeadline: 20s", "retryPeriod: 3s",
                     "resourceName: x", "resourceNamespace: y",
                     "address: 127.0.0.2", "enableTaintManager: false", "evictionMode: timeout",
                     "horizontalPodAutoscalerSyncPeriod: 20s",
                     "horizontalPodAutoscalerTolerance: 0.2", "horizontalPodAutoscalerDownscaleStabilizationWindow: 0s",
                     "horizontalPodAutoscalerCPUInitializationPeriod: 4m0s",
                     "horizontalPodAutoscalerInitialReadinessDelay: 45s"):
            self.assertIn(line, out)
        for flag, why in (("--concurrent-replicaset-syncs", "objects are synced one after the other"),
                          ("--concurrent-gc-syncs", "this feature does not exist here"),
                          ("--concurrent-validating-admission-policy-status-syncs", "does not exist here")):
            self.assertRegex(run("controller", "--print-config", flag, "5")[2],
                             f"^spillway: warning: {flag} has no effect here: .*{why}")
        for flag, value in (("--feature-gates", "X"), ("--leader-elect-resource-lock", "endpoints"),
                            ("--kube-api-qps", "0"), ("--node-eviction-rate", "-1"),
                            ("--unhealthy-zone-threshold", "2"), ("--enable-taint-manager", "maybe"),
                            ("--node-monitor-period", "0s"), ("--secure-port", "70000"),
                            ("--bind-address", "here"), ("--horizontal-pod-autoscaler-tolerance", "-0.1"),
                            ("--horizontal-pod-autoscaler-sync-period", "0s"),
                            ("--horizontal-pod-autoscaler-downscale-stabilization", "-1s")):
            code, out, err = run("controller", "--print-config", f"{flag}={value}")
            self.assertEqual((code, out), (2, ""), flag)
            self.assertIn(flag, err)
        self.assertEqual(run("controller", "--kubeconfig", "/dev/null", "--controllers", "nodelifecicle")[0], 2)
        self.assertIn("--kubeconfig: is required", run("controller")[2])


if __name__ == "__main__":
    unittest.main()
