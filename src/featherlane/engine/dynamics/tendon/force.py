"""Computes passive tendon forces: springs with a dead band, dampers, and armature.

    spring     f = -x (k + c x + e x^2),      x the length beyond lengthspring, 0 between its two lengths
    damper     f = -v (b + c |v| + e v^2),    v = J qvel
    armature   M += J^T a J,                  bias force J^T a (dJ/dt) qvel

and J^T f acts on the DoFs.  Damping and armature of actuators on the tendon are included, times their gear squared.
Armature is added on M's pattern only: entries between DoFs of different branches are left out.

Row i of J has ten_J_rownnz[i] entries from ten_J[ten_J_rowadr[i]] on, whose DoFs are in ten_J_colind.  The path of
tendon i has tendon_num[i] elements from tendon_adr[i] on: element k has the type wrap_type[k], the object wrap_objid[k]
and the parameter wrap_prm[k], of a pulley its divisor.

Imported kernels:

    has_coefficients(c)              mask of worlds where one of the coefficients (k, c, e) is not 0
    tendon_reference(m, d, i)        (lower, upper) rest lengths of the spring of tendon i
    add_tendon_force(m, d, i, f, x)  x += J^T f of tendon i
    is_fixed(m, i)                   whether tendon i is a combination of joints
    add_outer, add_row               A += s J^T J of a sparse row J, on M's pattern or on a given one (sparse/outer.py)

Source: MuJoCo mj_passive, mj_tendonArmature, mj_tendonBias, mjd_passive_vel.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.reflected import add_reflected_damping, gear_squared
from featherlane.engine.dynamics.body.force_laws import (
    damper_law,
    has_coefficients,
    implicit_rate,
    spring_energy,
    spring_law,
)
from featherlane.engine.dynamics.body.plastic import tendon_reference
from featherlane.engine.dynamics.sparse.outer import add_outer, add_row
from featherlane.engine.dynamics.tendon.length import add_tendon_force, is_fixed


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
def tendon_damping(m, i):
    """Returns (b, c, e): the damping force of tendon i is -v (b + c |v| + e v^2), of tendon and actuators together."""
    tendon = m.tendon[i]
    coefficients = tendon.damping, tendon.dampingpoly.second, tendon.dampingpoly.third
    # -1: no actuator of the tendon has damping or armature
    if tendon.actuatorid != -1:
        for k in range(m.nactuator):
            if pulls_tendon(m, k, i):
                coefficients = add_reflected_damping(m, k, coefficients)
    return coefficients


@kernel
def tendon_armature(m, i):
    """Returns the armature [kg] of tendon i and its actuators together."""
    armature = m.tendon_armature[i]
    # -1: no actuator of the tendon has damping or armature
    if m.tendon_actuatorid[i] != -1:
        for k in range(m.nactuator):
            if pulls_tendon(m, k, i):
                armature = fma(m.actuator_armature[k], gear_squared(m, k), armature)
    return armature


# ---- forces ----------------------------------------------------------------------------------------------------------
@kernel
def stretch(m, d, i):
    """Returns the deflection of tendon i from its spring's rest interval [m], negative below.

    If low = high there is no dead band, and `>=` makes the derivative by the length 1 at this length, too.
    """
    length = d.ten_length[i]
    low, high = tendon_reference(m, d, i)
    return where(length >= high, length - high, where(length < low, length - low, 0.0))


@kernel
def spring_force(m, d, i):
    """Returns the force of the spring of tendon i [N]: -x (k + c x + e x^2), x the stretch."""
    return spring_law(tendon_stiffness(m, i), stretch(m, d, i))


@kernel
def tendon_spring_energy(m, d, i):
    """Returns the energy of the spring of tendon i [J]; its derivative by the length is minus the force."""
    return spring_energy(tendon_stiffness(m, i), stretch(m, d, i))


@kernel
def damper_force(m, d, i):
    """Returns the force of the damper of tendon i [N]: -v (b + c |v| + e v^2)."""
    return damper_law(tendon_damping(m, i), d.ten_velocity[i])


@kernel
def add_tendon_springs(m, d):
    """qfrc_spring += J^T f of each tendon's spring."""
    for i in range(m.ntendon):
        if any_(has_coefficients(tendon_stiffness(m, i))):
            add_tendon_force(m, d, i, spring_force(m, d, i), d.qfrc_spring)


@kernel
def add_tendon_dampers(m, d):
    """qfrc_damper += J^T f of each tendon's damper."""
    for i in range(m.ntendon):
        if any_(has_coefficients(tendon_damping(m, i))):
            add_tendon_force(m, d, i, damper_force(m, d, i), d.qfrc_damper)


@kernel
def tendon_energy(m, d):
    """Returns the energy [J] of all tendon springs."""
    energy = 0.0
    for i in range(m.ntendon):
        if any_(has_coefficients(tendon_stiffness(m, i))):
            energy = energy + tendon_spring_energy(m, d, i)
    return energy


# ---- rates of implicit integrators ----------------------------------------------------------------------------------
@kernel
def tendon_damping_rate(m, d, i):
    """Returns -d(damping force) / d(rate of length) of tendon i: b + 2 c |v| + 3 e v^2."""
    return implicit_rate(tendon_damping(m, i), fabs(d.ten_velocity[i]))


@kernel
def tendon_metric_rate(m, d, i):
    """Returns k + 2 c x + 3 e x^2, the spring rate of tendon i in the metric of `discrete`; 0 at zero stretch x.

    Source: found by experiment with MuJoCo 4.0.1.
    """
    x = stretch(m, d, i)
    return where(x != 0.0, implicit_rate(tendon_stiffness(m, i), x), 0.0)


@kernel
def add_tendon_damping(m, d, s, A, pattern):
    """A -= s J^T (rate of damping) J of each tendon, on the pattern DIAGONAL, LOWER or FULL (sparse/outer.py)."""
    for i in range(m.ntendon):
        rate = tendon_damping_rate(m, d, i)
        if any_(rate != 0.0):
            add_row(m, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], -(s * rate), A, pattern)


# ---- armature --------------------------------------------------------------------------------------------------------
@kernel
def add_tendon_armature(m, d):
    """M += J^T a J of each tendon with armature a, on M's pattern."""
    for i in range(m.ntendon):
        a = tendon_armature(m, i)
        if any_(a != 0.0):
            add_outer(m, d.ten_J, m.ten_J_colind, m.ten_J_rowadr[i], m.ten_J_rownnz[i], a, d.M)


@kernel
def _site_motion(m, d, s):
    """Returns (v, a): velocity and acceleration of site s at qacc = 0;  a has the term -gravity of cacc.

    v = v_b + w x r,  a = a_b + dw x r + w x v,  with r from the tree's com to the site.  (w, v_b) and (dw, a_b) are the
    velocity and the spatial acceleration of the site's body at the tree's com.
    """
    b = m.site_bodyid[s]
    r = d.site_xpos[s] - d.subtree_com[m.body_rootid[b]]
    w, dw = d.cvel[b].angular, d.cacc[b].angular
    v = d.cvel[b].linear + cross(w, r)
    return v, d.cacc[b].linear + cross(dw, r) + cross(w, v)


@kernel
def _segment_rate(m, d, s, t):
    """Returns (dJ/dt) qvel of the segment between sites s and t: u . a + |v across u|^2 / length.

    u: the direction from s to t;  v, a: velocity and acceleration of t relative to s, in which gravity cancels.
    """
    r = d.site_xpos[t] - d.site_xpos[s]
    v_s, a_s = _site_motion(m, d, s)
    v_t, a_t = _site_motion(m, d, t)
    v, a = v_t - v_s, a_t - a_s
    square = fmax(dot(r, r), MINVAL * MINVAL)
    rv = dot(r, v)
    return (dot(r, a) + dot(v, v) - rv * rv / square) / sqrt(square)


@kernel
def jacobian_rate(m, d, i):
    """Returns (dJ/dt) qvel of tendon i, the second derivative of its length at qacc = 0; 0 for a fixed one.

    Each segment between two sites is divided by the divisor of the last pulley before it.  Tendons with armature, for
    which this is computed, never wrap around geoms.
    """
    rate, scale = 0.0, 1.0
    k = m.tendon_adr[i]
    last = k + m.tendon_num[i] - 1
    while k < last:
        if m.wrap_type[k] == WRAP_PULLEY:
            scale = 1.0 / m.wrap_prm[k]
        elif m.wrap_type[k] == WRAP_SITE and m.wrap_type[k + 1] == WRAP_SITE:
            s, t = m.wrap_objid[k], m.wrap_objid[k + 1]
            # a segment within one body has a constant length
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
        # the Jacobian of a fixed tendon is constant
        if any_(a != 0.0) and not is_fixed(m, i):
            add_tendon_force(m, d, i, where(a != 0.0, a * jacobian_rate(m, d, i), 0.0), d.qfrc_bias)
