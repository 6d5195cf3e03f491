"""The flag `multiccd`: disabled, a convex pair has one contact point as in MuJoCo; other pairs keep all of theirs."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Disable
from featherlane.engine.model.pair import CONVEX
from pages.pairs import CELLS, MARGIN, model_of, poses
from scenes.poses import collide, frames, oracle

WIDTH, POSES = 8, 24
EXACT = 1e-5  # m: MuJoCo's nearest points of curved shapes
PAIRS = [(first, second, ident) for first, second, ident, _ in CELLS if first != "hfield" and second != "sdf"]
STACK = """<mujoco><asset><mesh name="cube" vertex="-1 -1 -1 1 -1 -1 1 1 -1 1 1 1 1 -1 1 -1 1 -1 -1 1 1 -1 -1 1"
  scale=".1 .1 .1"/></asset><option><flag multiccd="{}"/></option><worldbody><geom type="box" size=".3 .3 .2"/>
  <body pos="0 0 .2999"><freejoint/><geom type="mesh" mesh="cube"/></body></worldbody></mujoco>"""


def off(model):
    model.opt.disableflags |= Disable.MULTICCD
    return model


@pytest.mark.parametrize("family", ["touching", "degenerate"])
@pytest.mark.parametrize(("first", "second", "ident"), PAIRS)
def test_a_pair_has_as_many_points_as_in_mujoco(first, second, ident, family):
    model = off(model_of(first, second))
    moved = poses(model, first, second, family, POSES, np.random.default_rng(3))
    xpos, xmat = frames(model, *moved)
    several = 0
    for ours, theirs in zip(collide(model, xpos, xmat, WIDTH), oracle(model, xpos, xmat), strict=True):
        assert len(ours) == len(theirs["dist"])
        several += len(ours) > 1
        if family == "touching" and len(ours) == 1:
            np.testing.assert_allclose(ours["pos"], theirs["pos"], rtol=0, atol=EXACT)
    if ident == CONVEX:
        assert several == 0


def test_the_only_point_is_the_middle_of_the_nearest_points():
    model = off(model_of("cylinder", "mesh"))
    moved = poses(model, "cylinder", "mesh", "touching", POSES, np.random.default_rng(1))
    data = fl.Data(model)
    for p, q in zip(*moved, strict=True):
        data.mocap_pos[0], data.mocap_quat[0], data.qpos[:] = p[0], q[0], [*p[1], *q[1]]
        fl.forward(model, data)
        distance, ends = fl.query.geom_distance(model, data, 0, 1, MARGIN)
        (contact,) = data.contact
        np.testing.assert_allclose(contact.dist, distance, rtol=0, atol=1e-14)
        np.testing.assert_allclose(contact.pos, 0.5 * (ends[:3] + ends[3:]), rtol=0, atol=1e-12)


def test_an_edit_of_the_flag_applies_to_the_next_step():
    data = {}
    for flag in ("enable", "disable"):
        model = fl.load(STACK.format(flag))
        data[flag] = fl.Data(model), fl.Batch(model, 3)
        one, batch = data[flag]
        for n in (4, 1) if flag == "enable" else (1, 4):
            fl.forward(model, one)
            batch.forward()
            assert len(one.contact) == n
            assert (batch.ncon == n).all()
            mj = model.to_mujoco()
            theirs = mujoco.MjData(mj)
            mujoco.mj_forward(mj, theirs)
            assert theirs.ncon == n
            model.opt.disableflags ^= Disable.MULTICCD


@pytest.mark.parametrize("contact_model", ["convex", "lcp", "coulomb"])
def test_a_step_uses_the_only_point(contact_model):
    model = fl.load(STACK.format("disable"))
    model.opt.contact_model = contact_model
    data = fl.Data(model)
    for _ in range(20):
        fl.step(model, data)
        assert len(data.contact) <= 1
    assert len(data.contact) == 1
