"""`./dev` in a copy of its own files, with programs that record how they were called in place of apt-get, cmake, npm
and the others.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Programs of the machine that the script itself uses.
REAL = ("bash", "cat", "cmp", "cp", "dirname", "env", "grep", "nproc", "sed", "sort", "tail", "find", "xargs", "echo",
        "basename", "mkdir")
RECORD = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\n'
# Everything is installed but what MISSING names; nothing is downloaded. FAILS: the words of a call that fails.
PROGRAMS = {
    "id": 'echo "${UID_HERE:-0}"',
    "sudo": 'exec "$@"',
    "dpkg-query": (
        'grep -oE "^[a-z][^ ]*" tools/packages.txt | grep -vxF "${MISSING:-none}" | sed "s/.*/ &=installed /"'
    ),
    "apt-get": (
        'case "$*" in *${FAILS:-nothing}*) echo "E: Unable to locate package x"; exit 100 ;; esac\ncase "$*" in'
        ' *--print-uris*) echo "0 upgraded, 7 newly installed, 0 to remove"; echo "Need to get 5 MB/9 MB of'
        ' archives."\necho "After this operation, 30 MB of additional disk space will be used." ;; *update*) echo noise'
        " ;; esac"
    ),
    "npm": 'case "npm $*" in *${FAILS:-nothing}*) echo "npm error: no registry"; exit 1 ;; esac',
    "node": "mkdir -p build/ui; echo 'dashboard: 1 bytes gzipped'",
    "cmake": (
        'case "cmake $*" in *${FAILS:-nothing}*) echo "CMake Error: told to"; exit 1 ;; esac; mkdir -p'
        ' "build/$2/bench"; echo configured'
    ),
    "python3": "",
    "ctest": 'case "$*" in *" -N "*) echo "  Test #1: ${CHOSEN:-e2e_up}" ;; *) echo "100% tests passed" ;; esac',
    "true": "",
}
LISTS = {"build": ("g++", "libfmt-dev"), "test": ("clang-19", "qemu-system-x86"), "package": ("patchelf", "man-db")}


@unittest.skipUnless(pathlib.Path("/etc/debian_version").exists(), "./dev installs packages on Debian only")
class Dev(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="spillway-dev-")))
        self.bin = self.folder / "bin"
        self.tree = self.folder / "tree"
        for place in (self.bin, self.tree / "ui/node_modules", self.tree / "tools",
                      self.tree / "build/release/src/apps"):
            place.mkdir(parents=True)
        for name in ("dev", "tools/packages.txt"):
            shutil.copy2(ROOT / name, self.tree / name)
        for name in ("package-lock.json", "node_modules/.installed-lock"):
            (self.tree / "ui" / name).write_text("{}\n")
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, body in PROGRAMS.items():
            self.program(self.bin / name, body)
        for path in ("build/release/src/apps/spillway", "tools/peers"):
            self.program(self.tree / path, "echo demonstrated")
        self.calls = self.folder / "calls"

    def program(self, path, body):
        path.write_text(RECORD + body + "\n")
        path.chmod(0o755)

    def dev(self, *words, code=0, **environment):
        """Standard error; the calls of programs are in self.made."""
        self.calls.write_text("")
        done = subprocess.run([self.tree / "dev", *words], capture_output=True, text=True, check=False, timeout=60,
                              stdin=subprocess.DEVNULL,
                              env={"PATH": str(self.bin), "CALLS": str(self.calls), "HOME": str(self.folder),
                                   **environment})
        self.made = self.calls.read_text().splitlines()
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.printed = done.stdout
        return done.stderr

    def installed(self):
        return {word for call in self.made if call.startswith("apt-get install -y") for word in call.split()[2:]
                if not word.startswith("-")}

    def test_each_command_installs_its_lists_and_no_other(self):
        everything = "\n".join(name for names in LISTS.values() for name in names)
        for words, lists in ((["demo"], ["build"]), (["build", "release"], ["build"]), (["swarm"], ["build"]),
                             (["build"], ["build", "test"]),
                             (["unit"], ["build", "test"]), (["bench"], ["build", "test"]),
                             (["test"], ["build", "test", "package"]),
                             (["test", "--all"], ["build", "test", "package"]),
                             (["setup"], ["build", "test", "package"])):
            with self.subTest(words=words):
                told = self.dev(*words, MISSING=everything)
                self.assertEqual(self.installed(), {name for each in lists for name in LISTS[each]})
                self.assertIn("(with what they need: 7 packages, 5 MB to download, 30 MB of disk)", told)
                self.assertNotIn("noise", told)

    def test_every_package_is_in_one_list(self):
        names = [line.split()[0] for line in (ROOT / "tools/packages.txt").read_text().splitlines() if line
                 and line[0] not in "#["]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([line for line in (ROOT / "tools/packages.txt").read_text().splitlines()
                          if line.startswith("[")], [f"[{each}]" for each in LISTS])

    def test_nothing_is_installed_twice(self):
        self.dev("demo")
        self.assertEqual(self.installed(), set())
        self.assertFalse([call for call in self.made if call.startswith("apt-get")])
        self.assertEqual(self.printed, "demonstrated\n")
        self.assertIn("python3 tools/build_progress.py build/release spillway", self.made)

    def test_a_program_on_the_path_counts_as_its_package(self):
        self.dev("demo", MISSING="npm\nnodejs")
        self.assertEqual(self.installed(), set())
        (self.bin / "npm").unlink()
        self.dev("demo", MISSING="npm\nnodejs")
        self.assertEqual(self.installed(), {"npm"})

    def test_a_user_installs_and_runs_the_demo_by_sudo(self):
        told = self.dev("demo", UID_HERE="1000", MISSING="g++")
        self.assertTrue(any(call.startswith("sudo env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install -y")
                            for call in self.made), self.made)
        self.assertIn("sudo build/release/src/apps/spillway demo", self.made)
        self.assertIn("may ask for your password again", told)
        self.dev("demo", "--fast")
        self.assertFalse([call for call in self.made if call.startswith("sudo")])
        self.assertIn("spillway demo --fast", self.made)

    def test_neither_root_nor_sudo(self):
        (self.bin / "sudo").unlink()
        told = self.dev("demo", UID_HERE="1000", code=1)
        self.assertEqual(told, "dev: the demo makes cgroups: run it as root, or install sudo\n")
        told = self.dev("build", "release", UID_HERE="1000", MISSING="g++\nlibfmt-dev", code=1)
        self.assertEqual(
            told,
            (
                "dev: neither root nor sudo is at hand; as root, run: apt-get install --no-install-recommends g++"
                " libfmt-dev\n"
            ),
        )
        self.dev("build", "release", UID_HERE="1000")

    def test_it_waits_for_another_installation(self):
        self.dev("demo", MISSING="g++")
        self.assertTrue(all("-oDPkg::Lock::Timeout=600" in call for call in self.made
                            if call.startswith("apt-get install")), self.made)

    def test_what_apt_says_is_printed_if_it_fails(self):
        told = self.dev("demo", MISSING="g++", FAILS="--print-uris", code=1)
        self.assertEqual(told.splitlines()[-1], "dev: apt-get cannot install g++: E: Unable to locate package x")
        told = self.dev("demo", MISSING="g++", FAILS="-qq --no-install", code=1)
        self.assertIn("E: Unable to locate package x\ndev: apt-get could not install: g++", told)

    def test_without_a_dashboard_the_last_line_says_so(self):
        (self.bin / "npm").unlink()
        for words in (["demo"], ["build", "release"], ["test"]):
            told = self.dev(*words, MISSING="npm\ng++", FAILS="npm")  # apt-get has no npm
            self.assertEqual(self.installed(), {"g++"})
            self.assertEqual(
                told.splitlines()[-1],
                (
                    "dev: npm is not installed: the program has no dashboard; to mend it: sudo apt-get install npm,"
                    " then run the same command again"
                ),
            )
        self.assertIn("npm is not installed",
                      self.dev("demo", CI="true", MISSING="npm", FAILS="npm", code=1).splitlines()[-1])

    def test_a_registry_that_does_not_answer(self):
        (self.tree / "ui/node_modules/.installed-lock").unlink()
        told = self.dev("demo", FAILS="npm ci")
        self.assertIn("npm error: no registry\n", told)
        self.assertEqual(
            told.splitlines()[-1],
            (
                "dev: npm could not install what ui/package-lock.json names: the program has no dashboard; to mend it:"
                " run the same command again"
            ),
        )
        self.dev("demo")
        self.assertIn("npm ci --ignore-scripts --no-audit --no-fund --loglevel=error", self.made)
        self.dev("demo")
        self.assertFalse([call for call in self.made if call.startswith("npm")])

    def test_every_configuration_sets_whether_warnings_are_errors(self):
        for words, environment, value in ((["build"], {}, "OFF"), (["build"], {"CI": "true"}, "ON"),
                                          (["build"], {"SPILLWAY_WERROR": "ON"}, "ON"),
                                          (["build"], {"CI": "true", "SPILLWAY_WERROR": "OFF"}, "OFF"),
                                          (["demo"], {}, "OFF"), (["test"], {}, "OFF"),
                                          (["unit", "tsan"], {}, "OFF"), (["bench"], {}, "OFF")):
            self.dev(*words, **environment)
            configured = [call for call in self.made if call.startswith("cmake --preset")]
            self.assertTrue(configured)
            for call in configured:
                self.assertEqual([word for word in call.split() if "WERROR" in word], [f"-DSPILLWAY_WERROR={value}"],
                                 (words, environment))
        self.assertEqual(self.dev("build", SPILLWAY_WERROR="yes", code=1).splitlines()[-1],
                         "dev: SPILLWAY_WERROR is 'yes'; expected ON or OFF")

    def test_cmake_is_quiet_unless_it_fails(self):
        self.assertNotIn("configured", self.dev("build"))
        self.assertIn("CMake Error: told to\ndev: configuration failed\n",
                      self.dev("build", FAILS="cmake --preset", code=1))

    def test_ctest_has_the_last_word(self):
        self.assertEqual(self.dev("test"), "")
        self.assertTrue(self.printed.endswith("100% tests passed\n"), self.printed)
        self.assertIn("ctest --test-dir build/dev --output-on-failure --no-tests=error --parallel 9 -LE long",
                      (self.dev("test", SPILLWAY_JOBS="3"), self.made)[1])
        self.assertIn("not root: tests that write cgroups are skipped", self.dev("test", UID_HERE="1000"))

    def test_suites_with_processes_run_what_users_run(self):
        for chosen, built in (("e2e_up", ["build/dev", "build/release spillway"]), ("vectors_api", ["build/dev"])):
            self.dev("test", "name", CHOSEN=chosen)
            self.assertEqual([call.split("build_progress.py ")[1] for call in self.made if "build_progress.py" in call],
                             built)
            self.assertLess(self.made.index([call for call in self.made if "build_progress.py" in call][-1]),
                            self.made.index(
                                "ctest --test-dir build/dev --output-on-failure --no-tests=error --parallel %d -R name"
                                % (3 * len(os.sched_getaffinity(0)))))

    def test_tests_are_configured_where_they_are_asked_for(self):
        self.dev("unit", "release")
        self.assertTrue(any("-DSPILLWAY_TESTS=ON" in call for call in self.made))
        self.dev("bench")
        self.assertTrue(any("-DSPILLWAY_BENCH=ON" in call for call in self.made))

    def test_unknown_words(self):
        told = self.dev("tets", code=2)
        self.assertTrue(told.startswith("dev: unknown command 'tets'\nusage: ./dev COMMAND"), told)
        self.assertEqual(self.dev("build", "fast", code=1).splitlines()[-1],
                         "dev: unknown preset 'fast'; one of dev release asan tsan fuzz coverage tidy")
        self.dev("help")
        self.assertIn("usage: ./dev COMMAND", self.printed)


if __name__ == "__main__":
    unittest.main()
