"""Rows of motors, and of the stops of links; the stops of joints are the limits of the constraint layer.

    motor      J v' + cfm x = velocity, |x| <= force
    stop       J v' + cfm x >= -erp / h (position - stop), x >= 0 at the lower one, with opposite signs at the upper
               one; if it bounces and J v runs into it: >= -bounce J v, if that is more
    two stops at the same position act in both directions

At a stop, the stop's row replaces the motor's, which acts as a plain force (dynamics/body/motor.py).  J v is the
velocity of the first body of a link relative to the second, along or about the axis.
link_lcprow[k, 1] is the row of the motor or stop of link k; link_lcprow[k, 0] is the link's first row (link.py).
low, high: masks of worlds in which a joint or link is at its lower, upper stop.  present: mask of worlds that have the
row.  primal.search: J by dof, which `append_jacobian_row` reads; its dofs are lcp.col[start .. start + n - 1].
Source: ODE manual, sec. "Stops and motor parameters".  Deviation: a slider bounces by the velocity half way between its
    bodies, which its row has; ODE takes that of the centres of mass.
"""

from featherlane.prelude import *
from featherlane.dynamics.body.link import link_axis
from featherlane.dynamics.body.motor import joint_at_stop, link_at_stop
from featherlane.model.link import LINK_HINGE, LINK_SLIDER
from featherlane.solver.lcp.rows.joint import append_dof_row
from featherlane.solver.lcp.rows.link import anchor_arm, fill_point_row, fill_turn_row
from featherlane.solver.lcp.rows.rows import (
    INFINITE,
    NO_ROW,
    append_jacobian_row,
    clear_column_marks,
    has_capacity,
    open_columns,
    pair_columns,
    report_full_rows,
    set_row,
)
from featherlane.solver.lcp.rows.softness import own_or


# ---- joints ---------------------------------------------------------------------------------------------------------
@kernel
def joint_motor_row(m, d, j, present):
    """Appends the row of the motor of slide or hinge j, in worlds in which it is not at a stop."""
    joint = m.joint[j]
    cfm, force = own_or(joint.motor_cfm, m.opt_cfm[0]), joint.motor_force
    row = append_dof_row(m, d, joint.dofadr, where(present, 1.0, 0.0))
    set_row(m, d, row, present, joint.motor_vel, cfm, (-force, force))


@kernel
def joint_motors(m, d):
    """Appends the motors of all joints."""
    for j in range(m.njnt):
        joint = m.joint[j]
        if is_scalar(joint.type):
            powered = joint.motor_force > 0.0
            if any_(powered):
                low, high = joint_at_stop(m, d, j)
                present = powered & not_(low) & not_(high)
                if joint.limited != 0:
                    # equal limits hold the joint: no motor
                    present = present & (joint.range.lower < joint.range.upper)
                if not any_(present):
                    pass
                elif has_capacity(m, d, 1):
                    joint_motor_row(m, d, j, present)
                else:
                    report_full_rows(d)


# ---- links ----------------------------------------------------------------------------------------------------------
@kernel
def link_stop_velocity(m, d, k, low, high, v):
    """Returns the target velocity of the stop of link k, with v its velocity now."""
    x, lower, upper = d.link_position[k], m.link_range[k].lower, m.link_range[k].upper
    error = where(low, x - lower, where(high, x - upper, 0.0))
    c = -(own_or(m.link_stop_erp[k], m.opt_erp[0]) / timestep(m)) * error
    e = m.link_stop_bounce[k]  # coefficient of restitution
    bounces = (e > 0.0) & (lower < upper)  # two stops at one position hold the link: no bounce
    back = -(e * v)
    return where(bounces & low & (v < 0.0), fmax(c, back), where(bounces & high & (v > 0.0), fmin(c, back), c))


@kernel
def append_motor(m, d, k, present, low, high):
    """Appends the row of link k along or about its axis: its stop if it is at one, else its motor."""
    start, most, at = open_columns(d), INFINITE, low | high
    n, u = pair_columns(m, d, m.link_body[k, 0], m.link_body[k, 1], start), link_axis(m, d, k, side=0)
    if m.link_type[k] == LINK_HINGE:
        fill_turn_row(d, u, start, n)  # writes J to primal.search
    else:
        # writes J to primal.search
        fill_point_row(d, u, anchor_arm(m, d, k, side=0), anchor_arm(m, d, k, side=1), start, n)
    for p in range(start, start + n):
        d.primal.search[d.lcp.col[p]] = where(present, d.primal.search[d.lcp.col[p]], 0.0)
    clear_column_marks(d, start, n)
    row = append_jacobian_row(m, d, start, n)
    c = where(at, link_stop_velocity(m, d, k, low, high, row.v), m.link_motor_vel[k])
    cfm = own_or(where(at, m.link_stop_cfm[k], m.link_motor_cfm[k]), m.opt_cfm[0])
    force, free = m.link_motor_force[k], m.link_range[k].lower < m.link_range[k].upper
    # two stops at one position (not free) act in both directions
    lo = where(at, where(low & free, 0.0, -most), -force)
    hi = where(at, where(high & free, 0.0, most), force)
    set_row(m, d, row, present, c, cfm, (lo, hi))
    return row.r


@kernel
def link_motors(m, d):
    """Appends motors and stops of all links."""
    for k in range(m.nlink):
        if m.link_type[k] == LINK_HINGE or m.link_type[k] == LINK_SLIDER:
            low, high = link_at_stop(m, d, k)
            present = low | high | (m.link_motor_force[k] > 0.0)
            if not any_(present):
                pass
            elif has_capacity(m, d, 1):
                d.link_lcprow[k, 1] = append_motor(m, d, k, present, low, high)
            else:
                report_full_rows(d)


@kernel
def motor_rows(m, d):
    """Appends motors of joints, motors and stops of links.

    Reads:  qpos, link_position, frames of bodies, cdof.   Writes: the next rows of the LCP, link_lcprow.
    """
    off = m.opt_disableflags
    for k in range(m.nlink):
        d.link_lcprow[k, 1] = NO_ROW  # of its motor or stop
    if off & DISABLE_CONSTRAINT == 0:
        joint_motors(m, d)
        if off & DISABLE_EQUALITY == 0:
            link_motors(m, d)
