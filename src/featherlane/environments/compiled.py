"""Compiled functions of a task, which run in lanes within the step as user sensors.

The model gets a sensor of type `user` for each function; `set_user_sensor` compiles the kernel, and its values are part
of `sensordata`.  Like other sensors they run at compiled speed and are reproducible; positions and velocities are those
of the state before the last time step, accelerations and forces those of that step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from featherlane import Model, load, set_user_sensor
from featherlane.errors import ModelError
from featherlane.extension import specification, whole_argument
from featherlane.lanes import Kernel

PREFIX = "task/"


def with_kernels(source: Any, kernels: Mapping[str, tuple[Kernel, int]]) -> Model:
    """Returns a model whose step also evaluates the given kernels.

    Args:
        source: a bundled name, a path, XML text or an MjSpec.
        kernels: name -> (kernel of (m, d, i), number of values).

    Raises:
        ModelError: a source that cannot be extended; not a kernel; a kernel with another number of values, or one
            that does not compile, see `set_user_sensor`.
        InstallationError: the kernel compiler is not installed.
    """
    if isinstance(source, Model):
        raise ModelError(
            "model: got a Model; with kernels, allowed is its source (a path, XML text or an "
            "MjSpec), because the kernels are added as sensors"
        )
    spec = specification(source)
    for name, given in kernels.items():
        if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Kernel)):
            raise ModelError(f"kernels[{name!r}]: got {given!r}, allowed is a pair (kernel, number of values)")
        _add_sensor(spec, PREFIX + name, whole_argument(f"kernels[{name!r}]: number of values", given[1], 1))
    model = load(spec)
    for name, (kernel, _) in kernels.items():
        set_user_sensor(model, PREFIX + name, kernel)
    return model


def _add_sensor(spec: Any, name: str, dim: int) -> None:
    import mujoco

    spec.add_sensor(
        name=name,
        type=mujoco.mjtSensor.mjSENS_USER,
        datatype=mujoco.mjtDataType.mjDATATYPE_REAL,
        needstage=mujoco.mjtStage.mjSTAGE_ACC,
        dim=dim,
    )


def sensordata_slice(model: Model, name: str) -> slice:
    """Returns the slice of a kernel's values in `sensordata`.

    Raises:
        UnknownNameError: no kernel has this name.
    """
    sensor = model.sensor(PREFIX + name).id
    start = int(model.sensor_adr[sensor])
    return slice(start, start + int(model.sensor_dim[sensor]))
