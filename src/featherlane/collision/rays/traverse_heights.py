"""Intersects neighbouring rays with a height field, in lanes: all rays advance from cell to cell in the same loop.

Along a ray, its height above the surface is a continuous function, linear within each triangle.  The surface is hit
in the first triangle at whose end the sign of this function has changed, so no ray passes between two triangles.
Columns of samples run along x, rows along y.  A cell is cut from (row, column) to (row + 1, column + 1).
Source: Amanatides and Woo, A fast voxel traversal algorithm for ray tracing (1987), for the order of cells; MuJoCo
    mj_rayHfield, with the same surfaces.
"""

from featherlane.prelude import *
from featherlane.collision.rays.ray_shape import FAR, meet_box, slab


@kernel
def cell_heights(m, field, top, row, column):
    """Returns the heights of a cell's corners: (row, column), (row, column + 1), (row + 1, column), (row + 1, ...)."""
    ncol = m.hfield_ncol[field]
    k = m.hfield_adr[field] + (row * ncol + column)
    return tuple(top * gather(m.hfield_data, k + (i % 2 + ncol * (i // 2))) for i in range(4))


@kernel
def plane_of_cell(heights, lower):
    """Returns (height at the first corner, slope along x, slope along y) of a triangle, in units of a cell.

    lower: mask; the triangle with corner (row, column + 1), else the one with (row + 1, column).
    """
    z00, z01, z10, z11 = heights
    return z00, where(lower, z01 - z00, z11 - z10), where(lower, z11 - z01, z10 - z00)


@kernel
def first_wall(enter, leave, v, side):
    """Returns the outward normal of the wall at the lateral entry (side -1) or exit (side 1) of a ray."""
    x = enter[0] >= enter[1]
    if side > 0:
        x = leave[0] <= leave[1]
    return Vec3(where(x, side * copysign(1.0, v[0]), 0.0), where(x, 0.0, side * copysign(1.0, v[1])), 0.0 * v[2])


@kernel
def traverse_heights(m, d, field, p, v, near):
    """Returns (met, distance, outward normal) of rays in the field's frame: base, surface and walls, from both sides.

    near: mask of the rays to intersect.   Cost: O(cells under the longest ray).
    """
    sx, sy, top, base = tuple(real(d, m.hfield_size[field][i]) for i in range(4))
    ncol, nrow, no = m.hfield_ncol[field], m.hfield_nrow[field], 0.0
    dx, dy = 2.0 * sx / (ncol - 1), 2.0 * sy / (nrow - 1)
    met, x, n = meet_box(p, v, (-sx, -sy, -base), (sx, sy, no))
    x = where(met, x, FAR)
    lo0, hi0 = slab(p[0], v[0], -sx, sx)
    lo1, hi1 = slab(p[1], v[1], -sy, sy)
    lo2, hi2 = slab(p[2], v[2], no, top)
    t = fmax(fmax(fmax(lo0, lo1), lo2), 0.0)
    aside, out = fmax(lo0, lo1), fmin(hi0, hi1)
    leave = fmin(out, hi2)

    # position on the grid in cells, and its rate; the first cell
    px, py, vx, vy = (p[0] + sx) / dx, (p[1] + sy) / dy, v[0] / dx, v[1] / dy
    forward, left = vx > 0.0, vy > 0.0
    along, across = fabs(vx) > MINVAL, fabs(vy) > MINVAL
    rx, ry = 1.0 / where(along, vx, 1.0), 1.0 / where(across, vy, 1.0)
    side, running = no, near & (t <= leave) & (t < fmin(x, d.ray.distance[0]))
    column = where(running, clip(floor(fma(t, vx, px)), 0.0, ncol - 2.0), 0.0)
    row = where(running, clip(floor(fma(t, vy, py)), 0.0, nrow - 2.0), 0.0)

    for k in range(ncol + nrow):
        if not any_(running):
            break
        tx = where(along, (column + where(forward, 1.0, 0.0) - px) * rx, FAR)
        ty = where(across, (row + where(left, 1.0, 0.0) - py) * ry, FAR)
        end = fmax(fmin(fmin(tx, ty), leave), t)
        # the diagonal divides the way through the cell
        u, w = px - column, py - row
        du = vx - vy
        slanted = fabs(du) > MINVAL
        middle = where(slanted, clip((w - u) / where(slanted, du, 1.0), t, end), end)
        heights = cell_heights(m, field, top, row, column)
        for half in unrolled(range(2)):
            a = middle if half else t
            b = end if half else middle
            lower = fma(0.5 * (a + b), du, u - w) >= 0.0
            z, zx, zy = plane_of_cell(heights, lower)
            f0, f1 = p[2] - (z + fma(u, zx, w * zy)), v[2] - fma(vx, zx, vy * zy)
            if k == 0 and half == 0:
                # on the outside if the ray enters from above; otherwise decided by the height where it enters
                above = ((lo2 >= t) & (v[2] < 0.0)) | (fma(t, f1, f0) >= 0.0)
                side = where(above, 1.0, -1.0)
                wall = running & not_(above) & (aside >= t) & (t > 0.0)
                x, n = where(wall, t, x), where(wall, first_wall((lo0, lo1), (hi0, hi1), v, -1), n)
                running = running & not_(wall)
            hit = running & (side * fma(b, f1, f0) < 0.0)
            cross_at = clip(-f0 / where(hit, f1, 1.0), a, b)
            hit = hit & (cross_at < x)
            x = where(hit, cross_at, x)
            n = where(hit, normalize3(Vec3(-zx / dx, -zy / dy, no + 1.0))[0], n)
            running = running & not_(hit)
        column = where(running & (tx <= ty), column + where(forward, 1.0, -1.0), column)
        row = where(running & (ty <= tx), row + where(left, 1.0, -1.0), row)
        t = where(running, end, t)
        inside = (column >= 0.0) & (column <= ncol - 2.0) & (row >= 0.0) & (row <= nrow - 2.0)
        leaves = running & ((end >= leave) | not_(inside))
        # a ray below the surface leaves through a wall
        wall = leaves & (side < 0.0) & (leave >= out) & (leave < x)
        x, n = where(wall, leave, x), where(wall, first_wall((lo0, lo1), (hi0, hi1), v, 1), n)
        running = running & not_(leaves)
        column, row = where(running, column, 0.0), where(running, row, 0.0)  # an index in the field
    return x < FAR, x, n
