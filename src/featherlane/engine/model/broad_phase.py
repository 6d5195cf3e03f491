"""Prepares the broad phase of a model: a *crowd* for a tree, or groups of candidates for body bounding boxes.

Up to CROWD_PAIRS pairs are listed at load time, and each is tested in each step, for all worlds at once.  With more
pairs, the bounded geoms are a *crowd*: a tree finds their pairs, world by world.  Then only pairs with an unbounded
geom (a plane) and explicit pairs stay candidates.
Measured (spheres): a listed pair costs 3 ns in one world and 10 ns in eight at once; a geom of a crowd 0.1 us a world,
more if neighbours overlap (the 121 geoms of a dog 0.3 us each; their 6300 pairs, listed, 3 us in total).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import NGEOMTYPES, Disable
from featherlane.engine.model.pair import function_tables

if TYPE_CHECKING:
    import mujoco

CROWD_PAIRS = 12_000  # maximum number of listed pairs of bounded geoms; more pairs make a crowd
# mean number of candidates per pair of bodies from which the bodies' boxes are tested first; measured on four bodies of
# n spheres: equally fast at 4 candidates (n = 2), 1.9 times as fast at 16 and 36, 4 times at 100, 12 times at 400
GROUP_SIZE = 4
_field = Declare()


@derived(
    size("ncand", "number of candidate geom pairs: those that may collide in some state"),
    size("ncollide", "number of geoms in candidate pairs"),
    size("ncrowd", "number of geoms with too many pairs to list; a bounding volume tree finds their pairs"),
    size("ngroup", "number of body pairs among the candidates, 0: bounding boxes of bodies are not tested"),
    size("nexcluded", "number of excluded body pairs"),
    size("nnamed", "number of geom pairs with an explicit pair"),
    size("filter_parent", "1: contacts of parent and child are filtered (fixed when the model is loaded)"),
    size("sorted_by_type", "1: contacts of two bodies are ordered by geom type"),
    _field.int("cand_geom1", "ncand", "1", "first geom of a candidate pair, with the lower type"),
    _field.int("cand_geom2", "ncand", "1", "second geom of a candidate pair"),
    _field.int("cand_pair", "ncand", "1", "explicit pair with the parameters, -1: mixed from the geoms"),
    _field.int("cand_npoint", "ncand", "1", "largest number of contacts of the pair"),
    _field.int("collide_geom", "ncollide", "1", "geoms that may collide, ascending"),
    _field.int("pair_function", f"{NGEOMTYPES} {NGEOMTYPES}", "1", "pair function of two types, lower first, -1: none"),
    _field.int("crowd_geom", "ncrowd", "1", "geoms whose pairs the bounding volume tree finds, ascending"),
    _field.int("excluded_body", "nexcluded 2", "1", "excluded pairs of bodies, lower id first, sorted"),
    _field.int("named_geom", "nnamed 2", "1", "geoms of explicit pairs, lower id first, sorted"),
    _field.int("group_body", "ngroup 2", "1", "the two bodies of a group of candidates"),
    _field.int("group_first", "ngroup", "1", "first candidate of a group of candidates"),
    _field.int("group_boxed", "ngroup", "1", "1: all geoms of the group have a bounding box"),
)
def broad_phase(mj: mujoco.MjModel, pairs: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns the candidates without those of a crowd, and the fields of crowd and groups."""
    bounded = mj.geom_rbound > 0
    listed = ~(bounded[pairs["cand_geom1"]] & bounded[pairs["cand_geom2"]]) | (pairs["cand_pair"] >= 0)
    colliding, crowd, cand = np.union1d(pairs["cand_geom1"], pairs["cand_geom2"]), np.zeros(0, int), pairs
    if np.count_nonzero(~listed) > CROWD_PAIRS:
        crowd = np.union1d(pairs["cand_geom1"][~listed], pairs["cand_geom2"][~listed])
        cand = {name: column[listed] for name, column in pairs.items()}
    excluded = mj.exclude_signature.astype(np.uint32).astype(np.int64)
    return cand | {
        "collide_geom": colliding,
        "pair_function": function_tables()[0],
        "crowd_geom": crowd,
        "excluded_body": _sorted_pairs(np.stack([excluded >> 16, excluded & 0xFFFF], axis=1)),
        "named_geom": _sorted_pairs(np.stack([mj.pair_geom1, mj.pair_geom2], axis=1)),
        "filter_parent": not mj.opt.disableflags & Disable.FILTERPARENT,
        "sorted_by_type": not mj.opt.disableflags & Disable.MIDPHASE,
        **_groups(mj, cand, bounded),
    }


def _sorted_pairs(pairs: np.ndarray) -> np.ndarray:
    """Returns unique rows (a, b) with a < b in ascending order."""
    return np.unique(np.sort(pairs, axis=1), axis=0).reshape(-1, 2)


def _groups(mj, cand, bounded) -> dict[str, np.ndarray]:
    """Groups candidates by pair of bodies; returns no groups if there are too few candidates for box tests to pay."""
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
