"""The runner of planted bugs, over a project of one source and one test: a shell script is the build, another the test."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUG = "## {name}\nin src/a.cc\nby a_test\n- {old}\n+ {new}\n"


class Mutants(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for place in ("src", "tests/mutants", "build", "bin"):
            (self.folder / place).mkdir(parents=True)
        (self.folder / "src/a.cc").write_text("one\ntwo\ntwo\n")
        self.script("bin/cmake", "grep -q uncompilable src/a.cc && exit 1; exit 0")
        self.script("build/a_test", f"grep -q one {self.folder}/src/a.cc")
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)
        subprocess.run(["git", "add", "-A"], cwd=self.folder, check=True)
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"], cwd=self.folder, check=True)

    def script(self, name, text):
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def run_with(self, text, *arguments):
        (self.folder / "tests/mutants/room.txt").write_text(text)
        done = subprocess.run([sys.executable, ROOT / "tools/mutants.py", "--root", self.folder, "--build", self.folder / "build", *arguments],
                              capture_output=True, text=True, env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
        self.assertEqual((self.folder / "src/a.cc").read_text(), "one\ntwo\ntwo\n", "the tree is as it was")
        return done.returncode, done.stdout, done.stderr

    def test_killed_and_survived(self):
        code, out, _ = self.run_with(BUG.format(name="a", old="one", new="none?") + BUG.format(name="b", old="one", new="one three"))
        self.assertEqual(code, 1)
        self.assertIn("1/2 room: a: survived", out)  # "none?" still has "one" in it
        code, out, _ = self.run_with(BUG.format(name="a", old="one", new="three"))
        self.assertEqual(code, 0)
        self.assertIn("1/1 room: a: killed", out)
        self.assertIn("1 of 1 killed", out)

    def test_a_survivor_that_is_explained(self):
        code, out, _ = self.run_with(BUG.format(name="a", old="one", new="one four") + "survives: nothing sees it\n")
        self.assertEqual(code, 0)
        self.assertIn("survived: nothing sees it", out)

    def test_an_edit_that_does_not_apply(self):
        for old in ("three", "two"):
            code, _, err = self.run_with(BUG.format(name="a", old=old, new="x"), "--list")
            self.assertEqual(code, 2)
            self.assertIn('room.txt:1: "a" does not apply', err)

    def test_a_bug_that_does_not_compile_is_no_kill(self):
        code, out, _ = self.run_with(BUG.format(name="a", old="one", new="uncompilable"))
        self.assertEqual(code, 1)
        self.assertIn("does not compile", out)

    def test_a_file_with_changes_of_its_own(self):
        subprocess.run(["git", "rm", "-q", "--cached", "src/a.cc"], cwd=self.folder, check=True)
        code, _, err = self.run_with(BUG.format(name="a", old="one", new="three"))
        self.assertEqual(code, 2)
        self.assertIn("commit them first", err)

    def test_a_test_that_fails_anyway(self):
        self.script("build/a_test", "exit 1")
        code, _, err = self.run_with(BUG.format(name="a", old="one", new="three"))
        self.assertEqual(code, 2)
        self.assertIn("a_test fails without any bug", err)


if __name__ == "__main__":
    unittest.main()
