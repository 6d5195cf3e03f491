"""Operational space control against NumPy: torques, singular poses, posture, precision, wrong arguments."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.controllers import OperationalSpace

AXES = ["0 0 1", "0 1 0", "0 0 1", "0 -1 0", "0 0 1", "0 -1 0", "0 0 1"]
N = 20


def scene(straight=False, n=7):
    bodies, ends = "", ""
    for k in range(n):
        pos = "0 0 .15" if straight else f"{0.02 * k} 0 {0.15 + 0.02 * k}"
        bodies += (
            f'<body pos="{pos}"><joint name="j{k}" axis="{AXES[k]}" damping=".1"/>'
            f'<geom type="capsule" size=".03" fromto="0 0 0 .02 .01 .13" mass="{2 - 0.2 * k}" contype="0"/>'
        )
        ends += "</body>"
    finger = '<body><joint name="finger" type="slide"/><geom size=".02" contype="0"/></body>'
    site = f'<site name="grip" pos="0 .02 .1"/>{finger}'
    motors = "".join(f'<motor name="m{k}" joint="j{k}" gear="{1 + 0.1 * k}"/>' for k in range(n))
    return f"""
<mujoco>
  <worldbody>
    <body pos="1 1 0"><joint name="other" type="ball"/><geom size=".1" contype="0"/></body>
    {bodies}{site}{ends}
  </worldbody>
  <actuator>
    <position name="servo" joint="finger"/>{motors}
    <motor name="ball" joint="other"/><motor name="finger" joint="finger"/>
    <motor name="twice" joint="j0"/><general name="slow" joint="j1" dyntype="filter" dynprm="1"/>
  </actuator>
</mujoco>
"""


MOTORS = [f"m{k}" for k in range(7)]


def drawn(rng, dtype="float64", **options):
    batch = fl.Batch(fl.load(scene()), N, dtype=dtype)
    batch.qpos[:, 4:11] = rng.uniform(-1, 1, (N, 7))
    batch.qvel[:, 3:10] = rng.uniform(-1, 1, (N, 7))
    arm = OperationalSpace(batch, "grip", MOTORS[::-1], **options)
    arm.target_pos = rng.uniform(-0.3, 0.3, (N, 3)) + [0, 0, 0.6]
    arm.stiffness = rng.uniform(50, 200, arm.stiffness.shape)
    arm.damping = rng.uniform(5, 20, arm.damping.shape)
    arm.posture = rng.uniform(-0.5, 0.5, (N, 7))  # in the order of the actuators
    return batch, arm


def parts(batch):
    """Returns J (n, 6, 7), M (n, 7, 7), c (n, 7), and pose of the site."""
    seen = batch.copy()
    for name in ("site_xpos", "site_xmat", "qfrc_bias"):
        seen.bind(name)
    seen.forward()
    J = np.concatenate(seen.jac_site("grip"), 1)[:, :, 3:10]
    return J, seen.full_m()[:, 3:10, 3:10], seen.qfrc_bias[:, 3:10], seen.site_xpos[:, 0], seen.site_xmat[:, 0]


def times(A, x):
    return np.einsum("nij,nj->ni", A, x)


def torques(batch, arm, rows, decoupled):
    J, M, c, pos, mat = parts(batch)
    J, qvel, q = J[:, :rows], batch.qvel[:, 3:10], batch.qpos[:, 4:11]
    error = [arm.target_pos - pos]
    if rows == 6:
        R, target = mat.reshape(N, 3, 3), arm.target_mat.reshape(N, 3, 3)
        error.append(0.5 * sum(np.cross(R[:, :, i], target[:, :, i]) for i in range(3)))
    F = np.concatenate(error, 1) * arm.stiffness - arm.damping * times(J, qvel)
    mobility = J @ np.linalg.inv(M) @ J.transpose(0, 2, 1)
    own = mobility.copy()
    if decoupled:
        own[:, :3, 3:] = own[:, 3:, :3] = 0
    k = arm.posture_stiffness
    a = k * (arm.posture[:, ::-1] - q) - 2 * np.sqrt(k) * qvel
    force = np.linalg.solve(own, F[..., None]) - np.linalg.solve(mobility, times(J, a)[..., None])
    tau = times(J.transpose(0, 2, 1), force[..., 0]) + times(M, a) + c
    return tau / (1 + 0.1 * np.arange(7)), np.linalg.cond(mobility)


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("orientation", [True, False])
def test_torques_equal_those_of_numpy(orientation, decoupled, rng):
    batch, arm = drawn(rng, orientation=orientation, decoupled=decoupled)
    expected, condition = torques(batch, arm, 6 if orientation else 3, decoupled and orientation)
    batch.rollout(1, arm)
    error = np.abs(batch.ctrl[:, 1:8] - expected).max(1) / np.abs(expected).max(1)
    assert (error < 1e-15 * condition + 1e-12).all()
    assert not batch.ctrl[:, [0, *range(8, 12)]].any()  # other actuators


def test_a_posture_does_not_accelerate_the_site(rng):
    batch, arm = drawn(rng)
    other = OperationalSpace(batch, "grip", MOTORS[::-1])
    for name, rows in arm.rows.items():
        other.rows[name][...] = rows
    other.posture = arm.posture + 1.0
    controls = []
    for each in (arm, other):
        moved = batch.copy()
        moved.rollout(1, each)
        controls.append(moved.ctrl[:, 1:8])
    J, M, *_ = parts(batch)
    change = (controls[1] - controls[0]) * (1 + 0.1 * np.arange(7))
    assert np.abs(change).max() > 1
    assert np.abs(times(J, np.linalg.solve(M, change[..., None])[..., 0])).max() < 1e-8


def test_a_world_alone_has_the_same_bits(rng):
    batch, arm = drawn(rng)
    alone = fl.Batch(batch.model, 1)
    alone.qpos, alone.qvel = batch.qpos[7], batch.qvel[7]
    own = OperationalSpace(alone, "grip", MOTORS[::-1])
    for name, rows in arm.rows.items():
        own.rows[name][...] = rows[7]
    batch.rollout(30, arm)
    alone.rollout(30, own)
    assert np.array_equal(alone.qpos[0], batch.qpos[7]) and np.array_equal(alone.ctrl[0], batch.ctrl[7])


def test_a_failure_is_replayed(rng, tmp_path):
    batch, arm = drawn(rng)
    recorded = fl.Batch(batch.model, N, record_failures=3)
    recorded.qpos, recorded.qvel = batch.qpos, batch.qvel
    recorded.rollout(10, arm)
    arm.target_pos[4] = np.nan
    recorded.rollout(1, arm)
    failure = recorded.failures[0]
    assert (failure.world, failure.nstep) == (4, 3)
    failure.save(tmp_path / "f.npz")
    read = fl.load_failure(tmp_path / "f.npz")
    read.control = failure.control
    for found in (failure.replay().qpos, failure.replay_batch().qpos[0], read.replay().qpos):
        assert np.array_equal(found, recorded.qpos[4])


def test_float32_is_close(rng):
    batch, arm = drawn(rng, orientation=False)
    single = fl.Batch(batch.model, N, dtype="float32")
    single.qpos, single.qvel = batch.qpos, batch.qvel
    own = OperationalSpace(single, "grip", MOTORS[::-1], orientation=False)
    for name, rows in arm.rows.items():
        own.rows[name][...] = rows
    single.rollout(1, own)
    batch.rollout(1, arm)
    scale = np.abs(batch.ctrl).max(1, keepdims=True)
    assert np.abs((single.ctrl - batch.ctrl) / scale).max() < 1e-3


def test_the_site_reaches_a_pose(rng):
    batch, arm = drawn(rng)
    batch.qvel = 0
    goal = fl.Batch(batch.model, N)
    goal.qpos = batch.qpos
    goal.qpos[:, 4:11] += rng.uniform(-0.2, 0.2, (N, 7))
    for name in ("site_xpos", "site_xmat"):
        goal.bind(name)
    goal.forward()
    arm.target_pos, arm.target_mat = goal.site_xpos[:, 0], goal.site_xmat[:, 0]
    arm.stiffness, arm.damping, arm.posture = 150.0, 2 * np.sqrt(150.0), batch.qpos[:, 10:3:-1]
    batch.rollout(3000, arm)
    _, _, _, pos, mat = parts(batch)
    reached = (np.abs(pos - arm.target_pos).max(1) < 0.005) & (np.abs(mat - arm.target_mat).max(1) < 0.05)
    assert reached.mean() > 0.8  # joint damping and singular poses hold back the others


def test_a_straight_arm_gets_finite_torques_without_force_in_the_singular_direction():
    batch = fl.Batch(fl.load(scene(straight=True)), 2)
    arm = OperationalSpace(batch, "grip", MOTORS)
    arm.target_pos[1, 2] += 0.1  # along the arm, which cannot become longer
    batch.rollout(1, arm)
    assert np.isfinite(batch.ctrl).all() and np.abs(batch.ctrl).max() < 1e4


def test_the_initial_target_is_the_pose_of_qpos0():
    batch = fl.Batch(fl.load(scene()), 2)
    arm = OperationalSpace(batch, "grip", MOTORS)
    _, _, _, pos, mat = parts(batch)
    assert np.array_equal(arm.target_pos, pos) and np.array_equal(arm.target_mat, mat)
    assert not arm.posture.any()


def test_wrong_arguments_are_refused():
    model = fl.load(scene())
    batch = fl.Batch(model, 2)
    for site, actuators, message in (
        ("gripp", MOTORS, "unknown site 'gripp'; did you mean 'grip'"),
        ("grip", ["m9"], "unknown actuator 'm9'"),
        ("grip", "m1", "actuators: got 'm1', allowed are one or more names"),
        ("grip", [], "actuators: got"),
        ("grip", ["servo"], "actuator 'servo': got another type, allowed are motors"),
        ("grip", ["slow"], "actuator 'slow': got another type"),
        ("grip", ["ball"], "actuator 'ball': it drives a ball or free joint"),
        ("grip", ["m0", "twice"], "actuator 'twice': its joint has another"),
        ("grip", ["m0", "finger"], "actuator 'finger': its joint does not move the site 'grip'"),
    ):
        with pytest.raises((fl.ModelError, fl.UnknownNameError), match=message):
            OperationalSpace(batch, site, actuators)
    with pytest.raises(fl.ModelError, match="batch: got Data, allowed is a Batch"):
        OperationalSpace(fl.Data(model), "grip", MOTORS)
    with pytest.raises(fl.ModelError, match="orientation: got"):
        OperationalSpace(batch, "grip", MOTORS, orientation="yes")
