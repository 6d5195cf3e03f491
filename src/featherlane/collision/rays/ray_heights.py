"""Intersects rays with height fields: base box, surface triangles, and walls below them; one world at a time.

Columns of samples run along x, rows along y.  A cell is cut from (row, column) to (row + 1, column + 1).
Source: MuJoCo mj_rayHfield, with the same surfaces: the top of the base is one, too, for a ray that starts inside.
    Deviation: only the cells near the ray's path over the grid are tested, row by row, not the whole
    rectangle between its ends.
"""

from featherlane.prelude import *
from featherlane.collision.rays.ray_mesh import meet_triangle, ray_of_line
from featherlane.collision.rays.ray_shape import meet_box, slab

PADDING = 0.01  # margin around the ray's path over the grid in which cells are tested, relative to a cell


@kernel
def sample_height(m1, field, r, c):
    """Returns the height of a sample."""
    k = m1.hfield_adr[field] + r * m1.hfield_ncol[field] + c
    return m1.hfield_data[k] * m1.hfield_size[field][2]


@kernel
def clamped_floor(x, n):
    """Returns the largest integer not above x, clamped to 0 .. n - 1."""
    return whole(clip(floor(x), 0.0, n - 1.0))


@kernel
def intersect_cell(m1, d1, field, r, c, cell, heights, ray):
    """Intersects both triangles of a cell of size `cell`, if the ray's heights over the row overlap theirs."""
    (dx, dy), (low, high) = cell, heights
    z00, z01 = sample_height(m1, field, r, c), sample_height(m1, field, r, c + 1)
    z10, z11 = sample_height(m1, field, r + 1, c), sample_height(m1, field, r + 1, c + 1)
    top, bottom = fmax(fmax(z00, z01), fmax(z10, z11)), fmin(fmin(z00, z01), fmin(z10, z11))
    if (bottom <= high) & (top >= low):
        x0, y0 = dx * c - m1.hfield_size[field][0], dy * r - m1.hfield_size[field][1]
        x1, y1 = dx * (c + 1) - m1.hfield_size[field][0], dy * (r + 1) - m1.hfield_size[field][1]
        a, b = Vec3(x0, y0, z00), Vec3(x1, y1, z11)
        meet_triangle(d1, a, Vec3(x1, y0, z01), b, ray)
        meet_triangle(d1, a, b, Vec3(x0, y1, z10), ray)


@kernel
def meet_surface(m1, d1, field, cell, enter, leave):
    """Intersects the triangles near the ray between distances `enter` and `leave`, row by row along its path."""
    nrow, ncol = m1.hfield_nrow[field] - 1, m1.hfield_ncol[field] - 1
    (dx, dy), ray = cell, ray_of_line(d1)
    p, v = ray.p, ray.v
    slack = PADDING * m1.hfield_size[field][2]

    # position on the grid, in cells, and its rate
    px, py = (p[0] + m1.hfield_size[field][0]) / dx, (p[1] + m1.hfield_size[field][1]) / dy
    vx, vy = v[0] / dx, v[1] / dy
    y0, y1 = fma(enter, vy, py), fma(leave, vy, py)
    first, last, step = clamped_floor(y0 - PADDING, nrow), clamped_floor(y1 + PADDING, nrow), 1
    if y1 < y0:
        first, last, step = clamped_floor(y0 + PADDING, nrow), clamped_floor(y1 - PADDING, nrow), -1
    for k in range(step * (last - first) + 1):
        r = first + step * k
        a, b = enter, leave
        if fabs(vy) > MINVAL:
            u, w = (r - PADDING - py) / vy, (r + 1.0 + PADDING - py) / vy
            a, b = fmax(a, fmin(u, w)), fmin(b, fmax(u, w))
        if a > d1.line.distance[0]:
            break
        x0, x1, z0, z1 = fma(a, vx, px), fma(b, vx, px), fma(a, v[2], p[2]), fma(b, v[2], p[2])
        heights = fmin(z0, z1) - slack, fmax(z0, z1) + slack
        for c in range(clamped_floor(fmin(x0, x1) - PADDING, ncol), clamped_floor(fmax(x0, x1) + PADDING, ncol) + 1):
            intersect_cell(m1, d1, field, r, c, cell, heights, ray)


@kernel
def take(d1, x, n):
    """Stores a nearer surface as the hit."""
    if (x >= 0.0) & (x < d1.line.distance[0]):
        d1.line.distance[0] = x
        d1.line.hit[0] = 1
        d1.line.normal[0] = n


@kernel
def meet_wall(m1, d1, field, p, v, side, across):
    """Intersects one wall above the base, below the heights along it: its normal is `side` times x, or y if `across`.

    The samples along a wall are `stride` apart and begin at `start`.
    """
    ncol, nrow = m1.hfield_ncol[field], m1.hfield_nrow[field]
    base, start, stride, n = m1.hfield_size[field][0], 0, ncol, nrow
    along, other, pa, va, po, vo = m1.hfield_size[field][1], side, p[1], v[1], p[0], v[0]
    if side > 0:
        start = ncol - 1
    if across:
        start, stride, n = 0, 1, ncol
        base, along, pa, va, po, vo = m1.hfield_size[field][1], base, p[0], v[0], p[1], v[1]
        if side > 0:
            start = (nrow - 1) * ncol
    top = m1.hfield_size[field][2]
    if fabs(vo) > MINVAL:
        x = (other * base - po) / vo
        y, z = fma(x, va, pa), fma(x, v[2], p[2])
        if (x >= 0.0) & (fabs(y) <= along) & (z >= 0.0) & (z <= top):
            y = (y + along) * (n - 1) / (2.0 * along)
            k = clamped_floor(y, n - 1)
            adr = m1.hfield_adr[field] + start + k * stride
            part = y - k
            if z < top * (m1.hfield_data[adr] * (1.0 - part) + m1.hfield_data[adr + stride] * part):
                sign = 0.0 + side
                if across:
                    take(d1, x, (0.0, sign, 0.0))
                else:
                    take(d1, x, (sign, 0.0, 0.0))


@stage
def meet_heights(m1, d1):
    """Finds the nearest surface of the height field `shapes.data` that is nearer than `line.distance`.

    Reads:  line.point, line.direction (unit), in the field's frame.
    Writes: line.*, line.* if there is one.   Cost: O(cells under the ray).
    """
    p, v = d1.line.point[0], d1.line.direction[0]
    field = d1.shapes.data[0]
    sx, sy, top, base = m1.hfield_size[field]
    met, x, n = meet_box(p, v, (-sx, -sy, -base), (sx, sy, 0.0))
    if met:
        take(d1, x, n)
    lo0, hi0 = slab(p[0], v[0], -sx, sx)
    lo1, hi1 = slab(p[1], v[1], -sy, sy)
    lo2, hi2 = slab(p[2], v[2], 0.0, top)
    enter, leave = fmax(fmax(fmax(lo0, lo1), lo2), 0.0), fmin(fmin(hi0, hi1), hi2)
    if enter <= leave:
        cell = 2.0 * sx / (m1.hfield_ncol[field] - 1), 2.0 * sy / (m1.hfield_nrow[field] - 1)
        meet_surface(m1, d1, field, cell, enter, leave)
        for side in range(4):
            meet_wall(m1, d1, field, p, v, 2 * (side & 1) - 1, side >> 1)
