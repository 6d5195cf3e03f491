"""Forward-mode derivatives of kernels: `jvp`, and the derivative rules of kernels that must not be differentiated.

    stiffness = jvp(spring_force, "ten_length")      # a kernel: (force, its derivative by the length)

    @derivative_rule(exp)
    @kernel
    def _exp_partials(result, x):
        return (result,)                             # one partial derivative for each argument

A value with tangents is followed through the kernel and all kernels that it calls.  Every operation on it keeps the
bits of the value, and computes its tangents by the chain rule.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from featherlane.engine.lanes.kernel import Kernel, Stage
from featherlane.engine.lanes.tangents import seeded, split
from featherlane.errors import ArgumentError


class Derivative(Kernel):
    """The derivative of a kernel with respect to fields; it has the kernel's arguments.

    Attributes:
        kernel: the differentiated kernel.
        fields: the fields, with the prefix of a nested record: `primal.con_y`.
    """

    def __init__(self, kernel: Kernel, fields: tuple[str, ...]):
        self.kernel, self.fields = kernel, fields

    @property
    def function(self):
        return self.kernel.function

    def __reduce__(self):
        return type(self), (self.kernel, self.fields)

    def __call__(self, *arguments, **keywords):
        arguments += tuple(keywords[name] for name in self.arguments[len(arguments) :])
        return split(self.kernel(*seeded(arguments, self.fields)), len(self.fields))

    def references(self) -> list:
        return [(f"jvp by {' '.join(self.fields)}", self.kernel)]


def jvp(kernel: Kernel, *fields: str) -> Derivative:
    """Returns a kernel that computes (result, derivative by the first field, derivative by the second field, ...).

    Each value that the kernel reads from a field has the tangent 1 in the direction of this field.  A kernel that reads
    several elements of a field returns the sum of the derivatives by them.

    Args:
        kernel: it returns a value or a tuple.  It writes to no field and calls no stage.
        fields: names of fields of reals without a row type, in any record argument.

    Raises:
        ArgumentError: no field, a field twice, or a stage.
    """
    if isinstance(kernel, Stage) or not isinstance(kernel, Kernel):
        raise ArgumentError(f"jvp: got {kernel!r}, allowed is a function with the decorator `kernel`")
    if not fields or len(set(fields)) < len(fields):
        raise ArgumentError(f"jvp: got the fields {fields}, allowed are one or more different names")
    return Derivative(kernel, fields)


def derivative_rule(kernel: Kernel) -> Callable[[Any], Any]:
    """Decorates the derivative rule of a kernel, which `jvp` uses instead of the kernel's code.

    The rule is a kernel of (result, *arguments).  It returns a tuple with one item for each argument: the partial
    derivative of the result by this argument.  For a kernel with several results an item is a tuple.

    Raises:
        ArgumentError: the rule has another number of parameters.
    """

    def enter(rule: Kernel) -> Kernel:
        if len(inspect.signature(rule.function).parameters) != len(kernel.arguments) + 1:
            raise ArgumentError(f"derivative_rule: the rule takes (result, {', '.join(kernel.arguments)})")
        kernel.rule = rule
        return rule

    return enter
