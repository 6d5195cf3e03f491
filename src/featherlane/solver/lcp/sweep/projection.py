"""Admissible sets of a row, or of the rows of a contact: boxes, pyramids with limits by the normals, and cones.

Bounds of a row of friction (findex = k >= 0) follow Coulomb's law at the current normal:

    pyramid   |x_i| <= mu_i |x_k| + add_i, each row for itself
    cone      sum (x_i / mu_i)^2 <= (x_k + a)^2 over the rows of the contact, a = min add_i / mu_i;
              a row without mu has |x_i| <= add_i

For a cone the rows of a contact are consecutive: the normal k, then all rows with findex k.  A row of friction
elsewhere has its own limits, as in a pyramid.  Lengths across the normal are measured in s_i = x_i / mu_i, in which the
cone is circular: |s| <= x_k + a, x_k >= 0.  A mu beyond 1e8 counts as 1e8, and a length below 1e-154, whose square
underflows, as 0.
"""

from featherlane.prelude import *

TINY = 1e-300  # smaller lengths count as 0: below it 1 / x overflows
ROUGHEST = 1e8  # largest coefficient of friction on a cone: finite, so that lengths across can be measured
FLOOR = 1e-12  # of the largest diagonal: smaller diagonals count as 0
INF = float("inf")


# ---- a row -----------------------------------------------------------------------------------------------------------
@kernel
def row_bounds(p, x, i):
    """Returns lower and upper bound of row i at x."""
    k = p.lcp.findex[i]
    if k >= 0:
        load = x[k] * where(x[k] < 0.0, -1.0, 1.0)
        # without load there is no friction, not even at mu = inf
        hi = where(load > 0.0, p.lcp.hi[i] * load, 0.0) + p.lcp.add[i]
        lo = -hi
    else:
        lo, hi = p.lcp.lo[i] + 0.0, p.lcp.hi[i] + 0.0
    return lo, hi


@kernel
def project_box(p, x, i, u):
    """Returns the number u clipped to the bounds of row i at x."""
    lo, hi = row_bounds(p, x, i)
    return clip(u, lo, hi)


# ---- a cone ----------------------------------------------------------------------------------------------------------
@kernel
def friction_count(p, k):
    """Returns the number of rows of friction behind row k."""
    n = 0
    while k + n + 1 < p.lcp.n[0] and p.lcp.findex[k + n + 1] == k:
        n += 1
    return n


@kernel
def in_cone(p, i):
    """Checks whether row i follows its normal, together with the other rows of the contact."""
    k = p.lcp.findex[i]
    return k >= 0 and k < i and i <= k + friction_count(p, k)


@kernel
def mu_of(p, i):
    """Returns the coefficient of row i of a cone."""
    return fmin(p.lcp.hi[i], ROUGHEST)


@kernel
def cone_offset(p, k, count):
    """Returns a: the distance of the cone's tip below the origin."""
    a, none = 0.0, true_mask(p)
    for c in range(count):
        i = k + 1 + c
        rough = mu_of(p, i) > 0.0
        share = p.lcp.add[i] / where(rough, mu_of(p, i), 1.0)
        a = where(rough, where(none, share, fmin(a, share)), a)
        none = none & (mu_of(p, i) <= 0.0)
    return a


@kernel
def length_across(p, u, k, count):
    """Returns |s| of the rows of friction, s_i = u_i / mu_i."""
    s = 0.0
    for c in range(count):
        i = k + 1 + c
        v = where(mu_of(p, i) > 0.0, u[i] / fmax(mu_of(p, i), TINY), 0.0)
        s = fma(v, v, s)
    return sqrt(s)


@kernel
def scale_across(p, u, k, count, scale):
    """Multiplies rows of friction by `scale`; clips those without mu to their own bounds."""
    for c in range(count):
        i = k + 1 + c
        alone = clip(u[i], -p.lcp.add[i], p.lcp.add[i])
        u[i] = where(mu_of(p, i) > 0.0, scale * u[i], alone)


@kernel
def project_disc(p, u, k, count, normal):
    """Projects the rows of friction, in u, to the cone's section at that normal force."""
    radius, length = fmax(normal, 0.0) + cone_offset(p, k, count), length_across(p, u, k, count)
    outside = length > radius
    scale_across(p, u, k, count, where(outside, radius / where(outside, length, 1.0), 1.0))


@kernel
def nearest_on_cone(n, length, a):
    """Returns normal and length of the nearest point of |s| <= n + a, n >= 0, to one with that normal and length.

    This is a second-order cone with its tip at n = -a, without its part below n = 0.  If the nearest point of
    the whole cone lies in that part, the nearest one lies on the cut, a disc of radius a.
    Source: S. Boyd and L. Vandenberghe, "Convex Optimization", 2004, sec. 8.1 (exercise 8.3).
    """
    top = n + a
    inside, below = length <= top, length <= -top
    m = where(inside, top, where(below, 0.0, 0.5 * (top + length)))
    cut = m < a
    return where(cut, 0.0, m - a), fmin(length, where(cut, a, m))


@kernel
def project_cone(p, u, k, count):
    """Projects the normal and rows of friction, in u, to the cone in the metric of s."""
    length = length_across(p, u, k, count)
    n, r = nearest_on_cone(u[k], length, cone_offset(p, k, count))
    u[k] = n
    shrinks = r < length
    scale_across(p, u, k, count, where(shrinks, r / where(shrinks, length, 1.0), 1.0))


# ---- steps -----------------------------------------------------------------------------------------------------------
@kernel
def largest_diagonal(p):
    """Returns a = max A_ii; 1 if A has no diagonal at all."""
    most = 0.0
    for i in range(p.lcp.n[0]):
        most = fmax(p.lcp.diag[i], most)
    return where(most > 0.0, most, 1.0)


@kernel
def set_steps(p, cone):
    """Computes lcp.step: the change of a row per unit of w, 1 / A_ii; equal in the metric of s for friction on a cone.

    There it is mu_i^2 / sum mu_j^2 A_jj, because the sum of the diagonal bounds every eigenvalue.
    """
    most = largest_diagonal(p)
    floor = FLOOR * most
    for i in range(p.lcp.n[0]):
        ends = p.lcp.hi[i] - p.lcp.lo[i] < INF  # a force without effect jumps to its better bound, or grows slowly
        least = where(ends, floor, most)
        p.lcp.step[i] = 1.0 / where(p.lcp.diag[i] > floor, p.lcp.diag[i], least)
    if cone != 0:
        for k in range(p.lcp.n[0]):
            set_disc_steps(p, k, friction_count(p, k))


@kernel
def set_disc_steps(p, k, count):
    """Sets the steps of the rows of friction behind row k."""
    s = 0.0
    for c in range(count):
        i = k + 1 + c
        s = fma(mu_of(p, i) * mu_of(p, i), 1.0 / p.lcp.step[i], s)
    for c in range(count):
        i = k + 1 + c
        rough = mu_of(p, i) > 0.0
        p.lcp.step[i] = where(rough, mu_of(p, i) * mu_of(p, i) / where(rough, s, 1.0), p.lcp.step[i])


@kernel
def set_cone_steps(p):
    """Sets lcp.step for moves of whole cones, including the normal: by the largest mu_i^2 A_ii, normal mu = 1."""
    set_steps(p, cone=0)
    for k in range(p.lcp.n[0]):
        count, most = friction_count(p, k), 1.0 / p.lcp.step[k]
        for c in range(count):
            i = k + 1 + c
            most = fmax(mu_of(p, i) * mu_of(p, i) / p.lcp.step[i], most)
        if count > 0:
            p.lcp.step[k] = 1.0 / most
        for c in range(count):
            i = k + 1 + c
            rough = mu_of(p, i) > 0.0
            p.lcp.step[i] = where(rough, mu_of(p, i) * mu_of(p, i) / most, p.lcp.step[i])
