"""Converts docstrings to Markdown: sections become lists; all other text is kept."""

from __future__ import annotations

import re

LISTS = ("Args", "Attributes", "Raises")
LABEL = re.compile(
    r"^(?:   *)?(Args|Attributes|Raises|Returns|Yields|Note|Source|Reads|Writes|Scratch|Frame|Cost|Deviation): ?"
)
ERROR = re.compile(r"^(\w*(?:Error|Warning)): ")
COLUMNS = re.compile(r"^\S[\w' ,]{0,24}? {2,}\S")
FIRST = re.compile(r"^\S[\w' ,]{0,24}? {3,}\S")


def escaped(text: str) -> str:
    """A line with the marks that Markdown would take for its own."""
    parts = re.split(r"(`[^`\n]*`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\\*<>|$_\[\]])", r"\\\1", parts[i]).replace("\\<", "&lt;").replace("\\>", "&gt;")
        parts[i] = parts[i].replace("\\|", "&#124;")
    return "".join(parts)


def first_line(text: str) -> str:
    """The first sentence of a docstring, in one line."""
    return " ".join(text.split("\n\n")[0].split())


def error_link(name: str) -> str:
    """An error of this package leads to its page, another one stands as it is."""
    known = "Featherlane Model UnknownName UnsupportedFeature Installation Kernel KernelLanguage Problem Option".split()
    if name in {f"{k}Error" for k in known} | {"NonFiniteWarning", "CapacityWarning"}:
        return f"[`{name}`](../errors.md#{name.lower()})"
    return f"`{name}`"


def items(lines: list[str], errors: bool) -> list[str]:
    """`name: text` with lines that go on below, as a list."""
    found: list[str] = []
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        text, inner = line.strip(), len(line) - len(line.lstrip()) > least
        if not text:
            continue
        if inner and found:
            found[-1] += f" {escaped(text)}"
            continue
        head, mark, rest = text.partition(": ")
        if mark and re.fullmatch(r"[\w*, ]+", head):
            shown = error_link(head) if errors else f"`{head}`"
            found.append(f"- {shown}: {escaped(rest)}")
        elif found and errors:
            found[-1] += f" {escaped(text)}"
        else:
            found.append(f"- {escaped(text)}")
    return found


def ends(part: tuple[str, list[str]], line: str) -> bool:
    """A line that begins at the left, after an empty one, ends a section of lines that are moved in."""
    moved_in = part[0] in (*LISTS, "Returns", "Yields", "Note") and not part[1][-1].strip()
    return bool(line) and not line.startswith(" ") and moved_in


def sections(text: str) -> list[tuple[str, list[str]]]:
    """The parts of a docstring with their labels, in their order."""
    text = re.sub(r"(?<=\S) {3,}(?=(?:Reads|Writes|Scratch|Frame|Cost|Source|Note): )", "\n", text)
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        label = LABEL.match(line) if not line.startswith("    ") else None
        if label:
            parts.append((label[1], [line[label.end() :]]))
        elif (
            line
            and not line.startswith(" ")
            and parts[-1][0] in (*LISTS, "Returns", "Yields", "Note")
            and not parts[-1][1][-1].strip()
        ):
            parts.append(("", [line]))
        else:
            parts[-1][1].append(line)
    return parts


def prose(lines: list[str], table: bool) -> list[str]:
    """Returns paragraphs and indented blocks of code, or columns if `table`."""
    out: list[str] = []
    k = 0
    while k < len(lines):
        line = lines[k]
        indented = line.startswith("    ") and (not out or not out[-1].strip())
        columns = table and bool(FIRST.match(line))
        if indented or columns:
            block = []
            while k < len(lines) and (
                (indented and (lines[k].startswith("    ") or not lines[k].strip()))
                or (columns and (COLUMNS.match(lines[k]) or lines[k].startswith("  ")))
            ):
                block.append(lines[k][4:] if indented else lines[k])
                k += 1
            out += ["", "```text", *"\n".join(block).rstrip().splitlines(), "```", ""]
            continue
        out.append(escaped(line))
        k += 1
    return out


def entry(text: str, more_errors: str = "", table: bool = False) -> str:
    """A docstring as Markdown; `more_errors` are added to what it raises."""
    out: list[str] = []
    raised = False
    for label, lines in sections(text):
        if not label:
            out += [*prose(lines, table), ""]
        elif label in LISTS:
            extra = [f"    {line}" for line in more_errors.splitlines()] if label == "Raises" else []
            told = {m[1] for line in lines if (m := ERROR.match(line.strip()))}
            extra = [line for line in extra if line.strip().partition(":")[0] not in told]
            raised |= label == "Raises"
            head = {"Args": "Arguments"}.get(label, label)
            out += ["", f"**{head}**", "", *items([*lines, *extra], label == "Raises"), ""]
        elif label in ("Returns", "Yields"):
            out += ["", f"**{label}**", "", escaped(" ".join(" ".join(lines).split())), ""]
        else:
            out += ["", f"*{label}:* {escaped(' '.join(' '.join(lines).split()))}", ""]
    if more_errors and not raised:
        out += ["", "**Raises**", "", *items([f"    {line}" for line in more_errors.splitlines()], True), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()
