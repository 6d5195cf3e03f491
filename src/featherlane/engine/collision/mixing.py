"""Computes contact parameters from the explicit pair or from both geoms, separately for each world.

A pair is (pair_id, geom1, geom2): the index of the explicit pair or -1, and the two geoms.
If one geom has a higher priority, it alone sets friction, solref and solimp.  The flag `override` replaces
margin, friction, solref and solimp of all contacts by the options o_margin, o_friction, o_solref and o_solimp.
The fields m.pair_* are the parameters of explicit pairs.
Source: MuJoCo 4.0.1, documentation "Contact parameters" and measured contacts.
"""

from featherlane.engine.prelude import *

MIX, FIRST, SECOND = range(3)  # which geom's parameters are used
MINMU = 1e-5  # smallest friction coefficient
NEAR = 1e-6  # relative to the bounding radii: such a distance is zero for rigid bodies
LAST_BITS = 2.5e-7  # relative to a float32 coordinate: two rounding errors


@kernel
def leading(m, pair_id, geom1, geom2):
    """Returns whose parameters a contact has: FIRST or SECOND for the geom of higher priority, MIX for both geoms."""
    priority1, priority2 = m.geom_priority[geom1], m.geom_priority[geom2]
    return MIX if pair_id >= 0 or priority1 == priority2 else (FIRST if priority1 > priority2 else SECOND)


@kernel
def overridden(m):
    """Returns whether the options o_* override the parameters of all contacts."""
    return m.opt_enableflags & ENABLE_OVERRIDE != 0


@kernel
def contact_dim(m, pair_id, geom1, geom2):
    """Returns condim of a contact: that of the explicit pair, of the leading geom, or the larger one of both geoms."""
    if pair_id >= 0:
        dim = m.pair_dim[pair_id]
    else:
        lead = leading(m, pair_id, geom1, geom2)
        condim1, condim2 = m.geom_condim[geom1], m.geom_condim[geom2]
        dim = condim1 if lead == FIRST or (lead == MIX and condim1 > condim2) else condim2
    return dim


@kernel
def touching_distance(m, d, geom):
    """Returns a geom's part of the largest distance that rounding can produce between touching rigid bodies [m].

    In float32 it grows with the distance from the origin: the last bit of a coordinate of 10 m is 1e-6 m.
    """
    distance = NEAR * m.geom_rbound[geom]
    if single_precision(d):
        x, y, z = d.geom_xpos[geom]
        distance = fma(LAST_BITS, fmax(fmax(fabs(x), fabs(y)), fabs(z)), distance)
    return distance


@kernel
def margin_and_gap(m, pair_id, geom1, geom2):
    """Returns (margin, gap) [m]: a contact exists if its distance is at most their sum, and is active up to the margin.

    Source: MuJoCo 4 (the meaning changed in 3.10): the geoms' values are summed.
    """
    if pair_id >= 0:
        margin, gap = m.pair_margin[pair_id], m.pair_gap[pair_id]
    else:
        margin, gap = m.geom_margin[geom1] + m.geom_margin[geom2], m.geom_gap[geom1] + m.geom_gap[geom2]
    if overridden(m):
        margin = m.opt_o_margin[0]
    return margin, gap


@kernel
def with_touching(m, d, distance, geom1, geom2):
    """Returns a distance plus, under the LCP contact model, the touching distance of two geoms."""
    if m.opt_contact_model == LCP:
        distance = distance + (touching_distance(m, d, geom1) + touching_distance(m, d, geom2))
    return distance


@kernel
def detection_distance(m, d, pair_id, geom1, geom2):
    """Returns the detection distance of the pair: margin plus gap, plus the touching distance with the LCP model."""
    margin, gap = margin_and_gap(m, pair_id, geom1, geom2)
    return with_touching(m, d, margin + gap, geom1, geom2)


@kernel
def geom_margin_and_gap(m, geom):
    """Returns a geom's part in the sum of margin and gap of its pairs; half of an overridden margin."""
    margin = 0.5 * m.opt_o_margin[0] if overridden(m) else m.geom_margin[geom]
    return margin + m.geom_gap[geom]


@kernel
def is_present(m, geom):
    """Returns the mask of worlds that have the geom; evaluated only for models with variants."""
    return m.geom_variant[geom] > ABSENT_GEOM


@kernel
def both_present(m, geom1, geom2):
    """Returns the mask of worlds that have both geoms."""
    return is_present(m, geom1) & is_present(m, geom2)


@kernel
def geom_reach(m, d, geom):
    """Returns `geom_margin_and_gap`, plus the touching distance under the LCP contact model."""
    reach = geom_margin_and_gap(m, geom)
    if m.opt_contact_model == LCP:
        reach = reach + touching_distance(m, d, geom)
    return reach


@kernel
def adhesion(m, pair_id, geom1, geom2):
    """Returns the adhesive force limit [N]: of the explicit pair, of the leading geom, or the sum of both geoms."""
    if pair_id >= 0:
        limit = m.pair_adhesion[pair_id]
    else:
        lead = leading(m, pair_id, geom1, geom2)
        limit = m.geom_adhesion[geom1] + m.geom_adhesion[geom2]
        if lead != MIX:
            limit = m.geom_adhesion[geom1 if lead == FIRST else geom2]
    return limit


@kernel
def mixing_weight(solmix1, solmix2):
    """Returns the weight of the first geom, solmix1 / (solmix1 + solmix2), in [0, 1].

    A solmix below MINVAL counts as 0; if both do, the weight is 0.5.
    """
    has1, has2 = solmix1 >= MINVAL, solmix2 >= MINVAL
    any_valid = has1 | has2
    solmix1, solmix2 = where(has1, solmix1, 0.0), where(has2, solmix2, 0.0)
    return where(any_valid, solmix1 / where(any_valid, solmix1 + solmix2, 1.0), 0.5)


@kernel
def weighted_mean(weight, a, b):
    """Returns weight a + (1 - weight) b."""
    return fma(weight, a, (1.0 - weight) * b)


@kernel
def friction(m, pair_id, geom1, geom2):
    """Returns two sliding, one torsional and two rolling friction coefficients, each at least MINMU.

    They are those of the options, the explicit pair, the leading geom, or the maxima of both geoms.
    """
    if overridden(m):
        mu = Vec5(m.opt_o_friction[0:5])
    elif pair_id >= 0:
        mu = m.pair_friction[pair_id]
    else:
        lead = leading(m, pair_id, geom1, geom2)
        # the maximum over a geom and itself is the leading geom's coefficient
        if lead == SECOND:
            geom1 = geom2
        elif lead == FIRST:
            geom2 = geom1
        slide, spin, roll = fmax(m.geom_friction[geom1], m.geom_friction[geom2])
        mu = Vec5(slide, slide, spin, roll, roll)
    return fmax(mu, MINMU)


@kernel
def reference_and_impedance(m, pair_id, geom1, geom2):
    """Returns (solref, solimp): those of the options, the explicit pair, the leading geom, or means of both geoms.

    The means are weighted with solmix; if a geom has a direct solref, solref is the minimum of both geoms.
    """
    lead = leading(m, pair_id, geom1, geom2)
    if overridden(m):
        ref, imp = m.opt_o_solref[0], m.opt_o_solimp[0]
    elif pair_id >= 0:
        ref, imp = m.pair_solref[pair_id], m.pair_solimp[pair_id]
    elif lead in (FIRST, SECOND):
        leader = geom1 if lead == FIRST else geom2
        ref, imp = m.geom_solref[leader], m.geom_solimp[leader]
    else:
        weight = mixing_weight(m.geom_solmix[geom1], m.geom_solmix[geom2])
        ref1, ref2 = m.geom_solref[geom1], m.geom_solref[geom2]
        # a standard solref (timeconst, dampratio) is positive, a direct one (-stiffness, -damping) is not
        standard = (ref1[0] > 0.0) & (ref2[0] > 0.0)
        ref = where(standard, weighted_mean(weight, ref1, ref2), fmin(ref1, ref2))
        imp = weighted_mean(weight, m.geom_solimp[geom1], m.geom_solimp[geom2])
    return ref, imp


@kernel
def friction_solref(m, pair_id):
    """Returns solref of the friction rows: that of the options, the explicit pair, or zeros.

    Zeros mean that no solref is specified (`friction_reference`).
    """
    ref = Solref(0.0, 0.0)
    if overridden(m):
        ref = m.opt_o_solref[0]
    elif pair_id >= 0:
        ref = m.pair_solreffriction[pair_id]
    return ref
