#!/usr/bin/env python3
"""Gate: docs/adr/README.md lists every decision record, and each record has the form that the list is made from.

usage: tools/adr.py [--root DIR] [--write]

A record is docs/adr/NNNN-words.md. Its first line is `# ADR-NNNN: TITLE`, it has at most 60 lines, and its part
"Revisit when", if it has one, is a heading or a paragraph that begins with these words in bold. `--write` makes
README.md from the records. Exit 1 if a record has another form, or if README.md is not what the records say.
"""
import argparse
import pathlib
import re
import sys

FOLDER = "docs/adr"
LINES_MAX = 60
NAME = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
TITLE = re.compile(r"# ADR-(\d{4}): (\S.*)")
REVISIT = re.compile(r"(?:^## Revisit when\n+|^\*\*Revisit when\*\*\s*)(.+?)(?=\n\s*\n|\n#|\n\*\*|\Z)",
                     re.MULTILINE | re.DOTALL)
HEAD = """# Decisions

This list is written by `tools/adr.py --write` from the records in this folder. Each record says what was to be
decided, which options there were, which one was chosen, and what follows. The last column names what would make
us decide again.

| record | decision | revisit when |
| --- | --- | --- |
"""


class Record:
    def __init__(self, path):
        text = path.read_text()
        self.name = path.name
        self.number = NAME.fullmatch(path.name).group(1)
        self.title = TITLE.fullmatch(text.split("\n", 1)[0])
        self.lines = text.count("\n")
        revisit = REVISIT.search(text)
        self.revisit = " ".join(revisit.group(1).split()) if revisit else ""

    def problems(self):
        if not self.title:
            yield f"{FOLDER}/{self.name}:1: the first line is not `# ADR-{self.number}: TITLE`"
        elif self.title.group(1) != self.number:
            yield f"{FOLDER}/{self.name}:1: says ADR-{self.title.group(1)}, the name of the file says {self.number}"
        if self.lines > LINES_MAX:
            yield f"{FOLDER}/{self.name}: {self.lines} lines, {LINES_MAX} are allowed"

    def row(self):
        title = self.title.group(2)
        link = f"[{self.number}]({self.name})"
        cells = [link, title[:1].upper() + title[1:], self.revisit]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def records(root):
    return [Record(path) for path in sorted((root / FOLDER).glob("*.md")) if NAME.fullmatch(path.name)]


def form_problems(root):
    seen = {}
    for path in sorted((root / FOLDER).glob("*.md")):
        if path.name != "README.md" and not NAME.fullmatch(path.name):
            yield f"{FOLDER}/{path.name}: the name is not NNNN-words.md"
    for record in records(root):
        yield from record.problems()
        if record.number in seen:
            yield f"{FOLDER}/{record.name}: has the number of {seen[record.number]}"
        seen[record.number] = record.name


def listed(root):
    return HEAD + "".join(record.row() for record in records(root))


def check(root):
    problems = list(form_problems(root))
    page = root / FOLDER / "README.md"
    if not problems and (not page.exists() or page.read_text() != listed(root)):
        problems.append(f"{FOLDER}/README.md: is not what the records say; run tools/adr.py --write")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--write", action="store_true", help="write README.md from the records")
    args = parser.parse_args()
    if args.write and not list(form_problems(args.root)):
        (args.root / FOLDER / "README.md").write_text(listed(args.root))
    problems = check(args.root)
    print("\n".join(problems) or f"adr: {len(records(args.root))} records, all listed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
