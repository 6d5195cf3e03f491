"""Computes contact parameters from the explicit pair or from both geoms, separately for each world.

A pair is (e, g, h): the index of the explicit pair or -1, and the two geoms.
If one geom has a higher priority, it alone sets friction, solref and solimp.  The flag `override` replaces
margin, friction, solref and solimp of all contacts by the options o_margin, o_friction, o_solref and o_solimp.
Source: MuJoCo 4.0.1, documentation "Contact parameters" and measured contacts.
"""

from featherlane.prelude import *

MIX, FIRST, SECOND = range(3)  # which geom's parameters are used
MINMU = 1e-5  # smallest friction coefficient
NEAR = 1e-6  # relative to the bounding radii: such a distance is zero for rigid bodies
LAST_BITS = 2.5e-7  # relative to a float32 coordinate: two rounding errors


@kernel
def leading(m, e, g, h):
    """Returns which parameters are used: MIX, or FIRST or SECOND for the geom of higher priority."""
    a, b = m.geom_priority[g], m.geom_priority[h]
    return MIX if e >= 0 or a == b else FIRST if a > b else SECOND


@kernel
def overridden(m):
    """Returns whether the options o_* override the parameters of all contacts."""
    return m.opt_enableflags & ENABLE_OVERRIDE != 0


@kernel
def contact_dim(m, e, g, h):
    """Returns the dimension of the contact space: of the explicit pair or leading geom, else the larger of both."""
    if e >= 0:
        dim = m.pair_dim[e]
    else:
        lead, a, b = leading(m, e, g, h), m.geom_condim[g], m.geom_condim[h]
        dim = a if lead == FIRST or (lead == MIX and a > b) else b
    return dim


@kernel
def touching(m, d, g):
    """Returns the part of geom g in the largest distance of touching rigid bodies that rounding can produce [m].

    In float32 it grows with the distance from the origin: the last bit of a coordinate of 10 m is 1e-6 m.
    """
    reach = NEAR * m.geom_rbound[g]
    if single_precision(d):
        x, y, z = d.geom_xpos[g]
        reach = fma(LAST_BITS, fmax(fmax(fabs(x), fabs(y)), fabs(z)), reach)
    return reach


@kernel
def margin_and_gap(m, e, g, h):
    """Returns (margin, gap): a contact exists up to their sum and is active up to the margin.

    Source: MuJoCo 4 (the meaning changed in 3.10): the geoms' values are summed.
    """
    if e >= 0:
        margin, gap = m.pair_margin[e], m.pair_gap[e]
    else:
        margin, gap = m.geom_margin[g] + m.geom_margin[h], m.geom_gap[g] + m.geom_gap[h]
    if overridden(m):
        margin = m.opt_o_margin[0]
    return margin, gap


@kernel
def farthest(m, d, e, g, h):
    """Returns the detection distance of the pair: margin plus gap, plus the touching distance with the LCP model."""
    margin, gap = margin_and_gap(m, e, g, h)
    limit = margin + gap
    if m.opt_contact_model == LCP:
        limit = limit + (touching(m, d, g) + touching(m, d, h))
    return limit


@kernel
def geom_margin_and_gap(m, g):
    """Returns the part of geom g in the sum of margin and gap of its pairs; half of an overridden margin."""
    margin = m.geom_margin[g]
    if overridden(m):
        margin = 0.5 * m.opt_o_margin[0]
    return margin + m.geom_gap[g]


@kernel
def is_present(m, g):
    """Returns the mask of worlds that have geom g; evaluated only for models with variants."""
    return m.geom_variant[g] > ABSENT_GEOM


@kernel
def both_present(m, g, h):
    """Returns the mask of worlds that have geoms g and h."""
    return is_present(m, g) & is_present(m, h)


@kernel
def geom_reach(m, d, g):
    """Returns `geom_margin_and_gap`, plus the touching distance under the LCP contact model."""
    wider = geom_margin_and_gap(m, g)
    if m.opt_contact_model == LCP:
        wider = wider + touching(m, d, g)
    return wider


@kernel
def adhesion(m, e, g, h):
    """Returns the adhesive force limit of the contact: of the explicit pair or leading geom, else the sum of both."""
    if e >= 0:
        pull = m.pair_adhesion[e]
    else:
        lead, pull = leading(m, e, g, h), m.geom_adhesion[g] + m.geom_adhesion[h]
        if lead != MIX:
            pull = m.geom_adhesion[g if lead == FIRST else h]
    return pull


@kernel
def mixing_weight(a, b):
    """Returns the first geom's weight from both solmix: a / (a + b) with values below MINVAL as 0; 0.5 if both are."""
    has_a, has_b = a >= MINVAL, b >= MINVAL
    some = has_a | has_b
    a, b = where(has_a, a, 0.0), where(has_b, b, 0.0)
    return where(some, a / where(some, a + b, 1.0), 0.5)


@kernel
def weighted_mean(w, a, b):
    """Returns w a + (1 - w) b."""
    return fma(w, a, (1.0 - w) * b)


@kernel
def friction(m, e, g, h):
    """Returns two sliding, one torsional and two rolling friction coefficients: the maximum of both geoms."""
    if overridden(m):
        f = Vec5(m.opt_o_friction[0:5])
    elif e >= 0:
        f = m.pair_friction[e]
    else:
        lead = leading(m, e, g, h)
        if lead == SECOND:
            g = h
        elif lead == FIRST:
            h = g
        slide, spin, roll = fmax(m.geom_friction[g], m.geom_friction[h])
        f = Vec5(slide, slide, spin, roll, roll)
    return fmax(f, MINMU)


@kernel
def reference_and_impedance(m, e, g, h):
    """Returns (solref, solimp): weighted means of both geoms; for a direct solref the minimum."""
    lead = leading(m, e, g, h)
    if overridden(m):
        ref, imp = m.opt_o_solref[0], m.opt_o_solimp[0]
    elif e >= 0:
        ref, imp = m.pair_solref[e], m.pair_solimp[e]
    elif lead in (FIRST, SECOND):
        k = g if lead == FIRST else h
        ref, imp = m.geom_solref[k], m.geom_solimp[k]
    else:
        w = mixing_weight(m.geom_solmix[g], m.geom_solmix[h])
        a, b = m.geom_solref[g], m.geom_solref[h]
        standard = (a[0] > 0.0) & (b[0] > 0.0)
        ref = where(standard, weighted_mean(w, a, b), fmin(a, b))
        imp = weighted_mean(w, m.geom_solimp[g], m.geom_solimp[h])
    return ref, imp


@kernel
def friction_solref(m, e):
    """Returns solref of the friction rows: of the explicit pair, else zeros."""
    ref = Solref(0.0, 0.0)
    if overridden(m):
        ref = m.opt_o_solref[0]
    elif e >= 0:
        ref = m.pair_solreffriction[e]
    return ref
