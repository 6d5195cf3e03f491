"""Computes signed distance fields (SDFs): value and gradient of the field of a geom at a point of its frame.

A field is negative inside, and its zero level is the surface.  Fields of plugins and of ellipsoids are distances to
first order only.  A *jet* is (value, three derivatives).  An unused gradient costs nothing: the compiler removes it.
Source: MuJoCo engine_collision_sdf.c (geomDistance, geomGradient, oct_distance, oct_gradient) and plugin/sdf.
Deviations: derivatives of bolt, nut, gear and bowl, and of an octree outside its box, are analytic (MuJoCo:
differences over 1e-8 m); the hexagon of bolt and nut is the intersection of its half-planes (MuJoCo: a rotation).
"""

import math

from featherlane.prelude import *
from featherlane.lanes.rows import row_type
from featherlane.model.signed_distance import BOLT, BOWL, GEAR, NUT, OCTREE, TORUS

Jet = row_type("Jet", "value x y z")  # a number and its three derivatives
HALF_ROOT, COS_30 = math.sqrt(0.5), math.sqrt(0.75)
THREADS = 12.0  # turns of the thread per metre
INSET = 1e-6  # m: a point beyond the octree's box is evaluated this far inside of it
FAR = 1e6  # m: the flank of a gear's tooth inside its base circle
TINY = 1e-10  # least divisor of a coordinate, as in MuJoCo


# ---- arithmetic of jets ----------------------------------------------------------------------------------------------
@kernel
def constant_like(x, number):
    """Returns a number with the width and precision of x."""
    return where(x < x, x, number)


@kernel
def scaled(s, a, shift):
    """Returns s a + shift for numbers s and shift."""
    return Jet(s * a.value + shift, s * a.x, s * a.y, s * a.z)


@kernel
def union(a, b):
    """Returns the smaller one: the union of two solids."""
    return where(a.value < b.value, a, b)


@kernel
def intersection(a, b):
    """Returns the larger one: the intersection of two solids."""
    return where(a.value > b.value, a, b)


@kernel
def difference(a, b):
    """Returns a without b."""
    return intersection(a, scaled(-1.0, b, 0.0))


@kernel
def absolute(a):
    """Returns |a|."""
    return where(a.value < 0.0, scaled(-1.0, a, 0.0), a)


@kernel
def positive(a):
    """Returns max(a, 0)."""
    return where(a.value > 0.0, a, scaled(0.0, a, 0.0))


@kernel
def length2(a, b):
    """Returns sqrt(a^2 + b^2), without a slope at 0."""
    n = sqrt(fma(a.value, a.value, b.value * b.value))
    s = 1.0 / fmax(n, MINVAL)
    u, v = a.value * s, b.value * s
    return Jet(n, fma(u, a.x, v * b.x), fma(u, a.y, v * b.y), fma(u, a.z, v * b.z))


@kernel
def axis_jets(p):
    """Returns the three coordinates of p as jets."""
    one, none = constant_like(p[0], 1.0), constant_like(p[0], 0.0)
    return Jet(p[0], one, none, none), Jet(p[1], none, one, none), Jet(p[2], none, none, one)


@kernel
def radius_jet(p):
    """Returns the distance from the z axis, without a slope on it."""
    x, y, _ = axis_jets(p)
    return length2(x, y)


@kernel
def azimuth_jet(p):
    """Returns the angle about the z axis, without a slope on it."""
    s = 1.0 / fmax(fma(p[0], p[0], p[1] * p[1]), TINY * TINY)
    return Jet(atan2(p[1], p[0]), -p[1] * s, p[0] * s, constant_like(p[0], 0.0))


@kernel
def extrusion(a, b):
    """Returns the prism with cross section a and the distance b beyond its ends."""
    inside = intersection(a, b)
    return where(inside.value <= 0.0, inside, scaled(0.0, inside, 0.0)) + length2(positive(a), positive(b))


# ---- primitive shapes ------------------------------------------------------------------------------------------------
@kernel
def sphere_field(p, radius):
    """Returns the jet of a sphere about the origin."""
    n = norm3(p)
    s = 1.0 / fmax(n, MINVAL)
    return Jet(n - radius, s * p[0], s * p[1], s * p[2])


@kernel
def box_interior(size, p, exact):
    """Returns the jet inside a box: to the nearest face if `exact`, else along directions that turn with the point.

    MuJoCo's field inside is the distance along the unit vector of size / margin, margin the distance to a face; its
    gradient is that vector, although the distance has another gradient.
    """
    margin = fmax(size - fabs(p), MINVAL)
    if exact:
        x, y = margin[0] <= fmin(margin[1], margin[2]), margin[1] <= margin[2]
        depth = fmin(margin[0], fmin(margin[1], margin[2]))
        b = Vec3(where(x, 1.0, 0.0), where(x, 0.0, where(y, 1.0, 0.0)), where(x | y, 0.0, 1.0))
    else:
        b = Vec3(size[k] / margin[k] for k in range(3))
        b = b / norm3(b)
        depth = fmin(margin[0] / b[0], fmin(margin[1] / b[1], margin[2] / b[2]))
    x, y, z = tuple(where(p[k] < 0.0, -b[k], b[k]) for k in range(3))
    return Jet(-depth, x, y, z)


@kernel
def box_field(size, p, exact):
    """Returns the jet of a box about the origin."""
    a = fabs(p) - size
    outside = (a[0] >= 0.0) | (a[1] >= 0.0) | (a[2] >= 0.0)
    b = fmax(a, 0.0)
    n = norm3(b)
    x, y, z = copysign(1.0 / fmax(n, MINVAL) * b, p)
    return where(outside, Jet(n, x, y, z), box_interior(size, p, exact))


@kernel
def ellipsoid_field(size, p):
    """Returns the jet of an ellipsoid: k0 (k0 - 1) / k1 with k0 = |p / size|, k1 = |p / size^2|; unit gradient."""
    a = Vec3(p[k] / size[k] for k in range(3))
    b = Vec3(a[k] / size[k] for k in range(3))
    k0, k1 = norm3(a), norm3(b)
    i0, i1 = 1.0 / fmax(k0, MINVAL), 1.0 / fmax(k1, MINVAL)
    rise, fall = (2.0 * k0 - 1.0) * i1 * i0, k0 * (k0 - 1.0) * i1 * i1 * i1
    (x, y, z), _ = normalize3(Vec3(b[k] * (rise - fall / (size[k] * size[k])) for k in range(3)))
    return Jet(k0 * (k0 - 1.0) * i1, x, y, z)


# ---- plugins ---------------------------------------------------------------------------------------------------------
@kernel
def torus_field(p, ring, tube):
    """Returns the jet of a torus about z."""
    _, _, z = axis_jets(p)
    return scaled(1.0, length2(scaled(1.0, radius_jet(p), -ring), z), -tube)


@kernel
def bowl_field(p, height, width, radius, thickness):
    """Returns the jet of a sphere's shell about the origin, below a rim at a height, where the sphere has a width."""
    _, _, z = axis_jets(p)
    q, shell = radius_jet(p), sphere_field(p, radius)
    rim = length2(scaled(1.0, q, -width), scaled(1.0, z, -height))
    return scaled(1.0, where(height * q.value < width * p[2], rim, absolute(shell)), -thickness)


@kernel
def thread_field(p, radius):
    """Returns the jet of an endless screw: a triangle wave that winds about z, on a cylinder of a radius less."""
    _, _, z = axis_jets(p)
    turn = scaled(THREADS, z, 0.0) - scaled(0.5 / PI, azimuth_jet(p), 0.0)
    wave = absolute(scaled(1.0, turn, -0.5 - floor(turn.value)))
    return scaled(HALF_ROOT, radius - scaled(1.0 / THREADS, wave, 0.0), 0.0)


@kernel
def hexagon_head(p, radius):
    """Returns the jet of the head of bolt and nut: a hexagonal prism of height 0.5, rounded by a cone."""
    x, y, z = axis_jets(p)
    x, side, half = absolute(x), scaled(COS_30, y, 0.0), scaled(0.5, x, 0.0)
    head = intersection(x, intersection(absolute(half + side), absolute(half - side)))
    head = intersection(scaled(1.0, head, -0.5), scaled(1.0, absolute(scaled(1.0, z, 0.25)), -0.25))
    return intersection(head, scaled(HALF_ROOT, z + radius, -0.22 * HALF_ROOT))


@kernel
def bolt_field(p, shank):
    """Returns the jet of a bolt: a thread from z = -1 to 0 with a pointed end, and a head."""
    _, _, z = axis_jets(p)
    radius = scaled(1.0, radius_jet(p), -shank)
    bolt = intersection(thread_field(p, radius), scaled(1.0, absolute(scaled(1.0, z, 0.5)), -0.5))
    cone = scaled(HALF_ROOT, z - radius, HALF_ROOT)
    return union(difference(bolt, cone), hexagon_head(p, radius))


@kernel
def nut_field(p, shank):
    """Returns the jet of a nut: a head without a threaded hole, whose ends are conical."""
    _, _, z = axis_jets(p)
    radius = scaled(1.0, radius_jet(p), -shank)
    cone = scaled(HALF_ROOT, z - radius, 0.0)
    hole = difference(thread_field(p, radius), scaled(1.0, cone, 0.5 * HALF_ROOT))
    hole = union(hole, scaled(-1.0, cone, -0.05 * HALF_ROOT))
    return difference(hexagon_head(p, radius), hole)


@kernel
def smooth_union(a, b, k):
    """Returns the union of two solids, blended over the length k; the weights' derivatives cancel."""
    h = clip(0.5 + 0.5 * (b.value - a.value) / k, 0.0, 1.0)
    joined = scaled(1.0 - h, b, 0.0) + scaled(h, a, 0.0)
    return scaled(1.0, joined, -(k * h * (1.0 - h)))


@kernel
def smooth_intersection(a, b, k):
    """Returns the intersection of two solids, blended over the length k."""
    return difference(intersection(a, b), smooth_union(difference(a, b), difference(b, a), k))


@kernel
def wrapped(x, period):
    """Returns x modulo the period, in [0, period)."""
    return x - period * floor(x / period)


@kernel
def flank(rho, angle, base):
    """Returns the jet of one side of a tooth: the involute of the base circle, or the inside of that circle.

    Distance t - base (angle + acos(base / rho)), t = sqrt(rho^2 - base^2); its derivative by rho is t / rho.
    """
    outside = rho.value > base
    r = fmax(rho.value, base)
    t = sqrt(fmax(fma(r, r, -(base * base)), 0.0))
    value = t - base * (angle.value + acos(clip(base / fmax(r, TINY), -1.0, 1.0)))
    rise = t / fmax(r, TINY)
    x, y, z = tuple(fma(rise, rho[k], -(base * angle[k])) for k in range(1, 4))
    return where(outside, Jet(value, x, y, z), Jet(-FAR, 0.0, 0.0, 0.0))


@kernel
def gear_field(p, prm):
    """Returns the jet of a gear about z, with the parameters of `model.signed_distance._gear`."""
    turn, thick, hole, tip, root, base, stride, shift, round_tip, round_root = prm
    _, _, z = axis_jets(p)
    rho, angle = radius_jet(p), azimuth_jet(p)
    fi = angle.value + turn
    side = Jet(wrapped(fi + 0.5 * shift, stride) - 0.5 * shift, angle.x, angle.y, angle.z)
    other = Jet(wrapped(-fi - 0.5 * shift, stride) - 0.5 * shift, -angle.x, -angle.y, -angle.z)
    walls = scaled(1.0, intersection(side, other), shift - stride)
    cogs = intersection(walls, intersection(flank(rho, side, base), flank(rho, other, base)))
    cogs = smooth_intersection(scaled(1.0, rho, -tip), cogs, round_tip)
    cogs = smooth_union(scaled(1.0, rho, -root), cogs, round_root)
    cogs = difference(cogs, scaled(1.0, rho, -hole))
    # far from the teeth, the circles of hole and tip
    cogs = where(tip - rho.value < -0.2, scaled(1.0, rho, -tip), cogs)
    cogs = where(hole - rho.value > 0.0, scaled(-1.0, rho, hole), cogs)
    return extrusion(cogs, scaled(1.0, absolute(z), -thick))


# ---- octree of a mesh ------------------------------------------------------------------------------------------------
@kernel
def octree_leaf(m, root, t):
    """Returns (leaf, place in the leaf from 0 to 1, fraction of the box's sides) at a place t in the octree's box."""
    node, side = constant_like(t[0], 1.0 * root), constant_like(t[0], 1.0)
    child = gather(m.octree_child, node)
    while any_(child >= 0.0):
        inner = child >= 0.0
        high = Vec3(where(t[k] < 0.5, 0.0, 1.0) for k in range(3))
        node = where(inner, child + (high[0] + 2.0 * high[1] + 4.0 * high[2]), node)
        t = where(inner, 2.0 * t - high, t)
        side = where(inner, 0.5 * side, side)
        child = gather(m.octree_child, node)
    return node, t, side


@kernel
def trilinear(m, leaf, t):
    """Returns the jet of the interpolation in a leaf, with derivatives by the place t."""
    c = tuple(gather(m.octree_coeff, 8.0 * leaf + k) for k in range(8))
    x = tuple(c[2 * k + 1] - c[2 * k] for k in range(4))
    a = tuple(fma(t[0], x[k], c[2 * k]) for k in range(4))
    y = a[1] - a[0], a[3] - a[2]
    b = fma(t[1], y[0], a[0]), fma(t[1], y[1], a[2])
    dx = fma(t[1], x[1] - x[0], x[0]), fma(t[1], x[3] - x[2], x[2])
    return Jet(
        fma(t[2], b[1] - b[0], b[0]),
        fma(t[2], dx[1] - dx[0], dx[0]),
        fma(t[2], y[1] - y[0], y[0]),
        b[1] - b[0],
    )


@kernel
def octree_field(m, d, mesh, p):
    """Returns the jet of a mesh's octree; outside of its box, the distance to the box is added."""
    box = Box(real(d, m.mesh_octbox[mesh][k]) for k in range(6))
    r, half = p - box.centre, box.half
    q = fabs(r) - half
    outside = (q[0] > 0.0) | (q[1] > 0.0) | (q[2] > 0.0)
    beyond = tuple(outside & (q[k] >= 0.0) for k in range(3))
    gap = Vec3(where(beyond[k], q[k], 0.0) for k in range(3))
    nearest = Vec3(where(beyond[k], copysign(half[k] - INSET, r[k]), r[k]) for k in range(3))
    sides = 2.0 * half
    place = Vec3((nearest[k] + half[k]) / sides[k] for k in range(3))
    leaf, t, fraction = octree_leaf(m, m.mesh_octree[mesh], place)
    value = trilinear(m, leaf, t)
    n = norm3(gap)
    s = 1.0 / fmax(n, MINVAL)
    slope = tuple(value[k + 1] / (fraction * sides[k]) for k in range(3))
    x, y, z = tuple(where(beyond[k], copysign(s * gap[k], r[k]), slope[k]) for k in range(3))
    return Jet(value[0] + n, x, y, z)


# ---- all kinds -------------------------------------------------------------------------------------------------------
@kernel
def signed_distance(m, d, kind, adr, size, p, exact):
    """Returns (value, gradient) of the signed distance field of a geom.

    Args:
        kind: `m.geom_field[geom]`, not -1.
        adr: `m.geom_fieldadr[geom]`: the mesh of an octree, the first of a plugin's parameters.
        size: the geom's three sizes, `geom_size` [m].
        p: the point in the geom's frame, three values of any width [m].
        exact: inside a box, 1: the distance to the nearest face, 0: MuJoCo's field (`box_interior`).
    """
    jet = axis_jets(p)[2]
    prm = m.sdf_param
    if kind == SPHERE:
        jet = sphere_field(p, size[0])
    elif kind == CAPSULE:
        jet = sphere_field(Vec3(p.x, p.y, p.z - clip(p.z, -size[1], size[1])), size[0])
    elif kind == ELLIPSOID:
        jet = ellipsoid_field(size, p)
    elif kind == CYLINDER:
        jet = extrusion(scaled(1.0, radius_jet(p), -size[0]), scaled(1.0, absolute(axis_jets(p)[2]), -size[1]))
    elif kind == BOX:
        jet = box_field(size, p, exact)
    elif kind == OCTREE:
        jet = octree_field(m, d, adr, p)
    elif kind == TORUS:
        jet = torus_field(p, real(d, prm[adr]), real(d, prm[adr + 1]))
    elif kind == BOLT:
        jet = bolt_field(p, real(d, prm[adr]))
    elif kind == NUT:
        jet = nut_field(p, real(d, prm[adr]))
    elif kind == GEAR:
        jet = gear_field(p, tuple(real(d, prm[adr + k]) for k in range(10)))
    elif kind == BOWL:
        jet = bowl_field(p, real(d, prm[adr]), real(d, prm[adr + 1]), real(d, prm[adr + 2]), real(d, prm[adr + 3]))
    return jet.value, Vec3(jet.x, jet.y, jet.z)
