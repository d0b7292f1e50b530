"""The pages of docs/reference are those of the program: its commands and flags, every metric that it serves, every
reason code.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from harness import BINARY, can_write_cgroups, needs, one_node, PATIENCE, ROOT, wait_for, workspace

sys.path.insert(0, str(ROOT / "tools"))
import reference  # noqa: E402

PAGES = ROOT / "docs/reference"
SOURCE = """
constexpr std::string_view kName = "spillway_named_total";
void a() {
  registry->counter("spillway_a_total", "What a \\"b\\" "
                    "counts", {{"zone", zone}, {"code", code}});
  const auto gauge = [&](std::string_view name) { return registry.gauge(name, help); };
  made.b = gauge("spillway_b_bytes", "Bytes of b");
  registry.counter(kName, "Named elsewhere");
  registry.histogram("spillway_c_seconds", "Time of c", {0.1, 1});
  out.family("process_d", Type::kGauge, "Only on a page");
  set("container_t", "container_kvm_t");
}
"""


class Pages(unittest.TestCase):
    def test_made_from_this_program(self):
        done = subprocess.run([sys.executable, ROOT / "tools/reference.py", BINARY, "--check"], capture_output=True,
                              text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_a_page_that_differs_is_reported(self):
        self.assertIn("--data-dir", (PAGES / "commands.md").read_text())
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src/agent").mkdir(parents=True)
            (root / "src/agent/a.cc").write_text(SOURCE)
            found = reference.metrics_of(root)
        self.assertEqual(found, {"spillway_a_total": ("Nodes", "counter", 'What a "b" counts', ["zone", "code"]),
                                 "spillway_b_bytes": ("Nodes", "gauge", "Bytes of b", []),
                                 "spillway_named_total": ("Nodes", "counter", "Named elsewhere", []),
                                 "spillway_c_seconds": ("Nodes", "histogram", "Time of c", []),
                                 "process_d": ("Nodes", "gauge", "Only on a page", [])})

    def test_every_reason_code_in_order(self):
        codes = re.findall(r'\{k\w+, "([a-z-]+)"\}', (ROOT / "src/policy/reason.cc").read_text())
        self.assertGreater(len(codes), 70)
        self.assertEqual(re.findall(r"^\| `([a-z-]+)` \|", (PAGES / "reasons.md").read_text(), re.M), codes)

    def test_every_code_of_an_outlook_in_order(self):
        codes = re.findall(r'^    "([a-z-]+)",$', (ROOT / "src/policy/outlook/outlook.cc").read_text(), re.M)
        self.assertGreater(len(codes), 60)
        self.assertEqual(re.findall(r"^\| `([a-z-]+)` \|", (PAGES / "outlooks.md").read_text(), re.M), codes)


def mentioned(text):
    """Commands of spillway that a page has, in blocks of code and between backticks: the words after `spillway`."""
    code = re.findall(r"^```sh[^\n]*\n(.*?)^```$", text, re.M | re.S)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    code += re.findall(r"^    +(\S.*)$", prose, re.M) + re.findall(r"`([^`\n]+)`",
                                                                   re.sub(r"^    .*$", "", prose, flags=re.M))
    for line in "\n".join(code).replace("\\\n", " ").splitlines():
        for part in re.split(r"[|;&>]|\s#\s|\$\(", line):
            command = re.match(r"\s*(?:\$ )?(?:[A-Z]+=\S+ )*(?:sudo )?(?:\S*/)?spillway ([a-z][a-z-]*.*)$", part)
            if command:
                yield command.group(1).split()


class Mentioned(unittest.TestCase):
    """Every command and flag that a page names exists, also where it is not a whole command (test_documents.py and
    test_commands.py run those).
    """

    def setUp(self):
        self.helps = {}

    def wrong(self, words):
        """The command, or those of its flags, that the program does not have."""
        name = tuple(words[: 2 if words[0] in ("images", "store") and re.fullmatch(r"[a-z]+", "".join(words[1:2]))
                           else 1])
        if name not in self.helps:
            done = subprocess.run([BINARY, *name, "--help-all"], capture_output=True, text=True, timeout=PATIENCE,
                                  check=False)
            self.helps[name] = done.stdout if f"Usage: spillway {' '.join(name)}" in done.stdout else None
        if self.helps[name] is None:
            return [" ".join(name)]
        known = set(re.findall(r"--[a-z][a-z0-9-]+", self.helps[name])) | {"--log-level", "--log-format", "--help"}
        return [flag for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", " ".join(words)) if flag not in known]

    def test_commands_and_flags_exist(self):
        pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
                 *(page for folder in ("docs", "docs/how-to", "docs/compat")
                   for page in sorted((ROOT / folder).glob("*.md")))]
        found = [words for page in pages for words in mentioned(page.read_text())]
        self.assertGreater(len(found), 150)
        self.assertEqual([(" ".join(words), wrong) for words in found if (wrong := self.wrong(words))], [])

    def test_other_pages_are_reported(self):
        text = (
            "`spillway explane pod/a`\n\n    $ spillway store backup --to F --form G  # --not-this\n\n```sh\nsudo"
            " spillway up --nodes 3 | tee --append f\n```\n"
        )
        found = list(mentioned(text))
        self.assertEqual(found, [["up", "--nodes", "3"], ["store", "backup", "--to", "F", "--form", "G"],
                                 ["explane", "pod/a"]])
        self.assertEqual([self.wrong(words) for words in found], [[], ["--form"], ["explane"]])


@needs(can_write_cgroups(), "needs root and a writable cgroup hierarchy")
class Served(unittest.TestCase):
    def test_every_metric_of_a_cluster(self):
        listed = {name: kind for name,
                  kind in re.findall(r"^\| `([a-z_]+)` \| (\w+) \|", (PAGES / "metrics.md").read_text(), re.M)}
        with workspace() as folder, one_node(folder) as process:
            node = "/api/v1/nodes/n/proxy/metrics"
            wait_for("statistics of the node",
                     lambda: "node_memory_working_set_bytes " in process.api.get(f"{node}/resource"))
            served = "".join(process.api.get(path)
                             for path in ("/metrics", node, f"{node}/resource", f"{node}/cadvisor", f"{node}/probes"))
        kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", served, re.M))
        self.assertGreater(len(kinds), 80)
        self.assertEqual({name: kind for name, kind in kinds.items() if listed.get(name) != kind}, {})


if __name__ == "__main__":
    unittest.main()
