"""Computes contacts of a signed distance field (SDF) and another shape by minimization from several starting points.

Eight starting points are minimized at once, in the lanes of one world, so that one world and a batch do equal work.
The two shapes are fields A (the second geom, an SDF) and B, and points are in the frame of A.  Each starting point
descends on A + B + |max(A, B)|, whose minimum lies in the intersection of the shapes, and then one step on max(A, B).
If the result is in both shapes, it is a contact: depth -max(A, B), normal along the gradient of B - A.
The argument `exact` is 1 if the minimization has a tolerance, else 0; inside a box the field is then the exact
distance.  m1 and d1 are the model and the data of one world.  `eights(field)` is a field as rows of eight values, one
per point.  Shape side of a pair has the pose shapes.mat[side], shapes.pos[side] and the bounding box
shapes.box[side]; convex.mat[0], convex.pos[0] is the pose of A in the frame of B.  shapes.field[side] has the kind and
the address of a field.  Contacts are stored in manifold.*: their number manifold.count, then pos, dist and normal.
Source: MuJoCo engine_collision_sdf.c (mjc_SDF, stepGradient, addPreContact).  Deviation: the gradients are analytic
    (`signed_distance`), and a value that is not finite is no contact.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.support import look_from_first
from featherlane.engine.collision.signed_distance import signed_distance
from featherlane.engine.lanes.rows import row_type

LANES = 8  # points at once; rows of descent.trial, .jet, .normal have one lane per point
NOWHERE = 1e10  # value of a failed descent, and largest component of a gradient
DECREASE = 0.1  # the line search accepts this fraction of the decrease that the slope promises
TRIALS = 15  # step factors of the line search: 1, 1/2, ... until below 1e-4
MOST_STEPS, SWEEPS = 200, 6  # steps of the converged minimization, sweeps over the pairs of planes in each
MERGE = 10.0  # tolerances: contacts that are nearer to each other are one
Jets = row_type("Jets", "b bx by bz a ax ay az")  # fields B and A, each with its gradient
OVERLAP, DEPTH = 0, 1  # functions to descend on: A + B + |max(A, B)|, max(A, B)


# ---- starting points -------------------------------------------------------------------------------------------------
@kernel
def halton(index, base):
    """Returns member `index` of the Halton sequence, in [0, 1): its digits in a base, mirrored at the point."""
    x = 0.0
    weight = 1.0 / base
    while index > 0:
        x += weight * (index % base)
        index = index // base
        weight = weight / base
    return x


@kernel
def box_in_frame(R, p, box):
    """Returns (lower, upper): the corners of the axis-aligned bounds of a box that is moved by the pose (R, p).

    Their half sides are sum over k of |R_ik| size_k; row i of R begins at R[3 i].
    """
    centre = R @ box.centre + p
    size = box.half
    half = Vec3(
        fma(fabs(R[row]), size[0], fma(fabs(R[row + 1]), size[1], fabs(R[row + 2]) * size[2])) for row in (0, 3, 6)
    )
    return centre - half, centre + half


@kernel
def common_box(R, p, a, b):
    """Returns (lower, upper): the corners of the intersection of box a and the bounds of box b, moved by (R, p)."""
    low, high = box_in_frame(R, p, b)
    return fmax(a.centre - a.half, low), fmin(a.centre + a.half, high)


@kernel
def fields_apart(m, d, g, h, limit, near):
    """Returns the mask of worlds where the bounding box of geom g and a box around that of h are disjoint.

    Both boxes are along the axes of g.
    limit, near: unused; the signature is that of `boxes_separate`.
    """
    R = d.geom_xmat[g]
    p = R.T @ (d.geom_xpos[h] - d.geom_xpos[g])
    low, high = common_box(R.T @ d.geom_xmat[h], p, m.geom_aabb[g], m.geom_aabb[h])
    return (high[0] < low[0]) | (high[1] < low[1]) | (high[2] < low[2])


# ---- the two fields at eight points ----------------------------------------------------------------------------------
@stage
def field_jets(m1, d1, side, exact):
    """Computes value and gradient of one shape's field at eight points, all in the frame of A.

    Args:
        side: 0: the field B of the first shape; 1: the field A of the second.
        exact: 1 if the minimization has a tolerance.

    Reads:  shapes.field, shapes.size, convex.pos, convex.mat, descent.trial (3, 8) [m].
    Writes: descent.jet (2, 4, 8) [m, 1]: value and gradient for each shape.
    """
    x, jet = eights(d1.descent.trial), eights(d1.descent.jet)
    R = d1.convex.mat[0]
    p = Vec3(x[0:3])
    if side == 0:
        p = R @ p + d1.convex.pos[0]  # into the frame of B
    size = d1.shapes.size[side]
    value, slope = signed_distance(m1, d1.shapes.field[side, 0], d1.shapes.field[side, 1], size, p, exact)
    if side == 0:
        slope = R.T @ slope  # back into the frame of A
    jet[4 * side] = value
    jet[4 * side + 1 : 4 * side + 4] = slope


@kernel
def jets_at(m1, d1, x, exact):
    """Returns the `Jets` at eight points x of A's frame.

    exact: 1 with a tolerance.   Writes: descent.trial, descent.jet.
    """
    eights(d1.descent.trial)[0:3] = x
    # descent.jet[0] <- field B, descent.jet[1] <- field A
    field_jets(m1, d1, side=0, exact=exact)
    field_jets(m1, d1, side=1, exact=exact)
    jet = eights(d1.descent.jet)
    return Jets(jet[0:8])


@kernel
def slope_of_b(jets):
    """Returns the gradient of B."""
    return Vec3(jets.bx, jets.by, jets.bz)


@kernel
def slope_of_a(jets):
    """Returns the gradient of A."""
    return Vec3(jets.ax, jets.ay, jets.az)


@kernel
def objective(jets, kind):
    """Returns (value, gradient) of the function that a descent minimizes.

    jets: the fields A and B with their gradients; kind: OVERLAP for A + B + |max(A, B)|, DEPTH for max(A, B).
    """
    b, a = jets.b, jets.a
    a_larger = jets.a > jets.b
    larger = where(a_larger, a, b)
    slope = where(a_larger, slope_of_a(jets), slope_of_b(jets))
    value = larger
    if kind == OVERLAP:
        sign = where(larger > 0.0, 1.0, -1.0)
        value = a + b + fabs(larger)
        slope = slope_of_b(jets) + slope_of_a(jets) + sign * slope
    return value, slope


@kernel
def descend(m1, d1, x, jets, kind, iterations, exact):
    """Descends along the gradient with a line search; returns (point, jets there, value, mask of failed descents).

    A step is accepted if the value falls by the fraction DECREASE of what the slope promises; otherwise it is halved.
    Of TRIALS trials, the last one is accepted if it is not higher than the start of the step; if it is higher, the
    descent ends at this start.  A descent fails if its gradient, or its point, is not finite.

    Args:
        x, jets: eight points, and the fields there.
        kind: OVERLAP or DEPTH.
        iterations: maximum number of steps.
        exact: 1 if the minimization has a tolerance.
    """
    alive = x[0] == x[0]  # not NaN; a point is NaN only if a pose is not finite
    failed = not_(x[0] == x[0])
    value = where(alive, NOWHERE, x[0])
    for _ in range(iterations):
        if not any_(alive):
            break
        start, slope = objective(jets, kind)
        predicted = dot(slope, slope)  # decrease that the gradient predicts for the factor 1
        is_finite = (fabs(slope[0]) <= NOWHERE) & (fabs(slope[1]) <= NOWHERE) & (fabs(slope[2]) <= NOWHERE)
        failed = failed | (alive & not_(is_finite))
        alive = alive & is_finite
        origin, origin_jets, searching = x, jets, alive
        factor = 1.0
        for _ in range(TRIALS):
            if not any_(searching):
                break
            trial = origin - factor * slope
            trial_jets = jets_at(m1, d1, where(searching, trial, x), exact)
            trial_value, _ = objective(trial_jets, kind)
            x, value = where(searching, trial, x), where(searching, trial_value, value)
            jets = where(searching, trial_jets, jets)
            # points whose decrease is too small continue the line search with half the factor
            searching = searching & (trial_value - start > -(DECREASE * factor * predicted))
            factor = 0.5 * factor
        # a descent whose last trial is higher returns to the start of the step, and ends
        worse = alive & (start < value)
        x, value, jets = where(worse, origin, x), where(worse, start, value), where(worse, origin_jets, jets)
        alive = alive & not_(worse)
    return x, jets, value, failed


@kernel
def contact_normal(jets):
    """Returns the unit normal from B to A: along grad B - grad A, both of unit length."""
    unit_b, _ = normalize3(slope_of_b(jets))
    unit_a, _ = normalize3(slope_of_a(jets))
    normal, _ = normalize3(unit_b - unit_a)
    return normal


# ---- converged minimization ------------------------------------------------------------------------------------------
@kernel
def shift_weight(weights, total, values, slopes, reach, i, j):
    """Returns (weights, total) after the best shift of weight from plane j to plane i; total is sum_k(w_k slopes_k).

    The dual function sum_k(w_k values_k) - reach |total|^2 / 2 is maximized over the shift t, within w >= 0.
    values, slopes: of the four planes; reach: that of `proximal_step`.
    """
    across = slopes[i] - slopes[j]
    t = (values[i] - values[j] - reach * dot(total, across)) / fmax(reach * dot(across, across), MINVAL)
    t = clip(t, -weights[i], weights[j])
    shifts = tuple(t if k == i else -t if k == j else 0.0 for k in range(4))
    return tuple(weights[k] + shifts[k] for k in range(4)), fma(t, across, total)


@kernel
def proximal_step(values, slopes, reach):
    """Returns the step s that minimizes max_k(values_k + slopes_k . s) + s . s / (2 reach) over four planes.

    s = -reach sum_k(w_k slopes_k) with the weights w >= 0, sum_k(w_k) = 1, that maximize the dual function
    (`shift_weight`), pair by pair.  At the start, the larger one of planes 0 and 1 has all the weight.

    Args:
        values, slopes: of the planes: 0 and 1 are those of B and A at the present point, 2 and 3 those of B and A at
            the other point (`converge`).
        reach: larger values allow longer steps [m].
    """
    starts_on_1 = values[1] > values[0]
    weight0 = where(starts_on_1, 0.0, 1.0)
    weights = (weight0, 1.0 - weight0, 0.0, 0.0)
    total = where(starts_on_1, slopes[1], slopes[0])
    for _ in range(SWEEPS):
        for i, j in ((0, 1), (0, 2), (1, 3), (0, 3), (1, 2), (2, 3)):
            weights, total = shift_weight(weights, total, values, slopes, reach, i, j)
    return -reach * total


@kernel
def converge(m1, d1, x, jets, reach, tolerance):
    """Minimizes max(A, B) from eight points until a step is shorter than the tolerance; returns (point, jets there).

    A step minimizes the maximum of four planes: the linearizations of A and B at the point, and at the point evaluated
    before, which is often on the other side of an edge of the field.  Two decreases of the function are expected: that
    of the planes at the point, and |step|^2 / reach, that of a smooth function.  A step is accepted, and the reach
    doubles, if the function falls by the fraction DECREASE of the larger one; otherwise the reach halves.

    x, jets: eight points, and the fields there; reach: of the first step [m]; tolerance: [m].
    Source: the proximal bundle method, Bonnans et al., Numerical Optimization, 2nd ed., Springer 2006, ch. 10.
    """
    # a point that is NaN does not move, and its reach is NaN
    reach = where(x[0] == x[0], reach, x[0])
    moving = x[0] == x[0]
    # other: the point evaluated before
    other, other_jets = x, jets
    for _ in range(MOST_STEPS):
        if not any_(moving):
            break
        # values of the four planes at x; a plane of the other point that is above the field at x is lowered to it
        slope_b = slope_of_b(jets)
        slope_a = slope_of_a(jets)
        other_slope_b = slope_of_b(other_jets)
        other_slope_a = slope_of_a(other_jets)
        away = x - other
        values = (
            jets.b,
            jets.a,
            fmin(other_jets.b + dot(other_slope_b, away), jets.b),
            fmin(other_jets.a + dot(other_slope_a, away), jets.a),
        )
        step = proximal_step(values, (slope_b, slope_a, other_slope_b, other_slope_a), reach)
        trial = where(moving, x + step, x)
        trial_jets = jets_at(m1, d1, trial, exact=1)
        # start: the function at x; predicted: that of the planes at x, after the step
        start = fmax(jets.b, jets.a)
        predicted = fmax(values[0] + dot(slope_b, step), values[1] + dot(slope_a, step))
        lower = fmax(trial_jets.b, trial_jets.a) <= start - DECREASE * fmax(start - predicted, dot(step, step) / reach)
        accepted = moving & lower
        other = where(accepted, x, trial)
        other_jets = where(accepted, jets, trial_jets)
        x = where(accepted, trial, x)
        jets = where(accepted, trial_jets, jets)
        moving = moving & (norm3(step) > tolerance)
        reach = where(lower, 2.0 * reach, 0.5 * reach)
    return x, jets


# ---- contacts --------------------------------------------------------------------------------------------------------
@kernel
def is_known(d1, n, x):
    """Returns 1 if x is one of the first n points of descent.known, up to MERGE tolerances, else 0."""
    apart = fmax(MERGE * d1.shapes.tolerance[0], MINVAL)
    for i in range(n):
        if norm3(d1.descent.known[i] - x) < apart:
            return 1
    return 0


@kernel
def add_points(d1, kept, n):
    """Appends the first `kept` of eight points as contacts, if they are in both shapes and were not found before.

    manifold.full is set if one of the first n points is such a contact, but is not kept or does not fit.

    Reads: descent.trial, descent.dist, descent.normal; descent.shift, the distance from a point to its contact point,
    along the normal.
    Writes: manifold.*, descent.known.
    """
    R, origin = d1.shapes.mat[1], d1.shapes.pos[1]
    for i in range(n):
        k, dist = d1.manifold.count[0], d1.descent.dist[i]
        x = Vec3(d1.descent.trial[0, i], d1.descent.trial[1, i], d1.descent.trial[2, i])
        if dist <= 0.0 and not is_known(d1, k, x):
            if i < kept and k < d1.nmanifold:
                d1.descent.known[k] = x
                local_normal = Vec3(d1.descent.normal[0, i], d1.descent.normal[1, i], d1.descent.normal[2, i])
                normal = R @ local_normal
                d1.manifold.dist[k] = dist
                d1.manifold.normal[k] = normal
                d1.manifold.pos[k] = fma(d1.descent.shift[i], normal, R @ x + origin)
                d1.manifold.count[0] = k + 1
            else:
                d1.manifold.full[0] = 1


@stage
def field_pair(m1, d1):
    """Computes contacts of a primitive shape or a signed distance field, and a signed distance field.

    The starting points are members of the Halton sequence in the intersection of the two bounding boxes.
    With a tolerance, the minimization converges, and the distance is A + B, the depth of the intersection along the
    normal (MuJoCo: max(A, B), about half of it).

    Reads:  shapes.*, opt_sdf_initpoints, opt_sdf_iterations.
    Writes: manifold.*.
    Scratch: convex.pos, convex.mat, descent.*.
    Cost:   O(opt_sdf_initpoints opt_sdf_iterations), up to TRIALS evaluations of the fields each.
    """
    d1.manifold.count[0] = 0
    look_from_first(d1)
    tolerance = d1.shapes.tolerance[0]
    exact = 1 if tolerance > 0.0 else 0
    # in the frame of B, in which A has the pose (R, p)
    R, p = d1.convex.mat[0], d1.convex.pos[0]
    low, high = common_box(R, p, d1.shapes.box[0], d1.shapes.box[1])
    if low[0] <= high[0] and low[1] <= high[1] and low[2] <= high[2]:
        for first in range(0, m1.opt_sdf_initpoints, LANES):
            # eight starting points in the box, which is in the frame of B, transformed to the frame of A
            for i in range(LANES):
                start = Vec3(fma(high[k] - low[k], halton(first + i, (2, 3, 5)[k]), low[k]) for k in range(3))
                start = R.T @ (start - p)
                d1.descent.trial[0, i], d1.descent.trial[1, i], d1.descent.trial[2, i] = start
            x = Vec3(eights(d1.descent.trial)[0:3])
            jets = jets_at(m1, d1, x, exact)
            x, jets, _, _ = descend(m1, d1, x, jets, OVERLAP, m1.opt_sdf_iterations, exact)
            if exact:
                # the first reach is a tenth of the box's diagonal
                x, jets = converge(m1, d1, x, jets, 0.1 * norm3(high - low), tolerance)
                overlaps = fmax(jets.b, jets.a) <= 0.0
                # NOWHERE: no contact
                value = where(overlaps, jets.b + jets.a, NOWHERE)
                # to the middle between the two surfaces
                shift = 0.5 * (jets.a - jets.b)
            else:
                x, jets, value, failed = descend(m1, d1, x, jets, DEPTH, iterations=1, exact=exact)
                value, shift = where(failed, NOWHERE, value), 0.5 * value
            eights(d1.descent.trial)[0:3] = x
            eights(d1.descent.normal)[0:3] = contact_normal(jets)
            eights(d1.descent.dist)[0], eights(d1.descent.shift)[0] = value, shift
            number = min(LANES, m1.opt_sdf_initpoints - first)
            add_points(d1, number, number)
