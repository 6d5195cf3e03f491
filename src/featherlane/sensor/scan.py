"""Places the rays of a pattern at a frame of the robot, and chooses the geoms that they can meet."""

from featherlane.prelude import *
from featherlane.collision.rays.ray import SLACK, end_rays, intersect_geom, start_rays
from featherlane.collision.rays.ray_shape import FAR
from featherlane.collision.rays.shapes import radius_of
from featherlane.dynamics.body.kinematics import store_geom_frame
from featherlane.sensor.image import near_bundle

BASE, YAW, WORLD = 0, 1, 2  # alignments of a pattern's axes: the frame's, the frame's heading, the world's
LEAST_SINKING = 0.05  # slope below which rays are not limited by the lowest geom
GRID = 7  # numbers before the cells: lower corner (x, y), 1 / side, cells along x and y, largest extent, lowest point
STEEP = 0.1  # horizontal length of the frame's x axis below which its y axis defines the heading


@kernel
def aligned_axes(R, alignment):
    """Returns the rotation of a pattern: that of the frame, its rotation about the vertical alone, or the identity."""
    zero = 0.0 * R.xx
    one = zero + 1.0
    length = sqrt(fma(R.xx, R.xx, R.yx * R.yx))
    # heading: the x axis; if that is steep, the y axis turned right by 90 degrees
    level = length >= STEEP
    x, y = where(level, R.xx, R.yy), where(level, R.yx, -R.xy)
    length = sqrt(fma(x, x, y * y))
    x, y = x / length, y / length
    if alignment == YAW:
        R = Mat3(x, -y, zero, y, x, zero, zero, zero, one)
    if alignment == WORLD:
        R = Mat3(one, zero, zero, zero, one, zero, zero, zero, one)
    return R


@kernel
def insert(chosen, n, g):
    """Inserts geom g into n ascending geoms; returns their new number.  Of equally near geoms the lowest is hit."""
    k = n
    while k > 0 and chosen[k - 1] > g:
        chosen[k] = chosen[k - 1]
        k -= 1
    chosen[k] = g
    return n + 1


@kernel
def choose(m, d, g, origin, bundle, chosen, n):
    """Computes the frame of geom g and inserts it into the n chosen geoms if it is near a bundle of rays.

    Args:
        origin: (centre of the rays' origins, axis of the bundle) in world axes.
        bundle: (rho, slope, behind, reach) of `bundle_of` (simulation/query/pattern.py).

    Returns:
        (number of chosen geoms, a value that is not finite if the geom's pose is not).
    """
    (center, axis), slope = origin, bundle[1]
    rho, spread, behind, reach = tuple(real(d, x) for x in bundle)
    store_geom_frame(m, d, g)
    near, _, r = near_bundle(m, d, g, fma(-behind, axis, center), axis, rho, fmax(spread, 0.0))
    if slope < 0.0:
        near = true_mask(d)
    away = norm3(d.geom_xpos[g] - center) - r > d.ray.cutoff[0] + reach
    if m.geom_type[g] == PLANE or any_(near & not_(away)):
        n = insert(chosen, n, g)
    return n, dot(d.geom_xpos[g], d.geom_xmat[g].rows[0]) + d.geom_xmat[g][8]


@kernel
def finite(x):
    """Returns a number of one world, 0 in place of one that is not finite."""
    return x if fabs(x) < FAR else 0.0 * FAR


@kernel
def range_of_cells(start, end, radius, grid, axis):
    """Returns the first and the last cell along x (axis 0) or y (1) within a radius of a segment."""
    low, inverse, n = read_lane(grid, axis, 0), read_lane(grid, 2, 0), read_lane(grid, 3 + axis, 0)
    a, b = fmin(start, end) - radius, fmax(start, end) + radius
    first, last = clip(floor((a - low) * inverse), 0.0, n - 1.0), clip(floor((b - low) * inverse), 0.0, n - 1.0)
    return whole(first), whole(last)


@kernel
def choose_fixed(m, d, p, origin, bundle, chosen, n):
    """Inserts the fixed geoms near a bundle of rays, from the cells of `cells_of` (simulation/query/ground.py)."""
    grid, (rho, slope, behind, reach), cutoff = doubles(d, p.ground), bundle, d.ray.cutoff[0] + 0.0
    center, axis = origin
    p.local[0:6] = join(center, axis)
    x, y, z, ax, ay, az = tuple(finite(read_lane(p.local, i, 0)) for i in range(6))
    # length and radius of a cylinder that holds the rays until all of them are below the lowest geom
    length, radius = cutoff + reach, cutoff + reach
    if slope >= 0.0:
        sinking = -(az + slope * sqrt(fmax(1.0 - az * az, 0.0)))
        if sinking > LEAST_SINKING:
            length = fmin(length, reach + fmax(z + reach - read_lane(grid, 6, 0), 0.0) / sinking)
        radius = fmin(radius, rho + slope * (length + behind))
    else:
        length = 0.0 * length
    radius = radius + read_lane(grid, 5, 0)
    first, last = range_of_cells(x - behind * ax, x + length * ax, radius, grid, 0)
    low, high = range_of_cells(y - behind * ay, y + length * ay, radius, grid, 1)
    nx = whole(read_lane(grid, 3, 0))
    listed = GRID + 1 + nx * whole(read_lane(grid, 4, 0))
    for row in range(low, high + 1):
        start = whole(read_lane(grid, GRID + nx * row + first, 0))
        for k in range(start, whole(read_lane(grid, GRID + nx * row + last + 1, 0))):
            n, _ = choose(m, d, whole(read_lane(grid, listed + k, 0)), origin, bundle, chosen, n)
    return n


@kernel
def choose_near(m, d, p, frame, bounds, chosen):
    """Sets `chosen` to the candidates near the rays; returns their number, and NaN if a pose is not finite.

    Args:
        p: record with the address `ground` of the cells of fixed geoms, 0: none; and `local`, for itself.
        frame: (position, rotation) of the pattern.
        bounds: numbers of `bundle_of`, in the pattern's frame.
        chosen: field of ints that receives the geoms.
    """
    pos, R = frame
    b = tuple(read_lane(bounds, i, 0) for i in range(10))
    center, axis = R @ Vec3(b[0:3]), R @ Vec3(b[3:6])
    origin = pos + center, axis
    bundle, spoiled, n = b[6:10], dot(pos, R.columns[0] + R.columns[1]), 0
    for k in range(d.camera.ncandidate[0]):
        n, pose = choose(m, d, d.camera.candidate[k], origin, bundle, chosen, n)
        spoiled = spoiled + pose
    if p.ground != 0:
        n = choose_fixed(m, d, p, origin, bundle, chosen, n)
    return n, where(fabs(spoiled) < FAR, 0.0, spoiled - spoiled)


# ---- vertical rays ---------------------------------------------------------------------------------------------------
@kernel
def measure_shadows(m, d, p):
    """Writes the half extents along x and y of the geoms in `ray.seen` to p.shadow."""
    for k in range(d.ray.ngeom[0]):
        g = d.ray.seen[k]
        geom = m.geom[g]
        s, R = geom.size, d.geom_xmat[g]
        if geom.type == BOX:
            for i in range(2):
                x = fabs(R[3 * i]) * s[0] + fabs(R[3 * i + 1]) * s[1] + fabs(R[3 * i + 2]) * s[2]
                p.shadow[k, i] = SLACK * x
        else:
            r = SLACK * radius_of(geom.type, s, geom.rbound)
            p.shadow[k, 0], p.shadow[k, 1] = r, r


@kernel
def cast_vertical(m, d, p):
    """Finds the first surfaces as `cast_packet`, for rays along z: a geom is tested if its shadow covers a ray."""
    x, y = d.ray.point[0][0], d.ray.point[0][1]
    start_rays(d)
    for k in range(d.ray.ngeom[0]):
        g = d.ray.seen[k]
        near = d.ray.exclude[0] != m.geom_bodyid[g]
        if m.geom_type[g] != PLANE:
            near = near & (fabs(d.geom_xpos[g][0] - x) <= p.shadow[k, 0])
            near = near & (fabs(d.geom_xpos[g][1] - y) <= p.shadow[k, 1])
        intersect_geom(m, d, g, near, packet=1)
    end_rays(d)
