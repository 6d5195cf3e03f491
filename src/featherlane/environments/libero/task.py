"""`LiberoTask`: a task of LIBERO in all worlds of a batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from featherlane import Batch, Camera, controllers, load
from featherlane.environments.libero.predicates import Scene, goal_of
from featherlane.environments.libero.suite import live_environment, recorded_states, set_states, suite_tasks
from featherlane.environments.random_streams import RandomStreams
from featherlane.environments.robosuite import observations as seen_of
from featherlane.environments.robosuite.images import image_forms
from featherlane.environments.robosuite.observations import Observable, Seen
from featherlane.environments.robosuite.task import ControlledTask
from featherlane.extension import private, required, whole_argument

CAMERAS = "agentview", "robot0_eye_in_hand"
VISUAL = (0, 1, 0, 0, 0, 0)  # groups of geoms in LIBERO's images
PLACEMENTS = 50  # poses of fixtures to sample, as many as a task has recorded states
EEF = "robot0_eef"


@dataclass(kw_only=True)
class LiberoTask(ControlledTask):
    """A task of a suite: LIBERO's model, controller, observations, goal and recorded initial states.

    An action has a shift and a rotation of the gripper (OSC_POSE of robosuite 1.4), and closes or opens the fingers.
    As in LIBERO, the first target of an episode is relative to the pose after LIBERO's reset, not to the recorded one.
    A reset chooses one of the recorded states by the world's random number generator, or the next of `order`, and poses
    of the fixtures, which LIBERO samples.  The reward is 1 in the goal, else 0; an episode ends in the goal.

    Attributes:
        task_id: number of the task in its suite, from 0 to 9.
        horizon: actions after which an episode is truncated.
        image_size: width and height of the observed images [pixels], "agentview_image" and
            "robot0_eye_in_hand_image"; 0: none.
        seed: seed of LIBERO's poses of fixtures.
        instruction: the task in words.
        success: (n,) bool: the goal is reached.
        order: numbers of the recorded states of the next resets; None, or after its end: they are sampled.
        state_of: (n,) number of the recorded state from which each world started.
    """

    task_id: int = 0
    horizon: int = 600
    image_size: int = 0
    seed: int = 0

    name: ClassVar[str]
    reward_threshold: ClassVar[float | None] = None
    fields = ("xpos", "xquat", "site_xpos", "site_xmat", "qfrc_bias")
    order: Iterator[int] | None = None

    def __post_init__(self) -> None:
        files = suite_tasks(self.name)
        chosen = files[whole_argument("task_id", self.task_id, 0, len(files) - 1)]
        size = whole_argument("image_size", self.image_size, 0)
        self.max_episode_steps = whole_argument("horizon", self.horizon, 1)
        self.instruction, self.states = chosen.language, recorded_states(chosen.states)
        wrapper = live_environment(chosen, whole_argument("seed", self.seed, 0, 2**32 - 1))
        env, robot = wrapper.env, wrapper.env.robots[0]
        self.model, self.goal = load(private("robosuite", env.sim.model, "_model")), goal_of(env)
        self.goal.contacts.prepare(self.model)
        self.frame_skip = round(env.control_timestep / env.model_timestep)
        self.places = fixture_poses(env, self.seed)
        self.observed, self.make_parts = observables(env, self.model), partial(parts_of, robot_numbers(robot))
        self.start_map = task_space_map(robot.controller)
        if size:
            images = {"width": size, "height": size, "output": ("rgb",), "geomgroup": VISUAL}
            self.cameras = tuple(Camera(name, **images) for name in CAMERAS)
            self._image_forms = image_forms(self.model)
        wrapper.close()

    def prepare(self, worlds: Batch) -> None:
        self.made = self.make_parts(worlds)
        self.control = self.parts = controllers.Composite(self.made)
        self.start_pos, self.start_mat = (
            self.made["arm"].rows[name][0].copy() for name in ("target_pos", "target_mat")
        )
        self.fresh = np.zeros(worlds.nworld, bool)  # no action since the reset
        self.poses = {name: worlds.expand(name) for name in ("body_pos", "body_quat")} if len(self.places) else {}
        self.success, self.state_of = np.zeros(worlds.nworld, bool), np.zeros(worlds.nworld, int)
        self.touching = np.zeros((worlds.nworld, len(self.goal.contacts.names)), bool)
        self.seen: Seen = self.observe(worlds)

    def act(self, worlds: Batch, actions: np.ndarray, ids: np.ndarray) -> None:
        super().act(worlds, actions, ids)
        arm, rotates = self.made["arm"], np.zeros(worlds.nworld, bool)
        rotates[ids] = actions[:, 3:6].any(axis=1)
        arm.update[~rotates, 1] = 0.0  # without rotation the last target is kept, as in robosuite 1.4
        first = ids[self.fresh[ids]]
        turned = arm.update[first, 1:] > 0.0
        turn = (arm.turn[first].reshape(-1, 3, 3) @ self.start_mat.reshape(3, 3)).reshape(-1, 9)
        arm.target_pos[first] = self.start_pos + arm.change[first]
        arm.target_mat[first] = np.where(turned, turn, self.start_mat)
        arm.update[first] = 0.0

    def advance(self, worlds: Batch, nstep: int, ids: np.ndarray | None) -> None:
        """Runs an action.  LIBERO observes, and detects contacts, one time step before its end."""
        rows = np.arange(worlds.nworld) if ids is None else ids
        first = rows[self.fresh[rows]]
        if len(first):
            self.first_step(worlds, first)
            super().advance(worlds, nstep - 2, first)
            self.fresh[first] = False
            others = np.setdiff1d(rows, first)
            if len(others):
                super().advance(worlds, nstep - 1, others)
        else:
            super().advance(worlds, nstep - 1, ids)
        self.keep(worlds, rows)
        self.touching[rows] = self.goal.contacts.of(worlds, ids)
        super().advance(worlds, 1, ids)

    def first_step(self, worlds: Batch, ids: np.ndarray) -> None:
        """Takes the first time step of an episode, whose torques LIBERO computes from the pose after its reset."""
        arm, gripper = self.made["arm"], self.made["gripper"]
        turn = 0.5 * np.cross(self.start_mat.reshape(3, 3), arm.target_mat[ids].reshape(-1, 3, 3), axis=-2).sum(-1)
        force = arm.stiffness[ids] * np.concatenate((arm.target_pos[ids] - self.start_pos, turn), axis=1)
        dofs = worlds.model.jnt_dofadr[worlds.model.actuator_trnid[list(arm.actuators), 0]]
        torque = force @ self.start_map.T + worlds.qfrc_bias[ids][:, dofs]
        gripper.closing[ids] = np.clip(gripper.closing[ids] + gripper.rate[ids], -1.0, 1.0)
        worlds.ctrl[np.ix_(ids, arm.actuators)] = torque
        worlds.ctrl[np.ix_(ids, gripper.actuators)] = gripper.offset[ids] + gripper.gain[ids] * gripper.closing[ids]
        worlds.step(1, ids=ids)

    def scene(self, worlds: Batch) -> Scene:
        """Returns what the goal depends on."""
        return Scene(worlds.qpos, worlds.xpos, worlds.site_xpos, worlds.site_xmat, self.touching)

    def terminated(self, worlds: Batch) -> np.ndarray:
        self.success = self.goal.reached(self.scene(worlds))
        return self.success

    def reward(self, worlds: Batch, actions: np.ndarray, before: Any) -> np.ndarray:
        return self.success.astype(float)

    def info(self, worlds: Batch, terms: Mapping[str, np.ndarray], before: Any) -> dict[str, np.ndarray]:
        return {"success": self.success}

    def start(self, worlds: Batch, ids: np.ndarray, random: RandomStreams) -> None:
        for world, sampled in zip(ids, random.integers(ids, 0, len(self.states), 1)[:, 0], strict=True):
            self.state_of[world] = next(self.order, sampled) if self.order is not None else sampled
        set_states(worlds, self.states[self.state_of[ids]], ids)
        if len(self.places):
            place = random.integers(ids, 0, PLACEMENTS, 1)[:, 0]
            for body, poses in self.places.items():
                self.poses["body_pos"][ids, body] = poses[place, :3]
                self.poses["body_quat"][ids, body] = poses[place, 3:]
        self.made["gripper"].reset(ids)
        self.success[ids], self.fresh[ids] = False, True

    def started(self, worlds: Batch, ids: np.ndarray) -> None:
        self.keep(worlds, ids)

    def keep(self, worlds: Batch, ids: np.ndarray) -> None:
        """Stores the observation of some worlds."""
        for name, values in self.observe(worlds).items():
            self.seen[name][ids] = values[ids]

    def observe(self, worlds: Batch) -> Seen:
        """Returns the observables of all worlds, (n, k) by name."""
        seen: Seen = {}
        for name, function in self.observed.items():
            seen[name] = np.array(function(worlds, seen))
        return seen

    def observation(self, worlds: Batch) -> dict[str, dict[str, np.ndarray]]:
        return {name: {name: values} for name, values in self.seen.items()}


def robot_numbers(robot: Any) -> dict[str, Any]:
    """Returns names and numbers of a robot's controller, of robosuite 1.4."""
    arm, gripper = robot.controller, robot.gripper
    return {
        "site": arm.eef_name, "actuators": list(robot.robot_model.actuators), "fingers": list(gripper.actuators),
        "outputs": (np.array(arm.output_min), np.array(arm.output_max)), "speed": float(gripper.speed),
        "target_pos": np.array(arm.ee_pos), "target_mat": np.ravel(arm.goal_ori).copy(),
        "posture": np.array(arm.initial_joint), "stiffness": np.array(arm.kp), "damping": np.array(arm.kd),
    }  # fmt: skip


def task_space_map(arm: Any) -> np.ndarray:
    """Returns the torques (n, 6) of unit accelerations of the gripper along and about each axis: J^T Lambda.

    Source: Khatib (1987), as robosuite's OSC_POSE without coupling of position and orientation.
    """
    inverse = np.linalg.inv(arm.mass_matrix)
    parts = [J.T @ np.linalg.pinv(J @ inverse @ J.T) for J in (arm.J_pos, arm.J_ori)]
    return np.concatenate(parts, axis=1)


def parts_of(numbers: Mapping[str, Any], worlds: Batch) -> dict[str, Any]:
    """Returns the controllers of arm and gripper.

    Source: robosuite 1.4.0, OSC_POSE; PandaGripper, whose closing changes by `speed` in each time step.
    """
    low, high = numbers["outputs"]
    actions = controllers.Actions(output_min=low, output_max=high, single_precision_rotations=True)
    arm = controllers.OperationalSpace(worlds, numbers["site"], numbers["actuators"], decoupled=True, actions=actions)
    for name in ("target_pos", "target_mat", "posture", "stiffness", "damping"):
        setattr(arm, name, numbers[name])
    gripper = controllers.Gripper(
        worlds, numbers["fingers"], directions=[-1.0, 1.0], speed=numbers["speed"], each_step=True
    )
    return {"arm": arm, "gripper": gripper}


def fixture_poses(env: Any, seed: int) -> dict[int, np.ndarray]:
    """Returns poses of the fixtures that LIBERO samples at a reset: body -> (PLACEMENTS, 7) position and quaternion."""
    if not env.fixtures_dict:
        return {}
    retried = required("libero.libero.envs.env_wrapper", "a task of LIBERO").RandomizationError
    kept, rows = np.random.get_state(), {}
    np.random.seed(seed)
    try:
        while len(next(iter(rows.values()), ())) < PLACEMENTS:
            with contextlib.suppress(retried):
                for position, quat, item in env.placement_initializer.sample().values():
                    if item.name in env.fixtures_dict:
                        rows.setdefault(env.obj_body_id[item.name], []).append([*position, *quat])
            if not rows:
                return {}
    finally:
        np.random.set_state(kept)
    return {int(body): np.array(poses, float) for body, poses in rows.items()}


# ---- observables -----------------------------------------------------------------------------------------------------
def observables(env: Any, model: Any) -> dict[str, Observable]:
    """Returns the observables of the robot and of all objects, in LIBERO's order.

    Source: robosuite 1.4.0, class SingleArm; LIBERO, class BDDLBaseDomain.
    """
    robot = env.robots[0]
    own = robot.robot_model
    arm = seen_of.Arm("", robot.eef_site_id, own.eef_name, robot.gripper.joints)
    known = seen_of.proprioception(own.naming_prefix, own.joints, [arm], model)
    found = {name: known[name] for name in known if not name.endswith(("joint_acc", "eef_quat_site"))}
    for item in env.objects:
        found |= seen_of.body(item.name, env.obj_body_id[item.name])
        for name, function in (("pos", seen_of.position_in), ("quat", seen_of.orientation_in)):
            found[f"{item.name}_to_{EEF}_{name}"] = partial(in_gripper, function, f"{item.name}_{name}")
    return found


def in_gripper(function: Callable[..., np.ndarray], name: str, worlds: Any, seen: Seen) -> np.ndarray:
    """Returns the position or orientation of an object in the frame of the gripper."""
    return function(EEF, seen[name], seen)
