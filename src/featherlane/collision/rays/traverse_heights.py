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

from featherlane.prelude import *
from featherlane.collision.rays.ray_shape import FAR, meet_box, slab


@kernel
def cell_heights(m, field, top, row, column):
    """Returns the heights [m] of a cell's corners, in the order (0, 0), (0, 1), (1, 0), (1, 1) of added (row, column).

    row, column: of the first corner, as values; top: height of the sample value 1 [m].
    """
    ncol = m.hfield_ncol[field]
    k = m.hfield_adr[field] + (row * ncol + column)
    return tuple(top * gather(m.hfield_data, k + (i % 2 + ncol * (i // 2))) for i in range(4))


@kernel
def plane_of_cell(heights, lower):
    """Returns (height at the first corner, rise along x, rise along y) of a triangle, over one cell.

    heights: of the cell's corners (0, 0), (0, 1), (1, 0), (1, 1) of added (row, column); lower: mask; the triangle with
    corner (0, 1), else that with (1, 0).
    """
    z00, z01, z10, z11 = heights
    return z00, where(lower, z01 - z00, z11 - z10), where(lower, z11 - z01, z10 - z00)


@kernel
def first_wall(enter, leave, v, side):
    """Returns the outward normal of the wall at which a ray enters (side = -1) or leaves (side = 1) the field's sides.

    enter, leave: distances at which it enters and leaves the slabs of x and y; v: its direction.
    """
    # the wall is across the axis that is entered last, or left first
    is_x = enter[0] >= enter[1]
    if side > 0:
        is_x = leave[0] <= leave[1]
    return Vec3(where(is_x, side * copysign(1.0, v[0]), 0.0), where(is_x, 0.0, side * copysign(1.0, v[1])), 0.0 * v[2])


@kernel
def traverse_heights(m, d, field, p, v, near):
    """Returns (met, distance, outward normal) of rays (p, v) in the field's frame: base, surface and walls, two-sided.

    x is the distance of the nearest hit so far, n the normal there, t the distance at which the ray enters the current
    cell.  Within a triangle the height of the ray above it is f0 + f1 t; `sign` is its sign at the start of the
    traversal.  A ray enters the slabs of x, y and z at lo0, lo1 and lo2, and leaves them at hi0, hi1 and hi2.  It
    passes the field's walls at side_entry and side_exit.  A cell has the sizes dx and dy [m]; on the grid, positions
    and rates are in cells.
    near: mask of the rays to intersect.   Cost: O(cells under the longest ray).
    """
    sx, sy, top, base = m.hfield_size[field]
    ncol, nrow, zero = m.hfield_ncol[field], m.hfield_nrow[field], 0.0
    dx, dy = 2.0 * sx / (ncol - 1), 2.0 * sy / (nrow - 1)
    # the base
    met, x, n = meet_box(p, v, (-sx, -sy, -base), (sx, sy, zero))
    x = where(met, x, FAR)
    # the box of the surface: entry and exit along each axis
    lo0, hi0 = slab(p[0], v[0], -sx, sx)
    lo1, hi1 = slab(p[1], v[1], -sy, sy)
    lo2, hi2 = slab(p[2], v[2], zero, top)
    t = fmax(fmax(fmax(lo0, lo1), lo2), 0.0)
    side_entry, side_exit = fmax(lo0, lo1), fmin(hi0, hi1)
    leave = fmin(side_exit, hi2)

    # position on the grid in cells, and its rate; the first cell
    grid_x, grid_y, rate_x, rate_y = (p[0] + sx) / dx, (p[1] + sy) / dy, v[0] / dx, v[1] / dy
    x_grows, y_grows = rate_x > 0.0, rate_y > 0.0
    moves_x, moves_y = fabs(rate_x) > MINVAL, fabs(rate_y) > MINVAL
    inverse_rate_x, inverse_rate_y = 1.0 / where(moves_x, rate_x, 1.0), 1.0 / where(moves_y, rate_y, 1.0)
    # running: rays that are in the box and have no nearer hit
    sign, running = zero, near & (t <= leave) & (t < fmin(x, d.ray.distance[0]))
    column = where(running, clip(floor(fma(t, rate_x, grid_x)), 0.0, ncol - 2.0), 0.0)
    row = where(running, clip(floor(fma(t, rate_y, grid_y)), 0.0, nrow - 2.0), 0.0)

    # a ray passes fewer than ncol + nrow cells
    for k in range(ncol + nrow):
        if not any_(running):
            break
        # distances to the next column and the next row
        tx = where(moves_x, (column + where(x_grows, 1.0, 0.0) - grid_x) * inverse_rate_x, FAR)
        ty = where(moves_y, (row + where(y_grows, 1.0, 0.0) - grid_y) * inverse_rate_y, FAR)
        end = fmax(fmin(fmin(tx, ty), leave), t)
        # the diagonal u + t rate_x = w + t rate_y divides the way through the cell
        u, w = grid_x - column, grid_y - row  # position in the cell at distance 0
        du = rate_x - rate_y
        slanted = fabs(du) > MINVAL
        middle = where(slanted, clip((w - u) / where(slanted, du, 1.0), t, end), end)
        heights = cell_heights(m, field, top, row, column)
        for half in unrolled(range(2)):
            # the triangle between distances a and b: lower if the middle of this part is at u >= w
            a = middle if half else t
            b = end if half else middle
            lower = fma(0.5 * (a + b), du, u - w) >= 0.0
            z, zx, zy = plane_of_cell(heights, lower)  # height at the first corner, rise over a cell along x and y
            f0, f1 = p[2] - (z + fma(u, zx, w * zy)), v[2] - fma(rate_x, zx, rate_y * zy)
            if k == 0 and half == 0:
                # on the outside if the ray enters from above; otherwise decided by the height where it enters
                above = ((lo2 >= t) & (v[2] < 0.0)) | (fma(t, f1, f0) >= 0.0)
                sign = where(above, 1.0, -1.0)
                # a ray that enters below the surface hits the wall
                wall = running & not_(above) & (side_entry >= t) & (t > 0.0)
                x, n = where(wall, t, x), where(wall, first_wall((lo0, lo1), (hi0, hi1), v, side=-1), n)
                running = running & not_(wall)
            # the surface is hit if the sign has changed at b
            hit = running & (sign * fma(b, f1, f0) < 0.0)
            crossing = clip(-f0 / where(hit, f1, 1.0), a, b)
            hit = hit & (crossing < x)
            x = where(hit, crossing, x)
            n = where(hit, normalize3(Vec3(-zx / dx, -zy / dy, zero + 1.0))[0], n)
            running = running & not_(hit)
        # the next cell
        column = where(running & (tx <= ty), column + where(x_grows, 1.0, -1.0), column)
        row = where(running & (ty <= tx), row + where(y_grows, 1.0, -1.0), row)
        t = where(running, end, t)
        inside = (column >= 0.0) & (column <= ncol - 2.0) & (row >= 0.0) & (row <= nrow - 2.0)
        leaves = running & ((end >= leave) | not_(inside))
        # a ray below the surface leaves through a wall
        wall = leaves & (sign < 0.0) & (leave >= side_exit) & (leave < x)
        x, n = where(wall, leave, x), where(wall, first_wall((lo0, lo1), (hi0, hi1), v, side=1), n)
        running = running & not_(leaves)
        column, row = where(running, column, 0.0), where(running, row, 0.0)  # others read a valid sample
    return x < FAR, x, n
