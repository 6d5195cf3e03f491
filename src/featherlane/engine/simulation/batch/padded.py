"""Groups worlds of several models in one batch: index arrays of the groups, and arrays that all groups share.

    worlds of the first model     | qpos ............. |
                                  | qpos ............. |
    worlds of the second model    | qpos ...  0  0  0  |

An array has a row per world, as wide as the widest model needs.  Each group stores its rows in its part of the array;
unused entries at the end of a row are zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from featherlane.engine.lanes import Field
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.write_detection import TrackedArray
from featherlane.engine.simulation.tile.fields import DATA


def declared(name: str) -> Field:
    """Returns the declaration of a field of worlds or of models, which have different names."""
    return DATA[name] if name in DATA else MODEL[name]


class PaddedArrays:
    """Holds padded arrays by name, (nworld, n, ...), allocated at the first access.

    Args:
        counts: worlds of each group.
        sizes: sizes of each group's fields, by name.
        dtype: dtype of all arrays except fields that are float64 at every precision.

    Attributes:
        starts: (ngroup + 1,) the first row of each group, and the end of the last one.
        group: (nworld,) the group of each world.
    """

    def __init__(self, counts: Sequence[int], sizes: Sequence[Mapping[str, int]], dtype: np.dtype):
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        self.group = np.repeat(np.arange(len(counts)), counts)
        self.sizes, self.dtype, self._arrays = list(sizes), dtype, dict[str, np.ndarray]()
        self._tracked: dict[str, TrackedArray] = {}

    def split(self, chosen: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Returns the groups of these worlds, the worlds' numbers in the group, and their indices in `chosen`."""
        group = self.group[chosen]
        indices = [(k, np.flatnonzero(group == k)) for k in np.unique(group).tolist()]
        return [(k, chosen[at] - self.starts[k], at) for k, at in indices]

    def dims(self, name: str) -> tuple[int, ...]:
        """Returns the smallest shape of a world's field that contains the shape in each group."""
        shapes = [declared(name).dims(sizes) for sizes in self.sizes]
        return tuple(int(n) for n in np.max(shapes, axis=0))

    def array(self, name: str) -> np.ndarray:
        """Returns the padded array of a field."""
        if name not in self._arrays:
            shape = int(self.starts[-1]), *self.dims(name)
            self._arrays[name] = np.zeros(shape, declared(name).stored_as(self.dtype))
        return self._arrays[name]

    def tracked(self, field: Field) -> TrackedArray:
        """Returns the padded array of a field with the state of its user references."""
        if field.name not in self._tracked:
            self._tracked[field.name] = TrackedArray(self.array(field.name))
        return self._tracked[field.name]

    def cut(self, name: str, group: int, rows: np.ndarray) -> np.ndarray:
        """Returns a view of the used entries of padded rows (..., n, ...) of a group's worlds."""
        field = declared(name)
        return rows if field.is_number else rows[(..., *(slice(n) for n in field.dims(self.sizes[group])))]

    def part(self, name: str, group: int, rows: np.ndarray) -> np.ndarray:
        """Returns a view of the used entries of a group's worlds, of padded rows (nworld, n, ...) of all worlds."""
        return self.cut(name, group, rows[self.starts[group] : self.starts[group + 1]])

    def mask(self, name: str) -> np.ndarray:
        """Returns (nworld, n, ...): which entries of a field are used."""
        mask = np.zeros((self.starts[-1], *self.dims(name)), bool)
        for group in range(len(self.sizes)):
            self.part(name, group, mask)[...] = True
        return mask

    def rows_of(self, field: Field, group: int) -> np.ndarray:
        """Returns a group's rows (nworld, n, ...) of a field in the array that all groups share."""
        return self.part(field.name, group, self.array(field.name))
