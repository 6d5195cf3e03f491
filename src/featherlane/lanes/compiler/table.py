"""Tables of the functions that kernels call: for each name of `values` its arity and the code that writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from featherlane.lanes import values

BUILTINS = {"min": min, "max": max, "abs": abs, "tuple": tuple}


class Function(NamedTuple):
    """A compiled function of `values`.

    Attributes:
        name: name of the function.
        arity: number of arguments; None for two or more.
        write: (writer, node, arguments) -> result: writes the code, and rejects arguments of other types.
    """

    name: str
    arity: int | None
    write: Callable[..., Any]


class Table(dict[Any, Function]):
    """Maps the objects that kernels name to functions."""

    def writer(self, name: str) -> Callable[..., Any]:
        """Returns the writer of one function."""
        return self[BUILTINS.get(name) or getattr(values, name)].write

    def function(self, name: str, arity: int | None):
        """Decorates the writer of one function."""

        def enter(write):
            self[BUILTINS.get(name) or getattr(values, name)] = Function(name, arity, write)
            return write

        return enter


def refuse(w, node, name: str, arguments, allowed: str):
    """Returns the error for arguments of unsupported types."""
    given = ", ".join(a.type.description for a in arguments)
    return w.broken(node, f"{name}: got {given}, allowed is {allowed}")
