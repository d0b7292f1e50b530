#!/usr/bin/env python3
"""tools/descriptions.py reports missing descriptions of a small tree, and passes complete ones."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import descriptions  # noqa: E402

SCHEMA = {"types": {"core/v1.Box": [[1, "size", "int32", "keep"], [2, "source", "core/v1.BoxSource", "inline"]],
                    "core/v1.BoxSource": [[1, "from", "string"]],
                    "meta/v1.Time": [[1, "seconds", "int64"]],
                    "authorization/v1.ExtraValue": [[1, "items", "string", "rep"]]}}
GOOD = (
    "# boxes\ncore/v1.Box: Holds things.\n size: How much it holds.\n\ncore/v1.BoxSource: Where a box comes from.\n"
    " from: Its maker.\n"
)
PATH = "src/api/schema/descriptions/boxes.txt"


class Descriptions(unittest.TestCase):
    def findings(self, text, waiting=()):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, content in ((descriptions.SCHEMA, json.dumps(SCHEMA)), (PATH, text)):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(content)
            return list(descriptions.check(root, frozenset(waiting)))

    def changed(self, old, new):
        self.assertIn(old, GOOD)
        return self.findings(GOOD.replace(old, new))

    def test_a_complete_file_passes(self):
        self.assertEqual(self.findings(GOOD), [])
        self.assertEqual(self.changed(" size", " from: Who made it.\n size"), [],
                         "a type may say more of an inlined field")

    def test_what_is_missing_is_named(self):
        self.assertEqual(self.changed(" size: How much it holds.\n", ""),
                         [f"{PATH}:2: core/v1.Box.size is not described"])
        self.assertEqual(self.changed("core/v1.BoxSource: Where a box comes from.\n from: Its maker.\n", ""),
                         ["src/api/schema/api-schema.json: core/v1.BoxSource is not described"])

    def test_what_does_not_exist_is_named(self):
        self.assertEqual(self.changed(" size", " colour: Red.\n size"), [f"{PATH}:2: core/v1.Box has no field colour"])
        self.assertEqual(self.findings(GOOD + "core/v1.Bag: Holds less.\n"),
                         [f"{PATH}:7: there is no type core/v1.Bag"])

    def test_repeated_descriptions_are_named(self):
        self.assertEqual(self.changed(" size", " size: Its volume.\n size"),
                         [f"{PATH}:4: core/v1.Box.size stands twice"])
        self.assertEqual(self.findings(GOOD + "core/v1.Box: Again.\n size: Its volume.\n"),
                         [f"{PATH}:7: core/v1.Box stands in {PATH} as well"])

    def test_texts_of_neighbours_differ(self):
        self.assertEqual(self.changed("How much it holds.", "Holds things."),
                         [f"{PATH}:3: core/v1.Box.size says the same as core/v1.Box"])
        self.assertEqual(self.changed("Where a box comes from.", "Holds things."),
                         [f"{PATH}:5: core/v1.BoxSource says the same as core/v1.Box"])

    def test_texts_are_sentences_in_our_words(self):
        for text, fault in (("How much", "does not end with a full stop"), ("", "is empty"),
                            ("A common size.", "holds the word 'common'"),
                            ("TODO size.", "tells of work left undone"),
                            ("Gr\u00f6\u00dfe.", "holds more than ASCII and single blanks"),
                            ("x" * 400 + ".", "has 401 characters, more than 400")):
            self.assertEqual(self.changed("How much it holds.", text), [f"{PATH}:3: core/v1.Box.size {fault}"])

    def test_lines_have_a_name_and_a_text(self):
        self.assertEqual(self.findings(GOOD + " colour\n"), [f"{PATH}:7: expected NAME: TEXT"])
        self.assertEqual(self.findings(" size: First.\n" + GOOD), [f"{PATH}:1: a field without a type"])

    def test_what_waits_is_described_and_not_served(self):
        more = GOOD + "core/v1.Bag: Holds less.\n anything: Whatever.\n"
        self.assertEqual(self.findings(more, ["core/v1.Bag"]), [])
        self.assertEqual(self.findings(GOOD, ["core/v1.Bag"]), ["tools/descriptions.py: core/v1.Bag does not wait"])
        self.assertEqual(self.findings(GOOD, ["core/v1.Box"]), ["tools/descriptions.py: core/v1.Box does not wait"])


if __name__ == "__main__":
    unittest.main()
