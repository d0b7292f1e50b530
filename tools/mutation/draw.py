"""A sample of mutants: uniform over the statements that some change fits, and the same one for the same seed and the
same sources.

To count the statements of all sources all would have to be parsed, which takes an hour. Each source is drawn by a bound
on its statements that its text gives, and then a number below that bound: a statement, or nothing, and the draw begins
anew. So each statement is as likely as any other, and only what is drawn is parsed.
"""
import bisect
import itertools
import random

import places
import tokens

MISSES = 2000  # draws in a row without a new mutant: all have been drawn, but for one in thousands
MODULES = ["policy", "agent", "controllers", "apiserver", "host", "store", "wire", "client", "sim", "cli"]


class Mutant:
    def __init__(self, root, source, place, change):
        self.source, self.path = source, str(source.relative_to(root))
        self.module = self.path.split("/")[1]
        self.line, self.function = place["line"], place["function"]
        self.kind, self.edits = change["kind"], change["edits"]
        self.before = tokens.read(source)
        self.old, self.new = places.difference(self.before, self.edits)

    def text(self):
        return places.applied(self.before, self.edits).encode("latin-1").decode()

    def identity(self):
        """Stays the same while its line and the name of its function do."""
        lines = [[line.strip() for line in side] for side in (self.old, self.new)]
        return self.path, self.function, self.kind, "\n".join(lines[0]), "\n".join(lines[1])

    def difference(self):
        return [f"- {line}" for line in self.old] + [f"+ {line}" for line in self.new]


def sources(root, compiles, module=None):
    wanted = [module] if module else MODULES
    return [path for name in wanted for path in sorted((root / "src" / name).rglob("*.cc")) if path in compiles]


def mutants(root, files, places_of, seed):
    """Mutants, none twice, until all have been drawn."""
    dice = random.Random(f"spillway {seed}")
    bounds = list(itertools.accumulate(tokens.Tokens(tokens.read(file)).statements_at_most() for file in files))
    drawn, misses = set(), 0
    while bounds and bounds[-1] > 0 and misses < MISSES:
        misses += 1
        number = dice.randrange(bounds[-1])
        at = bisect.bisect_right(bounds, number)
        within = number - (bounds[at - 1] if at else 0)
        found = places_of(files[at])
        if within >= len(found):
            continue
        place = found[within]
        kind = dice.choice(sorted({change["kind"] for change in place["changes"]}))
        change = dice.choice([change for change in place["changes"] if change["kind"] == kind])
        mutant = Mutant(root, files[at], place, change)
        key = (mutant.path, str(change["edits"]))
        if key not in drawn:
            drawn.add(key)
            misses = 0
            yield mutant
