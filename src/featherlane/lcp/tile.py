"""W problems of one structure in the lanes of one record: its memory, loaded from a batch and stored to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from featherlane.engine.lanes import Record, Stage, allocate
from featherlane.engine.lanes.record import address
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.solver.lcp.fields import PROBLEM
from featherlane.engine.solver.lcp.lane_memory import DOUBT, RESULTS, load_lanes, store_lanes
from featherlane.errors import ArgumentError

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Structure:
    """Common structure of the problems of a batch.

    Attributes:
        n: rows.
        findex: (n,) row whose solution scales a row's bounds, -1: none.
        columns: columns of Y if A = Y Y^T + diag(cfm); 0: A is dense.
    """

    n: int
    findex: tuple[int, ...]
    columns: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """Returns the capacities of a record."""
        n, m = self.n, self.columns
        sizes = {"nlcp": n, "nlcpcol": m, "nlcpY": n * m, "nlcpz": m, "nlcpA": 0 if m else n * n}
        sizes |= {"nrecord": 0, "want_history": 0}
        # pivoting, which needs a dense A, solves one problem at a time: its rows, a multiple of eight
        one = 0 if m else (n // 8 + 1) * 8
        return sizes | {"nlcpone": one, "nlcppair": one * one}


class Tile:
    """A record for W problems, with copies from and to a batch.

    Args:
        structure: common structure of the problems.
        width: W.

    Attributes:
        load: load(first, count) copies problems first to first + count - 1 of the batch to the lanes.
        store: store(first, count) copies their results from the lanes to the batch.
    """

    def __init__(self, structure: Structure, width: int):
        n, sizes = structure.n, structure.sizes
        self.arrays = arrays = allocate(PROBLEM, sizes, width=width, dtype=np.float64)
        arrays["lcp.n"][0], arrays["lcp.dense"][0] = n, structure.columns == 0
        arrays["lcp.findex"][:n] = structure.findex
        if structure.columns:
            arrays["lcp.col"][:] = np.arange(structure.columns)
            arrays["lcp.colnum"][:n] = structure.columns
            arrays["lcp.rowadr"][:n] = structure.columns * np.arange(n)
        self.record = Record(PROBLEM, sizes, arrays, width=width, dtype=np.float64)
        self.load, self.store = self.bind(load_lanes), self.bind(store_lanes)

    def serve(self, given: Arrays, results: Arrays, parameters: Sequence[float]) -> None:
        """Selects the batch to work on; the caller keeps its memory alive.

        Args:
            given: field -> (N, rows) numbers of all problems, float64; problems may share memory.
            results: field -> (N, rows) memory for the results.
            parameters: rows of lcp.parameter.
        """
        self.arrays["lcp_memory"][:] = 0
        self._list(0, given)
        self._list(RESULTS, results)
        self.arrays["lcp.parameter"][: len(parameters)] = np.reshape(parameters, (-1, 1))

    def _list(self, at: int, batch: Arrays) -> None:
        """Writes a list of copies to lcp_memory, from index `at` on, see lane_memory.py."""
        for name, array in batch.items():
            if array.size == 0:
                continue
            if array.dtype != np.float64 or (array.shape[1] > 1 and array.strides[1] != array.itemsize):
                raise ArgumentError(f"{name}: got other rows, allowed are contiguous rows of float64")
            stride = array.strides[0] // array.itemsize
            self.arrays["lcp_memory"][at : at + 4] = address(self.arrays[name]), address(array), array.shape[1], stride
            at += 4

    @property
    def doubtful(self) -> bool:
        """Returns whether a loaded matrix is not finite, or not symmetric."""
        return bool(self.arrays["lcp_memory"][DOUBT])

    def bind(self, stage: Stage, check: int = 0) -> Callable[..., None]:
        """Returns the stage as a function of its integers, on this tile; `check` is that of `Library.bind`."""
        return library().bind(stage, self.record, check=check)


@functools.lru_cache(maxsize=8)
def tile_of_thread(structure: Structure, width: int, mode: str, thread: int) -> Tile:
    """Returns a tile for this thread, cached between calls: creating one takes a millisecond."""
    return Tile(structure, width)
