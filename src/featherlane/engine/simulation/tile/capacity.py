"""Computes the capacities of a tile, which are fixed when a workspace is created."""

from __future__ import annotations

import numpy as np

from featherlane.engine.collision.broad.neighbours import listed_pairs
from featherlane.engine.collision.convex.result_cache import memory_of_world, proofs, recall_entries
from featherlane.engine.constraint.row import row_capacity
from featherlane.engine.constraint.tendon import crossings
from featherlane.engine.model.enums import MAXCONPAIR, NGEOMTYPES
from featherlane.engine.model.names import element
from featherlane.engine.model.pair import CONVEX
from featherlane.engine.solver.dual.rows import dual_capacity
from featherlane.engine.solver.hessian.capacity import hessian_capacity
from featherlane.engine.solver.lcp.capacity import lcp_capacity

# Slots, unless the model sets more by `nconmax`.  A tile with a larger union is split; a world with more contacts loses
# its last ones.  Memory is in pages that are allocated at the first write, so unused slots cost addresses only.
CONTACT_LIMIT = 1 << 16
# contacts, and near pairs of a tile, for each geom of a crowd; a lattice of touching boxes has 40 contacts per box
CROWD_CONTACTS, CROWD_PAIRS = 64, 256
REMEMBERED = 64  # pairs with cached data of a world, for each geom of a crowd
HISTORY_LIMIT = 1000  # recorded iterations of a solve

SIGNATURE_BITS, SIGNATURE_WORDS = 24, 8  # exact in float32; beyond 192 candidate pairs, pairs share bits
# iterations of the solver beyond which a world has further bits, in its last word (`sign_contacts`).  256 worlds of
# libero_10, task 0: 2.1 iterations of a tile instead of 2.7, with the same contacts
EFFORTS, EFFORT_BITS = (1, 2, 3, 5, 8, 12), 4


def capacities(model, given: int = 0, width: int = 1) -> dict[str, int]:
    """Returns capacities of a tile's contacts and rows, and the sizes that select what a step computes.

    Contacts: every point of every candidate pair, up to `contact_limit`; and given contacts, whose pairs differ in
    every world.  Rows: the largest possible number.

    Args:
        model: the model.
        given: largest number of contacts that the caller gives to one world.
        width: worlds of the tile.
    """
    crowd, rows, limit = model.ncrowd, row_capacity(model), contact_limit(model)
    most = int(model.cand_npoint.sum()) + (limit if crowd else 0) + given * width
    slots = max(min(most, limit + given), 1)
    remembered = remembered_pairs(model)
    leaves = 1 << max(crowd - 1, 0).bit_length()
    return {
        "nconmax": slots,
        "ngiven": given,
        "ngroupbody": model.nbody if model.ngroup else 0,
        "nnode": 2 * leaves if crowd else 0,
        "nnear": max(CROWD_PAIRS * crowd, limit) + model.ncand if crowd else 0,
        "nmanifold": MAXCONPAIR,
        "nlisted": listed_pairs(model.ncand, model.ncollide, width),
        "keeps_list": 1,
        "nlane": width,
        "nrecall": recall_entries(remembered),
        "nproof": proofs(remembered),
        "nmemory": memory_of_world(recall_entries(remembered), proofs(remembered)),
        "nrowmax": rows["nrowmax"],
        "nrowJmax": rows["nrowJmax"],
        **dual_capacity(model, slots, rows, given),
        **lcp_capacity(model, slots, rows),
        **hessian_capacity(model, slots + rows["nrowJmax"] - rows["ndofrowmax"] + crossings(model)),
        "nsignature": min(max(-(-model.ncand // SIGNATURE_BITS), 1), SIGNATURE_WORDS) + 1,
        "want_frames": 1,
        "want_energy": 0,
        "want_history": 0,
        "nrecord": HISTORY_LIMIT + 1,
        "want_sensors": 1,
        "want_derivative": 1,
        "want_islands": 0,
        "want_subtree": 0,
        "want_wrenches": 0,
        "user_control": 0,
        "control_record": 0,
        "want_all": 1,
    }


def contact_limit(model) -> int:
    """Returns the largest number of contacts of one world, without given ones: `nconmax` of the model if that is more.

    Source: MJX and MuJoCo Warp allocate `nconmax` contacts; MuJoCo reads and ignores it.
    """
    return max(CONTACT_LIMIT, CROWD_CONTACTS * model.ncrowd, int(model.compiled.nconmax))


def remembered_pairs(model) -> int:
    """Returns the number of geom pairs with cached data: 0 without convex pairs, else listed and crowd pairs."""
    types = model.geom_type[model.collide_geom]
    found = np.isin(model.pair_function.reshape(NGEOMTYPES, NGEOMTYPES)[np.ix_(types, types)], CONVEX)
    return int(found.any()) * (model.ncand + REMEMBERED * model.ncrowd)


def full_pair(model, workspaces) -> str:
    """Returns the names of two geoms with more contacts than fit into a pair, as counted in a workspace; or ""."""
    for workspace in workspaces:
        geom1, geom2 = workspace.arrays["found_pair"].ravel()[:2]
        if geom1 > 0:
            return f"{element(model, 'geom', geom1 - 1)} and {element(model, 'geom', geom2 - 1)}"
    return ""
