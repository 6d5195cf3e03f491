"""The sensors: each is registered with what it measures, when, and what a step computes for it alone.

`sensor/table.py` registers those that there are.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.errors import ArgumentError
from featherlane.lanes import Choice, Kernel, kernel

# when a sensor measures: once what it reads is valid, or while the rows of a world stand in the tile
POSITION, VELOCITY, ROWS, ACCELERATION = range(4)

# bits of sensor_reads: what is computed only where something reads it
MOMENTA, WRENCHES, ENERGIES = 1, 2, 4


class Sensor(NamedTuple):
    """A kind of sensor.

    Attributes:
        kind: its number, a `sensor_type`.
        when: POSITION, VELOCITY, ROWS or ACCELERATION.
        measure: the kernel or stage of (m, d, i) that writes the values of sensor i into `sensor_now`, from
            `sensor_adr[i]` on; under ROWS those of the active worlds alone.
        reads: bits of what a step has to compute for it: MOMENTA, WRENCHES, ENERGIES.
        is_cut: whether a cutoff clips its values.
    """

    kind: int
    when: int
    measure: Kernel
    reads: int = 0
    is_cut: bool = True


SENSORS: dict[int, Sensor] = {}  # by kind: all whose values are computed


@kernel
def _nothing(m, d, i):
    """Another sensor, or one that measures at another time."""


def _measured(kind: int, measure: Kernel, others: Kernel) -> Kernel:
    @kernel
    def measured(m, d, i):
        """sensor_now <- the values of sensor i, if it is of this kind."""
        if m.sensor_type[i] == kind:
            measure(m, d, i)
        else:
            others(m, d, i)

    return measured


@kernel
def _never(kind):
    """A cutoff clips the values."""
    return False


def _left(number: int, others: Kernel) -> Kernel:
    @kernel
    def left(kind):
        """Are values of this kind left as they are, whatever the cutoff?"""
        return kind == number or others(kind)

    return left


measure_position, measure_velocity, measure_rows, measure_acceleration = (Choice(_measured, _nothing) for _ in range(4))
is_left = Choice(_left, _never)
_CHOICES = {
    POSITION: measure_position,
    VELOCITY: measure_velocity,
    ROWS: measure_rows,
    ACCELERATION: measure_acceleration,
}


def register(sensor: Sensor) -> None:
    """Take up a kind of sensor, before the stages that measure are compiled.

    Raises:
        ValueError: the kind is registered already.
    """
    if sensor.kind in SENSORS:
        raise ArgumentError(f"sensors of the kind {sensor.kind} are registered already")
    SENSORS[sensor.kind] = sensor
    _CHOICES[sensor.when].add(sensor.kind, sensor.measure)
    if not sensor.is_cut:
        is_left.add(sensor.kind)
