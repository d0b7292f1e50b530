"""The commands that a page has: those of its indented blocks, and those between backticks that say more than a name.

An indented block is one of commands if its first line begins with one; where its lines begin with "$ ", the others are
what is printed. A comment behind a command is none of it. Fenced blocks of commands are for pages that are followed as
they stand (documents.py).
"""
import re

PROGRAMS = (
    r"(?:sudo |JOBS=\d+ |chrt -r 1"
    r" )*(?:\S*/)?(?:spillway|kubectl|\./dev|cmake|ctest|cp|install|export|promtool|systemctl|tests/lab/\w[\w.]*|bench/\w+/\w+\.py)"
)
BEGINS = re.compile(rf"(?:\$ )?{PROGRAMS}(?: .*)?$")
BLOCK = re.compile(r"(?:^    +\S.*\n?|^\n(?=    ))+", re.M)
# `spillway up` and `kubectl get` are names; `spillway COMMAND --help` is a command.
INLINE = re.compile(rf"{PROGRAMS} \S+ \S.*$")


def lines_of(block):
    lines = [line.strip() for line in re.sub(r"\\\n\s*", "", block).splitlines() if line.strip()]
    if not lines or not BEGINS.match(lines[0]):
        return []
    asked = any(line.startswith("$ ") for line in lines)
    found = []
    for line in lines:
        if asked and not line.startswith("$ "):
            continue
        command = re.sub(r"\s+#\s.*$", "", line.removeprefix("$ ")).strip()
        assert BEGINS.match(command), f"a line among commands that begins with none: {line}"
        found.append(re.sub(r"  +", " ", command))
    return found


def commands(text):
    """In the order of the page, each once; those of blocks first."""
    prose = re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.M | re.S)
    found = [command for block in BLOCK.findall(prose) for command in lines_of(block)]
    inline = re.findall(r"`([^`\n]+)`", BLOCK.sub("\n", prose))
    return list(dict.fromkeys([*found, *(each for each in inline if INLINE.match(each))]))
