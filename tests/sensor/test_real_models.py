"""Sensors of real robots against MuJoCo's, in states after random controls."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from oracles.contact_parity import GIVEN

# of the larger of 1 and the largest value of the sensor; M of mjx's sensor/sensor has a condition number of 1e10
PARITY, ILL_CONDITIONED = 1e-9, {"mjx/sensor/sensor": 1e-6}
SAMPLE = (
    *(f"dm_control/{name}" for name in "humanoid humanoid_CMU hopper finger quadruped".split()),
    *("mjx/sensor/sensor", "mjx/barkour_v0/assets/barkour_v0_mjx", "robosuite/grippers/wiping_gripper"),
    "gymnasium_robotics/assets/hand/manipulate_block_touch_sensors",
)
OTHERS = (
    *(f"dm_control/{name}" for name in "cheetah dog fish manipulator stacker swimmer walker".split()),
    *(f"gymnasium_robotics/assets/adroit_hand/adroit_{name}" for name in "door hammer pen relocate".split()),
    *(f"gymnasium_robotics/assets/hand/manipulate_{name}" for name in ("block", "egg_touch_sensors", "pen")),
    *(f"robosuite/grippers/{name}_gripper" for name in "bd panda rethink null".split()),
    *("gymnasium_robotics/assets/hand/reach", "mjx/actuator/tendon_force_clamp"),
)
# (robosuite/grippers/jaco_three_finger_gripper presses on itself with 1e16 N, whose rounding a sensor measures)
NSTATE, NSTEP, SAME_PLACE, MANY = 4, 60, 1e-9, 200


def loaded(name, real_model):
    """Returns the model with tolerance 0; skips if a feature other than a sensor is missing."""
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, 100, 100
    try:
        return fl.load(mj)
    except fl.UnsupportedFeatureError as error:
        pytest.skip(str(error).splitlines()[-1].strip())


def visited(mj, rng):
    """Yields MuJoCo's data during a motion under random controls, after forward."""
    data = mujoco.MjData(mj)
    data.qvel[:] = 0.1 * rng.standard_normal(mj.nv)
    for _ in range(NSTATE):
        low, high = np.where(mj.actuator_ctrllimited[:, None] != 0, mj.actuator_ctrlrange, [-1.0, 1.0]).T
        data.ctrl[:] = rng.uniform(low, high)
        mujoco.mj_step(mj, data, NSTEP)
        mujoco.mj_forward(mj, data)
        yield data


def touch_alike(model, ours, theirs):
    """Gives MuJoCo's contacts if the general method for convex shapes chose other points."""
    ours.clear_given_contacts()
    fl.forward(model, ours)
    if ours.ncon != theirs.ncon or np.abs(ours.contact.pos - theirs.contact.pos).max(initial=0) > SAME_PLACE:
        ours.give_contacts(**{name: np.asarray(getattr(theirs.contact, name)) for name in GIVEN}, replace=True)
        fl.forward(model, ours)


def check(name, real_model, rng):
    model = loaded(name, real_model)
    data = fl.Data(model, given_contacts=MANY)
    parts = [slice(a, a + n) for a, n in zip(model.sensor_adr, model.sensor_dim, strict=True)]
    for expected in visited(model.to_mujoco(), rng):
        for field in ("time", "qpos", "qvel", "act", "ctrl", "qacc_warmstart"):
            setattr(data, field, getattr(expected, field))
        touch_alike(model, data, expected)
        for i, part in enumerate(parts):
            scale = max(1.0, np.abs(expected.sensordata[part]).max())
            error = np.abs(data.sensordata[part] - expected.sensordata[part]).max() / scale
            assert error < ILL_CONDITIONED.get(name, PARITY), model.names("sensor")[i]


@pytest.mark.parametrize("name", SAMPLE)
def test_sensors_of_real_models_equal_mujoco(name, real_model, rng):
    check(name, real_model, rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_sensors_of_more_real_models_equal_mujoco(name, real_model, rng):
    check(name, real_model, rng)
