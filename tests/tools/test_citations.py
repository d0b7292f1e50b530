"""The gate against citations that lead nowhere: each case is a tree with one specification and one citation."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SPECIFICATION = "# Node agent\n\n## 4. Setters\n\n4.1 **NodeAddress**.\n\n## S7 Queue\n"


class Citations(unittest.TestCase):
    def run_with(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs/spec").mkdir(parents=True)
            (root / "docs/spec/node-agent.md").write_text(SPECIFICATION)
            (root / "src").mkdir()
            (root / "src/a.h").write_text(text)
            done = subprocess.run([sys.executable, ROOT / "tools/citations.py", "--root", root], capture_output=True,
                                  text=True)
            return done.returncode, done.stdout

    def test_what_opens_passes(self):
        self.assertEqual(self.run_with('// Source: spec "Node agent", 4.1 and S7.\n')[0], 0)

    def test_a_title_that_does_not_exist(self):
        code, out = self.run_with('\n// Source: spec "Node agents", 4.\n')
        self.assertEqual(code, 1)
        self.assertIn('src/a.h:2: there is no specification "Node agents"', out)

    def test_a_section_that_does_not_exist(self):
        self.assertIn('"Node agent" has no section 9.9', self.run_with('// spec "Node agent", 4, 9.9\n')[1])

    def test_a_citation_over_two_lines(self):
        self.assertIn('"Node agent" has no section 8', self.run_with('// Source: spec "Node\n// agent", 8.\n')[1])


if __name__ == "__main__":
    unittest.main()
