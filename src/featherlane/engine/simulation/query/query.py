"""Defines `Query`, a query about the present states of a batch's worlds, which it does not change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from featherlane.engine.lanes import Stage
from featherlane.engine.simulation.tile.workspace import Workspace


class Query(ABC):
    """Holds checked arguments as rows that are loaded into tiles, and rows of results.

    Attributes:
        loop: the stage that loops over tiles.
        reads: fields of a world that the result depends on.
        number: queries per world, which are steps of the loop.
        brought: rows (n, number, ...) of the arguments for n worlds, by field.
        taken: rows (n, number, ...) of the results, by field.
        shared: arguments that all worlds share in a tile, by field: its first value, or an array of its first values.
        sizes: sizes of the loop's own record.
        tables: ints of the loop's own record that all worlds share, by field.
        single: whether each world has one query, and results have no axis for it.
        fills_lanes: whether a world's queries fill the lanes of a tile; otherwise each lane holds another world.
        is_kept: whether the query is used again with rows in the same memory, and the same sizes.
    """

    loop: Stage
    reads: tuple[str, ...] = ("qpos", "mocap_pos", "mocap_quat")
    number: int
    single: bool = False
    fills_lanes: bool = False
    is_kept: bool = False
    brought: Mapping[str, np.ndarray] = MappingProxyType({})
    taken: Mapping[str, np.ndarray] = MappingProxyType({})
    shared: Mapping[str, float | np.ndarray] = MappingProxyType({})
    sizes: Mapping[str, int] = MappingProxyType({})
    tables: Mapping[str, np.ndarray] = MappingProxyType({})

    @abstractmethod
    def answer(self) -> Any:
        """Returns the results in the form that users get."""

    def enter(self, workspace: Workspace) -> None:
        """Sets the arguments that all worlds share in a tile."""
        for name, values in self.shared.items():
            at = slice(len(values)) if isinstance(values, np.ndarray) else 0
            workspace.arrays[name][at] = values

    def shaped(self, rows: np.ndarray) -> Any:
        """Returns results (n, number, ...) of n worlds in the form that users get; a number if no axis is left."""
        return rows[:, 0] if self.single else rows[()]
