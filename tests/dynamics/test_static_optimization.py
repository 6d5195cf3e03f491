"""Activations of `examples/static_optimization.py`, against MuJoCo's dynamics and bounded least squares of SciPy."""

from __future__ import annotations

import importlib
from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import featherlane as fl

# both solve the same problem; its condition number is 1e7, SciPy stops at 1e-12 of the optimality
TOLERANCE = 1e-6
START, END, SECONDS = (0.0, 0.3), (0.9, 1.6), 0.4


@pytest.fixture
def example(monkeypatch):
    """Returns the example's module."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    return importlib.import_module("static_optimization")


def motion(example, frames=9, seconds=SECONDS):
    """Returns a batch of frames of the motion, and their accelerations."""
    model = fl.load(example.ARM)
    batch = fl.Batch(model, frames)
    batch.qpos, batch.qvel, qacc = example.reach(np.linspace(0, seconds, frames), START, END)
    return batch, qacc


def expected(example, mj, qpos, qvel, qacc):
    """Returns the activations of one frame by MuJoCo and SciPy."""
    data, arms = mujoco.MjData(mj), np.zeros((mj.nout, mj.nv))
    data.qpos, data.qvel = qpos, qvel
    pulls = []
    for a in (0.0, 1.0):
        data.act[:] = data.ctrl[:] = a
        mujoco.mj_forward(mj, data)
        pulls.append(data.actuator_force.copy())
    sparse = data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    mujoco.mju_sparse2dense(arms, *sparse)
    data.qacc[:] = qacc
    mujoco.mj_inverse(mj, data)
    torque = data.qfrc_inverse - arms.T @ pulls[0]
    J = arms.T * (pulls[1] - pulls[0])
    rows = np.vstack([np.eye(mj.nu), J / example.RESERVE])
    goal = np.concatenate([np.zeros(mj.nu), torque / example.RESERVE])
    return lsq_linear(rows, goal, (0.0, 1.0), method="bvls", tol=1e-14).x


def test_activations_are_the_bounded_least_squares(example):
    batch, qacc = motion(example)
    qpos, qvel = batch.qpos.copy(), batch.qvel.copy()
    found = example.activations(batch, qacc)
    assert found.min() == 0.0 and 0.3 < found.max() < 1.0
    for w in range(batch.nworld):
        alone = expected(example, batch.model.mj_model, qpos[w], qvel[w], qacc[w])
        np.testing.assert_allclose(found[w], alone, rtol=0, atol=TOLERANCE)


def test_muscles_that_are_too_weak_are_fully_active(example):
    batch, qacc = motion(example, seconds=0.25)
    qpos, qvel = batch.qpos.copy(), batch.qvel.copy()
    found = example.activations(batch, qacc)
    assert found.max() == 1.0
    w = int(np.argmax(found.max(axis=1)))
    alone = expected(example, batch.model.mj_model, qpos[w], qvel[w], qacc[w])
    np.testing.assert_allclose(found[w], alone, rtol=0, atol=TOLERANCE)
    achieved = batch.bind("qacc")
    example.forces(batch, found)
    assert np.abs(achieved - qacc).max() > 1.0


def test_an_activation_does_not_depend_on_the_other_frames(example):
    batch, qacc = motion(example)
    found = example.activations(batch, qacc)
    few = fl.Batch(batch.model, 2)
    few.qpos, few.qvel = batch.qpos[[7, 3]], batch.qvel[[7, 3]]
    np.testing.assert_array_equal(example.activations(few, qacc[[7, 3]]), found[[7, 3]])


def test_moment_arms_pull_towards_the_insertion(example):
    """Flexors shorten and extensors lengthen with the angle of their joint, over its whole range."""
    model = fl.load(example.ARM)
    grid = np.stack(np.meshgrid(*(np.linspace(*model.jnt_range[j], 15) for j in range(2))), axis=-1).reshape(-1, 2)
    batch = fl.Batch(model, len(grid))
    batch.qpos[:] = grid
    sign = np.array([[-1, 0], [1, 0], [0, -1], [0, 1], [-1, -1], [1, 1]])
    arms = batch.moment_arms()
    assert (arms * sign >= 0).all() and (np.abs(arms[:, sign != 0]) > 0.007).all()
    assert not arms[:, sign == 0].round(15).any()
