"""Changes of a running pod, as kubectl makes them: containers for debugging, an image, the deadline; with both
runtimes."""
import json
import os
import shutil
import unittest

import own_containerd
from harness import can_write_cgroups, needs, one_node, PATIENCE, pod, wait_for, workspace
from test_confined import can_confine
from test_streams import Terminal

OTHER_IMAGE = "spillway.test/busybox:2"
SLEEP = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
PODS = "/api/v1/namespaces/default/pods"


@needs(shutil.which("kubectl") and can_write_cgroups() and can_confine(),
       "needs kubectl, root, a writable cgroup hierarchy and namespaces")
class RunningPods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(workspace())
        flags = []
        if own_containerd.is_wanted():
            containerd = cls.enterClassContext(own_containerd.serving(folder))
            containerd.import_image(OTHER_IMAGE)
            flags.append(f"--container-runtime-endpoint=unix://{containerd.socket}")
        node = cls.enterClassContext(one_node(folder, *flags))
        cls.api, cls.kubectl = node.api, node.kubectl

    def start(self, name, script=SLEEP, **spec):
        document = pod(name, ["/bin/sh", "-c", script], **spec)
        self.kubectl.apply(document)
        self.addCleanup(self.kubectl, "delete", "pod", name, "--ignore-not-found", "--force", "--grace-period=0")
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}")
        return name

    def statuses(self, name, kind="ephemeralContainerStatuses"):
        return {status["name"]: status for status in self.api.get(f"{PODS}/{name}")["status"].get(kind, [])}

    def state(self, name, container, kind="ephemeralContainerStatuses"):
        return self.statuses(name, kind).get(container, {}).get("state", {})

    def debug(self, name, container, script, *more):
        self.kubectl("debug", name, f"--image={own_containerd.IMAGE}", "--image-pull-policy=IfNotPresent",
                     f"--container={container}", *more, "--", "/bin/sh", "-c", script)

    def events(self, name, reason):
        return [(event["involvedObject"].get("fieldPath"), event["message"])
                for event in self.api.get("/api/v1/namespaces/default/events")["items"]
                if event["involvedObject"]["name"] == name and event["reason"] == reason]

    def test_an_ephemeral_container_sees_the_processes_of_its_target(self):
        name = self.start("looked-at", "marker=7531; " + SLEEP)
        self.debug(name, "looker", "tr '\\0' ' ' < /proc/1/cmdline; echo; exit 4", "--target=main")
        wait_for("its end", lambda: "terminated" in self.state(name, "looker"))
        ended = self.state(name, "looker")["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"]), (4, "Error"))
        self.assertIn("marker=7531", self.kubectl("logs", name, "-c", "looker"))
        wait_for("the event", lambda: ("spec.ephemeralContainers{looker}",
                                       "Container started") in self.events(name, "Started"))
        status = self.statuses(name)["looker"]
        self.assertEqual((status["ready"], status.get("started"), status["restartCount"]), (False, None, 0))
        self.assertEqual(self.statuses(name, "containerStatuses")["main"]["restartCount"], 0)
        self.debug(name, "another", "exit 0")
        wait_for("the end of the next", lambda: "terminated" in self.state(name, "another"))
        self.assertEqual(self.state(name, "looker")["terminated"], ended)
        self.assertEqual(self.api.pod_phases()[name], "Running")

    def test_without_a_target_it_is_among_its_own_processes(self):
        name = self.start("alone", "marker=8642; " + SLEEP)
        self.debug(name, "looker", "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c marker=864[2]; true")
        wait_for("its end", lambda: "terminated" in self.state(name, "looker"))
        self.assertEqual(self.kubectl("logs", name, "-c", "looker"), "0\n")

    def test_on_a_terminal(self):
        name = self.start("talked-to", "marker=9753; " + SLEEP)
        terminal = Terminal(["kubectl", "debug", "-it", name, f"--image={own_containerd.IMAGE}",
                             "--image-pull-policy=IfNotPresent",
                             "--container=shell", "--target=main", "--", "/bin/sh"], self.kubectl.environment)
        try:
            wait_for("a shell", lambda: os.write(terminal.leader, b"echo $((40+2))\n") and terminal.heard(b"42\r\n"),
                     interval=0.3)
            terminal.says("the target", b"tr '\\0' ' ' < /proc/1/cmdline\n", b"marker=9753")
            os.write(terminal.leader, b"exit 0\n")
            terminal.child.wait(PATIENCE)
        finally:
            terminal.close()
        wait_for("its end", lambda: "terminated" in self.state(name, "shell"))
        self.assertEqual(self.statuses(name, "containerStatuses")["main"]["restartCount"], 0)

    def test_exec_enters_it(self):
        name = self.start("entered")
        self.debug(name, "stays", SLEEP, "--target=main")
        wait_for("it to run", lambda: "running" in self.state(name, "stays"))
        self.assertEqual(self.kubectl("exec", name, "-c", "stays", "--", "/bin/sh", "-c", "echo inside"), "inside\n")
        self.kubectl("delete", "pod", name)

    def test_what_is_refused(self):
        name = self.start("strict")
        self.debug(name, "first", SLEEP)
        wait_for("it to run", lambda: "running" in self.state(name, "first"))

        def refused(containers):
            patch = json.dumps({"spec": {"ephemeralContainers": containers}})
            return self.kubectl("patch", "pod", name, "--subresource=ephemeralcontainers", "--type=merge", "-p", patch,
                                code=1)
        first = self.api.get(f"{PODS}/{name}")["spec"]["ephemeralContainers"][0]
        second = {"name": "second", "image": own_containerd.IMAGE, "command": ["true"]}
        self.assertIn('existing ephemeral containers "first" may not be removed', refused([second]))
        self.assertIn('existing ephemeral containers "first" may not be changed',
                      refused([{**first, "image": "other"}]))
        self.assertIn("Duplicate value", refused([first, {**second, "name": "main"}]))
        self.assertIn("targetContainerName: Not found", refused([first, {**second, "targetContainerName": "none"}]))
        for member, value in [("ports", [{"containerPort": 1}]), ("livenessProbe", {"tcpSocket": {"port": 1}}),
                              ("lifecycle", {"preStop": {"sleep": {"seconds": 1}}}),
                              ("resources", {"limits": {"cpu": "1"}})]:
            self.assertIn("cannot be set for an Ephemeral Container", refused([first, {**second, member: value}]),
                          member)
        self.assertEqual(list(self.statuses(name)), ["first"])

    def test_a_target_that_has_ended(self):
        name = self.start("half", restartPolicy="Never", containers=[
            {"name": "main", "image": "none", "command": ["/bin/sh", "-c", SLEEP]},
            {"name": "over", "image": "none",
             "command": ["/bin/sh", "-c", "while [ ! -e /tmp/go ] || pidof touch >/dev/null; do sleep 0.1; done"]}])
        # a child would be killed with the container
        self.kubectl("exec", name, "-c", "over", "--", "/bin/touch", "/tmp/go")
        wait_for("its end", lambda: "terminated" in self.state(name, "over", "containerStatuses"))
        self.debug(name, "late", "true", "--target=over")
        waiting = wait_for("why it waits", lambda: self.state(name, "late").get("waiting", {}).get("message"))
        self.assertIn("unable to find target container over", waiting)

    @unittest.skipIf(own_containerd.is_wanted(), "an image has a program of its own")
    def test_without_a_program(self):
        name = self.start("empty")
        self.kubectl("debug", name, "--image=busybox", "--container=bare")
        waiting = wait_for("why it waits", lambda: self.state(name, "bare").get("waiting", {}))
        wait_for("why it waits", lambda: "command" in self.state(name, "bare").get("waiting", {}).get("message", ""))
        self.assertTrue(waiting)

    def test_more_than_its_pod_has(self):
        name = self.start("modest")
        self.debug(name, "mighty", "cat /proc/self/status", "--target=main", "--profile=sysadmin")
        if own_containerd.is_wanted():
            wait_for("its end", lambda: "terminated" in self.state(name, "mighty"))
            self.assertIn("CapEff:\t000001ff", self.kubectl("logs", name, "-c", "mighty"))
        else:
            waiting = wait_for("why it waits", lambda: self.state(name, "mighty").get("waiting", {}).get("message"))
            self.assertEqual(waiting, "the process runtime runs no privileged containers while it confines pods")

    def test_a_copy_and_the_node(self):
        name = self.start("original")
        for path in ("copied", None):
            if path:
                self.kubectl("debug", name, f"--image={own_containerd.IMAGE}", "--image-pull-policy=IfNotPresent",
                             f"--copy-to={path}", "--container=beside", "--", "/bin/sh", "-c", SLEEP)
                copy = path
            else:
                self.kubectl("debug", "node/n", f"--image={own_containerd.IMAGE}", "--image-pull-policy=IfNotPresent",
                             "--", "/bin/sh", "-c", "ls /host; " + SLEEP)
                copy = next(pod for pod in self.api.pod_phases() if pod.startswith("node-debugger-"))
            self.addCleanup(self.kubectl, "delete", "pod", copy, "--ignore-not-found", "--force", "--grace-period=0")
            if path or own_containerd.is_wanted():
                self.kubectl("wait", "--for=condition=Ready", f"pod/{copy}")
            else:
                said = wait_for("a refusal", lambda: self.events(copy, "FailedMount"))
                self.assertIn("it holds files of this node that no pod sees", said[0][1])

    def test_another_image_restarts_that_container_alone(self):
        name = self.start("renewed", restartPolicy="Never", containers=[
            {"name": "main", "image": "none", "command": ["/bin/sh", "-c", SLEEP]},
            {"name": "beside", "image": "none", "command": ["/bin/sh", "-c", SLEEP]}])
        before = self.statuses(name, "containerStatuses")
        self.kubectl("set", "image", f"pod/{name}", f"main={OTHER_IMAGE}")
        after = wait_for("the new one",
                         lambda: (found := self.statuses(name, "containerStatuses"))["main"]["restartCount"] == 1 and
                         "running" in found["main"]["state"] and found)
        wait_for("the event", lambda: ("spec.containers{main}",
                                       "Container main definition changed, will be restarted") in self.events(
                                           name, "Killing"))
        self.assertEqual(after["main"]["image"], OTHER_IMAGE)
        self.assertEqual(after["beside"], before["beside"])

    def test_a_deadline_that_is_set_later(self):
        name = self.start("limited")
        self.kubectl("patch", "pod", name, "-p", json.dumps({"spec": {"activeDeadlineSeconds": 2}}))
        wait_for("its end", lambda: self.api.pod_phases()[name] == "Failed")
        status = self.api.get(f"{PODS}/{name}")["status"]
        self.assertEqual((status["reason"], status["message"]),
                         ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))


if __name__ == "__main__":
    unittest.main()
