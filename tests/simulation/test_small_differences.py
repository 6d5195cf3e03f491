"""Rare settings that MuJoCo accepts: time constant 0, all actuator groups disabled, rows without a DoF, no energy."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

PENDULUM = """<mujoco><option {options}/><worldbody>
<body name="b"><joint name="j"/><geom size=".1" pos=".2 0 0"/></body>
<body name="free" pos="0 0 2"><freejoint/><geom size=".1"/></body>
</worldbody>{rest}</mujoco>"""
FILTER = """<actuator><general joint="j" dyntype="filterexact" dynprm="{tau}" gainprm="2" group="3"/></actuator>"""


def loaded(rest="", options=""):
    model = fl.load(PENDULUM.format(rest=rest, options=options))
    return model, fl.Data(model), mujoco.MjData(model.mj_model)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_the_activation_of_an_exact_filter_without_a_time_constant_is_the_control(integrator):
    model, ours, theirs = loaded(FILTER.format(tau=0), f'integrator="{integrator}"')
    for u in (0.5, -2.0, 0.25):
        ours.ctrl, theirs.ctrl[:] = u, u
        fl.step(model, ours)
        mujoco.mj_step(model.mj_model, theirs)
        np.testing.assert_allclose(ours.act, theirs.act, rtol=1e-12)
        np.testing.assert_allclose(ours.act, u, rtol=1e-12)
        np.testing.assert_allclose(ours.qpos, theirs.qpos, atol=1e-12)
    batch = fl.Batch(model, 3, dtype="float32")
    batch.ctrl = 0.25
    batch.step()
    np.testing.assert_allclose(batch.act, 0.25, rtol=1e-6)


def test_negative_time_constants_are_refused():
    with pytest.raises(fl.ModelError, match="dynprm"):
        loaded(FILTER.format(tau=-1))
    model, data, _ = loaded(FILTER.format(tau=0.1))
    model.actuator_dynprm[0, 0] = -0.1
    with pytest.raises(fl.ModelError, match="dynprm"):
        fl.step(model, data)


def test_all_actuator_groups_can_be_disabled():
    model, ours, theirs = loaded(FILTER.format(tau=0))
    model.opt.disableactuator = ~0
    model.mj_model.opt.disableactuator = ~0
    ours.ctrl, theirs.ctrl[:] = 1.0, 1.0
    fl.step(model, ours, 3)
    for _ in range(3):
        mujoco.mj_step(model.mj_model, theirs)
    assert model.opt.disableactuator == -1
    np.testing.assert_allclose(ours.qpos, theirs.qpos, atol=1e-12)
    assert not ours.actuator_force.any()
    with pytest.raises(fl.ModelError, match="disableactuator"):
        model.opt.disableactuator = 1 << 32


def test_the_energy_is_zero_after_its_flag_is_cleared():
    model, data, theirs = loaded()
    model.opt.enableflags = "energy"
    fl.forward(model, data)
    assert data.energy[0] > 1.0
    model.opt.enableflags = 0
    fl.forward(model, data)
    mujoco.mj_forward(model.mj_model, theirs)
    np.testing.assert_array_equal(data.energy, theirs.energy)
    assert not data.energy.any()


@pytest.mark.parametrize(
    "equality",
    ['<connect anchor="0 0 0" body1="b"/>', '<weld body1="b" anchor="0 0 0" torquescale="0"/>'],
    ids=["connect", "weld"],
)
def test_equalities_that_no_dof_moves_have_no_rows(equality):
    """The hinge passes through the anchor, so that all entries of the Jacobian are 0."""
    model, ours, theirs = loaded(f"<equality>{equality}</equality>", 'jacobian="dense"')
    fl.forward(model, ours)
    mujoco.mj_forward(model.mj_model, theirs)
    assert (ours.ne, ours.nefc) == (theirs.ne, theirs.nefc) == (0, 0)
    np.testing.assert_allclose(ours.qacc, theirs.qacc, atol=1e-12)
    batch = fl.Batch(model, 9)
    batch.step(5)
    fl.step(model, ours, 5)
    assert np.array_equal(batch.qpos[4], ours.qpos)


def test_in_a_batch_only_the_worlds_whose_dofs_move_an_equality_have_its_rows():
    """The anchor is on the hinge in all worlds but one."""
    model, _, _ = loaded('<equality><connect anchor="0 0 0" body1="b"/></equality>')
    batch = fl.Batch(model, 9)
    batch.expand("eq_data")[3, 0, 0] = 0.1
    batch.expand("eq_data")[3, 0, 3] = 0.1
    batch.qvel[:, 0] = 1.0
    batch.step(5)
    for world in (0, 3):
        own = batch.get_model(world)
        alone = fl.Data(own)
        alone.qvel[0] = 1.0
        fl.step(own, alone, 5)
        assert alone.nefc == (3 if world == 3 else 0)
        assert np.array_equal(batch.qpos[world], alone.qpos), world
