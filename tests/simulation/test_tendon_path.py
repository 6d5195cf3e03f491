"""Paths of spatial tendons against MuJoCo's wrap_xpos, and against their own lengths."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from robots import wheels
from scenes import tendons
from scenes.states import kicked

SAME = 1e-11  # relative to the larger of 1 m and the farthest point
SAMPLE = ("mjx/tendon/pulley_fixed_site_wrap", "mjx/tendon/wrap_sidesite", "dm_control/ball_in_cup")
WHEELS = ("dm_control", "gymnasium_robotics", "mjx", "myosuite")


def compare(model: fl.Model, count: int, rng) -> int:
    """Checks paths of all tendons in random states; returns the number of points on geoms."""
    mj, data = model.to_mujoco(), fl.Data(model)
    expected, arcs = mujoco.MjData(mj), 0
    for _ in range(count):
        data.qpos, _ = kicked(mj, rng, 0.5)
        expected.qpos[:] = data.qpos
        mujoco.mj_fwdPosition(mj, expected)
        fl.forward(model, data)
        points, obj = expected.wrap_xpos.reshape(-1, 3), expected.wrap_obj.ravel()
        for i in range(model.ntendon):
            part = slice(expected.ten_wrapadr[i], expected.ten_wrapadr[i] + expected.ten_wrapnum[i])
            path = fl.query.tendon_path(model, data, i)
            np.testing.assert_array_equal(path.obj, obj[part])
            np.testing.assert_allclose(path.pos, points[part], rtol=0, atol=SAME * max(1, np.abs(points).max()))
            arcs += np.count_nonzero(path.obj >= 0)
    return arcs


def test_paths_of_every_kind_equal_mujoco(rng):
    assert compare(fl.load(tendons.scene()), 20, rng) > 100


@pytest.mark.parametrize("name", SAMPLE)
def test_paths_of_real_models_equal_mujoco(name, real_model, rng):
    compare(fl.load(real_model(name)), 8, rng)


@pytest.mark.slow
@pytest.mark.parametrize("wheel", WHEELS)
def test_paths_of_all_real_models_equal_mujoco(wheel, real_model, rng):
    real_model(f"{wheel}/")
    names, met = wheels.DM_CONTROL_MODELS if wheel == "dm_control" else wheels.models_in(wheel), 0
    for name in names:
        try:
            mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
        except ValueError:  # part of other models
            continue
        if mj.nv and (np.asarray(mj.wrap_type) != mujoco.mjtWrap.mjWRAP_JOINT).any():
            compare(fl.load(mj), 4, rng)
            met += 1
    assert met > 0


def test_a_path_is_as_long_as_its_tendon(rng):
    """Checks a tendon without geoms and pulleys, and one with pulleys, which divide it and have zeros as points."""
    model = fl.load(tendons.scene(only="over three pulleys"))
    data = fl.Data(model)
    data.qpos, _ = kicked(model.to_mujoco(), rng)
    fl.forward(model, data)
    for name in ("over", "three"):
        path = fl.query.tendon_path(model, data, name)
        (branch,) = path.branches()
        assert branch is not path and np.array_equal(branch, path.pos)
        length = np.linalg.norm(np.diff(branch, axis=0), axis=1).sum()
        assert length == pytest.approx(data.ten_length[model.tendon(name).id], rel=1e-14)
    path = fl.query.tendon_path(model, data, "pulleys")
    assert len(path.branches()) == 3
    assert not path.pos[path.obj == -2].any()


def test_a_fixed_tendon_has_no_path():
    model = fl.load(tendons.scene(only="sum"))
    data = fl.Data(model)
    fl.forward(model, data)
    assert fl.query.tendon_path(model, data, "sum").pos.shape == (0, 3)
    with pytest.raises(fl.UnknownNameError):
        fl.query.tendon_path(model, data, "su")


def test_arcs_of_worlds_are_those_of_paths(rng):
    model = fl.load(tendons.scene())
    batch = fl.Batch(model, 5)
    batch.qpos = [kicked(model.mj_model, rng, 0.5)[0] for _ in range(5)]
    ends, length = batch.tendon_arcs()
    assert (length >= 0).any() and (length < 0).any()
    for w in range(5):
        paths = [fl.query.tendon_path(model, batch.get_data(w), i) for i in range(model.ntendon)]
        points = np.concatenate([path.pos[path.obj >= 0] for path in paths])
        np.testing.assert_allclose(ends[w][length[w] >= 0].reshape(-1, 3), points, rtol=0, atol=SAME)
        chords = np.linalg.norm(ends[w, :, 1] - ends[w, :, 0], axis=1)
        assert (length[w] >= chords - SAME)[length[w] >= 0].all()
