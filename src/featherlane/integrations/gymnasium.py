"""Gymnasium's MuJoCo environments on Featherlane: `use(env)` steps an existing environment with its dynamics."""
from __future__ import annotations

import functools
from typing import Any, TypeVar

from featherlane.integrations.stepper import Stepper

Environment = TypeVar("Environment")


def use(env: Environment) -> Environment:
    import mujoco

    world = env.unwrapped
    stepper = Stepper()
    stepper.prepare(world.model, world.data)

    def simulate(ctrl, n_frames):
        world.data.ctrl[:] = ctrl
        stepper.mj_step(world.model, world.data, n_frames)
        mujoco.mj_rnePostConstraint(world.model, world.data)

    world._step_mujoco_simulation = simulate
    return env
