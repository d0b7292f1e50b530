#!/usr/bin/env python3
"""The cost of simulated clusters of several sizes: processor time until every pod runs, virtual seconds per second at
rest, memory.

Each size runs in a process of its own. Processor time is what counts; the time on the wall is printed beside it and
shows how quiet the machine was. The hash is that of the run: a change that only makes things faster does not change it.

    bench/sim/scale.py [--nodes 100,1000,5000] [--program build/release/bench/sim/spillway_sim_scale] [-o json]
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REST_SECONDS = {100: 36_000, 1000: 3_600, 5000: 600}  # virtual; else those of the next smaller size
LEAST_REST_SECONDS = 60


def rest_seconds(nodes):
    fitting = [seconds for most, seconds in sorted(REST_SECONDS.items()) if nodes <= most]
    return fitting[0] if fitting else LEAST_REST_SECONDS


def measure(arguments, nodes):
    rest = arguments.rest or rest_seconds(nodes)
    command = [arguments.program, "--nodes", str(nodes), "--pods-per-node", str(arguments.pods_per_node), "--rest",
               str(rest)]
    limit = arguments.memory_gib << 30

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(command, stdout=subprocess.PIPE, preexec_fn=bound, check=False)
    if done.returncode != 0 or not done.stdout:
        return {"nodes": nodes, "failed": done.returncode}
    return json.loads(done.stdout)


def row(result):
    if "failed" in result:
        return f"| {result['nodes']:,} | ended with {result['failed']} | | | | | |"
    return (
        f"| {result['nodes']:,} | {result['pods']:,} |"
        f" {result['startCpuSeconds']:.1f} ({result['startWallSeconds']:.1f}) | {result['restTimesRealTime']:,.0f} |"
        f" {result['memoryBytes'] / 1e6:,.0f} | {result['bytesPerNode']:,} | {result['traceHash']} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="100,1000,5000")
    parser.add_argument("--pods-per-node", type=int, default=3)
    parser.add_argument("--rest", type=int, help="virtual seconds; by default as many as take some seconds")
    parser.add_argument("--memory-gib", type=int, default=16, help="a cluster that needs more ends")
    parser.add_argument("--program", default=os.fspath(ROOT / "build/release/bench/sim/spillway_sim_scale"))
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    arguments = parser.parse_args()
    results = []
    if arguments.output == "text":
        print(
            "| nodes | pods | start: s of processor (wall) | rest: times real time | MB at most | bytes per node |"
            " trace hash |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for nodes in (int(each) for each in arguments.nodes.split(",")):
        results.append(measure(arguments, nodes))
        if arguments.output == "text":
            print(row(results[-1]), flush=True)
    if arguments.output == "json":
        print(json.dumps(results, indent=2))
    return 1 if any("failed" in result for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
