"""Intersects neighbouring rays with a height field, in lanes: all rays advance from cell to cell in the same loop.

Along a ray, its height above the surface is a continuous function, linear within each triangle.  The surface is hit
in the first triangle at whose end the sign of this function has changed, so no ray passes between two triangles.
Columns of samples run along x, rows along y.  A cell is cut from (row, column) to (row + 1, column + 1).
FAR is the distance without a hit.
The field has hfield_nrow rows of hfield_ncol samples from 0 to 1, hfield_data from hfield_adr on; hfield_size is (half
side along x, half side along y, height of the sample value 1, depth of the base) [m].
slab(p, v, lower, upper) has the distances at which a line enters and leaves a slab of one axis; meet_box returns (met,
distance, outward normal).
Source: Amanatides and Woo, A fast voxel traversal algorithm for ray tracing (1987), for the order of cells; MuJoCo
    mj_rayHfield, with the same surfaces.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray_shape import FAR, meet_box, slab


@kernel
def wall_normal(slab_x, slab_y, v, side):
    """Returns the outward normal of the wall at which a ray enters (side = -1) or leaves (side = 1) the field.

    slab_x, slab_y: distances at which the ray enters and leaves the slabs of x and y; v: the ray's direction.
    """
    # the wall is orthogonal to the axis whose slab is entered last, or left first
    is_x = slab_x[1] <= slab_y[1] if side > 0 else slab_x[0] >= slab_y[0]
    return Vec3(where(is_x, side * copysign(1.0, v[0]), 0.0), where(is_x, 0.0, side * copysign(1.0, v[1])), 0.0)


@kernel
def end_of_cell(cell, start, rate):
    """Returns the distance at which a ray passes from a column or row to the next one; FAR if it never does.

    cell: index of the column or row; start, rate: the ray's coordinate along the same axis at distance 0, and its rate
    [cells].
    """
    moves = fabs(rate) > MINVAL
    inverse = 1.0 / where(moves, rate, 1.0)
    return where(moves, (cell + where(rate > 0.0, 1.0, 0.0) - start) * inverse, FAR)


@kernel
def traverse_heights(m, d, field, p, v, near):
    """Returns (met, distance, outward normal) of rays (p, v) in the field's frame: base, surface and walls, two-sided.

    A ray enters the current cell at the distance t and leaves it at `end`.  `nearest` is the distance of the nearest
    hit so far, n the normal there.  Within a triangle the height of the ray above it is f0 + f1 t; `sign` is its sign
    at the start of the traversal.  On the grid, positions and rates are in cells.
    near: mask of the rays to intersect.   Cost: O(cells under the longest ray).
    """
    half_x, half_y, top, base = m.hfield_size[field]
    ncol, nrow = m.hfield_ncol[field], m.hfield_nrow[field]
    zero = 0.0
    dx, dy = 2.0 * half_x / (ncol - 1), 2.0 * half_y / (nrow - 1)  # sizes of a cell [m]
    met, nearest, n = meet_box(p, v, (-half_x, -half_y, -base), (half_x, half_y, zero))
    nearest = where(met, nearest, FAR)
    # the box around the surface: distances (entry, exit) of each axis' slab, then of the four walls together
    slab_x, slab_y = slab(p[0], v[0], -half_x, half_x), slab(p[1], v[1], -half_y, half_y)
    slab_z = slab(p[2], v[2], zero, top)
    walls_entry, walls_exit = fmax(slab_x[0], slab_y[0]), fmin(slab_x[1], slab_y[1])
    t = fmax(fmax(walls_entry, slab_z[0]), 0.0)
    leave = fmin(walls_exit, slab_z[1])

    # position on the grid at distance 0, and its rate; the first cell
    grid_x, grid_y = (p[0] + half_x) / dx, (p[1] + half_y) / dy
    rate_x, rate_y = v[0] / dx, v[1] / dy
    # running: rays that are in the box and have no nearer hit
    sign = zero
    running = near & (t <= leave) & (t < fmin(nearest, d.ray.distance[0]))
    column = where(running, clip(floor(fma(t, rate_x, grid_x)), 0.0, ncol - 2.0), 0.0)
    row = where(running, clip(floor(fma(t, rate_y, grid_y)), 0.0, nrow - 2.0), 0.0)

    # a ray passes fewer than ncol + nrow cells
    for k in range(ncol + nrow):
        if not any_(running):
            break
        end_x, end_y = end_of_cell(column, grid_x, rate_x), end_of_cell(row, grid_y, rate_y)
        end = fmax(fmin(fmin(end_x, end_y), leave), t)
        # the ray crosses the cell's diagonal x = y at `middle`; x, y: position relative to the cell at distance 0
        x, y = grid_x - column, grid_y - row
        across = rate_x - rate_y
        slanted = fabs(across) > MINVAL
        middle = where(slanted, clip((y - x) / where(slanted, across, 1.0), t, end), end)
        # heights [m] of the cell's corners (row, column)
        first = m.hfield_adr[field] + (row * ncol + column)
        z00, z01, z10, z11 = tuple(top * gather(m.hfield_data, first + (i % 2 + ncol * (i // 2))) for i in range(4))
        for half in unrolled(range(2)):
            # the triangle between distances a and b: the lower one if the middle of this part is at x >= y
            a, b = (middle, end) if half else (t, middle)
            lower = fma(0.5 * (a + b), across, x - y) >= 0.0
            # rises over one cell along x and y of the plane of the triangle with corner (0, 1), or (1, 0)
            rise_x, rise_y = where(lower, z01 - z00, z11 - z10), where(lower, z11 - z01, z10 - z00)
            f0 = p[2] - (z00 + fma(x, rise_x, y * rise_y))
            f1 = v[2] - fma(rate_x, rise_x, rate_y * rise_y)
            if k == 0 and half == 0:
                # a ray that enters through the top of the box starts above the surface; else its height at t decides
                above = ((slab_z[0] >= t) & (v[2] < 0.0)) | (fma(t, f1, f0) >= 0.0)
                sign = where(above, 1.0, -1.0)
                # a ray that enters below the surface hits the wall
                wall = running & not_(above) & (walls_entry >= t) & (t > 0.0)
                nearest = where(wall, t, nearest)
                n = where(wall, wall_normal(slab_x, slab_y, v, side=-1), n)
                running = running & not_(wall)
            # the surface is hit if the sign has changed at b
            hit = running & (sign * fma(b, f1, f0) < 0.0)
            crossing = clip(-f0 / where(hit, f1, 1.0), a, b)
            hit = hit & (crossing < nearest)
            nearest = where(hit, crossing, nearest)
            n = where(hit, normalize3(Vec3(-rise_x / dx, -rise_y / dy, zero + 1.0))[0], n)
            running = running & not_(hit)
        # the next cell
        column = where(running & (end_x <= end_y), column + where(rate_x > 0.0, 1.0, -1.0), column)
        row = where(running & (end_y <= end_x), row + where(rate_y > 0.0, 1.0, -1.0), row)
        t = where(running, end, t)
        inside = (column >= 0.0) & (column <= ncol - 2.0) & (row >= 0.0) & (row <= nrow - 2.0)
        leaves = running & ((end >= leave) | not_(inside))
        # a ray below the surface leaves through a wall
        wall = leaves & (sign < 0.0) & (leave >= walls_exit) & (leave < nearest)
        nearest = where(wall, leave, nearest)
        n = where(wall, wall_normal(slab_x, slab_y, v, side=1), n)
        running = running & not_(leaves)
        column, row = where(running, column, 0.0), where(running, row, 0.0)  # others read a valid sample
    return nearest < FAR, nearest, n
