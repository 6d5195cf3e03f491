"""All stages of the engine and the records they work on: what is compiled ahead of time."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from .. import collision, constraint, dynamics, sensor, simulation, solver
from ..lanes import Library, Stage
from ..model.fields import MODEL
from ..solver import lcp
from ..solver.lcp.fields import PROBLEM
from .fields import DATA
from .tiles import ROWS

RECORDS = {
    "m": (MODEL, True),
    "d": (DATA, False),
    "b": (ROWS, True),
    "m1": (MODEL, True),
    "d1": (DATA, False),
    "p": (PROBLEM, False),
    "p1": (PROBLEM, False),
}


def stages() -> dict[str, Stage]:
    """Every stage defined in the layers that hold physics, by name."""
    found: dict[str, Stage] = {}
    for package in (dynamics, collision, constraint, solver, lcp, sensor, simulation):
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for value in vars(module).values():
                if isinstance(value, Stage) and found.setdefault(value.name, value) is not value:
                    raise ValueError(f"two stages are named {value.name!r}")
    return found


@functools.cache
def library() -> Library:
    """The engine's library of compiled stages."""
    return Library(RECORDS)
