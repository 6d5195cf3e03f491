"""Intersects rays with height fields: base box, surface triangles, and walls below them; one world at a time.

`field` is the index of the height field.  Columns of samples run along x, rows along y.  A cell is cut from
(row, column) to (row + 1, column + 1).
The field has hfield_nrow rows of hfield_ncol samples from 0 to 1, hfield_data from hfield_adr on; hfield_size is (half
side along x, half side along y, height of the sample value 1, depth of the base) [m].  m1 and d1 are the model and the
data of one world; line.* are the ray and its nearest hit: line.distance, line.normal, line.hit.
slab(p, v, lower, upper) has the distances at which a line enters and leaves a slab of one axis; meet_box returns (met,
distance, outward normal); meet_triangle stores a nearer hit in line.*.
Source: MuJoCo mj_rayHfield, with the same surfaces: the top of the base is one, too, for a ray that starts inside.
    Deviation: only the cells near the ray's path over the grid are tested, row by row, not the whole
    rectangle between its ends.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.heights import sample_height
from featherlane.engine.collision.rays.ray_mesh import meet_triangle, ray_of_line
from featherlane.engine.collision.rays.ray_shape import meet_box, slab

# margin around the ray's path over the grid in which cells are tested, relative to a cell; around its heights there,
# relative to the height of the sample value 1
PADDING = 0.01


@kernel
def clamped_floor(x, n):
    """Returns the largest integer not above x, clamped to 0 .. n - 1."""
    return whole(clip(floor(x), 0.0, n - 1.0))


@kernel
def intersect_cell(m1, d1, field, r, c, cell, heights, ray):
    """Intersects the ray with both triangles of cell (r, c), if the heights of the ray and of the cell overlap.

    cell: sizes of a cell along x and y [m]; heights: lowest and highest z of the ray over row r.
    Writes: line.*, for a nearer hit.
    """
    (dx, dy), (low, high) = cell, heights
    z00 = sample_height(m1, field, r, c)
    z01 = sample_height(m1, field, r, c + 1)
    z10 = sample_height(m1, field, r + 1, c)
    z11 = sample_height(m1, field, r + 1, c + 1)
    top, bottom = fmax(fmax(z00, z01), fmax(z10, z11)), fmin(fmin(z00, z01), fmin(z10, z11))
    if (bottom <= high) & (top >= low):
        x0, y0 = dx * c - m1.hfield_size[field][0], dy * r - m1.hfield_size[field][1]
        x1, y1 = dx * (c + 1) - m1.hfield_size[field][0], dy * (r + 1) - m1.hfield_size[field][1]
        first, opposite = Vec3(x0, y0, z00), Vec3(x1, y1, z11)
        meet_triangle(d1, first, Vec3(x1, y0, z01), opposite, ray)
        meet_triangle(d1, first, opposite, Vec3(x0, y1, z10), ray)


@kernel
def meet_surface(m1, d1, field, cell, enter, leave):
    """Intersects the triangles near the ray between distances `enter` and `leave`, row by row along its path.

    cell: sizes of a cell along x and y [m].   Writes: line.*, for nearer hits.
    """
    ncell_y, ncell_x = m1.hfield_nrow[field] - 1, m1.hfield_ncol[field] - 1
    dx, dy = cell
    ray = ray_of_line(d1)
    p, v = ray.p, ray.v
    height_slack = PADDING * m1.hfield_size[field][2]

    # position on the grid, in cells, and its rate
    grid_x, grid_y = (p[0] + m1.hfield_size[field][0]) / dx, (p[1] + m1.hfield_size[field][1]) / dy
    rate_x, rate_y = v[0] / dx, v[1] / dy
    # the rows from the entry to the exit, in the direction of the ray
    grid_y0, grid_y1 = fma(enter, rate_y, grid_y), fma(leave, rate_y, grid_y)
    first = clamped_floor(grid_y0 - PADDING, ncell_y)
    last = clamped_floor(grid_y1 + PADDING, ncell_y)
    step = 1
    if grid_y1 < grid_y0:
        first = clamped_floor(grid_y0 + PADDING, ncell_y)
        last = clamped_floor(grid_y1 - PADDING, ncell_y)
        step = -1
    for k in range(step * (last - first) + 1):
        row = first + step * k
        # distances at which the ray is over the row
        begin, end = enter, leave
        if fabs(rate_y) > MINVAL:
            near_edge = (row - PADDING - grid_y) / rate_y
            far_edge = (row + 1.0 + PADDING - grid_y) / rate_y
            begin, end = fmax(begin, fmin(near_edge, far_edge)), fmin(end, fmax(near_edge, far_edge))
        # this row and the following ones are behind the nearest hit
        if begin > d1.line.distance[0]:
            break
        # columns and heights of the ray over this row
        x0, x1 = fma(begin, rate_x, grid_x), fma(end, rate_x, grid_x)
        z0, z1 = fma(begin, v[2], p[2]), fma(end, v[2], p[2])
        heights = fmin(z0, z1) - height_slack, fmax(z0, z1) + height_slack
        for c in range(
            clamped_floor(fmin(x0, x1) - PADDING, ncell_x), clamped_floor(fmax(x0, x1) + PADDING, ncell_x) + 1
        ):
            intersect_cell(m1, d1, field, row, c, cell, heights, ray)


@kernel
def store_nearer(d1, x, n):
    """Stores a surface at distance x with normal n as the hit if 0 <= x < line.distance.

    Writes: line.distance, line.hit, line.normal.
    """
    if (x >= 0.0) & (x < d1.line.distance[0]):
        d1.line.distance[0] = x
        d1.line.hit[0] = 1
        d1.line.normal[0] = n


@kernel
def meet_wall(m1, d1, field, p, v, side, across):
    """Intersects the ray with one wall of the field, from the height 0 up to the samples along the wall.

    Args:
        p, v: point and direction of the ray.
        side: -1 or 1, the sign of the wall's outward normal along its axis.
        across: axis of the normal, 0 for x, 1 for y.

    Writes: line.*, for a nearer hit.
    """
    # the wall is at side * half_width on its normal's axis (p_normal, v_normal), and extends from -along to along on
    # the other axis (p_along, v_along); its n samples begin at `start` and are `stride` apart
    ncol, nrow = m1.hfield_ncol[field], m1.hfield_nrow[field]
    # a wall across x, at the first or the last column of samples
    half_width = m1.hfield_size[field][0]
    start = 0
    stride, n = ncol, nrow
    along, p_along, v_along, p_normal, v_normal = m1.hfield_size[field][1], p[1], v[1], p[0], v[0]
    if side > 0:
        start = ncol - 1
    # a wall across y, at the first or the last row of samples
    if across:
        start, stride = 0, 1
        n = ncol
        half_width, along = m1.hfield_size[field][1], half_width
        p_along, v_along, p_normal, v_normal = p[0], v[0], p[1], v[1]
        if side > 0:
            start = (nrow - 1) * ncol
    top = m1.hfield_size[field][2]
    if fabs(v_normal) > MINVAL:
        # x: distance along the ray; y, z: position on the wall
        x = (side * half_width - p_normal) / v_normal
        y = fma(x, v_along, p_along)
        z = fma(x, v[2], p[2])
        if (x >= 0.0) & (fabs(y) <= along) & (z >= 0.0) & (z <= top):
            # from metres to samples; the wall's top is linear between two samples
            position = (y + along) * (n - 1) / (2.0 * along)
            sample = clamped_floor(position, n - 1)
            adr = m1.hfield_adr[field] + start + sample * stride
            fraction = position - sample
            if z < top * (m1.hfield_data[adr] * (1.0 - fraction) + m1.hfield_data[adr + stride] * fraction):
                if across:
                    store_nearer(d1, x, (0.0, side, 0.0))
                else:
                    store_nearer(d1, x, (side, 0.0, 0.0))


@stage
def meet_heights(m1, d1):
    """Finds the nearest surface of the height field `shapes.data` that is nearer than `line.distance`.

    Reads:  line.point, line.direction (unit), in the field's frame.
    Writes: line.distance, line.hit, line.normal, if there is such a surface.   Cost: O(cells under the ray).
    """
    p, v = d1.line.point[0], d1.line.direction[0]
    field = d1.shapes.data[0]
    # half sides, height of the sample value 1, depth of the base
    sx, sy, top, base = m1.hfield_size[field]
    met, x, n = meet_box(p, v, (-sx, -sy, -base), (sx, sy, 0.0))
    if met:
        store_nearer(d1, x, n)
    lo0, hi0 = slab(p[0], v[0], -sx, sx)
    lo1, hi1 = slab(p[1], v[1], -sy, sy)
    lo2, hi2 = slab(p[2], v[2], 0.0, top)
    enter = fmax(fmax(fmax(lo0, lo1), lo2), 0.0)
    leave = fmin(fmin(hi0, hi1), hi2)
    if enter <= leave:
        cell = 2.0 * sx / (m1.hfield_ncol[field] - 1), 2.0 * sy / (m1.hfield_nrow[field] - 1)
        meet_surface(m1, d1, field, cell, enter, leave)
        for wall in range(4):
            meet_wall(m1, d1, field, p, v, side=2 * (wall & 1) - 1, across=wall >> 1)
