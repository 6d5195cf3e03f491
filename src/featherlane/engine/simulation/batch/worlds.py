"""Defines `Worlds`, the base class of batches of one model, of several models, or across machines.

A method that several kinds of batch have is documented here once, for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.enums import State
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.reduction import Histogram
from featherlane.engine.simulation.batch.rollout_request import Record, RolloutRequest
from featherlane.engine.simulation.batch.sensing import Sensing
from featherlane.engine.simulation.tile.fields import STATUS
from featherlane.engine.simulation.world.data import Data
from featherlane.engine.simulation.world.recordings import Control, check_bindable
from featherlane.engine.simulation.world.state import read_state, write_state


class Worlds(Sensing):
    """Declares the common interface of `Batch`, `MixedBatch` and `distributed.Batch`: many worlds that step together.

    A function that takes `Worlds` accepts each of the three.  Their arrays differ: `Batch` has live arrays, those of
    `MixedBatch` are padded to the widest model, and `distributed.Batch` returns copies.  Therefore, set the state by
    assignment: `worlds.qpos = values`.

    State fields and derived fields are attributes under MuJoCo's names, with one row per world.

    Attributes:
        nworld: number of worlds.
        dtype: float64 or float32.
        failures: with `record_failures`, a list of `Failure`, each with the number of its world.
    """

    failures: list[Any]
    records_whole = True  # whether a reduced rollout first records all worlds

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    @property
    def models(self) -> tuple[Model, ...]:
        """Returns the models: that of each group of a `MixedBatch`, else one."""
        ...

    # ---- fields ------------------------------------------------------------------------------------------------------
    def world_shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape of a field of a world, as stored; padded to the widest model of a `MixedBatch`."""
        ...

    @property
    def status(self) -> dict[str, np.ndarray]:
        """Returns the counts since the last reset of each world, by name, each (nworld,) int64, read-only."""
        counts = self.warning.astype(np.int64)
        counts.flags.writeable = False
        return {name: counts[:, k] for k, name in enumerate(STATUS)}

    def count_of(self, *causes: str) -> np.ndarray:
        """Returns how often each world had one of these causes of `status` since its last reset, (nworld,) int64."""
        return self.warning[:, [STATUS.index(cause) for cause in causes]].sum(axis=1, dtype=np.int64)

    def is_left_out(self, name: str) -> bool:
        """Returns whether a field is an input that has not been accessed yet, and is zero in all worlds."""
        return False

    def bind(self, name: str) -> np.ndarray:
        """Returns an array of a state field, or of an output that each call refreshes.

        After `step` an output belongs to the state before the last step, as in MuJoCo.  After `forward` it belongs to
        the present state.  It is NaN until a `step`, `forward` or `reset` computes it.  Reading the attribute
        (`batch.xpos`) of an output that is not bound raises an error.

        Args:
            name: a state field or a derived field of `fl.Data` (`xpos`, `cvel`, `qfrc_constraint`, ...).

        Returns:
            (nworld, ...) live array, padded to the widest model of a `MixedBatch`; outputs are read-only.  A
            distributed batch returns a copy.

        Raises:
            ModelError: an unknown field, or a field of a tile instead of a world.
            UnsupportedFeatureError: `sensordata` of a model with unsupported sensors.
        """
        ...

    def get(self, name: str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns a copy of a field of some worlds; a distributed batch transfers these worlds only.

        Args:
            name: a state field, or a bound output.
            ids: the worlds; None for all.

        Returns:
            (n, ...) read-only copy, padded to the widest model of a `MixedBatch`.

        Raises:
            ModelError: the field does not exist, or the output is not bound.
        """
        for model in self.models:
            check_bindable(model, "get", name)
        rows = np.array(getattr(self, name)[self._ids(ids)])
        rows.flags.writeable = False
        return rows

    # ---- model fields by world ---------------------------------------------------------------------------------------
    def expand(self, name: str) -> np.ndarray:
        """Gives a real model field separate values in each world, as for domain randomization.

        Call `set_const` after writing a field on which other fields depend (masses, inertias, ...).  A field may be 0
        in the model and nonzero in a world, or the reverse.  Each call checks the values of all worlds.

        Args:
            name: a real field of the model (`body_mass`), options as `opt.timestep` or `opt_timestep`.

        Returns:
            (nworld, ...) live array, initialized with the model's values; padded to the widest model of a
            `MixedBatch`.  A distributed batch returns a local array, whose written values the next call sends to the
            workers.

        Raises:
            ModelError: an unknown real field.
            RuntimeError: another thread is in a call of this batch.
        """
        ...

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Recomputes the model fields that depend on expanded fields, for each world; they become per-world fields.

        Raises:
            ModelError: ids out of range, values that fields cannot hold.
            RuntimeError: another thread is in a call of this batch.
        """

    def set_variant(self, geom: str, variant: str, *, ids: ArrayLike | None = None, inertia: bool = True) -> None:
        """Gives worlds a variant of a geom, of a body, or of another group of `fl.load(..., variants=...)`.

        Sets the meshes, sizes, bounding volumes, materials and colours of geoms, and the masses and inertias of bodies,
        to the values that MuJoCo compiles for this variant.  A variant may also lack geoms.  Dependent fields are
        recomputed, as by `set_const`.  The results of the world are then those of a model with this variant alone.  A
        reset keeps the variant.

        Args:
            geom: name of the group: a geom, a body, or another key of `variants`.
            variant: name of the variant.
            ids: the worlds; None for all.
            inertia: whether the masses and inertias of bodies are set, too; False leaves them as they are.

        Raises:
            UnknownNameError: the model of a world has no such group or variant.
            ModelError: ids out of range or repeated; `inertia` is not a bool.
            RuntimeError: another thread is in a call of this batch.

        Source: mjlab's entity variants.
        """

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, *, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        """Advances worlds by nstep time steps of their models.

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

    def forward(self, ids: ArrayLike | None = None) -> None:
        """Computes all derived fields of the present state, without a step."""

    def reset(
        self, ids: ArrayLike | None = None, *, keyframe: int | str | ArrayLike | None = None, forward: bool = True
    ) -> None:
        """Sets worlds to their models' defaults or to keyframes, and recomputes bound outputs.

        Args:
            ids: the worlds; None for all.
            keyframe: a keyframe's name or number for all of them, or one number each; None or -1 for the defaults.
            forward: whether to recompute bound outputs; False saves time if the caller sets the state next.

        Raises:
            ModelError: a model lacks the keyframe; `forward` is not a bool.  No world is reset then.
        """

    def rollout(
        self,
        nstep: int,
        control: Control | None = None,
        record: Record = ("qpos",),
        *,
        ids: ArrayLike | None = None,
        out: Mapping[str, np.ndarray] | None = None,
        reduce: str | Histogram | None = None,
    ) -> Any:
        """Advances worlds by nstep steps and records fields after each.

        After an interrupt, worlds are as after an interrupted `step`; `out` has the recordings up to that step.

        Args:
            nstep: time steps, at least 1.
            control: None leaves `ctrl` unchanged.  An array: (n, nstep, nu) for the n worlds of the call, or
                (nstep, nu) for all of them.  A dict of such arrays by input (`ctrl`, `xfrc_applied`, `mocap_pos`, ...).
                A function `control(batch, step)`, called between steps, whose result broadcasts to (n, nu).  A kernel
                `control(m, d)`, which sets `d.ctrl`, `d.qfrc_applied` or `d.xfrc_applied`; it is compiled and called
                within each step after positions and velocities are computed.  A `Controller`, a kernel `f(m, d, p)`
                with separate numbers for each world.  In a `MixedBatch`, nu is the width of `ctrl`.
            record: names of state or derived fields, and cameras (`fl.Camera`), which all models need.
            ids: the worlds, ascending in a `MixedBatch`; None for all.
            out: arrays to record into, by name, with the shapes and dtype of the result; missing arrays are allocated.
            reduce: `mean`, `sum`, `min`, `max` or a `Histogram` over the worlds; None to return the recordings.

        Returns:
            name -> (n, nstep, ...); a scalar field (`time`, `ncon`) has (n, nstep).  State fields and images are those
            after the step; derived fields belong to the state before it.  Images are "camera/output" ->
            (n, nstep, height, width, ...).  With `reduce`, name -> (nstep, ...); a histogram has (nstep, ..., nbin).
            Entries that a world of a `MixedBatch` does not use are zero, also in reductions.

        Raises:
            ModelError: invalid shapes, names or counts; a kernel that cannot be compiled or serialized, or fails in a
                trial call, see `set_user_actuator`.
            UnknownNameError: a model lacks a camera.
            InstallationError: a kernel is given and no compiler is installed.
            RuntimeError: another thread is in a call of this batch.

        Source: MuJoCo mjcb_control (a kernel; under RK4 it is called in each of the four stages, as in MuJoCo).
        """
        return self._rollout(RolloutRequest(self, nstep, control, record, self._ids(ids), out, reduce))

    def _rollout(self, request: RolloutRequest) -> Any:
        """Runs a checked rollout."""
        ...

    # ---- worlds and states -------------------------------------------------------------------------------------------
    def get_data(self, world: int) -> Data:
        """Returns one world as an `fl.Data` in float64, after `forward`.

        Its model, `data.model`, is that of the batch, or, if the batch has per-world model fields, that of `get_model`.
        """
        ...

    def get_model(self, world: int) -> Model:
        """Returns one world's model: a copy with its expanded fields."""
        ...

    def get_state(self, bits: int = State.INTEGRATION) -> np.ndarray:
        """Returns components of the state, (nworld, state_size); by default all that a step reads; see `get_state`.

        In a `MixedBatch`, a row has the state vector of that world's model, followed by zeros.
        """
        return read_state(self, (self.nworld,), self.dtype, bits)

    def set_state(self, state: ArrayLike, bits: int = State.INTEGRATION) -> None:
        """Sets components of the state from an array that broadcasts to the shape of `get_state`; see `set_state`.

        Padding is not read.

        Raises:
            ModelError: bits that select no part, another shape; no world is set then.
        """
        write_state(self, (self.nworld,), state, bits)

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Returns copies of state, reports and expanded model fields, for `restore`, np.savez and pickle.

        The arrays of a `MixedBatch` are keyed by group (`0.qpos`).  A `Batch` and a distributed batch can restore each
        other's checkpoints.
        """
        ...

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Restores a checkpoint; the simulation continues bitwise identically.

        Raises:
            ModelError: a field is missing, or has another shape or dtype; nothing is restored then.
            RuntimeError: another thread is in a call of this batch; nothing is restored then.
        """
