#!/usr/bin/env python3
"""tools/log_lines.py finds every message, and the fields of docs/observability.md are fields of more than one
message.
"""

import collections
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import log_lines  # noqa: E402

SOURCE = """
void a() {
  log_.info("pod (bound)", {{"pod", key(pod)}, {"node", node}});
  context_.log.warning(acts() ? "evicting pod" : "would evict pod",
                       {{"reasons", render({1, 2})},
                        {"emergency", false}});
  process.log().error(what, {{"error", why}});
  catalog.info("no log", {{"x", 1}});
}
"""


class LogLines(unittest.TestCase):
    def test_every_call_with_its_fields(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "src").mkdir()
            (pathlib.Path(folder) / "src/a.cc").write_text(SOURCE)
            found = [line[:3] for line in log_lines.lines_of(pathlib.Path(folder))]
        self.assertEqual(found, [("info", "pod (bound)", ["pod", "node"]),
                                 ("warning", "evicting pod", ["reasons", "emergency"]),
                                 ("warning", "would evict pod", ["reasons", "emergency"]),
                                 ("error", "(put together)", ["error"])])

    def test_the_documented_fields_are_there(self):
        section = (ROOT / "docs/observability.md").read_text().split("## Log lines")[1].split("\n## ")[0]
        table = section.split("Those of more than one message:")[1]
        documented = {name for row in re.findall(r"^\| (`[^|]*) \|", table, re.M)
                      for name in re.findall(r"`([a-z_]+)`", row)}
        counts = collections.Counter(field for _, _, fields, _ in log_lines.lines_of(ROOT) for field in fields)
        self.assertGreater(len(documented), 20)
        self.assertEqual({name for name in documented if counts[name] < 2}, set())
        self.assertEqual({name for name, count in counts.items() if count > 7} - documented, set())


if __name__ == "__main__":
    unittest.main()
