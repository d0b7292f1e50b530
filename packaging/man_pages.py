"""Man pages made from the help of the program: `spillway --help`, `spillway COMMAND --help-all`, `spillway help exit-codes`."""
import re
import subprocess
import time

ENTRY = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")


def help_of(binary, *words):
    return subprocess.run([binary, *words, "--help-all"], capture_output=True, text=True, check=True).stdout


def exit_codes_of(binary):
    """(code, meaning) of the table that all commands share."""
    text = subprocess.run([binary, "help", "exit-codes"], capture_output=True, text=True, check=True).stdout
    return entries(text.splitlines()[1:])


def subcommands(text):
    """Names below the headings that begin with "Commands"."""
    return [name for block in re.findall(r"^Commands[^\n]*:\n((?:  .*\n)+)", text, re.M) for name in re.findall(r"^  (\S+)", block, re.M)]


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


def page(name, text, version, epoch, exit_codes):
    """One page in roff. `name`: "spillway up"; `text`: its help; `exit_codes`: rows of exit_codes_of()."""
    date = time.strftime("%Y-%m-%d", time.gmtime(epoch))
    dashed = name.replace(" ", "-")
    parts = list(sections(text))
    head = [line for line in parts[0][1] if line.strip()]
    about = " ".join(line for line in head if not line.startswith("Usage:")).strip()
    usage = next(line for line in head if line.startswith("Usage:")).removeprefix("Usage:").strip()
    out = [f'.TH "{dashed.upper()}" "1" "{date}" "spillway {version}" "Spillway"', ".SH NAME", f"{escaped(dashed)} \\- {escaped(about.rstrip('.'))}",
           ".SH SYNOPSIS", f".B {escaped(usage)}"]
    remarks = []
    is_in_options = is_in_commands = False
    for title, lines in parts[1:]:
        if title is None:
            remarks += lines
            continue
        if title == "Examples":
            out.append(".SH EXAMPLES")
            for remark, call in zip(lines[::2], lines[1::2]):
                out += [".TP", f".B {escaped(call.strip())}", escaped(remark.strip().removeprefix("# "))]
            continue
        is_command = title.startswith("Commands")
        if title == "Arguments" or is_command and not is_in_commands:
            out.append(f".SH {'COMMANDS' if is_command else title.upper()}")
            is_in_commands = is_command
        elif not is_command and (title == "Options" or not is_in_options):
            out.append(".SH OPTIONS")
            is_in_options = True
        if title not in ("Arguments", "Commands", "Options"):
            out.append(f'.SS "{escaped(title)}"')
        for flag, meaning in entries(lines):
            out += [".TP", f".B {escaped(flag)}", escaped(meaning) or "\\&"]
    if any(line.strip() for line in remarks):
        out.append(".SH NOTES")
        out += [escaped(line) if line.strip() else ".PP" for line in remarks]
    out.append(".SH EXIT STATUS")
    for code, meaning in exit_codes:
        out += [".TP", f".B {escaped(code)}", escaped(meaning)]
    out += [".SH SEE ALSO", ".BR spillway (1)"]
    return "\n".join(out) + "\n"


def pages(binary, version, epoch):
    """{file name: roff} of the program and all its commands."""
    top = help_of(binary)
    codes = exit_codes_of(binary)
    made = {"spillway.1": page("spillway", top, version, epoch, codes)}
    for command in subcommands(top):
        text = help_of(binary, command)
        made[f"spillway-{command}.1"] = page(f"spillway {command}", text, version, epoch, codes)
        for below in subcommands(text):
            made[f"spillway-{command}-{below}.1"] = page(f"spillway {command} {below}", help_of(binary, command, below), version, epoch, codes)
    return made
