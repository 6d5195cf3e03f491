"""Casts rays in one world, and in the worlds of a batch: checks arguments and shapes results."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray import cast
from featherlane.engine.collision.rays.ray_shape import FAR
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.lanes import processor
from featherlane.engine.lanes.record import address
from featherlane.engine.lanes.worlds import read3, write3
from featherlane.engine.model.assignment import flag, real_number, reals, regular
from featherlane.engine.model.model import Model
from featherlane.engine.model.ordered_sums import products_of_rows
from featherlane.engine.model.signed_distance import NO_FIELD
from featherlane.engine.simulation.query.objects import geom_numbers
from featherlane.engine.simulation.query.present import present
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.errors import ModelError

MANY = 4  # number of full tiles of one world's rays from which rays are processed W at a time


class Hits(NamedTuple):
    """Holds the first intersections of rays with surfaces.

    Attributes:
        distance: (...) in lengths of the ray's direction, [m] for a unit vector; -1 without a hit.
        geom: (...) int32, the geom that is hit; -1 without a hit.
        normal: (..., 3) outward unit normal of its surface in world axes; zero without a hit.
    """

    distance: np.ndarray
    geom: np.ndarray
    normal: np.ndarray


# ---- kernels -------------------------------------------------------------------------------------------
@stage
def cast_many(m, d, rays, hits, count):
    """Casts `count` rays of one world, W at a time.

    `rays` is the address of `count` points, then directions, then excluded bodies; `hits` that of `count` distances,
    then geoms, then normals.  Every lane of the tile holds that world's frames.
    Reads:  geom_xpos, geom_xmat.
    Writes: what lies at `hits`; ray.*.
    """
    # memory of one lane, so its lane is 0 below
    ray, hit, W = scalars(d, rays), scalars(d, hits), width(d)
    for first in range(0, count, W):
        for lane in range(W):
            k = first + lane if first + lane < count else count - 1  # idle lanes repeat the last ray
            write_lane(d.ray.point, 0, lane, read3(ray, 3 * k, 0))
            write_lane(d.ray.direction, 0, lane, read3(ray, 3 * (count + k), 0))
            write_lane(d.ray.exclude, 0, lane, read_lane(ray, 6 * count + k, 0))
        cast(m, d)
        for lane in range(W):
            k = first + lane
            if k < count:
                write_lane(hit, k, 0, read_lane(d.ray.distance, 0, lane))
                write_lane(hit, count + k, 0, read_lane(d.ray.geom, 0, lane))
                write3(hit, 2 * count + 3 * k, 0, read_lane(d.ray.normal, 0, lane))


@over_tiles
def cast_tiles(m, d, b, thread, tile):
    """Computes the frames of the worlds of a tile, then nstep rays of each world.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    kinematics(m, d)
    frames(m, d)
    for s in range(b.nstep):  # rays
        copy_step_inputs(b, thread, tile, s)  # ray.point, ray.direction, ray.exclude
        cast(m, d)  # ray.distance, ray.geom, ray.normal
        write_records(b, thread, tile, s)


# ---- arguments ----------------------------------------------------------------------------------------------
def _group_mask(geomgroup) -> np.ndarray:
    """Returns which groups of geoms are tested, (6,) bool."""
    if geomgroup is None:
        return np.ones(NGROUP, bool)
    mask = regular("geomgroup", geomgroup)
    if mask.shape != (NGROUP,) or mask.dtype.kind not in "biu":
        raise ModelError(f"geomgroup: got {mask.dtype} {mask.shape}, allowed are {NGROUP} flags or None")
    return mask != 0


def hit_geoms(model: Model, geomgroup, flg_static: bool, chosen=None) -> np.ndarray:
    """Returns the geoms to test: visible, selected by group and number, and moving unless `flg_static` is set."""
    model.check_edits()  # visibility follows edits of the colours
    geoms = model.geom_visible & _group_mask(geomgroup)[np.clip(model.geom_group, 0, NGROUP - 1)]
    if not flag("flg_static", flg_static):
        geoms &= model.body_weldid[model.geom_bodyid] != 0
    if chosen is not None:
        geoms &= np.isin(np.arange(model.ngeom), geom_numbers(model, "geoms", chosen))
    return np.flatnonzero(geoms)


def check_geoms(model: Model, geomgroup, flg_static: bool, chosen=None) -> None:
    """Raises an error if the geoms to test include a signed distance field of an unsupported plugin.

    Raises:
        UnsupportedFeatureError: with the names of these geoms.
    """
    geoms = hit_geoms(model, geomgroup, flg_static, chosen)
    fields = geoms[model.geom_type[geoms] == SDF]
    if (model.geom_field[fields] == NO_FIELD).any():
        from featherlane.engine.model.features import refuse_rays  # imports mujoco

        refuse_rays(model, fields)


def _excluded(model: Model, bodyexclude, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the body that each ray passes through, -1 for none."""
    if isinstance(bodyexclude, str):
        bodyexclude = model.body(bodyexclude).id
    if isinstance(bodyexclude, int) and -1 <= bodyexclude < model.nbody:
        return np.full(shape, bodyexclude)
    body = regular("bodyexclude", -1 if bodyexclude is None else bodyexclude)
    if body.dtype.kind not in "iu" or ((body < -1) | (body >= model.nbody)).any():
        raise ModelError(f"bodyexclude: got {bodyexclude!r}, allowed are -1 to {model.nbody - 1} and names")
    try:
        return np.broadcast_to(body, shape)
    except ValueError:
        raise ModelError(f"bodyexclude: got shape {body.shape}, allowed is what broadcasts to {shape}") from None


def _vectors(name: str, value) -> np.ndarray:
    """Returns finite vectors (..., 3), checked."""
    vectors = reals(name, value, "are numbers (..., 3)")
    if vectors.shape[-1:] != (3,):
        raise ModelError(f"{name}: got shape {vectors.shape}, allowed is (..., 3)")
    if not np.isfinite(vectors).all():
        raise ModelError(f"{name}: got a non-finite number")
    return vectors


def check_lengths(length: np.ndarray) -> None:
    """Raises an error if a direction's length is about zero, or if its square overflows."""
    wrong = length[~((length >= MINVAL) & (length < np.inf))]
    if wrong.size:
        raise ModelError(f"direction: got a vector of length {wrong[0]:g}, allowed are lengths from 1e-15 to 1e154")


def _rays(point, direction) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, ...]]:
    """Returns points, unit directions, the directions' lengths, and the shape of the rays' results."""
    point, direction = _vectors("point", point), _vectors("direction", direction)
    with np.errstate(over="ignore"):
        length = np.sqrt(products_of_rows(direction, direction))
    check_lengths(length)
    try:
        shape = np.broadcast_shapes(point.shape, direction.shape)[:-1]
    except ValueError:
        raise ModelError(
            f"point, direction: got shapes {point.shape}, {direction.shape}, which do not broadcast"
        ) from None
    return point, direction / length[..., None], length, shape


def _cutoff(cutoff) -> float:
    value = real_number("cutoff", cutoff, "is a number >= 0")
    if value < 0:
        raise ModelError(f"cutoff: got {cutoff!r}, allowed is a number >= 0")
    return min(value, FAR)


class Rays(Query):
    """Holds rays as kernels take them: rows of reals, checked, and the rows of their results.

    Args:
        model: the model.
        nworld: worlds with separate rays, None for one world and rays of any shape.
        dtype: float64 or float32.
        point, direction, geomgroup, flg_static, bodyexclude, cutoff, geoms: as for `ray`.

    Attributes:
        number: rays of each world.
        given: points, directions and excluded bodies of the rays, one behind the other.
        distance, geom, normal: of each hit, contiguous in memory.
    """

    loop = cast_tiles

    def __init__(self, model, nworld, dtype, point, direction, geomgroup, flg_static, bodyexclude, cutoff, geoms=None):
        point, direction, length, shape = _rays(point, direction)
        self.single = nworld is not None and not shape
        if nworld is not None:
            if shape[:-1] not in ((), (1,), (nworld,)):
                raise ModelError(
                    f"point, direction: got rays of shape {shape} for {nworld} worlds, allowed is (n, nray)"
                )
            shape = nworld, shape[-1] if shape else 1
        self.number = shape[-1] if nworld is not None else prod(shape)
        seen, self.length, n, rows = hit_geoms(model, geomgroup, flg_static, geoms), length, prod(shape), (*shape, 3)
        self.shared = {"ray.seen": seen, "ray.ngeom": len(seen), "ray.cutoff": _cutoff(cutoff)}
        self.given, found = np.empty(7 * n, dtype), np.empty(5 * n, dtype)
        starts, along = self.given[: 3 * n].reshape(rows), self.given[3 * n : 6 * n].reshape(rows)
        exclude, self.distance = self.given[6 * n :].reshape(shape), found[:n].reshape(shape)
        self.geom, self.normal = found[n : 2 * n].reshape(shape), found[2 * n :].reshape(rows)
        starts[...], along[...] = point, direction
        exclude[...] = _excluded(model, bodyexclude, shape)
        if nworld is not None:
            self.brought = {"ray.point": starts, "ray.direction": along, "ray.exclude": exclude[..., None]}
            self.taken = {"ray.distance": self.distance[..., None], "ray.geom": self.geom[..., None]}
            self.taken["ray.normal"] = self.normal

    def answer(self) -> Hits:
        distance = np.where(self.geom < 0, -1.0, self.distance / self.length).astype(self.distance.dtype)
        return Hits(self.shaped(distance), self.shaped(self.geom.astype(np.int32)), self.shaped(self.normal))


def _tile(data: Data, source: Workspace, nray: int) -> Workspace:
    """Returns the source, or, for many rays, a wider tile with the same frames in each lane: 3 times as fast."""
    width = processor.tile_width(np.float64)
    if nray < MANY * width:
        return source
    wide = data.__dict__.get("_wide")
    if wide is None or wide.model is not data.model:
        wide = data.__dict__["_wide"] = Workspace(data.model, width)
    wide.rows.refresh()
    for name in ("geom_xpos", "geom_xmat"):
        wide.arrays[name][...] = source.arrays[name]
    return wide


# ---- public -------------------------------------------------------------------------------------------------
def ray(
    model: Model,
    data: Data,
    point: ArrayLike,
    direction: ArrayLike,
    geomgroup: ArrayLike | None = None,
    flg_static: bool = True,
    bodyexclude: ArrayLike | str | None = -1,
    cutoff: float = np.inf,
    geoms: ArrayLike | None = None,
) -> Hits:
    """Computes the first intersections of rays with surfaces of geoms.

    Args:
        model: the model.
        data: the world, in its present state.
        point: start of the rays, (3,) or (..., 3) in world axes [m].
        direction: direction of the rays, (3,) or (..., 3), of any length.
        geomgroup: six flags that select the groups of geoms to test; None for all.
        flg_static: whether geoms that are welded to the world are tested.
        bodyexclude: a body whose geoms are not tested, by name or number, or one number for each ray; -1 for none.
        cutoff: surfaces at this distance or farther are ignored [m].
        geoms: the geoms to test among those that `geomgroup` and `flg_static` select, by name or number; None for all.

    Returns:
        `Hits`: distance (...) in lengths of the direction, geom (...), outward normal (..., 3); -1, -1 and zeros for
        a ray without a hit.  For one ray distance and geom are numbers.

    Raises:
        ModelError: invalid shapes, a direction without length, a number that is not finite, or out of range.
        UnknownNameError: an unknown body or geom.
        UnsupportedFeatureError: a signed distance field of an unsupported plugin is among the tested geoms.

    Source: MuJoCo mj_ray, mj_multiRay: planes are hit from above, all other geoms from inside, too; a geom is ignored
        if its alpha or its material's is 0; for a mesh, the triangles are tested, not the hull.  Deviation: `cutoff`
        applies to surfaces, while mj_multiRay drops geoms whose bounding sphere is farther, planes by their centre.
    """
    world = ready(model, data)
    check_geoms(model, geomgroup, flg_static, geoms)
    rays = Rays(model, None, np.float64, point, direction, geomgroup, flg_static, bodyexclude, cutoff, geoms)
    if rays.number:
        present(world, lambda workspace: _cast(world, workspace, rays))
    return rays.answer()


def _cast(data: Data, workspace: Workspace, rays: Rays) -> None:
    workspace = _tile(data, workspace, rays.number)
    rays.enter(workspace)
    workspace.bound(cast_many)(address(rays.given), address(rays.distance), rays.number)
