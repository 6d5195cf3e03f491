"""Casts the rays of a pattern from a frame in the worlds of a batch: checks arguments and shapes results.

The record p of the kernels is SCAN below; `Scans` sets its sizes and addresses, the geoms to test (camera.candidate)
and ray.cutoff.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray import cast_packet
from featherlane.engine.collision.rays.ray_shape import FAR
from featherlane.engine.dynamics.body.com import com_pos
from featherlane.engine.dynamics.body.kinematics import kinematics, store_geom_frame, store_site_frame
from featherlane.engine.dynamics.body.object_motion import object_body, object_mat, object_pos
from featherlane.engine.lanes import Field, Layout
from featherlane.engine.lanes.record import address
from featherlane.engine.model.arguments import bounded, one_of
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.engine.sensor.camera import cameras
from featherlane.engine.sensor.scan import (
    BASE,
    WORLD,
    YAW,
    aligned_axes,
    cast_vertical,
    choose_near,
    store_half_extents,
)
from featherlane.engine.simulation.query.ground import PLACED, PLACES, divided
from featherlane.engine.simulation.query.objects import Object, object_of
from featherlane.engine.simulation.query.pattern import RayPattern, bundle_of
from featherlane.engine.simulation.query.pose import Poses
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.query.ray import check_geoms, hit_geoms
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.engine.simulation.world.recordings import result_array

ALIGNMENTS = {"base": BASE, "yaw": YAW, "world": WORLD}
BUNDLE = 10  # numbers of a bundle's bounds


class Scan(NamedTuple):
    """Holds what the rays of a pattern hit, in n worlds; None for what was not requested.

    Attributes:
        distance: (n, nray) [m]; -1 without a hit; NaN in a world with a pose that is not finite.
        geom: (n, nray) int32, the geom that is hit; -1: none.
        normal: (n, nray, 3) outward unit normal of its surface in world axes; zeros: none.
        point: (n, nray, 3) where the surface is hit, in world axes [m]; the ray's origin without a hit.
    """

    distance: np.ndarray | None
    geom: np.ndarray | None
    normal: np.ndarray | None
    point: np.ndarray | None


# ---- kernels ---------------------------------------------------------------------------------------------------------
SCAN = Layout(
    "Scan",
    (
        Field("scan_kind", "size", doc="kind of the frame's object, as mjtObj"),
        Field("scan_object", "size", doc="index of the object"),
        Field("alignment", "size", doc="0: axes of the frame, 1: its heading, 2: axes of the world"),
        Field("excluded", "size", doc="body that rays pass through, -1: none, -2: the frame's"),
        Field("vertical", "size", doc="1: all rays are parallel to the vertical"),
        Field("ngeom", "size", doc="geoms"),
        Field("nray", "size", doc="rays of a world"),
        Field("rays", "size", doc="address of origins and directions, packet by packet, in the frame"),
        Field("bundle", "size", doc="address of the bounds of all rays"),
        Field("ground", "size", doc="address of the cells of fixed geoms; 0: none"),
        Field("distances", "size", doc="address of the distances; 0: not requested"),
        Field("heights", "size", doc="address of the heights of the frame above the hits; 0: not requested"),
        Field("geoms", "size", doc="address of the geoms; 0: not requested"),
        Field("normals", "size", doc="address of the normals; 0: not requested"),
        Field("points", "size", doc="address of the points; 0: not requested"),
        Field("local", "real", (6,), "m, 1", "origin and direction of a ray in the frame", "scan_tiles", "scratch"),
        Field(
            "half_extents", "real", ("ngeom", 2), "m", "half extents of geoms along x and y", "scan_tiles", "scratch"
        ),
        Field("result", "real", (3,), "m, 1", "what is written", "scan_tiles", "scratch"),
    ),
)


@kernel
def write_results(d, p, target, first, n, x):
    """Writes the n items of the tuple x of each lane's ray to the memory at the address `target`, if it is not 0.

    first: (number of the ray in lane 0, number of all rays of the worlds before).   Scratch: p.result.
    """
    number, before = first
    if target != 0:
        out = scalars(d, target)
        for i in unrolled(range(n)):
            p.result[i] = x[i]
        for lane in range(min(width(d), p.nray - number)):
            for i in range(n):
                write_lane(out, n * (before + number + lane) + i, 0, read_lane(p.result, i, lane))


@over_tiles(p=SCAN)
def scan_tiles(m, d, b, p, thread, tile):
    """Computes the frames of the world in all lanes of a tile, then casts nstep packets of rays.

    Reads:  the rows that the transfers of b bring in; the sizes of p, camera.ncandidate, camera.candidate.
    Writes: the memory at the addresses of p; local, half_extents, result, active, recall_address, tree_settled,
            geom_xpos, geom_xmat, site_xpos, site_xmat, ray.*, line.*, shapes.*, and all else of this thread's
            workspace.
    """
    kinematics(m, d)
    if p.scan_kind == OBJ_GEOM:
        store_geom_frame(m, d, p.scan_object)
    elif p.scan_kind == OBJ_SITE:
        store_site_frame(m, d, p.scan_object, has_orientation=1)
    elif p.scan_kind == OBJ_CAMERA:
        com_pos(m, d)
        cameras(m, d)
    W = width(d)
    rays = scalars(d, p.rays)  # rows of W values: origin (3 rows) and direction (3 rows) of W rays
    kind, i = p.scan_kind, p.scan_object
    pos, R = object_pos(d, kind, i), aligned_axes(object_mat(m, d, kind, i), p.alignment)
    # the geoms within the bundle of rays; nonfinite: 0, or NaN if a pose is not finite
    n, nonfinite = choose_near(m, d, p, (pos, R), doubles(d, p.bundle), d.ray.seen)
    d.ray.ngeom[0] = n
    if p.vertical:
        store_half_extents(m, d, p)
    d.ray.exclude[0] = 1.0 * (object_body(m, kind, i) if p.excluded == -2 else p.excluded)  # -2: the body of the object
    # number of rays of the worlds before: position of the tile's first lane is nstep W times the number of these worlds
    before = p.nray * (b.call_position[tile * W] // (b.nstep * W))
    # height that a ray without a hit reports: the number behind the BUNDLE bounds
    miss = read_lane(doubles(d, p.bundle), BUNDLE, 0)
    for s in range(b.nstep):  # packets
        # origin and direction of each lane's ray, in the frame of the object
        for i in range(6):
            for lane in range(W):
                write_lane(p.local, i, lane, read_lane(rays, W * (6 * s + i) + lane, 0))
        origin, direction = pos + R @ Vec3(p.local[0:3]), R @ Vec3(p.local[3:6])
        d.ray.point[0] = origin
        d.ray.direction[0] = direction
        if p.vertical:
            cast_vertical(m, d, p)
        else:
            cast_packet(m, d)  # ray.distance, ray.geom, ray.normal
        hits = d.ray.geom[0] >= 0.0
        distance = d.ray.distance[0]
        first = (s * W, before)
        point = fma(where(hits, distance, 0.0), direction, origin)
        # + nonfinite: NaN if a pose is not finite
        write_results(d, p, p.distances, first, n=1, x=(distance + nonfinite,))
        write_results(d, p, p.heights, first, n=1, x=(where(hits, pos[2] - point[2], miss) + nonfinite,))
        write_results(d, p, p.geoms, first, n=1, x=(d.ray.geom[0],))
        write_results(d, p, p.normals, first, n=3, x=d.ray.normal[0])
        write_results(d, p, p.points, first, n=3, x=tuple(point[i] + nonfinite for i in range(3)))


# ---- arguments -------------------------------------------------------------------------------------------------------
def pattern_of(pattern: RayPattern | ArrayLike) -> RayPattern:
    """Returns a pattern; an array (nray, 3) holds directions of rays from the frame's origin."""
    return pattern if isinstance(pattern, RayPattern) else RayPattern(np.zeros(3), np.asarray(pattern))


FIELDS = {"distance": "distances", "geom": "geoms", "normal": "normals", "point": "points"}  # of SCAN, by output


def excluded_body(model: Model, bodyexclude) -> int:
    """Returns the body whose geoms are not tested; -1: none, -2: the frame's."""
    if bodyexclude == "parent":
        return -2
    if bodyexclude is None or (isinstance(bodyexclude, int) and bodyexclude == -1):
        return -1
    return index_of(model, "body", bodyexclude)


def scan_result(found: dict[str, np.ndarray]) -> Scan:
    """Returns results by field of SCAN in the form that users get."""
    parts = {name: found.get(field) for name, field in FIELDS.items()}
    if parts["geom"] is not None:
        parts["geom"] = parts["geom"].astype(np.int32)
    return Scan(**parts)


class ScanRequest(NamedTuple):
    """Holds the arguments of `Batch.scan` and `Batch.height_scan`, and the requested fields of SCAN."""

    body: Object
    pattern: RayPattern
    alignment: str
    geomgroup: ArrayLike | None
    bodyexclude: int | str | None
    cutoff: float
    miss: float | None  # height of a ray without a hit; None for the cutoff
    fields: tuple[str, ...]


class Scans(Query):
    """Holds a pattern as kernels take it, checked, and the memory of its results.

    The answer has the results in the order of the request's fields.

    Args:
        batch: the worlds.
        request: the checked pattern, and unchecked arguments.
        chosen: (n,) numbers of the worlds.
        heights: array for the heights; None to allocate it.

    Attributes:
        results: by field of SCAN, (n, nray, ...).
    """

    loop, fills_lanes = scan_tiles, True

    def __init__(self, batch: Any, request: ScanRequest, chosen: np.ndarray, heights: np.ndarray | None):
        model, rays, lanes = batch.model, request.pattern, batch.width
        kind, index = object_of(model, request.body, "body")
        check_geoms(model, request.geomgroup, True)
        poses = lambda: batch.query(Poses(model, 1, batch.dtype, PLACES), chosen[:1])  # noqa: E731
        placed = len(chosen) and PLACED.isdisjoint(batch.expanded_fields)
        tested, self.cells = divided(model, hit_geoms(model, request.geomgroup, True), poses if placed else None)
        excluded, largest = excluded_body(model, request.bodyexclude), bounded("cutoff", request.cutoff, 0.0, math.inf)
        self.shared = {"camera.candidate": tested, "camera.ncandidate": len(tested)}
        self.shared |= {"ray.cutoff": min(largest, FAR)}
        n, packets = len(rays), -(-len(rays) // lanes)
        self.number = packets * lanes
        both = np.column_stack([rays.origin, rays.direction])
        both = np.concatenate([both, np.repeat(both[-1:], self.number - n, axis=0)])
        self.rays = np.ascontiguousarray(both.reshape(packets, lanes, 6).transpose(0, 2, 1), batch.dtype)
        miss = largest if request.miss is None else float(request.miss)
        self.bundle = np.array([*bundle_of(rays.origin, rays.direction), miss])
        self.results: dict[str, np.ndarray] = {}
        for name in request.fields:
            shape = (len(chosen), n, 3) if name in ("normals", "points") else (len(chosen), n)
            self.results[name] = result_array("out", heights if name == "heights" else None, shape, batch.dtype)
        self.sizes = {
            "scan_kind": kind,
            "scan_object": index,
            "alignment": ALIGNMENTS[one_of("alignment", request.alignment, ALIGNMENTS)],
            "excluded": excluded,
            "vertical": int(request.alignment != "base" and not rays.direction[:, :2].any()),
            "nray": n,
            "rays": address(self.rays),
            "bundle": address(self.bundle),
            "ground": address(self.cells) if self.cells.size else 0,
        }
        self.sizes |= {name: 0 for name in ("distances", "heights", "geoms", "normals", "points")}
        self.sizes |= {name: address(a) for name, a in self.results.items()}

    def answer(self) -> list[np.ndarray]:
        return list(self.results.values())


def scan_of(
    batch: Any, request: ScanRequest, chosen: np.ndarray, heights: np.ndarray | None = None
) -> list[np.ndarray]:
    """Returns the results of a scan of worlds of a `Batch`, in the order of its fields; arguments are those of `Scans`.

    Raises:
        ModelError, UnknownNameError, UnsupportedFeatureError: as `Batch.scan` does.
    """
    return batch.query(Scans(batch, request, chosen, heights), chosen)
