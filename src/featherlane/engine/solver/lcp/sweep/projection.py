"""Admissible sets of a row, or of the rows of a contact: boxes, pyramids with limits by the normals, and cones.

Bounds of a row of friction (findex = k >= 0) follow Coulomb's law at the current normal:

    pyramid   |x_i| <= mu_i |x_k| + add_i, each row alone
    cone      sum (x_i / mu_i)^2 <= (x_k + a)^2 over the rows of the contact, a = min add_i / mu_i;
              a row without mu has |x_i| <= add_i

For a cone the rows of a contact are consecutive: the normal k, then all rows with findex k.  A row of friction
elsewhere has its own limits, as in a pyramid.  Lengths across the normal are measured in s_i = x_i / mu_i, in which the
cone is circular: |s| <= x_k + a, x_k >= 0.  A mu beyond 1e8 counts as 1e8.  A length below 1e-154 counts as
0, because its square underflows.
Symbols: p: the record of the problems;  i: a row, of lcp.n, with lcp.lo, hi, add;  lcp.diag: A_ii;  k: a normal row,
    with `count` friction rows k + 1, k + 2, ...;  u: an array of the length of x that is projected in place;  mu_i: the
    coefficient, in lcp.hi_i if findex_i >= 0.
`x + 0.0`: x, in which -0 becomes 0.
"""

from featherlane.engine.prelude import *

TINY = 1e-300  # least divisor: 1 / x of a smaller x may overflow
ROUGHEST = 1e8  # largest coefficient of friction on a cone: finite, so that lengths across can be measured
FLOOR = 1e-12  # A_ii up to FLOOR max A_jj counts as 0
INF = float("inf")


# ---- a row -----------------------------------------------------------------------------------------------------------
@kernel
def row_bounds(p, x, i):
    """Returns (lower, upper) bound of row i at x."""
    k = p.lcp.findex[i]
    if k >= 0:
        load = x[k] * where(x[k] < 0.0, -1.0, 1.0)  # |x_k|, the normal force
        # without load there is no friction, whatever mu: inf * 0 would be NaN
        hi = where(load > 0.0, p.lcp.hi[i] * load, 0.0) + p.lcp.add[i]
        lo = -hi
    else:
        lo, hi = p.lcp.lo[i] + 0.0, p.lcp.hi[i] + 0.0  # -0 becomes 0, the zero to which `clip` sets x
    return lo, hi


@kernel
def project_box(p, x, i, u):
    """Returns the value u clipped to the bounds that row i has at x."""
    lo, hi = row_bounds(p, x, i)
    return clip(u, lo, hi)


# ---- a cone ----------------------------------------------------------------------------------------------------------
@kernel
def friction_count(p, k):
    """Returns the number of consecutive friction rows behind row k, all with findex k."""
    count = 0
    while k + count + 1 < p.lcp.n[0] and p.lcp.findex[k + count + 1] == k:
        count += 1
    return count


@kernel
def friction_rows(k, count):
    """Returns the range of the `count` friction rows behind normal row k."""
    return range(k + 1, k + 1 + count)


@kernel
def in_cone(p, i):
    """Checks whether row i is one of the consecutive friction rows behind its normal row, which form its cone."""
    k = p.lcp.findex[i]
    return k >= 0 and k < i and i <= k + friction_count(p, k)


@kernel
def mu_of(p, i):
    """Returns mu of friction row i on a cone, at most ROUGHEST."""
    return fmin(p.lcp.hi[i], ROUGHEST)


@kernel
def cone_offset(p, k, count):
    """Returns a = min add_i / mu_i over friction rows with mu > 0: the cone's tip is at x_k = -a.

    It is 0 without such rows.
    """
    offset, none_yet = 0.0, true_mask(p)  # none_yet: worlds with no row with mu > 0 so far
    for i in friction_rows(k, count):
        has_mu = mu_of(p, i) > 0.0
        row_offset = p.lcp.add[i] / where(has_mu, mu_of(p, i), 1.0)
        offset = where(has_mu, where(none_yet, row_offset, fmin(offset, row_offset)), offset)
        none_yet = none_yet & (mu_of(p, i) <= 0.0)
    return offset


@kernel
def length_across(p, u, k, count):
    """Returns |s| of the friction rows of u, s_i = u_i / mu_i; rows without mu are not part of s."""
    square = 0.0
    for i in friction_rows(k, count):
        s_i = where(mu_of(p, i) > 0.0, u[i] / fmax(mu_of(p, i), TINY), 0.0)
        square = fma(s_i, s_i, square)
    return sqrt(square)


@kernel
def scale_across(p, u, k, count, scale):
    """Multiplies friction rows of u by `scale`; clips those without mu to |u_i| <= add_i."""
    for i in friction_rows(k, count):
        clipped = clip(u[i], -p.lcp.add[i], p.lcp.add[i])
        u[i] = where(mu_of(p, i) > 0.0, scale * u[i], clipped)


@kernel
def project_disc(p, u, k, count, normal):
    """Projects the friction rows of u to the disc |s| <= max(normal, 0) + a, the cone's section at a normal force."""
    radius = fmax(normal, 0.0) + cone_offset(p, k, count)
    length = length_across(p, u, k, count)
    outside = length > radius
    scale = where(outside, radius / where(outside, length, 1.0), 1.0)
    scale_across(p, u, k, count, scale)


@kernel
def nearest_on_cone(normal, length, a):
    """Returns (normal n, length |s|) of the point of |s| <= n + a, n >= 0, that is nearest to (`normal`, `length`).

    The set is a second-order cone with its tip at n = -a, cut off at n = 0.  If the nearest point of the full cone
    has n < 0, the nearest point of the set lies on the cut, a disc of radius a.
    Source: S. Boyd and L. Vandenberghe, "Convex Optimization", 2004, sec. 8.1 (exercise 8.3).
    """
    height = normal + a
    inside = length <= height
    in_polar = length <= -height  # the tip is nearest
    # n + a of the nearest point of the full cone: on its surface, this is also |s|
    nearest_height = where(inside, height, where(in_polar, 0.0, 0.5 * (height + length)))
    on_cut = nearest_height < a
    return where(on_cut, 0.0, nearest_height - a), fmin(length, where(on_cut, a, nearest_height))


@kernel
def project_cone(p, u, k, count):
    """Projects normal row k and its friction rows, in u, to the cone: the nearest point in (x_k, s)."""
    length = length_across(p, u, k, count)
    normal, nearest_length = nearest_on_cone(u[k], length, cone_offset(p, k, count))
    u[k] = normal
    shrinks = nearest_length < length
    scale = where(shrinks, nearest_length / where(shrinks, length, 1.0), 1.0)
    scale_across(p, u, k, count, scale)


# ---- steps -----------------------------------------------------------------------------------------------------------
@kernel
def largest_diagonal(p):
    """Returns a = max A_ii; 1 if A has no diagonal at all."""
    largest = 0.0
    for i in range(p.lcp.n[0]):
        largest = fmax(p.lcp.diag[i], largest)
    return where(largest > 0.0, largest, 1.0)


@kernel
def set_steps(p, cone):
    """Computes lcp.step, the change of x_i per unit of w_i.

        1 / A_ii                       if cone = 0, and for all rows but those of friction on a cone
        mu_i^2 / sum of mu_j^2 A_jj    if cone = 1, for friction row i of a cone, over its friction rows j: the steps
                                       are equal in the metric of s, and the sum, the trace of their block of A there,
                                       bounds every eigenvalue
    If A_ii = 0, w does not depend on the force of the row.  With finite bounds, its step is long, so that it comes to
    one of them; else the step is short.
    """
    largest = largest_diagonal(p)
    floor = FLOOR * largest
    for i in range(p.lcp.n[0]):
        limited = p.lcp.hi[i] - p.lcp.lo[i] < INF  # both bounds are finite
        # in place of A_ii = 0: the step 1 / floor is long, 1 / largest short
        substitute = where(limited, floor, largest)
        p.lcp.step[i] = 1.0 / where(p.lcp.diag[i] > floor, p.lcp.diag[i], substitute)
    for k in range(p.lcp.n[0] if cone != 0 else 0):
        set_disc_steps(p, k, friction_count(p, k))


@kernel
def set_disc_steps(p, k, count):
    """Sets lcp.step of the friction rows behind row k to mu_i^2 / sum mu_j^2 A_jj, given lcp.step_j = 1 / A_jj."""
    total = 0.0
    for i in friction_rows(k, count):
        total = fma(mu_of(p, i) * mu_of(p, i), 1.0 / p.lcp.step[i], total)
    for i in friction_rows(k, count):
        has_mu = mu_of(p, i) > 0.0
        p.lcp.step[i] = where(has_mu, mu_of(p, i) * mu_of(p, i) / where(has_mu, total, 1.0), p.lcp.step[i])


@kernel
def set_cone_steps(p):
    """Computes lcp.step, the change of x_i per unit of w_i, for projections on whole cones.

    mu_i^2 / max of mu_j^2 A_jj    for a normal row with friction (mu = 1) and its friction rows with mu_i > 0, over
                                   these rows j: equal steps in (x_k, s), as the projection requires
    as in `set_steps`              for all other rows: 1 / A_ii
    """
    set_steps(p, cone=0)  # lcp.step = 1 / A_ii
    for k in range(p.lcp.n[0]):
        count = friction_count(p, k)
        largest = 1.0 / p.lcp.step[k]  # mu_j^2 A_jj
        for i in friction_rows(k, count):
            largest = fmax(mu_of(p, i) * mu_of(p, i) / p.lcp.step[i], largest)
        if count > 0:
            p.lcp.step[k] = 1.0 / largest
        for i in friction_rows(k, count):
            has_mu = mu_of(p, i) > 0.0
            p.lcp.step[i] = where(has_mu, mu_of(p, i) * mu_of(p, i) / largest, p.lcp.step[i])
