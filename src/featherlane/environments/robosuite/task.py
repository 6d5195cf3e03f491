"""`RobosuiteTask`: a task of robosuite in all worlds of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch, Camera, controllers
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.robosuite.images import VISUAL, image_forms
from featherlane.environments.robosuite.rewards import Goal
from featherlane.environments.robosuite.source import STATE, Source, read
from featherlane.environments.task import Task
from featherlane.errors import ModelError
from featherlane.extension import whole_argument

FIELDS = ("xpos", "xquat", "site_xpos", "site_xmat", "qacc")


class ControlledTask(Task):
    """Base class of tasks whose actions are those of a composite controller.

    Attributes:
        parts: the controller, which `prepare` makes; also `control`.
    """

    parts: controllers.Composite

    def action_space(self, worlds: Batch) -> tuple[np.ndarray, np.ndarray]:
        return self.parts.action_limits

    def act(self, worlds: Batch, actions: np.ndarray, ids: np.ndarray) -> None:
        every = np.zeros((worlds.nworld, self.parts.action_width))
        every[ids] = actions
        self.parts.set_goal(every)


@dataclass(kw_only=True)
class RobosuiteTask(ControlledTask):
    """A task of robosuite, with its default options unless others are given.

    Attributes:
        robots: name of the robot, or names of two robots; those with a fixed base.
        controller_configs: configuration of the composite controller, or one of each robot; None: robosuite's default.
        env_configuration, gripper_types, initialization_noise, use_object_obs: as in robosuite.
        reward_shaping: whether the reward is shaped; None: robosuite's default.
        reward_scale: the largest reward; None: rewards are not scaled.
        control_freq: actions per second.
        horizon: actions after which an episode is truncated.
        camera_names: names of cameras whose images are observed, as "agentview_image".
        camera_heights, camera_widths: size of the images [pixels], numbers or one for each camera.
        camera_depths: whether depth is observed, too, as "agentview_depth": for all cameras or for each.
        pool: number of initial states, which robosuite samples when the environment is made; each reset of a world
            chooses one by the world's random number generator.
        seed: seed of these initial states; None: fresh ones.
        options: other keyword arguments of robosuite's environment, such as `{"use_latch": False}`.
    """

    robots: str | Sequence[str] = "Panda"
    controller_configs: Any = None
    env_configuration: str = "default"
    gripper_types: Any = "default"
    initialization_noise: Any = "default"
    use_object_obs: bool = True
    reward_shaping: bool | None = None
    reward_scale: float | None = 1.0
    control_freq: float = 20
    horizon: int = 1000
    camera_names: str | Sequence[str] = ()
    camera_heights: int | Sequence[int] = 256
    camera_widths: int | Sequence[int] = 256
    camera_depths: bool | Sequence[bool] = False
    pool: int = 256
    seed: int | None = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str]
    goal: ClassVar[type[Goal]]
    reward_threshold: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        whole_argument("pool", self.pool, 1)
        robots = self.robots if isinstance(self.robots, str) else list(self.robots)
        settings = {"robots": robots, "seed": self.seed, **self.options}
        same = ("controller_configs", "env_configuration", "initialization_noise", "use_object_obs", "reward_scale")
        settings |= {name: getattr(self, name) for name in (*same, "control_freq", "horizon")}
        if self.gripper_types != "default":
            settings["gripper_types"] = self.gripper_types
        if self.reward_shaping is not None:
            settings["reward_shaping"] = self.reward_shaping
        self.source: Source = read(self.name.removeprefix("robosuite."), self.goal, settings, self.pool)
        self.model, self.frame_skip, self.max_episode_steps = self.source.model, self.source.frame_skip, self.horizon
        self.fields = (*FIELDS, *self.source.goal.fields)
        names = [self.camera_names] if isinstance(self.camera_names, str) else list(self.camera_names)
        given = [of_each(name, getattr(self, f"camera_{name}"), len(names)) for name in ("heights", "widths", "depths")]
        self.cameras = [
            Camera(name, height=height, width=width, output=("rgb", "depth")[: 1 + bool(deep)], geomgroup=VISUAL)
            for name, height, width, deep in zip(names, *given, strict=True)
        ]
        self._image_forms = image_forms(self.model) if names else {}

    def prepare(self, worlds: Batch) -> None:
        made = {}
        for name, part in self.source.parts.items():
            made[name] = part.make(worlds)
            for row, values in part.rows.items():
                setattr(made[name], row, values)
        self.control = self.parts = controllers.Composite(made)
        fixed = (*STATE, "touch", "used")
        self.edited = {name: worlds.expand(name) for name in self.source.starts if name not in fixed}
        self.success = np.zeros(worlds.nworld, bool)
        for pose in self.source.delayed:
            pose.prepare(worlds)
        self.source.goal.prepare(worlds)

    def advance(self, worlds: Batch, nstep: int, ids: np.ndarray | None) -> None:
        contacts, rows = self.source.contacts, np.arange(worlds.nworld) if ids is None else ids
        self.source.goal.before(worlds, rows)
        if contacts.names:  # those of the state before the last time step
            if nstep > 1:
                super().advance(worlds, nstep - 1, ids)
            self.source.goal.touch[slice(None) if ids is None else ids] = contacts.of(worlds, ids)
            nstep = 1
        super().advance(worlds, nstep, ids)
        self.source.goal.after(worlds, rows)

    def terminated(self, worlds: Batch) -> np.ndarray | None:
        return self.source.goal.ended(worlds)

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        reward, self.success = self.source.goal(worlds, self.source.goal.touch)
        return reward if self.reward_scale is None else reward * (self.reward_scale / self.source.goal.scale)

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        return {"success": self.success}

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        chosen = random.integers(ids, 0, self.pool, 1)[:, 0]
        starts = self.source.starts
        for name in STATE:
            getattr(worlds, name)[ids] = starts[name][chosen]
        for name, rows in self.edited.items():
            rows[ids] = starts[name][chosen].reshape(rows[ids].shape)
        goal = self.source.goal
        goal.touch[ids], goal.used[ids] = starts["touch"][chosen], starts["used"][chosen]
        self.parts.reset(ids)
        self.success[ids] = False
        goal.start(worlds, ids)

    def started(self, worlds: Batch, ids: np.ndarray) -> None:
        self.source.goal.started(worlds, ids)
        for pose in self.source.delayed:
            pose.sample(worlds, ids, first=True)

    def proceed(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        for pose in self.source.delayed:
            pose.sample(worlds, ids, first=False)

    def observation(self, worlds: Batch) -> dict[str, dict[str, np.ndarray]]:
        seen: dict[str, np.ndarray] = {}
        joined: dict[str, list[np.ndarray]] = {}
        source, used = self.source, self.source.goal.used[:, None]
        slots: dict[int, np.ndarray] = {}  # values of the object that is used
        for name, modality, function in source.observed:
            seen[name] = function(worlds, seen)
            k, slot = source.alternatives.get(name, (-1, -1))
            if k >= 0:
                seen[name] = np.where(used == k, seen[name], 0.0)  # robosuite leaves it out
            if k > 0:
                slots[slot] += seen[name]
                continue
            slots[slot] = seen[name].copy() if k == 0 else seen[name]
            joined.setdefault(f"{modality}-state", []).append(slots[slot])
        seen |= {name: np.concatenate(rows, axis=1) for name, rows in joined.items()}
        return {name: {name: values} for name, values in seen.items()}


def of_each(name: str, value: Any, count: int) -> list[Any]:
    """Returns an option of each camera, which is given for all or for each."""
    values = list(value) if isinstance(value, list | tuple) else [value] * count
    if len(values) != count:
        raise ModelError(f"camera_{name}: got {len(values)} values, allowed are one or {count}, one for each camera")
    return values


@dataclass(kw_only=True)
class TwoArmTask(RobosuiteTask):
    """A task of robosuite with two arms; `robots` has the names of two robots, or of one with two arms."""

    robots: str | Sequence[str] = ("Panda", "Panda")
