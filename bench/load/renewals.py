#!/usr/bin/env python3
"""The number of durable lease renewals a second that an API server answers at a p99 below 100 ms, with watches open;
spillway_load beside `spillway apiserver` on this machine, over TLS on loopback.

Starts the server (and with --etcd an etcd from build/peers), creates the leases, doubles the rate until it is too much
and halves the interval from there; then one longer run at the greatest rate that passed, during which it reads /proc:
processor time per thread, bytes written, memory. Every run ends by itself. Build both with the release preset; run it
on a quiet machine.

    bench/load/renewals.py [--etcd] [--protobuf] [--leases 20000] [--watches 1000] [--general-watches 5] [--list-rate 0]
    [--rate R: no search]
"""
import argparse
import base64
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402  pylint: disable=wrong-import-position
import own_etcd  # noqa: E402  pylint: disable=wrong-import-position

P99_MAX_MS = 100
TICKS = os.sysconf("SC_CLK_TCK")


class Usage:
    """The processor time that a process has used so far."""

    def __init__(self, pid):
        self.at, self.threads = time.monotonic(), {}
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                name, fields = re.match(r"\d+ \((.*)\) (.*)", (task / "stat").read_text(), re.S).groups()
                used = fields.split()
                self.threads[int(task.name)] = (name, (int(used[11]) + int(used[12])) / TICKS)
        self.written = int(re.search(r"^write_bytes: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text(),
                                     re.M).group(1))
        self.resident = int(re.search(r"^VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(),
                                      re.M).group(1)) << 10

    def since(self, before):
        """(share of a processor by thread, the busiest first; all together; bytes written)."""
        wall = self.at - before.at
        shares = {task: (name, (used - before.threads.get(task, (name, 0))[1]) / wall) for task,
                  (name, used) in self.threads.items()}
        busy = sorted(((name, share) for name, share in shares.values() if share >= 0.005), key=lambda one: -one[1])
        return busy, sum(share for _, share in shares.values()), self.written - before.written


def credentials(kubeconfig, folder):
    """Flags of the generator with the credentials of the kubeconfig."""
    text, flags = kubeconfig.read_text(), []
    for field, flag in (("certificate-authority-data", "--ca"), ("client-certificate-data", "--cert"),
                        ("client-key-data", "--key")):
        found = re.search(rf'{field}: *"?([^"\s]+)', text)
        file = folder / f"{flag.strip('-')}.pem"
        file.write_bytes(base64.b64decode(found.group(1)))
        flags += [flag, file]
    return flags


def disk(folder, rounds=200, size=64 << 10):
    """(p50, p99) of writing and syncing 64 kB at the end of a file, in ms."""
    times, block = [], b"x" * size
    with open(folder / "disk", "wb", buffering=0) as file:
        for _ in range(rounds):
            begin = time.monotonic()
            file.write(block)
            os.fdatasync(file.fileno())
            times.append((time.monotonic() - begin) * 1000)
    times.sort()
    return times[rounds // 2], times[rounds * 99 // 100]


class Bench:
    def __init__(self, arguments, api, flags):
        self.arguments = arguments
        self.command = [arguments.generator, "--server", f"{api.host}:{api.port}", *flags, "--leases", arguments.leases,
                        "--connections", arguments.connections]

    def load(self, mode, *more, pids=(), timeout=60):
        """(the report; of each process, what it had used when the time that is measured began and when it ended)."""
        used = []
        with subprocess.Popen([str(part) for part in ["timeout", timeout, *self.command, "-o", "json", *more, mode]],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as child:
            said = []
            for line in child.stderr:
                said.append(line)
                if line.startswith("measur"):
                    used.append([Usage(pid) for pid in pids])
            text = child.stdout.read()
        if child.returncode:
            sys.exit(f"renewals.py: {said[-1].strip() if said else child.returncode}")
        return (json.loads(text), *used) if text else None

    def run(self, rate, pids=()):
        form = [flag for flag, wanted in (("--general", self.arguments.general),
                                          ("--protobuf", self.arguments.protobuf)) if wanted]
        lists = ["--list-rate", self.arguments.list_rate, "--list-path",
                 self.arguments.list_path] if self.arguments.list_rate else []
        return self.load("mix" if lists else "renew", "--rate", rate, "--seconds", self.arguments.seconds, "--warm-up",
                         1, "--watches", self.arguments.watches,
                         "--general-watches", self.arguments.general_watches, *lists, *form, pids=pids)

    def passes(self, rate):
        report = self.run(rate)[0]
        said = report["renewals"]
        good = said["p99_ms"] < P99_MAX_MS and not said["errors"] and not said["unanswered"] and said[
            "achieved_per_second"] > 0.97 * said["offered_per_second"]
        print(
            (
                f"  {rate:8,.0f}/s: achieved {said['achieved_per_second']:,.0f}/s, p50 {said['p50_ms']:.1f} ms, p99"
                f" {said['p99_ms']:.1f} ms, max {said['max_ms']:.1f} ms, errors {said['errors'] or 'none'}, unanswered"
                f" {said['unanswered']}, watches {report['watches_open']}: {'yes' if good else 'no'}"
            ),
            flush=True,
        )
        return good

    def greatest(self):
        good, bad = 0, None
        rate = self.arguments.first_rate
        for _ in range(self.arguments.runs):
            if self.passes(rate):
                good = rate
            else:
                bad = rate
            if bad is not None and bad - good < 0.06 * bad:
                break
            rate = good * 2 if bad is None else (good + bad) / 2
        return good


def measure(arguments, process, api, flags, others):
    bench = Bench(arguments, api, flags)
    bench.load("fill", timeout=400)
    rate = arguments.rate or bench.greatest()
    if not rate:
        sys.exit("renewals.py: no rate was low enough")
    pids = [process.child.pid, *others]
    report, before, after = bench.run(rate, pids)
    said, events = report["renewals"], report["events"]
    renewals = said["achieved_per_second"] * arguments.seconds
    print(
        f"renewals: {said['achieved_per_second']:,.0f}/s of {said['offered_per_second']:,.0f}/s, p50"
        f" {said['p50_ms']:.2f} ms, p99 {said['p99_ms']:.2f} ms, p99.9 {said['p999_ms']:.2f} ms, max"
        f" {said['max_ms']:.2f} ms, errors {said['errors'] or 'none'}"
    )
    print(
        f"watches: {report['watches_open']} open, {report['watches_lost']} lost, {events['per_second']:,.0f} events/s,"
        f" p99 {events['p99_ms']:.2f} ms after the renewal was due"
    )
    if arguments.list_rate:
        lists = report["lists"]
        print(
            f"lists: {lists['achieved_per_second']:,.0f}/s of {lists['offered_per_second']:,.0f}/s, p99"
            f" {lists['p99_ms']:.0f} ms, errors {lists['errors'] or 'none'}"
        )
    for pid, first, last in zip(pids, before, after):
        threads, total, written = last.since(first)
        name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        print(
            f"{name}: processor {total:.2f} = "
            + " + ".join(f"{thread} {share:.2f}" for thread, share in threads)
            + f"; {total * (last.at - first.at) / renewals * 1e6:.0f} us and {written / renewals:,.0f} bytes written"
            f" per renewal; RSS {last.resident >> 20} MiB"
        )
    counts = re.findall(r"^(spillway_lease_updates_total\{.*|spillway_store_\w*checkpoint\w* .*)$", api.get("/metrics"),
                        re.M)
    print("\n".join(counts))


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--etcd", action="store_true")
    parser.add_argument("--protobuf", action="store_true",
                        help="renewals and their answers in protobuf, as kubelets send them")
    parser.add_argument("--general", action="store_true", help="renewals that take the general path")
    parser.add_argument("--leases", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--watches", type=int, default=1_000)
    parser.add_argument("--general-watches", type=int, default=5)
    parser.add_argument("--list-rate", type=float, default=0)
    parser.add_argument("--list-path", default="/apis/coordination.k8s.io/v1/leases?limit=500")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--first-rate", type=float, default=2_000)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    parser.add_argument("--generator", default=str(ROOT / "build/release/bench/load/spillway_load"))
    arguments = parser.parse_args()
    harness.BINARY = pathlib.Path(arguments.binary).resolve()
    with harness.workspace() as folder, contextlib.ExitStack() as stack:
        p50, p99 = disk(folder)
        print(
            (
                f"{os.cpu_count()} cores; disk: 64 kB written and synced in p50 {p50:.2f} ms, p99 {p99:.2f} ms;"
                f" {arguments.leases} leases, {arguments.watches} watches, {arguments.general_watches} of them of all"
                f" leases; {'etcd' if arguments.etcd else 'SQLite'}, {'protobuf' if arguments.protobuf else 'JSON'}"
            ),
            flush=True,
        )
        more, others = [], []
        if arguments.etcd:
            cluster = stack.enter_context(own_etcd.serving(folder))
            more, others = [cluster.flag], [member.child.pid for member in cluster.members]
        kubeconfig = folder / "kubeconfig"
        process = stack.enter_context(harness.running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0",
                                                      "--write-kubeconfig", kubeconfig, *more))
        api = harness.serving(process, kubeconfig)
        measure(arguments, process, api, credentials(kubeconfig, folder), others)


if __name__ == "__main__":
    main()
