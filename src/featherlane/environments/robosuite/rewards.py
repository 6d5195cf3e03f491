"""What each task of robosuite observes of its objects, what it rewards, and when it succeeds, for all worlds at once.

Each task has a `Goal`, by the table of the package.  Its constructor reads ids and constants from the live
environment; a call returns rewards before scaling (n,) and successes (n,) bool.
Source: robosuite 1.5.2, environments/manipulation/*.py, `reward` and `_check_success`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from featherlane.environments.robosuite import observations as seen_of
from featherlane.environments.robosuite.contacts import Contacts
from featherlane.environments.robosuite.observations import Observable, Seen
from featherlane.errors import ModelError

LIFTED, LIFTED_POT = 0.04, 0.1  # height over the table [m]
OPENED = 0.3  # angle of a door [rad]
REACH, GRASP, LIFT, HOVER = 0.1, 0.35, 0.5, 0.7  # largest rewards of the stages of NutAssembly and PickPlace
CLOSE = 0.6  # largest `near` of an object that the gripper has left
ON_PEG = 0.03, 0.05  # [m] horizontal distance and height


def grasped(touch: np.ndarray, pads: list[list[int]]) -> np.ndarray:
    """Returns whether all fingers of one of the grippers touch the object, (n,)."""
    return np.any([touch[:, columns].all(axis=1) for columns in pads], axis=0)


def distance(worlds: Any, sites: Sequence[int], target: np.ndarray) -> np.ndarray:
    """Returns the distance of a target (n, 3) from the nearest of the sites, (n,) [m]."""
    return np.linalg.norm(worlds.site_xpos[:, list(sites)] - target[:, None], axis=2).min(axis=1)


def near(distances: np.ndarray, rate: float = 10.0) -> np.ndarray:
    """Returns 1 for a distance of 0, and less for a larger one."""
    return 1.0 - np.tanh(rate * distances)


class Goal(ABC):
    """What a task observes, rewards and requires.

    Args:
        env: the live environment.
        contacts: to which the goal adds groups of geoms.

    Attributes:
        scale: the largest reward, by which `reward_scale` is divided.
        fields: derived fields that it reads, besides those of robots and bodies.
        has_shaping: whether robosuite has a shaped reward.
        shaping: whether the reward is shaped.
        touch: (n, k) whether each pair of groups of geoms is in contact; set by the task.
        used: (n,) number of the object that is used, in tasks with one of several objects; set by the task.
    """

    scale = 1.0
    has_shaping = True
    fields: tuple[str, ...] = ()
    touch: np.ndarray
    used: np.ndarray

    def __init__(self, env: Any, contacts: Contacts):
        self.shaping = bool(env.reward_shaping)
        if self.shaping and not self.has_shaping:
            name, why = type(self).__name__, "because robosuite has no such reward"
            raise ModelError(f"{name}: got reward_shaping=True, allowed is False, {why}")
        self.grippers = [sorted(robot.eef_site_id.values()) for robot in env.robots]
        if env.env_configuration == "single-robot":
            self.grippers = [[env.robots[0].eef_site_id[arm]] for arm in ("right", "left")]
        self.read(env, contacts)
        self.pairs = len(contacts.names)

    @abstractmethod
    def read(self, env: Any, contacts: Contacts) -> None:
        """Reads ids and constants."""

    def fingers(self, env: Any, contacts: Contacts, geoms: Sequence[str]) -> list[list[int]]:
        """Returns the columns of the fingers of the first robot with geoms; none if only shaped rewards need them.

        Without contacts, an action is one rollout and no query.
        """
        return contacts.pads(env.robots[0].gripper, geoms) if self.shaping else []

    @abstractmethod
    def observables(self, env: Any) -> dict[str, Observable]:
        """Returns the observables of the objects by name."""

    @abstractmethod
    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rewards before scaling, (n,), and the successes, (n,) bool."""

    # of tasks that remember something
    def prepare(self, worlds: Any) -> None:
        """Allocates what the goal remembers, and what the task sets."""
        self.touch = np.zeros((worlds.nworld, self.pairs), bool)
        self.used = np.zeros(worlds.nworld, np.int64)

    def start(self, worlds: Any, ids: np.ndarray) -> None:  # noqa: B027  most tasks need none
        """Clears what it remembers of worlds that are reset, before their derived fields are computed."""

    def started(self, worlds: Any, ids: np.ndarray) -> None:  # noqa: B027  most tasks need none
        """Runs after the derived fields of reset worlds were computed."""

    def before(self, worlds: Any, ids: np.ndarray) -> None:  # noqa: B027  most tasks need none
        """Runs in the worlds of an action before its first time step."""

    def after(self, worlds: Any, ids: np.ndarray) -> None:  # noqa: B027  most tasks need none
        """Runs in the worlds of an action after its last time step, before the rewards."""

    def ended(self, worlds: Any) -> np.ndarray | None:
        """Returns which episodes end before the horizon, (n,) bool; None: none."""
        return None


class Lift(Goal):
    """A cube is lifted."""

    scale = 2.25

    def read(self, env: Any, contacts: Contacts) -> None:
        self.cube, self.table = env.cube_body_id, float(env.model.mujoco_arena.table_offset[2])
        self.pads = self.fingers(env, contacts, env.cube.contact_geoms)

    def observables(self, env: Any) -> dict[str, Observable]:
        return seen_of.body("cube", self.cube) | seen_of.to_gripper(env, "cube_pos", "{arm}gripper_to_cube_pos")

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cube = worlds.xpos[:, self.cube]
        lifted = cube[:, 2] > self.table + LIFTED
        shaped = near(distance(worlds, self.grippers[0], cube)) + 0.25 * grasped(touch, self.pads)
        return np.where(lifted, self.scale, shaped if self.shaping else 0.0), lifted


class Door(Goal):
    """A door is opened."""

    def read(self, env: Any, contacts: Contacts) -> None:
        self.door, self.handle = env.object_body_ids["door"], env.door_handle_site_id
        self.hinge, self.latch = env.hinge_qpos_addr, env.handle_qpos_addr if env.use_latch else None

    def observables(self, env: Any) -> dict[str, Observable]:
        found: dict[str, Observable] = {
            "door_pos": partial(seen_of.field, "xpos", self.door),
            "handle_pos": partial(seen_of.field, "site_xpos", self.handle),
            "hinge_qpos": partial(seen_of.field, "qpos", [self.hinge]),
            "handle_qpos": partial(seen_of.field, "qpos", [self.latch]),
        }
        for name in ("door", "handle"):
            found |= seen_of.to_gripper(env, f"{name}_pos", f"{name}_to_{{arm}}eef_pos")
        return found

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        opened = worlds.qpos[:, self.hinge] > OPENED
        shaped = 0.25 * near(distance(worlds, self.grippers[0], worlds.site_xpos[:, self.handle]))
        if self.latch is not None:
            shaped += np.minimum(0.25 * np.abs(worlds.qpos[:, self.latch]) / (0.5 * np.pi), 0.25)
        return np.where(opened, 1.0, shaped if self.shaping else 0.0), opened


class Stack(Goal):
    """A cube is placed on another one."""

    scale = 2.0

    def read(self, env: Any, contacts: Contacts) -> None:
        self.upper, self.lower, self.table = env.cubeA_body_id, env.cubeB_body_id, float(env.table_offset[2])
        self.pads = contacts.pads(env.robots[0].gripper, env.cubeA.contact_geoms)
        self.cubes = contacts.between(env.cubeA.contact_geoms, env.cubeB.contact_geoms)

    def observables(self, env: Any) -> dict[str, Observable]:
        found = seen_of.body("cubeA", self.upper) | seen_of.body("cubeB", self.lower)
        found["cubeA_to_cubeB"] = partial(seen_of.difference, "cubeB_pos", "cubeA_pos")
        for cube in ("cubeA", "cubeB"):
            found |= seen_of.to_gripper(env, f"{cube}_pos", f"{{arm}}gripper_to_{cube}")
        return found

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        upper, lower = worlds.xpos[:, self.upper], worlds.xpos[:, self.lower]
        held, lifted = grasped(touch, self.pads), upper[:, 2] > self.table + LIFTED
        stacked = ~held & lifted & touch[:, self.cubes]
        if not self.shaping:
            return self.scale * stacked, stacked
        reach = 0.25 * near(distance(worlds, self.grippers[0], upper)) + 0.25 * held
        aligned = lifted * (1.0 + 0.5 * near(np.linalg.norm(upper[:, :2] - lower[:, :2], axis=1), 1.0))
        return np.maximum(np.maximum(reach, aligned), self.scale * stacked), stacked


class Placed(Goal):
    """Each object is brought to its place: the stages of NutAssembly and PickPlace.

    Attributes:
        objects: name of the environment's list of objects.
        bodies: (k,) of the objects.
        pads: columns of the fingers of each gripper, of each object.
        one: whether only one object is used in an episode.
    """

    objects: str

    def read(self, env: Any, contacts: Contacts) -> None:
        objects = getattr(env, self.objects)
        self.one = env.single_object_mode > 0
        self.scale = 1.0 if self.one else float(len(objects))
        self.bodies = np.array([env.obj_body_id[each.name] for each in objects])
        self.pads = [self.fingers(env, contacts, each.contact_geoms) for each in objects]

    def observables(self, env: Any) -> dict[str, Observable]:
        found: dict[str, Observable] = {"nut_id": self.number, "obj_id": self.number}
        for each, at in zip(getattr(env, self.objects), self.bodies, strict=True):
            found |= seen_of.in_gripper(env, each.name, seen_of.body(each.name, int(at)))
        return found

    def number(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns the number of the object that is used, (n, 1)."""
        return self.used[:, None]

    @abstractmethod
    def places(self, worlds: Any, pos: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns whether objects at pos (n, k, 3) are at their places, whether over them, and how far apart (n, k).

        The last is the horizontal distance [m].
        """

    @abstractmethod
    def targets(self, worlds: Any) -> tuple[np.ndarray, float | np.ndarray]:
        """Returns the points that the gripper reaches for, (n, k, 3), and the height to lift objects to, (n, 1)."""

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pos = worlds.xpos[:, self.bodies]
        at_place, over, apart = self.places(worlds, pos)
        k = len(self.bodies)
        left = np.stack([near(distance(worlds, self.grippers[0], pos[:, i])) < CLOSE for i in range(k)], axis=1)
        placed = at_place & left
        count = placed.sum(axis=1)
        success = count > 0 if self.one else count == k
        if not self.shaping:
            return count.astype(float), success
        active = ~placed
        nearest = lambda values: np.where(active, values, np.inf).min(axis=1)  # noqa: E731
        points, height = self.targets(worlds)
        reach = REACH * near(
            nearest(np.stack([distance(worlds, self.grippers[0], p) for p in np.moveaxis(points, 1, 0)], 1))
        )
        fingers = np.moveaxis(touch[:, self.pads], 1, 3) & active[:, None, None]  # (n, gripper, finger, object)
        held = np.any(np.all(np.any(fingers, axis=3), axis=2), axis=1)
        raised = near(nearest(np.maximum(height - pos[:, :, 2], 0.0)), 15.0)
        lift = held * (GRASP + (LIFT - GRASP) * raised)
        hover = np.where(over, LIFT, lift[:, None]) + (HOVER - LIFT) * near(apart)
        hover = np.where(active, hover, 0.0).max(axis=1)
        return count + np.max([reach, GRASP * held, lift, hover], axis=0), success


class NutAssembly(Placed):
    """Nuts are put around their pegs."""

    objects = "nuts"

    def read(self, env: Any, contacts: Contacts) -> None:
        super().read(env, contacts)
        self.handles, self.table = env.object_site_ids, env.table_body_id
        self.pegs, self.height = [env.peg1_body_id, env.peg2_body_id], float(env.table_offset[2])

    def places(self, worlds: Any, pos: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        to_peg = worlds.xpos[:, self.pegs, :2] - pos[:, :, :2]
        at_place = (np.abs(to_peg) < ON_PEG[0]).all(axis=2) & (pos[:, :, 2] < self.height + ON_PEG[1])
        return at_place, np.zeros_like(at_place), np.linalg.norm(to_peg, axis=2)

    def targets(self, worlds: Any) -> tuple[np.ndarray, float | np.ndarray]:
        return worlds.site_xpos[:, self.handles], worlds.xpos[:, [self.table], 2] + 0.2


class PickPlace(Placed):
    """Objects are put into their bins."""

    objects = "objects"

    def read(self, env: Any, contacts: Contacts) -> None:
        super().read(env, contacts)
        self.size, self.corner = np.array(env.bin_size[:2]) / 2.0, np.array(env.bin2_pos)
        self.centre = np.array(env.target_bin_placements[:, :2])

    def places(self, worlds: Any, pos: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        above = pos[:, :, 2] - self.corner[2]
        low = self.corner[:2] - self.size * [[1, 1], [0, 1], [1, 0], [0, 0]]  # of the bins
        inside = np.all((low < pos[:, :, :2]) & (pos[:, :, :2] < low + self.size), axis=2)
        apart = self.centre - pos[:, :, :2]
        over = np.all(np.abs(apart) < self.size / 2.0, axis=2)
        return inside & (above > 0.0) & (above < 0.1), over, np.linalg.norm(apart, axis=2)

    def targets(self, worlds: Any) -> tuple[np.ndarray, float | np.ndarray]:
        return worlds.xpos[:, self.bodies], self.corner[2] + 0.25


class ToolHang(Goal):
    """A frame is inserted into a stand, and a tool hangs on the frame."""

    has_shaping = False
    fields = ("geom_xpos", "geom_xmat", "xmat")

    def read(self, env: Any, contacts: Contacts) -> None:
        self.sites, self.geoms, self.tool = env.obj_site_id, env.obj_geom_id, env.obj_body_id["tool"]
        parts = [geoms for each in env.robots[0].gripper.values() for geoms in each.important_geoms.values()]
        self.robot = contacts.between([geom for geoms in parts for geom in geoms], env.tool.contact_geoms)
        hole = [f"tool_hole1_hc_{k}" for k in range(env.tool_args["ngeoms"])]
        self.hook, self.opposite = contacts.between(hole, ["frame_horizontal_frame"]), env.tool_args["ngeoms"] // 2
        self.tip = "frame_tip_site" if "frame_tip_site" in self.sites else "frame_mount_site"
        self.radius = env.tool_args["inner_radius_1"] - env.frame_args["frame_thickness"] / 2.0

    def observables(self, env: Any) -> dict[str, Observable]:
        found: dict[str, Observable] = {"frame_is_assembled": self.assembled, "tool_on_frame": self.hanging}
        for name, kind, at in (
            ("base", "geom_x", self.geoms["stand_base"]),
            ("frame", "site_x", self.sites["frame_intersection_site"]),
            ("tool", "x", self.tool),
        ):
            found |= seen_of.in_gripper(env, name, seen_of.of_matrix(name, kind, at))
        return found

    def line(self, worlds: Any, end: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns an end of the hook, (n, 3) [m], the direction to its corner, (n, 3), and its length (n, 1) [m]."""
        at = worlds.site_xpos[:, self.sites[end]]
        along = worlds.site_xpos[:, self.sites["frame_intersection_site"]] - at
        length = np.linalg.norm(along, axis=1, keepdims=True)
        return at, along / length, length

    def opposed(self, worlds: Any, first: str, second: str, at: np.ndarray, along: np.ndarray) -> np.ndarray:
        """Returns whether two geoms are on opposite sides of a line, (n,)."""
        a, b = (np.cross(worlds.geom_xpos[:, self.geoms[name]] - at, along) for name in (first, second))
        return np.einsum("ni,ni->n", a, b) < 0.0

    def assembled(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns 1 if the frame is in an upright stand, (n, 1)."""
        base = worlds.geom_xpos[:, self.geoms["stand_base"]]
        shaft = worlds.site_xpos[:, self.sites["stand_mount_site"]] - base
        upright = np.arccos(shaft[:, 2] / np.linalg.norm(shaft, axis=1)) < np.pi / 18.0
        inserted = np.linalg.norm(worlds.site_xpos[:, self.sites[self.tip]] - base, axis=1) < 0.05
        at, along, _ = self.line(worlds, "frame_mount_site")
        between = [self.opposed(worlds, f"stand_wall_{i}", f"stand_wall_{i + 2}", at, along) for i in (0, 1)]
        return 1.0 * (upright & inserted & np.all(between, axis=0))[:, None]

    def hanging(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns 1 if the tool hangs on the frame, and the robot does not touch it, (n, 1)."""
        at, along, length = self.line(worlds, "frame_hang_site")
        hole = worlds.site_xpos[:, self.sites["tool_hole1_center"]] - at
        depth = np.einsum("ni,ni->n", hole, along)[:, None]
        close = np.linalg.norm(hole - depth * along, axis=1) < self.radius
        around = self.opposed(worlds, "tool_hole1_hc_0", f"tool_hole1_hc_{self.opposite}", at, along)
        deep = ((depth / length > 0.05) & (depth / length < 1.0))[:, 0]
        return 1.0 * (~self.touch[:, self.robot] & self.touch[:, self.hook] & close & around & deep)[:, None]

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        success = (self.assembled(worlds, {}) * self.hanging(worlds, {}))[:, 0] > 0.0
        return 1.0 * success, success


def pads_of_two(env: Any, contacts: Contacts, first: Sequence[str], second: Sequence[str]) -> list[list[list[int]]]:
    """Returns the columns of the fingers of both grippers, each on its geoms."""
    right = env.robots[0].gripper["right"] if env.env_configuration == "single-robot" else env.robots[0].gripper
    left = env.robots[0].gripper["left"] if env.env_configuration == "single-robot" else env.robots[1].gripper
    return [contacts.pads(right, first), contacts.pads(left, second)]


class TwoArmLift(Goal):
    """Two arms lift a pot."""

    scale, fields = 3.0, ("xmat",)

    def read(self, env: Any, contacts: Contacts) -> None:
        self.pot, self.top, self.centre = env.pot_body_id, env.table_top_id, env.pot_center_id
        self.handles, self.bottom = [env.handle0_site_id, env.handle1_site_id], float(env.pot.top_offset[2])
        self.pads = pads_of_two(env, contacts, env.pot.handle0_geoms, env.pot.handle1_geoms)

    def observables(self, env: Any) -> dict[str, Observable]:
        found = seen_of.body("pot", self.pot)
        for k, handle in enumerate(self.handles):
            found[f"handle{k}_xpos"] = partial(seen_of.field, "site_xpos", handle)
        return found | seen_of.of_two(env, {k: f"handle{k}_xpos" for k in (0, 1)}, "gripper{robot}_to_handle{robot}")

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sites, level = worlds.site_xpos, worlds.xmat.reshape(worlds.nworld, -1, 9)[:, self.pot, 8] >= np.cos(np.pi / 6)
        height = sites[:, self.centre, 2] - self.bottom - sites[:, self.top, 2]
        lifted = height > LIFTED_POT
        shaped = 10.0 * level * np.clip(height - 0.05, 0.0, 0.15)
        for gripper, handle, pads in zip(self.grippers, self.handles, self.pads, strict=True):
            shaped += 0.25 * grasped(touch, pads) + 0.5 * near(distance(worlds, gripper, sites[:, handle]))
        return np.where(lifted, self.scale * level, shaped if self.shaping else 0.0), lifted


class TwoArmPegInHole(Goal):
    """Two arms bring a peg into a hole."""

    scale, fields = 5.0, ("xmat",)

    def read(self, env: Any, contacts: Contacts) -> None:
        self.hole, self.peg = env.hole_body_id, env.peg_body_id

    def observables(self, env: Any) -> dict[str, Observable]:
        angles = {name: partial(self.part, k) for k, name in enumerate(("t", "d", "angle"))}
        poses = seen_of.body("hole", self.hole) | {"peg_quat": partial(seen_of.body_quat, self.peg)}
        return poses | angles | {"peg_to_hole": self.to_hole}

    def to_hole(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns the position of the hole relative to the peg, (n, 3) [m]."""
        return worlds.xpos[:, self.hole] - worlds.xpos[:, self.peg]

    def relative(self, worlds: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the distances along and normal to the peg, (n,) [m], and the cosine of the angle to the hole."""
        axes = worlds.xmat.reshape(worlds.nworld, -1, 3, 3)
        v, hole = axes[:, self.peg, :, 2], axes[:, self.hole]
        to_centre = 0.1 * hole[:, :, 0] + self.to_hole(worlds, {})
        along = np.einsum("ni,ni->n", to_centre, v)
        return along, np.linalg.norm(np.cross(v, to_centre), axis=1), np.abs(np.einsum("ni,ni->n", hole[:, :, 2], v))

    def part(self, k: int, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns the distance along or normal to the peg, or the cosine, (n, 1)."""
        return self.relative(worlds)[k][:, None]

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t, d, cosine = self.relative(worlds)
        inside = (d < 0.06) & (t >= -0.12) & (t <= 0.14) & (cosine > 0.95)
        if not self.shaping:
            return self.scale * inside, inside
        apart = np.linalg.norm(self.to_hole(worlds, {}), axis=1)
        return inside + near(apart, 1.0) + near(d, 1.0) + near(np.abs(t), 1.0) + cosine, inside


class TwoArmHandover(Goal):
    """An arm hands a hammer to the other one."""

    scale, fields = 2.0, ("xmat", "geom_xpos")

    def read(self, env: Any, contacts: Contacts) -> None:
        hammer = env.hammer
        self.hammer, self.handle, self.top = env.hammer_body_id, env.hammer_handle_geom_id, env.table_top_id
        self.length, self.bottom = hammer.handle_length / 2 + 2 * hammer.head_halfsize, float(hammer.top_offset[2])
        self.threshold = float(env.height_threshold)
        self.pads = pads_of_two(env, contacts, hammer.contact_geoms, hammer.handle_geoms)

    def observables(self, env: Any) -> dict[str, Observable]:
        found = seen_of.body("hammer", self.hammer) | {"handle_xpos": partial(seen_of.field, "geom_xpos", self.handle)}
        return found | seen_of.of_two(env, {0: "handle_xpos", 1: "handle_xpos"}, "gripper{robot}_to_handle")

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        handle = worlds.geom_xpos[:, self.handle]
        slope = worlds.xmat.reshape(worlds.nworld, -1, 9)[:, self.hammer, 8]  # sine of the handle's angle
        height = handle[:, 2] - self.bottom - self.length * slope - worlds.site_xpos[:, self.top, 2]
        lifted, first, second = height > self.threshold, *(grasped(touch, pads) for pads in self.pads)
        success = lifted & second & ~first
        if not self.shaping:
            return self.scale * success, success
        reach, hover = (0.25 * near(distance(worlds, gripper, handle), 1.0) for gripper in self.grippers)
        raised = np.where(second, np.where(first, 1.5, 2.0), 1.0 + hover)
        return np.where(lifted, raised, np.where(first, 0.5, reach)), success


class TwoArmTransport(Goal):
    """Two arms exchange a payload and trash between bins."""

    has_shaping = False
    fields = ("xmat", "geom_xpos", "geom_xmat")

    def read(self, env: Any, contacts: Contacts) -> None:
        objects, t = env.transport.objects, env.transport
        self.in_target = contacts.between(objects["target_bin"].base_geoms, objects["payload"].contact_geoms)
        self.in_trash = contacts.between(objects["trash_bin"].base_geoms, objects["trash"].contact_geoms)
        self.payload, self.trash, self.lid = t.payload_body_id, t.trash_body_id, t.lid_handle_geom_ids[0]
        self.bins = {"target_bin_pos": t.target_bin_base_geom_ids[0], "trash_bin_pos": t.trash_bin_base_geom_ids[0]}

    def observables(self, env: Any) -> dict[str, Observable]:
        found = seen_of.of_matrix("payload", "x", self.payload) | seen_of.of_matrix("trash", "x", self.trash)
        found |= seen_of.of_matrix("lid_handle", "geom_x", self.lid)
        found |= {name: partial(seen_of.field, "geom_xpos", geom) for name, geom in self.bins.items()}
        found["payload_in_target_bin"] = partial(self.contact, self.in_target)
        found["trash_in_trash_bin"] = partial(self.contact, self.in_trash)
        found |= seen_of.of_two(env, {0: "payload_pos", 1: "payload_pos"}, "gripper{robot}_to_payload")
        found |= seen_of.of_two(env, {0: "lid_handle_pos"}, "gripper0_to_lid_handle")
        return found | seen_of.of_two(env, {1: "trash_pos"}, "gripper1_to_trash")

    def contact(self, column: int, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns whether two groups of geoms touch, (n, 1)."""
        return self.touch[:, [column]]

    def __call__(self, worlds: Any, touch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        success = touch[:, self.in_target] & touch[:, self.in_trash]
        return 1.0 * success, success
