"""Computes fields that depend on positions and velocities in the worlds of a batch, without contacts and forces."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.actuation import actuation
from featherlane.engine.model.model import Model
from featherlane.engine.model.sensor import POSITION, ROWS, SENSORS, VELOCITY
from featherlane.engine.sensor.measure import measures, sensor_vel
from featherlane.engine.sensor.publish import publish
from featherlane.engine.simulation.query.pose import Poses
from featherlane.engine.simulation.step.forward import forward_position, forward_velocity
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import over_tiles

# fields that the query computes, by the stage after which they are valid
STAGES = "kinematics com_pos frames tendon tendon_velocity transmission output_velocities cameras publish".split()
FRAMES = frozenset(name for name in DATA.that("shown") if DATA[name].stage in ("kinematics", "frames"))
MOVING = (*(name for name in DATA.that("shown") if DATA[name].stage in STAGES), "cvel")


@over_tiles
def moving_tiles(m, d, b, thread, tile):
    """Computes positions and velocities of the worlds of a tile, and the sensors that read them.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    forward_position(m, d)
    forward_velocity(m, d)
    actuation(m, d)
    sensor_vel(m, d)
    if measures(m, d):
        publish(m, d)
    write_records(b, thread, tile, s=0)


def measured(model: Model) -> np.ndarray:
    """Returns which elements of `sensordata` the query `Moving` computes, (nsensordata,) bool."""
    moves = [kind in SENSORS and SENSORS[kind].when in (POSITION, VELOCITY) for kind in model.sensor_type.tolist()]
    return np.repeat(np.array(moves, bool), model.sensor_dim)


def reads_rows(model: Model) -> bool:
    """Returns whether a sensor reads contacts or limits, whatever stage MuJoCo assigns to it."""
    return any(kind in SENSORS and SENSORS[kind].when == ROWS for kind in model.sensor_type.tolist())


class Moving(Poses):
    """Holds the rows of fields in the present state: frames, Jacobian axes, velocities, `sensordata`.

    In `sensordata`, the elements of sensors that need contacts or forces are NaN.

    Arguments are those of `Poses`.
    """

    loop = moving_tiles
    reads = (*DATA.that("lasts"), *DATA.of("count"))

    def __init__(self, model: Model, nworld: int, dtype, fields: Iterable[str]):
        super().__init__(model, nworld, dtype, fields)
        self.measured = measured(model)

    def answer(self) -> dict[str, np.ndarray]:
        if "sensordata" in self.taken:
            self.taken["sensordata"][..., ~self.measured] = np.nan
        return super().answer()
