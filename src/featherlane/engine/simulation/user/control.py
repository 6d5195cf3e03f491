"""Prepares a control kernel: a user callback that sets controls within each step of a rollout.

A `Controller` has separate numbers for each world, which the kernel reads and writes as the record p.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from featherlane.engine.lanes import Field, Kernel, Layout
from featherlane.engine.model.arguments import instance, whole_argument
from featherlane.engine.model.assignment import broadcast_reals
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.user.function import NO_NUMBERS, UserFunction
from featherlane.engine.simulation.user.roles import CONTROL
from featherlane.engine.simulation.user.trial import try_function
from featherlane.errors import ModelError, UnknownAttributeError, near

NUMBERS = "p."  # before the names of a controller's numbers among the states of a failure
# names of attributes of controllers and of uncompiled records
RESERVED = frozenset("function rows layout rows_for of_worlds width shape dtype functions scalars doubles".split())


class Controller:
    """A control kernel with separate numbers for each world: targets, gains, or what it remembers between steps.

        controller = fl.Controller(batch, hold, target=model.nu, stiffness=1)
        controller.stiffness = 50.0
        batch.rollout(25, control=controller)

    `hold(m, d, p)` reads and writes `p.target[k]` and `p.stiffness[0]`, the numbers of its world.  They last from call
    to call; the reset of a world does not change them.

    Args:
        batch: a `Batch` or `MixedBatch`, of which it takes the number of worlds and the precision.
        function: kernel `f(m, d, p)`, which sets `d.ctrl`, `d.qfrc_applied` or `d.xfrc_applied`.
        scratch: how many numbers of a name the kernel may use as memory within a call: {name: n}.
        numbers: how many numbers of a name each world has, at least 1: `name=n`.

    Attributes:
        function: the kernel.
        rows: the numbers, name -> (nworld, n) in the batch's dtype, initially zero; also attributes by their names.

    Raises:
        ModelError: no batch, no kernel, no numbers; a name that is a field of `Data` or reserved; a count below 1.
    """

    function: Kernel
    layout: Layout
    rows: dict[str, np.ndarray]

    def __init__(
        self, batch: Any, function: Kernel, *, scratch: Mapping[str, int] = MappingProxyType({}), **numbers: int
    ):
        instance("function", function, Kernel, "a kernel f(m, d, p) (decorate it with featherlane.kernel)")
        if not (hasattr(batch, "nworld") and hasattr(batch, "dtype") and hasattr(batch, "models")):
            raise ModelError(f"batch: got {type(batch).__name__}, allowed is a Batch or a MixedBatch")
        if not numbers:
            raise ModelError(
                "numbers: got none, allowed is name=count, for example target=3; or pass the kernel itself"
            )
        for name, count in (*numbers.items(), *scratch.items()):
            if name in DATA or name in RESERVED or name.startswith("_"):
                raise ModelError(f"numbers: got the name {name!r}, allowed are names that are no fields of Data")
            whole_argument(name, count, 1)
        fields = tuple(Field(name, "real", (int(n),)) for name, n in (numbers | dict(scratch)).items())
        rows = {name: np.zeros((batch.nworld, int(n)), batch.dtype) for name, n in numbers.items()}
        self.__dict__.update(function=function, layout=Layout("Numbers", fields), rows=rows)

    def __getattr__(self, name: str) -> np.ndarray:
        rows = self.__dict__.get("rows", {})
        if name not in rows:
            raise UnknownAttributeError(f"{type(self).__name__} has no attribute {name!r}{near(name, rows)}")
        return rows[name]

    def __setattr__(self, name: str, values: Any) -> None:
        rows = getattr(self, name)
        rows[...] = broadcast_reals(name, values, rows.shape)

    def __dir__(self):
        return sorted({*super().__dir__(), *self.rows})

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}={rows.shape[1]}" for name, rows in self.rows.items())
        return f"Controller({self.function.function.__name__}, {counts})"

    def rows_for(self, nworld: int, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Returns the numbers, for a batch with that many worlds and that precision.

        Raises:
            ModelError: the controller was made for another number of worlds or precision.
        """
        rows = next(iter(self.rows.values()))
        if (len(rows), rows.dtype) != (nworld, dtype):
            raise ModelError(
                f"control: got a Controller of {len(rows)} worlds in {rows.dtype}, "
                f"allowed are {nworld} worlds in {np.dtype(dtype)} as the batch has"
            )
        return self.rows

    def of_worlds(self, first: int, last: int) -> Controller:
        """Returns the controller of the worlds from `first` up to `last`, with the same numbers in memory."""
        part = object.__new__(Controller)
        rows = {name: values[first:last] for name, values in self.rows.items()}
        part.__dict__.update(self.__dict__, rows=rows)
        return part


def control_function(model: Model, control: Kernel | Controller) -> UserFunction:
    """Returns a control kernel as a user function, checked; a controller's with the numbers of its first world.

    Raises:
        ModelError: other parameters, a failure in a trial call, code that cannot be compiled.
        InstallationError: no compiler is installed.
    """
    own, numbers = NO_NUMBERS, {}
    if isinstance(control, Controller):
        own = control.layout
        numbers = {f.name: np.zeros(f.count({})) for f in own.fields}  # scratch memory
        numbers |= {name: rows[0].astype(float) for name, rows in control.rows.items()}
        control = control.function
    function = UserFunction(CONTROL, f"control {control.function.__name__}", control, 0, 0, own)
    try_function(model, function, numbers)
    function.check_compiled()
    return function
