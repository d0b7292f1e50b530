#!/usr/bin/env python3
"""Checks that builds of the program play the same seeds alike: equal hashes of all writes, whichever compiler made
them.

Each program plays the seeds, and the first of them plays them once more. If two sums differ, the seeds are halved until
the first one that differs is found. Scenario files are played as well, if any are named.

    bench/sim/same_traces.py build/release/src/apps/spillway build/dev/src/apps/spillway [--seeds 1..50] [--scenario
    FILE]...

Exit codes: 0 all are equal and no property was violated, 1 they are not.
"""
import argparse
import json
import re
import subprocess
import sys
import time


def play_seeds(program, first, last, jobs):
    """The answer of `spillway swarm -o json` about these seeds; a violation (exit code 1) is an answer as well."""
    command = [program, "swarm", "--seeds", f"{first}..{last}", "--jobs", str(jobs), "--minimise", "0", "-o", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"same_traces: {' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)


def play_scenario(program, file):
    command = [program, "simulate", file, "--seed", "1", "-o", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"same_traces: {' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)["traceHash"]


def first_different(one, other, first, last, jobs):
    while first < last:
        middle = (first + last) // 2
        sums = [play_seeds(program, first, middle, jobs)["traces"] for program in (one, other)]
        if sums[0] == sums[1]:
            first = middle + 1
        else:
            last = middle
    return first


def seeds_of(text):
    found = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if not found or int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(f"expected FIRST..LAST, got {text}")
    return int(found[1]), int(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--seeds", type=seeds_of, default=(1, 50), metavar="FIRST..LAST")
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    first, last = arguments.seeds
    same = True
    results = []
    for program in arguments.programs + arguments.programs[:1]:
        begin = time.monotonic()
        result = play_seeds(program, first, last, arguments.jobs)
        results.append((program, result["traces"]))
        if result["failed"]:
            same = False
        print(f"{program}: seeds {first}..{last}: traces {result['traces']}, {result['writes']} writes, "
              f"{len(result['failed'])} with violations, {time.monotonic() - begin:.0f} s", flush=True)
    for program, traces in results[1:]:
        if traces == results[0][1]:
            continue
        same = False
        seed = first_different(results[0][0], program, first, last, arguments.jobs)
        print(f"seed {seed} differs between {results[0][0]} and {program}", flush=True)
    for file in arguments.scenario:
        hashes = [play_scenario(program, file) for program in arguments.programs]
        print(f"{file}: {' '.join(hashes)}", flush=True)
        same = same and len(set(hashes)) == 1
    print("all are equal" if same else "they are not all alike")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
