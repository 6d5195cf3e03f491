"""Outer products of a sparse row with itself, added where the pattern of M or of qDeriv has the entry.

A row is the gradient of a length: an actuator's moment, a tendon's Jacobian.  Its dofs ascend, as the columns of a
matrix row do, so the entries in common are found by walking along both.
"""

from featherlane.prelude import *


@kernel
def add_outer(m, J, dof, first, number, s, A):
    """A += s J^T J on M's pattern, the lower triangle.

    Args:
        J: the values; those of the row are J[first : first + number].
        dof: their dofs, in the same places, ascending.
        s: a value; where it is 0, A keeps its bits.
        A: (nC,) a matrix with M's pattern.
    """
    for r in range(first, first + number):
        e = m.M_rowadr[dof[r]]
        last = e + m.M_rownnz[dof[r]] - 1
        scaled = s * J[r]
        for c in range(first, r + 1):
            while e < last and m.M_colind[e] < dof[c]:
                e += 1
            if m.M_colind[e] == dof[c]:
                A[e] = where(s != 0.0, fma(scaled, J[c], A[e]), A[e])


@kernel
def add_square(m, J, dof, k, s, A):
    """The same, with the same bits, for a row whose one entry is J[k]: nothing to look for."""
    e = m.M_rowadr[dof[k]] + m.M_rownnz[dof[k]] - 1
    A[e] = where(s != 0.0, fma(s * J[k], J[k], A[e]), A[e])


@kernel
def add_full_outer(m, J, dof, first, number, s, A):
    """A += s J^T J on the pattern of qDeriv, both triangles; arguments as for `add_outer`, A is (nD,)."""
    for r in range(first, first + number):
        e = m.D_rowadr[dof[r]]
        last = e + m.D_rownnz[dof[r]] - 1
        scaled = s * J[r]
        for c in range(first, first + number):
            while e < last and m.D_colind[e] < dof[c]:
                e += 1
            if m.D_colind[e] == dof[c]:
                A[e] = where(s != 0.0, fma(scaled, J[c], A[e]), A[e])
