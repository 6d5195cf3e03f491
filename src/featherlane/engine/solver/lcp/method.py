"""Declaration of an LCP solver, in addition to its kernel: its name, its input form, and its options.

A file of this folder that defines a `Method` is a solver: `featherlane.lcp` finds it and selects it by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from featherlane.engine.lanes import Stage
from featherlane.engine.model.arguments import one_of, whole_argument
from featherlane.errors import FeatherlaneError, near

ONE, ROWS = "one", "rows"  # the fields that a method reads and writes: one.* or lcp.*, see fields.py


class OptionError(FeatherlaneError, ValueError):
    """An option, or a method, that does not exist, or a value that an option does not take.

    See docs/errors.md#optionerror.
    """


@dataclass(frozen=True)
class Choice:
    """An option with named values; the stage receives the number of the name."""

    default: str
    names: tuple[str, ...]
    doc: str

    def number(self, label: str, value: Any) -> int:
        return self.names.index(one_of(label, value, self.names, OptionError))


@dataclass(frozen=True)
class Count:
    """An option that is a whole number, at least 0."""

    default: int
    doc: str

    def number(self, label: str, value: Any) -> int:
        return whole_argument(label, value, 0, error=OptionError)


@dataclass(frozen=True)
class Number:
    """An option that is a real number; the stage reads it from `lcp.parameter`."""

    default: float
    lowest: float
    highest: float
    doc: str

    def number(self, label: str, value: Any) -> float:
        try:
            x = float(value)
        except (TypeError, ValueError):
            x = math.nan
        if not self.lowest <= x <= self.highest:
            raise OptionError(f"{label} is {value!r}, allowed are {self.lowest} to {self.highest}")
        return x


# options of several methods
FRICTION = Choice(
    "pyramid", ("pyramid", "cone"), "friction: separate rows (pyramid), or the rows of a contact on a cone"
)
TOLERANCE = Number(1e-8, 0.0, 1.0, "tolerance of the residual")


@dataclass(frozen=True)
class Method:
    """A solver, selected by its name.

    Attributes:
        name: value of `method` in `solve(..., method=name)`.
        stage: the compiled function for standalone problems: `stage(p, *numbers)` or `stage(p1, *numbers)`.
        form: ONE, dense in `one_*`, or ROWS, in `lcp_*`.
        numbers: options that are arguments of the stage, in its order.
        parameters: options that are rows of `lcp.parameter`, in its order.
        symmetric: whether it requires a symmetric A.
        bounded: whether it supports bounds and friction.  Other methods get a standard LCP: bounds 0 and infinity.
        check: mode of its bounds checks, see `Library.bind`; those of a user's solver are always on.
    """

    name: str
    stage: Stage
    form: str
    numbers: Mapping[str, Choice | Count] = field(default_factory=dict)
    parameters: Mapping[str, Number] = field(default_factory=dict)
    symmetric: bool = True
    bounded: bool = True
    check: int = 0

    def settings(self, given: Mapping[str, Any]) -> tuple[list[int], list[float]]:
        """Returns (arguments of the stage, its parameters) for the options given.

        Raises:
            OptionError: an unknown option, or a value that it does not take.
        """
        allowed = [*self.numbers, *self.parameters]
        for name in given:
            if name not in allowed:
                known = f"allowed are {', '.join(allowed)}" if allowed else "this method has no options"
                raise OptionError(f"method {self.name!r} has no option {name!r}: {known}{near(name, allowed)}")

        def value(name, option):
            return option.number(f"method {self.name!r}: {name}", given.get(name, option.default))

        return (
            [int(value(name, option)) for name, option in self.numbers.items()],
            [float(value(name, option)) for name, option in self.parameters.items()],
        )


METHODS: dict[str, Method] = {}  # methods that `featherlane.lcp.register` adds, by name
