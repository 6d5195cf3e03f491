"""W problems of one structure in the lanes of one record: their memory, filled and read a tile at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..lanes import Record, Stage, aligned, allocate
from ..simulation.library import library
from ..solver.lcp.fields import PROBLEM

VECTORS = ("lcp_diag", "lcp_b", "lcp_lo", "lcp_hi", "lcp_add")
ROWS, NUMBERS = ("lcp_x", "lcp_w", "lcp_y", "lcp_g"), ("lcp_status", "lcp_niter", "lcp_residual")


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
    def matrix(self) -> dict[str, int]:
        """Fields that hold A, and their rows."""
        n = self.n
        return {"lcp_Y": n * self.columns, "lcp_cfm": n} if self.columns else {"lcp_A": n * n}

    @property
    def sizes(self) -> dict[str, int]:
        """Capacities of a record."""
        n, m, one = self.n, self.columns, (self.n // 8 + 1) * 8
        sizes = {"nlcp": n, "nlcpcol": m, "nlcpY": n * m, "nlcpz": m, "nlcpA": 0 if m else n * n}
        return sizes | ({"nlcpone": 0, "nlcppair": 0} if m else {"nlcpone": one, "nlcppair": one * one})


class Tile:
    """A record for W problems; its inputs and its outputs are each one block of memory.

    Args:
        structure: what the problems have in common.
        width: W.
        parameters: rows of lcp_parameter.
    """

    def __init__(self, structure: Structure, width: int, parameters: Sequence[float]):
        self.structure, self.width = structure, width
        n, sizes = structure.n, structure.sizes
        self.arrays = arrays = allocate(PROBLEM, sizes, width, np.float64)
        self._matrix = self._block(structure.matrix)
        self._vectors = self._block(dict.fromkeys(VECTORS, n))
        self._result = self._block(dict.fromkeys(ROWS, n) | dict.fromkeys(NUMBERS, 1))
        arrays["lcp_n"][0], arrays["lcp_dense"][0] = n, structure.columns == 0
        arrays["lcp_findex"][:n] = structure.findex
        if structure.columns:
            arrays["lcp_col"][:] = np.arange(structure.columns)
            arrays["lcp_colnum"][:n] = structure.columns
            arrays["lcp_rowadr"][:n] = structure.columns * np.arange(n)
        arrays["lcp_parameter"][: len(parameters)] = np.reshape(parameters, (-1, 1))
        self.record = Record(PROBLEM, sizes, arrays, width, np.float64)

    def _block(self, rows: dict[str, int]) -> np.ndarray:
        """One block of memory behind several fields, in their order."""
        block, start = aligned((sum(rows.values()), self.width)), 0
        for name, count in rows.items():
            if count:
                self.arrays[name] = block[start : start + count]
            start += count
        return block

    def bind(self, stage: Stage) -> Callable[..., None]:
        """The stage as a function of its whole numbers, on this tile."""
        return library().bind(stage, self.record)

    def load(self, matrix: np.ndarray, vectors: np.ndarray, x: np.ndarray | None) -> None:
        """Take over up to W problems; lanes without one hold zeros.

        Args:
            matrix: (m, rows) the fields of `Structure.matrix`, one after the other.
            vectors: (m, 5 n) those of VECTORS.
            x: (m, n) where to begin, None: 0.
        """
        m = len(vectors)
        if m < self.width:
            self._matrix[...], self._vectors[...] = 0.0, 0.0
        self._matrix[:, :m] = matrix.T
        self._vectors[:, :m] = vectors.T
        self._result[...] = 0.0
        if x is not None:
            self.arrays["lcp_x"][:, :m] = x.T

    def store(self, rows: np.ndarray, numbers: np.ndarray, which) -> None:
        """Write the results of the problems `which` into (4, N, n), see ROWS, and (3, N), see NUMBERS."""
        n, m = self.structure.n, numbers[:, which].shape[1]
        rows[:, which] = self._result[: 4 * n].reshape(4, n, self.width)[..., :m].transpose(0, 2, 1)
        numbers[:, which] = self._result[4 * n :, :m]
