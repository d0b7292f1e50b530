#!/usr/bin/env python3
"""Writes the pages of docs/reference that follow from the program: its commands and flags as it prints them, its
metrics as the source names them.

usage: tools/reference.py PROGRAM            writes the pages
       tools/reference.py PROGRAM --check    says which of them no longer agree, exit code 1
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "packaging"))
import man_pages  # noqa: E402

MADE = "<!-- Made by tools/reference.py: change the source, then run it again. -->\n"
PREFIXES = ("apiserver", "cadvisor", "container", "cronjob", "endpoint", "horizontal", "job", "kubelet", "kubeproxy",
            "leader", "machine", "node", "pod", "process", "prober", "resource", "rest", "scheduler", "spillway",
            "taint", "workqueue")
LITERAL = r'"((?:[^"\\]|\\.)*)"'
METRIC = re.compile(rf'{LITERAL},\s*(?:Type::k(\w+),\s*)?((?:{LITERAL}\s*)+)')
CONSTANT = re.compile(rf'constexpr (?:std::string_view|char) (k\w+)(?:\[\])?\s*=\s*((?:{LITERAL}\s*)+);')
NAME = re.compile(rf"(?:{'|'.join(PREFIXES)})(?:_[a-z0-9]+)+")
LABEL = re.compile(r'\{\s*"([A-Za-z_]+)",')


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def joined(literals):
    return "".join(re.findall(LITERAL, literals)).replace('\\"', '"')


def quoted(text):
    return '"' + text.replace('"', '\\"') + '"'


# Commands

def command_section(name, text, level):
    """One command as Markdown: what it is for, how it is called, its flags by section."""
    parts = list(man_pages.sections(text))
    head = [line for line in parts[0][1] if line.strip()]
    about = " ".join(line.strip() for line in head if not line.startswith("Usage:"))
    usage = next(line for line in head if line.startswith("Usage:")).removeprefix("Usage:").strip()
    out = [f"{'#' * level} {name}", "", about, "", f"    {usage}", ""]
    remarks = []
    for title, lines in parts[1:]:
        if title is None:
            remarks += [line for line in lines if line.strip() and not line.startswith("Every command also takes")]
            continue
        if title == "Examples":
            calls = [line for line in lines if line.strip()]
            out += ["| Examples | |", "| --- | --- |"]
            out += [f"| `{call.strip().replace('|', chr(92) + '|')}` | {cell(remark.strip().removeprefix('# '))} |"
                    for remark, call in zip(calls[::2], calls[1::2])] + [""]
            continue
        rows = [row for row in man_pages.entries(lines) if not row[0].startswith(("-h, --help", "--help-all"))]
        if not rows or title.startswith("Commands"):
            continue
        out += [f"| {title} | |", "| --- | --- |"]
        out += [f"| `{flag.replace('|', chr(92) + '|')}` | {cell(meaning)} |" for flag, meaning in rows] + [""]
    return out + remarks + ([""] if remarks else [])


def commands_page(program):
    top = man_pages.help_of(program)
    out = [
        "# Commands and flags",
        "",
        MADE,
        (
            "`--help` shows examples and the most used flags of a command, `--help-all` all of them; `--log-level` and"
            " `--log-format` belong to every command."
        ),
        "`kubectl spillway COMMAND` is the same, with `kubectl-spillway` on the PATH.",
        "",
        "## Exit codes",
        "",
        "Each code has the same meaning in every command (`spillway help exit-codes`).",
        "",
        "| code | meaning |",
        "| --- | --- |",
    ]
    out += [f"| {code} | {cell(meaning)} |" for code, meaning in man_pages.exit_codes_of(program)] + [""]
    out += command_section("spillway", top, 2)
    for command in man_pages.subcommands(top):
        text = man_pages.help_of(program, command)
        out += command_section(f"spillway {command}", text, 2)
        for below in man_pages.subcommands(text):
            out += command_section(f"spillway {command} {below}", man_pages.help_of(program, command, below), 3)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out).rstrip() + "\n")


# Metrics

PER_POD = (
    "`container_…`, `pod_…`, `node_…` and `machine_…` are those of `/metrics/resource` and `/metrics/cadvisor`, with"
    " the labels of a kubelet: `namespace`, `pod`, `container`."
)


def kind_of(name, before):
    """The kind of a metric, by the nearest word before its name: "counter", "gauge", "histogram"."""
    if before.rstrip().endswith("write_file_systems(out, summary,"):
        return "gauge"
    words = re.findall(r"counter|gauge|histogram|Counter|Gauge|Histogram", before)
    return words[-1].lower() if words else ("counter" if name.endswith("_total") else "gauge")


def call_end(code, at):
    depth = 0
    for index in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[index], 0)
        if depth < 0 or code[index] == ";":
            return index
    return len(code)


def metrics_in(code, constants):
    """(name, kind, help, labels) of every instrument that `code` makes. `constants`: texts that it may name instead."""
    known = constants | {name: joined(text) for name, text, _ in CONSTANT.findall(code)}
    code = re.sub(r"\bk[A-Z]\w*\b(?!(?:\[\])?\s*=)", lambda name: quoted(known[name.group()]) if name.group() in known
                  else name.group(), code)
    for match in METRIC.finditer(code):
        name, declared, text, _ = match.groups()
        if not NAME.fullmatch(name) or " " not in text:
            continue
        labels = LABEL.findall(code[match.end():call_end(code, match.end())])
        yield name, (declared or kind_of(name,
                                         code[max(0, match.start() - 160):match.start()])).lower(), joined(text), list(
                                             dict.fromkeys(labels))


def part_of(name, path):
    """Where it is served: by its name, where that says so, else by the folder of the source below src/."""
    for prefix, part in (("apiserver_", "API server"), ("node_collector_", "Controllers"),
                         ("leader_election_", "Controllers")):
        if name.startswith(prefix):
            return part
    return {"agent": "Nodes", "host": "Nodes", "apiserver": "API server", "store": "API server", "wire": "API server",
            "controllers": "Controllers"}.get(path.parts[1], "Every process")


def metrics_of(root):
    """{name: (part, kind, help, labels)}; the same name made twice has the labels of both."""
    headers = [path.read_text() for path in (root / "src").rglob("*.h")]
    constants = {name: joined(text) for code in headers for name, text, _ in CONSTANT.findall(code)}
    found = {}
    for path in sorted((root / "src").rglob("*.cc")):
        for name, kind, text, labels in metrics_in(path.read_text(), constants):
            part, kind, text, before = found.get(name, (part_of(name, path.relative_to(root)), kind, text, []))
            found[name] = (part, kind, text, list(dict.fromkeys(before + labels)))
    return found


def metrics_page(root):
    out = [
        "# Metrics",
        "",
        MADE,
        (
            "Where they are served and who may read them: [observability.md](../observability.md). Names without"
            " `spillway_` are those of Kubernetes, with its"
        ),
        "meaning. A histogram has `_bucket`, `_sum` and `_count`.",
        "",
    ]
    found = metrics_of(root)
    for part in ("Nodes", "API server", "Controllers", "Every process"):
        rows = sorted((name, *rest) for name, (of, *rest) in found.items() if of == part)
        out += [f"## {part}", ""] + ([PER_POD, ""] if part == "Nodes" else [])
        out += [ "| metric | kind | labels | meaning |", "| --- | --- | --- | --- |"]
        out += [f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {cell(text)} |" for name, kind,
                text, labels in rows] + [""]
    return "\n".join(out).rstrip() + "\n"


def pages(program, root=ROOT):
    return {"commands.md": commands_page(program), "metrics.md": metrics_page(root)}


def main(arguments):
    if not arguments or len(arguments) > 2 or arguments[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    folder = ROOT / "docs/reference"
    differ = 0
    for name, text in pages(arguments[0]).items():
        page = folder / name
        if page.exists() and page.read_text() == text:
            continue
        differ += 1
        if arguments[1:]:
            print(f"docs/reference/{name} no longer agrees with the program: run tools/reference.py PROGRAM")
        else:
            page.write_text(text)
            print(f"docs/reference/{name}: written")
    return 1 if arguments[1:] and differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
