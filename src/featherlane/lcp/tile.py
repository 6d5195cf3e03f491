"""W problems of one structure in the lanes of one record, on which iterative solvers run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from ..lanes import Record, Stage, aligned, allocate
from ..simulation.library import library
from ..solver.lcp.fields import PROBLEM

RESULT = ("lcp_x", "lcp_w", "lcp_status", "lcp_niter", "lcp_residual")


@dataclass(frozen=True)
class Structure:
    """What problems of a batch have in common.

    Attributes:
        n: rows.
        findex: (n,) row whose solution scales a row's bounds, -1: none.
        columns: columns of Y where A = Y Y^T + diag(cfm); 0: A is dense.
    """

    n: int
    findex: tuple[int, ...]
    columns: int = 0

    @property
    def given(self) -> dict[str, int]:
        """Fields that hold a problem, and their rows."""
        n = self.n
        matrix = {"lcp_Y": n * self.columns, "lcp_cfm": n} if self.columns else {"lcp_A": n * n}
        return matrix | dict.fromkeys(("lcp_diag", "lcp_b", "lcp_lo", "lcp_hi", "lcp_add"), n)

    @property
    def sizes(self) -> dict[str, int]:
        """Capacities of a record."""
        n, m = self.n, self.columns
        sizes = {"nlcp": n, "nlcpcol": m, "nlcpY": n * m, "nlcpz": m, "nlcpA": 0 if m else n * n}
        return sizes | {"nlcpone": 0, "nlcppair": 0}


class Tile:
    """A record for W problems; `problem` and `result` are its rows of input and output, one block of memory each."""

    def __init__(self, structure: Structure, width: int, dtype: DTypeLike = np.float64):
        self.structure, self.width, self.dtype = structure, width, np.dtype(dtype)
        n, sizes = structure.n, structure.sizes
        arrays = allocate(PROBLEM, sizes, width, dtype)
        self.problem = self._block(arrays, structure.given)
        self.result = self._block(arrays, {"lcp_x": n, "lcp_w": n} | dict.fromkeys(RESULT[2:], 1))
        self.arrays = arrays
        arrays["lcp_n"][0], arrays["lcp_dense"][0] = n, structure.columns == 0
        arrays["lcp_findex"][:n] = structure.findex
        if structure.columns:
            arrays["lcp_col"][:] = np.arange(structure.columns)
            arrays["lcp_colnum"][:n] = structure.columns
            arrays["lcp_rowadr"][:n] = structure.columns * np.arange(n)
        self.record = Record(PROBLEM, sizes, arrays, width, dtype)

    def _block(self, arrays, rows: dict[str, int]) -> np.ndarray:
        """One block of memory behind several fields, in their order."""
        block, start = aligned((sum(rows.values()), self.width), self.dtype), 0
        for name, count in rows.items():
            if count:
                arrays[name] = block[start : start + count]
            start += count
        return block

    def bind(self, stage: Stage) -> Callable[..., None]:
        """The stage as a function of its whole numbers, on this tile."""
        return library().bind(stage, self.record)

    def set_parameters(self, tolerance: float, relaxation: float, seed: int = 0) -> None:
        """What solvers read beside the problem."""
        self.arrays["lcp_parameter"][0], self.arrays["lcp_parameter"][1] = tolerance, relaxation
        self.arrays["lcp_seed"][0] = seed


def rows_of_tiles(structure: Structure, fields: dict[str, np.ndarray], width: int, dtype: DTypeLike) -> np.ndarray:
    """Problems side by side: (tiles, rows, W), the rows as in `Tile.problem`; lanes without a problem hold zeros.

    Args:
        structure: what they have in common.
        fields: name -> (N, rows) for every field of `structure.given`.
        width: W.
        dtype: float64 or float32.
    """
    count, total = len(next(iter(fields.values()))), sum(structure.given.values())
    tiles = -(-count // width)
    out, start = aligned((tiles, total, width), dtype), 0
    for name, rows in structure.given.items():
        flat = fields[name].reshape(count, rows)
        whole = count // width
        out[:whole, start : start + rows] = flat[: whole * width].reshape(whole, width, rows).transpose(0, 2, 1)
        if whole < tiles:
            out[whole, start : start + rows, : count - whole * width] = flat[whole * width :].T
        start += rows
    return out
