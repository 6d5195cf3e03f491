"""Patterns of rays for height scans and lidars: origins and directions in the frame of a sensor.

Conventions: x forward, y left, z up; angles in degrees, azimuth from x to y, elevation from the horizontal plane up.
Source of the patterns' order: mjlab and Isaac Lab, ray casters; legged_gym for `order="yx"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import one_of, whole_argument
from featherlane.engine.model.assignment import flag, real_number, reals
from featherlane.engine.simulation.query.ray import check_lengths
from featherlane.engine.spatial.vector import MINVAL
from featherlane.errors import ModelError

DOWN = (0.0, 0.0, -1.0)
MOST_RAYS = 1 << 24
ROUNDING = 1e-9  # relative: a last point or angle at most this far beyond a range is part of it
WIDEST = 10.0  # slope of a bundle of rays from which it has no bounding cone


@dataclass(frozen=True, eq=False)
class RayPattern:
    """Holds the rays of a sensor, in its frame.

    Attributes:
        origin: (nray, 3) starts of the rays [m].
        direction: (nray, 3) unit vectors.

    Raises:
        ModelError: other shapes, no ray, a number that is not finite, a direction of length 0.
    """

    origin: np.ndarray
    direction: np.ndarray

    def __post_init__(self):
        direction = _vectors("direction", self.direction)
        origin = _vectors("origin", self.origin)
        try:
            shape = np.broadcast_shapes(origin.shape, direction.shape)
        except ValueError:
            text = f"origin, direction: got shapes {origin.shape}, {direction.shape}, which do not broadcast"
            raise ModelError(text) from None
        if not 0 < shape[0] <= MOST_RAYS:
            raise ModelError(f"direction: got {shape[0]} rays, allowed are 1 to {MOST_RAYS}")
        with np.errstate(over="ignore"):
            length = np.linalg.norm(direction, axis=-1, keepdims=True)
        check_lengths(length)
        for name, value in (("origin", origin), ("direction", direction / length)):
            rows = np.array(np.broadcast_to(value, shape))
            rows.flags.writeable = False
            object.__setattr__(self, name, rows)

    def __len__(self) -> int:
        return len(self.origin)

    def __repr__(self) -> str:
        return f"RayPattern({len(self)} rays)"


def _vectors(name: str, value) -> np.ndarray:
    rows = reals(name, value, "are numbers (nray, 3)")
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ModelError(f"{name}: got shape {np.shape(value)}, allowed is (nray, 3)")
    if not np.isfinite(rows).all():
        raise ModelError(f"{name}: got a non-finite number")
    return rows


def _positive(name: str, value) -> float:
    x = float(real_number(name, value, "is a number above 0"))
    if not 0.0 < x < np.inf:
        raise ModelError(f"{name}: got {value!r}, allowed is a number above 0")
    return x


def _pair(name: str, value) -> tuple[float, float]:
    pair = reals(name, value, "are two numbers")
    if pair.shape != (2,) or not np.isfinite(pair).all():
        raise ModelError(f"{name}: got {value!r}, allowed are two finite numbers")
    return float(pair[0]), float(pair[1])


def _steps(first: float, last: float, step: float) -> np.ndarray:
    """Returns first, first + step, ... up to last."""
    n = int(np.floor((last - first) / step + ROUNDING)) + 1
    if n > MOST_RAYS:
        raise ModelError(f"got {n} rays along one axis, allowed are at most {MOST_RAYS}")
    return first + step * np.arange(n)


def grid(
    size: ArrayLike = (1.6, 1.0),
    resolution: float = 0.1,
    *,
    direction: ArrayLike = DOWN,
    height: float = 0.0,
    order: str = "xy",
) -> RayPattern:
    """Returns parallel rays on a rectangular grid about the frame: 187 points by default.

    Args:
        size: (length along x, width along y) [m].
        resolution: distance of neighbouring rays [m].
        direction: of all rays.
        height: z of the starts [m]; a height scan from inside of a body, or over overhangs, starts above.
        order: "xy": x changes fastest (mjlab, Isaac Lab); "yx": y does (legged_gym).

    Raises:
        ModelError: a size below 0, a resolution that is not positive, an unknown order.
    """
    wide, deep = _pair("size", size)
    if wide < 0.0 or deep < 0.0:
        raise ModelError(f"size: got {size!r}, allowed are numbers >= 0")
    step, z = _positive("resolution", resolution), float(real_number("height", height, "is a number"))
    x, y = _steps(-0.5 * wide, 0.5 * wide, step), _steps(-0.5 * deep, 0.5 * deep, step)
    columns = np.meshgrid(x, y, indexing="xy" if one_of("order", order, ("xy", "yx")) == "xy" else "ij")
    origin = np.stack([*(c.ravel() for c in columns), np.full(columns[0].size, z)], -1)
    return RayPattern(origin, np.asarray(direction))


def ring(
    radius: ArrayLike = 0.1, samples: int = 8, *, center: bool = True, direction: ArrayLike = DOWN, height: float = 0.0
) -> RayPattern:
    """Returns parallel rays on one or more circles about the frame, as for the height of a foot above the terrain.

    Args:
        radius: of the circles [m], one or several.
        samples: rays of each circle, from the x axis on.
        center: whether the first ray starts at the centre.
        direction: of all rays.
        height: z of the starts [m].

    Raises:
        ModelError: a radius below 0, no sample.
    """
    radii, n = np.atleast_1d(reals("radius", radius, "are numbers >= 0")), whole_argument("samples", samples, 1)
    if radii.ndim != 1 or not ((radii >= 0.0) & (radii < np.inf)).all():
        raise ModelError(f"radius: got {radius!r}, allowed are finite numbers >= 0")
    z, angle = float(real_number("height", height, "is a number")), 2.0 * np.pi / n * np.arange(n)
    circles = radii[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    points = np.concatenate([np.zeros((int(flag("center", center)), 2)), circles.reshape(-1, 2)])
    return RayPattern(np.column_stack([points, np.full(len(points), z)]), np.asarray(direction))


def lidar(
    channels: int | Sequence[float] = 16,
    vertical: ArrayLike = (-15.0, 15.0),
    horizontal: ArrayLike = (-180.0, 180.0),
    *,
    resolution: float = 1.0,
) -> RayPattern:
    """Returns rays from the frame's origin at fixed elevations, the channels, and evenly spaced azimuths.

    Rays are ordered channel by channel, from the lowest elevation to the highest.

    Args:
        channels: number of channels, or their elevations [degrees].
        vertical: lowest and highest elevation [degrees]; not used if the elevations are given.
        horizontal: first and last azimuth [degrees]; of a full circle the last one is left out.
        resolution: distance of neighbouring azimuths [degrees].

    Raises:
        ModelError: no channel, a range in descending order, a resolution that is not positive.
    """
    (low, high), (first, last) = _pair("vertical", vertical), _pair("horizontal", horizontal)
    for name, pair in (("vertical", (low, high)), ("horizontal", (first, last))):
        if pair[0] > pair[1]:
            raise ModelError(f"{name}: got {pair}, allowed are two numbers in ascending order")
    if isinstance(channels, int | np.integer):
        elevation = np.linspace(low, high, whole_argument("channels", channels, 1))
    else:
        elevation = np.atleast_1d(reals("channels", channels, "is a number of channels, or their elevations"))
    azimuth = _steps(first, last, _positive("resolution", resolution))
    if abs(last - first - 360.0) < 1e-6 and abs(azimuth[-1] - last) < 1e-6:
        azimuth = azimuth[:-1]
    up, around = np.meshgrid(np.deg2rad(elevation), np.deg2rad(azimuth), indexing="ij")
    ways = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], -1)
    return RayPattern(np.zeros(3), ways.reshape(-1, 3))


def directions(elevation: ArrayLike, azimuth: ArrayLike) -> RayPattern:
    """Returns rays from the frame's origin at listed angles, as of lidars without a raster (Livox).

    Args:
        elevation, azimuth: (nray,) or what broadcasts to it [degrees].

    Raises:
        ModelError: shapes that do not broadcast to one axis, a number that is not finite.
    """
    up, around = (np.deg2rad(reals(n, v, "are numbers")) for n, v in (("elevation", elevation), ("azimuth", azimuth)))
    try:
        up, around = np.broadcast_arrays(np.atleast_1d(up), around)
    except ValueError:
        text = f"elevation, azimuth: got shapes {up.shape}, {around.shape}, which do not broadcast"
        raise ModelError(text) from None
    if up.ndim != 1:
        raise ModelError(f"elevation, azimuth: got shape {up.shape}, allowed is (nray,)")
    return RayPattern(np.zeros(3), np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], -1))


# ---- bounds of rays --------------------------------------------------------------------------------------------------
def bundle_of(origin: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Returns bounds of a bundle of rays: centre (3,), axis (3,), rho, slope, behind, reach.

    At a distance t - behind along the axis from the centre, all rays lie within rho + slope t of it; a slope of -1: the
    rays have no common direction.  All origins are within `reach` of the centre.
    """
    center, axis = origin.mean(axis=0), direction.mean(axis=0)
    length = np.linalg.norm(axis)
    axis = axis / length if length > MINVAL else np.array([1.0, 0.0, 0.0])
    start, cosine = origin - center, direction @ axis
    depth = start @ axis
    rho = np.linalg.norm(start - depth[:, None] * axis, axis=1).max()
    slope = np.sqrt(np.maximum(1.0 - cosine**2, 0.0)).max() / max(cosine.min(), MINVAL)
    if slope > WIDEST:
        slope = -1.0
    return np.array([*center, *axis, rho, slope, -depth.min(), np.linalg.norm(start, axis=1).max()])
