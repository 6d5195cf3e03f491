"""Rows of links: bilateral rows between any two bodies, mainly free bodies, in ODE's form.

    ball     the velocities of the two anchors agree
    hinge    as ball, and the angular velocities across the axis agree
    slider   the angular velocities agree, and the velocities half way between the bodies, across the axis
    fixed    the velocities of one point agree, and the angular velocities

each up to erp / h of the error: J v' + cfm x = erp / h (required displacement or rotation of the first body).  A
direction across the axis is one of the two of `plane_space`.  The Jacobian has entries at the dofs above either body,
so links can also close loops of trees.
Symbols: k: a link;  c: one of its rows;  u: its unit vector;  start, n: its columns lcp.col[start], ..., the dofs
    of its bodies (rows.py);  i: a dof.   `fill_*` write J of a row to d.primal.search, `append_jacobian_row` reads it.
    dual.mark of a dof: the body that it moves, FIRST, SECOND, or BOTH alike;  INFINITE: no bound.
    erp, cfm: the link's, or the model's if it is negative (`own_or_model_value`);  cdof[i]: motion of dof i about the
    com of its tree, world axes.
    `list_pair_columns`: lists the dofs that move the two bodies, from lcp.col[start] on, sets dual.mark, returns n;
    `append_jacobian_row`: the next row of the LCP, from primal.search;  `set_row`: its right-hand side and bounds.
    `link_axis` of body 0 or 1 (side), in world axes;  `link_point`: the point of that body where the link acts;
    `position_error`, `orientation_error`: required displacement [m] and rotation [rad] of the first body.
    link_lcprow[k, 0] is the first row of link k, link_lcprow[k, 1] that of its motor or stop (motor.py), -1: none.
Source: ODE manual, sec. "Joint types and joint functions"; the rows are those of recorded ODE steps.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.chains import BOTH, FIRST, SECOND
from featherlane.engine.dynamics.body.link import link_axis, link_point, orientation_error, position_error
from featherlane.engine.model.link import LINK_BALL, LINK_FIXED, LINK_HINGE, LINK_SLIDER
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

STEEP = 0.7071067811865476  # sqrt(1/2): sine of 45 degrees, above which an axis counts as steep


# ---- directions -----------------------------------------------------------------------------------------------------
@kernel
def plane_space(n):
    """Returns two unit vectors p, q across the unit vector n, as ODE's dPlaneSpace.

    p is across the x axis, (0, -n_z, n_y) / length, if n is steep, else across the z axis, (-n_y, n_x, 0) / length; and
    q = n x p.
    """
    steep = fabs(n[2]) > STEEP
    length = sqrt(where(steep, fma(n[1], n[1], n[2] * n[2]), fma(n[0], n[0], n[1] * n[1])))
    scale = 1.0 / where(length > 0.0, length, 1.0)
    p = Vec3(
        where(steep, 0.0, -n[1] * scale),
        where(steep, -n[2] * scale, n[0] * scale),
        where(steep, n[1] * scale, 0.0),
    )
    return p, cross(n, p)


@kernel
def link_row_count(m, k):
    """Returns the number of rows of link k, without its motor and stops."""
    return 3 if m.link_type[k] == LINK_BALL else 6 if m.link_type[k] == LINK_FIXED else 5


@kernel
def is_angular_row(m, k, c):
    """Checks whether row c of link k constrains an angular velocity; else it constrains a linear one."""
    return c < 3 if m.link_type[k] == LINK_SLIDER else c >= 3


@kernel
def link_row_axis(m, d, k, c):
    """Returns the unit vector of row c of link k, world axes."""
    # the three world axes, then for 5 rows the two vectors across the link's axis
    if c < 3 or m.link_type[k] == LINK_FIXED:
        axis = c % 3
        u = Vec3(1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0)
    else:
        p, q = plane_space(link_axis(m, d, k, side=0))
        u = p if c == 3 else q
    return u


# ---- Jacobians ------------------------------------------------------------------------------------------------------
@kernel
def anchor_arm(m, d, k, side):
    """Returns the anchor of link k on its body 0 or 1 (`side`), relative to the com of that body's tree."""
    root = m.body_rootid[m.link_body[k, side]]
    return link_point(m, d, k, side) - d.subtree_com[root]


@kernel
def fill_angular_row(d, u, start, n):
    """Sets d.primal.search = J of u . (omega_1 - omega_2), at n columns from `start` on."""
    for column in range(start, start + n):
        i = d.lcp.col[column]
        J_i = 0.0  # of a dof that moves both bodies alike
        if d.dual.mark[i] != BOTH:
            J_i = dot(u, d.cdof[i].angular)
        d.primal.search[i] = -J_i if d.dual.mark[i] == SECOND else J_i


@kernel
def fill_linear_row(d, u, arm_1, arm_2, start, n):
    """Sets d.primal.search = J of u . (v_1 - v_2), at n columns from `start` on.

    v_1, v_2: velocities of a point of each body;  arm_1, arm_2: this point relative to the com of the body's tree [m].
    """
    for column in range(start, start + n):
        i = d.lcp.col[column]
        w, v, mark = d.cdof[i].angular, d.cdof[i].linear, d.dual.mark[i]
        # v cancels if a dof moves both bodies alike
        if mark == BOTH:
            J_i = dot(u, cross(w, arm_1 - arm_2))
        elif mark == FIRST:
            J_i = dot(u, v + cross(w, arm_1))
        else:
            J_i = -dot(u, v + cross(w, arm_2))
        d.primal.search[i] = J_i


# ---- rows -----------------------------------------------------------------------------------------------------------
@kernel
def append_link(m, d, k, start, n):
    """Appends all rows of link k, except that of its motor or stop; sets link_lcprow[k, 0] to the first one."""
    every_world = true_mask(d)  # all worlds have the rows; they are unbounded
    rate = own_or_model_value(m.link_erp[k], m.opt_erp[0]) / timestep(m)
    cfm = own_or_model_value(m.link_cfm[k], m.opt_cfm[0])
    arm_1, arm_2 = anchor_arm(m, d, k, side=0), anchor_arm(m, d, k, side=1)
    # required displacement [m] and rotation [rad] of the first body
    shift = position_error(m, d, k)
    turn = Vec3(zeros(3))
    if m.link_type[k] != LINK_BALL:
        turn = orientation_error(m, d, k)
    d.link_lcprow[k, 0] = d.lcp.n[0]
    for c in range(link_row_count(m, k)):
        u = link_row_axis(m, d, k, c)
        if is_angular_row(m, k, c):
            fill_angular_row(d, u, start, n)  # writes J to d.primal.search
            error = dot(u, turn)
        else:
            fill_linear_row(d, u, arm_1, arm_2, start, n)
            error = dot(u, shift)
        row = append_jacobian_row(m, d, start, n)
        set_row(m, d, row, every_world, c=rate * error, cfm=cfm, bounds=(-INFINITE, INFINITE))


@kernel
def append_link_rows(m, d):
    """Appends the rows of all links, except those of motors and stops.

    Reads:  link_*, frames of bodies, cdof, subtree_com.   Writes: the next rows of the LCP, link_lcprow.
    """
    on = m.opt_disableflags & (DISABLE_CONSTRAINT | DISABLE_EQUALITY) == 0
    for k in range(m.nlink):
        d.link_lcprow[k, 0] = NO_ROW
        if on and reserve_rows(m, d, link_row_count(m, k)):
            start = first_free_column(d)
            n = list_pair_columns(m, d, m.link_body[k, 0], m.link_body[k, 1], start)
            append_link(m, d, k, start, n)
            clear_column_marks(d, start, n)


# ---- forces ---------------------------------------------------------------------------------------------------------
@kernel
def link_forces(m, d):
    """Computes link_force [N, N m]: force of each link's rows on its first body, and torque about the body's com.

    Inactive worlds keep their forces: if the rows of a tile do not fit, its worlds are solved in parts.
    """
    active = d.active[0] > 0.0
    for k in range(m.nlink):
        force, torque = Vec3(zeros(3)), Vec3(zeros(3))
        first, motor = d.link_lcprow[k, 0], d.link_lcprow[k, 1]  # first row of the link, row of its motor or stop
        if first >= 0:
            for c in range(link_row_count(m, k)):
                if is_angular_row(m, k, c):
                    torque = fma(d.lcp.x[first + c], link_row_axis(m, d, k, c), torque)
                else:
                    force = fma(d.lcp.x[first + c], link_row_axis(m, d, k, c), force)
        # a motor or stop acts about the axis of a hinge, along that of a slider
        if motor >= 0:
            if m.link_type[k] == LINK_HINGE:
                torque = fma(d.lcp.x[motor], link_axis(m, d, k, side=0), torque)
            else:
                force = fma(d.lcp.x[motor], link_axis(m, d, k, side=0), force)
        # the force acts at the anchor: adds its torque about the com
        torque = torque + cross(link_point(m, d, k, side=0) - d.xipos[m.link_body[k, 0]], force)
        d.link_force[k] = where(active, Wrench(join(force, torque)), d.link_force[k])
