"""Tables of the functions that kernels call: for each name of `values` its number of arguments, its type, its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from featherlane.lanes import values

BUILTINS = {"min": min, "max": max, "abs": abs, "tuple": tuple}


class Function(NamedTuple):
    """A function of `values`, compiled.

    Attributes:
        name: its name.
        arity: its number of arguments; None for two or more.
        write: (writer, node, arguments) -> result: writes the code, and refuses arguments of other kinds.
    """

    name: str
    arity: int | None
    write: Callable[..., Any]


class Table(dict[Any, Function]):
    """Functions by the object that kernels name."""

    def function(self, name: str, arity: int | None):
        """Decorator: the code of one function."""

        def enter(write):
            self[BUILTINS.get(name) or getattr(values, name)] = Function(name, arity, write)
            return write

        return enter


def refuse(w, node, name: str, arguments, allowed: str):
    """The error of a function that is given other kinds of things than it takes."""
    given = ", ".join(a.type.says for a in arguments)
    return w.broken(node, f"{name} of {given}; allowed is {allowed}")
