"""Length ranges after edits against a compile of the edited source, and the actuators without a range."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl

ARM = """
<mujoco><option gravity="1 2 -30"/><worldbody><site name="a" pos="0 0 1"/><site name="b" pos="0 .1 {height}"/>
  <body pos="0 0 .5"><joint name="shoulder" axis="0 1 0" range="-60 {limit}" stiffness="50" frictionloss="3"/>
    <geom name="upper" type="capsule" size=".03" fromto="0 0 0 .4 0 0"/><site name="s" pos=".3 0 .05"/>
    <body pos=".4 0 0"><joint name="elbow" axis="0 1 0" range="0 100"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/><site name="t" pos=".1 0 .03"/></body></body>
  <body pos="0 0 2"><joint name="endless" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
</worldbody>
<tendon><spatial name="one"><site site="a"/><site site="s"/></spatial>
  <spatial name="two"><site site="b"/><site site="s"/><site site="t"/></spatial></tendon>
<actuator><muscle name="one" tendon="one"/><muscle name="two" tendon="two"/><motor name="motor" joint="elbow" gear="2"/>
  <motor name="wheel" joint="endless"/></actuator></mujoco>
"""


def arm(height=1.0, limit=80):
    return fl.load(ARM.format(height=height, limit=limit))


def test_an_unedited_model_keeps_its_ranges():
    model = arm()
    before = model.actuator_lengthrange.copy()
    fl.set_length_range(model)
    np.testing.assert_array_equal(model.actuator_lengthrange, before)


def test_edits_equal_a_recompiled_model():
    model, compiled = arm(), arm(1.3, 20)
    model.site("b").pos[2], model.joint("shoulder").range[1] = 1.3, np.deg2rad(20)
    fl.set_length_range(model, ["two", 0])
    assert np.abs(model.actuator_lengthrange - arm().actuator_lengthrange).max() > 0.05
    np.testing.assert_allclose(model.actuator_lengthrange, compiled.actuator_lengthrange, rtol=1e-9)


def test_the_length_range_of_a_motor_spans_its_limits():
    model = arm()
    fl.set_length_range(model, ["motor"], uselimit=True)
    np.testing.assert_allclose(model.actuator_lengthrange[2], [0, np.deg2rad(100)], rtol=1e-12)
    fl.set_length_range(model, ["motor"], inttotal=20)
    low, high = model.actuator_lengthrange[2]
    assert low == pytest.approx(0, abs=0.05) and high == pytest.approx(2 * np.deg2rad(100), abs=0.05)  # limits are soft


def test_an_actuator_without_limits_has_no_range():
    model = arm()
    before = model.actuator_lengthrange.copy()
    with pytest.raises(fl.ModelError, match="wheel"):
        fl.set_length_range(model, ["motor", "wheel"])
    np.testing.assert_array_equal(model.actuator_lengthrange, before)


@pytest.mark.parametrize(("wrong", "message"), [({"acel": 1.0}, "'acel'"), ({"interval": -1.0}, "interval:")])
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(fl.ModelError, match=message):
        fl.set_length_range(arm(), **wrong)
    with pytest.raises(fl.UnknownNameError):
        fl.set_length_range(arm(), ["three"])
