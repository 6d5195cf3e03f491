"""Defines `Batch`: many worlds of one model, stepped together in the vector lanes of the processor.

Each state field is stored as `(nworld, n)` in C order, one row per world.  A thread loads the rows of W worlds into its
workspace, steps them while they are in cache, and writes them back.  The assignment of worlds to tiles does not affect
results, so worlds with similar contacts are grouped for speed.

The methods by subject: this file has steps, rollouts, states and copies; `world_fields.py` fields, model fields by
world and given contacts; `world_queries.py` rays, Jacobians and contacts; `sensing.py` cameras and scans.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.errors import ArgumentTypeError
from featherlane.lanes import Kernel
from featherlane.lanes.cores import cores, pinned_cores
from featherlane.model.arguments import instance, whole_argument
from featherlane.model.assignment import flag
from featherlane.model.enums import State
from featherlane.model.model import Model
from featherlane.model.set_const import model_of_world
from featherlane.simulation.batch.arrays import LASTING, WorldArrays, keyframe_numbers, precision
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.filming import Filming, Record, split_cameras
from featherlane.simulation.batch.padded import PaddedRows
from featherlane.simulation.batch.recorder import Recorder
from featherlane.simulation.batch.reduction import Reduction, check_rollout, over_worlds
from featherlane.simulation.batch.runner import Runner, stage_number
from featherlane.simulation.batch.world_queries import WorldQueries
from featherlane.simulation.tile.call_lock import hold
from featherlane.simulation.tile.team import Team
from featherlane.simulation.world.data import Data
from featherlane.simulation.world.mujoco_data import read_world
from featherlane.simulation.world.recordings import Control, check_bindable, control_of_step, recordings
from featherlane.simulation.world.state import read_state, write_state
from featherlane.simulation.world.user_contacts import contact_capacity

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
        if runner.recorder is not None:
            own["failures"] = runner.recorder.failures

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        """Advances worlds by nstep time steps.

        Bound outputs belong to the state before the last step.  `stage` recomputes some of them for the new state.

        "position" recomputes frames, centres of mass, tendons, lengths of actuators and position sensors.  "velocity"
        also recomputes `cvel`, subtree velocities, rates of tendons and actuators, `qfrc_bias`, `qfrc_passive` and its
        parts, and velocity sensors.  "acceleration" recomputes all outputs, as `forward` does.

        With "position" and "velocity", the other outputs remain those of the last step: accelerations, constraint and
        actuator forces, touch sensors, the mass matrix, contacts (with adhesive forces) and energies.  MuJoCo's
        mj_step1 computes the last three, too.  `stage` does not change the trajectory.

        After an interrupt (Ctrl-C), all worlds of the call are at the same step.  The interrupt is raised after at most
        about 0.2 s, or after one step of all worlds if that takes longer.  `time` shows how far the worlds advanced,
        and continuing the batch from there gives bitwise identical results.

        Args:
            nstep: time steps, at least 1.
            ids: the worlds, by number or as a mask; None for all.
            stage: "position", "velocity" or "acceleration"; None for none.

        Raises:
            ModelError: nstep below 1, ids out of range or repeated, an unknown stage.
            RuntimeError: another thread is in a call of this batch.

        Source: MuJoCo mj_step, then mj_step1 or mj_forward.
        """
        self.runner.run(whole_argument("nstep", nstep, 1), self._ids(ids), stage=stage_number(stage))

    def forward(self, ids: ArrayLike | None = None) -> None:
        """Computes all derived fields of the present state, without a step."""
        self.runner.run(0, self._ids(ids))

    def reset(self, ids: ArrayLike | None = None, keyframe: int | str | np.ndarray = -1, forward: bool = True) -> None:
        """Sets worlds to the model's defaults or to keyframes, and recomputes bound outputs.

        Args:
            ids: the worlds; None for all.
            keyframe: a keyframe's name or number for all of them, or one number each; -1 for the defaults.
            forward: whether to recompute bound outputs; False saves time if the caller sets the state next.

        Raises:
            ModelError: an unknown keyframe; `forward` is not a bool.
        """
        chosen, forward = self._ids(ids), flag("forward", forward)
        keys = keyframe_numbers(self.model, keyframe, len(chosen))
        hold((self.runner.turn,), self._reset, chosen, keys)
        if forward:
            self.forward_bound(chosen)

    def _reset(self, chosen: np.ndarray, keys: np.ndarray) -> None:
        self._forget(chosen)
        self.arrays.reset(chosen, keys)

    def forward_bound(self, ids: ArrayLike | None = None) -> None:
        """Computes the bound outputs of worlds that were set; the other outputs have no values from now on."""
        self.arrays.computed = True
        if self.arrays.bound:
            self.forward(ids)

    def rollout(
        self,
        nstep: int,
        control: Control | None = None,
        record: Record = ("qpos",),
        ids: ArrayLike | None = None,
        out: Mapping[str, np.ndarray] | None = None,
        reduce: Reduction | None = None,
    ) -> dict[str, np.ndarray]:
        """Advances worlds by nstep steps and records fields after each.

        After an interrupt, worlds are as after an interrupted `step`; `out` has the recordings up to that step.

        Args:
            nstep: time steps, at least 1.
            control: None leaves `ctrl` unchanged.  An array: (n, nstep, nu) for the n worlds of the call, or
                (nstep, nu) for all of them.  A dict of such arrays by input (`ctrl`, `xfrc_applied`, `mocap_pos`, ...).
                A function `control(batch, step)`, called between steps, whose result broadcasts to (n, nu).  A kernel
                `control(m, d)`, which sets `d.ctrl`, `d.qfrc_applied` or `d.xfrc_applied`; it is compiled and called
                within each step after positions and velocities are computed.
            record: names of state or derived fields, and cameras (`fl.Camera`).
            ids: the worlds; None for all.
            out: arrays to record into, by name, with the shapes and dtype of the result; missing arrays are allocated.
            reduce: `mean`, `sum`, `min`, `max` or a `Histogram` over the worlds; None to return the recordings.

        Returns:
            name -> (n, nstep, ...); a scalar field (`time`, `ncon`) has (n, nstep).  State fields and images are those
            after the step; derived fields belong to the state before it.  Images are "camera/output" ->
            (n, nstep, height, width, ...).  With `reduce`, name -> (nstep, ...); a histogram has (nstep, ..., nbin).

        Raises:
            ModelError: invalid shapes, names or counts; a kernel that cannot be compiled, or fails in a trial
                call, see `set_user_actuator`.
            InstallationError: a kernel is given and no compiler is installed.

        Source: MuJoCo mjcb_control (a kernel; under RK4 it is called in each of the four stages, as in MuJoCo).
        """
        nstep, chosen = whole_argument("nstep", nstep, 1), self._ids(ids)
        how = check_rollout(reduce, out, len(chosen))
        names, cameras = split_cameras(record, how)
        for name in names:
            check_bindable(self.model, "record", name)
        film = Filming(self, cameras, (len(chosen), nstep), out)
        result = recordings(names, (len(chosen), nstep), film.rest, self.arrays.dims, self.dtype)
        if cameras:
            return film.run(control, chosen, result, self.arrays.dims)
        if callable(control) and not isinstance(control, Kernel):
            self._driven(control, nstep, chosen, result)
        else:
            share, reads = self.runner.share(nstep, chosen, control, result)
            self.runner.run(nstep, chosen, share.brought, share.taken, share.control)
            self.runner.measure_recorded(chosen, reads, result)
        return result if how is None else over_worlds(how, result, chosen)

    def _driven(self, control, nstep: int, chosen: np.ndarray, result) -> None:
        """Runs a rollout step by step, with controls that a function computes between steps."""
        shape = (len(chosen), self.model.nu)
        for k in range(nstep):
            values = control_of_step(control(self, k), k, shape, self.dtype)
            for name, rows in self.rollout(1, values[:, None], list(result), chosen).items():
                result[name][:, k] = rows[:, 0]

    # ---- for programs that display or run a user's batch -------------------------------------------------------------
    @property
    def is_busy(self) -> bool:
        """Returns whether a call is running."""
        return self.runner.turn.is_held

    def mute(self) -> None:
        """Emits no NonFiniteWarning or CapacityWarning from now on: the caller reports what `status` counts."""
        self.runner.mute()

    def watch(self, function: Callable[[], None] | None) -> None:
        """Calls a function at the end of each call, in the thread of that call; None for no function."""
        self.runner.watcher = function

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _world(self, world) -> int:
        """Returns one world's number, checked."""
        return whole_argument("world", world, 0, self.nworld - 1)

    def get_model(self, world: int) -> Model:
        """Returns one world's model: a copy with its expanded fields."""
        w = self._world(world)
        return model_of_world(self.model, {name: rows[w] for name, rows in self.arrays.expanded.items()})

    def get_data(self, world: int) -> Data:
        """Returns one world as an `fl.Data` in float64, after `forward`."""
        w = self._world(world)
        data = Data(self.get_model(world), self.ngiven)
        for name, rows in self.arrays.rows.items():
            if name in LASTING:
                data.workspace.arrays[name][: rows[w].size, 0] = rows[w].reshape(-1)
        data.forward()
        return data

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
        hold((self.runner.turn,), self._from_mujoco, self._world(world), mj_data)

    def _from_mujoco(self, world: int, mj_data: Any) -> None:
        read_world(self.arrays, world, mj_data)
        self._forget(np.array([world]))

    # ---- states, checkpoints and copies ------------------------------------------------------------------------------
    def get_state(self, bits: int = State.INTEGRATION) -> np.ndarray:
        """Returns components of the state, (nworld, state_size); by default all that a step reads; see `get_state`."""
        return read_state(self, (self.nworld,), self.dtype, bits)

    def set_state(self, state: ArrayLike, bits: int = State.INTEGRATION) -> None:
        """Sets components of the state from an array that broadcasts to (nworld, state_size); see `set_state`."""
        write_state(self, (self.nworld,), state, bits)

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Returns copies of state, reports and expanded model fields, for `restore`, np.savez and pickle."""
        return self.arrays.checkpoint()

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Restores a checkpoint; the simulation continues bitwise identically.

        Raises:
            ModelError: a field is missing, or has another shape or dtype; nothing is restored then.
            RuntimeError: another thread is in a call of this batch; nothing is restored then.
        """
        instance("restore", kept, Mapping, "the result of checkpoint()")
        hold((self.runner.turn,), self._restore, self.arrays.checked_checkpoint(kept))

    def _restore(self, values: Mapping[str, np.ndarray]) -> None:
        self._forget(slice(None))
        self.arrays.restore(values)

    def _forget(self, worlds: slice | np.ndarray) -> None:
        """Discards the recorded steps of worlds whose state is about to be set."""
        if self.runner.recorder is not None:
            self.runner.recorder.forget(worlds)

    def move_into(self, rows: PaddedRows) -> None:
        """Moves all arrays into parts of arrays that several batches share (`MixedBatch`)."""
        for name in self.arrays.rows.keys() | self.arrays.bound.keys():
            self.__dict__.pop(name, None)  # a view of the old array
        self.arrays.move_into(rows)

    def __getstate__(self):
        return {"arrays": self.arrays, "runner": self.runner}

    def __setstate__(self, state):
        self._start(**state)

    def copy(self) -> Batch:
        """Returns an independent batch of the same model, in the same state."""
        return copy.deepcopy(self, {id(self.model): self.model})

    __copy__ = copy

    def __repr__(self) -> str:
        return f"Batch({self.model!r}, nworld={self.nworld}, nthread={self.nthread}, dtype={self.dtype.name})"
