"""Arrays that batches of different models share: a row per world, as wide as the widest model needs.

    worlds of the first model     | qpos ............. |
                                  | qpos ............. |
    worlds of the second model    | qpos ...  0  0  0  |

Each batch keeps its rows in its own part; what is left over at the end of a row is zero, and means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from featherlane.simulation.tile.fields import DATA


class Rooms:
    """Padded arrays by name, (nworld, n, ...), made when somebody asks for them.

    Args:
        counts: worlds of each group.
        sizes: of each group's fields, by name.
        dtype: of all arrays but those of fields that are float64 at every precision.

    Attributes:
        starts: (ngroup + 1,) where each group's rows begin, and where the last one's end.
    """

    def __init__(self, counts: Sequence[int], sizes: Sequence[Mapping[str, int]], dtype: np.dtype):
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        self.sizes, self.dtype = list(sizes), dtype
        self._arrays: dict[str, np.ndarray] = {}

    def dims(self, name: str) -> list[tuple[int, ...]]:
        """The shape of a field in each group."""
        return [DATA[name].dims(sizes) for sizes in self.sizes]

    def padded(self, name: str) -> tuple[int, ...]:
        """A shape that each group's fits into."""
        return tuple(int(n) for n in np.max(self.dims(name), axis=0))

    def zeros(self, name: str, lead: tuple[int, ...]) -> np.ndarray:
        """Zeros of a field's padded shape behind other axes."""
        return np.zeros((*lead, *self.padded(name)), DATA[name].stored_as(self.dtype))

    def array(self, name: str) -> np.ndarray:
        """The padded array of a field."""
        if name not in self._arrays:
            self._arrays[name] = self.zeros(name, (int(self.starts[-1]),))
        return self._arrays[name]

    def cut(self, name: str, group: int, rows: np.ndarray) -> np.ndarray:
        """A view of padded rows (..., n, ...) of a group's worlds: what the group has of the field."""
        dims = self.dims(name)[group]
        return rows[(..., *(slice(n) for n in dims))]

    def rows(self, name: str, group: int) -> np.ndarray:
        """A group's part of the padded array of a field."""
        return self.cut(name, group, self.array(name)[self.starts[group] : self.starts[group + 1]])

    def mask(self, name: str) -> np.ndarray:
        """(nworld, n, ...) where the numbers of a field mean something."""
        mask = np.zeros((self.starts[-1], *self.padded(name)), bool)
        for group in range(len(self.sizes)):
            self.cut(name, group, mask[self.starts[group] : self.starts[group + 1]])[...] = True
        return mask


class Room:
    """A group's part of all these arrays."""

    def __init__(self, rooms: Rooms, group: int):
        self.rooms, self.group = rooms, group

    def rows(self, field) -> np.ndarray:
        """(nworld, n, ...) rows of a field for this group, in the array that all groups share."""
        return self.rooms.rows(field.name, self.group)
