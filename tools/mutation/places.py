"""Places of a source where one plausible mistake can be made: its statements, each with the changes that fit it.

A change is a list of edits [start, end, new text], its kind, and the function that it stands in. They come from the
syntax tree of libclang, which is given the real source with the options of its unit. What a macro expands to is left
alone, but for SPILLWAY_TRY and SPILLWAY_TRY_VOID.
"""
import ctypes
import difflib
import hashlib
import json
import pathlib
import re
import sys

try:
    from clang import cindex
except ImportError:  # another interpreter than that of Debian, whose package python3-clang-19 needs none of its own
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        from clang import cindex
    except ImportError:
        cindex = None

import tokens

KINDS = {
    "call": "a call is left out",
    "release": "an erase, cancel, arm, release, notify or clear is left out",
    "assignment": "an assignment is left out",
    "negation": "a condition is negated",
    "branch": "a branch is dropped",
    "return": "an early return is dropped",
    "swallow": "an error is swallowed",
    "comparison": "a comparison is off by its border",
    "constant": "a constant is off by one",
    "ternary": "the arms of ?: are turned",
    "arguments": "two arguments of one type are swapped",
    "round": "a loop ends after its first round",
}
RELEASES = re.compile(
    r"^(re|dis)?(erase|cancel|arm|release|notify|clear|reset|remove|pop|drop|close|stop|forget|free|unlink)(_|$)|(_|^)give_back(_|$)"
)
ASSIGNMENTS = re.compile(r"^operator([-+*/%&|^]|<<|>>)?=$|^operator(\+\+|--)$")
BORDERS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
EVEN = {"min", "max", "swap", "minmax", "gcd"}  # functions whose arguments may stand in either order
SWALLOWED = {
    "SPILLWAY_TRY_VOID": lambda arguments: f"static_cast<void>({arguments})",
    "SPILLWAY_TRY": lambda arguments: (
        "auto {} = [](auto tried) {{ return tried ? *std::move(tried) : std::decay_t<decltype(*tried)>{{}}; }}({})"
        .format(*(part.strip() for part in arguments.split(",", 1)))
    ),
}


class Unreadable(Exception):
    """A source that libclang does not parse."""


def applied(text, edits):
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def difference(text, edits):
    """The lines that the edits change: as they are, and as they become."""
    start = text.rfind("\n", 0, min(edit[0] for edit in edits)) + 1
    end = text.find("\n", max(edit[1] for edit in edits))
    end = len(text) if end < 0 else end
    old = text[start:end].split("\n")
    new = applied(text[start:end], [[a - start, b - start, put] for a, b, put in edits]).split("\n")
    changed = [each for each in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
               if each[0] != "equal"]
    return ([line for _, a, b, _, _ in changed for line in old[a:b]],
            [line for _, _, _, a, b in changed for line in new[a:b]])


class Walk:
    """One source, from its tree to its places."""

    EXPRESSIONS_WITH_ONE = ("UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR")
    FUNCTIONS = ("FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION", "FUNCTION_TEMPLATE")
    SCOPES = ("NAMESPACE", "STRUCT_DECL", "CLASS_DECL", "CLASS_TEMPLATE", "CLASS_TEMPLATE_PARTIAL_SPECIALIZATION",
              "LINKAGE_SPEC", "UNEXPOSED_DECL")
    LOOPS = ("FOR_STMT", "WHILE_STMT", "DO_STMT", "CXX_FOR_RANGE_STMT")

    def __init__(self, text, unit):
        self.tokens, self.text = tokens.Tokens(text), text
        self.places, self.seen, self.changes, self.macros = [], set(), None, []
        of_file = [each for each in unit.cursor.get_children()
                   if cindex.conf.lib.clang_Location_isFromMainFile(each.location)]
        for each in of_file:
            if each.kind.name == "MACRO_INSTANTIATION":
                self.macros.append((*self.span(each), each.spelling))
        for each in of_file:
            self.declaration(each, [])
        self.places.sort(key=lambda place: place["at"])

    @staticmethod
    def offset(location):
        """Where it stands in the file: of an argument of a macro that is the argument, not the macro."""
        file, line, column, offset = cindex.c_object_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
        cindex.conf.lib.clang_getFileLocation(location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column),
                                              ctypes.byref(offset))
        return offset.value

    def span(self, cursor):
        extent = cursor.extent
        return self.offset(extent.start), self.offset(extent.end)

    # Declarations.

    def declaration(self, cursor, scope):
        kind = cursor.kind.name
        if kind in self.SCOPES:
            for each in cursor.get_children():
                if each.kind.is_declaration():
                    self.declaration(each, scope + [cursor.spelling])
        elif kind in self.FUNCTIONS:
            owner, names = cursor.semantic_parent, [cursor.spelling]
            while owner is not None and owner.kind.name != "TRANSLATION_UNIT":
                names.insert(0, owner.spelling)
                owner = owner.semantic_parent
            self.function = "::".join(name for name in names if name and not name.startswith("(anonymous"))
            for each in cursor.get_children():
                # not those that the compiler writes
                if each.kind.name == "COMPOUND_STMT" and self.text[self.span(each)[0]] == "{":
                    self.statement(each)
                elif each.kind.name == "CXX_TRY_STMT":
                    self.statement(each)

    # Statements.

    def statement(self, cursor):
        kind, (start, end) = cursor.kind.name, self.span(cursor)
        if kind in ("COMPOUND_STMT", "CXX_TRY_STMT", "CXX_CATCH_STMT"):
            for each in cursor.get_children():
                if each.kind.is_statement() or each.kind.is_expression():
                    self.statement(each)
            return
        if kind in ("CASE_STMT", "DEFAULT_STMT"):
            for each in list(cursor.get_children())[-1:]:
                self.statement(each)
            return
        macro = next((each for each in self.macros if each[0] == start and end <= each[1] + 1), None)
        outer, self.changes, bodies = self.changes, [], []
        if macro:
            if macro[2] in SWALLOWED and start not in self.seen:
                opening = self.tokens.at(start) + 1
                if self.tokens.word(opening) == "(":
                    closing = self.tokens.closing(opening)
                    arguments = self.text[self.tokens.ends[opening]:self.tokens.starts[closing]]
                    self.add("swallow", [start, self.tokens.ends[closing], SWALLOWED[macro[2]](arguments)])
                    self.expressions(cursor)
            elif macro[2] not in SWALLOWED:
                self.changes, _ = outer, self.changes
                return
        elif kind == "IF_STMT":
            bodies = self.branching(cursor, start)
        elif kind in self.LOOPS:
            bodies = self.loop(cursor, start)
        elif kind == "SWITCH_STMT":
            bodies = self.parts(cursor, self.tokens.closing(self.tokens.at(start) + 1))
        else:
            self.leaf(cursor, start)
            self.expressions(cursor)
        changes, self.changes = self.changes, outer
        if changes and start not in self.seen:
            self.places.append({"at": start, "line": self.tokens.line(start), "function": self.function,
                                "changes": changes})
        self.seen.add(start)
        for body in bodies:
            self.statement(body)

    def parts(self, cursor, closing):
        """Reads the head of a statement, which ends with the bracket `closing`; what follows are its bodies."""
        bodies = []
        for each in cursor.get_children():
            if closing is not None and self.span(each)[0] >= self.tokens.ends[closing]:
                bodies.append(each)
            else:
                self.expressions(each)
        return bodies

    def end(self, cursor):
        """Where a statement ends, with its semicolon."""
        kind, (_, end) = cursor.kind.name, self.span(cursor)
        if kind in ("IF_STMT", "FOR_STMT", "WHILE_STMT", "CXX_FOR_RANGE_STMT", "CASE_STMT", "DEFAULT_STMT"):
            return self.end(list(cursor.get_children())[-1])
        after = self.tokens.at(end)
        if kind != "COMPOUND_STMT" and self.text[end - 1] != ";" and self.tokens.word(after) == ";":
            return self.tokens.ends[after]
        return end

    def branching(self, cursor, start):
        first = self.tokens.at(start)
        if self.tokens.word(first + 1) != "(":  # if constexpr, if consteval
            opening = next((each for each in range(first, min(first + 3, len(self.tokens.words)))
                            if self.tokens.words[each] == "("), None)
            return [] if opening is None else self.parts(cursor, self.tokens.closing(opening))
        closing = self.tokens.closing(first + 1)
        declares = any(each.kind.is_declaration() for each in cursor.get_children())
        bodies = self.parts(cursor, closing)
        if not declares:
            self.negate(range(first + 2, closing))
        if len(bodies) == 1:
            kind = "branch"
            if self.leaves(bodies[0]):
                kind = "return"
                words = self.tokens.words[closing:self.tokens.at(self.end(bodies[0]))]
                if any(words[each] in (".", "->") and words[each + 1:each + 3] == ["error", "("]
                       for each in range(len(words))):
                    kind = "swallow"
            self.add(kind, [start, self.end(bodies[0]), ";"])
        elif len(bodies) == 2:
            then = self.end(bodies[0])
            if self.tokens.word(self.tokens.at(then)) == "else":
                self.add("branch", [self.tokens.starts[self.tokens.at(then)], self.end(bodies[1]), ""])
                self.add("branch", [self.span(bodies[0])[0], then, "{}"])
        return bodies

    def leaves(self, cursor):
        """True if its last step is a return."""
        while cursor.kind.name == "COMPOUND_STMT":
            children = list(cursor.get_children())
            if not children:
                return False
            cursor = children[-1]
        return self.tokens.word(self.tokens.at(self.span(cursor)[0])) in ("return", "co_return")

    def loop(self, cursor, start):
        kind, first = cursor.kind.name, self.tokens.at(start)
        children = list(cursor.get_children())
        if kind == "DO_STMT":
            bodies = children[:1]
            for each in children[1:]:
                self.expressions(each)
            opening = self.tokens.at(self.end(bodies[0])) + 1
            closing = self.tokens.closing(opening) if self.tokens.word(opening) == "(" else None
            whole = self.end(cursor)
        else:
            opening, closing = first + 1, self.tokens.closing(first + 1)
            bodies = self.parts(cursor, closing)
            whole = self.end(cursor)
        if closing is None or len(bodies) != 1:
            return bodies
        if kind != "CXX_FOR_RANGE_STMT" and not (kind == "WHILE_STMT" and children[0].kind.is_declaration()):
            self.negate(range(opening + 1, closing))
        (body, _), body_end = self.span(bodies[0]), self.end(bodies[0])
        once = " if (mutation_round++ > 0) break; "
        if self.text[body] == "{":
            inner = [[body + 1, body + 1, once]]
        else:
            inner = [[body, body, "{" + once], [body_end, body_end, " }"]]
        self.add("round", [start, start, "{ int mutation_round = 0; "], *inner, [whole, whole, " }"])
        return bodies

    def negate(self, head):
        """Negates the condition in the head of a statement: of `init; condition; step` or a part of that."""
        parts = self.tokens.outside(head, ";")
        if len(parts) == 2:
            head = range(parts[0] + 1, parts[1])
        elif len(parts) == 1:
            head = range(parts[0] + 1, head.stop)
        if len(head) > 0:
            start, end = self.tokens.starts[head[0]], self.tokens.ends[head[-1]]
            self.add("negation", [start, start, "!("], [end, end, ")"])

    def leaf(self, cursor, start):
        end = self.end(cursor)
        word = self.tokens.word(self.tokens.at(start))
        if word in ("return", "break", "continue"):
            if self.tokens.word(self.tokens.at(start) + 1) == ";":
                self.add("return" if word == "return" else "branch", [start, end, ";"])
            return
        inner = cursor
        while inner.kind.name in self.EXPRESSIONS_WITH_ONE:
            children = list(inner.get_children())
            if not children:
                break
            inner = children[-1]
        kind = inner.kind.name
        if kind == "CALL_EXPR" or word == "co_await":
            name = inner.spelling
            change = "assignment" if ASSIGNMENTS.match(name) else "release" if RELEASES.search(name) else "call"
            self.add(change, [start, end, ";"])
        elif kind in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR"):
            self.add("assignment", [start, end, ";"])

    # Expressions.

    def expressions(self, cursor):
        kind = cursor.kind.name
        if kind == "LAMBDA_EXPR":
            for each in cursor.get_children():
                if each.kind.name == "COMPOUND_STMT":
                    self.statement(each)
            return
        if kind == "INTEGER_LITERAL":
            self.constant(cursor)
        elif kind == "BINARY_OPERATOR":
            operands = [self.span(each) for each in cursor.get_children()]
            if len(operands) == 2:
                self.comparison([index for index in self.tokens.within(operands[0][1], operands[1][0])])
        elif kind in ("DECL_REF_EXPR", "OVERLOADED_DECL_REF") and cursor.spelling in ("operator<", "operator<=",
                                                                                      "operator>", "operator>=",
                                                                                      "operator<=>"):
            self.comparison([self.tokens.exactly(*self.span(cursor))])
        elif kind == "CONDITIONAL_OPERATOR":
            self.turn(cursor)
        elif kind == "CALL_EXPR":
            self.swap(cursor)
        for each in cursor.get_children():
            self.expressions(each)

    def constant(self, cursor):
        index = self.tokens.exactly(*self.span(cursor))
        if index is None or self.tokens.kinds[index] != "number":
            return
        match = re.fullmatch(r"(0[xX][\da-fA-F']+|0[bB][01']+|[\d']+)([uUlLzZ]*)", self.tokens.words[index])
        if not match:
            return
        digits = match.group(1).replace("'", "")
        value = int(digits, 8) if re.fullmatch(r"0[0-7]+", digits) else int(digits, 0)
        for other in (value + 1, value - 1):
            if other >= 0:
                self.add("constant", [self.tokens.starts[index], self.tokens.ends[index], f"{other}{match.group(2)}"])

    def comparison(self, indexes):
        if len(indexes) == 1 and indexes[0] is not None and self.tokens.words[indexes[0]] in BORDERS:
            index = indexes[0]
            self.add("comparison", [self.tokens.starts[index], self.tokens.ends[index],
                                    BORDERS[self.tokens.words[index]]])

    def turn(self, cursor):
        start, end = self.span(cursor)
        inside = self.tokens.within(start, end)
        questions = self.tokens.outside(inside, "?")
        if not questions:
            return
        open_questions = 0
        marks = sorted(questions + self.tokens.outside(inside, ":"))
        for each in marks[marks.index(questions[0]):]:
            open_questions += 1 if self.tokens.words[each] == "?" else -1
            if open_questions == 0:
                first = self.text[self.tokens.ends[questions[0]]:self.tokens.starts[each]].strip()
                second = self.text[self.tokens.ends[each]:end].strip()
                if first != second:
                    self.add("ternary", [self.tokens.ends[questions[0]], end, f" {second} : {first}"])
                return

    @staticmethod
    def type_of(cursor):
        text = cursor.type.get_canonical().spelling
        text = re.sub(r"^(const |volatile )+|( ?(const|&&|&))+$", "", text).strip()
        return "const char *" if re.fullmatch(r"(const )?char ?(\[\d+\]|\*)", text) else text

    def swap(self, cursor):
        if cursor.spelling in EVEN or (cursor.spelling.startswith("operator") and cursor.spelling != "operator()"):
            return
        spans, types = [], []
        for each in cursor.get_arguments():
            if each is None:
                return
            start, end = self.span(each)
            if start < end and spans and self.text[spans[-1][1]:start].strip() != ",":
                break  # default arguments, and others that are not written one after another
            if start >= end:
                break
            spans.append((start, end))
            types.append(self.type_of(each))
        for first in range(len(spans)):
            for second in range(first + 1, len(spans)):
                one, other = (self.text[slice(*spans[each])] for each in (first, second))
                if types[first] and types[first] == types[second] and one != other:
                    self.add("arguments", [*spans[first], other], [*spans[second], one])

    def add(self, kind, *edits):
        for start, end, _ in edits:
            for begin, stop, name in self.macros:
                apart = end <= begin or stop <= start
                around = start <= begin and stop <= end
                if not apart and not around and not name.startswith("SPILLWAY_"):
                    return
        change = {"kind": kind, "edits": [list(edit) for edit in edits]}
        if change not in self.changes:
            self.changes.append(change)


class Places:
    """The places of sources, kept by the hash of their text below `folder`."""

    VERSION = hashlib.sha256(b"".join((pathlib.Path(__file__).parent / name).read_bytes()
                                      for name in ("places.py", "tokens.py"))).hexdigest()

    def __init__(self, compiles, folder):
        if cindex is None:
            raise Unreadable("the Python binding of libclang is missing; install python3-clang-19")
        self.compiles, self.folder = compiles, folder
        folder.mkdir(parents=True, exist_ok=True)

    def options(self, source):
        """The options of its unit that a parser needs. Not the precompiled header, which has no record of macros: a
        source includes what it uses.
        """
        kept, words = [], iter(self.compiles[source][1])
        for word in words:
            if word in ("-isystem", "-I", "-D"):
                kept += [word, next(words)]
            elif re.match(r"-([ID]|std=|O)", word):
                kept.append(word)
        return kept

    def of(self, source):
        text = tokens.read(source)
        kept = self.options(source)
        name = hashlib.sha256("\0".join([self.VERSION, *kept, text]).encode("latin-1", "replace")).hexdigest()
        known = self.folder / f"{name}.json"
        if known.is_file():
            return json.loads(known.read_text())
        places = Walk(text, self.parse(source, kept)).places
        part = known.with_suffix(".part")
        part.write_text(json.dumps(places))
        part.rename(known)
        return places

    @staticmethod
    def parse(source, options):
        try:
            unit = cindex.Index.create().parse(str(source), ["-xc++", *options],
                                               options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        except cindex.TranslationUnitLoadError as error:
            raise Unreadable(f"{source}: {error}") from error
        errors = [each.spelling for each in unit.diagnostics if each.severity >= cindex.Diagnostic.Error]
        if errors:
            raise Unreadable(f"{source}: {errors[0]}")
        return unit
