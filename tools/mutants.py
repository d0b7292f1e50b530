#!/usr/bin/env python3
"""Plants bugs, one at a time, and sees whether the tests notice: each is a small edit in tests/mutants/ROOM.txt, is built, and is
run against the tests that should fail.

usage: tools/mutants.py [ROOM...] [--build DIR] [--jobs N] [--list] [--name TEXT]

Edits the sources in place and puts them back, also after Ctrl-C; refuses to start where one of them has changes of its own.
Prints a line per bug and a table per room. Exit 0: all as their files expect; 1: a bug survived that is not marked as one that
may; 2: an edit that does not apply, or a build without bugs that fails.

A file is a list of bugs:

    ## what is wrong with it, in a few words
    in src/wire/client/bearer_token.cc
    by wire_test --gtest_filter=BearerToken*
    - text that stands there once
    + text in its place
    survives: why no test can tell (only for those)

Lines that begin with "- " and "+ " are the old and the new text without these two characters; a "+" alone removes it.
"""
import argparse
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEST_SECONDS = 120


class Mistake(Exception):
    """Something about the files of bugs, or about the tree, that the caller must mend."""


class Mutant:
    def __init__(self, room, name, place):
        self.room, self.name, self.place = room, name, place
        self.file, self.test, self.why = None, [], None
        self.old, self.new = [], []

    def check(self, root):
        """The text of its file with the bug in it."""
        if not self.file or not self.test or not self.old:
            raise Mistake(f"{self.place}: \"{self.name}\" needs `in FILE`, `by TEST` and a line that begins with \"- \"")
        path = root / self.file
        if not path.is_file():
            raise Mistake(f"{self.place}: {self.file}: no such file")
        text, old = path.read_text(), "\n".join(self.old)
        if text.count(old) != 1:
            raise Mistake(f"{self.place}: \"{self.name}\" does not apply: its text stands {text.count(old)} times in {self.file}, expected once")
        return text.replace(old, "\n".join(self.new))


def read(file):
    mutants = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        place = f"{file.name}:{number}"
        if line.startswith("## "):
            mutants.append(Mutant(file.stem, line[3:].strip(), place))
            continue
        if not line.strip() or line.startswith("# "):
            continue
        if not mutants:
            raise Mistake(f"{place}: expected \"## what is wrong\" before anything else")
        mutant, (word, _, rest) = mutants[-1], line.partition(" ")
        if word == "in":
            mutant.file = rest.strip()
        elif word == "by":
            mutant.test = shlex.split(rest)
        elif word == "survives:":
            mutant.why = rest.strip()
        elif word in "-+":
            (mutant.old if word == "-" else mutant.new).append(rest)
        else:
            raise Mistake(f"{place}: expected in, by, -, + or survives:, got \"{word}\"")
    return mutants


def unchanged(root, files):
    done = subprocess.run(["git", "status", "--porcelain", "--", *files], cwd=root, capture_output=True, text=True, check=False)
    if done.stdout:
        raise Mistake(f"{done.stdout.split()[-1]} has changes; commit them first: bugs are planted in place")


class Tree:
    def __init__(self, root, build, jobs):
        self.root, self.build, self.jobs = root, build, jobs
        self.binaries = {}

    def compile(self, target):
        done = subprocess.run(["cmake", "--build", self.build, "--parallel", str(self.jobs), "--target", target], cwd=self.root,
                              capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:]

    def run(self, test):
        """Did it pass?"""
        name, *arguments = test
        if name not in self.binaries:
            found = [path for path in self.build.rglob(name) if path.is_file()]
            if not found:
                raise Mistake(f"{name}: no such test in {self.build}")
            self.binaries[name] = found[0]
        try:
            return subprocess.run([self.binaries[name], *arguments], cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=TEST_SECONDS, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def judge(self, mutant):
        """killed, survived, or does not compile."""
        path = self.root / mutant.file
        whole = path.read_text()
        try:
            path.write_text(mutant.check(self.root))
            built, said = self.compile(mutant.test[0])
            if not built:
                return "does not compile", re.findall(r"error: .*", said)[:1]
            return ("survived" if self.run(mutant.test) else "killed"), []
        finally:
            path.write_text(whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only check that every edit applies")
    parser.add_argument("--name", default="", help="only those whose words contain this")
    args = parser.parse_args()
    folder = args.root / "tests/mutants"
    files = [folder / f"{room}.txt" for room in args.rooms] or sorted(folder.glob("*.txt"))
    for file in files:
        if not file.is_file():
            raise Mistake(f"{file.stem}: no such room; one of {', '.join(sorted(each.stem for each in folder.glob('*.txt')))}")
    mutants = [mutant for file in files for mutant in read(file) if args.name in mutant.name]
    for mutant in mutants:
        mutant.check(args.root)
    if args.list:
        print(f"{len(mutants)} bugs, each applies")
        return 0
    unchanged(args.root, sorted({mutant.file for mutant in mutants}))
    tree = Tree(args.root, args.build or args.root / "build/dev", args.jobs)
    for test in sorted({tuple(mutant.test) for mutant in mutants}):
        built, said = tree.compile(test[0])
        if not built or not tree.run(test):
            raise Mistake(f"{' '.join(test)} {'fails' if built else 'does not build'} without any bug{'' if built else ': ' + said[-300:]}")
    table, bad, began = {}, 0, time.monotonic()
    for number, mutant in enumerate(mutants, 1):
        outcome, more = tree.judge(mutant)
        row = table.setdefault(mutant.room, {"planted": 0, "killed": 0, "survived": 0})
        row["planted"] += 1
        row["killed" if outcome == "killed" else "survived"] += 1
        bad += outcome != "killed" and mutant.why is None
        print(f"{number}/{len(mutants)} {mutant.room}: {mutant.name}: {outcome}{': ' + mutant.why if outcome != 'killed' and mutant.why else ''}", *more, flush=True)
    print(f"\n{'room':14}{'planted':>9}{'killed':>9}{'survived':>10}")
    for room, row in table.items():
        print(f"{room:14}{row['planted']:>9}{row['killed']:>9}{row['survived']:>10}")
    killed = sum(row["killed"] for row in table.values())
    print(f"{killed} of {len(mutants)} killed in {(time.monotonic() - began) / 60:.1f} min")
    return 1 if bad else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except Mistake as mistake:
        print(f"mutants: {mistake}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
