"""Variants of a model: each world equals that of a model written with these values."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl

ARM = """<mujoco><worldbody><geom type="plane" size="3 3 1"/><body name="upper" pos="0 0 1"><joint axis="0 1 0"/>
  <geom name="upper" type="capsule" fromto="0 0 0 {0} 0 0" size=".05"/>
  <body name="lower" pos="{0} 0 0"><joint axis="0 1 0"/><geom name="tip" type="{1}" size=".1 .1 .1"/></body></body>
</worldbody></mujoco>"""
WORLDS = [(0.5, "sphere"), (0.8, "box"), (0.5, "sphere"), (0.3, "ellipsoid"), (0.8, "box")]


def edit(spec, parameter):
    length, kind = parameter
    spec.geom("upper").fromto = [0, 0, 0, length, 0, 0]
    spec.body("lower").pos[0] = length
    spec.geom("tip").type = getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}")


def test_variants_equal_separately_written_models():
    found = fl.variants(ARM.format(0.5, "sphere"), WORLDS, edit)
    assert [n for _, n in found.models] == [2, 2, 1]
    assert found.parameters == [WORLDS[0], WORLDS[1], WORLDS[3]]
    batch = fl.MixedBatch(found.models)
    batch.step(400)
    for place, parameter in zip(found.place, WORLDS, strict=True):
        model = fl.load(ARM.format(*parameter))
        data = fl.Data(model)
        fl.step(model, data, 400)
        np.testing.assert_array_equal(batch.qpos[place, : model.nq], data.qpos)
        np.testing.assert_array_equal(batch.get_model(place).dof_invweight0, model.dof_invweight0)


def test_places_follow_the_parameters():
    found = fl.variants(ARM.format(0.5, "sphere"), np.array([0.3, 0.4, 0.3]), lambda spec, x: edit(spec, (x, "box")))
    batch = fl.MixedBatch(found.models)
    lengths = batch.bind("xpos")
    batch.forward()
    np.testing.assert_allclose(lengths[found.place, 2, 0], [0.3, 0.4, 0.3])


@pytest.mark.parametrize("parameters", [[], None, 3, np.array(0.0), np.broadcast_to(0.0, 1 << 50)])
def test_no_parameters_are_refused(parameters):
    with pytest.raises(fl.ModelError):
        fl.variants("arm", parameters, edit)


def test_a_failing_variant_is_reported_with_its_parameter():
    with pytest.raises(fl.ModelError, match=r"parameters\[1\]: got list"):
        fl.variants("arm", [1, [2]], lambda spec, x: None)
    with pytest.raises(fl.ModelError):
        fl.variants("arm", [1], None)
    with pytest.raises(fl.ModelError, match=r"variant -1\.0"):
        fl.variants(ARM.format(0.5, "sphere"), [-1.0], lambda spec, x: setattr(spec.geom("tip"), "size", [x, 0, 0]))


def test_an_error_in_an_edit_function_is_raised_unchanged():
    with pytest.raises(KeyError, match="mine"):
        fl.variants("arm", [1], lambda spec, x: {}["mine"])
