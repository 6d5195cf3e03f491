"""Base class of tasks on bundled robots: servo targets from actions, domain randomization, reward weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch, load
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.task import Task
from featherlane.environments.tasks.options import weights
from featherlane.environments.tasks.randomization import Randomization
from featherlane.errors import MissingMethodError
from featherlane.extension import interval, specification


@dataclass(kw_only=True)
class RobotTask(Task):
    """Base class of tasks of a robot with servos on its joints; an action sets the target angles.

    A subclass sets the class attributes, and defines `observation`, `targets`, `place` and `terms`.

    Attributes:
        frame_skip: time steps per action.
        weights: weights of the reward terms by name, in place of `default_weights`.
        mass: least and greatest factor on mass and inertia of each body, sampled for each episode [1].
        friction: least and greatest factor on the sliding friction of all geoms [1].
        gain: least and greatest factor on stiffness and damping of each servo [1].
        delay: least and greatest delay of the controls [s].
        derived: "gymnasium": derived fields lag by a time step; "fresh": one more forward pass removes the lag.
        camera_name, width, height: rendering options.
        name: class attribute: name with version, by which the task can be registered.
        robot: class attribute: bundled name, or another source that `featherlane.load` takes.
        limit: class attribute: actions after which an episode is truncated.
        default_weights: class attribute: weight of each reward term by name.
    """

    frame_skip: int = 5
    weights: Mapping[str, float] | None = None
    mass: tuple[float, float] = (1.0, 1.0)
    friction: tuple[float, float] = (1.0, 1.0)
    gain: tuple[float, float] = (1.0, 1.0)
    delay: tuple[float, float] = (0.0, 0.0)
    derived: str = "gymnasium"
    camera_name: str | None = None
    width: int = 480
    height: int = 480

    # attributes of the task, not keyword arguments
    name: ClassVar[str]
    robot: ClassVar[str]
    limit: ClassVar[int]
    reward_threshold: ClassVar[float | None] = None
    default_weights: ClassVar[Mapping[str, float]]

    def __post_init__(self) -> None:
        self.weight = weights("weights", self.weights, self.default_weights)
        for name in ("mass", "friction", "gain"):
            setattr(self, name, interval(name, getattr(self, name), 0.05, 20.0))
        self.delay = interval("delay", self.delay, 0.0, 1.0)
        self.max_episode_steps = self.limit
        spec = specification(self.robot)
        self.shape_model(spec)
        if self.delay != (0.0, 0.0):
            for actuator in spec.actuators:
                actuator.delay = self.delay[1]
                actuator.nsample = int(np.ceil(self.delay[1] / spec.option.timestep)) + 1
        self.model = load(spec)  # a pickled environment contains the model; an MjSpec cannot be pickled

    def shape_model(self, spec: Any) -> None:
        """Changes the bundled robot or its surroundings for the task."""

    # ---- methods of `Task` ----------------------------------------------------------------------------------------
    def prepare(self, worlds: Batch) -> None:
        model, n = worlds.model, worlds.nworld
        self.random_model = Randomization(worlds, self.mass, self.friction, self.gain, self.delay)
        self.low, self.high = model.actuator_ctrlrange.T.copy()
        self.action, self.last_action = np.zeros((2, n, model.nu))
        self.steps = np.zeros(n, np.int64)
        self.failed = np.zeros(n, bool)  # set by `terminated`

    def action_space(self, worlds: Batch) -> tuple[np.ndarray, np.ndarray]:
        return -np.ones(worlds.model.nu), np.ones(worlds.model.nu)

    def act(self, worlds: Batch, actions: np.ndarray, ids: np.ndarray) -> None:
        self.last_action[ids] = self.action[ids]
        self.action[ids] = np.clip(actions, -1.0, 1.0)
        worlds.ctrl[ids] = np.clip(self.targets(worlds, ids), self.low, self.high)

    def targets(self, worlds: Batch, ids: np.ndarray) -> np.ndarray:
        """Returns target angles for the servos of the worlds `ids`, from `action`, (len(ids), nu) [rad]."""
        raise MissingMethodError(f"{type(self).__name__} does not define targets()")

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> dict[str, np.ndarray]:
        return {name: self.weight[name] * value for name, value in self.terms(worlds).items()}

    def terms(self, worlds: Batch) -> dict[str, np.ndarray]:
        """Returns the reward terms without their weights, (n,) each."""
        raise MissingMethodError(f"{type(self).__name__} does not define terms()")

    def proceed(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.steps[ids] += 1

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        self.random_model.draw(ids, random)
        self.steps[ids], self.action[ids], self.last_action[ids] = 0, 0.0, 0.0
        self.place(worlds, ids, random)

    def place(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        """Sets positions, velocities, controls and goals of the worlds `ids`."""
        raise MissingMethodError(f"{type(self).__name__} does not define place()")

    def jerk(self) -> np.ndarray:
        """Returns the sum of squares of the change of the action, (n,)."""
        return np.square(self.action - self.last_action).sum(axis=1)
