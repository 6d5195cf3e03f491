"""The rows of the dual problem."""

from __future__ import annotations

DUAL_LIMIT = 1 << 22  # entries of the rows of all blocks


def dual_capacity(model, ncon: int, rows: dict[str, int], given: int) -> dict[str, int]:
    """Sizes ndualmax, ndualdofmax and ndualYmax of a tile: what all rows take that can exist, up to DUAL_LIMIT entries.

    A one-dof row takes the dofs from the root to its own, any other row those of two such chains or more.

    Args:
        model: the model.
        ncon: contact slots.
        rows: capacities of the other rows, see `row_capacity`.
        given: contacts that the caller gives to one world, of any dimension.
    """
    nv, chain = int(model.nv), int(max(model.chain_rownnz, default=1))
    dims = [*model.geom_condim, *model.pair_dim, 6 if given else 1]
    basis = 6 if max(dims) > 3 else 3
    own, general, contacts = rows["ndofrowmax"] * chain, rows["ngenrowmax"] * nv, ncon * min(2 * chain, nv)
    return {
        "ndualmax": rows["ndofrowmax"] + rows["ngenrowmax"] + ncon,
        "ndualdofmax": max(min(own + general + contacts, DUAL_LIMIT), 1),
        "ndualYmax": max(min(own + general + basis * contacts, DUAL_LIMIT), 1),
    }
