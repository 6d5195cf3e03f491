"""Shapes that cannot collide raise an error that names them; flat height fields can collide."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

SIZES = {"sphere": ".1", "capsule": ".1 .2", "ellipsoid": ".1 .2 .3", "cylinder": ".1 .2", "box": ".1 .2 .3"}
SCENE = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 1"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <geom name="shape" type="{kind}" size="{size}" {more}/></body>
  </worldbody>
</mujoco>"""
FIELD = """
<mujoco>
  <asset><hfield name="land" nrow="3" ncol="3" size="1 1 .5 .1" elevation="{heights}"/></asset>
  <worldbody>
    <geom type="hfield" hfield="land"/>
    <body pos="0 0 .11"><freejoint/><geom size=".1" solref="0.01 1"/></body>
  </worldbody>
</mujoco>"""
REST = 2e-5  # [m], height of a ball after two seconds


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_sizes_that_are_not_positive_are_refused_by_name(kind, wrong):
    mj = mujoco.MjModel.from_xml_string(SCENE.format(kind=kind, size=SIZES[kind], more=""))
    fl.load(mj)
    for i in range(len(SIZES[kind].split())):
        bad = mujoco.MjModel.from_xml_string(SCENE.format(kind=kind, size=SIZES[kind], more=""))
        bad.geom_size[1, i] = wrong
        with pytest.raises(fl.ModelError, match="shape"):
            fl.load(bad)


@pytest.mark.parametrize("kind", SIZES)
def test_the_compilers_refusal_of_a_size_names_the_geom(kind):
    with pytest.raises(fl.ModelError) as caught:
        fl.load(SCENE.format(kind=kind, size="0 0 0", more=""))
    assert "shape" in str(caught.value)


def test_shapes_that_touch_nothing_can_have_any_size():
    mj = mujoco.MjModel.from_xml_string(SCENE.format(kind="box", size=".1 .1 .1", more='contype="0" conaffinity="0"'))
    mj.geom_size[1] = 0.0
    model = fl.load(mj)
    fl.step(model, fl.Data(model))


@pytest.mark.parametrize("height", [0.0, 0.3, -2.0])
def test_a_height_field_of_constant_height_is_the_flat_top_of_its_base(height):
    """The reference is MuJoCo's plane: on a height field MuJoCo has one contact for each prism below the ball."""
    scene = FIELD.format(heights=f"{height} " * 9)
    model = fl.load(scene)
    plane = mujoco.MjModel.from_xml_string(scene.replace('type="hfield" hfield="land"', 'type="plane" size="1 1 1"'))
    reference, data = mujoco.MjData(plane), fl.Data(model)
    np.testing.assert_array_equal(model.hfield_data, 0.0)
    mujoco.mj_step(plane, reference, 1000)
    fl.step(model, data, 1000)
    assert data.ncon == reference.ncon == 1
    assert abs(data.qpos[2] - 0.1) < 1e-3
    np.testing.assert_allclose(data.qpos[:3], reference.qpos[:3], atol=REST)


@pytest.mark.parametrize("name", ["hfield_size", "hfield_data"])
def test_height_fields_without_extent_or_with_bad_heights_are_refused_by_name(name):
    mj = mujoco.MjModel.from_xml_string(FIELD.format(heights="0 1 2 3 4 5 6 7 8"))
    fl.load(mj)
    getattr(mj, name).reshape(-1)[2] = np.nan
    with pytest.raises(fl.ModelError, match="land"):
        fl.load(mj)
