"""Rates of sensors: differences of their values, with the acceleration displaced according to implicit differentiation.

A sensor is a function y(x, u, a) of the state, the controls and the acceleration; the laws of the rows determine their
forces from these.  So with da of solution.py

    dy = (y(x + e, a + e da) - y(x - e, a - e da)) / 2 e

is the whole derivative, y_x and y_a da together, without a solver at either point.
Source: implicit function theorem; see solution.py.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.step.consistency import inverse_constraint
from featherlane.engine.simulation.step.forward import forward_outputs, forward_unconstrained
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.api.transition import differentiate
from featherlane.tools.sensitivity.columns.system import Stages
from featherlane.tools.sensitivity.rates.coordinates import EPS, Seeds, displace_point
from featherlane.tools.sensitivity.rates.records import COLUMNS
from featherlane.tools.sensitivity.worlds.displaced_worlds import MovedWorlds, borrowed
from featherlane.tools.sensitivity.worlds.implicit_worlds import ImplicitWorlds


@over_tiles(p=COLUMNS)
def sensor_points(m, d, b, p, thread, tile):
    """Computes sensors at each point as a step does: coordinates are position by dof, velocity, activation, control.

    The acceleration is qacc, displaced by its rate da.  `at` is the displaced coordinate of a point.
    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; qpos, qvel, act, ctrl, qfrc_applied, qacc, con_fresh, energy, active,
            recall_address, tree_settled, and all else of this thread's workspace.
    """
    copy_step_inputs(b, thread, tile, s=0)  # p.at, p.displacement, p.da
    displace_point(m, d, p)
    for i in range(m.nv):
        d.qacc[i] = fma(p.displacement[0], p.da[i], d.qacc[i])
    # `forward` at the given acceleration
    forward_unconstrained(m, d)
    inverse_constraint(m, d, store=1)  # forces of the rows at qacc, which sensors read
    forward_outputs(m, d)  # energies and acceleration sensors
    write_records(b, thread, tile, s=0)


def sensor_rates(
    model: Model, data: Data | Batch, stages: Stages, nthread: int, disabled: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sensors' rates (nworld, 2 nv + na + nu, nsensordata), and the indices of worlds without rates.

    stages: those of the system that forward dynamics solves.
    """
    n = Seeds.of_model(model).input.stop
    with borrowed(ImplicitWorlds, model, data, stages, True, nthread, disabled) as worlds:
        _, da, _, left = worlds.rates()
        qacc, da = worlds.accelerations().copy(), np.ascontiguousarray(da[:, :n])
    da[left] = 0.0
    how = sensor_points, ("sensordata",), n, True, nthread, disabled, True
    with borrowed(MovedWorlds, model, data, *how) as points:
        points.set_displacement(EPS)
        return differentiate(points, lambda worlds, low, high: high - low, 1, qacc, da), left
