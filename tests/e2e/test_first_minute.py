"""The first minute on a terminal: the three commands of the README, typed into a shell. docs/first-minute.cast is what
it shows, as an asciicast; with SPILLWAY_PICTURES=docs it is made anew."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import termios
import time
import unittest

from harness import BINARY, PATIENCE, ROOT, can_write_cgroups, needs, room_on_disks, workspace

CAST = ROOT / "docs/first-minute.cast"
WIDTH, HEIGHT = 110, 34
KEY_S = 0.03  # between two typed letters
READ_S = 2.0  # for a person to read an answer
SECONDS_MAX = 90
LOOKS = re.compile("spillway (explain|top)")
EXPLAINED_S = 20.0  # after which such a command is typed again
# Each command with words that it, or what happens after it, shows.
COMMANDS = (("spillway up --nodes 3 --node-memory 256Mi &", "Ready: "),
            ("kubectl apply -f examples/hog.yaml", "pod/hog created"),
            ("spillway watch", "below its threshold of 25Mi"),
            ("\x03", ""), ("spillway explain", "spillway explain pod/hog"),
            ("spillway explain pod/hog", "was evicted by"), ("spillway top", "n-3"))
# The commands stand as in the README; the flags that keep this server to its own folder and port are added here.
SHELL = r"""
PS1='$ '
bind 'set enable-bracketed-paste off'
export KUBECONFIG="$FOLDER/kubeconfig" COLUMNS
spillway() {
  local command=$1
  shift
  case $command in
    up) exec "$BINARY" up "$@" --data-dir "$FOLDER/data" --state-dir "$FOLDER/state" --port 0 --write-kubeconfig "$KUBECONFIG" --node-name n --runtime process --proxy off --pod-network off $DISKS ;;
    *) "$BINARY" "$command" "$@" ;;
  esac
}
"""


def unpainted(text):
    """The text without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


class Shell:
    """A shell on a terminal, and what that shows, with times."""

    def __init__(self, folder):
        rc = folder / "shell.rc"
        rc.write_text(SHELL)
        self.begin, self.shown = time.monotonic(), []
        self.ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (HEIGHT, WIDTH))
        keep = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
        self.child = subprocess.Popen(["bash", "--noprofile", "--rcfile", rc, "-i"], stdin=theirs, stdout=theirs,
                                      stderr=theirs, start_new_session=True, cwd=ROOT,
                                      # pylint: disable=subprocess-popen-preexec-fn
                                      preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                      env={**keep, "TERM": "xterm-256color", "FOLDER": str(folder),
                                           "BINARY": str(BINARY), "DISKS": " ".join(map(str, room_on_disks()))})
        os.close(theirs)

    def text(self):
        return unpainted("".join(data for _, data in self.shown))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.ours], [], [], left)[0]:
                self.shown.append((time.monotonic() - self.begin, os.read(self.ours, 65536).decode(errors="replace")))

    def type(self, line):
        for letter in line:
            os.write(self.ours, letter.encode())
            self.read(KEY_S)
        if line.isprintable():
            os.write(self.ours, b"\r")

    def shows(self, words, begin, seconds):
        """True once the words stand behind that place; False if they do not in that time."""
        deadline = time.monotonic() + seconds
        while words not in self.text()[begin:].replace("\r\n", ""):
            if time.monotonic() > deadline:
                return False
            self.read(0.1)
        return True

    def carry_out(self, command, words):
        """Types the command, and waits for the words. An explanation that comes too early is typed again."""
        deadline = time.monotonic() + PATIENCE
        while True:
            begin = len(self.text())
            self.type(command)
            if self.shows(words, begin + len(command), EXPLAINED_S if LOOKS.match(command) else PATIENCE):
                return
            assert time.monotonic() < deadline, f"{words!r} not in {self.text()[begin:]!r}"

    def close(self):
        self.type("\x03")
        self.type("kill $! && wait")
        os.write(self.ours, b"exit\r")
        deadline = time.monotonic() + PATIENCE
        with contextlib.suppress(OSError):  # the terminal ends with the shell
            while self.child.poll() is None and time.monotonic() < deadline:
                self.read(0.1)
        self.child.wait(PATIENCE)
        os.close(self.ours)


def lines_of(cast):
    head, *events = [json.loads(line) for line in cast.splitlines()]
    return head, events


@needs(can_write_cgroups() and shutil.which("kubectl"), "needs root, a writable cgroup hierarchy and kubectl")
class FirstMinute(unittest.TestCase):
    def test_the_commands_show_an_eviction_within_a_minute(self):
        folder = pathlib.Path(self.enterContext(workspace()))
        shell = Shell(folder)
        try:
            shell.read(0.5)
            for command, words in COMMANDS:
                shell.carry_out(command, words)
                shell.read(READ_S if command.isprintable() else 0.5)
        finally:
            end = len(shell.shown)
            shell.close()
        recorded = shell.shown[:end]
        print(f"{recorded[-1][0]:.0f} s", flush=True)
        if pictures := os.environ.get("SPILLWAY_PICTURES"):
            plain = ((str(folder), "/var/lib/spillway"), (str(BINARY), "spillway"))
            rows = [json.dumps({"version": 2, "width": WIDTH, "height": HEIGHT, "title": "Spillway: the first minute"})]
            for at, data in recorded:
                for path, usual in plain:
                    data = data.replace(path, usual)
                rows.append(json.dumps([round(at, 3), "o", data]))
            (pathlib.Path(pictures) / CAST.name).write_text("\n".join(rows) + "\n")

    def test_the_recording_shows_these_commands(self):
        head, events = lines_of(CAST.read_text())
        self.assertEqual((head["version"], head["width"], head["height"]), (2, WIDTH, HEIGHT))
        times = [at for at, _, _ in events]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[-1], SECONDS_MAX)
        self.assertEqual({kind for _, kind, _ in events}, {"o"})
        shown = unpainted("".join(data for _, _, data in events))
        for command, words in COMMANDS:
            self.assertIn(command if command.isprintable() else "^C", shown)
            self.assertIn(words, shown.replace("\r\n", ""))
        self.assertNotIn("/tmp/", shown)


if __name__ == "__main__":
    unittest.main()
