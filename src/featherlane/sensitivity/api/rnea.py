"""Derivatives of the recursive Newton-Euler algorithm: the forces that accelerate the bodies, without any others.

A column has the derivatives of these forces by one coordinate.  It is p.dg of the record p (records.py).
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy worlds and columns into the tile
and results out of it; b.nstep is the number of columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.prelude import *
from featherlane.dynamics.inertia.articulated import needs_inertia
from featherlane.dynamics.inertia.joint_space import crb
from featherlane.lanes.record import address
from featherlane.model.model import Model
from featherlane.sensitivity.api.transition import check_differentiable, given_accelerations, threads
from featherlane.sensitivity.columns.formulas import clear_rates
from featherlane.sensitivity.rates.records import RATES
from featherlane.sensitivity.rates.smooth_rates import (
    acceleration_column,
    inward_pass,
    outward_pass,
    position_column,
    velocity_column,
)
from featherlane.sensitivity.worlds.displaced_worlds import OwnWorlds, as_given, borrowed
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.step.forward import forward_position
from featherlane.simulation.tile.rows import write_records
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.simulation.world.data import Data


class RneaDerivatives(NamedTuple):
    """Holds derivatives of tau = RNEA(q, v, a), the forces that accelerate bodies: DtauDq[..., i, j] = dtau_i / dq_j.

    Attributes:
        DtauDq: (..., nv, nv) by position, dof by dof.
        DtauDv: (..., nv, nv) by velocity.
        DtauDa: (..., nv, nv) by acceleration: the inertia matrix of the bodies, without armatures.
    """

    DtauDq: np.ndarray
    DtauDv: np.ndarray
    DtauDa: np.ndarray


def rnea_derivatives(
    model: Model, data: Data | Batch, qacc: ArrayLike | None = None, nthread: int = 0
) -> RneaDerivatives:
    """Computes derivatives of `rne` by position, velocity and acceleration with the composite-body algorithm.

    Gravity is included.  Forces of joints, actuators, contacts and a fluid, and armatures are not; use
    `inverse_derivatives` for them.  Positions are displaced in the tangent space.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        qacc: accelerations (nv,), for a batch (nworld, nv) [m/s^2, rad/s^2]; None for `data.qacc`, in a batch for those
            of forward dynamics.
        nthread: threads, 0: as many as the work is worth.

    Returns:
        `RneaDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: an invalid shape; the model is not the data's.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: the flag `sleep` or `speculative` is on.

    Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018); Pinocchio
        computeRNEADerivatives, whose dtau_da includes armatures.
    """
    nv = check_differentiable(model, data)["nv"]
    with borrowed(MovingWorlds, model, data, threads(nthread)) as worlds:
        out = worlds.run(given_accelerations(model, data, worlds.batch.nworld, qacc))
    out = as_given(data, out.swapaxes(1, 2))
    return RneaDerivatives(*(out[..., k * nv : (k + 1) * nv] for k in range(3)))


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _column(m, d, p, c):
    """dg <- the derivatives of RNEA's forces by coordinate c: positions first, then velocities, then accelerations."""
    clear_rates(m, p)  # dg <- 0, to which the columns add
    if c < m.nv:
        position_column(m, d, p, c)
    elif c < 2 * m.nv:
        velocity_column(m, d, p, c - m.nv)
    else:
        acceleration_column(m, d, p, c - 2 * m.nv)


@stage(p=RATES)
def rnea_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the Newton-Euler forces, column by column.

    Reads:  the rows that the transfers of b bring in, qacc among them.
    Writes: those that they take back; dg, dp, dact; body_lag*, dof_*, crb_rate, cvel, cacc, cfrc; what
            `forward_position` and `crb` write.
    """
    forward_position(m, d)
    # composite inertias, which `forward_position` computes only for models that need M
    if not needs_inertia(m, d):
        crb(m, d)
    # the second field of accelerations of smooth_rates.py is unused: 0
    for i in range(m.nv):
        p.taken_off[i] = 0.0
    outward_pass(m, d, p, p.taken_off)
    inward_pass(m, d, p)
    for s in range(b.nstep):  # columns: s is the coordinate
        _column(m, d, p, s)
        write_records(b, thread, tile, s)


rnea_columns = in_each_tile("rnea_columns", rnea_columns_of_tile)


class MovingWorlds(OwnWorlds):
    """Holds the worlds of a `Data` or a `Batch`, and the rates of the forces that accelerate their bodies.

    Args:
        model, source, nthread: as for `OwnWorlds`.
    """

    def __init__(self, model: Model, source: Data | Batch, nthread: int):
        super().__init__(model, source, 3 * model.nv, nthread, 0)
        # each world takes its coordinates one after the other, never in parallel lanes
        self.width = 1 if self.batch.nworld == 1 else self.width
        self._qacc = np.zeros((self.batch.nworld, model.nv))

    def run(self, qacc: np.ndarray) -> np.ndarray:
        """Returns (nworld, 3 nv, nv) by position, velocity and acceleration; a new array."""
        nv, every = self.model.nv, np.arange(self.batch.nworld)
        out = np.empty((len(every), 3 * nv, nv))
        if nv:
            self._qacc[...] = qacc
            self.plans.prepare(self.width)
            load, sizes = {"qacc": self._qacc}, {"rate_lag": 0, "rate_steps": 1, "nslipmax": 0}
            plan = self.kept("plan", lambda: self.plan_of(rnea_columns, len(every), {}, {"dg": out}, load, sizes=sizes))
            plan.addresses("record")[0] = address(out)
            plan.begin(3 * nv, every, every)
            self.go(plan, -(-len(every) // self.width))
        return out
