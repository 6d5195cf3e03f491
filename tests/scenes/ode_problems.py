"""Reads recorded boxed LCPs, and ODE's solutions: tests/data/ode_lcp.npz.

Recorded with Debian bookworm's libode8 0.16.2 in double precision, from its dSolveLCP and inside its dWorldStep; the
values are ODE's.  A is stored as lower triangles, row by row; `lower` and `upper` are the bounds after
friction was limited; `error` is 1 if ODE failed ("LCP internal error, s <= 0") and its x is invalid.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from featherlane.lcp import Problem

DATA = Path(__file__).parents[1] / "data" / "ode_lcp.npz"


@dataclass(frozen=True)
class Recorded:
    """Holds one problem and ODE's solution."""

    tag: str
    problem: Problem
    x: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    solved: bool


def recorded_problems() -> list[Recorded]:
    """Returns all of them, as they were recorded."""
    out, entry, row = [], 0, 0
    with np.load(DATA) as file:
        data = dict(file)
    for n, tag, error in zip(data["n"], data["tag"], data["error"], strict=True):
        A = np.zeros((n, n))
        A[np.tril_indices(n)] = data["A"][entry : entry + n * (n + 1) // 2]
        rows = slice(row, row + n)
        b, lo, hi, findex, x, lower, upper = (data[k][rows] for k in "b lo hi findex x lower upper".split())
        problem = Problem(A + np.tril(A, -1).T, b, lo=lo, hi=hi, findex=findex)
        out.append(Recorded(str(tag), problem, x, (lower, upper), not error and bool(np.isfinite(x).all())))
        entry, row = entry + n * (n + 1) // 2, row + n
    return out
