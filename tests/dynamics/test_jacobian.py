"""Jacobians against MuJoCo and against the naive sum over dofs."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

from featherlane.dynamics.body.jacobian import jac, jac_body, jac_body_com, jac_geom, jac_site, jac_subtree_com
from featherlane.model.load import load
from featherlane.simulation.tile.workspace import Workspace
from oracles import smooth
from oracles.naive import Naive

TOLERANCE = 1e-13  # sums of a few products of numbers around 1


@pytest.fixture
def world(rng):
    """(model, state, data with our fields, MuJoCo's model and data)."""
    model = load(smooth.XML)
    ws, state = Workspace(model, 1), smooth.random_state(model, rng)
    smooth.fill(ws, 0, **state)
    smooth.forward(ws)
    fields = ("cdof", "subtree_com", "xpos", "xipos", "geom_xpos", "site_xpos")
    data, oracle = SimpleNamespace(**{name: ws.view(name) for name in fields}), model.to_mujoco()
    theirs = mujoco.MjData(oracle)
    theirs.qpos[:], theirs.qvel[:] = state["qpos"], state["qvel"]
    mujoco.mj_forward(oracle, theirs)
    return model, state, data, oracle, theirs


def test_jacobian_of_a_point_equals_the_sum_over_dofs(rng, world):
    model, state, data, _, _ = world
    naive = Naive(model, state["qpos"], state["qvel"])
    for body in range(model.nbody):
        point = rng.standard_normal(3)
        for found, expected in zip(jac(model, data, point, body), naive.jac(point, body), strict=True):
            assert smooth.relative(found, expected) <= TOLERANCE


@pytest.mark.parametrize(
    ("ours", "theirs", "count"),
    [
        (jac_body, mujoco.mj_jacBody, "nbody"),
        (jac_body_com, mujoco.mj_jacBodyCom, "nbody"),
        (jac_geom, mujoco.mj_jacGeom, "ngeom"),
        (jac_site, mujoco.mj_jacSite, "nsite"),
    ],
)
def test_jacobians_of_elements_equal_mujoco(world, ours, theirs, count):
    model, _, data, oracle, reference = world
    for i in range(getattr(model, count)):
        p, r = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        theirs(oracle, reference, p, r, i)
        found = ours(model, data, i)
        assert smooth.relative(found[0], p) <= TOLERANCE
        assert smooth.relative(found[1], r) <= TOLERANCE


def test_jacobian_of_a_subtree_equals_mujoco(world):
    model, _, data, oracle, reference = world
    for i in range(model.nbody):
        expected = np.zeros((3, model.nv))
        mujoco.mj_jacSubtreeCom(oracle, reference, expected, i)
        assert smooth.relative(jac_subtree_com(model, data, i), expected) <= TOLERANCE


def test_a_body_that_does_not_exist_is_named(world):
    model, _, data, _, _ = world
    with pytest.raises(IndexError, match=f"body is {model.nbody}, allowed are 0 to {model.nbody - 1}"):
        jac(model, data, np.zeros(3), model.nbody)
