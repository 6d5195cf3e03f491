"""Gymnasium's MuJoCo environments on Featherlane: `use(env)` steps an existing environment with its dynamics.

    env = use(gymnasium.make("Ant-v5"))   # model, data, rendering and wrappers work as before

It takes subclasses of `gymnasium.envs.mujoco.MujocoEnv`, among them those of Meta-World and Gymnasium-Robotics, and
Gymnasium-Robotics' `MujocoRobotEnv` (Fetch, Shadow hand).  Vectorized tasks are in `featherlane.environments`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import mujoco

from featherlane.errors import ArgumentTypeError
from featherlane.extension import private, requiring
from featherlane.integrations.stepper import Stepper

HOOK = "_step_mujoco_simulation"  # the method of MujocoEnv that calls MuJoCo
ALLOWED = "allowed is a subclass of gymnasium.envs.mujoco.MujocoEnv, Gymnasium-Robotics' MujocoRobotEnv, or a wrapper"

Environment = TypeVar("Environment")


def use(env: Environment) -> Environment:
    """Replaces the dynamics of a Gymnasium environment with MuJoCo.

    Args:
        env: an environment, or a wrapper of one.  An environment that contains another one in an attribute, as mazes,
            the Franka kitchen and MaMuJoCo do, is accepted too.

    Returns:
        The same environment.  `del world._step_mujoco_simulation` (of a robot environment: `world._mujoco = mujoco`)
        restores MuJoCo's dynamics, where `world` is the environment without wrappers.

    Raises:
        TypeError: no such environment; a class that overrides `_step_mujoco_simulation`.
        InstallationError: Gymnasium is missing, or has a version without the interface of the tried versions.
        ModelError, UnsupportedFeatureError: a model that Featherlane refuses; then nothing is replaced.

    Source: Gymnasium, mujoco_env.py, MujocoEnv; Gymnasium-Robotics, robot_env.py, MujocoRobotEnv.
    """
    world, stepper = _world(env), Stepper()
    if _is_robot(world):
        stepper.prepare(world.model, world.data)
        world._mujoco = SteppingModule(stepper)
        return env
    from gymnasium.envs.mujoco import MujocoEnv

    own = private("gymnasium", MujocoEnv, HOOK)
    if getattr(type(world), HOOK) is not own:
        raise ArgumentTypeError(
            f"use: {type(world).__name__} overrides {HOOK}; call Stepper().mj_step of "
            "featherlane.integrations.stepper there, in place of mujoco.mj_step"
        )
    stepper.prepare(world.model, world.data)
    setattr(world, HOOK, Simulation(world, stepper))
    return env


class Simulation:
    """Steps a `MujocoEnv`, in place of its method `_step_mujoco_simulation`.

    Args:
        world: the environment, without wrappers.
        stepper: computes the steps.
    """

    def __init__(self, world: Any, stepper: Stepper):
        self.world, self.stepper = world, stepper

    def __call__(self, ctrl: Any, n_frames: int) -> None:
        """Sets the controls (nu,), advances by n_frames time steps, and computes forces between bodies."""
        m, d = self.world.model, self.world.data
        d.ctrl[:] = ctrl
        self.stepper.mj_step(m, d, n_frames)
        mujoco.mj_rnePostConstraint(m, d)


class SteppingModule:
    """The module `mujoco` with Featherlane's `mj_step`, for environments that store the module in an attribute.

    Args:
        stepper: computes the steps.
    """

    def __init__(self, stepper: Stepper):
        self.mj_step = stepper.mj_step

    def __getattr__(self, name: str) -> Any:
        return getattr(mujoco, name)


def _world(env: Any) -> Any:
    """Returns the environment with model and data, without wrappers."""
    with requiring("gymnasium", "featherlane.integrations.gymnasium"):
        from gymnasium.envs.mujoco import MujocoEnv

    for world in _candidates(env):
        if isinstance(world, MujocoEnv) or _is_robot(world):
            return world
    raise ArgumentTypeError(f"use: got {type(next(_candidates(env))).__name__}, {ALLOWED}")


def _candidates(env: Any) -> Iterator[Any]:
    """Yields an environment and those in its attributes, without wrappers."""
    outer = getattr(env, "unwrapped", env)
    yield outer
    for inner in vars(outer).values() if hasattr(outer, "__dict__") else ():
        if hasattr(inner, "unwrapped"):
            yield inner.unwrapped


def _is_robot(world: Any) -> bool:
    """Returns whether this is a robot environment of Gymnasium-Robotics on MuJoCo's bindings."""
    return hasattr(world, "_mujoco") and isinstance(getattr(world, "model", None), mujoco.MjModel)
