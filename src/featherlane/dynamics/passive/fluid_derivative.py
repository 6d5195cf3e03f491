"""Computes velocity derivatives of fluid forces with composite bodies, as for the inertia matrix.

The derivative of a body's wrench is a 6 x 6 matrix, here about the centre of mass of its tree in world axes.
The bodies after a joint move together, so their matrices add up.  With their sum B^c_b for body b, DoF k of b and every
DoF j from the root to k

    D_jk = S_j . B^c_b S_k        D_kj = S_k . B^c_b S_j

`implicit` and separate free bodies use B, `implicitfast` its symmetric part elsewhere.  `discrete` uses only the
symmetric part of drag and resistance, because a metric cannot represent lift and added mass.
Source: MuJoCo mjd_inertiaBoxFluid, mjd_ellipsoidFluid (Jacobians of every body there); the part in `discrete` was found
by experiment with 4.0.1: efm_fluid.
"""

from featherlane.prelude import *
from featherlane.dynamics.body.kinematics import geom_pose
from featherlane.dynamics.passive.fluid import (
    TINY,
    added_mass,
    added_momentum,
    angular_coefficients,
    area_drag,
    body_axes,
    box_drag,
    box_resistance,
    faces,
    has_ellipsoids,
    in_medium,
    inertia_box,
    medium_acts,
    medium_velocity,
    semi_axes,
    stokes,
    times3,
    volume,
)


# ---- three by three --------------------------------------------------------------------------------------------------
@kernel
def _outer(a, b):
    """Returns a b^T."""
    return Mat3(a[r] * b[c] for r in range(3) for c in range(3))


@kernel
def _diagonal(a):
    """Returns the matrix with a on its diagonal."""
    return Mat3(a[r] if r == c else 0.0 for r in range(3) for c in range(3))


@kernel
def _cross_matrix(a):
    """Returns [a]x: the matrix of the cross product with a from the left."""
    return Mat3(0.0, -a.z, a.y, a.z, 0.0, -a.x, -a.y, a.x, 0.0)


@kernel
def _turn(R, A):
    """Returns R A R^T."""
    return R @ A @ R.T


# ---- one shape, in its axes --------------------------------------------------------------------------------------
@kernel
def _box_rates(m, box, w, u):
    """Returns (angular, linear) rates along the axes of a box: -(a + 2 c |v|)."""
    angular, linear = box_resistance(m, box)
    turning, moving = box_drag(m, box)
    return -fma(2.0 * turning, fabs(w), angular), -fma(2.0 * moving, fabs(u), linear)


@kernel
def _torque_rate(m, g, r, w):
    """Returns d(angular drag and resistance) / dw: -rho (|m w| 1 + w (m^2 w)^T / |m w|) - resistance."""
    c, most = angular_coefficients(m, g, r)
    mw = times3(c, w)
    s = m.opt_density[0] * most / fmax(norm3(mw), TINY)
    square = times3(c, mw)
    angular, _ = stokes(m, r)
    uniform = -fma(s, dot(w, square), angular)
    return _diagonal(Vec3(uniform, uniform, uniform)) + _outer(-s * w, square)


@kernel
def _weighted_differences(q, p, uu):
    """Returns in component i the sum over j of p_j u_j^2 (q_i - q_j); exact zeros for a sphere."""
    return Vec3(
        fma(p[1] * uu[1], q[0] - q[1], p[2] * uu[2] * (q[0] - q[2])),
        fma(p[0] * uu[0], q[1] - q[0], p[2] * uu[2] * (q[1] - q[2])),
        fma(p[0] * uu[0], q[2] - q[0], p[1] * uu[1] * (q[2] - q[1])),
    )


@kernel
def _drag_rate(m, g, r, u):
    """Returns d(drag and resistance) / du; the area changes with the direction."""
    rho, c = m.opt_density[0], m.geom_fluid[g]
    e, speed = normalize3(u)
    q, face = faces(r)
    n = times3(q, e)
    slope, height = dot(n, n), dot(n, e)
    area = PI * face * sqrt(slope / fmax(height, TINY))
    _, linear = stokes(m, r)

    # |u| dA/du_i = pi face / sqrt(height^3 slope) (height q_i - slope) n_i
    along = PI * face / fmax(height * sqrt(height * slope), TINY)
    change = along * times3(n, _weighted_differences(q, q, times3(e, e)))
    turning = -(rho * speed * (c.blunt - c.slender)) * e

    s = -(rho * speed * area_drag(m, g, r, area))
    uniform = s - linear
    fixed = _diagonal(Vec3(uniform, uniform, uniform)) + _outer(s * e, e)
    return fixed + _outer(turning, change)


@kernel
def _kutta_rate(m, g, r, u):
    """Returns d(Kutta lift) / du; the lift is c |u|^2 sqrt(height / slope) (height e - n), e the direction of u."""
    e, speed = normalize3(u)
    q, face = faces(r)
    n = times3(q, e)
    slope, height = dot(n, n), dot(n, e)
    c = PI * face * m.geom_fluid[g].kutta * m.opt_density[0] * speed / fmax(sqrt(slope * height), TINY)
    deviation = _weighted_differences(q, Vec3(1.0, 1.0, 1.0), times3(e, e))
    lift = -times3(deviation, e)

    s = height / fmax(slope, TINY)
    along = Vec3(e[i] * fma(-q[i] * q[i], s, q[i] - height) for i in range(3))
    turning = 2.0 * height * (_outer(e, n) - _outer(n, e))
    uniform = _diagonal(-height * deviation)
    return c * (_outer(lift, along) + (turning + uniform))


@kernel
def _carried(A, mass):
    """Returns A times a diagonal matrix."""
    return Mat3(A[3 * r + c] * mass[c] for r in range(3) for c in range(3))


@kernel
def _lift_rates(m, d, g, r, w, u):
    """Returns rates of added mass, Magnus and Kutta lift: moment by w, moment by u, force by w, force by u."""
    rho, (mass, inertia) = m.opt_density[0], added_mass(m, g)
    L, P = added_momentum(m, g, w, u)
    mass, inertia = -rho * mass, -rho * inertia
    W, U, carried = _cross_matrix(w), _cross_matrix(u), _cross_matrix(P)
    magnus = m.geom_fluid[g].magnus * rho * volume(r)
    return (
        _cross_matrix(L) + _carried(W, inertia),
        carried + _carried(U, mass),
        carried - magnus * U,
        _carried(W, mass) + magnus * W + _kutta_rate(m, g, r, u),
    )


# ---- at the centre of mass of the tree -------------------------------------------------------------------------------
@kernel
def _add_rows(d, i, first, left, right, scale, mask):
    """Adds scale (left, right), two 3 x 3 matrices, to three rows of body i's crb_drag, in worlds of the mask."""
    for k in unrolled(range(3)):
        rate, row = d.crb_drag[i, first + k], Force(join(left.rows[k], right.rows[k]))
        d.crb_drag[i, first + k] = where(mask, fma(scale, row, rate), rate)


@kernel
def _add_moved(m, d, i, pos, R, rates, scale, mask):
    """Adds rates at a point in the axes of R, moved to the com of the tree, to the matrix of body i.

    With r from the com to the point, a rotation moves the point by w x r, and its force has the moment r x f.
    """
    X = _cross_matrix(pos - d.subtree_com[m.body_rootid[i]])
    aa, al, la, ll = _turn(R, rates[0]), _turn(R, rates[1]), _turn(R, rates[2]), _turn(R, rates[3])
    al = al + X @ ll
    aa = aa + (X @ la - al @ X)
    la = la - ll @ X
    _add_rows(d, i, 0, aa, al, scale, mask)
    _add_rows(d, i, 3, la, ll, scale, mask)


@kernel
def _add_box(m, d, i, mask):
    """Adds the rates of body i's box to its matrix."""
    pos, R = d.xipos[i], body_axes(m, d, i)
    w, u = medium_velocity(m, d, i, pos, R)
    box, heavy = inertia_box(m, i)
    angular, linear = _box_rates(m, box, w, u)
    none = Mat3(zeros(9))
    _add_moved(m, d, i, pos, R, (_diagonal(angular), none, none, _diagonal(linear)), 1.0, heavy & mask)


@kernel
def _add_ellipsoid(m, d, i, g, dissipative, mask):
    """Adds the rates of geom g to the matrix of body i: only drag and resistance if `dissipative`, else all."""
    pos, R = geom_pose(m, d, g)
    r = semi_axes(m, g)
    w, u = medium_velocity(m, d, i, pos, R)
    none = Mat3(zeros(9))
    rates = (_torque_rate(m, g, r, w), none, none, _drag_rate(m, g, r, u))
    if not dissipative:
        aa, al, la, ll = _lift_rates(m, d, g, r, w, u)
        rates = rates[0] + aa, al, la, rates[3] + ll
    scale = m.geom_fluid[g].scale
    _add_moved(m, d, i, pos, R, rates, scale, (scale != 0.0) & (m.body_mass[i] >= MINVAL) & mask)


@kernel
def _body_matrix(m, d, i, dissipative):
    """crb_drag of body i <- d(wrench) / d(velocity)."""
    ellipsoids = has_ellipsoids(m, i)
    for k in range(6):
        d.crb_drag[i, k] = zeros(6)
    if any_(not_(ellipsoids)):
        _add_box(m, d, i, not_(ellipsoids))
    if any_(ellipsoids):
        for g in range(m.body_geomadr[i], m.body_geomadr[i] + m.body_geomnum[i]):
            if any_(m.geom_fluid[g].scale != 0.0):
                _add_ellipsoid(m, d, i, g, dissipative, ellipsoids)


@stage
def composite_drag(m, d, dissipative):
    """crb_drag <- velocity derivatives of the fluid's wrench on the subtree of each body.

    Reads:  cvel, xquat, xpos, xmat, xipos, subtree_com.   Writes: crb_drag (nbody, 6, 6), rows of force.
    """
    for i in range(1, m.nbody):
        if m.body_treeid[i] >= 0:
            _body_matrix(m, d, i, dissipative)
    for i in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[i]
        if m.body_treeid[i] >= 0 and p > 0 and m.body_treeid[p] >= 0:
            for k in range(6):
                d.crb_drag[p, k] += d.crb_drag[i, k]


# ---- joint space -----------------------------------------------------------------------------------------------------
@kernel
def drag_times(d, b, S):
    """Returns B^c_b S: the force on the subtree of body b by a motion S."""
    return Force(dot(d.crb_drag[b, k], S) for k in range(6))


@kernel
def drag_transposed_times(d, b, S):
    """Returns B^c_b^T S."""
    f = S[5] * d.crb_drag[b, 5]
    for k in unrolled(range(4, -1, -1)):
        f = fma(S[k], d.crb_drag[b, k], f)
    return f


@kernel
def medium_counts(m):
    """Returns whether some world of the tile has a fluid and passive forces are enabled."""
    return medium_acts(m) and any_(in_medium(m))


@kernel
def add_fluid_vel(m, d, s, A):
    """A += s d qfrc_fluid / d qvel, on the pattern of qDeriv."""
    medium = in_medium(m)
    composite_drag(m, d, dissipative=0)
    for k in range(m.nv):
        S, b = d.cdof[k], m.dof_bodyid[k]
        f, g = drag_times(d, b, S), drag_transposed_times(d, b, S)
        a, above = m.D_rowadr[k], m.D_diag[k]
        for c in range(above):
            j = m.D_colind[a + c]
            T = d.cdof[j]
            A[a + c] = where(medium, fma(s, dot(g, T), A[a + c]), A[a + c])
            # the descendants of j follow it at once
            e = m.D_rowadr[j] + m.D_diag[j] + k - j
            A[e] = where(medium, fma(s, dot(f, T), A[e]), A[e])
        e = a + above
        A[e] = where(medium, fma(s, dot(f, S), A[e]), A[e])


@kernel
def add_fluid_metric(m, d, s, dissipative, A):
    """A += s times the symmetric part of d qfrc_fluid / d qvel, on M's pattern."""
    medium = in_medium(m)
    composite_drag(m, d, dissipative)
    for k in range(m.nv):
        S, b = d.cdof[k], m.dof_bodyid[k]
        f = 0.5 * (drag_times(d, b, S) + drag_transposed_times(d, b, S))
        for e in range(m.M_rowadr[k], m.M_rowadr[k] + m.M_rownnz[k]):
            rate = dot(f, d.cdof[m.M_colind[e]])
            A[e] = where(medium, fma(s, rate, A[e]), A[e])
