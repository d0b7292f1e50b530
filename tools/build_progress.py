#!/usr/bin/env python3
"""Builds targets in a configured folder with ninja: says first what will be compiled, how long that takes and how much
disk, then shows progress.

usage: build_progress.py [--jobs N] FOLDER [TARGET...]

On a terminal the progress is one line that is rewritten, elsewhere a line per tenth of the work. The output of ninja
goes to FOLDER/build.log; that of a command that fails is printed as well. Exit code: ninja's; 130 after Ctrl-C.
"""
import argparse
import collections
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time

# A unit that this folder has not compiled before: seconds of one core, and MB on disk with its share of libraries and
# programs. Measured on two
# cores of a virtual machine, g++ 12 for release and clang 19 for dev; the other presets are within a factor of two.
Cost = collections.namedtuple("Cost", "seconds megabytes")
COSTS = {"release": Cost(25, 11), "dev": Cost(7, 18)}
UNKNOWN = Cost(10, 18)
MEMORY_MB = 2000  # memory of a large unit; with less of it free per job, fewer jobs run
MARK = "\x1e"  # begins a line that ninja prints for a finished step
STEP = re.compile(f"{MARK}(.*)")
UNIT = re.compile(r"Building CXX object (\S+)")
TRUST_SECONDS = 60  # seconds after which the pace of this build outweighs the estimate made before it


def cores():
    return len(os.sched_getaffinity(0))


def free_memory_mb():
    """MemAvailable; without /proc there is no bound."""
    try:
        return int(re.search(r"^MemAvailable:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text(),
                             re.M).group(1)) // 1024
    except (OSError, AttributeError):
        return 1 << 30


def jobs_for(memory_mb, count):
    return max(1, min(count, memory_mb // MEMORY_MB))


def units(count):
    return f"{count} units" if count != 1 else "1 unit"


def about(seconds):
    count = round(seconds / 60)
    return f"about {count} minutes" if count > 1 else "about a minute"


def spent(seconds):
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"


def units_to_compile(folder, targets):
    """Object files, by a dry run. The manifest goes by its absolute path: by its own name, ninja would stop after
    regenerating it.
    """
    dry = subprocess.run(["ninja", "-C", folder, "-f", folder.resolve() / "build.ninja", "-n", *targets],
                         capture_output=True, text=True, check=False,
                         env={**os.environ, "NINJA_STATUS": ""})
    return UNIT.findall(dry.stdout)


def seconds_of(folder, units):
    """{unit: seconds}: as the last time by .ninja_log, or the constant."""
    try:
        rows = [line.split("\t") for line in (folder / ".ninja_log").read_text().splitlines()
                if not line.startswith("#")]
    except OSError:
        rows = []
    known = {row[3]: (int(row[1]) - int(row[0])) / 1000 for row in rows if len(row) == 5}
    usual = COSTS.get(folder.name, UNKNOWN).seconds
    return {unit: known.get(unit, usual) for unit in units}


class Progress:
    """The line that says how far the build is. `clock` gives seconds."""

    def __init__(self, seconds, jobs, out, clock=time.monotonic):
        self.seconds, self.jobs, self.out, self.clock = seconds, jobs, out, clock
        self.total, self.whole, self.begun = len(seconds), sum(seconds.values()), clock()
        self.count, self.done, self.tenths = 0, 0.0, 0
        self.rewrites = out.isatty()

    def finished(self, unit):
        if unit in self.seconds:
            self.count += 1
            self.done += self.seconds[unit]
            self.show()

    def seconds_left(self):
        """The estimate, scaled by the pace of this build, which counts for more the longer the build runs."""
        elapsed = self.clock() - self.begun
        pace = (TRUST_SECONDS + elapsed) / (TRUST_SECONDS + self.done / self.jobs)
        return (self.whole - self.done) / self.jobs * pace

    def text(self):
        left = f", {about(self.seconds_left())} left" if self.count < self.total else "; linking"
        return f"compiled {self.count} of {units(self.total)}{left}"

    def show(self):
        if self.rewrites:
            self.out.write(f"\r\x1b[Kdev: {self.text()}")
        elif self.total and self.count * 10 // self.total > self.tenths:
            self.tenths = self.count * 10 // self.total
            self.out.write(f"dev: {self.text()}\n")
        self.out.flush()

    def tick(self):
        if self.rewrites and self.total:
            self.show()

    def clear(self):
        if self.rewrites:
            self.out.write("\r\x1b[K")
            self.out.flush()


class Filter:
    """Takes ninja's output line by line. Steps that failed are printed whole; steps that printed anything else are
    counted.
    """

    def __init__(self, progress, log):
        self.progress, self.log = progress, log
        self.failed, self.lines, self.spoke = False, [], 0

    def line(self, line):
        self.log.write(line.replace(MARK, ""))
        step = STEP.match(line)
        if not step:
            self.lines.append(line)
            return
        self.end_step()
        unit = UNIT.match(step.group(1))
        if unit:
            self.progress.finished(unit.group(1))

    def end_step(self):
        """Called before the next step and at the end: what came since the last step belongs to it."""
        if any(line.startswith(("FAILED: ", "ninja: error: ", "ninja: fatal: ")) for line in self.lines):
            self.failed = True
            self.progress.clear()
            self.progress.out.write("".join(self.lines))
        elif any("warning: " in line for line in self.lines):
            self.spoke += 1
        self.lines = []


def lines_of(pipe, on_idle):
    """Lines as they come; `on_idle` is called for every second without one."""
    rest = b""
    while True:
        if not select.select([pipe], [], [], 1)[0]:
            on_idle()
            continue
        data = os.read(pipe.fileno(), 1 << 16)
        if not data:
            break
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode(errors="replace") + "\n" for line in whole)
    if rest:
        yield rest.decode(errors="replace") + "\n"


def announce(folder, seconds, jobs, out):
    preset = folder.name
    if not seconds:
        return
    megabytes = len(seconds) * COSTS.get(preset, UNKNOWN).megabytes
    size = f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes} MB"
    out.write(
        f"dev: building ({preset}): {units(len(seconds))} to compile, {about(sum(seconds.values()) / jobs)}, {jobs} at"
        f" a time, about {size} of disk\n"
    )
    free = shutil.disk_usage(folder).free // 1_000_000
    if free < megabytes:
        out.write(f"dev: {folder} has only {free} MB of free disk\n")
    out.flush()


def build(folder, targets, jobs, out=sys.stderr):
    seconds = seconds_of(folder, units_to_compile(folder, targets))
    jobs = jobs or jobs_for(free_memory_mb(), cores())
    announce(folder, seconds, jobs, out)
    progress = Progress(seconds, jobs, out)
    log = folder / "build.log"
    ninja = None
    try:
        with open(log, "w") as kept:
            output = Filter(progress, kept)
            ninja = subprocess.Popen(["ninja", "-C", folder, "-j", str(jobs), *targets], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT,
                                     env={**os.environ, "NINJA_STATUS": MARK})
            signal.signal(signal.SIGTERM, lambda *_: ninja.terminate())
            for line in lines_of(ninja.stdout, progress.tick):
                output.line(line)
            output.end_step()
            code = ninja.wait()
    except KeyboardInterrupt:  # ninja received the signal, too
        if ninja is not None:
            ninja.wait()
        progress.clear()
        return 130
    progress.clear()
    if code != 0:
        out.write(f"dev: the build failed; the output of all commands is in {log}\n")
    elif seconds:
        spoke = f"; warnings of {output.spoke} commands are in {log}" if output.spoke else ""
        out.write(f"dev: compiled {units(progress.count)} in {spent(progress.clock() - progress.begun)}{spoke}\n")
    return code if code >= 0 else 128 - code


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--jobs", type=int)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("targets", nargs="*")
    chosen = parser.parse_args()
    try:
        return build(chosen.folder, chosen.targets, chosen.jobs)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
