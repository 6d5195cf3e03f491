"""Counts the lanes of a tile that are still active in each iteration of the constraint solver.

A tile iterates until its slowest world has converged.  The lanes of the other worlds are idle in the last iterations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.simulation.step import forward
from featherlane.tools.profile.settled_states import SettledStates
from featherlane.tools.profile.stage_times import tiles

STEPS = 8  # consecutive steps from the settled states


def solver_lanes(lineup: SettledStates) -> dict[str, Any]:
    """Counts the solver's iterations of worlds and tiles, and the active lanes of each iteration.

    Tiles are those of the batch.  They take `STEPS` steps from the settled states; each call of the benchmark begins
    with new random controls.  A tile whose contacts exceed its capacity is solved in parts, but counts as a whole.

    Returns:
        `world`, `tile`: mean iterations of a world and of a tile.
        `lanes_active`: mean share of lanes that are active in an iteration.
        `contacts`, `slots`: mean contacts of a world, and mean contact slots of a tile, the union of its contacts
        (if a tile was solved in parts, of its last part).
        `iterations`: for iterations 1, 2, ..: `tiles`, the share of tiles that are still iterating, and `lanes`, the
        share of active lanes in these tiles.
        Empty for a model without iterations.
    """
    rows = [row for tile in tiles(lineup) for row in _steps(lineup, tile)]
    niter = np.array([found for found, *_ in rows], int).reshape(len(rows), -1)
    last = niter.max(axis=1, initial=0)
    if not last.any():
        return {}
    each = []
    for k in range(1, last.max() + 1):
        iterating = last >= k
        each.append({"tiles": float(iterating.mean()), "lanes": float((niter[iterating] >= k).mean())})
    return {
        "world": float(niter.mean()),
        "tile": float(last.mean()),
        "lanes_active": float(niter.sum() / (last.sum() * niter.shape[1])),
        "contacts": float(np.mean([ncon.mean() for _, ncon, _ in rows])),
        "slots": float(np.mean([slots for *_, slots in rows])),
        "iterations": each,
    }


def _steps(lineup: SettledStates, tile) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Returns the iterations and contacts of a tile's worlds in each step, (W,) each, and its contact slots."""
    course, arrays, found = lineup.course, tile.workspace.arrays, []
    tile.put(lineup)
    for k in range(STEPS):
        if k % course.nstep == 0:
            arrays["ctrl"][: lineup.model.nu] = lineup.controls(k)[tile.worlds].T
        tile.workspace.bound(forward.step)()
        found.append((arrays["solver_niter"][0].copy(), arrays["ncon"][0].copy(), int(arrays["ncon_slot"][0])))
    return found
