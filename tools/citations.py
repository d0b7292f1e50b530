#!/usr/bin/env python3
"""Gate: every `spec "TITLE", SECTION` in src/, tests/, fuzz/, bench/ and docs/ leads to a section of docs/spec/.

usage: tools/citations.py [--root DIR]
Prints one line per citation that leads nowhere, file:line: what, then the number of those that do. Exit 1 if there is
any.
"""
import argparse
import pathlib
import re
import sys

CITATION = re.compile(r'\bspec\s+"([^"]+)"((?:,?\s*(?:(?:sections?|and|to|S(?=\d)|T(?=\d))\s*)*\d+(?:\.\d+)*)*)')
NUMBER = re.compile(r"\bS?(\d+(?:\.\d+)*)")
SECTION = re.compile(r"^(?:#+\s*)?S?(\d+(?:\.\d+)*)\.?(?=\s|$)|^\|\s*(T\d+)\s*\|", re.M)
FOLDERS = ["src", "tests", "fuzz", "bench", "docs"]
SUFFIXES = {".h", ".cc", ".py", ".md", ".txt", ".json"}


def specifications(root):
    """Title -> the numbers of its sections."""
    sections = {}
    for file in sorted((root / "docs/spec").glob("*.md")):
        text = file.read_text()
        title = text.partition("\n")[0].removeprefix("# ")
        sections[title] = {match.group(1) or match.group(2) for match in SECTION.finditer(text)}
    return sections


def joined_comments(text):
    """The text with comment lines that follow each other joined, newlines kept as \\v to count lines."""
    return re.sub(r"\n\s*(?://+|#)", lambda gap: "\v" + " " * (len(gap.group()) - 1), text)


def check(root):
    sections = specifications(root)
    good = 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SUFFIXES or {root / "docs/spec", root / "tests/tools"} & set(file.parents):
                continue
            text = joined_comments(file.read_text(errors="replace"))
            for cited in CITATION.finditer(text):
                title = " ".join(cited.group(1).split())
                line = 1 + len(re.findall(r"[\n\v]", text[: cited.start()]))
                where = f"{file.relative_to(root)}:{line}"
                if title not in sections:
                    yield f'{where}: there is no specification "{title}" in docs/spec', 0
                    continue
                good += 1
                for number in NUMBER.findall(cited.group(2)):
                    if number not in sections[title]:
                        yield f'{where}: "{title}" has no section {number}', 0
    yield "", good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    found = list(check(parser.parse_args().root))
    findings = [text for text, _ in found if text]
    print("\n".join(findings + [f"citations: {found[-1][1]} open, {len(findings)} lead nowhere"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
