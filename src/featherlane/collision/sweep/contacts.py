"""Computes the contacts of a pair within the step, and their distances, for worlds without a contact at its start.

The contact points are those at impact, up to four.  Each is a point of either shape, moved back to the start of the
step with its shape; the contact lies between the two, nearer to that of the faster geom.

The contact's distance makes its row remove the part 1 - t of the closing velocity, so that the geom arrives at the
surface at the end of the step.  With the stiffness k = h^2 K and the damping b = h B of one step, and the closing
displacement w, the row a_ref = -B v - K r does so at

    r = dist - margin = -(1 - t - b) / k w,    under the integrator discrete  -(1 - t - t (b + k)) / k w.

Without stiffness r is minus the width of the impedance.  The LCP contact model has r = t w, a gap that its row closes
at most by the end of the step.
Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Effective contact distance".
"""

from featherlane.prelude import *
from featherlane.collision.frame import frame_of
from featherlane.collision.mixing import both_present, margin_and_gap, reference_and_impedance, touching_distance
from featherlane.collision.motion import is_swept_pair, may_pass, spheres_meet, step_motion
from featherlane.collision.slot import clear_contact, load_shape, store_manifold
from featherlane.collision.sweep.clip import impact_points
from featherlane.collision.sweep.impact import IMPACT, find_impact
from featherlane.collision.sweep.occlusion import look
from featherlane.dynamics.awake import pair_awake, sleeping
from featherlane.model.integrator import has_metric

MINIMP, MAXIMP = 0.0001, 0.9999  # range of an impedance; least depth without stiffness [m]


# ---- one world: the points at impact ---------------------------------------------------------------------------------
@kernel
def at_start(d1, side, x):
    """Returns the position at the start of the step of a point that is at x at impact and moves with a shape."""
    local = d1.shapes.mat[side].T @ (x - d1.shapes.pos[side])
    return d1.sweep.mat[side] @ local + d1.sweep.pos[side]


@kernel
def find_points(m1, d1):
    """Computes the contact points at impact, and where they are on either shape at the start of the step.

    Corners count up to the distance by which the shapes close in the rest of the step.
    """
    dist, rest = d1.convex.dist[0], d1.sweep.rate[0] * (1.0 - d1.sweep.time[0])
    d1.shapes.limit[0] = 2.0 * fmax(dist, 0.0) + rest + d1.sweep.tolerance[0]
    impact_points(m1, d1)
    for side in range(2):
        for i in range(d1.manifold.count[0]):
            d1.sweep.start[side, i] = at_start(d1, side, d1.sweep.impact[side, i])
    d1.sweep.normal[0] = d1.convex.normal[0]


@kernel
def is_hidden(m, d, g, h, lane, i):
    """Returns whether a geom hides contact i: from the path of either end, or between the ends at impact."""
    d.sweep.hidden[0] = 0
    d.sweep.line[0] = d.sweep.start[0, i]
    d.sweep.line[1] = d.sweep.impact[0, i]
    look(m, d, g, h, lane)
    if d.sweep.hidden[0] == 0:
        d.sweep.line[0] = d.sweep.start[1, i]
        d.sweep.line[1] = d.sweep.impact[1, i]
        look(m, d, h, g, lane)
    if d.sweep.hidden[0] == 0:
        d.sweep.line[0] = d.sweep.impact[0, i]
        d.sweep.line[1] = d.sweep.impact[1, i]
        if d.sweep.travel[0] >= d.sweep.travel[1]:
            look(m, d, g, h, lane)
        else:
            look(m, d, h, g, lane)
    return d.sweep.hidden[0] != 0


@kernel
def keep_visible(m, d, g, h, lane):
    """Keeps the visible contacts, at their positions at the start of the step."""
    part, count = d.sweep.travel[0] / (d.sweep.travel[0] + d.sweep.travel[1]), 0
    for i in range(d.manifold.count[0]):
        if not is_hidden(m, d, g, h, lane, i):
            a, b = d.sweep.start[0, i], d.sweep.start[1, i]
            d.manifold.pos[count] = part * a + (1.0 - part) * b
            d.manifold.normal[count] = d.sweep.normal[0]
            count += 1
    d.manifold.count[0] = count


# ---- worlds of a tile ------------------------------------------------------------------------------------------------
@kernel
def load_motion(d, side, lane):
    """Copies the motion of one geom in one world, and its pose at the start of the step."""
    d.sweep.step[side] = read_lane(d.sweep.steps, side, lane)
    d.sweep.spin[side] = read_lane(d.sweep.spins, side, lane)
    d.sweep.pos[side] = d.shapes.pos[side]
    d.sweep.mat[side] = d.shapes.mat[side]
    d.sweep.travel[side] = read_lane(d.sweep.travels, side, lane)


@kernel
def sweep_world(m, d, g, h, first, lane):
    """Replaces the contacts of one world in the pair's slots by those at impact, if a visible one exists."""
    load_shape(m, d, 0, g, lane)
    load_shape(m, d, 1, h, lane)
    load_motion(d, 0, lane)
    load_motion(d, 1, lane)
    d.sweep.margin[0] = read_lane(d.sweep.margins, 0, lane)
    d.sweep.tolerance[0] = read_lane(m.opt_ccd_tolerance, 0, lane)
    find_impact(m, d)
    if d.sweep.state[0] == IMPACT:
        find_points(m, d)
        keep_visible(m, d, g, h, lane)
        if d.manifold.count[0] > 0:
            d.sweep.current[0] = 0.0
            write_lane(d.sweep.current, 0, lane, 1.0)
            for k in range(first, d.ncon_slot[0]):
                clear_contact(d, k, d.sweep.current[0] > 0.0)
            store_manifold(d, first, lane)
            write_lane(d.sweep.found, 0, lane, 1.0)
            write_lane(d.sweep.times, 0, lane, d.sweep.time[0])
            write_lane(d.sweep.rates, 0, lane, d.sweep.rate[0])


@kernel
def stiffness_and_damping(m, ref, imp):
    """Returns (k, b) of one step, without the factor of the impedance; bounded as those of a row (`refsafe`)."""
    h, dmax = timestep(m), clip(imp[1], MINIMP, MAXIMP)
    mixed = ((ref[0] > 0.0) & not_(ref[1] > 0.0)) | (not_(ref[0] > 0.0) & (ref[1] > 0.0))
    time, ratio = where(mixed, 0.02, ref[0]), where(mixed, 1.0, ref[1])
    safe, standard = m.opt_disableflags & DISABLE_REFSAFE == 0, time > 0.0
    shortest = MINVAL
    if safe and not has_metric(m):
        shortest = 2.0 * h
    tc, ratio = fmax(time, shortest), where(standard, fmax(ratio, MINVAL), ratio)
    k = where(standard, h * h / fmax(tc * tc * (ratio * ratio), MINVAL), -time * (h * h))
    b = where(standard, 2.0 * h / tc, -ratio * h)
    if safe and has_metric(m):
        stiff = standard & (k > dmax)
        most = fmax(MAXIMP * (1.0 - dmax) / fmax((1.0 - MAXIMP) * dmax, MINVAL) - 2.0, 0.0) * dmax
        b = where(stiff, fmin(b / sqrt(where(stiff, k / dmax, 1.0)), most), b)
        k = where(stiff, dmax, k)
    return k, b


@kernel
def effective_distance(m, d, e, g, h, margin):
    """Returns the distance of a contact that removes the part 1 - t of the closing velocity in the step."""
    t, w = d.sweep.times[0], d.sweep.rates[0]
    if m.opt_contact_model == LCP:
        depth = -(t * w)
    else:
        ref, imp = reference_and_impedance(m, e, g, h)
        k, b = stiffness_and_damping(m, ref, imp)
        rest = 1.0 - t
        if has_metric(m):
            rest = rest - t * (k + b)
        else:
            rest = rest - b
        soft = k > MINVAL
        depth = where(soft, rest / where(soft, k, 1.0) * w, fmax(imp[2], MINIMP))
    return margin - depth


@kernel
def acting(m, d, g, h, first, margin):
    """Returns the mask of worlds where the pair has a contact within the margin at the start of the step."""
    touch, reach = false_mask(d), margin
    if m.opt_contact_model == LCP:
        reach = reach + (touching_distance(m, d, g) + touching_distance(m, d, h))
    for k in range(first, d.ncon_slot[0]):
        touch = touch | ((d.con_present[k] > 0.0) & (d.con_dist[k] < reach))
    return touch


@kernel
def finish_slots(m, d, e, g, h, first, margin):
    """Sets distance and frame of the new contacts, and marks them."""
    dist = effective_distance(m, d, e, g, h, margin)
    for k in range(first, d.ncon_slot[0]):
        c = d.contact[k]
        new, frame = (c.present > 0.0) & (d.sweep.found[0] > 0.0), frame_of(c.frame.rows[0])
        c.speculative = where(new, 1.0, 0.0)
        c.dist = where(new, dist, c.dist)
        c.frame = where(new, frame, c.frame)


@stage
def sweep_pair(m, d, e, g, h, first):
    """Adds the contacts of a pair within the step, in worlds where it has no contact within the margin.

    Args:
        e: explicit pair, or -1.
        g, h: the geoms, as ordered by their types.
        first: first slot of the pair.

    Source: MuJoCo 4.0.1, chapter "Speculative contacts".
    Reads:  geom_xpos, geom_xmat, cvel, subtree_com, near.detects, the pair's slots.
    Writes: con_dist, con_pos, con_frame, con_point, con_present, con_speculative from slot `first` on; ncon_slot,
            con_overflow.
    Scratch: sweep.*, shapes.*, manifold.*, what `closest` writes.
    """
    for k in range(first, d.ncon_slot[0]):
        d.con_speculative[k] = 0.0
    if is_swept_pair(m, g, h):
        margin, gap = margin_and_gap(m, e, g, h)
        dx1, dw1, s1 = step_motion(m, d, g)
        dx2, dw2, s2 = step_motion(m, d, h)
        moves = (d.near.detects[0] > 0.0) & (may_pass(m, g, h, s1) | may_pass(m, g, h, s2))
        if sleeping(m):
            moves = moves & pair_awake(d, m.geom_bodyid[g], m.geom_bodyid[h])
        if m.nvariant > 0:
            moves = moves & both_present(m, g, h)
        if any_(moves):
            moves = moves & spheres_meet(m, d, g, h, m.geom_rbound[g] + m.geom_rbound[h] + (margin + gap))
            moves = moves & not_(acting(m, d, g, h, first, margin))
        if any_(moves):
            d.sweep.steps[0] = dx1
            d.sweep.steps[1] = dx2
            d.sweep.spins[0] = dw1
            d.sweep.spins[1] = dw2
            d.sweep.travels[0], d.sweep.travels[1], d.sweep.margins[0] = s1, s2, margin
            d.sweep.found[0], d.sweep.times[0], d.sweep.rates[0] = 0.0, 0.0, 0.0
            for lane in range(width(d)):
                if has(moves, lane):
                    sweep_world(m, d, g, h, first, lane)
            finish_slots(m, d, e, g, h, first, margin)
