"""From the 64-bit words of PCG64 to uniform, normal and whole numbers, for many generators at once: to NumPy's bits.

A call of NumPy's `Generator` costs half a microsecond however few numbers it draws; these work on arrays of words that
were drawn ahead, one row for each generator.  Normal numbers come of one word each in 99.3 of 100 draws; the others,
in the wedges and the tail, are left to NumPy.
Source: NumPy, random/src/distributions/distributions.c (`random_standard_normal`, `next_double`, Lemire's method for
whole numbers); Marsaglia, Tsang, The ziggurat method for generating random variables, 2000, whose tables are read from
NumPy itself.  NumPy promises no streams across versions, so `agrees` asks it once.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64's state
PERIOD = 2**128
UNIT = 2.0**-53
LOW52, LOW32 = 2**52 - 1, np.uint64(2**32 - 1)
STRIPS = 256  # of the ziggurat; with the sign above, 9 bits of a word
SPARE = 64  # a bound of words is this much lower than NumPy's may be: what lies between is left to NumPy
ASKED = 512  # words about which NumPy is asked


def units(words: np.ndarray) -> np.ndarray:
    """Uniform numbers from 0 to below 1, one for each word, as `Generator.random` has them."""
    return (words >> np.uint64(11)) * UNIT


def normals(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the standard normal distribution, one for each word, and which words suffice for theirs."""
    scale, bound = ziggurat()
    word = words.view(np.int64)
    strip, size = word & (2 * STRIPS - 1), (word >> 9) & LOW52
    return scale.take(strip) * size, size < bound.take(strip)


def least_accepted(count: int) -> int:
    """Below `count` by Lemire's method: the low half of word * count from which a word of 32 bits is taken."""
    return (2**32 - count) % count


@functools.cache
def ziggurat() -> tuple[np.ndarray, np.ndarray]:
    """Widths of the strips in units of 2^-52, those with a sign after those without, and sizes below which a word
    lies in its strip whatever comes next.

    A word of size 1 is in its strip always, so that NumPy gives the width.  Strip 0 has the tail, strip 1 the top.
    """
    told = _Oracle()
    width = np.array([told.normal((1 << 9) | strip) for strip in range(STRIPS)])
    inner = np.concatenate([[width[-1] / width[0], 0.0], width[1:-1] / width[2:]])
    bound = np.maximum((inner * 2.0**52).astype(np.int64) - SPARE, 0)
    return np.concatenate([width, -width]), np.concatenate([bound, bound])


@functools.cache
def agrees() -> bool:
    """Whether NumPy makes of words what is made of them here."""
    told, words = _Oracle(), np.random.PCG64(0).random_raw(ASKED)
    drawn, sure = normals(words)
    normal = np.array([told.normal(word) for word in words])
    count = 10**9  # one that refuses words now and then
    products = np.stack([words & LOW32, words >> np.uint64(32)], axis=1).ravel() * np.uint64(count)
    taken = products[(products & LOW32) >= least_accepted(count)] >> np.uint64(32)
    return bool(
        sure.mean() > 0.9
        and (drawn == normal)[sure].all()
        and (units(words) == np.random.default_rng(0).random(ASKED)).all()
        and (taken == np.random.default_rng(0).integers(0, count, len(taken))).all()
    )


class _Oracle:
    """NumPy's generator, made to find a word of one's choice next."""

    def __init__(self):
        self.source: Any = np.random.PCG64(0)
        self.generator, self.state = np.random.Generator(self.source), self.source.state
        self.inverse = pow(MULTIPLIER, -1, PERIOD)

    def normal(self, word) -> float:
        """What comes of a word, and where it does not suffice of others."""
        # the state whose successor has 0 in its high half, which then rotates nothing, and the word in the low one
        before = (int(word) - self.state["state"]["inc"]) * self.inverse % PERIOD
        self.source.state = self.state | {"state": self.state["state"] | {"state": before}}
        return self.generator.standard_normal()
