"""Adds actuators to the joints of a specification, with gains from effort limits and inertias.

Position: force = kp (ctrl - q) - kv v, with
    kp = min(effort / ERROR, J / (2 h)^2),    kv = 2 sqrt(kp I)    (damping ratio 1).
I is the inertia about the joint with all other joints at rest (the diagonal of M), J with all others free (the inverse
of the diagonal of M^-1), both in the zero position; h is the time step.  The second bound keeps the undamped frequency
of the joint below 1 / (2 h), and is kp of a joint without effort limit.  Above it, legs on a floor vibrate: the contact
solver neither treats the springs nor the dampers implicitly.  An armature increases J.
Velocity: force = kv (ctrl - v), with kv = effort / (SLIP velocity limit), or without one of both limits the kv above.
Source: URDF specification, <limit>; MuJoCo, XML reference, <position>, <velocity>, <motor>.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from featherlane.engine.model.arguments import LARGEST, bounded, one_of
from featherlane.engine.model.enums import HINGE, SLIDE
from featherlane.engine.model.reader import mujoco_module
from featherlane.engine.model.urdf import child_of, elements
from featherlane.errors import ModelError, UnknownNameError, near

KINDS = ("position", "velocity", "motor")
ERROR = {HINGE: 0.1, SLIDE: 0.01}  # position error at which a servo has its full effort [rad, m]
SLIP = 0.1  # share of the velocity limit at which a velocity servo has its full effort
MINVAL = 1e-15

Actuators = str | Mapping[str, str]
Gains = float | tuple[float, float] | Mapping[str, float | tuple[float, float]]
Armatures = float | Mapping[str, float]


def checked_actuators(given: Any) -> Actuators:
    """Returns a kind of actuators, or kinds by joint.

    Raises:
        ModelError: another value.
    """
    if isinstance(given, Mapping):
        return {name: one_of(f"actuators: joint {name!r}", kind, KINDS) for name, kind in given.items()}
    if not isinstance(given, str):
        allowed = f"{', '.join(KINDS)}, or a dict of these by joint"
        raise ModelError(f"actuators: got {given!r}, allowed are {allowed}")
    return one_of("actuators", given, KINDS)


def checked_gains(given: Any, actuators: Actuators | None) -> Gains:
    """Returns gains: a number or a pair, or these by joint.

    Raises:
        ModelError: another value, or gains without actuators.
    """
    if actuators is None:
        raise ModelError("gains: allowed only with actuators")
    if isinstance(given, Mapping):
        return {name: _checked_gain(f"gains: joint {name!r}", gain) for name, gain in given.items()}
    return _checked_gain("gains", given)


def _checked_gain(label: str, given: Any) -> float | tuple[float, float]:
    """Returns kv, or kp and kv.

    Raises:
        ModelError: another value.
    """
    values = tuple(given) if isinstance(given, tuple | list | np.ndarray) else (given,)
    if len(values) not in (1, 2):
        raise ModelError(f"{label}: got {given!r}, allowed are (kp, kv) of position and kv of velocity actuators")
    kp_kv = [bounded(label, value, 0.0, LARGEST) for value in values]
    return kp_kv[0] if len(kp_kv) == 1 else (kp_kv[0], kp_kv[1])


def checked_armature(given: Any) -> Armatures:
    """Returns an armature, or armatures by joint.

    Raises:
        ModelError: another value.
    """
    if isinstance(given, Mapping):
        return {name: bounded(f"armature: joint {name!r}", value, 0.0, LARGEST) for name, value in given.items()}
    return bounded("armature", given, 0.0, LARGEST)


def set_armature(spec: Any, armature: Armatures) -> None:
    """Sets the armature of all hinges, or of the hinges and slides that are named.

    Args:
        spec: the `mujoco.MjSpec`, modified in place.
        armature: checked argument.

    Raises:
        UnknownNameError: an unknown joint.
        ModelError: a free or ball joint.
    """
    joint = mujoco_module().mjtJoint
    scalar = {each.name: each for each in spec.joints if each.type in (joint.mjJNT_HINGE, joint.mjJNT_SLIDE)}
    if not isinstance(armature, Mapping):
        for each in spec.joints:
            if each.type == joint.mjJNT_HINGE:
                each.armature = armature
        return
    others = {each.name for each in spec.joints} - {*scalar}
    for name, value in armature.items():
        if name in others:
            raise ModelError(f"armature: joint {name!r} is a free or ball joint; allowed are hinges and slides")
        if name not in scalar:
            shown = ", ".join(scalar) or "none"
            raise UnknownNameError(f"armature: no joint {name!r}{near(name, scalar)}; allowed are {shown}")
        scalar[name].armature = value


def is_servo(actuator: Any) -> bool:
    """Returns whether an actuator of a specification has the position of a joint as its control."""
    mujoco = mujoco_module()
    on_joint = actuator.trntype == mujoco.mjtTrn.mjTRN_JOINT
    return on_joint and actuator.biastype == mujoco.mjtBias.mjBIAS_AFFINE and actuator.biasprm[1] != 0.0


def add_actuators(
    spec: Any, text: str, mj: Any, followers: Collection[int], actuators: Actuators, gains: Gains | None
) -> None:
    """Adds an actuator to each hinge and slide, or to those that are named; joints that follow others get none.

    Position and velocity actuators change the integrator Euler to implicitfast, which treats kv implicitly.

    Args:
        spec: the `mujoco.MjSpec`, modified in place.
        text: its XML text, which has velocity limits if it is a URDF.
        mj: its compiled model without actuators.
        followers: joints that follow others.
        actuators, gains: checked arguments.

    Raises:
        UnknownNameError: an unknown joint.
        ModelError: a joint that cannot have the actuator or gain, or that has an actuator already.
    """
    kinds = _kinds(mj, followers, actuators)
    _check_free(mj, kinds)
    by_joint = _gains_by_joint(mj, kinds, gains)
    velocities = velocity_limits(text)
    for joint, kind in kinds.items():
        _add(spec, mj, joint, kind, velocities.get(mj.joint(joint).name), by_joint.get(joint))
    euler, implicit = mujoco_module().mjtIntegrator.mjINT_EULER, mujoco_module().mjtIntegrator.mjINT_IMPLICITFAST
    if spec.option.integrator == euler and {"position", "velocity"} & {*kinds.values()}:
        spec.option.integrator = implicit


def velocity_limits(text: str) -> dict[str, float]:
    """Returns the positive velocity limits of a URDF by joint [rad/s, m/s]."""
    found = {}
    for joint in elements(text, "joint"):
        limit = child_of(joint, "limit")
        try:
            found[joint.getAttribute("name")] = float(limit.getAttribute("velocity")) if limit is not None else 0.0
        except ValueError:
            continue  # missing, or no number
    return {name: value for name, value in found.items() if 0.0 < value < np.inf}


def velocity_joints(text: str, actuators: Actuators | None) -> Collection[str]:
    """Returns the joints of a URDF whose velocity limits become ranges of controls."""
    if isinstance(actuators, Mapping):
        return {name for name, kind in actuators.items() if kind == "velocity"}
    return velocity_limits(text) if actuators == "velocity" else ()


def _kinds(mj: Any, followers: Collection[int], actuators: Actuators) -> dict[int, str]:
    """Returns the kind of actuator by joint, in the order of joints.

    Raises:
        UnknownNameError: an unknown joint.
        ModelError: a joint without a name, of another type, or that follows another.
    """
    scalar = [j for j in range(mj.njnt) if mj.jnt_type[j] >= SLIDE and j not in followers]
    if isinstance(actuators, str):
        for j in scalar:
            if not mj.joint(j).name:
                raise ModelError(f"actuators: joint #{j} has no name; allowed are joints with names")
        return dict.fromkeys(scalar, actuators)
    joints = {mj.joint(j).name: j for j in range(mj.njnt)}
    for name in actuators:
        _check_joint("actuators", name, joints, scalar, followers)
    return {j: actuators[name] for name, j in joints.items() if name in actuators}


def _check_joint(argument: str, name: str, joints: Mapping[str, int], scalar: Collection[int], followers) -> None:
    """Raises an error for a name that is not that of a joint which can have an actuator."""
    allowed = [each for each, j in joints.items() if j in scalar and each]
    if name not in joints:
        shown = ", ".join(allowed) or "none"
        raise UnknownNameError(f"{argument}: no joint {name!r}{near(name, allowed)}; allowed are {shown}")
    if joints[name] not in scalar:
        problem = "follows another joint" if joints[name] in followers else "is a free or ball joint"
        raise ModelError(f"{argument}: joint {name!r} {problem}; allowed are independent hinges and slides")


def _check_free(mj: Any, kinds: Collection[int]) -> None:
    """Raises an error for joints that have an actuator already."""
    joint = int(mujoco_module().mjtTrn.mjTRN_JOINT)
    for i in range(len(mj.actuator_trntype)):
        if mj.actuator_trntype[i] == joint and mj.actuator_trnid[i, 0] in kinds:
            name = mj.joint(int(mj.actuator_trnid[i, 0])).name
            raise ModelError(f"actuators: joint {name!r} has an actuator already; allowed are joints without")


def _gains_by_joint(mj: Any, kinds: Mapping[int, str], gains: Gains | None) -> dict[int, Any]:
    """Returns the given gains by joint.

    Raises:
        UnknownNameError: an unknown joint.
        ModelError: gains that do not fit the kind of an actuator.
    """
    if gains is None:
        return {}
    if not isinstance(gains, Mapping):
        found = {j: gains for j, kind in kinds.items() if kind != "motor"}
    else:
        names = {mj.joint(j).name: j for j in kinds}
        for name in gains:
            if name not in names:
                shown = ", ".join(names) or "none"
                raise UnknownNameError(
                    f"gains: no actuator on a joint {name!r}{near(name, names)}; they are on {shown}"
                )
        found = {names[name]: gain for name, gain in gains.items()}
    for j, gain in found.items():
        allowed = {"position": "a pair (kp, kv)", "velocity": "a number kv", "motor": "none"}[kinds[j]]
        if kinds[j] == "motor" or isinstance(gain, tuple) != (kinds[j] == "position"):
            raise ModelError(f"gains: joint {mj.joint(j).name!r}: got {gain!r}, allowed for {kinds[j]} is {allowed}")
    return found


def _add(spec: Any, mj: Any, joint: int, kind: str, velocity: float | None, gains: Any) -> None:
    """Adds an actuator with the limits of its joint."""
    mujoco, name = mujoco_module(), mj.joint(joint).name
    effort = float(mj.jnt_actfrcrange[joint, 1]) if mj.jnt_actfrclimited[joint] else None
    kp, kv = computed_gains(mj, joint, effort)
    added = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    limits = None
    if kind == "position":
        kp, kv = gains if gains is not None else (kp, kv)
        added.set_to_position(kp=kp, kv=kv)
        limits = mj.jnt_range[joint] if mj.jnt_limited[joint] else None
    elif kind == "velocity":
        kv = effort / (SLIP * velocity) if effort is not None and velocity is not None else kv
        added.set_to_velocity(kv=gains if gains is not None else kv)
        limits = None if velocity is None else (-velocity, velocity)
    else:
        added.set_to_motor()
        limits = None if effort is None else mj.jnt_actfrcrange[joint]
    if limits is not None:
        added.ctrlrange, added.ctrllimited = limits, mujoco.mjtLimited.mjLIMITED_TRUE
    if effort is not None:
        added.forcerange, added.forcelimited = mj.jnt_actfrcrange[joint], mujoco.mjtLimited.mjLIMITED_TRUE


def computed_gains(mj: Any, joint: int, effort: float | None) -> tuple[float, float]:
    """Returns kp and kv of a position actuator on a hinge or slide."""
    dof = int(mj.jnt_dofadr[joint])
    inertia, alone = float(mj.dof_M0[dof]), 1.0 / max(float(mj.dof_invweight0[dof]), MINVAL)
    wanted = np.inf if effort is None else effort / ERROR[int(mj.jnt_type[joint])]
    kp = min(wanted, alone / (2.0 * mj.opt.timestep) ** 2)
    return kp, 2.0 * float(np.sqrt(kp * inertia))
