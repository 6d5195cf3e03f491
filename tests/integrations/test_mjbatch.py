"""`featherlane.integrations.mjbatch`: mjbatch's tests and examples, and cases that they lack; mjbatch is not needed."""

import os
import re
import shutil
import subprocess
import sys

import mujoco
import numpy as np
import pytest

import exam
import featherlane as fl
import repositories
from featherlane.integrations.mjbatch import Batch
from robots import wheels

N = 5
PENDULUMS = """<mujoco>
  <worldbody>
    <body name="arm" pos="0 0 1"> <joint name="hinge" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".02"/> <site name="tip" pos="0 0 -.5"/>
    </body>
    <body name="weight" pos="1 0 1"> <freejoint/> <geom size=".1"/> </body>
  </worldbody>
  <equality> <weld body1="weight" active="false"/> </equality>
  <actuator> <motor name="motor" joint="hinge"/> </actuator>
  <sensor> <framepos name="tip" objtype="site" objname="tip"/> </sensor>
  <keyframe> <key qpos=".5 1 0 1 1 0 0 0"/> </keyframe>
</mujoco>"""
# results of the examples, in lines that both libraries print
PRINTED = {
    "hello": r"mean final angle -0\.3675 rad",
    "cartpole_mpc": r"done: tilt \[0\.00\d\] rad",
    "cartpole_swingup": r"done: tilt \[0\.0\d* 0\.0\d*\] rad",
    "arm_throw": r"stock [\d.]+ m, co-design [\d.]+ m: \+\d+%",
}


def found(call, *args):
    """Returns the result of a call that needs a repository's file; without access to it the test is skipped."""
    try:
        return call(*args)
    except wheels.Unreachable as error:
        pytest.skip(str(error))


def made(n=N, **how):
    return Batch(mujoco.MjModel.from_xml_string(PENDULUMS), n, **how)


@pytest.mark.ci
def test_the_tests_of_mjbatch_pass():
    done = found(exam.run, "mjbatch")
    assert re.search(r"^54 passed", done.stdout, re.MULTILINE), done.stdout[-3000:] + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTED)
def test_the_examples_of_mjbatch_run(name, tmp_path):
    """Only the import is replaced."""
    folder = tmp_path / "examples"
    shutil.copytree(found(repositories.example, name).parent, folder)
    path = folder / f"{name}.py"
    line = "from mjbatch import Batch\n"
    assert line in path.read_text()
    path.write_text(path.read_text().replace(line, "from featherlane.integrations.mjbatch import Batch\n"))
    how = [] if name == "hello" else ["--headless"]
    done = subprocess.run(
        [sys.executable, str(path), *how], text=True, capture_output=True, env=os.environ, timeout=3600
    )
    assert re.search(PRINTED[name], done.stdout), done.stdout[-2000:] + done.stderr[-2000:]


def test_a_refused_model_is_reported_before_a_step():
    source = """<mujoco><worldbody><flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2"/>
    </worldbody></mujoco>"""
    with pytest.raises(fl.UnsupportedFeatureError):
        Batch(mujoco.MjModel.from_xml_string(source), 4)


def test_results_do_not_depend_on_threads_and_batches():
    many, one = made(num_threads=2), made(1, num_threads=1)
    angle = np.linspace(0.1, 2.0, N)
    for batch, values in ((many, angle), (one, angle[3:4])):
        batch.bind("qpos")[:, 0] = values
        batch.step(nstep=50)
    np.testing.assert_array_equal(one.bind("state")[0], many.bind("state")[3])


def test_a_float32_copy_of_another_field_keeps_the_states_bits():
    batch, other = made(), made()
    copy, sensor, same = batch.bind("qvel", np.float32), batch.sensor("tip", np.float32), other.sensor("tip")
    for each in (batch, other):
        each.step(nstep=20)
    np.testing.assert_array_equal(batch.bind("state"), other.bind("state"))
    np.testing.assert_array_equal(copy, other.bind("qvel").astype(np.float32))
    np.testing.assert_array_equal(sensor, same.astype(np.float32))


def test_a_reset_keeps_what_the_caller_wrote_since_the_last_call():
    batch = made()
    qpos, qvel, active = batch.bind("qpos"), batch.bind("qvel", np.float32), batch.bind("eq_active")
    batch.step(nstep=3)
    qpos[1, 0], qvel[2, 0], active[3, 0] = 0.25, 0.5, True
    batch.reset(np.array([0, 1, 2, 3]), keyframe=0)
    np.testing.assert_array_equal(qpos[:4, 0], [0.5, 0.25, 0.5, 0.5])
    np.testing.assert_array_equal(qvel[:4, 0], [0.0, 0.0, 0.5, 0.0])
    np.testing.assert_array_equal(active[:, 0], [False, False, False, True, False])
    batch.reset(keyframe=0)
    np.testing.assert_array_equal(active[:, 0], False)


def test_a_failed_simulation_keeps_its_writes_for_the_next_call():
    batch = made()
    timestep, ctrl, time = batch.expand("timestep"), batch.bind("ctrl", np.float32), batch.bind("time")
    timestep[2], ctrl[:] = np.nan, 0.5
    history = np.zeros((N, 3, batch.nstate))
    with pytest.raises(RuntimeError, match=r"sim 2: .*timestep"):
        batch.step(nstep=3, history=history)
    assert np.flatnonzero(time == 0).tolist() == np.flatnonzero(~history.any((1, 2))).tolist() == [2]
    timestep[2] = 0.002
    batch.step(nstep=3)
    np.testing.assert_array_equal(batch.bind("qvel")[2], history[0, 2, 9:16])


def test_constants_of_some_simulations():
    """A field that changes for the first time is recomputed in all simulations, a later one only where asked."""
    batch = made()
    mass = batch.expand("body_mass")
    mass[:, 1] = 2.0
    batch.set_const([0])
    np.testing.assert_array_equal(batch.expand("body_subtreemass")[:, 1], 2.0)
    mass[:, 1] = 3.0
    batch.set_const([0])
    np.testing.assert_array_equal(batch.expand("body_subtreemass")[:, 1], [3.0, 2.0, 2.0, 2.0, 2.0])


def test_a_float32_model_field_is_stepped_as_the_caller_reads_it():
    batch, other = made(), made()
    damping, exact = batch.expand("dof_damping", np.float32), other.expand("dof_damping")
    exact[...] = damping.astype(float)
    for each in (batch, other):
        each.bind("qvel")[:] = 1.0
        each.step(nstep=10)
    np.testing.assert_array_equal(batch.bind("state"), other.bind("state"))
    damping[:, 0] = 0.3
    batch.step()
    other.expand("dof_damping")[:, 0] = np.float32(0.3)
    other.step()
    np.testing.assert_array_equal(batch.bind("state"), other.bind("state"))


def test_named_fields_are_live():
    batch = made()
    joint, motor, body, site = batch.joint("hinge"), batch.actuator("motor"), batch.body("weight"), batch.site("tip")
    motor.ctrl[:], tip = np.arange(N), batch.sensor("tip")
    batch.step(nstep=10)
    batch.forward()
    np.testing.assert_array_equal(motor.force, np.arange(N))
    assert (np.diff(joint.qpos[:, 0]) > 0).all() and (np.diff(joint.qvel[:, 0]) > 0).all()
    np.testing.assert_array_equal(site.xpos, tip)
    np.testing.assert_array_equal(body.xpos, batch.bind("qpos")[:, 1:4])
    assert site.xmat.shape == (N, 9) and body.xquat.shape == (N, 4) and body.cvel.shape == (N, 6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.bind("qposs"), "unknown field qposs.*qpos"),
        (lambda b: b.bind("gravity"), r'use expand\("gravity"\)'),
        (lambda b: b.expand("mesh_vert"), "asset"),
        (lambda b: b.bind("eq_active", np.float32), "eq_active cannot be float32"),
        (lambda b: (b.bind("qvel", np.float32), b.bind("qvel")), "another dtype"),
        (lambda b: b.step(nstep=0), "nstep"),
        (lambda b: b.rays(np.zeros((N, 3)), np.zeros((N, 3)), np.zeros(N)), r"pnt .*\(num_sims, nray, 3\)"),
        (lambda b: b.jac(None, None, np.zeros((N, 3)), np.full(N, 9)), "nbody = 3"),
        (lambda b: b.jac(np.zeros((N, 3, 7))[::-1], None, np.zeros((N, 3)), np.zeros(N, int)), "jacp"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call(made())
