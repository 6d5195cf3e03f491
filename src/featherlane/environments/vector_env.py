"""`TaskEnv`: n worlds of a task as a Gymnasium vector environment; each world terminates and resets separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, DTypeLike

from featherlane.environments.checkpoints import checkpoint, restore
from featherlane.environments.compiled import sensordata_slice
from featherlane.environments.infos import add_infos, part_of
from featherlane.environments.live_arrays import attach, live_arrays
from featherlane.environments.observations import Observations, is_numbers, named
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.rendering import RENDER_MODES, Painting
from featherlane.environments.rollout import FAULTS, Episodes, History, Rollout, run_policy
from featherlane.environments.task import Task, unused_controls, worlds_of
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.extension import as_real_array, hold_histories, instance, one_of, regular, whole_argument
from featherlane.policies import MLP

DERIVED = ("gymnasium", "fresh", "dm_control")
T = TypeVar("T")
KEPT = "task", "random", "terms", "elapsed", "_done", "_bad", "_without_state", "_noise", "_history"


class TaskEnv(VectorEnv):
    """Simulates n worlds of a task as a vector environment.

    Args:
        task: the task.
        num_envs: worlds.
        max_episode_steps: actions after which an episode is truncated; "task": the task's number; None: no limit.
        autoreset_mode: Gymnasium's mode.  NEXT_STEP: the step after the end of an episode returns the first observation
            of the next one and ignores the action.  SAME_STEP: the last step also resets the world, and
            `info["final_obs"]` has the last observation.  DISABLED: the caller resets worlds by `reset` with
            `options["reset_mask"]`.
        nthread: threads of the batch; 0: one per core.
        dtype: dtype of the batch and of the observations.
        info: whether infos contain the task's infos: positions, velocities, reward terms.
        copy: True: each observation is a new array.  False: observations alternate between two buffers without a copy,
            so the observations of the previous step stay valid.
        record_failures: number of time steps to record of each world, for the replay of a failed world; 0: none.
        render_mode: "rgb_array": `render` returns pictures, headless without a display; None.
        render_worlds: number of worlds to render, from the first; pictures of the others are black.

    Attributes:
        task: the task.
        batch: the worlds, a `Batch`, or for several models a `MixedBatch`; their model fields can be expanded.
        random: random number generators of the worlds.
        elapsed: actions since each world's reset, (n,) int64; written values count towards the limit.
        terms: reward terms of the last step, (n,) by name.

    If the state of a world becomes non-finite or too large, the engine resets the world.  The episode terminates with
    reward 0, and `info["bad_world"]` marks the world, even with `info=False`.  An unclipped action beyond 1e10 has the
    same effect.

    Raises:
        TypeError: `task` is not a `Task`.
        ModelError: values out of range; functions of the task that return other shapes, NaN observations, or non-finite
            rewards.
    """

    _painting: Painting | None = None  # default in case the constructor fails

    def __init__(
        self,
        task: Task,
        num_envs: int = 1,
        *,
        max_episode_steps: int | str | None = "task",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        nthread: int = 0,
        dtype: DTypeLike = "float64",
        info: bool = False,
        copy: bool = True,
        record_failures: int = 0,
        render_mode: str | None = None,
        render_worlds: int = 16,
    ):
        if isinstance(task, type):
            raise ArgumentTypeError(f"task: got the class {task.__name__}, allowed is an object: {task.__name__}(...)")
        instance("task", task, Task, "a featherlane.environments.Task", ArgumentTypeError)
        for name in ("fields", "info_fields"):
            instance(f"task.{name}", getattr(task, name), list | tuple, "a tuple of names")
        limit = task.max_episode_steps if max_episode_steps == "task" else max_episode_steps
        self.frame_skip, self.num_envs = (
            whole_argument("frame_skip", task.frame_skip, 1),
            whole_argument("num_envs", num_envs, 1),
        )
        self.task, self.max_episode_steps = (
            task,
            None if limit is None else whole_argument("max_episode_steps", limit, 1),
        )
        one_of("derived", task.derived, DERIVED)
        self.render_mode, self._painting = render_mode, Painting(task, render_mode, render_worlds)
        self.autoreset_mode = mode_of(autoreset_mode)
        settings = {"nthread": nthread, "dtype": dtype, "record_failures": record_failures}
        self.batch: Any = worlds_of(task, num_envs, settings)  # a Batch or a MixedBatch
        model = self.batch.models[0]
        self.info, self.copy, self.dt = info, copy, self.frame_skip * float(model.opt.timestep)
        self._unused = unused_controls(self.batch)
        self._has_histories = any(m.nhistory > 0 for m in self.batch.models)
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": list(RENDER_MODES),
            "render_fps": round(1 / self.dt),
        }
        self.random = RandomStreams(num_envs)
        self.terms: dict[str, np.ndarray] = {}
        self._every = np.arange(num_envs)
        self.elapsed, self._done = np.zeros(num_envs, np.int64), np.zeros(num_envs, bool)
        self._without_state: np.ndarray | None = np.ones(num_envs, bool)  # worlds before their first reset
        for name in (*task.fields, *(task.info_fields if info else ()), *(["sensordata"] if task.kernels else ())):
            self.batch.bind(name)
        task.dt, task.kernel_rows = self.dt, {name: sensordata_slice(model, name) for name in task.kernels}
        task.prepare(self.batch)
        if task.control is not None and task.derived == "dm_control":
            raise ModelError("derived: got 'dm_control' with a controller, allowed are 'gymnasium' and 'fresh'")
        self.batch.forward_bound()  # for the first call of `observation`, which infers the spaces
        self._bad, self._history = self.batch.count_of(*FAULTS), History()
        self._warnings, self._seen = self.batch.rows["warning"], b""  # live counts, and those of the last step

        low, high = task.action_space(self.batch)
        self.single_action_space = gym.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        self._observations = Observations(task, self.batch, self.random, copy)
        self._noise = self._observations.noise
        self.single_observation_space = self._observations.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_live": live_arrays(self.batch, self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: value for name, value in state.items() if name != "_live"})
        attach(self.batch, self, state["_live"])

    # ---- Gymnasium's interface ---------------------------------------------------------------------------------------
    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:
        """Returns the generators of the worlds, as Gymnasium's vector environments do."""
        return tuple(self.random.generators)

    @property
    def np_random_seed(self) -> tuple[int, ...]:
        """Returns the initial seed of each generator."""
        return tuple(self.random.entropies)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all worlds, or those of `options["reset_mask"]`.

        Args:
            seed: seed of the first world; world i has seed + i.  A list has one seed each; None keeps the generators.
            options: `reset_mask`, (n,) bool: which worlds to reset.

        Returns:
            The observations of all worlds, and infos of the reset ones if `info` is set.

        Raises:
            gymnasium.error.ClosedEnvironmentError: the environment was closed.
            ModelError: `options` or `reset_mask` of another type or shape.
        """
        self._check_open("reset")
        instance("options", options, Mapping | None, "a dict")
        mask = (options or {}).get("reset_mask")
        if mask is None:
            mask = np.ones(self.num_envs, bool)
        mask = regular("reset_mask", mask)
        if mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ModelError(
                f"reset_mask: got {mask.dtype} {mask.shape}, allowed is bool ({self.num_envs},) with at "
                f"least one true value"
            )
        (ids,) = mask.nonzero()
        self.random.reseed(ids, seed)
        self._restart(ids, True)
        if self._without_state is not None:
            left = self._without_state & ~mask
            self._without_state = left if left.any() else None
        infos = add_infos(self.task.start_info(self.batch), mask, {}) if self.info else {}
        return self._observations.observe(ids, lost=self._without_state), infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Applies one action in every world.

        Returns:
            observations (n, k), or a dict of arrays if the task has groups of observations or cameras, rewards (n,),
            terminations (n,), truncations (n,), infos.

        Raises:
            gymnasium.error.ResetNeeded: a world was not reset, or its episode has ended and autoreset is disabled.
            gymnasium.error.ClosedEnvironmentError: the environment was closed.
            ModelError: actions of another shape or type, or NaN; then no world has moved.

        Note:
            An interrupt (Ctrl-C) leaves all worlds of the call at the same time step.  Their episodes may not have
            counted it: call `reset` before the next step.
        """
        self._check_ready("step")
        actions = self._actions(actions)
        (resting,), moving = self._done.nonzero(), None
        if len(resting):
            if self.autoreset_mode is AutoresetMode.DISABLED:
                raise gym.error.ResetNeeded(
                    f"the episode of world {resting[0]} has ended; reset this world with reset_mask"
                )
            (moving,) = (~self._done).nonzero()
            self._restart(resting, self.task.forward_at_start)
        before, (terminations, rewards), bad = self._advance(actions, moving, self._outcome)
        return self._results(rewards, terminations, bad, resting, before)

    def rollout(self, nstep: int, policy: MLP, noise: ArrayLike | None = None) -> Rollout:
        """Runs nstep steps in every world with a policy in the loop, compiled, without Python between the steps.

        States, observations, rewards and episodes are bitwise identical to those of nstep calls of `step` with the
        actions `policy(observations, noise[:, t])`.  Infos and `terms` are not computed.  A NaN action ends the episode
        of its world, and `status` counts it as a bad control.

        Args:
            nstep: steps, at least 1.
            policy: the policy, with as many inputs as the observation and as many outputs as the action.
            noise: (n, nstep, nu) noise of the standard normal distribution (`policies.gaussian_noise`); None: none.

        Returns:
            Observations, actions, rewards, terminations and truncations of each step.

        Raises:
            ModelError: the task does not define `compiled`; the autoreset mode is not NEXT_STEP; cameras, several
                models, `kernels`, `record_failures`, delayed sensors or `derived` other than "gymnasium"; a policy or
                noise of another shape; a function of the task that cannot be compiled; non-finite rewards.
            InstallationError: no compiler is installed.
            gymnasium.error.ResetNeeded: a world was not reset.
            gymnasium.error.ClosedEnvironmentError: the environment was closed.

        Note:
            An interrupt (Ctrl-C) leaves all worlds at the same step.  Their episodes may not have counted it: call
            `reset` before the next step.
        """
        self._check_ready("rollout")
        observed = self._observations
        if observed.images or observed.grouped or observed.noisy:
            raise ModelError(
                "rollout: got a task with cameras, groups of observations or observation_noise, allowed is one without"
            )
        episodes = Episodes(
            self.task, self.batch, self.random, self.frame_skip, self.max_episode_steps, self.autoreset_mode,
            observed.width, observed.numbers, self.elapsed, self._done, self._bad, self._history,
        )  # fmt: skip
        result = run_policy(episodes, nstep, policy, noise)
        self._done, self._bad = episodes.done, episodes.bad
        return result

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Returns a picture of each world, (height, width, 3) uint8, with `render_mode="rgb_array"`; else None.

        Raises:
            InstallationError: the task sets `visual_options`, and MuJoCo's renderer is not available.
            gymnasium.error.ClosedEnvironmentError: the environment was closed.
        """
        self._check_open("render")
        return None if self._painting is None else self._painting.pictures(self.batch)

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the renderer."""
        if self._painting is not None:
            self._painting.close()

    def checkpoint(self) -> dict[str, Any]:
        """Returns the state of the environment, without its model and terrain, for `restore`.

        `pickle` and `torch.save` store it.  It contains the worlds (`Batch.checkpoint`), their derived fields, random
        number generators and episodes, and the state of the task: all numbers, strings, arrays and NumPy generators
        that attributes of the task, their dicts, lists and objects hold, for example the levels of a curriculum.
        """
        return checkpoint(self, KEPT)

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Sets the environment to a checkpoint; the next steps are bitwise identical to those after `checkpoint`.

        The environment must have a task with the same options and the same number of worlds.

        Raises:
            ModelError: not a checkpoint; one of another task, model, number of worlds or precision.
        """
        restore(self, kept, KEPT)
        self._seen = b""

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise gym.error.ClosedEnvironmentError(f"{call}: the environment is closed; create a new one")

    def _check_ready(self, call: str) -> None:
        self._check_open(call)
        if self._without_state is not None:
            world = int(self._without_state.argmax())
            raise gym.error.ResetNeeded(f"{call}: world {world} was not reset yet; call reset first")

    def revive(self) -> None:
        """Lets worlds continue from their current states, before their first reset or after the end of an episode."""
        self._done[:], self._without_state = False, None

    def _advance(self, actions: np.ndarray, moving: np.ndarray | None, outcome: Callable[..., T]) -> tuple[Any, T, Any]:
        """Applies actions in the worlds `moving` (None for all).

        Returns:
            what `reward` needs of the state before; `outcome(actions, before)`; which worlds had a fault, or None.
        """
        batch, task = self.batch, self.task
        before, ids = task.before(batch), self._every if moving is None else moving
        task.act(batch, actions if moving is None else actions[moving], ids)
        task.advance(batch, self.frame_skip, moving)
        if task.derived == "fresh" and batch.bound:
            batch.forward(moving)
        found = outcome(actions, before)
        bad = self._new_faults()
        task.proceed(batch, ids, self.random)
        return before, found, bad

    def _new_faults(self) -> np.ndarray | None:
        """Returns which worlds had one of FAULTS since the last call, (n,) bool; None if none had."""
        seen = self._warnings.tobytes()  # compared in a tenth of the time of the counts
        if seen == self._seen:
            return None
        counted, self._seen = self.batch.count_of(*FAULTS), seen
        bad, self._bad = counted > self._bad, counted
        return bad if bad.any() else None

    def _results(
        self, rewards: np.ndarray, terminations: np.ndarray, bad: np.ndarray | None, resting: np.ndarray, before: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Counts a step and returns its results; with SAME_STEP, worlds whose episodes ended are reset first."""
        self.elapsed += 1
        if bad is not None:
            rewards[bad] = 0.0
            terminations |= bad
        if len(resting):
            rewards[resting] = 0.0
            terminations[resting] = False
            self.elapsed[resting] = 0
        if not np.isfinite(rewards).all():
            wrong = np.flatnonzero(~np.isfinite(rewards))[0]
            raise non_finite_reward(float(rewards[wrong]), int(wrong))
        limit = self.max_episode_steps
        truncations = np.zeros(self.num_envs, bool) if limit is None else self.elapsed >= limit
        observations, infos = self._observations.observe(lost=bad), self._infos(bad, resting, before)
        self._done = done = terminations | truncations
        if self.autoreset_mode is AutoresetMode.SAME_STEP and done.any():
            observations, infos = self._restart_at_once(done, observations, infos)
        return observations, rewards, terminations, truncations, infos

    def _restart_at_once(
        self, done: np.ndarray, observations: Any, infos: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the first observations of reset worlds; infos hold the last ones."""
        final, (ended,) = np.full(self.num_envs, None, object), done.nonzero()
        for w in ended:
            final[w] = row_of(observations, int(w))
        done = done.copy()  # `_restart` clears `_done`
        last = {"final_obs": final, "_final_obs": done, "final_info": infos, "_final_info": done.copy()}
        self._restart(ended, self.task.forward_at_start)
        if self.info:
            last["final_info"] = part_of(infos, done)
            last = add_infos(self.task.start_info(self.batch), done, part_of(infos, ~done)) | last
        # the same buffer, because the other one holds the previous step
        return self._observations.observe(ended, observations), last

    # ---- infos -----------------------------------------------------------------------------------------------------
    def _infos(self, bad: np.ndarray | None, resting: np.ndarray, before: Any) -> dict[str, Any]:
        infos: dict[str, Any] = {} if bad is None else {"bad_world": bad, "_bad_world": bad.copy()}
        if not self.info:
            return infos
        moved = np.ones(self.num_envs, bool)
        if len(resting):
            moved[resting] = False
        infos = add_infos(self.task.info(self.batch, self.terms, before), moved, infos)
        return add_infos(self.task.start_info(self.batch), ~moved, infos) if len(resting) else infos

    # ---- worlds ----------------------------------------------------------------------------------------------------
    def _restart(self, ids: np.ndarray, forward: bool) -> None:
        batch, task = self.batch, self.task
        batch.reset(ids, forward=False)
        task.start(batch, ids, self.random)
        if self._has_histories:
            hold_histories(batch, ids)
        if forward:
            batch.forward_bound(ids)
        task.started(batch, ids)
        self.elapsed[ids] = 0
        self._done[ids] = False
        if np.count_nonzero(self._bad):
            self._bad[ids], self._seen = 0.0, b""  # the same fault may come again

    # ---- results of the task -----------------------------------------------------------------------------------------
    def _actions(self, actions: Any) -> np.ndarray:
        """Checks the actions before any world moves and returns them."""
        actions = _checked("actions", "", actions, self.action_space.shape or ())
        if actions.dtype.kind == "f" and np.isnan(actions).any():
            world, column = np.argwhere(np.isnan(actions))[0]
            raise ModelError(f"actions: got NaN in world {world}, column {column}, allowed are numbers")
        return actions if self._unused is None else np.where(self._unused, 0, actions)

    def _outcome(self, actions: np.ndarray, before: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns terminations (n,) and the sums of the reward terms (n,) in float64, in new arrays."""
        ended, rewards = self._ended(), np.zeros(self.num_envs)
        terminations = np.zeros(self.num_envs, bool) if ended is None else ended.astype(bool)
        for values in self._reward_terms(actions, before):
            rewards += values
        return terminations, rewards

    def _reward_terms(self, actions: np.ndarray, before: Any) -> list[np.ndarray]:
        """Returns the reward terms, each (n,), and stores those with names in `terms`."""
        terms = self.task.reward(self.batch, actions, before)
        parts = named(terms)
        self.terms, shape = {name: values for name, values in parts.items() if name}, (self.num_envs,)
        return [_checked("reward", name, values, shape) for name, values in parts.items()]

    def _ended(self) -> np.ndarray | None:
        """Returns the task's terminations (n,), or None."""
        ended = self.task.terminated(self.batch)
        return None if ended is None else _checked("terminated", "", ended, (self.num_envs,))


def _checked(name: str, part: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Checks an array of numbers of a shape and returns it."""
    if is_numbers(value) and value.shape == shape:
        return value
    what = f"{name} {part!r}" if part else name
    value = as_real_array(what, value, f"is an array {shape} of numbers")
    if value.shape != shape:
        raise ModelError(f"{what}: got shape {value.shape}, allowed is {shape}")
    return value


def non_finite_reward(value: float, world: int) -> ModelError:
    """Returns the error for a reward that is not finite."""
    return ModelError(f"reward: got {value} in world {world}, allowed are finite numbers")


def row_of(observations: Any, world: int) -> Any:
    """Returns a copy of one world's observation, of an array or of a dict of arrays."""
    if isinstance(observations, dict):
        return {name: rows[world].copy() for name, rows in observations.items()}
    return observations[world].copy()


def mode_of(value: Any) -> AutoresetMode:
    """Returns Gymnasium's autoreset mode for a mode or its value.

    Raises:
        ModelError: neither of them.
    """
    try:
        return AutoresetMode(value)
    except (TypeError, ValueError):
        allowed = ", ".join(mode.value for mode in AutoresetMode)
        raise ModelError(
            f"autoreset_mode: got {value!r}, allowed are the members of Gymnasium's AutoresetMode "
            f"and their values {allowed}"
        ) from None
