#!/usr/bin/env python3
"""Gate: what `kubectl explain` says. Every type and field of the wire schema is described in
src/api/schema/descriptions/, and nothing else is.

usage: tools/descriptions.py [--root DIR]
Prints one line per finding, file:line: what. Exit 1 if there is any.
"""
import argparse
import json
import pathlib
import re
import sys

import tidy

SCHEMA = "src/api/schema/api-schema.json"
FOLDER = "src/api/schema/descriptions"
LONGEST = 400
UNDONE = re.compile(r"\b(TODO|FIXME|XXX)\b")

# Messages that are no objects in JSON: times, numbers with units, values of any form, the envelope of protobuf.
NO_OBJECTS = {"intstr.IntOrString", "meta/v1.FieldsV1", "meta/v1.MicroTime", "meta/v1.Time", "resource.Quantity",
              "runtime.RawExtension",
              "runtime.TypeMeta", "runtime.Unknown"}
NO_OBJECT_NAMES = {"ExtraValue", "Verbs"}

# Types that are described before they are served. One that is served, or not described, is wrong here.
WAITING = frozenset()


class Field:
    def __init__(self, row):
        self.name, self.type = row[1], row[2]
        self.inlined = len(row) > 3 and "inline" in row[3].split()


def read_schema(root):
    types = json.loads((root / SCHEMA).read_text())["types"]
    return {name: [Field(row) for row in rows] for name, rows in types.items()}


def is_object(name):
    return name not in NO_OBJECTS and name.rpartition(".")[2] not in NO_OBJECT_NAMES


def json_names(schema, name):
    """Members of the type in JSON, with those of inlined messages."""
    for field in schema[name]:
        if field.inlined:
            yield from json_names(schema, field.type)
        else:
            yield field.name


class Block:
    """A type with its text and those of its fields, as (line, name, text)."""
    def __init__(self, line, name, text):
        self.line, self.name, self.text = line, name, text
        self.fields = []


def read_file(file, path):
    blocks, findings = [], []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        name, separator, text = line.removeprefix(" ").partition(": ")
        if not separator:
            findings.append(f"{path}:{number}: expected NAME: TEXT")
        elif not line.startswith(" "):
            blocks.append(Block(number, name, text))
        elif not blocks:
            findings.append(f"{path}:{number}: a field without a type")
        else:
            blocks[-1].fields.append((number, name, text))
    return blocks, findings


def faults_of(text):
    if not text.strip():
        return ["is empty"]
    faults = []
    if len(text) > LONGEST:
        faults.append(f"has {len(text)} characters, more than {LONGEST}")
    if not text.endswith("."):
        faults.append("does not end with a full stop")
    if not text.isascii() or "  " in text or text != text.strip():
        faults.append("holds more than ASCII and single blanks")
    for word in sorted(tidy.FOLDER_WORDS & set(re.findall(r"[a-z]+", text.lower()))):
        faults.append(f"holds the word '{word}'")
    if UNDONE.search(text):
        faults.append("tells of work left undone")
    return faults


def same_thing(one, other):
    """Sources of volumes in pods and in PersistentVolumes."""
    return one.replace("Persistent", "") == other.replace("Persistent", "")


def check_block(schema, block, path):
    seen = {block.text: block.name}
    names = set()
    for number, name, text in block.fields:
        for fault in faults_of(text):
            yield f"{path}:{number}: {block.name}.{name} {fault}"
        if text in seen:
            yield f"{path}:{number}: {block.name}.{name} says the same as {seen[text]}"
        seen[text] = name
        if name in names:
            yield f"{path}:{number}: {block.name}.{name} stands twice"
        names.add(name)
    if block.name not in schema:
        return
    for name in sorted(names - set(json_names(schema, block.name))):
        yield f"{path}:{block.line}: {block.name} has no field {name}"
    for field in schema[block.name]:
        if not field.inlined and field.name not in names:
            yield f"{path}:{block.line}: {block.name}.{field.name} is not described"


def check(root, waiting=WAITING):
    schema = read_schema(root)
    where = {}
    for file in sorted((root / FOLDER).glob("*.txt")):
        path = file.relative_to(root).as_posix()
        blocks, findings = read_file(file, path)
        yield from findings
        for before, block in zip([None, *blocks], blocks):
            for fault in faults_of(block.text):
                yield f"{path}:{block.line}: {block.name} {fault}"
            if block.name in where:
                yield f"{path}:{block.line}: {block.name} stands in {where[block.name]} as well"
            where[block.name] = path
            if block.name not in schema and block.name not in waiting:
                yield f"{path}:{block.line}: there is no type {block.name}"
            if before is not None and before.text == block.text and not same_thing(before.name, block.name):
                yield f"{path}:{block.line}: {block.name} says the same as {before.name}"
            yield from check_block(schema, block, path)
    for name in sorted(schema):
        if is_object(name) and name not in where:
            yield f"{SCHEMA}: {name} is not described"
    for name in sorted(waiting):
        if name in schema or name not in where:
            yield f"tools/descriptions.py: {name} does not wait"


def main():
    parser = argparse.ArgumentParser(description=" ".join(__doc__.split("\n\n")[0].split()))
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    findings = list(check(parser.parse_args().root))
    print("\n".join(findings) if findings else "descriptions: complete")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
