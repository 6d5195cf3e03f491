"""Torques of `featherlane.controllers` against those of robosuite's controllers, in the same states.

`test_other_mujoco.py` runs this file in a separate process.
"""

import numpy as np
import pytest
import robosuite
from robosuite.models.grippers import gripper_factory

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

N, SUBSTEPS = 12, 3  # states
TORQUE = 1e-9  # [N m]
EEF, BASE = "gripper0_right_grip_site", "robot0_right_center"


def made(robot="Panda", task="Lift", **part):
    """Returns an environment whose right arm has a controller with these settings."""
    config = robosuite.load_composite_controller_config(robot=robot)
    right = config["body_parts"]["right"]
    if part.get("type", right["type"]) != right["type"]:
        gripper = right["gripper"]
        right.clear()
        right.update(gripper=gripper, input_max=1, input_min=-1, interpolation=None)
    right.update(part)
    env = robosuite.make(
        *(task, robot),
        controller_configs=config,
        has_renderer=False,
        has_offscreen_renderer=False,
        use_camera_obs=False,
        seed=0,
    )
    env.reset()
    return env


def states(env, rng):
    """Returns (N, nq) positions and (N, nv) velocities of the arm near its initial state."""
    data, robot = env.sim.data._data, env.robots[0]
    qpos, qvel = np.tile(data.qpos, (N, 1)), np.zeros((N, env.sim.model._model.nv))
    qpos[:, robot._ref_joint_pos_indexes] += rng.uniform(-0.4, 0.4, (N, robot._ref_joint_pos_indexes.__len__()))
    qvel[:, robot._ref_joint_vel_indexes] = rng.uniform(-1, 1, (N, len(robot._ref_joint_vel_indexes)))
    return qpos, qvel


def theirs(env, qpos, qvel, actions, modes=("achieved",)):
    """Returns robosuite's torques and the other controls (SUBSTEPS, N, ...) after an action in each state.

    modes: the goal is set once for each mode, by the same action.
    """
    robot, found = env.robots[0], [[] for _ in range(SUBSTEPS)]
    controller = robot.part_controllers["right"]
    for state, speed, action in zip(qpos, qvel, actions, strict=True):
        for gripper in robot.gripper.values():
            gripper.current_action = np.zeros_like(gripper.current_action)
        if hasattr(controller, "derr_buf"):
            controller.derr_buf.clear()
            controller.summed_err, controller.last_err, controller.saturated = np.zeros(7), np.zeros(7), False
        for k in range(SUBSTEPS):
            set_state(env, moved(state, k), speed)
            controller.new_update = True
            if k == 0:
                controller.update()
                robot.composite_controller.reset()
                for mode in modes[:-1]:
                    set_mode(controller, mode)
                    robot.composite_controller.update_state()
                    robot.composite_controller.set_goal(action)
                set_mode(controller, modes[-1])
            robot.control(action, policy_step=k == 0)
            found[k].append(np.concatenate([controller.torques, env.sim.data.ctrl[7:]]))
    return np.array(found)


def set_mode(controller, mode):
    if hasattr(controller, "set_goal_update_mode"):
        controller.set_goal_update_mode(mode)


def moved(qpos, k):
    """Returns the positions of a substep."""
    return qpos + 0.01 * k * (qpos != 0)


def set_state(env, qpos, qvel):
    env.sim.data._data.qpos[:], env.sim.data._data.qvel[:] = qpos, qvel
    env.sim.forward()


def batch_of(env, qpos, qvel):
    batch = fl.Batch(fl.load(env.sim.model._model), N)
    batch.qpos, batch.qvel = qpos, qvel
    return batch


def ours(batch, robot, qpos, qvel):
    """Returns the controls (SUBSTEPS, N, nu) in the same states."""
    found = []
    for k in range(SUBSTEPS):
        batch.qpos, batch.qvel = moved(qpos, k), qvel
        batch.rollout(1, robot)
        found.append(batch.ctrl.copy())
    return np.array(found)


def motors(env):
    return [int(i) for i in env.robots[0]._ref_arm_joint_actuator_indexes]


def compared(env, robot_of, modes=("achieved",), directions=(-1, 1)):
    """Compares substeps in all states; `robot_of(batch, controller)` returns the controllers of the arm."""
    rng = np.random.default_rng(1)
    qpos, qvel = states(env, rng)
    controller = env.robots[0].composite_controller.part_controllers["right"]
    low, high = controller.control_limits
    actions = np.column_stack([rng.uniform(low * 1.1, high * 1.1, (N, len(low))), rng.uniform(-1, 1, N)])
    expected = theirs(env, qpos, qvel, actions, modes)
    batch = batch_of(env, qpos, qvel)
    hand = Gripper(batch, [7, 8], directions=directions)
    robot = Composite({"right": robot_of(batch, controller), "right_gripper": hand})
    for mode in modes:
        robot.set_goal(actions, mode)
    np.testing.assert_allclose(ours(batch, robot, qpos, qvel), expected, rtol=1e-11, atol=TORQUE)


@pytest.mark.parametrize("mode", ["fixed", "variable_kp", "variable"])
@pytest.mark.parametrize("kind", ["OSC_POSE", "OSC_POSITION"])
@pytest.mark.parametrize(
    ("frame", "decoupled", "absolute"),
    [("base", True, False), ("world", False, False), ("world", True, True), ("base", False, True)],
)
def test_operational_space(kind, mode, frame, decoupled, absolute, modes=("achieved",)):
    turns = [0.5] * (3 if kind == "OSC_POSE" else 0)
    env = made(
        type=kind,
        impedance_mode=mode,
        input_ref_frame=frame,
        uncouple_pos_ori=decoupled,
        input_type="absolute" if absolute else "delta",
        output_max=[0.05] * 3 + turns,
        output_min=[-0.04] * 3 + [-x for x in turns],
        kp_limits=[20, 300],
        damping_ratio_limits=[0.5, 3],
        kp=150,
        damping_ratio=1,
    )

    def arm(batch, controller):
        made = OperationalSpace(
            *(batch, EEF, motors(env)),
            orientation=True if kind == "OSC_POSE" else "held",
            decoupled=decoupled,
            base=BASE if frame == "base" else None,
            actions=Actions(
                output_min=controller.output_min,
                output_max=controller.output_max,
                input_type="absolute" if absolute else "delta",
                impedance_mode=mode,
                kp_limits=(20, 300),
                damping_ratio_limits=(0.5, 3),
                single_precision_rotations=True,
            ),
        )
        made.posture = controller.initial_joint
        if not absolute:
            np.testing.assert_array_equal(made.action_limits, controller.control_limits)
        return made

    compared(env, arm, modes)


def test_a_base_on_a_link_of_the_arm():
    """The center of robosuite's IIWA moves with the first joint."""
    env = made("IIWA")

    def arm(batch, controller):
        read = Actions(single_precision_rotations=True)
        made = OperationalSpace(batch, EEF, motors(env), decoupled=True, base=BASE, actions=read)
        made.posture = controller.initial_joint
        return made

    compared(env, arm, directions=(1, -1))


@pytest.mark.parametrize("kind", ["OSC_POSE", "OSC_POSITION"])
def test_goals_are_added_to_desired_goals(kind):
    test_operational_space(kind, "fixed", "base", True, False, ("achieved", "desired"))


@pytest.mark.parametrize("mode", ["fixed", "variable_kp", "variable", "absolute"])
@pytest.mark.parametrize("compensated", [True, False])
def test_joint_position(mode, compensated):
    absolute = mode == "absolute"
    env = made(
        type="JOINT_POSITION",
        output_max=0.1,
        output_min=-0.05,
        kp=70,
        damping_ratio=1.5,
        impedance_mode="fixed" if absolute else mode,
        input_type="absolute" if absolute else "delta",
        kp_limits=[10, 200],
        damping_ratio_limits=[0.2, 3],
        qpos_limits=None if absolute else [[-1] * 7, [0.5] * 7],
        use_torque_compensation=compensated,
    )

    def arm(batch, controller):
        read = Actions(
            output_max=0.1,
            output_min=-0.05,
            impedance_mode="fixed" if absolute else mode,
            input_type="absolute" if absolute else "delta",
            kp_limits=(10, 200),
            damping_ratio_limits=(0.2, 3),
        )
        ends = None if absolute else (-1, 0.5)
        made = JointPosition(batch, motors(env), actions=read, compensated=compensated, position_limits=ends)
        made.stiffness, made.damping = 70, 2 * np.sqrt(70) * 1.5
        return made

    compared(env, arm)


@pytest.mark.parametrize("compensated", [True, False])
@pytest.mark.parametrize("ends", [None, (-0.05, 0.07)])
def test_joint_torque(ends, compensated):
    env = made(type="JOINT_TORQUE", output_max=0.1, output_min=-0.1, torque_limits=ends)
    env.robots[0].part_controllers["right"].use_torque_compensation = compensated
    compared(env, lambda batch, _: JointTorque(batch, motors(env), compensated=compensated, torque_limits=ends))


class Compensation(np.ndarray):
    """Makes `if self.torque_compensation` of robosuite's controller work for arrays."""

    def __bool__(self):
        return self.size > 1 or bool(self.item())


@pytest.mark.parametrize("compensated", [True, False])
@pytest.mark.parametrize("kp", [3.0, 0.1])  # forces are clipped, or not
def test_joint_velocity(kp, compensated, monkeypatch):
    """robosuite 1.5.2 cannot make this controller: it assigns to its property `torque_compensation`."""
    from robosuite.controllers.parts.controller import Controller
    from robosuite.controllers.parts.generic.joint_vel import JointVelocityController

    with pytest.raises(AttributeError, match="torque_compensation"):
        made(type="JOINT_VELOCITY", kp=kp)

    def bias(self):
        return Controller.torque_compensation.fget(self).view(Compensation) if compensated else False

    ignored = property(bias, lambda self, value: None)
    monkeypatch.setattr(JointVelocityController, "torque_compensation", ignored, raising=False)
    env = made(type="JOINT_VELOCITY", output_max=0.5, output_min=-0.5, kp=kp, velocity_limits=[-0.3, 0.4])

    def arm(batch, controller):
        read = Actions(output_max=0.5, output_min=-0.5)
        ends = (-0.3, 0.4)
        return JointVelocity(
            batch, motors(env), controller.kp, actions=read, compensated=compensated, velocity_limits=ends
        )

    compared(env, arm)


# directions, columns and options of `Gripper` for the grippers of robosuite
GRIPPERS = {
    "PandaGripper": ([-1, 1], None, {}),
    "RethinkGripper": ([1, -1], None, {}),
    "Robotiq85Gripper": (1, None, {}),
    "Robotiq140Gripper": ([1, -1], None, {}),
    "XArm7Gripper": (1, None, {}),
    "BDGripper": (1, None, {}),
    "JacoThreeFingerGripper": (-1, None, {"speed": 0.01}),
    "JacoThreeFingerDexterousGripper": (-1, [0, 1, 2], {"speed": 0.01}),
    "RobotiqThreeFingerGripper": ([1, 1, 1, 0], None, {"binary": False}),
    "RobotiqThreeFingerDexterousGripper": (1, [0, 1, 2, 3], {}),
    "InspireRightHand": (1, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5], {"speed": None}),
    "FourierRightHand": (1, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5], {"speed": None}),
}


@pytest.mark.parametrize("name", GRIPPERS)
def test_gripper(name):
    """The actuators have the range -1 to 1, so that controls are robosuite's formatted actions."""
    directions, columns, options = GRIPPERS[name]
    gripper = gripper_factory(name)
    n = len(gripper.actuators)
    fingers = "".join(
        f'<body pos="{i} 0 0"><joint name="j{i}" type="slide"/><geom size=".1"/></body>' for i in range(n)
    )
    motors = "".join(f'<motor name="m{i}" joint="j{i}" ctrlrange="-1 1"/>' for i in range(n))
    scene = f"<mujoco><worldbody>{fingers}</worldbody><actuator>{motors}</actuator></mujoco>"
    batch = fl.Batch(fl.load(scene), 1)
    hand = Gripper(batch, [f"m{i}" for i in range(n)], directions=directions, columns=columns, **options)
    if name == "RobotiqThreeFingerGripper":
        hand.offset[:, 3] = -1.0
    assert hand.action_width == gripper.dof
    rng = np.random.default_rng(0)
    for _ in range(12):
        action = np.clip(rng.uniform(-1, 1, gripper.dof) + 0.3, -1, 1)
        hand.set_goal(action)
        batch.rollout(2, hand)
        expected = np.broadcast_to(np.clip(gripper.format_action(action), -1, 1), n)
        np.testing.assert_allclose(batch.ctrl[0], expected, rtol=0, atol=1e-12)


def test_two_arms():
    """One composite controls both arms of Baxter, whose motors are in another order than its joints' actions."""
    env = robosuite.make(
        *("TwoArmLift", "Baxter"),
        has_renderer=False,
        has_offscreen_renderer=False,
        use_camera_obs=False,
        seed=0,
    )
    env.reset()
    robot, model = env.robots[0], env.sim.model._model
    rng = np.random.default_rng(0)
    batch = fl.Batch(fl.load(model), N)
    batch.qpos = np.tile(env.sim.data.qpos, (N, 1))
    for index in robot._ref_joint_pos_indexes:
        batch.qpos[:, index] += rng.uniform(-0.2, 0.2, N)
    for index in robot._ref_joint_vel_indexes:
        batch.qvel[:, index] = rng.uniform(-0.5, 0.5, N)
    qpos, qvel = batch.qpos.copy(), batch.qvel.copy()
    parts = {}
    for side in robot.arms:
        controller = robot.part_controllers[side]
        parts[side] = OperationalSpace(
            *(batch, controller.ref_name, [int(i) for i in robot._ref_actuators_indexes_dict[side]]),
            decoupled=True,
            base=f"{controller.naming_prefix}{controller.part_name}_center",
            actions=Actions(single_precision_rotations=True),
        )
        parts[side].posture = controller.initial_joint
        hand = robot._ref_actuators_indexes_dict[robot.get_gripper_name(side)]
        parts[f"{side}_gripper"] = Gripper(batch, [int(i) for i in hand], directions=[1, -1])
    parts = {name: parts[name] for name in robot.part_controllers}
    both = Composite(parts)
    spans = {name: (c.start, c.stop) for name, c in both.columns.items()}
    assert spans == dict(robot._action_split_indexes)
    actions = rng.uniform(-1, 1, (N, both.action_width))
    both.set_goal(actions)
    batch.rollout(1, both)
    for k in range(N):
        for gripper in robot.gripper.values():
            gripper.current_action = np.zeros_like(gripper.current_action)
        set_state(env, qpos[k], qvel[k])
        for controller in robot.part_controllers.values():
            controller.new_update = True
        robot.composite_controller.reset()
        robot.control(actions[k], policy_step=True)
        found = np.clip(batch.ctrl[k], *model.actuator_ctrlrange.T)
        np.testing.assert_allclose(found, env.sim.data.ctrl, rtol=1e-11, atol=TORQUE)
