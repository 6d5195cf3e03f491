"""The task Wipe of robosuite: a tool wipes markers of dirt off a table.

A marker is wiped when it is below the tool while something is in contact.  The rewards and the ends of episodes depend
on the force at the gripper, which its sensor measures in the last time step of an action.
Source: robosuite 1.5.2, environments/manipulation/wipe.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from featherlane.environments.robosuite import observations as seen_of
from featherlane.environments.robosuite.contacts import Contacts
from featherlane.environments.robosuite.observations import Observable, Seen
from featherlane.environments.robosuite.rewards import Goal, distance, near
from featherlane.errors import ModelError
from featherlane.extension import private

OVER_TOOL = 0.02  # greatest height of a marker over the plane of the tool [m]
NEAR_LIMIT = 0.1  # distance from the limit of a joint that ends an episode [rad]
PRESSING, CROWDED = 1, 50  # more contacts than these increase the reward of a force
PER_NEWTON = 0.01  # reward of a force [1/N]
HIDDEN = 0.02  # depth of the geoms of wiped markers in the table, so that no camera sees them [m]
WINDOW = 10  # actions over which robosuite estimates the acceleration of the gripper


class Wipe(Goal):
    """Dirt is wiped off a table.

    Attributes:
        wiped: (n, k) whether each marker is wiped.
        shown: (n, k) the same before the last action, as robosuite's observables have it.
        pushing: (n,) whether the force at the gripper differs from `bias` by more than the threshold.
        bias: (n, 3) force after the first action of an episode [N].
        force: (n, 3) force at the beginning of the last action [N].
        ends: (n, 2, 6) velocities of the gripper in the first and the last of ten actions [rad/s, m/s].
        acceleration: (n, 6) their smoothed difference over ten actions [rad/s^2, m/s^2], as robosuite estimates it.
        actions: (n,) actions of the episode.
        unsafe: (n,) whether the arm touches something, or is close to the limit of a joint.
        cleaned: (n,) markers that the last action wiped.
    """

    fields = ("geom_xpos", "sensordata")

    def read(self, env: Any, contacts: Contacts) -> None:
        robot, model, config = env.robots[0], env.sim.model, env.task_config
        if len(env.robots) > 1 or len(robot.arms) > 1:
            raise ModelError("Wipe: got two arms, allowed is a robot with one arm")
        for name in ("print_results", "get_info"):
            if config[name]:
                raise ModelError(f"Wipe: got {name}=True in task_config, allowed is False")
        (self.arm,) = robot.arms
        self.config, self.frequency = dict(config), float(env.control_freq)
        self.scale, self.complete = 1.0 / env.reward_normalization_factor, float(env.task_complete_reward)
        markers = env.model.mujoco_arena.markers
        self.markers = np.array([model.body_name2id(each.root_body) for each in markers])
        self.dirt = np.array([model.geom_name2id(each.visual_geoms[0]) for each in markers])
        gripper = robot.gripper[self.arm]
        self.corners = [model.geom_name2id(name) for name in gripper.important_geoms["corners"]]
        sensor = model.sensor_name2id(gripper.important_sensors["force_ee"])
        self.sensor = slice(int(model.sensor_adr[sensor]), int(model.sensor_adr[sensor]) + 3)
        self.reference = str(robot.part_controllers[self.arm].ref_name)
        self.collision = contacts.between(robot.robot_model.contact_geoms, None)
        low, high = np.array(model.jnt_range[private("robosuite", robot, "_ref_joint_indexes")]).T
        limited, places = low != high, np.array(private("robosuite", robot, "_ref_joint_pos_indexes"))
        self.joints, self.limits = places[limited], (low[limited] + NEAR_LIMIT, high[limited] - NEAR_LIMIT)
        self.contact_name = f"{robot.robot_model.naming_prefix}contact"

    def observables(self, env: Any) -> dict[str, Observable]:
        found = {self.contact_name: self.contact, "proportion_wiped": self.proportion, "wipe_radius": self.radius}
        found["wipe_centroid"] = self.centroid
        found |= seen_of.to_gripper(env, "wipe_centroid", "{arm}gripper_to_wipe_centroid")
        for k, marker in enumerate(self.markers):
            found[f"marker{k}_pos"] = partial(seen_of.field, "xpos", int(marker))
            found[f"marker{k}_wiped"] = partial(self.is_wiped, k)
            found |= seen_of.to_gripper(env, f"marker{k}_pos", f"{{arm}}gripper_to_marker{k}")
        return found

    def contact(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns whether the gripper pushes against something, (n, 1)."""
        return self.pushing[:, None]

    def proportion(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns which part of the markers is wiped, (n, 1)."""
        return self.shown.mean(axis=1, keepdims=True)

    def is_wiped(self, k: int, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns whether a marker is wiped, (n, 1)."""
        return self.shown[:, [k]]

    def centroid(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns the mean position of the markers that are not wiped, (n, 3) [m]; zeros if all are."""
        return mean(worlds.xpos[:, self.markers], ~self.shown)

    def radius(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns the greatest distance of these markers from their mean position, (n, 1) [m]."""
        pos = worlds.xpos[:, self.markers]
        apart = np.linalg.norm(pos - mean(pos, ~self.shown)[:, None], axis=2)
        return np.where(self.shown, 0.0, apart).max(axis=1, keepdims=True)

    def prepare(self, worlds: Any) -> None:
        super().prepare(worlds)
        n, k = worlds.nworld, len(self.markers)
        self.wiped, self.shown, self.pushing = np.zeros((n, k), bool), np.zeros((n, k), bool), np.zeros(n, bool)
        self.bias, self.force, self.actions = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n, int)
        self.ends, self.acceleration = np.zeros((n, 2, 6)), np.zeros((n, 6))
        self.unsafe, self.cleaned = np.zeros(n, bool), np.zeros(n, int)
        self.places = worlds.expand("geom_pos")

    def start(self, worlds: Any, ids: np.ndarray) -> None:
        for values in (self.wiped, self.shown, self.bias, self.force, self.ends, self.acceleration, self.actions):
            values[ids] = 0
        self.places[np.ix_(ids, self.dirt)] = 0.0

    def started(self, worlds: Any, ids: np.ndarray) -> None:
        self.push(worlds, ids)

    def push(self, worlds: Any, ids: np.ndarray) -> None:
        """Stores which grippers push against something."""
        change = np.linalg.norm(worlds.sensordata[ids, self.sensor] - self.bias[ids], axis=1)
        self.pushing[ids] = change > self.config["contact_threshold"]

    def before(self, worlds: Any, ids: np.ndarray) -> None:
        self.force[ids] = worlds.sensordata[ids, self.sensor]
        if self.config["ee_accel_penalty"]:
            velocity, place = worlds.object_velocity(("site", self.reference), ids=ids), self.actions[ids] % WINDOW
            for k, slot in enumerate((0, WINDOW - 1)):
                self.ends[ids[place == slot], k] = velocity[place == slot]
            change = self.frequency * (self.ends[ids, 1] - self.ends[ids, 0])  # a sum of differences
            self.acceleration[ids] = (self.acceleration[ids] + change) / WINDOW
        self.actions[ids] += 1

    def after(self, worlds: Any, ids: np.ndarray) -> None:
        self.push(worlds, ids)
        free = ids[~self.bias[ids].any(axis=1)]
        self.bias[free] = worlds.sensordata[free, self.sensor]
        self.shown[ids] = self.wiped[ids]
        low, high = self.limits
        qpos = worlds.qpos[:, self.joints]
        self.unsafe = self.touch[:, self.collision] | ~((low < qpos) & (qpos < high)).all(axis=1)
        allowed = (worlds.ncon > 0) & ~self.unsafe
        new = self.under_tool(worlds) & ~self.wiped & allowed[:, None]
        self.cleaned = new.sum(axis=1)  # in this action; of the worlds `ids`
        self.wiped[ids] |= new[ids]
        self.places[np.ix_(ids, self.dirt)] = np.where(self.wiped[ids, :, None], [0.0, 0.0, -HIDDEN], 0.0)

    def under_tool(self, worlds: Any) -> np.ndarray:
        """Returns which markers are below the tool, (n, k): close to its plane and inside its rectangle."""
        first, origin, _, last = np.moveaxis(worlds.geom_xpos[:, self.corners], 1, 0)
        x, y = first - origin, last - origin
        x, y = x / np.linalg.norm(x, axis=1, keepdims=True), y / np.linalg.norm(y, axis=1, keepdims=True)
        normal = np.cross(x, y)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        offset = worlds.xpos[:, self.markers] - origin[:, None]
        height = np.einsum("nki,ni->nk", offset, normal)
        offset -= height[:, :, None] * normal[:, None]
        at = np.stack([np.einsum("nki,ni->nk", offset, axis) for axis in (x, y)], axis=2)
        corners = worlds.geom_xpos[:, self.corners] - origin[:, None]
        plane = np.stack([np.einsum("nki,ni->nk", corners, axis) for axis in (x, y)], axis=2)[:, [0, 1, 3, 2]]
        inside = (height > 0.0) & (height < OVER_TOOL)
        for k in range(4):  # the corners are in clockwise order
            a, side = plane[:, k, None], plane[:, (k + 1) % 4, None] - plane[:, k, None]
            to_marker = at - a
            inside &= side[..., 0] * to_marker[..., 1] - to_marker[..., 0] * side[..., 1] < 0.0
        return inside

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rule, done = self.config, np.asarray(self.wiped.all(axis=1))
        reward = self.complete * done
        if self.shaping:
            target = mean(worlds.xpos[:, self.markers], ~self.wiped)
            reach = near(distance(worlds, self.grippers[0], target), rule["distance_th_multiplier"])
            force, contacts = np.linalg.norm(self.force, axis=1), worlds.ncon
            contact, press = rule["wipe_contact_reward"], force > rule["pressure_threshold"]
            pressed = (contact + PER_NEWTON * force + 10.0 * contact * (contacts > CROWDED)) * (contacts > PRESSING)
            excess = force > rule["pressure_threshold_max"]
            reward += rule["unit_wiped_reward"] * self.cleaned + ~done * rule["distance_multiplier"] * reach
            reward += contact * ((contacts > 0) & self.pushing)
            reward += np.where(excess, -rule["excess_force_penalty_mul"] * force, pressed * press)
            reward -= rule["ee_accel_penalty"] * np.abs(self.acceleration).mean(axis=1)
        reward = np.where(self.unsafe, rule["arm_limit_collision_penalty"] * self.shaping, reward)
        return reward, done

    def ended(self, worlds: Any) -> np.ndarray | None:
        return self.unsafe | self.wiped.all(axis=1) if self.config["early_terminations"] else None


def mean(pos: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Returns the mean of the chosen positions (n, k, 3), (n, 3); zeros if none is chosen."""
    return np.where(chosen[:, :, None], pos, 0.0).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)[:, None]
