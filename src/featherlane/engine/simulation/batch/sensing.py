"""Defines `Sensing`: images of cameras and scans of ray patterns, the same methods for each kind of batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import several_of
from featherlane.engine.model.assignment import real_number
from featherlane.engine.simulation.batch.arrays import chosen_worlds
from featherlane.engine.simulation.batch.gather import gather_rows
from featherlane.engine.simulation.query.camera import VISIBLE, Camera, Images
from featherlane.engine.simulation.query.imaging import camera_of, images_of, warn_of_black
from featherlane.engine.simulation.query.objects import Object
from featherlane.engine.simulation.query.pattern import RayPattern
from featherlane.engine.simulation.query.scan import FIELDS, Scan, ScanRequest, pattern_of, scan_of, scan_result
from featherlane.engine.simulation.world.recordings import result_array
from featherlane.errors import MissingMethodError

# functions of a batch of one model, a request and worlds
SENSED: Mapping[str, Callable[[Any, Any, np.ndarray], Any]] = {"images": images_of, "scan": scan_of}


class Sensing:
    """Checks the arguments of cameras and scans, and gathers the results of parts of the worlds."""

    nworld: int
    dtype: np.dtype

    def _ids(self, ids) -> np.ndarray:
        """Returns world numbers (n,) int64, checked."""
        return chosen_worlds(ids, self.nworld)

    def sense(self, kind: str, request: Any, *, ids: ArrayLike | None = None) -> Any:
        """Returns the results of a camera (`images`) or a scan (`scan`) for worlds of a `Batch`."""
        return SENSED[kind](self, request, self._ids(ids))

    def _shares(self, kind: str, request: Callable[[int, int], Any], chosen: np.ndarray) -> tuple[Any, Iterable[tuple]]:
        """Returns results of no world, and those of parts of the worlds.

        Args:
            kind: a key of `SENSED`.
            request: returns what is computed for the worlds from a first one to before a last one.
            chosen: the worlds.

        Returns:
            The results of no world, after a check of the request; first world, indices in `chosen`, and results of each
            part.
        """
        raise MissingMethodError("_shares")

    def _images(self, camera: Camera, chosen: np.ndarray) -> tuple[Images, list[int]]:
        """Returns images of worlds, and the worlds whose `rgb` is black because a pose is not finite."""
        black: list[int] = []
        (empty, _), parts = self._shares("images", functools.partial(camera.of_worlds, self.nworld), chosen)

        def rows() -> Iterator[tuple[Any, Images]]:
            for first, at, (images, own) in parts:
                black.extend(int(first) + world for world in own)
                yield at, images

        return Images(*gather_rows(empty, len(chosen), rows())), black

    def _scanned(self, request: ScanRequest, chosen: np.ndarray, out: np.ndarray | None = None) -> Sequence[Any]:
        """Returns the results of a scan of worlds by field, each (n, nray, ...); may write heights to `out`."""
        empty, parts = self._shares("scan", lambda first, last: request, chosen)
        return gather_rows(empty, len(chosen), ((at, rows) for _, at, rows in parts))

    def render(
        self,
        camera: int | str | Mapping[str, Any] | Camera,
        *,
        width: int | None = None,
        height: int | None = None,
        output: str | Sequence[str] = ("depth",),
        ids: ArrayLike | None = None,
        geomgroup: ArrayLike | None = VISIBLE,
        near: float | None = None,
        far: float | None = None,
    ) -> Images:
        """Computes images of a camera in each world's present state, by casting a ray through the centre of each pixel.

        The camera's field of view, sensor size, focal lengths, principal point, projection and mode apply, as in
        MuJoCo's renderer.  `cam_resolution` is ignored.  As in MuJoCo's visualizer, back faces and geoms with an alpha
        of 0 are invisible.  Colours come from the materials, textures and lights of `model.mj_model`.

        Args:
            camera: name or number; a free camera, see `Camera`; or a `Camera`, which has all options and also noise and
                colours of geoms by world.
            width, height: size of the images [pixels].
            output: names of the images: `depth`, `segmentation`, `normal`, `rgb`.
            ids: the worlds; None for all.
            geomgroup: six flags that select the groups of geoms to render; None for all.
            near, far: distances of the clipping planes [m]; None for `vis.map.znear` and `zfar` times the model's
                extent.

        Returns:
            `Images` of the n worlds, row 0 at the top: depth (n, height, width) float32 [m], segmentation
            (n, height, width) int32, normal (n, height, width, 3) float32, rgb (n, height, width, 3) uint8.

        Raises:
            ModelError: an unknown output, a size that is not positive, wrong flags, planes or colours, an incomplete
                texture.
            UnknownNameError: an unknown camera.
            UnsupportedFeatureError: a signed distance field of an unsupported plugin is among the geoms.
            MemoryError: the images do not fit into memory.

        Warns:
            NonFiniteWarning: a world has a non-finite pose; its image `rgb` is black.

        Source: MuJoCo mjv_cameraFrustum, mj_ray, mjr_render.
        """
        wanted = camera_of(camera, width, height, output=output, geomgroup=geomgroup, near=near, far=far)
        images, black = self._images(wanted, self._ids(ids))
        warn_of_black(wanted, black)
        return images

    def scan(
        self,
        body: Object,
        pattern: RayPattern | ArrayLike,
        *,
        alignment: str = "base",
        output: str | Sequence[str] = ("distance",),
        ids: ArrayLike | None = None,
        geomgroup: ArrayLike | None = None,
        bodyexclude: int | str | None = "parent",
        cutoff: float = np.inf,
    ) -> Scan:
        """Casts the rays of a pattern from a frame in each world's present state, as a lidar does.

        Args:
            body: the frame that carries the pattern: a body by name or number, or a pair of a kind (`body` for its
                centre of mass, `xbody`, `geom`, `site`) and a name or number.
            pattern: a pattern of `fl.patterns`, or directions (nray, 3) of rays from the frame's origin.
            alignment: axes of the pattern.  "base": the frame's axes.  "yaw": the world's axes, rotated about the
                vertical by the frame's heading.  "world": the world's axes.
            output: names of the results: `distance`, `geom`, `normal`, `point`.
            ids: the worlds; None for all.
            geomgroup: six flags that select the groups of geoms to test; None for all.
            bodyexclude: a body whose geoms are not tested, by name or number; "parent" for the frame's, -1 for none.
            cutoff: surfaces at this distance or farther are ignored [m].

        Returns:
            `Scan`: distance (n, nray) [m], geom (n, nray), normal (n, nray, 3) and point (n, nray, 3) [m]; a ray
            without a hit has -1, -1, zeros and its origin.  The state and bound outputs do not change.

        Raises:
            ModelError: an unknown alignment or output, wrong rays, flags or numbers.
            UnknownNameError: an unknown object.
            UnsupportedFeatureError: a signed distance field of an unsupported plugin is among the geoms.

        Source: MuJoCo mj_ray; mjlab and Isaac Lab, ray casters, for the alignments.
        """
        fields = tuple(dict.fromkeys(FIELDS[name] for name in several_of("output", output, FIELDS)))
        request = ScanRequest(body, pattern_of(pattern), alignment, geomgroup, bodyexclude, cutoff, -1.0, fields)
        return scan_result(dict(zip(fields, self._scanned(request, self._ids(ids)), strict=True)))

    def height_scan(
        self,
        body: Object,
        pattern: RayPattern | ArrayLike,
        *,
        alignment: str = "yaw",
        ids: ArrayLike | None = None,
        geomgroup: ArrayLike | None = None,
        cutoff: float = np.inf,
        miss: float | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Computes heights of a frame above the surfaces that the rays of a pattern hit, in each world's present state.

        Args:
            body, pattern, alignment, ids, geomgroup, cutoff: as for `scan`; the frame's body is not tested.
            miss: result of a ray without a hit; None for `cutoff`.
            out: array for the result, of the batch's precision; None to allocate it.

        Returns:
            (n, nray) z of the frame minus z of the surface [m]; NaN in a world with a non-finite pose.

        Raises:
            ModelError, UnknownNameError, UnsupportedFeatureError: as `scan` does; a wrong `out`.

        Source: mjlab and Isaac Lab, height_scan.
        """
        if miss is not None:
            miss = float(real_number("miss", miss, "is a number or None"))
        rays, chosen = pattern_of(pattern), self._ids(ids)
        result = result_array("out", out, (len(chosen), len(rays)), self.dtype)
        request = ScanRequest(body, rays, alignment, geomgroup, "parent", cutoff, miss, ("heights",))
        [heights] = self._scanned(request, chosen, result)
        if heights is not result:
            result[...] = heights
        return result
