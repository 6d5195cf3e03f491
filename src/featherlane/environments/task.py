"""`Task`: observation, reward, termination and initial states as functions of live arrays, for all worlds at once.

A task handles no episodes, seeds or buffers; `vector_env.TaskEnv` does.  `TaskEnv` calls the task for observations,
rewards, terminations and initial states.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from featherlane import Batch, Camera, Controller, MixedBatch, Model, load
from featherlane.environments.compiled import sensordata_slice, with_kernels
from featherlane.environments.images import ImageForm
from featherlane.environments.random_streams import RandomStreams
from featherlane.errors import MissingMethodError, ModelError
from featherlane.lanes import Kernel
from featherlane.policies import LaneFunctions
from featherlane.results import Variants

Parts = np.ndarray | Mapping[str, np.ndarray]
Groups = Parts | Mapping[str, Mapping[str, np.ndarray]]


class Task:
    """A task of n worlds; subclass it and override the methods that differ.

    Every function gets the `Batch`, whose fields are live arrays with the world as first axis: `worlds.qpos` (n, nq).
    List the derived fields that the functions read in `fields`.

    With worlds of several models (`model = fl.variants(...)`), every function gets the `MixedBatch`, whose fields are
    padded to the widest model.  `worlds.groups` has a `Batch` of each model.

    Attributes:
        model: a `Model`, a bundled name, or a source that `featherlane.load` takes; or, for worlds of several models,
            the result of `featherlane.variants`, or pairs (model, number of worlds).
        kernels: functions (m, d, i) that are compiled and run in lanes within the step, by name, each with its number
            of values; `measured` returns the values.  Use them if NumPy would take longer than the physics.
        frame_skip: time steps per action.
        fields: derived fields of the batch that the task reads; they are bound when the batch is created.
        info_fields: derived fields that only `info` and `start_info` read.
        cameras: cameras (`fl.Camera`) whose images are observed.  The observation is then a dict: "state" (n, k), which
            is absent if `observation` returns an empty dict, or the groups of the observation, and the images,
            "camera/output" (n, height, width, ...).
        max_episode_steps: actions after which an episode is truncated, unless the environment sets another number.
        forward_at_start: whether the `fields` of automatically reset worlds are computed before the observation; False
            if only `reward` and `terminated` read the fields.  After a call of `reset` the fields are always computed.
        derived: state to which the derived fields belong after a step.  "gymnasium": the state before the last time
            step, as in MuJoCo's `mj_step`.  "fresh": the current state, at the cost of one more forward pass.
            "dm_control": the current state for fields that positions and velocities determine, at a small cost; the
            others as for "gymnasium".  dm_control's `Environment.step` does the same.
        control: a `fl.Controller` or a control kernel that runs within each time step; `prepare` makes it, and `act`
            sets its goals.  None: the controls that `act` sets are constant within an action.
        dt: duration of an action [s]; set by the environment.
        kernel_rows: slices of each kernel's values in `sensordata`; set by the environment.

    Note:
        `terminated` and `reward` get all worlds, including worlds that were just reset and take no step.  Results for
        these worlds are ignored.  `terminated` is called first, so `reward` may use its results.
    """

    model: Any
    kernels: Mapping[str, tuple[Kernel, int]] = {}
    frame_skip: int = 1
    fields: tuple[str, ...] = ()
    info_fields: tuple[str, ...] = ()
    cameras: Camera | Sequence[Camera] = ()
    max_episode_steps: int | None = None
    forward_at_start: bool = True
    derived: str = "gymnasium"
    control: Controller | Kernel | None = None
    dt: float
    kernel_rows: Mapping[str, slice] = {}
    _image_forms: Mapping[str, ImageForm] = {}  # of outputs of cameras; others are observed as "camera/output"
    _ignored_warning: str = ""  # pattern of warnings about a file that users cannot change

    def prepare(self, worlds: Batch) -> None:
        """Runs once after the batch is created: expand model fields, look up names, allocate the task's arrays."""

    def observation(self, worlds: Batch) -> Groups:
        """Returns the observation of each world: (n, k), or arrays (n, ...) by name, which are concatenated.

        Groups, as for an actor and a critic with privileged observations, are dicts of such arrays by group:
        `{"actor": {"joints": q}, "critic": {"joints": q, "velocity": v}}`.  The observation of the environment is then
        a dict with one array (n, k) for each group.

        The first call follows `prepare`, before the first reset, and determines names and shapes.  The worlds are then
        in the model's default state, or in the state that `prepare` set, and the fields of `fields` are computed.
        """
        raise MissingMethodError(f"{type(self).__name__} does not define observation()")

    def observation_noise(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> Groups:
        """Returns the noise that is added to the observation of the worlds `ids`; the default is none.

        The result has the names of the observation, with arrays (len(ids), ...): `{"joints": 0.01 * random.normal(ids,
        12)}`, by group if the observation has groups.  Parts that are not returned get no noise.  An array (len(ids),
        k) is the noise of all parts, or of all parts of its group.  It is called once after each step and each reset
        of a world, so that a world's noise does not depend on the other worlds.
        """
        return {}

    def measured(self, worlds: Batch, name: str) -> np.ndarray:
        """Returns a kernel's values in each world, (n, values), of the same state as the derived fields."""
        return worlds.sensordata[:, self.kernel_rows.get(name) or sensordata_slice(worlds.model, name)]

    def act(self, worlds: Batch, actions: np.ndarray, ids: np.ndarray) -> None:
        """Sets controls in the worlds `ids` from their actions (len(ids), nu)."""
        worlds.ctrl[ids] = actions

    def before(self, worlds: Batch) -> Any:
        """Returns copies of the values before the action that `reward` needs; the arrays themselves are live."""
        return None

    def advance(self, worlds: Batch, nstep: int, ids: np.ndarray | None) -> None:
        """Runs the nstep time steps of an action in the worlds `ids`; None for all."""
        if self.control is None:
            worlds.step(nstep, ids=ids, stage="velocity" if self.derived == "dm_control" else None)
        else:
            worlds.rollout(nstep, self.control, (), ids=ids)

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> Parts:
        """Returns the reward of each world: (n,), or terms (n,) by name, which are summed."""
        raise MissingMethodError(f"{type(self).__name__} does not define reward()")

    def terminated(self, worlds: Batch) -> np.ndarray | None:
        """Returns which worlds terminate, (n,) bool; None: worlds terminate only on non-finite values."""
        return None

    def compiled(self, worlds: Batch) -> LaneFunctions | None:
        """Returns observation, reward and termination as kernels, for `TaskEnv.rollout`; None: the task has none.

        The kernels replace `observation`, `before`, `reward` and `terminated`.  The methods `act`, `proceed` and
        `started` must be those of `Task`.  `start` may only set `worlds.qpos` and `worlds.qvel`, and read
        `worlds.model`.  `compiled` is called once for each rollout, so parameters of the task may change between
        rollouts.
        """
        return None

    def proceed(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        """Changes the worlds `ids`, which took a step, between its reward and its observation, as by pushes."""

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        """Sets the initial state of the worlds `ids`, which were just reset to the model's defaults.

        Afterwards, the histories of delayed actuators and sensors are filled, as if `ctrl` and the state had been
        constant before the episode.  An actuator or a sensor whose history this method filled with other numbers than 0
        (`fl.init_ctrl_history`, `fl.init_sensor_history`) is skipped.
        """

    def started(self, worlds: Batch, ids: np.ndarray) -> None:
        """Runs after the derived fields of the worlds `ids` were computed from the state that `start` set."""

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        """Returns the infos of each world after a step, arrays (n, ...) by name; `terms` are those of the reward."""
        return {f"reward_{name}": values for name, values in terms.items()}

    def start_info(self, worlds: Batch) -> dict[str, np.ndarray]:
        """Returns the infos of each world after its reset, arrays (n, ...) by name."""
        return {}

    def action_space(self, worlds: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Returns the least and greatest action, (nu,) each: `ctrlrange`, or no bounds for unlimited controls.

        Of several models it returns the widest range of each control; the engine clamps a control to that of its world.
        """
        models = worlds.models
        low, high = np.full((2, max(model.nu for model in models)), [[np.inf], [-np.inf]])
        for model in models:
            limited, part = np.asarray(model.actuator_ctrllimited, bool), slice(model.nu)
            low[part] = np.minimum(low[part], np.where(limited, model.actuator_ctrlrange[:, 0], -np.inf))
            high[part] = np.maximum(high[part], np.where(limited, model.actuator_ctrlrange[:, 1], np.inf))
        return low, high


def unused_controls(worlds: Any) -> np.ndarray | None:
    """Returns which entries of `ctrl` (n, nu) belong to no actuator of their world; None: all worlds have all."""
    return ~worlds.mask("ctrl") if isinstance(worlds, MixedBatch) else None


def worlds_of(task: Task, num_envs: int, settings: dict[str, Any]) -> Any:
    """Returns the worlds of a task, a `Batch` or a `MixedBatch`.

    Raises:
        ModelError: no model, or one that cannot be loaded; kernels with several models; models with other numbers of
            worlds than `num_envs`, or with different time steps.
    """
    if not hasattr(task, "model"):
        allowed = "a Model, a bundled name, or another source that featherlane.load takes"
        raise ModelError(f"task: {type(task).__name__} does not set the attribute model, allowed is {allowed}")
    source = task.model.models if isinstance(task.model, Variants) else task.model
    if not isinstance(source, list | tuple):
        model = with_kernels(source, task.kernels) if task.kernels else source
        with warnings.catch_warnings():
            if task._ignored_warning:
                warnings.filterwarnings("ignore", task._ignored_warning)
            loaded = model if isinstance(model, Model) else load(model)
        return Batch(loaded, num_envs, **settings)
    if task.kernels:
        raise ModelError("kernels: got kernels and several models, allowed are kernels with a single model")
    worlds = MixedBatch(source, **settings)
    if worlds.nworld != num_envs:
        raise ModelError(f"num_envs: got {num_envs}, allowed is {worlds.nworld}, the number of worlds of task.model")
    timesteps = sorted({float(model.opt.timestep) for model in worlds.models})
    if len(timesteps) > 1:
        raise ModelError(f"task.model: got models with the time steps {timesteps}, allowed is one time step for all")
    return worlds
