"""Derivatives of forces: inverse dynamics of a `Data` or a `Batch`, by position, velocity and acceleration."""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes import Stage
from featherlane.engine.lanes.record import address
from featherlane.tools.sensitivity.rates.records import KNOWN
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds, each_step

# p is not read, and there is no friction that the no-slip solver corrects
SIZES = {"differences_p": 1, "rate_steps": 1, "nslipmax": 0}


def force_rates(worlds: OwnWorlds, loop: Stage, qacc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes derivatives of the forces that accelerate worlds.

    Args:
        worlds: in their present state; their applied forces are set to 0, because inverse dynamics excludes them.
        loop: the stage that computes the columns, `inverse_columns` or `rnea_columns`.
        qacc: (nworld, nv) accelerations.

    Returns:
        (nworld, 3 nv, nv) by position, velocity and acceleration, and the indices of worlds without derivatives.
    """
    nworld, nv = worlds.batch.nworld, worlds.model.nv
    out = np.zeros((nworld, 3 * nv, nv))
    if not nv:
        return out, np.zeros(0, int)
    given, report = worlds.kept(loop, lambda: (np.zeros((nworld, nv)), np.zeros((nworld, KNOWN + 1))))
    given[...] = qacc
    worlds.rows["xfrc_applied"][...] = 0.0

    def run(chosen: np.ndarray, width: int) -> np.ndarray:
        taken = {"dg": out, "report": each_step(report, 3 * nv)}
        plan = worlds.kept(
            (loop, width), lambda: worlds.plan_of(loop, nworld, {}, taken, {"qacc": given}, width, sizes=SIZES)
        )
        worlds.plans.prepare(width)
        plan.addresses("record")[0] = address(out)  # dg
        plan.begin(3 * nv, chosen, chosen)
        worlds.go(plan, -(-len(chosen) // width))
        return chosen[report[chosen, KNOWN] < 0.0]  # they must run alone

    # each world takes its coordinates one after the other, never in parallel lanes
    worlds.narrowing(np.arange(nworld), nworld, run, 1 if nworld == 1 else worlds.width)
    return out, np.flatnonzero(report[:, KNOWN] <= 0.0)
