"""Flags computed when a model is loaded: each equals a search over all elements."""

import pytest

import featherlane as fl

SCENE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 1"><joint name="hinge" axis="0 1 0"/><geom name="g" type="{shape}" size="0.1 0.1 0.1"/>
    <body pos="0 0 1"><joint name="ball" type="ball"/><geom size="0.1"/></body></body></worldbody>
  <tendon><fixed name="t" {bounded}><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator>{actuators}</actuator><sensor>{sensors}</sensor></mujoco>"""
SIMPLE = ('<motor joint="hinge"/>', '<position joint="hinge" kp="2"/>', '<velocity joint="hinge"/>')
OTHERS = (
    '<motor joint="ball" gear="1 0 0"/>',
    '<motor tendon="t"/>',
    '<intvelocity joint="hinge" actrange="-1 1"/>',
    '<muscle joint="hinge" lengthrange="-1 1"/>',
)


def loaded(shape="sphere", bounded="", actuators="", sensors=""):
    return fl.load(SCENE.format(shape=shape, bounded=bounded, actuators=actuators, sensors=sensors))


def test_simple_actuators_are_marked():
    model = loaded(actuators="".join(SIMPLE + OTHERS))
    assert model.actuator_simple.tolist() == [1] * len(SIMPLE) + [0] * len(OTHERS)


@pytest.mark.parametrize(("shape", "round_"), [("sphere", 1), ("capsule", 1), ("box", 0), ("cylinder", 0)])
def test_round_scenes_are_marked(shape, round_):
    assert loaded(shape=shape).all_round == round_


def test_tendons_with_bounded_forces_are_counted():
    assert [loaded().nbounded, loaded(bounded='actuatorfrcrange="-1 1"').nbounded] == [0, 1]


def test_fields_read_by_sensors_are_marked():
    reads = {
        '<jointpos joint="hinge"/>': 0,
        '<subtreeangmom body="world"/>': 1,
        '<frameangacc objtype="geom" objname="g"/>': 2,
        '<e_kinetic/><frameangacc objtype="geom" objname="g"/>': 6,
    }
    assert {sensors: loaded(sensors=sensors).sensor_reads for sensors in reads} == reads
