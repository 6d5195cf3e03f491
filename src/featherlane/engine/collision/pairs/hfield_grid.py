"""Samples, triangles and edges of a height field: positions, neighbours, folds and straight ridges.

A cell of the grid is two triangles, cut along the diagonal from (row, column) to (row + 1, column + 1); columns of
samples run along x, rows along y.  In kernels, r is a row and c a column of samples, or of the cells that start there.
Points are in the frame of the field.  Triangles are counterclockwise from above.

An edge starts at a sample and has a direction: 0 along the row, 1 along the column, 2 along the diagonal.  Its two
triangles have one further sample each, its opposites 0 and 1.  The sum of the heights of the opposites minus that of
the ends is the edge's *fold*: negative on a ridge, positive in a valley, 0 if the two triangles are coplanar.
An edge at the border has one triangle; its other side is a wall.

The heights are float32 numbers in MuJoCo's model.  A fold of at most FLAT times the elevation is rounding.
m1 and d1 are the model and the data of one world; relief.cell has the sides of a cell.  The field has hfield_nrow rows
of hfield_ncol samples from 0 to 1; hfield_size is (half side along x, half side along y, height of the sample value 1,
depth of the base) [m].
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.broad.heights import sample_before, sample_behind, sample_height

FLAT = 2.0**-21  # four heights that are rounded to float32, with a factor of 2
ALONG_ROW, ALONG_COLUMN, DIAGONAL = range(3)  # directions of edges


@kernel
def has_sample(m1, field, r, c):
    """Returns whether the field has a sample in row r and column c."""
    return r >= 0 and c >= 0 and r < m1.hfield_nrow[field] and c < m1.hfield_ncol[field]


@kernel
def sample_point(m1, d1, field, r, c):
    """Returns the point of the surface at the sample of row r and column c."""
    x = fma(d1.relief.cell[0], 1.0 * c, -m1.hfield_size[field][0])
    y = fma(d1.relief.cell[1], 1.0 * r, -m1.hfield_size[field][1])
    return Vec3(x, y, sample_height(m1, field, r, c))


@kernel
def rounding_of_heights(m1, field):
    """Returns the largest fold that is rounding [m]."""
    return FLAT * m1.hfield_size[field][2]


@kernel
def triangle_corner(r, c, half, k):
    """Returns (row, column) of corner k of a triangle of cell (r, c).

    half: 0 the triangle on the side of the larger row, 1 that on the side of the larger column.
    """
    # (0, 0), (1, 1), (1, 0) for half 0; (0, 0), (0, 1), (1, 1) for half 1
    row = 0 if k == 0 else 1 - half if k == 1 else 1
    column = 0 if k == 0 else 1 if k == 1 else half
    return r + row, c + column


@kernel
def triangle_points(m1, d1, field, r, c, half):
    """Returns the three corners of a triangle of cell (r, c), counterclockwise from above."""
    a = sample_point(m1, d1, field, r, c)
    row, column = triangle_corner(r, c, half, 1)
    b = sample_point(m1, d1, field, row, column)
    row, column = triangle_corner(r, c, half, 2)
    return a, b, sample_point(m1, d1, field, row, column)


@kernel
def across_triangle_edge(r, c, half, k):
    """Returns (row, column) of the neighbour's third corner across the edge from corner k to corner k + 1."""
    # half 0: the diagonal, the edge along the next row, the edge along the column
    # half 1: the edge along the row, the edge along the next column, the diagonal
    row, column = r, c - 1
    if half == 0:
        if k == 0:
            row, column = r, c + 1
        elif k == 1:
            row, column = r + 2, c + 1
    elif k == 0:
        row, column = r - 1, c
    elif k == 1:
        row, column = r + 1, c + 2
    else:
        row, column = r + 1, c
    return row, column


@kernel
def edge_step(direction):
    """Returns (rows, columns) from the start to the end of an edge."""
    return (0 if direction == ALONG_ROW else 1), (0 if direction == ALONG_COLUMN else 1)


@kernel
def opposite_step(direction, opposite):
    """Returns (rows, columns) from the start of an edge to its opposite 0 or 1.

    ALONG_ROW: (1, 1), (-1, 0).   ALONG_COLUMN: (1, 1), (0, -1).   DIAGONAL: (0, 1), (1, 0).
    """
    row, column = (0 if direction == DIAGONAL else 1), 1
    if opposite == 1:
        row = -1 if direction == ALONG_ROW else 0 if direction == ALONG_COLUMN else 1
        column = -1 if direction == ALONG_COLUMN else 0
    return row, column


@kernel
def has_opposite(m1, field, r, c, direction, opposite):
    """Returns whether the edge has a triangle on the side of its opposite 0 or 1."""
    row, column = opposite_step(direction, opposite)
    return has_sample(m1, field, r + row, c + column)


@kernel
def is_ridge(m1, field, r, c, direction):
    """Returns whether the triangles of an edge fold down by more than rounding; an edge of the border is a ridge."""
    row0, column0 = opposite_step(direction, 0)
    row1, column1 = opposite_step(direction, 1)
    ridge = True
    if has_sample(m1, field, r + row0, c + column0) and has_sample(m1, field, r + row1, c + column1):
        rows, columns = edge_step(direction)
        opposites = sample_height(m1, field, r + row0, c + column0) + sample_height(m1, field, r + row1, c + column1)
        ends = sample_height(m1, field, r, c) + sample_height(m1, field, r + rows, c + columns)
        ridge = opposites - ends < -rounding_of_heights(m1, field)
    return ridge


@kernel
def continues(m1, field, r, c, direction):
    """Returns whether the next edge along the direction continues an edge: it and its triangles have the same slopes.

    Both edges exist.
    """
    rows, columns = edge_step(direction)
    rounding = rounding_of_heights(m1, field)
    middle = sample_height(m1, field, r + rows, c + columns)
    rise = middle - sample_height(m1, field, r, c)
    straight = fabs(sample_height(m1, field, r + 2 * rows, c + 2 * columns) - middle - rise) <= rounding
    for which in range(2):
        row, column = opposite_step(direction, which)
        if has_sample(m1, field, r + row, c + column):
            here = sample_height(m1, field, r + row, c + column)
            there = sample_height(m1, field, r + row + rows, c + column + columns)
            straight = straight and fabs(there - here - rise) <= rounding
    return straight


@kernel
def is_peak(m1, field, r, c):
    """Returns whether a sample is above the middle of its two neighbours in all three directions of edges.

    At the border, a direction with one neighbour only does not count.
    Samples that are not peaks cannot be touched alone: an edge or a triangle there is touched as well.
    """
    height = sample_height(m1, field, r, c)
    rounding = rounding_of_heights(m1, field)
    peak = True
    for direction in range(3):
        rows, columns = edge_step(direction)
        if has_sample(m1, field, r - rows, c - columns) and has_sample(m1, field, r + rows, c + columns):
            neighbours = sample_height(m1, field, r - rows, c - columns) + sample_height(
                m1, field, r + rows, c + columns
            )
            peak = peak and neighbours - 2.0 * height < -rounding
    return peak


@kernel
def cells_between(low, high, half, n):
    """Returns (first, end) of the cells that meet the interval from low to high; `end` is not included.

    n cells extend from -half to half.
    """
    return whole(sample_before(low, half, n)), whole(sample_behind(high, half, n))


@kernel
def surface_height(m1, field, x, y):
    """Returns the height of the surface at (x, y), which is moved into the field if it is outside [m]."""
    half_x, half_y = m1.hfield_size[field][0], m1.hfield_size[field][1]
    ncell_x, ncell_y = m1.hfield_ncol[field] - 1, m1.hfield_nrow[field] - 1
    # coordinates in cells; below, u and v are those within the cell (r, c), from 0 to 1
    u = clip((x + half_x) / (2.0 * half_x) * ncell_x, 0.0, 1.0 * ncell_x)
    v = clip((y + half_y) / (2.0 * half_y) * ncell_y, 0.0, 1.0 * ncell_y)
    c, r = min(whole(floor(u)), ncell_x - 1), min(whole(floor(v)), ncell_y - 1)
    u, v = u - c, v - r
    start, end = sample_height(m1, field, r, c), sample_height(m1, field, r + 1, c + 1)
    height = start
    if v >= u:  # the triangle on the side of the larger row
        corner = sample_height(m1, field, r + 1, c)
        height = start + v * (corner - start) + u * (end - corner)
    else:
        corner = sample_height(m1, field, r, c + 1)
        height = start + u * (corner - start) + v * (end - corner)
    return height
