#!/usr/bin/env python3
"""Gate: what the sources of src/ include does not grow unnoticed.

Compiling is mostly reading headers and making the templates in them. tools/includes.txt records the direct includes of
the headers that most sources reach (the hot headers), and how many lines of our headers all sources include together.
The gate fails if a hot header includes something that is not in the file, or if the sum grows by more than 2 %.
`tools/includes.py --write` records today's state; a reviewer then sees the growth as a line of the change.
`tools/includes.py --top` prints the headers by what they cost: the sources that reach a header, times the lines behind
it.
"""

import argparse
import functools
import pathlib
import re
import sys

RECORD = "tools/includes.txt"
HOT_COUNT = 40          # headers that are watched
GROWTH_MAX_PERCENT = 2  # allowed growth of the sum of included lines
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


class Tree:
    """The headers and sources below ROOT/src, with what each of them includes."""

    def __init__(self, root):
        self.texts = {path.relative_to(root / "src").as_posix(): path.read_text()
                      for path in sorted((root / "src").rglob("*")) if path.suffix in (".h", ".cc")}
        self.direct = {name: sorted({found.group(2) for found in INCLUDE.finditer(text)}) for name,
                       text in self.texts.items()}
        self.lines = {name: text.count("\n") for name, text in self.texts.items()}
        self.behind = functools.cache(self.behind)

    def behind(self, name):
        """The headers of src/ that NAME includes, itself left out."""
        seen, waiting = set(), [name]
        while waiting:
            for included in self.direct[waiting.pop()]:
                if included in self.texts and included not in seen:
                    seen.add(included)
                    waiting.append(included)
        return frozenset(seen - {name})

    def sources(self):
        return [name for name in self.texts if name.endswith(".cc")]

    def included_lines(self):
        """Lines of our headers, once for each source that reaches them."""
        return sum(sum(self.lines[header] for header in self.behind(source)) for source in self.sources())

    def reached(self):
        """The number of sources that reach each header."""
        count = {name: 0 for name in self.texts if name.endswith(".h")}
        for source in self.sources():
            for header in self.behind(source):
                count[header] = count.get(header, 0) + 1
        return count

    def hot(self):
        count = self.reached()
        return sorted(sorted(count, key=lambda name: (-count[name], name))[:HOT_COUNT])


def write(root):
    tree = Tree(root)
    rows = [
        (
            "# Written by tools/includes.py --write: the sum of included lines, then the hot headers with their direct"
            " includes."
        ),
        f"included_lines {tree.included_lines()}",
    ]
    rows += [f"{name}: {' '.join(tree.direct[name])}".rstrip() for name in tree.hot()]
    (root / RECORD).write_text("\n".join(rows) + "\n")


def check(root):
    tree = Tree(root)
    recorded_lines = None
    for line in (root / RECORD).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("included_lines "):
            recorded_lines = int(line.split()[1])
            continue
        name, _, includes = line.partition(":")
        if name not in tree.texts:
            yield f"{RECORD}: {name} does not exist; run tools/includes.py --write"
            continue
        for included in tree.direct[name]:
            if included not in includes.split():
                yield (
                    f"src/{name}: includes {included}, which {RECORD} does not list: {tree.reached()[name]} sources"
                    " would read it. Include it in the sources, declare the type instead, or run tools/includes.py"
                    " --write and say why in the change"
                )
    if recorded_lines is None:
        yield f"{RECORD}: has no line `included_lines N`"
        return
    now = tree.included_lines()
    if now * 100 > recorded_lines * (100 + GROWTH_MAX_PERCENT):
        yield (
            f"{RECORD}: the sources include {now} lines of headers, {recorded_lines} are recorded, and"
            f" {GROWTH_MAX_PERCENT} % more are allowed. tools/includes.py --top shows where; tools/includes.py --write"
            " records it"
        )


def print_top(root):
    tree = Tree(root)
    count = tree.reached()
    cost = {name: count[name] * (tree.lines[name] + sum(tree.lines[other] for other in tree.behind(name)))
            for name in count}
    print(f"{'HEADER':50} {'SOURCES':>8} {'LINES':>7} {'LINES BEHIND':>13} {'PRODUCT':>9}")
    for name in sorted(cost, key=lambda each: (-cost[each], each))[:20]:
        behind = sum(tree.lines[other] for other in tree.behind(name))
        print(f"{name:50} {count[name]:8} {tree.lines[name]:7} {behind:13} {cost[name]:9}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--write", action="store_true", help="record today's state")
    parser.add_argument("--top", action="store_true", help="print the 20 headers that cost most")
    args = parser.parse_args()
    if args.write:
        write(args.root)
        return 0
    if args.top:
        print_top(args.root)
        return 0
    problems = list(check(args.root))
    print("\n".join(problems) or "includes: as recorded")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
