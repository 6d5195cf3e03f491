"""Computes signed distance fields (SDFs): value and gradient of the field of a geom at a point of its frame.

A field is negative inside, and its zero level is the surface.  Fields of plugins and of ellipsoids are distances to
first order only.  They are computed as jets (jet.py): a value and its gradient; affine(a, jet, b) is a jet + b.
p is a point in the frame of the geom [m].
The kinds of fields are types of geoms, OCTREE for a mesh, and the plugins BOLT, NUT, GEAR, BOWL and TORUS.
A mesh's octree has the root mesh_octree and the box mesh_octbox, centre and half sides; octree_child is the first of a
node's eight children, negative for a leaf, octree_coeff the field at a node's corners.  sdf_param has the parameters of
all plugins.  TINY is the least divisor of a coordinate.

Imported kernels on jets:

    union, intersection, difference        min(a, b), max(a, b), max(a, -b)
    absolute(a), hypotenuse(a, b)          |a|, sqrt(a^2 + b^2)
    axis_jets, radius_jet, azimuth_jet     of the point p: x, y and z; distance from the z axis; angle about it
    extrusion(section, ends)               prism of a cross section's field and the distance beyond its two ends
    constant_like(x, number)               the number with the width and precision of x

Source: MuJoCo engine_collision_sdf.c (geomDistance, geomGradient, oct_distance, oct_gradient) and plugin/sdf.
Deviations: derivatives of bolt, nut, gear and bowl, and of an octree outside its box, are analytic (MuJoCo:
differences over 1e-8 m); the hexagon of bolt and nut is the intersection of its half-planes (MuJoCo: a rotation).
"""

import math

from featherlane.engine.prelude import *
from featherlane.engine.collision.jet import (
    TINY,
    Jet,
    absolute,
    affine,
    axis_jets,
    azimuth_jet,
    constant_like,
    difference,
    extrusion,
    hypotenuse,
    intersection,
    radius_jet,
    union,
)
from featherlane.engine.model.signed_distance import BOLT, BOWL, GEAR, NUT, OCTREE, TORUS

HALF_ROOT, COS_30 = math.sqrt(0.5), math.sqrt(0.75)
THREADS = 12.0  # turns of the thread per metre
INSET = 1e-6  # m: a point beyond the octree's box is evaluated this far inside of it
FAR = 1e6  # m: the flank of a gear's tooth inside its base circle


# ---- primitive shapes ------------------------------------------------------------------------------------------------
@kernel
def sphere_field(p, radius):
    """Returns the jet of a sphere about the origin."""
    distance = norm3(p)
    inverse = 1.0 / fmax(distance, MINVAL)
    return Jet(distance - radius, inverse * p[0], inverse * p[1], inverse * p[2])


@kernel
def box_interior(size, p, exact):
    """Returns the jet of a box at a point inside it.

    With margin = size - |p|, the distances to the faces: if `exact`, depth is the least margin and the gradient is the
    normal of that face.  Else it is MuJoCo's field: the gradient is the unit vector of size / margin, with the signs of
    p, and depth the distance to the surface along this vector.  It is not the derivative of that depth.
    """
    margin = fmax(size - fabs(p), MINVAL)
    if exact:
        x_nearest = margin[0] <= fmin(margin[1], margin[2])
        # of equal margins, the first axis is selected
        y_before_z = margin[1] <= margin[2]
        depth = fmin(margin[0], fmin(margin[1], margin[2]))
        direction = Vec3(
            where(x_nearest, 1.0, 0.0),
            where(x_nearest, 0.0, where(y_before_z, 1.0, 0.0)),
            where(x_nearest | y_before_z, 0.0, 1.0),
        )
    else:
        direction = Vec3(size[k] / margin[k] for k in range(3))
        direction = direction / norm3(direction)
        depth = fmin(margin[0] / direction[0], fmin(margin[1] / direction[1], margin[2] / direction[2]))
    x, y, z = tuple(where(p[k] < 0.0, -direction[k], direction[k]) for k in range(3))
    return Jet(-depth, x, y, z)


@kernel
def box_field(size, p, exact):
    """Returns the jet of a box about the origin: outside the distance |max(|p| - size, 0)|, inside `box_interior`.

    size: half sides [m].  exact: 1: the field inside is the distance to the nearest face; 0: it is MuJoCo's.
    """
    excess = fabs(p) - size
    outside = (excess[0] >= 0.0) | (excess[1] >= 0.0) | (excess[2] >= 0.0)
    gap = fmax(excess, 0.0)
    distance = norm3(gap)
    # gradient: the unit vector from the nearest point of the box
    x, y, z = copysign(1.0 / fmax(distance, MINVAL) * gap, p)
    return where(outside, Jet(distance, x, y, z), box_interior(size, p, exact))


@kernel
def ellipsoid_field(size, p):
    """Returns the jet of an ellipsoid: f = k0 (k0 - 1) / k1 with k0 = |p / size|, k1 = |p / size^2|.

    The gradient, ((2 k0 - 1) / (k0 k1)) p / size^2 - (k0 (k0 - 1) / k1^3) p / size^4, is normalized.
    """
    p_over_size = Vec3(p[k] / size[k] for k in range(3))
    p_over_square = Vec3(p_over_size[k] / size[k] for k in range(3))
    k0, k1 = norm3(p_over_size), norm3(p_over_square)
    inverse0, inverse1 = 1.0 / fmax(k0, MINVAL), 1.0 / fmax(k1, MINVAL)
    # gradient: rise p / size^2 - fall p / size^4
    rise = (2.0 * k0 - 1.0) * inverse1 * inverse0
    fall = k0 * (k0 - 1.0) * inverse1 * inverse1 * inverse1
    (x, y, z), _ = normalize3(Vec3(p_over_square[k] * (rise - fall / (size[k] * size[k])) for k in range(3)))
    return Jet(k0 * (k0 - 1.0) * inverse1, x, y, z)


# ---- plugins ---------------------------------------------------------------------------------------------------------
@kernel
def torus_field(p, ring, tube):
    """Returns the jet of a torus about z: sqrt((rho - ring)^2 + z^2) - tube, rho the distance from the z axis.

    ring: radius of the centre line; tube: radius of the tube [m].
    """
    _, _, z = axis_jets(p)
    return affine(1.0, hypotenuse(affine(1.0, radius_jet(p), -ring), z), -tube)


@kernel
def bowl_field(p, height, width, radius, thickness):
    """Returns the jet of a bowl: the lower part of a sphere's shell about the origin, with a rounded rim.

    Args:
        height, width: z and distance from the z axis of the rim [m]; beyond it the field is the distance from the rim.
        radius, thickness: of the sphere, and half the thickness of its shell [m].
    """
    _, _, z = axis_jets(p)
    rho = radius_jet(p)
    shell = sphere_field(p, radius)
    # points above the cone through the rim are nearest to the rim
    rim = hypotenuse(affine(1.0, rho, -width), affine(1.0, z, -height))
    return affine(1.0, where(height * rho.value < width * p[2], rim, absolute(shell)), -thickness)


@kernel
def thread_field(p, radius):
    """Returns the jet of an endless screw: a cylinder whose surface is lowered by a triangle wave that winds about z.

    radius: jet of the distance from the cylinder's surface.  Field: sqrt(1/2) (radius - |frac(phase) - 1/2| / THREADS),
    with phase = THREADS z - azimuth / (2 pi).
    """
    _, _, z = axis_jets(p)
    phase = affine(THREADS, z, 0.0) - affine(0.5 / PI, azimuth_jet(p), 0.0)
    wave = absolute(affine(1.0, phase, -0.5 - floor(phase.value)))
    return affine(HALF_ROOT, radius - affine(1.0 / THREADS, wave, 0.0), 0.0)


@kernel
def hexagon_head(p, radius):
    """Returns the jet of the head of bolt and nut: a hexagonal prism from z = -0.5 to 0, rounded by a cone.

    radius: jet of the distance from the shank's surface.  The hexagon's half width is 0.5 (lengths of MuJoCo's plugin).
    """
    x, y, z = axis_jets(p)
    # |p . n| for the normals n = (1, 0), (1/2, cos 30) and (1/2, -cos 30) of the hexagon's sides
    abs_x = absolute(x)
    cos_y = affine(COS_30, y, 0.0)
    half_x = affine(0.5, x, 0.0)
    head = intersection(abs_x, intersection(absolute(half_x + cos_y), absolute(half_x - cos_y)))
    # half width 0.5, and z from -0.5 to 0: |z + 0.25| - 0.25
    head = intersection(affine(1.0, head, -0.5), affine(1.0, absolute(affine(1.0, z, 0.25)), -0.25))
    # within the cone z + radius = 0.22
    return intersection(head, affine(HALF_ROOT, z + radius, -0.22 * HALF_ROOT))


@kernel
def bolt_field(p, shank):
    """Returns the jet of a bolt: a thread from z = -1 to 0 with a pointed end, and a head.

    shank: radius of the shank [m].
    """
    _, _, z = axis_jets(p)
    radius = affine(1.0, radius_jet(p), -shank)
    # z from -1 to 0: |z + 0.5| - 0.5
    bolt = intersection(thread_field(p, radius), affine(1.0, absolute(affine(1.0, z, 0.5)), -0.5))
    cone = affine(HALF_ROOT, z - radius, HALF_ROOT)  # negative where radius > z + 1: cut off at the end z = -1
    return union(difference(bolt, cone), hexagon_head(p, radius))


@kernel
def nut_field(p, shank):
    """Returns the jet of a nut: a hexagonal head from which a threaded hole with conical ends is cut.

    The first cone narrows the hole at the end z = -0.5, the second widens it at the end z = 0.
    shank: radius of the hole [m].  Numbers are lengths of MuJoCo's plugin.
    """
    _, _, z = axis_jets(p)
    radius = affine(1.0, radius_jet(p), -shank)
    cone = affine(HALF_ROOT, z - radius, 0.0)
    # removes from the hole what has radius > z + 0.5, then adds what has radius < z + 0.05
    hole = difference(thread_field(p, radius), affine(1.0, cone, 0.5 * HALF_ROOT))
    hole = union(hole, affine(-1.0, cone, -0.05 * HALF_ROOT))
    return difference(hexagon_head(p, radius), hole)


@kernel
def smooth_union(a, b, blend):
    """Returns the union of two solids, blended over a length: (1 - w) b + w a - blend w (1 - w).

    w = 0.5 + 0.5 (b - a) / blend in [0, 1].  The derivatives of w cancel.
    """
    weight = clip(0.5 + 0.5 * (b.value - a.value) / blend, 0.0, 1.0)
    joined = affine(1.0 - weight, b, 0.0) + affine(weight, a, 0.0)
    return affine(1.0, joined, -(blend * weight * (1.0 - weight)))


@kernel
def smooth_intersection(a, b, blend):
    """Returns the intersection of two solids, with edges that are rounded over the length `blend`.

    It is the sharp intersection without the smooth union of (a without b) and (b without a).
    """
    return difference(intersection(a, b), smooth_union(difference(a, b), difference(b, a), blend))


@kernel
def wrapped(x, period):
    """Returns x modulo the period, in [0, period)."""
    return x - period * floor(x / period)


@kernel
def flank(rho, angle, base):
    """Returns the jet of one side of a gear's tooth: the involute of the base circle, and -FAR inside this circle.

    Distance t - base (angle + acos(base / rho)), where t = sqrt(rho^2 - base^2) is the length of the tangent to the
    base circle.  Its derivative by rho is t / rho, by the angle -base.

    Args:
        rho, angle: jets of the distance from the z axis and of the angle from the tooth's side.
        base: radius of the base circle [m].
    """
    outside = rho.value > base
    radius = fmax(rho.value, base)
    tangent = sqrt(fmax(fma(radius, radius, -(base * base)), 0.0))
    value = tangent - base * (angle.value + acos(clip(base / fmax(radius, TINY), -1.0, 1.0)))
    slope = tangent / fmax(radius, TINY)
    x, y, z = tuple(fma(slope, rho[k], -(base * angle[k])) for k in range(1, 4))
    return where(outside, Jet(value, x, y, z), Jet(-FAR, 0.0, 0.0, 0.0))


@kernel
def gear_field(p, parameters):
    """Returns the jet of a gear about z.

    parameters: angle of the gear; half thickness; radii of hole, tip, root and base circle; angle from tooth to tooth,
        angle between the sides of neighbouring teeth; lengths over which tip and root are rounded (`_gear`).
    """
    angle0, half_thickness, hole, tip, root, base, stride, shift, round_tip, round_root = parameters
    _, _, z = axis_jets(p)
    rho = radius_jet(p)
    angle = azimuth_jet(p)
    azimuth = angle.value + angle0
    # angles from the two sides of the nearest tooth, in [-shift / 2, stride - shift / 2), counted in opposite
    # directions: they add up to stride - shift
    side = Jet(wrapped(azimuth + 0.5 * shift, stride) - 0.5 * shift, angle.x, angle.y, angle.z)
    other = Jet(wrapped(-azimuth - 0.5 * shift, stride) - 0.5 * shift, -angle.x, -angle.y, -angle.z)
    # teeth: the intersection of two sectors (both angles below stride - shift) and two involute flanks
    walls = affine(1.0, intersection(side, other), shift - stride)
    teeth = intersection(walls, intersection(flank(rho, side, base), flank(rho, other, base)))
    # rounded tip and root, and the hole
    teeth = smooth_intersection(affine(1.0, rho, -tip), teeth, round_tip)
    teeth = smooth_union(affine(1.0, rho, -root), teeth, round_root)
    teeth = difference(teeth, affine(1.0, rho, -hole))
    # more than 0.2 m outside the tip, and inside the hole: the distance from their circles
    teeth = where(tip - rho.value < -0.2, affine(1.0, rho, -tip), teeth)
    teeth = where(hole - rho.value > 0.0, affine(-1.0, rho, hole), teeth)
    return extrusion(teeth, affine(1.0, absolute(z), -half_thickness))


# ---- octree of a mesh ------------------------------------------------------------------------------------------------
@kernel
def octree_leaf(m, root, u):
    """Returns (leaf, u, fraction) of the octree's leaf that contains the point with relative coordinates u.

    Args:
        root: first node of the octree.
        u: position in the octree's box, from 0 to 1 along each side.

    The returned u is the position in the leaf, from 0 to 1 along each side; fraction is the length of the leaf's
    sides relative to the box's.
    """
    node = constant_like(u[0], 1.0 * root)
    fraction = constant_like(u[0], 1.0)
    child = gather(m.octree_child, node)  # the first of eight; negative for a leaf
    while any_(child >= 0.0):
        has_child = child >= 0.0
        upper_half = Vec3(where(u[k] < 0.5, 0.0, 1.0) for k in range(3))
        # the children of a node follow each other: bit k of the number is the upper half along axis k
        node = where(has_child, child + (upper_half[0] + 2.0 * upper_half[1] + 4.0 * upper_half[2]), node)
        u = where(has_child, 2.0 * u - upper_half, u)
        fraction = where(has_child, 0.5 * fraction, fraction)
        child = gather(m.octree_child, node)
    return node, u, fraction


@kernel
def trilinear(m, leaf, u):
    """Returns the jet of the trilinear interpolation in a leaf, with derivatives by u (0 to 1 along each side).

    Corner k of the leaf is at the upper end of axis i if bit i of k is set.
    """
    corner = tuple(gather(m.octree_coeff, 8.0 * leaf + k) for k in range(8))
    # differences along, and values on, the four edges parallel to x
    x_edge = tuple(corner[2 * k + 1] - corner[2 * k] for k in range(4))
    on_x_edge = tuple(fma(u[0], x_edge[k], corner[2 * k]) for k in range(4))
    # the same along y, on the lower and the upper face; then the derivative by x on these faces
    y_edge = on_x_edge[1] - on_x_edge[0], on_x_edge[3] - on_x_edge[2]
    on_face = fma(u[1], y_edge[0], on_x_edge[0]), fma(u[1], y_edge[1], on_x_edge[2])
    x_slope = fma(u[1], x_edge[1] - x_edge[0], x_edge[0]), fma(u[1], x_edge[3] - x_edge[2], x_edge[2])
    return Jet(
        fma(u[2], on_face[1] - on_face[0], on_face[0]),
        fma(u[2], x_slope[1] - x_slope[0], x_slope[0]),
        fma(u[2], y_edge[1] - y_edge[0], y_edge[0]),
        on_face[1] - on_face[0],
    )


@kernel
def octree_field(m, mesh, p):
    """Returns the jet of a mesh's octree at p; outside of its box, the distance to the box is added.

    Outside, the octree is evaluated at the nearest point of the box, INSET inside of it.  Along axes on which p is
    beyond the box, the derivative is that of the added distance.
    """
    box = m.mesh_octbox[mesh]
    offset = p - box.centre
    half = box.half
    excess = fabs(offset) - half
    outside = (excess[0] > 0.0) | (excess[1] > 0.0) | (excess[2] > 0.0)
    beyond = tuple(outside & (excess[k] >= 0.0) for k in range(3))
    gap = Vec3(where(beyond[k], excess[k], 0.0) for k in range(3))
    nearest = Vec3(where(beyond[k], copysign(half[k] - INSET, offset[k]), offset[k]) for k in range(3))
    sides = 2.0 * half
    u = Vec3((nearest[k] + half[k]) / sides[k] for k in range(3))
    leaf, u_in_leaf, fraction = octree_leaf(m, m.mesh_octree[mesh], u)
    jet = trilinear(m, leaf, u_in_leaf)
    distance = norm3(gap)
    inverse = 1.0 / fmax(distance, MINVAL)
    # converts derivatives by u_in_leaf to derivatives by the coordinates of p
    slope = tuple(jet[k + 1] / (fraction * sides[k]) for k in range(3))
    x, y, z = tuple(where(beyond[k], copysign(inverse * gap[k], offset[k]), slope[k]) for k in range(3))
    return Jet(jet[0] + distance, x, y, z)


# ---- all kinds -------------------------------------------------------------------------------------------------------
@kernel
def signed_distance(m, kind, adr, size, p, exact):
    """Returns (value, gradient) of the signed distance field of a geom.

    Args:
        kind: `m.geom_field[geom]`, not -1.
        adr: `m.geom_fieldadr[geom]`: the mesh of an octree, the first of a plugin's parameters.
        size: the geom's three sizes, `geom_size` [m].
        p: the point in the geom's frame, three values of any width [m].
        exact: inside a box, 1: the distance to the nearest face, 0: MuJoCo's field (`box_interior`).
    """
    jet = axis_jets(p)[2]  # gives jet its type; every kind below replaces it
    param = m.sdf_param
    if kind == SPHERE:
        jet = sphere_field(p, size[0])
    elif kind == CAPSULE:
        jet = sphere_field(Vec3(p.x, p.y, p.z - clip(p.z, -size[1], size[1])), size[0])
    elif kind == ELLIPSOID:
        jet = ellipsoid_field(size, p)
    elif kind == CYLINDER:
        jet = extrusion(affine(1.0, radius_jet(p), -size[0]), affine(1.0, absolute(axis_jets(p)[2]), -size[1]))
    elif kind == BOX:
        jet = box_field(size, p, exact)
    elif kind == OCTREE:
        jet = octree_field(m, adr, p)
    elif kind == TORUS:
        jet = torus_field(p, param[adr], param[adr + 1])
    elif kind == BOLT:
        jet = bolt_field(p, param[adr])
    elif kind == NUT:
        jet = nut_field(p, param[adr])
    elif kind == GEAR:
        jet = gear_field(p, param[adr : adr + 10])
    elif kind == BOWL:
        height, width, radius, thickness = param[adr : adr + 4]
        jet = bowl_field(p, height, width, radius, thickness)
    return jet.value, Vec3(jet.x, jet.y, jet.z)
