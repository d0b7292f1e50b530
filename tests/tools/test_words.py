"""tools/words.py finds comments and texts without a noun, passes good ones, and its record only falls."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import words  # noqa: E402


def found(path, text):
    return [number for number, _ in words.findings(path, text)]


class Comments(unittest.TestCase):
    def test_a_comment_that_names_its_thing_passes(self):
        self.assertEqual(found("src/a.h", "/// Seats of a write: one per ten.\nint seats();  // per write\n"), [])
        self.assertEqual(found("src/a.h", "/// The pods that `nobody` owns, and \"whoever\" in quotes.\nint a;\n"), [])
        self.assertEqual(found("tests/a.sh", "await() {  # WHAT COMMAND...: until it succeeds\n"), [])
        self.assertEqual(found("src/a.h", "// Software that offers a socket; an Office of pods.\n"), [])

    def test_each_opening_is_refused(self):
        for opening in ("What", "Of", "Who", "Whoever", "Whether", "Nobody", "what", "of", "who", "whether", "How",
                        "how",
                        "Nor", "It", "They", "That", "Those", "Whatever", "Whichever", "Everybody", "Anybody", "Whom",
                        "The one", "the ones", "One that"):
            opening += " of it"
            with self.subTest(opening):
                self.assertTrue(found("src/a.cc", f"int a;\n/// {opening}.\nint b;\n"))
                self.assertTrue(found("tools/a.py", f"# {opening}.\n"))
                self.assertTrue(found("cmake/a.cmake", f"# {opening}.\n"))

    def test_a_later_sentence_is_refused_only_where_a_line_begins_with_it(self):
        self.assertEqual(found("src/a.h", "// The first line ends.\n// What follows has no noun.\n"), [2])
        self.assertEqual(found("src/a.h", "// The first line says\n// what follows.\n"), [])
        self.assertEqual(found("src/a.h", "int a;  // a note\n// what stands alone begins a comment\n"), [2])

    def test_nameless_persons_are_refused_anywhere(self):
        self.assertEqual(found("src/a.cc", "// A lock that nobody holds,\n// and somebody waits for.\n"), [1, 2])
        self.assertEqual(found("src/a.cc", "// A file for everybody,\n// and anybody to whom it is.\n"), [1, 2, 2])
        self.assertEqual(found("tests/a.sh", "echo x # for whoever asks\n"), [1])

    def test_openings_are_whole_words(self):
        self.assertEqual(found("src/a.h", "/// However long it takes.\nint a;\n/// Items of a list.\nint b;\n"), [])
        self.assertEqual(found("src/a.h", "/// The one table of kinds.\nint a;\n/// One thread that waits.\nint b;\n"),
                         [])
        self.assertEqual(found("src/a.h", "// The first line says that\n// it goes.\n"), [])

    def test_private_verbs_are_refused_with_a_better_one(self):
        for text in ("is told", "tells the log", "it judges", "judged by a rule", "is looked at", "looks into it",
                     "look again", "settles it", "is believed", "goes on", "asks for it", "is to be had"):
            with self.subTest(text):
                self.assertEqual(found("src/a.h", f"int a;  // A name: {text}\n"), [1])
                self.assertEqual(found("tools/a.py", f"# A name: {text}\n"), [1])
        message = words.findings("src/a.h", "int a;  // A pod is told.\n")[0][1]
        self.assertEqual(message, "'told' in a comment: write report, notify, record or distinguish")

    def test_names_and_quoted_words_are_no_private_verbs(self):
        self.assertEqual(found("src/a.h", "// The class Judgement, `tell()`, and \"look at\".\nint a;\n"), [])
        self.assertEqual(found("src/a.h", "// A look-up; looks like a domain; asks the server; tellers.\nint a;\n"), [])

    def test_text_that_only_resembles_a_comment_passes(self):
        self.assertEqual(found("src/a.cc", 'auto a = "// What of it";\nauto b = R"(\n// Of such a text\n)";\n'), [])
        self.assertEqual(found("src/a.cc", "int a = 1'000; char b = '\"';  // Seconds.\n"), [])
        self.assertEqual(found("src/a.cc", "int a = 1'000'000;  // What of it?\n"), [1])
        self.assertEqual(found("ui/a.ts", "const a = `// What of it`; const b = /\"/; const c = '// Of it';\n"), [])
        self.assertEqual(found("ui/a.ts", "const b = /\"/; // Of it\n"), [1])
        self.assertEqual(found("tools/a.py", "a = '# What of it'\n"), [])
        self.assertEqual(found("tests/a.sh", "echo '# What of it' \"# Of it\" a#Who\n"), [])

    def test_blocks_and_docstrings(self):
        self.assertEqual(found("src/a.h", "/*\n * What of it goes.\n */\n"), [2])
        self.assertEqual(found("tools/a.py", 'def a():\n    """What of it goes."""\n'), [2])
        self.assertEqual(found("tools/a.py", 'def a():\n    """The rest.\n\n    Of it, nobody knows."""\n'), [4, 4])


class NamesOfTests(unittest.TestCase):
    def test_private_verbs_are_refused_anywhere_in_the_name(self):
        self.assertEqual(found("tests/a_test.cc", "\nTEST(Quota, ARefusalIsTold) {\n"), [2])
        self.assertEqual(found("tests/a_test.cc", "TEST_F(Quota, APodThatComesBack) {\n"), [1])
        self.assertEqual(found("tests/a_test.cc", "TEST_P(\n    Quota, WhatAThresholdMet) {\n"), [1])
        self.assertEqual(found("tests/e2e/test_a.py",
                               "class A:\n    def test_mistakes_are_told(self):\n        pass\n"), [2])

    def test_verbs_of_the_field_and_longer_words_pass(self):
        for name in ("ARefusalIsReported", "ComeliestStandardsHearth", "ABookmarkArrives"):
            with self.subTest(name):
                self.assertEqual(found("tests/a_test.cc", f"TEST(Quota, {name}) {{\n"), [])
        self.assertEqual(found("tests/e2e/test_a.py", "def test_a_standard_metric(self):\n    pass\n"), [])
        self.assertEqual(found("tests/e2e/a.py", "def told(self):\n    pass\n"), [])

    def test_the_message_names_the_verbs_of_the_field(self):
        _, message = words.findings("tests/a_test.cc", "TEST(Quota, ARefusalIsTold) {\n")[0]
        self.assertEqual(message, "the test 'ARefusalIsTold' has the word 'told': write report, record, name or list")



class Names(unittest.TestCase):
    def test_a_name_that_begins_with_a_private_verb_is_refused(self):
        for name in ("look_at_claim", "told_", "kLookAgain", "Judgement", "settle", "note_end", "take_in",
                     "LeaderDesk"):
            with self.subTest(name):
                expected = [] if name == "LeaderDesk" else [2]
                self.assertEqual(found("src/a.h", f"// A comment.\nvoid {name}();\n"), expected)
        self.assertEqual(words.findings("src/a.h", "bool told_ = false;\n")[0][1],
                         "'told_' begins with 'told': write report, notify or record")

    def test_strings_comments_and_other_names_pass(self):
        self.assertEqual(found("src/a.cc",
                               '#include "policy/leave.h"\nlog("leave the note");  // `look` was its name\n'), [])
        self.assertEqual(found("src/a.cc", "int leaf, notify, lookup_table, standard, comet, Telling_apart_ = 0;\n"),
                         [1])
        self.assertEqual(found("src/a.cc", "int leaf, notify, lookup_table, standard, comet = 0;\n"), [])
        self.assertEqual(found("tools/a.py", "def tell():\n    pass\n"), [])


class Sentences(unittest.TestCase):
    LONG = "word " * 31

    def test_a_sentence_of_a_page_has_thirty_words(self):
        self.assertEqual(found("docs/a.md", f"# Title\n\nA short one.\n\n{self.LONG}.\n"), [5])
        self.assertEqual(found("docs/a.md", f"- item\n- {self.LONG}\n"), [2])
        self.assertEqual(found("docs/a.md", "word " * 20 + "\n" + "word " * 20 + "\n"), [1])
        self.assertEqual(found("docs/a.md", "word " * 20 + ".\n" + "word " * 20 + "\n"), [])

    def test_scripts_and_style_sheets_of_pages_have_comments_too(self):
        for path in ("src/sim/report/page/a.js", "ui/src/a.css"):
            self.assertEqual(found(path, "/* What it shows. */\n"), [1])

    def test_a_page_names_users_and_programs(self):
        self.assertEqual(found("docs/a.md", "Whoever may write it, and nobody else.\n"), [1, 1])
        self.assertEqual(found("docs/a.md", "The word `nobody`, and User `nobody`.\n"), [])

    def test_lists_of_names_tables_code_and_the_changelog_pass(self):
        self.assertEqual(found("docs/a.md", "word, " * 31 + "\n"), [])
        self.assertEqual(found("docs/a.md", f"| {self.LONG} |\n\n```sh\n{self.LONG}\n```\n\n    {self.LONG}\n"), [])
        self.assertEqual(found("docs/a.md", "`" + self.LONG + "` is one word.\n"), [])
        self.assertEqual(found("CHANGELOG.md", self.LONG + "\n"), [])
        self.assertEqual(found("docs/adr/0001-a.md", self.LONG + "\n"), [])


class Texts(unittest.TestCase):
    def test_a_description_begins_with_a_verb_or_a_thing(self):
        for opening in ("How long to wait", "Whether to wait", "What to wait for"):
            self.assertEqual(found("src/cli/flags/a.cc", f'app.add_option("--a", a,\n    "{opening}");\n'), [2])
        self.assertEqual(found("src/cli/flags/a.cc", 'app.add_option("--a", a, "Time to wait");\n'), [])
        self.assertEqual(found("src/cli/text/a.cc", 'auto a = "What would happen:";\n'), [])

    def test_a_long_sentence_is_refused_also_in_pieces(self):
        pieces = '"' + "word " * 20 + '"\n    "' + "word " * 6 + '";\n'
        self.assertEqual(found("src/cli/text/a.cc", "auto a =\n    " + pieces), [2])
        self.assertEqual(found("src/cli/text/a.cc", 'auto a = "' + "word " * 25 + '";\n'), [])
        self.assertEqual(found("src/cli/text/a.cc", f'auto a = "{"word " * 20}end. {"word " * 20}";\n'), [])
        self.assertEqual(found("src/agent/a.cc", 'auto a = "' + "word " * 40 + '";\n'), [])

    def test_paragraphs_and_indented_lines_end_a_sentence(self):
        twenty = "word " * 20
        self.assertEqual(found("src/cli/text/a.cc", f'auto a = R"({twenty}\n  {twenty})";\n'), [])
        self.assertEqual(found("src/cli/text/a.cc", f'auto a = R"({twenty}\n{twenty})";\n'), [1])


class Pages(unittest.TestCase):
    def test_long_lines_are_in_tables_and_code_only(self):
        long = "words, " * 41
        self.assertEqual(found("docs/a.md", f"# Page\n\n{long}\n"), [3])
        self.assertEqual(found("docs/a.md", f"# Page\n\n| {long} |\n\n```\n{long}\n```\n{'word, ' * 33}\n"), [])


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("tools", "src"):
            (self.root / name).mkdir()
        self.put("// What of it.\nint a;\n// Of it.\n")
        self.assertEqual(self.write(force=True), 0)

    def put(self, text, name="src/a.cc"):
        (self.root / name).write_text(text)

    def write(self, force=False):
        with contextlib.redirect_stdout(io.StringIO()):
            return words.write(self.root, force)

    def problems(self):
        return list(words.check(self.root))

    def record(self):
        return (self.root / words.RECORD).read_text().splitlines()[1:]

    def test_the_recorded_number_passes_and_fewer_pass(self):
        self.assertEqual(self.record(), ["src/a.cc 2"])
        self.assertEqual(self.problems(), [])
        self.put("// What of it.\n")
        self.assertEqual(self.problems(), [])

    def test_one_more_is_named_with_its_line(self):
        self.put("// What of it.\nint a;\n// Of it.\nint b;\n// Who.\n")
        self.assertIn("src/a.cc:5: a comment begins with 'Who'", self.problems()[2])
        self.assertEqual(self.problems()[-1], "src/a.cc: 3 findings, 2 are recorded in tools/words.txt")

    def test_a_new_file_starts_at_none(self):
        self.put("// What of it.\n", "src/b.cc")
        self.assertEqual(self.problems()[-1], "src/b.cc: 1 findings, 0 are recorded in tools/words.txt")

    def test_writing_lowers_and_does_not_raise_unless_forced(self):
        self.put("// What of it.\n")
        self.assertEqual(self.write(), 0)
        self.assertEqual(self.record(), ["src/a.cc 1"])
        self.put("// What of it.\nint a;\n// Of it.\n")
        self.assertEqual(self.write(), 1)
        self.assertEqual(self.record(), ["src/a.cc 1"])
        self.assertEqual(self.write(force=True), 0)
        self.assertEqual(self.record(), ["src/a.cc 2"])

    def test_a_clean_file_leaves_the_record(self):
        self.put("int a;\n")
        self.assertEqual(self.write(), 0)
        self.assertEqual(self.record(), [])


if __name__ == "__main__":
    unittest.main()
