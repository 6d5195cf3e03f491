"""H from inverse dynamics: linear systems with a known solution, MuJoCo's inertia matrix, and bad input."""

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featherlane import tree
from scenes.parents import BRANCHED, parent_arrays, random_inertia


@given(parent_arrays(), st.integers(0, 2**32 - 1))
def test_columns_equal_those_of_the_linear_map(parents, seed):
    H = random_inertia(parents, seed, leading=(3,))
    bias = np.random.default_rng(seed).normal(size=(3, parents.size))
    result = tree.inertia_from_inverse_dynamics(lambda qacc: H @ qacc + bias, parents.size)
    # one addition and one subtraction of the bias
    np.testing.assert_allclose(result, H, rtol=0, atol=1e-15 * max(10.0, np.abs(H).max(initial=0)))


def test_mujoco_s_inverse_dynamics_gives_its_inertia_matrix():
    model = mujoco.MjModel.from_xml_string(BRANCHED)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    data.qpos[:] = mujoco.MjData(model).qpos + 0.3 * rng.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    data.qvel[:] = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)

    def inverse_dynamics(qacc):
        forces = np.zeros(model.nv)
        data.qacc[:] = qacc
        mujoco.mj_rne(model, data, 1, forces)
        return forces

    H = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, H)
    result = tree.inertia_from_inverse_dynamics(inverse_dynamics, model.nv)
    # the difference of two forces is rounded at the scale of the larger
    np.testing.assert_allclose(result, H, rtol=0, atol=1e-12 * np.abs(H).max())
    tree.check_sparsity(result, model.dof_parentid)
    tree.check_sparsity(H, model.dof_parentid)


def test_a_callable_can_reuse_its_result_and_change_its_argument():
    buffer = np.zeros(2)

    def inverse_dynamics(qacc):
        buffer[:] = 2 * qacc
        qacc[:] = np.nan
        return buffer

    np.testing.assert_array_equal(tree.inertia_from_inverse_dynamics(inverse_dynamics, 2), 2 * np.eye(2))


def test_integers_give_floats():
    H = tree.inertia_from_inverse_dynamics(lambda qacc: qacc.astype(int), 2)
    assert H.dtype == np.float64


@pytest.mark.parametrize(
    ("function", "n", "message"),
    [
        (lambda qacc: qacc, -1, "n: got -1"),
        (lambda qacc: np.zeros(3), 2, r"inverse_dynamics returned shape \(3,\)"),
        (lambda qacc: 1.0, 2, r"inverse_dynamics returned shape \(\)"),
        (lambda qacc: np.zeros((2, 2)) if qacc.any() else np.zeros(2), 2, r"shape \(2, 2\) after \(2,\)"),
    ],
)
def test_invalid_results_are_named(function, n, message):
    with pytest.raises(ValueError, match=message):
        tree.inertia_from_inverse_dynamics(function, n)
