"""Differenced residuals of worlds with stiff rows: a displacement at fixed acceleration would end sticking."""

import numpy as np
import pytest

import featherlane as fl

ROLLING_AND_HELD = """
<mujoco><option timestep=".002" tolerance="1e-15" iterations="300" {}/><worldbody>
<geom type="plane" size="5 5 1" friction=".8"/>
<body pos="0 0 .0995"><freejoint/><geom name="ball" type="sphere" size=".1" friction=".8 .02 .01"/></body>
<body pos="1 0 .0995"><freejoint/><geom type="box" size=".1 .1 .1" friction=".8 .02 .01" condim="4"/></body>
<body pos="2 0 .5"><joint axis="0 1 0" frictionloss=".9"/><geom type="capsule" size=".03 .2" pos="0 0 .1"/></body>
<body pos="3 0 .5"><joint name="a" axis="1 0 0"/><geom type="capsule" size=".03" fromto="0 0 0 0 .2 0"/>
<body pos="0 .2 0"><joint name="b" axis="0 1 0" damping=".1"/><geom type="sphere" size=".04" pos=".1 0 0"/></body>
</body>
</worldbody><tendon><fixed frictionloss=".9"><joint joint="a" coef="1"/><joint joint="b" coef=".5"/></fixed></tendon>
</mujoco>"""
LAWS = {  # contact model, attributes of the option
    "coulomb": ("coulomb", 'cone="elliptic"'),
    "stiff pyramids": ("convex", 'cone="pyramidal" impratio="1e4"'),
    "stiff cones": ("convex", 'cone="elliptic" impratio="1e6"'),
}
EQUAL = 3e-6  # of a column's largest entry, at least LEAST
LEAST = 1e-3
BY_PARAMETER = 1e-4  # that of columns by parameters: differences of steps over 1e-5 of the value are less accurate


def stuck(law: str) -> fl.Data:
    """Returns a state in which a ball rolls, a box lies, and dry friction holds joints and a tendon."""
    contact_model, options = LAWS[law]
    model = fl.load(ROLLING_AND_HELD.format(options))
    model.opt.contact_model = contact_model
    data = fl.Data(model)
    data.qvel[[0, 4]] = 0.3, 3.0
    fl.step(model, data, 20)
    return data


def assert_equal_columns(found, expected, equal=EQUAL) -> None:
    size = np.maximum(np.abs(expected).max(0), LEAST)
    assert (np.abs(found - expected).max(0) / size).max() < equal


@pytest.mark.parametrize("law", LAWS)
def test_stuck_rows_of_a_differenced_residual_stay_stuck(law):
    data = stuck(law)
    data.model.opt.enableflags = "diagexact"  # without formulas
    found = fl.linearize(data.model, data)
    expected = fl.linearize(data.model, data, method="finite_difference")
    assert np.isfinite(found.switching)
    assert_equal_columns(found.A, expected.A)


@pytest.mark.parametrize("law", ["stiff pyramids", "stiff cones"])
def test_stuck_rows_stay_stuck_if_a_parameter_is_displaced(law):
    data = stuck(law)
    names = ["geom_pos[ball]", "geom_size[ball]", "body_mass"]
    found = fl.linearize(data.model, data, parameters=names).P
    expected = fl.linearize(data.model, data, parameters=names, method="finite_difference").P
    for name in names:
        shape = len(found[name]), -1
        assert_equal_columns(found[name].reshape(shape), expected[name].reshape(shape), BY_PARAMETER)


def test_stuck_worlds_and_a_free_one_have_the_bits_of_each_alone():
    data = stuck("coulomb")
    model = data.model
    model.opt.enableflags = "diagexact"
    batch = fl.Batch(model, 3)
    batch.qpos, batch.qvel, batch.qacc_warmstart = data.qpos, data.qvel, data.qacc_warmstart
    batch.qpos[1, 2], batch.qpos[1, 9] = 2.0, 2.0
    together = fl.linearize(model, batch)
    for w in range(3):
        assert together.A[w].tobytes() == fl.linearize(model, batch.get_data(w)).A.tobytes()
