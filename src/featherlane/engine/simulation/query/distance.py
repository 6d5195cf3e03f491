"""Computes distances of geoms in one world, and in the worlds of a batch: checks arguments and shapes results."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.collision.distance import geom_distance as _geom_distance
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.model.arguments import bounded
from featherlane.engine.model.enums import HFIELD, MESH, PLANE, SDF
from featherlane.engine.model.model import Model
from featherlane.engine.model.signed_distance import NO_FIELD
from featherlane.engine.simulation.query.objects import geom_numbers
from featherlane.engine.simulation.query.present import present
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.errors import ModelError


class Distances(NamedTuple):
    """Holds signed distances of geoms.

    Attributes:
        distance: (...) [m], negative if they overlap; distmax if they are farther apart.
        fromto: (..., 6) [m] in world axes: the nearest point of geom1, then that of geom2; zeros beyond distmax.
    """

    distance: np.ndarray
    fromto: np.ndarray


@over_tiles
def distance_tiles(m, d, b, thread, tile):
    """Computes the frames of the worlds of a tile, then nstep pairs of geoms of each world.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    kinematics(m, d)
    frames(m, d)
    for s in range(b.nstep):  # pairs
        copy_step_inputs(b, thread, tile, s)  # distance.geom
        _geom_distance(m, d)  # distance.dist, distance.fromto
        write_records(b, thread, tile, s)


# ---- arguments ----------------------------------------------------------------------------------------------
class Pairs(Query):
    """Holds pairs of geoms as kernels take them, checked, and the rows of their results.

    Args:
        model: the model.
        nworld: worlds, None for one world and pairs of any shape.
        dtype: float64 or float32.
        geom1, geom2, distmax: as for `geom_distance`.

    Attributes:
        geom: (..., 2) of each pair.
        distance, fromto: of each pair.
        number: pairs of each world.
    """

    loop = distance_tiles

    def __init__(self, model: Model, nworld, dtype, geom1, geom2, distmax):
        first, second = geom_numbers(model, "geom1", geom1), geom_numbers(model, "geom2", geom2)
        try:
            shape = np.broadcast_shapes(first.shape, second.shape)
            self.single = nworld is not None and not shape
            if nworld is not None:
                shape = np.broadcast_shapes(shape, (nworld, shape[-1] if shape else 1))
        except ValueError:
            raise ModelError(
                f"geom1, geom2: got shapes {first.shape}, {second.shape}, which do not broadcast"
            ) from None
        if nworld is not None and len(shape) > 2:
            raise ModelError(f"geom1, geom2: got shape {shape}, allowed is what broadcasts to (n, npair)")
        self.shared = {"distance.limit": bounded("distmax", distmax, 0.0, math.inf)}
        self.geom = np.empty((*shape, 2), dtype)
        self.geom[..., 0], self.geom[..., 1] = first, second
        self._check_types(model)
        self.number = int(np.prod(shape if nworld is None else shape[1:]))
        self.distance, self.fromto = np.empty(shape, dtype), np.empty((*shape, 6), dtype)
        if nworld is not None:
            self.brought = {"distance.geom": self.geom}
            self.taken = {"distance.dist": self.distance[..., None], "distance.fromto": self.fromto}

    def _check_types(self, model):
        pairs = self.geom.reshape(-1, 2).astype(int)
        kinds = np.sort(model.geom_type[pairs], axis=-1)
        on_fields = (kinds[:, 1] == SDF) & (kinds[:, 0] != PLANE)
        bad = (kinds[:, 1] <= HFIELD) | (on_fields & (model.geom_field[pairs] == NO_FIELD).any(axis=1))
        if bad.any():
            g, h = pairs[np.flatnonzero(bad)[0]]
            raise ModelError(
                f"geom1, geom2: the distance of geoms {g} and {h} is not supported; allowed are pairs with a convex "
                f"geom, and SDF geoms with a geom that has a signed distance field or with a plane"
            )
        # a plane touches the hull of a mesh
        used = pairs[~on_fields][np.isin(model.geom_type[pairs[~on_fields]], (MESH, SDF))]
        bare = used[model.hull_vertnum[model.geom_dataid[used]] == 0]
        if bare.size:
            raise ModelError(f"geom {bare[0]}: its mesh has no convex hull, because the geom cannot collide")

    def answer(self) -> Distances:
        return Distances(self.shaped(self.distance), self.shaped(self.fromto))


# ---- public -------------------------------------------------------------------------------------------------
def geom_distance(model: Model, data: Data, geom1: ArrayLike, geom2: ArrayLike, distmax: float = np.inf) -> Distances:
    """Computes signed distances of pairs of geoms, and their nearest points.

    The depth of two overlapping convex shapes is the length of the shortest translation that separates them; `fromto`
    then starts at the deepest point of geom1 and has the opposite direction.  Meshes are represented by their hulls.
    The depth of an SDF geom is that of its deepest contact; its distance from other fields is a minimum over searches
    from `sdf_initpoints` starting points.

    Args:
        model: the model.
        data: the world, in its present state.
        geom1, geom2: geoms by name or number, one or arrays that broadcast.
        distmax: the largest distance to search for [m].

    Returns:
        `Distances`: distance (...) [m] and fromto (..., 6) [m]; distmax and zeros for a pair that is farther apart.

    Raises:
        ModelError: invalid shapes, a number out of range, a pair of planes or height fields, an SDF geom with a height
            field or with a mesh without an octree.
        UnknownNameError: an unknown geom.

    Source: MuJoCo mj_geomDistance.  Deviation: all prisms of a height field within distmax are tested, while MuJoCo
        stops at the first 50; two planes or height fields are an error, while MuJoCo returns distmax; a mesh without
        collisions is an error, because it has no hull here; SDF geoms have distances, while MuJoCo returns distmax
        unless they overlap.
    """
    world = ready(model, data)
    pairs = Pairs(model, None, np.float64, geom1, geom2, distmax)
    present(world, lambda workspace: _measure(workspace, pairs))
    return pairs.answer()


def _measure(workspace: Workspace, pairs: Pairs) -> None:
    distance, fromto = pairs.distance.reshape(-1), pairs.fromto.reshape(-1, 6)
    pairs.enter(workspace)
    run, arrays = workspace.bound(_geom_distance), workspace.arrays
    for k, pair in enumerate(pairs.geom.reshape(-1, 2)):
        arrays["distance.geom"][:, 0] = pair
        run()
        distance[k], fromto[k] = arrays["distance.dist"][0, 0], arrays["distance.fromto"][:, 0]
