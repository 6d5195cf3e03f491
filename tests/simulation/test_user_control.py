"""Control kernels of rollouts against MuJoCo's mjcb_control, and as rows of a batch."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import any_, gather_rows, scalars, where
from scenes.actuators import scene
from scenes.user_functions import callbacks

SERVOS = '<motor joint="hinge"/><motor joint="slide"/><general joint="hinge" dyntype="filter" dynprm="0.05"/>'
STEPS = 20
CLOSE = 1e-9  # a trajectory of 20 steps, relative to its largest value


@fl.kernel
def control(m, d):
    """Computes damping, a force on the hinge proportional to its body's height, and a push on the free body."""
    d.ctrl[0] = -2.0 * d.qpos[0] - 0.3 * d.qvel[0]
    d.ctrl[1] = 0.5 * d.xipos[1].z - d.ten_velocity[0]
    d.ctrl[2] = fl.lanes.exp(-d.time[0])
    d.qfrc_applied[m.nv - 1] = 0.1 * d.qvel[1]


def by_callback(m, d):
    d.ctrl[0] = -2.0 * d.qpos[0] - 0.3 * d.qvel[0]
    d.ctrl[1] = 0.5 * d.xipos[1, 2] - d.ten_velocity[0]
    d.ctrl[2] = np.exp(-d.time)
    d.qfrc_applied[m.nv - 1] = 0.1 * d.qvel[1]


def started(integrator, n, rng, dtype="float64"):
    mj = mujoco.MjModel.from_xml_string(scene(SERVOS, integrator))
    mj.opt.tolerance = 0
    batch = fl.Batch(fl.load(mj), n, dtype=dtype)
    batch.qvel = 0.3 * rng.standard_normal(batch.qvel.shape)
    return mj, batch


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_a_control_kernel_equals_mjcb_control(integrator, rng):
    mj, batch = started(integrator, 9, rng)
    reference = mujoco.MjData(mj)
    reference.qvel[:] = batch.qvel[3]
    found = batch.rollout(STEPS, control=control, record=("qpos", "qvel", "act", "ctrl"))
    with callbacks(control=by_callback):
        for s in range(STEPS):
            mujoco.mj_step(mj, reference)
            for name, rows in found.items():
                expected = getattr(reference, name)
                bound = CLOSE * max(1.0, np.abs(expected).max())
                np.testing.assert_allclose(rows[3, s], expected, rtol=0, atol=bound, err_msg=f"{s} {name}")
    assert np.array_equal(batch.ctrl, found["ctrl"][:, -1])
    assert np.allclose(batch.qfrc_applied[3], reference.qfrc_applied, rtol=0, atol=CLOSE)


def test_controlled_worlds_do_not_affect_others(rng):
    _, batch = started("Euler", 19, rng)
    before, alone = batch.checkpoint(), []
    for w in range(19):
        alone.append(batch.rollout(5, control=control, ids=[w])["qpos"][0])
    batch.restore(before)
    together = batch.rollout(5, control=control)["qpos"]
    assert np.array_equal(together, alone)
    batch.restore(before)
    batch.rollout(5, control=control, ids=[2, 7])
    others = np.delete(np.arange(19), [2, 7])
    assert np.array_equal(batch.qpos[others], before["qpos"][others])
    assert np.array_equal(batch.ctrl[others], before["ctrl"][others])


def test_the_kernel_applies_to_one_call_only(rng):
    _, batch = started("Euler", 3, rng)
    batch.rollout(2, control=control)
    held = batch.ctrl.copy()
    batch.step(2)
    assert np.array_equal(batch.ctrl, held) and held.any()


def test_single_precision_follows(rng):
    _, double = started("Euler", 17, np.random.default_rng(1))
    _, single = started("Euler", 17, np.random.default_rng(1), "float32")
    a, b = (batch.rollout(10, control=control)["qpos"] for batch in (double, single))
    assert np.allclose(a, b, rtol=0, atol=2e-4 * np.abs(a).max())


def state_writer(m, d):
    d.qpos[0] = 0.0


def late_state_writer(m, d):
    if any_(d.time[0] > 1e3):
        d.qpos[0] = 0.0


def late_reader(m, d):
    if any_(d.time[0] > 1e3):
        d.ctrl[0] = d.actuator_force[0]


def address_reader(m, d):
    if any_(d.time[0] > 1e3):
        d.ctrl[0] = scalars(d, 8)[0]


WRONG = {
    "parameters": (fl.kernel(lambda m, d, i: None), r"control <lambda>: .*parameters \(m, d, i\)"),
    "state": (fl.kernel(state_writer), "control state_writer: .*read-only"),
    "result": (fl.kernel(lambda m, d: d.qpos[0]), "allowed is None: the function sets d.ctrl"),
    "state, on a way that the trial call does not take": (fl.kernel(late_state_writer), "read-only"),
    "later, on such a way": (fl.kernel(late_reader), "d.actuator_force cannot be read in this callback"),
    "an address": (fl.kernel(address_reader), "address_reader calls the address-based function scalars"),
    "later": (fl.kernel(lambda m, d: d.actuator_force[0]), "d.actuator_force cannot be read in this callback"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_refused(name, rng):
    kernel, message = WRONG[name]
    _, batch = started("Euler", 2, rng)
    with pytest.raises(fl.ModelError, match=message):
        batch.rollout(1, control=kernel)


@fl.kernel
def leaves_its_rows(m, d):
    """An index out of range in the second step."""
    i = 1_000_000 if any_(d.time[0] > 0.0) else 0
    d.ctrl[i] = d.time[0]


@fl.kernel
def gathers_beyond_the_end(m, d):
    """A world's index is beyond the table: row 0 is read, and the other worlds continue."""
    d.ctrl[0] = gather_rows(d.qpos, where(d.qpos[0] > 1.0, 1e300, 0.0))


def test_a_worlds_number_beyond_a_table_reads_its_first_row(rng):
    _, batch = started("Euler", 3, rng)
    batch.qpos[1, 0] = 2.0
    start = batch.qpos[:, 0].copy()
    batch.rollout(1, control=gathers_beyond_the_end)
    assert np.array_equal(batch.ctrl[:, 0], start)


@pytest.mark.parametrize("n", [1, 8])
def test_an_index_out_of_range_is_an_error_and_writes_nothing_outside(n, rng):
    _, batch = started("Euler", n, rng)
    batch.rollout(1, control=leaves_its_rows)
    with pytest.raises(fl.ModelError, match=r"ctrl\[1000000\]"):
        batch.rollout(2, control=leaves_its_rows)
    batch.step()
