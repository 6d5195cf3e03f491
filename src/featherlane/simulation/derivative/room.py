"""Memory of a thread for rates by formulas."""

from __future__ import annotations

from featherlane.lanes import Record, allocate
from featherlane.simulation.tile.rates import RATES
from featherlane.simulation.tile.workspace import Workspace


def room(workspace: Workspace, rest: bool = False) -> Record:
    """Memory of a thread for rates by formulas; rest: there are differences besides."""
    names = {"rate_nv": "nv", "rate_na": "na", "rate_nbody": "nbody", "rate_ngeom": "ngeom", "rate_ncon": "nconmax"}
    sizes = {name: int(workspace.sizes[size]) for name, size in names.items()} | {"rate_rest": int(rest)}
    arrays = allocate(RATES, sizes, workspace.width, workspace.dtype)
    return Record(RATES, sizes, arrays, workspace.width, workspace.dtype)
