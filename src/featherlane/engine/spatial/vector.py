"""Vectors of three values, and matrices of nine, which are stored by rows: entry (r, c) of a Mat3 is its item 3 r + c.

Sums of products are fused, always from the last term to the first: the result depends on this order bitwise.
"""

from featherlane.engine.lanes import fabs, fma, fmax, kernel, not_, sqrt, where
from featherlane.engine.lanes.rows import attribute, operator
from featherlane.engine.spatial.types import Mat3, Sym3, Vec3

MINVAL = 1e-15  # a length below this has no direction


@kernel
def zeros(n):
    """Returns n zeros."""
    return tuple(0.0 for _ in range(n))


# ---- three values --------------------------------------------------------------------------------------


@operator("dot", Vec3, Vec3)
@kernel
def dot3(a, b):
    """Returns a . b."""
    return fma(a[0], b[0], fma(a[1], b[1], a[2] * b[2]))


@kernel
def plain_dot3(a, b):
    """Returns a . b unfused, from the first term to the last: rounded as in MuJoCo, so that ties break the same."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a, b):
    """Returns a x b."""
    return Vec3(
        fma(a[1], b[2], -(a[2] * b[1])),
        fma(a[2], b[0], -(a[0] * b[2])),
        fma(a[0], b[1], -(a[1] * b[0])),
    )


@kernel
def cross_plus(a, b, c):
    """Returns a x b + c."""
    return Vec3(
        fma(a[1], b[2], fma(-a[2], b[1], c[0])),
        fma(a[2], b[0], fma(-a[0], b[2], c[1])),
        fma(a[0], b[1], fma(-a[1], b[0], c[2])),
    )


@kernel
def plain_cross(a, b):
    """Returns a x b unfused, as plain_dot3."""
    return Vec3(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def norm3(a):
    """Returns the Euclidean length."""
    return sqrt(dot3(a, a))


@kernel
def normalize3(v):
    """Returns (unit vector, length); a vector shorter than MINVAL becomes (1, 0, 0), as in MuJoCo."""
    length = norm3(v)
    short = length < MINVAL
    return where(short, Vec3(1.0, 0.0, 0.0), 1.0 / fmax(length, MINVAL) * Vec3(v)), length


# ---- three by three ------------------------------------------------------------------------------------


@operator("@", Mat3, Vec3)
@kernel
def mat_mul_vec(R, v):
    """Returns R v."""
    # row: the index of a row's first entry
    return Vec3(fma(R[row], v[0], fma(R[row + 1], v[1], R[row + 2] * v[2])) for row in (0, 3, 6))


@kernel
def mat_t_mul_vec(R, v):
    """Returns R^T v."""
    return Vec3(fma(R[c], v[0], fma(R[c + 3], v[1], R[c + 6] * v[2])) for c in range(3))


@attribute(Mat3, "T")
@kernel
def transposed(R):
    """Returns R^T."""
    return Mat3(R[c + row] for c in range(3) for row in (0, 3, 6))


@attribute(Mat3, "rows")
@kernel
def matrix_rows(R):
    """Returns the three rows."""
    return Vec3(R[0], R[1], R[2]), Vec3(R[3], R[4], R[5]), Vec3(R[6], R[7], R[8])


@attribute(Mat3, "columns")
@kernel
def matrix_columns(R):
    """Returns the three columns."""
    return Vec3(R[0], R[3], R[6]), Vec3(R[1], R[4], R[7]), Vec3(R[2], R[5], R[8])


@attribute(Sym3, "rows")
@kernel
def symmetric_rows(F):
    """Returns the three rows."""
    return Vec3(F[0], F[1], F[2]), Vec3(F[1], F[3], F[4]), Vec3(F[2], F[4], F[5])


@operator("@", Mat3, Mat3)
@kernel
def mat_mul(R, S):
    """Returns R S."""
    # row: the index of a row's first entry in R
    return Mat3(
        fma(R[row], S[c], fma(R[row + 1], S[c + 3], R[row + 2] * S[c + 6])) for row in (0, 3, 6) for c in range(3)
    )


@kernel
def mat_inverse(A):
    """Returns (inverse, mask of worlds in which it exists) of a 3 x 3 matrix, by cofactors, without pivots.

    A^-1 = adj(A) / det A;  cxx, cxy, cxz are the cofactors of the first row.
    """
    xx, xy, xz, yx, yy, yz, zx, zy, zz = A
    cxx = fma(yy, zz, -(yz * zy))
    cxy = fma(yz, zx, -(yx * zz))
    cxz = fma(yx, zy, -(yy * zx))
    det = fma(xx, cxx, fma(xy, cxy, xz * cxz))
    exists = det != 0.0
    s = 1.0 / where(exists, det, 1.0)
    return Mat3(
        s * cxx,
        s * fma(xz, zy, -(xy * zz)),
        s * fma(xy, yz, -(xz * yy)),
        s * cxy,
        s * fma(xx, zz, -(xz * zx)),
        s * fma(xz, yx, -(xx * yz)),
        s * cxz,
        s * fma(xy, zx, -(xx * zy)),
        s * fma(xx, yy, -(xy * yx)),
    ), exists


# ---- fields --------------------------------------------------------------------------------------------


@kernel
def copy(target, source, n):
    """target[0 : n] <- source[0 : n], entry by entry."""
    for i in range(n):
        target[i] = source[i]


@kernel
def clear(x, n):
    """x[0 : n] <- 0, a field of reals."""
    for i in range(n):
        x[i] = 0.0


@kernel
def has_nonzero(x, n):
    """Returns the mask of worlds in which one of the entries 0 to n - 1 of x is not 0, NaN included."""
    size = 0.0
    for i in range(n):
        size = size + fabs(x[i])
    return not_(size == 0.0)  # true for NaN, too
