"""Converts models in global coordinates, which MuJoCo read up to 2.3.3, to frames of bodies.

In global coordinates, every position and orientation in `<worldbody>` is relative to the world.  A body without `pos`
has its inertial frame.  Anchors of equality constraints are global, too.  A specification that is compiled without the
setting therefore has the global frames of its bodies in `body_pos` and `body_quat`, and those of inertias in
`body_ipos` and `body_iquat`.
Source: MuJoCo 2.3.3, XML reference, compiler/coordinate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.reader import mujoco_module

UNSET = 1e300  # [m] first coordinate of a body without `pos`


class Pose(NamedTuple):
    """Holds a position (3,) [m] and a unit quaternion (4,)."""

    pos: np.ndarray
    quat: np.ndarray


def use_local_coordinates(spec: Any) -> None:
    """Converts a specification whose bodies without `pos` have UNSET as first coordinate; modified in place.

    Raises:
        ValueError: MuJoCo cannot compile it.
    """
    bodies, geoms, sites = spec.bodies[1:], spec.geoms, spec.sites
    unset = [body.pos[0] == UNSET for body in bodies]
    for body, is_unset in zip(bodies, unset, strict=True):
        body.pos = np.zeros(3) if is_unset else body.pos
    mj = spec.compile()  # elements of a copy would have the ids
    for kind, elements in (("geom", geoms), ("site", sites)):
        for element in elements:
            _set_size(mj, kind, element)
    frames = {spec.worldbody.id: Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))}
    for body, is_unset in zip(bodies, unset, strict=True):
        inertial = Pose(mj.body_ipos[body.id].copy(), mj.body_iquat[body.id].copy())
        given = Pose(mj.body_pos[body.id].copy(), mj.body_quat[body.id].copy())
        frames[body.id] = inertial if is_unset else given
    for body in bodies:
        parent, frame = frames[body.parent.id], frames[body.id]
        _set_pose(body, _relative(parent, frame), "alt")
        if body.explicitinertial:
            inertial = _relative(frame, Pose(mj.body_ipos[body.id], mj.body_iquat[body.id]))
            body.ipos, body.iquat = inertial
            body.ialt.type = mujoco_module().mjtOrientation.mjORIENTATION_QUAT
            body.fullinertia = [np.nan] * 6
            body.inertia = mj.body_inertia[body.id]
        for joint in body.joints:
            joint.pos, joint.axis = _local_point(frame, joint.pos), _turned(frame, joint.axis)
        for light in body.lights:
            light.pos, light.dir = _local_point(frame, light.pos), _turned(frame, light.dir)
        for element in (*body.geoms, *body.sites, *body.cameras):
            quat = element.quat
            if element.alt.type != mujoco_module().mjtOrientation.mjORIENTATION_QUAT:
                quat = spec.resolve_orientation(
                    degree=spec.compiler.degree, sequence=spec.compiler.eulerseq, orientation=element.alt
                )
            _set_pose(element, _relative(frame, Pose(np.array(element.pos), np.array(quat))), "alt")
    types, body_type = mujoco_module().mjtEq, mujoco_module().mjtObj.mjOBJ_BODY
    for equality in spec.equalities:
        owner = {types.mjEQ_CONNECT: equality.name1, types.mjEQ_WELD: equality.name2}.get(equality.type, "")
        if owner and equality.objtype == body_type:
            equality.data[:3] = _local_point(frames[spec.body(owner).id], equality.data[:3])


def _set_size(mj: Any, kind: str, element: Any) -> None:
    """Replaces the end points of an element by its global pose and its size."""
    if not np.isnan(element.fromto[0]):
        element.pos = getattr(mj, f"{kind}_pos")[element.id]
        element.quat = getattr(mj, f"{kind}_quat")[element.id]
        element.size = getattr(mj, f"{kind}_size")[element.id]
        element.fromto = [np.nan] * 6
        element.alt.type = mujoco_module().mjtOrientation.mjORIENTATION_QUAT


def _set_pose(element: Any, pose: Pose, alternative: str) -> None:
    element.pos, element.quat = pose
    getattr(element, alternative).type = mujoco_module().mjtOrientation.mjORIENTATION_QUAT


def _relative(frame: Pose, pose: Pose) -> Pose:
    """Returns a global pose in a frame."""
    mujoco, found = mujoco_module(), Pose(np.zeros(3), np.zeros(4))
    quat = pose.quat / np.linalg.norm(pose.quat)
    mujoco.mju_mulQuat(found.quat, _inverse(frame), quat)
    return Pose(_local_point(frame, pose.pos), found.quat)


def _local_point(frame: Pose, point: np.ndarray) -> np.ndarray:
    return _turned(frame, np.asarray(point) - frame.pos)


def _turned(frame: Pose, vector: np.ndarray) -> np.ndarray:
    """Returns a global vector in a frame."""
    found = np.zeros(3)
    mujoco_module().mju_rotVecQuat(found, np.array(vector, float), _inverse(frame))
    return found


def _inverse(frame: Pose) -> np.ndarray:
    return frame.quat * [1.0, -1.0, -1.0, -1.0] / np.linalg.norm(frame.quat)
