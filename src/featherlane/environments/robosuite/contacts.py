"""`Contacts`: which pairs of groups of geoms are in contact, in all worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from featherlane import Batch, Model

MOST = 63  # pairs: bits of an int64


class Contacts:
    """Collects pairs of groups of geoms, and tests them for contact.

    Attributes:
        names: of the geoms of both groups; None in place of the second group: any geom.
    """

    def __init__(self) -> None:
        self.names: list[tuple[list[str], list[str] | None]] = []

    def between(self, first: Sequence[str], second: Sequence[str] | None) -> int:
        """Returns the column of a pair of groups."""
        assert len(self.names) < MOST
        self.names.append((list(first), None if second is None else list(second)))
        return len(self.names) - 1

    def pads(self, gripper: Any, geoms: Sequence[str]) -> list[list[int]]:
        """Returns the columns of both fingers with geoms, for each gripper of a dict, or for one gripper."""
        grippers = list(gripper.values()) if isinstance(gripper, dict) else [gripper]
        sides = "left_fingerpad", "right_fingerpad"
        return [[self.between(each.important_geoms[side], geoms) for side in sides] for each in grippers]

    def prepare(self, model: Model) -> None:
        """Stores in which groups each geom is, as bits."""
        self.bits, known = np.zeros((2, model.ngeom), np.int64), set(model.names("geom"))
        for k, pair in enumerate(self.names):
            for side, names in enumerate(pair):
                for name in names or ():
                    if name in known:  # robosuite also lists geoms that some grippers lack
                        self.bits[side, model.geom(name).id] |= 1 << k
                if names is None:
                    self.bits[side] |= 1 << k

    def present(self, env: Any) -> np.ndarray:
        """Returns which pairs are in contact in a live environment, (k,) bool."""
        return np.array([env.check_contact(first, second) for first, second in self.names], bool)

    def of(self, worlds: Batch, ids: np.ndarray | None) -> np.ndarray:
        """Returns which pairs are in contact in the present state, (n, k) bool."""
        found = worlds.contacts(output="geom", ids=ids)
        assert found.geom is not None
        (a, b), (first, second) = np.moveaxis(found.geom, 2, 0), self.bits
        hits = np.where(np.arange(a.shape[1]) < found.found[:, None], first[a] & second[b] | first[b] & second[a], 0)
        return np.bitwise_or.reduce(hits, axis=1)[:, None] >> np.arange(len(self.names)) & 1 > 0
