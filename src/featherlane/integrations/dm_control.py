"""dm_control on Featherlane: `use(env)` steps an existing Environment with Featherlane's dynamics.

    env = use(suite.load("walker", "walk"))   # physics, rendering and named access work as before

`env.physics` stays the same object.  Its `step` is replaced: the state is read from `physics.data`, stepped by
Featherlane, and written back together with accelerations, forces and sensors.  MuJoCo's `mj_step1` then computes
positions, velocities and contacts of the new state, as dm_control itself does at the end of each step.
The batched tasks of dm_control's suite are in `featherlane.environments`.
"""

from __future__ import annotations

from typing import Any, TypeVar

import mujoco
import numpy as np

from featherlane.errors import ArgumentTypeError, InstallationError
from featherlane.integrations.edits import FollowedModel
from featherlane.simulation.world.data import Data

TRIED = "1.0.50 with MuJoCo 3.17"
STATE = tuple("time qpos qvel act qacc_warmstart history warning".split())
INPUTS = tuple("ctrl qfrc_applied xfrc_applied mocap_pos mocap_quat eq_active".split())
# computed with the acceleration; everything else is computed by mj_step1
OUTPUTS = ("qacc", "qacc_smooth", "act_dot", "actuator_force", "qfrc_actuator", "qfrc_smooth", "qfrc_constraint")
OUTPUTS += ("sensordata",)
WRENCHES = ("cacc", "cfrc_int", "cfrc_ext")  # which MuJoCo computes only for sensors of these types
READ_WRENCHES = [
    getattr(mujoco.mjtSensor, f"mjSENS_{name}") for name in "ACCELEROMETER FORCE TORQUE FRAMELINACC FRAMEANGACC".split()
]

Environment = TypeVar("Environment")


def use(env: Environment) -> Environment:
    """Replaces the dynamics of an environment of dm_control.

    Args:
        env: a `dm_control.rl.control.Environment`, such as `dm_control.suite.load` returns, or a wrapper of one.

    Returns:
        The same environment.  `del env.physics.step` restores dm_control's dynamics.

    Raises:
        TypeError: no such environment; an environment of `dm_control.composer`, which replaces its physics.
        InstallationError: a version of dm_control without the interface of the tried versions.
        ModelError, UnsupportedFeatureError: a model that Featherlane refuses; then nothing is replaced.

    Source: dm_control, mujoco/engine.py, Physics.step.
    """
    from dm_control import mujoco as theirs  # pyright: ignore[reportMissingImports]

    physics: Any = getattr(env, "physics", None)
    if any(base.__module__.startswith("dm_control.composer") for base in type(env).__mro__):
        raise ArgumentTypeError("use: got an environment of dm_control.composer, which replaces its physics at reset")
    if not isinstance(physics, theirs.Physics):
        raise ArgumentTypeError(f"use: got {type(env).__name__}, allowed is a dm_control.rl.control.Environment")
    for name in ("legacy_step", "check_invalid_state"):
        if not hasattr(physics, name):
            raise InstallationError(f"use: dm_control's Physics has no {name}; tried with dm_control {TRIED}")
    physics.step = Stepper(physics)
    return env


class Stepper:
    """Steps a `dm_control.mujoco.Physics`, in place of its method `step`.

    Args:
        physics: the physics.
    """

    def __init__(self, physics: Any):
        self.physics = physics
        self._start()

    def __call__(self, nstep: int = 1) -> None:
        """Advances the state of the physics by nstep time steps.

        With `physics.legacy_step` (dm_control's default) all fields that depend on positions and velocities are those
        of the new state, else those of the state before the last time step.

        Raises:
            dm_control.rl.control.PhysicsError: the state became non-finite or out of range.
        """
        physics = self.physics
        with physics.check_invalid_state():
            if physics.model.ptr is not self._mj_model or physics.data.ptr is not self._mj_data:
                self._start()
            elif self._model.follow():
                self._new_data()
            self._read()
            if physics.legacy_step:
                self._step(nstep)
                self._write(self._outputs)
                mujoco.mj_step1(self._mj_model, self._mj_data)
            else:
                if nstep > 1:
                    self._step(nstep - 1)
                    self._write(())
                mujoco.mj_step1(self._mj_model, self._mj_data)
                self._step(1)
                self._write(self._outputs)

    # ---- model and data ----------------------------------------------------------------------------------------------
    def _start(self) -> None:
        """Loads the model of the physics."""
        self._mj_model, self._mj_data = self.physics.model.ptr, self.physics.data.ptr
        self._model = FollowedModel(self._mj_model)
        wrenches = np.isin(self._mj_model.sensor_type, READ_WRENCHES).any()
        self._outputs = OUTPUTS + WRENCHES if wrenches else OUTPUTS
        self._new_data()

    def _new_data(self) -> None:
        """Makes a world of the present model."""
        self._data = Data(self._model.model)
        self._data.mute()  # dm_control reports what is counted in `warning`

    def _step(self, nstep: int) -> None:
        self._data.step(nstep)

    def _read(self) -> None:
        self._data.from_mujoco(self._mj_data, STATE + INPUTS)

    def _write(self, outputs: tuple[str, ...]) -> None:
        self._data.to_mujoco(self._mj_data, STATE + outputs)
