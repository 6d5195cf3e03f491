"""Registers point sets: finds the rotation, translation and scale that map one set closest to another.

Conventions: a set is an (n, m) array, one point per row; b_i ~ c R a_i + t, R proper (det R = +1), c >= 0.
Source: Umeyama, Least-squares estimation of transformation parameters between two point patterns, IEEE PAMI 13(4),
1991, eq. 34-43.  Differs: the covariance is formed in the principal axes of the two sets.  There it is graded, so its
small singular values keep their digits; in other axes the rounding of the large ones hides them, and a set thinner
than 1e-8 of its length looks like a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.assignment import converted, flag
from featherlane.engine.model.status import StatusCode
from featherlane.errors import ArgumentError

__all__ = ["Registration", "RegistrationStatus", "register_points"]

STEPS = 4  # rounding may change an extent by 4 m times the rounding of a coordinate; m / 2 occurs in sets of 1e5 points


class RegistrationStatus(StatusCode):
    """What two sets of points determine: the status of `register_points`."""

    UNIQUE = 0  # R, t and c are unique
    ROTATION_NOT_UNIQUE = 1  # collinear, too few points, mirror image of a symmetric set: one of the best rotations
    COINCIDENT = 2  # all points of `a` coincide: rotation and scale are arbitrary, R is the identity and c is 1
    NO_POINTS = 3  # no point, or all weights are zero: everything is arbitrary, the identity is returned
    NOT_FINITE = 4  # a coordinate or the result is not finite: NaN is returned


@dataclass(frozen=True, eq=False)
class Registration:
    """The similarity b ~ c R a + t; unpacks to R, t, c.

    Attributes:
        rotation: (..., m, m) R, proper.
        translation: (..., m) t, in the unit of b.
        scale: (...) c >= 0, unit of b over unit of a.
        residual: (...) sum_i w_i |b_i - (c R a_i + t)|^2; inf if it overflows.
        rank: (...) rank of the covariance of a and b, counted above the rounding of the coordinates.
        status: (...) values of `RegistrationStatus`; a member of the enumeration for a single pair of sets.
    """

    rotation: np.ndarray
    translation: np.ndarray
    scale: np.ndarray
    residual: np.ndarray
    rank: np.ndarray
    status: RegistrationStatus | np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.rotation, self.translation, self.scale))


@dataclass(frozen=True)
class _Cloud:
    """A centred set in its principal axes, in units of `unit`; each point is scaled by the root of its weight share."""

    unit: np.ndarray  # (...) a power of two
    mean: np.ndarray  # (..., m) in the original axes
    axes: np.ndarray  # (..., m, m) principal axes in columns, longest first
    points: np.ndarray  # (..., m, n)
    extent: np.ndarray  # (..., m) root mean square along each axis
    noise: np.ndarray  # (...) part of an extent that may be rounding
    rank: np.ndarray  # (...) number of extents above the noise


# ---- arguments -------------------------------------------------------------------------------------------------------
def _reals(name: str, value: ArrayLike, shape: str) -> tuple[np.ndarray, float]:
    """Returns `value` in float64, and the relative rounding of its entries."""
    try:
        given = converted(value)
    except ValueError as error:
        raise ArgumentError(f"{name}: got {error}, allowed are real numbers {shape}") from None
    if given.dtype.kind not in "biuf":
        raise ArgumentError(f"{name}: got {given.dtype}, allowed are real numbers {shape}")
    rounding = np.finfo(given.dtype if given.dtype.kind == "f" else np.float64).eps
    return given.astype(np.float64, copy=False), max(float(rounding), float(np.finfo(np.float64).eps))


def _check(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> None:
    """Raises an error for shapes that do not match, and for weights that are negative or not finite."""
    for name, points in (("a", a), ("b", b)):
        if points.ndim < 2 or points.shape[-1] == 0:
            raise ArgumentError(f"{name}: got shape {points.shape}, allowed is (..., n, m) with m >= 1")
    n, m = a.shape[-2:]
    if b.shape[-2:] != (n, m):
        raise ArgumentError(f"b: got shape {b.shape}, allowed is (..., {n}, {m}), the shape of a")
    if weights.shape[-1:] != (n,):
        raise ArgumentError(f"weights: got shape {weights.shape}, allowed is (..., {n})")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2], weights.shape[:-1])
    except ValueError:
        given = f"{a.shape}, {b.shape}, {weights.shape}"
        raise ArgumentError(f"a, b, weights: got shapes {given}, allowed are leading axes that broadcast") from None
    wrong = ~((weights >= 0) & (weights < np.inf))
    if wrong.any():
        first = tuple(map(int, np.argwhere(wrong)[0]))
        raise ArgumentError(f"weights: got {weights[first]} at {first}, allowed are finite numbers >= 0")


def _with_zeros(array: np.ndarray, missing: int) -> np.ndarray:
    """Returns `array` with `missing` zeros appended to its last axis."""
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)]) if missing > 0 else array


def _counted(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns points (..., m, n), zero if of weight 0 or not finite, and a mask of sets with non-finite values."""
    used, finite = weights[..., None, :] > 0, np.isfinite(points)
    kept = used & finite
    zeroed = np.zeros(kept.shape)  # C order, whatever the order of the argument
    np.copyto(zeroed, points, where=kept)
    return zeroed, (kept != used).any((-2, -1))


def _power_of_two(largest: np.ndarray) -> np.ndarray:
    """Returns the power of two at or below each value: dividing by it is exact."""
    return np.ldexp(1.0, np.clip(np.frexp(largest)[1] - 1, -1022, 1023))


# ---- one set ---------------------------------------------------------------------------------------------------------
def _cloud(points: np.ndarray, share: np.ndarray, rounding: float) -> _Cloud:
    """Scales, centres and rotates a set (..., m, n); coordinates have rounding relative to their distance from 0."""
    unit = _power_of_two(np.maximum(points.max((-2, -1)), -points.min((-2, -1))))
    points = points / unit[..., None, None]
    # two passes: the rounding of a long sum shifts the first mean by 50 times that of a coordinate for 1000 points
    mean = points @ share[..., None]
    points = points - mean
    rest = points @ share[..., None]
    mean = (mean + rest)[..., 0]
    points -= rest
    points *= np.sqrt(share)[..., None, :]
    axes = np.linalg.svd(np.linalg.qr(points.mT, mode="r"))[2].mT
    points = axes.mT @ points
    extent = np.sqrt(np.vecdot(points, points))
    noise = STEPS * points.shape[-2] * rounding * np.sqrt(np.vecdot(mean, mean) + np.vecdot(extent, extent))
    return _Cloud(unit, mean, axes, points, extent, noise, (extent > noise[..., None]).sum(-1))


# ---- both sets -------------------------------------------------------------------------------------------------------
def _blur(a: _Cloud, b: _Cloud, U: np.ndarray, Vt: np.ndarray) -> np.ndarray:
    """Returns the part of each singular value that may be rounding, (..., m).

    Errors A', B' of the sets A, B change s_k by u_k^T (B'^T A + B^T A') v_k to first order.  Higher orders matter
    only for a set without extent; the set's rank detects that.
    """
    across_a = np.sqrt(((Vt * a.extent[..., None, :]) ** 2).sum(-1))
    across_b = np.sqrt(((U * b.extent[..., :, None]) ** 2).sum(-2))
    return b.noise[..., None] * across_a + a.noise[..., None] * across_b


def _proper(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns R = left S right^T, S = diag(1, ..., 1, +-1), det R = +1; has S the -1?  Source: Umeyama, eq. 39-43."""
    R = left @ right.mT
    mirrored = np.linalg.det(R) < 0
    twice = np.where(mirrored, 2.0, 0.0)[..., None, None]
    return R - twice * left[..., :, -1:] * right[..., None, :, -1], mirrored


def _smallest_rotation(left: np.ndarray, right: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Returns the smallest proper rotation that maps the first `rank` columns of `right` to those of `left`."""
    free = np.arange(left.shape[-1]) >= rank[..., None]
    # singular values: 1 in the determined subspace, at most 1/2 in the free one, which therefore takes the reflection
    among_free = np.where(free[..., :, None] & free[..., None, :], 0.5 * (left.mT @ right), 0.0)
    P, _, Qt = np.linalg.svd(among_free + np.eye(left.shape[-1]) * ~free[..., None])
    return _proper(left @ P, right @ Qt.mT)[0]


def _rotation(a: _Cloud, b: _Cloud, K: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns R, the rank of the covariance K in the principal axes, and whether R is the only best rotation."""
    m = K.shape[-1]
    U, s, Vt = np.linalg.svd(K)
    blur = _blur(a, b, U, Vt)
    rank = np.minimum((s > blur).sum(-1), np.minimum(a.rank, b.rank))
    left, right = b.axes @ U, a.axes @ Vt.mT
    R, mirrored = _proper(left, right)
    few = rank < m - 1
    if few.any():
        R[few] = _smallest_rotation(left[few], right[few], rank[few])
        R[few & (rank == 0)] = np.eye(m)  # exact identity
    # a reflection costs 2 s_m; if s_m = s_(m-1), another axis has the same cost
    tied = mirrored & (s[..., -2:][..., 0] - s[..., -1] <= blur[..., -2:].sum(-1)) & (m > 1)
    return R, rank, ~(few | tied)


def _scale(a: _Cloud, b: _Cloud, K: np.ndarray, turned: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Returns c = tr(R^T Sigma) / sigma_a^2, at least 0 (Umeyama, eq. 42); 1 if the points of a coincide."""
    gain = np.where(rank > 0, np.maximum((K * turned).sum((-2, -1)), 0.0), 0.0)
    variance = np.where(a.rank > 0, (a.extent**2).sum(-1), 1.0)
    return np.where(a.rank > 0, gain / variance * (b.unit / a.unit), 1.0)


def _status(unique: np.ndarray, coincident: np.ndarray, empty: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Returns the most severe status of each pair of sets."""
    status = RegistrationStatus
    worst = np.where(unique, status.UNIQUE, status.ROTATION_NOT_UNIQUE)
    worst = np.where(coincident, status.COINCIDENT, worst)
    worst = np.where(empty, status.NO_POINTS, worst)
    return np.where(wrong, status.NOT_FINITE, worst)


def _solve(A: _Cloud, B: _Cloud, scale: bool) -> tuple[np.ndarray, ...]:
    """Returns R, t, c, the mean square residual, the rank, and whether R is unique."""
    K = B.points @ A.points.mT
    R, rank, unique = _rotation(A, B, K)
    turned = B.axes.mT @ R @ A.axes  # from the principal axes of A to those of B
    c = _scale(A, B, K, turned, rank) if scale else np.ones(rank.shape)
    unit_a, unit_b = A.unit[..., None], B.unit[..., None]
    t = B.mean * unit_b - c[..., None] * (R @ (A.mean * unit_a)[..., None])[..., 0]
    left = (c[..., None] * unit_a)[..., None] * turned @ A.points
    left -= B.points * unit_b[..., None]
    return R, t, c, np.vecdot(left, left).sum(-1), rank, unique


def register_points(
    a: ArrayLike, b: ArrayLike, *, scale: bool = True, weights: ArrayLike | None = None
) -> Registration:
    """Returns rotation R, translation t and scale c >= 0 that minimise sum_i w_i |b_i - (c R a_i + t)|^2.

    `R, t, c = register_points(a, b)`; the result also holds residual, rank and status. R is always a proper rotation:
    for planar sets, for mirror images, and if it is not unique (see `RegistrationStatus`); below rank m - 1 it is
    the smallest of the best rotations. Degenerate sets raise no error, and sets of a batch are independent.

    Args:
        a, b: (..., n, m) points, any m >= 1, each set in its own unit; b_i corresponds to a_i.
        scale: False for c = 1.
        weights: (..., n) w_i >= 0, all 1 by default. Points of weight 0 are ignored, whatever their coordinates.  So
            sets of different n can share an array.

    Returns:
        `Registration` in float64, for the leading axes that a, b and weights broadcast to. The rank counts singular
        values above the rounding of the coordinates (of float32 for float32 input), also far from the origin. c is 0
        if no scale above 0 fits better: all b coincide, or b opposes a (m = 1; symmetric mirror images, m = 2).

    Raises:
        ValueError: shapes do not match, numbers are complex, or weights are negative or not finite.

    Source: Umeyama, IEEE PAMI 13(4), 1991, eq. 34-43, with weights. Differs: c is never negative (m = 1), R exists
    below rank m - 1, a mirror image that does not determine R has a status.    Cost: O(n m^2 + m^3) per pair of sets.
    """
    scale = flag("scale", scale)
    (a, rounding_a), (b, rounding_b) = _reals("a", a, "(..., n, m)"), _reals("b", b, "(..., n, m)")
    w = np.ones(a.shape[-2:-1]) if weights is None else _reals("weights", weights, "(..., n)")[0]
    _check(a, b, w)
    n, m = a.shape[-2:]
    w = _with_zeros(w, m - n)
    count = (w > 0).sum(-1)
    unit = _power_of_two(w.max(-1))
    total = (w / unit[..., None]).sum(-1)
    share = w / unit[..., None] / np.where(count > 0, total, 1.0)[..., None]
    a, wrong_a = _counted(_with_zeros(a.mT, m - n), w)
    b, wrong_b = _counted(_with_zeros(b.mT, m - n), w)
    A, B = _cloud(a, share, rounding_a), _cloud(b, share, rounding_b)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported in the status
        R, t, c, square, rank, unique = _solve(A, B, scale)
        residual = square * total * unit
    wrong = wrong_a | wrong_b | ~np.isfinite(t).all(-1)  # t is not finite if c is not
    status = _status(unique, (A.rank == 0) & (scale or m > 1), count == 0, wrong)
    R, t = np.where(wrong[..., None, None], np.nan, R), np.where(wrong[..., None], np.nan, t)
    c, residual = np.where(wrong, np.nan, c)[()], np.where(wrong, np.nan, residual)[()]
    rank = np.where(wrong, 0, rank)[()]
    return Registration(R, t, c, residual, rank, status if status.ndim else RegistrationStatus(int(status)))
