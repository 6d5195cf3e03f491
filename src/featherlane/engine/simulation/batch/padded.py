"""Allocates arrays that batches of different models share: a row per world, as wide as the widest model needs.

    worlds of the first model     | qpos ............. |
                                  | qpos ............. |
    worlds of the second model    | qpos ...  0  0  0  |

Each batch stores its rows in its part of the array; unused entries at the end of a row are zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from featherlane.engine.lanes import Field, Layout
from featherlane.engine.simulation.tile.fields import DATA


class PaddedArrays:
    """Holds padded arrays by name, (nworld, n, ...), allocated at the first access.

    Args:
        counts: worlds of each group.
        sizes: sizes of each group's fields, by name.
        dtype: dtype of all arrays except fields that are float64 at every precision.
        layout: the fields: those of worlds, or those of models.

    Attributes:
        starts: (ngroup + 1,) the first row of each group, and the end of the last one.
        arrays: the allocated arrays by field.
    """

    def __init__(
        self, counts: Sequence[int], sizes: Sequence[Mapping[str, int]], dtype: np.dtype, layout: Layout = DATA
    ):
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        self.sizes, self.dtype, self.layout = list(sizes), dtype, layout
        self.arrays: dict[str, np.ndarray] = {}

    def dims(self, name: str) -> list[tuple[int, ...]]:
        """Returns the shape of a field in each group."""
        return [self.layout[name].dims(sizes) for sizes in self.sizes]

    def padded_shape(self, name: str) -> tuple[int, ...]:
        """Returns the smallest shape that contains the shape of each group."""
        return tuple(int(n) for n in np.max(self.dims(name), axis=0))

    def zeros(self, name: str, lead: tuple[int, ...]) -> np.ndarray:
        """Returns zeros of a field's padded shape behind leading axes."""
        return np.zeros((*lead, *self.padded_shape(name)), self.layout[name].stored_as(self.dtype))

    def array(self, name: str) -> np.ndarray:
        """Returns the padded array of a field."""
        if name not in self.arrays:
            self.arrays[name] = self.zeros(name, (int(self.starts[-1]),))
        return self.arrays[name]

    def cut(self, name: str, group: int, rows: np.ndarray) -> np.ndarray:
        """Returns a view of the used entries of padded rows (..., n, ...) of a group's worlds."""
        dims = self.dims(name)[group]
        return rows[(..., *(slice(n) for n in dims))]

    def part(self, name: str, group: int, rows: np.ndarray) -> np.ndarray:
        """Returns a view of the used entries of a group's worlds, of padded rows (nworld, n, ...) of all worlds."""
        return self.cut(name, group, rows[self.starts[group] : self.starts[group + 1]])

    def mask(self, name: str) -> np.ndarray:
        """Returns (nworld, n, ...): which entries of a field are used."""
        mask = np.zeros((self.starts[-1], *self.padded_shape(name)), bool)
        for group in range(len(self.sizes)):
            self.part(name, group, mask)[...] = True
        return mask

    def rows_of(self, field: Field, group: int) -> np.ndarray:
        """Returns a group's rows (nworld, n, ...) of a field in the array that all groups share."""
        return self.part(field.name, group, self.array(field.name))
