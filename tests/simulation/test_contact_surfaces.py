"""Given contacts under the contact model lcp: their surfaces are mixed like those of detected contacts."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl

SAME = 1e-12  # m/s^2: one problem, its parameters mixed by NumPy and by kernels
XML = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body pos="0 0 .195"><freejoint/><geom name="box" type="box" size=".1 .2 .2"/></body>
  </worldbody>
</mujoco>
"""
SURFACES = {
    "erp": ((-1.0, 0.4), (0.6, 0.3)),
    "cfm": ((-1.0, 1e-4), (1e-3, 2e-3)),
    "restitution": ((0.5, 0.0), (0.2, 0.3)),
    "restitution_vel": ((0.0, 0.1), (0.3, 0.2)),
    "slip": (((0.1, 0.0), (0.0, 0.2)), ((0.3, 0.1), (0.1, 0.3))),
    "frictionforce": ((0, 1), (0, 0)),
}
FIELDS = ("con_erp", "con_cfm", "con_restitution", "con_restitution_vel", "con_compliance", "con_frictionforce")


@pytest.fixture
def scene():
    model = fl.load(XML)
    model.opt.contact_model = "lcp"
    return model


@pytest.mark.parametrize("priority", [(0, 0), (1, 0), (0, 2)])
@pytest.mark.parametrize("case", [0, 1])
def test_parameters_that_are_not_given_are_mixed_from_the_geoms(case, priority):
    xml = XML.replace('size="5 5 .1"', f'size="5 5 .1" priority="{priority[0]}"')
    model = fl.load(xml.replace('size=".1 .2 .2"', f'size=".1 .2 .2" priority="{priority[1]}"'))
    model.opt.contact_model = "lcp"
    for name, cases in SURFACES.items():
        getattr(model, f"geom_{name}")[:] = cases[case]
    detected, given = fl.Data(model), fl.Data(model, given_contacts=8)
    for data in (detected, given):
        data.qvel[:] = 0.3, -0.2, -1.0, 0.1, 0.2, 0.3
    fl.forward(model, detected)
    contact = detected.contact
    assert len(contact) == 4
    given.give_contacts(contact.dist, contact.pos, contact.frame, geom=contact.geom, replace=True)
    fl.forward(model, given)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(given, name)[:4], getattr(detected, name)[:4], err_msg=name)
    np.testing.assert_allclose(given.qacc, detected.qacc, rtol=0, atol=SAME * np.abs(detected.qacc).max())


def test_a_given_parameter_is_the_contact_s_own(scene):
    scene.geom_restitution[:] = 0.9
    scene.opt.cfm = 0.0
    data = fl.Data(scene, given_contacts=1)
    data.qvel[2] = -2.0
    what = {"dist": [-0.001], "pos": [[0, 0, 0]], "frame": [[0, 0, 1]], "geom": [[0, 1]], "replace": True}
    for restitution in (0.0, 0.5):
        data.give_contacts(**what, friction=np.zeros(5), restitution=restitution)
        fl.forward(scene, data)
        expected = max(restitution * 2.0, 0.2 * 0.001 / 0.01)
        assert abs(data.qvel[2] + 0.01 * data.qacc[2] - expected) < SAME * 200


def test_a_moving_surface_transports_bodies(scene):
    data = fl.Data(scene, given_contacts=1)
    scene.opt.cfm = 0.0
    what = {"dist": [0.0], "pos": [[0, 0, 0.195]], "frame": [[0, 0, 1, 1, 0, 0, 0, 1, 0]], "body": [[0, 1]]}
    data.give_contacts(**what, friction=np.full(5, 100.0), motion=(0, 0.05, -0.02), replace=True)
    fl.step(scene, data)
    np.testing.assert_allclose(data.qvel[:3], (0.05, -0.02, 0.0), atol=SAME * 10)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"erp": 1.2}, "erp:"),
        ({"restitution": -0.1}, "restitution:"),
        ({"restitution_vel": -1}, "restitution_vel:"),
        ({"slip": (0.1, -0.1)}, "slip:"),
        ({"slip": (0.1, 0.1, 0.1)}, "slip:"),
        ({"motion": (np.nan, 0, 0)}, "motion:"),
        ({"cfm": "soft"}, "cfm:"),
    ],
)
def test_surfaces_out_of_range_are_refused(scene, what, message):
    data = fl.Data(scene, given_contacts=1)
    with pytest.raises(fl.ModelError, match=message):
        data.give_contacts([0.0], [[0, 0, 0]], [[0, 0, 1]], body=[[0, 1]], **what)
    batch = fl.Batch(scene, nworld=2, given_contacts=1)
    with pytest.raises(fl.ModelError):
        batch.give_contacts([0.0], [[0, 0, 0]], [[0, 0, 1]], body=[[0, 1]], **what)
