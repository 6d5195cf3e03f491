"""Parameters of the contact model lcp in a model's elements: invalid ones raise an error before anything runs."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.errors import ModelError

XML = """
<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="cart" pos="0 0 1"><joint name="rail" type="slide" range="-1 1"/><geom name="box" size=".1"/>
    <body pos="0 0 .3"><joint type="hinge"/><geom size=".1"/></body></body>
  <body name="ball" pos="1 0 1"><freejoint/><geom size=".1"/></body>
</worldbody><equality><connect name="pin" body1="cart" body2="ball" anchor="0 0 0"/></equality></mujoco>
"""
WRONG = [
    ("geom_erp", 1, 1.5, "geom_erp of geom 'box':"),
    ("geom_cfm", 0, np.nan, "geom_cfm of geom 'floor'"),
    ("geom_restitution", 2, -0.1, "geom_restitution of geom #2"),
    ("geom_restitution", 2, 1.5, "geom_restitution of geom #2:"),
    ("geom_restitution_vel", 0, np.inf, "geom_restitution_vel of geom 'floor'"),
    ("geom_slip", (1, 1), -1.0, "geom_slip of geom 'box'"),
    ("geom_fdir", (1, 2), np.nan, "geom_fdir of geom 'box'"),
    ("jnt_stop_erp", 0, 2.0, "jnt_stop_erp of joint 'rail'"),
    ("jnt_stop_cfm", 1, np.inf, "jnt_stop_cfm of joint #1"),
    ("jnt_stop_bounce", 0, -1.0, "jnt_stop_bounce of joint 'rail'"),
    ("jnt_motor_force", 0, -3.0, "jnt_motor_force of joint 'rail'"),
    ("jnt_motor_vel", 0, np.inf, "jnt_motor_vel of joint 'rail'"),
    ("eq_erp", 0, 1.1, "eq_erp of equality 'pin'"),
    ("eq_cfm", 0, np.nan, "eq_cfm of equality 'pin'"),
]


@pytest.mark.parametrize(("field", "where", "value", "part"), WRONG, ids=lambda x: x if isinstance(x, str) else "")
def test_invalid_values_are_refused_by_name(field, where, value, part):
    model = fl.load(XML)
    getattr(model, field)[where] = value
    for use in (lambda: setattr(model.opt, "contact_model", "lcp"), lambda: fl.Data(model)):
        with pytest.raises(ModelError, match=part):
            use()
    assert model.opt.contact_model == "convex"


def test_edits_after_the_choice_apply_to_new_worlds():
    model = fl.load(XML)
    model.opt.contact_model = "lcp"
    model.geom_cfm[0], model.jnt_motor_force[0] = -1.0, np.inf
    fl.Data(model)
    model.geom_erp[1] = 7.0
    for world in (lambda: fl.Data(model), lambda: fl.Batch(model, 3).step()):
        with pytest.raises(ModelError, match="geom_erp"):
            world()


def test_a_links_numbers_are_checked_too():
    model = fl.load(XML, links=[fl.Link("hinge", "ball", name="shaft", anchor=(1, 0, 1), axis=(0, 0, 1))])
    model.link_stop_erp[0] = 3.0
    with pytest.raises(ModelError):
        fl.Data(model)
