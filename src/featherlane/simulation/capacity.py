"""How many slots a tile has room for: fixed when a workspace is made."""

from __future__ import annotations

from ..constraint.row import row_capacity

CONTACT_LIMIT = 1024  # slots; a tile whose union is larger is split, a world with more contacts loses its last ones

MANIFOLD_LIMIT = 50  # contact points of one pair of geoms, as MuJoCo's mjMAXCONPAIR

SIGNATURE_BITS, SIGNATURE_WORDS = 24, 8  # exact in float32; beyond 192 candidate pairs, pairs share bits


def capacities(model) -> dict[str, int]:
    """Capacities of a tile's contacts and rows, and what a step is asked to compute.

    Contacts: every point of every candidate pair, up to CONTACT_LIMIT.  Rows: all that can exist.
    """
    nv = model.nv
    return {
        "nconmax": max(min(int(model.cand_npoint.sum()), CONTACT_LIMIT), 1),
        "nmanifold": MANIFOLD_LIMIT,
        **row_capacity(model),
        "nH": nv * (nv + 1) // 2,
        "nsignature": min(max(-(-model.ncand // SIGNATURE_BITS), 1), SIGNATURE_WORDS),
        "npart": 2 * nv + 3,
        "want_frames": 1,
        "want_energy": 0,
        "want_all": 1,
    }
