"""`Composite`: several controllers as one, such as two arms with grippers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel, Layout, kernel_factory
from featherlane.engine.model.names import object_names
from featherlane.errors import ModelError
from featherlane.tools.controllers.actions import Part

MOST = 8  # parts


@kernel
def _nothing(m, d, p):
    """Is the kernel of a part that does not exist."""


@kernel_factory
def joined(*parts: Kernel) -> Kernel:
    """Returns a kernel that calls those of the parts, each with its record."""
    n = len(parts)
    first, second, third, fourth, fifth, sixth, seventh, eighth = (*parts, *(_nothing,) * (MOST - n))

    @kernel
    def control(m, d, p):
        """Runs the parts in order."""
        first(m, d, p.part0)
        if n > 1:
            second(m, d, p.part1)
        if n > 2:
            third(m, d, p.part2)
        if n > 3:
            fourth(m, d, p.part3)
        if n > 4:
            fifth(m, d, p.part4)
        if n > 5:
            sixth(m, d, p.part5)
        if n > 6:
            seventh(m, d, p.part6)
        if n > 7:
            eighth(m, d, p.part7)

    return control


class Composite(Part):
    """Joins several controllers of one batch, so that one rollout runs all of them.

        robot = fl.controllers.Composite({"arm": arm, "hand": hand})
        robot.set_goal(actions)  # (nworld, 7): 6 columns of the arm, 1 of the hand
        batch.rollout(25, control=robot)

    `set_goal` and `reset` call those of the parts.

    Args:
        parts: one to eight controllers of this module by name, in the order of the columns of an action.  The composite
            uses their arrays: a goal or gain that is written to a part applies.

    Attributes:
        columns: the columns of an action that each part reads, by name.
        action_width: number of columns.

    Raises:
        ModelError: no parts or too many; a value that is no controller of this module; parts of different batches; two
            parts that set the same control.
    """

    _parts: dict[str, Part]
    columns: Mapping[str, slice]

    def __init__(self, parts: Mapping[str, Part]):
        _check_parts(parts)
        given = list(parts.values())
        rows = {f"part{k}.{name}": rows for k, part in enumerate(given) for name, rows in part.rows.items()}
        named = [replace(f, name=f"part{k}.{f.name}") for k, part in enumerate(given) for f in part.layout.fields]
        fields = tuple(sorted(named, key=lambda f: f.name not in rows))  # scratch last, as in each part
        ends = np.cumsum([0, *(part.action_width for part in given)]).tolist()
        columns = {name: slice(a, b) for name, a, b in zip(parts, ends[:-1], ends[1:], strict=True)}
        function, batch = joined(*(part.function for part in given)), given[0].batch
        self.__dict__.update(function=function, layout=Layout("Numbers", fields), rows=rows, action_width=ends[-1])
        self.__dict__.update(batch=batch, nworld=batch.nworld, _parts=dict(parts), columns=columns)

    @property
    def parts(self) -> Mapping[str, Part]:
        """The controllers by name."""
        return MappingProxyType(self._parts)

    @property
    def action_limits(self) -> tuple[np.ndarray, np.ndarray]:
        ends = [part.action_limits for part in self._parts.values()]
        return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])

    def _read(self, values: np.ndarray, desired: bool) -> None:
        for name, part in self._parts.items():
            part._read(values[:, self.columns[name]], desired)

    def _reset(self, ids: np.ndarray) -> None:
        for part in self._parts.values():
            part._reset(ids)


def _check_parts(parts: Any) -> None:
    """Raises the errors of `Composite`."""
    if not isinstance(parts, Mapping) or not 1 <= len(parts) <= MOST:
        given = f"{len(parts)} parts" if isinstance(parts, Mapping) else type(parts).__name__
        raise ModelError(f"parts: got {given}, allowed is a dict of 1 to {MOST} controllers")
    driven: dict[int, str] = {}
    first = None
    for name, part in parts.items():
        if not isinstance(part, Part) or isinstance(part, Composite):
            raise ModelError(f"parts[{name!r}]: got {type(part).__name__}, allowed are controllers of this module")
        first = part if first is None else first
        if part.batch is not first.batch:
            raise ModelError(f"parts[{name!r}]: got a controller of another batch, allowed is that of the first part")
        for i in part.actuators:
            if i in driven:
                known = object_names(part.batch.model, "actuator")[i] or i
                raise ModelError(
                    f"parts[{name!r}]: it sets actuator {known!r}, as {driven[i]!r} does, allowed is one part"
                )
            driven[i] = name
