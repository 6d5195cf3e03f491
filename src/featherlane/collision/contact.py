"""Contacts of one world as Python sees them."""

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


def contacts(model, arrays, lane: int = 0) -> np.recarray:
    """The contacts of one world, in MuJoCo's order and with the names of its `mjData.contact`.

    Args:
        model: the model.
        arrays: a tile's arrays by field name, reals as (n, W).
        lane: the world's place in the tile.

    Returns:
        A record array: `contacts(...).dist` is (n,), `contacts(...)[i].pos` is (3,).  `exclude` is 1 for a contact in
        the gap that is not adhesive: it makes no row; `efc_address` is -1 until rows are made.
    """
    nslot = int(arrays["ncon_slot"][0])
    slots = np.flatnonzero(arrays["con_present"][:nslot, lane])
    out = np.zeros(slots.size, CONTACT).view(np.recarray)
    for name in ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp"):
        rows = arrays[f"con_{name}"][:, lane]
        shape = CONTACT[name].shape
        out[name] = rows[: nslot * int(np.prod(shape))].reshape(nslot, *shape)[slots]

    out.dim = arrays["con_dim"][slots]
    out.geom = arrays["con_geom"].reshape(-1, 2)[slots]
    out.geom1, out.geom2 = out.geom[:, 0], out.geom[:, 1]
    if model.flg_adhesion:
        out.adhesion = arrays["con_adhesion"][slots, lane]
    out.exclude = (out.dist >= out.includemargin) & (out.adhesion == 0.0)
    out.efc_address = -1
    return out
