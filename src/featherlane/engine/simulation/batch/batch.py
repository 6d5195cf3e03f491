"""Defines `Batch`: many worlds of one model, stepped together in the vector lanes of the processor.

Each state field is stored as `(nworld, n)` in C order, one row per world.  A thread loads the rows of W worlds into its
workspace, steps them while they are in cache, and writes them back.  The assignment of worlds to tiles does not affect
results, so worlds with similar contacts are grouped for speed.

The methods by subject: this file has MuJoCo's data and checkpoints; `groups.py` steps, rollouts, resets, single worlds
and variants; `worlds.py` status and states; `world_fields.py` fields, model fields by world and given contacts;
`object_queries.py` Jacobians and matrices of the dynamics; `world_queries.py` rays, distances and contacts;
`sensing.py` cameras and scans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from featherlane.engine.lanes.cores import cores, pinned_cores
from featherlane.engine.model.arguments import instance, whole_argument
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.arrays import WorldArrays, precision
from featherlane.engine.simulation.batch.expanded import Lender, RowSource
from featherlane.engine.simulation.batch.failure import Failure
from featherlane.engine.simulation.batch.recorder import Recorder
from featherlane.engine.simulation.batch.runner import Runner
from featherlane.engine.simulation.batch.world_queries import WorldQueries
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.team import Team
from featherlane.engine.simulation.world.mujoco_data import read_world
from featherlane.engine.simulation.world.user_contacts import contact_capacity
from featherlane.errors import ArgumentTypeError

MOST_THREADS = 1024  # each has a separate workspace


class Batch(WorldQueries):
    """Steps nworld worlds of one model.

    Args:
        model: the model; edits take effect at the next call.
        nworld: number of worlds, at least 1.
        nthread: threads, 0 for one for each core.
        dtype: float64 or float32, of the state and of all arithmetic; times are float64 in both.
        given_contacts: the largest number of contacts that `give_contacts` may give to a world.
        record_failures: steps to keep of each world, so that a failed step can be replayed; 0: none.
        cpu_ids: cores to which the threads are pinned, one for each thread (Linux).  Each thread then steps mostly the
            same worlds, whose state is in memory near its core.  The calling thread only waits.  None: threads are not
            pinned.

    State fields are live arrays: `batch.qpos` (nworld, nq), `qvel`, `act`, `ctrl`, `time` (nworld,), `qacc_warmstart`,
    `qfrc_applied`, `xfrc_applied`, `mocap_pos`, `mocap_quat`, `eq_active`.  Derived fields are outputs: `bind` returns
    a live array, which each later call refreshes if it computes the field.

    Attributes:
        status: counts of each world: `contacts_full`, `rows_full`, `non_finite`, `not_converged`, `bad_control` and
            `singular_inertia`, each (nworld,).  The first loss of contacts or rows emits `CapacityWarning`.
        nreset: resets of each world for non-finite or out-of-range values, (nworld,); the first emits
            `NonFiniteWarning`.
        ncon, nefc, solver_niter, solver_residual, solver_gap: of each world's last step, (nworld,).
        failures: with record_failures, a list of `Failure`: failed steps (a count of `status` grew), each with the
            world's last states and inputs for a bitwise identical replay.  It has each world's first failure of each
            cause, at most 64 in total.  When it is full, later failures are dropped; `batch.failures.clear()` makes
            space for them.

    Raises:
        TypeError: `model` is not a Model.
        ModelError: nworld, nthread, given_contacts or record_failures out of range, an unknown dtype; `cpu_ids` on a
            system that cannot pin threads, or that are not different cores of this process, one for each thread.
    """

    nthread: int
    width: int  # worlds of a tile
    failures: list[Failure]

    def __init__(
        self,
        model: Model,
        nworld: int,
        nthread: int = 0,
        *,
        dtype: DTypeLike = "float64",
        given_contacts: int = 0,
        record_failures: int = 0,
        cpu_ids: Sequence[int] | None = None,
    ):
        instance("Batch", model, Model, "a Model (created by featherlane.load)", ArgumentTypeError)
        real, nworld = precision(dtype), whole_argument("nworld", nworld, 1)
        ngiven, nthread = contact_capacity(given_contacts), whole_argument("nthread", nthread, 0, MOST_THREADS)
        kept = whole_argument("record_failures", record_failures, 0)
        cpus = pinned_cores(cpu_ids, nthread)
        team = Team(len(cpus) or nthread or cores(), cpus)
        arrays = WorldArrays(model, nworld, real, ngiven, team.place if cpus else None)
        self._start(arrays, Runner(arrays, team, Recorder(nworld, kept, type(self)) if kept else None))

    def _start(self, arrays: WorldArrays, runner: Runner) -> None:
        own, shown = self.__dict__, ("model", "nworld", "dtype", "ngiven")
        own.update({name: getattr(arrays, name) for name in shown}, arrays=arrays, runner=runner)
        own["nthread"], own["width"] = runner.plans.team.nthread, runner.plans.width
        own["starts"] = np.array([0, self.nworld])
        if runner.recorder is not None:
            own["failures"] = runner.recorder.failures

    # ---- running -----------------------------------------------------------------------------------------------------
    def _advance(self, nstep: int, chosen: np.ndarray, stage: int = 0) -> None:
        self.runner.run(nstep, chosen, stage=stage)

    # ---- for programs that display or run a user's batch -------------------------------------------------------------
    def watch(self, function: Callable[[], None] | None) -> None:
        """Calls a function at the end of each call, in the thread of that call; None for no function."""
        self.runner.watcher = function

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def to_mujoco(self, world: int, mj_data: Any) -> None:
        """Copies one world to an MjData, with the outputs of its present state; see `Data.to_mujoco`.

        Args:
            world: number of the world.
            mj_data: a `mujoco.MjData` of a model with the sizes of this one.

        Raises:
            TypeError, ModelError: as `Data.to_mujoco`; `world` is out of range.
        """
        self.get_data(world).to_mujoco(mj_data)

    def from_mujoco(self, world: int, mj_data: Any) -> None:
        """Copies an MjData to one world: its state, inputs and bound outputs; see `Data.from_mujoco`.

        A float32 batch rounds the values.  A batch stores no contacts and rows; the next call computes them.

        Args:
            world: number of the world.
            mj_data: a `mujoco.MjData` of a model with the sizes of this one.

        Raises:
            TypeError: no MjData.
            ModelError: other sizes; `world` is out of range.  Nothing is written then.
            RuntimeError: another thread is in a call of this batch.
        """
        hold((self.runner.turn,), self._from_mujoco, self._place(world)[1], mj_data)

    def _from_mujoco(self, world: int, mj_data: Any) -> None:
        read_world(self.arrays, world, mj_data)
        self.runner.forget(np.array([world]))

    # ---- states, checkpoints and copies ------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        return self.arrays.checkpoint()

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        instance("restore", kept, Mapping, "the result of checkpoint()")
        self._restore([self.arrays.checked_checkpoint(kept)])

    def move_into(self, rows: RowSource, lender: Lender | None = None) -> None:
        """Moves all arrays into memory that others share, such as a `MixedBatch`; see `Expanded`."""
        for name in self.arrays.rows.keys() | self.arrays.bound.keys():
            self.__dict__.pop(name, None)  # a view of the old array
        self.arrays.move_into(rows, lender)

    def __getstate__(self):
        return {"arrays": self.arrays, "runner": self.runner}

    def __setstate__(self, state):
        self._start(**state)

    def __repr__(self) -> str:
        return f"Batch({self.model!r}, nworld={self.nworld}, nthread={self.nthread}, dtype={self.dtype.name})"
