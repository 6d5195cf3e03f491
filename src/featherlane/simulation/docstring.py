"""What the docstring of a stage says, section by section, and the docstring that its public function has of it.

A docstring is a first line, more text, and sections, each behind its label at the start of a line or behind three
spaces.  In `Reads` and `Writes` a word that is the name of a field is that field, with its shape and unit behind it
where they help, `con_*` is every field whose name begins so, and `` `crb` `` what the stage of that name reads or
writes.  What a stage stores itself it names; what the stages that it calls store stands in theirs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from featherlane.lanes import Field, Stage
from featherlane.lanes.role import ROLES
from featherlane.simulation.tile.fields import DATA

LABELS = ("Args", "Returns", "Raises", "Reads", "Writes", "Frame", "Cost", "Note", "Source")
WIDTH = 116
_LABEL = re.compile(rf"(?:^|   +)({'|'.join(LABELS)}):[ \n]*", re.MULTILINE)
_FIELD = re.compile(r"(?<![\w`.])([A-Za-z]\w*)(?![\w*`]|\.\w)(?: \((?:\d[\w, ]*|\w+,[\w, ]*)\))?(?: \[[^]]*\])?")
# what all public functions of stages have in common
CALL = """
Args:
    model: the model.
    data: the world; its fields are read and written.

Raises:
    TypeError: `data` is no Data, or `model` no Model.
    ModelError: the model's sizes are not the data's; a field of the model has a number that it cannot hold.
    RuntimeError: another thread is in a call of this data.
"""


def sections(function: Callable) -> dict[str, str]:
    """The parts of a docstring by label, each in one line; the first line and what follows it under "" and "Text"."""
    written = inspect.getdoc(function) or ""
    marks = list(_LABEL.finditer(written))
    ends = [mark.start() for mark in marks[1:]] + [len(written)] * bool(marks)
    head = written[: marks[0].start()] if marks else written
    first, _, text = head.partition("\n")
    found = {"": first.strip(), "Text": " ".join(text.split())}
    for mark, end in zip(marks, ends, strict=True):
        found[mark[1]] = " ".join(written[mark.end() : end].split())
    return {label: part for label, part in found.items() if part}


def is_shown(field: Field) -> bool:
    """Does a user see the field, world by world?"""
    return field.role != "" and ROLES[field.role].shown


def completed(text: str) -> str:
    """A list of fields, with the declared shape and unit of each that a user sees."""

    def with_shape(match) -> str:
        if match[1] not in DATA or not is_shown(DATA[match[1]]):
            return match[0]
        field = DATA[match[1]]
        shape = ", ".join(map(str, field.shape)) + "," * (len(field.shape) == 1)
        behind = [f"({shape})"] * (field.shape != (1,)) + [f"[{field.unit}]"] * (field.unit != "1")
        return " ".join([field.name, *behind])

    return _FIELD.sub(with_shape, text)


def parts_of(stage: Stage) -> dict[str, str]:
    """The sections of a stage as its public function has them, in their order there."""
    found = sections(stage.function)
    if "Writes" in found:
        found["Writes"] = completed(found["Writes"])
    return {label: found[label] for label in ("", "Text", *LABELS) if label in found}


def public_docstring(stage: Stage) -> str:
    """The docstring of the public function that runs a stage on one world."""
    parts = parts_of(stage)
    lines = [parts.pop(""), ""]
    if "Text" in parts:
        lines += [*wrapped(parts.pop("Text")), ""]
    for label, text in parts.items():
        lines += wrapped(f"{label}: {text}", "    ")
    return "\n".join(lines) + "\n" + CALL


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most WIDTH characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]
