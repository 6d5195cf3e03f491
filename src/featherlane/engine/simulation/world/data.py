"""Defines `Data`, one world of a model, and the functions that run stages on it.

A `Data` is a workspace of one world in float64: compiled stages and Python access the same memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes import Kernel, Stage
from featherlane.engine.lanes.record import allocated, shaping
from featherlane.engine.model.arguments import instance, whole_argument
from featherlane.engine.model.enums import Disable, Enable, State
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.model.sleep import AWAKE
from featherlane.engine.model.status import FOUND_FULL, FOUND_NON_FINITE
from featherlane.engine.simulation.tile.call_lock import Turn, hold, holds_turns
from featherlane.engine.simulation.tile.calls import fields_called_for
from featherlane.engine.simulation.tile.capacity import full_pair
from featherlane.engine.simulation.tile.fields import DATA, WANTED
from featherlane.engine.simulation.tile.workspace import Workspace, in_use
from featherlane.engine.simulation.user.control import Controller
from featherlane.engine.simulation.user.sensor import plain_sensors, write_user_sensors
from featherlane.engine.simulation.world.data_fields import DataFields
from featherlane.engine.simulation.world.last_pass import LAST_PASS, kept_pass, unkept_step, unkept_steps
from featherlane.engine.simulation.world.mujoco_data import linked, read_mujoco, write_mujoco
from featherlane.engine.simulation.world.recordings import (
    Control,
    check_bindable,
    control_of_step,
    field_names,
    inputs_of_rollout,
    recordings,
)
from featherlane.engine.simulation.world.state import read_state, write_state
from featherlane.engine.simulation.world.user_contacts import contact_capacity
from featherlane.errors import ArgumentTypeError, ModelError, warn_of_full, warn_of_non_finite

KEYFRAME = {"time": "time", "qpos": "qpos", "qvel": "qvel", "act": "act", "ctrl": "ctrl"}
KEYFRAME |= {"plastic": "plastic", "mocap_pos": "mpos", "mocap_quat": "mquat"}
AT_ONCE = 32  # steps of one call, after which Python checks for interrupts
# a `Data` can switch to a model that agrees in these
SHAPING = shaping(DATA)


class Data(DataFields):
    """Holds one world: state, controls and all fields computed from them.

    Args:
        model: the model; its edits take effect at the next call.
        given_contacts: the largest number of contacts that `give_contacts` may give.

    Every field of `Data.layout` is an attribute under MuJoCo's name.  Arrays, such as `data.qpos` (nq,) and `data.xpos`
    (nbody, 3), stay valid as long as the `Data` exists.  Other fields, such as `data.time` [s], are single values.  An
    assignment to an array copies values into it with broadcasting, and never replaces the array.
    `data.body("torso").xpos` and `data.joint("knee").qpos` are live, too.

    `copy.copy` returns a separate `Data` on the same model; `copy.deepcopy` and pickle copy the model, too.

    Attributes:
        model: the model.  Functions `f(model, data)` raise an error for another one.  To switch to another model of the
            same sizes, assign it: `data.model = other`; the state does not change.
        workspace: its memory and records; internal.

    Raises:
        TypeError: `model` is not a Model.
        ModelError: given_contacts is out of range.

    Note:
        Fields of the roles `slot`, `scratch`, `table` and `room` (docs/fields.md) are memory of stages and may change
        with any release: read `contact`, `efc_*`, `contact_force` and `solver_history` instead.  Integer fields among
        them, and reports, are read-only.  A `Data` supports one thread at a time: a call raises RuntimeError while
        another thread is in a call.
    """

    def __init__(self, model: Model, given_contacts: int = 0):
        instance("Data", model, Model, "a Model (created by featherlane.load)", ArgumentTypeError)
        self._start(model, contact_capacity(given_contacts))

    def _start(self, model: Model, given: int) -> None:
        """Allocates memory and views."""
        own = self.__dict__
        own["_unreported"] = FOUND_NON_FINITE | FOUND_FULL  # conditions of which no warning was emitted yet
        own["_islands"] = False  # whether islands were read, which steps compute from then on
        own["_links"] = {}  # arrays shared with an MjData, by fields
        own["model"], own["workspace"], own["_turns"] = model, Workspace(model, 1, given=given), (Turn("data"),)
        own["_bad"] = memoryview(self.workspace.arrays["found_bad"])  # read after each step: 30 ns
        own["_calls"], own["_probes"] = {}, []  # prepared calls by stage, unused memory of queries
        own["_revision"] = own["_stamp"] = None  # the model's revision in the record, and its stamp without edits
        last = self.workspace.others["s"] = allocated(LAST_PASS, model.size_values(), 1, np.float64)
        last.arrays["keeps"][0] = 1
        own["_kept"] = memoryview(last.arrays["kept"])  # 1 if derived fields belong to the state in `last`

    @property
    def is_busy(self) -> bool:
        """Returns whether a call is running."""
        return self._turns[0].is_held

    def _switch(self, model: Model) -> None:
        """Switches to the present values of the model, or of another one of equal sizes.

        Raises:
            TypeError: `model` is not a Model.
            ModelError: the model's sizes are not those of this data; a field has a value that it cannot hold.
            RuntimeError: another thread is in a call of this data.
        """
        check_model(model)
        model.check_edits()
        hold(self._turns, self._use, model)

    def _use(self, model: Model) -> None:
        """Updates the model's record, and the sizes that select what a step computes."""
        own = self.__dict__
        # after an error or an interrupt the next call begins here again
        own["_revision"] = own["_stamp"] = None
        own["_calls"], own["_probes"] = {}, []
        self._kept[0] = 0
        if model is not self.model or model is not self.workspace.model:
            self._check_sizes(model)
            self.workspace.change_model(model)
            own["model"] = model
            own.pop("sensordata", None)
        self.workspace.rows.refresh_sizes()
        self.workspace.calls.connect()
        read = fields_called_for(model, sensors=True)
        flags = {name: not read.isdisjoint(WANTED[name]) for name in ("want_energy", "want_subtree", "want_wrenches")}
        flags["want_islands"] = self._islands
        flags["want_energy"] |= bool(model.opt_enableflags & Enable.ENERGY)
        for name, value in flags.items():
            self.workspace.record.set_size(name, int(value))
        if not model.opt_enableflags & Enable.SLEEP:
            self.tree_asleep[...] = AWAKE
        self.workspace.arrays["tree_settled"][...] = 0
        own["_revision"], own["_stamp"] = model.revision, model._own_stamp

    def _follow_edits(self) -> None:
        """Marks fields as those of another state after edits of the model's reals, which its record already has."""
        own = self.__dict__
        own["_calls"], own["_stamp"], self._kept[0] = {}, self.model._own_stamp, 0
        for probe in self._probes:
            probe.forget()

    def _check_sizes(self, model: Model) -> None:
        old, new = self.workspace.sizes, Workspace.sizes_of(model, self.ngiven)
        wrong = [f"{n} is {new[n]} instead of {old[n]}" for n in SHAPING if new[n] != old[n]]
        if wrong:
            raise ModelError(
                f"model: got {model!r}, allowed are models with the sizes of the data's {self.model!r}; {wrong[0]}"
            )

    def __repr__(self) -> str:
        return f"Data({self.model!r}, time={self.time:g})"

    def __getstate__(self) -> dict[str, Any]:
        arrays = {name: in_use(self.workspace.arrays[name]) for name in DATA.that("copied")}
        return {"model": self.model, "given": self.ngiven, "arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._start(state["model"], state["given"])
        for name, array in state["arrays"].items():
            self.workspace.arrays[name][: len(array)] = array

    def mute(self) -> None:
        """Emits no NonFiniteWarning or CapacityWarning from now on: the caller reports what `status` counts."""
        self.__dict__["_unreported"] = 0

    def _warn(self, found: int, level: int = 2) -> None:
        """Warns of the conditions in `found` that were not reported yet, for the caller of a step or of a pass."""
        found &= self._unreported
        self.__dict__["_unreported"] &= ~found
        if found & FOUND_NON_FINITE:
            warn_of_non_finite("a world", self.nreset > 0, owner="data", level=level)
        if found & FOUND_FULL:
            sizes, pair = self.workspace.sizes, full_pair(self.model, [self.workspace])
            capacity = sizes["nmanifold" if pair else "nconmax"]
            warn_of_full("a world", capacity, pair=pair, owner="data", level=level)

    # ---- whole states ------------------------------------------------------------------------------------------------
    def reset(self, *, keyframe: str | int | None = None) -> None:
        """Resets to the model's default state or to a keyframe; all other fields become zero.

        Args:
            keyframe: name or number of a keyframe; None or -1 for the defaults (qpos0, zero velocities and forces).

        Raises:
            UnknownNameError: an unknown keyframe; the data is unchanged.
        """
        if isinstance(keyframe, int | np.integer) and keyframe == -1:
            keyframe = None
        key = None if keyframe is None else self.model.keyframe(keyframe).id
        given = {}
        if key is not None:
            given = {name: np.asarray(getattr(self.model, f"key_{source}")[key]) for name, source in KEYFRAME.items()}
        self._kept[0] = 0
        hold(self._turns, self.workspace.reset, given)

    def step(self, nstep: int = 1) -> None:
        """Advances the world by nstep time steps: `featherlane.step` with the data's model."""
        step(self.model, self, nstep)

    def rollout(
        self, nstep: int, control: Control | None = None, record: str | Sequence[str] = ("qpos",)
    ) -> dict[str, np.ndarray]:
        """Advances the world by nstep steps and records fields after each.

        Args:
            nstep: time steps, at least 1.
            control: None leaves the inputs unchanged.  An array (nstep, nu).  A dict of arrays by input (`ctrl`,
                `xfrc_applied`, ...).  A function `control(data, step)`, called before each step, whose result
                broadcasts to (nu,).
            record: names of state or derived fields.

        Returns:
            name -> (nstep, ...); a scalar field has (nstep,).  State fields are those after the step; derived fields
            belong to the state before it, as in `Batch.rollout`.

        Raises:
            ModelError: invalid shapes, names or counts.
        """
        nstep, names = whole_argument("nstep", nstep, 1), field_names("record", record)
        if isinstance(control, Kernel | Controller):
            raise ModelError(
                "control: got a kernel, allowed are arrays and functions; for a kernel use "
                "featherlane.Batch(model, 1).rollout(...)"
            )
        for name in names:
            check_bindable(self.model, "record", name)
        dims = lambda name: DATA[name].dims(self.workspace.sizes)  # noqa: E731
        out = recordings(names, (nstep,), None, dims, np.dtype(float))
        given = {} if callable(control) or control is None else inputs_of_rollout(control, (nstep,), dims)
        for k in range(nstep):
            if callable(control):
                self.ctrl = control_of_step(control(self, k), k, (self.model.nu,), np.dtype(float))
            for name, values in given.items():
                setattr(self, name, values[k])
            step(self.model, self)
            for name in names:
                out[name][k] = getattr(self, name)
        return out

    def forward(self) -> None:
        """Computes all derived fields of the present state: `featherlane.forward` with the data's model."""
        run_measured(self.model, self, kept_pass)

    def get_state(self, bits: int = State.INTEGRATION) -> np.ndarray:
        """Returns components of the state, (state_size,); by default all that a step reads; see `get_state`."""
        return read_state(self, (), np.dtype(np.float64), bits)

    def set_state(self, state: ArrayLike, bits: int = State.INTEGRATION) -> None:
        """Sets components of the state from a vector (state_size,); see `set_state`."""
        write_state(self, (), state, bits)

    def to_mujoco(self, mj_data: Any, fields: str | Sequence[str] | None = None) -> None:
        """Copies this world to an MjData: state, inputs, outputs, contacts, constraint rows and islands.

        Every field that both have gets the value of this `Data`.  Outputs are therefore those of the last pass; for
        outputs of the present state, call `forward` first.  mj_step continues from the copied state.
        docs/integrations/mujoco_data.md lists the fields of MjData that are not written.

        Args:
            mj_data: a `mujoco.MjData` of a model with the sizes of this one.
            fields: names of the fields to copy; None for all.  `contact` includes the rows `efc_*` and the islands.

        Raises:
            TypeError: no MjData.
            ModelError: other sizes, an unknown field, too little memory in `mj_data` for the contacts and rows, or
                contacts that are given by bodies; nothing is written then.
            RuntimeError: another thread is in a call of this data.
        """
        hold(self._turns, write_mujoco, self, mj_data, fields)

    def shared_arrays(self, mj_data: Any, fields: Iterable[str]) -> list[tuple[Any, Any]]:
        """Returns the memory of fields that this `Data` and an MjData both have, for copies that are often repeated.

        `ours[:] = theirs` copies a field, as `from_mujoco` does, but without checks and locks.  The arrays are valid as
        long as both objects exist and the model keeps its sizes.

        Args:
            mj_data: a `mujoco.MjData` of a model with the sizes of this one.
            fields: names of fields; `time`, `warning`, `solver_niter` and `contact` are skipped.

        Returns:
            (ours, theirs) by field, flat and of equal size.

        Raises:
            TypeError, ModelError, UnsupportedFeatureError: as `to_mujoco`.
        """
        return linked("shared_arrays", self, mj_data, tuple(fields)).both

    def from_mujoco(self, mj_data: Any, fields: str | Sequence[str] | None = None) -> None:
        """Copies an MjData to this world: state, inputs, outputs, contacts and constraint rows.

        The next step continues from the state of `mj_data`.  Outputs are those of MuJoCo's last pass.

        Args:
            mj_data: a `mujoco.MjData` of a model with the sizes of this one.
            fields: names of the fields to copy; None for all.  `contact` includes the rows `efc_*`.

        Raises:
            TypeError: no MjData.
            ModelError: other sizes, an unknown field, or more contacts or rows than this `Data` can hold; nothing is
                written then.
            RuntimeError: another thread is in a call of this data.
        """
        self._kept[0] = 0
        hold(self._turns, read_mujoco, self, mj_data, fields)

    def copy(self) -> Data:
        """Returns an independent `Data` of the same model, in the same state."""
        return copy.copy(self)

    def is_left_out(self, name: str) -> bool:
        """Returns whether a field is not allocated, which is never true; see `Batch.is_left_out`."""
        return False

    def _measured(self, stage: Stage) -> Callable[[], None]:
        """Returns a function that runs a stage with sensors and then the user-defined sensors."""
        run, model = self.workspace.bound(stage), self.model
        if not model.user_sensors or not plain_sensors(model):
            return run

        def measured():
            run()
            if not model.opt_disableflags & Disable.SENSOR:
                values, cutoffs = self.workspace.view("sensordata"), model.__dict__["sensor_cutoff"]
                write_user_sensors(model, values, lambda name: getattr(self, name), cutoffs)

        return measured


def ready(model: Model, data: Data) -> Data:
    """Returns the `Data`, prepared for the present values of the model.

    Raises:
        TypeError: `data` is not a Data, or `model` not a Model.
        ModelError: the model is not the data's; a field of the model has a value that it cannot hold.
    """
    if type(data) is Data and data.model is model and data._stamp is model._stamp is not None:
        return data  # neither has changed since the last call
    instance("data", data, Data, "a Data (created by featherlane.Data(model))", ArgumentTypeError)
    if data.model is not model:
        check_model(model)
        data._check_sizes(model)
        raise other_model("data", model, data.model)
    model.check_edits()
    if data._revision != model.revision:
        data._switch(model)
    elif data._stamp is not model._own_stamp:
        data._follow_edits()
    return data


def other_model(kind: str, model: Model, own: Model) -> ModelError:
    """Returns the error of a call `f(model, worlds)` with another model than that of the worlds, a data or a batch."""
    switch = "; pass data.model, or assign data.model = model to switch" if kind == "data" else ""
    return ModelError(f"model: got {model!r}, which is not the {kind}'s {own!r}{switch}")


def run_stage(model: Model, data: Data, stage: Stage) -> None:
    """Runs a stage on the data's memory, with the present values of the model; raises as `ready` does."""
    world = ready(model, data)
    world._kept[0] = 0
    hold(world._turns, world.workspace.bound(stage))
    if world._bad[0] & world._unreported & FOUND_FULL:
        world._warn(FOUND_FULL, 3)


class Call(NamedTuple):
    """A prepared call of a stage; reading a tuple takes less time than reading attributes of a `Data`.

    Attributes:
        model, stamp: the model, and its stamp without edits.
        run: the bound stage with sensors; None if Python code runs between several steps.
        turns, token: the turns of the data, and the token of the only one.
        bad: bits of the conditions found since the reset.
    """

    model: Model
    stamp: object
    run: Any
    turns: tuple[Turn]
    token: list[None]
    bad: memoryview


def _call(model: Model, data: Data, stage: Stage) -> Call:
    """Returns the call of a stage, prepared for the present values of the model; raises as `ready` does."""
    ready(model, data)
    call = data._calls.get(stage)
    if call is None:
        run = data._measured(stage)
        if stage is unkept_steps and (data.workspace.calls.calls_python or run is not data.workspace.bound(stage)):
            run = None
        call = data._calls[stage] = Call(model, data._stamp, run, data._turns, data._turns[0].token, data._bad)
    return call


@holds_turns
def run_measured(model: Model, data: Data, stage: Stage) -> None:
    """Runs a stage that computes sensors, and then the user-defined sensors; raises as `ready` does."""
    call = data._calls.get(stage) if type(data) is Data else None
    if call is None or call[0] is not model or call[1] is not model._stamp:
        call = _call(model, data, stage)
    _, _, run, turns, token, bad = call
    try:  # as `hold` does, without its overhead
        token.pop()
    except IndexError:
        turns[0].take_over()
    try:
        run()
    finally:
        token.append(None)
    if bad[0] and bad[0] & data._unreported & FOUND_FULL:  # a pass counts non-finite values without a warning
        data._warn(FOUND_FULL, 3)


@holds_turns
def step(model: Model, data: Data, nstep: int = 1) -> None:
    """Advances the world by nstep time steps of `model.opt.timestep` [s].

    Reads the state (`time`, `qpos`, `qvel`, `qacc_warmstart`) and the inputs (`ctrl`, `qfrc_applied`, `xfrc_applied`,
    `mocap_pos`, `mocap_quat`, `eq_active`), and writes the new state.  Derived fields are those of the state before the
    last step.  With the flag `sleep`, trees at rest fall asleep and do not move until something wakes them
    (`data.tree_asleep`).

    If a position, velocity, activation, time, acceleration or pose of a mocap body is NaN or beyond 1e10, the world is
    reset, and `data.status` counts the step.  The first such reset emits a `NonFiniteWarning`.  If a control is NaN or
    beyond 1e10, `data.status` counts the step, too; all controls then act as 0, and the world is not reset.

    Args:
        model: the model.
        data: the world.
        nstep: time steps, at least 1.

    Raises:
        ModelError: nstep is not an integer or below 1; the model is not the data's.
        TypeError: `data` is not a Data.
        RuntimeError: another thread is in a call of this data.

    Source: MuJoCo mj_step.
    """
    call = data._calls.get(unkept_step) if type(data) is Data else None
    if call is None or call[0] is not model or call[1] is not model._stamp:
        call = _call(model, data, unkept_step)
    _, _, run, turns, token, bad = call
    count = nstep if nstep.__class__ is int and nstep > 0 else whole_argument("nstep", nstep, 1)
    several = None if count == 1 else _call(model, data, unkept_steps).run
    try:  # as `hold` does, without its overhead
        token.pop()
    except IndexError:
        turns[0].take_over()
    try:
        if count == 1:
            run()
        elif several is None:
            for _ in range(count):
                run()
        else:
            for start in range(0, count, AT_ONCE):
                several(min(AT_ONCE, count - start))
    finally:
        token.append(None)
    if bad[0] and bad[0] & data._unreported:
        data._warn(bad[0])
