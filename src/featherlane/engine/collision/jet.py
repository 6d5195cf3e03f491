"""Arithmetic of jets: a jet is a number and its three derivatives by the coordinates of a point.

Signed distance fields are computed as jets.  An unused gradient costs nothing: the compiler removes it.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes.rows import row_type

Jet = row_type("Jet", "value x y z")  # a number and its three derivatives
TINY = 1e-10  # least divisor of a coordinate, as in MuJoCo


@kernel
def constant_like(x, number):
    """Returns a number with the width and precision of x."""
    return where(x < x, x, number)  # x < x is false in all worlds


@kernel
def affine(scale, jet, shift):
    """Returns scale jet + shift, for numbers scale and shift."""
    return Jet(scale * jet.value + shift, scale * jet.x, scale * jet.y, scale * jet.z)


@kernel
def union(a, b):
    """Returns the jet min(a, b): the union of two solids."""
    return where(a.value < b.value, a, b)


@kernel
def intersection(a, b):
    """Returns the jet max(a, b): the intersection of two solids."""
    return where(a.value > b.value, a, b)


@kernel
def difference(a, b):
    """Returns the jet max(a, -b): solid a without solid b."""
    return intersection(a, affine(-1.0, b, 0.0))


@kernel
def absolute(a):
    """Returns the jet |a|."""
    return where(a.value < 0.0, affine(-1.0, a, 0.0), a)


@kernel
def positive_part(a):
    """Returns the jet max(a, 0)."""
    return where(a.value > 0.0, a, affine(0.0, a, 0.0))


@kernel
def hypotenuse(a, b):
    """Returns the jet sqrt(a^2 + b^2) of two jets, with derivatives (a a' + b b') / sqrt(a^2 + b^2), 0 at 0."""
    length = sqrt(fma(a.value, a.value, b.value * b.value))
    inverse = 1.0 / fmax(length, MINVAL)
    by_a, by_b = a.value * inverse, b.value * inverse  # derivatives of the length by both values
    return Jet(length, fma(by_a, a.x, by_b * b.x), fma(by_a, a.y, by_b * b.y), fma(by_a, a.z, by_b * b.z))


@kernel
def axis_jets(p):
    """Returns the three coordinates of p as jets: coordinate k has the gradient along axis k."""
    one, zero = constant_like(p[0], 1.0), constant_like(p[0], 0.0)
    return Jet(p[0], one, zero, zero), Jet(p[1], zero, one, zero), Jet(p[2], zero, zero, one)


@kernel
def radius_jet(p):
    """Returns the jet of the distance from the z axis, without a slope on it."""
    x, y, _ = axis_jets(p)
    return hypotenuse(x, y)


@kernel
def azimuth_jet(p):
    """Returns the jet of the angle about the z axis, gradient (-y, x, 0) / (x^2 + y^2), without a slope on the axis."""
    inverse_square = 1.0 / fmax(fma(p[0], p[0], p[1] * p[1]), TINY * TINY)
    return Jet(atan2(p[1], p[0]), -p[1] * inverse_square, p[0] * inverse_square, constant_like(p[0], 0.0))


@kernel
def extrusion(section, ends):
    """Returns the jet of a prism, min(max(section, ends), 0) + sqrt(max(section, 0)^2 + max(ends, 0)^2).

    The first term is the depth of a point inside, the second the distance of a point outside.
    section: jet of the field of the cross section.  ends: jet of the distance beyond the two ends, negative between.
    """
    nearest_face = intersection(section, ends)
    depth = where(nearest_face.value <= 0.0, nearest_face, affine(0.0, nearest_face, 0.0))
    return depth + hypotenuse(positive_part(section), positive_part(ends))
