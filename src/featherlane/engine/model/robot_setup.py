"""Sets up a robot before it is compiled: a free or fixed base on a floor, actuators, and the keyframe `home`.

Height: the lowest point of the colliding geoms of the base and its descendants touches z = 0, in the zero position and
in the keyframe.  Self-collision of a URDF, which has no element for it: bodies do not collide if a joint connects them,
or if they touch in the zero position or in the keyframe.
Source: MoveIt, setup assistant (the same pairs are "adjacent" and "in collision by default").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.arguments import LARGEST, bounded, instance, is_real, one_of
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.enums import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    EQ_JOINT,
    FREE,
    HFIELD,
    PLANE,
    SLIDE,
    SPHERE,
)
from featherlane.engine.model.mujoco_versions import merges_wrongly
from featherlane.engine.model.ordered_sums import heights_along
from featherlane.engine.model.reader import mujoco_module
from featherlane.engine.model.servos import (
    Actuators,
    Armatures,
    Gains,
    add_actuators,
    checked_actuators,
    checked_armature,
    checked_gains,
    is_servo,
    set_armature,
)
from featherlane.engine.model.source import is_urdf
from featherlane.errors import ModelError, UnknownNameError, near

BASES = ("free", "fixed")
AUTO, HOME, FLOOR, BASE = "auto", "home", "floor", "base"
HIGHEST = 1e10  # m, MuJoCo's largest position
GREY = (0.7, 0.72, 0.75, 1.0)


class RobotSetup(NamedTuple):
    """Holds the arguments of `load` that set up a robot."""

    base: str | None = None
    floor: bool = False
    height: float | str | None = None
    home: Mapping[str, float] | None = None
    actuators: Actuators | None = None
    gains: Gains | None = None
    armature: Armatures | None = None

    @property
    def given(self) -> list[str]:
        """Returns the names of the arguments that are given."""
        return [
            name for name, value in zip(self._fields, self, strict=True) if value is not None and value is not False
        ]

    def checked(self) -> RobotSetup:
        """Returns the arguments after all checks that need no model.

        Raises:
            ModelError: a value is not allowed.
        """
        if self.base is not None:
            one_of("base", self.base, BASES)
        is_number = is_real(self.height) and abs(float(self.height or 0.0)) <= HIGHEST
        if not is_number and not (self.height is None or (isinstance(self.height, str) and self.height == AUTO)):
            raise ModelError(f"height: got {self.height!r}, allowed are {AUTO!r} and a number up to {HIGHEST:g} [m]")
        for name, value in (instance("home", self.home, Mapping | None, "a dict of positions by joint") or {}).items():
            bounded(f"home: joint {name!r}", value, -LARGEST, LARGEST)
        actuators = None if self.actuators is None else checked_actuators(self.actuators)
        gains = None if self.gains is None else checked_gains(self.gains, actuators)
        armature = None if self.armature is None else checked_armature(self.armature)
        floor = flag("floor", self.floor)
        return self._replace(floor=floor, actuators=actuators, gains=gains, armature=armature)


NOT_SET_UP = RobotSetup()


def set_up(spec: Any, text: str, setup: RobotSetup) -> None:
    """Changes a specification as the arguments demand.

    Args:
        spec: a `mujoco.MjSpec` with the contents of all its files, modified in place.
        text: its XML text, or "".
        setup: checked arguments.

    Raises:
        ModelError: the model has no single base, or has already what is to be added, or no geom collides.
        UnknownNameError: an unknown joint.
        ValueError: MuJoCo cannot compile the model.
    """
    root = _root(spec, setup)
    if setup.base is not None:
        _set_base(spec, root, setup.base)
    if setup.armature is not None:
        set_armature(spec, setup.armature)
    probe = _Probe(spec)
    home = probe.home(setup.home or {})
    if root is not None:
        lift, lift_home = _lifts(probe, root, home, setup.height)
        root.pos = [*root.pos[:2], root.pos[2] + lift]
        if probe.free >= 0:
            home[probe.free + 2] += lift_home
    if is_urdf(text):
        for one, other in _neighbours(probe, home, next((body.name for body in spec.worldbody.bodies), "")):
            spec.add_exclude(bodyname1=one, bodyname2=other)
    if setup.floor:
        _add_floor(spec)
    if setup.actuators is not None:
        add_actuators(spec, text, probe.mj, probe.followers, setup.actuators, setup.gains)
    _add_home(spec, probe.mj, home, setup.home is not None)


# ---- base ------------------------------------------------------------------------------------------------------------
def _root(spec: Any, setup: RobotSetup) -> Any:
    """Returns the body of the base; None if no argument needs it.

    Raises:
        ModelError: the world has no body, or several.
    """
    needed = next((name for name in ("base", "height") if getattr(setup, name) is not None), None)
    if needed is None:
        return None
    bodies = list(spec.worldbody.bodies)
    if len(bodies) != 1:
        shown = ", ".join(repr(body.name) for body in bodies) or "no body"
        raise ModelError(f"{needed}: the world has {shown}; allowed is one body, the base of the robot")
    if bodies[0].frame is not None:
        raise ModelError(f"{needed}: the base {bodies[0].name!r} is in a <frame>; allowed is a body outside of frames")
    return bodies[0]


def _set_base(spec: Any, root: Any, base: str) -> None:
    """Adds a free joint to the base, or removes it.

    Raises:
        ModelError: the base has joints already, or keyframes would not fit any more.
    """
    free = mujoco_module().mjtJoint.mjJNT_FREE
    present = [joint for joint in spec.joints if joint.type == free]
    changed = base == "free" or bool(present)
    if changed and len(spec.keys):
        keys = ", ".join(repr(key.name) for key in spec.keys)
        raise ModelError(f"base: {base!r} would change the size of qpos, but the model has keyframes ({keys})")
    if base == "fixed":
        for joint in present:
            spec.delete(joint)
        return
    if present:
        raise ModelError(f"base: got 'free', but the model has the free joint {present[0].name!r}; leave base out")
    if len(root.joints):
        raise ModelError(
            f"base: got 'free', but the base {root.name!r} has the joint {root.joints[0].name!r}; allowed is a base "
            f"without joints"
        )
    root.add_freejoint(name="" if any(joint.name == BASE for joint in spec.joints) else BASE)


class _Probe:
    """Holds the model before its base is placed, compiled from a copy.

    Attributes:
        mj: the `mujoco.MjModel`.
        robot: geoms of bodies that collide.
        free: address of the first free joint in qpos; -1 without one.
        followers: joints that follow others in a joint equality (`<mimic>`): number of the equality by joint.
    """

    def __init__(self, spec: Any):
        mujoco, copy = mujoco_module(), spec.copy()
        if merges_wrongly(copy):
            copy.compiler.fusestatic = False
        surroundings = [*copy.worldbody.geoms]
        for geom in copy.geoms:
            geom.priority = int(geom in surroundings)  # a static base may be merged into the world
        self.mj = copy.compile()
        collides = (self.mj.geom_contype | self.mj.geom_conaffinity) != 0
        solid = ~np.isin(self.mj.geom_type, (PLANE, HFIELD))
        self.robot = np.flatnonzero(collides & solid & (self.mj.geom_priority == 0))
        self.data = mujoco.MjData(self.mj)
        free = np.flatnonzero(self.mj.jnt_type == FREE)
        self.free = int(self.mj.jnt_qposadr[free[0]]) if len(free) else -1
        follows = (self.mj.eq_type == EQ_JOINT) & (self.mj.eq_obj2id >= 0) & self.mj.eq_active0.astype(bool)
        self.followers = {int(self.mj.eq_obj1id[e]): int(e) for e in np.flatnonzero(follows)}

    def home(self, given: Mapping[str, float]) -> np.ndarray:
        """Returns qpos (nq,) of given joint positions; other joints are at zero, or at the limit next to it.

        Raises:
            UnknownNameError: an unknown joint.
            ModelError: a joint of another type, one that follows another, or a position outside of the limits.
        """
        mj, qpos = self.mj, self.mj.qpos0.copy()
        names = [mj.joint(j).name for j in range(mj.njnt)]
        for name in given:
            if name not in names or not name:
                shown = ", ".join(each for j, each in enumerate(names) if mj.jnt_type[j] >= SLIDE) or "none"
                raise UnknownNameError(f"home: no joint {name!r}{near(name, names)}; joints are {shown}")
        for j, name in enumerate(names):
            place, value = mj.jnt_qposadr[j], given.get(name)
            if value is not None and (mj.jnt_type[j] < SLIDE or j in self.followers):
                problem = "follows another joint" if j in self.followers else "is a free or ball joint"
                raise ModelError(f"home: joint {name!r} {problem}; allowed are independent hinges and slides")
            if mj.jnt_type[j] < SLIDE:
                continue
            low, high = mj.jnt_range[j] if mj.jnt_limited[j] else (-np.inf, np.inf)
            if value is not None and not low <= value <= high:
                raise ModelError(f"home: joint {name!r}: got {value:g}, allowed is its range from {low:g} to {high:g}")
            qpos[place] = np.clip(qpos[place], low, high) if value is None else value
        for _ in self.followers:  # a joint may follow one that follows another
            for joint, e in self.followers.items():
                at, lead = mj.jnt_qposadr[joint], mj.jnt_qposadr[mj.eq_obj2id[e]]
                x = qpos[lead] - mj.qpos0[lead]
                qpos[at] = mj.qpos0[at] + np.polynomial.polynomial.polyval(x, mj.eq_data[e, :5])
        return qpos

    def lowest(self, qpos: np.ndarray) -> float:
        """Returns the lowest z of the robot's geoms [m]."""
        self.data.qpos[:] = qpos
        mujoco_module().mj_kinematics(self.mj, self.data)
        return min(-_extent_below(self.mj, self.data, int(geom)) for geom in self.robot)

    def touching(self, qpos: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yields pairs of the robot's bodies that touch."""
        self.data.qpos[:] = qpos
        mujoco_module().mj_fwdPosition(self.mj, self.data)
        for contact in self.data.contact:
            if contact.dist <= 0.0 and np.isin(contact.geom, self.robot).all():
                first, second = self.mj.geom_bodyid[contact.geom]
                yield int(first), int(second)


def _extent_below(mj: Any, data: Any, geom: int) -> float:
    """Returns the largest distance of a geom's points from the plane z = 0, along -z [m]."""
    size, z = mj.geom_size[geom], data.geom_xmat[geom].reshape(3, 3)[2]
    kind = mj.geom_type[geom]
    if kind == SPHERE:
        reach = size[0]
    elif kind == CAPSULE:
        reach = size[0] + size[1] * abs(z[2])
    elif kind == CYLINDER:
        reach = size[0] * np.hypot(z[0], z[1]) + size[1] * abs(z[2])
    elif kind == BOX:
        reach = (size * np.abs(z)).sum()
    elif kind == ELLIPSOID:
        reach = np.sqrt(((size * z) ** 2).sum())
    else:
        mesh = mj.geom_dataid[geom]
        first = mj.mesh_vertadr[mesh]
        vertices = mj.mesh_vert[first : first + mj.mesh_vertnum[mesh]].astype(float)
        reach = heights_along(vertices, -z[None]).max()
    return float(reach - data.geom_xpos[geom, 2])


def _lifts(probe: _Probe, root: Any, home: np.ndarray, height: float | str | None) -> tuple[float, float]:
    """Returns how far the base moves up [m], in the zero position and in the keyframe.

    A fixed base has one place: that of the keyframe.

    Raises:
        ModelError: no geom collides.
    """
    if height is not None and height != AUTO:
        lift = float(height) - root.pos[2]
        return lift, lift
    if len(probe.robot) == 0:
        raise ModelError(f"height: no geom of {root.name!r} and its descendants collides; allowed is a number [m]")
    lift_home = -probe.lowest(home)
    return (-probe.lowest(probe.mj.qpos0) if probe.free >= 0 else lift_home), lift_home


def _neighbours(probe: _Probe, home: np.ndarray, root: str) -> list[tuple[str, str]]:
    """Returns pairs of bodies of a URDF that do not collide, by name; MuJoCo ignores moving neighbours by itself.

    Args:
        root: name of the base, into which static bodies are merged if the pairs name it.
    """
    mj = probe.mj
    owners = sorted({int(body) for body in mj.geom_bodyid[probe.robot]})
    static = [body for body in owners if mj.body_weldid[body] == 0]
    first = [b for b in owners if mj.body_weldid[b] and mj.body_weldid[mj.body_parentid[mj.body_weldid[b]]] == 0]
    pairs = [
        (one, other) for one in static for other in first if mj.jnt_type[mj.body_jntadr[mj.body_weldid[other]]] != FREE
    ]
    for qpos in (mj.qpos0, home):
        pairs += probe.touching(qpos)
    names = [root if body == 0 else mj.body(body).name for body in range(mj.nbody)]
    return list(dict.fromkeys((names[min(pair)], names[max(pair)]) for pair in pairs))


# ---- additions -------------------------------------------------------------------------------------------------------
def _add_floor(spec: Any) -> None:
    """Adds the plane z = 0.

    Raises:
        ModelError: a geom of this name exists.
    """
    if any(geom.name == FLOOR for geom in spec.geoms):
        raise ModelError(f"floor: the model has a geom {FLOOR!r} already; leave floor out")
    plane = mujoco_module().mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(name=FLOOR, type=plane, size=[0.0, 0.0, 0.05], rgba=GREY)


def _add_home(spec: Any, mj: Any, qpos: np.ndarray, asked: bool) -> None:
    """Adds the keyframe; the controls of position actuators are the positions of their joints.

    Raises:
        ModelError: positions are given, and a keyframe of this name exists.
    """
    if any(key.name == HOME for key in spec.keys):
        if asked:
            raise ModelError(f"home: the model has a keyframe {HOME!r} already; leave home out")
        return
    joints = {mj.joint(j).name: mj.jnt_qposadr[j] for j in range(mj.njnt)}
    added = mj.nu == 0  # `home` sets no controls of actuators that the source has: their meaning is unknown
    ctrl = [qpos[joints[each.target]] if is_servo(each) else 0.0 for each in spec.actuators] if added else []
    spec.add_key(name=HOME, qpos=qpos, ctrl=ctrl)
