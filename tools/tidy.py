#!/usr/bin/env python3
"""Gates that a compiler does not hold: include edges between folders (tools/layers.txt), no circle among them,
banned words per folder, and at most 120 columns of Python.

usage: tools/tidy.py [--root DIR]
Prints one line per finding, file:line: what. Exit 1 if there is any.
"""
import argparse
import io
import pathlib
import re
import sys
import tokenize

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')

# (what, pattern, folders it is banned in, files where it is allowed)
VALUES = ["base", "api"]
PURE = ["policy"]
ENGINES = ["telemetry", "store", "client", "apiserver", "agent", "controllers", "sim"]
INNER = VALUES + PURE + ENGINES
BANNED = [
    ("reading a clock", re.compile(r"[cC]lock::now\(\)|clock_gettime|gettimeofday"), ["*"],
     ["runtime/clock.cc", "telemetry/log.cc", "store/sqlite/writer.cc", "store/etcd/grpc/grpc_transport.cc"]),
    ("sleeping", re.compile(r"\bsleep(_for|_until)?\s*\(|\busleep\s*\(|\bnanosleep\s*\("), ["*"], []),
    ("reading the environment", re.compile(r"\bgetenv\b"), INNER + ["runtime", "host", "wire"], []),
    ("threads in an engine or rule", re.compile(r"#\s*include\s*<(thread|mutex|condition_variable|future|atomic)>"),
     INNER,
     ["base/copy_on_write.h", "base/published.h", "telemetry/log.cc", "telemetry/metrics.cc", "store/sqlite",
      "store/etcd/grpc/grpc_transport.cc"]),
    ("<iostream>", re.compile(r"#\s*include\s*<iostream>"), ["*"], []),
    ("<regex>", re.compile(r"#\s*include\s*<regex>"), ["*"], []),
    ("standard random numbers", re.compile(r"#\s*include\s*<random>|\bstd::shuffle\b|\brand\s*\("), ["*"], []),
    ("hash order in a rule", re.compile(r"\bunordered_(map|set)\b"), PURE, []),
    ("Boost outside its rooms", re.compile(r"#\s*include\s*<boost/"), INNER + ["cli", "apps", "host"],
     ["api/json/json_parse.cc"]),
    ("sqlite outside its room", re.compile(r"#\s*include\s*<sqlite3"), ["*"], ["store/sqlite"]),
    ("OpenSSL outside its room", re.compile(r"#\s*include\s*<openssl/"), ["*"], ["wire"]),
    ("ldns outside its file", re.compile(r"#\s*include\s*<ldns/"), ["*"], ["wire/dns/message.cc"]),
    ("nghttp2 outside its core", re.compile(r"#\s*include\s*<nghttp2/"), ["*"], ["wire/http2/http2_core.h"]),
    ("yaml-cpp outside its rooms", re.compile(r"#\s*include\s*<yaml-cpp/"), ["*"], ["yaml"]),
    ("CLI11 outside its room", re.compile(r"#\s*include\s*<CLI/"), ["*"], ["cli", "apps"]),
    ("gRPC outside its files", re.compile(r"#\s*include\s*[<\"](grpc|google/protobuf)|\.pb\.h\""), ["*"],
     ["host/devices/device_plugins.cc", "host/devices/pod_resources.cc", "host/cri/cri_calls.cc",
      "host/cri/cri_client.cc", "host/containerd/container_list.cc", "host/containerd/content_store.cc",
      "host/cri/cri_document.cc", "host/cri/image_service.cc", "host/probes/health_prober.cc",
      "store/etcd/grpc/grpc_transport.cc"]),
    ("printing past apps/process/terminal.h", re.compile(r"\bfmt::print\(|\bf?puts\(|\bfwrite\(|\b[fvd]?printf\("),
     ["apps", "cli"], ["apps/main.cc", "apps/process/terminal.cc", "apps/process/progress_line.cc",
                       "apps/demo/screen.cc"]),
    ("spdlog outside its file", re.compile(r"#\s*include\s*<spdlog/"), ["*"], ["telemetry/log.cc"]),
    ("a kind without its group: Resource::is()", re.compile(r"\b(resource|row)(\.|->)(kind|plural) *[!=]= *\""),
     ["apiserver"], []),
    ("an owner's kind without its group: api::kind_of()", re.compile(r"\b(owner|above|link)(\.|->)kind *[!=]= "), ["*"],
     ["sim"]),
    ("work left undone", re.compile(r"\b(TODO|FIXME|XXX)\b"), ["*"], []),
]
# Columns of Python, as of C++ (.clang-format). A line may be longer only because of a long string: a key, a command or
# a script.
PYTHON_FOLDERS = ["tests", "bench", "tools"]
COLUMNS_MAX = 120
LONG_STRING = 60
FOLDER_WORDS = {"util", "utils", "common", "helpers", "helper", "misc"}


def allowed_edges(root):
    edges = {}
    for line in (root / "tools/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, rest = line.partition(":")
            edges[folder.strip()] = rest.split()
    return {folder: set(expanded(folder, rest, edges)) for folder, rest in edges.items()}


def expanded(folder, names, edges):
    """The folders that `names` stand for: "api/*" is api, where it holds files, and every folder below it."""
    for name in names:
        if name.endswith("/*"):
            yield from (other for other in edges if within(other, [name[:-2]]) and other != folder)
        else:
            yield name


def circles(edges):
    """Folders that reach themselves, and names that no line explains."""
    def reached(folder, seen):
        for other in edges.get(folder, ()):
            if other not in seen:
                seen.add(other)
                reached(other, seen)
        return seen

    for folder, rest in edges.items():
        for name in sorted(rest - set(edges)):
            yield f"tools/layers.txt: {folder} names {name}, which has no line of its own"
        if folder in reached(folder, set()):
            yield f"tools/layers.txt: {folder} reaches itself"


def within(path, prefixes):
    return any(prefix == "*" or path == prefix or path.startswith(prefix.rstrip("/") + "/") for prefix in prefixes)


def folder_of(path):
    return path.rpartition("/")[0]


def check(root):
    source = root / "src"
    edges = allowed_edges(root)
    yield from circles(edges)
    for file in sorted(source.rglob("*")):
        if file.suffix not in (".h", ".cc"):
            continue
        path = file.relative_to(source).as_posix()
        here = folder_of(path)
        if here not in edges:
            yield f"src/{path}:1: folder is not in tools/layers.txt"
            continue
        for word in FOLDER_WORDS & set(re.split(r"[/_.]", path)):
            yield f"src/{path}:1: '{word}' in a name: a function without a home means a missing noun"
        for number, line in enumerate(file.read_text().splitlines(), 1):
            include = INCLUDE.match(line)
            if include:
                there = folder_of(include.group(1))
                if there in edges and there != here and there not in edges[here]:
                    yield f"src/{path}:{number}: {here} may not include {there} (tools/layers.txt)"
            if line.lstrip().startswith("//"):
                continue
            for what, pattern, folders, exceptions in BANNED:
                if within(path, folders) and not within(path, exceptions) and pattern.search(line):
                    yield f"src/{path}:{number}: {what}: {line.strip()[:80]}"


def long_python_lines(text):
    """The numbers of lines that are too long without a long string on them."""
    long = {number for number, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS_MAX}
    if not long:
        return []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and len(token.string) > LONG_STRING:
            long -= set(range(token.start[0], token.end[0] + 1))
    return sorted(long)


def check_python(root):
    for folder in PYTHON_FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            for number in long_python_lines(file.read_text()):
                yield f"{file.relative_to(root).as_posix()}:{number}: more than {COLUMNS_MAX} columns"


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    findings = [*check(root), *check_python(root)]
    print("\n".join(findings) if findings else "tidy: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
