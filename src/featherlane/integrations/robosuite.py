"""robosuite's environments on Featherlane: `use(env)` steps an existing environment with Featherlane's dynamics.

    env = use(robosuite.make("Lift", robots="Panda"))

robosuite computes its controllers' commands between the two halves of each time step, from MuJoCo's fields.  MuJoCo
computes the first half (positions, velocities, contacts), Featherlane the second one.
"""

from __future__ import annotations

from typing import Any, TypeVar

from featherlane.errors import ArgumentTypeError
from featherlane.extension import private, requiring
from featherlane.integrations.stepper import Stepper

START = "_initialize_sim"  # the method that replaces the simulation, also at a hard reset

Environment = TypeVar("Environment")


def use(env: Environment) -> Environment:
    """Replaces the dynamics of a robosuite environment.

    Args:
        env: a `robosuite.environments.base.MujocoEnv`, such as `robosuite.make` returns, or a wrapper of one.

    Returns:
        The same environment.

    Raises:
        TypeError: no such environment.
        InstallationError: robosuite is missing, or has a version without the interface of the tried version.
        ModelError, UnsupportedFeatureError: a model that Featherlane refuses; then nothing is replaced.

    Source: robosuite, environments/base.py, MujocoEnv.step; utils/binding_utils.py, MjSim.
    """
    with requiring("robosuite", "featherlane.integrations.robosuite"):
        from robosuite.environments.base import MujocoEnv  # pyright: ignore[reportMissingImports]

    world: Any = getattr(env, "unwrapped", env)
    if not isinstance(world, MujocoEnv):
        raise ArgumentTypeError(
            f"use: got {type(env).__name__}, allowed is a robosuite environment or a wrapper of one"
        )
    start = private("robosuite", world, START)

    def start_and_replace(*args: Any, **settings: Any) -> None:
        start(*args, **settings)
        _replace(world.sim)

    _replace(world.sim)
    setattr(world, START, start_and_replace)
    return env


def _replace(sim: Any) -> None:
    """Replaces the steps of a `MjSim`."""
    m, d = private("robosuite", sim.model, "_model"), private("robosuite", sim.data, "_data")
    stepper = Stepper()
    stepper.prepare(m, d)
    sim.step2 = lambda: stepper.mj_step2(m, d)
    sim.step = lambda with_udd=True: stepper.mj_step(m, d)
