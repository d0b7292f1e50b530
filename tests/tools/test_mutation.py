"""Mutants made by a machine, over a project of one source in a library, one test program and one suite with
processes.
"""
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/mutation"))
import draw  # noqa: E402
import equivalents  # noqa: E402
import places  # noqa: E402
import suites  # noqa: E402

MACROS = """namespace std { template <class T> T&& move(T& t) { return static_cast<T&&>(t); } template <class T> struct decay { using type = T; };
template <class T> struct decay<T&> { using type = T; }; template <class T> using decay_t = typename decay<T>::type; }
struct Error {};
struct Outcome { bool good = true; Outcome() = default; Outcome(Error) : good(false) {} explicit operator bool() const { return good; }
                 Error error() const { return {}; } };
struct Number : Outcome { int n = 0; Number(int of) : n(of) {} Number(Error e) : Outcome(e) {} int& operator*() { return n; } };
#define SPILLWAY_TRY(name, ...) auto try_##name = (__VA_ARGS__); if (!try_##name) return try_##name.error(); auto name = *std::move(try_##name)
#define SPILLWAY_TRY_VOID(...) do { if (auto tried = (__VA_ARGS__); !tried) return tried.error(); } while (false)
#define OTHER_TWICE(x) ((x) < 5 ? (x) : (x) + 1)
"""

# A statement of each kind: its function, the kind, the line, the line with the change.
EACH = """
namespace rules {
struct Held {
  int count = 0;
  void take(int from, int upto) { count += from; count += upto; }
  void clear() { count = 0; }
};
void note(bool, Held&);
int sum(int a, long b);
bool ready(int);
Number read_it(bool);
int call(Held& held) { note(true, held); return 0; }
void release(Held& held) { held.clear(); }
void assigned(Held& held, bool to) { held.count -= to; }
void negated(bool x, Held& held) { if (int n = 0; x && n == n) { note(x, held); } else { note(!x, held); } }
void kept(bool x, Held& held) { if (x) note(x, held); }
bool early(bool x, Held& held) { if (x) return true; note(x, held); return false; }
Outcome swallowed(Number& x) { if (!x) return x.error(); return {}; }
Outcome tried() { SPILLWAY_TRY(x, read_it(true)); static_cast<void>(x); return {}; }
Outcome tried_void() { SPILLWAY_TRY_VOID(read_it(false)); return {}; }
bool border(int a, int b) { return a <= b; }
int off(bool) { return 41; }
int turned(bool x, int a, int b) { return x ? a : b; }
void swapped(Held& held, int a, int b) { held.take(a, b); }
void once(Held& held, const bool (&all)[2]) { for (bool y : all) note(y, held); }
void last(Held& held, bool x) { while (true) { note(x, held); if (held.count) break; } }
int alone(int a) { return OTHER_TWICE(a); }
}  // namespace rules
"""
EXPECTED = [
    ("call", "call", "int call(Held& held) { ; return 0; }"),
    ("release", "release", "void release(Held& held) { ; }"),
    ("assigned", "assignment", "void assigned(Held& held, bool to) { ; }"),
    (
        "negated",
        "negation",
        (
            "void negated(bool x, Held& held) { if (int n = 0; !(x && n == n)) { note(x, held); } else { note(!x,"
            " held); } }"
        ),
    ),
    ("negated", "branch", "void negated(bool x, Held& held) { if (int n = 0; x && n == n) { note(x, held); }  }"),
    (
        "negated",
        "branch",
        "void negated(bool x, Held& held) { if (int n = 0; x && n == n) {} else { note(!x, held); } }",
    ),
    ("kept", "branch", "void kept(bool x, Held& held) { ; }"),
    ("early", "return", "bool early(bool x, Held& held) { ; note(x, held); return false; }"),
    ("swallowed", "swallow", "Outcome swallowed(Number& x) { ; return {}; }"),
    (
        "tried",
        "swallow",
        (
            "Outcome tried() { auto x = [](auto tried) { return tried ? *std::move(tried) :"
            " std::decay_t<decltype(*tried)>{}; }(read_it(true)); static_cast<void>(x); return {}; }"
        ),
    ),
    ("tried_void", "swallow", "Outcome tried_void() { static_cast<void>(read_it(false)); return {}; }"),
    ("border", "comparison", "bool border(int a, int b) { return a < b; }"),
    ("off", "constant", "int off(bool) { return 42; }"),
    ("off", "constant", "int off(bool) { return 40; }"),
    ("turned", "ternary", "int turned(bool x, int a, int b) { return x ? b : a; }"),
    ("swapped", "arguments", "void swapped(Held& held, int a, int b) { held.take(b, a); }"),
    (
        "once",
        "round",
        (
            "void once(Held& held, const bool (&all)[2]) { { int mutation_round = 0; for (bool y : all) { if"
            " (mutation_round++ > 0) break; note(y, held); } } }"
        ),
    ),
    ("last", "branch", "void last(Held& held, bool x) { while (true) { note(x, held); if (held.count) ; } }"),
]

# A project whose test notices what one() and two() do, and not what three() does.
SOURCE = """int one(int x) { if (x < 3) return 1; return 2; }
int two(bool x) { return x ? 3 : 4; }
int three(int x) {
  x += 5;
  return x;
}
"""
TEST = """#include <unistd.h>
#include <cstdlib>
int one(int); int two(bool);
int main() {
  if (std::getenv("HANGS")) pause();
  return one(2) == 1 && one(3) == 2 && one(4) == 2 && two(true) == 3 && two(false) == 4 ? 0 : 1;
}
"""


class Changes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def places_of(self, text, options="-std=c++17"):
        source = self.folder / "a.cc"
        source.write_text(text)
        made = places.Places({source: (str(self.folder), ["c++", *options.split(), "-o", "a.o", "-c", str(source)])},
                             self.folder / "places")
        return made.of(source)

    def test_each_kind(self):
        text = MACROS + EACH
        found = [(place["function"], change["kind"], change["edits"]) for place in self.places_of(text)
                 for change in place["changes"]]
        made = [(function, kind, places.difference(text, edits)[1]) for function, kind, edits in found]
        for function, kind, line in EXPECTED:
            self.assertIn(("rules::" + function, kind, [line]), made)
        self.assertEqual({kind for _, kind, _ in EXPECTED}, set(places.KINDS), "every kind is tested")
        self.assertEqual([each for each in made if each[0] == "rules::alone"], [],
                         "what a macro expands to is left alone")
        self.assertEqual([each[1] for each in made if each[0] == "rules::tried"].count("swallow"), 1)
        for _, kind, edits in found:
            (self.folder / "b.cc").write_text(places.applied(text, edits))
            done = subprocess.run(["c++", "-std=c++17", "-fsyntax-only", "-w", self.folder / "b.cc"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{kind}: {places.difference(text, edits)}: {done.stderr}")

    def test_the_statements_of_a_lambda_and_of_branches_without_braces_are_places(self):
        text = (
            "void f(int); void g(int a) {\n  auto h = [&](int b) {\n    f(b);\n  };\n  if (a > 1)\n    for (int i = 0;"
            " i < a; ++i)\n      f(i);\n  else\n    h(a);\n}\n"
        )
        self.assertEqual([place["line"] for place in self.places_of(text)], [3, 5, 6, 7, 9])
        edits = next(change["edits"] for place in self.places_of(text) if place["line"] == 6
                     for change in place["changes"] if change["kind"] == "round")
        self.assertIn("for (int i = 0; i < a; ++i)\n      { if (mutation_round++ > 0) break; f(i); } }\n  else",
                      places.applied(text, edits))

    def test_offsets_count_bytes(self):
        text = "// Größe – ein Maß.\nint f(int x) { return x + 1; }\n"
        change = self.places_of(text)[0]["changes"][0]
        self.assertEqual(places.applied(text.encode().decode("latin-1"), change["edits"]).encode("latin-1").decode(),
                         text.replace("1", "2"))

    def test_a_source_is_parsed_once(self):
        parsed = self.places_of(SOURCE)
        with unittest.mock.patch.object(places.Places, "parse", side_effect=AssertionError):
            self.assertEqual(self.places_of(SOURCE), parsed)

    def test_a_source_that_does_not_parse_is_named(self):
        with self.assertRaisesRegex(places.Unreadable, "a.cc: .*unknown_t"):
            self.places_of("unknown_t f();\n")


class Draw(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # Nine statements in two sources, of which one has declarations that are none.
        self.texts = {
            "src/policy/a.cc": (
                "int a;\nint b;\nvoid f(int);\nvoid g(int x) {\n  f(x);\n  f(x);\n  f(x);\n  f(x);\n  f(x);\n}\n"
            ),
            "src/store/b.cc": "void f(int);\nvoid h(int x) {\n  f(x);\n  f(x);\n  f(x);\n  f(x);\n}\n",
        }
        self.files = [self.root / name for name in self.texts]
        for file in self.files:
            file.parent.mkdir(parents=True)
            file.write_text(self.texts[str(file.relative_to(self.root))])
        cache = places.Places({file: ("/", ["c++", "-c", str(file), "-o", "x.o"]) for file in self.files},
                              self.root / "places")
        self.places = {file: cache.of(file) for file in self.files}

    def drawn(self, seed, count, files=None):
        found = draw.mutants(self.root, files or self.files, self.places.get, seed)
        return [(mutant.path, mutant.line) for mutant, _ in zip(found, range(count))]

    def test_a_seed_is_a_sample(self):
        self.assertEqual(self.drawn(1, 6), self.drawn(1, 6))
        self.assertEqual(self.drawn(1, 6), self.drawn(1, 9)[:6], "a smaller one is the beginning of a larger one")
        self.assertNotEqual(self.drawn(1, 6), self.drawn(2, 6))

    def test_each_statement_is_as_likely(self):
        counted = collections.Counter(place for seed in range(4500) for place in self.drawn(seed, 1))
        self.assertEqual(len(counted), 9)
        for place, times in counted.items():
            self.assertTrue(400 < times < 600, f"{place}: {times} of 4500, expected some 500")

    def test_the_sources_of_a_module(self):
        self.assertEqual(draw.sources(self.root, set(self.files), "store"), [self.root / "src/store/b.cc"])
        self.assertEqual(draw.sources(self.root, set(self.files)), self.files)


class Plan(unittest.TestCase):
    def test_its_own_room_then_its_users_and_processes_last(self):
        root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (root / "tools").mkdir()
        (root / "tools/layers.txt").write_text(
            "policy/a: base\npolicy/b: base\nagent/x: policy/a base  # and more\nsim: policy/* base\n")
        tests = []
        for name, room, seconds, label in (("b_test", "policy/b", 1, "unit"), ("sim_test", "sim", 10, "sim"),
                                           ("agent_test", "agent", 20, "unit"), ("a_test", "policy/a", 90, "unit"),
                                           ("e2e_scheduler", "", 9, "e2e"), ("e2e_bounds", "", 1, "e2e"),
                                           ("apart_test", "client", 1, "unit"), ("long_test", "agent", 500, "unit")):
            test = suites.Test(name, [name], {"LABELS": [label]}, root)
            test.rooms, test.seconds = [room], seconds
            tests.append(test)
        plan = suites.plan(tests, root, "src/policy/a/x.cc", lambda test: test.name != "apart_test", 150)
        self.assertEqual([test.name for test in plan], ["a_test", "agent_test", "sim_test", "e2e_scheduler"])
        plan = suites.plan(tests, root, "src/wire/x.cc", lambda test: test.name in ("b_test", "apart_test"), 150)
        self.assertEqual([test.name for test in plan], ["apart_test", "b_test", "e2e_bounds"])


class Tool(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.build = self.root / "build/dev"
        for place in ("src/policy", "tests/mutants", "build/dev/tests/policy", "bin"):
            (self.root / place).mkdir(parents=True)
        self.source = self.root / "src/policy/a.cc"
        self.source.write_text(SOURCE)
        (self.build / "unit.cxx").write_text(f'#include "{self.source}"\n')
        made = "src/policy/CMakeFiles/spillway_policy.dir/unit.o"
        (self.build / made).parent.mkdir(parents=True)
        (self.build / "compile_commands.json").write_text(json.dumps(
            [{"directory": str(self.build), "file": str(self.build / "unit.cxx"),
              "command": f"c++ -o {made} -c {self.build}/unit.cxx"}]))
        (self.build / "test.cc").write_text(TEST)
        for command in (f"c++ -o {made} -c unit.cxx", f"ar rc src/policy/libspillway_policy.a {made}",
                        "c++ -o test.o -c test.cc",
                        "c++ test.o -o tests/policy/a_test src/policy/libspillway_policy.a"):
            subprocess.run(command.split(), cwd=self.build, check=True)
        self.says("ninja", ": && c++ test.o -o tests/policy/a_test src/policy/libspillway_policy.a && :")
        self.ctest()

    def says(self, program, text):
        script = self.root / "bin" / program
        script.write_text(f"#!/bin/sh\ncat <<'EOT'\n{text}\nEOT\n")
        script.chmod(0o755)

    def ctest(self, environment=()):
        self.says("ctest",
                  json.dumps({"tests": [{"name": "a_test", "command": [str(self.build / "tests/policy/a_test")],
                                         "properties": [
            {"name": "LABELS", "value": ["unit"]}, {"name": "WORKING_DIRECTORY", "value": str(self.root)},
            {"name": "ENVIRONMENT", "value": list(environment)}]}]}))

    def command(self, *arguments):
        return [sys.executable, ROOT / "tools/mutation", "--root", self.root,
                *arguments], {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}

    def nothing_is_left(self):
        self.assertEqual(self.source.read_text(), SOURCE, "the tree is as it was")
        self.assertEqual(list((self.build / "mutation").glob("tmp*")), [], "nothing is left")

    def run_with(self, *arguments):
        command, environment = self.command(*arguments)
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.nothing_is_left()
        return done.returncode, done.stdout, done.stderr

    def sample(self, *arguments):
        code, out, err = self.run_with("--sample", "8", "-o", "json", *arguments)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_noticed_and_survived(self):
        made = self.sample()
        self.assertEqual(len(made["mutants"]), 8)
        for mutant in made["mutants"]:
            survives = mutant["function"] == "three"
            self.assertEqual(mutant["outcome"], "survived" if survives else "noticed", mutant)
        self.assertEqual(made["modules"]["policy"], made["all"])
        self.assertEqual(made["all"]["noticed"], sum(mutant["outcome"] == "noticed" for mutant in made["mutants"]))
        self.assertGreater(made["all"]["low"], 0)
        self.assertLess(made["all"]["high"], 1)
        code, out, _ = self.run_with("--sample", "8")
        self.assertEqual(code, 0)
        self.assertIn("8/8 ", out)
        self.assertRegex(out, r"policy +8 +0 +\d +\d+%   \d+% to \d+%")
        self.assertIn("\nin src/policy/a.cc\nfunction three\nby ", out)

    def test_a_mark_with_a_reason(self):
        survivors = [mutant for mutant in self.sample()["mutants"] if mutant["outcome"] == "survived"]
        lines = [line[0] + " " + line[2:].strip() for line in survivors[0]["diff"]]
        (self.root / "tests/mutants/equivalent.txt").write_text("\n".join(
            ["## nothing calls three", "in src/policy/a.cc", "function three", f"by {survivors[0]['kind']}", *lines,
             ""]))
        made = self.sample()
        self.assertEqual(made["all"]["equivalent"], 1)
        self.assertEqual(made["all"]["rate"], made["all"]["noticed"] / 7)
        self.assertEqual(self.run_with("--check")[0], 0)
        self.source.write_text(SOURCE.replace("  x += 5;", "  x += 6;").replace("  return x;", "  return 1 * x;"))
        command, environment = self.command("--check")
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.source.write_text(SOURCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("its line is gone", done.stdout)

    def test_a_mark_without_a_reason_is_refused(self):
        (self.root / "tests/mutants/equivalent.txt").write_text(
            "## \nin src/policy/a.cc\nfunction f\nby call\n- f();\n+ ;\n")
        code, _, err = self.run_with("--sample", "1")
        self.assertEqual(code, 2)
        self.assertIn("equivalent.txt:1: expected a line that begins with reason", err)
        self.assertRaises(equivalents.Malformed, equivalents.read, self.root / "tests/mutants/equivalent.txt")

    def test_what_does_not_compile_is_drawn_again(self):
        # The compiler of the unit refuses three(), which the parser does not see.
        text = SOURCE.replace("  x += 5;", "  static_assert(sizeof(char[6]) == 5 + 1);\n  x += 5;")
        self.source.write_text(text)
        command, environment = self.command("--sample", "10", "-o", "json")
        made = json.loads(subprocess.run(command, capture_output=True, text=True, env=environment).stdout)
        self.source.write_text(SOURCE)
        self.assertEqual(len(made["mutants"]), 10)
        self.assertGreater(made["not_compiling"], 0)
        self.assertEqual([mutant for mutant in made["mutants"] if "static_assert" in mutant["diff"][0]], [])

    def test_a_test_that_fails_anyway_notices_nothing(self):
        (self.build / "test.cc").write_text(TEST.replace("? 0 : 1", "? 1 : 1"))
        for command in ("c++ -o test.o -c test.cc",
                        "c++ test.o -o tests/policy/a_test src/policy/libspillway_policy.a"):
            subprocess.run(command.split(), cwd=self.build, check=True)
        made = self.sample()
        self.assertEqual(made["unfit"], ["a_test"])
        self.assertEqual(made["all"]["noticed"], 0)

    def test_an_interrupt_ends_the_tests_and_leaves_the_tree(self):
        self.ctest(["HANGS=1"])
        command, environment = self.command("--sample", "2")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True,
                                   start_new_session=True)
        deadline = time.monotonic() + 120
        while not self.hanging() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(self.hanging())
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)
        self.nothing_is_left()
        while self.hanging() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.hanging(), [])

    def hanging(self):
        """The processes that run a test of this tree."""
        found = []
        for each in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = each.read_bytes().split(b"\0")
            except OSError:
                continue
            if words and words[0].startswith(str(self.build / "mutation").encode()):
                found.append(each)
        return found

    def test_arguments_that_make_no_sense(self):
        self.assertEqual(self.run_with()[0], 2)
        self.assertEqual(self.run_with("--sample", "0")[0], 2)
        self.assertEqual(self.run_with("--sample", "3", "--module", "apps")[0], 2)
        code, _, err = self.run_with("--sample", "3", "--module", "store")
        self.assertEqual(code, 2)
        self.assertIn("compiles no source of src/store", err)

    def test_listing_runs_nothing(self):
        self.says("ctest", "not asked")
        code, out, _ = self.run_with("--sample", "3", "--list")
        self.assertEqual(code, 0)
        self.assertEqual(len([line for line in out.splitlines() if line.startswith("# ")]), 3)


if __name__ == "__main__":
    unittest.main()
