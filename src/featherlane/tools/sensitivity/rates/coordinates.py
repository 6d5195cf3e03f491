"""Seeds of columns: the coordinates by which a step is differentiated, their unit derivatives and displacements.

Coordinates are numbered: positions by dof, velocities, activations, controls, generalized forces.  A column is seeded
by the number of its coordinate: a formula starts from the derivatives `delta`, and a difference from the displacements
of `move_coordinate`.  A kernel's coordinate `at` is a value, as lanes may have different ones: numbers are compared
with 1.0 * number.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.model.model import Model

EPS = 2e-7  # displacement of a coordinate [m, rad, m/s, rad/s, ...] where a residual is differenced


class Seeds(NamedTuple):
    """The columns of each kind of coordinates, slices of an axis.

    Attributes:
        position, velocity, activation, control, force: by kind.
        state: the first three.
        input: state and controls.
    """

    position: slice
    velocity: slice
    activation: slice
    control: slice
    force: slice
    state: slice
    input: slice

    @classmethod
    def of(cls, nv: int, na: int, nu: int) -> Seeds:
        """Returns the columns for these numbers of dofs, activations and controls."""
        act, ctrl, force = 2 * nv, 2 * nv + na, 2 * nv + na + nu
        kinds = slice(0, nv), slice(nv, act), slice(act, ctrl), slice(ctrl, force), slice(force, force + nv)
        return cls(*kinds, slice(0, ctrl), slice(0, force))

    @classmethod
    def of_model(cls, model: Model) -> Seeds:
        """Returns the columns of a model."""
        return cls.of(model.nv, model.na, model.nu)


# ---- derivatives by the coordinate itself ----------------------------------------------------------------------------
@kernel
def delta(at, i):
    """Returns the derivative of coordinate i by coordinate `at`, a value: Kronecker's delta, 1 if they are the same."""
    return where(at == 1.0 * i, 1.0, 0.0)


# ---- displacements ---------------------------------------------------------------------------------------------------
@kernel
def copy(x, n, out, first):
    """out[first ...] <- the n rows x, numbers or typed rows."""
    for i in range(n):
        out[first + i] = x[i]


@kernel
def difference_quotient(x, n, out, first, scale):
    """out[first ...] <- (out[first ...] - x) scale, of n rows.

    scale: 1 / the displacement between both values.
    """
    for i in range(n):
        out[first + i] = (out[first + i] - x[i]) * scale


@kernel
def per_span(span):
    """Returns 1 / span; 0 where span is 0, for a coordinate that is not displaced."""
    return where(span > 0.0, 1.0, 0.0) / where(span > 0.0, span, 1.0)


@kernel
def displace(x, n, at, step, first):
    """Adds step to the entry of x whose coordinate is `at`; its n entries have the coordinates first, first + 1, ..."""
    for i in range(n):
        x[i] = where(at == 1.0 * (first + i), x[i] + step, x[i])


@kernel
def move_pos(m, d, at, step):
    """qpos <- qpos (+) step along dof `at`, in worlds whose coordinate `at` is a position; others keep their qpos.

    step: displacement [m, rad].
    """
    for j in range(m.njnt):
        qposadr, dofadr, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            for c in range(3):
                moved = at == 1.0 * (dofadr + c)
                d.qpos[qposadr + c] = where(moved, d.qpos[qposadr + c] + step, d.qpos[qposadr + c])
            qposadr, dofadr = qposadr + 3, dofadr + 3  # the quaternion and the rotations follow
        if has_quaternion(kind):
            q = Quat(d.qpos[qposadr : qposadr + 4])
            # masks of the worlds that rotate about each axis of the quaternion
            about = tuple(at == 1.0 * (dofadr + c) for c in range(3))
            rotated = quat_integrate(q, Vec3(where(mask, step, 0.0) for mask in about), h=1.0)
            # a quaternion that does not rotate keeps its bits
            d.qpos[qposadr : qposadr + 4] = where(about[0] | about[1] | about[2], rotated, q)
        else:
            d.qpos[qposadr] = where(at == 1.0 * dofadr, d.qpos[qposadr] + step, d.qpos[qposadr])


@kernel
def move_coordinate(m, d, at, step):
    """Displaces coordinate `at` of any kind by step; -1: none."""
    move_pos(m, d, at, step)
    displace(d.qvel, m.nv, at, step, m.nv)
    displace(d.act, m.na, at, step, 2 * m.nv)
    displace(d.ctrl, m.nu, at, step, 2 * m.nv + m.na)
    displace(d.qfrc_applied, m.nv, at, step, 2 * m.nv + m.na + m.nu)


@kernel
def displacements(m, d, at, size):
    """Returns the displacements (up, down) of coordinate `at`: `size`, or 0 where a control would leave its range.

    Both are 0 for a control that is already out of its range.
    """
    up, down = size, size
    for i in range(m.nu):
        if m.actuator_ctrllimited[i]:
            u, low, high = d.ctrl[i], m.actuator_ctrlrange[i].lower, m.actuator_ctrlrange[i].upper
            is_displaced = at == 1.0 * (2 * m.nv + m.na + i)  # worlds that displace control i
            up = where(is_displaced & not_((u >= low) & (u + size <= high)), 0.0, up)
            down = where(is_displaced & not_((u - size >= low) & (u <= high)), 0.0, down)
    return up, down


@kernel
def displace_point(m, d, p):
    """Displaces coordinate p.at by p.displacement, which is replaced by 0 where a control would leave its range.

    With p.inwards, a control that cannot be displaced up is displaced down instead.
    """
    step = p.displacement[0]
    up, down = displacements(m, d, p.at[0], fabs(step))
    is_upward = step > 0.0
    turns_inwards = (up == 0.0) & (p.inwards[0] > 0.0)
    step = where(is_upward, where(turns_inwards, -down, up), -down)
    p.displacement[0] = step
    move_coordinate(m, d, p.at[0], step)
