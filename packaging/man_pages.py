"""Man pages made from what the program says of itself: `spillway --help`, `spillway help COMMAND`."""
import re
import subprocess
import time

ENTRY = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")


def help_of(binary, *words):
    return subprocess.run([binary, "help", *words], capture_output=True, text=True, check=True).stdout


def subcommands(text):
    """Names below "Subcommands:"."""
    block = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", block.group(1), re.M) if block else []


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def sections(text):
    """(title, lines) of a help text; the title of what stands before the first section is empty, that of the end is None."""
    title, lines = "", []
    for line in text.splitlines():
        if re.fullmatch(r"[A-Z][^.]*:", line):
            yield title, lines
            title, lines = line[:-1], []
        elif line and not line.startswith(" ") and title:
            yield title, lines
            title, lines = None, [line]
        else:
            lines.append(line)
    yield title, lines


def entries(lines):
    """(flag or command, what it does) of one section: long flags have a line of their own."""
    rows = []
    for line in lines:
        if not line.strip():
            continue
        match = ENTRY.match(line)
        if match:
            rows.append([match.group(1), match.group(2) or ""])
        else:
            rows[-1][1] = f"{rows[-1][1]} {line.strip()}".strip()
    return rows


def page(name, text, version, epoch):
    """One page in roff. `name`: "spillway up"; `text`: what help says of it."""
    date = time.strftime("%Y-%m-%d", time.gmtime(epoch))
    dashed = name.replace(" ", "-")
    parts = list(sections(text))
    head = [line for line in parts[0][1] if line.strip()]
    about = " ".join(line for line in head if not line.startswith("Usage:")).strip()
    usage = next(line for line in head if line.startswith("Usage:")).removeprefix("Usage:").strip()
    out = [f'.TH "{dashed.upper()}" "1" "{date}" "spillway {version}" "Spillway"', ".SH NAME", f"{escaped(dashed)} \\- {escaped(about.rstrip('.'))}",
           ".SH SYNOPSIS", f".B {escaped(usage)}"]
    remarks = []
    is_in_options = False
    for title, lines in parts[1:]:
        if title is None:
            remarks += lines
            continue
        if title in ("Arguments", "Subcommands"):
            out.append(f".SH {'COMMANDS' if title == 'Subcommands' else title.upper()}")
        elif title == "Options" or not is_in_options:
            out.append(".SH OPTIONS")
            is_in_options = True
        if title not in ("Arguments", "Subcommands", "Options"):
            out.append(f'.SS "{escaped(title)}"')
        for flag, meaning in entries(lines):
            out += [".TP", f".B {escaped(flag)}", escaped(meaning) or "\\&"]
    if any(line.strip() for line in remarks):
        out.append(".SH NOTES")
        out += [escaped(line) if line.strip() else ".PP" for line in remarks]
    out += [".SH SEE ALSO", ".BR spillway (1)"]
    return "\n".join(out) + "\n"


def pages(binary, version, epoch):
    """{file name: roff} of the program and all its commands."""
    top = help_of(binary)
    made = {"spillway.1": page("spillway", top, version, epoch)}
    for command in subcommands(top):
        text = help_of(binary, command)
        made[f"spillway-{command}.1"] = page(f"spillway {command}", text, version, epoch)
        for below in subcommands(text):
            made[f"spillway-{command}-{below}.1"] = page(f"spillway {command} {below}", help_of(binary, command, below), version, epoch)
    return made
