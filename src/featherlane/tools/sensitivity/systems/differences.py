"""Central differences of the residual of the equation of motion, for models and worlds without formulas.

The residual g of solution.py is inverse dynamics minus the given forces, so no solver runs at displaced points.  Two
things are differenced, p at fixed accelerations, g at those that follow a prediction (implicit_worlds.py):

- The whole residual g and the integrator's correction p, with collision detection at each point: discrete, exact
  diagonals, adhesion, surface velocities, tendons with armature, actuators without formulas (formulas.py).  So are
  parameters of the model.
- p alone, where formulas have g but not the derivatives of K: under implicit; under implicitfast with a fluid, spatial
  tendons, or actuators other than affine ones with a fixed gain on slides, hinges and tendons.

The record p (records.py) has the inputs and outputs of one column, the derivatives by one coordinate: at, its index
(positions by dof, then velocities, activations, controls); follow, the predicted rate of the acceleration; dg, dp,
dact, the derivatives of g, of the correction p, and of the next activations; point_g, point_p: g and p at a displaced
point.  In kernels `correction` is p of the formulas, because p is the record.  qacc is a, qacc_step is a*.
K: matrix of the implicit integrator, with K a* on the left of its equation.  multiply_euler and the others compute
K x; multiply_euler returns the mask of worlds where K is not M.
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy worlds and columns into the tile
and results out of it; b.nstep is the number of columns.
Source: the implicit function theorem.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.activation import advance_activations
from featherlane.engine.dynamics.actuator.transmission import transmission
from featherlane.engine.dynamics.body.com import com_pos, com_vel
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.dynamics.body.link import link_positions
from featherlane.engine.dynamics.body.xfrc import add_xfrc
from featherlane.engine.dynamics.inertia.articulated import inertia_times
from featherlane.engine.dynamics.inertia.joint_space import crb
from featherlane.engine.dynamics.integrator.continuous import multiply_euler, multiply_implicit, multiply_implicitfast
from featherlane.engine.dynamics.integrator.discrete import discrete_metric
from featherlane.engine.dynamics.integrator.integrate import is_implicit
from featherlane.engine.dynamics.passive.forces import passive
from featherlane.engine.dynamics.tendon.length import tendon, tendon_velocity
from featherlane.engine.model.integrator import has_metric
from featherlane.engine.simulation.step.consistency import inverse_constraint, inverse_force
from featherlane.engine.simulation.step.forward import control_and_actuate, forward_position, forward_velocity
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.tools.sensitivity.columns.system import difference_columns
from featherlane.tools.sensitivity.rates.coordinates import copy, difference_quotient
from featherlane.tools.sensitivity.rates.records import COLUMNS
from featherlane.tools.sensitivity.systems.solution import compute_position


# ---- values at a point -----------------------------------------------------------------------------------------------
@kernel
def _set_correction(m, d, p, acceleration, correction):
    """correction <- M a - K a*, a: `acceleration`, a*: qacc_step; 0 unless the integrator is implicit.

    K is the integrator's matrix.  In the undisplaced state K a* = M a, so the correction is 0 there, up to rounding.

    Writes: product = M a, force = K a*.
    """
    for i in range(m.nv):
        correction[i] = 0.0
    if is_implicit(m):
        inertia_times(m, d, acceleration, p.product)  # M a
        implicit = true_mask(d)  # worlds whose K differs from M
        if m.opt_integrator == IMPLICIT:
            multiply_implicit(m, d, d.qacc_step, p.force)
        elif m.opt_integrator == IMPLICITFAST:
            multiply_implicitfast(m, d, d.qacc_step, p.force)
        else:
            implicit = multiply_euler(m, d, d.qacc_step, p.force)
        for i in range(m.nv):
            correction[i] = where(implicit, p.product[i] - p.force[i], 0.0)


@kernel
def _follow_prediction(m, d, p, step):
    """qacc += step times its predicted rate `follow`; solved <- the qacc before, at which `_set_correction` takes p."""
    for i in range(m.nv):
        p.solved[i] = d.qacc[i]
        d.qacc[i] = fma(step, p.follow[i], d.qacc[i])


@kernel
def _store_residual(m, d, p, overflow, g, correction):
    """Computes g, correction and the next activations, at qvel, act, ctrl, qacc, solved and qacc_step.

    Follows `compute_position` and `_follow_prediction`.

    Args:
        overflow: what `compute_position` returned.
        g: output by dof, qfrc_inverse - qfrc_applied - qfrc_actuator - J^T xfrc_applied.
        correction: output by dof, the correction p at the acceleration `solved`.
    """
    forward_velocity(m, d)
    control_and_actuate(m, d)
    if has_metric(m):  # `discrete`: inverse dynamics has Mhat = M + h D + h^2 K in place of M
        discrete_metric(m, d)  # Mhat
    # con_fresh: 1 lets inverse dynamics reuse the contacts that `compute_position` found, and their overflow
    d.con_overflow[0], d.con_fresh[0] = overflow, 1
    inverse_constraint(m, d, store=0)  # qfrc_constraint at qacc
    inverse_force(m, d)  # qfrc_inverse = M a + c - passive forces - qfrc_constraint
    for i in range(m.nv):
        p.force[i] = d.qfrc_applied[i] + d.qfrc_actuator[i]
    add_xfrc(m, d, p.force)
    for i in range(m.nv):
        g[i] = d.qfrc_inverse[i] - p.force[i]
    _set_correction(m, d, p, p.solved, correction)
    advance_activations(m, d, d.act_dot)  # act <- the next activations


@kernel
def _place_bodies(m, d, p):
    """Computes poses of bodies, tendons and transmissions at the present position; returns 0, which is unused."""
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    link_positions(m, d)
    tendon(m, d)
    if m.opt_integrator == IMPLICIT:
        crb(m, d)  # rates of Coriolis forces need composite inertias
    transmission(m, d)
    return 0


# ---- columns ---------------------------------------------------------------------------------------------------------
@kernel
def _residual_at_point(m, d, p, step, overflow):
    """point_g, point_p <- g and the correction of a point displaced by step.

    overflow: what `compute_position` returned there.
    """
    _follow_prediction(m, d, p, step)
    _store_residual(m, d, p, overflow, p.point_g, p.point_p)


@kernel
def _correction_at_point(m, d, p, step, given):
    """point_p <- (M - K) a* at the present point, behind `_place_bodies`; step, given: unused.

    It is the part of the correction p = M a - K a* = M (a - a*) + (M - K) a* that has no formula.  M may be that of the
    undisplaced position: K is computed with the same M, which cancels.
    """
    com_vel(m, d)
    tendon_velocity(m, d)
    passive(m, d)
    control_and_actuate(m, d)
    _set_correction(m, d, p, d.qacc_step, p.point_p)


@kernel
def _keep_upper(m, d, p, s):
    """dg, dp, dact <- g, correction and the next activations at the upper point."""
    copy(p.point_g, m.nv, p.dg, first=0)
    copy(p.point_p, m.nv, p.dp, first=0)
    copy(d.act, m.na, p.dact, first=0)


@kernel
def _subtract_lower(m, d, b, p, thread, tile, s, scale):
    """dg, dp, dact <- (stored upper values - present lower ones) scale, which are written as column s of the call."""
    difference_quotient(p.point_g, m.nv, p.dg, 0, scale)
    difference_quotient(p.point_p, m.nv, p.dp, 0, scale)
    difference_quotient(d.act, m.na, p.dact, 0, scale)
    write_records(b, thread, tile, s)


_residual_columns = difference_columns(compute_position, _residual_at_point, _keep_upper, _subtract_lower)
_correction_columns = difference_columns(_place_bodies, _correction_at_point, _keep_upper, _subtract_lower)


@stage(p=COLUMNS)
def residual_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the residual: central differences at fixed acceleration, or along its prediction.

    Contacts are detected again at each displaced position.
    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, point_g, point_p, solved; qpos, qvel, act, ctrl,
            qfrc_applied, qacc, primal.*, con_fresh, con_overflow, active, and all else of this thread's workspace.
    Scratch: Mhat, block, block_*, cacc, cfrc, qDeriv, qH, qHDiagInv, qproduct.
    """
    _residual_columns(m, d, b, p, thread, tile)


residual_columns = in_each_tile("residual_columns", residual_columns_of_tile)


@stage(p=COLUMNS)
def correction_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the integrator's correction p: central differences.

    Reads:  the rows that the transfers of b bring in, qacc_step among them.
    Writes: those that they take back; dg, dp, dact, point_p, force, product; qpos, qvel, act, ctrl,
            qfrc_applied, and all else of this thread's workspace.
    Scratch: block, block_*, cacc, cfrc, qDeriv, qH, qHDiagInv, qproduct.
    """
    forward_position(m, d)  # M, and all else that `_place_bodies` does not compute, of the undisplaced position
    _correction_columns(m, d, b, p, thread, tile)


correction_columns = in_each_tile("correction_columns", correction_columns_of_tile)


@stage(p=COLUMNS)
def parameter_points_of_tile(m, d, b, p, thread, tile):
    """Computes the residual and the next activations of worlds with one displaced model parameter each.

    Reads:  the rows that the transfers of b bring in, qacc and qacc_step among them.
    Writes: those that they take back; dg, dp, dact, solved; act, qacc, primal.*, con_fresh, con_overflow, active, and
            all else of this thread's workspace.
    Scratch: Mhat, block, block_*, cacc, cfrc, qDeriv, qH, qHDiagInv, qproduct.
    """
    # the call displaced the parameter, so the acceleration moves by this displacement times its predicted rate
    _follow_prediction(m, d, p, p.displacement[0])
    overflow = compute_position(m, d, p)
    _store_residual(m, d, p, overflow, g=p.dg, correction=p.dp)
    copy(d.act, m.na, p.dact, first=0)  # the next activations
    write_records(b, thread, tile, s=0)


parameter_points = in_each_tile("parameter_points", parameter_points_of_tile)
