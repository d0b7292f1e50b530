#!/usr/bin/env python3
"""The cost of a request for a client over HTTP/1.1 and over HTTP/2: the same GETs of one namespace by h2load (Debian's
nghttp2-client), on connections that each have so many requests under way.

Starts an API server of its own on a loopback port, and prints a line per run. HTTP/1.1 is the peer: one request at a
time on each connection. Run it on a quiet machine; the load takes one core.

    bench/wire/protocols.py [--requests 20000] [--connections 20] [--binary build/release/src/apps/spillway]
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402
from process_memory import forget_peak, peak  # noqa: E402

TARGET = "/api/v1/namespaces/default"
TOKEN = "bench"
RUNS = (("http/1.1", 1), ("h2", 1), ("h2", 20), ("h2", 100))


def load(url, protocol, streams, arguments):
    """(requests a second, median and longest time of a request as h2load words them, requests that were not answered
    with 2xx).
    """
    done = subprocess.run(["h2load", f"--npn-list={protocol}", "-c", str(arguments.connections), "-m", str(streams),
                           "-n", str(arguments.requests),
                           "-H", f"Authorization: Bearer {TOKEN}", url + TARGET], capture_output=True, text=True,
                          timeout=300, check=True)
    rate = re.search(r"finished in \S+, ([\d.]+) req/s", done.stdout).group(1)
    longest, mean = re.search(r"time for request: +\S+ +(\S+) +(\S+)", done.stdout).groups()
    answered = int(re.search(r"status codes: (\d+) 2xx", done.stdout).group(1))
    return float(rate), mean, longest, arguments.requests - answered


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--binary", default=str(ROOT / "build/release/src/apps/spillway"))
    arguments = parser.parse_args()
    if not shutil.which("h2load"):
        sys.exit("protocols.py: needs h2load (package nghttp2-client)")
    harness.BINARY = pathlib.Path(arguments.binary).resolve()
    with harness.workspace() as folder:
        (folder / "tokens.csv").write_text(f'{TOKEN},bench,1,"system:masters"\n')
        kubeconfig = folder / "kubeconfig"
        with harness.running(folder, "apiserver", "--data-dir", folder / "data", "--port", "0", "--token-auth-file",
                             folder / "tokens.csv",
                             "--write-kubeconfig", kubeconfig) as server:
            api = harness.serving(server, kubeconfig)
            url = f"https://{api.host}:{api.port}"
            print("| protocol | requests under way on each of", arguments.connections,
                  "connections | requests/s | mean | longest | not 2xx | most memory of the server, MiB |")
            print("|---|---|---|---|---|---|---|")
            for protocol, streams in RUNS:
                forget_peak(server)
                rate, mean, longest, missed = load(url, protocol, streams, arguments)
                print(
                    f"| {protocol} | {streams} | {rate:,.0f} | {mean} | {longest} | {missed} | {peak(server) >> 20} |",
                    flush=True)


if __name__ == "__main__":
    main()
