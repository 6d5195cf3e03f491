"""Casts the rays of a camera's pixels in the worlds of a batch: checks arguments and shapes images.

The record p of the kernel is CAMERA below; `CameraImages` sets its sizes and camera.clip (near, far), the geoms to test
(camera.candidate) and ray.cutoff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.prelude import *
from featherlane.engine.collision.rays.ray import cast_packet
from featherlane.engine.collision.rays.ray_shape import FAR
from featherlane.engine.dynamics.body.com import com_pos
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.lanes import Field, Layout
from featherlane.engine.model.arguments import bounded, one_of, several_of, whole_argument
from featherlane.engine.model.assignment import broadcast_reals, real_number
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.engine.sensor.camera import cameras, image_ray, place_camera
from featherlane.engine.sensor.image import choose_geoms
from featherlane.engine.sensor.shading import shade, store_light_frames
from featherlane.engine.simulation.query.depth_noise import DepthNoise
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.query.ray import hit_geoms
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import over_tiles
from featherlane.errors import ModelError

OUTPUTS = {  # name: field, type of a pixel, shape of a pixel
    "depth": ("depth", np.float32, ()),
    "segmentation": ("ray.geom", np.int32, ()),
    "normal": ("ray.normal", np.float32, (3,)),
    "rgb": ("rgb", np.uint8, (3,)),
}
VISIBLE = (1, 1, 1, 0, 0, 0)  # groups of geoms that MuJoCo's visualizer shows by default
ATTRIBUTES = ("lookat", "distance", "azimuth", "elevation", "fovy", "trackbodyid")  # attributes of a free camera
BLOCK = 4  # packets of pixels side by side, and rows of them, for which the geoms near their rays are listed


class Images(NamedTuple):
    """Holds images of a camera, of n worlds; None for those that were not requested.

    Attributes:
        depth: (n, height, width) [m] along the optical axis; the far plane where nothing is seen; NaN in a world with
            a pose that is not finite.
        segmentation: (n, height, width) int32, the geom that is seen; -1: none.
        normal: (n, height, width, 3) outward unit normal of the surface in world axes; zeros: none.
        rgb: (n, height, width, 3) uint8, the colour; black in a world with a pose that is not finite.
    """

    depth: np.ndarray | None
    segmentation: np.ndarray | None
    normal: np.ndarray | None
    rgb: np.ndarray | None


@dataclass(frozen=True)
class Camera:
    """Describes images of one of the model's cameras, for `Batch.render` and for `record` of rollouts.

    Args:
        camera: name or number; or a free camera, which is not in the model, as a dict of `lookat` (3,) [m], `distance`
            [m], `azimuth`, `elevation`, `fovy` [degree] and `trackbodyid`, a body by name or number, at whose subtree's
            centre of mass it looks in place of `lookat`; what is not given is as in MuJoCo's free camera.
        width, height: size of the images [pixels].
        output: names of the images: `depth`, `segmentation`, `normal`, `rgb`.
        geomgroup, near, far: as for `Batch.render`.
        noise: noise of depth images; None: none.
        geom_rgb: red, green and blue of geoms from 0 to 1 that replace those of `geom_rgba` and of materials,
            (ngeom, 3), or (nworld, ngeom, 3) for each world of the batch; None: those of each world
            (`batch.expand("geom_rgba")`).

    Raises:
        ModelError: an unknown output or a size that is not positive.
    """

    camera: int | str | Mapping[str, Any]
    _: KW_ONLY
    width: int
    height: int
    output: str | Sequence[str] = ("depth",)
    geomgroup: ArrayLike | None = VISIBLE
    near: float | None = None
    far: float | None = None
    noise: DepthNoise | None = None
    geom_rgb: ArrayLike | None = None

    def __post_init__(self):
        several_of("output", self.output, OUTPUTS)
        for name in self.camera if isinstance(self.camera, Mapping) else ():
            one_of("camera", name, ATTRIBUTES)
        whole_argument("height", self.height, 1)
        whole_argument("width", self.width, 1)
        if not (self.noise is None or isinstance(self.noise, DepthNoise)):
            raise ModelError(f"noise: got {type(self.noise).__name__}, allowed are DepthNoise and None")

    @property
    def label(self) -> str:
        """Returns the camera's name or number as text; "free" for a free camera."""
        return "free" if isinstance(self.camera, Mapping) else str(self.camera)

    @property
    def size(self) -> tuple[int, int]:
        """Returns height and width [pixels]."""
        return int(self.height), int(self.width)

    def of_worlds(self, nworld: int, first: int, last: int) -> Camera:
        """Returns the camera of the worlds from `first` to before `last` of nworld: their seeds and colours."""
        noise, colours = self.noise, self.geom_rgb
        if noise is not None:
            noise = replace(noise, seed=noise.seeds(nworld)[first:last])
        if colours is not None and np.ndim(colours) == 3 and len(np.asarray(colours)) == nworld:
            colours = np.asarray(colours)[first:last]  # others are refused when they are read
        return replace(self, noise=noise, geom_rgb=colours)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the images."""
        return several_of("output", self.output, OUTPUTS)


# ---- kernels ---------------------------------------------------------------------------------------------------------
CAMERA = Layout(
    "Camera",
    (
        Field("camera", "size", doc="index of the camera; -1: the free one"),
        Field("tracked", "size", doc="body that the free camera follows; -1: none"),
        Field("image_width", "size", doc="pixels of a row"),
        Field("image_height", "size", doc="rows"),
        Field("packet_width", "size", doc="columns of the pixels in the lanes of a tile"),
        Field("block_width", "size", doc="packets of a block side by side"),
        Field("block_height", "size", doc="rows of packets of a block"),
        Field("blocks", "size", doc="blocks side by side"),
        Field("depth", "real", (1,), "m", "distance of the first surface along the optical axis"),
        Field("coloured", "size", doc="1: compute colours"),
        Field("number", "size", doc="pixels of a world, those beyond the image's edges included"),
        Field("rgb", "real", (3,), "1", "red, green and blue from 0 to 255"),
        *(
            Field(name, "size", doc=f"address of the table of {name} (`appearance.py`)")
            for name in ("colours", "texels", "triangles", "surfaces", "lights")
        ),
        Field("colour_stride", "size", doc="numbers from the colours of one world to the next; 0: all have the same"),
        Field("nlight", "size", doc="lights"),
        Field("light_frame", "real", ("nlight", 2, 3), "m, 1", "position and direction of the lights", rows=Vec3),
        Field("sky_width", "size", doc="width of the sky's faces in texels, 0: no sky"),
        Field("sky_texel", "size", doc="first texel of the sky"),
        Field("sky_stride", "size", doc="rows from one face of the sky to the next"),
    ),
)


@over_tiles(p=CAMERA)
def camera_tiles(m, d, b, p, thread, tile):
    """Computes the frames of the world in all lanes of a tile, then nstep packets of pixels, block by block.

    Reads:  the rows that the transfers of b bring in; the sizes of p, camera.clip, camera.ncandidate, camera.candidate,
            camera.free.
    Writes: those that they take back; depth, rgb, light_frame, camera.xpos, camera.xmat, camera.occluder, active,
            recall_address, tree_settled, ray.*, and all else of this thread's workspace.
    """
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    cameras(m, d)
    place_camera(m, d, p.camera, p.tracked)
    if p.coloured:
        store_light_frames(m, d, p)
    # address of the colours of this world: float64, 8 bytes each.  The position of a lane in the call's list is the
    # number of its first pixel, and each world has p.number pixels
    colours = p.colours + 8 * p.colour_stride * (b.call_position[tile * width(b)] // p.number)
    i, near, far = p.camera, d.camera.clip[0], d.camera.clip[1]
    R, size = d.camera.xmat[0], (p.image_width, p.image_height)
    # a packet has one pixel per lane, row by row: wide x high pixels.  A block is block_width x block_height packets
    lane = 1.0 * lane_index(d)
    row_of_lane = floor((lane + 0.5) / p.packet_width)
    column_of_lane = lane - p.packet_width * row_of_lane
    wide, high = p.packet_width, width(d) // p.packet_width
    packets = p.block_width * p.block_height  # of a block
    # nonfinite is added to each pixel: 0, or NaN if a pose is not finite
    nonfinite = dot(d.camera.xpos[0], R.rows[0])
    for k in range(d.camera.ncandidate[0]):
        g = d.camera.candidate[k]
        nonfinite = nonfinite + (dot(d.geom_xpos[g], R.rows[1]) + d.geom_xmat[g].zz)
    nonfinite = where(fabs(nonfinite) < FAR, 0.0, nonfinite - nonfinite)
    d.ray.culls[0] = 1  # surfaces are not seen from inside
    for s in range(b.nstep):  # packets: k is the number of packet s in its block
        block, k = s // packets, s % packets
        # the block's first pixel; p.blocks: blocks side by side
        first_column = wide * p.block_width * (block % p.blocks)
        first_row = high * p.block_height * (block // p.blocks)
        if k == 0:
            extent = wide * p.block_width, high * p.block_height
            choose_geoms(m, d, i, size, (first_column, first_row), extent)
        # each lane's pixel, and its ray
        column = first_column + (column_of_lane + wide * (k % p.block_width))
        row = first_row + (row_of_lane + high * (k // p.block_width))
        origin, direction = image_ray(m, d, i, size, column, row)
        # depth along the optical axis = slope * distance along the ray; rays start at the near plane
        slope = -dot(R.columns[2], direction)
        start = near / slope
        point = fma(start, direction, origin)
        d.ray.point[0] = point
        d.ray.direction[0] = direction
        d.ray.exclude[0] = -1.0  # no body is excluded
        cast_packet(m, d)  # ray.distance, ray.geom, ray.normal
        depth = slope * d.ray.distance[0] + near
        seen = (d.ray.geom[0] >= 0.0) & (depth < far)
        p.depth[0] = where(seen, depth, far) + nonfinite
        geom, normal = where(seen, d.ray.geom[0], -1.0), where(seen, d.ray.normal[0], Vec3(zeros(3)))
        if p.coloured:
            shade(m, d, p, point, direction, seen, colours)
            p.rgb[0:3] = tuple(x + nonfinite for x in p.rgb[0:3])
        d.ray.geom[0] = geom
        d.ray.normal[0] = normal
        write_records(b, thread, tile, s)
    d.ray.culls[0] = 0


# ---- free camera -----------------------------------------------------------------------------------------------------
class FreeCamera(NamedTuple):
    """A camera that is not in the model.

    Attributes:
        values: position [m], rotation matrix by rows, vertical field of view [degree], (13,).
        tracked: body to whose subtree's com the position is relative; -1: none.
    """

    values: np.ndarray
    tracked: int


def free_camera(model: Model, given: Mapping[str, Any]) -> FreeCamera:
    """Returns a free camera of attributes by name.

    Raises:
        ModelError: a value out of range.
        UnknownNameError: an unknown body.

    Source: MuJoCo mjv_defaultFreeCamera, mjv_cameraFrame, mjv_updateCamera (a tracking camera looks at the subtree's
        com, at once).
    """
    mj = model.mj_model
    look, tracked = broadcast_reals("camera: lookat", given.get("lookat", mj.stat.center), (3,)), -1
    if "trackbodyid" in given and given["trackbodyid"] != -1:
        look, tracked = np.zeros(3), index_of(model, "body", given["trackbodyid"])
    distance = bounded("camera: distance", given.get("distance", 1.5 * mj.stat.extent), 0.0)
    azimuth, elevation = (
        np.radians(bounded(f"camera: {name}", given.get(name, getattr(mj.vis.global_, name))))
        for name in ATTRIBUTES[2:4]
    )
    fovy = bounded("camera: fovy", given.get("fovy", mj.vis.global_.fovy), 0.0, 180.0, above=True)
    c, s, up, down = np.cos(azimuth), np.sin(azimuth), np.cos(elevation), np.sin(elevation)
    forward = np.array([up * c, up * s, down])
    axes = np.stack([[s, -c, 0.0], [-down * c, -down * s, up], -forward], axis=1)  # right, up, backwards
    return FreeCamera(np.concatenate([look - distance * forward, axes.ravel(), [fovy]]), tracked)


# ---- arguments -------------------------------------------------------------------------------------------------------
def clip_distances(model: Model, near: float | None, far: float | None) -> tuple[float, float]:
    """Returns the distances of the near and the far plane [m]; None: the model's."""
    mj = model.mj_model
    planes = mj.vis.map.znear * mj.stat.extent, mj.vis.map.zfar * mj.stat.extent
    first = planes[0] if near is None else float(real_number("near", near, "is a number >= 0"))
    last = planes[1] if far is None else float(real_number("far", far, "is a number above near"))
    if not 0.0 <= first < last < FAR:
        raise ModelError(f"near, far: got {first:g} and {last:g}, allowed are finite numbers with 0 <= near < far")
    return first, last


def empty_images(names: Sequence[str], nworld: int, size: tuple[int, int]) -> dict[str, np.ndarray]:
    """Returns arrays for images of nworld worlds, by name."""
    return {name: np.empty((nworld, *size, *OUTPUTS[name][2]), OUTPUTS[name][1]) for name in names}


NO_APPEARANCE = [field.name for field in CAMERA.fields if field.kind == "size"][10:]


class CameraImages(Query):
    """Holds a camera as kernels take it, checked, and the rows of its pixels.

    The answer has the images by name, (n, height, width, ...).

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        lanes: worlds of a tile.
        camera: index of the camera; -1: the free one.
        size: (height, width) of the image.
        outputs: names of the images, of `OUTPUTS`.
        view: geom groups as for `Batch.render`, distances of the near and the far plane [m], and the free camera.
        appearance: of an image `rgb`, else None; its first world is the first of the call.
    """

    loop, fills_lanes = camera_tiles, True

    def __init__(self, model: Model, nworld: int, dtype, lanes: int, camera: int, size, outputs, view, appearance=None):
        geomgroup, clip, free = view
        geoms, self.size, self.outputs = hit_geoms(model, geomgroup, True), size, outputs
        self.shared = {
            "camera.candidate": geoms,
            "camera.ncandidate": len(geoms),
            "camera.occluder": geoms[0] if len(geoms) else 0,
            "ray.cutoff": FAR,
            "camera.clip": np.array(clip),
            "camera.free": np.zeros(13) if free is None else free.values,
        }
        wide = min(lanes, 4)
        self.packet = lanes // wide, wide
        packets = [-(-n // k) for n, k in zip(size, self.packet, strict=True)]
        self.block = tuple(min(BLOCK, n) for n in packets)
        self.blocks = tuple(-(-n // k) for n, k in zip(packets, self.block, strict=True))
        self.number = int(np.prod(self.blocks) * np.prod(self.block)) * lanes
        outputs = [(OUTPUTS[name][0], OUTPUTS[name][2] or (1,)) for name in outputs]
        self.taken = {field: np.empty((nworld, self.number, *shape), dtype) for field, shape in outputs}
        self.sizes = {
            "camera": camera,
            "tracked": -1 if free is None else free.tracked,
            "image_width": size[1],
            "image_height": size[0],
            "packet_width": wide,
            "block_width": self.block[1],
            "block_height": self.block[0],
            "blocks": self.blocks[1],
            "number": self.number,
            "coloured": int(appearance is not None),
        } | (appearance or dict.fromkeys(NO_APPEARANCE, 0))

    def answer(self) -> dict[str, np.ndarray]:
        return {name: self._image(self.taken[OUTPUTS[name][0]], OUTPUTS[name][2]) for name in self.outputs}

    def _image(self, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        parts = rows.reshape(len(rows), *self.blocks, *self.block, *self.packet, -1)
        high, wide = (a * b * c for a, b, c in zip(self.blocks, self.block, self.packet, strict=True))
        image = parts.transpose(0, 1, 3, 5, 2, 4, 6, 7).reshape(len(rows), high, wide, *shape)
        return image[:, : self.size[0], : self.size[1]]
