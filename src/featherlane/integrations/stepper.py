"""Defines `Stepper`: the steps of an MjModel and its MjData, computed by Featherlane.

    stepper = Stepper()
    stepper.mj_step(model, data, 5)   # in place of mujoco.mj_step(model, data, 5)

After a call, `data` has the same contents as after MuJoCo's call, so existing code works unchanged.  State and inputs
are read from the MjData.  Featherlane computes the steps.  MuJoCo then recomputes frames, velocities and contacts of
the last evaluated state, so that all fields of `data` belong to one state.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from featherlane import Data, step
from featherlane.enums import Disable, Enable
from featherlane.errors import UnsupportedFeatureError
from featherlane.integrations.batch.warnings import CAUSES, COLUMNS, COUNTED
from featherlane.integrations.edits import FollowedModel

STATE = ("time", "qpos", "qvel", "act", "qacc_warmstart", "history", "plastic")
EVALUATED = ("time", "qpos", "qvel", "act")  # what mj_step1 reads of the state
INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat", "eq_active")
# computed with the acceleration; everything else is computed by mj_step1
OUTPUTS = ("qacc", "qacc_smooth", "act_dot", "actuator_force", "qfrc_actuator", "qfrc_smooth", "qfrc_constraint")
OUTPUTS += ("sensordata",)
WRENCHES = ("cacc", "cfrc_int", "cfrc_ext")  # which MuJoCo computes only for sensors of these types
READ_WRENCHES = [
    getattr(mujoco.mjtSensor, f"mjSENS_{name}") for name in "ACCELEROMETER FORCE TORQUE FRAMELINACC FRAMEANGACC".split()
]
MEAN = hasattr(mujoco.MjModel, "nplastic")  # `qacc` after RK4 is the mean; before MuJoCo 4.0, the last stage's
LAST = {name: f"rk.last_{name}" for name in ("qpos", "qvel", "act")}  # the state of the last stage of RK4
RK4, PGS = int(mujoco.mjtIntegrator.mjINT_RK4), int(mujoco.mjtSolver.mjSOL_PGS)
BAD_STATES = [int(mujoco.mjtWarning.mjWARN_BADQPOS), int(mujoco.mjtWarning.mjWARN_BADQVEL)]


class Stepper:
    """Advances one MjData after the other by Featherlane, as MuJoCo's functions of the same names do.

    Edits of the model's fields and options take effect in the next call.  A copy or a pickle starts without a model.
    """

    def __init__(self) -> None:
        self._mj_model: Any = None
        self._mj_data: Any = None

    def __reduce__(self):
        return Stepper, ()

    # ---- MuJoCo's functions ------------------------------------------------------------------------------------------
    def mj_step(self, m: Any, d: Any, nstep: int = 1) -> None:
        """Advances the state by nstep time steps.

        Derived fields are those of the state before the last time step (with RK4, of its last stage), as in MuJoCo.

        Args:
            m: the MjModel.
            d: its MjData.
            nstep: time steps, at least 1.

        Raises:
            ModelError, UnsupportedFeatureError: a model that Featherlane refuses.

        Source: MuJoCo mj_step.  Deviation: forces in `efc_force` follow from `qacc`, as those of MuJoCo's Newton
            solver do; `solver_niter` and other statistics are not written.
        """
        self.prepare(m, d)
        self._read()
        if self._stages:
            self._advance(nstep)
            self._evaluate()
        else:
            if nstep > 1:
                self._advance(nstep - 1)
                self._evaluate()
            else:
                self._step1()
            self._advance(1)
        self._write()
        self._write_forces()

    def mj_step2(self, m: Any, d: Any) -> None:
        """Completes a time step after `mujoco.mj_step1(m, d)`, which may be followed by a choice of controls.

        Raises:
            ModelError, UnsupportedFeatureError: a model that Featherlane refuses.

        Source: MuJoCo mj_step2 (which uses Euler's method for the integrator RK4).
        """
        self.prepare(m, d)
        self._read()
        self._advance(1)
        self._write()
        self._write_forces()

    def step_to_velocity(self, m: Any, d: Any, nstep: int = 1) -> None:
        """Advances the state by nstep time steps, and computes what depends on the new positions and velocities.

        Accelerations, forces and sensors are those of the last time step.

        Raises:
            ModelError, UnsupportedFeatureError: a model that Featherlane refuses.

        Source: MuJoCo mj_step, then mj_step1.
        """
        self.prepare(m, d)
        self._read()
        self._advance(nstep)
        self._write()
        mujoco.mj_step1(m, d)

    # ---- model and data ----------------------------------------------------------------------------------------------
    def prepare(self, m: Any, d: Any) -> None:
        """Loads the model, or its edits since the last call.

        Raises:
            ModelError, UnsupportedFeatureError: a model that Featherlane refuses.
        """
        if m is not self._mj_model or d is not self._mj_data:
            self._mj_model = self._mj_data = None  # so that the next call loads the model again after an error
            self._model = FollowedModel(m)
            self._new_data(m, d)
            self._mj_model, self._mj_data = m, d
        elif self._model.follow() or self._data.model is not self._model.model:
            self._new_data(m, d)  # second condition: an interrupt or an error ended it in an earlier call

    def _new_data(self, m: Any, d: Any) -> None:
        """Makes a world of the present model, and pairs of its arrays and those of the MjData."""
        if m.opt.enableflags & Enable.SLEEP:
            raise UnsupportedFeatureError(["option flag: sleep"], what="an MjData whose trees may sleep is not stepped")
        data, self._stages = Data(self._model.model), m.opt.integrator == RK4
        data.mute()
        # edits of these load the model again
        self._has_rows = not m.opt.disableflags & Disable.CONSTRAINT
        self._has_dual_forces = m.opt.solver == PGS or m.opt.noslip_iterations > 0
        # read directly, because attributes of a `Data` take longer
        self._counts = memoryview(data.warning)
        self._seen = self._counts.tobytes()  # compared in a tenth of the time of the counts
        self._time = data.workspace.view("time").reshape(1)
        wrenches = np.isin(m.sensor_type, READ_WRENCHES).any()
        self._read_pairs, self._written, self._evaluated = (
            data.shared_arrays(d, names)
            for names in (STATE + INPUTS, STATE + OUTPUTS + (WRENCHES if wrenches else ()), EVALUATED)
        )
        if self._stages:
            view = data.workspace.view
            self._evaluated = [(view(last), getattr(d, name)) for name, last in LAST.items() if getattr(d, name).size]
        self._data = data  # last, so that `prepare` repeats all after an interrupt or an error

    # ---- transfers ---------------------------------------------------------------------------------------------------
    # the arrays of both are copied here, because a call of `Data.to_mujoco` takes longer
    def _read(self) -> None:
        """Copies state and inputs from the MjData."""
        self._time[0] = self._mj_data.time
        for ours, theirs in self._read_pairs:
            ours[:] = theirs

    def _advance(self, nstep: int) -> None:
        """Steps the world, and counts its new warnings in the MjData."""
        step(self._model.model, self._data, nstep)
        if self._counts.tobytes() != self._seen:
            self._warn()

    def _warn(self) -> None:
        """Adds the counts since the last call to the MjData's; a reset of the state resets the MjData, as in MuJoCo."""
        m, d = self._mj_model, self._mj_data
        before, self._seen = np.frombuffer(self._seen), self._counts.tobytes()
        new = (np.frombuffer(self._seen) - before).astype(int)
        bad = new[COLUMNS["non_finite"]]
        if bad and not m.opt.disableflags & Disable.AUTORESET:
            mujoco.mj_resetData(m, d)
        d.warning[CAUSES[int(self._data.bad_part)]].number += bad
        for name, kind in COUNTED.items():
            d.warning[kind].number += new[COLUMNS[name]]

    def _evaluate(self) -> None:
        """Computes MuJoCo's fields of positions and velocities at the present state, or at that of RK4's last stage."""
        self._copy(self._evaluated)
        self._step1()

    def _step1(self) -> None:
        """Runs mj_step1; bad values that it finds are not counted, because Featherlane counts those of the same state.

        With autoreset, `_warn` resets these counts.
        """
        m, d = self._mj_model, self._mj_data
        keeps = m.opt.disableflags & Disable.AUTORESET
        before = d.warning.number.copy() if keeps else None
        mujoco.mj_step1(m, d)
        if before is not None:
            d.warning.number[BAD_STATES] = before[BAD_STATES]

    def _write(self) -> None:
        """Copies the state and outputs to the MjData."""
        self._copy(self._written)
        if self._stages and not MEAN:
            self._mj_data.qacc[:] = self._mj_data.qacc_warmstart

    def _copy(self, pairs: list[tuple[Any, Any]]) -> None:
        """Copies the time and arrays of the world to the MjData."""
        self._mj_data.time = self._time.item()
        for ours, theirs in pairs:
            theirs[:] = ours

    def _write_forces(self) -> None:
        """Writes the force of each row: those of a dual solver, or the forces that follow from the acceleration."""
        m, d = self._mj_model, self._mj_data
        if not self._has_rows or not d.nefc:
            return
        if self._has_dual_forces:
            forces = self._data.efc_force
            if len(forces) == d.nefc:
                d.efc_force[:] = forces
                return
        residual = np.empty(d.nefc)
        solution = d.qacc_warmstart if self._stages else d.qacc  # the last stage's; `qacc` is the mean of the step
        mujoco.mj_mulJacVec(m, d, residual, solution)
        residual -= d.efc_aref
        mujoco.mj_constraintUpdate(m, d, residual, None, 0)
