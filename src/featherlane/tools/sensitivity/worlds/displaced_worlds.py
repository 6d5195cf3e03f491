"""A batch whose worlds go through a stage repeatedly, with a different coordinate displaced each time.

The model keeps what a call allocates for the next call: memory, tiles, transfer records.  A call of one small world
then has some ten microseconds of overhead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from featherlane.engine.dynamics.inertia.articulated import recurses
from featherlane.engine.lanes import Stage
from featherlane.engine.lanes.cores import cores
from featherlane.engine.model.enums import CRB
from featherlane.engine.model.joint import is_scalar
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.arrays import LASTING, ON_DEMAND, SLEEP_ROWS
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.transfer import NONE, Plan, Rows
from featherlane.engine.simulation.tile.work import work
from featherlane.engine.simulation.user.sensor import fields_read, plain_sensors, write_user_sensors
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.rates.coordinates import Seeds

POINTS = 4096  # approximate points of a pass, so that the results stay in cache
TILE_DOFS = 128  # tiles times dofs that justify a thread: some 100 us
KEPT = 4  # objects of a kind, for threads that call at the same time


class OwnWorlds:
    """Holds the worlds of a `Data` or a `Batch` in float64, in separate rows.

    Args:
        model: the model.
        source: the world, or a batch.
        npoint: number of points of each world in a pass, from which the number of threads follows.
        nthread: threads, 0: by the work.
        disabled: bits of `opt.disableflags` that are set in addition to the model's.

    Attributes:
        batch: the worlds in their present state.
        seeds: columns of the model's coordinates.
        plans: of these worlds.
        rows: the rows that tiles load, by field.
        width: of tiles.
        solves_columns: whether passes solve many columns, for which the factor of M is faster (`recurses`).
    """

    solves_columns = False

    def __init__(self, model: Model, source: Data | Batch, npoint: int, nthread: int, disabled: int):
        self.model, self.disabled, self.seeds = model, disabled, Seeds.of_model(model)
        nworld, names = (1, []) if isinstance(source, Data) else (source.nworld, list(source.arrays.expanded))
        # threads whose work exceeds their start-up cost
        worth = max(1, min(cores(), nworld * npoint * model.nv // (8 * TILE_DOFS)))
        self.batch = Batch(model, nworld, nthread or worth, dtype="float64", given_contacts=source.ngiven)
        self.plans, self.width = self.batch.runner.plans, _width(source) or self.batch.width
        self.plans.disabled = disabled
        if self.solves_columns and not recurses(model):
            self.plans.options["opt_forward_dynamics"] = CRB
        for name in ON_DEMAND:
            getattr(self.batch, name)
        for name in names:
            self.batch.arrays.expand(name)
        self.rows = {name: a for name, a in self.batch.arrays.rows.items() if name in LASTING and a.size}
        for name in SLEEP_ROWS:
            self.rows.pop(name, None)
        # (n, 1) views, as in a `Data`
        self._columns = [(name, a.reshape(-1, 1)) for name, a in self.rows.items()] if nworld == 1 else []
        self._made, self._revision = {}, None

    def load(self, source: Data | Batch) -> None:
        """Copies the state of the world, or of all worlds."""
        if isinstance(source, Data):
            arrays = source.workspace.arrays
            for name, column in self._columns:
                column[...] = arrays[name]
            return
        for name, rows in self.rows.items():
            rows[...] = 0 if source.is_left_out(name) else source.arrays.rows[name]
        for name, rows in source.arrays.expanded.items():
            self.batch.arrays.expanded[name][...] = rows

    def plan_of(
        self,
        loop: Stage,
        n: int,
        brought: Rows,
        taken: Rows,
        load: Rows = NONE,
        width: int = 0,
        memory: np.ndarray | None = None,
        sizes: Mapping[str, int] = NONE,
    ) -> Plan:
        """Returns the plan of a pass of these worlds, see `Plans.plan`."""
        return self.plans.plan(
            loop, n, brought, taken, load, keeps=[*self.rows], width=width or self.width, memory=memory, sizes=sizes
        )

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Returns what `make` returned for this key after the last edit of the model."""
        if self._revision != self.model.revision:
            self._made.clear()
            self._revision = self.model.revision
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def narrowing(
        self, chosen: np.ndarray, each: int, run: Callable[[np.ndarray, int], np.ndarray], width: int = 0
    ) -> np.ndarray:
        """Runs passes of some worlds, and then of those that do not fit into a tile together one by one.

        Args:
            chosen: indices of the worlds.
            each: the largest number of worlds in a pass.
            run: runs a pass of some worlds through tiles of a width, and returns the indices of those that do not fit.
            width: of the first tiles, 0: `width`.

        Returns:
            The indices of the remaining worlds.
        """
        for size in dict.fromkeys((width or self.width, 1)):
            parts = [chosen[first : first + each] for first in range(0, len(chosen), each)]
            left = [run(part, size) for part in parts]
            chosen = left[0] if len(left) == 1 else np.concatenate(left)
            if not len(chosen):
                break
        return chosen

    def collect(
        self,
        found: list[np.ndarray],
        chosen: np.ndarray,
        each: int,
        run: Callable[[np.ndarray, int], tuple[np.ndarray, ...]],
        width: int = 0,
    ) -> np.ndarray:
        """Runs passes as `narrowing` does, collects their results, and returns the indices of the remaining worlds.

        Args:
            found: receives the results of all worlds, (nworld, ...) each.
            chosen, each, width: as for `narrowing`.
            run: as there; returns the results of a pass, (k, ...) each, and the mask of worlds that fit.
        """

        def go(some: np.ndarray, width: int) -> np.ndarray:
            *parts, fits = run(some, width)
            found[:] = found or [np.empty((self.batch.nworld, *a.shape[1:])) for a in parts]
            for total, a in zip(found, parts, strict=True):
                total[some] = a
            return some[~fits]

        return self.narrowing(chosen, each, go, width)

    def go(self, plan: Plan, ntile: int) -> None:
        """Runs all tiles of a plan that has begun."""
        work([(plan, ntile)], self.plans.team)


class MovedWorlds(OwnWorlds):
    """Holds worlds and their points.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        loop: the stage that works through tiles of points.
        outputs: fields that it writes, concatenated.
        n: number of coordinates.
        centered: two points for each coordinate; otherwise one, and the undisplaced world.
        follows: whether the stage displaces the acceleration by its rates `da`.

    Attributes:
        flat: whether every position is a single number with its own dof.
    """

    def __init__(
        self,
        model: Model,
        source: Data | Batch,
        loop: Stage,
        outputs,
        n: int,
        centered: bool,
        nthread: int,
        disabled: int = 0,
        follows: bool = False,
    ):
        self.outputs, self.n, self.centered, self.loop, self.follows = outputs, n, centered, loop, follows
        self.npoint = 2 * n if centered else n + 1
        super().__init__(model, source, self.npoint, nthread, disabled)
        nworld = self.batch.nworld
        self.each = min(nworld, max(1, POINTS // max(self.npoint, 1)))  # worlds of a pass
        self.flat = bool(is_scalar(model.jnt_type).all())
        self._begun = None
        self._qacc, self._size, self._displacement = (
            np.zeros((nworld, model.nv)),
            0.0,
            np.zeros(self.each * self.npoint),
        )

    def set_displacement(self, size: float) -> None:
        """Sets the displacement of every coordinate; the stage keeps controls in their range."""
        if self._size != size:
            up = np.full(self.n, size)
            self._displacement[...] = np.tile(np.r_[up, -up] if self.centered else np.r_[0.0, up], self.each)
            self._size = size

    def run(
        self, first: int, nstep: int = 1, qacc: np.ndarray | None = None, da: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Runs a pass through the points of at most `each` worlds.

        Args:
            first: the first of these worlds.
            nstep: as for the stage.
            qacc: (nworld, nv) accelerations that the stage reads.
            da: (nworld, n, nv) rates of these, if the acceleration follows.

        Returns:
            Its outputs: (k, n, m) at the points displaced up and at those displaced down, or not displaced, valid until
            the next pass; and the distances (k, n, 1) between both, 1 for a coordinate that is not displaced.
        """
        n, batch = self.n, self.batch
        k = min(self.each, batch.nworld - first)
        plan = self.kept("points", self._made_plan)
        if qacc is not None:
            self._qacc[...] = qacc
        if da is not None:
            part = da[first : first + k]
            self._rates[: 2 * k * n, 0] = np.concatenate([part, part], 1).reshape(-1, self.model.nv)
        self.plans.prepare(self.width)
        if self._begun != (first, k, nstep):
            plan.begin(nstep, first + self._order[: k * self.npoint], self._place[: k * self.npoint])
            self._begun = first, k, nstep
        ntile = -(-k * self.npoint // self.width)
        self.go(plan, ntile)
        if self._read:
            shown = self._out[: k * self.npoint, :, -self.model.nsensordata :]
            worlds = np.repeat(np.arange(first, first + k), self.npoint)
            cutoffs = self.batch.arrays.expanded.shared_or_own("sensor_cutoff", worlds)
            write_user_sensors(self.model, shown, lambda name: self._read[name][: k * self.npoint], cutoffs)
        upper, lower = (slice(0, n), slice(n, None)) if self.centered else (slice(1, None), slice(0, 1))
        out, moved = (a[: k * self.npoint].reshape(k, self.npoint, a.shape[-1]) for a in (self._out, self._moved))
        span = moved[:, upper] - moved[:, lower]
        span[span == 0.0] = 1.0
        return out[:, upper], out[:, lower], span

    def _made_plan(self) -> Plan:
        """Prepares the transfers, with memory for all points of a pass."""
        batch, total, n = self.batch, self.each * self.npoint, self.n
        sizes = [DATA[name].count(batch.arrays.sizes) for name in self.outputs]
        ends = np.cumsum(sizes).tolist()
        self._out, self._moved = np.zeros((total, 1, ends[-1])), np.zeros((total, 1, 1))
        at = np.tile(np.arange(n), 2) if self.centered else np.arange(-1, n)
        at = np.tile(at, self.each).astype(float)
        self._order, self._place = np.repeat(np.arange(self.each), self.npoint), np.arange(total)
        self._read = {}
        if "sensordata" in self.outputs and plain_sensors(self.model):
            read = fields_read(self.model) - {"sensordata"}
            self._read = {name: np.empty((total, 1, *DATA[name].dims(batch.arrays.sizes))) for name in read}
        brought = {"at": at, "displacement": self._displacement, "inwards": np.full(total, float(not self.centered))}
        brought = {name: a.reshape(-1, 1, 1) for name, a in brought.items()}
        if self.follows:
            self._rates = brought["da"] = np.zeros((total, 1, self.model.nv))
        taken = {
            name: self._out[:, :, end - size : end] for name, size, end in zip(self.outputs, sizes, ends, strict=True)
        }
        taken["displacement"] = self._moved
        self._begun = None
        return self.plan_of(self.loop, total, brought, taken | self._read, {"qacc": self._qacc})


T = TypeVar("T", bound=OwnWorlds)


@contextmanager
def borrowed(kind: type[T], model: Model, source: Data | Batch, *how) -> Iterator[T]:
    """Yields worlds of a kind for one call, in the state of the source: from an earlier call with the model, or new.

    Args:
        kind: the class.
        model, source: as for `OwnWorlds`.
        how: its other arguments.
    """
    shape = None if isinstance(source, Data) else (source.nworld, *source.arrays.expanded)
    key = kind, how, source.ngiven, _width(source), shape, os.getpid()
    idle = model.__dict__.setdefault("_moved_worlds", {}).setdefault(key, [])
    try:
        worlds = idle.pop()
    except IndexError:
        worlds = kind(model, source, *how)
    worlds.load(source)
    yield worlds
    if len(idle) < KEPT:
        idle.append(worlds)


def as_given(source: Data | Batch, a: np.ndarray) -> np.ndarray:
    """Returns results (nworld, ...) in the shape of the source: a `Data` has no axis of worlds."""
    return a[0] if isinstance(source, Data) else a


def each_step(report: np.ndarray, nstep: int) -> np.ndarray:
    """Returns reports (k, n) as (k, nstep, n) rows of a call; each step overwrites the one before."""
    k, n = report.shape
    return np.lib.stride_tricks.as_strided(report, (k, nstep, n), (report.strides[0], 0, 8))


def in_use_of(source: Data | Batch) -> dict[str, Any]:
    """Returns values that worlds use instead of the model's, see `Expanded.in_use`."""
    return source.arrays.expanded.in_use() if isinstance(source, Batch) else {}


def _width(source: Data | Batch) -> int:
    """Returns the width of tiles: 1 for piles of bodies with few common couplings (see `Batch._parts`), 0: as usual."""
    if isinstance(source, Data):
        return int(source.workspace.arrays["ordered"][0, 0] > 0)
    return int(source.arrays.rows["ordered"].any())
