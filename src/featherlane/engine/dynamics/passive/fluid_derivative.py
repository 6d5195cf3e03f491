"""Computes velocity derivatives of fluid forces with composite bodies, as for the inertia matrix.

The derivative of a body's wrench is a 6 x 6 matrix, here about the centre of mass of its tree in world axes.
The bodies after a joint move together, so their matrices add up.  With their sum B^c_b for body b, DoF k of b and every
DoF j from the root to k

    D_jk = S_j . B^c_b S_k        D_kj = S_k . B^c_b S_j

The integrator `implicit` uses B.  `implicitfast` uses B for separate free bodies, and the symmetric part of D for all
others.  `discrete` uses only the symmetric part of drag and resistance, because a metric cannot represent lift and
added mass.
The rates of an ellipsoid are not `jvp` of its force: tangents in six directions take 19 % more instructions, and for a
sphere leave rounding errors of the lift where these rates are exactly 0.
i is the index of a body, g that of a geom.
TINY is the limit of ratios in float32 (fluid.py).

Imported kernels:

    velocity_in_fluid(m, d, i, pos, R)  (w, u): velocity of a point of body i relative to the fluid, in the axes of R
    semi_axes(m, g), inertia_box(m, i)  semi-axes of an ellipsoid; (sides, mask: the body has mass) of a box
    face_areas(r)                       (q, face): largest product of two semi-axes; q: squares of all three, relative
    drag_area(m, g, r, area)            C_blunt area + C_slender (largest section - area)
    angular_drag(m, g, r)               (moments of angular drag relative to the largest one, the largest one)
    stokes_resistance, box_resistance   (angular, linear) viscous resistance
    box_drag(m, box)                    (angular, linear) quadratic drag along the axes
    added_mass, added_momentum          (mass, inertia) per density;  (L, P), angular and linear momentum
    times3(a, b)                        products of components

Source: MuJoCo mjd_inertiaBoxFluid, mjd_ellipsoidFluid (Jacobians of every body there); the part in `discrete` was found
by experiment with 4.0.1: efm_fluid.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.kinematics import geom_pose
from featherlane.engine.dynamics.passive.fluid import (
    TINY,
    added_mass,
    added_momentum,
    angular_drag,
    body_axes,
    box_drag,
    box_resistance,
    drag_area,
    face_areas,
    fluid_worlds,
    has_ellipsoids,
    inertia_box,
    passive_forces_act,
    semi_axes,
    stokes_resistance,
    times3,
    velocity_in_fluid,
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
def _rotated(R, A):
    """Returns R A R^T."""
    return R @ A @ R.T


# ---- one shape, in its axes --------------------------------------------------------------------------------------
@kernel
def _box_rates(m, box, w, u):
    """Returns (angular, linear) rates along the axes of a box: -(viscous + 2 drag |v|) with v = w or u."""
    angular, linear = box_resistance(m, box)
    moment_drag, force_drag = box_drag(m, box)
    return -fma(2.0 * moment_drag, fabs(w), angular), -fma(2.0 * force_drag, fabs(u), linear)


@kernel
def _torque_rate(m, g, r, w):
    """Returns d(angular drag and resistance) / dw: -rho (|C w| 1 + w (C^2 w)^T / |C w|) - resistance.

    C: moments of angular drag, which multiply components;  r: the semi-axes;  w: the angular velocity.
    C = largest_moment c, so with s = rho largest_moment / |c w|:  rho |C w| = s w . c^2 w.
    """
    c, largest_moment = angular_drag(m, g, r)
    cw = times3(c, w)
    s = m.opt_density[0] * largest_moment / fmax(norm3(cw), TINY)
    c2w = times3(c, cw)
    resistance, _ = stokes_resistance(m, r)
    diagonal = -fma(s, dot(w, c2w), resistance)
    return _diagonal(Vec3(diagonal, diagonal, diagonal)) + _outer(-s * w, c2w)


@kernel
def _weighted_differences(q, weights, squares):
    """Returns in component i the sum over j of weights_j squares_j (q_i - q_j): exact zeros for a sphere.

    q: of the ellipsoid's axes; squares: those of the components of a unit vector.
    """
    return Vec3(
        fma(weights[1] * squares[1], q[0] - q[1], weights[2] * squares[2] * (q[0] - q[2])),
        fma(weights[0] * squares[0], q[1] - q[0], weights[2] * squares[2] * (q[1] - q[2])),
        fma(weights[0] * squares[0], q[2] - q[0], weights[1] * squares[1] * (q[2] - q[1])),
    )


@kernel
def _drag_rate(m, g, r, u):
    """Returns d(drag and resistance) / du of the force -(rho |u| A_d + resistance) u of an ellipsoid.

    r: the semi-axes;  u: the velocity, with the direction e.  The effective drag area A_d depends on the projected area
    A = pi face sqrt(nn / ne), with n = q e (products of components), nn = n . n, ne = n . e:

        -(rho |u| A_d + resistance) 1 - rho |u| A_d e e^T - rho |u| (C_blunt - C_slender) e (|u| dA/du)^T
    """
    rho, fluid = m.opt_density[0], m.geom_fluid[g]
    e, speed = normalize3(u)
    q, face = face_areas(r)
    n = times3(q, e)
    nn, ne = dot(n, n), dot(n, e)
    area = PI * face * sqrt(nn / fmax(ne, TINY))
    _, resistance = stokes_resistance(m, r)

    # |u| dA/du_i = pi face / sqrt(ne^3 nn) (ne q_i - nn) n_i, and ne q_i - nn = sum over j of q_j e_j^2 (q_i - q_j)
    factor = PI * face / fmax(ne * sqrt(ne * nn), TINY)
    area_rate = factor * times3(n, _weighted_differences(q, q, times3(e, e)))
    by_area = -(rho * speed * (fluid.blunt - fluid.slender)) * e

    s = -(rho * speed * drag_area(m, g, r, area))
    diagonal = s - resistance
    at_fixed_area = _diagonal(Vec3(diagonal, diagonal, diagonal)) + _outer(s * e, e)
    return at_fixed_area + _outer(by_area, area_rate)


@kernel
def _kutta_rate(m, g, r, u):
    """Returns d(Kutta lift) / du; the lift is c |u|^2 sqrt(ne / nn) l, with l = ne e - n.

    e is the direction of u, n = q e (products of components), ne = n . e, nn = n . n, and c = pi face C_K rho.  By the
    product rule the derivative is factor = c |u| / sqrt(nn ne) times the sum of

        that of |u|^2 l             ne (2 e n^T - n e^T - ne e e^T + ne 1 - diag(q))
        that of sqrt(ne / nn)       l ((q - q^2 ne / nn) e)^T

    For a sphere q = 1 and the lift is 0.  So that its derivative is exactly 0, too, terms that cancel are grouped:

        ne (2 e n^T - n e^T - ne e e^T) = 2 ne (e n^T - n e^T) - ne l e^T
        excess = q - ne, the component of q beyond its mean;   l = -excess e,   ne (ne 1 - diag(q)) = -ne diag(excess)
    """
    e, speed = normalize3(u)
    q, face = face_areas(r)
    n = times3(q, e)
    nn, ne = dot(n, n), dot(n, e)
    factor = PI * face * m.geom_fluid[g].kutta * m.opt_density[0] * speed / fmax(sqrt(nn * ne), TINY)
    excess = _weighted_differences(q, Vec3(1.0, 1.0, 1.0), times3(e, e))
    l = -times3(excess, e)
    ratio = ne / fmax(nn, TINY)
    # l by_l^T collects the terms l ((q - q^2 ne / nn) e)^T and -ne l e^T
    by_l = Vec3(e[i] * fma(-q[i] * q[i], ratio, q[i] - ne) for i in range(3))
    antisymmetric = 2.0 * ne * (_outer(e, n) - _outer(n, e))
    return factor * (_outer(l, by_l) + (antisymmetric + _diagonal(-ne * excess)))


@kernel
def _times_diagonal(A, diagonal):
    """Returns A times the diagonal matrix with these values."""
    return Mat3(A[3 * r + c] * diagonal[c] for r in range(3) for c in range(3))


@kernel
def _lift_rates(m, d, g, r, w, u):
    """Returns rates of added mass, Magnus and Kutta lift: moment by w, moment by u, force by w, force by u.

    moment = P x u + L x w, force = P x w + Magnus (w x u) + Kutta, with P = rho mass u and L = rho inertia w; so for
    example d(L x w)/dw = [L]x - [w]x rho inertia.   r: the semi-axes;  w, u: angular and linear velocity.
    """
    rho = m.opt_density[0]
    mass, inertia = added_mass(m, g)
    L, P = added_momentum(m, g, w, u)
    minus_mass, minus_inertia = -rho * mass, -rho * inertia
    wx, ux, Px = _cross_matrix(w), _cross_matrix(u), _cross_matrix(P)
    magnus = m.geom_fluid[g].magnus * rho * volume(r)
    return (
        _cross_matrix(L) + _times_diagonal(wx, minus_inertia),
        Px + _times_diagonal(ux, minus_mass),
        Px - magnus * ux,
        _times_diagonal(wx, minus_mass) + magnus * wx + _kutta_rate(m, g, r, u),
    )


# ---- at the centre of mass of the tree -------------------------------------------------------------------------------
@kernel
def _add_rows(d, i, first, left, right, scale, mask):
    """Adds scale (left, right), two 3 x 3 matrices, to rows first to first + 2 of body i's crb_drag, in the mask."""
    for k in unrolled(range(3)):
        old = d.crb_drag[i, first + k]
        row = Force(join(left.rows[k], right.rows[k]))
        d.crb_drag[i, first + k] = where(mask, fma(scale, row, old), old)


@kernel
def _add_rates_at_point(m, d, i, pos, R, rates, scale, mask):
    """Adds rates at a point in the axes of R, moved to the com of the tree, to the matrix crb_drag of body i.

    rates: four 3 x 3 matrices: moment by w (aa), moment by u (al), force by w (la), force by u (ll); pos: the point;
    scale: factor of the rates; mask: worlds to which they are added.
    With r from the com to the point, a rotation moves the point by w x r = -[r]x w, and its force has the moment r x f:

        ll' = ll,   al' = al + [r]x ll,   la' = la - ll [r]x,   aa' = aa + [r]x la - al' [r]x
    """
    rx = _cross_matrix(pos - d.subtree_com[m.body_rootid[i]])
    aa = _rotated(R, rates[0])
    al = _rotated(R, rates[1])
    la = _rotated(R, rates[2])
    ll = _rotated(R, rates[3])
    al = al + rx @ ll
    aa = aa + (rx @ la - al @ rx)
    la = la - ll @ rx
    _add_rows(d, i, first=0, left=aa, right=al, scale=scale, mask=mask)
    _add_rows(d, i, first=3, left=la, right=ll, scale=scale, mask=mask)


@kernel
def _add_box(m, d, i, mask):
    """Adds the rates of body i's box to its matrix crb_drag, in worlds of the mask."""
    pos = d.xipos[i]
    R = body_axes(m, d, i)
    w, u = velocity_in_fluid(m, d, i, pos, R)
    box, has_mass = inertia_box(m, i)
    angular, linear = _box_rates(m, box, w, u)
    zero = Mat3(zeros(9))
    rates = (_diagonal(angular), zero, zero, _diagonal(linear))
    _add_rates_at_point(m, d, i, pos, R, rates, scale=1.0, mask=has_mass & mask)


@kernel
def _add_ellipsoid(m, d, i, g, dissipative, mask):
    """crb_drag += d(wrench)/d(motion) of the fluid on geom g, a matrix of body i, in worlds of the mask.

    dissipative: only drag and resistance, without added mass and lift.
    """
    pos, R = geom_pose(m, d, g)
    r = semi_axes(m, g)
    w, u = velocity_in_fluid(m, d, i, pos, R)
    zero = Mat3(zeros(9))
    # moment by w, moment by u, force by w, force by u
    rates = (_torque_rate(m, g, r, w), zero, zero, _drag_rate(m, g, r, u))
    if not dissipative:
        aa, al, la, ll = _lift_rates(m, d, g, r, w, u)
        rates = rates[0] + aa, al, la, rates[3] + ll
    scale = m.geom_fluid[g].scale
    # a massless body or a geom with scale 0 has no force
    _add_rates_at_point(m, d, i, pos, R, rates, scale, (scale != 0.0) & (m.body_mass[i] >= MINVAL) & mask)


@kernel
def _store_body_matrix(m, d, i, dissipative):
    """crb_drag of body i <- d(wrench) / d(velocity) of its ellipsoids; in worlds where it has none, of its box.

    dissipative: 1: only drag and resistance; 0: also added mass and lift.
    """
    ellipsoids = has_ellipsoids(m, i)
    for k in range(6):
        d.crb_drag[i, k] = zeros(6)
    if any_(not_(ellipsoids)):
        _add_box(m, d, i, not_(ellipsoids))
    if any_(ellipsoids):
        for g in body_geoms(m, i):
            if any_(m.geom_fluid[g].scale != 0.0):
                _add_ellipsoid(m, d, i, g, dissipative, ellipsoids)


@stage
def composite_drag(m, d, dissipative):
    """crb_drag <- velocity derivatives of the fluid's wrench on the subtree of each body.

    dissipative: 1: only drag and resistance; 0: also added mass and lift.

    Reads:  cvel, xquat, xpos, xmat, xipos, subtree_com.   Writes: crb_drag (nbody, 6, 6), rows of force.
    """
    # a body outside all trees cannot move
    for i in range(1, m.nbody):
        if m.body_treeid[i] >= 0:
            _store_body_matrix(m, d, i, dissipative)
    # children before their parents
    for i in range(m.nbody - 1, 0, -1):
        parent = m.body_parentid[i]
        if m.body_treeid[i] >= 0 and parent > 0 and m.body_treeid[parent] >= 0:
            for k in range(6):
                d.crb_drag[parent, k] += d.crb_drag[i, k]


# ---- joint space -----------------------------------------------------------------------------------------------------
@kernel
def drag_times(d, b, S):
    """Returns B^c_b S: the force on the subtree of body b by a motion S."""
    return Force(dot(d.crb_drag[b, k], S) for k in range(6))


@kernel
def drag_transposed_times(d, b, S):
    """Returns B^c_b^T S: the sum of the rows of B^c_b, times the components of S."""
    # from the last row to the first, in the order of `dot` in `drag_times`
    f = S[5] * d.crb_drag[b, 5]
    for k in unrolled(range(4, -1, -1)):
        f = fma(S[k], d.crb_drag[b, k], f)
    return f


@kernel
def fluid_acts(m):
    """Returns whether some world of the tile has a fluid and passive forces are enabled."""
    return passive_forces_act(m) and any_(fluid_worlds(m))


@kernel
def add_fluid_vel(m, d, s, A):
    """A += s d qfrc_fluid / d qvel, on the pattern of qDeriv, in worlds with a fluid; writes crb_drag.

    D_jk = S_j . B S_k  and  D_kj = S_k . B S_j = (B^T S_k) . S_j for each ancestor j of k, and D_kk.
    """
    has_fluid = fluid_worlds(m)
    composite_drag(m, d, dissipative=0)  # writes crb_drag (B)
    for k in range(m.nv):
        S_k, b = d.cdof[k], m.dof_bodyid[k]
        BS = drag_times(d, b, S_k)
        BtS = drag_transposed_times(d, b, S_k)
        # row k of A starts with the ancestors of k; D_diag is the index of the diagonal in the row
        row, nancestors = m.D_rowadr[k], m.D_diag[k]
        for c in range(nancestors):
            j = m.D_colind[row + c]
            S_j = d.cdof[j]
            A[row + c] = where(has_fluid, fma(s, dot(BtS, S_j), A[row + c]), A[row + c])
            # entry (j, k): the DoFs from j to k descend from j, and follow the diagonal of row j in order
            jk = m.D_rowadr[j] + m.D_diag[j] + k - j
            A[jk] = where(has_fluid, fma(s, dot(BS, S_j), A[jk]), A[jk])
        kk = row + nancestors
        A[kk] = where(has_fluid, fma(s, dot(BS, S_k), A[kk]), A[kk])


@kernel
def add_fluid_metric(m, d, s, dissipative, A):
    """A += s times the symmetric part of d qfrc_fluid / d qvel, on M's pattern; writes crb_drag.

    Entry (k, j) is S_j . (B + B^T) S_k / 2.  dissipative: only drag and resistance.
    """
    has_fluid = fluid_worlds(m)
    composite_drag(m, d, dissipative)  # writes crb_drag (B)
    for k in range(m.nv):
        S_k, b = d.cdof[k], m.dof_bodyid[k]
        f = 0.5 * (drag_times(d, b, S_k) + drag_transposed_times(d, b, S_k))
        # row k of A: the ancestors of k, and k itself
        for e in inertia_entries(m, k):
            rate = dot(f, d.cdof[m.M_colind[e]])
            A[e] = where(has_fluid, fma(s, rate, A[e]), A[e])
