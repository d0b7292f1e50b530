"""tests/mutants/equivalent.txt: mutants that change nothing that a test could see, each marked by a person with the
reason.

    ## why no test can distinguish it from the original
    in src/policy/eviction/decide.cc
    function spillway::eviction::decide
    by comparison
    - the line as it is
    + the line as it becomes

Lines that begin with "- " and "+ " are compared without the spaces around them; a "+" alone is a line that is left out.
"""


class Malformed(Exception):
    """A file of marks that a person has to mend."""


def read(path):
    """The reason of each marked mutant, by its identity."""
    entries = []
    if not path.is_file():
        return {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        word, _, rest = line.strip().partition(" ")
        if line.startswith("## "):
            entries.append({"reason": rest.strip(), "at": number, "-": [], "+": []})
        elif not word or word == "#":
            continue
        elif not entries or word not in ("in", "function", "by", "-", "+"):
            raise Malformed(f"{path.name}:{number}: expected ##, in, function, by, - or +, got \"{word}\"")
        elif word in "-+":
            entries[-1][word].append(rest.strip())
        else:
            entries[-1][word] = rest.strip()
    for entry in entries:
        missing = [word for word in ("reason", "in", "function", "by", "-") if not entry.get(word)]
        if missing:
            raise Malformed(f"{path.name}:{entry['at']}: expected a line that begins with {missing[0]}")
    return {(entry["in"], entry["function"], entry["by"], "\n".join(entry["-"]), "\n".join(entry["+"])): entry["reason"]
            for entry in entries}


def stale(marks, root):
    """Marks whose line no longer stands in its file."""
    for path, function, kind, old, _ in marks:
        file = root / path
        lines = {line.strip() for line in file.read_text().splitlines()} if file.is_file() else set()
        if not set(old.split("\n")) <= lines:
            yield f"{path}: {function}, {kind}: its line is gone: {old}"


def entry(mutant):
    """The entry that a person adds to the file, but for the reason."""
    return "\n".join(["## ", f"in {mutant.path}", f"function {mutant.function}", f"by {mutant.kind}",
                      *(f"- {line.strip()}" for line in mutant.old),
                      *(f"+ {line.strip()}".rstrip() for line in mutant.new)])
