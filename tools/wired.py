#!/usr/bin/env python3
"""Gate: a function that a header of src/policy or src/agent declares is used by the product, and not by its tests
alone.

It reads text, not types: a name counts as used where it stands in src/ as a word that is neither a declaration nor a
definition. Functions that share a name answer for each other, so what it finds is true and it may miss some. Run as a
test; prints what is wrong as path:line and exits 1.
"""

import collections
import pathlib
import re
import sys

FOLDERS = ("src/policy", "src/agent")

# Rules that wait for something the product does not have yet. A line here without a function to wait is wrong as well.
WAITING = {
}

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)
# A type, then a name and a parenthesis: "Bytes total(", "std::vector<Pod>& pods(", "[[nodiscard]] bool take(".
# The code is formatted: what ends a type is glued to it and followed by a blank, which operators between values are
# not.
DECLARED = re.compile(r"(?:[\w\]]|(?<=[\w>])[>&*]+)\s+(?:\w+::)*([a-z]\w*)\s*\(")
NOT_TYPES = re.compile(
    r"\b(?:return|co_return|co_await|co_yield|else|new|throw|case|delete|and|or|not|requires|if|while|for|switch)\s+$")
WORD = re.compile(r"\b[a-z]\w*\b")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_of(text):
    return COMMENT.sub(blank, RAW_STRING.sub(blank, text))


def declared_at(code):
    """(name, where the name begins) of everything that looks like the declaration or the definition of a function."""
    for match in DECLARED.finditer(code):
        begin = match.start(1)
        lead = re.sub(r"(?:\w+::)*$", "", code[max(0, begin - 60):begin])
        if not NOT_TYPES.search(lead):
            yield match.group(1), begin


def check(root):
    sources = {path: code_of(path.read_text()) for path in sorted((root / "src").rglob("*"))
               if path.suffix in (".h", ".cc")}
    uses = collections.Counter()
    declarations = collections.defaultdict(list)
    for path, code in sources.items():
        begins = {begin for _, begin in declared_at(code)}
        for word in WORD.finditer(code):
            if word.start() not in begins:
                uses[word.group(0)] += 1
        folder = path.relative_to(root).as_posix()
        if path.suffix == ".h" and folder.startswith(FOLDERS):
            for name, begin in declared_at(code):
                declarations[name].append(f"{folder}:{code.count(chr(10), 0, begin) + 1}")
    waiting = dict(WAITING)
    for name in sorted(declarations):
        if uses[name] > 0:
            continue
        if waiting.pop(name, None) is None:
            for place in declarations[name]:
                yield f"{place}: {name} is used by nothing in src/"
    for name, what in waiting.items():
        yield f"tools/wired.py: {name} does not wait for anything ({what}): it is wired or gone"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    problems = list(check(root))
    for problem in problems:
        print(problem)
    print(f"wired: {len(problems)} problems" if problems else "wired: every rule is reached")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
