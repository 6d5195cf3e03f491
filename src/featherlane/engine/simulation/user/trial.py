"""Makes a trial call of a user callback when it is registered, on the fields that the engine has computed in qpos0."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from featherlane.engine.lanes import Layout
from featherlane.engine.lanes.record import Rows
from featherlane.engine.model.fields import MODEL
from featherlane.engine.simulation.step.forward import forward_position, forward_velocity
from featherlane.engine.simulation.tile.calls import WorldView, readable
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.user.function import UserFunction
from featherlane.errors import ModelError, UnknownAttributeError

WORLDS = 2  # in a trial call of a kernel, so that a branch on a value raises an error
BRANCH = "; choose between values with featherlane.lanes.where"


class KernelView:
    """Presents a record as a kernel reads it: flat rows of several worlds, restricted to readable fields."""

    def __init__(self, name: str, layout: Layout, sizes, arrays, reads, sets=(), prefix: str = ""):
        self.__dict__.update(_name=name, _layout=layout, _sizes=sizes, _arrays=arrays, _reads=reads, _sets=sets)
        self.__dict__.update(_prefix=prefix)  # of the fields of a nested record
        self.__dict__.update(_seen={}, width=WORLDS, shape=(WORLDS,), dtype=np.dtype(float))

    def __getattr__(self, field: str):
        if field not in self._seen:
            self._seen[field] = self._field(field)
        return self._seen[field]

    def _field(self, field: str):
        if not self._prefix and field in self._layout.records:
            form = self._name, self._layout, self._sizes, self._arrays, self._reads, self._sets
            return KernelView(*form, prefix=f"{field}.")
        field = self._prefix + field
        f = readable(self._name, self._layout, field, self._reads)
        if f.kind == "size":
            return int(self._sizes[field])
        array = self._arrays[field][: f.count(self._sizes)]
        rows = np.repeat(array.reshape(-1, 1), WORLDS, axis=1) if f.kind == "real" else array.copy()
        rows.flags.writeable = field in self._sets
        return Rows(rows, f"{self._name}.{field}", f.rows)

    def __setattr__(self, field: str, value):
        raise UnknownAttributeError(f"{self._name}.{field} cannot be written in this callback")


def try_function(model, function: UserFunction, numbers: Mapping[str, np.ndarray] = MappingProxyType({})) -> None:
    """Calls a function once and checks its result.

    Args:
        model: the model.
        function: the function.
        numbers: a world's own numbers of a control kernel, name -> (n,).

    Raises:
        ModelError: the function fails, or returns another number of values, or a non-finite or non-numeric value.
    """
    workspace = Workspace(model, 1)
    workspace.run(forward_position)
    workspace.run(forward_velocity)
    record, reads = workspace.rows.record, [f.name for f in MODEL.fields]
    if function.is_compiled:
        m = KernelView("m", MODEL, model.size_values(), record.arrays, reads)
        role = function.role
        d = KernelView("d", DATA, workspace.sizes, workspace.arrays, role.reads, role.sets)
    else:
        m, d = WorldView("m", record, 0, reads), WorldView("d", workspace.record, 0, function.role.reads)
    arguments = {"m": m, "d": d, "i": function.element}
    arguments["p"] = KernelView("p", function.own, {}, numbers, numbers, numbers)
    given = called(function, [arguments[name] for name in function.parameters], "in qpos0")
    if function.number:
        _check_values(function, given)
    elif given is not None:
        raise ModelError(
            f"{function.label}: {function.name} returned {given!r}, allowed is None: the function sets d.ctrl"
        )
    else:
        _check_written(function, d)


def called(function: UserFunction, arguments, where: str):
    """Returns the result of a trial call, uncompiled; `where` names the call in the error."""
    try:
        with np.errstate(all="ignore"):
            return function.function(*arguments)
    except Exception as error:
        hint = BRANCH if "truth value of an array" in str(error) else ""
        what = f"{type(error).__name__}: {error}{hint}"
        raise ModelError(f"{function.label}: {function.name} raised an error {where}: {what}") from error


def _check_values(function: UserFunction, given) -> None:
    n, label = function.number, f"{function.label}: {function.name} returned"
    allowed = "a number" if n == 1 else f"a tuple of {n} numbers"
    parts = (given,) if n == 1 else given
    several = tuple if function.is_compiled else (tuple, list, np.ndarray)
    if not isinstance(parts, several):
        raise ModelError(f"{label} {type(given).__name__}, allowed is {allowed}")
    if len(parts) != n:
        raise ModelError(f"{label} {len(parts)} values, allowed is {allowed}")
    for x in parts:
        found = _no_number(x, function.is_compiled)
        if found:
            raise ModelError(f"{label} {found}, allowed is {allowed}")
        if not np.all(np.isfinite(np.asarray(x, float))):
            raise ModelError(f"{label} {np.ravel(x)[0]} in qpos0, allowed are finite numbers")


def _no_number(x, compiled: bool) -> str:
    """Describes x if it is not a number of one world, or a value."""
    if isinstance(x, (str, tuple, list, type(None))):
        return type(x).__name__
    if np.shape(x) not in ((), (WORLDS,) if compiled else ()):
        return f"an array {np.shape(x)}"
    if np.asarray(x).dtype.kind not in "fiu":
        return "a mask" if compiled else type(x).__name__
    return ""


def _check_written(function: UserFunction, d: KernelView | WorldView) -> None:
    for field in function.role.sets:
        if not np.all(np.isfinite(getattr(d, field).array)):
            raise ModelError(f"{function.label}: {function.name} wrote a non-finite number to d.{field}")
