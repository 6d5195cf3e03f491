"""Layers of marks: names, frames, joints and limits, masses, contacts and forces, tendons and actuators.

`MARKS` lists them.  Each is a function that draws the marks of a frame.
"""

from __future__ import annotations

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.appearance import Looks
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.inspection import moved_joints
from featherlane.apps.viewer.marks import Marks
from featherlane.apps.viewer.markup import labels
from featherlane.enums import BALL, FREE, HINGE, NGROUP, SLIDE, TRN_TENDON
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
GOOD, BAD = np.array((0.1, 0.7, 0.3)), np.array((0.9, 0.1, 0.1))  # within limits, and at a limit
LIMIT_RADIUS, LIMIT_ARC, ARC_PIECES = 0.03, 0.8, 12
AT_LIMIT = 0.01  # part of its range within which a joint is at its limit
NAMED = {"joint": "xanchor", "geom": "geom_xpos", "site": "site_xpos"}  # positions of names
FULL_FORCE = 1.5  # length of an arrow for an actuator's largest force


def bodies(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws the frames of all bodies except the world body: x red, y green, z blue."""
    half, quat = AXIS_LENGTH * marks.size / 2, frame.quat[:, 1:, None]
    at = (frame.pos + offsets[:, None])[:, 1:, None] + rotation.to_world(quat, half * AXES)
    radius = AXIS_RADIUS * marks.size
    turn = rotation.product(quat, rotation.from_z(AXES)).reshape(-1, 4)
    marks.draw("tube", at, (radius, radius, half), np.tile(AXES, (at.size // 9, 1)), turn)


def joints(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws an arrow along the axis of a hinge or slide joint, a ball at a ball joint, a cube at a free joint."""
    kind, at = marks.model.jnt_type, frame.fields["xanchor"] + offsets[:, None]
    turning = (kind == HINGE) | (kind == SLIDE)
    axes = JOINT_LENGTH * marks.size * frame.fields["xaxis"][:, turning].reshape(-1, 3)
    marks.arrows(at[:, turning].reshape(-1, 3), axes, JOINT_RADIUS * marks.size, JOINT)
    for part, shown in (("sphere", BALL), ("box", FREE)):
        marks.draw(part, at[:, kind == shown], BLOB * marks.size, JOINT)


def joint_limits(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws the ranges of limited hinges as arcs, and of limited slides as lines, red at a limit.

    A ray from the centre of the arc, or a ball on the line, is at the joint's position.
    """
    model = marks.model
    j = np.flatnonzero(np.isin(model.jnt_type, (HINGE, SLIDE)) & np.asarray(model.jnt_limited, bool))
    q, axis = frame.fields["qpos"][:, model.jnt_qposadr[j]], frame.fields["xaxis"][:, j, None]
    anchor, slides = frame.fields["xanchor"][:, j] + offsets[:, None], model.jnt_type[j] == SLIDE
    (low, high), ray = model.jnt_range[j].T, LIMIT_ARC * marks.size * _rays(model, frame, j)
    near = AT_LIMIT * (high - low)
    colour = np.where(((q <= low + near) | (q >= high - near))[..., None], BAD, GOOD)
    steps = (np.linspace(low, high, ARC_PIECES + 1, axis=-1) - q[..., None])[..., None]
    turned = ray[:, :, None] * np.cos(steps) + np.cross(axis, ray[:, :, None]) * np.sin(steps)
    points = anchor[:, :, None] + np.where(slides[:, None, None], steps * axis, turned)
    starts = np.concatenate((anchor[:, :, None], points[:, :, :-1]), 2)
    ends = np.concatenate(((anchor + np.where(slides[:, None], 0.0, 1.2 * ray))[:, :, None], points[:, :, 1:]), 2)
    colours = np.repeat(colour[:, :, None], ARC_PIECES + 1, 2)
    start, end, colours = (part.reshape(-1, 3) for part in (starts, ends, colours))
    marks.lines(start, end, LIMIT_RADIUS * marks.size, colours)
    marks.draw("sphere", anchor[:, slides], SMALL * marks.size, JOINT)


def _rays(model: Model, frame: Frame, j: np.ndarray) -> np.ndarray:
    """Returns unit vectors (n, k, 3) fixed to the bodies of joints, perpendicular to the axis, towards the mass."""
    axis, body = model.jnt_axis[j], model.jnt_bodyid[j]
    limb = model.body_ipos[body] - model.jnt_pos[j]
    ray = limb - (limb * axis).sum(1, keepdims=True) * axis
    along = np.linalg.norm(ray, axis=1) < 1e-6 * (1e-6 + np.linalg.norm(limb, axis=1))
    ray = np.where(along[:, None], np.cross(axis, np.eye(3)[np.abs(axis).argmin(1)]), ray)
    return rotation.to_world(frame.quat[:, body], ray / np.linalg.norm(ray, axis=1, keepdims=True))


def mass_centres(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws the centres of mass of bodies, and of the subtree of each child of the world."""
    model = marks.model
    roots = np.unique(model.body_rootid[1:])
    heavy, roots = model.body_mass > 0, roots[model.body_subtreemass[roots] > 0]
    heavy[0] = False
    centres, trees = (frame.fields[name] + offsets[:, None] for name in ("xipos", "subtree_com"))
    marks.draw("sphere", centres[:, heavy], SMALL * marks.size, BODY)
    marks.draw("sphere 1", trees[:, roots], LARGE * marks.size, TREE)


def support(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws the support polygon of each tree: the hull of its contacts with fixed bodies, seen along gravity.

    A ball marks the centre of mass, projected along gravity to the height of the lowest contact: green inside of the
    polygon, red outside.
    """
    edges, balls, colours = [np.zeros((0, 2, 3))], [np.zeros((0, 3))], [np.zeros((0, 3))]
    model, touches = marks.model, frame.touches
    gravity = np.asarray(model.opt.gravity, float)
    up = -gravity / np.linalg.norm(gravity) if gravity.any() else np.array((0.0, 0.0, 1.0))
    across = rotation.to_world(rotation.from_z(up[None])[0], AXES)[:2].T
    tree, root = (ids[model.geom_bodyid[touches.geom]] for ids in (model.body_treeid, model.body_rootid))
    fixed = (tree < 0).any(1) & (tree >= 0).any(1)
    trees = np.where(tree >= 0, root, -1).max(1)
    for world, body in np.unique(np.column_stack((touches.world, trees))[fixed], axis=0).tolist():
        points = touches.pos[fixed & (touches.world == world) & (trees == body)]
        centre = frame.fields["subtree_com"][world, body]
        ball = centre - up * (up @ centre - (points @ up).min())
        outline = points[hull(points @ across)]
        edges.append(np.stack((outline, np.roll(outline, -1, 0)), 1) + offsets[world])
        balls.append(ball[None] + offsets[world])
        colours.append((GOOD if is_inside(ball @ across, outline @ across) else BAD)[None])
    edge = np.concatenate(edges)
    marks.lines(edge[:, 0], edge[:, 1], LIMIT_RADIUS * marks.size, JOINT)
    marks.draw("sphere", np.concatenate(balls), SMALL * marks.size, np.concatenate(colours))


def hull(points: np.ndarray) -> np.ndarray:
    """Returns the indices of the corners of the convex hull of points (n, 2), counterclockwise.

    Source: Andrew, Another efficient algorithm for convex hulls in two dimensions, 1979.
    """
    z, order, sides = points @ (1, 1j), np.lexsort(points.T[::-1]).tolist(), []
    for way in (order, order[::-1]):
        side: list[int] = []
        for k in way:
            while len(side) > 1 and ((z[side[-1]] - z[side[-2]]).conj() * (z[k] - z[side[-2]])).imag <= 0:
                side.pop()
            side.append(k)
        sides.append(side[:-1])
    return np.array(sides[0] + sides[1] or order, int)


def is_inside(point: np.ndarray, corners: np.ndarray) -> bool:
    """Returns whether a point is inside of a convex polygon (n, 2), which is counterclockwise."""
    z = (corners - point) @ (1, 1j)
    return len(corners) > 2 and bool(((z.conj() * np.roll(z, -1)).imag >= 0).all())


def inertias(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws boxes of equal mass and inertia, along the principal axes."""
    sides = half_sides(frame.fields["body_mass"], frame.fields["body_inertia"])
    at = frame.fields["xipos"] + offsets[:, None]
    quat, there = rotation.product(frame.quat, marks.model.body_iquat), (sides > 0).any(-1)
    marks.draw("box", at[there], sides[there], INERTIA, quat[there], CLEAR)


def half_sides(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Computes half sides (n, nbody, 3) of the boxes from I_x = m / 3 (y^2 + z^2); zero without mass."""
    moment = inertia / np.where(mass > 0, mass, 1.0)[..., None]
    squares = 1.5 * (moment.sum(-1, keepdims=True) - 2 * moment)
    return np.where(mass[..., None] > 0, np.sqrt(np.maximum(squares, 0.0)), 0.0)


def contacts(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws contact points as discs perpendicular to the normal."""
    touches = frame.touches
    pushes = (touches.force != 0).any(1, keepdims=True)
    at, size = touches.pos + offsets[touches.world], marks.size * np.array((DISC_RADIUS, DISC_RADIUS, DISC_HALF))
    marks.draw("cylinder", at, size, np.where(pushes, PUSHING, IDLE), rotation.from_z(touches.normal))


def forces(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws contact forces on the second body."""
    touches = frame.touches
    acts = (touches.force != 0).any(1)
    start = (touches.pos + offsets[touches.world])[acts]
    marks.arrows(start, per_newton(marks) * touches.force[acts], 0.05 * marks.size, FORCE)


def per_newton(marks: Marks) -> float:
    """Returns the length of arrows of forces [m/N]; 0 for a model without mass."""
    gravity = float(np.linalg.norm(marks.model.opt_gravity)) or STANDARD_GRAVITY
    weight = gravity * float(marks.model.body_mass.sum())
    return WEIGHT * marks.extent / weight if weight else 0.0


def actuators(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws forces of actuators: arrows along the axes of their joints, and colours of their tendons.

    The arrow of an actuator with a force range is 1.5 mean body sizes long at the end of the range.  Without a range,
    it has the length of a contact force; a torque counts as its force at a lever of the size of the model.  The
    colour changes from green to red at the limit.
    """
    model = marks.model
    force = frame.fields["actuator_force"][:, model.actuator_outadr]
    limit = np.where(np.asarray(model.actuator_forcelimited, bool), np.abs(model.actuator_forcerange).max(1), np.inf)
    part = force / np.maximum(limit, 1e-12)
    colour = GOOD + (BAD - GOOD) * np.clip(np.abs(part), 0, 1)[..., None]
    joint = moved_joints(model)
    moves = np.flatnonzero(joint >= 0)
    joint = joint[moves]
    lever = np.where(model.jnt_type[joint] == HINGE, marks.extent, 1.0)
    free = force[:, moves] * per_newton(marks) / lever
    length = np.where(np.isfinite(limit[moves]), FULL_FORCE * marks.size * part[:, moves], free)
    vector = (length[..., None] * frame.fields["xaxis"][:, joint]).reshape(-1, 3)
    start = (frame.fields["xanchor"][:, joint] + offsets[:, None]).reshape(-1, 3)
    marks.arrows(start, vector, 1.5 * JOINT_RADIUS * marks.size, colour[:, moves].reshape(-1, 3))
    if (pulls := np.flatnonzero(model.actuator_trntype == TRN_TENDON)).size:
        actuator = np.full(model.ntendon, -1)
        actuator[model.actuator_trnid[pulls, 0]] = pulls
        paths = frame.paths
        drawn = actuator[paths.tendon] >= 0
        world, tendon = paths.world[drawn], paths.tendon[drawn]
        width = 1.5 * marks.looks.mj.tendon_width[tendon][:, None]
        start, end = (points[drawn] + offsets[world] for points in (paths.start, paths.end))
        marks.lines(start, end, width, colour[world, actuator[tendon]])


def tendons(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Draws the paths of spatial tendons around geoms, by group."""
    paths, (group, colours) = frame.paths, tendon_looks(marks.looks)
    shown = np.isin(group, [g for g in marks.shown if g is not None]) & (colours[:, 3] > 0)
    drawn = shown[paths.tendon]
    tendon, offset = paths.tendon[drawn], offsets[paths.world[drawn]]
    width = marks.looks.mj.tendon_width[tendon][:, None]
    marks.lines(paths.start[drawn] + offset, paths.end[drawn] + offset, width, colours[tendon, :3])


def tendon_looks(looks: Looks) -> tuple[np.ndarray, np.ndarray]:
    """Returns group and colour (ntendon, 4) of all tendons."""
    return np.clip(looks.mj.tendon_group, 0, NGROUP - 1), looks.colours("tendon")


def names(marks: Marks, frame: Frame, offsets: np.ndarray) -> None:
    """Writes the names of elements of a kind, except the world body, in the first drawn world."""
    kind = marks.layer.split()[0]
    at = frame.pos if kind == "body" else frame.fields[NAMED[kind]]
    first = 1 if kind == "body" else 0
    marks.label(labels(marks.model.names(kind))[first:], at[0, first:] + offsets[0])


MARKS = {
    "tendons": tendons,
    "joints": joints,
    "joint limits": joint_limits,
    "actuators": actuators,
    "bodies": bodies,
    "mass centres": mass_centres,
    "support": support,
    "inertias": inertias,
    "contacts": contacts,
    "forces": forces,
} | dict.fromkeys(("body names", "joint names", "geom names", "site names"), names)
