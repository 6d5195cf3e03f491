"""`query.contact_parameters` returns the parameters of MuJoCo's contacts."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

GEOMS = {
    "floor": 'type="plane" size="1 1 1" friction=".3 .01 .002" solref=".01 .8" margin=".01"',
    "ball": 'size=".1" friction=".9 .001 .001" solmix="3" condim="4" gap=".02"',
    "box": 'type="box" size=".1 .1 .1" priority="1" condim="6" friction=".2 .02 .02"',
    "direct": 'size=".1" solref="-900 -30"',
}
SCENE = f"""<mujoco><worldbody><geom name="floor" {GEOMS["floor"]}/>
  {"".join(f'<body pos="0 0 .05"><freejoint/><geom name="{n}" {GEOMS[n]}/></body>' for n in ("ball", "box", "direct"))}
</worldbody><contact><pair geom1="direct" geom2="floor" condim="1" solref=".03 1" gap=".1"/></contact></mujoco>"""


@pytest.mark.parametrize("override", (False, True))
def test_parameters_of_two_geoms_are_those_of_mujocos_contacts(override):
    model = fl.load(SCENE)
    if override:
        model.opt.enableflags |= fl.enums.Enable.OVERRIDE
    mj = model.to_mujoco()
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    assert len({tuple(sorted(contact.geom)) for contact in data.contact}) == 6
    for contact in data.contact:
        found = fl.query.contact_parameters(model, *contact.geom[::-1])
        assert found.dim == contact.dim
        for name in ("friction", "solref", "solimp"):
            np.testing.assert_allclose(getattr(found, name), getattr(contact, name), rtol=1e-12)
        assert found.margin == pytest.approx(contact.includemargin, abs=1e-12)


def test_geoms_are_named_or_numbered_and_edits_count():
    model = fl.load(SCENE)
    model.geom_friction[1, 0] = 0.1
    found = fl.query.contact_parameters(model, "ball", "floor")
    assert found.friction[0] == 0.3 and found.gap == 0.02 and found.margin == 0.01
    with pytest.raises(fl.UnknownNameError):
        fl.query.contact_parameters(model, "ball", "wall")
