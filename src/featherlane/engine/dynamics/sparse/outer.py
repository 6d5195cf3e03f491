"""Adds outer products of a sparse row with itself to the pattern of M or of qDeriv.

A row J is the gradient of a length: an actuator's moment, a tendon's Jacobian.  It is stored sparse: the values
J[first : first + number], and their DoFs at the same indices of `dof`.  The DoFs ascend, like the columns of a matrix
row, so common entries are found by traversing both in parallel.

    LOWER   pattern of M, its lower triangle: row i is A[M_rowadr[i] : M_rowadr[i] + M_rownnz[i]], with columns in
            M_colind at the same indices, ascending; M_ii is the last entry.  A is (nC,)
    FULL    pattern of qDeriv, both triangles: likewise D_rowadr, D_rownnz, D_colind; D_diag[i] is the index of entry
            (i, i) within row i.  A is (nD,)
    DIAGONAL   entry (i, i) is A[i].  A is (nv,)
"""

from featherlane.engine.prelude import *

DIAGONAL, LOWER, FULL = 0, 1, 2  # patterns of a matrix


@kernel
def add_outer(m, J, dof, first, number, s, A):
    """A += s J^T J on M's pattern, the lower triangle; entries outside the pattern are left out.

    Args:
        J: the values; those of the row are J[first : first + number].
        dof: their DoFs, at the same indices, ascending.
        s: a value; if it is 0, A is bitwise unchanged.
        A: (nC,) a matrix with M's pattern.
    """
    for r in range(first, first + number):
        # e: the entry of A in row dof[r]; it moves right to the column dof[c]
        e = m.M_rowadr[dof[r]]
        diagonal = e + m.M_rownnz[dof[r]] - 1
        scaled = s * J[r]
        # J's dofs up to dof[r], the diagonal: only the lower triangle is stored
        for c in range(first, r + 1):
            while e < diagonal and m.M_colind[e] < dof[c]:
                e += 1
            if m.M_colind[e] == dof[c]:
                A[e] = where(s != 0.0, fma(scaled, J[c], A[e]), A[e])


@kernel
def add_full_outer(m, J, dof, first, number, s, A):
    """A += s J^T J on the pattern of qDeriv, both triangles; arguments as for `add_outer`, A is (nD,)."""
    for r in range(first, first + number):
        # e: the entry of A in row dof[r]; it moves right to the column dof[c]
        e = m.D_rowadr[dof[r]]
        last = e + m.D_rownnz[dof[r]] - 1
        scaled = s * J[r]
        for c in range(first, first + number):
            while e < last and m.D_colind[e] < dof[c]:
                e += 1
            if m.D_colind[e] == dof[c]:
                A[e] = where(s != 0.0, fma(scaled, J[c], A[e]), A[e])


@kernel
def diagonal_address(m, i, pattern):
    """Returns the address of entry (i, i) in a matrix with the pattern DIAGONAL, LOWER (of M) or FULL (of qDeriv)."""
    address = i
    if pattern == LOWER:
        address = m.M_rowadr[i] + m.M_rownnz[i] - 1
    elif pattern == FULL:
        address = m.D_rowadr[i] + m.D_diag[i]
    return address


@kernel
def add_row(m, J, dof, first, number, s, A, pattern):
    """A += s J^T J on the pattern DIAGONAL, LOWER (of M) or FULL (of qDeriv); other arguments as for `add_outer`.

    A row with a single entry needs no search; the result is bitwise identical.  DIAGONAL has such rows only.
    """
    if number == 1:
        e = diagonal_address(m, dof[first], pattern)
        A[e] = where(s != 0.0, fma(s * J[first], J[first], A[e]), A[e])
    elif pattern == LOWER:
        add_outer(m, J, dof, first, number, s, A)
    elif pattern == FULL:
        add_full_outer(m, J, dof, first, number, s, A)
