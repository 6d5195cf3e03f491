"""A random number generator for each world, so that a world's episodes do not depend on the other worlds.

World i of an environment with seed s samples from `numpy.random.default_rng(s + i)`, as environment i of a Gymnasium
vector environment with that seed does: the same calls return the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ModelError
from featherlane.extension import RowSampler, whole_argument

LARGEST_SEED = 2**64 - 1


class RandomStreams:
    """Holds n random number generators.

    Args:
        n: number of generators.
        seed: seed of the first; generator i has seed + i.  A list has one seed per generator; None stands for a fresh
            seed, or for fresh seeds of all generators.

    Attributes:
        generators: NumPy generators, one per world; an entry must not be replaced.
        entropies: their initial seeds.

    Raises:
        ModelError: an invalid seed, or a list of another length.
    """

    def __init__(self, n: int, seed: int | Sequence[int | None] | None = None):
        self.generators: list[np.random.Generator] = [np.random.default_rng(0)] * n
        self._sampler: RowSampler | None = None  # of the present generators
        self.entropies = [0] * n
        self._start(range(n), seeds(n, seed))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_sampler": None}

    def _start(self, ids: Iterable[int], sequences: list[np.random.SeedSequence]) -> None:
        self._sampler = None
        for i in ids:
            self.generators[i] = np.random.default_rng(sequences[i])
            self.entropies[i] = int(sequences[i].entropy)  # pyright: ignore[reportArgumentType]

    def reseed(self, ids: np.ndarray, seed: int | Sequence[int | None] | None) -> None:
        """Restarts the generators `ids`; None for a seed, or in a list of seeds, leaves them unchanged."""
        if seed is not None:
            sequences = seeds(len(self), seed)
            self._start([i for i in ids if not _is_list(seed) or seed[i] is not None], sequences)

    def uniform(self, ids: np.ndarray, low: ArrayLike, high: ArrayLike, n: int) -> np.ndarray:
        """Samples n numbers between low and high from each generator in `ids`, (len(ids), n)."""
        drawn = self._rows("random", ids, n)
        drawn *= np.subtract(high, low)
        drawn += np.asarray(low)
        return drawn

    def normal(self, ids: np.ndarray, n: int) -> np.ndarray:
        """Samples n numbers of the standard normal distribution from each generator in `ids`, (len(ids), n)."""
        return self._rows("standard_normal", ids, n)

    def _rows(self, method: str, ids: np.ndarray, n: int) -> np.ndarray:
        """Returns n numbers of a method of each generator in `ids`, (len(ids), n)."""
        if self._sampler is None:
            self._sampler = RowSampler(self.generators)
        return self._sampler.rows(method, ids, n)

    def integers(self, ids: np.ndarray, low: int, high: int, n: int) -> np.ndarray:
        """Samples n whole numbers from low to below high from each generator in `ids`, (len(ids), n)."""
        return np.array([self.generators[i].integers(low, high, n) for i in ids], np.int64).reshape(len(ids), n)

    def __getitem__(self, i: int) -> np.random.Generator:
        """Returns the generator of a world, for any distribution."""
        return self.generators[i]

    def __len__(self) -> int:
        return len(self.generators)


def seeds(n: int, seed: int | Sequence[int | None] | None) -> list[np.random.SeedSequence]:
    """Returns a seed sequence for each of n generators.

    Raises:
        ModelError: a seed that is not an integer >= 0, or a list of another length.
    """
    if seed is None:
        fresh = np.random.SeedSequence().generate_state(n, np.uint64)
        return [np.random.SeedSequence(int(entropy)) for entropy in fresh]
    if _is_list(seed):
        if len(seed) != n:
            raise ModelError(f"seed: got {len(seed)} seeds, allowed is one for each of the {n} worlds")
        each = list(seed)
    else:
        first = whole_argument("seed", seed, 0, LARGEST_SEED)
        each = range(first, first + n)
    return [np.random.SeedSequence(None if s is None else whole_argument("seed", s, 0, LARGEST_SEED)) for s in each]


def _is_list(seed: object) -> TypeGuard[Sequence]:
    """Returns whether this is a list with a seed for each world.  A zero-dimensional array is not a list."""
    return isinstance(seed, list | tuple) or (isinstance(seed, np.ndarray) and seed.ndim > 0)
