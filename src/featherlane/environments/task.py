"""What a task is: functions of live arrays, for all worlds at once.

A task knows nothing of episodes, seeds and buffers: `vector_env.TaskEnv` keeps those, and asks the task what is seen,
what is paid, what is an end, and how a world starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.environments.compiled import rows_of
from featherlane.environments.random_streams import RandomStreams
from featherlane.errors import MissingMethodError
from featherlane.lanes import Kernel
from featherlane.simulation.batch.batch import Batch

Parts = np.ndarray | Mapping[str, np.ndarray]


class Task:
    """A task of n worlds; subclass it, and override what differs.

    Every function gets the `Batch`, whose fields are live arrays with the world first: `worlds.qpos` (n, nq).  Derived
    fields that it reads are named in `fields`.

    Attributes:
        model: what `featherlane.load` takes.
        kernels: functions (m, d, i) that are compiled and run in lanes within the step, by name, each with the number
            of values that it gives; `measured` has them.  For what NumPy would take longer for than physics does.
        frame_skip: time steps for each action.
        fields: derived fields of the batch that the task reads; they are bound when the batch is made.
        info_fields: those that only `info` and `start_info` read.
        max_episode_steps: actions after which an episode is truncated, where the environment is not told otherwise.
        forward_at_start: whether the `fields` of worlds that start after an end are computed before these are seen;
            False where only `reward` and `terminated` read them.  After a call of `reset` they always are.
        derived: "gymnasium": after a step the derived fields are those of the state before its last time step, as in
            MuJoCo's `mj_step`; "fresh": those of the state itself, for one more forward pass.
        dt: time of an action [s]; the environment sets it, and so
        kernel_rows: where the values of each kernel stand in `sensordata`.

    Note:
        `terminated` and `reward` see all worlds, those too that were just restarted and take no step: what they say of
        these is not used.  `terminated` is asked first, so that `reward` may use what it has found.
    """

    model: Any
    kernels: Mapping[str, tuple[Kernel, int]] = {}
    frame_skip: int = 1
    fields: tuple[str, ...] = ()
    info_fields: tuple[str, ...] = ()
    max_episode_steps: int | None = None
    forward_at_start: bool = True
    derived: str = "gymnasium"
    dt: float
    kernel_rows: Mapping[str, slice] = {}

    def prepare(self, worlds: Batch) -> None:
        """Once, when the batch is there: expand fields of the model, look names up, make arrays of the task's own."""

    def observation(self, worlds: Batch) -> Parts:
        """What is seen of each world: (n, k), or arrays (n, ...) by name, which are put side by side."""
        raise MissingMethodError(f"{type(self).__name__} has no observation")

    def measured(self, worlds: Batch, name: str) -> np.ndarray:
        """What the kernel of a name gave in each world, (n, values): as derived fields, of the same state as these."""
        return worlds.sensordata[:, self.kernel_rows.get(name) or rows_of(worlds.model, name)]

    def act(self, worlds: Batch, actions: np.ndarray, ids: np.ndarray | None) -> None:
        """Set controls from actions (n, nu), in the worlds `ids`, None for all."""
        if ids is None:
            worlds.ctrl[:] = actions
        else:
            worlds.ctrl[ids] = actions[ids]

    def before(self, worlds: Batch) -> Any:
        """What `reward` has to know of the state that an action meets; copies, for the arrays are live."""
        return None

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> Parts:
        """What each world is paid: (n,), or terms (n,) by name, whose sum it is."""
        raise MissingMethodError(f"{type(self).__name__} has no reward")

    def terminated(self, worlds: Batch) -> np.ndarray | None:
        """Which worlds have come to an end, (n,) bool; None: none, but by numbers that turn bad."""
        return None

    def proceed(self, worlds: Batch, ids: np.ndarray | None, random: RandomStreams) -> None:
        """After the worlds `ids`, None for all, were paid for a step, and before they are seen: what changes by itself,
        as new commands and pushes."""

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        """Set the state of the worlds `ids`, which were just reset to the model's defaults."""

    def started(self, worlds: Batch, ids: np.ndarray) -> None:
        """After the derived fields of the worlds `ids` were computed from the state that `start` set."""

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        """What is told of each world after a step, arrays (n, ...) by name; `terms` are those of the reward."""
        return {f"reward_{name}": values for name, values in terms.items()}

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        """What is told of each world after its start, arrays (n, ...) by name."""
        return {}

    def action_space(self, worlds: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest action, (nu,) each: the controls within `ctrlrange`, no bounds where none are set."""
        model = worlds.model
        limited = np.asarray(model.actuator_ctrllimited, bool)
        low = np.where(limited, model.actuator_ctrlrange[:, 0], -np.inf)
        return low, np.where(limited, model.actuator_ctrlrange[:, 1], np.inf)
