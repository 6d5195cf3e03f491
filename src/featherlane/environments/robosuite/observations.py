"""Observables of robosuite as functions over all worlds, by name.

A function f(worlds, seen) returns (n, k); `seen` has the observables before it, by name.  Quaternions are (x, y, z, w)
with w >= 0 if they come from a matrix, as in robosuite.  `Delayed` poses are those of the sample before: robosuite
evaluates the pose of an object in the gripper's frame before it samples the object.
Source: robosuite 1.5.2, robots/robot.py and environments/manipulation/*.py, `_setup_observables`.
Deviation: robosuite computes quaternions of matrices, and poses in the gripper's frame, in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

Seen = dict[str, np.ndarray]
Observable = Callable[[Any, Seen], np.ndarray]
XYZW = [1, 2, 3, 0]  # places in (w, x, y, z)


# ---- functions over the batch ----------------------------------------------------------------------------------------
def field(name: str, at: Any, worlds: Any, seen: Seen) -> np.ndarray:
    """Returns rows or columns of a field."""
    return getattr(worlds, name)[:, at]


def function_of(name: str, function: Callable[[np.ndarray], np.ndarray], worlds: Any, seen: Seen) -> np.ndarray:
    """Returns a function of another observable."""
    return function(seen[name])


def body_quat(body: int, worlds: Any, seen: Seen) -> np.ndarray:
    """Returns the orientation of a body, (n, 4)."""
    return worlds.xquat[:, body][:, XYZW]


def matrix_quat(name: str, at: int, worlds: Any, seen: Seen) -> np.ndarray:
    """Returns the orientation of a body, geom or site from its matrix, (n, 4)."""
    return quaternions(getattr(worlds, name)[:, at])


def difference(name: str, other: str, worlds: Any, seen: Seen) -> np.ndarray:
    """Returns the difference of two observables."""
    return seen[name] - seen[other]


def position_in(frame: str, pos: np.ndarray, seen: Seen) -> np.ndarray:
    """Returns positions (n, 3) in the frame of an observed pose."""
    return np.einsum("nji,nj->ni", matrices(seen[f"{frame}_quat"]), pos - seen[f"{frame}_pos"])


def orientation_in(frame: str, quat: np.ndarray, seen: Seen) -> np.ndarray:
    """Returns orientations (n, 4) in the frame of an observed pose."""
    return quaternions(np.einsum("nji,njk->nik", matrices(seen[f"{frame}_quat"]), matrices(quat)))


class Delayed:
    """The pose of an object, at the sample before, in the frame of a gripper.

    Args:
        pos, quat: observables of the object.
        eef: prefix of the observables of the gripper.

    Attributes:
        present, before: (n, 7) pose at the last sample and at the one before it; NaN: none since the reset.
    """

    def __init__(self, pos: Observable, quat: Observable, eef: str):
        self.pos, self.quat, self.eef = pos, quat, eef
        self.present = self.before = np.zeros((0, 7))

    def prepare(self, worlds: Any) -> None:
        """Allocates the poses."""
        self.present, self.before = np.full((2, worlds.nworld, 7), np.nan)

    def sample(self, worlds: Any, ids: np.ndarray, first: bool) -> None:
        """Stores the poses of the worlds `ids`; `first`: they were just reset."""
        self.before[ids] = np.nan if first else self.present[ids]
        self.present[ids] = np.concatenate((self.pos(worlds, {}), self.quat(worlds, {})), axis=1)[ids]

    def position(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns the position, (n, 3); zeros at the first sample."""
        return self._known(position_in(f"{self.eef}eef", self.before[:, :3], seen))

    def orientation(self, worlds: Any, seen: Seen) -> np.ndarray:
        """Returns the orientation, (n, 4); zeros at the first sample."""
        return self._known(orientation_in(f"{self.eef}eef", self.before[:, 3:], seen))

    def _known(self, values: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(self.before[:, :1]), 0.0, values)


def matrices(quats: np.ndarray) -> np.ndarray:
    """Returns the rotation matrices (n, 3, 3) of quaternions (n, 4)."""
    x, y, z, w = (quats / np.linalg.norm(quats, axis=1, keepdims=True)).T
    rows = (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)),
        (2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)),
        (2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)),
    )
    return np.moveaxis(np.array(rows), 2, 0)


def quaternions(matrix: np.ndarray) -> np.ndarray:
    """Returns the quaternions (n, 4), w >= 0, of rotation matrices (n, 3, 3) or (n, 9).

    Four times the outer product of the quaternion is linear in the matrix; its longest row is the most accurate.
    """
    m = matrix.reshape(-1, 3, 3)
    xx, yy, zz = (m[:, k, k] for k in range(3))
    xy, xz, yz = m[:, 1, 0] + m[:, 0, 1], m[:, 0, 2] + m[:, 2, 0], m[:, 2, 1] + m[:, 1, 2]
    xw, yw, zw = m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]
    products = np.array(
        [
            [1.0 + xx - yy - zz, xy, xz, xw],
            [xy, 1.0 - xx + yy - zz, yz, yw],
            [xz, yz, 1.0 - xx - yy + zz, zw],
            [xw, yw, zw, 1.0 + xx + yy + zz],
        ]
    )
    row = products[np.argmax(np.einsum("iin->in", products), axis=0), :, np.arange(len(m))]
    return row * np.where(row[:, 3:] < 0.0, -1.0, 1.0) / np.linalg.norm(row, axis=1, keepdims=True)


# ---- tables ----------------------------------------------------------------------------------------------------------
class Arm(NamedTuple):
    """An arm: the prefix of its observables, the site and the body of its gripper, and the joints of the fingers."""

    prefix: str
    site: int
    body: str
    fingers: list[str]


def proprioception(prefix: str, joints: list[str], arms: list[Arm], model: Any) -> dict[str, Observable]:
    """Returns the observables of the joints and grippers of a robot; `prefix`: of their names."""
    ids, made = [model.joint(name).id for name in joints], {}
    positions, dofs = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    made["joint_pos"] = partial(field, "qpos", positions)
    made["joint_pos_cos"] = partial(function_of, f"{prefix}joint_pos", np.cos)
    made["joint_pos_sin"] = partial(function_of, f"{prefix}joint_pos", np.sin)
    made["joint_vel"], made["joint_acc"] = partial(field, "qvel", dofs), partial(field, "qacc", dofs)
    for part, site, name, joints in arms:
        fingers = [model.joint(joint).id for joint in joints]
        made[f"{part}eef_pos"] = partial(field, "site_xpos", site)
        made[f"{part}eef_quat"] = partial(body_quat, model.body(name).id)
        made[f"{part}eef_quat_site"] = partial(matrix_quat, "site_xmat", site)
        made[f"{part}gripper_qpos"] = partial(field, "qpos", model.jnt_qposadr[fingers])
        made[f"{part}gripper_qvel"] = partial(field, "qvel", model.jnt_dofadr[fingers])
    return {prefix + name: function for name, function in made.items()}


def of_robot(robot: Any, model: Any) -> dict[str, Observable]:
    """Returns the proprioception of a robot."""
    own, several = robot.robot_model, len(robot.arms) > 1
    arms = [
        Arm(f"{arm}_" * several, robot.eef_site_id[arm], own.eef_name[arm], robot.gripper[arm].joints)
        for arm in robot.arms
    ]
    return proprioception(own.naming_prefix, own.joints, arms, model)


def body(name: str, at: int) -> dict[str, Observable]:
    """Returns the pose of a body."""
    return {f"{name}_pos": partial(field, "xpos", at), f"{name}_quat": partial(body_quat, at)}


def of_matrix(name: str, kind: str, at: int) -> dict[str, Observable]:
    """Returns the pose of a body ("x"), geom ("geom_x") or site ("site_x"), with the quaternion of its matrix."""
    return {f"{name}_pos": partial(field, f"{kind}pos", at), f"{name}_quat": partial(matrix_quat, f"{kind}mat", at)}


def arms(env: Any) -> list[tuple[str, str, int]]:
    """Returns of each arm: its name in names of relative positions, its prefix of observables, its robot's number."""
    found = []
    for k, robot in enumerate(env.robots):
        for arm in robot.arms:
            part = f"{arm}_" * (len(robot.arms) > 1)
            found.append((part, robot.robot_model.naming_prefix + part, k))
    return found


def to_gripper(env: Any, target: str, form: str) -> dict[str, Observable]:
    """Returns the position of a target from each arm's gripper; `form` has the places {arm} and {robot}."""
    return {form.format(arm=arm, robot=k): partial(difference, target, f"{full}eef_pos") for arm, full, k in arms(env)}


def of_two(env: Any, targets: dict[int, str], form: str) -> dict[str, Observable]:
    """Returns the positions of targets, by number of the robot or arm, from its gripper."""
    single, found = env.env_configuration == "single-robot", {}
    for k, (arm, full, robot) in enumerate(arms(env)):
        number = k if single else robot
        if number in targets:
            name = form.format(robot=number) if single else arm + form.format(robot=number)
            found[name] = partial(difference, targets[number], f"{full}eef_pos")
    return found


def in_gripper(env: Any, name: str, pose: Mapping[str, Observable]) -> dict[str, Observable]:
    """Returns the pose of an object, and its pose in the frame of each arm's gripper."""
    found = dict(pose)
    for _, full, _ in arms(env):
        delayed = Delayed(pose[f"{name}_pos"], pose[f"{name}_quat"], full)
        found[f"{name}_to_{full}eef_pos"], found[f"{name}_to_{full}eef_quat"] = delayed.position, delayed.orientation
    return found
