"""Rates of the residual by formulas, in a tile of worlds.

`serves` decides for a model as a whole, `_numbers_serve` for each world; otherwise the residual is differenced
(differences.py).  `differences_lag` decides whether the integrator's correction p is differenced.  Activations of
muscles, and controls that act through them or with a delay, are differenced here, because they affect only actuator
forces.

A column has the derivatives by one coordinate c: positions by dof, velocities, activations, controls, generalized
forces.  In the record p (rates.py): dg of the residual g = M a + c - tau - J^T f, dp of the integrator's correction p
(solution.py), dact of the next activations.  report[KNOWN]: 1 if all rates of a world have formulas, 0 if not, -1 if
the world must run alone to decide; report[NEAREST]: distance to the next change of the active set; report[FITS]: 1 if
the world was solved with all its contacts and rows.
rate_steps: 1 if derivatives of the next state are requested; rate_lag: 1 if the call provides dp in rest_p.
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy worlds and columns into the tile
and results out of it; b.nstep is the number of columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from featherlane.prelude import *
from featherlane.constraint.impedance import shortest_timeconst
from featherlane.constraint.surface import has_static_friction
from featherlane.dynamics.actuator.activation import advance_activations
from featherlane.dynamics.actuator.adhesion import has_adhesion
from featherlane.dynamics.actuator.reflected import reflected_armature
from featherlane.dynamics.actuator.transmission import drives_joint
from featherlane.dynamics.inertia.articulated import needs_inertia
from featherlane.dynamics.inertia.joint_space import crb
from featherlane.dynamics.passive.fluid import fluid_worlds
from featherlane.dynamics.sparse.tree_factor import PANEL
from featherlane.dynamics.tendon.force import tendon_armature, tendon_damping
from featherlane.model import enums
from featherlane.model.model import Model
from featherlane.sensitivity.derivative.activation_rates import (
    activation_rates,
    actuator_of_activation,
    actuator_of_control,
    control_rates,
)
from featherlane.sensitivity.derivative.ball_rates import add_vector_spring
from featherlane.sensitivity.derivative.contact_moves import STEP, contact_moves
from featherlane.sensitivity.derivative.contact_rates import add_position_column, add_velocity_column, contact_laws
from featherlane.sensitivity.derivative.dof_rates import dof_rates
from featherlane.sensitivity.derivative.fastening_rates import ACCELERATION, POSITION, VELOCITY, add_fastenings
from featherlane.sensitivity.derivative.fluid_rates import fluid_rates, subtract_fluid_position, subtract_fluid_velocity
from featherlane.sensitivity.derivative.free_body_rates import add_free_body
from featherlane.sensitivity.derivative.lift_rates import prepare_lift, subtract_lift
from featherlane.sensitivity.derivative.moved_force import find_applied, subtract_applied
from featherlane.sensitivity.derivative.noslip_rates import noslip_serves, prepare_noslip
from featherlane.sensitivity.derivative.panel import prepare_panels, put_column, solve_panel, take_column
from featherlane.sensitivity.derivative.points import copy, per_span
from featherlane.sensitivity.derivative.rates import RATES
from featherlane.sensitivity.derivative.smooth_rates import (
    acceleration_column,
    inward_pass,
    outward_pass,
    position_column,
    velocity_column,
)
from featherlane.sensitivity.derivative.solution import FITS, KNOWN, NEAREST, accelerate_state, is_damped, is_implicit
from featherlane.sensitivity.derivative.tendon_rates import (
    add_tendon_acceleration_column,
    add_tendon_position_column,
    add_tendon_velocity_column,
    tendon_rates,
)
from featherlane.sensitivity.derivative.transmission_rates import subtract_transmissions
from featherlane.simulation.step.forward import control_and_actuate
from featherlane.simulation.tile.rows import copy_step_inputs, write_rows
from featherlane.simulation.tile.tiles import in_each_tile
from featherlane.solver.hessian.equation import factor_hessian, leaves_out

GAINS = enums.GAIN_FIXED, enums.GAIN_AFFINE, enums.GAIN_MUSCLE
BIASES = enums.BIAS_NONE, enums.BIAS_AFFINE, enums.BIAS_MUSCLE
DYNAMICS = (enums.DYN_NONE, enums.DYN_INTEGRATOR, enums.DYN_FILTER, enums.DYN_FILTEREXACT, enums.DYN_MUSCLE)
TRANSMISSIONS = enums.TRN_JOINT, enums.TRN_JOINTINPARENT, enums.TRN_TENDON, enums.TRN_SITE, enums.TRN_SLIDERCRANK
INTEGRATORS = (enums.EULER, enums.IMPLICITFAST, enums.IMPLICIT, enums.RK4)
# if one of these is not 0 under implicitfast, p is differenced; the second line: if there are tendons
FLUID = ("opt_density", "opt_viscosity")
DAMPING = ("tendon_dampingpoly", "actuator_dampingpoly")


def serves(model: Model) -> bool:
    """Returns whether formulas apply to the model.  Kernels check the parameters of its worlds."""
    excluded = enums.ENABLE_DIAGEXACT | enums.ENABLE_SPECULATIVE
    if model.opt_integrator not in INTEGRATORS or model.opt_enableflags & excluded:
        return False
    if model.nadhesion or model.user_actuators or not _motors_serve(model) or not noslip_serves(model):
        return False
    return model.opt_gyroscopic == enums.GYRO_EXPLICIT and not (model.body_gyroscopic > enums.GYRO_EXPLICIT).any()


def _drive_scalars(model: Model) -> np.ndarray:
    """Returns the mask of actuators on slides and hinges."""
    on_joint = model.actuator_trntype <= enums.TRN_JOINTINPARENT
    joints = np.where(on_joint, model.actuator_trnid[:, 0], 0)
    return on_joint & is_scalar(model.jnt_type[joints]) if model.njnt else on_joint


def _motors_serve(model: Model) -> bool:
    """Returns whether all actuators have formulas: forces by length, velocity and control or activation."""
    plain = np.isin(model.actuator_trntype, TRANSMISSIONS)
    plain &= np.isin(model.actuator_gaintype, GAINS) & np.isin(model.actuator_biastype, BIASES)
    plain &= np.isin(model.actuator_dyntype, DYNAMICS) & (model.actuator_states & enums.PID_PLUGIN == 0)
    return bool(plain.all())


def motors_are_affine(model: Model) -> bool:
    """Returns whether all actuators have forces affine in length, velocity and control, on slides, hinges, tendons."""
    plain = _drive_scalars(model) | (model.actuator_trntype == enums.TRN_TENDON)
    plain &= (model.actuator_gaintype != enums.GAIN_MUSCLE) & (model.actuator_biastype != enums.BIAS_MUSCLE)
    return bool(plain.all()) and _motors_serve(model)


def differences_lag(model: Model) -> bool:
    """Returns whether the integrator's correction p has no formula."""
    return bool(lags_of_worlds(model, {}, 1)[0])


def lags_of_worlds(model: Model, own: Mapping[str, np.ndarray], nworld: int) -> np.ndarray:
    """Returns (nworld,) whether each world's correction p has no formula.

    Args:
        model: the model.
        own: fields with separate values for each world, (nworld, ...) by name.
        nworld: number of worlds.
    """
    fast = model.opt_integrator == enums.IMPLICITFAST
    found = np.full(nworld, model.opt_integrator == enums.IMPLICIT or (fast and _parts_turn(model)))
    for name in ((*FLUID, *DAMPING) if model.ntendon else FLUID) if fast else ():
        numbers = own[name] if name in own else getattr(model, name)[None]
        found |= (numbers.reshape(len(numbers), -1) != 0.0).any(1)
    return found


def _parts_turn(model: Model) -> bool:
    """Returns whether the derivatives of forces in implicitfast change with the state, for all parameters."""
    spatial = model.wrap_type[model.tendon_adr] != enums.WRAP_JOINT
    fixed = (model.actuator_gaintype == enums.GAIN_FIXED).all()
    return bool(spatial.any()) or not (fixed and motors_are_affine(model))


def acts_at_once(model: Model) -> bool:
    """Returns whether all controls act as forces without delay."""
    plain = (model.actuator_dyntype == enums.DYN_NONE) & (model.actuator_states & enums.PID_PLUGIN == 0)
    return bool(plain.all() and model.nhistory == 0)


@kernel
def _adds_inertia(m):
    """Returns the mask of worlds in which some tendon has armature, an inertia that belongs to no body."""
    found = timestep(m) < 0.0  # false in all worlds
    for i in range(m.ntendon):
        found = found | not_(tendon_armature(m, i) == 0.0)
    return found


@kernel
def _lag_varies(m):
    """Returns the mask of worlds in which the K of implicitfast depends on position or velocity.

    It does in a fluid, or with a tendon's damping by polynomials.
    """
    found = fluid_worlds(m)
    for i in range(m.ntendon):
        _, c, e = tendon_damping(m, i)  # force v (b + c |v| + e v^2)
        found = found | (c != 0.0) | (e != 0.0)
    return found


@kernel
def _is_clamped(m):
    """Returns whether a joint has a limit of actuator forces, and an actuator acts on other than slides and hinges.

    The limit clamps the sum of all actuators of the joint, and such actuators contribute to it: this has no formula.
    """
    has_limit, has_other = 0, 0
    for j in range(m.njnt):
        has_limit = 1 if m.jnt_actfrclimited[j] else has_limit
    for i in range(m.nactuator):
        on_scalar = drives_joint(m, i) and is_scalar(m.jnt_type[m.actuator_trnid[i, 0]])
        has_other = has_other if on_scalar else 1
    return has_limit and has_other


@kernel
def _numbers_serve(m, d, p):
    """Returns the mask of worlds whose parameters have formulas.

    These have no adhesion, no tendons with armature, no surface velocity and, under coulomb, no static friction.
    """
    known = not_(has_adhesion(m, d) | _adds_inertia(m))
    if _is_clamped(m):
        known = false_mask(d)
    # with rate_lag, p is differenced
    if m.opt_integrator == IMPLICITFAST and not p.rate_lag:
        known = known & not_(_lag_varies(m))
    if m.flg_surfacevel:  # the model may have surface velocities
        known = known & not_(has_nonzero(m.geom_surfacevel, 6 * m.ngeom))
    if m.opt_contact_model == COULOMB:
        known = known & not_(has_static_friction(m))
    return known


@stage(p=RATES)
def prepare_rates(m, d, p):
    """Prepares the columns, after `accelerate_state`; report[KNOWN]: worlds in which all rates have formulas.

    Reads:  what `accelerate_state` writes.
    Writes: report; body_*, dof_*, geom_*, row_*, slip_*, slot_*, ten_*, npushed; crb, crb_rate.
    Scratch: crb_drag, cfrc_fluid, qfrc_fluid, cvel, cacc, cfrc, con_wrench.
    """
    served = _numbers_serve(m, d, p)
    # slot_known 0: a contact vanishes if the pose is displaced, -1: no memory; slot_jumps 1: its point jumps;
    # slot_near 1: another contact is near
    contact_moves(m, d, p)
    same = p.slot_known[0] > 0.0
    moves = same & not_(p.slot_jumps[0] > 0.0)
    p.report[KNOWN] = where(served & moves, p.report[FITS], where(p.slot_known[0] < 0.0, -1.0, 0.0))
    quiet = same & not_(p.slot_near[0] > 0.0)
    p.report[NEAREST] = where(quiet, p.report[NEAREST], fmin(p.report[NEAREST], STEP))
    # composite inertias, which `accelerate_state` computes only for models that need M
    if not needs_inertia(m, d):
        crb(m, d)
    prepare_noslip(m, d, p)
    # taken_off = qacc - the acceleration after the integrator (a*), or after the no-slip solver (dual.start)
    after = d.qacc_step if p.rate_steps or m.opt_noslip_iterations == 0 else d.dual.start
    for i in range(m.nv):
        p.taken_off[i] = d.qacc[i] - after[i]
    outward_pass(m, d, p, p.taken_off)  # motions and forces of bodies
    if d.ncon_slot[0] > 0:
        contact_laws(m, d, p, shortest_timeconst(m))  # subtracts contact forces from these forces
    inward_pass(m, d, p)  # sums over outer bodies
    # what the terms of each column need: dof_*, body_*, ten_*, row_*
    dof_rates(m, d, p)
    prepare_lift(m, d, p)
    fluid_rates(m, d, p)
    find_applied(m, d, p)
    tendon_rates(m, d, p)


@kernel
def position_rates(m, d, p, k):
    """Computes columns dg and dp by the position of dof k."""
    position_column(m, d, p, k)  # dg and dp; the next calls add terms
    subtract_lift(m, d, p, k)
    subtract_fluid_position(m, d, p, k)
    subtract_applied(m, d, p, k)
    add_vector_spring(m, d, p, k)
    subtract_transmissions(m, d, p, k, by_velocity=0)
    add_tendon_position_column(m, d, p, k)
    add_fastenings(m, d, p, k, POSITION)
    p.dg[k] = p.dg[k] + p.dof_stiffness[k]  # forces on single dofs, of `dof_rates`
    add_position_column(m, d, p, k)
    # with rate_lag, p is differenced
    if m.opt_integrator == IMPLICITFAST and not p.rate_lag:
        add_free_body(m, d, p, k, by_velocity=0)


@kernel
def velocity_rates(m, d, p, k):
    """Computes columns dg and dp by the velocity of dof k."""
    velocity_column(m, d, p, k)  # dg; the next calls add terms
    p.dg[k] = p.dg[k] + p.dof_friction[k]  # of `dof_rates`
    subtract_fluid_velocity(m, d, p, k)
    subtract_transmissions(m, d, p, k, by_velocity=1)
    add_tendon_velocity_column(m, d, p, k)
    add_fastenings(m, d, p, k, VELOCITY)
    add_velocity_column(m, d, p, k, accelerates=0)
    # only the next state needs dp; with rate_lag, it is differenced
    if is_implicit(m) and p.rate_steps and not p.rate_lag:
        # dp = -dK a*, K = M + h (slope of the dampers' forces)
        p.dp[k] = -(timestep(m) * p.dof_lag_friction[k])
        if m.opt_integrator == IMPLICITFAST:
            add_free_body(m, d, p, k, by_velocity=1)


@kernel
def acceleration_rates(m, d, p, k):
    """Computes column dg by the acceleration of dof k."""
    acceleration_column(m, d, p, k)
    # inertias of rotors, and rows on single dofs
    p.dg[k] = p.dg[k] + (m.dof_armature[k] + reflected_armature(m, k)) + p.dof_curvature[k]
    add_velocity_column(m, d, p, k, accelerates=1)
    add_tendon_acceleration_column(m, d, p, k)
    add_fastenings(m, d, p, k, ACCELERATION)


@kernel
def _actuate_with(m, d, p, x, i, value):
    """Computes actuator forces and the next activations with x[i] = value.

    x: d.act or d.ctrl.   Writes: x[i], qfrc_actuator, act (the next activations), dact (the present ones).
    """
    x[i] = value
    control_and_actuate(m, d)
    copy(d.act, m.na, p.dact, first=0)
    advance_activations(m, d, d.act_dot)


@kernel
def _difference_actuators(m, d, p, x, i, up, down):
    """Computes columns dg and dact by x[i]: central differences of actuator forces and next activations.

    x: d.act or d.ctrl; up, down: displacements.  x and act keep their values.   Scratch: act_upper.
    """
    value = x[i]
    _actuate_with(m, d, p, x, i, value + up)
    copy(d.qfrc_actuator, m.nv, p.dg, first=0)
    copy(d.act, m.na, p.act_upper, first=0)
    copy(p.dact, m.na, d.act, first=0)  # restores act
    _actuate_with(m, d, p, x, i, value - down)
    scale = per_span(up + down)
    # the residual contains minus the actuator forces
    for k in range(m.nv):
        p.dg[k] = -(scale * (p.dg[k] - d.qfrc_actuator[k]))
    for a in range(m.na):
        lower = d.act[a]
        d.act[a] = p.dact[a]
        p.dact[a] = scale * (p.act_upper[a] - lower)
    x[i] = value


@kernel
def clear_rates(m, p):
    """dg, dp and rates of activations <- 0."""
    for i in range(m.nv):
        p.dg[i] = 0.0
        p.dp[i] = 0.0
    for a in range(m.na):
        p.dact[a] = 0.0


@kernel
def finish_rates(m, d, p):
    """dp += differences, if the call provides them; -0 becomes 0, because its sign may depend on other worlds."""
    for i in range(m.nv):
        p.dg[i] = p.dg[i] + 0.0
        p.dp[i] = p.dp[i] + (p.rest_p[i] if p.rate_lag else 0.0)


@kernel
def _actuator_rates(m, d, p, c, up, down):
    """Computes the column of activation c, or of control c - na; up, down: displacements for differences."""
    control = c - m.na
    if control < 0:
        i = actuator_of_activation(m, d, c)
        if i >= 0:
            activation_rates(m, d, p, i)
        else:
            _difference_actuators(m, d, p, d.act, c, up, down)
    # with disabled actuation, controls change nothing but activations
    elif m.na > 0 or not (m.opt_disableflags & DISABLE_ACTUATION):
        i = actuator_of_control(m, d, control)
        if i >= 0:
            control_rates(m, d, p, i, control)
        else:
            _difference_actuators(m, d, p, d.ctrl, control, up, down)


@kernel
def rates_column(m, d, p, c, up, down):
    """Computes columns dg, dp and dact by coordinate c, -1: none.

    up, down: displacements of an activation or a control without formulas.
    """
    first_force = 2 * m.nv + m.na + m.nu
    clear_rates(m, p)
    if c >= 0 and c < m.nv:
        position_rates(m, d, p, c)
    elif c >= m.nv and c < 2 * m.nv:
        velocity_rates(m, d, p, c - m.nv)
    elif c >= first_force:
        # a generalized force as a coordinate; activations and controls lie between velocities and forces
        p.dg[c - first_force] = -1.0
    elif c >= 2 * m.nv:
        _actuator_rates(m, d, p, c - 2 * m.nv, up, down)
    finish_rates(m, d, p)


@kernel
def _write_column(b, thread, tile, s):
    """Copies column s out of the tile: all outputs but the last one, the report."""
    # the transfers of b: loads, controls, then outputs
    first = b.nload + b.ncontrol
    for k in range(first, first + b.nrecord - 1):
        write_rows(b, b.place, thread, tile, k, s)


@kernel
def _write_report(b, thread, tile):
    """Copies the last output, the report, out of the tile."""
    write_rows(b, b.place, thread, tile, b.nload + b.ncontrol + b.nrecord - 1, s=0)


@kernel
def begin_step(m, d, p):
    """Computes accelerations, the next velocity, and what all columns share: rates and the factor of the Hessian.

    Writes: next_qvel; what `accelerate_state` and `prepare_rates` write.   Returns the mask of `is_damped`.
    """
    h = timestep(m)
    accelerate_state(m, d, p)
    for i in range(m.nv):
        p.next_qvel[i] = fma(h, d.qacc_step[i], d.qvel[i])
    if d.con_overflow[0] == 0:  # the contacts fit into the tile
        prepare_rates(m, d, p)
        factor_hessian(m, d)
    return is_damped(m, d)


@stage(p=RATES)
def formula_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the residual by formulas, column by column; all lanes of a tile have the same coordinate.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; dg, dp, dact, report; act_upper, body_*, dof_*, geom_*, row_*, slot_*, ten_* and
            all else of p; what `base_tiles` writes; act, ctrl, which are put back.
    Scratch: con_wrench, crb_rate, crb_drag, cfrc_fluid, qfrc_fluid, cvel, cacc, cfrc, qvec.
    """
    accelerate_state(m, d, p)
    if d.con_overflow[0] == 0:
        prepare_rates(m, d, p)
        for s in range(b.nstep):  # columns
            copy_step_inputs(b, thread, tile, s)  # p.at, p.up, p.down, p.rest_p
            rates_column(m, d, p, whole(read_lane(p.at, 0, 0)), p.up[0], p.down[0])
            _write_column(b, thread, tile, s)
    else:
        p.report[KNOWN] = 0.0
    _write_report(b, thread, tile)


formula_columns = in_each_tile("formula_columns", formula_columns_of_tile)


@stage(p=RATES)
def formula_steps_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the acceleration and of the next state by formulas, four columns at a time (panel.py).

    The columns are those of all coordinates, in their order.
    Models with the recursive solver are excluded, because its factors share memory with these formulas' forces.
    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; report, dg, dp, dact, da, dq, dv; act_upper, body_*, dof_*, geom_*, panel_*,
            row_*, slot_*, ten_* and all else of p; what `base_tiles` writes; act, ctrl, which are put back;
            qfrc_smooth, con_wrench, crb_rate, crb_drag, cfrc_fluid, qfrc_fluid, cvel, cacc, cfrc, qvec, primal.* for
            itself.
    """
    damped = begin_step(m, d, p)
    if d.con_overflow[0] == 0:
        # a Hessian that was decomposed into parts leaves entries out
        p.report[KNOWN] = where(leaves_out(d), fmin(p.report[KNOWN], 0.0), p.report[KNOWN])
        if p.rate_steps:
            prepare_panels(m, p)
        for first in range(0, b.nstep, PANEL):
            # columns of this panel; the last one may have fewer
            n = min(PANEL, b.nstep - first)
            for c in range(n):
                copy_step_inputs(b, thread, tile, first + c)  # p.up, p.down, p.rest_p
                rates_column(m, d, p, first + c, p.up[0], p.down[0])  # dg, dp, dact
                put_column(m, d, p, c, first + c)
            for c in range(n, PANEL):
                clear_rates(m, p)
                put_column(m, d, p, c, at=-1)  # unused
            solve_panel(m, d, p, damped)
            for c in range(n):
                take_column(m, d, p, c, damped)  # da, dq, dv, dact
                _write_column(b, thread, tile, first + c)
    else:
        p.report[KNOWN] = 0.0
    _write_report(b, thread, tile)


formula_steps = in_each_tile("formula_steps", formula_steps_of_tile)
