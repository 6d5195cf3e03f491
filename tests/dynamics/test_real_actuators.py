"""Muscles and filtered motors of real models, and their activations, against MuJoCo's step from the same states."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from sampling import every

EVERYTHING = mujoco.mjtState.mjSTATE_INTEGRATION.value
# relative to the field's largest value
TOLERANCE = {"actuator_length": 1e-11, "actuator_velocity": 1e-11, "actuator_force": 1e-11, "act_dot": 1e-12}
TOLERANCE |= {"act": 1e-12, "qfrc_actuator": 1e-11}
SAMPLE = ("mjx/actuator/arm21", "dm_control/dog", "myosuite/simhive/myo_sim/elbow/myoelbow_1dof6muscles")
LARGE = tuple(
    f"myosuite/simhive/myo_sim/{name}"
    for name in "arm/myoarm elbow/myoelbow_1dof6muscles_1dofexo elbow/myoelbow_2dof6muscles hand/myohand leg/myolegs "
    "osl/myolegs_osl torso/myotorso torso/myotorso_abdomen".split()
)


def controls(mj, rng):
    """Returns controls in their ranges, and in [-1, 1] for actuators without a range."""
    low, high = np.where(mj.actuator_ctrllimited[:, None], mj.actuator_ctrlrange, [-1.0, 1.0]).T
    return rng.uniform(low, high)


def check_steps(path, rng, count):
    """Checks steps from the states that MuJoCo simulates without a warning."""
    mj = mujoco.MjModel.from_xml_path(str(path))
    model, given = fl.load(mj), mujoco.MjData(mj)
    data, state = fl.Data(model), np.empty(mujoco.mj_stateSize(mj, EVERYTHING))
    given.act[:] = rng.uniform(0, 1, mj.na)
    for k in range(count):
        given.ctrl[:] = controls(mj, rng)
        mujoco.mj_getState(mj, given, state, EVERYTHING)
        fl.set_state(model, data, state, EVERYTHING)
        fl.step(model, data)
        mujoco.mj_step(mj, given)
        for name, tolerance in TOLERANCE.items():
            expected = getattr(given, name)
            bound = tolerance * max(1.0, np.abs(expected).max(initial=0))
            assert np.allclose(getattr(data, name), expected, rtol=0, atol=bound), (k, name)


@pytest.mark.parametrize("name", every(3, SAMPLE))
def test_actuators_of_real_models_equal_mujoco(name, real_model, rng):
    check_steps(real_model(name), rng, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE + LARGE)
def test_actuators_of_real_models_equal_mujoco_after_many_steps(name, real_model, rng):
    check_steps(real_model(name), rng, 300)
