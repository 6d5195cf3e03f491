"""A generator of random numbers for each world, so that a world's episodes are its own whatever the others do.

World i of an environment with seed s draws what `numpy.random.default_rng(s + i)` draws, which is what Gymnasium's
environment i of a vector with that seed draws: the same numbers, in the order in which it asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featherlane.errors import ModelError

MOST = 2**64


class RandomStreams:
    """n generators.

    Args:
        n: how many.
        seed: of the first; generator i has seed + i.  A list has one each, None among them: a fresh one.  None: fresh
            ones for all.

    Raises:
        ModelError: a seed that is none, or a list of another length.
    """

    def __init__(self, n: int, seed: int | Sequence[int | None] | None = None):
        sequences = seeds(n, seed)
        self.generators = [np.random.Generator(np.random.PCG64(sequence)) for sequence in sequences]
        self.entropies = [_number(sequence) for sequence in sequences]
        self._connect()

    def _connect(self) -> None:
        # methods looked up once: half of what a short draw costs
        self._uniform = [g.random for g in self.generators]
        self._normal = [g.standard_normal for g in self.generators]

    def reseed(self, ids: np.ndarray, seed: int | Sequence[int | None] | None) -> None:
        """Start the generators `ids` anew; None for a seed, or in a list of them, leaves them as they are."""
        if seed is None:
            return
        sequences = seeds(len(self.generators), seed)
        each = seed if isinstance(seed, list | tuple | np.ndarray) else sequences
        for i in ids:
            if each[i] is None:
                continue
            self.generators[i] = np.random.Generator(np.random.PCG64(sequences[i]))
            self.entropies[i] = _number(sequences[i])
        self._connect()

    def uniform(self, ids: np.ndarray, low, high, n: int) -> np.ndarray:
        """n numbers of each generator in `ids` between low and high, (len(ids), n): as `Generator.uniform` has them."""
        drawn = np.empty((len(ids), n))
        for i, row in zip(ids, drawn, strict=True):
            self._uniform[i](None, np.float64, row)
        drawn *= np.subtract(high, low)
        drawn += low
        return drawn

    def normal(self, ids: np.ndarray, n: int) -> np.ndarray:
        """n numbers of the standard normal distribution of each generator in `ids`, (len(ids), n)."""
        drawn = np.empty((len(ids), n))
        for i, row in zip(ids, drawn, strict=True):
            self._normal[i](None, np.float64, row)
        return drawn

    def integers(self, ids: np.ndarray, low: int, high: int, n: int) -> np.ndarray:
        """n whole numbers of each generator in `ids`, from low to below high, (len(ids), n)."""
        return np.stack([self.generators[i].integers(low, high, n) for i in ids])

    def __getitem__(self, i: int) -> np.random.Generator:
        return self.generators[i]

    def __len__(self) -> int:
        return len(self.generators)

    def __getstate__(self):
        return {"generators": self.generators, "entropies": self.entropies}

    def __setstate__(self, state):
        self.generators, self.entropies = state["generators"], state["entropies"]
        self._connect()


def seeds(n: int, seed: int | Sequence[int | None] | None) -> list[np.random.SeedSequence]:
    """A seed sequence for each of n generators.

    Raises:
        ModelError: a seed that is no whole number from 0, or a list of another length.
    """
    if seed is None:
        fresh = np.random.SeedSequence().generate_state(n, np.uint64)
        return [np.random.SeedSequence(int(entropy)) for entropy in fresh]
    if isinstance(seed, list | tuple | np.ndarray):
        if len(seed) != n:
            raise ModelError(f"seed: got {len(seed)} seeds, allowed are {n}, one for each world")
        each = list(seed)
    else:
        first = _checked(seed)
        each = range(first, first + n)
    return [np.random.SeedSequence(None if s is None else _checked(s)) for s in each]


def _number(sequence: np.random.SeedSequence) -> int:
    """What the sequence was started from, which starts it anew."""
    return int(sequence.entropy)  # pyright: ignore[reportArgumentType]


def _checked(seed) -> int:
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, int | np.integer) or not 0 <= seed < MOST:
        raise ModelError(f"seed: got {seed!r}, allowed is a whole number from 0, a list of them, or None")
    return int(seed)
