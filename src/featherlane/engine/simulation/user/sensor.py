"""Registers and evaluates user-defined sensors: functions of computed fields, called between steps for all worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.assignment import value_entries
from featherlane.engine.model.enums import DATATYPE_POSITIVE, DATATYPE_REAL, SENS_USER
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.user.function import UserFunction
from featherlane.engine.simulation.user.roles import SENSOR
from featherlane.engine.simulation.user.trial import try_function
from featherlane.errors import ModelError, near

MOVED = DATA.of("state", "memory")  # already advanced when a function is called between steps
NAMES = "are names of fields"


class UserSensor(NamedTuple):
    """Holds what `set_user_sensor` registers.

    Attributes:
        function: maps the model and the arrays of `reads` to the values.
        reads: names of fields.
        in_step: whether it is called within steps.
    """

    function: Callable[..., np.ndarray]
    reads: tuple[str, ...]
    in_step = False


def set_user_sensor(
    model: Model,
    sensor: str | int,
    function: Callable[..., np.ndarray] | None,
    *,
    reads: tuple[str, ...] = ("sensordata",),
) -> None:
    """Registers the function that computes a sensor of the type `user`.

    A plain function is called between steps, a kernel within them.  After each call that computes sensors, a plain
    function is called with the model and with one array for each name in `reads`.  Arrays are shaped as in `fl.Data`,
    with leading axes: none for a `Data`, worlds in a batch, worlds and steps in a rollout.  The function returns the
    sensor's values (..., dim), to which the model's cutoff is then applied.  It computes all worlds at once, and must
    not write to its arguments.

        fl.set_user_sensor(model, "tilt", lambda model, xmat: xmat[..., 1, 8:], reads=("xmat",))

    A kernel is compiled, and written as for `set_user_actuator`: it maps the model's record, the world's record and the
    sensor's number to a number, or to a tuple of dim numbers.  It is called in each step that computes sensors, after
    all other fields are computed from the state before the step, positions and velocities included.

        @fl.kernel
        def tilt(m, d, i):
            return d.xmat[m.sensor_objid[i]].zz

    Args:
        model: the model.
        sensor: name or number of the sensor.
        function: the function, or None to unregister it.
        reads: inputs, such as `ctrl`, and computed fields, such as `xpos`; `sensordata` has the values of all sensors
            that are not user-defined.  State fields raise an error, because a step has already advanced them.  A kernel
            needs no `reads`: its source determines them.

    Raises:
        UnknownNameError: an unknown sensor.
        ModelError: the sensor has another type; `function` is not a function; a field that cannot be read; in a trial
            call with zeros the function fails or returns another shape; a kernel cannot be compiled, see
            `set_user_actuator`.
        InstallationError: a kernel is given and no compiler is installed.

    Source: MuJoCo mjcb_sensor (called within a step, stage by stage).
    """
    check_model(model)
    i = model.sensor(sensor).id
    label = f"sensor {model.names('sensor')[i] or i!r}"
    if model.sensor_type[i] != SENS_USER:
        raise ModelError(f"{label}: got a sensor of another type, allowed is the type user")
    if function is None:
        model.user_sensors.pop(i, None)
    elif isinstance(function, Kernel):
        compiled = UserFunction(SENSOR, label, function, i, int(model.sensor_dim[i]))
        try_function(model, compiled)
        compiled.check_compiled()
        model.user_sensors[i] = compiled
    else:
        if not callable(function):
            raise ModelError(f"{label}: function: got {type(function).__name__}, allowed are a function and None")
        reads = _checked_reads(label, reads)
        _try(model, label, function, reads, int(model.sensor_dim[i]))
        model.user_sensors[i] = UserSensor(function, reads)
    model.renew()


def _checked_reads(label: str, reads: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of fields, checked that a function may read them."""
    allowed = [n for n in DATA.index if n not in MOVED and DATA[n].traits.shown and not DATA[n].is_number]
    names = []
    for name in value_entries(f"{label}: reads", reads, NAMES):
        if not isinstance(name, str):
            raise ModelError(f"{label}: reads: got {name!r}, allowed {NAMES}")
        if name in MOVED:
            raise ModelError(
                f"{label}: reads: got {name!r}, which already has the value of the next step; use a "
                f"sensor that measures it"
            )
        if name not in allowed:
            raise ModelError(f"{label}: reads: unknown field {name!r}{near(name, allowed)}")
        names.append(name)
    return tuple(names)


def _try(model: Model, label: str, function, reads: tuple[str, ...], dim: int) -> None:
    """Calls the function with zeros, for one world and for worlds and steps."""
    sizes = Workspace.sizes_of(model)
    for lead in ((), (2, 3)):
        arrays = [np.zeros((*lead, *DATA[name].dims(sizes))) for name in reads]
        try:
            values = np.asarray(function(model, *arrays), float)
        except Exception as error:
            raise ModelError(f"{label}: the function raised {type(error).__name__}: {error}") from error
        if values.shape != (*lead, dim):
            raise ModelError(f"{label}: the function returned shape {values.shape}, allowed is {(*lead, dim)}")


# ---- calls -----------------------------------------------------------------------------------------------------------
def plain_sensors(model: Model) -> dict[int, UserSensor]:
    """Returns the user-defined sensors that are computed between steps, by number."""
    return {i: sensor for i, sensor in model.user_sensors.items() if isinstance(sensor, UserSensor)}


def fields_read(model: Model) -> set[str]:
    """Returns all fields that these sensors read."""
    return {name for sensor in plain_sensors(model).values() for name in sensor.reads}


def write_user_sensors(
    model: Model, sensordata: np.ndarray, read: Callable[[str], np.ndarray], cutoffs: np.ndarray
) -> None:
    """Writes the values of these sensors into sensordata (..., nsensordata).

    Args:
        model: the model.
        sensordata: already has the other sensors' values.
        read: maps a field's name to its array, shaped and with the same leading axes.
        cutoffs: `sensor_cutoff`, (nsensor,) or (n, nsensor) for worlds along the first axis of sensordata.

    Raises:
        ModelError: a function's result has another shape or type than in its trial call.
    """
    others = sensordata.copy()
    for i, sensor in plain_sensors(model).items():
        arrays = [others if name == "sensordata" else read(name) for name in sensor.reads]
        a, n = int(model.sensor_adr[i]), int(model.sensor_dim[i])
        values, shape = np.asarray(sensor.function(model, *arrays)), (*sensordata.shape[:-1], n)
        if values.dtype.kind not in "biuf" or values.shape != shape:
            given = f"{values.dtype} of shape {values.shape}"
            label = f"sensor {model.names('sensor')[i] or i!r}"
            raise ModelError(f"{label}: the function returned {given}, allowed are real numbers of shape {shape}")
        if model.sensor_datatype[i] in (DATATYPE_REAL, DATATYPE_POSITIVE):
            most = np.where(cutoffs[..., i] > 0.0, cutoffs[..., i], np.inf)
            most = most.reshape(*most.shape, *[1] * (values.ndim - most.ndim))
            values = np.clip(values, -most if model.sensor_datatype[i] == DATATYPE_REAL else None, most)
        sensordata[..., a : a + n] = values
