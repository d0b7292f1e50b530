"""The output of a build: from recorded lines of ninja, and from a ninja that is a script."""
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import build_progress  # noqa: E402

M = build_progress.MARK
UNITS = [f"src/a/CMakeFiles/a.dir/{index}.cc.o" for index in range(20)]
BUILT = [f"{M}Building CXX object {unit}\n" for unit in UNITS]


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def setUp(self):
        self.now, self.log = 0.0, io.StringIO()

    def filtered(self, lines, out, seconds=60, pace=1):
        """The output for these lines, each unit after `pace` times its estimate, one at a time."""
        progress = build_progress.Progress(dict.fromkeys(UNITS, seconds), 1, out, lambda: self.now)
        output = build_progress.Filter(progress, self.log)
        for line in lines:
            self.now += seconds * pace if line in BUILT else 0
            output.line(line)
        output.end_step()
        self.output = output
        return out.getvalue()

    def test_a_line_per_tenth_and_nothing_else(self):
        told = self.filtered(["ninja: Entering directory `build/dev'\n", f"{M}Re-checking globbed directories...\n",
                              *BUILT, f"{M}Linking CXX executable a\n"], io.StringIO())
        self.assertEqual(len(told.splitlines()), 10, told)
        self.assertEqual(told.splitlines()[0], "dev: compiled 2 of 20 units, about 18 minutes left")
        self.assertEqual(told.splitlines()[8], "dev: compiled 18 of 20 units, about 2 minutes left")
        self.assertEqual(told.splitlines()[9], "dev: compiled 20 of 20 units; linking")
        self.assertNotIn(M, self.log.getvalue())
        self.assertIn("Linking CXX executable a\n", self.log.getvalue())

    def test_a_terminal_has_one_line(self):
        told = self.filtered(BUILT[:3], Terminal())
        self.assertNotIn("\n", told)
        self.assertEqual(told.split("\r\x1b[K")[1:],
                         [f"dev: compiled {count} of 20 units, about {20 - count} minutes left" for count in (1, 2, 3)])

    def test_the_pace_of_this_machine_counts(self):
        slow = self.filtered(BUILT[:10], io.StringIO(), pace=3).splitlines()[-1]
        self.assertEqual(slow, "dev: compiled 10 of 20 units, about 28 minutes left")
        fast = self.filtered(BUILT[:10], io.StringIO(), pace=0.1).splitlines()[-1]
        self.assertEqual(fast, "dev: compiled 10 of 20 units, about 2 minutes left")

    def test_warnings_are_kept_and_counted(self):
        told = self.filtered([BUILT[0], "a.cc:1: warning: unused\n", BUILT[1]], io.StringIO())
        self.assertNotIn("unused", told)
        self.assertEqual((self.output.spoke, self.output.failed), (1, False))
        self.assertIn("a.cc:1: warning: unused\n", self.log.getvalue())

    def test_what_fails_is_printed_whole(self):
        failure = [f"FAILED: {UNITS[1]} \n", "c++ -c b.cc\n", "b.cc:1: warning: odd\n", "b.cc:2: error: wrong\n"]
        told = self.filtered([BUILT[0], "a.cc:1: warning: unused\n", BUILT[1], *failure, BUILT[2],
                              "ninja: build stopped: subcommand failed.\n"], io.StringIO())
        self.assertIn("".join(failure), told)
        self.assertNotIn("unused", told)
        told = self.filtered([BUILT[0], *failure], Terminal())
        self.assertTrue(told.endswith("\r\x1b[K" + "".join(failure)), told)

    def test_an_error_of_ninja_itself(self):
        self.assertEqual(self.filtered(["ninja: error: unknown target 'x'\n"], io.StringIO()),
                         "ninja: error: unknown target 'x'\n")

    def test_jobs_by_memory(self):
        self.assertEqual([build_progress.jobs_for(megabytes, 4) for megabytes in (100, 4000, 16000)], [1, 2, 4])

    def test_words_for_times(self):
        self.assertEqual([build_progress.about(seconds) for seconds in (1, 89, 91, 600)],
                         ["about a minute", "about a minute", "about 2 minutes", "about 10 minutes"])
        self.assertEqual([build_progress.spent(seconds) for seconds in (3, 130)], ["3 s", "2 minutes"])


NINJA = f"""#!/bin/bash
case " $* " in
  *" -n "*) printf 'Building CXX object %s\\n' a.o b.o c.o; echo 'Linking CXX executable x'; exit 0 ;;
esac
[ "$STOPS" ] && kill -INT $PPID && exit 130
printf '{M}Building CXX object %s\\n' a.o b.o
[ -z "$BREAKS" ] || {{ echo "FAILED: c.o"; echo "c.cc:1: error: wrong"; exit 1; }}
printf '{M}Building CXX object c.o\\nc.cc:1: warning: odd\\n{M}Linking CXX executable x'
"""


class Build(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.release = self.folder / "release"
        self.release.mkdir()
        (self.folder / "ninja").write_text(NINJA)
        (self.folder / "ninja").chmod(0o755)

    def build(self, *words, **environment):
        done = subprocess.run([sys.executable, ROOT / "tools/build_progress.py", self.release, *words],
                              capture_output=True, text=True, check=False, timeout=60,
                              env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "BREAKS": "",
                                   "STOPS": "", **environment})
        self.assertEqual(done.stdout, "")
        return done.returncode, done.stderr

    def test_it_says_before_what_it_takes(self):
        (self.release / ".ninja_log").write_text(
            "# ninja log v5\n0\t300000\t0\ta.o\tx\n0\t600000\t0\tb.o\tx\n0\t900000\t0\tc.o\tx\n")
        code, told = self.build("--jobs", "2")
        self.assertEqual(code, 0)
        disk = 3 * build_progress.COSTS["release"].megabytes
        self.assertIn(
            f"dev: building (release): 3 units to compile, about 15 minutes, 2 at a time, about {disk} MB of disk\n",
            told)
        self.assertRegex(told.splitlines()[-1],
                         f"^dev: compiled 3 units in \\d s; warnings of 1 commands are in {self.release}/build.log$")
        self.assertIn("c.cc:1: warning: odd\nLinking CXX executable x\n", (self.release / "build.log").read_text())

    def test_a_failure_is_the_end(self):
        code, told = self.build(BREAKS="1")
        self.assertEqual(code, 1)
        self.assertIn("FAILED: c.o\nc.cc:1: error: wrong\n", told)
        self.assertEqual(told.splitlines()[-1],
                         f"dev: the build failed; the output of all commands is in {self.release}/build.log")

    def test_an_interrupt(self):
        code, told = self.build(STOPS="1")
        self.assertEqual(code, 130)
        self.assertNotIn("Traceback", told)


if __name__ == "__main__":
    unittest.main()
