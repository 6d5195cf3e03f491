"""Locates the first sign change of an event function g in each world.

A step over which g changes its sign is not accepted.  Steps of other sizes from the same state bracket the sign change,
by regula falsi of the Illinois type, until the bracket is as short as the smallest step; its end is accepted.
A world that ended at an event is past the sign change by up to the smallest step.  If the user then reverses its
velocity, g changes its sign again at once.  Therefore a sign change at the start is not an event.
Source: Dowell and Jarratt, A modified regula falsi method for computing the root of an equation, 1971.
"""

from __future__ import annotations

import numpy as np

INSIDE = 0.01  # a trial size keeps this part of the bracket away from its ends, so that each of them moves


STANDS = 10  # a sign change within so many smallest steps of the start is not an event


def crosses(before: np.ndarray, after: np.ndarray, direction: int) -> np.ndarray:
    """Returns where the sign differs; a value that starts at 0 has no sign.

    Args:
        before, after: (k,) g.
        direction: 1: g increases, -1: g decreases, 0: both.
    """
    rises, falls = (before < 0.0) & (after >= 0.0), (before > 0.0) & (after <= 0.0)
    return rises & (direction >= 0) | falls & (direction <= 0)


class EventSearch:
    """Holds g of each world's last accepted state, and the bracket of its sign change.

    Args:
        value: (n,) g at the start.
        direction: as for `crosses`.

    Attributes:
        bracketing: (n,) bool, the worlds with a bracket.
    """

    def __init__(self, value: np.ndarray, direction: int):
        n = len(value)
        self.direction, self._at_start = direction, np.ones(n, bool)
        self.value, self.bracketing = value, np.zeros(n, bool)
        self._ends, self._values = np.zeros((2, n)), np.zeros((2, n))  # step sizes [s] and g at both ends of a bracket
        self._moved = np.full(n, -1)  # the end that moved last

    def attempted(self, ids: np.ndarray, h: np.ndarray, shortest: np.ndarray) -> np.ndarray:
        """Returns the sizes of the next steps [s]: inside a bracket, at the end of a short one, or h without one.

        Args:
            ids: (k,) the worlds.
            h: (k,) sizes for worlds without a bracket [s].
            shortest: (k,) lengths of brackets that are not divided [s].
        """
        (low, high), (a, b) = self._ends[:, ids], self._values[:, ids]
        part = np.divide(a, a - b, out=np.full(len(ids), 0.5), where=a != b)
        inside = low + (high - low) * np.clip(part, INSIDE, 1.0 - INSIDE)
        return np.where(self.bracketing[ids], np.where(high - low <= shortest, high, inside), h)

    def judge(
        self, ids: np.ndarray, h: np.ndarray, value: np.ndarray, shortest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Updates the brackets of worlds after their steps.

        Args:
            ids: (k,) the worlds.
            h: (k,) sizes of the steps [s].
            value: (k,) g after them.
            shortest: (k,) as for `attempted`.

        Returns:
            (k,) bool, the steps to accept, and those of them that end at the event.
        """
        crossed = crosses(self.value[ids], value, self.direction)
        inside = crossed | self.bracketing[ids]
        new = ids[crossed & ~self.bracketing[ids]]
        self._ends[0, new], self._values[0, new], self._moved[new] = 0.0, self.value[new], -1
        at, end = ids[inside], crossed[inside].astype(int)
        self._values[1 - end, at] *= np.where(self._moved[at] == end, 0.5, 1.0)
        self._ends[end, at], self._values[end, at], self._moved[at] = h[inside], value[inside], end
        ends = crossed & (self._ends[1, ids] - self._ends[0, ids] <= shortest)
        self.bracketing[ids] = inside & ~ends
        accepted = ends | ~inside
        self.value[ids[accepted]] = value[accepted]
        stands = self._at_start[ids] & (self._ends[1, ids] <= STANDS * shortest)
        self._at_start[ids[accepted]] = False
        return accepted, ends & ~stands
