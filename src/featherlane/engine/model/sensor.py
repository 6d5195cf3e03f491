"""Registers the sensor types, each with its kernel, its stage, and what a step computes only for it.

`sensor/table.py` registers the types.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.lanes import Kernel, dispatch, kernel
from featherlane.engine.lanes.choice import Choice
from featherlane.errors import ArgumentError

# stage of a sensor: when the fields that it reads are valid, or (ROWS) while the rows of a world are in the tile
POSITION, VELOCITY, ROWS, ACCELERATION = range(4)

# bits of sensor_reads: results that are computed only if something reads them
MOMENTA, WRENCHES, ENERGIES = 1, 2, 4


class Sensor(NamedTuple):
    """A sensor type.

    Attributes:
        kind: value of `sensor_type`.
        when: POSITION, VELOCITY, ROWS or ACCELERATION.
        measure: the kernel or stage of (m, d, i) that writes the values of sensor i to `sensor_now`, from
            `sensor_adr[i]` on; for ROWS only in the active worlds.
        reads: bits of the results that a step must compute for it: MOMENTA, WRENCHES, ENERGIES.
        is_cut: whether its values are clamped to the cutoff.
    """

    kind: int
    when: int
    measure: Kernel
    reads: int = 0
    is_cut: bool = True


SENSORS: dict[int, Sensor] = {}  # by kind: all types whose values are computed


@kernel
def _kind(m, d, i):
    return m.sensor_type[i]


def _nothing(m, d, i):
    """Does nothing, for a sensor of another stage."""


# (m, d, i): writes the values of sensor i to sensor_now
measure_position, measure_velocity, measure_rows, measure_acceleration = (Choice(_nothing, _kind) for _ in range(4))


@dispatch("kind")
def ignores_cutoff(kind):
    """Returns whether values of this kind are independent of the cutoff."""
    return False


_CHOICES = measure_position, measure_velocity, measure_rows, measure_acceleration  # by stage


def register(sensor: Sensor) -> None:
    """Registers a sensor type, before the sensor stages are compiled.

    Raises:
        ValueError: the kind is already registered.
    """
    if sensor.kind in SENSORS:
        raise ArgumentError(f"the sensor kind {sensor.kind} is registered already")
    SENSORS[sensor.kind] = sensor
    _CHOICES[sensor.when].add(sensor.kind, sensor.measure)
    if not sensor.is_cut:
        ignores_cutoff.add(sensor.kind)
