"""The demo happens, and leaves nothing behind: neither at its end nor after Ctrl-C in the middle."""
import os
import pathlib
import signal
import subprocess
import unittest

from harness import BINARY, can_write_cgroups, needs, PATIENCE, wait_for


def leftovers():
    """Processes of the binary and cgroups of nodes."""
    processes = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "exe") == str(BINARY.resolve()):
                    processes.add(entry.name)
            except OSError:
                continue
    cgroups = {str(path) for root in ("memory", "pids", "cpu", "freezer", ".")
               for path in pathlib.Path("/sys/fs/cgroup", root).glob("spillway/*")
               if path.is_dir()}
    files = {str(path) for path in pathlib.Path("/tmp").glob("spillway-demo-*")}
    return processes | cgroups | files


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Demo(unittest.TestCase):
    def test_it_happens(self):
        before = leftovers()
        done = subprocess.run([BINARY, "demo"], capture_output=True, text=True, timeout=5 * PATIENCE,
                              stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for words in ("The node was low on resource: memory", "unreachable", "evicted"):
            self.assertIn(words, done.stdout)
        self.assertEqual(leftovers() - before, set())

    def test_interrupt_in_the_middle(self):
        before = leftovers()
        child = subprocess.Popen([BINARY, "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 stdin=subprocess.DEVNULL)
        for line in child.stdout:
            if "memory.available" in line:
                break
        child.send_signal(signal.SIGINT)
        child.stdout.read()
        self.assertEqual(child.wait(PATIENCE), 130)
        wait_for("everything gone", lambda: not leftovers() - before)


if __name__ == "__main__":
    unittest.main()
