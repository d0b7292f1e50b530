"""Tokens of a C++ source: enough to find the head of a statement, where it ends, and an operator between its operands.

Offsets are those of libclang, in bytes: a text is read as Latin-1, in which each byte is one character.
"""
import bisect
import re

TOKEN = re.compile(
    r"""(?P<none>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
      |(?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
      |(?P<text>(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'))
      |(?P<number>\.?\d(?:[eEpP][+-]|'[\w]|[\w.])*)
      |(?P<word>[A-Za-z_\x80-\xff][\w\x80-\xff]*)
      |(?P<sign><=>|<<=|>>=|\.\.\.|->\*|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.S | re.X | re.M)
OPENING, CLOSING = "([{", ")]}"


def read(path):
    return path.read_bytes().decode("latin-1")


class Tokens:
    def __init__(self, text):
        self.text = text
        self.kinds, self.starts, self.ends, self.words = [], [], [], []
        for match in TOKEN.finditer(text):
            if match.lastgroup != "none":
                self.kinds.append("raw" if match.lastgroup == "mark" else match.lastgroup)
                self.starts.append(match.start())
                self.ends.append(match.end())
                self.words.append(match.group())

    def at(self, offset):
        """The first token that begins at `offset` or after it."""
        return bisect.bisect_left(self.starts, offset)

    def word(self, index):
        return self.words[index] if 0 <= index < len(self.words) else ""

    def within(self, start, end):
        """The tokens that begin in [start, end)."""
        return range(self.at(start), self.at(end))

    def exactly(self, start, end):
        """The one token that is [start, end), or nothing."""
        index = self.at(start)
        return index if index < len(self.starts) and self.starts[index] == start and self.ends[index] == end else None

    def closing(self, index):
        """The bracket that closes the one at `index`."""
        depth = 0
        for each in range(index, len(self.words)):
            depth += (self.words[each] in OPENING) - (self.words[each] in CLOSING)
            if depth == 0:
                return each
        return None

    def outside(self, indexes, wanted):
        """The `indexes` whose word is `wanted` and that are in no bracket that opens among them."""
        depth, found = 0, []
        for each in indexes:
            if self.words[each] in CLOSING:
                depth -= 1
            if depth == 0 and self.words[each] == wanted:
                found.append(each)
            if self.words[each] in OPENING:
                depth += 1
        return found

    def statements_at_most(self):
        """A bound on the statements of the text: each ends with a semicolon of its own, or begins with one of these
        words.
        """
        return sum(word in (";", "if", "for", "while") for word in self.words)

    def line(self, offset):
        return self.text.count("\n", 0, offset) + 1
