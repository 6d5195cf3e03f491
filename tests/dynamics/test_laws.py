"""Laws of every tree, on random trees of all joint types, and an independent naive implementation."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featherlane.engine.dynamics.body.newton_euler import rne_acc
from featherlane.engine.dynamics.inertia.articulated import aba
from featherlane.engine.dynamics.inertia.joint_space import half_solve, mul_m, solve_m
from featherlane.engine.model.load import load
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth
from oracles.naive import Naive

LAW = 1e-10  # the bound, times the matrix's condition number
WIDTH = 8
DIFFERENCE = 2e-3  # step of a sixth-order difference: its error and its rounding are both below 1e-10
trees = given(seed=st.integers(0, 2**32 - 1), nbody=st.integers(1, 9))
few = settings(max_examples=12, deadline=None, derandomize=True)


class Tree:
    """Returns a random tree with W random worlds, evaluated."""

    def __init__(self, seed, nbody, floating=False):
        self.rng = np.random.default_rng(seed)
        self.model = load(smooth.random_tree(self.rng, nbody, floating))
        self.ws = Workspace(self.model, WIDTH)
        self.states = [smooth.random_state(self.model, self.rng) for _ in range(WIDTH)]
        for k, state in enumerate(self.states):
            smooth.fill(self.ws, k, **state)
        smooth.forward(self.ws)
        self.M = [smooth.dense(self.model, self.field("M", k)) for k in range(WIDTH)]
        self.condition = max(np.linalg.cond(M) for M in self.M) if self.model.nv else 1.0

    def field(self, name, k):
        """Returns one world's field, flat, without padding rows."""
        return self.ws.view(name)[..., k].ravel()

    def naive(self, k):
        return Naive(self.model, self.states[k]["qpos"], self.states[k]["qvel"])


@few
@trees
def test_inertia_and_bias_equal_the_sum_over_bodies(seed, nbody):
    tree = Tree(seed, nbody)
    for k in range(WIDTH):
        naive = tree.naive(k)
        assert smooth.relative(tree.M[k], naive.M()) <= LAW
        assert smooth.relative(tree.field("qfrc_bias", k), naive.bias()) <= LAW


@few
@trees
def test_inertia_is_positive_definite(seed, nbody):
    for M in Tree(seed, nbody).M:
        np.linalg.cholesky(M)


@few
@trees
def test_inertia_is_the_derivative_of_inverse_dynamics(seed, nbody):
    tree = Tree(seed, nbody)
    model, ws = tree.model, tree.ws
    for name in ("qpos", "qvel"):
        ws.arrays[name][...] = ws.arrays[name][:, :1]
    smooth.forward(ws)
    columns = np.zeros((model.nv, model.nv))
    for first in range(0, model.nv, WIDTH - 1):
        # world 0 does not accelerate, each other one accelerates along a different dof
        ws.arrays["qacc"][...] = 0
        dofs = range(first, min(first + WIDTH - 1, model.nv))
        for lane, dof in enumerate(dofs, 1):
            ws.arrays["qacc"][dof, lane] = 1
        ws.run(rne_acc)
        for lane, dof in enumerate(dofs, 1):
            columns[:, dof] = ws.arrays["qvec"][: model.nv, lane] - ws.arrays["qvec"][: model.nv, 0]
    assert smooth.relative(columns + np.diag(model.dof_armature), tree.M[0]) <= LAW
    assert smooth.relative(columns, columns.T) <= LAW


@few
@trees
def test_forward_after_inverse_is_the_identity(seed, nbody):
    tree = Tree(seed, nbody)
    ws, nv = tree.ws, tree.model.nv
    qacc = tree.rng.standard_normal((nv, WIDTH))
    ws.arrays["qacc"][:nv] = qacc
    ws.run(rne_acc)
    ws.arrays["xfrc_applied"][...] = 0
    ws.arrays["qfrc_applied"][:nv] = ws.arrays["qvec"][:nv] + tree.model.dof_armature[:, None] * qacc
    smooth.forward(ws)
    assert smooth.relative(ws.arrays["qacc_smooth"][:nv], qacc) <= LAW * tree.condition


@few
@trees
def test_articulated_body_accelerations_equal_the_inertia_matrix(seed, nbody):
    tree = Tree(seed, nbody)
    expected = tree.ws.arrays["qacc_smooth"].copy()
    tree.ws.run(aba)
    assert smooth.relative(tree.ws.arrays["qacc_smooth"], expected) <= LAW * tree.condition


@few
@trees
def test_power_in_is_the_rate_of_energy(seed, nbody):
    tree = Tree(seed, nbody)
    ws, model, nv = tree.ws, tree.model, tree.model.nv
    force = [tree.field("qfrc_applied", k) + tree.field("qfrc_passive", k) for k in range(WIDTH)]
    for k in range(WIDTH):
        J = np.concatenate([tree.naive(k).jacp, tree.naive(k).jacr], axis=1).reshape(-1, nv)
        force[k] += J.T @ tree.states[k]["xfrc_applied"].ravel()
    qacc, oracle, rates = ws.arrays["qacc_smooth"].copy(), model.to_mujoco(), np.zeros(WIDTH)
    for step, weight in ((-3, -1), (-2, 9), (-1, -45), (1, 45), (2, -9), (3, 1)):
        for k, state in enumerate(tree.states):
            qpos = state["qpos"].copy()
            mujoco.mj_integratePos(oracle, qpos, state["qvel"], step * DIFFERENCE)
            smooth.fill(ws, k, qpos=qpos, qvel=state["qvel"] + step * DIFFERENCE * qacc[:nv, k])
        smooth.forward(ws)
        rates += weight * ws.arrays["energy"].sum(axis=0) / (60 * DIFFERENCE)
    power = [f @ state["qvel"] for f, state in zip(force, tree.states, strict=True)]
    assert smooth.relative(rates, power) <= LAW * tree.condition


@few
@trees
def test_only_external_forces_change_the_momentum_of_a_free_tree(seed, nbody):
    tree = Tree(seed, nbody, floating=True)
    model, ws = tree.model, tree.ws
    ws.arrays["qfrc_applied"][...] = 0
    smooth.forward(ws)
    for k in range(WIDTH):
        naive, push = tree.naive(k), tree.states[k]["xfrc_applied"]
        push[0] = 0  # the world does not move
        force, moment = naive.force_rates(tree.field("qacc_smooth", k))
        external = push[:, :3] + model.body_mass[:, None] * model.opt_gravity
        assert smooth.relative(force.sum(axis=0), external.sum(axis=0)) <= LAW * tree.condition
        spin = (moment + np.cross(naive.com, force)).sum(axis=0)
        torque = (push[:, 3:] + np.cross(naive.com, external)).sum(axis=0)
        assert smooth.relative(spin, torque) <= LAW * tree.condition


@few
@trees
def test_solving_and_multiplying_with_the_inertia_are_inverse(seed, nbody):
    tree = Tree(seed, nbody)
    ws, nv = tree.ws, tree.model.nv
    x = tree.rng.standard_normal((nv, WIDTH))
    ws.arrays["qvec"][:nv] = x
    ws.run(mul_m)
    expected = np.stack([M @ x[:, k] for k, M in enumerate(tree.M)], axis=1)
    assert smooth.relative(ws.arrays["qproduct"][:nv], expected) <= LAW
    ws.arrays["qvec"][:nv] = expected
    ws.run(solve_m)
    assert smooth.relative(ws.arrays["qvec"][:nv], x) <= LAW * tree.condition


@few
@trees
def test_a_half_solve_squares_to_the_inverse_inertia(seed, nbody):
    tree = Tree(seed, nbody)
    ws, nv = tree.ws, tree.model.nv
    x = tree.rng.standard_normal((nv, WIDTH))
    ws.arrays["qvec"][:nv] = x
    ws.run(half_solve)
    expected = [x[:, k] @ np.linalg.solve(M, x[:, k]) for k, M in enumerate(tree.M)]
    assert smooth.relative((ws.arrays["qvec"][:nv] ** 2).sum(axis=0), expected) <= LAW * tree.condition


@pytest.mark.parametrize("width", smooth.WIDTHS)
def test_a_model_without_dofs_is_evaluated(width):
    ws = Workspace(load('<mujoco><worldbody><body pos="0 0 1"><geom size=".1"/></body></worldbody></mujoco>'), width)
    smooth.forward(ws)
    ws.run(aba)
    np.testing.assert_array_equal(ws.arrays["xpos"][3:6], np.tile([[0.0], [0.0], [1.0]], width))
