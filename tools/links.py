#!/usr/bin/env python3
"""Gate: every relative link of a Markdown page leads to a file, and its anchor to a heading or an `<a id="…">` there.

usage: tools/links.py [--root DIR]
Code is left out.
Prints one line per link that leads nowhere, file:line: what, then the number of those that do. Exit 1 if there is any.
"""
import argparse
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)
SKIPPED = {".git", "build", "node_modules"}


def blanked(text):
    """The text with its code blanked, newlines kept to count lines."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), text)


def anchors(text):
    """Anchors of a page, as GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-")
            for each in headings} | set(re.findall(r'<a id="([^"]+)"', text))


def pages(root):
    return sorted(page for page in root.rglob("*.md") if not SKIPPED & set(page.relative_to(root).parts))


def check(root):
    good = 0
    for page in pages(root):
        text = blanked(page.read_text())
        for link in LINK.finditer(text):
            path, _, anchor = link.group(1).partition("#")
            where = f"{page.relative_to(root)}:{1 + text.count(chr(10), 0, link.start())}"
            if re.match(r"[a-z]+:", path):
                continue
            target = page.parent / path if path else page
            if not target.exists():
                yield f"{where}: there is no {path}", 0
            elif anchor and (target.suffix != ".md" or anchor not in anchors(target.read_text())):
                yield f"{where}: {path or page.name} has no heading #{anchor}", 0
            else:
                good += 1
    yield "", good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    found = list(check(parser.parse_args().root))
    findings = [text for text, _ in found if text]
    print("\n".join(findings + [f"links: {found[-1][1]} open, {len(findings)} lead nowhere"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
