"""Rows of motors, and of the stops of links; the stops of joints are the limits of the constraint layer.

    motor      J v' + cfm x = velocity, |x| <= force
    stop       J v' + cfm x >= -erp / h (position - stop), x >= 0 at the lower one, with opposite signs at the upper
               one; if it bounces and J v runs into it: >= -bounce J v, if that is more
    two stops at the same position act in both directions

At a stop, the stop's row replaces the motor's, which acts as a plain force (dynamics/body/motor.py).  J v is the
velocity of the first body of a link relative to the second, along or about the axis.
Symbols: j: a joint;  k: a link;  low, high: masks of worlds at the lower and the upper stop;  v: J v now.
    present: mask of worlds with the row;  start, n: its columns lcp.col[start], ..., the dofs of its bodies (rows.py).
    `list_pair_columns`: lists the dofs that move the two bodies, from lcp.col[start] on, sets dual.mark, returns n;
    `append_jacobian_row`: the next row of the LCP, from primal.search;  `set_row`: its right-hand side and bounds.
    link_position: of a link along or about its axis;  INFINITE: no bound.
    `joint_at_stop`, `link_at_stop` return the masks (low, high);  row: a `NewRow` of rows.py: row.r, row.v = J v.
    link_lcprow[k, 1]: row of the motor or stop of link k, -1: none (link_lcprow[k, 0]: first row of the link, link.py).
Source: ODE manual, sec. "Stops and motor parameters".  Deviation: a slider bounces by the velocity half way between its
    bodies, which its row has; ODE takes that of the centres of mass.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.link import link_axis
from featherlane.engine.dynamics.body.motor import joint_at_stop, link_at_stop
from featherlane.engine.model.link import LINK_HINGE, LINK_SLIDER
from featherlane.engine.solver.lcp.rows.joint import append_dof_row
from featherlane.engine.solver.lcp.rows.link import anchor_arm, fill_angular_row, fill_linear_row
from featherlane.engine.solver.lcp.rows.rows import (
    INFINITE,
    NO_ROW,
    append_jacobian_row,
    clear_column_marks,
    first_free_column,
    list_pair_columns,
    reserve_rows,
    set_row,
)
from featherlane.engine.solver.lcp.rows.softness import own_or_model_value


# ---- joints ---------------------------------------------------------------------------------------------------------
@kernel
def append_joint_motor(m, d, j, present):
    """Appends the row of the motor of slide or hinge j; present: mask of worlds in which the motor acts."""
    joint = m.joint[j]
    cfm = own_or_model_value(joint.motor_cfm, m.opt_cfm[0])
    force = joint.motor_force
    row = append_dof_row(m, d, joint.dofadr, where(present, 1.0, 0.0))  # J = 1 at the joint's dof
    set_row(m, d, row, present, c=joint.motor_vel, cfm=cfm, bounds=(-force, force))


@kernel
def append_joint_motors(m, d):
    """Appends the rows of the motors of all joints; a motor acts in worlds in which its joint is not at a stop."""
    for j in range(m.njnt):
        joint = m.joint[j]
        if is_scalar(joint.type):  # hinge or slide
            powered = joint.motor_force > 0.0
            if any_(powered):
                low, high = joint_at_stop(m, d, j)
                # at a stop, the limit's row of the constraint layer replaces the motor's
                present = powered & not_(low) & not_(high)
                # two stops at one position hold the joint: the motor has no effect
                if joint.limited != 0:
                    present = present & (joint.range.lower < joint.range.upper)
                if any_(present) and reserve_rows(m, d, rows=1):
                    append_joint_motor(m, d, j, present)


# ---- links ----------------------------------------------------------------------------------------------------------
@kernel
def link_stop_velocity(m, d, k, low, high, v):
    """Returns the target velocity at a stop of link k: -erp / h error, or -bounce v if that leaves the stop faster.

    The link bounces only in worlds in which v runs into the stop.
    low, high: masks of worlds at the lower and the upper stop;  v: J v [m/s, rad/s].
    """
    position, lower, upper = d.link_position[k], m.link_range[k].lower, m.link_range[k].upper
    error = where(low, position - lower, where(high, position - upper, 0.0))
    target = -(own_or_model_value(m.link_stop_erp[k], m.opt_erp[0]) / timestep(m)) * error
    bounce = m.link_stop_bounce[k]
    can_bounce = (bounce > 0.0) & (lower < upper)  # two stops at one position hold the link: no bounce
    rebound = -(bounce * v)
    # away from the stop is up at the lower one, down at the upper one
    hits_lower = can_bounce & low & (v < 0.0)
    up = fmax(target, rebound)
    hits_upper = can_bounce & high & (v > 0.0)
    down = fmin(target, rebound)
    return where(hits_lower, up, where(hits_upper, down, target))


@kernel
def append_link_motor(m, d, k, present, low, high):
    """Appends the row of link k about or along its axis: its stop in worlds at a stop, else its motor.

    present: mask of worlds with the row;  low, high: masks of worlds at the lower and the upper stop.
    Returns the number of the row.
    """
    start = first_free_column(d)
    at_stop = low | high
    n = list_pair_columns(m, d, m.link_body[k, 0], m.link_body[k, 1], start)
    axis = link_axis(m, d, k, side=0)
    # J in d.primal.search at the n columns, 0 in worlds without the row
    if m.link_type[k] == LINK_HINGE:
        fill_angular_row(d, axis, start, n)
    else:
        fill_linear_row(d, axis, anchor_arm(m, d, k, side=0), anchor_arm(m, d, k, side=1), start, n)
    for column in range(start, start + n):
        d.primal.search[d.lcp.col[column]] = where(present, d.primal.search[d.lcp.col[column]], 0.0)
    clear_column_marks(d, start, n)
    row = append_jacobian_row(m, d, start, n)
    target = where(at_stop, link_stop_velocity(m, d, k, low, high, row.v), m.link_motor_vel[k])
    cfm = own_or_model_value(where(at_stop, m.link_stop_cfm[k], m.link_motor_cfm[k]), m.opt_cfm[0])
    # a stop pushes away from itself; two stops at one position act in both directions
    force = m.link_motor_force[k]
    has_range = m.link_range[k].lower < m.link_range[k].upper  # else both stops are at one position
    lo = where(at_stop, where(low & has_range, 0.0, -INFINITE), -force)
    hi = where(at_stop, where(high & has_range, 0.0, INFINITE), force)
    set_row(m, d, row, present, c=target, cfm=cfm, bounds=(lo, hi))
    return row.r


@kernel
def append_link_motors(m, d):
    """Appends motors and stops of all hinge and slider links; sets link_lcprow[k, 1]."""
    for k in range(m.nlink):
        if m.link_type[k] == LINK_HINGE or m.link_type[k] == LINK_SLIDER:
            low, high = link_at_stop(m, d, k)
            present = low | high | (m.link_motor_force[k] > 0.0)
            if any_(present) and reserve_rows(m, d, rows=1):
                d.link_lcprow[k, 1] = append_link_motor(m, d, k, present, low, high)


@kernel
def append_motor_rows(m, d):
    """Appends the rows of motors of joints, and of motors and stops of links.

    Reads:  qpos, link_position, frames of bodies, cdof.   Writes: the next rows of the LCP, link_lcprow.
    """
    disabled = m.opt_disableflags
    for k in range(m.nlink):
        d.link_lcprow[k, 1] = NO_ROW
    if disabled & DISABLE_CONSTRAINT == 0:
        append_joint_motors(m, d)
        if disabled & DISABLE_EQUALITY == 0:
            append_link_motors(m, d)
