#!/usr/bin/env python3
"""Lists what the program may write to its log: level, event and fields of every line, and the file it comes from, as a
Markdown table.

usage: tools/log_lines.py [--fields]     --fields: each field and how many lines have it

It reads text: an event that is put together at run time is listed as its source has it.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALL = re.compile(r"\blog_?(?:\(\))?\.(debug|info|warning|error)\(")
FIELD = re.compile(r'\{\s*"([a-z_0-9]+)"\s*,')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def arguments(code, begin):
    """The text between the parenthesis before `begin` and the one that closes it."""
    depth, at, quoted = 0, begin, False
    while at < len(code):
        char = code[at]
        if quoted:
            at += char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                return code[begin:at]
            depth -= 1
        at += 1
    return code[begin:]


def events_in(given):
    """The texts of the first argument: one, or those of a choice."""
    end = given.find("{{")
    return [text for text in TEXT.findall(given if end < 0 else given[:end])] or ["(put together)"]


def lines_of(root):
    """(level, event, fields, file) of every line."""
    for path in sorted((root / "src").rglob("*.cc")):
        code = path.read_text()
        for call in CALL.finditer(code):
            given = arguments(code, call.end())
            fields = list(dict.fromkeys(FIELD.findall(given)))
            for event in events_in(given):
                yield call.group(1), event, fields, str(path.relative_to(root))


def main(wanted):
    lines = list(lines_of(ROOT))
    if wanted == ["--fields"]:
        counts = collections.Counter(field for _, _, fields, _ in lines for field in fields)
        print("\n".join(f"{field} {count}" for field, count in counts.most_common()))
        return 0
    if wanted:
        print(__doc__)
        return 2
    print("| level | event | fields | file |\n| --- | --- | --- | --- |")
    for level, event, fields, path in sorted(lines, key=lambda line: (line[3], line[1])):
        print(f"| {level} | {event} | {', '.join(fields)} | {path} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
