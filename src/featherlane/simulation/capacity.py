"""How many slots a tile has room for: fixed when a workspace is made."""

from __future__ import annotations

from ..constraint.row import row_capacity

CONTACT_LIMIT = 1024  # slots; a tile whose union is larger is split, a world with more contacts loses its last ones


def capacities(model) -> dict[str, int]:
    """Capacities of a tile's contacts and rows, and what a step is asked to compute.

    Contacts: every point of every candidate pair, up to CONTACT_LIMIT.  Rows: all that can exist.
    """
    nv = model.nv
    return {
        "nconmax": max(min(int(model.cand_npoint.sum()), CONTACT_LIMIT), 1),
        **row_capacity(model),
        "nH": nv * (nv + 1) // 2,
        "npart": 2 * nv + 3,
        "want_frames": 1,
        "want_energy": 0,
    }
