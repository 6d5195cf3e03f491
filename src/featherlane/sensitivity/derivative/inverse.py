"""Derivatives of inverse dynamics, contacts included, by formulas and differences of forces; see formulas.py."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from featherlane.prelude import *
from featherlane.constraint.row import make_rows
from featherlane.dynamics.actuator.reflected import reflected_armature
from featherlane.model.arguments import one_of
from featherlane.model.assignment import flag
from featherlane.model.enums import Disable, Enable
from featherlane.model.model import Model
from featherlane.sensitivity.derivative.columns import FITS, KNOWN, NEAREST
from featherlane.sensitivity.derivative.contact_rates import add_velocity_column
from featherlane.sensitivity.derivative.displaced_worlds import OwnWorlds, as_given, borrowed, each_step
from featherlane.sensitivity.derivative.formulas import (
    add_brought,
    clear_rates,
    position_rates,
    prepare_rates,
    rest_of_worlds,
    serves,
    velocity_rates,
)
from featherlane.sensitivity.derivative.rates import RATES
from featherlane.sensitivity.derivative.residual import compute_position
from featherlane.sensitivity.derivative.rest_rates import rest_forces, rest_positions
from featherlane.sensitivity.derivative.smooth_rates import acceleration_column
from featherlane.sensitivity.derivative.tendon_rates import add_tendon_acceleration_column
from featherlane.sensitivity.derivative.transition import (
    METHODS,
    InverseDerivatives,
    check_differentiable,
    given_accelerations,
    inverse_fd,
    no_differences,
    threads,
)
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.step.forward import control_and_actuate, forward_velocity
from featherlane.simulation.steps import check_inverse
from featherlane.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.simulation.world.data import Data
from featherlane.solver.free_bodies import mark_touched
from featherlane.solver.inverse import constraint_forces

EPS, LINEAR = 2e-7, 1e-4  # displacements of states where forces are differenced, and of accelerations


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

    `analytic` has formulas for bodies, contacts, limits and dry friction, and central differences for other forces.
    The active set of constraints is that of the given acceleration.  Where formulas do not apply (`invdiscrete`, the
    integrator discrete, adhesion; docs/derivatives.md), it differences inverse dynamics, as `finite_difference` does.

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
    """dg <- rates by position, velocity or acceleration c."""
    clear_rates(m, d, p)
    if c < m.nv:
        position_rates(m, d, p, c)
    elif c < 2 * m.nv:
        velocity_rates(m, d, p, c - m.nv)
    else:
        k = c - 2 * m.nv
        acceleration_column(m, d, p, k)
        p.dg[k] = p.dg[k] + (m.dof_armature[k] + reflected_armature(m, d, k)) + p.dof_curvature[k]
        add_velocity_column(m, d, p, k, accelerates=1)
        if not p.rate_rest:
            add_tendon_acceleration_column(m, d, p, k)
    add_brought(m, d, p)


@stage(p=RATES)
def inverse_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of inverse dynamics by formulas, plus the differences that the call provides, column by column.

    Reads:  the rows that the transfers of b bring in, qacc among them.
    Writes: those that they take back; dg, dp, qacc_step, report; dof_*, body_*, geom_*, row_*, slot_*, ten_* and all
            else of p; con_fresh, con_wrench, crb_rate, cvel, cacc, cfrc, qvec, dof_touched, qfrc_constraint, and all
            else of this thread's workspace.
    """
    overflow = compute_position(m, d)
    p.report[FITS], p.report[NEAREST], p.report[KNOWN] = real(d, 1.0), real(d, 1.0), real(d, -1.0)
    if overflow == 0:
        forward_velocity(m, d)
        control_and_actuate(m, d)
        make_rows(m, d)
        mark_touched(m, d)
        for i in range(m.nv):
            d.qacc_step[i] = d.qacc[i]
        constraint_forces(m, d, store=0)
        prepare_rates(m, d, p)
        for s in range(b.nstep):
            copy_step_inputs(b, thread, tile, s)
            _column(m, d, p, s)
            write_records(b, thread, tile, s)
    else:
        write_records(b, thread, tile, 0)


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
        rest, over = rest_of_worlds(self.model, self.batch.arrays.expanded, self.batch.nworld), []
        for kind in {*rest.tolist()}:
            todo = np.flatnonzero(rest == kind)
            # each world takes its coordinates one after the other, never in parallel lanes
            for width_of_tile in dict.fromkeys((1 if self.batch.nworld == 1 else self.width, 1)):
                left = self._run(out, todo, width_of_tile, kind)
                todo, alone = todo[left <= 0.0], left[left <= 0.0] < 0.0
                if not alone.any():
                    break
            over.append(todo)
        return out, np.concatenate(over)

    def _run(self, out: np.ndarray, chosen: np.ndarray, width_of_tile: int, rest: bool) -> np.ndarray:
        """Computes rates of some worlds; returns 1 where available, 0 where not, -1 where the world must run alone."""
        model, nv, n = self.model, self.model.nv, self.batch.nworld
        ntile, load = -(-len(chosen) // width_of_tile), {"qacc": self._qacc, "qacc_step": np.zeros((n, nv))}

        def go(loop, brought: dict[str, np.ndarray], taken: dict[str, np.ndarray], columns: slice, **sizes) -> None:
            given, found = ({name: a[:, columns] for name, a in rows.items()} for rows in (brought, taken))
            plan = self.plan_of(loop, n, given, found, load, width_of_tile, sizes=sizes)
            plan.begin(columns.stop - columns.start, chosen, chosen)
            self.go(plan, ntile)

        brought = {}
        if rest:
            coordinate = np.arange(3 * nv, dtype=float)
            coordinate[2 * nv :] += model.na + model.nu
            step = np.full(3 * nv, EPS)
            step[2 * nv :] = LINEAR
            moves = {"at": coordinate, "up": step, "down": step}
            moves = {name: np.broadcast_to(a, (n, 3 * nv)).copy()[..., None] for name, a in moves.items()}
            go(rest_positions, moves, {"dg": out}, slice(0, nv))
            go(rest_forces, moves, {"dg": out}, slice(nv, 3 * nv))
            brought = {"rest_g": out}
        report = np.zeros((n, 3))
        taken = {"dg": out, "report": each_step(report, 3 * nv)}
        go(inverse_columns, brought, taken, slice(0, 3 * nv), rate_rest=int(rest), rate_steps=1)
        return report[chosen, KNOWN]
