"""Compares the fields of a step with MuJoCo's: which ones, and their relative errors."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from fuzz.models import Finding
from oracles.parity import relative

STATE = "time qpos qvel act history plastic".split()
INPUTS = "ctrl mocap_pos mocap_quat eq_active qfrc_applied xfrc_applied".split()
START = [*STATE, *INPUTS, "qacc_warmstart"]
SMOOTH = (
    "qfrc_bias qfrc_passive qfrc_spring qfrc_damper qfrc_gravcomp qfrc_fluid qfrc_actuator actuator_force act_dot"
    " actuator_length actuator_velocity ten_length ten_velocity qacc_smooth xpos xquat xipos subtree_com cvel cinert"
    " geom_xpos site_xpos"
).split()
SOLVED = "qacc qfrc_constraint sensordata energy".split()
ROWS = "efc_D efc_aref efc_pos efc_margin efc_frictionloss".split()
SIZES = "ncon nefc ne nf nl".split()
# the fields that a factorization of M or the solver changes
SOLUTION = {"qpos", "qvel", "act", "history", "plastic", "qacc_smooth", *SOLVED}
RK4, DISCRETE = mujoco.mjtIntegrator.mjINT_RK4, mujoco.mjtIntegrator.mjINT_DISCRETE
ENERGY, SLEEP = mujoco.mjtEnableBit.mjENBL_ENERGY, mujoco.mjtEnableBit.mjENBL_SLEEP
OVERRIDE = mujoco.mjtEnableBit.mjENBL_OVERRIDE
DISTANCES = [int(getattr(mujoco.mjtSensor, f"mjSENS_GEOM{what}")) for what in ("DIST", "NORMAL", "FROMTO")]
NEAR, FAR = 0.01, 10.0  # m
ANGLE, MOVED = 1e-5, 1e-3  # rad, and m: points that are not unique move by more


class Skip(Exception):
    """Ends a case without a comparison, or early; its text is the verdict."""


class Different(Finding):
    """Reports a quantity that differs from MuJoCo's: `kind` identifies it while features are dropped."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def couples(mj) -> bool:
    """Returns whether tendons or actuators can couple DoFs: rows of the solver under `discrete`."""
    joint = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    on_joint = np.isin(mj.actuator_trntype, joint)
    wide = mj.jnt_type[mj.actuator_trnid[on_joint, 0]] <= int(mujoco.mjtJoint.mjJNT_BALL)
    return bool(mj.ntendon) or not on_joint.all() or bool(wide.any())


def compared(mj, theirs) -> list[str]:
    """Returns the compared fields; legitimate differences are left out (docs/migration.md)."""
    fields = [*STATE, *SIZES, *SMOOTH, *SOLVED, *ROWS]
    if mj.opt.integrator == DISCRETE and couples(mj):
        for name in ("qacc_smooth", "qfrc_constraint", "nefc", "ne", "nf", *ROWS):
            fields.remove(name)
    if mj.opt.enableflags & SLEEP and (theirs.tree_asleep >= 0).any():
        return ["time", "qpos", "qvel", "tree_asleep"]
    if mj.opt.enableflags & SLEEP:
        fields.append("tree_asleep")
    if mj.opt.integrator == RK4 and mj.nplastic:
        fields.remove("ten_length")  # MuJoCo's is that at the start of the step, all else that of the last stage
    if mj.opt.integrator == RK4 and (mj.actuator_dyntype == mujoco.mjtDyn.mjDYN_DCMOTOR).any():
        fields.remove("actuator_velocity")  # the same
    if not mj.opt.enableflags & ENERGY or energy_sensors(mj).size:
        fields.remove("energy")  # MuJoCo computes it now and then; with flag and sensor, of the step before
    no_sensors = mj.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SENSOR
    if np.any(mj.sensor_history[:, 0]) and (
        no_sensors or overlapping_distances(mj, theirs) or several_nearest_points(mj, theirs)
    ):
        fields.remove("history")
    return fields


def energy_sensors(mj) -> np.ndarray:
    """Returns the addresses of the values of energy sensors."""
    kinds = (int(mujoco.mjtSensor.mjSENS_E_POTENTIAL), int(mujoco.mjtSensor.mjSENS_E_KINETIC))
    return mj.sensor_adr[np.isin(mj.sensor_type, kinds)]


def overlapping_distances(mj, theirs) -> list[int]:
    """Returns the addresses of distance sensors of overlapping geoms: MuJoCo's is not always the least overlap."""
    out = []
    for i in np.flatnonzero(np.isin(mj.sensor_type, DISTANCES)):
        if mujoco.mj_geomDistance(mj, theirs, mj.sensor_objid[i], mj.sensor_refid[i], 1.0, None) < NEAR:
            out += range(mj.sensor_adr[i], mj.sensor_adr[i] + mj.sensor_dim[i])
    return out


def several_nearest_points(mj, theirs) -> list[int]:
    """Returns the addresses of `fromto` sensors of geoms with several pairs of nearest points, as of parallel edges.

    There, MuJoCo's points change by much if a geom rotates a little.
    """
    other, out = copy.copy(theirs), []
    for i in np.flatnonzero(mj.sensor_type == DISTANCES[-1]):
        pair, points = (mj.sensor_objid[i], mj.sensor_refid[i]), []
        for axis in (*np.eye(3), *-np.eye(3)):
            turn = Rotation.from_rotvec(ANGLE * axis).as_matrix()
            other.geom_xmat[pair[0]] = np.ravel(turn @ theirs.geom_xmat[pair[0]].reshape(3, 3))
            points.append(np.zeros(6))
            mujoco.mj_geomDistance(mj, other, *pair, FAR, points[-1])
        other.geom_xmat[pair[0]] = theirs.geom_xmat[pair[0]]
        if np.ptp(points, axis=0).max() > MOVED:
            out.append(int(mj.sensor_adr[i]))
    return out


def lengths(values: np.ndarray, at: list[int]) -> np.ndarray:
    """Returns the values with the distance of the points of `fromto` sensors instead of the points."""
    values = np.array(values)
    for i in at:
        values[i : i + 6] = np.linalg.norm(values[i : i + 3] - values[i + 3 : i + 6])
    return values


def differences(mj, data, theirs) -> dict[str, float]:
    """Returns the relative error of each compared field."""
    out = {}
    for name in compared(mj, theirs):
        a, b = (np.ravel(np.asarray(getattr(one, name), float)) for one in (data, theirs))
        if name == "sensordata":
            left_out = [*overlapping_distances(mj, theirs)]
            left_out += [*energy_sensors(mj)] if mj.opt.enableflags & ENERGY else []
            several = several_nearest_points(mj, theirs)
            a, b = (lengths(x, several) for x in (a, b))
            a, b = (np.delete(x, left_out) for x in (a, b))
        if name == "history" and a.shape == b.shape:  # it keeps the controls that are NaN
            a, b = (np.where(np.isnan(a) & np.isnan(b), 0.0, x) for x in (a, b))
        out[name] = relative(a, b)
    return out
