"""The dashboard in a headless Chromium: every view against `spillway up` and against a stock cluster without any
Spillway; an eviction that appears while one looks, hold and resume, a user who may do nothing, a server that goes and
comes back; two colour schemes, three widths, axe; 5,000 nodes, with what a frame takes and what the page holds printed.
The door `/ui/` of an API server."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import ssl
import threading
import time
import unittest
import urllib.error
import urllib.request

import browser
import stock_api
from dashboard_process import Dashboard, dashboard
from harness import (
    PATIENCE,
    ROOT,
    account_kubeconfig,
    can_write_cgroups,
    needs,
    one_node,
    pod,
    run,
    running,
    serving,
    wait_for,
    workspace,
)
from test_leader import silent_node

AXE = ROOT / "ui/node_modules/axe-core/axe.min.js"
WIDTHS = (390, 1280, 2560)
# True if some tile has the colour that the style sheet gives to nodes that are ready.
TILES_FOLLOW = """(() => {
    const canvas = document.querySelector('canvas'), copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
    copy.drawImage(canvas, 0, 0);
    const wanted = getComputedStyle(document.documentElement).getPropertyValue('--t-ready').trim(), {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4) if ('#' + [0, 1, 2].map(at => data[i + at].toString(16).padStart(2, '0')).join('') === wanted) return true;
    return false;
})()"""
FAST = ("--node-monitor-period", "200ms", "--node-monitor-grace-period", "1s")
# From the threshold to the limit of the node it takes five seconds, which an agent may have to wait for a processor.
HOG = ["spillway", "stress", "--memory", "400Mi", "--rate", "20Mi/s", "--hold", "1h"]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/spillway-controller"
HOLD = "/api/v1/namespaces/kube-system/configmaps/spillway-hold"
# Paths that a page requests in vain in a stock cluster, which the browser reports: they find out if Spillway programs
# answer.
ASKED_IN_VAIN = ("/debug/spillway/", "/proxy/", "/spillway-hold")
# Measures frames while every tile may change its colour.
FRAMES = """new Promise(done => {
  const canvas = document.querySelector('.tiles canvas'), legend = document.querySelectorAll('.legend button'), times = [], draws = [];
  let last = performance.now(), count = 0;
  const step = now => {
    times.push(now - last); last = now;
    const drawn = performance.getEntriesByName('spillway-draw').at(-1);
    if (drawn) draws.push(drawn.duration);
    legend[count % legend.length].click();
    if (++count < 90) requestAnimationFrame(step);
    else { const at = (list, part) => list.sort((a, b) => a - b)[Math.floor(list.length * part)]; done([0.5, 0.95].flatMap(part => [at(times.slice(5), part), at(draws, part)])); }
  };
  requestAnimationFrame(step);
})"""


def parent_of(pid):
    """0: it is gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def children_of(parent):
    """The processes that play, or are about to."""
    return [pid for pid in (int(each.name) for each in pathlib.Path("/proc").iterdir() if each.name.isdigit())
            if parent_of(pid) == parent]


def playing_of(parent):
    """Children that have become the program that plays."""
    found = []
    for pid in children_of(parent):
        with contextlib.suppress(OSError):  # gone already
            if b"\0simulate\0" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


class Catcher(threading.Thread):
    """Stops the first child of a process that plays as soon as it is seen: a simulation may be over before a busy machine
    has looked for it."""

    def __init__(self, parent):
        super().__init__(daemon=True)
        self.parent, self.child, self.over = parent, None, threading.Event()
        self.start()

    def run(self):
        while self.child is None and not self.over.wait(0.005):
            for pid in playing_of(self.parent)[:1]:
                with contextlib.suppress(OSError):  # gone already
                    os.kill(pid, signal.SIGSTOP)
                    self.child = pid

    def caught(self):
        """The child, which stands still."""
        return wait_for("the child that plays", lambda: self.child)

    def asking(self, ask):
        """A thread that asks until a child is caught."""
        def ask_on():
            while self.child is None and not self.over.is_set():
                ask()
        thread = threading.Thread(target=ask_on)
        thread.start()
        return thread


class Looking(unittest.TestCase):
    """Common parts of the tests of pages: one browser."""

    @classmethod
    def setUpClass(cls):
        cls.browser = cls.enterClassContext(browser.browsing())

    def setUp(self):
        self.folder = self.enterContext(workspace())
        self.browser.look(1280)

    def tearDown(self):
        self.browser.open("about:blank")  # its watches end

    def catching(self, parent):
        catcher = Catcher(parent)
        self.addCleanup(catcher.over.set)
        return catcher

    def show(self, url, view):
        self.browser.open("about:blank")
        self.browser.events.clear()
        return self.browser.open(f"{url}#/{view}")

    def text(self):
        return self.browser.run("document.body.innerText")

    def see(self, *words):
        """Waits until all of them stand on the page."""
        def missing():
            self.last = self.text()
            return [word for word in words if word.lower() not in self.last.lower()]
        try:
            wait_for(f"{words}", lambda: not missing(), interval=0.05)
        except AssertionError:
            raise AssertionError(f"{missing()} not on the page:\n{self.last}") from None

    def miss(self, words):
        """Waits until they do not stand on the page any more."""
        wait_for(lambda: f"{words!r} to go from\n{self.text()}", lambda: words not in self.text())

    def click(self, label, tag="button"):
        """The first of that tag whose text begins so."""
        wait_for(lambda: f"a {tag} {label!r} on\n{self.text()}",
                 lambda: self.browser.run(f"""(each => each && (each.click(), true))(
            [...document.querySelectorAll({json.dumps(tag)})].find(each => each.innerText.trim().startsWith({json.dumps(label)}) && each.offsetParent !== null))"""))
        self.browser.settle()

    def type_into(self, selector, words):
        wait_for(lambda: f"{selector} on\n{self.text()}", lambda: self.browser.run(f"""(each => each && (each.focus(), each.value = {json.dumps(words)},
            each.dispatchEvent(new Event('input', {{bubbles: true}})), true))(document.querySelector({json.dumps(selector)}))"""))
        self.browser.settle()

    def assert_quiet(self, base, in_vain=()):
        """The page sent requests to this server alone, and the console has no complaint but missing answers."""
        strange = [url for url in self.browser.requests() if not url.startswith(base)
                   and not url.startswith(("about:", "blob:"))]
        self.assertEqual(strange, [])
        failed = {event["params"]["requestId"]: event["params"]["response"]["url"] for event in self.browser.events
                  if event["method"] == "Network.responseReceived" and event["params"]["response"]["status"] >= 400}
        self.assertEqual([url for url in failed.values() if not any(part in url for part in in_vain)], [])
        complaints = [each for each in self.browser.complaints()
                      if not (in_vain and each.startswith("Failed to load resource"))]
        self.assertEqual(complaints, [])

    def assert_accessible(self, what):
        self.browser.run(AXE.read_text() + ";true")
        found = self.browser.run(
            "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations.map(each =>"
            " [each.impact, each.id, each.nodes.map(node => node.html.slice(0, 120)).slice(0, 3)]))"
        )
        serious = [each for each in found if each[0] in ("serious", "critical")]
        self.assertEqual(serious, [], what)
        return len(found)

    def keep(self, view, width, dark):
        """A picture for people, if they want one."""
        if folder := os.environ.get("SPILLWAY_PICTURES"):
            self.browser.picture(pathlib.Path(folder) / f"{view}-{width}{'-dark' if dark else ''}.png")

    def assert_fits(self, width, what):
        def outside():
            return self.browser.run("""[...document.querySelectorAll('main *, header *')].filter(each => !each.closest('.table, .spoken, .skip') &&
                each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 80))""")
        try:  # curves are drawn anew a few frames later
            wait_for("everything inside", lambda: not outside()
                     and self.browser.run("document.documentElement.scrollWidth") <= width)
        except AssertionError:
            raise AssertionError(f"{what} in {width}: {outside()}") from None
        if width >= 1280:
            self.assert_tables_fit((what, width))

    def assert_tables_fit(self, what, tables=".table"):
        """No table has to be scrolled sideways."""
        wide = self.browser.run(
            f"[...document.querySelectorAll({json.dumps(tables)})].filter(each => each.scrollWidth > each.clientWidth +"
            " 1).map(each => each.ariaLabel)"
        )
        self.assertEqual(wide, [], what)

    def in_every_window(self, what):
        for dark in (False, True):
            for width in WIDTHS:
                self.browser.look(width, dark=dark)
                self.assert_fits(width, (what, dark))
                self.assert_accessible((what, width, dark))
                self.keep(what, width, dark)
        self.browser.look(1280)


@needs(browser.find(), "there is no Chromium; tools/peers unpacks one")
@needs(AXE.exists(), "there is no axe-core; ./dev build installs it")
class Stock(Looking):
    """A cluster without any Spillway: the recorded answers of a stock one."""

    def setUp(self):
        super().setUp()
        self.api = self.enterContext(stock_api.stock_api())
        self.dashboard = self.enterContext(dashboard(self.folder, stock_api.kubeconfig_for(self.api, self.folder)))

    def test_every_view_in_every_window(self):
        views = {"cluster": ("6 in 3 zones", "worker-5", "is tainted and its pods leave it", "TaintManagerEviction",
                             "Live"),
                 "node/worker-1": ("node worker-1 is ready", "memory.available", "threshold 100Mi",
                                   "shop/cart-6f7d-abcde", "uses more than it asked for", "MemoryPressure"),
                 "decisions": ("evicted", "pod shop/hog-77c8-qq2zt was evicted by worker-3", "Marking for deletion"),
                 "objects": ("shop/hog-77c8-qq2zt", "node worker-3 evicted it", "it runs on worker-1"),
                 "zones": ("No lifecycle controller of Spillway answers", "1 of 2 nodes ready", "eu::c"),
                 "why?q=hog-77c8-qq2zt": ("pod shop/hog-77c8-qq2zt was evicted by worker-3", "Save as one HTML file",
                                          "Events about it")}
        lesser = 0
        for view, words in views.items():
            self.show(self.dashboard.url, view)
            self.see(*words)
            for width in WIDTHS:
                for dark in (False, True):
                    with self.subTest(view=view, width=width, dark=dark):
                        self.browser.look(width, dark=dark)
                        self.assert_fits(width, view)
                        if view == "cluster":
                            wait_for("tiles in the colours of the scheme", lambda: self.browser.run(TILES_FOLLOW))
                        if folder := os.environ.get("SPILLWAY_PICTURES"):
                            name = f"{view.split('?')[0].replace('/', '-')}-{width}-{'dark' if dark else 'light'}.png"
                            self.browser.picture(pathlib.Path(folder) / name)
                        if width == 1280 or (width == 390 and not dark):
                            lesser += self.assert_accessible((view, width, dark))
            self.assert_quiet(self.dashboard.base, ASKED_IN_VAIN)
        print(f"axe: 0 serious findings, {lesser} lesser ones, over {len(views)} views, 2 widths, 2 schemes",
              flush=True)
        self.browser.run("document.querySelector('main').append(document.createElement('img'))")
        with self.assertRaisesRegex(AssertionError, "image-alt"):  # proof that the check works
            self.assert_accessible("an image without words")
        # Nothing of the browser's is passed on.
        for _, path, headers in self.api.asked:
            self.assertNotIn("Authorization", headers, path)  # over plain HTTP no credentials are sent
            self.assertNotIn("Cookie", headers)
            self.assertNotIn("Referer", headers)

    def test_changes_appear(self):
        self.show(self.dashboard.url, "cluster")
        self.see("6 in 3 zones", "Live")
        self.api.put("nodes", stock_api.node("worker-7", "d"))
        self.see("7 in 4 zones", "node worker-7 joined")
        self.api.put("nodes", stock_api.node("worker-7", "d", "Unknown"))
        self.see("node worker-7 is silent")
        self.api.remove("nodes", "", "worker-7")
        self.see("6 in 3 zones", "was removed")
        self.api.put("events",
                     {"metadata": {"name": "new.1", "namespace": "shop", "creationTimestamp": stock_api.stamp()},
                      "type": "Warning", "reason": "Evicted",
                                "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "late-1"},
                      "message": "The node was low on resource: memory. ",
                                "lastTimestamp": stock_api.stamp(), "count": 1,
                      "source": {"component": "kubelet", "host": "worker-1"}})
        self.see("shop/late-1", "low on resource")

    def put_a_claim(self, name):
        self.api.put("claims", {"metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}",
                                             "creationTimestamp": stock_api.stamp(100)},
                                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow",
                                         "resources": {"requests": {"storage": "1Gi"}}},
                                         "status": {"phase": "Pending"}})

    def put_a_shop(self):
        """A Service without a ready pod, a claim that waits, and a Deployment that waits for its pod."""
        def meta(name, **more):
            return {"name": name, "namespace": "shop", "uid": f"u-{name}", "creationTimestamp": stock_api.stamp(100),
                    **more}
        owner = {"ownerReferences": [{"kind": "Deployment", "name": "till", "uid": "u-till", "controller": True}],
                 "annotations": {"deployment.kubernetes.io/revision": "1"}}
        self.api.put("deployments",
                     {"metadata": meta("till", annotations=owner["annotations"], generation=1), "spec": {"replicas": 1},
                      "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}})
        self.api.put("replicasets",
                     {"metadata": meta("till-1", **owner), "spec": {"replicas": 1}, "status": {"replicas": 1}})
        self.put_a_claim("drawer")
        self.api.put("services",
                     {"metadata": meta("till"),
                      "spec": {"selector": {"app": "till"}, "clusterIP": "10.96.0.9", "ports": [{"port": 80}]}})
        self.api.put("pods",
                     {"metadata": meta("till-1-a", labels={"app": "till"},
                                       ownerReferences=[{"kind": "ReplicaSet", "name": "till-1", "uid": "u-till-1",
                                                         "controller": True}]),
                              "spec": {"nodeName": "worker-1", "containers": [{"name": "main", "image": "till:1"}],
                                       "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "drawer"}}]},
                              "status": {"phase": "Running", "podIP": "10.0.0.7", "hostIP": "192.0.2.1",
                                         "conditions": [{"type": "Ready", "status": "False",
                                                         "reason": "ContainersNotReady"}],
                                         "containerStatuses": [{"name": "main", "ready": False, "restartCount": 4,
                                                                "state": {"waiting": {"reason": "CrashLoopBackOff",
                                                                                      "message": "back-off 40s"}},
                                                                "lastState": {"terminated": {
                                                                    "exitCode": 3, "reason": "Error",
                                                                    "finishedAt": stock_api.stamp(30)}}}]}})
        self.api.put("slices", {"metadata": meta("till-x", labels={"kubernetes.io/service-name": "till"}),
                                "addressType": "IPv4", "ports": [{"port": 80, "protocol": "TCP"}],
                                "endpoints": [{"addresses": ["10.0.0.7"], "conditions": {"ready": False},
                                               "nodeName": "worker-1", "targetRef": {"kind": "Pod", "namespace": "shop",
                                                                                     "name": "till-1-a"}}]})

    def test_pages_of_objects(self):
        self.put_a_shop()
        self.show(self.dashboard.url, "cluster")
        self.see("service shop/till: no pod answers", "pod shop/till-1-a", "persistentVolumeClaim shop/drawer")
        self.click("service shop/till", "a")
        crash = "CrashLoopBackOff: back-off 40s"
        self.see(f"Service shop/till: no pod answers: none of its pods (1) is ready; till-1-a: {crash}", "10.96.0.9",
                 "Endpoints", "10.0.0.7", "not ready", "spillway explain service/till -n shop")
        self.in_every_window("object-service")
        self.click("till-1-a", "a")
        self.see("Pod shop/till-1-a: container main crashes repeatedly: exit code 3 (Error)", "till:1", "4")
        log = "/api/v1/namespaces/shop/pods/till-1-a/log"
        self.assertEqual([path for _, path, _ in self.api.asked if path.startswith(log)], [],
                         "no log is read before it is opened")
        self.api.extra[log] = "the till opens\n<b>no mark-up</b>\n"
        self.click("Output", "summary")
        self.see("the till opens", "<b>no mark-up</b>",
                 "kubectl logs till-1-a -n shop -c main")
        self.api.extra[log] += "and shuts again\n"
        self.see("and shuts again")  # read again by itself
        self.browser.run("document.querySelector('details input[type=checkbox]').click()")
        self.see("kubectl logs till-1-a -n shop -c main --previous")
        wait_for("the run before", lambda: any(path.startswith(log) and "previous=true" in path for _, path,
                                               _ in self.api.asked))
        self.see("Service shop/till", "Claim shop/drawer", "ReplicaSet shop/till-1")
        self.in_every_window("object-pod")
        self.click("shop/drawer", "a")
        self.see("PersistentVolumeClaim shop/drawer: its StorageClass slow does not exist", "Pods that use it",
                 "shop/till-1-a", "it requests 1Gi")
        self.in_every_window("object-claim")
        self.show(self.dashboard.url, "object/Deployment/shop/till")
        self.see("Deployment shop/till is not rolled out yet: 1 of 1 pods are of its template, 0 available in all",
                 crash)
        self.in_every_window("object-deployment")
        self.show(self.dashboard.url, "why?q=svc%2Fshop%2Ftill")
        self.see(f"none of its pods (1) is ready; till-1-a: {crash}", "More about shop/till")
        for kind, words in {"Service": "There is no Service of that name",
                            "PersistentVolumeClaim": "There is no claim of that name",
                            "Secret": "There is no page for that kind"}.items():
            self.show(self.dashboard.url, f"object/{kind}/shop/none")
            self.see(words)
        self.assert_quiet(self.dashboard.base, ASKED_IN_VAIN)

    def test_objects_are_searched_by_name_kind_and_namespace(self):
        self.put_a_shop()
        self.show(self.dashboard.url, "objects")
        self.see("shop/till", "not rolled out yet", "shop/drawer", "do not work")
        self.in_every_window("objects")
        self.type_into(".filters input", "claim slow")
        self.miss("not rolled out yet")
        self.see("shop/drawer", "1 object")
        self.assertIn("q=claim+slow", self.browser.run("location.hash"))
        # The filter stays when the cluster changes.
        self.put_a_claim("crate")
        self.see("shop/crate", "2 objects")
        self.assertNotIn("not rolled out yet", self.text())
        self.show(self.dashboard.url, "objects?kind=Service&ns=shop")
        self.see("shop/till", "no pod answers")
        self.miss("shop/drawer")
        self.type_into(".filters input", "nothing like it")
        self.see("No object fits these filters")
        self.click("Show all")
        self.see("shop/drawer")

    def test_objects_that_may_not_be_listed(self):
        self.api.refused = ["/apis/", "/api/v1/services"]
        self.show(self.dashboard.url, "objects")
        self.see("shop/cart-6f7d-abcde", "because you may not list them: Deployments", "Services")
        self.show(self.dashboard.url, "object/Service/shop/till")
        self.see("You may not read services")

    def test_names_are_text(self):
        attack = "<img src=x onerror=document.title='taken'>"
        self.api.put("events", {"metadata": {"name": "x.1", "namespace": "shop"}, "type": "Warning", "reason": attack,
                                "message": attack, "lastTimestamp": stock_api.stamp(),
                                "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "x"}, "count": 1})
        item = stock_api.node("worker-8", "<b>zone", "False")
        item["status"]["conditions"][3]["message"] = attack
        self.api.put("nodes", item)
        for view in ("cluster", "node/worker-8", "zones", "why?q=node%2Fworker-8"):
            self.show(self.dashboard.url, view)
            self.see("<" if view != "zones" else "<b>zone")
            self.assertEqual(self.browser.run(
                "document.querySelectorAll('main img, main b[onerror], [onerror]').length"), 0)
        self.assertNotEqual(self.browser.run("document.title"), "taken")

    def ask_what_if(self, question, page=None):
        return (page or self.dashboard).ask("ui/what-if", "POST", json.dumps(question),
                                            {"Content-Type": "application/json"}, timeout=PATIENCE)

    def children(self):
        return children_of(self.dashboard.child.pid)

    def test_what_if_a_zone_falls_silent(self):
        self.show(self.dashboard.url, "what-if?zone=eu%3A%3Aa")
        self.see("What happens", "eu::a", "once with the brakes", "Simulate")
        self.type_into(".filters input[type=number]", "1")
        self.click("Simulate")
        self.see("All well again", "without brakes: ", "with brakes: ", "Nodes that left Ready")
        self.browser.run("[...document.querySelectorAll('details')].forEach(each => { each.open = true; })")
        self.see("Node worker-4: it is not Ready", "NodeStatusUnknown")
        self.assertEqual(self.browser.run("document.querySelectorAll('.lane svg').length"), 2)
        self.in_every_window("what-if")
        self.browser.look(390)
        self.assert_tables_fit("the comparison on a telephone", ".table.wraps")
        self.browser.look(1280)
        self.assert_quiet(self.dashboard.base, ASKED_IN_VAIN)

    def test_what_if_thresholds(self):
        self.show(self.dashboard.url, "what-if")
        self.browser.run(
            "(each => { each.value = 'threshold'; each.dispatchEvent(new Event('change', {bubbles: true}));"
            " })(document.querySelector('.filters select'))"
        )
        self.see("First threshold of memory.available")
        self.type_into(".filters label:nth-child(2) input", "no pattern")
        self.click("Simulate")
        self.see("Not run: Pods: a pattern")
        self.type_into(".filters label:nth-child(2) input", "*/*")
        self.type_into(".filters label:nth-child(5) input", "99999Gi")
        self.click("Simulate")
        self.see("Not run:", "Expected capacity >= reservation")

    def test_what_if_is_bounded(self):
        catcher = self.catching(self.dashboard.child.pid)
        one = catcher.asking(lambda: self.ask_what_if({"nodes": ["worker-1"], "minutes": 60}))
        child = catcher.caught()
        code, text = self.ask_what_if({"zone": "a", "minutes": 1})
        self.assertEqual((code, "one at a time" in text), (429, True), text)
        limits = pathlib.Path(f"/proc/{child}/limits").read_text()
        self.assertRegex(limits, r"Max address space +2147483648 +2147483648")
        self.assertRegex(limits, r"Max cpu time +121 +121")
        self.assertRegex(limits, r"Max file size +0 +0")
        arguments = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
        self.assertEqual((arguments[1], "--from-cluster" in arguments), ("simulate", True), arguments)
        os.kill(child, signal.SIGKILL)
        one.join(PATIENCE)
        wait_for("its end", lambda: not self.children())
        for question, words in (({"zone": "nowhere", "minutes": 1}, 'there is no zone "nowhere"'),
                                ({"zone": "a", "minutes": 1, "import": "/etc/passwd"}, "is not asked")):
            code, text = self.ask_what_if(question)
            self.assertEqual((code, words in json.loads(text)["message"]), (422, True), text)
        self.assertNotIn("/proc/self/fd", text)

    def test_what_if_ends_with_its_client(self):
        self.show(self.dashboard.url, "what-if?nodes=worker-1")
        self.see("Nodes, separated by commas")
        self.type_into(".filters input[type=number]", "60")
        catcher = self.catching(self.dashboard.child.pid)
        self.click("Simulate")
        catcher.caught()
        self.click("Stop")
        wait_for("its end", lambda: not self.children())
        self.see("The nodes stop reporting")

        def ask():
            with contextlib.suppress(http.client.HTTPException, OSError):
                self.ask_what_if({"nodes": ["worker-1"], "minutes": 60})
        catcher = self.catching(self.dashboard.child.pid)
        asking = catcher.asking(ask)
        child = catcher.caught()
        self.dashboard.stop()
        asking.join(PATIENCE)
        wait_for("its end", lambda: not pathlib.Path(f"/proc/{child}").exists())

    def test_what_if_as_the_user_who_started_it(self):
        self.api.refused = ["/api/v1/pods"]
        code, text = self.ask_what_if({"nodes": ["worker-1"], "minutes": 1})
        self.assertEqual((code, "cannot get path" in text), (502, True), text)
        with dashboard(self.folder, stock_api.kubeconfig_for(self.api, self.folder), "--what-if=off") as off:
            code, text = self.ask_what_if({"nodes": ["worker-1"], "minutes": 1}, off)
            self.assertEqual((code, "--what-if=off" in text), (403, True), text)
            self.show(off.url, "what-if")
            self.see("this dashboard was started with --what-if=off", "spillway simulate --from-cluster")

    def test_by_keyboard(self):
        self.show(self.dashboard.url, "cluster")
        self.see("6 in 3 zones")
        self.browser.run("document.querySelector('.tiles canvas').focus()")
        self.browser.settle()
        self.see("node worker-1 is ready")
        self.browser.key("ArrowRight")
        self.see("node worker-2 is ready, and cordoned")
        self.browser.key("End")
        self.browser.key("Enter")
        self.see("Signals against thresholds", "worker-6")
        self.assertEqual(self.browser.run("document.activeElement.id"), "main")

    def test_decisions_filter_open_share_and_export(self):
        self.show(self.dashboard.url, "decisions")
        self.see("pod shop/hog-77c8-qq2zt was evicted", "unschedulable")
        self.type_into(".filters label:nth-child(3) input", "hog")
        self.miss("unschedulable")
        self.see("pod shop/hog-77c8-qq2zt was evicted")
        self.type_into(".filters label:nth-child(2) input", "worker-1")
        self.see("No decision fits these filters")
        self.click("Show all")
        self.click("evicted", ".decisions .line")
        self.see("This is all a stock cluster tells", "holds its secret")
        self.browser.run("window.saved = null; URL.createObjectURL = blob => { window.saved = blob; return '#'; }")
        self.click("Save as one HTML file")
        file = self.browser.run("window.saved.text()")
        self.assertIn("<h1>pod shop/hog-77c8-qq2zt was evicted by worker-3", file)
        self.assertNotIn("<script", file)
        self.show(self.dashboard.url, "decisions?id=p%2Fu-hog")
        self.see("Copy a link to this")

    def test_nothing_there_yet(self):
        with stock_api.stock_api({}) as empty, dashboard(self.folder,
                                                         stock_api.kubeconfig_for(empty, self.folder)) as page:
            for view, words in {"cluster": "No node has joined this cluster yet",
                                "decisions": "Nothing has been decided against any pod",
                                "zones": "No zones: there are no nodes",
                                "node/x": "There is no node of that name", "why?q=x": "Nothing of that name is known",
                                "nowhere": "There is no such view"}.items():
                self.show(page.url, view)
                self.see(words)

    def test_denied(self):
        self.api.refused = ["/api/", "/apis/", "/debug/"]
        for view, words in {"cluster": ("You may not list nodes", "You may not list events", "Denied"),
                            "decisions": ("You may not list pods",),
                            "objects": ("you may not list pods",), "zones": ("You may not list nodes",),
                            "why?q=node%2Fworker-1": ("You may not list nodes",)}.items():
            self.show(self.dashboard.url, view)
            self.see(*words)
            self.in_every_window(f"denied-{view.split('?')[0]}")
        self.assertNotIn("Nothing of that name", self.last, "that is not known")

    def test_the_server_stops_and_starts_again(self):
        self.show(self.dashboard.url, "cluster")
        self.see("6 in 3 zones", "Live")
        self.api.stop()
        self.see("Disconnected", "The connection is lost", "6 in 3 zones")  # the last state stays
        self.in_every_window("disconnected")
        self.see("Try now")
        self.api.put("nodes", stock_api.node("worker-9", "a"))
        self.api.start()
        # The page tries by itself as well: then the button has gone already.
        self.browser.run(
            "[...document.querySelectorAll('button')].find(each => each.innerText.trim() === 'Try now')?.click()")
        self.see("7 in 3 zones", "Live")
        self.miss("The connection is lost")

    def test_the_picture_of_the_first_page(self):
        """docs/dashboard.png: with SPILLWAY_PICTURES=docs it is made anew."""
        unreachable = [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]
        nodes = [stock_api.node(f"node-{number:03}", "abc"[number % 3]) for number in range(270)]
        for number in (2, 5, 11, 26, 41, 47, 56, 62, 77, 83, 101, 146, 191, 233):
            nodes[number] = stock_api.node(f"node-{number:03}", "c", "Unknown",
                                           **({"taints": unreachable} if number < 50 else {}))
        for number in (30, 31, 150):
            nodes[number]["spec"]["unschedulable"] = True
        for number in (64, 121):
            nodes[number]["status"]["conditions"][0]["status"] = "True"
        told = [("Evicted", "Pod", "shop/cart-7d9f", "node-064",
                 "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.", 8),
                ("EvictionThresholdMet", "Node", "/node-064", "node-064", "Attempting to reclaim memory", 9),
                ("TaintManagerEviction", "Pod", "shop/web-5c8b", "", "Marking for deletion Pod shop/web-5c8b", 21),
                ("Evicted", "Pod", "batch/report-x2k", "node-121",
                 "The node was low on resource: memory. Threshold quantity: 100Mi, available: 97Mi.", 47),
                ("FailedScheduling", "Pod", "batch/report-q8z", "",
                 "0/270 nodes are available: 256 Insufficient memory, 14 node(s) had untolerated taint.", 66)]
        events = []
        for number, (reason, kind, who, host, message, seconds_ago) in enumerate(told):
            ns, _, name = who.partition("/")
            events.append({"metadata": {"name": f"e.{number}", "namespace": ns or "default", "uid": f"e-{number}"},
                           "type": "Warning", "reason": reason, "message": message,
                           "count": 1, "lastTimestamp": stock_api.stamp(seconds_ago),
                           "source": {"component": "kubelet", "host": host},
                           "involvedObject": {"kind": kind, "name": name, **({"namespace": ns} if ns else {})}})
        with stock_api.stock_api({"nodes": nodes, "events": events}) as many, dashboard(
            self.folder, stock_api.kubeconfig_for(many, self.folder)
        ) as page:
            self.browser.look(1280, 780)
            self.show(page.url, "cluster")
            self.see("What needs a look", "its agent does not report", "270 in 3 zones", "shop/cart-7d9f",
                     "Attempting to reclaim memory", "Marking for deletion", "Live")
            self.browser.run(
                "document.querySelector('.server').textContent = '192.0.2.7:6443';"
                " document.documentElement.style.overflow = 'hidden'"
            )
            self.browser.settle()
            if folder := os.environ.get("SPILLWAY_PICTURES"):
                self.browser.picture(pathlib.Path(folder) / "dashboard.png", whole=False)
        shown = ROOT / "docs/dashboard.png"
        self.assertEqual(shown.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertLess(shown.stat().st_size, 150_000)

    def test_five_thousand_nodes(self):
        nodes = [stock_api.node(f"node-{number:04}", "abc"[number % 3], "Unknown" if number % 97 == 0 else "True")
                 for number in range(5000)]
        with stock_api.stock_api({"nodes": nodes}) as many, dashboard(self.folder,
                                                                      stock_api.kubeconfig_for(
                                                                          many, self.folder)) as page:
            begun = time.monotonic()
            self.show(page.url, "cluster")
            self.see("5000 in 3 zones")
            shown = time.monotonic() - begun
            frame, drawing, frame_p95, drawing_p95 = self.browser.run(FRAMES)
            heap = self.browser.run("performance.memory ? performance.memory.usedJSHeapSize : 0")
            print(
                (
                    f"5,000 nodes: shown after {shown:.1f} s; median and p95 of a frame {frame:.1f} and"
                    f" {frame_p95:.1f} ms, of drawing {drawing:.1f} and {drawing_p95:.1f} ms; heap"
                    f" {heap / 2**20:.0f} MiB"
                ),
                flush=True,
            )
            self.assertLess(heap, 200 * 2**20)
            for _ in range(20):
                many.put("nodes", stock_api.node("node-0001", "b", "Unknown"))
            self.see("node node-0001 is silent")


@needs(browser.find(), "there is no Chromium; tools/peers unpacks one")
@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Spillway(Looking):
    """`spillway up` behind the page."""

    def test_an_eviction_while_the_page_is_open(self):
        with one_node(self.folder) as up, dashboard(self.folder, self.folder / "kubeconfig") as page:
            up.api.create("/api/v1/namespaces/default/pods",
                          pod("steady", ["sleep", "1d"], resources={"requests": {"memory": "8Mi"}}))
            wait_for("steady", lambda: up.api.pod_phases().get("steady") == "Running")
            self.show(page.url, "node/n")
            self.see("memory.available", "default/steady", "As the node's own agent would choose",
                     "The lease was renewed")
            wait_for("curves", lambda: self.browser.run("document.querySelectorAll('.uplot canvas').length") > 0)
            self.assert_quiet(page.base)
            self.show(page.url, "decisions")
            self.see("by agents of Spillway")
            up.api.create("/api/v1/namespaces/default/pods", pod("hog", HOG, resources={"requests": {"memory": "8Mi"}}))
            self.see("pod default/hog was evicted by n at", "memory.available was")
            self.click("evicted", ".decisions .line")
            self.see("What was measured", "Pods compared", "default/steady", "Status")

            def headline():
                """The sentence of the page, once it is the one of `spillway explain`: the page learns news later."""
                sentence = self.browser.run(
                    "[...document.querySelectorAll('.decisions .sentence')].map(each => each.innerText).find(each =>"
                    " each.includes('default/hog was evicted'))"
                )
                code, out, err = self.explain("pod/hog")
                self.assertEqual(code, 0, err)
                return sentence == json.loads(out)["headline"] and sentence
            sentence = wait_for("the sentence of the command line on the page", headline)
            self.in_every_window("decision-opened")
            self.show(page.url, "why?q=hog")
            self.see(sentence, "Pods compared")
            self.in_every_window("why-spillway")
            self.show(page.url, "why?q=steady")
            self.see("pod default/steady is", "no threshold of node n is met")  # safe, or until a foreseen time
            self.show(page.url, "cluster")
            self.see("What needs a look", "pod default/hog: node n evicted it", "spillway explain pod/hog", "Evicted",
                     "default/hog")
            self.show(page.url, "node/n")
            self.see("As the node's own agent would choose", "The lease was renewed")
            wait_for("curves", lambda: self.browser.run("document.querySelectorAll('.uplot canvas').length") > 0)
            self.in_every_window("node-spillway")
            self.assert_quiet(page.base)

    def explain(self, what):
        return run("explain", what, "--kubeconfig", self.folder / "kubeconfig", "-o", "json")

    def test_zones_hold_and_resume(self):
        kubeconfig = self.folder / "kubeconfig"
        with running(self.folder, "up", "--nodes", "0", "--data-dir", self.folder / "data", "--port", "0",
                     "--write-kubeconfig", kubeconfig, *FAST) as up:
            api = serving(up, kubeconfig)
            for name in ("n1", "n2"):
                api.create("/api/v1/nodes", silent_node(name))
            with dashboard(self.folder, kubeconfig) as page:
                self.show(page.url, "zones")
                self.see("As the lifecycle controllers see them", "::n1", "fully disrupted", "0 of 1 nodes ready",
                         "Bucket", "Hold ::n1")
                self.click("Hold ::n1")
                self.see("Hold zone ::n1?", "however silent")
                self.assert_accessible("the question")
                self.click("Cancel", "dialog button")
                self.assertIsNone(api.find(HOLD))
                self.click("Hold ::n1")
                self.type_into("dialog input", "moving racks")
                self.click("Hold zone ::n1", "dialog button")
                self.see("Zone ::n1 is held", "zone ::n1 is held by hand: moving racks", "Resume ::n1")
                self.assertEqual(api.get(HOLD)["data"], {"zones": "::n1 moving racks\n"})
                self.click("Hold everything")
                self.click("Hold everything", "dialog button")
                self.see("everything is held by hand")
                self.in_every_window("zones-held")
                self.assertEqual(api.get(HOLD)["data"]["zones"], "::n1 moving racks\n")
                self.click("Resume everything")
                self.click("Resume everything", "dialog button")
                self.see("Everything is resumed", "Hold ::n1")
                self.assertIsNone(api.find(HOLD))
                self.show(page.url, "why?q=node/n1")
                self.see("node n1 is", "its last sign of life")
                self.assert_quiet(page.base, ("/spillway-hold", "/proxy/"))

            # An account that may read zones, and not hold them; then an account without rights.
            api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "viewer"}, "rules": [
                {"apiGroups": ["", "coordination.k8s.io"], "resources": ["nodes", "pods", "events", "leases"],
                 "verbs": ["get", "list", "watch"]},
                {"nonResourceURLs": ["/debug/spillway/*"], "verbs": ["get"]}]})
            for account in ("looker", "nobody"):
                api.create("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": account}})
            api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                "metadata": {"name": "viewer"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewer"},
                "subjects": [{"kind": "ServiceAccount", "name": "looker", "namespace": "kube-system"}]})
            with dashboard(self.folder, account_kubeconfig(api, kubeconfig, "looker")) as page:
                self.show(page.url, "zones")
                self.see("You may look, not hold", "fully disrupted")
                self.assertNotIn("Hold ::n1", self.text())
            with dashboard(self.folder, account_kubeconfig(api, kubeconfig, "nobody")) as page:
                self.show(page.url, "cluster")
                self.see("You may not list nodes", "system:serviceaccount:kube-system:nobody", "Denied")

    def test_controllers_in_a_process_of_their_own(self):
        kubeconfig = self.folder / "kubeconfig"
        with running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig",
                     kubeconfig) as server:
            api = serving(server, kubeconfig)
            api.create("/api/v1/nodes", silent_node("n1"))
            with dashboard(self.folder, kubeconfig) as page:
                self.show(page.url, "zones")
                self.see("No lifecycle controller of Spillway answers", "1 of 1 nodes ready")
                self.assertNotIn("Hold ::n1", self.text())
                self.show(page.url, "why?q=node/n1")
                self.see("Node n1 is ready")
                with running(self.folder, "controller", "--kubeconfig", kubeconfig, *FAST):
                    wait_for(
                        "the lease",
                        lambda: "spillway.dev/controller-url"
                        in (api.find(LEASE) or {"metadata": {}})["metadata"].get("annotations", {}),
                    )
                    # the answer that stands on the page becomes the controllers'
                    self.see("node n1 is", "its last sign of life")
                    self.show(page.url, "zones")
                    self.see("As the lifecycle controllers see them", "fully disrupted", "Hold ::n1")
                    self.assert_quiet(page.base, ("/proxy/", "/spillway-hold"))

    def test_the_door_of_the_server(self):
        kubeconfig = self.folder / "kubeconfig"
        with running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port", "0", "--write-kubeconfig",
                     kubeconfig) as server:
            api = serving(server, kubeconfig)
            page = api.get("/ui/")
            self.assertIn('<script src="/ui/app.js"', page)
            self.assertEqual(api.get("/ui"), page)
            self.assertEqual(api.get("/ui/door.json")["through"], "apiserver")
            answer = api.connection
            answer.request("GET", "/ui/")
            answer = answer.getresponse()
            answer.read()
            self.assertTrue(answer.headers["Content-Security-Policy"].startswith(
                "default-src 'none'; script-src 'self'"), answer.headers)
            stranger = ssl.create_default_context()
            stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"https://127.0.0.1:{api.port}/ui/", context=stranger, timeout=PATIENCE)
            self.assertEqual(refused.exception.code, 403)
            refused.exception.close()
            account = account_kubeconfig(api, kubeconfig, "default", "default")  # no rights, but known
            token = re.search(r"token: (\S+)", account.read_text()).group(1)
            request = urllib.request.Request(f"https://127.0.0.1:{api.port}/ui/app.js",
                                             headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request, context=stranger, timeout=PATIENCE) as answer:
                self.assertGreater(len(answer.read()), 10_000)
        with running(self.folder, "up", "--nodes", "0", "--data-dir", self.folder / "plain", "--port", "0",
                     "--write-kubeconfig", self.folder / "plain.kubeconfig",
                     "--insecure-http", *FAST) as up:
            plain = serving(up, self.folder / "plain.kubeconfig")
            plain.create("/api/v1/nodes", silent_node("n1"))
            base = f"http://127.0.0.1:{plain.port}/"
            self.show(f"{base}ui/", "cluster")
            self.see("1 in 1 zone", "n1")
            self.assert_quiet(base, ("/proxy/",))


READS = [{"apiGroups": ["", "apps", "policy", "scheduling.k8s.io", "coordination.k8s.io"],
          "verbs": ["get", "list", "watch"],
          "resources": ["nodes", "pods", "events", "leases", "daemonsets", "replicasets", "deployments",
                        "poddisruptionbudgets", "priorityclasses"]}]
PLAYS = [{"nonResourceURLs": ["/ui/what-if"], "verbs": ["post"]}]
PODS = 280  # more than a page of a list


@needs(browser.find(), "there is no Chromium; tools/peers unpacks one")
@needs(AXE.exists(), "there is no axe-core; ./dev build installs it")
class PlayedByTheServer(Looking):
    """The view "What if" at `/ui/` of an API server: a user who may play, one who may only look, and one who may play
    and not read."""

    def setUp(self):
        super().setUp()
        kubeconfig = self.folder / "kubeconfig"
        self.server = self.enterContext(running(self.folder, "apiserver", "--data-dir", self.folder / "data", "--port",
                                                "0", "--write-kubeconfig", kubeconfig))
        self.api = serving(self.server, kubeconfig)
        self.base = f"https://127.0.0.1:{self.api.port}/"
        for name in ("n1", "n2", "n3"):
            self.api.create("/api/v1/nodes", self.node(name))
        self.tokens = {}
        for name, rules in (("player", READS + PLAYS), ("looker", READS), ("blind", PLAYS)):
            self.api.create("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": name}})
            self.api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles",
                            {"metadata": {"name": name}, "rules": rules})
            self.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}]})
            self.tokens[name] = re.search(r"token: (\S+)",
                                          account_kubeconfig(self.api, kubeconfig, name).read_text()).group(1)
        self.browser.call("Security.setIgnoreCertificateErrors", ignore=True)
        self.addCleanup(self.browser.call, "Network.setExtraHTTPHeaders", headers={})

    def node(self, name):
        node = silent_node(name)
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = "a" if name == "n1" else "b"
        node["status"]["allocatable"] = node["status"]["capacity"] = {"cpu": "64", "memory": "64Gi", "pods": "200",
                                                                      "ephemeral-storage": "100Gi"}
        return node

    def run_pods(self, count):
        for i in range(count):
            made = pod(f"p{i}", ["true"], nodeName=f"n{i % 3 + 1}", tolerations=[{"operator": "Exists"}])
            self.api.create("/api/v1/namespaces/default/pods", {**made, "status": {"phase": "Running"}})

    def look_as(self, name, view="what-if?zone=%3A%3Aa"):
        """A browser with a token in place of a certificate, which it cannot be given without a hand."""
        self.browser.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Bearer {self.tokens[name]}"})
        # The setting to ignore certificates reaches the part of the browser that sends requests a moment later.
        failures = []
        wait_for(lambda: f"the page: {failures[-1]}",
                 lambda: not (failures.append(self.show(f"{self.base}ui/", view)) or failures[-1]), interval=0.2)

    def ask(self, name, question, headers=()):
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(f"{self.base}ui/what-if", json.dumps(question).encode(),
                                         {"Authorization": f"Bearer {self.tokens[name]}",
                                          "Content-Type": "application/json", **dict(headers)}, method="POST")
        try:
            with urllib.request.urlopen(request, context=trusting, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    # Lists that the user "player" may not read.
    FORBIDDEN = ("/persistentvolumeclaims?", "/services?", "/storageclasses?")

    def test_authorized_users_play(self):
        self.run_pods(PODS)
        self.look_as("player")
        self.see("What happens", "once with the brakes", "Simulate")
        self.type_into(".filters input[type=number]", "1")
        self.click("Simulate")
        self.see("without brakes: ", "with brakes: ", "Nodes that left Ready", f"3 nodes, {PODS} pods")
        self.in_every_window("what-if-server")
        self.assert_quiet(self.base, (*ASKED_IN_VAIN, *self.FORBIDDEN))

    def test_a_user_without_rights_gets_the_reason(self):
        self.look_as("looker")
        self.see("You may not run simulations on this API server", "the verb post on the path /ui/what-if",
                 "spillway simulate --from-cluster")
        self.assertNotIn("Simulate", self.text())
        self.in_every_window("what-if-denied")
        code, text = self.ask("looker", {"zone": "a", "minutes": 1})
        self.assertEqual((code, 'cannot post path \\"/ui/what-if\\"' in text), (403, True), text)
        code, text = self.ask("blind", {"zone": "a", "minutes": 1})
        self.assertEqual((code, 'cannot list resource \\"nodes\\"' in text), (403, True), text)
        self.assertEqual(children_of(self.server.child.pid), [])
        # The right to read goes while the page is open.
        self.look_as("player")
        self.see("Simulate")
        self.api.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/player")
        # The page asks now and then what it may; until then it says so when it has tried.
        self.browser.run(
            "[...document.querySelectorAll('button')].find(each => each.innerText === 'Simulate')?.click()")
        wait_for(lambda: f"the refusal on {self.text()}",
                 lambda: any(words in self.text()
                             for words in ("You may not run this simulation.", "You may not run simulations")))

    def test_one_at_a_time_with_limits(self):
        self.run_pods(3)
        catcher = self.catching(self.server.child.pid)
        one = catcher.asking(lambda: self.ask("player", {"nodes": ["n1"], "minutes": 60}))
        child = catcher.caught()
        code, text = self.ask("player", {"zone": "a", "minutes": 1})
        self.assertEqual((code, "one at a time" in text), (429, True), text)
        limits = pathlib.Path(f"/proc/{child}/limits").read_text()
        self.assertRegex(limits, r"Max address space +2147483648 +2147483648")
        self.assertRegex(limits, r"Max cpu time +121 +121")
        self.assertRegex(limits, r"Max file size +0 +0")
        self.assertEqual(pathlib.Path(f"/proc/{child}/oom_score_adj").read_text().strip(), "1000")
        arguments = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
        self.assertEqual((arguments[1], "--from-lists" in arguments, "--kubeconfig" in " ".join(arguments)),
                         ("simulate", True, False), arguments)
        # The child has nothing of the server: no socket, no file of its store. (It may be loading its libraries.)
        opened = {os.readlink(each) for each in pathlib.Path(f"/proc/{child}/fd").iterdir()}
        self.assertEqual({each for each in opened
                          if not each.startswith(("pipe:", "/memfd:", "/dev/null", "anon_inode:", "/usr/lib/",
                                                  "/etc/ld.so"))}, set())
        os.kill(child, signal.SIGKILL)
        one.join(PATIENCE)
        wait_for("its end", lambda: not children_of(self.server.child.pid))
        code, text = self.ask("player", {"zone": "nowhere", "minutes": 1})
        self.assertEqual((code, 'there is no zone "nowhere"' in json.loads(text)["message"]), (422, True), text)
        self.assertNotIn("/proc/self/fd", text)

    def test_it_ends_with_its_client_and_with_the_server(self):
        self.look_as("player", "what-if?nodes=n1")
        self.see("Nodes, separated by commas")
        self.type_into(".filters input[type=number]", "60")
        catcher = self.catching(self.server.child.pid)
        self.click("Simulate")
        catcher.caught()
        self.click("Stop")
        wait_for("its end", lambda: not children_of(self.server.child.pid))
        answers = []
        catcher = self.catching(self.server.child.pid)
        asking = catcher.asking(lambda: answers.append(self.ask("player", {"nodes": ["n1"], "minutes": 60})))
        child = catcher.caught()
        self.assertEqual(self.server.stop(), 0)
        asking.join(PATIENCE)
        self.assertEqual((answers[-1][0], "shutting down" in answers[-1][1]), (503, True), answers)
        wait_for("its end", lambda: not pathlib.Path(f"/proc/{child}").exists())

    def test_switched_off(self):
        kubeconfig = self.folder / "off.kubeconfig"
        with running(self.folder, "apiserver", "--data-dir", self.folder / "off", "--port", "0", "--write-kubeconfig",
                     kubeconfig, "--insecure-http", "--what-if=off") as off:
            api = serving(off, kubeconfig)
            self.assertEqual(api.get("/ui/door.json")["whatIf"], False)
            self.show(f"http://127.0.0.1:{api.port}/ui/", "what-if")
            self.see("this API server was started with --what-if=off")


class Door(unittest.TestCase):
    """`spillway dashboard` without a browser: the requests that it accepts, and the requests that it passes on."""

    def test_requests_that_are_let_in(self):
        with workspace() as folder, stock_api.stock_api() as api, dashboard(folder,
                                                                            stock_api.kubeconfig_for(
                                                                                api, folder)) as page:
            self.assertEqual(page.ask("ui/")[0], 200)
            self.assertEqual(page.ask("api/v1/nodes?limit=1")[0], 200)
            asked = len(api.asked)
            port = page.base.split(":")[2].split("/")[0]
            rows = [("no token", "/ui/", {}, None, 404), ("another token", f"/{'0' * 32}/api/v1/nodes", {}, None, 404),
                    ("another name", "ui/", {}, f"evil.example:{port}", 403),
                    ("no port", "api/v1/nodes", {}, "127.0.0.1", 403),
                    ("another origin", "api/v1/nodes", {"Origin": "http://evil.example"}, None, 403),
                    ("a page of another site", "api/v1/nodes", {"Sec-Fetch-Site": "cross-site"}, None, 403),
                    ("a secret", "api/v1/namespaces/default/secrets/x", {}, None, 403),
                    ("a way up", "api/v1/nodes/../secrets", {}, None, 403),
                    ("a hidden way", "api/v1/nodes/n%2f..%2fsecrets", {}, None, 403),
                    ("what a node runs", "api/v1/nodes/worker-1/proxy/pods", {}, None, 403),
                    ("a file that is not there", "ui/../../etc/passwd", {}, None, 403)]
            for what, path, headers, host, code in rows:
                with self.subTest(what):
                    got, text = page.ask(path, headers=headers, host=host)
                    self.assertEqual(got, code, text)
                    self.assertNotIn("the-token-of-the-viewer", text)
            for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
                with self.subTest(method):
                    got, text = page.ask("api/v1/nodes/worker-1", method, "{}", {"Content-Type": "application/json"})
                    self.assertEqual(got, 403, text)
            self.assertEqual(len(api.asked), asked)  # none of these reached the API server

    def test_it_stops(self):
        with workspace() as folder, stock_api.stock_api() as api:
            page = Dashboard(folder, stock_api.kubeconfig_for(api, folder))
            connection = http.client.HTTPConnection("127.0.0.1", int(page.base.split(":")[2].split("/")[0]),
                                                    timeout=PATIENCE)
            connection.request("GET", f"/{page.base.split('/')[3]}/api/v1/nodes?watch=1")
            self.assertEqual(connection.getresponse().status, 200)
            self.assertEqual(page.stop(), 0)
            connection.close()

    def test_wrong_use(self):
        with workspace() as folder:
            self.assertEqual(run("dashboard", "--kubeconfig", folder / "none")[0], 2)
            self.assertEqual(run("dashboard", "--port", "x")[0], 2)


if __name__ == "__main__":
    browser.leave_network()
    unittest.main()
