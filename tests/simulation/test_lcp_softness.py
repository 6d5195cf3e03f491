"""ERP and CFM of rows, and their conversion from solref and solimp: springs rest as in the model convex."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import load

G = 9.81
AT_REST = 1e-6  # relative: a spring's rest after 4 s, and solref's d at nearly the same error
REMOVED = 1e-9  # relative: fraction of an error, for a rigid row

SOLREFS = {"standard": "0.05 1", "soft": "0.1 0.7", "direct": "-900 -40"}


def scene(solref: str, body: str, extra="") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep=".004"/><default><geom solref="{solref}" solimp=".8 .95 .02 .5 2"/>'
        f'<joint solreflimit="{solref}" solimplimit=".8 .95 .02 .5 2"/>'
        f'<equality solref="{solref}" solimp=".8 .95 .02 .5 2"/></default>'
        f'<worldbody><geom type="plane" size="9 9 1" condim="1"/>{body}</worldbody>{extra}</mujoco>'
    )


BALL = '<body pos="0 0 .1"><freejoint/><geom size=".1" condim="1" mass="2"/></body>'
STOP = (
    '<body pos="0 0 2"><joint type="slide" axis="0 0 1" limited="true" range="0 9"/>'
    '<geom size=".1" mass="2" contype="0"/></body>'
)
HANGING = '<body name="b" pos="0 0 2"><freejoint/><geom size=".1" mass="2"/></body>'
CONNECT = '<equality><connect body1="b" anchor="0 0 0"/></equality>'


@pytest.mark.parametrize("solref", SOLREFS)
@pytest.mark.parametrize(("body", "extra", "z"), [(BALL, "", 2), (STOP, "", 0), (HANGING, CONNECT, 2)])
def test_solref_gives_the_rest_depth_of_the_convex_model(solref, body, extra, z):
    model, heights = load(scene(SOLREFS[solref], body, extra)), []
    model.opt.softness = "solref"
    for contact_model in ("convex", "lcp"):
        model.opt.contact_model = contact_model
        data = fl.Data(model)
        for _ in range(1000):
            fl.step(model, data)
        assert np.abs(data.qvel).max() < 1e-6
        heights.append(data.qpos[z] - model.qpos0[z])
    assert heights[0] < -1e-4
    assert heights[1] == pytest.approx(heights[0], rel=AT_REST)


def test_erp_removes_its_fraction_of_an_error_per_step():
    model = load(scene("0.02 1", STOP))
    model.opt.contact_model, model.opt.erp, model.opt.cfm = "lcp", 0.3, 0.0
    model.jnt_stop_erp[0] = 0.1
    data = fl.Data(model)
    data.qpos[0] = -0.002  # small enough that no velocity remains from the previous step
    for k in range(5):
        assert data.qpos[0] == pytest.approx(-0.002 * 0.9**k, rel=REMOVED)
        fl.step(model, data)


def test_erp_and_cfm_are_a_spring():
    model = load(scene("0.02 1", BALL))
    model.opt.contact_model = "lcp"
    model.geom_erp[1], model.geom_cfm[1] = 0.5, 1e-3
    data = fl.Data(model)
    for _ in range(1000):
        fl.step(model, data)
    stiffness = 0.5 / (model.opt.timestep * 1e-3)
    assert data.qpos[2] - 0.1 == pytest.approx(-2.0 * G / stiffness, rel=AT_REST)


def test_a_stop_bounces():
    model = load(scene("0.02 1", STOP))
    model.opt.contact_model, model.opt.cfm = "lcp", 0.0
    model.jnt_stop_bounce[0] = 0.6
    data, before = fl.Data(model), 0.0
    data.qpos[0] = 0.3
    while data.qvel[0] <= 0.0:
        before = data.qvel[0]
        fl.step(model, data)
    assert data.qvel[0] == pytest.approx(-0.6 * before, rel=REMOVED)


@pytest.mark.parametrize(
    ("plane", "ball", "priority", "erp", "cfm"),
    [
        (-1.0, -1.0, 0, 0.2, 1e-10),
        (0.4, -1.0, 0, 0.4, 0.4),
        (0.4, 0.1, 0, 0.1, 0.4),
        (0.4, 0.1, 1, 0.1, 0.1),
    ],
)
def test_mixing_takes_the_softer_parameters_or_those_of_higher_priority(plane, ball, priority, erp, cfm):
    model = load(scene("0.02 1", BALL.replace('condim="1"', f'condim="1" priority="{priority}"')))
    model.opt.contact_model = "lcp"
    model.geom_erp[:], model.geom_cfm[:] = (plane, ball), (plane, ball)
    data = fl.Data(model)
    data.qpos[2] -= 0.01
    fl.forward(model, data)
    assert (data.con_erp[0], data.con_cfm[0]) == (erp, cfm)
