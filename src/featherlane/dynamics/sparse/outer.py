"""Adds outer products of a sparse row with itself to the pattern of M or of qDeriv.

A row is the gradient of a length: an actuator's moment, a tendon's Jacobian.  Its DoFs ascend, like the columns of a
matrix row, so common entries are found by traversing both in parallel.
"""

from featherlane.prelude import *


@kernel
def add_outer(m, J, dof, first, number, s, A):
    """A += s J^T J on M's pattern, the lower triangle.

    Args:
        J: the values; those of the row are J[first : first + number].
        dof: their DoFs, at the same indices, ascending.
        s: a value; if it is 0, A is bitwise unchanged.
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
    """As `add_outer`, bitwise identical, for a row with the single entry J[k], without a search."""
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
