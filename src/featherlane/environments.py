"""A batch as a Gymnasium `VectorEnv`: worlds end and start again one by one, while the others go on.

What is observed, what is rewarded and what is an end are functions of the whole batch, so that a step of thousands of
worlds is a few NumPy expressions.  Needs the extra `gym`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from featherlane.errors import ModelError
from featherlane.model import Model, load
from featherlane.model.assign import numbers, regular
from featherlane.simulation.batch.batch import Batch

try:
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError(f"featherlane.environments needs Gymnasium: pip install 'featherlane[gym]' ({error})") from None


class Before(NamedTuple):
    """The state that an action met: qpos (n, nq) and qvel (n, nv)."""

    qpos: np.ndarray
    qvel: np.ndarray


class BatchEnv(VectorEnv):
    """n worlds of one model as a Gymnasium vector environment.

    Args:
        model: a `Model`, or whatever `featherlane.load` takes.
        num_envs: worlds.
        observation: function of the batch to (n, k).
        reward: function of (batch, before) to (n,): `Before` is the state that the action met, `batch.ctrl` the action.
        terminated: function of the batch to (n,) bool; None: worlds end by their numbers turning bad only.
        start: function of (batch, ids, rng) that sets the state of the worlds `ids`, which were just reset to the
            model's defaults; None leaves them there.
        frame_skip: time steps for each action.
        max_episode_steps: actions after which an episode is truncated, None for no limit.
        autoreset_mode: Gymnasium's: NEXT_STEP (the step after an end returns the first observation and ignores the
            action), SAME_STEP (the last observation is in `info["final_obs"]`) or DISABLED (`reset` with
            `options["reset_mask"]`).
        nthread: threads of the batch, 0 for one for each core.
        dtype: of the batch and of the observations.
        record_bad: time steps that are kept of each world, so that one that goes wrong can be replayed; 0: none.

    Attributes:
        batch: the worlds; their model fields can be expanded, and `start` can draw them anew.  With record_bad
            `batch.failures` holds what went wrong, back to the start of the episode at most.

    The action space is the controls within `ctrlrange`, without bounds where an actuator is not limited.  A world whose
    numbers turn bad is reset by the engine, ends its episode (terminated, with reward 0) and is marked in
    `info["bad_world"]`.  So does a world whose action is NaN or beyond 1e10: its controls count as 0.

    Note:
        After a step, derived fields (`batch.xpos`, ...) are those of the state before the last time step, as in MuJoCo;
        an observation that needs current ones calls `batch.forward()` first.

    Raises:
        ModelError: counts out of range, a function whose result has another shape, or a reward that is not finite.
    """

    def __init__(
        self,
        model,
        num_envs: int,
        observation: Callable[[Batch], np.ndarray],
        reward: Callable[[Batch, Before], np.ndarray],
        terminated: Callable[[Batch], np.ndarray] | None = None,
        start: Callable[[Batch, np.ndarray, np.random.Generator], None] | None = None,
        frame_skip: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        nthread: int = 0,
        dtype="float64",
        record_bad: int = 0,
    ):
        model = model if isinstance(model, Model) else load(model)
        for name, value in (("frame_skip", frame_skip), ("max_episode_steps", max_episode_steps)):
            if value is None and name == "max_episode_steps":
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ModelError(f"{name}: got {value!r}, allowed is a whole number from 1")
        functions = {"observation": observation, "reward": reward, "terminated": terminated, "start": start}
        for name, function in functions.items():
            if not callable(function) and not (function is None and name in ("terminated", "start")):
                raise ModelError(f"{name}: got {type(function).__name__}, allowed is a function of the batch")
        self.batch = Batch(model, num_envs, nthread=nthread, dtype=dtype, record_bad=record_bad)
        self.num_envs, self.frame_skip, self.max_episode_steps = num_envs, frame_skip, max_episode_steps
        self.autoreset_mode = _mode(autoreset_mode)
        self.metadata = {"autoreset_mode": self.autoreset_mode, "render_modes": []}
        self._observation, self._reward, self._terminated, self._start = observation, reward, terminated, start
        self._elapsed, self._done = np.zeros(num_envs, np.int64), np.zeros(num_envs, bool)

        self.single_action_space = _action_space(model)
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, self._observe().shape[1:], self.batch.dtype)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    # ---- Gymnasium's calls -----------------------------------------------------------------------------------------
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start all worlds anew, or those of `options["reset_mask"]`.

        Returns:
            The observations of all worlds, and no infos.
        """
        if not isinstance(options, Mapping | None):
            raise ModelError(f"options: got {type(options).__name__}, allowed is a dict")
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask")
        if mask is None:
            mask = np.ones(self.num_envs, bool)
        mask = regular("reset_mask", mask)
        if mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ModelError(
                f"reset_mask: got {mask.dtype} {mask.shape}, allowed is bool ({self.num_envs},), one of it true"
            )
        self._restart(mask)
        return self._observe(), {}

    def step(self, actions):
        """One action in every world.

        Returns:
            observations (n, k), rewards (n,), terminations (n,), truncations (n,), infos.

        Raises:
            gymnasium.error.ResetNeeded: a world has ended, and autoreset is disabled.
        """
        batch, resting = self.batch, self._done.copy()
        if resting.any():
            if self.autoreset_mode is AutoresetMode.DISABLED:
                raise gym.error.ResetNeeded(f"world {np.flatnonzero(resting)[0]} has ended; reset it with reset_mask")
            self._restart(resting)
        before, bad = Before(batch.qpos.copy(), batch.qvel.copy()), self._bad_count()
        moving = np.flatnonzero(~resting)
        batch.ctrl[moving] = self._checked("actions", actions, (self.num_envs, batch.model.nu))[moving]
        rewards = np.zeros(self.num_envs)
        if moving.size:
            batch.step(self.frame_skip, ids=moving)
            rewards[:] = self._checked("reward", self._reward(batch, before), (self.num_envs,))
        self._elapsed[moving] += 1
        return self._results(rewards, resting, self._bad_count() > bad)

    def _results(self, rewards, resting, bad):
        """What a step returns, worlds that ended in it restarted where the mode says so."""
        infos: dict[str, Any] = {"bad_world": bad, "_bad_world": bad.copy()} if bad.any() else {}
        rewards[resting | bad] = 0.0
        wrong = np.flatnonzero(~np.isfinite(rewards))
        if wrong.size:
            raise ModelError(f"reward: world {wrong[0]} has {rewards[wrong[0]]}, allowed are finite numbers")
        ended = np.zeros(self.num_envs, bool)
        if self._terminated is not None:
            ended = self._checked("terminated", self._terminated(self.batch), (self.num_envs,)).astype(bool)
        terminations = (ended | bad) & ~resting
        truncations = np.zeros(self.num_envs, bool)
        if self.max_episode_steps is not None:
            truncations = (self._elapsed >= self.max_episode_steps) & ~resting
        self._done, observations = terminations | truncations, self._observe()
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._done.any():
            done = self._done.copy()
            final = np.full(self.num_envs, None, object)
            for w in np.flatnonzero(done):
                final[w] = observations[w]
            infos = {"final_obs": final, "_final_obs": done, "final_info": infos, "_final_info": done.copy()}
            self._restart(done)
            observations = self._observe()
        return observations, rewards, terminations, truncations, infos

    # ---- worlds ----------------------------------------------------------------------------------------------------
    def _bad_count(self) -> np.ndarray:
        """In how many steps each world had bad numbers or a bad control, (n,)."""
        status = self.batch.status
        return status["bad_number"] + status["bad_control"]

    def _restart(self, mask: np.ndarray) -> None:
        ids = np.flatnonzero(mask)
        self.batch.reset(ids)
        if self._start is not None:
            self._start(self.batch, ids, self.np_random)
        self._elapsed[ids] = 0
        self._done[ids] = False

    def _observe(self) -> np.ndarray:
        allowed = f"is an array ({self.num_envs}, k) of numbers"
        seen = numbers("observation", self._observation(self.batch), allowed)
        if seen.ndim != 2 or len(seen) != self.num_envs:
            raise ModelError(f"observation: got shape {seen.shape}, allowed {allowed}")
        return seen.astype(self.batch.dtype)

    @staticmethod
    def _checked(name: str, value, shape) -> np.ndarray:
        value = numbers(name, value, f"is an array {shape} of numbers")
        if value.shape != shape:
            raise ModelError(f"{name}: got shape {value.shape}, allowed is {shape}")
        return value


def _mode(value) -> AutoresetMode:
    """Gymnasium's mode, or its value."""
    try:
        return AutoresetMode(value)
    except (TypeError, ValueError):
        allowed = ", ".join(mode.value for mode in AutoresetMode)
        raise ModelError(
            f"autoreset_mode: got {value!r}, allowed are Gymnasium's AutoresetMode and {allowed}"
        ) from None


def _action_space(model: Model):
    """Controls of one world."""
    limited = np.asarray(model.actuator_ctrllimited, bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -np.inf)
    high = np.where(limited, model.actuator_ctrlrange[:, 1], np.inf)
    return gym.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
