"""Vectors of three values, matrices of nine, and how rows of a record become such tuples and back.

Sums of products are fused, always from the last term to the first: the order is part of the result's bits.
"""

from featherlane.lanes import fma, fmax, kernel, sqrt, where

MINVAL = 1e-15  # a length below this has no direction


# ---- rows of a record ----------------------------------------------------------------------------------


@kernel
def load2(a, i):
    """Elements i, i + 1."""
    return a[i], a[i + 1]


@kernel
def load3(a, i):
    """Elements i, i + 1, i + 2."""
    return a[i], a[i + 1], a[i + 2]


@kernel
def load4(a, i):
    """Four elements from i on."""
    return a[i], a[i + 1], a[i + 2], a[i + 3]


@kernel
def load5(a, i):
    """Five elements from i on."""
    return a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4]


@kernel
def load6(a, i):
    """Six elements from i on."""
    return a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5]


@kernel
def load9(a, i):
    """Nine elements from i on."""
    return a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5], a[i + 6], a[i + 7], a[i + 8]


@kernel
def load10(a, i):
    """Ten elements from i on."""
    return a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5], a[i + 6], a[i + 7], a[i + 8], a[i + 9]


@kernel
def store3(a, i, v):
    """Write three elements from i on."""
    a[i], a[i + 1], a[i + 2] = v


@kernel
def store4(a, i, v):
    """Write four elements from i on."""
    a[i], a[i + 1], a[i + 2], a[i + 3] = v


@kernel
def store6(a, i, v):
    """Write six elements from i on."""
    a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5] = v


@kernel
def store9(a, i, v):
    """Write nine elements from i on."""
    a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5], a[i + 6], a[i + 7], a[i + 8] = v


@kernel
def store10(a, i, v):
    """Write ten elements from i on."""
    a[i], a[i + 1], a[i + 2], a[i + 3], a[i + 4], a[i + 5], a[i + 6], a[i + 7], a[i + 8], a[i + 9] = v


# ---- three values --------------------------------------------------------------------------------------


@kernel
def add3(a, b):
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@kernel
def sub3(a, b):
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@kernel
def scale3(s, a):
    """s a."""
    return s * a[0], s * a[1], s * a[2]


@kernel
def axpy3(s, a, b):
    """s a + b."""
    return fma(s, a[0], b[0]), fma(s, a[1], b[1]), fma(s, a[2], b[2])


@kernel
def dot3(a, b):
    """a . b."""
    return fma(a[0], b[0], fma(a[1], b[1], a[2] * b[2]))


@kernel
def plain_dot3(a, b):
    """a . b unfused, from the first term to the last: rounded as MuJoCo does, where a tie is to go as it goes there."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a, b):
    """a x b."""
    return (
        fma(a[1], b[2], -(a[2] * b[1])),
        fma(a[2], b[0], -(a[0] * b[2])),
        fma(a[0], b[1], -(a[1] * b[0])),
    )


@kernel
def plain_cross(a, b):
    """a x b unfused, as plain_dot3."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def norm3(a):
    """Euclidean length."""
    return sqrt(dot3(a, a))


@kernel
def normalize3(v):
    """(unit vector, length); a vector without a direction becomes (1, 0, 0), as in MuJoCo."""
    n = norm3(v)
    short = n < MINVAL
    s = 1.0 / fmax(n, MINVAL)
    return (where(short, 1.0, v[0] * s), where(short, 0.0, v[1] * s), where(short, 0.0, v[2] * s)), n


# ---- three by three ------------------------------------------------------------------------------------


@kernel
def mat_mul_vec(R, v):
    """R v."""
    return (
        fma(R[0], v[0], fma(R[1], v[1], R[2] * v[2])),
        fma(R[3], v[0], fma(R[4], v[1], R[5] * v[2])),
        fma(R[6], v[0], fma(R[7], v[1], R[8] * v[2])),
    )


@kernel
def mat_t_mul_vec(R, v):
    """R^T v."""
    return (
        fma(R[0], v[0], fma(R[3], v[1], R[6] * v[2])),
        fma(R[1], v[0], fma(R[4], v[1], R[7] * v[2])),
        fma(R[2], v[0], fma(R[5], v[1], R[8] * v[2])),
    )


@kernel
def mat_mul(R, S):
    """R S."""
    return (
        fma(R[0], S[0], fma(R[1], S[3], R[2] * S[6])),
        fma(R[0], S[1], fma(R[1], S[4], R[2] * S[7])),
        fma(R[0], S[2], fma(R[1], S[5], R[2] * S[8])),
        fma(R[3], S[0], fma(R[4], S[3], R[5] * S[6])),
        fma(R[3], S[1], fma(R[4], S[4], R[5] * S[7])),
        fma(R[3], S[2], fma(R[4], S[5], R[5] * S[8])),
        fma(R[6], S[0], fma(R[7], S[3], R[8] * S[6])),
        fma(R[6], S[1], fma(R[7], S[4], R[8] * S[7])),
        fma(R[6], S[2], fma(R[7], S[5], R[8] * S[8])),
    )


@kernel
def mat_inverse(A):
    """(inverse, mask of worlds where it exists) of a 3 x 3 matrix, by cofactors: no pivot can vanish."""
    c0 = fma(A[4], A[8], -(A[5] * A[7]))
    c1 = fma(A[5], A[6], -(A[3] * A[8]))
    c2 = fma(A[3], A[7], -(A[4] * A[6]))
    det = fma(A[0], c0, fma(A[1], c1, A[2] * c2))
    exists = det != 0.0
    s = 1.0 / where(exists, det, 1.0)
    return (
        s * c0,
        s * fma(A[2], A[7], -(A[1] * A[8])),
        s * fma(A[1], A[5], -(A[2] * A[4])),
        s * c1,
        s * fma(A[0], A[8], -(A[2] * A[6])),
        s * fma(A[2], A[3], -(A[0] * A[5])),
        s * c2,
        s * fma(A[1], A[6], -(A[0] * A[7])),
        s * fma(A[0], A[4], -(A[1] * A[3])),
    ), exists


@kernel
def select3(mask, a, b):
    """a where the mask holds, else b."""
    return where(mask, a[0], b[0]), where(mask, a[1], b[1]), where(mask, a[2], b[2])
