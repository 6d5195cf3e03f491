"""Every kind of sensor against MuJoCo's, at random states with contacts, limits and equalities."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from oracles.contact_parity import axis_meets_box
from scenes.sensors import GROUPS, group_scene
from scenes.states import kicked

PARITY = 1e-9  # of the larger of 1 and the largest value of the sensor: solvers converge to rounding
NSTATE, NSTEP = 8, 5


def states(mj, rng):
    """Returns rows of NSTATE random states: (qpos, qvel, ctrl, mocap_pos, xfrc_applied).

    In their first NSTEP steps no axis of a capsule meets a box.
    """
    found = []
    for _ in range(100):
        qpos, qvel = kicked(mj, rng, 0.08, 0.7)
        row = {"qpos": qpos, "qvel": qvel, "ctrl": rng.standard_normal(mj.nu)}
        row["mocap_pos"] = mj.body_pos[mj.body_mocapid >= 0] + 0.05 * rng.standard_normal((mj.nmocap, 3))
        row["xfrc_applied"] = rng.standard_normal((mj.nbody, 6)) * (rng.random((mj.nbody, 1)) < 0.4)
        if not any(axis_meets_box(mj, oracle(mj, row, nstep)) for nstep in range(NSTEP + 1)):
            found.append(row)
        if len(found) == NSTATE:
            return {name: np.array([row[name] for row in found]) for name in row}
    raise AssertionError("too few states")


def oracle(mj, state, nstep):
    """Returns MuJoCo's data of a state, after mj_forward or steps."""
    data = mujoco.MjData(mj)
    for name, value in state.items():
        getattr(data, name)[...] = value
    if nstep:
        mujoco.mj_step(mj, data, nstep)
    else:
        mujoco.mj_forward(mj, data)
    return data


def worst(model, ours, theirs):
    """Returns the largest error of each sensor, over its scale: (nsensor,)."""
    error = np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))
    parts = [slice(a, a + n) for a, n in zip(model.sensor_adr, model.sensor_dim, strict=True)]
    return np.array([error[..., part].max() for part in parts])


@pytest.mark.covers("sensor", lambda: map(group_scene, GROUPS))
@pytest.mark.parametrize("nstep", [0, NSTEP])
@pytest.mark.parametrize("group", GROUPS)
def test_sensors_equal_mujoco(group, nstep, rng):
    model = fl.load(group_scene(group))
    mj = model.to_mujoco()
    rows = states(mj, rng)
    theirs = [oracle(mj, {name: value[k] for name, value in rows.items()}, nstep) for k in range(NSTATE)]
    expected = np.array([data.sensordata for data in theirs])

    batch, data = fl.Batch(model, NSTATE), fl.Data(model)
    sensordata = batch.bind("sensordata")
    for name, value in rows.items():
        getattr(batch, name)[...] = value
        setattr(data, name, value[0])
    if nstep:
        batch.step(nstep)
        fl.step(model, data, nstep)
    else:
        batch.forward()
        fl.forward(model, data)
    assert np.array_equal(data.sensordata, sensordata[0])
    error = worst(model, sensordata, expected)
    names = [mujoco.mjtSensor(int(kind)).name for kind in model.sensor_type]
    assert not [(i, names[i], error[i]) for i in np.flatnonzero(~(error < PARITY))]
    assert nstep or sum(data.ncon for data in theirs) > NSTATE
