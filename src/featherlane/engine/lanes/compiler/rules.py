"""The error for code outside the kernel language, with the file, the line, its text and the rule."""

from __future__ import annotations

from featherlane.errors import FeatherlaneError


class KernelLanguageError(FeatherlaneError, TypeError):
    """Raised if a kernel breaks a rule of the kernel language: docs/errors.md#kernellanguageerror.

    Attributes:
        file, line: place of the code.
        source: text of the line.
        rule: the broken rule, and what is allowed.
    """

    def __init__(self, kernel: str, file: str, line: int, source: str, mark: str, rule: str):
        self.kernel, self.file, self.line, self.source, self.mark, self.rule = kernel, file, line, source, mark, rule
        shown = "".join(f"\n    {part}" for part in (source, mark) if part)
        super().__init__(f"{file}, line {line}, in {kernel}: {rule}{shown}")

    def __reduce__(self):
        return type(self), (self.kernel, self.file, self.line, self.source, self.mark, self.rule)


class UnknownYetError(Exception):
    """Raised if a later line determines the type of a name: the next pass writes the statement."""


def broken(source, node, rule: str) -> KernelLanguageError:
    """Returns the error for a rule that a node of a kernel's syntax tree breaks."""
    line = getattr(node, "lineno", source.first_line)
    text = source.line(line)
    column, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
    start = len(text) - len(text.lstrip())
    # offsets count bytes; the mark ends at the end of the line
    column, end = (len(text.encode()[:k].decode(errors="ignore")) for k in (column, end))
    last = end if getattr(node, "end_lineno", line) == line else len(text)
    mark = " " * (column - start) + "^" * max(last - column, 1) if column >= start else ""
    return KernelLanguageError(source.name, source.file, line, text.strip(), mark, rule)
