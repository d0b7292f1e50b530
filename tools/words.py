#!/usr/bin/env python3
"""Gate: comments and names say what they are about, and sentences for users and of pages have a bearable length.

usage: tools/words.py [--root DIR] [--list [PATH...]] [--write [--force]]

Refused in comments and docstrings of the folders below:
  - a comment that begins with a word of OPENINGS (`What`, `How`, `It`, `Those`, `The one`, ...): it has no noun, so a
    reader must already know the code;
  - the words `nobody`, `somebody`, `everybody`, `anybody`, `whoever` and `whom`: programs and objects have names;
  - the verbs of PRIVATE (`told`, `judged`, `looked at`, ...), each with the verb of the field, as in CONTRIBUTING.md.
Refused in the string literals of src/cli:
  - in src/cli/flags, a text that begins with How, Whether or What: a description begins with a verb or names the thing;
  - more than 25 words without a full stop.
Refused in names of the code in src, tests, bench and fuzz (C++): the same sort of verbs as the first word
(`look_at_claim`, `told_`, `Judgement`), each with the verb of the field, by NAMES. Refused anywhere in the name of a
test (`TEST(...)` and `def test_...`): the words of TEST_VERBS. Refused in README.md, CONTRIBUTING.md, CHANGELOG.md and
docs/ (but for docs/spec and docs/changes), outside tables and code: a line of more than 200 characters. In all but the
changelog and the decision records: more than 30 words without a full stop, a colon or a semicolon, unless every seventh
word has a comma (a list of names). Text in quotes or backquotes is left out of comments.

tools/words.txt records how many findings each file has left. A file may have fewer, never more. `--write` records
today's numbers and fails if one would grow, unless `--force` says so; `--list` prints every finding, of the given files
or folders only. Exit 1 if a file has more than its number.
"""
import argparse
import ast
import io
import pathlib
import re
import sys
import tokenize

RECORD = "tools/words.txt"
FOLDERS = ["src", "tests", "bench", "fuzz", "tools", "cmake", "packaging", "ui"]
NAMED = ("src/", "tests/", "bench/", "fuzz/")
SKIPPED = {"build", "node_modules", "__pycache__"}
C_LIKE = {".h", ".cc", ".ts", ".tsx", ".js", ".mjs", ".css"}
HASHED = {".sh", ".cmake"}
WORDS_MAX = 25
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
PAGES_SKIPPED = ("docs/spec/", "docs/changes/")
LINE_MAX = 200
SENTENCES_SKIPPED = ("CHANGELOG.md", "docs/adr/")
SENTENCE_MAX = 30
WORDS_PER_COMMA = 7  # a list of names has at least one comma in so many words

# "How many", "which of them" and the like begin a question, not a name; "that" and "it" need a noun before them.
OPENINGS = ("what", "of", "who", "whom", "whoever", "whether", "whatever", "whichever", "how", "nor", "it", "they",
            "that", "those", "nobody", "everybody", "anybody", "one that",
            r"the ones?(?=[,;:.]|\s*$|\s+(?:that|which|whose|who|of|in|it|under|to)\b)")
OPENING = re.compile(rf"({'|'.join(f'[{word[0].upper()}{word[0]}]{word[1:]}' for word in OPENINGS)})\b")
SENTENCE_OPENING = re.compile(r"(What|Of|Who|Whom|Whoever|Whether|Whatever|Nobody|Everybody|Anybody)\b")
NAMELESS = re.compile(r"\b(nobody|somebody|everybody|anybody|whoever|whom)\b", re.IGNORECASE)
# A verb as it is written, and the ones of the field that say the same. Capitals begin names of classes.
PRIVATE = {
    r"judge[ds]?|judging|judgements?": "evaluate, validate or decide",
    r"told|tells?|telling": "report, notify, record or distinguish",
    r"look(?:s|ed|ing)? (?:at|into|again)": "sync, check, read or compare",
    r"settle[ds]?|settling": "commit, end or decide",
    r"believe[ds]?|believing": "trust, or name the fact",
    r"(?:go|goes|going|went) on": "continue",
    r"ask(?:s|ed|ing)? for": "request, require or read",
    r"to be had": "available",
}
PRIVATE_VERB = {re.compile(rf"\b(?:{pattern})\b"): instead for pattern, instead in PRIVATE.items()}
# The first word of a name, and the ones of the field that say the same.
NAMES = {
    "look looks looked looking": "sync, check, find or observe",
    "tell tells told telling": "report, notify or record",
    "judge judges judged judging judgement": "evaluate, validate or decide",
    "settle settles settled settling": "commit, finish or end",
    "come comes came coming": "arrive, adopt or begin",
    "leave leaves leaving": "release, exit or keep",
    "note noted": "mark or record",
    "stand stands stood standing": "wait or hold",
    "mend mends mended": "repair or restore",
    "meet meets met meeting": "reach or conflict",
    "hear hears heard heed heeds": "receive",
    "take_in takes_in took_in": "refresh or take over",
    "knower knowers asker askers": "observer or requester",
    "desk desks": "book, ledger or queue",
}
# A word of a test's name, and the ones of the field that say the same.
TEST_VERBS = {
    "look looks looked": "sync, check, read or compare",
    "tell tells told": "report, record, name or list",
    "judge judges judged": "evaluate, validate or decide",
    "believe believes believed": "trust or accept",
    "come comes came coming": "arrive, follow, recover or be restored",
    "stand stands standing stood": "be, wait or hold",
    "note notes noted": "mark, record or annotate",
    "hear hears heard heed heeds": "receive",
    "meet meets met": "reach, match or conflict",
    "settle settles settled": "commit, finish or end",
    "mend mends mended": "repair or restore",
    "nobody nobodys nobodies somebody everybody whoever": "the client, pod, node or user that is meant",
}
TEST_VERB = {word: instead for words, instead in TEST_VERBS.items() for word in words.split()}
TEST_NAME = {".cc": re.compile(r"\bTEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)"),
             ".py": re.compile(r"^\s*def (test_\w+)", re.MULTILINE)}
NAME_VERB = {word: instead for words, instead in NAMES.items() for word in words.split()}
NAME = re.compile(rf"\b_?k?(?i:{'|'.join(sorted(NAME_VERB, reverse=True))})\w*")
INCLUDE = re.compile(r"^\s*#\s*include[^\n]*", re.MULTILINE)
QUOTED = re.compile(r'`[^`\n]*`|"[^"\n]*"')
DESCRIPTION_OPENING = re.compile(r"(How|Whether|What)\b")
# A sentence, or a paragraph: an indented line of a longer text is one of its own.
FULL_STOP = re.compile(r"[.!?][)\"']?(?=\s|$)|\n\s*\n|\n(?=[ \t])")

TOKEN = re.compile(r"""
      (?P<raw>R"(?P<mark>[^()\s\\]{0,16})\((?P<raw_text>.*?)\)(?P=mark)")
    | (?P<string>"(?:\\.|[^"\\\n])*")
    | (?P<line>//[^\n]*)
    | (?P<block>/\*.*?\*/)
    | \d[\w.']*                                   # 1'000 is a number, not a character
    | '(?:\\.|[^'\\\n])*'
    """, re.VERBOSE | re.DOTALL)
# TypeScript has templates, and patterns in which quotes and slashes mean nothing.
SCRIPT_TOKEN = re.compile(r"""
      `(?:\\.|[^`\\])*`
    | [(,=:\[!&|?{};]\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+/
    |""" + TOKEN.pattern, re.VERBOSE | re.DOTALL)
HASH_TOKEN = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'[^']*'|(?:(?<=\s)|^)\#[^\n]*""", re.MULTILINE)
BETWEEN_PIECES = re.compile(r"(?:\s|//[^\n]*)*")


class Comment:
    """Consecutive lines of comment: the number of the first, and the texts without their marks."""

    def __init__(self, first, lines, column=None):
        self.first, self.lines, self.column = first, lines, column

    def findings(self):
        if self.lines and OPENING.match(self.lines[0]):
            opening = " ".join(OPENING.match(self.lines[0]).group().split())
            yield self.first, f"a comment begins with '{opening}': name the thing that it is about"
        for number, line in enumerate(self.lines, self.first):
            if number != self.first and SENTENCE_OPENING.match(line):
                yield number, f"a sentence begins with '{line.split()[0]}': name the thing that it is about"
            plain = QUOTED.sub(" ", line)
            for word in NAMELESS.finditer(plain):
                yield number, f"'{word.group()}' in a comment: name the program or the object"
            for verb, instead in PRIVATE_VERB.items():
                for word in verb.finditer(plain):
                    yield number, f"'{word.group()}' in a comment: write {instead}"


def joined(comments):
    """Whole-line comments that follow each other in the same column, as one."""
    whole = []
    for each in comments:
        last = whole[-1] if whole else None
        below = last is not None and last.first + len(last.lines) == each.first
        if below and each.column is not None and last.column == each.column:
            last.lines += each.lines
        else:
            whole.append(each)
    return whole


def column_of(text, start):
    """The column of a comment that has its line for itself; None where code stands before it."""
    before = text[text.rfind("\n", 0, start) + 1:start]
    return None if before.strip() else len(before)


def line_of(text, at):
    return 1 + text.count("\n", 0, at)


def c_comments(text, token):
    for found in token.finditer(text):
        if found.group("line"):
            content = found.group("line").lstrip("/!<").strip()
            yield Comment(line_of(text, found.start()), [content], column_of(text, found.start()))
        elif found.group("block"):
            lines = [line.strip().lstrip("*").strip() for line in found.group("block")[2:-2].split("\n")]
            blank = 0
            while blank + 1 < len(lines) and not lines[blank]:
                blank += 1
            yield Comment(line_of(text, found.start()) + blank, lines[blank:])


def hash_comments(text):
    for found in HASH_TOKEN.finditer(text):
        if found.group().startswith("#") and not found.group().startswith("#!"):
            content = found.group().lstrip("#").strip()
            yield Comment(line_of(text, found.start()), [content], column_of(text, found.start()))


def python_comments(text):
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        if each.type == tokenize.COMMENT and not each.string.startswith("#!"):
            after_code = each.line[:each.start[1]].strip()
            yield Comment(each.start[0], [each.string.lstrip("#").strip()], None if after_code else each.start[1])


def docstrings(text):
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node):
            literal = node.body[0].value
            yield Comment(literal.lineno, [line.strip() for line in literal.value.split("\n")])


def user_texts(text):
    """String literals with the number of their first line; neighbours are one text, as for the compiler."""
    first, parts, end = 0, [], 0
    for found in TOKEN.finditer(text):
        if not (found.group("raw") or found.group("string")):
            continue
        content = found.group("raw_text")
        if found.group("string"):
            content = found.group("string")[1:-1].replace("\\n", "\n").replace('\\"', '"')
        if parts and BETWEEN_PIECES.fullmatch(text, end, found.start()):
            parts.append(content)
        else:
            if parts:
                yield first, "".join(parts)
            first, parts = line_of(text, found.start()), [content]
        end = found.end()
    if parts:
        yield first, "".join(parts)


def text_findings(path, text):
    for number, content in user_texts(text):
        opening = DESCRIPTION_OPENING.match(content)
        if opening and path.startswith("src/cli/flags/"):
            yield number, f"a description begins with '{opening.group()}': begin with a verb or name the thing"
        longest = max(len(re.findall(r"\S*\w\S*", sentence)) for sentence in FULL_STOP.split(content))
        if longest > WORDS_MAX:
            opening = " ".join(content.split()[:6])
            yield number, f"{longest} words without a full stop, {WORDS_MAX} are allowed: {opening} ..."


def verb_of(name):
    """The private verb with which a name begins, or None: `look` of look_at_claim, kLookAgain, LookAgain."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"^k(?=[A-Z])", "", name)).lower().strip("_")
    for words in (2, 1):
        first = "_".join(snake.split("_")[:words])
        if first in NAME_VERB:
            return first
    return None


def name_findings(text):
    """Names in C++ code, without strings, comments and includes."""
    blank = TOKEN.sub(lambda token: "\n" * token.group().count("\n") or " ", INCLUDE.sub("", text))
    for found in NAME.finditer(blank):
        verb = verb_of(found.group())
        if verb:
            yield line_of(blank, found.start()), f"'{found.group()}' begins with '{verb}': write {NAME_VERB[verb]}"


def test_name_findings(text, suffix):
    for found in TEST_NAME[suffix].finditer(text):
        name = found.group(1)
        for word in re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().split("_"):
            if word in TEST_VERB:
                yield line_of(text, found.start()), f"the test '{name}' has the word '{word}': write {TEST_VERB[word]}"


def page_lines(text):
    """The lines outside code and tables, with their numbers; others are empty."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.lstrip().startswith(("```", "~~~"))
        code ^= mark
        indented = line.startswith("    ") and not re.match(r"\s*([-*+]|\d+\.) ", line)
        yield number, "" if mark or code or line.lstrip().startswith("|") else line, indented


def paragraphs(text):
    """Paragraphs and items of lists of a page: the number of the first line, and the text."""
    first, parts, after_blank = 0, [], True
    for number, line, indented in page_lines(text):
        plain = line.strip()
        begins = re.match(r"([-*+]|\d+\.) ", plain) is not None
        if parts and (not plain or begins or plain.startswith("#")):
            yield first, " ".join(parts)
            parts = []
        if plain and not plain.startswith(("#", "<", "![")) and not (indented and after_blank):
            first = first if parts else number
            parts.append(plain)
        after_blank = not plain or (indented and after_blank)
    if parts:
        yield first, " ".join(parts)


def sentence_findings(text):
    for number, paragraph in paragraphs(text):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", paragraph))
        for word in NAMELESS.finditer(plain):
            yield number, f"'{word.group()}' has no name: write which user, client or program"
        for sentence in re.split(r"[.!?:;][)\"'*_]*\s", plain):
            words = re.findall(r"\S*\w\S*", sentence)
            if len(words) > SENTENCE_MAX and sentence.count(",") * WORDS_PER_COMMA < len(words):
                yield number, f"{len(words)} words in a sentence, {SENTENCE_MAX} are allowed: {' '.join(words[:6])} ..."


def page_findings(path, text):
    for number, line, _ in page_lines(text):
        if len(line) > LINE_MAX:
            yield number, f"{len(line)} characters, {LINE_MAX} are allowed"
    if not path.startswith(SENTENCES_SKIPPED):
        yield from sentence_findings(text)


def findings(path, text):
    suffix = pathlib.PurePosixPath(path).suffix
    if suffix == ".md":
        return sorted(page_findings(path, text))
    if suffix in C_LIKE:
        comments = joined(c_comments(text, TOKEN if suffix in (".h", ".cc") else SCRIPT_TOKEN))
    elif suffix == ".py":
        comments = joined(python_comments(text)) + list(docstrings(text))
    else:
        comments = joined(hash_comments(text))
    found = [finding for comment in comments for finding in comment.findings()]
    if path.startswith("src/cli/") and suffix in (".h", ".cc"):
        found += text_findings(path, text)
    if path.startswith(NAMED) and suffix in (".h", ".cc"):
        found += name_findings(text)
    if path.startswith("tests/") and suffix in TEST_NAME:
        found += test_name_findings(text, suffix)
    return sorted(found)


def is_shell(path):
    if path.suffix:
        return False
    with path.open("rb") as file:
        return re.match(rb"#!.*\b(ba)?sh\b", file.readline(64)) is not None


def sources(root):
    yield from (root / name for name in ["dev", *PAGES] if (root / name).is_file())
    for path in sorted((root / "docs").rglob("*.md")):
        if not path.relative_to(root).as_posix().startswith(PAGES_SKIPPED):
            yield path
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if SKIPPED & set(path.relative_to(root).parts) or not path.is_file():
                continue
            known = path.suffix in C_LIKE | HASHED | {".py"} or path.name == "CMakeLists.txt"
            if known or is_shell(path):
                yield path


def all_findings(root):
    found = {}
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        here = findings(name, path.read_text())
        if here:
            found[name] = here
    return found


def recorded(root):
    if not (root / RECORD).exists():
        return {}
    lines = (root / RECORD).read_text().splitlines()
    rows = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
    return {name: int(count) for name, count in rows}


def growth(root, found):
    allowed = recorded(root)
    return {name: allowed.get(name, 0) for name, here in sorted(found.items()) if len(here) > allowed.get(name, 0)}


def lines_of(name, here):
    return [f"{name}:{number}: {text}" for number, text in here]


def write(root, force):
    found = all_findings(root)
    grown = growth(root, found)
    if grown and not force:
        for name, allowed in grown.items():
            print(f"{name}: {len(found[name])} findings, {allowed} are recorded; "
                  "mend them, or write with --force and say why in the change")
        return 1
    rows = ["# Written by tools/words.py --write: how many findings each file has left. These numbers only fall."]
    rows += [f"{name} {len(here)}" for name, here in sorted(found.items())]
    (root / RECORD).write_text("\n".join(rows) + "\n")
    return 0


def check(root):
    found = all_findings(root)
    for name, allowed in growth(root, found).items():
        yield from lines_of(name, found[name])
        yield f"{name}: {len(found[name])} findings, {allowed} are recorded in {RECORD}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=here)
    parser.add_argument("--list", nargs="*", metavar="PATH", help="print every finding, of these files or folders only")
    parser.add_argument("--write", action="store_true", help="record today's numbers, where none grows")
    parser.add_argument("--force", action="store_true", help="with --write: record numbers that grow as well")
    args = parser.parse_args()
    if args.write:
        return write(args.root, args.force)
    if args.list is not None:
        wanted = [path.rstrip("/") for path in args.list]
        for name, found in all_findings(args.root).items():
            if not wanted or any(name == path or name.startswith(path + "/") for path in wanted):
                print("\n".join(lines_of(name, found)))
        return 0
    problems = list(check(args.root))
    print("\n".join(problems) or f"words: none new, {sum(recorded(args.root).values())} recorded")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
