"""Coordinates by which a step is differentiated: their numbers, and their displacements.

Coordinates are numbered: positions by dof, velocities, activations, controls, generalized forces.  A coordinate `at` is
a value (a lane may have a different one), so numbers are compared with 1.0 * number.
"""

from featherlane.prelude import *


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
    """Returns 1 / span; 0 if a coordinate is not displaced."""
    return where(span > 0.0, 1.0, 0.0) / where(span > 0.0, span, 1.0)


@kernel
def displace(x, n, at, step, first):
    """Adds step to entry at - first of the field x; the n entries have the coordinates first, first + 1, ..."""
    for i in range(n):
        x[i] = where(at == 1.0 * (first + i), x[i] + step, x[i])


@kernel
def move_pos(m, d, at, step):
    """qpos <- qpos (+) step along dof `at`, if it is one."""
    for j in range(m.njnt):
        qposadr, dofadr, kind = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_type[j]
        if is_free_joint(kind):
            for c in range(3):
                moved = at == 1.0 * (dofadr + c)
                d.qpos[qposadr + c] = where(moved, d.qpos[qposadr + c] + step, d.qpos[qposadr + c])
            qposadr, dofadr = qposadr + 3, dofadr + 3
        if has_quaternion(kind):
            q = Quat(d.qpos[qposadr : qposadr + 4])
            turns = tuple(at == 1.0 * (dofadr + c) for c in range(3))
            turned = quat_integrate(q, Vec3(where(turn, step, 0.0) for turn in turns), h=1.0)
            # a quaternion that does not turn keeps its bits
            d.qpos[qposadr : qposadr + 4] = where(turns[0] | turns[1] | turns[2], turned, q)
        else:
            d.qpos[qposadr] = where(at == 1.0 * dofadr, d.qpos[qposadr] + step, d.qpos[qposadr])


@kernel
def move_forces(m, d, at, step):
    """Adds step to coordinate `at` if it is a velocity, activation or control; see the numbering above."""
    displace(d.qvel, m.nv, at, step, m.nv)
    displace(d.act, m.na, at, step, 2 * m.nv)
    displace(d.ctrl, m.nu, at, step, 2 * m.nv + m.na)
