"""tools/sequences.py counts continuations, alive flags and methods, and its record only falls."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import sequences  # noqa: E402

GOES_ON = (
    "void f() {\n  put(key, [this](const StatusResult<Commit>& result) {\n    if (!result) return fail();\n   "
    " next();\n  });\n}\n"
)
HANDS_OVER = "void f() {\n  put(key, [self](Result<int> answer) { self->on_answer(std::move(answer)); });\n}\n"


class Sequences(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        (self.root / "src" / "agent").mkdir(parents=True)
        (self.root / "tools").mkdir()

    def put(self, text, name="a.cc"):
        (self.root / "src" / "agent" / name).write_text(text)

    def run_with(self, *arguments):
        said, before = io.StringIO(), sys.argv
        sys.argv = ["sequences.py", "--root", str(self.root), *arguments]
        try:
            with contextlib.redirect_stdout(said):
                code = sequences.main()
        finally:
            sys.argv = before
        return code, said.getvalue()

    def test_a_lambda_that_goes_on_is_a_continuation(self):
        self.put(GOES_ON)
        code, said = self.run_with()
        self.assertEqual(code, 1)
        self.assertIn("src/agent/a.cc: 1 continuations, 0 are allowed (tools/sequences.txt): src/agent/a.cc:2", said)

    def test_a_lambda_that_hands_its_answer_over_is_none(self):
        self.put(HANDS_OVER)
        self.assertEqual(self.run_with()[0], 0)

    def test_comments_and_texts_do_not_count(self):
        self.put('// [this](Result<int> a) { b; c; }\nconst char* k = "[this](Result<int> a) { b; c; }";\n')
        self.assertEqual(self.run_with()[0], 0)

    def test_an_alive_flag_counts(self):
        self.put("class A {\n  std::shared_ptr<const bool> alive_;\n};\n", "a.h")
        self.assertIn("src/agent/a.h:2", self.run_with()[1])

    def test_methods_count_across_files_and_past_forty_only(self):
        half = "".join(f"int Large::f{i}() {{\n  return {i};\n}}\n" for i in range(20))
        self.put(half)
        self.put(half.replace("f", "g"), "b.cc")
        self.assertEqual(self.run_with()[0], 0)
        self.put("std::vector<int> Large::more() {\n}\n", "c.cc")
        self.assertIn("agent::Large: 41 methods, 40 are allowed", self.run_with()[1])

    def test_the_record_allows_and_only_falls(self):
        self.put(GOES_ON)
        self.assertEqual(self.run_with("--write")[0], 1)
        self.assertEqual(self.run_with("--write", "--force")[0], 0)
        self.assertEqual(self.run_with()[0], 0)
        self.put(GOES_ON + GOES_ON)
        self.assertEqual(self.run_with("--write")[0], 1)
        self.put("")
        self.assertEqual(self.run_with("--write")[0], 0)
        self.put(GOES_ON)
        self.assertEqual(self.run_with()[0], 1)


if __name__ == "__main__":
    unittest.main()
