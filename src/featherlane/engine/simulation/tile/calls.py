"""Connects user callbacks to a workspace: stores their addresses in the tile's record, and calls plain Python.

Callbacks called within a step are `simulation.user.function.UserFunction`, stored in a model's `user_actuators` and
`user_sensors`.  These also contain plain sensors, which are not called within a step (`in_step`).
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from featherlane.engine.lanes import Field, Layout, Record, Stage
from featherlane.engine.lanes.record import python_record
from featherlane.engine.lanes.runtime import mode
from featherlane.engine.model.actuators import USER_TYPES, missing_functions
from featherlane.engine.simulation.tile.library import library
from featherlane.errors import ModelError, UnknownAttributeError, UnsupportedFeatureError, near

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
KINDS = tuple(USER_TYPES)  # the columns of the field user_actuator


def readable(record: str, layout: Layout, name: str, reads) -> Field:
    """Returns a field of a record that a user callback may read.

    Raises:
        AttributeError: it may not be read in this call.
    """
    if name in layout and (name in reads or layout[name].kind == "size"):
        return layout[name]
    raise UnknownAttributeError(f"{record}.{name} cannot be read in this callback{near(name, reads)}")


class WorldView:
    """Presents one world of a record to plain Python: read-only arrays, flat or of rows as in kernels, and sizes."""

    def __init__(self, name: str, record: Record, lane: int, reads):
        self.__dict__.update(_name=name, _record=record, _lane=lane, _reads=frozenset(reads))
        self.__dict__.update(width=1, shape=(), dtype=np.dtype(float))

    def __getattr__(self, field: str):
        f = readable(self._name, self._record.layout, field, self._reads)
        if f.kind == "size":
            return self._record.size(field)
        array = self._record.arrays[field]
        view = array[:, self._lane] if f.kind == "real" else array[:]
        view = view.reshape(-1, len(f.rows._fields)) if f.rows else view
        view.flags.writeable = False
        return view

    def __setattr__(self, field: str, value):
        raise UnknownAttributeError(f"{self._name}.{field} cannot be written in this callback")


class UserCalls:
    """Holds the user callbacks that one workspace calls.

    Args:
        workspace: its record gets their addresses.  It owns this object, which refers to it weakly: in a cycle,
            hundreds of megabytes would wait for Python's garbage collector, which counts objects, not bytes.
    """

    def __init__(self, workspace):
        self._owner, self._revision = weakref.ref(workspace), None
        workspace.record.functions[:] = [None, None]  # number 0 means no function, 1 is a control's own numbers
        self._missing: list[str] = []
        self._addresses: dict[Any, int] = {}
        self._kept: list = []  # callbacks, kept alive while their addresses are in the record
        self._errors: list[BaseException] = []
        self._numbers: Record | None = None  # a control's own numbers

    @property
    def _workspace(self) -> Any:
        """Returns the workspace, which exists while it calls."""
        return self._owner()

    @property
    def calls_python(self) -> bool:
        """Returns whether compiled stages call plain Python."""
        return bool(self._kept)

    def forget(self) -> None:
        """Discards all functions, because the workspace has another model."""
        self._revision = None

    def connect(self) -> None:
        """Connects the functions that are now registered with the model."""
        model = self._workspace.model
        if self._revision == model.revision:
            return
        self._missing = missing_functions(model)
        if model.user_actuators or model.user_sensors or model.user_lcp_solver or self._addresses:
            self._fill()
        self._revision = model.revision

    def _fill(self) -> None:
        """Writes addresses of all functions into the record."""
        w, model = self._workspace, self._workspace.model
        w.unbind()
        self._kept.clear()
        self._addresses.clear()
        del w.record.functions[2:]
        for name in ("user_actuator", "user_sensor", "lcp_function"):
            w.arrays[name][...] = 0
        for (i, kind), function in model.user_actuators.items():
            w.arrays["user_actuator"][3 * i + KINDS.index(kind)] = self.address(function)
        for i, function in model.user_sensors.items():
            if function.in_step:
                w.arrays["user_sensor"][i] = self.address(function)
        if model.user_lcp_solver:
            w.arrays["lcp_function"][0] = self.address(model.user_lcp_solver.function)

    def require(self, stage: Stage) -> None:
        """Raises an error if the stage computes the force of an actuator that lacks a function.

        Raises:
            UnsupportedFeatureError: with the name of each such actuator.
        """
        if self._missing and _acts(stage):
            what = "user callbacks are missing (register them with featherlane.set_user_actuator)"
            raise UnsupportedFeatureError(self._missing, self._workspace.model.source, what)

    def address(self, function) -> int:
        """Returns the function's address for stages; for uncompiled ones, its number in `record.functions`."""
        if function not in self._addresses:
            self._addresses[function] = self._new_address(function)
        return self._addresses[function]

    def set_control(self, function, numbers: Record | None = None) -> None:
        """Sets the control function of the next call, and the record of its own numbers; None, None for none."""
        w, self._numbers = self._workspace, numbers
        place = numbers.address if numbers else 0
        if mode() == "python" and numbers:
            w.record.functions[1], place = python_record(numbers), 1
        w.record.set_size("user_control", self.address(function) if function else 0)
        w.record.set_size("control_record", place)

    def _new_address(self, function) -> int:
        w = self._workspace
        if mode() == "python":
            w.record.functions.append(function.stage if function.is_compiled else self._plain(function))
            return len(w.record.functions) - 1
        if function.is_compiled:
            return function.compiled_address(w.dtype, w.width)
        callback = CALLBACK(self._guarded(self._plain(function)))
        self._kept.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def raise_errors(self) -> None:
        """Raises the errors of functions that stages have called, because errors cannot pass through stages.

        Raises:
            ModelError: a kernel used an index outside of a field's rows; it was given row 0.
            BaseException: the first error of plain Python.
        """
        if self._errors:
            error = self._errors[0]
            self._errors.clear()
            raise error
        if self._addresses:
            for record in filter(None, (self._workspace.rows.record, self._workspace.record, self._numbers)):
                record.check_faults(", ".join(f.label for f in self._addresses if f.is_compiled), ModelError)

    def raising(self, run: Callable[..., None]) -> Callable[..., None]:
        """Returns a bound stage that raises errors of the functions that it calls; without functions, the stage."""
        if not self._addresses:
            return run

        def raising(*numbers):
            run(*numbers)
            self.raise_errors()

        return raising

    def _plain(self, function):
        """Returns a callback that calls the function for each participating world of the tile, one after the other."""
        w, out = self._workspace, function.role.result
        rows, place, active = w.arrays[out], function.place(w.model), w.arrays["active"]
        m = [WorldView("m", w.rows.record, lane, w.rows.record.layout.index) for lane in range(w.width)]
        d = [WorldView("d", w.record, lane, function.role.reads) for lane in range(w.width)]

        def call(_m, _d, i):
            for lane in np.flatnonzero(active[0]):
                rows[place, lane] = function.function(m[lane], d[lane], i)

        return call

    def _guarded(self, call):
        errors = self._errors

        def guarded(m, d, i):
            try:
                call(m, d, i)
            except BaseException as error:  # KeyboardInterrupt, too: it cannot reach the frames above
                errors.append(error)
            return 0

        return guarded


def fields_called_for(model, sensors: bool) -> set[str]:
    """Returns fields that functions called within a step may read, those of sensors if these are computed."""
    functions = list(model.user_actuators.values())
    if sensors:
        functions += [f for f in model.user_sensors.values() if f.in_step]
    return {name for f in functions for name in f.fields}


@functools.cache
def _acts(stage: Stage) -> bool:
    """Returns whether the stage computes forces of actuators."""
    return any(s.name == "actuation" for s in library().required(stage))
