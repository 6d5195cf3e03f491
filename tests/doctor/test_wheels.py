"""The doctor on real models: well-known ones pass, and none of the wheels' models makes it fail."""

import pytest

import featherlane as fl
from robots import wheels
from robots.models import ROBOTS

HEALTHY = tuple(f"gymnasium/{name}" for name in ("half_cheetah", "hopper", "humanoid", "swimmer", "walker2d_v5"))
HEALTHY += tuple(f"dm_control/{name}" for name in ("acrobot", "cheetah", "fish", "hopper", "humanoid", "walker"))


@pytest.mark.parametrize("name", HEALTHY)
def test_famous_models_have_nothing_worse_than_notes(name, real_model):
    found = fl.diagnose(str(real_model(name)))
    assert not [finding for finding in found if finding.severity != "note"]


def test_faults_of_a_gripper_are_named(real_model):
    """Its ranges are radians read as degrees; with finger ranges of a degree, it starts inside its palm."""
    found = {finding.check for finding in fl.diagnose(str(real_model("robosuite/grippers/jaco_three_finger_gripper")))}
    assert {"range-in-degrees", "overlap", "start-jumps"} <= found


@pytest.mark.slow
@pytest.mark.parametrize("wheel", ["gymnasium", "dm_control", *ROBOTS])
def test_every_model_of_a_package_is_checked(wheel, real_model):
    fixed = [f"{wheel}/{name}" for name in wheels.WHEELS[wheel].models]
    if not fixed:
        try:
            fixed = wheels.models_in(wheel)
        except wheels.Unreachable as error:
            pytest.skip(str(error))
    for name in fixed:
        try:
            found = fl.diagnose(str(real_model(name)))
        except fl.ModelError:
            continue  # a part, not a complete model
        assert all(finding.element and finding.seen for finding in found)
