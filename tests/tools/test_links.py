"""The gate against links that lead nowhere: each case is a tree of two pages, one of which links to the other."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Links(unittest.TestCase):
    def run_with(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs/b.md").write_text(
                '# Page\n\n## What it does, and why\n\n<a id="row-1"></a>\n\n```sh\n# no heading\n```\n')
            (root / "docs/a.md").write_text(text)
            done = subprocess.run([sys.executable, ROOT / "tools/links.py", "--root", root], capture_output=True,
                                  text=True, check=False)
            return done.returncode, done.stdout

    def test_what_opens_passes(self):
        code, out = self.run_with(
            "[1](b.md) [2](b.md#what-it-does-and-why) [3](b.md#row-1) [4](#here) [5](https://example.com/x)\n\n# Here\n"
        )
        self.assertEqual((code, out), (0, "links: 4 open, 0 lead nowhere\n"))

    def test_a_file_that_does_not_exist(self):
        code, out = self.run_with("\n[1](c.md)\n")
        self.assertEqual(code, 1)
        self.assertIn("docs/a.md:2: there is no c.md", out)

    def test_a_heading_that_does_not_exist(self):
        for anchor in ("what-it-did", "no-heading"):
            code, out = self.run_with(f"[1](b.md#{anchor})\n")
            self.assertEqual(code, 1)
            self.assertIn(f"docs/a.md:1: b.md has no heading #{anchor}", out)

    def test_code_is_left_out(self):
        self.assertEqual(self.run_with("`a[1](c.md)`\n\n```text\n[1](c.md)\n```\n")[0], 0)


if __name__ == "__main__":
    unittest.main()
