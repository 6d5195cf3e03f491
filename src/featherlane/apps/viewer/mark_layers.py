"""Layers of marks: frames of bodies and joints, centres of mass and inertias, contacts and their forces, tendons."""

from __future__ import annotations

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.appearance import Looks
from featherlane.apps.viewer.frame import Frame, Masses
from featherlane.apps.viewer.marks import STEPS, Marks, arrow
from featherlane.apps.viewer.shapes import box, cylinder, sphere, tube
from featherlane.enums import BALL, FREE, NGROUP
from featherlane.extension import rotation

# sizes in mean body sizes
AXES, AXIS_LENGTH, AXIS_RADIUS = np.eye(3), 0.8, 0.04
JOINT, JOINT_LENGTH, JOINT_RADIUS, BLOB = (0.15, 0.45, 0.95), 0.7, 0.04, 0.2
BODY, TREE, INERTIA = (0.95, 0.75, 0.1), (0.9, 0.15, 0.15), (0.85, 0.3, 0.25)
SMALL, LARGE = 0.1, 0.2  # radii of the centres of mass of a body and of a tree
CLEAR = 0.5  # opacity of boxes
PUSHING, IDLE = (0.95, 0.5, 0.1), (0.6, 0.6, 0.65)  # colours of contacts with and without a force
FORCE = (0.2, 0.75, 0.35)
DISC_RADIUS, DISC_HALF = 0.15, 0.03
WEIGHT = 1.0  # length of an arrow for the weight of the whole model, in extents
STANDARD_GRAVITY = 9.81  # used if the model has no gravity


class Bodies(Marks):
    """Draws the frames of all bodies except the world body: x red, y green, z blue."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "bodies", {"axis": tube(STEPS)})
        self.size = size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        half, quat = AXIS_LENGTH * self.size / 2, frame.quat[:, 1:, None]
        at = (frame.pos + offsets[:, None])[:, 1:, None] + rotation.to_world(quat, half * AXES)
        radius = AXIS_RADIUS * self.size
        colours = np.tile(AXES, (at.size // 9, 1))
        turn = rotation.product(quat, rotation.from_z(AXES)).reshape(-1, 4)
        self.draw("axis", at, turn, (radius, radius, half), colours)


class Joints(Marks):
    """Draws an arrow along the axis of a hinge or slide joint, a ball at a ball joint, a cube at a free joint."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "joints", {**arrow(), "ball": sphere(STEPS), "free": box()})
        kind = model.jnt_type
        self.ball, self.free = np.flatnonzero(kind == BALL), np.flatnonzero(kind == FREE)
        self.turning = np.flatnonzero((kind != BALL) & (kind != FREE))
        self.size = size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        if frame.anchor is None or frame.axis is None:
            return
        at = frame.anchor + offsets[:, None]
        axes = frame.axis[:, self.turning].reshape(-1, 3)
        self.arrows(
            at[:, self.turning].reshape(-1, 3), JOINT_LENGTH * self.size * axes, JOINT_RADIUS * self.size, JOINT
        )
        blob = (BLOB * self.size,) * 3
        self.draw("ball", at[:, self.ball], rotation.IDENTITY, blob, JOINT)
        self.draw("free", at[:, self.free], rotation.IDENTITY, blob, JOINT)


class MassCentres(Marks):
    """Draws the centres of mass of bodies, and of the subtree of each child of the world."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "mass_centres", {"body": sphere(STEPS), "tree": sphere(2 * STEPS)})
        self.size, self.roots = size, model.body_rootid
        self.trees = np.unique(model.body_rootid[1:])

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        if frame.masses is None:
            return
        centre, mass = frame.masses.centre + offsets[:, None], np.broadcast_to(frame.masses.mass, frame.pos.shape[:2])
        there = mass[:, 1:] > 0
        self.draw("body", centre[:, 1:][there], rotation.IDENTITY, (SMALL * self.size,) * 3, BODY)
        whole, moment = np.zeros(mass.shape), np.zeros(centre.shape)
        np.add.at(whole.T, self.roots, mass.T)
        np.add.at(moment.swapaxes(0, 1), self.roots, (mass[..., None] * centre).swapaxes(0, 1))
        whole, moment = whole[:, self.trees], moment[:, self.trees]
        at = moment[whole > 0] / whole[whole > 0][:, None]
        self.draw("tree", at, rotation.IDENTITY, (LARGE * self.size,) * 3, TREE)


class Inertias(Marks):
    """Draws boxes of equal mass and inertia, along the principal axes."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "inertias", {"box": box()})
        self.model = model

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        if frame.masses is None:
            return
        sides = half_sides(frame.masses)
        at = frame.masses.centre + offsets[:, None]
        quat = rotation.product(frame.quat, self.model.body_iquat)
        there = np.broadcast_to((sides > 0).any(-1), at.shape[:2])
        self.draw("box", at[there], quat[there], np.broadcast_to(sides, at.shape)[there], INERTIA, CLEAR)


def half_sides(masses: Masses) -> np.ndarray:
    """Computes half sides (n or 1, nbody, 3) of the boxes from I_x = m / 3 (y^2 + z^2); zero without mass."""
    moment = masses.inertia / np.where(masses.mass > 0, masses.mass, 1.0)[..., None]
    squares = 1.5 * (moment.sum(-1, keepdims=True) - 2 * moment)
    return np.where(masses.mass[..., None] > 0, np.sqrt(np.maximum(squares, 0.0)), 0.0)


class Contacts(Marks):
    """Draws contact points as discs perpendicular to the normal."""

    def __init__(self, server, model: Model, size: float):
        super().__init__(server, "contacts", {"disc": cylinder(STEPS)})
        self.size = size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        touches = frame.touches
        if touches is None:
            return
        pushes = (touches.force != 0).any(1, keepdims=True)
        radius = DISC_RADIUS * self.size
        at, quat = touches.pos + offsets[touches.world], rotation.from_z(touches.normal)
        self.draw("disc", at, quat, (radius, radius, DISC_HALF * self.size), np.where(pushes, PUSHING, IDLE))


class Forces(Marks):
    """Draws contact forces on the second body."""

    def __init__(self, server, model: Model, size: float, extent: float):
        super().__init__(server, "forces", arrow())
        gravity = float(np.linalg.norm(model.opt_gravity)) or STANDARD_GRAVITY
        weight = gravity * float(model.body_mass.sum())
        self.per_newton, self.radius = (WEIGHT * extent / weight if weight else 0.0), 0.05 * size

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        touches = frame.touches
        if touches is None:
            return
        acts = (touches.force != 0).any(1)
        start = (touches.pos + offsets[touches.world])[acts]
        self.arrows(start, self.per_newton * touches.force[acts], self.radius, FORCE)


class Tendons(Marks):
    """Draws the paths of spatial tendons around geoms, by group."""

    def __init__(self, server, model: Model, looks: Looks):
        mj = model.mj_model
        self.group, self.width = np.clip(mj.tendon_group, 0, NGROUP - 1), mj.tendon_width
        self.colours = looks.colours("tendon")
        groups = tuple(int(g) for g in np.unique(self.group[self.colours[:, 3] > 0]))
        super().__init__(server, "tendons", {"piece": tube(STEPS), "corner": sphere(STEPS)}, groups)

    def show(self, frame: Frame, offsets: np.ndarray) -> None:
        if frame.paths is None:
            return
        ways, shown = frame.paths, [g for g in self.groups if self.on[g]]
        drawn = (np.isin(self.group, shown) & (self.colours[:, 3] > 0))[ways.tendon]
        tendon, offset = ways.tendon[drawn], offsets[ways.world[drawn]]
        start, end = ways.start[drawn] + offset, ways.end[drawn] + offset
        width, rgb = self.width[tendon][:, None], self.colours[tendon, :3]
        length = np.linalg.norm(end - start, axis=1, keepdims=True)
        self.draw("piece", (start + end) / 2, rotation.from_z(end - start), np.hstack((width, width, length / 2)), rgb)
        self.draw("corner", end, rotation.IDENTITY, np.hstack((width, width, width)), rgb)
