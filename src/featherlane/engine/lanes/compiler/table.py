"""Tables of the functions that kernels call: for each name of `values` its arity and the code that writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from featherlane.engine.lanes import values
from featherlane.engine.lanes.compiler.types import Type

BUILTINS = {"min": min, "max": max, "abs": abs, "tuple": tuple}


class Function(NamedTuple):
    """A compiled function of `values`.

    Attributes:
        name: name of the function.
        arity: number of arguments; None for two or more.
        write: (writer, node, *arguments) -> result: writes the code, and rejects arguments of other types.
    """

    name: str
    arity: int | None
    write: Callable[..., Any]


class Table(dict[Any, Function]):
    """Maps the objects that kernels name to functions."""

    def writer(self, name: str) -> Callable[..., Any]:
        """Returns the writer of one function."""
        return self[BUILTINS.get(name) or getattr(values, name)].write

    def function(self, name: str, arity: int | None, allowed: str = "", *kinds):
        """Decorates the writer of one function.

        Args:
            name: the function's name in `values`.
            arity: number of arguments; None for two or more.
            kinds: kinds of the first arguments, as for `is_of_kind`; of all arguments, if there may be any number.
            allowed: the error's text for arguments of other kinds.
        """

        def enter(write):
            def checked(w, node, *arguments):
                required = kinds if arity else kinds * len(arguments)
                if not all(is_of_kind(a.type, kind) for a, kind in zip(arguments, required, strict=False)):
                    raise refuse(w, node, name, arguments, allowed)
                return write(w, node, *arguments)

            self[BUILTINS.get(name) or getattr(values, name)] = Function(name, arity, checked)
            return checked

        return enter


def is_of_kind(t: Type, kind) -> bool:
    """Returns whether a type is of a kind: a type, a class of types, a predicate, or a tuple of several kinds."""
    if isinstance(kind, tuple):
        return any(is_of_kind(t, k) for k in kind)
    if isinstance(kind, Type):
        return t is kind
    return isinstance(t, kind) if isinstance(kind, type) else kind(t)


def refuse(w, node, name: str, arguments, allowed: str):
    """Returns the error for arguments of unsupported types."""
    given = ", ".join(a.type.description for a in arguments)
    return w.broken(node, f"{name}: got {given}, allowed is {allowed}")
