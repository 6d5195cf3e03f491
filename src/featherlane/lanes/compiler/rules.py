"""What a kernel may not say: one error for all of it, with the file, the line, what stands there and the rule."""

from __future__ import annotations

from featherlane.errors import FeatherlaneError

PAGE = "docs/kernel-language.md"


class KernelLanguageError(FeatherlaneError, TypeError):
    """A kernel breaks a rule of its language: docs/errors.md#kernellanguageerror.

    Attributes:
        file, line: where.
        source: the line.
        rule: what was broken, and what is allowed.
    """

    def __init__(self, kernel: str, file: str, line: int, source: str, mark: str, rule: str):
        self.kernel, self.file, self.line, self.source, self.mark, self.rule = kernel, file, line, source, mark, rule
        shown = "".join(f"\n    {part}" for part in (source, mark) if part)
        super().__init__(f"{file}, line {line}, in {kernel}: {rule}{shown}")

    def __reduce__(self):
        return type(self), (self.kernel, self.file, self.line, self.source, self.mark, self.rule)


class UnknownYetError(Exception):
    """The type of a name follows from a later line: the statement is written in the next pass."""


def broken(source, node, rule: str) -> KernelLanguageError:
    """The error of a rule that a node of a kernel's syntax tree breaks."""
    line = getattr(node, "lineno", source.first_line)
    text = source.line(line)
    column, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
    start = len(text) - len(text.lstrip())
    # offsets count bytes; the mark ends where the line does
    column, end = (len(text.encode()[:k].decode(errors="ignore")) for k in (column, end))
    last = end if getattr(node, "end_lineno", line) == line else len(text)
    mark = " " * (column - start) + "^" * max(last - column, 1) if column >= start else ""
    return KernelLanguageError(source.name, source.file, line, text.strip(), mark, rule)
