"""Test programs: which of them reach a source, in which order, for how long, and apart from the machine.

A mutant may send a signal to every process or remove a folder that is not its own. As root each test runs in a process
namespace of its own, with every file system but a new /tmp read-only.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

# The cheapest suite with processes that runs through a module; none of them needs more than files below /tmp and
# cgroups.
AREAS = {
    "policy": "e2e_scheduler", "agent": "e2e_probes", "controllers": "e2e_controllers", "apiserver": "e2e_admission",
    "host": "e2e_streams",
    "store": "e2e_store_commands", "wire": "e2e_bounds", "client": "e2e_leader", "sim": "e2e_simulate",
    "cli": "e2e_bad_input",
}
# Processor seconds of tests that have not been measured, by name or by label.
SECONDS = {"test_apiserver": 70.0, "test_controllers": 49.0, "agent_test": 38.0, "sim_test": 60.0,
           "sim_scenario_test": 68.0, "sim_failover_test": 68.0,
           "unit": 5.0, "sim": 30.0, "e2e": 60.0}
# factor by which a test may exceed its seconds: a loop that a mutant keeps from ending uses all of it
MEASURED, UNMEASURED = 2, 8
DATA_BYTES = 6 << 30  # a loop that a mutant keeps from ending fills its memory long before its time is up
APART = """
set -e
keep=$1; shift
for at in $(awk '$3 !~ /^(proc|sysfs|cgroup2?|devtmpfs|devpts|mqueue|tmpfs)$/ && $2 != "/dev" { print $2 }' /proc/self/mounts | sort -u); do
  mount -o remount,bind,ro "$at" 2>/dev/null || true
done
case $keep in
  /tmp/*) mount --bind "$keep" /mnt; mount -t tmpfs tmpfs /tmp; mkdir -p "$keep"; mount --bind /mnt "$keep"; mount -o remount,bind,ro "$keep"; umount /mnt ;;
  *) mount -t tmpfs tmpfs /tmp ;;
esac
cd "$1"; shift
set +e
"$@"  # not as process 1, to which few signals are delivered and orphans are given
exit $?
"""


class Test:
    def __init__(self, name, command, properties, folder):
        self.name, self.command = name, command
        self.labels = properties.get("LABELS", [])
        self.where = properties.get("WORKING_DIRECTORY", str(folder))
        self.environment = dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))
        self.alone = properties.get("RUN_SERIAL", False)
        self.program = pathlib.Path(command[0]).name
        self.rooms = []
        self.seconds = SECONDS.get(name,
                                   SECONDS["e2e" if "e2e" in self.labels else "sim" if "sim" in self.labels
                                           else "unit"])
        self.measured = False

    def take(self, seconds):
        self.seconds, self.measured = seconds, True

    @property
    def with_processes(self):
        return "e2e" in self.labels


def from_ctest(folder, root):
    done = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{folder}: ctest: {done.stderr.strip()}")
    vectors, tests = vector_rooms(root), []
    for each in json.loads(done.stdout)["tests"]:
        if not each.get("command"):
            continue
        properties = {entry["name"]: entry["value"] for entry in each.get("properties", [])}
        test = Test(each["name"], each["command"], properties, folder)
        program = pathlib.Path(test.command[0])
        if test.name.startswith("vectors_"):
            test.rooms = vectors.get(test.name[len("vectors_"):], [])
        elif program.is_relative_to(folder / "tests"):
            test.rooms = [str(program.parent.relative_to(folder / "tests"))]
        elif test.name not in AREAS.values():
            continue
        tests.append(test)
    known = folder / "Testing/Temporary/CTestCostData.txt"
    costs = {}
    for line in known.read_text().splitlines() if known.is_file() else []:
        words = line.split()
        if len(words) == 3 and float(words[2]) > 0:
            costs[words[0]] = float(words[2])
    for test in tests:
        if test.name in costs:
            test.take(costs[test.name])
    return tests


def vector_rooms(root):
    """The rooms whose rules each part of tests/vectors checks."""
    rooms = {}
    for file in sorted((root / "tests").rglob("CMakeLists.txt")):
        for part in re.findall(r"^spillway_vectors\((\S+)", file.read_text(), re.M):
            rooms.setdefault(part, []).append(str(file.parent.relative_to(root / "tests")))
    return rooms


def users(root, room):
    """The modules that may include headers of a room, by tools/layers.txt."""
    file, found = root / "tools/layers.txt", set()
    for line in file.read_text().splitlines() if file.is_file() else []:
        folder, _, allowed = line.partition("#")[0].partition(":")
        names = allowed.split()
        if room in names or any(name.endswith("/*") and (room + "/").startswith(name[:-1]) for name in names):
            found.add(folder.strip().split("/")[0])
    return found


def plan(tests, root, path, reaches, bound_seconds):
    """The tests for a mutant of `path`: those of its own room, then of the modules that use it, units before the
    simulator, cheapest first, until they would take longer than the bound; the suite with processes last. Where there
    are none, whatever is linked with it."""
    room = str(pathlib.PurePath(path).parent.relative_to("src"))
    module, using = room.split("/")[0], users(root, room)

    def distance(test):
        if any((room + "/").startswith(each + "/") for each in test.rooms):
            return 0
        return 1 if any(each.split("/")[0] in using for each in test.rooms) else 2

    chosen, left = [], bound_seconds
    linked = sorted((test for test in tests if not test.with_processes and reaches(test)),
                    key=lambda test: (distance(test), distance(test) > 0 and "sim" in test.labels, test.seconds,
                                      test.name))
    for test in [test for test in linked if distance(test) < 2] or linked:
        if distance(test) == 0 or test.seconds <= left:
            chosen.append(test)
            left -= test.seconds
    chosen += [test for test in tests if test.with_processes and test.name == AREAS.get(module)]
    return chosen


class Runs:
    """Runs tests, each in its own session, and ends those that still run when it is stopped."""

    def __init__(self, root):
        self.root, self.lock, self.running, self.stopped = root, threading.Lock(), set(), False
        self.machine = threading.Lock()  # held by a test that measures the machine, or makes nodes on it
        self.apart = self.can_be_apart()

    @staticmethod
    def can_be_apart():
        if os.geteuid() != 0 or not shutil.which("unshare"):
            return False
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "true"],
                              capture_output=True, check=False).returncode == 0

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                self.end(process)

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def passes(self, test, program):
        """True if the test passes with this program, and the seconds that it took: of the processor, or with processes
        of the clock. A time-out is a failure."""
        environment = {**os.environ, **test.environment, "GTEST_BRIEF": "1", "GTEST_FAIL_FAST": "1"}
        if test.with_processes:
            command = test.command
            environment["SPILLWAY"] = str(program)
        else:
            command = [str(program), *test.command[1:]]
            if shutil.which("prlimit"):
                command = ["prlimit", f"--cpu={int(10 + (MEASURED if test.measured else UNMEASURED) * test.seconds)}",
                           f"--data={DATA_BYTES}", "--", *command]
        if self.apart:
            command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", APART, "sh",
                       str(self.root), test.where, *command]
        if test.alone or test.with_processes:
            with self.machine:
                return self.timed(command, test, environment)
        return self.timed(command, test, environment)

    def timed(self, command, test, environment):
        began = time.monotonic()
        # by the clock: others compute as well
        patience = 60 + 5 * (MEASURED if test.measured else UNMEASURED) * test.seconds
        with self.lock:
            if self.stopped:
                return False, 0.0
            process = subprocess.Popen(command, cwd=test.where, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            self.running.add(process)
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() - began > patience:
                self.end(process)
            time.sleep(0.02)
        # processes that it has left behind; its number is not another's before it has been waited for
        self.end(process)
        with self.lock:
            self.running.discard(process)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began if test.with_processes else usage.ru_utime + usage.ru_stime
        return process.returncode == 0, seconds
