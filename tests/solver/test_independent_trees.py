"""A Hessian beyond capacity: trees are solved separately, the solution stays, a tile is split rather than mixed."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.entries.pattern import APART, BLOCKS, PATHS

CLOSE = 1e-5  # of the largest acceleration: separated trees converge until rounding hides the remaining gain


def pile(cone, condim):
    """Returns four stacked spheres with joined links among them, pressed into each other."""
    bodies = "".join(
        f'<body pos="{0.02 * i} 0 {0.095 + 0.19 * i}"><freejoint/><geom size="0.1"/>'
        '<body pos="0.12 0 0"><joint axis="0 1 0"/><geom size="0.05"/></body></body>'
        for i in range(4)
    )
    return f"""<mujoco><option cone="{cone}" iterations="2000" ls_iterations="100" tolerance="1e-13"/>
      <default><geom condim="{condim}" friction="0.6 0.02 0.01"/></default>
      <worldbody><geom type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>"""


def solved(xml, limit, monkeypatch, width=1, shift=0.0):
    monkeypatch.setattr(capacity, "HESSIAN_LIMIT", limit)
    ws = Workspace(fl.load(xml), width)
    ws.arrays["qvel"][...] = np.random.default_rng(0).uniform(-0.3, 0.3, (len(ws.arrays["qvel"]), 1))
    for body in (2, 3):
        ws.arrays["qpos"][8 * body + 2] += shift * np.arange(width)
    ws.run(forward)
    return ws


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_independent_trees_reach_the_same_acceleration(cone, condim, monkeypatch):
    full = solved(pile(cone, condim), 10**9, monkeypatch)
    apart = solved(pile(cone, condim), 150, monkeypatch)
    assert full.arrays["hessian.pattern"][0] in (BLOCKS, PATHS)
    assert apart.arrays["hessian.pattern"][0] == APART
    assert apart.arrays["solver_niter"] > full.arrays["solver_niter"]
    a, b = full.arrays["qacc"], apart.arrays["qacc"]
    assert np.abs(a - b).max() < CLOSE * np.abs(a).max()


def test_worlds_that_fit_individually_are_solved_exactly_in_any_batch(monkeypatch):
    xml = pile("pyramidal", 3)
    tile = solved(xml, 320, monkeypatch, 8, 0.03)  # the upper half is higher in each following world
    found = set()
    for lane in range(8):
        alone = Workspace(fl.load(xml), 1)
        for name in ("qpos", "qvel"):
            alone.arrays[name][:, 0] = tile.arrays[name][:, lane]
        alone.run(forward)
        found.add(int(alone.arrays["hessian.pattern"][0]))
        assert np.array_equal(alone.arrays["qacc"][:, 0], tile.arrays["qacc"][:, lane])
    assert found == {BLOCKS, APART}
