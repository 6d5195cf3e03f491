"""Acceleration without constraints, and energy."""

from __future__ import annotations

from featherlane.lanes import any_, fabs, fma, kernel, real, stage, where
from featherlane.spatial.motion import dot6
from featherlane.spatial.vector import dot3, load3, load6, norm3, sub3

from .com import last_dof, point_wrench
from .flags import DISABLE_GRAVITY, DISABLE_SPRING, FREE, SLIDE
from .inertia import solve
from .passive import ball_deflection, is_sprung, stiffness


@kernel
def add_xfrc(m, d, result):
    """result += J^T xfrc_applied, at the centres of mass of the bodies; bodies that nobody pushes cost a look."""
    for i in range(1, m.nbody):
        x = load6(d.xfrc_applied, 6 * i)
        pushed = (fabs(x[0]) + fabs(x[1]) + fabs(x[2]) + (fabs(x[3]) + fabs(x[4]) + fabs(x[5]))) != 0.0
        if any_(pushed):
            point = load3(d.xipos, 3 * i)
            wrench = point_wrench(d, (x[0], x[1], x[2]), (x[3], x[4], x[5]), point, m.body_rootid[i])
            k = last_dof(m, i)
            while k >= 0:
                f = result[k]
                result[k] = where(pushed, f + dot6(load6(d.cdof, 6 * k), wrench), f)
                k = m.dof_parentid[k]


@stage
def smooth_acceleration(m, d):
    """All forces but those of constraints, and the acceleration that they give.

    qfrc_smooth = passive - bias + applied + actuator + J^T xfrc_applied;  qacc_smooth = M^-1 qfrc_smooth.
    Source: MuJoCo mj_fwdAcceleration.
    Reads:  qfrc_passive, qfrc_bias, qfrc_applied, qfrc_actuator, xfrc_applied, qLD, qLDiagInv.
    Writes: qfrc_smooth [N, N m], qacc_smooth (nv,) [m/s^2, rad/s^2].   Cost: O(nv * depth).
    """
    for i in range(m.nv):
        d.qfrc_smooth[i] = ((d.qfrc_passive[i] - d.qfrc_bias[i]) + d.qfrc_applied[i]) + d.qfrc_actuator[i]
    add_xfrc(m, d, d.qfrc_smooth)
    for i in range(m.nv):
        d.qacc_smooth[i] = d.qfrc_smooth[i]
    solve(m, d.qLD, d.qLDiagInv, d.qacc_smooth)


@kernel
def _spring_energy(k, x):
    """Integral of x (k + c x + e x^2)."""
    return where(is_sprung(k), (x * x) * fma(x, fma(0.25 * x, k[2], k[1] * (1.0 / 3.0)), 0.5 * k[0]), 0.0)


@stage
def energy(m, d):
    """Potential energy of gravity and springs, and kinetic energy.

    Source: MuJoCo mj_energyPos, mj_energyVel.
    Reads:  xipos, qpos, qvel, M.   Writes: energy (2,) [J].
    """
    potential, kinetic = real(d, 0.0), real(d, 0.0)
    if not (m.opt_disableflags & DISABLE_GRAVITY):
        g = load3(m.opt_gravity, 0)
        for i in range(1, m.nbody):
            potential = fma(-m.body_mass[i], dot3(g, load3(d.xipos, 3 * i)), potential)
    if not (m.opt_disableflags & DISABLE_SPRING):
        for j in range(m.njnt):
            a, kind, k = m.jnt_qposadr[j], m.jnt_type[j], stiffness(m, j)
            if kind >= SLIDE:
                potential = potential + _spring_energy(k, d.qpos[a] - m.qpos_spring[a])
            elif any_(is_sprung(k)):
                if kind == FREE:
                    x = sub3(load3(d.qpos, a), load3(m.qpos_spring, a))
                    potential = potential + _spring_energy(k, norm3(x))
                    a += 3
                potential = potential + _spring_energy(k, norm3(ball_deflection(m, d, a)))
    for i in range(m.nv):
        first, v = m.M_rowadr[i], d.qvel[i]
        last = first + m.M_rownnz[i] - 1
        half = 0.5 * (d.M[last] * v)
        for c in range(first, last):
            half = fma(d.M[c], d.qvel[m.M_colind[c]], half)
        kinetic = fma(half, v, kinetic)
    d.energy[0] = potential
    d.energy[1] = kinetic
