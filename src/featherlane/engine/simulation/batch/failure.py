"""Defines `Failure`: recorded steps of a world up to a failed step, for inspection and bitwise identical replay."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from featherlane.engine.lanes import Kernel
from featherlane.engine.lanes.record import allocated
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.model import Model
from featherlane.engine.model.set_const import model_of_world
from featherlane.engine.simulation.batch.failure_file import save
from featherlane.engine.simulation.batch.worlds import Worlds
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.user.control import NUMBERS, Controller, control_function
from featherlane.engine.simulation.user.function import UserFunction
from featherlane.engine.simulation.world.data import Data, step
from featherlane.errors import ModelError

SEVERITY = (
    "non_finite",
    "bad_control",
    "singular_inertia",
    "not_converged",
    "rows_full",
    "contacts_full",
)  # most severe first
MADE = ("_model", "_data", "_function")  # created at the first access
GIVEN = frozenset(DATA.of("drive", "input", "given"))  # set by the user; all other fields follow from the last step


class Failure:
    """Records a failed step of one world, in which a count of `status` grew, and the steps before it.

    `fl.Batch(model, nworld, record_failures=n)` stores failures in `batch.failures`; `load_failure` reads a saved one.

        failure = batch.failures[0]
        data = failure.replay(-1)  # the world before the failed step; `data.forward()` computes that step's fields
        data = failure.replay()    # the world after it, bitwise identical to the batch

    Attributes:
        world: number of the world.
        step: number of earlier steps of the world since the batch was created (a reset does not restart the count).
        causes: all counts of `status` that grew in the step.
        nstep: number of recorded steps, at most `record_failures`; the failed step is the last.  The number is smaller
            after a reset, after an edit of the model, or soon after the start.
        states: all persistent fields of the world, inputs included, before each of these steps: name -> (nstep, ...),
            in the batch's dtype.  The own numbers of a `Controller` are among them, with names such as `p.target`.
        dtype: the batch's.
        control: the kernel that set controls within the steps of a rollout, or None.  A file does not contain it:
            assign it before a replay.

    Note:
        `data` and `model` are created at the first access and belong to the failure.  Edits of the model
        (`failure.model.opt.iterations = 50`) take effect in the next `replay`: this tests whether a change avoids the
        failure.
    """

    control: Kernel | None

    @staticmethod
    def numbered(parts: Iterable[Iterable[Failure]], starts: np.ndarray) -> list[Failure]:
        """Returns copies of the failures of several batches, with world numbers from each batch's start, by step."""
        found = []
        for start, own in zip(starts.tolist(), parts, strict=False):
            for failure in map(copy.copy, own):
                failure.world += start
                found.append(failure)
        return sorted(found, key=lambda failure: (failure.step, failure.world))

    def __init__(
        self,
        world: int,
        step: int,
        causes: tuple[str, ...],
        states: dict[str, np.ndarray],
        model: Model,
        own: dict[str, np.ndarray],
        kind: Callable[..., Any],
        given_contacts: int = 0,
        control: Kernel | None = None,
        scratch: dict[str, int] | None = None,
    ):
        self.world, self.step, self.causes = world, step, causes
        self.states, self.control = states, control
        self._scratch = scratch or {}  # sizes of the control kernel's scratch memory
        self._kind, self._given_contacts = kind, given_contacts  # of the batch
        self._common, self._own = model, own  # shared with other failures; callers get copies
        self._edits: list[list[str]] | None = None
        self._needed = ""  # name of the control kernel that a file could not contain
        self._model: Model | None = None
        self._data: Data | None = None
        self._function: UserFunction | None = None

    @property
    def cause(self) -> str:
        """Returns the worst cause, an entry of `status`."""
        return next(name for name in SEVERITY if name in self.causes)

    @property
    def nstep(self) -> int:
        return len(self.states["time"])

    @property
    def time(self) -> float:
        """Returns the simulation time before the failed step [s]."""
        return float(self.states["time"][-1, 0])

    @property
    def dtype(self) -> np.dtype:
        return min((a.dtype for a in self.states.values()), key=lambda dtype: dtype.itemsize)  # time is always float64

    @property
    def model(self) -> Model:
        """Returns the world's model at the time of the failure, expanded fields included."""
        if self._model is None:
            self._model = self._made_model()
        return self._model

    @property
    def data(self) -> Data:
        """Returns the world in float64, initially in the first recorded state; `replay` advances it."""
        if self._data is None:
            self.replay(0)
        assert self._data is not None
        return self._data

    def replay(self, stop: int | None = None, *, checked: bool = False) -> Data:
        """Resets `data` to the first recorded state and steps it with the recorded inputs.

        Args:
            stop: number of steps to take, 0 to nstep.  A negative number counts from the end.  None takes all steps,
                the failed one included.
            checked: whether kernels check the bounds of every index, to find an invalid access before the failure.
                These kernels are compiled at their first use.

        Returns:
            `data`.  If steps are left, its inputs are those of the next step.  Derived fields are those of the last
            step; `data.forward()` computes them for the present state.

        Raises:
            ModelError: stop is out of range; the failure was read from a file and lacks its `control`.
            KernelError: with `checked`, an index was out of bounds; the message names the stage and the field.
            UnsupportedFeatureError: the failure was read from a file and its model called user callbacks, which
                `set_user_actuator(failure.model, ...)` registers again.

        Note:
            The result is bitwise identical to the batch's world if the batch was in float64; for a float32 batch use
            `replay_batch`.  If the batch reset the world for non-finite or out-of-range values, the replay resets it,
            too.  `replay(-1)`, followed by `data.forward()`, shows the source of these values.
        """
        stop, checked = self._stop(stop), flag("checked", checked)
        if self._data is None or self._data.workspace.checked != checked:
            self._data = Data(self.model, self._given_contacts)
            self._data.workspace.checked = checked
            self._data.mute()  # a replay needs no warning
        data, model = self._data, self.model
        data.reset()
        numbers = self._set_control(data, model)
        memory = lambda name: numbers[name] if name in numbers else data.workspace.view(name)  # noqa: E731
        try:
            self._repeat(stop, self._edited(), lambda: step(model, data), memory)
        finally:
            data.workspace.calls.set_control(None)
        return data

    def replay_batch(self, stop: int | None = None) -> Worlds:
        """Replays in a batch of one world with the failed batch's dtype, which is bitwise identical in float32, too.

        Args:
            stop: as in `replay`.

        Returns:
            A new `Batch` of one world of `model`.

        Raises:
            ModelError, UnsupportedFeatureError: as `replay` does.
        """
        stop, batch = self._stop(stop), self._made_batch(self.model)
        control, memory = self._control_of(batch)
        self._repeat(stop, self._edited(), lambda: batch.rollout(1, control, ()), memory)
        return batch

    def save(self, path: str | Path) -> None:
        """Writes the failure, its model and meshes included, into a file that `load_failure` reads.

        Args:
            path: path of a .npz file; it contains only the names of user kernels, not the kernels.

        Raises:
            ModelError: the path does not end in .npz, or cannot be written.
        """
        save(self, path)

    def __repr__(self) -> str:
        return f"Failure(world={self.world}, step={self.step}, time={self.time:g}, cause={self.cause!r})"

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in MADE}

    def __setstate__(self, state):
        self.__dict__.update(dict.fromkeys(MADE), **state)

    # ---- inside ------------------------------------------------------------------------------------------------------
    def _control_name(self) -> str:
        """Returns the control kernel's name, "" without one."""
        return self._needed if self.control is None else self.control.function.__name__

    def _stop(self, stop) -> int:
        """Returns how many steps to take, checked."""
        if self._control_name() and self.control is None:
            raise ModelError(
                f"failure.control: got None, allowed is the kernel {self._needed!r} that set this "
                f"world's controls; the file does not contain it"
            )
        n = self.nstep
        count = n if stop is None else whole_argument("stop", stop, -n, n)
        return count + n if count < 0 else count

    def _made_model(self) -> Model:
        return model_of_world(self._common, self._own)

    def _made_batch(self, model: Model) -> Worlds:
        batch = self._kind(model, 1, 1, dtype=self.dtype, given_contacts=self._given_contacts)
        batch.mute()
        return batch

    def _own_numbers(self) -> dict[str, np.ndarray]:
        """Returns the rows of the control kernel's own numbers, by their names in the kernel."""
        return {name.removeprefix(NUMBERS): a for name, a in self.states.items() if name.startswith(NUMBERS)}

    def _control_of(self, batch: Worlds) -> tuple[Any, Callable[[str], np.ndarray]]:
        """Returns the control of a replay in a batch of one world, and a function to the memory of a state."""
        own = self._own_numbers()
        if self.control is None or not own:
            return self.control, lambda name: batch.row_memory(name)[0]
        sizes = {name: rows.shape[1] for name, rows in own.items()}
        control = Controller(batch, self.control, scratch=self._scratch, **sizes)
        numbers = {NUMBERS + name: rows[0] for name, rows in control.rows.items()}
        return control, lambda name: numbers[name] if name in numbers else batch.row_memory(name)[0]

    def _set_control(self, data: Data, model: Model) -> dict[str, np.ndarray]:
        """Sets the control kernel of the steps of this `Data`; returns the memory of its own numbers by state."""
        if self.control is None:
            return {}
        data.model = model
        control, _ = self._control_of(self._made_batch(model))
        if self._function is None or self._function.function is not self.control:
            self._function = control_function(model, control)
        own, workspace = self._function.own, data.workspace
        record = allocated(own, {}, workspace.width, workspace.dtype) if own.fields else None
        workspace.calls.set_control(self._function, record)
        return {NUMBERS + name: rows[:, 0] for name, rows in record.arrays.items()} if record else {}

    def _edited(self) -> list[list[str]]:
        """Returns the fields that the user wrote before each step: those that differ from the last step's result."""
        if self._edits is None:
            edits: list[list[str]] = [list(self.states)]
            batch = self._made_batch(self._made_model())
            control, memory = self._control_of(batch)

            def advance() -> None:
                batch.rollout(1, control, ())
                came, k = {name: batch.rows.get(name) for name in self.states if not _is_given(name)}, len(edits)
                edits.append([n for n, a in came.items() if a is None or a[0].tobytes() != self.states[n][k].tobytes()])

            self._repeat(self.nstep - 1, edits, advance, memory)
            self._edits = edits
        return self._edits

    def _repeat(
        self,
        stop: int,
        edits: list[list[str]],
        advance: Callable[[], object],
        memory: Callable[[str], np.ndarray],
    ) -> None:
        """Sets the recorded states and inputs before each of the first `stop` steps, and those of the next step.

        Args:
            stop: number of steps.
            edits: fields to set before each step, in addition to the inputs.
            advance: takes one step.
            memory: returns the memory of a field of the world.
        """
        for k in range(min(stop + 1, self.nstep)):
            for name in self.states:
                if _is_given(name) or name in edits[k]:
                    memory(name)[...] = self.states[name][k]
            if k < stop:
                advance()


def _is_given(name: str) -> bool:
    """Returns whether a state is set before each step of a replay: an input, or a control kernel's own number."""
    return name in GIVEN or name.startswith(NUMBERS)
