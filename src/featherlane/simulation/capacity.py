"""How many slots a tile has room for: fixed when a workspace is made."""

from __future__ import annotations

CONTACT_LIMIT = 1024  # slots; a tile whose union is larger is split, a world with more contacts loses its last ones


def capacities(model) -> dict[str, int]:
    """Capacities of a tile's contacts and rows, and what a step is asked to compute.

    Contacts: every point of every candidate pair, up to CONTACT_LIMIT.  Rows: all that can exist.
    """
    nv = model.nv
    limited = [t for t, on in zip(model.jnt_type, model.jnt_limited, strict=True) if on]
    balls = sum(1 for t in limited if t == 1)
    return {
        "nconmax": max(min(int(model.cand_npoint.sum()), CONTACT_LIMIT), 1),
        "ndofrowmax": nv + 2 * (len(limited) - balls),
        "ngenrowmax": balls,
        "ngenJmax": 3 * balls,
        "nH": nv * (nv + 1) // 2,
        "want_frames": 1,
        "want_energy": 0,
        "want_reset": 1,
    }
