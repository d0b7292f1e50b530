#!/usr/bin/env python3
"""tools/includes.py reports growth of a small tree, and passes the recorded state."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import includes  # noqa: E402


class Includes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        self.put("base/a.h", '#pragma once\n#include <string>\n' + "int a;\n" * 98)
        self.put("base/b.h", '#pragma once\n#include "base/a.h"\n')
        self.put("base/one.cc", '#include "base/a.h"\n')
        self.put("base/two.cc", '#include "base/b.h"\n')
        includes.write(self.root)

    def put(self, name, text):
        path = self.root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def problems(self):
        return list(includes.check(self.root))

    def test_the_recorded_state_passes(self):
        self.assertEqual(self.problems(), [])

    def test_the_sum_counts_a_header_once_per_source(self):
        self.assertIn("included_lines 202\n", (self.root / includes.RECORD).read_text())

    def test_an_include_that_a_hot_header_gains_is_named(self):
        self.put("base/a.h", '#pragma once\n#include <string>\n#include <map>\n' + "int a;\n" * 97)
        self.assertEqual(len(self.problems()), 1)
        self.assertIn("src/base/a.h: includes map", self.problems()[0])

    def test_an_include_that_a_hot_header_loses_passes(self):
        self.put("base/a.h", "#pragma once\n" + "int a;\n" * 98)
        self.assertEqual(self.problems(), [])

    def test_two_percent_more_lines_pass_and_more_do_not(self):
        self.put("base/a.h", '#pragma once\n#include <string>\n' + "int a;\n" * 100)
        self.assertEqual(self.problems(), [])
        self.put("base/a.h", '#pragma once\n#include <string>\n' + "int a;\n" * 101)
        self.assertEqual(len(self.problems()), 1)
        self.assertIn("208 lines of headers, 202 are recorded", self.problems()[0])

    def test_a_hot_header_that_has_gone_is_named(self):
        (self.root / "src/base/b.h").unlink()
        self.put("base/two.cc", '#include "base/a.h"\n')
        self.assertIn("base/b.h does not exist", self.problems()[0])


if __name__ == "__main__":
    unittest.main()
