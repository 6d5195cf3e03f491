"""Registers fields that are computed at load time: one registration declares, sizes and computes them.

    @derived(
        size("ncouple", "pairs of tendons that share a site"),
        _field.int("couple_tendon", "ncouple 2", "1", "the two tendons"),
    )
    def couples(mj):
        return {"couple_tendon": ...}

`fields.py` lists the registrations in `DERIVED`, ordered as the model's layout.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from featherlane.engine.lanes.layout import Field

Values = dict[str, Any]


class Derived:
    """A function that computes fields of a model; callable like that function.

    Attributes:
        fields: the fields that it computes.
        inputs: names of its parameters: `mj`, the compiled MjModel; `pairs`, its `candidates`; `links`, the links of
            `load`; `hulls_of`, for each mesh the MjModel that has its convex hull; `nvariant`, a number of variants.
        lengths: for each size that the function does not return, the field whose length it is.
    """

    def __init__(self, function: Callable[..., Values], fields: tuple[Field, ...]):
        functools.update_wrapper(self, function)
        self._function = function
        self.fields = tuple(replace(field, stage=function.__name__) for field in fields)
        self.inputs = tuple(inspect.signature(function).parameters)
        self.lengths = {str(field.shape[0]): field.name for field in reversed(fields) if field.shape}

    def __call__(self, *inputs: Any) -> Values:
        return self._function(*inputs)


def derived(*fields: Field) -> Callable[[Callable[..., Values]], Derived]:
    """Declares the fields that a function computes.

    The function returns values by name.  It omits a size that is the length of one of its arrays.
    """
    return lambda function: Derived(function, fields)


def derive(registered: Iterable[Derived], **inputs: Any) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Computes all registered fields of a model.

    Args:
        inputs: values of their parameters by name.

    Returns:
        Sizes and arrays by name.
    """
    sizes, arrays = {}, {}
    for each in registered:
        values = each(*(inputs[name] for name in each.inputs))
        for name, kind in ((field.name, field.kind) for field in each.fields):
            if kind != "size":
                arrays[name] = np.asarray(values[name])
            else:
                sizes[name] = int(values[name] if name in values else len(values[each.lengths[name]]))
    return sizes, arrays
