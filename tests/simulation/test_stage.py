"""`Batch.step(stage=...)`: fields of the new state after a step, without a change of trajectories."""

import mujoco
import numpy as np
import pytest

import featherlane as fl

N = 3
MODEL = """<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <camera name="eye" mode="targetbody" target="ball" pos="0 -2 1"/>
    <body name="ball" pos="0 0 .12">
      <freejoint/>
      <geom size=".1"/>
      <site name="skin" size=".12"/>
      <body name="arm" pos="0 0 .1">
        <joint name="hinge" axis="0 1 0" damping=".1" stiffness=".5"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
        <site name="end" pos=".3 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon> <fixed name="string"> <joint joint="hinge" coef="2"/> </fixed> </tendon>
  <actuator> <motor name="motor" joint="hinge"/> <velocity tendon="string" kv=".1"/> </actuator>
  <sensor>
    <framepos name="position" objtype="site" objname="end"/>
    <velocimeter name="velocity" site="end"/>
    <subtreelinvel name="momentum" body="ball"/>
    <actuatorvel name="rate" actuator="motor"/>
    <touch name="touch" site="skin"/>
    <accelerometer name="acceleration" site="end"/>
  </sensor>
</mujoco>"""
POSITION = "xpos xmat site_xpos geom_xpos cam_xpos subtree_com ten_length actuator_length".split()
VELOCITY = "cvel subtree_linvel ten_velocity actuator_velocity qfrc_bias qfrc_passive qfrc_damper".split()
ACCELERATION = "qacc actuator_force qfrc_constraint".split()
SENSORS = {
    "position": ("position",),
    "velocity": ("velocity", "momentum", "rate"),
    "acceleration": ("touch", "acceleration"),
}
PRECISIONS = pytest.mark.parametrize("dtype", ["float64", "float32"])


def moving(dtype, integrator="euler"):
    """Returns a batch in motion, with all outputs bound."""
    model = fl.load(MODEL)
    model.opt.integrator = integrator
    batch = fl.Batch(model, N, nthread=1, dtype=dtype)
    batch.qvel = np.random.default_rng(0).normal(0, 1, (N, model.nv))
    batch.ctrl = np.random.default_rng(1).uniform(-1, 1, (N, model.nu))
    for name in (*POSITION, *VELOCITY, *ACCELERATION, "sensordata"):
        batch.bind(name)
    batch.step(20)
    return batch


def values(batch):
    """Returns copies of all bound outputs, and of each sensor."""
    found = {name: getattr(batch, name).copy() for name in (*POSITION, *VELOCITY, *ACCELERATION)}
    return found | {name: batch.sensor(name).data.copy() for names in SENSORS.values() for name in names}


@PRECISIONS
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("nstep", [1, 4])
@pytest.mark.parametrize("stage", ["position", "velocity", "acceleration"])
def test_a_stage_computes_its_fields_for_the_new_state(stage, nstep, integrator, dtype):
    batch = moving(dtype, integrator)
    plain = batch.copy()
    batch.step(nstep, stage=stage), plain.step(nstep)
    found, lagging = values(batch), values(plain)
    np.testing.assert_array_equal(batch.get_state(), plain.get_state())
    plain.forward()
    current = values(plain)
    order = ["position", "velocity", "acceleration"]
    fields = {"position": POSITION, "velocity": VELOCITY, "acceleration": ACCELERATION}
    for kind in order:
        expected = current if order.index(kind) <= order.index(stage) else lagging
        for name in (*fields[kind], *SENSORS[kind]):
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_fields_after_the_velocity_stage_equal_those_of_mj_step1():
    batch = moving("float64")
    batch.step(3, stage="velocity")
    mj_model = batch.model.to_mujoco()
    for world in range(N):
        expected = mujoco.MjData(mj_model)
        expected.qpos, expected.qvel = batch.qpos[world], batch.qvel[world]
        mujoco.mj_step1(mj_model, expected)
        for name in (*POSITION, *VELOCITY):
            values = np.reshape(getattr(batch, name)[world], -1)
            np.testing.assert_allclose(values, getattr(expected, name).ravel(), rtol=0, atol=1e-12, err_msg=name)


def test_a_stage_of_sleeping_trees():
    model = fl.load(
        """<mujoco><option timestep=".004"><flag sleep="enable"/></option><worldbody><geom type="plane" size="5 5 .1"/>
        <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/><site pos="0 0 .1"/></body>
        </worldbody></mujoco>"""
    )
    batch = fl.Batch(model, N, nthread=1)
    batch.bind("site_xpos"), batch.bind("cvel")
    batch.qvel[:, 0] = [0.0, 0.1, 5.0]
    for nstep in (1, 7, 30, 60, 60):
        batch.step(nstep, stage="velocity")
        found = batch.site_xpos.copy(), batch.cvel.copy()
        plain = batch.copy()
        plain.forward()
        np.testing.assert_allclose(found[0], plain.site_xpos, atol=1e-14)
        np.testing.assert_allclose(found[1], plain.cvel, atol=1e-14)
    assert (batch.tree_asleep >= 0).any()


def test_a_stage_touches_the_chosen_worlds_only():
    batch = moving("float64")
    before = values(batch)
    batch.step(2, ids=[1], stage="velocity")
    np.testing.assert_array_equal(batch.xpos[[0, 2]], before["xpos"][[0, 2]])
    assert (batch.xpos[1] != before["xpos"][1]).any()


def test_an_unknown_stage_is_refused():
    with pytest.raises(fl.ModelError, match="stage: got 'force', allowed are position, velocity, acceleration"):
        moving("float64").step(stage="force")


@pytest.mark.parametrize("ids", [None, [0, 3, 4]])
def test_outputs_of_several_steps_are_those_of_the_last(ids):
    """The steps before compute no outputs; these differ by no bit from outputs of single steps."""
    names = ("xpos", "geom_xpos", "cinert", "cvel", "cfrc_ext", "qfrc_actuator", "subtree_com", "energy", "sensordata")
    one, other = (fl.Batch(fl.bundled("humanoid"), 6, nthread=1) for _ in range(2))
    for batch in (one, other):
        batch.qvel[:] = np.random.default_rng(0).uniform(-1, 1, batch.qvel.shape)
        for name in names:
            batch.bind(name)
    one.step(7, ids=ids)
    for _ in range(7):
        other.step(ids=ids)
    for name in names:
        np.testing.assert_array_equal(one.bound[name], other.bound[name], err_msg=name)
    for name, rows in one.checkpoint().items():
        np.testing.assert_array_equal(rows, other.checkpoint()[name], err_msg=name)
