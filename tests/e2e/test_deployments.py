"""Deployments as an operator uses them, with kubectl against `spillway up`."""
import re
import shutil
import unittest

from harness import can_write_cgroups, needs, one_node, run, wait_for, workspace

QUICK = '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":0}}}}'


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class Deployments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        node = cls.enterClassContext(one_node(cls.folder))
        cls.api, cls.kubectl = node.api, node.kubectl

    def explain(self, name):
        code, said, problems = run("explain", f"deployment/{name}", "--kubeconfig", self.folder / "kubeconfig")
        self.assertEqual((code, problems), (0, ""))
        return said

    def rolled_out(self, name):
        self.assertIn("successfully rolled out", self.kubectl("rollout", "status", f"deployment/{name}"))

    def images(self, name):
        """The images of pods that are not on their way out, once none is."""
        def settled():
            pods = self.kubectl.get("pods", "-l", f"app={name}")["items"]
            return None if any("deletionTimestamp" in pod["metadata"] for pod in pods) else pods
        return sorted(pod["spec"]["containers"][0]["image"] for pod in wait_for("old pods to end", settled))

    def test_the_first_thing_anybody_types(self):
        made = self.kubectl("create", "deployment", "web", "--image=one", "--replicas=3", "--", "sleep", "1d")
        self.assertIn("created", made)
        self.kubectl("patch", "deployment", "web", "-p", QUICK)
        self.rolled_out("web")
        self.assertEqual(self.images("web"), ["one"] * 3)
        self.assertRegex(self.kubectl("get", "deployments"), r"web\s+3/3\s+3\s+3")
        self.kubectl("set", "image", "deployment/web", "one=two")
        self.rolled_out("web")
        self.assertEqual(self.images("web"), ["two"] * 3)
        self.kubectl("rollout", "undo", "deployment/web")
        self.rolled_out("web")
        self.assertEqual(self.images("web"), ["one"] * 3)
        history = self.kubectl("rollout", "history", "deployment/web")
        self.assertRegex(history, r"(?m)^3\s")
        self.assertRegex(history, r"(?m)^4\s")
        self.kubectl("scale", "deployment/web", "--replicas=5")
        self.rolled_out("web")
        self.assertEqual(len(self.images("web")), 5)
        before = {pod["metadata"]["uid"] for pod in self.kubectl.get("pods", "-l", "app=web")["items"]}
        self.kubectl("rollout", "restart", "deployment/web")
        self.rolled_out("web")
        self.images("web")
        after = {pod["metadata"]["uid"] for pod in self.kubectl.get("pods", "-l", "app=web")["items"]}
        self.assertEqual((len(after), before & after), (5, set()))
        self.kubectl("rollout", "pause", "deployment/web")
        self.kubectl("set", "image", "deployment/web", "one=three")
        wait_for("the controller to see it", lambda: "is not rolled out yet: it is paused" in self.explain("web"))
        self.assertEqual(set(self.images("web")), {"one"})
        self.kubectl("rollout", "resume", "deployment/web")
        self.rolled_out("web")
        self.assertEqual(self.images("web"), ["three"] * 5)
        self.assertIn("deployment default/web is rolled out", self.explain("web"))
        self.kubectl("delete", "deployment", "web")
        wait_for("its pods and replica sets to go",
                 lambda: not self.kubectl.get("pods,replicasets", "-l", "app=web")["items"])

    def test_an_autoscaler_scales_it(self):
        self.kubectl("create", "deployment", "busy", "--image=one", "--", "sleep", "1d")
        self.kubectl("patch", "deployment", "busy", "-p",
                     '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":0,"containers":['
                     '{"name":"one","resources":{"requests":{"cpu":"10m","memory":"1Mi"}}}]}}}}')
        self.assertIn("autoscaled",
                      self.kubectl("autoscale", "deployment", "busy", "--min=2", "--max=3", "--cpu-percent=50"))
        replicas = ("get", "deployment", "busy", "-o", "jsonpath={.spec.replicas}")
        wait_for("as many as there are to be at least", lambda: self.kubectl(*replicas) == "2")
        self.assertIn("targetCPUUtilizationPercentage: 50",
                      self.kubectl("get", "horizontalpodautoscalers.v1.autoscaling", "busy", "-o", "yaml"))
        measured = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector=app%3Dbusy"
        wait_for("both pods to be measured", lambda: len(self.api.get(measured)["items"]) == 2)
        # The memory of a pod counts at once; its processor time would not, for the first minutes.
        self.kubectl("patch", "hpa", "busy", "--type=merge", "-p",
                     '{"spec":{"metrics":[{"type":"Resource","resource":{"name":"memory",'
                     '"target":{"type":"AverageValue","averageValue":"1"}}}]}}')
        wait_for("the autoscaler to have read what its pods hold", lambda: self.kubectl(*replicas) == "3")
        wait_for("its table to say so",
                 lambda: re.search(r"busy\s+Deployment/busy\s+memory: [0-9]+\S*/1\s+2\s+3\s+[23]",
                                   self.kubectl("get", "hpa")))
        for each in ("SuccessfulRescale", "New size: 3; reason: memory resource above target", "ValidMetricFound",
                     "TooManyReplicas"):
            wait_for(f"{each} in its description", lambda each=each: each in self.kubectl("describe", "hpa", "busy"))
        self.kubectl("delete", "hpa,deployment", "busy")

    def test_a_rollout_that_waits_says_for_what(self):
        self.kubectl("create", "deployment", "shop", "--image=one", "--replicas=4", "--", "sleep", "1d")
        self.kubectl("patch", "deployment", "shop", "-p",
                     '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":0}},'
                     '"template":{"spec":{"terminationGracePeriodSeconds":0}}}}')
        self.rolled_out("shop")
        self.kubectl("patch", "deployment", "shop", "-p",
                     '{"spec":{"template":{"spec":{"nodeSelector":{"there-is":"none"}}}}}')
        wanted = (
            "is not rolled out yet: there may be 5 pods at a time (4 wanted, 1 more by maxSurge), and 5 are wanted",
                  "4 pods must be available", "node affinity/selector")
        wait_for(lambda: f"the bound to be reached; it says\n{self.explain('shop')}",
                 lambda: all(each in self.explain("shop") for each in wanted))
        self.assertEqual(self.images("shop").count("one"), 5)
        self.kubectl("rollout", "undo", "deployment/shop")
        self.rolled_out("shop")
        self.kubectl("delete", "deployment", "shop")

    def test_a_service_knows_its_pods(self):
        """By the address that they have; a machine that has none but its loopback's has no endpoints."""
        self.kubectl("create", "deployment", "site", "--image=one", "--replicas=2", "--", "sleep", "1d")
        self.kubectl("patch", "deployment", "site", "-p", QUICK)
        self.rolled_out("site")
        self.kubectl("expose", "deployment", "site", "--port=80", "--target-port=8080")

        def behind(count):
            """Pods by their uids, in slices and in Endpoints, once these are as many as are ready."""
            pods = [pod for pod in self.kubectl.get("pods", "-l", "app=site")["items"]
                    if "deletionTimestamp" not in pod["metadata"]]
            reached = {pod["metadata"]["uid"] for pod in pods
                       if not pod["status"].get("podIP", "127.").startswith("127.")}
            slices = self.kubectl.get("endpointslices", "-l", "kubernetes.io/service-name=site")["items"]
            ready = {each["targetRef"]["uid"] for part in slices for each in part["endpoints"] or []
                     if each["conditions"]["ready"]}
            subsets = [subset for each in self.kubectl.get("endpoints")["items"] if each["metadata"]["name"] == "site"
                       for subset in each.get("subsets", [])]
            listed = {each["targetRef"]["uid"] for subset in subsets for each in subset.get("addresses", [])}
            return slices and len(pods) == count and ready == listed == reached and sorted(
                pod["status"]["podIP"] for pod in pods)
        ips = wait_for("two endpoints", lambda: behind(2))
        ips = [] if ips[0].startswith("127.") else ips
        shown = self.kubectl("get", "endpoints", "site")
        self.assertRegex(shown, rf"site\s+{','.join(f'{ip}:8080' for ip in ips) or '<none>'}\s+\d+s")
        shown = self.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=site")
        self.assertRegex(
            shown, rf"site-[a-z0-9]{{5}}\s+IPv4\s+{8080 if ips else '<unset>'}\s+{','.join(ips) or '<unset>'}\s+\d+s"
        )
        self.kubectl("scale", "deployment/site", "--replicas=1")
        wait_for("one endpoint", lambda: behind(1))
        self.kubectl("delete", "service", "site")
        wait_for("its endpoints to go",
                 lambda: not [each for each in self.kubectl.get("endpoints,endpointslices")["items"]
                                                     if each["metadata"]["name"].startswith("site")])
        self.kubectl("delete", "deployment", "site")

    def test_a_daemon_set_is_undone(self):
        self.kubectl.apply({"apiVersion": "apps/v1", "kind": "DaemonSet",
                            "metadata": {"name": "watcher", "namespace": "default"},
                            "spec": {"selector": {"matchLabels": {"app": "watcher"}},
                                     "template": {"metadata": {"labels": {"app": "watcher"}},
                                                  "spec": {"terminationGracePeriodSeconds": 0,
                                                           "containers": [{"name": "main", "image": "one",
                                                                           "command": ["sleep", "1d"]}]}}}})
        self.kubectl("rollout", "status", "ds/watcher")
        self.kubectl("set", "image", "ds/watcher", "main=two")
        self.kubectl("rollout", "status", "ds/watcher")
        self.assertEqual(self.images("watcher"), ["two"])
        history = self.kubectl("rollout", "history", "ds/watcher")
        self.assertRegex(history, r"(?m)^1\s")
        self.assertRegex(history, r"(?m)^2\s")
        self.kubectl("rollout", "undo", "ds/watcher")
        self.kubectl("rollout", "status", "ds/watcher")
        self.assertEqual(self.images("watcher"), ["one"])
        self.assertRegex(self.kubectl("get", "controllerrevisions"), r"watcher-\S+\s+daemonset.apps/watcher\s+3\s")
        self.kubectl("delete", "ds", "watcher")


if __name__ == "__main__":
    unittest.main()
