"""`spillway up` as a user starts it: node Ready, a pod Running, logs, a second start, Ctrl-C; what it prints on a
terminal, and into a pipe whose reader has gone.
"""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import unittest

from harness import (
    BINARY,
    Api,
    ApiError,
    can_write_cgroups,
    needs,
    PATIENCE,
    pod,
    processes_of_pods,
    room_on_disks,
    running,
    serving,
    wait_for,
    workspace,
)


def flags_of_up(folder, *more):
    return ["up", "--data-dir", folder / "data", "--state-dir", folder / "state", "--port", "0", "--write-kubeconfig",
            folder / "kubeconfig", "--node-name", "n",
            "--node-memory", "256Mi", "--proxy", "off", "--pod-network", "off",
            *([] if "--container-runtime-endpoint" in more else ["--runtime", "process"]), *room_on_disks(), *more]


class Terminal:
    """A spillway that runs on a terminal of its own, and what that shows."""

    def __init__(self, *arguments, **environment):
        self.ours, theirs = pty.openpty()
        variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "SUDO_USER")}
        self.child = subprocess.Popen([BINARY, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs,
                                      start_new_session=True,
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                      env={**variables, "TERM": "xterm", **environment})
        os.close(theirs)
        self.shown = ""

    def text(self):
        """Everything it has shown so far."""
        while select.select([self.ours], [], [], 0)[0]:
            try:
                data = os.read(self.ours, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return self.shown

    def wait_for(self, words):
        wait_for(lambda: f"{words!r} in {self.text()!r}", lambda: words in self.text())

    def interrupt(self):
        """Ctrl-C; the exit code."""
        os.write(self.ours, b"\x03")
        code = self.child.wait(PATIENCE)
        self.text()
        return code

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.ours)


@contextlib.contextmanager
def terminal(*arguments, **environment):
    opened = Terminal(*arguments, **environment)
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def unread(*arguments):
    """A spillway that writes into a pipe, and the end to read from, which is closed at the end."""
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as reader:
        child = subprocess.Popen([BINARY, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=writes, stderr=writes)
        os.close(writes)
        try:
            yield child, reader
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class OnATerminal(unittest.TestCase):
    def test_the_first_screen_and_the_last(self):
        with workspace() as folder, terminal(*flags_of_up(folder)) as shown:
            shown.wait_for("to see it here\n")
            plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.text())
            # A start that takes more than three seconds, as on a busy machine, says what it waits for.
            plain = re.sub(r"(?m)^Waiting for node n: .*\n", "", plain)
            self.assertEqual(plain,
                             "Ready: 1 node (n, 256Mi of memory), Kubernetes 1.36, processes as pods (no images).\n\n"
                             f"  Use        export KUBECONFIG={folder}/kubeconfig\n"
                             "             kubectl get pods -A\n"
                             f"  Dashboard  {BINARY} dashboard --kubeconfig {folder}/kubeconfig\n"
                             "  Storage    claims get directories of this machine (StorageClass local-path)\n"
                             "  Stop       Ctrl-C (ends the pods)\n"
                             "  Log        start with --log-level info to see it here\n")
            self.assertIn("\x1b[1;32mReady\x1b[0m", shown.text())
            api = Api(re.search(r"KUBECONFIG=(\S+)", plain).group(1))
            self.assertEqual(api.nodes_ready(), ["n"])
            api.create("/api/v1/namespaces/default/pods", pod("hello", ["tail", "-f", "/dev/null"]))
            wait_for("the pod", lambda: api.pod_phases().get("hello") == "Running")
            api.close()
            self.assertEqual(shown.interrupt(), 0)
            self.assertRegex(shown.text(),
                             r"\^C\nStopping: ending 1 pod\. Ctrl-C again does not wait for them\.\nStopped\.\n$")
            self.assertNotIn("level=", shown.text())
            self.assertEqual(processes_of_pods(folder), [])

    def test_without_colours_and_through_sudo(self):
        with workspace() as folder, terminal(*flags_of_up(folder, "--pods-at-stop", "leave"), NO_COLOR="1",
                                             SUDO_USER="somebody") as shown:
            shown.wait_for("to see it here\n")
            self.assertIn(f"sudo KUBECONFIG={folder}/kubeconfig kubectl get pods -A\n", shown.text())
            self.assertIn("Ctrl-C (the pods keep running, and the next start takes them over)\n", shown.text())
            self.assertNotIn("\x1b", shown.text())
            self.assertEqual(shown.interrupt(), 0)
            self.assertRegex(shown.text(), r"\^C\nStopping\.\nStopped\.\n$")

    def test_log_lines_for_those_who_ask(self):
        with workspace() as folder, terminal(*flags_of_up(folder, "--log-level", "info")) as shown:
            shown.wait_for('msg="ready" nodes=1 names=n')
            self.assertIn("Ready", shown.text())
            self.assertIn('msg="serving"', shown.text())
            self.assertEqual(shown.interrupt(), 0)

    def test_a_warning_about_a_flag_and_why_it_takes_longer(self):
        with workspace() as folder:
            flags = flags_of_up(folder, "--container-runtime-endpoint", f"unix://{folder}/none.sock",
                                "--kubelet-insecure-tls")
            with terminal(*flags) as shown:
                shown.wait_for("Waiting for node n: ")
                self.assertIn(
                    "spillway: warning: serving certificates of nodes are not verified (flag --kubelet-insecure-tls)\n",
                    shown.text())
                self.assertIn("spillway: warning: no container runtime yet: ", shown.text())
                self.assertNotIn("level=", shown.text())
                self.assertNotIn("Ready", shown.text().replace("it is not ready yet", ""))
                self.assertEqual(shown.interrupt(), 0)

    def test_away_from_a_terminal_there_are_log_lines_only(self):
        with workspace() as folder, running(folder, *flags_of_up(folder)) as process:
            wait_for("the line", lambda: 'msg="ready" nodes=1 names=n milliseconds=' in process.log.read_text())
            self.assertEqual(process.stop(), 0)
            for line in process.log.read_text().splitlines():
                self.assertRegex(line, r"^time=\S+ level=")


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class WithoutAReader(unittest.TestCase):
    def test_up_ends_its_pods(self):
        """`spillway up 2>&1 | tee log`, Ctrl-C: tee ends first."""
        with workspace() as folder, unread(*flags_of_up(folder)) as (child, reader):
            wait_for("the kubeconfig", (folder / "kubeconfig").exists)
            api = Api(folder / "kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            api.create("/api/v1/namespaces/default/pods", pod("hello", ["tail", "-f", "/dev/null"]))
            wait_for("the pod", lambda: api.pod_phases().get("hello") == "Running")
            self.assertEqual(len(processes_of_pods(folder)), 1)
            api.close()
            reader.close()
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(PATIENCE), 0)
            self.assertEqual(processes_of_pods(folder) + processes_of_pods(folder, "supervisors"), [])

    def test_up_that_fails_says_so_by_its_exit_code(self):
        """The line that says why is lost."""
        with workspace() as folder, running(folder, *flags_of_up(folder)) as first:
            wait_for("the first to have the data directory", (folder / "kubeconfig").exists)
            with unread(*flags_of_up(folder)) as (child, reader):
                reader.close()
                self.assertEqual(child.wait(PATIENCE), 1, "the data directory is in use")
            self.assertTrue(first.running())

    def test_signals_of_pods_are_the_usual_ones(self):
        with workspace() as folder, running(folder, *flags_of_up(folder)) as process:
            api = serving(process, folder / "kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            api.create("/api/v1/namespaces/default/pods",
                       pod("a", ["sh", "-c", "grep -E 'Sig(Ign|Blk)' /proc/self/status"], restartPolicy="Never"))
            wait_for("the pod", lambda: api.pod_phases().get("a") == "Succeeded")
            log = api.get("/api/v1/namespaces/default/pods/a/log")
            self.assertEqual(re.findall(r"Sig\w+:\s+(\w+)", log), ["0" * 16] * 2)

    def test_every_process_that_runs_on(self):
        with workspace() as folder, contextlib.ExitStack() as stack:
            kubeconfig = folder / "k"
            children = {}

            def start(name, *arguments):
                child, reader = stack.enter_context(unread(*arguments))
                children[name] = child
                return reader
            start("apiserver", "apiserver", "--data-dir", folder / "d", "--port", "0", "--write-kubeconfig", kubeconfig,
                  "--log-level", "debug").close()
            wait_for("the kubeconfig", kubeconfig.exists)
            for name in ("controller", "scheduler"):
                start(name, name, "--kubeconfig", kubeconfig, "--secure-port", "0", "--log-level", "debug").close()
            start("agent", "agent", "--kubeconfig", kubeconfig, "--port", "0", "--node-name", "n", "--node-memory",
                  "256Mi", "--state-dir", folder / "state", "--log-level", "debug").close()
            pages = start("dashboard", "dashboard", "--kubeconfig", kubeconfig, "--log-level", "debug")
            self.assertIn(b"http", pages.readline())
            pages.close()
            api = Api(kubeconfig)
            for lease in ("spillway-controller", "kube-scheduler"):
                wait_for(lease,
                         lambda lease=lease: api.find(
                             f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{lease}"))
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            api.close()
            for name in ("dashboard", "agent", "scheduler", "controller", "apiserver"):
                with self.subTest(process=name):
                    children[name].send_signal(signal.SIGTERM)
                    self.assertEqual(children[name].wait(PATIENCE), 0)

    def test_a_short_command_ends_quietly(self):
        """As `spillway up --help | head -1`."""
        reads, writes = os.pipe()
        os.close(reads)
        done = subprocess.run([BINARY, "up", "--help"], stdout=writes, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)
        os.close(writes)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""))


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Up(unittest.TestCase):
    def up(self, folder, *more):
        return running(folder, "up", "--data-dir", folder / "data", "--state-dir", folder / "state", "--port", "0",
                       "--write-kubeconfig", folder / "kubeconfig",
                       *(() if "--node-name" in more else ("--node-name", "n")), *more)

    def test_a_node_gets_ready_and_runs_a_pod(self):
        with workspace() as folder, self.up(folder, "--node-memory", "256Mi") as process:
            api = serving(process, folder / "kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            api.create("/api/v1/namespaces/default/pods",
                       pod("hello", ["sh", "-c", "echo hello; exec tail -f /dev/null"]))
            wait_for("the pod", lambda: api.pod_phases().get("hello") == "Running")
            wait_for("its log", lambda: api.get("/api/v1/namespaces/default/pods/hello/log") == "hello\n")
            with self.assertRaises(ApiError) as refused:
                api.get("/api/v1/namespaces/default/pods/hello/log?previous=true")
            self.assertEqual((refused.exception.code, refused.exception.status["message"]),
                             (400, 'previous terminated container "main" in pod "hello" not found'))
            api.delete("/api/v1/namespaces/default/pods/hello")
            wait_for("its end", lambda: api.find("/api/v1/namespaces/default/pods/hello") is None)
            self.assertEqual(process.stop(), 0)

    def test_log_lines_as_json(self):
        """As docs/observability.md has them."""
        with workspace() as folder, self.up(folder, "--node-memory", "256Mi", "--log-format", "json", "--log-level",
                                            "debug") as process:
            api = serving(process, folder / "kubeconfig")
            api.create("/api/v1/namespaces/default/pods", pod("hello", ["true"], restartPolicy="Never"))
            wait_for("its end", lambda: api.pod_phases().get("hello") == "Succeeded")
            process.stop()
            lines = [json.loads(line) for line in process.log.read_text().splitlines() if line.startswith("{")]
        self.assertGreater(len(lines), 10)
        for line in lines:
            self.assertEqual(list(line)[:3], ["time", "level", "msg"], line)
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertIn(line["level"], ("debug", "info", "warning", "error"))
            self.assertTrue(all(isinstance(value, (str, int, float, bool)) for value in line.values()), line)
        self.assertIn("default/hello", {line.get("pod") for line in lines})

    def test_exit_codes_become_phases(self):
        with workspace() as folder, self.up(folder, "--node-memory", "256Mi") as process:
            api = serving(process, folder / "kubeconfig")
            for name, command in (("good", ["true"]), ("bad", ["sh", "-c", "exit 3"]),
                                  ("absent", ["/no/such/program"])):
                api.create("/api/v1/namespaces/default/pods", pod(name, command, restartPolicy="Never"))
            wait_for("Succeeded", lambda: api.pod_phases().get("good") == "Succeeded")
            wait_for("Failed", lambda: api.pod_phases().get("bad") == "Failed")
            state = api.get("/api/v1/namespaces/default/pods/bad")["status"]["containerStatuses"][0]["state"]
            self.assertEqual(state["terminated"]["exitCode"], 3)
            wait_for("a reason", lambda: api.pod_phases().get("absent") == "Failed")
            state = api.get("/api/v1/namespaces/default/pods/absent")["status"]["containerStatuses"][0]["state"][
                "terminated"]
            self.assertEqual((state["reason"], state["exitCode"]), ("StartError", 128))
            self.assertIn("/no/such/program", state["message"])

    def test_several_nodes_and_replacement_of_pods(self):
        with workspace() as folder, self.up(folder, "--nodes", "2", "--node-memory", "128Mi") as process:
            api = serving(process, folder / "kubeconfig")
            wait_for("two nodes", lambda: len(api.nodes_ready()) == 2)
            # A node that has just become ready takes no pods until its taint is removed.
            wait_for("their taints to go", lambda: not any(node.get("spec", {}).get("taints")
                                                           for node in api.get("/api/v1/nodes")["items"]))
            template = pod("", ["tail", "-f", "/dev/null"])["spec"]
            api.create("/apis/apps/v1/namespaces/default/replicasets",
                       {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
                        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}},
                                 "template": {"metadata": {"labels": {"app": "web"}}, "spec": template}}})
            wait_for("four pods", lambda: list(api.pod_phases().values()).count("Running") == 4)
            nodes = {item["spec"]["nodeName"] for item in api.get("/api/v1/namespaces/default/pods")["items"]}
            self.assertEqual(len(nodes), 2)
            victim = sorted(api.pod_phases())[0]
            api.delete(f"/api/v1/namespaces/default/pods/{victim}")
            wait_for("a replacement", lambda: victim not in api.pod_phases()
                     and list(api.pod_phases().values()).count("Running") == 4)

    def test_other_nodes_than_before(self):
        with workspace() as folder:
            def up(*more):
                (folder / "kubeconfig").unlink(missing_ok=True)
                return self.up(folder, "--node-memory", "64Mi", *more)
            names = lambda api: [node["metadata"]["name"] for node in api.get("/api/v1/nodes")["items"]]
            with up("--nodes", "2") as process:
                self.assertNotIn("not run any more", process.log.read_text())
                wait_for("two nodes", lambda api=serving(process, folder / "kubeconfig"): len(api.nodes_ready()) == 2)
            with up() as process:
                wait_for("the warning", lambda: "do not run any more" in process.log.read_text())
                self.assertIn("kubectl delete node n-1 n-2, or --remove-missing-nodes", process.log.read_text())
                api = serving(process, folder / "kubeconfig")
                wait_for("the third", lambda: names(api) == ["n", "n-1", "n-2"])
            with up("--remove-missing-nodes") as process:
                api = serving(process, folder / "kubeconfig")
                wait_for("the two to go", lambda: names(api) == ["n"])
            with up() as process:
                wait_for("the node", lambda api=serving(process, folder / "kubeconfig"): api.nodes_ready() == ["n"])
                self.assertNotIn("not run any more", process.log.read_text())

    def test_a_node_that_was_stopped_is_not_ready_at_once(self):
        def ready(api, name):
            conditions = (api.find(f"/api/v1/nodes/{name}") or {}).get("status", {}).get("conditions", [])
            return next(((each["status"], each["reason"], each["message"]) for each in conditions
                         if each["type"] == "Ready"), None)

        with workspace() as folder:
            def up(*more):
                (folder / "kubeconfig").unlink(missing_ok=True)
                return self.up(folder, "--node-memory", "64Mi", *more)
            with up("--pods-at-stop", "leave", "--node-name", "left") as process:
                api = serving(process, folder / "kubeconfig")
                wait_for("the node", lambda: api.nodes_ready() == ["left"])
                self.assertEqual(process.stop(), 0)
            with up("--nodes", "2", "--node-name", "two") as process:
                api = serving(process, folder / "kubeconfig")
                self.assertEqual(ready(api, "left")[0], "True", "its pods may run on")
                wait_for("the nodes", lambda: {"two-1", "two-2"} <= set(api.nodes_ready()))
                self.assertEqual(process.stop(), 0)
            with up("--node-name", "other") as process:
                api = serving(process, folder / "kubeconfig")
                for name in ("two-1", "two-2"):
                    self.assertEqual(ready(api, name), ("False", "KubeletNotReady", "node is shutting down"))
                wait_for("the node", lambda: "other" in api.nodes_ready())
            with up("--node-name", "two", "--nodes", "2") as process:
                api = serving(process, folder / "kubeconfig")
                wait_for("the nodes to be back", lambda: {"two-1", "two-2"} <= set(api.nodes_ready()))
                api.create("/api/v1/namespaces/default/pods",
                           pod("hello", ["true"], restartPolicy="Never",
                               nodeSelector={"kubernetes.io/hostname": "two-1"}))
                wait_for("a pod there", lambda: api.pod_phases().get("hello") == "Succeeded")

    def test_more_memory_than_the_machine_has(self):
        with workspace() as folder, self.up(folder, "--node-memory", "1000Ti") as process:
            wait_for("the refusal", lambda: not process.running())
            self.assertEqual(process.child.returncode, 2)
            self.assertIn("node-memory: a node cannot have 1000Ti on a machine with ", process.tail())
            self.assertEqual([each.name for each in folder.iterdir() if each.is_dir()], [], "nothing was begun")

    def test_objects_and_pods_survive_a_kill(self):
        def container(api):
            status = api.get("/api/v1/namespaces/default/pods/stays")["status"]
            return status["phase"], status["containerStatuses"][0]["containerID"], status["containerStatuses"][0][
                "restartCount"], status["containerStatuses"][0]["state"]

        with workspace() as folder:
            with self.up(folder, "--node-memory", "256Mi") as process:
                api = serving(process, folder / "kubeconfig")
                api.create("/api/v1/namespaces/default/pods", pod("stays", ["tail", "-f", "/dev/null"]))
                wait_for("the pod", lambda: api.pod_phases().get("stays") == "Running")
                before, left = container(api), processes_of_pods(folder)
                self.assertEqual(len(left), 1)
                process.kill()
            os.remove(folder / "kubeconfig")
            with self.up(folder, "--node-memory", "256Mi") as process:
                api = serving(process, folder / "kubeconfig")
                wait_for("the node", lambda: api.nodes_ready() == ["n"])
                wait_for("the pod to be taken over", lambda: "syncloop add" in process.log.read_text())
                self.assertIn("pods of an earlier process found", process.log.read_text())
                self.assertEqual(container(api), before)
                self.assertEqual(processes_of_pods(folder), left)
                self.assertEqual(process.stop(), 0)
                self.assertIn("pods are ended", process.log.read_text())
                self.assertEqual(processes_of_pods(folder) + processes_of_pods(folder, "supervisors"), [])

    def test_interrupt_stops_in_order(self):
        with workspace() as folder, self.up(folder, "--node-memory", "128Mi") as process:
            api = serving(process, folder / "kubeconfig")
            wait_for("the node", lambda: api.nodes_ready() == ["n"])
            process.child.send_signal(signal.SIGINT)
            self.assertEqual(process.child.wait(PATIENCE), 0)


class ApiserverAlone(unittest.TestCase):
    def test_it_serves_and_refuses_nonsense_with_a_status(self):
        with workspace() as folder, running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                            "--write-kubeconfig", folder / "kubeconfig") as process:
            api = serving(process, folder / "kubeconfig")
            self.assertEqual(api.get("/readyz"), "ok")
            cases = [("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "NOT A NAME"}}, 422,
                      "Invalid"),
                     ("POST", "/api/v1/namespaces/absent/configmaps", {"metadata": {"name": "a"}}, 404, "NotFound"),
                     ("GET", "/api/v1/nodes?limit=abc", None, 400, "BadRequest"),
                     ("PUT", "/api/v1/pods", {}, 405, "MethodNotAllowed"),
                     ("GET", "/apis/none/v1/things", None, 404, "NotFound"),
                     ("POST", "/api/v1/namespaces/default/configmaps",
                      {"metadata": {"name": "big"}, "data": {"a": "x" * 3_200_000}}, 413, "RequestEntityTooLarge")]
            for method, path, body, code, reason in cases:
                with self.subTest(path=path), self.assertRaises(ApiError) as caught:
                    api.request(method, path, body)
                self.assertEqual((caught.exception.code, caught.exception.status.get("reason")), (code, reason))
                self.assertEqual(caught.exception.status["kind"], "Status")


if __name__ == "__main__":
    unittest.main()
