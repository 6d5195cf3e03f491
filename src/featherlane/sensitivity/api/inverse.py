"""Derivatives of inverse dynamics, contacts included, by formulas; see formulas.py.

A column has the derivatives of the forces M a + c - J^T f, minus actuator forces if requested, by one coordinate.  It
is p.dg of the record p (records.py).  report[KNOWN]: 1 if all rates of a world have formulas, 0 if not, -1 if the world
must run alone; report[FITS], report[NEAREST]: as in solution.py, 1 here.
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy worlds and columns into the tile
and results out of it; b.nstep is the number of columns.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from featherlane.prelude import *
from featherlane.constraint.row import make_rows
from featherlane.model.arguments import one_of
from featherlane.model.assignment import flag
from featherlane.model.enums import Disable, Enable
from featherlane.model.model import Model
from featherlane.sensitivity.api.transition import (
    METHODS,
    InverseDerivatives,
    check_differentiable,
    given_accelerations,
    inverse_fd,
    no_differences,
    threads,
)
from featherlane.sensitivity.columns.formulas import (
    acceleration_rates,
    clear_rates,
    finish_rates,
    position_rates,
    velocity_rates,
)
from featherlane.sensitivity.rates.records import FITS, KNOWN, NEAREST, RATES
from featherlane.sensitivity.systems.formulas import prepare_rates
from featherlane.sensitivity.systems.served import serves
from featherlane.sensitivity.systems.solution import compute_position
from featherlane.sensitivity.worlds.displaced_worlds import OwnWorlds, as_given, borrowed, each_step
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.step.forward import control_and_actuate, forward_velocity
from featherlane.simulation.steps import check_inverse
from featherlane.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.simulation.world.data import Data
from featherlane.solver.free_bodies import mark_touched
from featherlane.solver.inverse import constraint_forces


def inverse_derivatives(
    model: Model,
    data: Data | Batch,
    *,
    method: Literal["analytic", "finite_difference"] = "analytic",
    actuation: bool = False,
    qacc: ArrayLike | None = None,
    eps: float | None = None,
    centered: bool | None = None,
    nthread: int = 0,
) -> InverseDerivatives:
    """Computes the derivatives of inverse dynamics by position, velocity and acceleration, in the present state.

    `analytic` uses formulas.  The active set of constraints is that of the given acceleration.  Where formulas do not
    apply (`invdiscrete`, the integrator discrete, adhesion; docs/derivatives.md), it differences inverse dynamics, as
    `finite_difference` does.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        method: `analytic` or `finite_difference`.
        actuation: differentiate qfrc_inverse - qfrc_actuator, the forces beyond those of the actuators.
        qacc: accelerations (nv,), for a batch (nworld, nv) [m/s^2, rad/s^2]; None for `data.qacc`, in a batch for those
            of forward dynamics.
        eps: displacement of each coordinate under `finite_difference`; None: 1e-6.
        centered: central differences under `finite_difference`; None: True.
        nthread: threads, 0: as many as the work is worth.

    Returns:
        `InverseDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: an invalid shape; the model is not the data's; an unknown method; eps is not positive, or given with
            `analytic`; as `inverse` does.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: the flag `sleep` or `speculative` is on.

    Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018); MuJoCo
        mjd_inverseFD, which uses finite differences.
    """
    if method != "analytic":
        one_of("method", method, METHODS)
        step, both = 1e-6 if eps is None else eps, True if centered is None else centered
        return inverse_fd(model, data, step, both, actuation, qacc, nthread)
    no_differences(eps, centered)
    nv = check_differentiable(model, data)["nv"]
    check_inverse(model)
    actuation, discrete = flag("actuation", actuation), model.opt_enableflags & int(Enable.INVDISCRETE)
    if not nv or discrete or not serves(model):
        return inverse_fd(model, data, 1e-6, True, actuation, qacc, nthread)
    disabled = 0 if actuation else int(Disable.ACTUATION)
    with borrowed(InverseWorlds, model, data, threads(nthread), disabled) as worlds:
        acceleration = given_accelerations(model, data, worlds.batch.nworld, qacc)
        out, left = worlds.rates(acceleration)
    if len(left):
        steps = inverse_fd(model, data, 1e-6, True, actuation, acceleration, nthread)
        out[left] = np.concatenate(steps, -2).reshape(out.shape)[left]
    out = as_given(data, out)
    return InverseDerivatives(*(out[..., k * nv : (k + 1) * nv, :] for k in range(3)))


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _column(m, d, p, c):
    """dg <- derivatives of the inverse-dynamics forces by coordinate c.

    Coordinates are the dofs' positions, then their velocities, then their accelerations.
    """
    clear_rates(m, p)
    if c < m.nv:
        position_rates(m, d, p, c)
    elif c < 2 * m.nv:
        velocity_rates(m, d, p, c - m.nv)
    else:
        acceleration_rates(m, d, p, c - 2 * m.nv)
    finish_rates(m, d, p)


@stage(p=RATES)
def inverse_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of inverse dynamics by formulas, column by column.

    Reads:  the rows that the transfers of b bring in, qacc among them.
    Writes: those that they take back; dg, dp, qacc_step, report; dof_*, body_*, geom_*, row_*, slot_*, ten_* and all
            else of p; con_fresh, con_wrench, crb_rate, cvel, cacc, cfrc, dof_touched, qfrc_constraint, and all
            else of this thread's workspace.
    """
    overflow = compute_position(m, d)
    # KNOWN stays -1, "compute the world alone", if contacts do not fit
    p.report[FITS], p.report[NEAREST], p.report[KNOWN] = 1.0, 1.0, -1.0
    if overflow == 0:
        forward_velocity(m, d)
        control_and_actuate(m, d)
        make_rows(m, d)
        mark_touched(m, d)  # dof_touched: trees on which rows act, for the integrator `discrete`
        # the integrator's correction p is 0 if its acceleration is the given one
        for i in range(m.nv):
            d.qacc_step[i] = d.qacc[i]
        constraint_forces(m, d, store=0)  # qfrc_constraint alone, without a force of each row
        prepare_rates(m, d, p)
        for s in range(b.nstep):  # columns: s is the coordinate
            copy_step_inputs(b, thread, tile, s)  # inputs of a column, of which this call has none
            _column(m, d, p, s)
            write_records(b, thread, tile, s)
    else:
        write_records(b, thread, tile, s=0)  # the report


inverse_columns = in_each_tile("inverse_columns", inverse_columns_of_tile)


class InverseWorlds(OwnWorlds):
    """Holds the worlds of a `Data` or a `Batch`, and the rates of inverse dynamics' forces.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
    """

    def __init__(self, model: Model, source: Data | Batch, nthread: int, disabled: int):
        super().__init__(model, source, 3 * model.nv, nthread, disabled)
        self._qacc = np.zeros((self.batch.nworld, model.nv))

    def rates(self, qacc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (nworld, 3 nv, nv) by position, velocity and acceleration, and indices of worlds without rates."""
        self._qacc[...] = qacc
        self.rows["xfrc_applied"][...] = 0.0  # inverse dynamics does not include it
        out = np.zeros((self.batch.nworld, 3 * self.model.nv, self.model.nv))
        todo = np.arange(self.batch.nworld)
        # each world takes its coordinates one after the other, never in parallel lanes
        for width_of_tile in dict.fromkeys((1 if self.batch.nworld == 1 else self.width, 1)):
            left = self._run(out, todo, width_of_tile)
            todo, alone = todo[left <= 0.0], left[left <= 0.0] < 0.0
            if not alone.any():
                break
        return out, todo

    def _run(self, out: np.ndarray, chosen: np.ndarray, width_of_tile: int) -> np.ndarray:
        """Computes rates of some worlds; returns 1 where available, 0 where not, -1 where the world must run alone."""
        n, report = 3 * self.model.nv, np.zeros((self.batch.nworld, 3))
        load, sizes = {"qacc": self._qacc}, {"rate_lag": 1, "rate_steps": 1, "nslipmax": 0}  # p is not read
        taken = {"dg": out, "report": each_step(report, n)}
        plan = self.plan_of(inverse_columns, self.batch.nworld, {}, taken, load, width_of_tile, sizes=sizes)
        plan.begin(n, chosen, chosen)
        self.go(plan, -(-len(chosen) // width_of_tile))
        return report[chosen, KNOWN]
