"""Judges the longest turns of the loops of a suite's processes: a turn is the time for which no other request is
answered.

Each process logs, when it stops, the turns of each of its loops that took the most processor time, and their causes. A
turn must not take more than BOUND on the reference machine; a slower machine has more, by what a fixed computation
takes on it. Processor time, so other work beside a suite does not count, except for what it costs in caches.

usage: turns.py LOG...   exit code 1 if a turn took too long
"""
import hashlib
import pathlib
import re
import sys
import time

BOUND = 50.0  # milliseconds of processor time (docs/security.md)
# The computation below on the reference machine (two virtual processors of an AMD EPYC), in milliseconds.
REFERENCE = 54.0
LINE = re.compile(r'msg="longest turn of the event loop" cause=(".*?"|\S+) loop=(\S+) processor_milliseconds=(\d+)')


def calibration():
    """The factor by which this machine is slower than the reference machine, with what runs beside; at least 1."""
    def once():
        began = time.thread_time()
        seen = {}
        for i in range(60_000):
            seen[str(i)] = hashlib.sha256(str(i).encode()).digest()
        return (time.thread_time() - began) * 1000
    return max(1.0, sorted(once() for _ in range(5))[2] / REFERENCE)


def turns_in(log):
    """(milliseconds, loop, cause) of each loop of the process that wrote this log."""
    text = pathlib.Path(log).read_text(errors="replace")
    return [(int(milliseconds), loop, cause.strip('"')) for cause, loop, milliseconds in LINE.findall(text)]


judge = None  # the Turns that check every process that stops (harness.running); None: no check


class Turns:
    """The turns of the processes that a suite has stopped so far."""

    def __init__(self):
        self.scale = calibration()
        self.seen = []  # (milliseconds, program and loop, cause)

    def add(self, program, log):
        self.seen += [(milliseconds, f"{program} {loop}", cause) for milliseconds, loop, cause in turns_in(log)]

    def too_long(self):
        """Prints the longest turn of each loop, and returns the lines of those that took too long."""
        scale = max(self.scale, calibration())
        longest = {}
        for milliseconds, loop, cause in sorted(self.seen):
            longest[loop] = f"{loop}: {milliseconds} ms, {cause}"
        print(f"longest turns, {BOUND * scale:.0f} ms are allowed: " + ("; ".join(longest.values()) or "none seen"),
              flush=True)
        return [f"{loop}: {milliseconds} ms, {cause}" for milliseconds, loop, cause in sorted(self.seen, reverse=True)
                if milliseconds > BOUND * scale]


if __name__ == "__main__":
    judged = Turns()
    for each in sys.argv[1:]:
        judged.add(pathlib.Path(each).name, each)
    sys.exit(1 if judged.too_long() else 0)
