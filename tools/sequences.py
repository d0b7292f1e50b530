#!/usr/bin/env python3
"""Gate: operations that wait read from top to bottom, and no class grows past what one reader holds in mind.

usage: tools/sequences.py [--root DIR] [--list [PATH...]] [--write [--force]]

Counted in src/:
  - continuations: lambdas that take a Result and have more than one statement. The order of an operation made of them
    has to be found by search. A lambda that hands its answer to a function with a name, and does nothing else, is none;
  - alive flags: members of type shared_ptr<bool> that callbacks ask whether their object still lives;
  - methods of a class that has more than 40 of them, its functions with a body outside the class.

tools/sequences.txt records how many each file or class has left. A number there only falls: `--write` records today's
and fails if one would grow, unless `--force` says so. `--list` prints every finding, of the given files or folders
only. Exit 1 if a file or class has more than its number.
"""
import argparse
import collections
import pathlib
import re
import sys

RECORD = "tools/sequences.txt"
METHODS_MAX = 40

BLANKED = re.compile(
    r"""R"([^()\s\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|(?<!\w)'(?:\\.|[^'\\\n])*'""", re.DOTALL)
CONTINUATION = re.compile(r"\[[^\[\]]*\]\s*(\()\s*(?:const\s+)?(?:\w+::)*(?:Status)?Result<")
ALIVE = re.compile(r"shared_ptr<(?:const\s+)?bool>\s+\w+")
METHOD = re.compile(r"^(?:[\w:<>,&*\[\]]+[\s&*]+)*((?:\w+::)*[A-Z]\w*)::(?:~?[a-z]\w*|operator[^\s(]+|~[A-Z]\w*)\(",
                    re.MULTILINE)
PAIRS = {"(": ")", "{": "}"}


def blanked(text):
    """The text without comments and literals, each line where it was."""
    return BLANKED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def closing(text, opening):
    """The place after the bracket that closes the one at `opening`."""
    left, right, depth = text[opening], PAIRS[text[opening]], 0
    for place in range(opening, len(text)):
        depth += (text[place] == left) - (text[place] == right)
        if depth == 0:
            return place + 1
    return len(text)


def continuations(text):
    """The lines of lambdas that take a Result and continue with more than one statement."""
    for found in CONTINUATION.finditer(text):
        body = text.find("{", closing(text, found.start(1)))
        if body >= 0 and text.count(";", body, closing(text, body)) > 1:
            yield text.count("\n", 0, found.start()) + 1


def findings(root):
    """(kind, name) -> places. The name is a file, or a class with its namespace's folder."""
    found = collections.defaultdict(list)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        name, text = path.relative_to(root).as_posix(), blanked(path.read_text())
        for line in continuations(text):
            found["continuations", name].append(f"{name}:{line}")
        for flag in ALIVE.finditer(text):
            found["alive", name].append(f"{name}:{text.count(chr(10), 0, flag.start()) + 1}")
        module = name.split("/")[1]
        for method in METHOD.finditer(text):
            owner = f"{module}::{method.group(1)}"
            found["methods", owner].append(f"{name}:{text.count(chr(10), 0, method.start()) + 1}")
    return {key: places for key, places in found.items() if key[0] != "methods" or len(places) > METHODS_MAX}


def recorded(root):
    file = root / RECORD
    rows = [line.split() for line in file.read_text().splitlines() if line and line[0] != "#"] if file.is_file() else []
    return {(kind, name): int(count) for kind, name, count in rows}


def growth(root, found):
    known = recorded(root)
    limits = {key: known.get(key, METHODS_MAX if key[0] == "methods" else 0) for key in found}
    return {key: limit for key, limit in limits.items() if len(found[key]) > limit}


def write(root, found):
    rows = ["# Written by tools/sequences.py --write: what each file or class has left. These numbers only fall."]
    rows += [f"{kind} {name} {len(places)}" for (kind, name), places in sorted(found.items())]
    (root / RECORD).write_text("\n".join(rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=here)
    parser.add_argument("--list", nargs="*", metavar="PATH", help="print every finding, of these files or folders only")
    parser.add_argument("--write", action="store_true", help="record today's numbers, where none grows")
    parser.add_argument("--force", action="store_true", help="with --write: record numbers that grow as well")
    args = parser.parse_args()
    found = findings(args.root)
    if args.list is not None:
        for (kind, _), places in sorted(found.items()):
            for place in places:
                if not args.list or any(place.startswith(path) for path in args.list):
                    print(f"{place}: {kind}")
        return 0
    grown = growth(args.root, found)
    if grown and not (args.write and args.force):
        for (kind, name), limit in sorted(grown.items()):
            print(
                f"{name}: {len(found[kind, name])} {kind}, {limit} are allowed ({RECORD}):"
                f" {' '.join(found[kind, name][:8])}"
            )
        return 1
    if args.write:
        write(args.root, found)
        return 0
    sums = collections.Counter()
    for (kind, _), places in found.items():
        sums[kind] += len(places) if kind != "methods" else 1
    print(
        f"sequences: none new; {sums['continuations']} continuations, {sums['alive']} alive flags,"
        f" {sums['methods']} large classes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
