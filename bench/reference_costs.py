#!/usr/bin/env python3
"""Costs of quantities, predicates and preemption beside the reference's, both as multiples of the same calibration
loop.

    bench/reference_costs.py [BUILD]      BUILD: a release build with SPILLWAY_BENCH=ON, build/release by default

Runs each benchmark five times and takes the median. Only ratios of one run mean anything: `ours / reference` divides
our ratio to our calibration row by the reference's ratio to its own. Source of the reference's column: spec "Pod
admission", 17.
"""
import json
import pathlib
import subprocess
import sys

# program, benchmark, its calibration row, what it does, the reference: ns and ratio to its calibration
ROWS = [
    ("api", "calibration", "calibration", "calibration: FNV-1a over 4096 bytes", 4475, 1.0),
    ("api", "parse_one", "calibration", "parse one quantity", 184, 0.041),
    ("api", "parse_and_print_one", "calibration", "parse and print canonically", 390, 0.087),
    ("api", "sum_of_1000", "calibration", "add 1000 parsed quantities", 184_000, 41.0),
    ("policy", "admission_calibration", "admission_calibration", "calibration, beside the rows below", 4475, 1.0),
    ("policy", "sum_up_a_node", "admission_calibration", "sum up a node of 110 pods", 272_000, 61.0),
    ("policy", "predicate_admit", "admission_calibration", "admit one pod beside 110", 346_000, 77.0),
    ("policy", "choose_victims_of/preempt_110", "admission_calibration", "choose victims among 110 pods", 215_000,
     48.0),
    ("policy", "choose_victims_of/preempt_500", "admission_calibration", "choose victims among 500 pods", 921_000,
     206.0),
]


def measure(build, program):
    wanted = "|".join(sorted({f"^{row[1]}$" for row in ROWS if row[0] == program}))
    answer = subprocess.run([build / "bench" / program / f"spillway_bench_{program}", f"--benchmark_filter={wanted}",
                             "--benchmark_repetitions=5", "--benchmark_report_aggregates_only=true",
                             "--benchmark_format=json"],
                            stdout=subprocess.PIPE, check=True)
    return {row["run_name"]: row["cpu_time"] for row in json.loads(answer.stdout)["benchmarks"]
            if row["aggregate_name"] == "median"}


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1] / "build/release")
    costs = {program: measure(build, program) for program in ("api", "policy")}
    print(f"{'what':40} {'ns':>12} {'ratio':>9} {'ref ns':>9} {'ref ratio':>9} {'ours / reference':>17}")
    for program, name, calibration, what, reference_ns, reference in ROWS:
        ns = costs[program][name]
        ratio = ns / costs[program][calibration]
        print(f"{what:40} {ns:12.1f} {ratio:9.3f} {reference_ns:9} {reference:9.3f} {ratio / reference:17.3f}")


if __name__ == "__main__":
    main()
