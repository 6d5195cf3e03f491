"""Controllers that read actions, against NumPy: goals, gains, limits, memory, composites, wrong arguments."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.controllers import (
    Actions,
    Composite,
    Gripper,
    JointPosition,
    JointTorque,
    JointVelocity,
    OperationalSpace,
)
from simulation.test_operational_space import MOTORS, N, parts, scene, times

GEAR = 1 + 0.1 * np.arange(7)
ORDER = [2, 0, 1, 6, 5, 4, 3]  # of the joints in actions
NAMES = [MOTORS[k] for k in ORDER]
DOFS, COORDINATES, CONTROLS = (np.array(ORDER) + first for first in (3, 4, 1))
STEPS = 8
FINGERS = """
<mujoco>
  <worldbody>
    <body><joint name="a" type="slide"/><geom size=".1"/></body>
    <body pos="1 0 0"><joint name="b" type="slide"/><geom size=".1"/></body>
  </worldbody>
  <actuator>
    <position name="left" joint="a" ctrlrange="0 .04"/><position name="right" joint="b" ctrlrange="-.5 .1"/>
    <motor name="free" joint="a"/>
  </actuator>
</mujoco>
"""


def robot(rng, dtype="float64", n=N):
    batch = fl.Batch(fl.load(scene()), n, dtype=dtype)
    batch.qpos[:, 4:11] = rng.uniform(-1, 1, (n, 7))
    batch.qvel[:, 3:10] = rng.uniform(-1, 1, (n, 7))
    return batch


def state(batch):
    """Returns q, qvel, M and c of the joints, in the order of the actions."""
    _, M, c, *_ = parts(batch)
    return batch.qpos[:, COORDINATES], batch.qvel[:, DOFS], M[:, ORDER][:, :, ORDER], c[:, ORDER]


def force(batch):
    return batch.ctrl[:, CONTROLS] * GEAR[ORDER]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def mapped(action, low, high):
    """Returns actions from -1 to 1, mapped."""
    return low + (np.clip(action, -1, 1) + 1) / 2 * (high - low)


@pytest.mark.parametrize("mode", ["fixed", "variable_kp", "variable"])
@pytest.mark.parametrize("compensated", [True, False])
def test_joint_position(mode, compensated, rng):
    batch = robot(rng)
    high = np.linspace(0.1, 0.4, 7)
    read = Actions(output_min=-0.2, output_max=high, impedance_mode=mode, kp_limits=(30, 200))
    arm = JointPosition(batch, NAMES, actions=read, compensated=compensated, position_limits=(-0.8, np.full(7, 0.9)))
    action = rng.uniform(-1.2, 1.2, (N, 7))
    kp, ratio = rng.uniform(0, 250, (N, 7)), rng.uniform(0, 12, (N, 7))
    arm.set_goal(np.hstack([*(ratio, kp)[2 - ["fixed", "variable_kp", "variable"].index(mode) :], action]))
    K = np.clip(kp, 30, 200) if mode != "fixed" else np.full((N, 7), 50.0)
    D = 2 * np.sqrt(K) * (np.clip(ratio, 0, 10) if mode == "variable" else 1)
    goal = np.clip(batch.qpos[:, COORDINATES] + mapped(action, -0.2, high), -0.8, 0.9)
    for _ in range(2):  # the goal stays
        q, qvel, M, c = state(batch)
        expected = K * (goal - q) - D * qvel
        batch.rollout(1, arm)
        close(force(batch), times(M, expected) + c if compensated else expected)
    close(arm.goal, goal)


def test_joint_velocity(rng):
    batch = robot(rng)
    kp = np.linspace(0.5, 0.01, 7)
    arm = JointVelocity(batch, NAMES, kp, actions=Actions(output_min=-2, output_max=3), velocity_limits=(-1, 1.5))
    arm.least_force, arm.greatest_force = -20, 20
    arm.ki, arm.kd = 0.3 * kp, 0.2 * kp
    goal = rng.uniform(-1.2, 1.2, (N, 7))
    arm.set_goal(goal)
    goal = np.clip(mapped(goal, -2, 3), -1, 1.5)
    total, last, changes, clipped = np.zeros((N, 7)), np.zeros((N, 7)), [], np.zeros((N, 1), bool)
    some = clipped.copy()
    for _ in range(STEPS):
        _, qvel, _, c = state(batch)
        error = goal - qvel
        changes.append(error - last)
        total, last = np.where(clipped, total, total + error), error
        tau = kp * error + 0.3 * kp * total + 0.2 * kp * np.mean(changes[-5:], 0) + c
        batch.rollout(1, arm)
        close(force(batch), np.clip(tau, -20, 20))
        clipped = ((tau < -20) | (tau > 20)).any(1, keepdims=True)
        some |= clipped
    assert 0 < some.sum() < N
    arm.reset([1, 3])
    assert not arm.error_sum[[1, 3]].any() and not arm.goal[[1, 3]].any() and arm.error_sum[[0, 2]].all()
    _, qvel, _, c = state(batch)
    batch.rollout(1, arm)
    expected = (-kp - 0.3 * kp - 0.2 * kp) * qvel + c
    close(force(batch)[[1, 3]], np.clip(expected, -20, 20)[[1, 3]])


@pytest.mark.parametrize("compensated", [True, False])
def test_joint_torque(compensated, rng):
    batch = robot(rng)
    arm = JointTorque(batch, NAMES, actions=Actions(output_min=-5, output_max=9), compensated=compensated)
    action = rng.uniform(-1.2, 1.2, (N, 7))
    arm.set_goal(action)
    *_, c = state(batch)
    batch.rollout(1, arm)
    close(force(batch), mapped(action, -5, 9) + c * compensated)
    arm.reset()
    *_, c = state(batch)
    batch.rollout(1, arm)
    close(force(batch), c * compensated)


def test_forces_are_limited_by_the_range_of_the_control():
    text = scene().replace('name="m0"', 'name="m0" ctrlrange="-2 3"').replace('name="m1"', 'name="m1" ctrlrange="-1 1"')
    batch = fl.Batch(fl.load(text), 2)
    arm = JointTorque(batch, MOTORS[:2], actions=Actions(output_min=-50, output_max=50), compensated=False)
    arm.set_goal([1, -1])
    assert arm.goal.tolist() == [[3.0, -1.1]] * 2  # the gear of m1 is 1.1
    assert JointVelocity(batch, MOTORS[:3], 1).greatest_force[0].tolist() == [3.0, 1.1, np.inf]


def rotations(vectors):
    """Returns rotation matrices by the series of the matrix exponential."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    S = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
    R, term = np.tile(np.eye(3), (len(S), 1, 1)), np.eye(3)
    for k in range(1, 25):
        term = term @ S / k
        R = R + term
    return R


def frames(batch):
    """Returns position and matrix of the site `grip` in the frame of `origin`, and in the world."""
    seen = batch.copy()
    for name in ("site_xpos", "site_xmat"):
        seen.bind(name)
    seen.forward()
    model = batch.model
    i, b = model.site("grip").id, model.site("origin").id
    x, R = seen.site_xpos, seen.site_xmat.reshape(len(seen.qpos), -1, 3, 3)
    B = R[:, b].transpose(0, 2, 1)
    return times(B, x[:, i] - x[:, b]), B @ R[:, i]


def based(rng, orientation, **options):
    text = scene().replace("<worldbody>", '<worldbody><site name="origin" pos=".3 -.1 .2" euler="20 40 60"/>')
    batch = fl.Batch(fl.load(text), N)
    batch.qpos[:, 4:11] = rng.uniform(-1, 1, (N, 7))
    return batch, OperationalSpace(batch, "grip", MOTORS, orientation=orientation, base="origin", **options)


@pytest.mark.parametrize("desired", [False, True])
@pytest.mark.parametrize("orientation", [True, "held", False])
def test_goals_of_operational_space(orientation, desired, rng):
    batch, arm = based(rng, orientation, position_limits=(-0.3, [0.2, 0.3, 0.6]))
    n = 6 if orientation is True else 3
    goal, turn = frames(batch) if not desired else (arm.target_pos.copy(), None)
    if orientation:
        turn = arm.target_mat.reshape(N, 3, 3).copy() if desired else turn
    for _ in range(2):
        action = rng.uniform(-1.2, 1.2, (N, n))
        if not desired:
            goal, turn = frames(batch)
        arm.set_goal(action, "desired" if desired else "achieved")
        goal = np.clip(goal + 0.05 * np.clip(action[:, :3], -1, 1), -0.3, [0.2, 0.3, 0.6])
        if orientation is True:
            turn = rotations(0.5 * np.clip(action[:, 3:], -1, 1)) @ turn
        batch.rollout(1, arm)
        np.testing.assert_allclose(arm.target_pos, goal, atol=1e-13)
        if orientation:
            np.testing.assert_allclose(arm.target_mat.reshape(N, 3, 3), turn, atol=1e-13)


@pytest.mark.parametrize("orientation", [True, "held", False])
def test_absolute_goals_of_operational_space(orientation, rng):
    batch, arm = based(rng, orientation, actions=Actions(input_type="absolute"))
    action = rng.uniform(-2, 2, (N, 6 if orientation is True else 3))
    _, turn = frames(batch)
    arm.set_goal(action)
    batch.rollout(1, arm)
    np.testing.assert_allclose(arm.target_pos, action[:, :3], atol=1e-13)
    if orientation:
        turn = rotations(action[:, 3:]) if orientation is True else turn
        np.testing.assert_allclose(arm.target_mat.reshape(N, 3, 3), turn, atol=1e-12)
    assert np.isinf(arm.action_limits).all()


def test_a_target_in_the_frame_of_a_base_exerts_the_forces_of_the_same_target_in_the_world(rng):
    batch, arm = based(rng, True)
    other = OperationalSpace(batch, "grip", MOTORS)
    model = batch.model
    data = fl.Data(model)
    data.forward()
    b = model.site("origin").id
    B, origin = data.site_xmat[b].reshape(3, 3), data.site_xpos[b]
    arm.target_pos = rng.uniform(-0.3, 0.3, (N, 3))
    arm.target_mat = rotations(rng.uniform(-1, 1, (N, 3))).reshape(N, 9)
    other.target_pos = arm.target_pos @ B.T + origin
    other.target_mat = (B @ arm.target_mat.reshape(N, 3, 3)).reshape(N, 9)
    controls = []
    for each in (arm, other):
        seen = batch.copy()
        seen.rollout(1, each)
        controls.append(seen.ctrl)
    scale = np.abs(controls[0]).max(1, keepdims=True)
    assert np.abs((controls[0] - controls[1]) / scale).max() < 1e-9


@pytest.mark.parametrize("moving", [["m1", "m2", "m3"], ["m3", "m4", "m5", "m6"]])
def test_the_velocity_relative_to_a_moving_base_is_damped(moving, rng):
    """The base is on a link of the arm, as in robosuite's IIWA, or below the arm."""
    text = scene().replace('<joint name="j1"', '<site name="origin" pos=".1 .2 .3"/><joint name="j1"')
    batch = fl.Batch(fl.load(text), N)
    batch.qpos[:, 4:11], batch.qvel[:, 3:10] = rng.uniform(-1, 1, (2, N, 7))
    arm = OperationalSpace(batch, "grip", moving, base="origin", orientation=False)
    arm.stiffness, arm.posture_stiffness = 0.0, 0.0
    arm.damping = rng.uniform(1, 9, (N, 3))
    columns = [3 + int(name[1:]) for name in moving]
    J = batch.jac_site("grip")[0]
    v = times(J - batch.jac_site("origin")[0], batch.qvel)
    _, M, c, *_ = parts(batch)
    J, M = J[:, :, columns], M[:, [i - 3 for i in columns]][:, :, [i - 3 for i in columns]]
    force = np.linalg.solve(J @ np.linalg.inv(M) @ J.transpose(0, 2, 1), (-arm.damping * v)[..., None])[..., 0]
    expected = times(J.transpose(0, 2, 1), force) + c[:, [i - 3 for i in columns]]
    batch.rollout(1, arm)
    found = batch.ctrl[:, [i - 2 for i in columns]] * GEAR[[i - 3 for i in columns]]
    assert (np.abs(found - expected).max(1) / np.abs(expected).max(1) < 1e-9).all()


def test_impedance_of_operational_space(rng):
    batch = robot(rng)
    read = Actions(impedance_mode="variable", kp_limits=(10, [200] * 6))
    arm = OperationalSpace(batch, "grip", MOTORS, actions=read)
    ratio, kp = rng.uniform(0, 12, (N, 6)), rng.uniform(0, 250, (N, 6))
    arm.set_goal(np.hstack([ratio, kp, np.zeros((N, 6))]))
    np.testing.assert_allclose(arm.stiffness, np.clip(kp, 10, 200))
    np.testing.assert_allclose(arm.damping, 2 * np.sqrt(arm.stiffness) * np.clip(ratio, 0, 10))
    low, high = arm.action_limits
    assert low.tolist() == [0] * 6 + [10] * 6 + [-1] * 6 and high.tolist() == [10] * 6 + [200] * 6 + [1] * 6


def test_a_reset_takes_goal_and_posture_from_the_next_state(rng):
    batch, arm = based(rng, True)
    still = arm.posture[1].copy(), arm.target_pos[1].copy()
    arm.set_goal(np.ones(6))
    arm.reset(np.arange(N) != 1)
    x, R = frames(batch)
    batch.rollout(1, arm)
    np.testing.assert_allclose(arm.target_pos[0], x[0], atol=1e-13)
    np.testing.assert_allclose(arm.target_mat[0].reshape(3, 3), R[0], atol=1e-13)
    assert np.array_equal(arm.posture[1], still[0]) and np.abs(arm.target_pos[1] - x[1] - 0.05).max() < 1e-13
    joints = JointPosition(batch, NAMES)
    joints.set_goal(np.ones(7))
    joints.reset([0])
    q = batch.qpos[:, COORDINATES].copy()
    batch.rollout(1, joints)
    np.testing.assert_allclose(joints.goal[:2] - q[:2], [[0] * 7, [0.05] * 7], atol=1e-13)


def test_desired_goals_add_up_before_a_step(rng):
    batch, arm = based(rng, True)
    joints = JointPosition(batch, NAMES)
    x, R = frames(batch)
    actions = rng.uniform(-1, 1, (2, N, 6))
    for mode, action in zip(("achieved", "desired"), actions, strict=True):
        arm.set_goal(action, mode)
        joints.set_goal(np.full(7, 0.5), mode)
    q = batch.qpos[:, COORDINATES].copy()
    batch.copy().rollout(1, arm)
    np.testing.assert_allclose(arm.target_pos, x + 0.05 * actions[:, :, :3].sum(0), atol=1e-13)
    first, second = (rotations(0.5 * a[:, 3:]) for a in actions)
    np.testing.assert_allclose(arm.target_mat.reshape(N, 3, 3), second @ first @ R, atol=1e-13)
    batch.rollout(1, joints)
    np.testing.assert_allclose(joints.goal, q + 0.05, atol=1e-13)


def test_gripper():
    batch = fl.Batch(fl.load(FINGERS), 3)
    hand = Gripper(batch, ["right", "left"], directions=[-1, 1], speed=0.3)
    closing = np.zeros(3)
    for signs in ([1, -1, 0], [0.2, -5, 1], [1, -1, 1], [1, -1, -1]):
        hand.set_goal(np.array(signs)[:, None])
        closing = np.clip(closing + 0.3 * np.sign(signs), -1, 1)
        batch.rollout(2, hand)
        np.testing.assert_allclose(batch.ctrl[:, 0], 0.02 + 0.02 * closing)
        np.testing.assert_allclose(batch.ctrl[:, 1], -0.2 - 0.3 * closing)
    hand.reset(1)
    np.testing.assert_allclose(hand.closing[:, 0], [closing[0], 0, closing[2]])


def test_gripper_modes():
    batch = fl.Batch(fl.load(FINGERS), 2)
    fingers = ["left", "right"]
    each = Gripper(batch, fingers, each_step=True, speed=0.01)
    each.set_goal([1])
    batch.rollout(7, each)
    np.testing.assert_allclose(each.closing, 0.07)
    graded = Gripper(batch, fingers, binary=False, speed=0.2, columns=[1, 0])
    graded.set_goal([[0.5, 3], [-1, 0.25]])
    np.testing.assert_allclose(graded.closing, [[0.1, 0.2], [-0.2, 0.05]])
    batch.rollout(1, graded)
    np.testing.assert_allclose(batch.ctrl[:, :2], [[0.024, -0.17], [0.021, -0.26]])
    plain = Gripper(batch, fingers, columns=[0, 1], speed=None)
    plain.set_goal([[0.5, 3], [-2, 0.25]])
    assert plain.closing.tolist() == [[0.5, 1], [-1, 0.25]]


def composite(batch):
    arm = OperationalSpace(batch, "grip", ["m2", "m0", "m1", "m4", "m3"], orientation=False)
    wrist = JointPosition(batch, ["m6"])
    speed = JointVelocity(batch, ["m5"], 3)
    return Composite({"arm": arm, "wrist": wrist, "speed": speed})


def test_a_composite_equals_its_parts(rng):
    batch = robot(rng)
    both, actions = composite(batch), rng.uniform(-1, 1, (STEPS, N, 5))
    assert {name: (c.start, c.stop) for name, c in both.columns.items()} == {
        "arm": (0, 3),
        "wrist": (3, 4),
        "speed": (4, 5),
    }
    alone = composite(batch).parts
    for k, action in enumerate(actions):
        both.set_goal(action)
        if k == 5:
            both.reset([2, 4])
        expected = np.zeros_like(batch.ctrl)
        for name, part in alone.items():
            part.set_goal(action[:, both.columns[name]])
            if k == 5:
                part.reset([2, 4])
            seen = batch.copy()
            seen.ctrl = 0.0
            seen.rollout(1, part)
            expected += seen.ctrl
        batch.rollout(1, both)
        np.testing.assert_array_equal(batch.ctrl, expected)
    assert [len(end) for end in both.action_limits] == [5, 5] and both.action_width == 5


def test_a_world_alone_has_the_same_bits(rng):
    batch = robot(rng)
    one = fl.Batch(batch.model, 1)
    one.qpos, one.qvel = batch.qpos[7], batch.qvel[7]
    both, own = composite(batch), composite(one)
    for action in rng.uniform(-1, 1, (STEPS, N, 5)):
        both.set_goal(action)
        own.set_goal(action[7])
        batch.rollout(3, both)
        one.rollout(3, own)
        assert np.array_equal(one.qpos[0], batch.qpos[7]) and np.array_equal(one.ctrl[0], batch.ctrl[7])


def test_float32_is_close(rng):
    batch = robot(rng)
    single = fl.Batch(batch.model, N, dtype="float32")
    single.qpos, single.qvel = batch.qpos, batch.qvel
    both, own = composite(batch), composite(single)
    action = rng.uniform(-1, 1, (N, 5))
    for each, control in ((batch, both), (single, own)):
        control.set_goal(action)
        each.rollout(1, control)
    scale = np.abs(batch.ctrl).max(1, keepdims=True)
    assert np.abs((single.ctrl - batch.ctrl) / scale).max() < 1e-3


def test_a_failure_of_a_composite_is_replayed(rng):
    batch = robot(rng)
    recorded = fl.Batch(batch.model, N, record_failures=3)
    recorded.qpos, recorded.qvel = batch.qpos, batch.qvel
    both = composite(recorded)
    both.set_goal(rng.uniform(-1, 1, (N, 5)))
    recorded.rollout(10, both)
    both.parts["wrist"].goal[4] = np.nan
    recorded.rollout(1, both)
    failure = recorded.failures[0]
    assert (failure.world, failure.nstep) == (4, 3) and "p.part1.goal" in failure.states
    assert np.array_equal(failure.replay().qpos, recorded.qpos[4])


def test_a_straight_arm_gets_finite_torques():
    batch = fl.Batch(fl.load(scene(straight=True)), 2)
    arm = OperationalSpace(batch, "grip", MOTORS, orientation="held", decoupled=True)
    arm.set_goal([0, 0, 1])  # along the arm, which cannot become longer
    batch.rollout(1, arm)
    assert np.isfinite(batch.ctrl).all() and np.abs(batch.ctrl).max() < 1e4


def test_wrong_arguments_are_refused():
    batch, other = fl.Batch(fl.load(scene()), 2), fl.Batch(fl.load(scene()), 2)
    fingers = fl.Batch(fl.load(FINGERS), 2)
    arm, hand = JointPosition(batch, NAMES), Gripper(fingers, ["left"])
    bad = np.zeros((2, 7))
    bad[1, 3] = np.nan
    for call, message in (
        (lambda: arm.set_goal(np.zeros((2, 6))), r"action: got shape \(2, 6\), allowed are finite numbers \(7,\)"),
        (lambda: arm.set_goal(bad), r"action\[1, 3\]: got nan, allowed are finite numbers"),
        (
            lambda: arm.set_goal(np.zeros(7), "reached"),
            "goal_update_mode: got 'reached', allowed are achieved, desired",
        ),
        (lambda: arm.reset(2), "ids: got 2, allowed are 0 to 1"),
        (lambda: JointPosition(batch, ["m9"]), "unknown actuator 'm9'"),
        (lambda: JointTorque(batch, ["m0", "m0"]), "actuator 'm0': got it twice"),
        (
            lambda: JointVelocity(batch, NAMES, [1, 2]),
            r"kp: got \[1.0, 2.0\], allowed are finite numbers or arrays \(7,\)",
        ),
        (lambda: JointTorque(fl.Data(batch.model), NAMES), "batch: got Data, allowed is a Batch"),
        (lambda: JointTorque(batch, NAMES, compensated=2), "compensated: got 2"),
        (lambda: JointTorque(batch, NAMES, actions=3), "actions: got int, allowed is an Actions"),
        (lambda: Gripper(fingers, ["free"]), "actuator 'free': it has no ctrlrange"),
        (lambda: Gripper(fingers, ["left", "right"], columns=[0]), "columns: got 1, allowed are 2"),
        (
            lambda: Gripper(fingers, ["left"], columns=[1]),
            r"columns\[0\]: got 1, allowed is a whole number from 0 to 0",
        ),
        (lambda: Gripper(fingers, ["left"], speed=-1), "speed: got -1, allowed is a finite number >= 0"),
        (lambda: Gripper(fingers, ["left"], directions=[1, 2]), r"directions: got shape \(2,\)"),
        (lambda: Gripper(fingers, ["left"], directions=np.inf), r"directions: got \[inf\]"),
        (lambda: Gripper(fingers, ["left"], speed=None, each_step=True), "each_step: got True without a speed"),
        (lambda: Composite({}), "parts: got 0 parts, allowed is a dict of 1 to 8"),
        (lambda: Composite([arm]), "parts: got list, allowed is a dict"),
        (lambda: Composite({"a": arm.function}), r"parts\['a'\]: got Kernel, allowed are controllers of this module"),
        (lambda: Composite({"a": Composite({"b": arm})}), r"parts\['a'\]: got Composite"),
        (lambda: Composite({"a": arm, "b": hand}), r"parts\['b'\]: got a controller of another batch"),
        (lambda: Composite({"a": arm, "b": JointTorque(other, NAMES)}), r"parts\['b'\]: got a controller of another"),
        (
            lambda: Composite({"a": arm, "b": JointTorque(batch, ["m1"])}),
            r"parts\['b'\]: it sets actuator 'm1', as 'a' does",
        ),
    ):
        with pytest.raises((fl.ModelError, fl.UnknownNameError), match=message):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"input_min": 1},
            r"actions\.input_min, input_max\[0\]: got 1 and 1, allowed is an upper limit above the lower",
        ),
        (
            {"output_min": 2},
            r"actions\.output_min, output_max\[0\]: got 2 and 0.05, allowed is an upper limit not below",
        ),
        (
            {"output_max": [1, 2]},
            r"actions\.output_min, output_max: got \[1.0, 2.0\], allowed are finite numbers or arr",
        ),
        ({"output_max": "a"}, r"actions\.output_min, output_max: got str"),
        ({"input_type": "relative"}, r"actions\.input_type: got 'relative', allowed are delta, absolute"),
        ({"impedance_mode": "soft"}, r"actions\.impedance_mode: got 'soft', allowed are fixed, variable_kp, variable"),
        ({"impedance_mode": "variable", "kp_limits": (-1, 2)}, r"actions\.kp_limits: got -1.0, allowed are .* >= 0"),
        ({"impedance_mode": "variable_kp", "kp_limits": (3, 2)}, r"actions\.kp_limits\[0\]: got 3 and 2"),
        ({"impedance_mode": "variable_kp", "kp_limits": 3}, r"actions\.kp_limits: got 3, allowed is a pair"),
        ({"single_precision_rotations": 2}, r"actions\.single_precision_rotations: got 2"),
    ],
)
def test_wrong_actions_are_refused(options, message):
    batch = fl.Batch(fl.load(scene()), 2)
    with pytest.raises(fl.ModelError, match=message):
        JointPosition(batch, NAMES, actions=Actions(**options))


def test_velocities_and_forces_have_one_type_of_actions():
    batch = fl.Batch(fl.load(scene()), 2)
    with pytest.raises(fl.ModelError, match=r"actions\.impedance_mode: got 'variable', allowed are fixed"):
        JointTorque(batch, NAMES, actions=Actions(impedance_mode="variable"))
    with pytest.raises(fl.ModelError, match=r"actions\.input_type: got 'absolute', allowed are delta"):
        JointVelocity(batch, NAMES, 1.0, actions=Actions(input_type="absolute"))
    with pytest.raises(fl.ModelError, match="position_limits"):
        OperationalSpace(batch, "grip", MOTORS, position_limits=(1, -1))
    with pytest.raises(fl.UnknownNameError, match="unknown site 'bse'"):
        OperationalSpace(batch, "grip", MOTORS, base="bse")
    with pytest.raises(fl.ModelError, match="orientation: got 'free', allowed are True, False and 'held'"):
        OperationalSpace(batch, "grip", MOTORS, orientation="free")
