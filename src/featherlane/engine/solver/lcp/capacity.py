"""Buffer capacities for the LCP of a tile: rows that can exist, up to limits."""

from __future__ import annotations

LINK_ROWS = 7  # a fixed joint has 6; a slider 5 and its motor or stop
Y_LIMIT = 1 << 24  # entries of the rows of all contacts, and of all others
ONE_LIMIT = 4096  # rows of one island of one world


def lcp_capacity(model, ncon: int, rows: dict[str, int]) -> dict[str, int]:
    """Returns sizes nlcp, nlcpcol, nlcpY, nlcpA, nlcpz, nlcpone of a tile.

    A one-dof row has the dofs from the root to its own, a contact those of two such chains, any other row any.  A is
    dense only in the problem of one world, and is preceded there by a panel by dofs (delassus.py).

    Args:
        model: the model.
        ncon: contact slots.
        rows: capacities of the other rows, see `row_capacity`.
    """
    nv, chain = int(model.nv), int(max(model.chain_rownnz, default=1))
    joint = rows["ndofrowmax"] + int(model.njnt)
    general = rows["nrowmax"] - rows["ndofrowmax"] + LINK_ROWS * int(model.nlink)
    n = joint + general + 6 * ncon
    others = joint * chain + min(general * nv, Y_LIMIT)
    contacts = ncon * min(2 * chain, nv)
    one = -(-min(n, ONE_LIMIT) // 8) * 8
    return {
        "nlcp": n,
        "nlcpcol": others + min(contacts, Y_LIMIT) + nv,
        "nlcpY": others + min(6 * contacts, Y_LIMIT) + 6 * nv,
        "nlcpA": 0,
        "nlcpz": nv,
        "nlcpone": one,
        "nlcppair": one * max(one, nv),
    }
