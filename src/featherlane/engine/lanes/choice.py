"""Kernels with a dispatch table: a call runs the case that is registered for its number.

    @dispatch("kind")
    def volume(kind, size):
        return 0.0

    volume.add(SPHERE, case)

`volume(kind, size)` then returns `case(size)` if `kind` is SPHERE.  The function itself is the default.

A stage that calls `volume` is compiled with the cases registered at that time, in their order, and the cases are
part of its object's name.  Adding a case recompiles the stages that use the table.  Objects compiled ahead of time
contain the engine's cases only: once a user has added one, kernels compile just in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from featherlane.engine.lanes.kernel import Kernel
from featherlane.errors import CallError


class _Tables:
    """State of all tables: the engine has filled them, a user has extended them, a stage has been loaded."""

    filled = extended = is_loaded = False


def mark_complete() -> None:
    """Marks the engine's cases as complete: later cases count as user extensions."""
    _Tables.filled = True


def is_extended() -> bool:
    """Returns whether a user has added a case."""
    return _Tables.extended


def mark_loaded() -> None:
    """Marks that a stage is about to be loaded with the current cases."""
    _Tables.is_loaded = True


class Choice(Kernel):
    """A kernel with a list of cases, of which the first matching one runs; `dispatch` creates it.

    Args:
        function: the default, which runs if no case matches.
        number: name of the parameter that selects the case, and that cases do not get; or a kernel of the first
            parameters that returns the number.

    Attributes:
        cases: pairs (number, kernel or constant result).
    """

    def __init__(self, function: Callable[..., Any], number: str | Kernel):
        super().__init__(function)
        self._number = number
        self.cases: list[tuple[int, Any]] = []
        self._engines = not _Tables.filled

    def add(self, number: int, case: Any = True) -> None:
        """Appends a case: a kernel, or a constant result.

        Raises:
            RuntimeError: stages are already loaded without it.
        """
        if self._engines and _Tables.filled:
            if _Tables.is_loaded:
                raise CallError(
                    "register it before the first step: the stages are already loaded with the cases registered so far"
                )
            _Tables.extended = True
        self.cases.append((number, case))

    def selection(self, arguments: Sequence[Any], call: Callable[..., Any]) -> tuple[Any, list[Any]]:
        """Returns the number of a call, and the arguments of its case; `call` calls a kernel with some arguments."""
        rest = list(arguments)
        if isinstance(self._number, Kernel):
            return call(self._number, rest[: len(self._number.arguments)]), rest
        return rest.pop(self.arguments.index(self._number)), rest

    def __call__(self, *arguments, **keywords):
        arguments += tuple(keywords[name] for name in self.arguments[len(arguments) :])
        number, rest = self.selection(arguments, lambda kernel, given: kernel(*given))
        for known, case in self.cases:
            if known == number:
                return case(*rest) if isinstance(case, Kernel) else case
        return self.function(*arguments)

    def references(self) -> list:
        return [*super().references(), ("number", self._number), *((f"case {n}", case) for n, case in self.cases)]


def dispatch(number: str | Kernel) -> Callable[[Callable[..., Any]], Choice]:
    """Decorates the default of a dispatch table; `number` is as for `Choice`."""
    return lambda function: Choice(function, number)
