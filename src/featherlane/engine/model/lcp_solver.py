"""The table of LCP solvers that `featherlane.lcp.register` adds: `opt.lcp_solver` takes their names."""

from __future__ import annotations

from typing import Any, NamedTuple


class RegisteredSolver(NamedTuple):
    """A registered solver: its name, and the `simulation.user.function.UserFunction` that a step calls."""

    name: str
    function: Any


REGISTERED_SOLVERS: dict[str, RegisteredSolver] = {}
