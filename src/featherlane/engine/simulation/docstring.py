"""Parses docstrings of stages section by section, and generates the docstrings of their public functions.

A docstring has a first line, more text, and sections.  Each section follows its label, which is at the start of a line
or after three spaces.  In `Reads` and `Writes` a field's name stands for that field; its shape and unit are added where
they help.  `con_*` is every field whose name begins with con_, and `` `crb` `` is whatever the stage of that name reads
or writes.  A stage lists only the fields that it stores itself; those of the stages that it calls are listed there.
Fields whose values nothing reads after the stage are in `Scratch` instead of `Writes`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from featherlane.engine.lanes import Field, Stage
from featherlane.engine.lanes.role import ROLES
from featherlane.engine.simulation.tile.fields import DATA

LABELS = ("Args", "Returns", "Raises", "Reads", "Writes", "Scratch", "Frame", "Cost", "Note", "Source")
WIDTH = 116
_LABEL = re.compile(rf"(?:^|   +)({'|'.join(LABELS)}):[ \n]*", re.MULTILINE)
_FIELD = re.compile(r"(?<![\w`.])([A-Za-z]\w*)(?![\w*`]|\.\w)(?: \((?:\d[\w, ]*|\w+,[\w, ]*)\))?(?: \[[^]]*\])?")
# common text of all public functions of stages
CALL = """
Args:
    model: the model.
    data: the world; its fields are read and written.

Raises:
    TypeError: `data` is no Data, or `model` no Model.
    ModelError: the model is not the data's; a field of the model has a number that it cannot hold.
    RuntimeError: another thread is in a call of this data.
"""


def sections(function: Callable) -> dict[str, str]:
    """Returns the parts of a docstring by label, each in one line; the first line and the text under "" and "Text"."""
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
    """Returns whether users can access the field of each world."""
    return field.role != "" and ROLES[field.role].shown


def with_shapes_and_units(text: str) -> str:
    """Adds the declared shape and unit to each field in a list that users can access."""

    def with_shape(match) -> str:
        if match[1] not in DATA or not is_shown(DATA[match[1]]):
            return match[0]
        field = DATA[match[1]]
        shape = ", ".join(map(str, field.shape)) + "," * (len(field.shape) == 1)
        behind = [f"({shape})"] * (field.shape != (1,)) + [f"[{field.unit}]"] * (field.unit != "1")
        return " ".join([field.name, *behind])

    return _FIELD.sub(with_shape, text)


def parts_of(stage: Stage) -> dict[str, str]:
    """Returns the sections of a stage, ordered as in its public function's docstring."""
    found = sections(stage.function)
    if "Writes" in found:
        found["Writes"] = with_shapes_and_units(found["Writes"])
    return {label: found[label] for label in ("", "Text", *LABELS) if label in found}


def public_docstring(stage: Stage) -> str:
    """Returns the docstring of the public function that runs a stage on one world; "" under `python -OO`."""
    parts = parts_of(stage)
    if not parts:
        return ""
    lines = [parts.pop(""), ""]
    if "Text" in parts:
        lines += [*wrapped(parts.pop("Text")), ""]
    for label, text in parts.items():
        lines += wrapped(f"{label}: {text}", "    ")
    return "\n".join(lines) + "\n" + CALL


def wrapped(text: str, indent: str = "") -> list[str]:
    """Returns lines of at most WIDTH characters."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]
