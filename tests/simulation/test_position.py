"""Integration of positions from velocities, and velocities between positions: laws, and MuJoCo's functions."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from scenes.joints import XML
from scenes.states import kicked

EXACT = {"rtol": 1e-13, "atol": 1e-14}  # some ten rounding errors
TURN = {"rtol": 1e-12, "atol": 1e-13}  # an angle from its sine and cosine


@pytest.fixture(scope="module")
def model():
    return fl.load(XML)


def positions(model, rng, n):
    return np.array([kicked(model, rng)[0] for _ in range(n)])


def test_differences_undo_moves(model, rng):
    qpos, qvel = positions(model, rng, 50), rng.standard_normal((50, model.nv))
    moved = fl.integrate_pos(model, qpos, qvel, 0.7)
    np.testing.assert_allclose(fl.differentiate_pos(model, 0.7, qpos, moved), qvel, **TURN)


def test_moves_undo_differences(model, rng):
    first, last = positions(model, rng, 50), positions(model, rng, 50)
    moved = fl.integrate_pos(model, first, fl.differentiate_pos(model, 0.3, first, last), 0.3)
    # q and -q are one rotation: the result follows the shorter path
    np.testing.assert_allclose(fl.differentiate_pos(model, 1.0, last, moved), 0.0, atol=1e-12)
    assert not np.allclose(first, last)


def test_moves_add_up(model, rng):
    qpos, qvel = positions(model, rng, 10), rng.standard_normal((10, model.nv))
    half = fl.integrate_pos(model, qpos, qvel, 0.2)
    np.testing.assert_allclose(
        fl.integrate_pos(model, half, qvel, 0.3), fl.integrate_pos(model, qpos, qvel, 0.5), **EXACT
    )


@pytest.mark.parametrize("scale", [1e-9, 1.0, 30.0])
def test_both_equal_mujoco(model, rng, scale):
    mj = model.mj_model
    for qpos, other in zip(positions(model, rng, 20), positions(model, rng, 20), strict=True):
        qvel, moved, between = scale * rng.standard_normal(model.nv), qpos.copy(), np.empty(model.nv)
        mujoco.mj_integratePos(mj, moved, qvel, 0.1)
        mujoco.mj_differentiatePos(mj, between, 0.1, qpos, other)
        np.testing.assert_allclose(fl.integrate_pos(model, qpos, qvel, 0.1), moved, **EXACT)
        np.testing.assert_allclose(fl.differentiate_pos(model, 0.1, qpos, other), between, **TURN)


def test_leading_axes_broadcast(model, rng):
    qpos, qvel = positions(model, rng, 3), rng.standard_normal((4, 1, model.nv))
    moved = fl.integrate_pos(model, qpos, qvel, 0.1)
    assert moved.shape == (4, 3, model.nq)
    np.testing.assert_array_equal(moved[2, 1], fl.integrate_pos(model, qpos[1], qvel[2, 0], 0.1))
    assert fl.differentiate_pos(model, 0.1, qpos[0], moved).shape == (4, 3, model.nv)


def test_quaternions_become_unit_ones(model, rng):
    qpos = positions(model, rng, 5)
    qpos[:4] *= 3.0
    quats = [a + 3 * (kind == 0) for kind, a in zip(model.jnt_type, model.jnt_qposadr, strict=True) if kind < 2]
    qpos[4, quats[0] : quats[0] + 4] = 0.0
    expected = qpos.copy()
    for row in expected:
        mujoco.mj_normalizeQuat(model.mj_model, row)
    np.testing.assert_allclose(fl.normalize_quat(model, qpos), expected, **EXACT)
    np.testing.assert_array_equal(expected[4, quats[0] : quats[0] + 4], [1, 0, 0, 0])


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_a_step_computes_the_same_bits(model, rng, integrator):
    model.opt.integrator = integrator
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    before = data.qpos.copy()
    data.step()
    np.testing.assert_array_equal(fl.integrate_pos(model, before, data.qvel, model.opt.timestep), data.qpos)


def test_arrays_of_any_layout_and_precision_give_the_same_bits(model, rng):
    qpos, qvel = positions(model, rng, 4), rng.standard_normal((4, model.nv))
    expected = fl.integrate_pos(model, qpos, qvel, 1)
    read_only = qpos.copy()
    read_only.flags.writeable = False
    for given in (np.asfortranarray(qpos), read_only, np.repeat(qpos, 2, axis=0)[::2], qpos.tolist()):
        np.testing.assert_array_equal(fl.integrate_pos(model, given, qvel, 1), expected)
        np.testing.assert_array_equal(fl.integrate_pos(model, given[2], qvel[2], np.float32(1)), expected[2])
    single = fl.integrate_pos(model, qpos.astype(np.float32), qvel, 1)
    np.testing.assert_array_equal(single, fl.integrate_pos(model, qpos.astype(np.float32).astype(float), qvel, 1))


def test_arguments_do_not_change(model, rng):
    (qpos,), qvel = 3.0 * positions(model, rng, 1), rng.standard_normal(model.nv)
    given = qpos.copy(), qvel.copy()
    fl.normalize_quat(model, fl.integrate_pos(model, qpos, qvel, 0.1))
    fl.normalize_quat(model, qpos), fl.differentiate_pos(model, 0.1, qpos, qpos)
    np.testing.assert_array_equal(qpos, given[0])
    np.testing.assert_array_equal(qvel, given[1])


def test_models_without_joints_have_empty_positions():
    model = fl.load("<mujoco/>")
    assert fl.integrate_pos(model, [], [], 0.1).shape == (0,)
    assert fl.differentiate_pos(model, 0.1, np.zeros((3, 0)), []).shape == (3, 0)
    assert fl.integrate_pos(fl.load(XML), np.zeros((0, 15)), np.zeros((0, 13)), 0.1).shape == (0, 15)


def test_invalid_arguments_are_named(model):
    with pytest.raises(fl.ModelError, match="qvel"):
        fl.integrate_pos(model, model.qpos0, np.zeros(3), 0.1)
    with pytest.raises(fl.ModelError, match="qpos2"):
        fl.differentiate_pos(model, 0.1, model.qpos0, "there")
    with pytest.raises(fl.ModelError, match="qpos, qvel"):
        fl.integrate_pos(model, np.zeros((2, model.nq)), np.zeros((3, model.nv)), 0.1)
    with pytest.raises(fl.ModelError, match="dt"):
        fl.differentiate_pos(model, 0, model.qpos0, model.qpos0)
