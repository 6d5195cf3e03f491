"""Contacts of free bodies in panels: every dimension, on the ground and between two bodies, next to other trees."""

import numpy as np
import pytest

from featherlane.engine.solver.hessian.entries.assembly import assemble_entries
from featherlane.engine.solver.hessian.entries.pattern import in_panel, is_free_body
from featherlane.engine.solver.hessian.factorizations.free_panels import store_axes
from featherlane.engine.solver.hessian.factorizations.ordered import factor_ordered, solve_ordered, substitute_ordered
from oracles.uncompiled import call
from scenes.factorizations import on, solves
from scenes.touching import vectors

BALL = '<body pos="{} 0 {}"><freejoint/><geom condim="{}"/>{}</body>'
# a centre of mass off the joint's anchor; the last ball lies on an arm, whose contacts are not in panels; a second arm
# touches the first one in every world
HEAVY = '<geom pos="0.02 0.03 0.01" size="0.01" density="50000" contype="0" conaffinity="0"/>'
SCENE = """<mujoco><option cone="{{cone}}" timestep="0.004" impratio="2" jacobian="dense"/>
  <default><geom size="0.05" friction="0.7 0.04 0.02"/></default>
  <worldbody><geom type="plane" size="5 5 1" condim="1"/>{}
    <body pos="0.42 0 0.047"><joint axis="0 1 0" range="-1 1" limited="true"/><geom/>
      <body pos="0.2 0 0"><joint axis="0 0 1"/><geom/></body></body>
    <body pos="0.42 0.09 0.047"><joint axis="0 1 0"/><geom/></body>{}
  </worldbody>{}</mujoco>"""
BALLS = "".join(
    BALL.format(x, z, dim, HEAVY) for x, z, dim in ((0, 0.045, 1), (0.09, 0.045, 4), (0.045, 0.12, 3), (0.13, 0.12, 6))
)
WELD = '<equality><weld body1="a" body2="b"/></equality>'


def scene(monkeypatch, rng, cone, weld=False):
    balls = BALLS.replace("<body", '<body name="a"', 1).replace("<body pos", '<body name="b" pos', 1)
    return on("ordered", monkeypatch, rng, cone, SCENE.format(balls, BALL.format(0.42, 0.14, 3, ""), WELD * weld))


@pytest.mark.parametrize("weld", [False, True])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_panels_with_contacts_of_free_bodies_solve_like_a_dense_matrix(cone, weld, monkeypatch, rng):
    s = scene(monkeypatch, rng, cone, weld)
    inside = [k for k in range(s.a["ncon_slot"][0]) if call(in_panel, s.m, s.d, k)]
    assert {*s.a["con_dim"][inside].tolist()} == {1, 3, 4, 6}
    pairs = s.a["con_body"].reshape(-1, 2)[inside]
    assert (pairs[:, 1] == 0).any() and (pairs[:, 1] > 0).any()
    assert len(inside) < s.a["ncon_slot"][0]
    call(assemble_entries, s.m, s.d)
    f = vectors(s, rng)
    s.a["primal.search"][: s.nv] = f
    call(solve_ordered, s.m, s.d)
    solves(s, f)
    call(factor_ordered, s.m, s.d)
    f = vectors(s, rng)
    s.a["primal.search"][: s.nv] = f
    call(substitute_ordered, s.m, s.d)
    solves(s, f)


def test_couplings_of_two_free_bodies_have_entries_of_h_only_with_general_rows(monkeypatch, rng):
    for weld in (False, True):
        s = scene(monkeypatch, rng, "pyramidal", weld)
        blocks = s.model.block_dofnum == 6
        assert (s.a["hessian.blocknum"][: s.model.nblock][blocks].max() > 2) == weld


def test_axes_are_those_of_the_dofs_from_the_last_one_on(monkeypatch, rng):
    s = scene(monkeypatch, rng, "pyramidal")
    s.a["panel.axes"][...] = np.nan
    for lane in (0, 5):
        call(store_axes, s.m, s.d, lane)
        for t in range(s.model.ntree):
            axes = s.a["panel.axes"][48 * t : 48 * t + 48].reshape(6, 8)
            free = call(is_free_body, s.m, t)
            assert free == (s.model.tree_dofnum[t] == 6)
            if free:
                first = s.model.tree_dofadr[t]
                cdof = s.a["cdof"][6 * first : 6 * first + 36, lane].reshape(6, 6)
                np.testing.assert_array_equal(axes, np.pad(cdof[::-1].T, ((0, 0), (0, 2))))
            else:
                assert np.isnan(axes).all()
