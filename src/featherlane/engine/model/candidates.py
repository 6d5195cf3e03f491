"""Finds the geom pairs that may collide: applies every state-independent filter once at load time.

A pair of geoms is a candidate if MuJoCo could ever test it in its narrow phase:

- the geoms' bodies are not welded to each other, and at least one of them can be moved by a force;
- the bodies are not parent and child (unless the `filterparent` flag is off; the world does not count as a parent);
- no `<exclude>` names the two bodies, and the geoms' contype and conaffinity let them touch;
- or an explicit `<pair>` names the geoms: it overrides all conditions but "at least one can be moved by a force",
  and its parameters replace those of the geoms.

Two flags are read at load time: `filterparent`, which affects the list of candidates, and `midphase`, which affects
only its order.  The flags `contact` and `constraint` have no effect here: the collision stage reads them in each
step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.engine.model.enums import HFIELD, Disable
from featherlane.engine.model.pair import function_tables

if TYPE_CHECKING:
    import mujoco


def candidates(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Returns the candidate pairs of a model, ordered as MuJoCo's contact list.

    Source: MuJoCo's documentation, "Collision detection"; the order was measured on its contact lists: ascending pairs
        of bodies (lower id first); within a pair of bodies explicit pairs first, then by geom ids.

    Returns:
        int32 arrays of length ncand:
        `cand_geom1`, `cand_geom2`: the geoms, lower geom type first, equal types ordered by body;
        `cand_pair`: the explicit pair that sets the parameters, -1: the geoms set them;
        `cand_npoint`: maximum number of contact points, 0 for a pair of types without a pair function;
        `cand_function`: pair function, a number of `model/pair.py`, or -1.
    """
    explicit = _explicit(mj)
    rows = [explicit, *_automatic(mj, explicit)]
    signature, late, key1, key2, geom1, geom2, pair = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((key2, key1, late, signature))
    geom1, geom2, pair = geom1[order], geom2[order], pair[order]

    function, npoint = function_tables()
    types = mj.geom_type[geom1], mj.geom_type[geom2]
    columns = {
        "cand_geom1": geom1,
        "cand_geom2": geom2,
        "cand_pair": pair,
        "cand_npoint": npoint[types],
        "cand_function": function[types],
    }
    return {name: np.ascontiguousarray(column, np.int32) for name, column in columns.items()}


def _collides(type1: np.ndarray, type2: np.ndarray) -> np.ndarray:
    """Returns whether MuJoCo has a collision function for two types, lower first: none for planes and height fields."""
    return (type1 > HFIELD) | (type2 > HFIELD)


def _by_type(mj: mujoco.MjModel, geom1: np.ndarray, geom2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the two geoms with the lower type first; equal types keep their order."""
    swap = mj.geom_type[geom1] > mj.geom_type[geom2]
    return np.where(swap, geom2, geom1), np.where(swap, geom1, geom2)


def _explicit(mj: mujoco.MjModel) -> tuple[np.ndarray, ...]:
    """Returns rows of the explicit pairs: signature, 0, sort keys, geoms, pair."""
    pair = np.arange(mj.npair)
    geom1, geom2 = _by_type(mj, mj.pair_geom1, mj.pair_geom2)
    movable = mj.body_dofnum[mj.body_weldid[mj.geom_bodyid]] > 0
    keep = (movable[geom1] | movable[geom2]) & _collides(mj.geom_type[geom1], mj.geom_type[geom2])
    pair, geom1, geom2 = pair[keep], geom1[keep], geom2[keep]
    signature = mj.pair_signature[pair].astype(np.uint32).astype(np.int64)
    zero = np.zeros_like(pair)
    return signature, zero, pair, zero, geom1, geom2, pair


def _automatic(mj: mujoco.MjModel, explicit: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    """Returns rows of all other pairs, one tuple per first body: signature, 1, sort keys, geoms, -1."""
    body = mj.geom_bodyid
    contype, conaffinity = mj.geom_contype, mj.geom_conaffinity
    midphase = not mj.opt.disableflags & Disable.MIDPHASE
    excluded = mj.exclude_signature.astype(np.uint32).astype(np.int64)
    named = _key(mj, explicit[4], explicit[5])
    rows = []
    for body1 in np.unique(body):
        partner = np.flatnonzero(_bodies_collide(mj, body1)[body])
        geom1, geom2 = (g.ravel() for g in np.meshgrid(np.flatnonzero(body == body1), partner, indexing="ij"))
        keep = ((contype[geom1] & conaffinity[geom2]) | (contype[geom2] & conaffinity[geom1])) != 0
        geom1, geom2 = geom1[keep], geom2[keep]
        signature = (int(body1) << 16) + body[geom2].astype(np.int64)
        first, second = _by_type(mj, geom1, geom2)
        keep = ~np.isin(signature, excluded) & ~np.isin(_key(mj, first, second), named)
        keep &= _collides(mj.geom_type[first], mj.geom_type[second])

        # the mid-phase sorts contacts by geom type; without it they are sorted by body
        key1, key2 = (first, second) if midphase else (geom1, geom2)
        one = np.ones_like(signature)
        rows.append(tuple(column[keep] for column in (signature, one, key1, key2, first, second, -one)))
    return rows


def _bodies_collide(mj: mujoco.MjModel, body1: int) -> np.ndarray:
    """Returns a mask over bodies after `body1`: whether they may collide with it."""
    weld = mj.body_weldid
    movable = mj.body_dofnum[weld] > 0
    mask = (np.arange(mj.nbody) > body1) & (weld != weld[body1]) & (movable | movable[body1])

    # weld groups that are parent and child
    if not mj.opt.disableflags & Disable.FILTERPARENT and weld[body1] != 0:
        weldparent = weld[mj.body_parentid[weld]]
        mask &= (weld == 0) | ((weld != weldparent[body1]) & (weldparent != weld[body1]))

    # MuJoCo also tests the union over a body's geoms as compiled, which an edit of geom_contype does not change
    contype, conaffinity = mj.body_contype, mj.body_conaffinity
    return mask & (((contype & conaffinity[body1]) | (conaffinity & contype[body1])) != 0)


def _key(mj: mujoco.MjModel, geom1: np.ndarray, geom2: np.ndarray) -> np.ndarray:
    """Returns a unique number per unordered pair of geoms."""
    return np.minimum(geom1, geom2).astype(np.int64) * mj.ngeom + np.maximum(geom1, geom2)
