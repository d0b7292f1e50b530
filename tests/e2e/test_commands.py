"""Every command that a page has is run, by this test or by one that page_table.py names, or stands there with the
reason why not.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import documents
import page_commands
from harness import BINARY, can_write_cgroups, end_cgroups, needs, ROOT, workspace
from page_table import Here, Not, Runs, TABLE

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "docs/compat").glob("*.md"))]


def two_leaks():
    """The example of docs/simulate.md."""
    return next(text for language, _, text in documents.blocks(ROOT / "docs/simulate.md") if language == "yaml"
                and text.startswith("name: two-leaks"))


def typed(command, words):
    for placeholder, value in words:
        before = command
        command = re.sub(rf"(?<![\w.-]){re.escape(placeholder)}(?![\w-])", lambda _: value, command)
        assert command != before, f"{placeholder} does not stand in {before}"
    return command


class Table(unittest.TestCase):
    def test_every_command_of_a_page_and_no_other(self):
        found = {str(page.relative_to(ROOT)): page_commands.commands(page.read_text()) for page in PAGES}
        found = {page: commands for page, commands in found.items() if commands and page != "docs/tutorial.md"}
        pairs = {(page, command) for page, commands in found.items() for command in commands}
        rows = {(page, command) for page, commands in TABLE.items() for command in commands}
        self.assertEqual(sorted(pairs - rows), [], "commands of pages without a row in page_table.py")
        self.assertEqual(sorted(rows - pairs), [], "rows of page_table.py that no page has")
        self.assertGreater(sum(map(len, found.values())), 120)

    def test_the_tests_that_run_others_are_there(self):
        rows = [(page, command, how) for page, commands in TABLE.items() for command, how in commands.items()]
        for page, command, how in rows:
            with self.subTest(page=page, command=command):
                if isinstance(how, Runs):
                    self.assertIn(how.holds, (ROOT / how.test).read_text())
                elif isinstance(how, Not):
                    self.assertGreater(len(how.why), 10)
        self.assertGreater(sum(isinstance(how, Here) for _, _, how in rows), 50)

    def test_what_a_page_has(self):
        text = (
            "    $ spillway a  --b F     # why\n    printed\n\n    $ kubectl get c \\\n        -w\n\n    kind:"
            " Pod\n\n`spillway up`, `spillway hold --zone Z` and `kind: x y`\n\n```sh\nspillway z --z\n```\n"
        )
        self.assertEqual(page_commands.commands(text),
                         ["spillway a --b F", "kubectl get c -w", "spillway hold --zone Z"])
        self.assertEqual(typed("spillway a --b F", (("F", "$F"),)), "spillway a --b $F")
        for command, words in (("spillway a --b FILE", (("F", "x"),)),):
            with self.assertRaises(AssertionError):
                typed(command, words)


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Commands(unittest.TestCase):
    def test_they_run(self):
        begin = time.monotonic()
        with workspace() as folder, tempfile.TemporaryDirectory(prefix="spillway-commands-") as packed:
            subprocess.run([sys.executable, ROOT / "packaging/package.py", "--binary", BINARY, "--out", packed,
                            "--only", "deb"], check=True, stdout=subprocess.DEVNULL)
            root = folder / "root"
            root.mkdir()
            self.addCleanup(end_cgroups, "/var/lib/spillway", "/var/lib/spillway/nodes", "/root/three/nodes",
                            "/root/first/nodes")
            documents.prepared(root, next(pathlib.Path(packed).glob("*.deb")),
                               {"examples": ROOT / "examples", "deploy": ROOT / "deploy"})
            (root / "root/two-leaks.yaml").write_text(two_leaks())
            shell, ran = documents.Shell(root), 0
            try:
                shell.run("dpkg -i spillway_*.deb; exec 2>&1")
                for page, rows in TABLE.items():
                    for command, how in rows.items():
                        if isinstance(how, Here):
                            self.run_one(shell, page, command, how)
                            ran += 1
            finally:
                shell.close()
        print(f"\n{ran} commands of {len(TABLE)} pages in {time.monotonic() - begin:.0f} s", flush=True)

    def run_one(self, shell, page, command, how):
        begin = time.monotonic()
        try:
            if how.first:
                shell.run(how.first)
            words = typed(command, how.words)
            if how.until:
                shell.start(f"export KUBECONFIG=/var/lib/spillway/kubeconfig\n{words}", how.until)
            else:
                shell.run(words)
        except AssertionError as error:
            raise AssertionError(f"{page}: {command}: {error}") from None
        print(f"{time.monotonic() - begin:5.1f} s  {page}: {command}", flush=True)


if __name__ == "__main__":
    unittest.main()
