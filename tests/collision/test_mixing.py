"""Contact parameters against MuJoCo: priority, weights, margins and explicit pairs."""

import mujoco
import numpy as np
import pytest

from featherlane.engine.collision.collision import collision
from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import ModelRows, Workspace
from oracles.contacts import contacts
from scenes.poses import collide, frames, oracle, pair_model, same_contacts

ROUNDING = 1e-15
TOUCHING = ([((0, 0, 0), (0, 0, 0.45))], [((1, 0, 0, 0), (1, 0, 0, 0))])

LEFT = 'size="0.2" friction="0.5 0.02 0.003" solref="0.03 0.8" solimp="0.8 0.9 0.002 0.4 3"'
RIGHT = 'size="0.3" friction="0.7 0.01 0.0" solref="0.01 1.2" solimp="0.7 0.95 0.001 0.5 2"'

PAIR = """
<mujoco>
  <worldbody>
    <body mocap="true"><geom name="left" {left}/></body>
    <body><freejoint/><geom name="right" {right}/></body>
  </worldbody>
  <contact><pair geom1="right" geom2="left" {pair}/></contact>
</mujoco>
"""


def equal_to_mujoco(model):
    """Compares the one contact of two overlapping spheres and returns it."""
    xpos, xmat = frames(model, *TOUCHING)
    expected = oracle(model, xpos, xmat)[0]
    for width in (1, 8):
        ours = collide(model, xpos, xmat, width)[0]
        same_contacts(ours, expected, ROUNDING)
    return ours


@pytest.mark.parametrize(
    "left, right",
    [
        ("", ""),
        ('priority="1"', ""),
        ("", 'priority="2" condim="1"'),
        ('condim="1"', 'condim="3"'),
        ('solmix="3"', ""),
        ('solmix="0"', ""),
        ("", 'solmix="0"'),
        ('solmix="0"', 'solmix="0"'),
        ('margin="0.02" gap="0.01"', 'margin="0.1" gap="0.05"'),
    ],
)
def test_parameters_equal_mujoco(left, right):
    equal_to_mujoco(pair_model(f"{LEFT} {left}", f"{RIGHT} {right}"))


@pytest.mark.parametrize("left", ["0.02 1", "-100 -5"])
@pytest.mark.parametrize("right", ["0.01 2", "-200 -3"])
def test_direct_solref_values_are_mixed_by_the_minimum(left, right):
    equal_to_mujoco(pair_model(f'size="0.2" solref="{left}" solmix="2"', f'size="0.3" solref="{right}"'))


def test_margins_and_gaps_are_summed_and_contacts_depend_on_the_margin():
    model = pair_model('size="0.2" margin="-0.1" gap="0.03"', 'size="0.3" margin="0.04" gap="0.2"')
    found = equal_to_mujoco(model)
    np.testing.assert_allclose(found.includemargin, -0.06)
    assert found.exclude[0] == 1


@pytest.mark.parametrize(
    "pair",
    [
        "",
        'condim="1" margin="0.03" gap="0.01"',
        'friction="0 0 0 0 0"',
        'friction="0.3 0.4 0.01 0 0.002" solref="0.04 0.9" solreffriction="0.02 1.1" solimp="0.5 0.6 0.01 0.3 4"',
    ],
)
def test_explicit_pairs_override_geom_parameters(pair):
    model = load(PAIR.format(left=LEFT + ' priority="3"', right=RIGHT, pair=pair))
    assert equal_to_mujoco(model).dim[0] == model.pair_dim[0]


@pytest.mark.parametrize("distance, count", [(0.5999, 1), (0.6001, 0)])
def test_an_explicit_pair_uses_its_own_margin(distance, count):
    model = load(PAIR.format(left=LEFT + ' margin="1"', right=RIGHT, pair='margin="0.07" gap="0.03"'))
    xpos, xmat = frames(model, [((0, 0, 0), (distance, 0, 0))], TOUCHING[1])
    assert len(oracle(model, xpos, xmat)[0]["dist"]) == count
    assert len(collide(model, xpos, xmat, 1)[0]) == count


@pytest.mark.parametrize("field", ["geom_friction", "geom_solmix", "geom_margin", "geom_solref", "geom_size"])
def test_contact_parameters_differ_by_world(field, rng):
    model = pair_model(LEFT, RIGHT)
    rows = ModelRows(model, 8, np.float64).own([field])
    ws = Workspace(model, 8, rows=rows)
    own = rng.uniform(0.05, 0.3, (getattr(model, field).size, 8))
    rows.record.arrays[field][...] = own
    xpos, xmat = frames(model, *TOUCHING)
    for w in range(8):
        ws.arrays["geom_xpos"][:, w], ws.arrays["geom_xmat"][:, w] = xpos[0].ravel(), xmat[0].ravel()
    ws.run(collision)
    for w in range(8):
        edited = load(model.to_mujoco())
        setattr(edited, field, own[:, w].reshape(getattr(model, field).shape))
        mujoco.mj_setConst(edited.mj_model, mujoco.MjData(edited.mj_model))
        same_contacts(contacts(model, ws.arrays, w), oracle(edited, xpos, xmat)[0], ROUNDING)
