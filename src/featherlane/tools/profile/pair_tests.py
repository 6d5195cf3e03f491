"""Counts the pairs of geoms that reach each collision test, and measures the time of the tests.

Pairs are counted per world, independent of the other worlds of the tile, in the settled states of a benchmark: pairs
from lists and trees, pairs with close bounding spheres, with close oriented bounding boxes, and in contact.  Tiles of
the batch are timed with the tests up to each one; differences of these times are the times of the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.collision.bounding import BOXES, LISTED, SPHERES, bounding_tests
from featherlane.engine.collision.broad.box_tree import pair_of
from featherlane.engine.collision.collision import collision
from featherlane.engine.collision.convex.result_cache import BY_DIRECTION, BY_GROWTH, BY_PROOF, BY_SEARCH, HEADER
from featherlane.engine.lanes.record import python_record
from featherlane.engine.model.enums import Disable
from featherlane.engine.model.load import load
from featherlane.engine.model.pair import FIRST_SCALAR
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.step.forward import forward_position
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.tools.profile.settled_states import SettledStates
from featherlane.tools.profile.stage_times import LeastTimes, Tile, tiles

TINY = 1e-30  # us^2
REPEATS = 15  # repetitions of each test on a tile; the fastest counts


class Counts(NamedTuple):
    """Numbers of geom pairs of one world.

    Attributes:
        listed: candidates of the model.
        body_boxes: listed pairs whose bodies' boxes overlap; all listed pairs if there are no such boxes.
        tree: pairs found by the bounding-volume tree.
        spheres: pairs of both kinds with close bounding spheres.
        closed_form: of these, pairs without a search: a formula computes their points in all worlds of a tile at once.
        searched: of the others, pairs with close oriented bounding boxes.
        touching: pairs with contact points.
        searched_touching: searched pairs with contact points.
    """

    listed: int
    body_boxes: int
    tree: int
    spheres: int
    closed_form: int
    searched: int
    touching: int
    searched_touching: int


def pair_tests(lineup: SettledStates, on_progress: Callable[[int], None] = lambda done: None) -> dict[str, Any]:
    """Counts the pairs that reach each test and measures its time; empty for a model without pairs or contacts.

    Returns:
        `pairs`: means of `Counts` over the worlds, in float64.
        `hulls`: `ways_of_hulls`.
        `microseconds` per world, if the contacts fit the capacity of the tile: `listing`, up to the bounding spheres;
        `turned_boxes`; `points`, the rest: searches, formulas, and the parameters of contacts.
        `microseconds_of_a_pair`, parts of `points` per pair: a searched pair `apart`, a searched pair `touching`, a
        pair with a `closed_form`, by least squares over the tiles; `explained`, the part of the variance among tiles
        that the fit explains.
    """
    model = lineup.model
    if model.opt_disableflags & (Disable.CONTACT | Disable.CONSTRAINT) or not model.ncand + model.ncrowd:
        return {}
    counts = count_pairs(lineup, on_progress)
    found: dict[str, Any] = {"pairs": dict(zip(Counts._fields, counts.mean(axis=0).tolist(), strict=True))}
    if ways := ways_of_hulls(lineup):
        found["hulls"] = ways
    timed = [(tile.worlds, seconds) for tile in tiles(lineup) if (seconds := _seconds(lineup, tile))]
    if timed:
        micro = 1e6 * np.array([[seconds[name] for name in ("listing", "boxes", "collision")] for _, seconds in timed])
        parts = np.diff(micro, axis=1, prepend=0.0)
        per_world = parts.sum(axis=0) / sum(len(worlds) for worlds, _ in timed)
        found["microseconds"] = dict(zip(("listing", "turned_boxes", "points"), per_world.tolist(), strict=True))
        found["microseconds_of_a_pair"] = _of_a_pair([counts[worlds].sum(axis=0) for worlds, _ in timed], parts[:, 2])
    return found


def count_pairs(lineup: SettledStates, on_progress: Callable[[int], None] = lambda done: None) -> np.ndarray:
    """Returns the `Counts` of each settled state, (worlds, 8)."""
    one, rows = _OneWorld(lineup), []
    for w in range(lineup.course.worlds):
        rows.append(one.counts(w))
        on_progress(w + 1)
    return np.array(rows)


def ways_of_hulls(lineup: SettledStates) -> dict[str, float]:
    """Counts how the searched convex pairs of a world are resolved in a step of the benchmark, by kind.

    Returns:
        `apart_as_before`: the stored direction still separates them; `proved_as_before`: the stored proof of the
        nearest points or of the depth still holds; `grown_from_before`: the search for the depth continued from the
        stored polytope; `searched`: by a search from the start.  Empty for a model without such pairs.
    """
    batch = Batch(lineup.model, lineup.course.worlds, nthread=lineup.course.threads, dtype=lineup.course.dtype)
    nstep, before = lineup.course.nstep, np.zeros(HEADER)
    for _ in range(2):  # the first call fills the memory, as in a benchmark
        lineup.put(batch)
        before = batch.pair_memory[:, :HEADER].sum(axis=0)
        batch.step(nstep)
    memory = batch.pair_memory
    if not memory.size:
        return {}
    counts = (memory[:, :HEADER].sum(axis=0) - before) / (lineup.course.worlds * nstep)
    names = {
        "apart_as_before": BY_DIRECTION,
        "proved_as_before": BY_PROOF,
        "grown_from_before": BY_GROWTH,
        "searched": BY_SEARCH,
    }
    return {name: float(counts[k]) for name, k in names.items()}


class _OneWorld:
    """A tile of one world, to count pairs."""

    def __init__(self, lineup: SettledStates):
        self.lineup, self.model, self.workspace = lineup, lineup.model, Workspace(lineup.model, 1)
        self.m, self.d = python_record(self.workspace.rows.record), python_record(self.workspace.record)
        self.candidates = set(zip(self.model.cand_geom1.tolist(), self.model.cand_geom2.tolist(), strict=True))

    def counts(self, w: int) -> Counts:
        """Counts the pairs of one settled state."""
        Tile(self.workspace, np.array([w]), lambda: None).put(self.lineup)
        for stage in (forward_position, collision):
            self.workspace.bound(stage)()
        slots = self.workspace.view("con_geom")[: self.workspace.arrays["ncon_slot"][0]]
        touching = list(map(tuple, np.unique(slots, axis=0).tolist()))
        near, left = self.pairs(SPHERES), self.pairs(BOXES)
        return Counts(
            listed=self.model.ncand,
            body_boxes=self.boxed(),
            tree=sum(pair not in self.candidates for pair in self.pairs(LISTED)) if self.model.ncrowd else 0,
            spheres=len(near),
            closed_form=len(near) - self.searched(near),
            searched=self.searched(left),
            touching=len(touching),
            searched_touching=self.searched(touching),
        )

    def pairs(self, last: int) -> list[tuple[int, int]]:
        """Returns the geoms of the pairs that pass all tests up to one."""
        self.workspace.bound(bounding_tests)(last)
        places = range(self.d.near.count[0])
        if self.model.ncrowd:
            return [pair_of(self.m, self.d.near.key[i])[1:] for i in places]
        numbers = [self.d.near.cand_near[i] for i in places]
        return list(zip(self.model.cand_geom1[numbers].tolist(), self.model.cand_geom2[numbers].tolist(), strict=True))

    def searched(self, pairs: list[tuple[int, int]]) -> int:
        """Counts the pairs without a closed form."""
        types = self.model.geom_type[np.array(pairs, int).reshape(-1, 2)]
        return int((self.model.pair_function[types[:, 0], types[:, 1]] >= FIRST_SCALAR).sum())

    def boxed(self) -> int:
        """Counts the candidates whose bodies' boxes overlap, after `bounding_tests`."""
        model = self.model
        if not model.ngroup:
            return model.ncand
        a, b = (self.workspace.view("near.body_box")[model.group_body[:, k]] for k in (0, 1))
        overlap = ((a[:, :3] <= b[:, 3:]) & (b[:, :3] <= a[:, 3:])).all(axis=1) | (model.group_boxed == 0)
        return int(np.diff(np.append(model.group_first, model.ncand))[overlap].sum())


def _seconds(lineup: SettledStates, tile: Tile) -> dict[str, float]:
    """Times a tile in its settled states with all tests up to each; empty if its contacts exceed the capacity."""
    run, whole = tile.workspace.bound, LeastTimes(tile.nothing)
    bounds = LeastTimes(_test_nothing(tile.workspace.width, tile.workspace.dtype))
    tile.put(lineup)
    run(forward_position)()
    run(collision)()
    if tile.workspace.arrays["con_overflow"][0]:
        return {}
    for _ in range(REPEATS):
        bounds.time("listing", 0, partial(run(bounding_tests), LISTED))
        bounds.time("boxes", 0, partial(run(bounding_tests), BOXES))
        whole.time("collision", 0, run(collision))
    return {name: seconds[0] for name, seconds in (bounds.seconds() | whole.seconds()).items()}


@cache
def _test_nothing(width: int, dtype: np.dtype) -> Callable[[], None]:
    """Returns the bounding tests of a model without pairs, with the call overhead of a call with a number."""
    return partial(Workspace(load("<mujoco/>"), width, dtype).bound(bounding_tests), LISTED)


def _of_a_pair(counts: list[np.ndarray], micro: np.ndarray) -> dict[str, float]:
    """Fits the time per pair to the times of the tiles, by non-negative least squares.

    Args:
        counts: `Counts` of each tile, summed over its worlds.
        micro: time of each tile [us].
    """
    sums = Counts(*np.array(counts, float).T)
    touching = np.asarray(sums.searched_touching)
    columns = {"apart": sums.searched - touching, "touching": touching, "closed_form": sums.closed_form}
    columns = {name: column for name, column in columns.items() if np.any(column)}
    while columns:
        solution = np.linalg.lstsq(np.stack(list(columns.values()), axis=1), micro, rcond=None)[0]
        found = dict(zip(columns, solution.tolist(), strict=True))
        least = min(found, key=found.__getitem__)
        if found[least] >= 0.0:
            rest = micro - sum(found[name] * column for name, column in columns.items())
            return found | {"explained": max(0.0, float(1.0 - rest.var() / max(micro.var(), TINY)))}
        del columns[least]
    return {}
