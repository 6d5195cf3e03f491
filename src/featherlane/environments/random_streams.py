"""A generator of random numbers for each world, so that a world's episodes are its own whatever the others do.

World i of an environment with seed s draws what `numpy.random.default_rng(s + i)` draws, which is what Gymnasium's
environment i of a vector with that seed draws: the same numbers, in the order in which it asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from featherlane.errors import ModelError

MOST = 2**64
PERIOD = 2**128  # of PCG64
AHEAD = 64  # uniform numbers that are drawn at once


class RandomStreams:
    """n generators.

    Args:
        n: how many.
        seed: of the first; generator i has seed + i.  A list has one each, None among them: a fresh one.  None: fresh
            ones for all.

    Uniform numbers are drawn some at a time for each generator, for a call costs as much as ten numbers do; whoever is
    handed a generator, or draws otherwise, gets it where it would be without that.

    Raises:
        ModelError: a seed that is none, or a list of another length.
    """

    def __init__(self, n: int, seed: int | Sequence[int | None] | None = None):
        sequences = seeds(n, seed)
        self._generators = [np.random.Generator(np.random.PCG64(sequence)) for sequence in sequences]
        self.entropies = [_number(sequence) for sequence in sequences]
        self._begin()

    def _begin(self) -> None:
        n = len(self._generators)
        self._ahead, self._next = np.empty((n, AHEAD)), np.full(n, AHEAD)
        self._looks_ahead = True  # until something else than uniform numbers is drawn
        self._connect(range(n))

    def _connect(self, ids) -> None:
        # methods looked up once: half of what a short draw costs
        if not hasattr(self, "_uniform"):
            self._uniform, self._normal = [None] * len(self._generators), [None] * len(self._generators)
        for i in ids:
            self._uniform[i], self._normal[i] = self._generators[i].random, self._generators[i].standard_normal

    def reseed(self, ids: np.ndarray, seed: int | Sequence[int | None] | None) -> None:
        """Start the generators `ids` anew; None for a seed, or in a list of them, leaves them as they are."""
        if seed is None:
            return
        sequences = seeds(len(self._generators), seed)
        each = seed if isinstance(seed, list | tuple | np.ndarray) else sequences
        chosen = [i for i in ids if each[i] is not None]
        for i in chosen:
            self._generators[i] = np.random.Generator(np.random.PCG64(sequences[i]))
            self.entropies[i] = _number(sequences[i])
        self._next[chosen] = AHEAD
        self._connect(chosen)

    def uniform(self, ids: np.ndarray, low, high, n: int) -> np.ndarray:
        """n numbers of each generator in `ids` between low and high, (len(ids), n): as `Generator.uniform` has them."""
        drawn = self._drawn(ids, n)
        drawn *= np.subtract(high, low)
        drawn += low
        return drawn

    def _drawn(self, ids: np.ndarray, n: int) -> np.ndarray:
        """n numbers of each generator from 0 to below 1, of those that were drawn ahead while they last."""
        if n > AHEAD or not self._looks_ahead:
            self._rewind(ids)
            return _filled(self._uniform, ids, n)
        first = self._next[ids]
        short = np.flatnonzero(first + n > AHEAD)
        for k in short:
            i, at = ids[k], first[k]
            row, left = self._ahead[i], AHEAD - at
            row[:left] = row[at:]
            self._uniform[i](None, np.float64, row[left:])
        first[short] = 0
        self._next[ids] = first + n
        return self._ahead[ids[:, None], first[:, None] + np.arange(n)]

    def _rewind(self, ids) -> None:
        """Put generators back to where their numbers are used up; each number is one step of PCG64."""
        for i in ids if (self._next[ids] < AHEAD).any() else ():
            left = AHEAD - int(self._next[i])
            if left:
                generator: Any = self._generators[i].bit_generator
                half = {name: generator.state[name] for name in ("has_uint32", "uinteger")}
                generator.advance(PERIOD - left)  # forgets the half that a draw of 32 bits has left
                generator.state = generator.state | half
                self._next[i] = AHEAD

    def normal(self, ids: np.ndarray, n: int) -> np.ndarray:
        """n numbers of the standard normal distribution of each generator in `ids`, (len(ids), n)."""
        self._rewind(ids)
        self._looks_ahead = False
        return _filled(self._normal, ids, n)

    def integers(self, ids: np.ndarray, low: int, high: int, n: int) -> np.ndarray:
        """n whole numbers of each generator in `ids`, from low to below high, (len(ids), n)."""
        return np.stack([self[i].integers(low, high, n) for i in ids]) if len(ids) else np.empty((0, n), np.int64)

    def __getitem__(self, i: int) -> np.random.Generator:
        """The generator of a world, for any kind of number."""
        self._rewind(np.array([i]))
        self._looks_ahead = False
        return self._generators[i]

    @property
    def generators(self) -> list[np.random.Generator]:
        """All generators."""
        self._rewind(np.arange(len(self)))
        return self._generators

    def __len__(self) -> int:
        return len(self._generators)

    def __getstate__(self):
        return {"generators": self.generators, "entropies": self.entropies}

    def __setstate__(self, state):
        self._generators, self.entropies = state["generators"], state["entropies"]
        self._begin()


def _filled(draw: list, ids: np.ndarray, n: int) -> np.ndarray:
    """n numbers of each generator, by its method, (len(ids), n)."""
    drawn = np.empty((len(ids), n))
    for i, row in zip(ids, drawn, strict=True):
        draw[i](None, np.float64, row)
    return drawn


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
