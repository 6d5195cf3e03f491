"""A generator of random numbers for each world, so that a world's episodes are its own whatever the others do.

World i of an environment with seed s draws what `numpy.random.default_rng(s + i)` draws, which is what Gymnasium's
environment i of a vector with that seed draws: the same numbers, in the order in which it asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from featherlane.environments.raw_numbers import LOW32, PERIOD, agrees, least_accepted, normals, units
from featherlane.errors import ModelError

MOST = 2**64
AHEAD = 128  # words that are drawn at once
MOST_AHEAD = 1024  # numbers of a call beyond which nothing is gained by that
HALF = np.uint64(32)


class RandomStreams:
    """n generators.

    Args:
        n: how many.
        seed: of the first; generator i has seed + i.  A list has one each, None among them: a fresh one.  None: fresh
            ones for all.

    Words of 64 bits are drawn some at a time for each generator, and numbers are made of them for all worlds at once:
    a call of NumPy's costs as much as ten numbers do.  From when somebody is handed a generator, NumPy draws all.

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
        self._held = not agrees()  # generators are where their numbers are used up, and stay there
        self._ahead, self._next = np.empty((n, AHEAD), np.uint64), np.full(n, AHEAD)
        self._half, self._has_half = np.zeros(n, np.uint64), np.zeros(n, bool)  # what a number of 32 bits has left

    def reseed(self, ids: np.ndarray, seed: int | Sequence[int | None] | None) -> None:
        """Start the generators `ids` anew; None for a seed, or in a list of them, leaves them as they are."""
        if seed is None:
            return
        sequences = seeds(len(self._generators), seed)
        each = seed if _is_list(seed) else sequences
        chosen = [i for i in ids if each[i] is not None]
        for i in chosen:
            self._generators[i] = np.random.Generator(np.random.PCG64(sequences[i]))
            self.entropies[i] = _number(sequences[i])
        self._next[chosen], self._has_half[chosen] = self._ahead.shape[1], False

    # ---- numbers ---------------------------------------------------------------------------------------------------
    def uniform(self, ids: np.ndarray, low, high, n: int) -> np.ndarray:
        """n numbers of each generator in `ids` between low and high, (len(ids), n): as `Generator.uniform` has them."""
        if self._held:
            drawn = self._numpys(ids, n, lambda generator: generator.random(n))
        else:
            drawn = units(self._words(ids, n))
        return self._between(drawn, low, high)

    @staticmethod
    def _between(drawn: np.ndarray, low, high) -> np.ndarray:
        """Numbers from 0 to 1, from low to high."""
        drawn *= high - low if isinstance(high, float) else np.subtract(high, low)
        drawn += low
        return drawn

    def normal(self, ids: np.ndarray, n: int) -> np.ndarray:
        """n numbers of the standard normal distribution of each generator in `ids`, (len(ids), n)."""
        if self._held:
            return self._numpys(ids, n, lambda generator: generator.standard_normal(n))
        return self._normals(ids, self._words(ids, n))

    def _normals(self, ids: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Of the last words that were used; NumPy is asked where one does not suffice."""
        drawn, sure = normals(words)
        if not sure.all():
            n = words.shape[1]
            for k in np.flatnonzero(~sure.all(axis=1)):
                drawn[k] = self._wound_back(ids[k], n).standard_normal(n)
        return drawn

    def uniform_then_normal(self, ids: np.ndarray, low, high, n: int, more: int) -> tuple[np.ndarray, np.ndarray]:
        """n numbers as `uniform` has them, and after them `more` as `normal` has them, in about half of the time."""
        if self._held:
            return self.uniform(ids, low, high, n), self.normal(ids, more)
        words = self._words(ids, n + more)
        return self._between(units(words[:, :n]), low, high), self._normals(ids, words[:, n:])

    def integers(self, ids: np.ndarray, low: int, high: int, n: int) -> np.ndarray:
        """n whole numbers of each generator in `ids`, from low to below high, (len(ids), n)."""
        count = high - low
        if self._held or not 1 < count < 2**32:
            return self._numpys(ids, n, lambda generator: generator.integers(low, high, n), np.int64)
        drawn = np.empty((len(ids), n), np.int64)
        for column in drawn.T:
            column[:] = self._below(ids, count)
        drawn += low
        return drawn

    def _below(self, ids: np.ndarray, count: int) -> np.ndarray:
        """A whole number below `count` of each generator, by Lemire's method."""
        products, missing = np.empty(len(ids), np.uint64), np.arange(len(ids))
        while len(missing):
            products[missing] = self._half_words(ids[missing]) * np.uint64(count)
            missing = missing[(products[missing] & LOW32) < least_accepted(count)]
        return products >> HALF

    # ---- words -----------------------------------------------------------------------------------------------------
    def _words(self, ids: np.ndarray, n: int) -> np.ndarray:
        """The next n words of each generator, (len(ids), n)."""
        if n > self._ahead.shape[1]:
            if n > MOST_AHEAD:
                rows = [self._wound_back(i).bit_generator.random_raw(n) for i in ids]
                return np.stack(rows) if rows else np.empty((0, n), np.uint64)
            self._look_further(2 * n)
        first, width = self._next.take(ids), self._ahead.shape[1]
        last = first + n
        if len(ids) and np.maximum.reduce(last) > width:
            for k in np.flatnonzero(last > width):
                row, at = self._ahead[ids[k]], first[k]
                row[: width - at] = row[at:]
                row[width - at :] = self._generators[ids[k]].bit_generator.random_raw(int(at))
                first[k], last[k] = 0, n
        self._next[ids] = last
        first += ids * width
        return self._ahead.reshape(-1).take(first[:, None] + np.arange(n))

    def _half_words(self, ids: np.ndarray) -> np.ndarray:
        """The next 32 bits of each generator, (len(ids),): the low half of a word, and then the high one."""
        words, fresh = self._half[ids], ~self._has_half[ids]
        if fresh.any():
            drawn = self._words(ids[fresh], 1)[:, 0]
            words[fresh], self._half[ids[fresh]] = drawn & LOW32, drawn >> HALF
        self._has_half[ids] = fresh
        return words

    def _look_further(self, width: int) -> None:
        """Let more words be drawn ahead."""
        old, n = self._ahead, len(self)
        self._ahead = np.empty((n, width), np.uint64)
        self._ahead[:, width - old.shape[1] :] = old
        self._next += width - old.shape[1]

    def _wound_back(self, i: int, n: int = 0) -> Any:
        """A generator before its last n words that were used, with none drawn ahead."""
        generator: Any = self._generators[i]
        width = self._ahead.shape[1]
        words = width - int(self._next[i]) + n
        if words:
            generator.bit_generator.advance(PERIOD - words)  # each word is one step of PCG64
            self._next[i] = width
        return generator

    # ---- generators ------------------------------------------------------------------------------------------------
    def _in_step(self, i: int) -> np.random.Generator:
        """A generator, where its numbers are used up."""
        if not self._held:
            source = self._wound_back(i).bit_generator
            source.state = source.state | {"has_uint32": int(self._has_half[i]), "uinteger": int(self._half[i])}
        return self._generators[i]

    def _take_over(self, i: int) -> None:
        """Go on from where a generator is."""
        kept: Any = self._generators[i].bit_generator.state
        self._half[i], self._has_half[i] = kept["uinteger"], kept["has_uint32"]

    def _numpys(self, ids: np.ndarray, n: int, draw, dtype: type = np.float64) -> np.ndarray:
        """What NumPy draws for each generator, (len(ids), n)."""
        drawn = np.empty((len(ids), n), dtype)
        for k, i in enumerate(ids):
            drawn[k] = draw(self._in_step(i))
            if not self._held:
                self._take_over(i)
        return drawn

    def _hold(self) -> list[np.random.Generator]:
        """All generators, where their numbers are used up; from now on NumPy draws all."""
        for i in range(len(self)):
            self._in_step(i)
        self._held = True
        return self._generators

    def __getitem__(self, i: int) -> np.random.Generator:
        """The generator of a world, for any kind of number."""
        return self._hold()[i]

    @property
    def generators(self) -> list[np.random.Generator]:
        """All generators."""
        return self._hold()

    def __len__(self) -> int:
        return len(self._generators)

    def __getstate__(self):
        generators = [self._in_step(i) for i in range(len(self))]
        return {"generators": generators, "entropies": self.entropies, "held": self._held}

    def __setstate__(self, state):
        self._generators, self.entropies = state["generators"], state["entropies"]
        self._begin()
        self._held = self._held or state["held"]
        for i in range(len(self)):
            self._take_over(i)


def seeds(n: int, seed: int | Sequence[int | None] | None) -> list[np.random.SeedSequence]:
    """A seed sequence for each of n generators.

    Raises:
        ModelError: a seed that is no whole number from 0, or a list of another length.
    """
    if seed is None:
        fresh = np.random.SeedSequence().generate_state(n, np.uint64)
        return [np.random.SeedSequence(int(entropy)) for entropy in fresh]
    if _is_list(seed):
        if len(seed) != n:
            raise ModelError(f"seed: got {len(seed)} seeds, allowed are {n}, one for each world")
        each = list(seed)
    else:
        first = _checked(seed)
        each = range(first, first + n)
    return [np.random.SeedSequence(None if s is None else _checked(s)) for s in each]


def _is_list(seed: object) -> TypeGuard[Sequence]:
    """Is it a seed for each world?  An array of no axes is none, and no number either."""
    return isinstance(seed, list | tuple) or (isinstance(seed, np.ndarray) and seed.ndim > 0)


def _number(sequence: np.random.SeedSequence) -> int:
    """What the sequence was started from, which starts it anew."""
    return int(sequence.entropy)  # pyright: ignore[reportArgumentType]


def _checked(seed) -> int:
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, int | np.integer) or not 0 <= seed < MOST:
        raise ModelError(f"seed: got {seed!r}, allowed is a whole number from 0, a list of them, or None")
    return int(seed)
