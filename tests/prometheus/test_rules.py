"""The alerts and the dashboard: promtool reads and plays them, and every metric in them is one that the program has."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RULES = ROOT / "deploy/prometheus/spillway.rules.yaml"
PLAYED = pathlib.Path(__file__).with_name("spillway.rules.test.yaml")
DASHBOARD = ROOT / "deploy/grafana/spillway.json"
PROMTOOL = ROOT / "build/peers/root/usr/bin/promtool"  # tools/peers unpacks it
METRIC = re.compile(r"\b(?:spillway|kubelet|node_collector|apiserver)_[a-z_]+\b")


def promtool(*words):
    return subprocess.run([PROMTOOL, *map(str, words)], capture_output=True, text=True, check=False)


def alerts():
    return dict(re.findall(r"- alert: (\w+)\n +expr: (.+)", RULES.read_text()))


def panels():
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


@unittest.skipUnless(PROMTOOL.exists() or os.environ.get("CI"), "needs promtool; tools/peers unpacks it")
class Rules(unittest.TestCase):
    def test_promtool_takes_and_plays_them(self):
        for words in (("check", "rules", "--lint=all", "--lint-fatal", RULES), ("test", "rules", PLAYED)):
            done = promtool(*words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_changed_alert_is_noticed(self):
        """Each alert with its expression turned round fails the test that plays it."""
        for name, expression in alerts().items():
            with tempfile.TemporaryDirectory() as folder:
                rules = pathlib.Path(folder) / "rules.yaml"
                rules.write_text(
                    RULES.read_text().replace(
                        f"- alert: {name}\n        expr: {expression}",
                        f"- alert: {name}\n        expr: ({expression}) and vector(0) > 1",
                    )
                )
                self.assertNotEqual(rules.read_text(), RULES.read_text())
                played = pathlib.Path(folder) / "played.yaml"
                played.write_text(PLAYED.read_text().replace("../../deploy/prometheus/spillway.rules.yaml", str(rules)))
                self.assertNotEqual(promtool("test", "rules", played).returncode, 0, f"{name} is never expected")

    def test_each_is_described(self):
        page = (ROOT / "docs/observability.md").read_text()
        self.assertEqual(list(alerts()), re.findall(r"^\| `(\w+)` \| (?:info|warning|critical) \|", page, re.M))

    def test_every_metric_is_one_of_the_program(self):
        source = "".join(file.read_text() for file in (ROOT / "src").rglob("*.cc"))
        names = set(METRIC.findall(" ".join(alerts().values()))) | {name for panel in panels()
                                                                    for target in panel["targets"]
                                                                    for name in METRIC.findall(target["expr"])}
        self.assertGreater(len(names), 15)
        for name in names:
            self.assertIn(f'"{re.sub(r"_bucket$", "", name)}"', source, name)

    def test_the_dashboard_begins_with_what_is_wrong_now(self):
        document = json.loads(DASHBOARD.read_text())
        self.assertEqual((document["panels"][0]["type"], document["panels"][0]["title"], document["panels"][1]["type"]),
                         ("row", "Overview", "stat"))
        self.assertEqual([panel["title"] for panel in panels() if not panel.get("description")], [],
                         "panels without a description")
        places = [(y, x) for panel in document["panels"]
                  for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
                  for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])]
        self.assertEqual(len(places), len(set(places)), "panels that overlap")
        # The list of instances has Spillway's targets alone: every process of it has this metric, and no other program.
        self.assertEqual(document["templating"]["list"][1]["query"],
                         "label_values(spillway_loop_longest_turn_seconds, instance)")

    def test_promtool_reads_the_dashboard(self):
        self.assertEqual(len({panel["id"] for panel in json.loads(DASHBOARD.read_text())["panels"]}),
                         len(json.loads(DASHBOARD.read_text())["panels"]))
        expressions = [target["expr"] for panel in panels() for target in panel["targets"]]
        with tempfile.TemporaryDirectory() as folder:
            rules = pathlib.Path(folder) / "rules.json"
            rules.write_text(json.dumps(
                {"groups": [{"name": "dashboard",
                             "rules": [{"record": f"x{i}", "expr": each.replace("$__rate_interval", "5m")} for i,
                                       each in enumerate(expressions)]}]}))
            done = promtool("check", "rules", rules)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
