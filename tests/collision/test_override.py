"""The flag `override`: margin, solref, solimp and friction of all contacts from the options, as in MuJoCo."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from oracles.rows import edited
from scenes.constraints import CONTACTS
from scenes.states import kicked

OVERRIDE = int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
ROUNDING = 1e-12  # positions of contacts and dependent fields
PARAMETERS = ("includemargin", "friction", "solref", "solreffriction", "solimp")

# bodies with many geoms, so that their boxes are tested first; no gaps, with which MuJoCo's boxes drop them
BOXES = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1" margin="0.2"/>
    {}
  </worldbody>
</mujoco>
""".format(
    "\n".join(
        f'<body pos="{0.39 * k} 0 0.115"><freejoint/>'
        + "".join(f'<geom size="0.1" pos="{x} {y} 0"/>' for x in (-0.1, 0.1) for y in (-0.1, 0.1))
        + "</body>"
        for k in range(4)
    )
)
OPTIONS = (
    {"o_margin": 0.03, "o_solref": [0.03, 0.8], "o_solimp": [0.8, 0.95, 0.01, 0.4, 3.0]},
    {"o_margin": 0.0, "o_solref": [-300.0, -20.0], "o_friction": [0.4, 0.5, 0.02, 0.01, 0.02]},
    {"o_margin": -0.01, "o_friction": [0.0, 0.0, 0.0, 0.0, 0.0]},
)


def compared(mj, rng):
    """Returns MuJoCo's data and ours, in a state where bodies touch."""
    qpos, qvel = kicked(mj, rng, 0.005)
    expected, data = mujoco.MjData(mj), fl.Data(fl.load(mj))
    expected.qpos[:], expected.qvel[:] = qpos, qvel
    data.qpos, data.qvel = qpos, qvel
    mujoco.mj_forward(mj, expected)
    data.forward()
    return expected, data


@pytest.mark.parametrize("scene", [CONTACTS, BOXES], ids=["mixed", "boxes"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("cone", [0, 1])
def test_contacts_and_their_parameters_equal_mujoco(scene, options, cone, rng):
    mj = edited(scene, enableflags=OVERRIDE, cone=cone, **options)
    expected, data = compared(mj, rng)
    assert data.ncon == expected.ncon > 0
    np.testing.assert_allclose(data.contact.dist, expected.contact.dist, atol=ROUNDING)
    for name in PARAMETERS:
        np.testing.assert_allclose(getattr(data.contact, name), getattr(expected.contact, name), atol=ROUNDING)
    np.testing.assert_allclose(data.efc_D, expected.efc_D, rtol=ROUNDING)


def test_override_options_have_no_effect_without_the_flag(rng):
    _, plain = compared(edited(CONTACTS), rng)
    _, ignored = compared(edited(CONTACTS, **OPTIONS[0]), np.random.default_rng(0))
    ignored.qpos, ignored.qvel = plain.qpos, plain.qvel
    ignored.forward()
    np.testing.assert_array_equal(ignored.qacc, plain.qacc)


def test_override_applies_to_every_world_of_a_batch(rng):
    model = fl.load(edited(BOXES, enableflags=OVERRIDE, **OPTIONS[0]))
    data, batch = fl.Data(model), fl.Batch(model, 3, nthread=1)
    data.qpos, data.qvel = kicked(model, rng, 0.005)
    batch.qpos, batch.qvel = data.qpos, data.qvel
    batch.expand("opt.o_margin")[1] = 0.0
    fl.step(model, data)
    batch.step()
    np.testing.assert_array_equal(batch.qvel[[0, 2]], [data.qvel] * 2)
    assert batch.ncon[1] < batch.ncon[0] == data.ncon


def test_overriding_options_are_live_and_checked():
    model = fl.load(BOXES)
    model.opt.o_solimp = [0.5, 0.6, 0.1, 0.5, 2.0]
    assert model.to_mujoco().opt.o_solimp[1] == 0.6
    with pytest.raises(fl.ModelError):
        model.opt.o_friction = [1.0, 2.0]
    with pytest.raises(fl.ModelError):
        model.opt.o_margin = "wide"
