"""Talking with programs of containers through kubectl: exec with and without a terminal, cp, attach, run -i, by
WebSocket and by SPDY; in one process and over TLS to an agent of its own.
"""
import fcntl
import hashlib
import os
import pty
import select
import shutil
import struct
import subprocess
import termios
import unittest

import own_containerd
from harness import PATIENCE, Kubectl, can_write_cgroups, needs, one_node, pod, running, serving, wait_for, workspace

OF_NODE = '--overrides={"spec":{"nodeName":"n"}}'  # no scheduler runs
SLEEPER = ["/bin/sh", "-c", "echo begun; exec sleep 10000"]


class Terminal:
    """A program on a terminal of 77 columns and 33 lines."""

    def __init__(self, command, environment):
        self.leader, follower = pty.openpty()
        self.seen = b""
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        self.child = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment,
                                      start_new_session=True)
        os.close(follower)

    def heard(self, text):
        while select.select([self.leader], [], [], 0.05)[0]:
            self.seen += os.read(self.leader, 65536)
        return text in self.seen

    def says(self, what, given, answer):
        os.write(self.leader, given)
        wait_for(f"{what} on the terminal", lambda: self.heard(answer))

    def close(self):
        self.child.kill()
        self.child.wait()
        os.close(self.leader)


class Streams:
    """The same for every way to a node."""

    def raw(self, *arguments, given=b"", timeout=PATIENCE):
        """kubectl with bytes: (exit code, standard output, standard error)."""
        done = subprocess.run(["kubectl", *arguments], input=given, capture_output=True, env=self.kubectl.environment,
                              timeout=timeout, check=False)
        return done.returncode, done.stdout, done.stderr

    def first_line_of(self, child):
        if not select.select([child.stdout], [], [], PATIENCE)[0]:
            logs = [f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-20:])
                    for log in self.folder.glob("*.log")]
            self.fail("\n".join([f"{child.args} says nothing", *logs]))
        return child.stdout.readline()

    def test_outputs_and_codes(self):
        self.assertEqual(self.raw("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 3"),
            (3, b"out\n", b"err\ncommand terminated with exit code 3\n"))
        self.assertEqual(self.raw("exec", "box", "--", "sh", "-c", "kill -9 $$")[0], 137)
        code, out, err = self.raw("exec", "box", "--", "no-such-program")
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b'exec: "no-such-program": executable file not found in $PATH', err)
        self.assertEqual(self.raw("exec", "box", "--", "echo", "two words", "ü", "a&b=c?d#e")[1],
                         "two words ü a&b=c?d#e\n".encode())

    def test_input_ends(self):
        self.assertEqual(self.raw("exec", "-i", "box", "--", "cat", given=b"to the end")[:2], (0, b"to the end"))
        self.assertEqual(self.raw("exec", "-i", "box", "--", "wc", "-c", given=b"")[:2], (0, b"0\n"))

    def test_much_in_both_directions(self):
        blob = os.urandom(1 << 20) * 12
        code, out, err = self.raw("exec", "-i", "box", "--", "cat", given=blob)
        self.assertEqual((code, err), (0, b""))
        self.assertEqual(hashlib.sha256(out).hexdigest(), hashlib.sha256(blob).hexdigest())

    def test_copies(self):
        blob = os.urandom(3_000_000)
        (self.folder / "there").write_bytes(blob)
        self.kubectl("cp", str(self.folder / "there"), "box:/tmp/copied")
        self.assertEqual(self.kubectl("exec", "box", "--", "sha256sum", "/tmp/copied").split()[0],
                         hashlib.sha256(blob).hexdigest())
        self.kubectl("cp", "box:/tmp/copied", str(self.folder / "back"))
        self.assertEqual((self.folder / "back").read_bytes(), blob)

    def test_a_terminal(self):
        terminal = Terminal(["kubectl", "exec", "-it", "box", "--", "/bin/sh"], self.kubectl.environment)
        try:
            terminal.says("its name", b"echo $((40+2)); tty; echo TERM=$TERM\n", b"42\r\n/dev/pts/")
            terminal.says("its kind", b"", b"TERM=xterm\r\n")
            wait_for("its size", lambda: os.write(terminal.leader, b"stty size\n") and terminal.heard(b"33 77\r\n"))
            terminal.says("a wait", b"trap 'echo inter''rupted' INT; echo wai''ting; sleep 1000\n", b"waiting\r\n")
            wait_for("what the interrupt does", lambda: os.write(terminal.leader, b"\x03")
                     and terminal.heard(b"interrupted\r\n"))
            os.write(terminal.leader, b"exit 7\n")
            self.assertEqual(terminal.child.wait(PATIENCE), 7)
        finally:
            terminal.close()

    @unittest.skipIf(own_containerd.is_wanted(), "it leaves its programs running, as with other agents")
    def test_a_client_that_goes(self):
        child = subprocess.Popen(["kubectl", "exec", "box", "--", "sh", "-c", "echo here; exec sleep 4321"],
                                 stdout=subprocess.PIPE, env=self.kubectl.environment)
        self.assertEqual(self.first_line_of(child), b"here\n")
        child.kill()
        child.wait()
        child.stdout.close()
        count = ("exec", "box", "--", "sh", "-c",
                 "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 432[1]' || true")
        wait_for("its program to be gone", lambda: self.kubectl(*count).strip() == "0")

    def test_attach_receives_later_output(self):
        self.kubectl.apply(
            pod(
                "talker",
                [
                    "/bin/sh",
                    "-c",
                    (
                        "while [ ! -e /tmp/end ] || pidof touch >/dev/null; do echo said; echo muttered >&2; sleep 0.1;"
                        " done; echo last; exit 3"
                    ),
                ],
                nodeName="n",
                restartPolicy="Never",
            )
        )
        self.assertIn("said", self.kubectl.log_of("talker"))
        child = subprocess.Popen(["kubectl", "attach", "talker"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.kubectl.environment)
        self.assertEqual(self.first_line_of(child), b"said\n")
        self.kubectl("exec", "talker", "--", "touch", "/tmp/end")  # a child would be killed with the container
        out, err = child.communicate(timeout=PATIENCE)
        self.assertTrue(out.endswith(b"last\n"), out)
        self.assertIn(b"muttered\n", err)
        self.assertEqual(child.returncode, 0)
        self.kubectl("delete", "pod", "talker", "--wait=false")

    def test_attach_gives_input(self):
        """stdinOnce, as kubectl run -i makes it: the input ends with the client, or when it says so."""
        self.kubectl.apply(self.listener("sorter", ["/bin/sh", "-c", "echo begun; sort; echo sorted"], stdin=True,
                                         stdinOnce=True))
        self.assertEqual(self.kubectl.log_of("sorter"), "begun")
        code, out, err = self.raw("attach", "-i", "sorter", given=b"b\na\nc\n")
        self.assertEqual((code, out), (0, b"a\nb\nc\nsorted\n"), err)
        self.kubectl("delete", "pod", "sorter", "--wait=false")

    def test_input_that_goes_on(self):
        """Without stdinOnce the next client continues where the last one left."""
        self.kubectl.apply(
            self.listener(
                "reader",
                ["/bin/sh", "-c", "echo begun; while read x; do [ $x = bye ] && exit; echo got $x; done; echo closed"],
                stdin=True,
            )
        )
        self.assertEqual(self.kubectl.log_of("reader"), "begun")
        child = subprocess.Popen(["kubectl", "attach", "-i", "reader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL,
            env=self.kubectl.environment)
        child.stdin.write(b"one\n")
        child.stdin.flush()
        self.assertEqual(self.first_line_of(child), b"got one\n")
        child.kill()
        child.communicate()
        child = subprocess.Popen(["kubectl", "attach", "-i", "reader"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL,
            env=self.kubectl.environment)
        said = b""

        def heard(line):
            """containerd passes input on a moment before it listens to what the container says, and may keep what comes
            with its end.
            """
            nonlocal said
            child.stdin.write(line + b"\n")
            child.stdin.flush()
            if select.select([child.stdout], [], [], 0.5)[0]:
                said += os.read(child.stdout.fileno(), 65536)
            return said.endswith(b"got " + line + b"\n")
        wait_for("an answer", lambda: heard(b"two"))
        wait_for("the last answer", lambda: heard(b"end"))
        self.assertLessEqual(set(said.splitlines()), {b"got two", b"got end"})
        child.stdin.write(b"bye\n")
        child.stdin.flush()
        self.assertEqual(child.wait(PATIENCE), 0)
        child.stdin.close()
        child.stdout.close()
        self.kubectl("delete", "pod", "reader", "--wait=false")

    def test_run_with_input(self):
        code, out, err = self.raw("run", "once", f"--image={own_containerd.IMAGE}", "--image-pull-policy=IfNotPresent",
                                  "--restart=Never", OF_NODE, "-i", "--rm", "--quiet",
            "--command", "--", "wc", "-c", given=b"x" * 3_000_000)
        self.assertEqual((code, out.split()[:1]), (0, [b"3000000"]), err)

    def test_without_input_nothing_is_to_be_read(self):
        self.kubectl.apply(self.listener("deaf", ["/bin/sh", "-c", "cat; echo nothing; exec sleep 10000"]))
        self.assertEqual(self.kubectl.log_of("deaf"), "nothing")
        self.kubectl("delete", "pod", "deaf", "--wait=false")

    def test_a_container_with_a_terminal(self):
        self.kubectl.apply(self.listener("shell", ["/bin/sh", "-c", "echo TERM=$TERM; tty; exec /bin/sh"], stdin=True,
                                         tty=True))
        log = self.kubectl.log_of("shell")
        self.assertIn("TERM=xterm", log)
        terminal = Terminal(["kubectl", "attach", "-it", "shell"], self.kubectl.environment)
        try:
            terminal.says("$((40+2))", b"echo $((40+2))\n", b"42\r\n")
            terminal.says("the terminal's name", b"tty\n", b"/dev/pts/")
            wait_for("its size", lambda: os.write(terminal.leader, b"stty size\n") and terminal.heard(b"33 77\r\n"))
            os.write(terminal.leader, b"exit\n")
            self.assertEqual(terminal.child.wait(PATIENCE), 0)
        finally:
            terminal.close()
        self.kubectl("delete", "pod", "shell", "--wait=false")

    def test_a_terminal_without_input(self):
        self.kubectl.apply(self.listener("screen", ["/bin/sh", "-c", "tty; while true; do sleep 0.1; echo seen; done"],
                                         tty=True))
        self.assertIn("/dev/pts/", self.kubectl.log_of("screen"))
        child = subprocess.Popen(["kubectl", "attach", "screen"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, env=self.kubectl.environment)
        self.assertEqual(self.first_line_of(child), b"seen\r\n")
        child.kill()
        child.communicate()
        self.kubectl("delete", "pod", "screen", "--wait=false")

    def listener(self, name, command, **of_container):
        made = pod(name, command, nodeName="n", restartPolicy="Never")
        made["spec"]["containers"][0].update(of_container)
        return made

    def test_what_cannot_be(self):
        self.assertIn("container nobody is not valid for pod box",
                      self.kubectl("exec", "box", "-c", "nobody", "--", "true", code=1))
        self.assertIn("not found", self.kubectl("exec", "no-such", "--", "true", code=1))


def started(kubectl, node="n"):
    kubectl.apply(pod("box", SLEEPER, nodeName=node))
    assert kubectl.log_of("box").strip() == "begun"


@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class InOneProcess(Streams, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.kubectl = cls.enterClassContext(one_node(cls.folder)).kubectl
        started(cls.kubectl)


@unittest.skipIf(own_containerd.is_wanted(), "an agent of its own is started without one")
@needs(shutil.which("kubectl") and can_write_cgroups(), "needs kubectl, root and a writable cgroup hierarchy")
class ThroughAnAgent(Streams, unittest.TestCase):
    """API server and agent are two processes: the connection continues over TLS, as the API server's narrow
    identity.
    """

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        kubeconfig = cls.folder / "kubeconfig"
        server = cls.enterClassContext(running(cls.folder, "apiserver", "--data-dir", cls.folder / "data", "--port",
                                               "0", "--write-kubeconfig", kubeconfig))
        api = serving(server, kubeconfig)
        cls.kubectl = Kubectl(kubeconfig)
        cls.enterClassContext(running(cls.folder, "agent", "--kubeconfig", kubeconfig, "--node-name", "n", "--node-ip",
                                      "127.0.0.1", "--port", "0",
                                      "--node-memory", "256Mi", "--state-dir", cls.folder / "state"))
        wait_for("the node", lambda: api.nodes_ready() == ["n"])
        started(cls.kubectl)


class OverSpdy:
    """As clients before 1.31 speak."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kubectl.environment["KUBECTL_REMOTE_COMMAND_WEBSOCKETS"] = "false"


class InOneProcessOverSpdy(OverSpdy, InOneProcess):
    pass


class ThroughAnAgentOverSpdy(OverSpdy, ThroughAnAgent):
    pass


if __name__ == "__main__":
    unittest.main()
