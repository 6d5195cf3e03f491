"""W problems of one structure in the lanes of one record: its memory, filled from a batch and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..lanes import Record, Stage, allocate
from ..lanes.record import address
from ..simulation.library import library
from ..solver.lcp.fields import PROBLEM
from ..solver.lcp.lane_memory import RESULTS, load_lanes, store_lanes

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Structure:
    """What the problems of a batch have in common.

    Attributes:
        n: rows.
        findex: (n,) row whose solution scales a row's bounds, -1: none.
        columns: columns of Y where A = Y Y^T + diag(cfm); 0: A is dense.
    """

    n: int
    findex: tuple[int, ...]
    columns: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """Capacities of a record."""
        n, m, one = self.n, self.columns, (self.n // 8 + 1) * 8
        sizes = {"nlcp": n, "nlcpcol": m, "nlcpY": n * m, "nlcpz": m, "nlcpA": 0 if m else n * n}
        return sizes | ({"nlcpone": 0, "nlcppair": 0} if m else {"nlcpone": one, "nlcppair": one * one})


class Tile:
    """A record for W problems, which it copies from a batch and back.

    Args:
        structure: what the problems have in common.
        width: W.
        parameters: rows of lcp_parameter.
        given: field -> (N, rows) numbers of all problems, float64; an array whose problems are all the same memory is
            fine.  Fields that are not given hold zeros.
        results: field -> (N, rows) memory for what is found.

    Attributes:
        load: function of the first problem and how many.
        store: likewise.
    """

    def __init__(self, structure: Structure, width: int, parameters, given: Arrays, results: Arrays):
        self.structure = structure
        n, sizes = structure.n, structure.sizes
        self.arrays = arrays = allocate(PROBLEM, sizes, width, np.float64)
        arrays["lcp_n"][0], arrays["lcp_dense"][0] = n, structure.columns == 0
        arrays["lcp_findex"][:n] = structure.findex
        if structure.columns:
            arrays["lcp_col"][:] = np.arange(structure.columns)
            arrays["lcp_colnum"][:n] = structure.columns
            arrays["lcp_rowadr"][:n] = structure.columns * np.arange(n)
        arrays["lcp_parameter"][: len(parameters)] = np.reshape(parameters, (-1, 1))
        self._lists = self._list(0, given), self._list(RESULTS, results)
        self.record = Record(PROBLEM, sizes, arrays, width, np.float64)
        self.load, self.store = self.bind(load_lanes), self.bind(store_lanes)

    def _list(self, at: int, batch: Arrays) -> Arrays:
        """Write a list of copies; returns the arrays, whose memory it names."""
        for name, array in batch.items():
            if array.size == 0:
                continue
            if array.dtype != np.float64 or (array.shape[1] > 1 and array.strides[1] != array.itemsize):
                raise ValueError(f"{name}: contiguous rows of float64 are needed")
            stride = array.strides[0] // array.itemsize
            self.arrays["lcp_memory"][at : at + 4] = address(self.arrays[name]), address(array), array.shape[1], stride
            at += 4
        return batch

    def bind(self, stage: Stage) -> Callable[..., None]:
        """The stage as a function of its whole numbers, on this tile."""
        return library().bind(stage, self.record)
