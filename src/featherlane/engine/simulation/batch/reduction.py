"""Computes reductions over worlds whose bits do not depend on how the worlds are distributed.

A floating-point sum depends on its order.  Worlds are therefore always added along one binary tree over their numbers:
worlds 2k and 2k + 1, then pairs of pairs, ...  A node adds the subtrees that lie entirely in its part, at most two
blocks of each size.  The remaining levels are added when the parts are merged.

    numbers  0 1 2 3 4 5 | 6 7      a part has 0 to 5: blocks 0-3 and 4-5, another 6-7;
             -+- -+- -+- | -+-      4-5 and 6-7 are added at the merge, then 0-3 and 4-7
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import described, reals
from featherlane.errors import ModelError, near

EDGES = "are ascending finite numbers (nbin + 1,)"
NAMES = ("mean", "sum", "min", "max")


class Histogram(NamedTuple):
    """Counts how many values fall between edges, over worlds.

    Attributes:
        edges: (nbin + 1,) ascending; the last bin includes its right edge.
    """

    edges: tuple[float, ...]


class Reduction(NamedTuple):
    """A checked reduction over worlds: `mean`, `sum`, `min` or `max`, or a `Histogram`."""

    how: str | Histogram

    @classmethod
    def of(cls, how: Any) -> Reduction:
        """Returns a reduction, given by name or as a `Histogram`.

        Raises:
            ModelError: an unknown name; edges that do not ascend.
        """
        if isinstance(how, Histogram):
            edges = reals("edges", how.edges, EDGES)
            if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all() or not np.isfinite(edges).all():
                raise ModelError(f"edges: got {described(how.edges)}, allowed {EDGES}")
            return cls(Histogram(tuple(edges.tolist())))
        if not isinstance(how, str) or how not in NAMES:
            raise ModelError(f"reduce: got {how!r}, allowed are {', '.join(NAMES)} and Histogram{near(how, NAMES)}")
        return cls(how)

    def partial(self, rows: np.ndarray, worlds: np.ndarray) -> Any:
        """Returns a node's partial reduction of its worlds.

        Args:
            rows: (n, ...) values.
            worlds: (n,) numbers of the worlds among all.
        """
        if isinstance(self.how, Histogram):
            return _counts(rows, np.asarray(self.how.edges))
        if self.how in ("min", "max"):
            if not len(rows):
                return None
            return rows.min(axis=0) if self.how == "min" else rows.max(axis=0)
        return len(rows), _blocks(rows, worlds)

    def merged(self, parts: Sequence[Any]) -> np.ndarray:
        """Merges the partial reductions of nodes, which have at least one world together."""
        if isinstance(self.how, Histogram):
            return np.sum(parts, axis=0)
        if self.how in ("min", "max"):
            some = [part for part in parts if part is not None]
            return (np.minimum if self.how == "min" else np.maximum).reduce(some)
        number = sum(n for n, _ in parts)
        # + 0.0 turns -0 into 0, so that the sign of a zero does not depend on parts without worlds
        total = _sum({key: value for _, blocks in parts for key, value in blocks.items()}) + 0.0
        return total / number if self.how == "mean" else total

    def over(self, recorded: Mapping[str, np.ndarray], worlds: np.ndarray) -> dict[str, np.ndarray]:
        """Returns reductions of recordings (n, nstep, ...) of the worlds with these numbers, by field."""
        return {name: self.merged([self.partial(rows, worlds)]) for name, rows in recorded.items()}


def check_rollout(reduction: Any, out: Any, nworld: int) -> Reduction | None:
    """Checks the arguments `reduce` and `out` of a rollout of nworld worlds; returns the reduction.

    Raises:
        ModelError: as `Reduction.of` does; `out` is not a mapping, or given with a reduction; no world to reduce.
    """
    instance("out", out, Mapping | None, "a dict of arrays by name")
    if reduction is None:
        return None
    if out is not None:
        raise ModelError("out: got arrays, allowed with reduce is None")
    how = Reduction.of(reduction)
    if not nworld:
        raise ModelError("ids: got no world, allowed with reduce is at least one")
    return how


def _counts(rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns (..., nbin): how many of (n, ...) values fall into each bin; NaN falls into none."""
    flat = rows.reshape(len(rows), -1)
    counts = [np.histogram(column[~np.isnan(column)], edges)[0] for column in flat.T]
    return np.array(counts, np.int64).reshape(*rows.shape[1:], len(edges) - 1)


Blocks = dict[tuple[int, int], np.ndarray]  # (level, number): sum over the 2^level worlds from number 2^level on


def _blocks(rows: np.ndarray, worlds: np.ndarray) -> Blocks:
    """Returns sums over the largest blocks between the first and the last of these worlds; missing worlds are zero."""
    if not len(rows):
        return {}
    first, end = int(worlds.min()), int(worlds.max()) + 1
    level = np.zeros((end - first, *rows.shape[1:]))
    level[worlds - first] = rows
    found: Blocks = {}
    k = 0
    while end > first:
        if first % 2:
            found[k, first], level, first = level[0], level[1:], first + 1
        if end % 2 and end > first:
            found[k, end - 1], level, end = level[-1], level[:-1], end - 1
        level = level[0::2] + level[1::2]
        k, first, end = k + 1, first // 2, end // 2
    return found


def _sum(blocks: Blocks) -> np.ndarray:
    """Returns the sum of blocks, along the tree up to the level at which one is left."""
    level = 0
    while True:
        here = sorted(number for k, number in blocks if k == level)
        if len(blocks) == 1 and here:
            return blocks[level, here[0]]
        for number in here:
            value = blocks.pop((level, number))
            other = blocks.get((level + 1, number // 2))
            blocks[level + 1, number // 2] = value if other is None else other + value
        level += 1
