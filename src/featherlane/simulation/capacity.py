"""How many slots a tile has room for: fixed when a workspace is made."""

from __future__ import annotations

from ..constraint.row import row_capacity
from ..solver.minimum_degree import WORD_BITS

CONTACT_LIMIT = 1024  # slots; a tile whose union is larger is split, a world with more contacts loses its last ones

CROWD_CONTACTS, CROWD_PAIRS = 12, 64  # contacts, and near pairs of a tile, for each geom of a crowd
HESSIAN_LIMIT = 1 << 24  # entries of the Hessian: all of it up to nv = 5792
MANIFOLD_LIMIT = 50  # contact points of one pair of geoms, as MuJoCo's mjMAXCONPAIR

SIGNATURE_BITS, SIGNATURE_WORDS = 24, 8  # exact in float32; beyond 192 candidate pairs, pairs share bits


def capacities(model, given: int = 0, width: int = 1) -> dict[str, int]:
    """Capacities of a tile's contacts and rows, and what a step is asked to compute.

    Contacts: every point of every candidate pair, up to CONTACT_LIMIT; and those that the caller gives, which are other
    pairs in every world.  Rows: all that can exist.

    Args:
        model: the model.
        given: contacts that the caller gives to one world, at most.
        width: worlds of the tile.
    """
    nv, crowd = model.nv, model.ncrowd
    most = int(model.cand_npoint.sum()) + CROWD_CONTACTS * crowd + given * width
    room = max(CONTACT_LIMIT, CROWD_CONTACTS * crowd) + given
    leaves = 1 << max(crowd - 1, 0).bit_length()
    return {
        "nconmax": max(min(most, room), 1),
        "ngiven": given,
        "ngroupbody": model.nbody if model.ngroup else 0,
        "nnode": 2 * leaves if crowd else 0,
        "nnear": CROWD_PAIRS * crowd + model.ncand if crowd else 0,
        "nmanifold": MANIFOLD_LIMIT,
        **row_capacity(model),
        "nH": min(nv * (nv + 1) // 2, HESSIAN_LIMIT),
        **panel_capacity(model),
        "nsignature": min(max(-(-model.ncand // SIGNATURE_BITS), 1), SIGNATURE_WORDS),
        "npart": 2 * nv + 3,
        "want_frames": 1,
        "want_energy": 0,
        "want_all": 1,
    }


GRAPH_TREES = 8  # of a model whose Hessian is factored world by world


def panel_capacity(model) -> dict[str, int]:
    """Room for one world's factor in an order of its own: up to what is full."""
    ntree = model.ntree if model.ntree >= GRAPH_TREES else 0
    columns = sum(-(-int(n) // 8) * 8 for n in model.tree_dofnum) if ntree else 0
    return {
        "ngraph": ntree,
        "ngraphword": -(-ntree // WORD_BITS),
        "nfill": ntree * (ntree - 1) // 2,
        "npanel": min(model.nv * columns, HESSIAN_LIMIT),
        "npanelscale": int(model.tree_dofnum.max()) ** 2 if ntree else 0,
        "npanelcolumn": columns,
    }
