"""The interface to the Hessian: all factorizations match a dense solve; a factor serves many right-hand sides."""

import mujoco
import numpy as np
import pytest

from featherlane.engine.lanes import stage
from featherlane.engine.model import load
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.entries.pattern import APART, BLOCKS, ORDERED, PATHS, TREE
from featherlane.engine.solver.hessian.equation import assemble_hessian, factor_hessian, solve_first, solve_hessian
from oracles.efc import efc
from oracles.hessians import curvature, inertia
from oracles.smooth import WIDTHS
from scenes.coupled import mixed, put, states
from scenes.factorizations import assert_solution

VECTORS = 3

OPTION = '<option tolerance="0" iterations="100" ls_iterations="100" jacobian="dense"/>'
FLOOR = '<geom type="plane" size="5 5 1" conaffinity="3"/>'
# limits of balls and hinges, friction loss, an armature, contacts with the ground; the ball may lie on the arm
ARM = f"""<mujoco>{OPTION}<worldbody>{FLOOR}
  <body pos="0 0 0.06"><joint type="ball" range="0 12" limited="true" armature="0.02"/>
    <joint type="slide" range="-0.01 0.01" limited="true" frictionloss="0.1"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" conaffinity="0"/>
    <body pos="0.3 0 0"><joint type="ball" range="0 9" limited="true"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" condim="6" conaffinity="0"/>
      <body pos="0.3 0 0"><joint range="-5 5" limited="true" axis="0 1 0" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.05" conaffinity="0"/></body></body></body>
  <body pos="0.75 {{}} 0.145"><freejoint/><geom size="0.04"/></body></worldbody></mujoco>"""
BALL = '<body pos="{} {} {}"><freejoint/><geom size="0.05"/></body>'
GRID = "".join(BALL.format(0.098 * (i % 4), 0.098 * (i // 4 % 4), 0.049 + 0.098 * (i // 16)) for i in range(48))
LINK = '<body pos="0.12 0 0"><joint axis="0 1 0"/><geom size="0.05"/></body>'
LINKS = "".join(
    f'<body pos="{0.02 * i} 0 {0.095 + 0.19 * i}"><freejoint/><geom size="0.1"/>{LINK}</body>' for i in range(4)
)


def scene(bodies):
    return f"<mujoco>{OPTION}<worldbody>{FLOOR}{bodies}</worldbody></mujoco>"


# factorization: (model, spread of its states, contents of H_pattern, capacity of H, of path-closed rows)
WAYS = {
    "tree": (ARM.format(3), 0.05, TREE, 10**9, 128),
    "recursion": (ARM.format(3), 0.05, TREE, 10**9, 128),
    "recursion and H": (ARM.format(0), 0.01, PATHS, 10**9, 128),
    "paths": (None, 0.1, PATHS, 10**9, 128),
    "blocks": (None, 0.1, BLOCKS, 10**9, 0),
    "ordered": (scene(GRID), 0.002, ORDERED, 10**9, 128),
    "apart": (scene(LINKS), 0.01, APART, 150, 128),
}


@stage
def first_solve(m, d):
    """Computes search <- H^-1 search, as a step does."""
    assemble_hessian(m, d)
    solve_first(m, d)


def prepared(way, width, rng, monkeypatch):
    """Returns a workspace after a forward pass, and the dense Hessian of each world that takes part."""
    xml, spread, pattern, room, dofs = WAYS[way]
    monkeypatch.setattr(capacity, "HESSIAN_LIMIT", room)
    monkeypatch.setattr(capacity, "PATH_DOFS", dofs)
    mj = mujoco.MjModel.from_xml_string(xml) if xml else mixed("elliptic", 4)
    model = load(mj)
    model.opt.forward_dynamics = "aba" if "recursion" in way else "crb"
    w, alone, dense = Workspace(model, width), Workspace(model, 1), {}
    found = states(mj, width, rng, spread)
    if way == "recursion and H" and width > 1:
        found[0][0][-5] += 0.5  # a ball without contact
    for lane, state in enumerate(found):
        put(w, lane, state)
    if way == "apart":
        w.arrays["active"][0, 1:] = 0.0  # trees are solved separately in a single world
    w.run(forward)
    a = w.arrays
    assert a["hessian.pattern"][0] == pattern
    assert ("ordered" in way) == (a["ordered"] > 0).all()
    for lane in np.flatnonzero(a["active"][0]):
        put(alone, 0, found[lane])
        alone.run(forward)
        H = inertia(mj, found[lane]) + curvature(model, alone, efc(model, alone.arrays))
        tree = model.body_treeid[model.dof_bodyid]
        dense[lane] = np.where(tree[:, None] == tree, H, 0.0) if way == "apart" else H
    return w, dense


def assert_solves(w, dense, f, x):
    nv = w.model.nv
    for lane, H in dense.items():
        assert_solution(H, x[:nv, lane], f[:nv, lane])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("way", WAYS)
def test_a_kept_factor_solves_like_a_dense_matrix(way, width, rng, monkeypatch):
    w, dense = prepared(way, width, rng, monkeypatch)
    a, nv = w.arrays, w.model.nv
    w.run(factor_hessian)
    assert a["hessian.kept"][0] == 1 and a["con_overflow"][0] == 0
    for _ in range(VECTORS):
        f = rng.normal(size=(nv, width))
        a["qvec"][:nv] = f
        w.run(solve_hessian)
        assert_solves(w, dense, f, a["qvec"])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("way", WAYS)
def test_the_factor_of_a_step_solves_other_vectors(way, width, rng, monkeypatch):
    w, dense = prepared(way, width, rng, monkeypatch)
    a, nv, vectors = w.arrays, w.model.nv, rng.normal(size=(VECTORS, w.model.nv, width))
    a["primal.search"][:nv] = vectors[0]
    a["primal.live"][...] = 1.0
    w.run(first_solve)
    first = a["primal.search"][:nv].copy()
    assert_solves(w, dense, vectors[0], first)
    for f in vectors:
        a["qvec"][:nv] = f
        w.run(solve_hessian)
        assert_solves(w, dense, f, a["qvec"])
    if "recursion" not in way:
        # with the same rounding as the first one, made with the factor
        a["qvec"][:nv] = vectors[0]
        w.run(solve_hessian)
        part = a["active"][0] > 0
        assert np.array_equal(a["qvec"][:nv, part], first[:, part])


def test_worlds_with_different_factorizations_split_the_tile(rng, monkeypatch):
    monkeypatch.setattr(capacity, "HESSIAN_LIMIT", 150)
    mj = mujoco.MjModel.from_xml_string(scene(LINKS))
    w = Workspace(load(mj), 8)
    for lane, state in enumerate(states(mj, 8, rng, 0.01)):
        put(w, lane, state)
    w.run(forward)
    w.run(factor_hessian)
    assert w.arrays["con_overflow"][0] == 1 and w.arrays["hessian.kept"][0] == 0


def test_without_rows_the_hessian_is_the_inertia(rng):
    mj = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{BALL.format(0, 0, 1)}{LINKS}</worldbody></mujoco>")
    mj.geom_contype[:] = 0
    mj.geom_conaffinity[:] = 0
    w = Workspace(load(mj), 1)
    state = states(mj, 1, rng)[0]
    put(w, 0, state)
    w.run(forward)
    w.run(factor_hessian)
    f = rng.normal(size=(mj.nv, 1))
    w.arrays["qvec"][: mj.nv] = f
    w.run(solve_hessian)
    assert_solves(w, {0: inertia(mj, state)}, f, w.arrays["qvec"])
