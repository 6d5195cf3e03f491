"""Links of a model: stored in the frames of their bodies, and errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import featherlane as fl
from oracles.naive import matrix

ROUNDING = 1e-14
XML = """
<mujoco>
  <worldbody>
    <body name="a" pos="1 0 0" euler="10 20 30"><freejoint/><geom size=".1" pos=".05 0 0"/>
      <body name="ear" pos="0 0 .1"><geom size=".05"/></body>
    </body>
    <body name="b" pos="2 .5 0" euler="0 90 0"><freejoint/><geom size=".1" pos="0 .1 0"/></body>
    <body name="post"><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


def test_anchor_and_axis_are_the_same_from_both_bodies():
    anchor, axis = np.array([1.5, 0.2, 0.1]), np.array([1.0, 2.0, 2.0])
    model = fl.load(XML, links=[fl.Link("hinge", "a", "b", anchor=anchor, axis=axis, range=(-1, 2), erp=0.3)])
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    assert model.nlink == 1
    np.testing.assert_array_equal(model.link_body, [[model.body("a").id, model.body("b").id]])
    for side, body in enumerate(model.link_body[0]):
        R = data.xmat[body].reshape(3, 3)
        np.testing.assert_allclose(data.xpos[body] + R @ model.link_anchor[0, side], anchor, atol=ROUNDING)
        np.testing.assert_allclose(R @ model.link_axis[0, side], axis / 3, atol=ROUNDING)
    both = matrix(data.xquat[model.link_body[0, 0]]) @ matrix(model.link_quat[0])
    np.testing.assert_allclose(both, matrix(data.xquat[model.link_body[0, 1]]), atol=ROUNDING)
    assert model.link_limited[0]
    np.testing.assert_array_equal(model.link_range[0], [-1, 2])
    assert model.link_erp[0] == 0.3
    assert model.link_cfm[0] == -1


@pytest.mark.parametrize(("kind", "frame"), [("slider", 1), ("fixed", 0)])
def test_offsets_are_in_the_frame_that_their_rows_take(kind, frame):
    axis = {"axis": (1, 0, 0)} if kind == "slider" else {}
    model = fl.load(XML, links=[fl.Link(kind, "a", "b", **axis), fl.Link(kind, "a", **axis)])
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    a, b = model.link_body[0]
    R = data.xmat[(a, b)[frame]].reshape(3, 3)
    np.testing.assert_allclose(R @ model.link_offset[0], data.xipos[a] - data.xipos[b], atol=ROUNDING)
    np.testing.assert_allclose(model.link_offset[1], data.xipos[a], atol=ROUNDING)


def test_a_model_with_links_has_the_contact_model_lcp():
    model = fl.load(XML, links=[fl.Link("fixed", "a")])
    assert model.opt.contact_model == "lcp"
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.contact_model = "convex"
    with pytest.raises(fl.UnsupportedFeatureError):
        fl.load(XML.replace("<worldbody>", '<option integrator="RK4"/><worldbody>'), links=[fl.Link("fixed", "a")])


def test_links_go_with_copies_of_the_model():
    model = fl.load(XML, links=[fl.Link("slider", "a", "b", axis=(0, 0, 1), motor_force=2.0)])
    for other in (copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert other.nlink == 1
        np.testing.assert_array_equal(other.link_axis, model.link_axis)
    fl.set_const(model)
    assert model.link_motor_force[0] == 2


def test_links_have_names():
    links = [fl.Link("fixed", "a"), fl.Link("slider", "a", "b", name="rail", axis=(0, 0, 1), motor_vel=0.5)]
    model = pickle.loads(pickle.dumps(fl.load(XML, links=links)))
    assert model.names("link") == ["", "rail"]
    assert model.link("rail").id == 1
    assert model.link("rail").motor_vel == 0.5
    model.link("rail").motor_force = 3.0
    assert model.link_motor_force[1] == 3.0
    data = fl.Data(model)
    assert data.link("rail").force.shape == (6,)
    with pytest.raises(fl.UnknownNameError):
        model.link("rial")
    with pytest.raises(fl.ModelError):
        fl.load(XML, links=[links[1], links[1]])


HINGE = {"anchor": (0, 0, 0), "axis": (0, 0, 1)}
REFUSED = [
    (("hing", "a", "b"), {}, "kind: got 'hing'"),
    (("hinge", "aa", "b"), HINGE, r"hinge of 'aa' and 'b'\): body1: unknown body 'aa'"),
    (("hinge", "a", 17), HINGE, "body2:"),
    (("hinge", "a", True), HINGE, "body2:"),
    (("hinge", "post", "a"), HINGE, r"body1: got body 4 \('post'\), which is static"),
    (("hinge", 0, "a"), HINGE, r"body1: got body 0 \('world'\), which is static"),
    (("hinge", "a", "ear"), HINGE, r"bodies 1 and 2, which are welded"),
    (("hinge", "a", "a"), HINGE, r"are welded"),
    (("hinge", "a", "b"), {"axis": (0, 0, 1)}, "anchor:"),
    (("hinge", "a", "b"), HINGE | {"axis": (0, 0, 0)}, "axis:"),
    (("hinge", "a", "b"), HINGE | {"axis": (0, 0)}, "axis:"),
    (("hinge", "a", "b"), HINGE | {"anchor": (0, 0, np.nan)}, "anchor:"),
    (("hinge", "a", "b"), HINGE | {"range": (1, 0)}, "range:"),
    (("hinge", "a", "b"), HINGE | {"range": 1}, "range:"),
    (("hinge", "a", "b"), HINGE | {"erp": 1.5}, "erp:"),
    (("hinge", "a", "b"), HINGE | {"cfm": -1}, "cfm:"),
    (("hinge", "a", "b"), HINGE | {"motor_force": np.inf}, "motor_force:"),
    (("hinge", "a", "b"), HINGE | {"motor_vel": "fast"}, "motor_vel:"),
    (("ball", "a", "b"), HINGE, "axis:"),
    (("slider", "a", "b"), HINGE, "anchor:"),
    (("fixed", "a", "b"), {"motor_force": 1}, r"a range or a motor with the kind fixed"),
    (("ball", "a", "b"), {"anchor": (0, 0, 0), "range": (0, 1)}, r"a range or a motor with the kind ball"),
]


@pytest.mark.parametrize(("bodies", "what", "message"), REFUSED)
def test_an_invalid_link_is_refused(bodies, what, message):
    with pytest.raises(fl.ModelError, match=message):
        fl.load(XML, links=[fl.Link(*bodies, **what)])


def test_only_links_are_links():
    with pytest.raises(fl.ModelError):
        fl.load(XML, links=[("ball", "a", "b")])


def test_a_single_link_is_accepted():
    link = fl.Link("ball", "a", "b", anchor=(0, 0, 0))
    assert fl.load(XML, links=link).nlink == fl.load(XML, links=(link,)).nlink == 1


@pytest.mark.parametrize(
    "given",
    [3, None, "hinge", {"kind": "hinge"}, np.broadcast_to(0.0, 1 << 40)],
    ids=["number", "none", "text", "dict", "numbers"],
)
def test_an_invalid_list_of_links_is_refused(given):
    with pytest.raises(fl.ModelError):
        fl.load(XML, links=given)
