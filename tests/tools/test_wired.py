#!/usr/bin/env python3
"""tools/wired.py reports rules of a small tree that only tests reach, and passes others."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import wired  # noqa: E402

HEADER = """#pragma once
namespace a {
/// total_of(pods) is what its name says.
int total_of(const Pods& pods);
std::vector<int> sorted(const Pods& pods);
}  // namespace a
"""


class Wired(unittest.TestCase):
    def problems(self, source, header=HEADER):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in (("src/policy/sum.h", header), ("src/controllers/engine.cc", source)):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return [problem for problem in wired.check(root) if not problem.startswith("tools/wired.py")]

    def test_a_rule_that_nothing_uses_is_named_with_its_line(self):
        self.assertEqual(self.problems("int x = sorted(pods).front();\n"),
                         ["src/policy/sum.h:4: total_of is used by nothing in src/"])

    def test_a_definition_a_comment_and_a_text_are_no_use(self):
        source = (
            'int total_of(const Pods& pods) {\n  return 1;  // total_of(pods)\n}\nauto s = sorted("total_of(x)");\n'
        )
        self.assertEqual(len(self.problems(source)), 1)

    def test_every_kind_of_call_is_a_use(self):
        for use in ("return total_of(pods);", "const int x = total_of(pods);", "if (ready && total_of(pods) > 1) {",
                    "for (int x : each->total_of(pods)) {",
                    "run([] { total_of(pods); });", "const auto f = &total_of;", "int y = 2 * total_of(pods);"):
            self.assertEqual(self.problems(f"void run() {{\n  {use}\n  sorted(pods);\n}}\n"), [], use)

    def test_what_waits_must_be_there_to_wait(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "src").mkdir()
            self.assertEqual(len(list(wired.check(pathlib.Path(folder)))), len(wired.WAITING))


if __name__ == "__main__":
    unittest.main()
