#!/usr/bin/env python3
"""Kubernetes' own conformance suite against a cluster: runs an e2e.test program that is given, and prints its result by
SIG, with the causes of failures. Nothing of that suite is part of this project.

    tools/upstream_conformance.py KUBECONFIG [--binary e2e.test] [--focus RE] [--skip RE] [--reports DIR] [-- FLAG...]
    tools/upstream_conformance.py --from junit.xml

Exit code: 0 if all specs passed, 1 if some failed, 2 if the suite did not run.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

CONFORMANCE = r"\[Conformance\]"
SIG = re.compile(r"\[(sig-[a-z-]+)\]")
# Words that differ between two failures of one cause: ids, addresses, numbers with units, names with a random end.
VARYING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b|\b[a-z0-9][a-z0-9-]*-[a-z0-9]*\d[a-z0-9]*\b"
                     r"|0x[0-9a-f]+|\b\d+(\.\d+)?(ns|us|µs|ms|s|m|h)?\b")
CAUSE_WIDTH = 160
EXAMPLES = 3

Spec = collections.namedtuple("Spec", "name sig state cause")


def cause_of(failure):
    """The first line that says something, without the words that vary."""
    text = "\n".join(filter(None, (failure.get("message"), failure.text)))
    lines = [line.strip() for line in text.splitlines()]
    line = next((line for line in lines if re.search(r"\w", line) and line != "[FAILED]"), "no message")
    line = re.sub(r"^\[(FAILED|TIMEDOUT|PANICKED)\] *", "", line)
    return VARYING.sub("*", line)[:CAUSE_WIDTH]


def specs_of(report):
    """Specs of a JUnit report, without those that were not run."""
    specs = []
    for _, case in xml.etree.ElementTree.iterparse(report):
        if case.tag != "testcase":
            continue
        name = re.sub(r"^\[It\] *", "", case.get("name", ""))
        failure = next((case.find(tag) for tag in ("failure", "error") if case.find(tag) is not None), None)
        sig = SIG.search(name)
        is_run = case.find("skipped") is None and case.get("status") != "skipped"
        # Steps before and after the suite are reported beside the specs: they count if they failed.
        if is_run and (sig or failure is not None):
            specs.append(Spec(name, sig.group(1) if sig else "suite", "failed" if failure is not None else "passed",
                              cause_of(failure) if failure is not None else None))
        case.clear()
    return specs


def table(specs):
    sigs = collections.defaultdict(collections.Counter)
    for spec in specs:
        for name in (spec.sig, "all"):
            sigs[name].update(("run", spec.state))
    rows = sorted(sig for sig in sigs if sig != "all") + ["all"]
    lines = ["| SIG | specs run | passed | failed |", "| --- | --- | --- | --- |"]
    return lines + [f"| {row} | {sigs[row]['run']} | {sigs[row]['passed']} | {sigs[row]['failed']} |" for row in rows]


def causes(specs):
    by_cause = collections.defaultdict(list)
    for spec in specs:
        if spec.state == "failed":
            by_cause[spec.cause].append(spec.name)
    lines = []
    for cause, names in sorted(by_cause.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        lines.append(f"{len(names)} x {cause}")
        lines += [f"    {name}" for name in names[:EXAMPLES]]
        if len(names) > EXAMPLES:
            lines.append(f"    and {len(names) - EXAMPLES} more")
    return lines


def show(report):
    try:
        specs = specs_of(report)
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"The report {report} cannot be read: {error}", file=sys.stderr)
        return 2
    if not specs:
        print(f"The report {report} has no spec that was run.", file=sys.stderr)
        return 2
    failed = causes(specs)
    print("\n".join(table(specs)))
    if failed:
        print("\nFailures by cause:\n\n" + "\n".join(failed))
    return 1 if failed else 0


def run(options):
    binary = shutil.which(options.binary)
    if binary is None:
        print(f"There is no program {options.binary}. It is e2e.test of kubernetes-test-linux-ARCH.tar.gz, which each "
              "release of Kubernetes has; name it with --binary.", file=sys.stderr)
        return 2
    if not pathlib.Path(options.kubeconfig).is_file():
        print(f"There is no file {options.kubeconfig}.", file=sys.stderr)
        return 2
    folder = pathlib.Path(options.reports or tempfile.mkdtemp(prefix="upstream-conformance-"))
    folder.mkdir(parents=True, exist_ok=True)
    report, log = folder / "junit.xml", folder / "e2e.log"
    report.unlink(missing_ok=True)
    command = [binary, f"--kubeconfig={options.kubeconfig}", "--provider=skeleton", "--disable-log-dump",
               f"--ginkgo.focus={options.focus}", "--ginkgo.no-color", "--ginkgo.timeout=24h",
               f"--ginkgo.junit-report={report}"]
    command += [f"--ginkgo.skip={options.skip}"] if options.skip else []
    print(f"The suite runs; its log is {log}.", flush=True)
    with log.open("wb") as output:
        ended = subprocess.run(command + options.more, stdout=output, stderr=subprocess.STDOUT, check=False)
    if not report.exists():
        print(f"The suite wrote no report (exit code {ended.returncode}). The end of its log:", file=sys.stderr)
        print("\n".join(log.read_text(errors="replace").splitlines()[-15:]), file=sys.stderr)
        return 2
    code = show(report)
    if code == 0 and ended.returncode != 0:
        print(f"No spec failed, but the suite ended with exit code {ended.returncode}.", file=sys.stderr)
        return 1
    return code


def main():
    parser = argparse.ArgumentParser(prog="./dev conformance --upstream",
                                     description="Run Kubernetes' own conformance suite against a cluster")
    parser.add_argument("kubeconfig", nargs="?", help="administrator's kubeconfig of the cluster")
    parser.add_argument("--binary", default="e2e.test", help="the suite's program (default: e2e.test of the PATH)")
    parser.add_argument("--focus", default=CONFORMANCE, help="specs to run, a regular expression")
    parser.add_argument("--skip", default="", help="specs to leave out, a regular expression")
    parser.add_argument("--reports", help="folder for the log and the report (default: a new one)")
    parser.add_argument("--from", dest="report", help="print the result of this JUnit report and run nothing")
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:split])
    options.more = arguments[split + 1:]
    if options.report:
        return show(options.report)
    if not options.kubeconfig:
        parser.error("name a kubeconfig, or a report with --from")
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
