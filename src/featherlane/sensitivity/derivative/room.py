"""Memory of a thread for rates by formulas."""

from __future__ import annotations

from featherlane.lanes import Record
from featherlane.lanes.record import allocated
from featherlane.sensitivity.derivative.rates import RATES
from featherlane.simulation.tile.workspace import Workspace


def room(workspace: Workspace, rest: bool = False, steps: bool = True) -> Record:
    """Memory of a thread for rates by formulas.

    Args:
        workspace: of the thread.
        rest: there are differences besides.
        steps: rates of the next state are asked for, too.
    """
    names = {"rate_nv": "nv", "rate_na": "na", "rate_nbody": "nbody", "rate_ngeom": "ngeom", "rate_ncon": "nconmax"}
    sizes = {name: int(workspace.sizes[size]) for name, size in names.items()} | {
        "rate_rest": int(rest),
        "rate_steps": int(steps),
    }
    return allocated(RATES, sizes, workspace.width, workspace.dtype)
