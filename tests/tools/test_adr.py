"""tools/adr.py lists records with their titles and conditions, and refuses records of another form."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import adr  # noqa: E402


class Adr(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / adr.FOLDER).mkdir(parents=True)
        self.put("0001-first.md", "# ADR-0001: one | two\n\nA.\n\n**Revisit when** the sky\nfalls.\n\nMore.\n")
        self.put("0002-second.md", "# ADR-0002: Second\n\n## Revisit when\n\nIt rains.\nOr snows.\n\nThe end.\n")
        self.put("0003-third.md", "# ADR-0003: third\n")
        self.put("README.md", adr.listed(self.root))

    def put(self, name, text):
        (self.root / adr.FOLDER / name).write_text(text)

    def problems(self):
        return adr.check(self.root)

    def test_rows_have_title_and_condition(self):
        self.assertEqual(self.problems(), [])
        rows = adr.listed(self.root).splitlines()[-3:]
        self.assertEqual(rows[0], "| [0001](0001-first.md) | One \\| two | the sky falls. |")
        self.assertEqual(rows[1], "| [0002](0002-second.md) | Second | It rains. Or snows. |")
        self.assertEqual(rows[2], "| [0003](0003-third.md) | Third |  |")

    def test_a_record_that_is_not_listed(self):
        self.put("0004-fourth.md", "# ADR-0004: fourth\n")
        self.assertIn("run tools/adr.py --write", self.problems()[0])

    def test_a_missing_list(self):
        (self.root / adr.FOLDER / "README.md").unlink()
        self.assertIn("run tools/adr.py --write", self.problems()[0])

    def test_another_form(self):
        self.put("0004-fourth.md", "# 0004: fourth\n")
        self.put("0005-fifth.md", "# ADR-0006: fifth\n" + "a\n" * 60)
        self.put("0005-again.md", "# ADR-0005: again\n")
        self.put("notes.md", "# Notes\n")
        found = "\n".join(self.problems())
        self.assertIn("0004-fourth.md:1: the first line is not `# ADR-0004: TITLE`", found)
        self.assertIn("0005-fifth.md:1: says ADR-0006, the name of the file says 0005", found)
        self.assertIn("0005-fifth.md: 61 lines, 60 are allowed", found)
        self.assertIn("0005-fifth.md: has the number of 0005-again.md", found)
        self.assertIn("notes.md: the name is not NNNN-words.md", found)


if __name__ == "__main__":
    unittest.main()
