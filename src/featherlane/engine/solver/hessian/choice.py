"""Selects the factorization for H p = -grad, from the rows alone, once per tile and step.

Sizes: npath: capacity for rows of PATHS, ngraph: trees that ORDERED may order; 0 if the model never uses the pattern.
con_overflow = 1: the caller splits the tile.
hessian.coupling_key lists the pairs of branches that rows couple, the *couplings*: ncoupling[0] of this step,
ncoupling[1] of the stored pattern, whose list is coupling_last.  The scalar rows from ndofrow[0] to nrow[0] are
general: they act on several dofs.
ORDERED assembles H in lanes, then factors each world in *panels*: dense rows of one tree, eight columns at a time
(panel.py).  Contacts of free bodies (trees with only a free joint) are added to the panels directly (free_panels.py).
ordered[0] = 1 in worlds that need ORDERED.  `mark_ordered` sets it, and returns (whether some active world needs it,
whether some does not).
hessian.pattern[0] = 0: no pattern is stored.  hessian.fill[0] is the input of `find_block_rows`: 1 stores the fill-in
of the factor; 0 none between trees; -1 also omits the couplings of two free bodies.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes.worlds import count_active_worlds
from featherlane.engine.solver.hessian.entries.couplings import (
    has_same_couplings,
    list_couplings,
    store_contact_couplings,
)
from featherlane.engine.solver.hessian.entries.pattern import APART, BLOCKS, ORDERED, PATHS, TREE
from featherlane.engine.solver.hessian.factorizations.articulated import mark_coupled
from featherlane.engine.solver.hessian.factorizations.block_rows import find_block_rows
from featherlane.engine.solver.hessian.factorizations.ordered import mark_ordered
from featherlane.engine.solver.hessian.factorizations.paths import closes_paths, find_path_rows
from featherlane.engine.solver.hessian.factorizations.tree import mark_all_contacts_unpaired, use_model_tree


@kernel
def build_coupled_rows(m, d, label):
    """Builds the pattern BLOCKS or ORDERED (label) for this step's couplings; BLOCKS may become PATHS.

    The pattern of the last step is kept if it has the same label, fill-in and couplings; PATHS counts as BLOCKS.
    Writes: hessian.pattern, hessian.fill, hessian.ncoupling[1], hessian.coupling_last and the rows of the pattern.
    """
    kept = d.hessian.pattern[0] == label or (d.hessian.pattern[0] == PATHS and label == BLOCKS)
    fill = 1  # BLOCKS is factored in place, so it stores the fill-in
    if label == ORDERED:
        # the panels hold the fill-in, and the contacts of two free bodies: H needs entries between free bodies only for
        # general rows
        fill = 0 if d.nrow[0] > d.ndofrow[0] else -1
    if not kept or d.hessian.fill[0] != fill or not has_same_couplings(d):
        d.hessian.fill[0] = fill
        find_block_rows(m, d)  # sets con_overflow if they do not fit
        d.hessian.pattern[0] = label
        # the block rows fit, and rows closed under paths cost less
        if label == BLOCKS and d.npath > 0 and d.con_overflow[0] == 0 and closes_paths(m, d):
            find_path_rows(m, d)
            d.hessian.pattern[0] = PATHS
        # remember the couplings of this pattern, for `has_same_couplings` of the next step
        d.hessian.ncoupling[1] = d.hessian.ncoupling[0]
        for k in range(d.hessian.ncoupling[0]):
            d.hessian.coupling_last[k] = d.hessian.coupling_key[k]


@stage
def select_factorization(m, d):
    """Selects the factorization of each world, and the pattern of the tile's H, for this step's rows.

    If the model uses the articulated-body method, worlds with hessian.coupled = 0 take it.  All other worlds take the
    one pattern in hessian.pattern; with ORDERED, ordered is 1.

    articulated   a long tree (uses_articulated), in worlds in which no row couples two branches: O(n) instead of
                  n^3 / 6.  A chain of 100 ball joints is solved 60 to 110 times as fast as by TREE.
    TREE          no slot of the tile couples two branches: the model's own rows, without fill-in.
    PATHS         few trees whose couplings fill little (closes_paths): a humanoid with self-contacts takes two thirds
                  of the time of block rows, a stack of eight boxes 1.6 times as long.
    BLOCKS        all other couplings: exact fill-in, six columns of two rows at a time.
    ORDERED       a world whose factor is costly in the model's order, mostly by fill-in (mark_ordered): one world at
                  a time by minimum degree.  For 64 balls in a pile, it takes a third of the multiplications of one
                  world in the model's order, a tenth of those on the union of eight worlds.
    APART         the rows do not fit, and the tile has one world: the trees' own rows, without couplings.

    If the rows do not fit, or only some worlds need ORDERED, con_overflow is set, which splits the tile.
    A world's result depends only on choices by its own rows (articulated, ORDERED, APART): in TREE, PATHS and
    BLOCKS every entry has the same roundings in the same order.
    Reads:  con_body, con_D, row_dof, row_present, active; the pattern of the last step.
    Writes: hessian.*, ordered, con_overflow; body_reached; graph.*, panel.*.
    Cost:   O(slots log slots), and that of the pattern if the couplings are not those of the last step.
    """
    d.hessian.assembled[0] = 0.0  # no world has a factor of these rows
    mark_coupled(m, d)  # writes hessian.coupled
    list_couplings(m, d)  # writes hessian.coupling_key, ncoupling
    if d.hessian.ncoupling[0] > 0:
        store_contact_couplings(m, d)  # writes hessian.con_coupling
        some_ordered, some_unordered = 0, 1  # whether some world needs ORDERED, and some world does not
        if d.ngraph > 0:  # the model has enough trees for ORDERED
            some_ordered, some_unordered = mark_ordered(m, d)
        if some_ordered and some_unordered:  # the caller splits the tile
            d.con_overflow[0] = 1
        else:
            build_coupled_rows(m, d, ORDERED if some_ordered else BLOCKS)  # sets con_overflow if rows do not fit
        if d.con_overflow[0] and count_active_worlds(d) > 1:
            d.hessian.pattern[0] = 0  # no pattern: the caller splits the tile
        elif d.con_overflow[0]:
            # one world whose rows do not fit: decouple its trees, also if it needed ORDERED
            d.con_overflow[0] = 0
            d.ordered[0] = 0.0
            use_model_tree(m, d, APART)  # sets hessian.pattern
            mark_all_contacts_unpaired(m, d)  # contacts within one tree also become stiffnesses of their bodies
    elif d.hessian.pattern[0] != TREE:  # no couplings; TREE of the last step is kept
        use_model_tree(m, d, TREE)
