"""The runner of planted bugs, over a project of one source in a library and one test."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUG = "## {name}\nin src/a.cc\nby a_test\n- {old}\n+ {new}\n"
SOURCE = """int one() { return 1; }
int two() { return 2; }
int also_two() { return 2; }
"""
TEST = """int one();
int two();
int main() { return one() + two() - 3; }
"""


class Mutants(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for place in ("src", "tests/mutants", "build", "bin"):
            (self.folder / place).mkdir(parents=True)
        (self.folder / "src/a.cc").write_text(SOURCE)
        # The file is compiled as part of a joined unit, into a library.
        (self.folder / "build/unit.cxx").write_text(f'#include "{self.folder}/src/a.cc"\n')
        unit = f"c++ -o unit.o -c {self.folder}/build/unit.cxx"
        (self.folder / "build/compile_commands.json").write_text(
            json.dumps([{"directory": f"{self.folder}/build", "file": f"{self.folder}/build/unit.cxx",
                         "command": unit}]))
        self.link("test.o")
        self.build(TEST)

    def build(self, test):
        (self.folder / "build/test.cc").write_text(test)
        for command in (["c++", "-o", "unit.o", "-c", "unit.cxx"], ["ar", "rc", "liba.a", "unit.o"],
                        ["c++", "-o", "test.o", "-c", "test.cc"]):
            subprocess.run(command, cwd=self.folder / "build", check=True)

    def link(self, objects):
        """Makes a ninja whose `-t commands` prints a link command."""
        script = self.folder / "bin/ninja"
        script.write_text(f"#!/bin/sh\necho ': && c++ {objects} -o a_test liba.a && :'\n")
        script.chmod(0o755)

    def run_with(self, text, *arguments):
        (self.folder / "tests/mutants/room.txt").write_text(text)
        done = subprocess.run([sys.executable, ROOT / "tools/mutants.py", "--root", self.folder, "--build",
                               self.folder / "build", *arguments],
                              capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.assertEqual((self.folder / "src/a.cc").read_text(), SOURCE, "the tree is as it was")
        self.assertEqual(list((self.folder / "build").glob("tmp*")), [], "nothing is left")
        return done.returncode, done.stdout, done.stderr

    def test_killed_and_survived(self):
        code, out, _ = self.run_with(BUG.format(name="a", old="int one() { return 1; }", new="int one() { return 5; }")
                                     + BUG.format(name="b", old="int also_two() { return 2; }",
                                                  new="int also_two() { return 5; }"))
        self.assertEqual(code, 1)
        self.assertIn("1/2 room: a: killed", out)
        self.assertIn("2/2 room: b: survived", out)
        self.assertIn("1 of 2 killed", out)
        code, out, _ = self.run_with(BUG.format(name="a", old="int two() { return 2; }", new="int two() { return 5; }"))
        self.assertEqual(code, 0)

    def test_a_survivor_that_is_explained(self):
        code, out, _ = self.run_with(BUG.format(name="a", old="int also_two() { return 2; }",
                                                new="int also_two() { return 3; }") + "survives: nothing sees it\n")
        self.assertEqual(code, 0)
        self.assertIn("survived: nothing sees it", out)

    def test_an_edit_that_does_not_apply(self):
        for old in ("three", "{ return 2; }"):
            code, _, err = self.run_with(BUG.format(name="a", old=old, new="x"), "--list")
            self.assertEqual(code, 2)
            self.assertIn('room.txt:1: "a" does not apply', err)

    def test_a_bug_that_does_not_compile_is_no_kill(self):
        code, out, _ = self.run_with(BUG.format(name="a", old="int one() { return 1; }",
                                                new="int one() { return none; }"))
        self.assertEqual(code, 1)
        self.assertIn("room: a: does not compile", out)

    def test_a_file_that_nothing_compiles(self):
        (self.folder / "src/b.cc").write_text("three\n")
        code, _, err = self.run_with(BUG.format(name="a", old="three", new="four").replace("a.cc", "b.cc"))
        self.assertEqual(code, 2)
        self.assertIn("nothing compiles it", err)

    def test_a_test_that_fails_anyway(self):
        self.build(TEST.replace("- 3", "- 4"))
        code, _, err = self.run_with(BUG.format(name="a", old="int one() { return 1; }", new="int one() { return 2; }"))
        self.assertEqual(code, 2)
        self.assertIn("a_test fails without any bug in src/a.cc", err)


if __name__ == "__main__":
    unittest.main()
