"""Every unsupported feature that affects motion is named with its element; features without effect are not named."""

import mujoco
import pytest

from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.features import sensor_support, unsupported
from scenes.signed_distance import scene

TWO = """
  <body name="a" pos="0 0 1"><joint name="slide" type="slide"/><geom name="a" type="{0}" size="0.1 0.1 0.1" {1}/></body>
  <body name="b" pos="0 1 1"><joint name="hinge"/><geom name="b" size="0.1"/><site name="site"/></body>"""


SPHERES = TWO.format("sphere", "")


def compiled(bodies=SPHERES, tail="", option=""):
    return mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{bodies}</worldbody>{tail}</mujoco>")


def found(*parts, **named):
    model = compiled(*parts, **named)
    return unsupported(model, candidates(model))


def fixed(attributes):
    return f'<tendon><fixed name="string" {attributes}><joint joint="hinge" coef="1"/></fixed></tendon>'


def general(attributes, extra=""):
    return f'{extra}<actuator><general name="drive" joint="hinge" {attributes}/></actuator>'


def test_a_plain_robot_has_nothing_unsupported():
    assert found(tail='<actuator><motor joint="hinge"/><position joint="slide"/></actuator>') == []


OPTIONS = {
    "option flag: sleep": '<option integrator="RK4"><flag sleep="enable"/></option>',
}


@pytest.mark.parametrize("line", OPTIONS)
def test_options_are_named(line):
    (only,) = found(option=OPTIONS[line])
    assert only.startswith(line)


HARMLESS = {
    "magnetic and wind": '<option magnetic="1 0 0" wind="3 0 0"/>',
    "a medium": '<option density="1.2" viscosity="0.5"/>',
    "flags": '<option><flag energy="enable" fwdinv="enable" invdiscrete="enable" island="disable"/></option>',
    "integrators": '<option integrator="implicit" jacobian="sparse"/>',
    "the step map": '<option integrator="discrete"/>',
    "cones": '<option cone="elliptic" impratio="10"/>',
    "override": '<option o_margin="0.1" o_solref="0.01 1"><flag override="enable" diagexact="enable"/></option>',
    "contacts within the step": '<option><flag speculative="enable"/></option>',
    "sleep": '<option sleep_tolerance="0.01"><flag sleep="enable"/></option>',
}


@pytest.mark.parametrize("option", HARMLESS.values(), ids=HARMLESS)
def test_options_that_do_not_change_the_motion_pass(option):
    assert found(option=option) == []


def test_a_fluid_has_no_effect_on_a_static_model():
    assert found("", option='<option density="1.2"/>') == []


@pytest.mark.parametrize("kind", ["dyntype", "gaintype", "biastype"])
def test_actuators_of_the_user_pass(kind):
    assert found(tail=general(f'{kind}="user"')) == []


TARGETS = ('motor tendon="string"', 'motor site="site"', 'adhesion body="b" ctrlrange="0 1"')


@pytest.mark.parametrize("element", TARGETS)
def test_transmissions_pass(element):
    assert found(tail=f"{fixed('')}<actuator><{element}/></actuator>") == []


EQUALITIES = ('connect body1="a" anchor="0 0 0"', 'weld body1="a" body2="b"', 'joint joint1="slide" joint2="hinge"')


@pytest.mark.parametrize("element", EQUALITIES)
def test_equalities_of_bodies_and_joints_pass(element):
    assert found(tail=f"<equality><{element}/></equality>") == []


@pytest.mark.parametrize("shape", ["sphere", "capsule", "ellipsoid", "cylinder", "box"])
def test_every_rigid_shape_passes(shape):
    assert found(TWO.format(shape, "")) == []


def test_signed_distance_fields_pass():
    model = mujoco.MjModel.from_xml_string(scene("torus", "octree"))
    assert unsupported(model, candidates(model)) == []


def test_shapes_that_touch_nothing_pass():
    assert found(TWO.format("ellipsoid", 'contype="0" conaffinity="0"')) == []


def test_height_fields_carry_every_shape():
    asset = '<asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset>'
    ground = '<geom name="hills" type="hfield" hfield="h"/>'
    assert found(ground + TWO.format("capsule", ""), asset) == []


def test_adhesive_geoms_and_pairs_pass():
    assert found(TWO.format("sphere", 'adhesion="2"')) == []
    assert found(tail='<contact><pair name="touch" geom1="a" geom2="b" adhesion="2"/></contact>') == []


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_every_contact_dimension_passes(condim):
    assert found(TWO.format("sphere", f'condim="{condim}"')) == []


def test_flexes_are_named():
    flex = '<flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" dim="2" radius="0.01" mass="1"/>'
    assert "flex 'cloth': deformable body" in found(flex)


def test_callbacks_are_named():
    model = compiled()
    mujoco.set_mjcb_control(lambda model, data: None)
    try:
        assert unsupported(model, candidates(model)) == ["callback mjcb_control: installed in this process"]
    finally:
        mujoco.set_mjcb_control(None)


def test_several_features_are_all_named():
    flex = '<flexcomp name="cloth" type="grid" count="3 3 1" spacing="0.1 0.1 0.1" dim="2" radius="0.01" mass="1"/>'
    lines = found(flex, option='<option integrator="RK4"><flag sleep="enable"/></option>')
    assert lines[0] == "flex 'cloth': deformable body" and any(line.startswith("option flag: sleep") for line in lines)


@pytest.mark.parametrize(
    "attributes", ['damping="1"', 'damping="0 1 0"', 'armature="1"', 'forcerange="-1 1"', 'gear="3"']
)
def test_joint_actuator_armature_and_damping_are_supported(attributes):
    assert found(tail=general(attributes)) == []


def test_joints_driven_in_the_frame_of_their_parent_pass():
    assert found(tail='<actuator><motor jointinparent="hinge"/></actuator>') == []


TENDONS = ('stiffness="2 1 0"', 'damping="2 0 1"', 'armature="2"', 'frictionloss="2"', 'range="0 1"')


@pytest.mark.parametrize("attributes", TENDONS)
def test_tendons_that_act_pass(attributes):
    tail = fixed(attributes) + '<equality><tendon tendon1="string"/></equality>'
    assert found(tail=tail, option='<option integrator="discrete"/>') == []


def test_idle_tendons_sensors_and_histories_pass():
    tail = fixed("") + general('nsample="3"')
    tail += '<sensor><gyro site="site"/><jointpos joint="hinge"/><tendonpos tendon="string"/></sensor>'
    assert found(tail=tail) == []


def test_unsupported_sensors_are_listed():
    kinds = "<gyro site='site'/><user dim='2'/><insidesite objtype='geom' objname='ball' site='site' enclosed='true'/>"
    model = compiled(SPHERES + "<geom name='ball' size='0.1'/>", tail=f"<sensor>{kinds}<clock/></sensor>")
    assert sensor_support(model) == [True, False, False, True]
