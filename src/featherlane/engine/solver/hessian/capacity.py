"""Buffer capacities for the Hessian of a tile, for every factorization that its model may use."""

from __future__ import annotations

from featherlane.engine.solver.hessian.factorizations.minimum_degree import WORD_BITS

HESSIAN_LIMIT = 1 << 24  # entries of the Hessian: all of it up to nv = 5792
PATH_DOFS = 128  # at most, for rows closed under paths: larger models are mostly stacks and piles, with much fill-in
FREE_AXES = 48  # motion axes of a tree: six rows of eight
MANY_TREES = 8  # models with fewer trees never profit from a separate elimination order


def hessian_entries(model) -> int:
    """Returns the entries of a Hessian with full rows: the lower triangle, with square diagonal blocks."""
    return (model.nv**2 + int((model.block_dofnum**2).sum())) // 2


def path_entries(model) -> int:
    """Returns the entries of rows closed under paths, all of them full; 0 in a model that has block rows only."""
    entries = model.nv * (model.nv + 1) // 2
    return entries if model.nv <= PATH_DOFS and entries <= HESSIAN_LIMIT else 0


def panel_capacity(model) -> dict[str, int]:
    """Returns capacities for one world's factor in its own order, up to a full one; 0 for a model with few trees."""
    many = model.ntree >= MANY_TREES
    padded = [-(-int(n) // 8) * 8 for n in model.tree_dofnum] if many else []
    columns = sum(padded)
    ntree = int(model.ntree) if many else 0
    return {
        "ngraph": ntree,
        "ngraphword": -(-ntree // WORD_BITS),
        "nfill": ntree * (ntree - 1) // 2,
        "npanel": min(model.nv * columns, HESSIAN_LIMIT),
        "npanelcolumn": columns,
        "npanelaxis": FREE_AXES * ntree,
        "npanelscale": max(padded) * int(model.tree_dofnum.max()) if many else 0,
    }


def hessian_capacity(model, couplings: int) -> dict[str, int]:
    """Returns the sizes ncouplingmax, npath, nH, nHblock, npanelcontact and those of panels.

    Args:
        model: the model.
        couplings: maximum number of pairs of branches that rows of a tile couple.
    """
    return {
        "ncouplingmax": couplings,
        "npath": path_entries(model),
        "nH": min(hessian_entries(model), HESSIAN_LIMIT),
        "nHblock": min(model.nblock * (model.nblock + 1) // 2, HESSIAN_LIMIT),
        **panel_capacity(model),
        "npanelcontact": couplings if model.ntree >= MANY_TREES else 0,
    }
