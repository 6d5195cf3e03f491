"""Torques of `featherlane.controllers` against those of robosuite's controllers, in the same states.

`test_other_mujoco.py` runs this file in a separate process.
"""

import numpy as np
import pytest
import robosuite

import featherlane as fl
from featherlane.controllers import Actions, Composite, Gripper, OperationalSpace

N = 12  # states
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


def theirs(env, qpos, qvel, actions, part="right", modes=("achieved",)):
    """Returns robosuite's torques of the arm and controls (2 steps, N, ...): after an action, and without a new one."""
    robot, found = env.robots[0], ([], [])
    for state, speed, action in zip(qpos, qvel, actions, strict=True):
        controller = robot.composite_controller.part_controllers[part]
        for gripper in robot.gripper.values():
            gripper.current_action = np.zeros_like(gripper.current_action)
        for k in range(2):
            set_state(env, state + 0.01 * k * (state != 0), speed)
            controller.new_update = True
            controller.update()
            if k == 0:
                robot.composite_controller.reset()
                for mode in modes:
                    if hasattr(controller, "set_goal_update_mode"):
                        controller.set_goal_update_mode(mode)
                    robot.control(action, policy_step=True)
                    controller.new_update = True
            robot.control(action, policy_step=False)
            found[k].append(np.concatenate([controller.torques, env.sim.data.ctrl[7:]]))
    return np.array(found)


def set_state(env, qpos, qvel):
    env.sim.data._data.qpos[:], env.sim.data._data.qvel[:] = qpos, qvel
    env.sim.forward()


def batch_of(env, qpos, qvel):
    batch = fl.Batch(fl.load(env.sim.model._model), N)
    batch.qpos, batch.qvel = qpos, qvel
    return batch


def ours(batch, robot, qpos, qvel):
    """Returns the controls (2, N, nu) in the same states."""
    found = []
    for k in range(2):
        batch.qpos, batch.qvel = qpos + 0.01 * k * (qpos != 0), qvel
        batch.rollout(1, robot)
        found.append(batch.ctrl.copy())
    return np.array(found)


def motors(env):
    return [int(i) for i in env.robots[0]._ref_arm_joint_actuator_indexes]


@pytest.mark.parametrize("mode", ["fixed", "variable_kp", "variable"])
@pytest.mark.parametrize("kind", ["OSC_POSE", "OSC_POSITION"])
@pytest.mark.parametrize(
    ("frame", "decoupled", "absolute"),
    [("base", True, False), ("world", False, False), ("world", True, True), ("base", False, True)],
)
def test_operational_space(kind, mode, frame, decoupled, absolute):
    env = made(
        type=kind,
        impedance_mode=mode,
        input_ref_frame=frame,
        uncouple_pos_ori=decoupled,
        input_type="absolute" if absolute else "delta",
        output_max=[0.05] * 3 + [0.5] * (3 if kind == "OSC_POSE" else 0),
        output_min=[-0.04] * 3 + [-0.5] * (3 if kind == "OSC_POSE" else 0),
        kp_limits=[20, 300],
        damping_ratio_limits=[0.5, 3],
        kp=150,
        damping_ratio=1,
    )
    rng = np.random.default_rng(0)
    qpos, qvel = states(env, rng)
    controller = env.robots[0].composite_controller.part_controllers["right"]
    low, high = controller.control_limits
    actions = np.column_stack([rng.uniform(low * 1.1, high * 1.1, (N, len(low))), rng.uniform(-1, 1, N)])
    expected = theirs(env, qpos, qvel, actions)
    batch = batch_of(env, qpos, qvel)
    arm = OperationalSpace(
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
    arm.posture = controller.initial_joint
    hand = Gripper(batch, [7, 8], directions=[-1, 1])
    robot = Composite({"right": arm, "right_gripper": hand})
    np.testing.assert_array_equal(robot.action_limits[0][:-7], np.append(low, -1)[:-7])
    robot.set_goal(actions)
    found = ours(batch, robot, qpos, qvel)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=TORQUE)
