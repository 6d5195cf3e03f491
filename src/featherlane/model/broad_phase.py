"""What the broad phase needs of a model: a crowd for a tree, or groups of candidates for the boxes of bodies.

Up to CROWD_PAIRS pairs are listed when a model is loaded, and each is tested in each step, all worlds at once.  Where
there are more, the bounded geoms are a *crowd*: their pairs are not listed but found by a tree, world by world; only
pairs with an unbounded geom (a plane) and explicit pairs stay candidates.
Measured (spheres): a listed pair costs 3 ns in one world and 10 ns in eight at once; a geom of a crowd 0.1 us a world,
more where neighbours overlap (the 121 geoms of a dog 0.3 us each, and their 6300 pairs, listed, 3 us in all).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.model.enums import Disable
from featherlane.model.pair import function_tables

if TYPE_CHECKING:
    import mujoco

CROWD_PAIRS = 12_000  # listed pairs of bounded geoms; more make a crowd
# candidates of two bodies, on average, from which on the bodies' boxes are tested first; measured on four bodies of n
# spheres: even at 4 candidates (n = 2), 1.9 times as fast at 16 and 36, 4 times at 100, 12 times at 400
GROUP_SIZE = 4


def broad_phase(mj: mujoco.MjModel, cand: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The candidates without those of a crowd, and what describes crowd and groups.

    Args:
        mj: a compiled model.
        cand: all its `candidates`.

    Returns:
        Integer fields (`cand_*` included) and sizes by name.
    """
    bounded = mj.geom_rbound > 0
    listed = ~(bounded[cand["cand_geom1"]] & bounded[cand["cand_geom2"]]) | (cand["cand_pair"] >= 0)
    crowd = np.zeros(0, int)
    if np.count_nonzero(~listed) > CROWD_PAIRS:
        crowd = np.unique(np.concatenate([cand["cand_geom1"][~listed], cand["cand_geom2"][~listed]]))
        cand = {name: column[listed] for name, column in cand.items()}
    colliding = np.unique(np.concatenate([cand["cand_geom1"], cand["cand_geom2"], crowd]))
    excluded = mj.exclude_signature.astype(np.uint32).astype(np.int64)
    ints = {
        **cand,
        "collide_geom": colliding,
        "pair_function": function_tables()[0],
        "crowd_geom": crowd,
        "excluded_body": _sorted_pairs(np.stack([excluded >> 16, excluded & 0xFFFF], axis=1)),
        "named_geom": _sorted_pairs(np.stack([mj.pair_geom1, mj.pair_geom2], axis=1)),
        **_groups(mj, cand, bounded),
    }
    sizes = {
        "ncrowd": len(crowd),
        "ngroup": len(ints["group_first"]),
        "nexcluded": len(ints["excluded_body"]),
        "nnamed": len(ints["named_geom"]),
        "filter_parent": int(not mj.opt.disableflags & Disable.FILTERPARENT),
        "sorted_by_type": int(not mj.opt.disableflags & Disable.MIDPHASE),
    }
    return {name: np.ascontiguousarray(column, np.int32) for name, column in ints.items()}, sizes


def _sorted_pairs(pairs: np.ndarray) -> np.ndarray:
    """Rows (a, b) with a < b, each once, in ascending order."""
    return np.unique(np.sort(pairs, axis=1), axis=0).reshape(-1, 2)


def _groups(mj, cand, bounded) -> dict[str, np.ndarray]:
    """Candidates of the same two bodies; none where there are so few of them that their boxes do not pay."""
    bodies = np.sort(np.stack([mj.geom_bodyid[cand["cand_geom1"]], mj.geom_bodyid[cand["cand_geom2"]]], axis=1), axis=1)
    first = np.flatnonzero(np.any(np.diff(bodies, axis=0, prepend=-1), axis=1))
    if len(bodies) < GROUP_SIZE * len(first):
        first = first[:0]
    boxed = bounded[cand["cand_geom1"]] & bounded[cand["cand_geom2"]] & (cand["cand_pair"] < 0)
    return {
        "group_body": bodies[first],
        "group_first": first,
        "group_boxed": np.logical_and.reduceat(boxed, first) if len(first) else first,
    }
