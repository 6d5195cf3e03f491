"""Finds the impact of two moving convex shapes by conservative advancement, one world at a time.

At each pose the planes through the nearest points, orthogonal to the normal n, bound both shapes.  They close at most
by v = n . (dx1 - dx2) + |dw1| r1 + |dw2| r2 per step.  So the poses advance by (dist - target) / v without an overlap,
until the distance is at most half of the clearance above the target,

    target = margin + clearance,    clearance = 0.02 (dist(0) - margin).

Each shape translates by dx and turns about its centre by dw, in fractions of the step that sum up to the time of
impact t < 1.  The closing rate at impact is that of the nearest points, or the mean until t if that is larger.
m1 and d1 are the model and the data of one world.  Of shape `side`, sweep.step[side] is dx, sweep.spin[side] is dw, and
sweep.travel[side] is |dx| + |dw| r.  facet.kind, the facet where a search ended, is NO_FACET for a plane.
Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Conservative advancement"; the tolerance, the number of
    advances and the rate at impact were found by experiment with 4.0.1.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.convex.facet import NO_FACET
from featherlane.engine.collision.convex.pair import closest
from featherlane.engine.collision.distance import plane_distance

CLEARANCE = 0.02  # target distance beyond the margin, relative to the distance at the start
ADVANCES = 16  # maximum number of advances
SEARCH, IMPACT, MISS = range(3)


@kernel
def measure_distance(m1, d1):
    """Computes the distance, the normal and the nearest points of the shapes at their present poses, into convex.*."""
    if d1.shapes.type[0] == PLANE:
        plane_distance(m1, d1)
        d1.facet.kind[0] = NO_FACET
    else:
        closest(m1, d1)


@kernel
def move_shape(d1, side, fraction):
    """Moves a shape by a fraction (0 to 1) of its motion in the step: translation, and rotation about its centre."""
    d1.shapes.pos[side] = fma(fraction, d1.sweep.step[side], d1.shapes.pos[side])
    rotation = fraction * d1.sweep.spin[side]
    if dot(rotation, rotation) > MINVAL * MINVAL:
        d1.shapes.mat[side] = rotation_vector_quat(rotation).matrix @ d1.shapes.mat[side]


@kernel
def point_step(d1, side):
    """Returns the displacement of a shape's nearest point in the whole step: dx + dw x arm [m]."""
    arm = d1.convex.witness[side] - d1.shapes.pos[side]
    return d1.sweep.step[side] + cross(d1.sweep.spin[side], arm)


@stage
def find_impact(m1, d1):
    """Moves the two shapes to their impact within the step, if there is one.

    Reads:  shapes.* at the start of the step; sweep.step (2, 3), sweep.spin (2, 3), sweep.travel (2,), sweep.margin,
            sweep.tolerance.
    Writes: sweep.state: IMPACT or MISS; sweep.time, sweep.rate; shapes.* and convex.* at impact.
    Scratch: what `closest` writes.
    """
    margin, tolerance = d1.sweep.margin[0], d1.sweep.tolerance[0]
    step1, step2 = d1.sweep.step[0], d1.sweep.step[1]
    # the sum of the two shapes' travels, and its part by rotation, |dw1| r1 + |dw2| r2
    total = d1.sweep.travel[0] + d1.sweep.travel[1]
    rotation_travel = total - norm3(step1) - norm3(step2)
    d1.shapes.limit[0] = margin + total
    measure_distance(m1, d1)
    start_dist = d1.convex.dist[0]
    advances = 0
    # a miss if the shapes touch already, or cannot travel that far
    state = MISS if start_dist <= margin or start_dist - margin > total else SEARCH
    clearance = CLEARANCE * (start_dist - margin)
    target = margin + clearance
    close_gap = fmax(0.5 * clearance, tolerance)
    t = 0.0
    dist = start_dist
    while state == SEARCH:
        # bound: the largest closing displacement per step, v of the module docstring
        gap = dist - target
        bound = dot(d1.convex.normal[0], step1 - step2) + rotation_travel
        if gap <= close_gap or advances == ADVANCES:
            state = IMPACT
        elif bound <= MINVAL or t + gap / bound >= 1.0:
            state = MISS
        else:
            fraction = gap / bound
            t = t + fraction
            advances = advances + 1
            move_shape(d1, 0, fraction)
            move_shape(d1, 1, fraction)
            measure_distance(m1, d1)
            dist = d1.convex.dist[0]
            # the shapes cannot travel that far in the rest of the step
            if dist - margin > (1.0 - t) * total:
                state = MISS
    if state == IMPACT:
        rate = dot(d1.convex.normal[0], point_step(d1, side=0) - point_step(d1, side=1))
        gap = dist - target
        time = t
        if gap > close_gap:
            # the advances did not converge: the rest of the gap closes at the rate of the nearest points
            if rate <= MINVAL or dist - margin > (1.0 - t) * rate:
                state = MISS
            else:
                time = t + gap / rate
        d1.sweep.time[0] = time
        d1.sweep.rate[0] = fmax((start_dist - dist) / fmax(t, MINVAL), rate)
        if d1.sweep.rate[0] <= 0.0:
            state = MISS
    d1.sweep.state[0] = state
