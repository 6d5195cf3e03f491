"""dm_control on Featherlane: `use(env)` steps an existing Environment with Featherlane's dynamics.

    env = use(suite.load("walker", "walk"))   # physics, rendering and named access work as before

`env.physics` stays the same object.  Its `step` is replaced: the state is read from `physics.data`, stepped by
Featherlane, and written back together with accelerations, forces and sensors.  MuJoCo's `mj_step1` then computes
positions, velocities and contacts of the new state, as dm_control itself does at the end of each step.
The batched tasks of dm_control's suite are in `featherlane.environments`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from featherlane.errors import ArgumentTypeError
from featherlane.extension import requiring, unsupported
from featherlane.integrations.stepper import Stepper

Environment = TypeVar("Environment")


def use(env: Environment) -> Environment:
    """Replaces the dynamics of an environment of dm_control.

    Args:
        env: a `dm_control.rl.control.Environment`, such as `dm_control.suite.load` returns, or a wrapper of one.

    Returns:
        The same environment.  `del env.physics.step` restores dm_control's dynamics.

    Raises:
        TypeError: no such environment; an environment of `dm_control.composer`, which replaces its physics.
        InstallationError: dm_control is missing, or has a version without the interface of the tried versions.
        ModelError, UnsupportedFeatureError: a model that Featherlane refuses; then nothing is replaced.

    Source: dm_control, mujoco/engine.py, Physics.step.
    """
    with requiring("dm_control", "featherlane.integrations.dm_control"):
        from dm_control import mujoco as theirs  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

    physics: Any = getattr(env, "physics", None)
    if any(base.__module__.startswith("dm_control.composer") for base in type(env).__mro__):
        raise ArgumentTypeError("use: got an environment of dm_control.composer, which replaces its physics at reset")
    if not isinstance(physics, theirs.Physics):
        raise ArgumentTypeError(f"use: got {type(env).__name__}, allowed is a dm_control.rl.control.Environment")
    for name in ("legacy_step", "check_invalid_state"):
        if not hasattr(physics, name):
            raise unsupported("dm_control", f"use: dm_control's Physics has no {name}")
    physics.step = PhysicsStep(physics)
    return env


class PhysicsStep:
    """Steps a `dm_control.mujoco.Physics`, in place of its method `step`.

    Args:
        physics: the physics.
    """

    def __init__(self, physics: Any):
        self.physics, self.stepper = physics, Stepper()
        self.stepper.prepare(physics.model.ptr, physics.data.ptr)

    def __call__(self, nstep: int = 1) -> None:
        """Advances the state of the physics by nstep time steps.

        With `physics.legacy_step` (dm_control's default) all fields that depend on positions and velocities are those
        of the new state, else those of the state before the last time step.

        Raises:
            dm_control.rl.control.PhysicsError: the state became non-finite or out of range.
        """
        physics = self.physics
        run = self.stepper.step_to_velocity if physics.legacy_step else self.stepper.mj_step
        with physics.check_invalid_state():
            run(physics.model.ptr, physics.data.ptr, nstep)
