"""Interface to the Newton system H x = f, independent of the storage and factorization in use.

    select_factorization  once a step, when its rows are computed: selects each world's factorization (choice.py)
    assemble_hessian      H = M + J^T D J at the current rows
    keep_factor           H = L^T D L
    substitute            x <- H^-1 x, any number of times
    solve_first           search <- H^-1 search and the factor in one: the arithmetic of Newton's step, whose
                          right-hand side is one more column of the factor

`takes_recursion`, `takes_matrix`: whether some world of the tile uses the recursion over bodies (articulated.py), or
the matrix H in one of the patterns ORDERED, BLOCKS, PATHS, TREE, APART (choice.py).
Factors are valid until the next assembly, or until any stage of a step runs again: they use the memory of the stages.
If the worlds of one tile use both the recursion and H, both solve every vector, and each world takes the result
of its method: the recursion if hessian.coupled is 0.  All solvers work in place on primal.search; primal.Mv is the
second buffer for this case.  hessian.kept is 1 if a factor is stored; primal.live is 1 in worlds that the solver
continues.  primal.slot lists the contact slots of these worlds; `prepare_contacts` resets it to all slots.
`needs_inertia` checks whether each step computes M; if not, `factor_hessian` computes it.  ordered is 2 in worlds
whose trees are decoupled, because their panels do not fit; with APART, those of the tile's only world are decoupled.
Stages for Python are `factor_hessian` and `solve_hessian`, at the rows of the solver's final point.
"""

from __future__ import annotations

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.inertia.articulated import needs_inertia
from featherlane.engine.dynamics.inertia.joint_space import crb
from featherlane.engine.dynamics.sparse.tree_factor import PANEL
from featherlane.engine.solver.hessian.choice import select_factorization
from featherlane.engine.solver.hessian.entries.assembly import assemble_entries
from featherlane.engine.solver.hessian.entries.pattern import APART, BLOCKS, ORDERED
from featherlane.engine.solver.hessian.factorizations.articulated import (
    assemble_articulated,
    expand_articulated,
    factor_articulated,
    reduce_articulated,
    takes_matrix,
    takes_recursion,
)
from featherlane.engine.solver.hessian.factorizations.block_factor import expand_blocks, factor_blocks, reduce_blocks
from featherlane.engine.solver.hessian.factorizations.ordered import (
    factor_ordered,
    has_decoupled_trees,
    solve_ordered,
    substitute_ordered,
)
from featherlane.engine.solver.hessian.factorizations.tree import (
    expand_chain_columns,
    expand_chains,
    factor_chains,
    reduce_chains,
)
from featherlane.engine.solver.rows.rows import prepare_contacts
from featherlane.engine.solver.vectors import clear_vector, copy_vector


# ---- interface for the solver --------------------------------------------------------------------------------------
@kernel
def starts_from_inertia(m, d):
    """Checks whether `assemble_hessian` reads M."""
    return takes_matrix(m, d)


@stage
def assemble_hessian(m, d):
    """Computes H = M + J^T D J at the current rows: its entries, or inertias and stiffnesses of bodies.

    Contacts are added if they push in a world that the solver continues; H of the other worlds is not valid.
    Reads:  M, cinert, cdof, the rows and their values (primal.row_x, primal.con_y), the pattern,
            primal.live, primal.slot.
    Writes: hessian.H (nH,) [kg, kg m, kg m^2], hessian.body_K (nbody, 21), hessian.*; aba_inertia (nbody, 21),
            hessian.dof_K (nv, 3); body_reached.
    Cost:   O(contacts + entries).
    """
    d.hessian.kept[0] = 0  # no factor of this H is stored yet
    if takes_recursion(m, d):
        assemble_articulated(m, d)
    if takes_matrix(m, d):
        assemble_entries(m, d)


@kernel
def _solve_search(m, d, first):
    """Computes primal.search <- H^-1 search; primal.Mv is a work array.

    first: 1 also computes the factor, together with search <- L^-T search; 0 uses the stored factor.
    The calls `reduce_*` compute search <- L^-T search, and `expand_*` search <- L^-1 D^-1 search.
    """
    recursion = takes_recursion(m, d)
    matrix = takes_matrix(m, d)
    if recursion and matrix:  # both methods solve; each world takes the result of its method
        copy_vector(m, d.primal.search, d.primal.Mv)
    if recursion:
        if first:
            factor_articulated(m, d)
        else:
            reduce_articulated(m, d)
        expand_articulated(m, d)
    if recursion and matrix:  # now Mv holds the recursion's result, and search the vector itself
        for i in range(m.nv):
            d.primal.Mv[i], d.primal.search[i] = d.primal.search[i], d.primal.Mv[i]
    if matrix:
        if d.hessian.pattern[0] == ORDERED:
            if first:
                solve_ordered(m, d)
            else:
                substitute_ordered(m, d)
        elif d.hessian.pattern[0] == BLOCKS:
            if first:
                factor_blocks(m, d)
            else:
                reduce_blocks(m, d)
            expand_blocks(m, d)
        else:
            if first:
                factor_chains(m, d)
            else:
                reduce_chains(m, d, d.primal.search)
            expand_chains(m, d)
        if recursion:
            for i in range(m.nv):
                # hessian.coupled is 0 in worlds that use the recursion
                d.primal.search[i] = where(d.hessian.coupled[0] > 0.0, d.primal.search[i], d.primal.Mv[i])


@stage
def solve_first(m, d):
    """Computes search <- H^-1 search, and the factor for `substitute`, after `assemble_hessian`.

    Reads:  the outputs of `assemble_hessian`, primal.live.
    Writes: primal.search (nv,), primal.*; hessian.*; aba_inertia, aba_axis.
    Scratch: cacc, cfrc.
    Cost:   O(nv) by recursion, else that of the pattern's factor.
    """
    # ORDERED factors the worlds one by one in the same panels: none is kept, so `substitute` recomputes each
    d.hessian.kept[0] = 0 if takes_matrix(m, d) and d.hessian.pattern[0] == ORDERED else 1
    _solve_search(m, d, first=1)


@stage
def keep_factor(m, d):
    """Computes the factor for `substitute`, after `assemble_hessian`.

    Reads:  the outputs of `assemble_hessian`.
    Writes: hessian.H, hessian.dinv; aba_axis, hessian.dof_K; hessian.kept; primal.search.
    Cost:   O(nv) by recursion, else that of the pattern's factor.
    """
    # the factorizations also solve search <- L^-T search, which is not used here
    clear_vector(m, d.primal.search)
    if takes_recursion(m, d):
        factor_articulated(m, d)
    if takes_matrix(m, d):
        if d.hessian.pattern[0] == ORDERED:
            factor_ordered(m, d)
        elif d.hessian.pattern[0] == BLOCKS:
            factor_blocks(m, d)
        else:
            factor_chains(m, d)
    d.hessian.kept[0] = 1


@kernel
def substitute(m, d, x):
    """Computes x <- H^-1 x after `keep_factor` or `solve_first`, for any number of vectors.

    Scratch: primal.search, primal.Mv.
    """
    if d.hessian.kept[0] == 0:  # `solve_first` keeps no factor of worlds that are factored one by one
        keep_factor(m, d)
    copy_vector(m, x, d.primal.search)
    _solve_search(m, d, first=0)
    copy_vector(m, d.primal.search, x)


@kernel
def substitute_columns(m, d, X):
    """Runs `substitute` for the PANEL columns of X, with results bitwise identical to a column computed separately.

    X: a field of Vec4 rows; entry i of column c is part c of row i.
    """
    if d.hessian.kept[0] == 0:  # `solve_first` keeps no factor of worlds that are factored one by one
        keep_factor(m, d)
    # only rows of ancestors can be solved for all columns at once
    if takes_recursion(m, d) or d.hessian.pattern[0] in (ORDERED, BLOCKS):
        for c in range(PANEL):
            for i in range(m.nv):
                d.primal.search[i] = flat(X)[PANEL * i + c]
            _solve_search(m, d, first=0)
            for i in range(m.nv):
                flat(X)[PANEL * i + c] = d.primal.search[i]
    else:
        reduce_chains(m, d, X)
        expand_chain_columns(m, d, X, most=2)


@kernel
def leaves_out(d):
    """Returns the mask of worlds whose H lacks the couplings of trees: it is not the second derivative of the cost."""
    if d.hessian.pattern[0] == APART:
        mask = d.ordered[0] >= 0.0  # true in all worlds
    else:
        mask = has_decoupled_trees(d)
    return mask


# ---- stages for Python ---------------------------------------------------------------------------------------------
@stage
def factor_hessian(m, d):
    """Factors the Hessian of the primal problem at the rows of the solver's final point.

    H = M + J^T D J with the rows that are not at a bound; without rows it is M.  If trees are decoupled, it lacks
    their couplings.  If no factorization fits all worlds of the tile, con_overflow is 1, and nothing is computed.
    Reads:  M, cinert, cdof, all rows and their values.
    Writes: hessian.*, aba_*, con_*, ordered, body_*, graph.*, panel.*, the outputs of `assemble_hessian`.
    Scratch: primal.*, cfrc.
    Cost:   as one of Newton's steps.
    """
    d.hessian.kept[0] = 0
    prepare_contacts(m, d)  # writes con_body, con_arm, con_basis; primal.slot: all slots
    select_factorization(m, d)
    if d.con_overflow[0] == 0:
        if starts_from_inertia(m, d) and not needs_inertia(m, d):  # M is read, and the step has not computed it
            crb(m, d)
        d.primal.live[0] = 1.0  # contacts of all worlds are added
        assemble_hessian(m, d)
        keep_factor(m, d)


@stage
def solve_hessian(m, d):
    """Computes qvec <- H^-1 qvec by the factor of `factor_hessian`.

    Reads:  qvec, the factor.   Cost: O(nv) by recursion, else O(entries).
    Writes: qvec (nv,); primal.*; hessian.*, aba_*.
    Scratch: cacc, cfrc.
    """
    substitute(m, d, d.qvec)


def forget_pattern(arrays) -> None:
    """Makes the next step build its pattern again: a pattern is kept from step to step, and holds for one model.

    Args:
        arrays: arrays of a tile, by name.
    """
    arrays["hessian.pattern"][...] = 0
