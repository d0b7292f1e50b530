"""The gates find what they are there to find: each case plants one offence in a copy of the rules and an empty tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import tidy  # noqa: E402


class Tidy(unittest.TestCase):
    def run_with(self, path, text, extra=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / "tools/layers.txt").write_text((ROOT / "tools/layers.txt").read_text() + extra)
            (root / "src" / path).parent.mkdir(parents=True)
            (root / "src" / path).write_text(text)
            done = subprocess.run([sys.executable, ROOT / "tools/tidy.py", "--root", root], capture_output=True,
                                  text=True)
            return done.returncode, done.stdout

    def test_a_clean_file_passes(self):
        self.assertEqual(self.run_with("policy/eviction/a.h", '#include "api/object/pod.h"\n')[0], 0)

    def test_a_rule_may_not_include_an_engine(self):
        code, out = self.run_with("policy/eviction/a.h", '#include "agent/contract/ports.h"\n')
        self.assertEqual(code, 1)
        self.assertIn("policy/eviction may not include agent", out)

    def test_inner_rooms_have_levels(self):
        self.assertEqual(self.run_with("api/patch/a.h", '#include "api/json/json.h"\n')[0], 0)
        self.assertIn("api/json may not include api/patch",
                      self.run_with("api/json/a.h", '#include "api/patch/patch.h"\n')[1])
        self.assertIn("apiserver/read may not include apiserver/write",
                      self.run_with("apiserver/read/a.h", '#include "apiserver/write/writer.h"\n')[1])

    def test_a_folder_without_a_line(self):
        self.assertIn("folder is not in tools/layers.txt", self.run_with("api/new_room/a.h", "\n")[1])

    def test_a_circle_among_the_lines(self):
        out = self.run_with("base/a.h", "\n", extra="store/sqlite: apps\n")[1]
        self.assertIn("store/sqlite reaches itself", out)

    def test_sibling_policy_rooms_stay_apart(self):
        self.assertEqual(self.run_with("policy/eviction/a.h", '#include "policy/lifecycle/zone.h"\n')[0], 1)

    def test_the_simulator_includes_no_host(self):
        self.assertEqual(self.run_with("sim/a.h", '#include "host/cgroup/cgroup.h"\n')[0], 1)

    def test_clocks_and_hash_order(self):
        self.assertEqual(self.run_with("policy/a.cc", "auto t = std::chrono::steady_clock::now();\n")[0], 1)
        self.assertEqual(self.run_with("policy/a.cc", "std::unordered_map<int, int> m;\n")[0], 1)

    def test_a_kind_is_group_and_kind(self):
        self.assertEqual(self.run_with("apiserver/write/a.cc", 'return resource.kind == "Namespace";\n')[0], 1)
        self.assertEqual(self.run_with("apiserver/write/a.cc", 'if (route.resource->plural != "pods") return;\n')[0], 1)
        self.assertEqual(self.run_with("apiserver/write/a.cc", 'return resource.is("", "Namespace");\n')[0], 0)

    def test_python_has_120_columns(self):
        long = "a = [" + ", ".join(["'x'"] * 30) + "]\n"
        self.assertEqual(tidy.long_python_lines("b = 1\n" + long), [2])
        self.assertEqual(tidy.long_python_lines("b = 1\n" + long[:120] + "\n]\n"), [])
        self.assertEqual(tidy.long_python_lines("key = '" + "k" * 130 + "'\n"), [])
        self.assertEqual(tidy.long_python_lines('script = """\n' + "s" * 130 + '\n"""\n'), [])

    def test_drawers_for_everything(self):
        self.assertEqual(self.run_with("api/text/string_utils.h", "\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
