"""Compiles one mutant, links it into the tests that reach it, and runs them until one fails."""
import json
import pathlib
import re
import tempfile
import threading
import time

import mutants
import suites

LINKED = ("-Wl,--strip-debug",)  # half of the bytes to write


class Verdict:
    def __init__(self, mutant):
        self.mutant, self.outcome, self.by, self.ran, self.error, self.seconds = mutant, "", None, [], "", 0.0


class Trials:
    def __init__(self, root, build, tests, bound_seconds, folder):
        self.root, self.build, self.tests, self.bound_seconds = root, build, tests, bound_seconds
        self.runs = suites.Runs(root)
        self.folder, self.lock = folder, threading.Lock()
        self.trusted, self.unfit = set(), set()
        self.measured = folder / "seconds.json"
        self.seconds = json.loads(self.measured.read_text()) if self.measured.is_file() else {}
        for test in tests:
            if test.name in self.seconds:
                test.take(self.seconds[test.name])

    def program_of(self, test):
        return "spillway" if test.with_processes else test.program

    def reaches(self, source):
        """True if a test is linked with the library that holds the source."""
        _, command = self.build.compiles[source]
        made = command[command.index("-o") + 1]
        library = made.split("/CMakeFiles/")[0] + "/lib" if "/CMakeFiles/" in made else "lib"
        return lambda test: any(word.startswith(library) and word.endswith(".a")
                                for word in self.build.link_of(self.program_of(test)))

    def verdict_of(self, mutant):
        verdict, began = Verdict(mutant), time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            into = pathlib.Path(folder)
            made, verdict.error = self.build.compile(mutant.source, mutant.text(), into)
            if made is None:
                verdict.outcome = "does not compile"
                return verdict
            verdict.outcome = "survived"
            programs = {}
            for test in suites.plan(self.tests, self.root, mutant.path, self.reaches(mutant.source),
                                    self.bound_seconds):
                if self.runs.stopped or test.name in self.unfit:
                    continue
                name = self.program_of(test)
                if name not in programs:
                    try:
                        programs[name] = self.build.link(name, made, into, LINKED)
                    except mutants.Mistake as mistake:
                        verdict.outcome, verdict.error = "does not compile", str(mistake)
                        return verdict
                if self.passed(test, programs[name]):
                    verdict.ran.append(test.name)
                elif self.because_of(test, mutant, programs[name], made, into):
                    verdict.outcome, verdict.by = "noticed", test.name
                    break
        verdict.seconds = time.monotonic() - began
        return verdict

    def passed(self, test, program):
        passed, seconds = self.runs.passes(test, program)
        if passed:
            with self.lock:
                self.trusted.add(test.name)
                if test.name not in self.seconds:
                    self.seconds[test.name] = round(seconds, 1)
                    test.take(self.seconds[test.name])
        return passed

    def because_of(self, test, mutant, program, made, into):
        """True if a failure is that of the mutant: the test passes without it, and fails twice if it depends on the
        machine.
        """
        if self.runs.stopped:
            return False
        if test.name not in self.trusted and not self.passed(test, self.folder.parent / self.output(test)):
            with self.lock:
                self.unfit.add(test.name)
            return False
        if (test.alone or test.with_processes) and self.passed(test, program):
            return False
        # Static initialization of a source happens twice: once for the file in its library.
        if b".init_array" in made.read_bytes():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                plain, _ = self.build.compile(mutant.source, mutant.before.encode("latin-1").decode(),
                                              pathlib.Path(folder))
                if plain is not None and not self.passed(test,
                                                         self.build.link(self.program_of(test), plain,
                                                                         pathlib.Path(folder), LINKED)):
                    return False
        return True

    def output(self, test):
        command = self.build.link_of(self.program_of(test))
        return command[command.index("-o") + 1]

    def keep(self):
        part = self.measured.with_suffix(".part")
        part.write_text(json.dumps(self.seconds, indent=0, sort_keys=True))
        part.rename(self.measured)

    @staticmethod
    def leftovers(folder):
        """Folders of an earlier run that was killed."""
        return [each for each in folder.iterdir() if each.is_dir() and re.match(r"tmp", each.name)]
