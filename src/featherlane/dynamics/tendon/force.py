"""Computes passive tendon forces: springs with a dead band, dampers, and armature.

    spring     f = -x (k + c x + e x^2),      x the length beyond lengthspring, 0 between its two lengths
    damper     f = -v (b + c |v| + e v^2),    v = J qvel
    armature   M += J^T a J,                  bias force J^T a (dJ/dt) qvel

and J^T f acts on the DoFs.  Damping and armature of actuators on the tendon are included, times their gear squared.
Armature is added on M's pattern only: a tendon between branches adds to the diagonal alone.
Source: MuJoCo mj_passive, mj_tendonArmature, mj_tendonBias, mjd_passive_vel.
"""

from featherlane.prelude import *
from featherlane.dynamics.body.plastic import tendon_reference
from featherlane.dynamics.sparse.outer import add_outer, add_row
from featherlane.dynamics.tendon.length import add_tendon_force, is_fixed


# ---- coefficients ----------------------------------------------------------------------------------------------------
@kernel
def tendon_stiffness(m, i):
    """Returns (k, c, e): the spring force of tendon i is -x (k + c x + e x^2)."""
    return m.tendon_stiffness[i], m.tendon_stiffnesspoly[i].second, m.tendon_stiffnesspoly[i].third


@kernel
def pulls_tendon(m, k, i):
    """Returns whether actuator k pulls on tendon i."""
    return m.actuator_trntype[k] == TRN_TENDON and m.actuator_trnid[k, 0] == i


@kernel
def _gear_squared(m, k):
    """Returns the square of the actuator's gear."""
    g = m.actuator_gear[m.actuator_outadr[k]][0]
    return g * g


@kernel
def tendon_damping(m, i):
    """Returns (b, c, e): the damping force of tendon i is -v (b + c |v| + e v^2), of tendon and actuators together."""
    tendon = m.tendon[i]
    b, c, e = tendon.damping, tendon.dampingpoly.second, tendon.dampingpoly.third
    if tendon.actuatorid != -1:
        for k in range(m.nactuator):
            if pulls_tendon(m, k, i):
                s = _gear_squared(m, k)
                b = fma(m.actuator_damping[k], s, b)
                c = fma(m.actuator_dampingpoly[k].second, s, c)
                e = fma(m.actuator_dampingpoly[k].third, s, e)
    return b, c, e


@kernel
def tendon_armature(m, i):
    """Returns the armature [kg] of tendon i and its actuators together."""
    a = m.tendon_armature[i]
    if m.tendon_actuatorid[i] != -1:
        for k in range(m.nactuator):
            if pulls_tendon(m, k, i):
                a = fma(m.actuator_armature[k], _gear_squared(m, k), a)
    return a


@kernel
def is_elastic(m, i):
    """Returns the mask of worlds in which tendon i has a spring or a damper."""
    return _is_any(tendon_stiffness(m, i)) | _is_any(tendon_damping(m, i))


@kernel
def _is_any(k):
    """Returns the mask of worlds with a nonzero coefficient."""
    return (k[0] != 0.0) | (k[1] != 0.0) | (k[2] != 0.0)


# ---- forces ----------------------------------------------------------------------------------------------------------
@kernel
def stretch(m, d, i):
    """Returns the deflection of tendon i from its spring's rest interval [m], negative below."""
    length = d.ten_length[i]
    low, high = tendon_reference(m, d, i)
    return where(length > high, length - high, where(length < low, length - low, 0.0))


@kernel
def spring_force(m, d, i):
    """Returns the force of the spring of tendon i [N]."""
    k, x = tendon_stiffness(m, i), stretch(m, d, i)
    return where(_is_any(k), -(x * fma(x, fma(x, k[2], k[1]), k[0])), 0.0)


@kernel
def damper_force(m, d, i):
    """Returns the force of the damper of tendon i [N]."""
    k, v = tendon_damping(m, i), d.ten_velocity[i]
    s = fabs(v)
    return where(_is_any(k), -(v * fma(s, fma(s, k[2], k[1]), k[0])), 0.0)


@kernel
def add_tendon_springs(m, d):
    """qfrc_spring += J^T f of each tendon's spring."""
    for i in range(m.ntendon):
        if any_(_is_any(tendon_stiffness(m, i))):
            add_tendon_force(m, d, i, spring_force(m, d, i), d.qfrc_spring)


@kernel
def add_tendon_dampers(m, d):
    """qfrc_damper += J^T f of each tendon's damper."""
    for i in range(m.ntendon):
        if any_(_is_any(tendon_damping(m, i))):
            add_tendon_force(m, d, i, damper_force(m, d, i), d.qfrc_damper)


@kernel
def tendon_energy(m, d):
    """Returns the energy [J] of all tendon springs: x^2 (k / 2 + c x / 3 + e x^2 / 4)."""
    energy = 0.0
    for i in range(m.ntendon):
        k = tendon_stiffness(m, i)
        if any_(_is_any(k)):
            x = stretch(m, d, i)
            part = (x * x) * fma(x, fma(0.25 * x, k[2], k[1] * (1.0 / 3.0)), 0.5 * k[0])
            energy = energy + where(_is_any(k), part, 0.0)
    return energy


# ---- derivatives -----------------------------------------------------------------------------------------------------
@kernel
def tendon_damping_rate(m, d, i):
    """Returns -d(damping force) / d(rate) of tendon i: b + 2 c |v| + 3 e v^2."""
    b, c, e = tendon_damping(m, i)
    s = fabs(d.ten_velocity[i])
    return fma(s, fma(3.0 * e, s, 2.0 * c), b)


@kernel
def tendon_spring_rate(m, d, i):
    """Returns -d(spring force) / d(length) of tendon i: k + 2 c x + 3 e x^2, 0 in the dead band."""
    low, high = tendon_reference(m, d, i)
    stretched = (stretch(m, d, i) != 0.0) | (low >= high)
    return where(stretched, tendon_metric_rate(m, d, i, at_rest=1), 0.0)


@kernel
def tendon_metric_rate(m, d, i, at_rest):
    """Returns `tendon_spring_rate`; without `at_rest` it is 0 at the rest length, too.

    Source: MuJoCo's integrator discrete; found by experiment with 4.0.1.
    """
    k, x = tendon_stiffness(m, i), stretch(m, d, i)
    acts = _is_any(k)
    if not at_rest:
        acts = acts & (x != 0.0)
    return where(acts, fma(x, fma(3.0 * k[2], x, 2.0 * k[1]), k[0]), 0.0)


@kernel
def add_tendon_damping(m, d, s, A, pattern):
    """A -= s J^T (rate of damping) J of each tendon, on the pattern (dynamics/sparse/outer.py)."""
    for i in range(m.ntendon):
        rate = tendon_damping_rate(m, d, i)
        if any_(rate != 0.0):
            add_row(m, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], -(s * rate), A, pattern)


# ---- armature --------------------------------------------------------------------------------------------------------
@kernel
def add_tendon_armature(m, d):
    """M += J^T a J of each tendon, on M's pattern."""
    for i in range(m.ntendon):
        a = tendon_armature(m, i)
        if any_(a != 0.0):
            add_outer(m, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], a, d.M)


@kernel
def _site_motion(m, d, s):
    """Returns velocity and acceleration of site s, at qacc = 0 and without gravity."""
    b = m.site_bodyid[s]
    r = d.site_xpos[s] - d.subtree_com[m.body_rootid[b]]
    w, a = d.cvel[b].angular, d.cacc[b].angular
    v = d.cvel[b].linear + cross(w, r)
    return v, d.cacc[b].linear + cross(a, r) + cross(w, v)


@kernel
def _segment_rate(m, d, s, t):
    """Returns (dJ/dt) qvel of the segment between two sites: u . (a_t - a_s) + |v across u|^2 / length."""
    e = d.site_xpos[t] - d.site_xpos[s]
    v, a = _site_motion(m, d, s)
    w, c = _site_motion(m, d, t)
    v, a = w - v, c - a
    square = fmax(dot(e, e), MINVAL * MINVAL)
    along = dot(e, v)
    return (dot(e, a) + dot(v, v) - along * along / square) / sqrt(square)


@kernel
def jacobian_rate(m, d, i):
    """Returns (dJ/dt) qvel of tendon i; 0 for a fixed one; tendons with armature never wrap around geoms."""
    rate, scale, k = 0.0, 1.0, m.tendon_adr[i]
    last = k + m.tendon_num[i] - 1
    while k < last:
        if m.wrap_type[k] == WRAP_PULLEY:
            scale = 1.0 / m.wrap_prm[k]
        elif m.wrap_type[k] == WRAP_SITE and m.wrap_type[k + 1] == WRAP_SITE:
            s, t = m.wrap_objid[k], m.wrap_objid[k + 1]
            if m.site_bodyid[s] != m.site_bodyid[t]:
                rate = fma(scale, _segment_rate(m, d, s, t), rate)
        k += 1
    return rate


@kernel
def add_tendon_bias(m, d):
    """qfrc_bias += J^T a (dJ/dt) qvel of each spatial tendon with armature.

    Reads:  cvel, cacc of Newton-Euler without joint accelerations, site_xpos, subtree_com, ten_J.
    """
    for i in range(m.ntendon):
        a = tendon_armature(m, i)
        if any_(a != 0.0) and not is_fixed(m, i):
            add_tendon_force(m, d, i, where(a != 0.0, a * jacobian_rate(m, d, i), 0.0), d.qfrc_bias)
