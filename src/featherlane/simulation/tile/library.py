"""All stages of the engine and the records they work on: what is compiled ahead of time."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from featherlane import collision, constraint, dynamics, sensor, simulation, solver
from featherlane.constraint.efc_fields import EFC
from featherlane.dynamics.body.jacobian import JACOBIAN
from featherlane.errors import ArgumentError
from featherlane.lanes import Library, Stage
from featherlane.model.fields import MODEL
from featherlane.simulation.tile.arrange import ARRANGEMENT
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.tile.lcp_rates import LCP_RATES
from featherlane.simulation.tile.rates import RATES
from featherlane.simulation.tile.rows import ROWS
from featherlane.solver.lcp.fields import PROBLEM

RECORDS = {
    "m": (MODEL, True),
    "d": (DATA, False),
    "b": (ROWS, True),
    "t": (RATES, False),
    "u": (LCP_RATES, False),
    "m1": (MODEL, True),
    "d1": (DATA, False),
    "p": (PROBLEM, False),
    "p1": (PROBLEM, False),
    "a1": (ARRANGEMENT, False),
    "jr": (JACOBIAN, False),
    "er": (EFC, False),
}


def stages() -> dict[str, Stage]:
    """Every stage defined in the layers that hold physics, by name."""
    found: dict[str, Stage] = {}
    for package in (dynamics, collision, constraint, solver, sensor, simulation):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Stage) and found.setdefault(value.name, value) is not value:
                    raise ArgumentError(f"two stages are named {value.name!r}")
    return found


@functools.cache
def library() -> Library:
    """The engine's library of compiled stages."""
    return Library(RECORDS)
