"""Places the rays of a pattern at a frame of the robot, and chooses the geoms that they can meet.

A bundle holds all rays of a pattern: (rho, slope, behind, reach) of `bundle_of` (simulation/query/pattern.py).  The
rays' origins are within `reach` of their centre.  At the distance t - behind along the axis from the centre, all rays
are within rho + slope t of the axis; slope -1: they have no common direction.

Callers set ray.cutoff, the largest distance of a hit [m], ray.seen, the geoms to test, and ray.ngeom, their number.

The grid of fixed geoms, of `cells_of` (simulation/query/ground.py), is a table of numbers: GRID numbers of the header,
then for each cell (x fastest, one more at the end) the start of its geoms in the list of geoms, then this list.
camera.candidate lists the camera.ncandidate geoms that are not in the grid.  SLACK, slightly above 1, scales bounding
spheres; FAR is larger than any distance.

image.near_bundle(m, d, g, start, axis, rho, slope) returns (mask: geom g comes near the bundle, t, radius) with its
bounding sphere.  intersect_geom stores hits of geom g that are nearer than ray.distance; packet=1: the lanes hold
neighbouring rays of one world.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.jet import constant_like
from featherlane.engine.collision.rays.ray import SLACK, end_rays, intersect_geom, start_rays
from featherlane.engine.collision.rays.ray_shape import FAR
from featherlane.engine.collision.rays.shapes import radius_of
from featherlane.engine.dynamics.body.kinematics import store_geom_frame
from featherlane.engine.sensor.image import near_bundle

BASE, YAW, WORLD = 0, 1, 2  # alignments of a pattern's axes: the frame's, the frame's heading, the world's
LEAST_DESCENT = 0.05  # slope below which rays are not limited by the lowest geom
GRID = 7  # numbers of the header: lower corner (x, y), 1 / side, cells along x and y, largest extent, lowest point
CORNER, INVERSE_SIDE, NCELL, EXTENT, LOWEST = 0, 2, 3, 5, 6  # indices of these numbers
STEEP = 0.1  # horizontal length of the frame's x axis below which its y axis defines the heading


@kernel
def aligned_axes(R, alignment):
    """Returns the rotation of a pattern: that of the frame R, its rotation about the vertical alone, or the identity.

    alignment: BASE, YAW or WORLD.
    """
    length = sqrt(fma(R.xx, R.xx, R.yx * R.yx))
    # heading: the x axis; if that is steep, the y axis turned right by 90 degrees
    level = length >= STEEP
    x = where(level, R.xx, R.yy)
    y = where(level, R.yx, -R.xy)
    length = sqrt(fma(x, x, y * y))
    x, y = x / length, y / length
    if alignment == YAW:
        R = Mat3(x, -y, 0.0, y, x, 0.0, 0.0, 0.0, 1.0)
    if alignment == WORLD:
        R = Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    return R


@kernel
def insert_geom(chosen, n, g):
    """Inserts geom g into n ascending geoms of the field `chosen`; returns their new number.

    Rays test geoms in this order, so the lowest of equally near geoms is hit.
    """
    k = n
    while k > 0 and chosen[k - 1] > g:
        chosen[k] = chosen[k - 1]
        k -= 1
    chosen[k] = g
    return n + 1


@kernel
def choose_geom(m, d, g, line, bundle, chosen, n):
    """Computes the frame of geom g and inserts it into the n chosen geoms if it is near a bundle of rays.

    Args:
        line: (centre of the rays' origins, axis of the bundle) in world axes.
        bundle: (rho, slope, behind, reach).
        chosen: field of ascending geoms.

    Returns:
        (number of chosen geoms, a value that is not finite if the geom's pose is not).
    """
    center, axis = line
    rho, slope, behind, reach = bundle
    # both in the precision of the worlds, because shared numbers are combined with each other in float64
    spread = constant_like(axis.x, fmax(slope, 0.0))
    reach = constant_like(axis.x, reach)
    store_geom_frame(m, d, g)  # geom_xpos, geom_xmat
    start = fma(-behind, axis, center)
    near, _, radius = near_bundle(m, d, g, start, axis, rho, spread)
    # without a common direction, only the distance counts
    if slope < 0.0:
        near = true_mask(d)
    too_far = norm3(d.geom_xpos[g] - center) - radius > d.ray.cutoff[0] + reach
    # a plane has no bounding sphere
    if m.geom_type[g] == PLANE or any_(near & not_(too_far)):
        n = insert_geom(chosen, n, g)
    # a sum over position and rotation is not finite if one of them is not
    return n, dot(d.geom_xpos[g], d.geom_xmat[g].rows[0]) + d.geom_xmat[g][8]


@kernel
def finite_or_zero(x):
    """Returns a number of one world, 0 in place of one that is not finite."""
    return x if fabs(x) < FAR else 0.0


@kernel
def range_of_cells(start, end, radius, grid, axis):
    """Returns the (first, last) cell along x (axis 0) or y (1) within a radius of a segment.

    start, end: coordinates of the segment along the axis [m]; grid: the numbers of the module's table.
    """
    corner = read_lane(grid, CORNER + axis, 0)
    inverse = read_lane(grid, INVERSE_SIDE, 0)
    n = read_lane(grid, NCELL + axis, 0)
    lower = fmin(start, end) - radius
    upper = fmax(start, end) + radius
    first = clip(floor((lower - corner) * inverse), 0.0, n - 1.0)
    last = clip(floor((upper - corner) * inverse), 0.0, n - 1.0)
    return whole(first), whole(last)


@kernel
def choose_fixed(m, d, p, line, bundle, chosen, n):
    """Inserts the fixed geoms near a bundle of rays, from the grid's cells; returns the number of chosen geoms.

    A cylinder about the bundle's axis holds all rays until they are below the lowest geom.  The geoms are those of the
    cells under the bounding rectangle of the cylinder, widened by the largest extent of a geom.

    Args:
        p: record with the address `ground` of the grid, and `local` for scratch.
        line: (centre of the rays' origins, axis of the bundle) in world axes.
        bundle: (rho, slope, behind, reach).
        chosen: field of ascending geoms, n of them so far.
    """
    # doubles: the float64 numbers at an address
    grid = doubles(d, p.ground)
    rho, slope, behind, reach = bundle
    cutoff = d.ray.cutoff[0]
    center, axis = line
    # centre and axis as numbers of one world: all lanes have the frame of the same world, so lane 0 serves
    p.local[0:6] = join(center, axis)
    x, y, z, axis_x, axis_y, axis_z = tuple(finite_or_zero(read_lane(p.local, i, 0)) for i in range(6))
    # the cylinder, from -behind to length along the axis
    length, radius = cutoff + reach, cutoff + reach
    if slope >= 0.0:
        # per length along the axis, a ray moves by axis + s u, with 0 <= s <= slope and a unit vector u across the
        # axis; it descends least if s = slope and u points up as far as possible
        descent = -(axis_z + slope * sqrt(fmax(1.0 - axis_z * axis_z, 0.0)))
        if descent > LEAST_DESCENT:
            # a ray starts within `reach` of the centre, along the axis and in height, and descends to the lowest geom
            length = fmin(length, reach + fmax(z + reach - read_lane(grid, LOWEST, 0), 0.0) / descent)
        radius = fmin(radius, rho + slope * (length + behind))
    else:
        length = 0.0  # no common direction: a circle around the centre
    radius = radius + read_lane(grid, EXTENT, 0)
    # cells under the cylinder: columns along x, rows along y
    first_column, last_column = range_of_cells(x - behind * axis_x, x + length * axis_x, radius, grid, axis=0)
    first_row, last_row = range_of_cells(y - behind * axis_y, y + length * axis_y, radius, grid, axis=1)
    ncolumn = whole(read_lane(grid, NCELL, 0))
    geoms = GRID + 1 + ncolumn * whole(read_lane(grid, NCELL + 1, 0))  # start of the list of geoms
    for row in range(first_row, last_row + 1):
        # the lists of a row's cells follow each other: from that of the first cell to the end of the last one's
        start = whole(read_lane(grid, GRID + ncolumn * row + first_column, 0))
        for k in range(start, whole(read_lane(grid, GRID + ncolumn * row + last_column + 1, 0))):
            n, _ = choose_geom(m, d, whole(read_lane(grid, geoms + k, 0)), line, bundle, chosen, n)
    return n


@kernel
def choose_near(m, d, p, frame, bounds, chosen):
    """chosen <- the candidates near the rays; returns (their number, NaN if a pose is not finite, else 0).

    Args:
        p: record with the address `ground` of the grid of fixed geoms, 0: none; and `local` for scratch.
        frame: (position, rotation) of the pattern.
        bounds: centre (3), axis (3), rho, slope, behind, reach of `bundle_of`, in the pattern's frame.
        chosen: field of ints that receives the geoms.
    """
    pos, R = frame
    numbers = tuple(read_lane(bounds, i, 0) for i in range(10))
    center, axis = R @ Vec3(numbers[0:3]), R @ Vec3(numbers[3:6])
    line = (pos + center, axis)
    bundle = numbers[6:10]
    # a number that is not finite if the frame or a geom's pose is not; its value has no meaning
    nonfinite = dot(pos, R.columns[0] + R.columns[1])  # the third column is the product of these
    n = 0
    for k in range(d.camera.ncandidate[0]):
        n, pose = choose_geom(m, d, d.camera.candidate[k], line, bundle, chosen, n)
        nonfinite = nonfinite + pose
    if p.ground != 0:
        n = choose_fixed(m, d, p, line, bundle, chosen, n)
    return n, where(fabs(nonfinite) < FAR, 0.0, nonfinite - nonfinite)  # NaN - NaN and inf - inf are NaN


# ---- vertical rays ---------------------------------------------------------------------------------------------------
@kernel
def store_half_extents(m, d, p):
    """p.half_extents <- half extents along x and y [m] of each geom in `ray.seen`: of a box, or a bounding sphere."""
    for k in range(d.ray.ngeom[0]):
        g = d.ray.seen[k]
        geom = m.geom[g]
        size, R = geom.size, d.geom_xmat[g]
        if geom.type == BOX:
            for i in range(2):
                # sum over j of |R_ij| size_j; row i of R: 3 i to 3 i + 2
                extent = fabs(R[3 * i]) * size[0] + fabs(R[3 * i + 1]) * size[1] + fabs(R[3 * i + 2]) * size[2]
                p.half_extents[k, i] = SLACK * extent
        else:
            radius = SLACK * radius_of(geom.type, size, geom.rbound)
            p.half_extents[k, 0], p.half_extents[k, 1] = radius, radius


@kernel
def cast_vertical(m, d, p):
    """Finds the first surfaces of rays along z: a geom is tested if its rectangle has a ray.

    Reads:  ray.point, ray.exclude (a body), ray.seen, ray.ngeom, ray.cutoff, as `cast`; p.half_extents.
    Writes: ray.distance [m] and ray.geom, -1 without a hit; ray.normal.
    """
    x, y = d.ray.point[0][0], d.ray.point[0][1]
    start_rays(d)  # no hits, at the cutoff
    for k in range(d.ray.ngeom[0]):
        g = d.ray.seen[k]
        near = d.ray.exclude[0] != m.geom_bodyid[g]
        # a plane has no extent and is always tested
        if m.geom_type[g] != PLANE:
            near = near & (fabs(d.geom_xpos[g][0] - x) <= p.half_extents[k, 0])
            near = near & (fabs(d.geom_xpos[g][1] - y) <= p.half_extents[k, 1])
        intersect_geom(m, d, g, near, packet=1)  # ray.distance, ray.geom, ray.normal
    end_rays(d)
