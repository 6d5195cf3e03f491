"""Operations on joint-space vectors, fields of m.nv numbers such as qacc or primal.grad; sums of eight numbers."""

from featherlane.engine.prelude import *


@kernel
def clear_vector(m, x):
    """Sets x = 0."""
    for i in range(m.nv):
        x[i] = 0.0


@kernel
def copy_vector(m, x, out):
    """Sets out = x."""
    for i in range(m.nv):
        out[i] = x[i]


@kernel
def replace_vector(m, chosen, x, out):
    """Sets out = x in the worlds of the mask `chosen`."""
    for i in range(m.nv):
        out[i] = where(chosen, x[i], out[i])


@kernel
def dot_product(m, x, y):
    """Returns x . y."""
    s = 0.0
    for i in range(m.nv):
        s = fma(x[i], y[i], s)
    return s


@kernel
def sum_of_eight(x, first):
    """Returns the sum of eight adjacent values from index `first` on, added in pairs."""
    return ((x[first] + x[first + 1]) + (x[first + 2] + x[first + 3])) + (
        (x[first + 4] + x[first + 5]) + (x[first + 6] + x[first + 7])
    )
