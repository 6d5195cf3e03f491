"""Computes the contacts of a pair within the step, and their distances, for worlds without a contact at its start.

The contact points are those at impact, up to four.  Each is a point of either shape, moved back to the start of the
step with its shape; the contact lies between the two, nearer to that of the faster geom.

The contact's distance makes its row remove the part 1 - t of the closing velocity, so that the geom arrives at the
surface at the end of the step.  With the stiffness k = h^2 K and the damping b = h B of one step, and the closing
displacement w, the row a_ref = -B v - K r does so at

    r = dist - margin = -(1 - t - b) / k w,    under the integrator discrete  -(1 - t - t (b + k)) / k w.

Without stiffness r is minus the width of the impedance.  The LCP contact model has r = t w, a gap that its row closes
at most by the end of the step.  has_metric(m) is true under the integrator discrete only.  solref is (timeconst,
dampratio), solimp is (dmin, dmax, width, midpoint, power).
t is the time of impact as a fraction of the step, sweep.times; w is sweep.rates [m].  Fields of one world have the
singular name: sweep.step, sweep.spin, sweep.travel, sweep.margin, sweep.time and sweep.rate.
m1 and d1 are the model and the data of one world.  geom1 and geom2 are the geoms of the pair, `first` is its first
slot, and `lane` the index of a world in the tile.  sweep.state is IMPACT if the shapes meet within the step.
Of all worlds, sweep.steps, sweep.spins and sweep.travels have the displacements, rotation vectors and travels of the
two geoms, sweep.margins the margins; sweep.found is 1 in worlds with a contact within the step.  sweep.tolerance is the
tolerance of the distance at impact.  manifold.* are the manifold.count contact points of one world.

Imported kernels:

    margin_and_gap, both_present     (margin, gap) of a pair; mask of worlds that have both geoms
    reference_and_impedance          (solref, solimp) of a pair
    with_touching(m, d, x, g, h)     x plus, under the LCP model, the touching distance of two geoms
    is_swept_pair(m, geom1, geom2)   whether the pair is swept: two convex shapes, or a plane and one
    step_motion(m, d, geom)          (displacement, rotation vector, travel) of a geom in the step
    may_pass, spheres_meet           masks of worlds where a travel is long enough to pass through the other geom, and
                                     where the bounding spheres come within a distance during the step
    load_shape(m, d, side, g, lane)  copies a geom of one world to shapes.*
    clear_contact, store_manifold    remove a slot's contact in a mask of worlds; copy manifold.* to slots of one world
    sleeping(m), pair_awake          whether the flag `sleep` is on; mask of worlds where one of two bodies is awake

Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Effective contact distance".
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.frame import frame_of
from featherlane.engine.collision.mixing import both_present, margin_and_gap, reference_and_impedance, with_touching
from featherlane.engine.collision.motion import is_swept_pair, may_pass, spheres_meet, step_motion
from featherlane.engine.collision.slot import clear_contact, load_shape, store_manifold
from featherlane.engine.collision.sweep.clip import impact_points
from featherlane.engine.collision.sweep.impact import IMPACT, find_impact
from featherlane.engine.collision.sweep.occlusion import check_line_of_sight
from featherlane.engine.dynamics.awake import pair_awake, sleeping
from featherlane.engine.model.integrator import has_metric

MINIMP, MAXIMP = 0.0001, 0.9999  # range of an impedance; MINIMP also: least depth without stiffness [m]
TIMECONST, DAMPRATIO = 0.02, 1.0  # MuJoCo's default solref, for one whose signs differ


# ---- one world: the points at impact ---------------------------------------------------------------------------------
@kernel
def at_start(d1, side, point):
    """Returns where a point of a shape is at the start of the step, given its position at impact; in world axes.

    shapes.* has the shape's pose at impact, sweep.pos and sweep.mat its pose at the start.
    """
    local = d1.shapes.mat[side].T @ (point - d1.shapes.pos[side])
    return d1.sweep.mat[side] @ local + d1.sweep.pos[side]


@kernel
def find_impact_points(m1, d1):
    """Computes the contact points of both shapes at impact, and their positions at the start of the step.

    Corners of features count up to the distance shapes.limit.  It is twice the distance at impact (0 for an overlap),
    plus the distance by which the shapes close in the rest of the step, plus the tolerance.
    Writes: shapes.limit, sweep.impact, sweep.start, sweep.normal, manifold.count.
    """
    dist = d1.convex.dist[0]
    rest = d1.sweep.rate[0] * (1.0 - d1.sweep.time[0])
    d1.shapes.limit[0] = 2.0 * fmax(dist, 0.0) + rest + d1.sweep.tolerance[0]
    impact_points(m1, d1)  # writes sweep.impact and manifold.count
    for side in range(2):
        for i in range(d1.manifold.count[0]):
            d1.sweep.start[side, i] = at_start(d1, side, d1.sweep.impact[side, i])
    d1.sweep.normal[0] = d1.convex.normal[0]


@kernel
def check_segment(m, d, start, end, geom1, geom2, lane):
    """Sets sweep.hidden to 1 if a geom hides the end of the segment from its start, else to 0.

    start, end: positions in world axes; geom1, geom2: arguments `geom` and `other` of `check_line_of_sight`.
    """
    d.sweep.hidden[0] = 0
    d.sweep.line[0] = start
    d.sweep.line[1] = end
    check_line_of_sight(m, d, geom1, geom2, lane)


@kernel
def is_hidden(m, d, geom1, geom2, lane, i):
    """Returns whether a geom hides contact i: on the path of one of its two points, or between the points at impact."""
    impact1, impact2 = d.sweep.impact[0, i], d.sweep.impact[1, i]
    check_segment(m, d, d.sweep.start[0, i], impact1, geom1, geom2, lane)
    if d.sweep.hidden[0] == 0:
        check_segment(m, d, d.sweep.start[1, i], impact2, geom2, geom1, lane)
    if d.sweep.hidden[0] == 0:
        # the faster geom, which the obstacle would stop, is the first argument
        if d.sweep.travel[0] < d.sweep.travel[1]:
            geom1, geom2 = geom2, geom1
        check_segment(m, d, impact1, impact2, geom1, geom2, lane)
    return d.sweep.hidden[0] != 0


@kernel
def keep_visible(m, d, geom1, geom2, lane):
    """Stores the visible contacts in manifold.*, with their positions at the start of the step.

    A position is the mean of the contact's two points, weighted with the travels of their geoms.
    """
    weight = d.sweep.travel[0] / (d.sweep.travel[0] + d.sweep.travel[1])
    count = 0
    for i in range(d.manifold.count[0]):
        if not is_hidden(m, d, geom1, geom2, lane, i):
            start1, start2 = d.sweep.start[0, i], d.sweep.start[1, i]
            d.manifold.pos[count] = weight * start1 + (1.0 - weight) * start2
            d.manifold.normal[count] = d.sweep.normal[0]
            count += 1
    d.manifold.count[0] = count


# ---- worlds of a tile ------------------------------------------------------------------------------------------------
@kernel
def load_motion(d, side, lane):
    """Copies the motion of one geom in one world from sweep.steps, sweep.spins and sweep.travels.

    Writes: sweep.step, sweep.spin, sweep.travel; sweep.pos and sweep.mat, its pose at the start of the step.
    """
    d.sweep.step[side] = read_lane(d.sweep.steps, side, lane)
    d.sweep.spin[side] = read_lane(d.sweep.spins, side, lane)
    d.sweep.pos[side] = d.shapes.pos[side]
    d.sweep.mat[side] = d.shapes.mat[side]
    d.sweep.travel[side] = read_lane(d.sweep.travels, side, lane)


@kernel
def sweep_world(m, d, geom1, geom2, first, lane):
    """Replaces the contacts of one world in the pair's slots by those at impact, if one of these is not hidden.

    A contact is hidden if another geom is in the way (`is_hidden`).
    """
    load_shape(m, d, 0, geom1, lane)
    load_shape(m, d, 1, geom2, lane)
    load_motion(d, 0, lane)
    load_motion(d, 1, lane)
    d.sweep.margin[0] = read_lane(d.sweep.margins, 0, lane)
    d.sweep.tolerance[0] = read_lane(m.opt_ccd_tolerance, 0, lane)
    find_impact(m, d)  # writes sweep.state, sweep.time, sweep.rate; shapes.* and convex.* at impact
    if d.sweep.state[0] == IMPACT:
        find_impact_points(m, d)  # writes sweep.impact, sweep.start
        keep_visible(m, d, geom1, geom2, lane)  # writes manifold.*
        if d.manifold.count[0] > 0:
            # a mask of this world only: its contacts at the start of the step are removed
            d.sweep.current[0] = 0.0
            write_lane(d.sweep.current, 0, lane, 1.0)
            for slot in range(first, d.ncon_slot[0]):
                clear_contact(d, slot, d.sweep.current[0] > 0.0)
            store_manifold(d, first, lane)
            write_lane(d.sweep.found, 0, lane, 1.0)
            write_lane(d.sweep.times, 0, lane, d.sweep.time[0])
            write_lane(d.sweep.rates, 0, lane, d.sweep.rate[0])


@kernel
def stiffness_and_damping(m, solref, solimp):
    """Returns (k, b): stiffness and damping of a contact's row in one step, without the factor of the impedance.

    A standard solref (timeconst, dampratio) is positive: k = h^2 / (timeconst dampratio)^2, b = 2 h / timeconst.  A
    direct one (-stiffness, -damping) is negative: k = h^2 stiffness, b = h damping.  Both are bounded as those of a row
    (`refsafe`): timeconst is at least 2 h; under the integrator discrete, k is at most dmax, and b is reduced with it.
    """
    h = timestep(m)
    dmax = clip(solimp[1], MINIMP, MAXIMP)
    is_safe = m.opt_disableflags & DISABLE_REFSAFE == 0
    # a solref with mixed signs is replaced by the default
    has_mixed_signs = ((solref[0] > 0.0) & not_(solref[1] > 0.0)) | (not_(solref[0] > 0.0) & (solref[1] > 0.0))
    ref0, ref1 = where(has_mixed_signs, TIMECONST, solref[0]), where(has_mixed_signs, DAMPRATIO, solref[1])
    is_standard = ref0 > 0.0
    least_timeconst = MINVAL
    if is_safe and not has_metric(m):
        least_timeconst = 2.0 * h
    timeconst, dampratio = fmax(ref0, least_timeconst), fmax(ref1, MINVAL)
    stiffness = where(
        is_standard,
        h * h / fmax(timeconst * timeconst * (dampratio * dampratio), MINVAL),
        -ref0 * (h * h),
    )
    damping = where(is_standard, 2.0 * h / timeconst, -ref1 * h)
    if is_safe and has_metric(m):
        too_stiff = is_standard & (stiffness > dmax)
        # the bound of `limit_to_step` (constraint/end_of_step.py) for the impedance dmax and k = dmax:
        # b / dmax + 1 <= (MAXIMP - dmax) / (dmax (1 - MAXIMP)), MAXIMP - dmax = MAXIMP (1 - dmax) - dmax (1 - MAXIMP)
        most_damping = fmax(MAXIMP * (1.0 - dmax) / fmax((1.0 - MAXIMP) * dmax, MINVAL) - 2.0, 0.0) * dmax
        # k falls to dmax, and b by the root of the same factor
        reduced_damping = damping / sqrt(where(too_stiff, stiffness / dmax, 1.0))
        damping = where(too_stiff, fmin(reduced_damping, most_damping), damping)
        stiffness = where(too_stiff, dmax, stiffness)
    return stiffness, damping


@kernel
def effective_distance(m, d, pair_id, geom1, geom2, margin):
    """Returns the distance of a contact that removes the part 1 - t of the closing velocity in the step, margin + r.

    With t = time and w = rate, r = -depth follows from the formulas of the module docstring.
    """
    time, rate = d.sweep.times[0], d.sweep.rates[0]
    if m.opt_contact_model == LCP:
        depth = -(time * rate)
    else:
        solref, solimp = reference_and_impedance(m, pair_id, geom1, geom2)
        stiffness, damping = stiffness_and_damping(m, solref, solimp)
        remainder = 1.0 - time
        if has_metric(m):
            remainder = remainder - time * (stiffness + damping)  # integrator discrete
        else:
            remainder = remainder - damping
        # without stiffness: the width of the impedance
        is_soft = stiffness > MINVAL
        depth = where(is_soft, remainder / where(is_soft, stiffness, 1.0) * rate, fmax(solimp[2], MINIMP))
    return margin - depth


@kernel
def touches_at_start(m, d, geom1, geom2, first, margin):
    """Returns the mask of worlds where the pair has a contact within the margin at the start of the step."""
    touches = false_mask(d)
    reach = with_touching(m, d, margin, geom1, geom2)
    for slot in range(first, d.ncon_slot[0]):
        touches = touches | ((d.con_present[slot] > 0.0) & (d.con_dist[slot] < reach))
    return touches


@kernel
def complete_slots(m, d, pair_id, geom1, geom2, first, margin):
    """Sets distance and frame of the contacts within the step in the pair's slots, and marks them in con_speculative.

    They are the contacts of worlds with sweep.found = 1; their normals are already stored.
    """
    dist = effective_distance(m, d, pair_id, geom1, geom2, margin)
    for slot in range(first, d.ncon_slot[0]):
        c = d.contact[slot]
        is_new = (c.present > 0.0) & (d.sweep.found[0] > 0.0)
        frame = frame_of(c.frame.rows[0])
        c.speculative = where(is_new, 1.0, 0.0)
        c.dist = where(is_new, dist, c.dist)
        c.frame = where(is_new, frame, c.frame)


@stage
def sweep_pair(m, d, pair_id, geom1, geom2, first):
    """Adds the contacts of a pair within the step, in worlds where it has no contact within the margin.

    Args:
        pair_id: explicit pair, or -1.
        geom1, geom2: the geoms, as ordered by their types.
        first: first slot of the pair.

    Source: MuJoCo 4.0.1, chapter "Speculative contacts".
    Reads:  geom_xpos, geom_xmat, cvel, subtree_com, near.detects, the pair's slots.
    Writes: con_dist, con_pos, con_frame, con_point, con_present, con_speculative from slot `first` on; ncon_slot,
            con_overflow.
    Scratch: sweep.*, shapes.*, manifold.*, what `closest` writes.
    """
    for slot in range(first, d.ncon_slot[0]):
        d.con_speculative[slot] = 0.0
    if is_swept_pair(m, geom1, geom2):
        margin, gap = margin_and_gap(m, pair_id, geom1, geom2)
        # displacement, rotation vector and travel of each geom in the step
        dx1, dw1, s1 = step_motion(m, d, geom1)
        dx2, dw2, s2 = step_motion(m, d, geom2)
        # worlds in which one of the two geoms may pass through the other one
        moves = (d.near.detects[0] > 0.0) & (may_pass(m, geom1, geom2, s1) | may_pass(m, geom1, geom2, s2))
        if sleeping(m):
            moves = moves & pair_awake(d, m.geom_bodyid[geom1], m.geom_bodyid[geom2])
        # only models with variants have worlds without a geom
        if m.nvariant > 0:
            moves = moves & both_present(m, geom1, geom2)
        if any_(moves):
            moves = moves & spheres_meet(
                m, d, geom1, geom2, m.geom_rbound[geom1] + m.geom_rbound[geom2] + (margin + gap)
            )
            moves = moves & not_(touches_at_start(m, d, geom1, geom2, first, margin))
        if any_(moves):
            d.sweep.steps[0] = dx1
            d.sweep.steps[1] = dx2
            d.sweep.spins[0] = dw1
            d.sweep.spins[1] = dw2
            d.sweep.travels[0], d.sweep.travels[1], d.sweep.margins[0] = s1, s2, margin
            d.sweep.found[0], d.sweep.times[0], d.sweep.rates[0] = 0.0, 0.0, 0.0
            for lane in range(width(d)):
                if has(moves, lane):
                    # writes the pair's slots; sweep.found, sweep.times and sweep.rates
                    sweep_world(m, d, geom1, geom2, first, lane)
            complete_slots(m, d, pair_id, geom1, geom2, first, margin)
