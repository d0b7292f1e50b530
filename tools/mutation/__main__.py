#!/usr/bin/env python3
"""Mutants made by a machine: draws statements of src/, changes each in one way that fits it, and sees whether the tests
notice.

usage: tools/mutation --sample N [--seed S] [--module M] [--build DIR] [--jobs N] [--bound SECONDS] [--no-processes]
[--list] [-o json]
       tools/mutation --check

Draws from the .cc files of policy, agent, controllers, apiserver, host, store, wire, client, sim and cli; the same seed
draws the same mutants from the same sources. A mutant that does not compile is counted and drawn again. Those that
tests/mutants/equivalent.txt marks as changing nothing are counted and not run. The sources stay as they are: a mutant
is compiled from a copy and linked before the libraries. --list draws and prints only; --check lists marks of
equivalent.txt whose statement no longer exists.

Exit 0: all were run; 2: something that the caller must mend.
"""
import argparse
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import resource
import shutil
import signal
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import draw  # noqa: E402
import equivalents  # noqa: E402
import trial  # noqa: E402
import mutants  # noqa: E402
import places  # noqa: E402
import suites  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# for the tests of a mutant, beside those of its own room: with two at a time some sixty mutants an hour
BOUND_SECONDS = 150
COMPILED_AT_MOST = 5  # draws per mutant wanted; beyond that something is wrong with the build


def wilson(noticed, drawn):
    """The 95 % interval of a rate."""
    if drawn == 0:
        return 0.0, 1.0
    z, rate = 1.96, noticed / drawn
    middle = (rate + z * z / (2 * drawn)) / (1 + z * z / drawn)
    half = z * math.sqrt(rate * (1 - rate) / drawn + z * z / (4 * drawn * drawn)) / (1 + z * z / drawn)
    return max(0.0, middle - half), min(1.0, middle + half)


def row(verdicts):
    marked = sum(verdict.outcome == "equivalent" for verdict in verdicts)
    noticed = sum(verdict.outcome == "noticed" for verdict in verdicts)
    tried = len(verdicts) - marked
    low, high = wilson(noticed, tried)
    return {"drawn": len(verdicts), "equivalent": marked, "noticed": noticed, "rate": noticed / tried if tried
            else None, "low": low, "high": high}


def table(verdicts, tried, began):
    modules = {name: row(of) for name in draw.MODULES
               if (of := [each for each in verdicts if each.mutant.module == name])}
    minutes = (time.monotonic() - began) / 60
    used = sum(getattr(resource.getrusage(who), field) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
               for field in ("ru_utime", "ru_stime"))
    return {"modules": modules, "all": row(verdicts), "not_compiling": tried - len(verdicts),
            "minutes": round(minutes, 1),
            "an_hour": round(len(verdicts) / minutes * 60), "processor_seconds": round(used)}


def print_table(result, verdicts, unfit):
    print(f"\n{'module':14}{'drawn':>7}{'equivalent':>12}{'noticed':>9}{'rate':>7}   95 % interval")
    for name, each in [*result["modules"].items(), ("all", result["all"])]:
        rate = "-" if each["rate"] is None else f"{each['rate']:.0%}"
        print(
            f"{name:14}{each['drawn']:>7}{each['equivalent']:>12}{each['noticed']:>9}{rate:>7}   {each['low']:.0%} to"
            f" {each['high']:.0%}"
        )
    print(f"{result['not_compiling']} more did not compile; {result['minutes']} min, {result['an_hour']} an hour, "
          f"{result['processor_seconds'] / max(1, result['all']['drawn']):.0f} s of a processor each")
    if unfit:
        print(f"left out, because they fail without a change: {', '.join(sorted(unfit))}")
    survivors = [each for each in verdicts if each.outcome == "survived"]
    if survivors:
        print(
            "\nsurvivors (one that changes nothing: its lines, with a reason after ##, go into"
            " tests/mutants/equivalent.txt):"
        )
    for each in survivors:
        print(
            f"\n# {each.mutant.path}:{each.mutant.line}: {places.KINDS[each.mutant.kind]}; passed:"
            f" {', '.join(each.ran) or 'no test reaches it'}"
        )
        print(equivalents.entry(each.mutant))


def as_json(verdict):
    mutant = verdict.mutant
    return {"file": mutant.path, "line": mutant.line, "function": mutant.function, "kind": mutant.kind,
            "diff": mutant.difference(),
            "outcome": verdict.outcome, "by": verdict.by, "passed": verdict.ran, "seconds": round(verdict.seconds, 1)}


def run(args, build, marks, folder):
    """Tries mutants in the order of the draw, until as many as wanted compile."""
    cache = places.Places(build.compiles, folder / "places")
    files = draw.sources(args.root, build.compiles, args.module)
    if not files:
        raise mutants.Mistake(f"the build in {build.folder} compiles no source of src/{args.module or ''}")
    drawn = itertools.islice(draw.mutants(args.root, files, cache.of, args.seed), args.sample * COMPILED_AT_MOST)
    if args.list:
        for number, mutant in enumerate(itertools.islice(drawn, args.sample), 1):
            print(
                (
                    f"# {number}/{args.sample} {mutant.path}:{mutant.line} in {mutant.function}:"
                    f" {places.KINDS[mutant.kind]}"
                ),
                *mutant.difference(),
                sep="\n",
                flush=True,
            )
        return 0
    tests = [test for test in suites.from_ctest(build.folder, args.root)
             if not (args.no_processes and test.with_processes)]
    trials = trial.Trials(args.root, build, tests, args.bound, folder)
    say = sys.stderr if args.output == "json" else sys.stdout
    if not trials.runs.apart:
        print(
            (
                "mutation: only root can keep tests apart from the machine: a mutant may reach the processes and files"
                " of this user"
            ),
            file=sys.stderr,
        )
    began, verdicts, tried, waiting = time.monotonic(), [], 0, []
    workers = concurrent.futures.ThreadPoolExecutor(max(1, args.jobs))

    def marked_or_tried(mutant):
        if mutant.identity() in marks:
            verdict = trial.Verdict(mutant)
            verdict.outcome, verdict.error = "equivalent", marks[mutant.identity()]
            return verdict
        return trials.verdict_of(mutant)

    try:
        while len(verdicts) < args.sample:
            # No more than are still wanted, so that the sample is a prefix of the draw whatever ends first.
            for mutant in itertools.islice(drawn,
                                           max(0, min(args.sample - len(verdicts), 2 * args.jobs) - len(waiting))):
                waiting.append(workers.submit(marked_or_tried, mutant))
            if not waiting:
                raise mutants.Mistake(f"only {len(verdicts)} of {tried} mutants compile")
            verdict = waiting.pop(0).result()
            tried += 1
            if verdict.outcome == "does not compile":
                continue
            verdicts.append(verdict)
            mutant, by = verdict.mutant, f" by {verdict.by}" if verdict.by else ""
            print(
                (
                    f"{len(verdicts)}/{args.sample} {verdict.outcome}{by} ({verdict.seconds:.0f} s):"
                    f" {mutant.path}:{mutant.line}: {places.KINDS[mutant.kind]}"
                ),
                file=say,
                flush=True,
            )
    finally:
        trials.runs.stop()
        workers.shutdown(cancel_futures=True)
        trials.keep()
    result = table(verdicts, tried, began)
    if args.output == "json":
        print(json.dumps({"seed": args.seed, "module": args.module, **result, "unfit": sorted(trials.unfit),
                          "mutants": [as_json(each) for each in verdicts]}, indent=1))
    else:
        print_table(result, verdicts, trials.unfit)
    return 0


def main():
    parser = argparse.ArgumentParser(prog="tools/mutation", description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--sample", type=int, metavar="N", help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which of all samples (default: 1)")
    parser.add_argument("--module", choices=draw.MODULES, metavar="M",
                        help=f"one of {', '.join(draw.MODULES)}; default: all")
    parser.add_argument("--bound", type=float, default=BOUND_SECONDS, metavar="SECONDS",
                        help=f"of tests per mutant, beside those of its room (default: {BOUND_SECONDS})")
    parser.add_argument("--no-processes", action="store_true", help="without the suites that start processes")
    parser.add_argument("--list", action="store_true", help="draw and print; run nothing")
    parser.add_argument("--check", action="store_true",
                        help="only see whether the marks of tests/mutants/equivalent.txt still stand")
    parser.add_argument("-o", dest="output", choices=["text", "json"], default="text")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR", help="build folder (default: build/dev)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="mutants at a time (default: 2)")
    args = parser.parse_args()
    marks = equivalents.read(args.root / "tests/mutants/equivalent.txt")
    if args.check:
        gone = list(equivalents.stale(marks, args.root))
        print("\n".join(gone) or f"{len(marks)} mutants are marked as changing nothing, each stands in its file")
        return 2 if gone else 0
    if args.sample is None or args.sample < 1:
        parser.error("--sample N: how many mutants, at least 1")
    os.environ["CCACHE_DISABLE"] = "1"  # a mutant is compiled once
    build = mutants.Build(args.root, (args.build or args.root / "build/dev").absolute())
    folder = build.folder / "mutation"
    folder.mkdir(exist_ok=True)
    for left in trial.Trials.leftovers(folder):
        shutil.rmtree(left, ignore_errors=True)
    return run(args, build, marks, folder)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except (mutants.Mistake, places.Unreadable, equivalents.Malformed, RuntimeError) as mistake:
        print(f"mutation: {mistake}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
