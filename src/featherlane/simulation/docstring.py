"""What the docstring of a stage says, section by section.

A docstring is a first line, more text, and sections, each behind its label at the start of a line or behind three
spaces.  In `Reads` and `Writes` a word that is the name of a field is that field, with its shape and unit behind it
where they help, `con_*` is every field whose name begins so, and `` `crb` `` what the stage of that name reads or
writes.  What a stage stores itself it names; what the stages that it calls store stands in theirs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

LABELS = ("Args", "Source", "Reads", "Writes", "Frame", "Cost", "Note")
_LABEL = re.compile(rf"(?:^|   +)({'|'.join(LABELS)}):[ \n]*", re.MULTILINE)


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
