#!/usr/bin/env python3
"""Plants bugs, one at a time, and sees whether the tests notice: each is a small edit in tests/mutants/ROOM.txt and is
run against the tests that should fail.

usage: tools/mutants.py [ROOM...] [--build DIR] [--jobs N] [--list] [--name TEXT]

The sources stay as they are. A file with a bug is compiled alone, and linked before the libraries that hold the same
file without it: the linker takes the definitions it meets first. Every file is linked so once without a bug, and its
tests have to pass. Prints a line per bug and a table per room. Exit 0: all as their files expect; 1: a bug survived
that is not marked as one that may; 2: an edit that does not apply, or a test that fails without a bug.

A file is a list of bugs:

    ## what is wrong with it, in a few words
    in src/wire/client/bearer_token.cc    (a .cc file)
    by wire_test --gtest_filter=BearerToken*
    - text that stands there once
    + text in its place
    survives: why no test can notice it (only for those)

Lines that begin with "- " and "+ " are the old and the new text without these two characters; a "+" alone removes it.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEST_SECONDS = 120
EQUIVALENT = "equivalent.txt"  # marks of tools/mutation


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
            raise Mistake(
                f"{self.place}: \"{self.name}\" needs `in FILE`, `by TEST` and a line that begins with \"- \"")
        path = root / self.file
        if not path.is_file():
            raise Mistake(f"{self.place}: {self.file}: no such file")
        text, old = path.read_text(), "\n".join(self.old)
        if text.count(old) != 1:
            raise Mistake(
                f'{self.place}: "{self.name}" does not apply: its text stands {text.count(old)} times in {self.file},'
                " expected once"
            )
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


class Build:
    """A build directory of CMake and Ninja, with everything built: how it compiles a file, how it links a test."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        database = folder / "compile_commands.json"
        if not database.is_file():
            raise Mistake(f"{folder}: no compile_commands.json; configure it first")
        self.compiles, self.links = {}, {}
        for entry in json.loads(database.read_text()):
            unit = pathlib.Path(entry["file"])
            for source in [unit] if unit.is_relative_to(root) and not unit.is_relative_to(folder) else self.joined(
                unit):
                self.compiles[source] = (entry["directory"], shlex.split(entry["command"]))

    @staticmethod
    def joined(unit):
        """The files that a joined unit includes."""
        if not unit.is_file():
            return []
        return [pathlib.Path(each) for each in re.findall(r'^#include "(/.*\.cc)"$', unit.read_text(), re.M)]

    def compile(self, source, text, into):
        """Compiles `text` as if it stood in `source`; the object, or the first error."""
        if source not in self.compiles:
            raise Mistake(f"{source}: nothing compiles it; a bug has to be in a .cc file of the build")
        directory, command = self.compiles[source]
        copy, made = into / source.name, into / (source.name + ".o")
        copy.write_text(text)
        command = [word for word in command if word != "-Werror"]  # a bug may leave a name without use
        command[command.index("-o") + 1] = str(made)
        command[command.index("-c") + 1] = str(copy)
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        return (made, "") if done.returncode == 0 else (None, "".join(re.findall(r"error: .*", done.stderr)[:1]))

    def link_of(self, test):
        """The command that links the test."""
        if test not in self.links:
            done = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", test], capture_output=True, text=True,
                                  check=False)
            last = done.stdout.strip().splitlines()[-1:]
            if done.returncode != 0 or not last or " -o " not in last[0]:
                raise Mistake(f"{test}: no such test in {self.folder}")
            self.links[test] = [word for word in shlex.split(last[0]) if word not in (":", "&&")]
        return self.links[test]

    def link(self, test, made, into, options=()):
        """The test with this object before everything else."""
        binary = into / test
        command = list(self.link_of(test))
        at = command.index("-o")
        command[at + 1] = str(binary)
        first = next(i for i, word in enumerate(command) if word.endswith(".o"))
        command[first:first] = ["-Wl,-z,muldefs", *options, str(made)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Mistake(f"{test} with {made.name}: {done.stderr[-300:]}")
        return binary

    def passes(self, binary, arguments):
        try:
            return subprocess.run([binary, *arguments], cwd=self.root, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=TEST_SECONDS, check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def judge(self, source, text, test):
        """killed, survived, or does not compile: why."""
        name, *arguments = test
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            into = pathlib.Path(folder)
            made, error = self.compile(source, text, into)
            if made is None:
                return f"does not compile: {error}"
            return "survived" if self.passes(self.link(name, made, into), arguments) else "killed"


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only check that every edit applies")
    parser.add_argument("--name", default="", help="only those whose words contain this")
    args = parser.parse_args()
    folder = args.root / "tests/mutants"
    rooms = sorted(each for each in folder.glob("*.txt") if each.name != EQUIVALENT)
    files = [folder / f"{room}.txt" for room in args.rooms] or rooms
    for file in files:
        if file not in rooms:
            raise Mistake(f"{file.stem}: no such room; one of {', '.join(each.stem for each in rooms)}")
    mutants = [mutant for file in files for mutant in read(file) if args.name in mutant.name]
    for mutant in mutants:
        mutant.check(args.root)
    if args.list:
        print(f"{len(mutants)} bugs, each applies")
        return 0
    build = Build(args.root, (args.build or args.root / "build/dev").absolute())
    table, bad, began = {}, 0, time.monotonic()
    workers = concurrent.futures.ThreadPoolExecutor(max(1, args.jobs))
    whole = {(mutant.file, tuple(mutant.test)): None for mutant in mutants}
    for file, test in whole:
        source = args.root / file
        whole[file, test] = workers.submit(build.judge, source, source.read_text(), test)
    judged = [workers.submit(build.judge, args.root / mutant.file, mutant.check(args.root), mutant.test)
              for mutant in mutants]
    for (file, test), without in whole.items():
        if without.result() != "survived":
            workers.shutdown(cancel_futures=True)
            raise Mistake(f"{' '.join(test)} fails without any bug in {file}")
    for number, (mutant, judgement) in enumerate(zip(mutants, judged), 1):
        outcome = judgement.result()
        row = table.setdefault(mutant.room, {"planted": 0, "killed": 0, "survived": 0})
        row["planted"] += 1
        row["killed" if outcome == "killed" else "survived"] += 1
        bad += outcome != "killed" and mutant.why is None
        print(
            (
                f"{number}/{len(mutants)} {mutant.room}: {mutant.name}:"
                f" {outcome}{': ' + mutant.why if outcome != 'killed' and mutant.why else ''}"
            ),
            flush=True,
        )
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
