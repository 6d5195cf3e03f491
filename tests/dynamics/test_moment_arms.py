"""Dense moment arms of one world and of many: against MuJoCo's, differences of lengths, work and a law of levers."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl

# against MuJoCo: rounding of sums; lengths by centred differences of 1e-6 in float64; float32 of both
TOLERANCE = {"float64": 1e-12, "float32": 2e-6}
STEP, DIFFERENCE = 1e-6, 1e-8

# every transmission: slide, hinge, ball, ball in the parent's frame, free joint, tendons with a pulley and a wrapping
# cylinder, a site with and without reference, a slider-crank, contacts
KINDS = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <site name="ceiling" pos=".1 0 1.4"/>
    <body name="base" pos="0 0 .099"> <freejoint name="root"/> <geom name="base" type="box" size=".3 .2 .1"/>
      <site name="base" pos=".1 .2 .1" euler="10 20 30"/>
      <geom name="drum" type="cylinder" size=".04 .1" pos="0 0 .5" euler="90 0 0" mass="0" contype="0" conaffinity="0"/>
      <site name="side" pos="-.2 0 .5"/>
      <body name="arm" pos="0 0 .5"> <joint name="hinge" axis="0 1 0"/>
        <geom type="capsule" size=".03" fromto="0 0 0 0 0 .4" contype="0" conaffinity="0"/>
        <site name="arm" pos="-.05 .02 .2"/>
        <body pos="0 0 .4"> <joint name="ball" type="ball"/>
          <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" contype="0" conaffinity="0"/>
          <site name="hand" pos=".3 0 .05"/>
          <body pos=".3 0 0"> <joint name="slide" type="slide" axis="1 .3 0"/>
            <geom size=".05" contype="0" conaffinity="0"/>
            <site name="tip" pos=".05 0 0" euler="0 30 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="wrapped"> <site site="base"/> <geom geom="drum" sidesite="side"/> <site site="arm"/>
      <pulley divisor="2"/> <site site="arm"/> <site site="hand"/> <site site="ceiling"/> </spatial>
    <fixed name="fixed"> <joint joint="hinge" coef=".4"/> <joint joint="slide" coef="-2"/> </fixed>
  </tendon>
  <actuator>
    <motor joint="slide" gear="3"/> <motor joint="hinge" gear="-2"/> <motor joint="ball" gear="1 2 3"/>
    <motor jointinparent="ball" gear="1 -2 .5"/> <motor joint="root" gear="1 2 3 4 5 6"/>
    <muscle tendon="wrapped" lengthrange=".2 2" gear="1.5"/> <motor tendon="fixed" gear="7"/>
    <motor site="tip" gear="1 2 3 .4 .5 .6"/> <motor site="tip" refsite="base" gear="1 2 3 .4 .5 .6"/>
    <motor cranksite="tip" slidersite="base" cranklength="2"/> <adhesion body="base" gain="2" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""
LENGTHS = [0, 1, 5, 6, 9]  # actuators whose length has the moment as its derivative also for large rotations


def worlds(source: str = KINDS, n: int = 11, dtype: str = "float64") -> fl.Batch:
    """Returns worlds in different states, more than fit into a tile."""
    model, rng = fl.load(source), np.random.default_rng(7)
    batch = fl.Batch(model, n, dtype=dtype, nthread=1)
    turned = rng.normal(size=(n, model.nv)) * (np.arange(model.nv) >= 6)
    turned[:, 2] = 0.01 * rng.normal(size=n)  # some worlds touch the floor
    batch.qpos[:] = fl.integrate_pos(model, batch.qpos, turned, 0.5)
    batch.qvel[:] = rng.normal(size=(n, model.nv))
    return batch


def mujoco_arms(batch: fl.Batch, w: int) -> tuple[np.ndarray, mujoco.MjData]:
    """Returns MuJoCo's moments of a world, dense."""
    mj = batch.model.mj_model
    data, dense = mujoco.MjData(mj), np.zeros((mj.nout, mj.nv))
    data.qpos[:], data.qvel[:] = batch.qpos[w], batch.qvel[w]
    mujoco.mj_forward(mj, data)
    sparse = data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    mujoco.mju_sparse2dense(dense, *sparse)
    return dense, data


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_moment_arms_of_every_transmission_equal_mujocos(dtype):
    batch = worlds(dtype=dtype)
    arms, touching = batch.moment_arms(), 0
    assert arms.shape == (11, 11, 11) and arms.dtype == np.dtype(dtype)
    for w in range(batch.nworld):
        expected, data = mujoco_arms(batch, w)
        touching += data.ncon > 0
        assert (np.abs(expected[:10]).max(axis=1) > 0.05).all()
        scale = np.abs(expected).max()
        # float32 decides otherwise whether a corner touches the floor
        rows = slice(None) if dtype == "float64" else slice(10)
        np.testing.assert_allclose(arms[w, rows] / scale, expected[rows] / scale, rtol=0, atol=TOLERANCE[dtype])
    assert 2 <= touching <= 9


def test_moment_arms_are_the_derivatives_of_the_lengths():
    batch = worlds()
    model, arms = batch.model, batch.moment_arms()
    start = batch.qpos.copy()
    for i, unit in enumerate(np.eye(model.nv)):
        ends = []
        for side in (-STEP, STEP):
            batch.qpos[:] = fl.integrate_pos(model, start, np.tile(unit, (batch.nworld, 1)), side)
            ends.append(batch.present_fields("actuator_length")["actuator_length"])
        slope = (ends[1] - ends[0]) / (2 * STEP)
        np.testing.assert_allclose(arms[:, LENGTHS, i], slope[:, LENGTHS], rtol=0, atol=DIFFERENCE)


def test_moment_arms_map_velocities_and_forces():
    batch = worlds()
    batch.ctrl[:] = 0.6
    arms = batch.moment_arms()
    for name in ("actuator_velocity", "actuator_force", "qfrc_actuator"):
        batch.bind(name)
    batch.forward()
    rate = np.einsum("nij,nj->ni", arms, batch.qvel)
    force = np.einsum("nij,ni->nj", arms, batch.actuator_force)
    np.testing.assert_allclose(rate, batch.actuator_velocity, rtol=0, atol=1e-12)
    np.testing.assert_allclose(force, batch.qfrc_actuator, rtol=0, atol=1e-11)


@pytest.mark.parametrize("angle", [0.3, 1.0, 1.8])
def test_a_straight_muscle_has_the_arm_of_a_triangle(angle):
    """Bones of lengths a and b: L^2 = a^2 + b^2 - 2 a b cos(pi - q), so the arm is -a b sin(q) / L."""
    a, b = 0.3, 0.05
    model = fl.load(f"""<mujoco><worldbody><site name="origin" pos="{-a} 0 0"/>
      <body><joint axis="0 0 1"/><geom size=".02"/><site name="insertion" pos="{b} 0 0"/></body></worldbody>
      <tendon><spatial name="t"><site site="origin"/><site site="insertion"/></spatial></tendon>
      <actuator><muscle tendon="t" lengthrange=".2 .4"/></actuator></mujoco>""")
    data = fl.Data(model)
    data.qpos = angle
    length = np.sqrt(a**2 + b**2 + 2 * a * b * np.cos(angle))
    assert fl.query.moment_arms(model, data)[0, 0] == pytest.approx(-a * b * np.sin(angle) / length, rel=1e-13)


def test_arms_through_contacts_follow_given_and_removed_contacts():
    model = fl.load(KINDS)
    data = fl.Data(model)
    assert np.abs(fl.query.moment_arms(model, data)[10]).max() > 0.5
    data.qpos[2] = 1.0
    assert not fl.query.moment_arms(model, data)[10].any()
    data.qpos[2] = 0.099
    data.forward()
    assert np.abs(fl.query.moment_arms(model, data)[10]).max() > 0.5
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert not fl.query.moment_arms(model, data)[10].any()


def test_an_actuator_with_several_outputs_has_several_rows():
    model = fl.load("""<mujoco><worldbody><body><joint name="hip" type="ball"/><geom size="1"/></body></worldbody>
      <actuator><orientation joint="hip" kp="3"/></actuator></mujoco>""")
    data = fl.Data(model)
    data.qpos = (0.8, 0.6, 0, 0)
    np.testing.assert_array_equal(fl.query.moment_arms(model, data), np.eye(3))


def test_models_without_actuators_or_dofs_have_no_arms():
    for source, shape in (
        ("<mujoco/>", (0, 0)),
        ("<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>", (0, 1)),
    ):
        model = fl.load(source)
        assert fl.query.moment_arms(model, fl.Data(model)).shape == shape
        assert fl.Batch(model, 2).moment_arms().shape == (2, *shape)


def test_worlds_are_chosen_and_expanded_gears_are_used():
    batch = worlds()
    arms = batch.moment_arms()
    np.testing.assert_array_equal(batch.moment_arms([4, 1]), arms[[4, 1]])
    batch.expand("actuator_gear")[4, 1] *= 3
    np.testing.assert_array_equal(batch.moment_arms()[4, 1], 3 * arms[4, 1])
    np.testing.assert_array_equal(batch.moment_arms()[5], arms[5])


@pytest.mark.parametrize("ids", [[11], [-12], [1, 1], [0.5], "one", [np.nan]])
def test_wrong_worlds_are_refused(ids):
    with pytest.raises((fl.ModelError, TypeError), match="ids"):
        worlds().moment_arms(ids)


def test_non_finite_positions_stay_in_their_world():
    batch = worlds()
    arms = batch.moment_arms()
    batch.qpos[3, 7] = np.nan
    found = batch.moment_arms()
    assert np.isnan(found[3]).any()
    np.testing.assert_array_equal(np.delete(found, 3, 0), np.delete(arms, 3, 0))
