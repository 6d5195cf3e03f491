"""Lists of dofs that contain all ancestors of each dof: the columns of whitened rows of the Jacobian.

A list begins at dofs[start] and descends, so that ancestors follow.  marks[i] is 0 if dof i is in no list, else FIRST,
SECOND or BOTH: which of two bodies it moves.  Both are fields: dofs of all lists, and nv marks.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.general import row_entries

# bits of a mark
FIRST, SECOND, BOTH = 1, 2, 3


@kernel
def append_chain(m, dofs, marks, i, mark, start, n):
    """Appends dof i (-1: none) and its ancestors to a list of n dofs; returns their new number.

    Adds the bit `mark` to their marks.  A dof with a mark is already in the list.  If a dof has the bit `mark`, all its
    ancestors have it, too, so the loop ends there.
    """
    while i >= 0 and marks[i] & mark == 0:
        if marks[i] == 0:
            dofs[start + n] = i
            n += 1
        marks[i] = marks[i] | mark
        i = m.dof_parentid[i]
    return n


@kernel
def sort_descending(dofs, start, n):
    """Sorts n dofs of a list, from dofs[start] on, by insertion.

    It moves little: a chain descends already, and so do two chains, unless they share a tree.
    """
    for at in range(start + 1, start + n):
        i, position = dofs[at], at
        while position > start and dofs[position - 1] < i:
            dofs[position] = dofs[position - 1]
            position -= 1
        dofs[position] = i


@kernel
def clear_marks(dofs, marks, start, n):
    """Clears the marks of n dofs of a list."""
    for p in range(start, start + n):
        marks[dofs[p]] = 0


@kernel
def list_pair(m, dofs, marks, last1, last2, start):
    """Lists the dofs that move two bodies, and sets their marks; returns their number.

    last1, last2: last dof of the body with the mark FIRST, and with the mark SECOND; -1: none.
    """
    # the chain of the later dof comes first, so that little is left to sort
    n = append_chain(m, dofs, marks, max(last1, last2), FIRST if last1 > last2 else SECOND, start, n=0)
    n = append_chain(m, dofs, marks, min(last1, last2), SECOND if last1 > last2 else FIRST, start, n)
    sort_descending(dofs, start, n)
    return n


@kernel
def list_row(m, d, k, dofs, marks, start):
    """Lists the dofs of row k and their ancestors, descending; returns their number.  All marks are 0 after it."""
    n = 0
    last = d.row_dofadr[k] + d.row_dofnum[k] - 1
    # from the last dof to the first: little is left to sort.  Any mark serves: it only prevents repetitions
    for e in range(d.row_dofnum[k]):
        n = append_chain(m, dofs, marks, d.row_dof[last - e], FIRST, start, n)
    sort_descending(dofs, start, n)
    clear_marks(dofs, marks, start, n)
    return n


@kernel
def fill_row(d, k, values, first, dofs, position, start, n):
    """Writes row k of J at the n dofs of a list to values[first ..], 0 at dofs without an entry.

    Writes: position: position of each of these dofs in the list.
    """
    for p in range(n):
        values[first + p] = 0.0
        position[dofs[start + p]] = p
    for e in row_entries(d, k):
        values[first + position[d.row_dof[e]]] = d.row_J[e]
