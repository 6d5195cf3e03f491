"""Compares columns of derivatives with extrapolated differences; a column is compared if two references agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

EQUAL = 2e-5  # largest relative error of a column
APART = 1e-6  # largest relative difference of the two references of a compared column
SHAKEN = 10.0  # errors below so many changes of the derivative by last digits of the state are rounding errors
NOISE = 20.0  # errors that are below so many differences of the references are rounding errors
FLOOR = 1e-3  # of a block's largest entry: scale of a column of small entries
LENGTHS = (1e-6, 1e-5, 1e-7)  # displacements of the first reference; the second's are three times as long
AT_SWITCH = 1e-6  # `switching` of states at a switch: both one-sided derivatives are right


class Finding(Exception):
    """Reports a violation found in a case."""


@dataclass
class Columns:
    """Counts compared and skipped columns of a case.

    Attributes:
        compared, skipped: numbers of columns.
        at_switch: numbers of columns that differ at a switch.
        switching: of the state.
        equal: largest relative error.
    """

    compared: int = 0
    skipped: int = 0
    at_switch: int = 0
    switching: float = 1.0
    equal: float = EQUAL

    def compare(
        self,
        what: str,
        found: np.ndarray,
        references: References,
        rows: list[slice],
        noise: np.ndarray | float = 0.0,
        nearby: Nearby | None = None,
    ) -> None:
        """Compares columns of a matrix, block of rows by block.

        Args:
            what: name of the matrix.
            found: the derivative.
            references: of the matrix.
            rows: blocks; each has a separate scale.
            noise: size of the rounding errors of `found`, of each column or of all.
            nearby: the derivatives of states nearby; they are computed if a column differs.

        Raises:
            Finding: a column differs.
        """
        if not np.isfinite(found).all():
            raise Finding(f"{what} is not finite")
        for block in rows:
            if found[block].size:
                self._compare(what, found[block], references, block, noise, nearby)

    def _compare(self, what: str, found: np.ndarray, references: References, block: slice, noise, nearby) -> None:
        gap = np.full(found.shape[1], np.inf)
        scale, reference = np.ones_like(gap), np.zeros_like(found)
        for near, far in references:
            near, far = near[block], far[block]
            apart, size = gaps(near, far)
            better = apart < gap
            gap, scale = np.where(better, apart, gap), np.where(better, size, scale)
            reference = np.where(better, near, reference)
            if (gap <= APART).all():
                break
        error, usable = np.abs(found - reference).max(0) / scale, gap <= APART
        wrong = usable & ~(error <= np.maximum(self.equal, NOISE * gap) + noise / scale)
        if wrong.any() and nearby is not None:
            change = np.abs(nearby.shaken()[:, block] - found).max((0, 1)) / scale
            wrong &= error > SHAKEN * change
            for j in np.flatnonzero(wrong):
                if nearby.jumps(j, block, reference[:, j], scale[j] * np.array([error[j], self.equal]) + noise):
                    wrong[j], self.at_switch = False, self.at_switch + 1
        self.compared, self.skipped = self.compared + int(usable.sum()), self.skipped + int((~usable).sum())
        if wrong.any() and self.switching < AT_SWITCH:
            self.at_switch += int(wrong.sum())
        elif wrong.any():
            j = int(np.argmax(np.where(wrong, error, 0.0)))
            raise Finding(
                f"{what}: columns {np.flatnonzero(wrong)[:9].tolist()}, column {j} rows {block.start}-{block.stop}:"
                f" relative error {error[j]:.1e} of {scale[j]:.1e}, references {gap[j]:.0e} apart,"
                f" switching {self.switching:.1e}"
            )


def gaps(near: np.ndarray, far: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the relative difference of two references, and the scale, of each column."""
    size = np.maximum(np.abs(near).max(0), max(FLOOR * np.abs(near).max(), 1e-12))
    return np.abs(near - far).max(0) / size, size


@dataclass
class Nearby:
    """Provides derivatives of states near that of a case.

    Attributes:
        shaken: function that returns the derivatives (n, rows, columns) of states that differ in their last digits.
        sides: function that returns the derivatives (2, rows, columns) of both states with coordinate j displaced as
            for a difference; None if column j is not that of a coordinate of the state.
    """

    shaken: Callable[[], np.ndarray]
    sides: Callable[[int], np.ndarray | None]

    def jumps(self, j: int, block: slice, reference: np.ndarray, errors) -> bool:
        """Returns whether column j jumps by more than its error between both sides, which enclose the difference."""
        sides = self.sides(j)
        if sides is None:
            return False
        low, high = np.sort(sides[:, block, j], axis=0)
        error, equal = errors
        enclosed = (low - equal <= reference) & (reference <= high + equal)
        return bool((high - low).max() > error and enclosed.all())


class References:
    """Yields pairs (near, far) of extrapolated differences, by lengths of steps; each is computed once.

    Args:
        differences: function from displacements to matrices, one for each.
        lengths: displacements of `near`; those of `far` are three times as long.
    """

    def __init__(self, differences: Callable, lengths: tuple[float, ...] = LENGTHS):
        self.differences, self.lengths, self.known = differences, lengths, {}

    def __iter__(self):
        for eps in self.lengths:
            if eps not in self.known:
                one, two, three, six = self.differences(eps * np.array([1.0, 2.0, 3.0, 6.0]))
                self.known[eps] = (4.0 * one - two) / 3.0, (4.0 * three - six) / 3.0
            yield self.known[eps]
