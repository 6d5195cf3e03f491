"""Idle lanes of Newton's method, and what ideas against them could save at most; ten minutes.

    python benchmarks/idle_lanes.py --write

Worlds under random controls step in tiles of the batch's order.  All rows are counts, except the shares of time.
"""

from __future__ import annotations

import time

import numpy as np
from report import arguments, markdown, origin, publish, source_of

from featherlane.apps.measure.speed_comparison import Course, Lineup
from featherlane.engine.simulation.batch.order import LASTS, TileOrder
from featherlane.engine.simulation.step import forward
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.tile.tiles import sign_contacts
from featherlane.engine.simulation.tile.workspace import Workspace

MODELS = (
    "bundled/humanoid",
    "bundled/quadruped_elliptic",
    "robosuite/robots/spot/robot",
    "mjx/shadow_hand/scene_right",
    "gymnasium_robotics/assets/hand/manipulate_block",
)
WORLDS, WIDTH, HALF = 512, 8, 4
SORTED, STEPS = 8, 8  # steps before the counted ones, and counted ones
HELD = 4  # steps with the same controls
JOINED = (2, 8)  # tiles whose last iterations are joined
TRIALS = 3  # the least time of a tile counts
# rows of the table that are shares: of iterations, and of a step's time
SAME = "iterations with the Hessian of the one before"
TAIL = "time of iterations in which at most half of the lanes work"
SAVED = "time saved if {} tiles are joined, without that of moving worlds"


class Rollout:
    """Worlds of a model, stepped tile by tile in any order.

    Attributes:
        state: arrays (worlds, n) by name.
        signatures: of the last steps.
    """

    def __init__(self, name: str):
        self.lineup = Lineup(source_of(name), Course(worlds=WORLDS))
        self.tile = Workspace(self.lineup.model, WIDTH)
        self.arrays, self.limit = self.tile.arrays, int(self.lineup.model.opt.iterations)
        self.state = {field: value.copy() for field, value in self.lineup.states.items()}
        self.signatures: list[np.ndarray] = []
        self._step, self._sign = self.tile.bound(forward.step), self.tile.bound(sign_contacts)

    def order(self, age: int) -> np.ndarray:
        """Returns the batch's order of some steps ago, (tiles, WIDTH)."""
        if not self.signatures:
            return np.arange(WORLDS).reshape(-1, WIDTH)
        signature = self.signatures[-min(age, len(self.signatures))]
        order = TileOrder(WORLDS, signature.shape[1], WIDTH, Team(1))
        return order.of(np.arange(WORLDS), signature, LASTS).reshape(-1, WIDTH)

    def run(self, worlds: np.ndarray, iterations: int = 0, start: np.ndarray | None = None) -> float:
        """Takes a step of one tile, with at most these iterations (0: those of the model); returns its seconds.

        Args:
            worlds: (WIDTH,) the worlds of the tile.
            iterations: at most so many.
            start: (worlds, nv) replaces the last acceleration.
        """
        for field, value in self.state.items():
            self.arrays[field][: value.shape[1]] = value[worlds].T
        if start is not None:
            self.arrays["qacc_warmstart"][: start.shape[1]] = start[worlds].T
        self.tile.rows.record.set_size("opt_iterations", iterations or self.limit)
        begin = time.perf_counter()
        self._step()
        return time.perf_counter() - begin

    def iterations(self) -> np.ndarray:
        """Returns the iterations of the tile's worlds in the last run."""
        return self.arrays["solver_niter"][0].astype(int)

    def advance(self, order: np.ndarray) -> None:
        """Takes a step of all worlds."""
        after = {field: value.copy() for field, value in self.state.items()}
        signature = np.zeros((WORLDS, self.tile.sizes["nsignature"]))
        for worlds in order:
            self.run(worlds)
            self._sign()
            for field in after.keys() - {"ctrl"}:
                after[field][worlds] = self.arrays[field][: after[field].shape[1]].T
            signature[worlds] = self.arrays["signature"][: signature.shape[1]].T
        self.state = after
        self.signatures.append(signature)


def first_iterations(niter: np.ndarray) -> np.ndarray:
    """Returns the iterations, at least 1, after which at most HALF of a tile's worlds are left.

    Args:
        niter: (..., WIDTH) iterations of the worlds.
    """
    return np.maximum(np.sort(niter, axis=-1)[..., WIDTH - HALF - 1], 1)


def iteration_time(rollout: Rollout, worlds: np.ndarray, most: int) -> float:
    """Returns the seconds of an iteration of a tile whose worlds need at most so many, which are at least 2."""
    whole, one = (min(rollout.run(worlds, iterations=k) for _ in range(TRIALS)) for k in (0, 1))
    return (whole - one) / (most - 1)


def joined(rollout: Rollout, order: np.ndarray, niter: np.ndarray, tiles: int) -> tuple[float, float]:
    """Returns the iterations of a tile if the last ones of so many tiles are joined, and the seconds of these.

    The worlds that are left of the joined tiles fill new tiles.  An iteration of a new tile takes the time of those
    that its worlds take together from their start.

    Args:
        rollout: the worlds, before the step.
        order: (tiles, WIDTH) worlds of the tiles.
        niter: (tiles, WIDTH) iterations of the worlds.
        tiles: joined ones.
    """
    first = first_iterations(niter)
    left = np.maximum(niter - first[:, None], 0)
    total, seconds = float(first.clip(max=niter.max(axis=1)).sum()), 0.0
    for start in range(0, len(order), tiles):
        some = slice(start, start + tiles)
        continues = left[some] > 0
        worlds, rest, most = (field[some][continues] for field in (order, left, niter))
        for k in range(0, len(worlds), WIDTH):
            one = slice(k, k + WIDTH)
            total += rest[one].max()
            seconds += rest[one].max() * iteration_time(rollout, np.resize(worlds[one], WIDTH), int(most[one].max()))
    return total / len(order), seconds


def same_hessians(rollout: Rollout, worlds: np.ndarray, niter: np.ndarray) -> int:
    """Returns the number of iterations of a tile whose H is that of the iteration before, in all worlds that iterate.

    It compares factors, which the workspace holds after the last iteration.
    """
    same, before = 0, np.zeros(0)
    for k in range(1, niter.max() + 1):
        rollout.run(worlds, iterations=k)
        factor = rollout.arrays["hessian.H"].copy()
        same += k > 1 and np.array_equal(factor[:, niter >= k], before[:, niter >= k])
        before = factor
    return same


def tail_times(rollout: Rollout, worlds: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Returns seconds of a tile's step, those of its last iterations, and the iterations of its worlds.

    The last iterations are those in which at most HALF of the worlds iterate.
    """
    whole = min(rollout.run(worlds) for _ in range(TRIALS))
    niter = rollout.iterations()
    first = int(first_iterations(niter))
    if first >= niter.max():
        return whole, 0.0, niter
    return whole, whole - min(rollout.run(worlds, iterations=first) for _ in range(TRIALS)), niter


def counted_step(rollout: Rollout, order: np.ndarray, before: np.ndarray) -> dict[str, float]:
    """Returns the numbers of one step by row of the table, and its seconds.

    Args:
        rollout: the worlds, before the step.
        order: (tiles, WIDTH) worlds of the tiles.
        before: (worlds, nv) accelerations of the step before the last one.
    """
    acceleration = rollout.state["qacc_warmstart"]
    niter, extrapolated = np.zeros((2, *order.shape), int)
    contacts, slots, same, seconds, tail = np.zeros((5, len(order)))
    for t, worlds in enumerate(order):
        seconds[t], tail[t], niter[t] = tail_times(rollout, worlds)
        contacts[t], slots[t] = rollout.arrays["ncon"][0].mean(), rollout.arrays["ncon_slot"][0]
        same[t] = same_hessians(rollout, worlds, niter[t])
        rollout.run(worlds, start=2.0 * acceleration - before)
        extrapolated[t] = rollout.iterations()
    of_world = np.zeros(WORLDS, int)
    of_world[order] = niter
    joins = {n: joined(rollout, order, niter, n) for n in JOINED}
    return {
        "iterations of a world": niter.mean(),
        "iterations of a tile": niter.max(axis=1).mean(),
        "contacts of a world": contacts.mean(),
        "contact slots of a tile": slots.mean(),
        "iterations of a tile, order of the last step": of_world[rollout.order(age=1)].max(axis=1).mean(),
        "iterations of a tile, order by known iterations": np.sort(of_world).reshape(-1, WIDTH).max(axis=1).mean(),
        **{f"iterations of a tile, {n} tiles joined": found for n, (found, _) in joins.items()},
        "iterations of a tile, start extrapolated from two steps": extrapolated.max(axis=1).mean(),
        SAME: same.mean(),
        TAIL: tail.sum(),
        **{SAVED.format(n): tail.sum() - spent for n, (_, spent) in joins.items()},
        "seconds": seconds.sum(),
    }


def column(name: str) -> dict[str, str]:
    """Returns the cells of a model by row of the table."""
    rollout, steps = Rollout(name), []
    before = rollout.state["qacc_warmstart"]
    for k in range(SORTED + STEPS):
        if k % HELD == 0:
            rollout.state["ctrl"] = rollout.lineup.controls(k).copy()
        order = rollout.order(age=k % LASTS + 1)
        if k >= SORTED:
            steps.append(counted_step(rollout, order, before))
        before = rollout.state["qacc_warmstart"]
        rollout.advance(order)
    mean = {label: float(np.mean([step[label] for step in steps])) for label in steps[0]}
    seconds, tile = mean.pop("seconds"), mean["iterations of a tile"]
    shares = {SAME: tile} | dict.fromkeys((TAIL, *map(SAVED.format, JOINED)), seconds)
    cells = {}
    for label, number in mean.items():
        cells[label] = f"{100 * number / shares[label]:.1f} %" if label in shares else f"{number:.2f}"
    return cells


def main() -> None:
    asked = arguments(__doc__).parse_args()
    found = {name: column(name) for name in MODELS}
    rows = [[label, *(cells[label] for cells in found.values())] for label in found[MODELS[0]]]
    sizes = f"{WORLDS} worlds, {STEPS} steps, float64, tiles of {WIDTH}."
    publish("idle-lanes", f"{markdown(('quantity', *MODELS), rows)}\n\n{sizes}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
