"""Solves inverse kinematics of the worlds of a tile by the Levenberg-Marquardt method, within joint limits.

    (A + mu I) x = g on the DoFs that no limit holds,   q' = clamp(q (+) x)

A step that lowers the cost is accepted.  With rho, its decrease of the cost over that of the quadratic model, mu
becomes mu max(1/3, 1 - (2 rho - 1)^3).  After a rejected step mu grows by nu, and nu doubles.  A limit holds a DoF that
is at it if the gradient points beyond it.
The record p is IK (fields.py).  Index i is a DoF that moves, p.dof[i] of joint p.dof_joint[i], with i < ndof; p.q is
the last accepted position, d.qpos the position that is tried.
Source: Madsen, Nielsen, Tingleff, Methods for non-linear least squares problems, 2004, sec. 3.2 (damping); Bertsekas,
Projected Newton methods, 1982 (limits); More, The Levenberg-Marquardt algorithm, 1978 (criteria to stop).
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.joint import advance_joint
from featherlane.engine.dynamics.body.kinematics import kinematics, store_body_frame
from featherlane.engine.dynamics.sparse.packed_factor import packed_factor, solve_packed
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.tools.inverse_kinematics.fields import IK
from featherlane.tools.inverse_kinematics.residual import ik_residual

RUNNING, REACHED, STATIONARY, FAILED = -1.0, 0.0, 1.0, 3.0  # IkStatus; its ITERATION_LIMIT is set by the caller
FIRST_DAMPING = 1e-3  # first damping, in units of the largest diagonal entry of A
FAR = 1e30  # a larger cost is not finite
# float64, then float32.  LEAST_DAMPING is in the same units.  A world stops at this COSINE of the angle between
# residual and columns, at this relative DECREASE of the cost, or at a step below LEAST_STEP [m, rad]
LEAST_DAMPING, COSINE, DECREASE, LEAST_STEP = 1e-11, 1e-7, 1e-10, 1e-10
LEAST_DAMPING32, COSINE32, DECREASE32, LEAST_STEP32 = 1e-5, 1e-4, 1e-5, 1e-6


# ---- joints ----------------------------------------------------------------------------------------------------------
@kernel
def _clamp_joint(m, d, j):
    """qpos <- clamp(qpos, lower, upper) of joint j; of a ball, the angle of its rotation vector is limited."""
    joint = m.joint[j]
    adr, kind = joint.qposadr, joint.type
    if joint.limited:
        if is_scalar(kind):
            q, low, high = d.qpos[adr], joint.range.lower, joint.range.upper
            d.qpos[adr] = where(q < low, low, where(q > high, high, q))  # NaN remains
        elif is_ball(kind):
            q = Quat(d.qpos[adr : adr + 4])
            largest = joint.range.upper
            rotation_vector = quat_log(q.unit)
            angle = norm3(rotation_vector)
            beyond = angle > largest
            if any_(beyond):
                inside = rotation_vector_quat(largest / fmax(angle, MINVAL) * rotation_vector)
                d.qpos[adr : adr + 4] = where(beyond, inside, q)


@kernel
def _clamp_joints(m, d, p):
    """Moves the position of all joints that move into their limits if p.limited is 1.   Writes: qpos."""
    if p.limited:
        for k in range(p.njoint):
            _clamp_joint(m, d, p.joint[k])


@kernel
def _apply_step(m, d, p):
    """Sets the position in d to q (+) x within the limits; returns max |x_i|.

    For slides and hinges p.x becomes the step that was made.  For other joints p.x remains the step before the limit.
    Writes: d.qpos, the listed bodies' frames, p.x, p.step.
    """
    for i in range(p.ndof):
        p.step[p.dof[i]] = p.x[i]
    for k in range(p.njoint):
        advance_joint(m, p.joint[k], d.qpos, p.step, p.q, h=1.0, rotation=FINITE)
    _clamp_joints(m, d, p)
    longest = 0.0
    for i in range(p.ndof):
        j = p.dof_joint[i]
        if is_scalar(m.jnt_type[j]):  # its limit may have shortened the step
            adr = m.jnt_qposadr[j]
            p.x[i] = d.qpos[adr] - p.q[adr]
        longest = fmax(longest, fabs(p.x[i]))
    for k in range(p.nframe):
        store_body_frame(m, d, p.frame[k])
    return longest


@kernel
def _mark_free_dofs(m, d, p):
    """Writes p.free, the DoFs that no limit holds; returns the largest |g_i| / |J_i| of these, |J_i| = sqrt(A_ii)."""
    steepest = 0.0
    for i in range(p.ndof):
        j, g = p.dof_joint[i], p.g[i]
        joint = m.joint[j]
        held = false_mask(d)
        # a ball's limit holds no single DoF: `_clamp_joint` shortens its rotation
        if p.limited and joint.limited and is_scalar(joint.type):
            q = p.q[joint.qposadr]
            held = ((q <= joint.range.lower) & (g <= 0.0)) | ((q >= joint.range.upper) & (g >= 0.0))
        p.free[i] = where(held, 0.0, 1.0)
        column_norm = sqrt(p.A[i, i])
        steepest = fmax(steepest, where(held | (column_norm < MINVAL), 0.0, fabs(g) / fmax(column_norm, MINVAL)))
    return steepest


# ---- linear systems --------------------------------------------------------------------------------------------------
@kernel
def _damped_entry(p, mu, i, j, diagonal):
    """Returns entry (i, j) of A + mu I on the free DoFs; held DoFs have rows of the identity."""
    a = p.A[i, j] * (p.free[i] * p.free[j])
    return where(p.free[i] > 0.0, a + mu, 1.0) if diagonal else a


_factor = packed_factor(_damped_entry)


@kernel
def _solve(p, mu):
    """Writes p.x, the solution of (A + mu I) x = g on the free DoFs, 0 on the held ones.   Scratch: L."""
    for i in range(p.ndof):
        p.x[i] = p.g[i] * p.free[i]
    _factor(p, mu, p.L, p.ndof, least=0.0)
    solve_packed(p.L, p.ndof, p.x)


@kernel
def _model_decrease(p):
    """Returns g.x - 1/2 x A x: the decrease of the cost by the quadratic model, from the lower triangle of A."""
    total = 0.0
    for i in range(p.ndof):
        # each entry below the diagonal also stands for the one above it, so these products are not halved
        half_Ax = 0.5 * p.A[i, i] * p.x[i]
        for j in range(i):
            half_Ax = fma(p.A[i, j], p.x[j], half_Ax)
        total = fma(p.x[i], p.g[i] - half_Ax, total)
    return total


@kernel
def _accept_trial(d, p, accepted):
    """Copies position, errors, cost and normal equations of the trial, in worlds of the mask `accepted`.

    Reads: qpos, trial_error, trial_cost, trial_g, trial_A.   Writes: q, error, cost, g, A.
    """
    n = p.ndof
    for i in range(p.npos):
        p.q[i] = where(accepted, d.qpos[i], p.q[i])
    for t in range(p.nrow):
        p.error[t] = where(accepted, p.trial_error[t], p.error[t])
    p.cost[0] = where(accepted, p.trial_cost[0], p.cost[0])
    for i in range(n):
        p.g[i] = where(accepted, p.trial_g[i], p.g[i])
        for j in range(i + 1):
            p.A[i, j] = where(accepted, p.trial_A[i, j], p.A[i, j])


@kernel
def _largest_diagonal(p):
    """Returns the largest diagonal entry of A, at least MINVAL."""
    largest = 0.0
    for i in range(p.ndof):
        largest = fmax(largest, p.A[i, i])
    return fmax(largest, MINVAL)


@kernel
def _is_reached(d, p):
    """Returns the mask of worlds whose errors are all within the tolerances, and that have no posture.

    With a posture (stiffness > 0) the iteration continues to the minimum, a compromise of targets and posture.
    """
    reached = not_(p.stiffness[0] > 0.0)
    for t in range(p.nrow):
        reached = reached & (p.error[t][0] <= p.tolerance[0]) & (p.error[t][1] <= p.tolerance[1])
    return reached


# ---- iteration -------------------------------------------------------------------------------------------------------
@stage(p=IK)
def levenberg_marquardt(m, d, p):
    """Iterates until targets and constraints are met, no step lowers the cost, or `most` iterations are done.

    A world whose status is not RUNNING does not change.  The state of the iteration (position, damping, growth, niter,
    status) is complete: a later call continues with bitwise identical results.
    Reads:  qpos, the frames of all bodies; the targets, damping, growth, niter, status.
    Writes: qpos; xpos, xquat, xmat, xipos, xanchor, xaxis of the listed bodies; damping, growth, niter, status, error,
            cost.
    Scratch: all else of p, what `ik_residual` writes.
    Cost: O(ndof^3) per iteration.
    """
    least_damping, cosine, decrease, least_step = LEAST_DAMPING, COSINE, DECREASE, LEAST_STEP
    if single_precision(d):
        least_damping, cosine, decrease, least_step = LEAST_DAMPING32, COSINE32, DECREASE32, LEAST_STEP32
    for v in range(p.nvel):
        p.step[v] = 0.0
    _clamp_joints(m, d, p)
    for k in range(p.nframe):
        store_body_frame(m, d, p.frame[k])
    ik_residual(m, d, p)  # trial_*
    _accept_trial(d, p, true_mask(d))  # q, error, cost, g, A
    status = p.status[0]
    running = status == RUNNING
    # mu and nu of the module; a damping of 0 marks a first call
    begins = p.damping[0] == 0.0
    mu = where(begins, FIRST_DAMPING * _largest_diagonal(p), p.damping[0])
    nu = where(begins, 2.0, p.growth[0])
    status = where(running & _is_reached(d, p), REACHED, status)
    status = where(running & not_(p.cost[0] < FAR), FAILED, status)
    running = status == RUNNING
    for _ in range(p.most):
        if not any_(running):
            break
        # stationary if the residual is orthogonal to all free columns: |g_i| / (|J_i| |residual|) <= cosine
        steepest = _mark_free_dofs(m, d, p)
        is_stationary = running & (steepest <= cosine * sqrt(2.0 * p.cost[0]))
        status = where(is_stationary, STATIONARY, status)
        running = running & not_(is_stationary)
        _solve(p, mu)  # x
        longest = _apply_step(m, d, p)  # qpos, x
        ik_residual(m, d, p)  # trial_*
        gain = p.cost[0] - p.trial_cost[0]
        predicted = _model_decrease(p)
        accepted = running & (gain > 0.0) & (predicted > 0.0)
        rho = gain / where(predicted > 0.0, predicted, 1.0)
        # stalls: the accepted step lowers the cost and its quadratic model by at most this fraction
        stalls = accepted & (gain <= decrease * p.cost[0]) & (predicted <= decrease * p.cost[0])
        _accept_trial(d, p, accepted)
        # damping of the next step: mu max(1/3, 1 - (2 rho - 1)^3), or mu nu after a rejected one
        s = 2.0 * rho - 1.0
        after_accepted = fmax(mu * fmax(1.0 - s * s * s, 1.0 / 3.0), least_damping * _largest_diagonal(p))
        mu = where(accepted, after_accepted, where(running, mu * nu, mu))
        nu = where(accepted, 2.0, where(running, 2.0 * nu, nu))
        p.niter[0] = where(running, p.niter[0] + 1.0, p.niter[0])
        status = where(running & (stalls | not_(longest > least_step)), STATIONARY, status)
        status = where(accepted & _is_reached(d, p), REACHED, status)
        running = status == RUNNING
    for i in range(p.npos):
        d.qpos[i] = p.q[i]
    p.damping[0], p.growth[0], p.status[0] = mu, nu, status


@stage(p=IK)
def solve_ik_of_tile(m, d, b, p, thread, tile):
    """Continues the iteration of the worlds of a tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; what `levenberg_marquardt` writes.
    """
    copy_step_inputs(b, thread, tile, s=0)  # targets and the state of the iteration in p
    kinematics(m, d)
    levenberg_marquardt(m, d, p)
    write_records(b, thread, tile, s=0)


solve_ik = in_each_tile("solve_ik", solve_ik_of_tile)
