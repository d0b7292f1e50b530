"""The HTML report of a simulated zone outage, opened in a headless Chromium: it sends no request, reports no error,
fits narrow and wide windows in both colour schemes, and its decisions unfold. Errors of --report are one line.
"""
import html.parser
import json
import os
import re
import unittest

import browser
from harness import needs, run, wait_for, workspace

WIDTHS = (390, 1280, 2560)

# Colours of a canvas's pixels, the most frequent first: [[colour, share], ...].
COLOURS = """(canvas => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const counts = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const key = [data[i], data[i + 1], data[i + 2], data[i + 3]].join();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].map(([key, n]) => [key, n * 4 / data.length]).sort((a, b) => b[1] - a[1]);
})"""


class Handlers(html.parser.HTMLParser):
    """Attributes that run a script, in the file as it is written."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [(tag, name) for name, _ in attrs if name.startswith("on") or name in ("style", "src")]


@needs(browser.find(), "there is no Chromium; tools/peers unpacks one")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(workspace())
        cls.file = cls.folder / "outage.html"
        code, out, err = run("simulate", "zone-outage", "--nodes", "30", "--report", cls.file)
        assert (code, err) == (0, ""), (code, out, err)
        cls.printed = out
        cls.browser = cls.enterClassContext(browser.browsing())

    def show(self, width=1280, dark=False, file=None):
        self.browser.events.clear()
        self.browser.look(width, dark=dark)
        self.browser.open((file or self.file).as_uri())

    def wait_for_text(self):
        """An element says that it was unfolded by an event of its own, which may come after the next frames."""
        wait_for("the text of a decision", lambda: self.browser.run(
            "document.querySelector('section[aria-label=Decisions] li details[open] pre') !== null"))
        self.browser.settle()

    def unfold(self):
        self.browser.run("document.querySelectorAll('.fold > summary').forEach(each => each.click())")
        self.browser.settle()

    def assert_quiet(self, file=None):
        """The page requested nothing but itself, and the console has no complaint."""
        self.assertEqual(self.browser.requests(), [(file or self.file).as_uri()])
        self.assertEqual(self.browser.complaints(), [])

    def altered(self, name, alter):
        """The same file with other data, which its policy does not cover."""
        begin, data, end = re.fullmatch(r'(.*id="data">)(.*?)(</script>.*)', self.file.read_text(), re.DOTALL).groups()
        document = json.loads(data)
        alter(document["runs"][0])
        file = self.folder / name
        file.write_text(begin + json.dumps(document).replace("<", "\\u003c") + end)
        return file

    def test_names_are_text(self):
        attack = "<img src=x onerror=document.title='taken'>"

        def rename(run):
            run["name"] = run["story"] = run["zones"][0]["name"] = run["nodes"][0][0] = attack
            run["violations"] = [attack]
            run["summary"] = {"verdict": attack, "good": 0, "sentences": [attack],
                              "expectations": [[1, attack, attack]], "figures": [[attack, attack, 1]]}
            run["brakes"] = [attack]
            run["events"][0][3] = attack
            run["texts"] = [attack] * len(run["texts"])
        file = self.altered("names.html", rename)
        self.show(file=file)
        self.unfold()
        self.browser.run("document.querySelector('section[aria-label=Decisions] li summary').click()")
        self.wait_for_text()
        self.assertEqual(self.browser.run("document.querySelectorAll('img, [onerror]').length"), 0)
        self.assertEqual(self.browser.run("document.querySelector('h1').innerText"), attack)
        self.assertEqual(self.browser.run("document.querySelector('pre').innerText.split('\\n')[0]"), attack)
        self.assertNotEqual(self.browser.run("document.title"), "taken")
        self.assert_quiet(file)

    def test_a_run_in_which_nothing_happened(self):
        file = self.altered("calm.html", lambda run: run.update(events=[], decisions=[], brakes=[]))
        self.show(390, file=file)
        self.unfold()
        text = self.browser.run("document.body.innerText")
        for part in ("Nothing happened: no eviction", "No decisions: nothing had to be", "brake (none held)",
                     "brakes that held: none"):
            self.assertIn(part, text)
        self.assert_quiet(file)

    def test_a_run_without_nodes(self):
        file = self.altered("empty.html",
                            lambda run: run.update(nodes=[], zones=[], events=[], decisions=[], length=0, running=[],
                                                   pending=[], terminating=[]))
        self.show(file=file)
        self.assertIn("0 nodes", self.browser.run("document.body.innerText"))
        self.assert_quiet(file)

    def test_fits_every_window_in_both_schemes(self):
        backgrounds = set()
        for width in WIDTHS:
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.show(width, dark)
                    self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), width)
                    outside = self.browser.run("""[...document.querySelectorAll('main *')].filter(each => !each.closest('pre, .table') &&
                        each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 80))""")
                    self.assertEqual(outside, [])
                    text = self.browser.run("document.body.innerText")
                    for part in ("zone-outage", "Nodes by state", "Zones", "What happened", "memory.available",
                                 "Heat map", "Decisions"):
                        self.assertIn(part, text)
                    self.assert_quiet()
                    backgrounds.add((dark, self.browser.run("getComputedStyle(document.body).backgroundColor")))
        self.assertEqual(len(backgrounds), 2)  # the two schemes differ, the widths do not

    def test_the_verdict_and_the_figures_are_those_of_the_terminal(self):
        self.show()
        printed = self.printed.splitlines()
        verdict = self.browser.run("document.querySelector('.verdict .headline').innerText")
        self.assertEqual(printed[0], f"zone-outage: {verdict}")
        self.assertRegex(verdict, "^passed: ")
        words = self.browser.run("[...document.querySelectorAll('.verdict p:not(.headline), .verdict li')].map(each => each.innerText)")
        self.assertGreater(len(words), 2)
        for each in words:
            self.assertIn(each, printed)
        figures = self.browser.run("[...document.querySelectorAll('.cards li')].map(each => [each.children[0].innerText, each.children[1].innerText])")
        self.assertGreater(len(figures), 7)
        for value, words in figures:
            self.assertTrue(any(re.fullmatch(rf"{re.escape(value)}  {re.escape(words)}( \(\w+\))?", line.strip())
                                for line in printed), (value, words, self.printed))
        self.assertNotIn(".99", self.printed)
        self.assertLess(self.browser.run("document.querySelector('.verdict').getBoundingClientRect().bottom"),
                        500)  # on the first screen
        # Times count from the beginning of the timeline, two minutes and a quarter after that of the run.
        self.assertRegex(self.browser.run("document.querySelector('.bar output').innerText"), "^\u22122:15 to 18:00")

    def test_lists_are_folded(self):
        self.show()
        self.assertEqual(self.browser.run("[...document.querySelectorAll('.fold')].map(each => each.open)"),
                         [False, False])
        folded = self.browser.run("document.documentElement.scrollHeight")
        self.unfold()
        self.assertGreater(self.browser.run("document.documentElement.scrollHeight"), folded + 1000)

    def test_a_chart_in_which_nothing_happens_is_a_sentence(self):
        self.show()
        section = "document.querySelector('section[aria-label=\"memory.available\"]')"
        self.assertEqual(self.browser.run(f"{section}.querySelectorAll('canvas').length"), 0)
        self.assertRegex(self.browser.run(f"{section}.innerText"),
                         r"every node always had at least \d\d % of its memory available")

    def test_every_chart_is_drawn(self):
        self.show()
        count = self.browser.run("document.querySelectorAll('canvas').length")
        self.assertGreaterEqual(count, 7)
        for place in range(count):
            colours = self.browser.run(f"{COLOURS}(document.querySelectorAll('canvas')[{place}])")
            self.assertGreater(len(colours), 3, f"canvas {place} is blank")

    def test_heat_map_shows_the_outage(self):
        self.show()
        colours = dict(self.browser.run(f"{COLOURS}(document.querySelector('.heat canvas'))"))
        shares = {}
        for name in ("--s1", "--s5", "--s6"):
            value = self.browser.run(f"getComputedStyle(document.documentElement).getPropertyValue('{name}').trim()")
            shares[name] = colours.get(",".join(str(int(value[i:i + 2], 16)) for i in (1, 3, 5)) + ",255", 0)
        self.assertGreater(shares["--s1"], 0.3)  # two zones of three, and the third for half of the time
        self.assertGreater(shares["--s6"], 0.05)  # tainted
        self.assertGreater(shares["--s5"], 0.001)  # unknown, before the taint
        self.assertGreater(shares["--s6"], shares["--s5"])

    def test_a_decision_unfolds(self):
        self.show()
        section = "document.querySelector('section[aria-label=Decisions]')"
        self.assertGreater(self.browser.run(f"{section}.querySelectorAll('li details').length"), 9)
        self.assertEqual(self.browser.run(f"{section}.querySelectorAll('pre').length"), 0)
        self.unfold()
        self.browser.run(f"{section}.querySelector('li summary').focus()")
        self.browser.key("Enter")
        self.wait_for_text()
        text = self.browser.run(f"{section}.querySelector('li details[open] pre').innerText")
        self.assertRegex(text.splitlines()[0], r"^node node-\d+ is (not )?tainted.*: its last sign of life")
        self.assertIn("  Also\n", text)
        self.assertRegex(text, r"zone ::zone-0 is \w+: \d+ of 10 nodes are ready")
        self.assert_quiet()

    def test_lists_filter_and_say_when_nothing_is_left(self):
        self.show()
        self.unfold()
        section = "document.querySelector('section[aria-label=Events]')"
        self.browser.run(
            f"""(box => {{ box.value = 'no such thing'; box.dispatchEvent(new Event('input')); }})({section}.querySelector('input'))"""
        )
        self.assertRegex(self.browser.run(f"{section}.querySelector('.empty').innerText"),
                         r"^None of the \d+ events matches\.$")
        self.assertEqual(self.browser.run("document.querySelector('.cards li b').innerText"), "0")  # evictions

    def test_keyboard_reads_the_heat_map_and_opens_a_node(self):
        self.show()
        self.browser.run("document.querySelector('.heat').focus()")
        self.browser.key("End")
        for _ in range(3):
            self.browser.key("ArrowRight")
        self.assertRegex(self.browser.run("document.querySelector('.readout').innerText"),
                         r"^\u22121:14\s+node-00029 \(zone-2\): ready, \S+Gi of 64Gi available$")
        self.browser.key("Enter")
        self.assertIn("node-00029", self.browser.run("document.querySelector('#node h2').innerText"))
        focusable = self.browser.run("""[...document.querySelectorAll('main button, main select, main input, main summary')]
            .every(each => each.tabIndex === 0)""")
        self.assertTrue(focusable)
        self.assert_quiet()

    def test_colour_scheme_may_change_while_it_is_open(self):
        self.show()
        light = self.browser.run(f"{COLOURS}(document.querySelector('.heat canvas'))")[0][0]
        self.browser.look(1280, dark=True)
        self.browser.settle()
        self.assertNotEqual(self.browser.run(f"{COLOURS}(document.querySelector('.heat canvas'))")[0][0], light)

    def test_two_runs_in_one_file(self):
        file = self.folder / "incident.html"
        for brakes in ("off", "on"):
            (self.folder / brakes).write_text(f"brakes: {brakes}\n")
        code, _, err = run("simulate", "rolling-reboot", "--config-a", self.folder / "off", "--config-b",
                           self.folder / "on", "--report", file)
        self.assertEqual((code, err), (0, ""))
        self.show(file=file)
        self.assertEqual(self.browser.run("document.querySelector('h1').innerText"),
                         f"rolling-reboot under {self.folder}/off")
        self.browser.run(
            """(list => { list.value = '1'; list.dispatchEvent(new Event('change')); })(document.querySelector('header select'))"""
        )
        self.browser.settle()
        self.assertEqual(self.browser.run("document.querySelector('h1').innerText"),
                         f"rolling-reboot under {self.folder}/on")
        self.assertIn("act-limit-reached", self.browser.run("document.querySelector('.facts').innerText"))
        self.assert_quiet(file)


class File(unittest.TestCase):
    """Tests that need no browser."""

    def simulate(self, file):
        return run("simulate", "zone-outage", "--nodes", "3", "--report", file)

    def test_no_handlers_and_a_strict_policy(self):
        with workspace() as folder:
            code, _, err = self.simulate(folder / "r.html")
            self.assertEqual((code, err), (0, ""))
            text = (folder / "r.html").read_text()
            parser = Handlers()
            parser.feed(text)
            self.assertEqual(parser.found, [])
            policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
            self.assertRegex(policy,
                             r"^default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; ")
            self.assertEqual([entry.name for entry in folder.iterdir()], ["r.html"])

    def test_a_file_that_is_there_is_replaced_as_a_whole(self):
        with workspace() as folder:
            file = folder / "r.html"
            file.write_text("old")
            held = file.open()
            self.assertEqual(self.simulate(file)[0], 0)
            self.assertEqual(held.read(), "old")
            self.assertTrue(file.read_text().endswith("</html>\n"))
            held.close()

    def test_what_cannot_be_written_is_said_before_the_run(self):
        with workspace() as folder:
            (folder / "file").write_text("")
            for path, why in ((folder / "missing/r.html", f"--report: there is no folder {folder}/missing"),
                              (folder, f"--report: {folder} is a folder"),
                              (folder / "file/r.html", f"--report: there is no folder {folder}/file"),
                              ("/proc/r.html", None)):
                with self.subTest(path=path):
                    code, out, err = self.simulate(path)
                    self.assertNotEqual(code, 0)
                    self.assertEqual(len(err.splitlines()), 1, err)
                    if why:
                        self.assertEqual((out, err), ("", f"spillway: {why}\n"))
            self.assertEqual(os.listdir(folder), ["file"])


if __name__ == "__main__":
    browser.leave_network()
    unittest.main()
