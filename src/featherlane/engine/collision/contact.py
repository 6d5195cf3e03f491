"""Converts the contacts of one world to a NumPy record array."""

from __future__ import annotations

import numpy as np

# fields of mjContact that are computed here
CONTACT = np.dtype(
    [
        ("dist", np.float64),
        ("pos", np.float64, 3),
        ("frame", np.float64, 9),
        ("includemargin", np.float64),
        ("adhesion", np.float64),
        ("friction", np.float64, 5),
        ("solref", np.float64, 2),
        ("solreffriction", np.float64, 2),
        ("solimp", np.float64, 5),
        ("dim", np.int32),
        ("geom", np.int32, 2),
        ("geom1", np.int32),
        ("geom2", np.int32),
        ("exclude", np.int32),
        ("efc_address", np.int32),
    ],
    align=True,
)


# fields that a tile stores as reals, with their names in the tile and their number of values per contact
REALS = ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp")
KEPT = tuple((name, f"con_{name}", int(np.prod(CONTACT[name].shape))) for name in REALS)


def contacts(arrays, slots: np.ndarray, first_row: np.ndarray, adhesive: bool, swept: bool = False) -> np.recarray:
    """Returns the contacts of one world, with the field names of MuJoCo's `mjData.contact`.

    Args:
        arrays: a tile's arrays by field name, reals as (n, 1).
        slots: (ncon,) the slot of each contact, ascending.
        first_row: (ncon,) the first constraint row of each contact, or -1 if it has none.
        adhesive: whether contacts may pull.
        swept: whether contacts may be within the step (flag `speculative`).

    Returns:
        A record array, read-only: `contacts(...).dist` is (n,), `contacts(...)[i].pos` is (3,).  `exclude` is 1 for a
        contact in the gap that is neither adhesive nor within the step; such a contact has no constraint row.
    """
    n = len(slots)
    out = np.zeros(n, CONTACT)
    at = slice(n) if n == 0 or slots[-1] == n - 1 else slots  # a slice if no slot is skipped
    for name, kept, width in KEPT:
        rows = arrays[kept]
        out[name] = rows[at, 0] if width == 1 else rows[: len(rows) // width * width].reshape(-1, width)[at]
    out["dim"] = arrays["con_dim"][at]
    out["geom"] = geom = arrays["con_geom"].reshape(-1, 2)[at]
    out["geom1"], out["geom2"] = geom[:, 0], geom[:, 1]
    apart = out["dist"] >= out["includemargin"]
    if adhesive:
        out["adhesion"] = adhesion = arrays["con_adhesion"][at, 0]
        apart &= adhesion == 0.0
    if swept:
        apart &= arrays["con_speculative"][at, 0] == 0.0
    out["exclude"], out["efc_address"] = apart, first_row
    out.flags.writeable = False
    return out.view(np.recarray)
