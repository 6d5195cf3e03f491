"""Compares contacts with MuJoCo's, if the two engines may choose different points for the same touch.

Closed forms give the same points in the same order.  The general method for convex shapes does not: for two faces
MuJoCo takes the normal of a face, an edge of a few points for a disc, and stops at `ccd_tolerance`.  There, the depth
is compared.  Along a normal n two convex shapes overlap by the sum of their supports, h_A(n) + h_B(-n), and the
depth is the minimum over n; so ours must equal the overlap along our normal, and not exceed that along MuJoCo's.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

import mujoco
import numpy as np

GRAZING = 1e-12  # [m] a contact at the edge of its margin: rounding decides whether it exists
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
GIVEN = ("dist", "pos", "frame", "geom", "dim", "friction", "solref", "solreffriction", "solimp", "includemargin")


def touching(contact) -> dict[str, np.ndarray]:
    """Returns geoms, distances, positions and frames of the contacts inside their margin by more than rounding.

    With adhesion the contacts in the gap act, too.
    """
    keep = np.asarray(contact.dist) < np.asarray(contact.includemargin) - GRAZING
    keep |= np.asarray(contact.adhesion) > 0.0
    return {name: np.asarray(getattr(contact, name))[keep] for name in ("geom", "dist", "pos", "frame")}


def is_general(mj: mujoco.MjModel, pair) -> bool:
    """Returns whether these geoms are a pair of the general method, not of a closed form."""
    low, high = sorted(mj.geom_type[list(pair)])
    if low == PLANE:
        return False
    if low == HFIELD or high == MESH or ELLIPSOID in (low, high):
        return True
    return CYLINDER in (low, high) and low != SPHERE


def split(mj: mujoco.MjModel, contacts, all_general: bool, also: Collection[tuple[int, int]] = ()):
    """Returns the contacts of closed forms, and those of the general method or of the pairs `also`."""
    pairs = [tuple(map(int, pair)) for pair in contacts["geom"]]
    general = np.array([all_general or pair in also or is_general(mj, pair) for pair in pairs], bool)
    return tuple({name: rows[mask] for name, rows in contacts.items()} for mask in (~general, general))


def support(mj: mujoco.MjModel, data: mujoco.MjData, geom: int, n) -> float:
    """Returns max n . x over the points x of a convex geom; of a plane, along its normal."""
    size, d = mj.geom_size[geom], data.geom_xmat[geom].reshape(3, 3).T @ n
    kind, place = mj.geom_type[geom], data.geom_xpos[geom] @ n
    if kind == MESH:
        first, count = mj.mesh_vertadr[mj.geom_dataid[geom]], mj.mesh_vertnum[mj.geom_dataid[geom]]
        return place + (mj.mesh_vert[first : first + count].astype(float) @ d).max()
    if kind == PLANE:
        return place
    if kind == ELLIPSOID:
        return place + np.linalg.norm(size * d)
    if kind == BOX:
        return place + np.abs(d) @ size
    if kind == CYLINDER:
        return place + np.hypot(d[0], d[1]) * size[0] + abs(d[2]) * size[1]
    return place + size[0] + (abs(d[2]) * size[1] if kind == CAPSULE else 0.0)


def depth_error(
    mj: mujoco.MjModel, data: mujoco.MjData, ours, theirs, wrong: Collection[tuple[int, int]] = ()
) -> float:
    """Returns the error [m] of a pair's deepest contact: from the depth, or above the depth along MuJoCo's normal.

    If one engine has no contact of the pair: the difference.  For a height field, which is not convex: the excess of
    MuJoCo's depth over ours.  MuJoCo's is out of one prism, ours out of the surface above all of them (docs/limits.md).
    Of the pairs `wrong`, MuJoCo's contacts are wrong: only the depth along our normal is compared.
    """
    error, a, b = 0.0, _by_pair(ours), _by_pair(theirs)
    for pair in a.keys() | b.keys():
        (dist, n), (truth, face) = a.get(pair, (0.0, None)), b.get(pair, (0.0, None))
        if HFIELD in mj.geom_type[list(pair)]:
            error = max(error, dist - truth)
        elif n is None or (face is None and pair not in wrong):
            error = max(error, abs(dist - truth))
        else:
            normals = (n, n if pair in wrong else face)
            along, other = (support(mj, data, pair[0], x) + support(mj, data, pair[1], -x) for x in normals)
            error = max(error, abs(dist + along), along - other)
    return error


def _by_pair(contacts):
    """Returns: pair of geoms -> distance and normal of its deepest contact."""
    found = {}
    for pair, dist, frame in zip(contacts["geom"], contacts["dist"], contacts["frame"], strict=True):
        pair = tuple(map(int, pair))
        if pair not in found or dist < found[pair][0]:
            found[pair] = dist, np.ravel(frame)[:3]
    return found


def given(data: mujoco.MjData) -> dict[str, np.ndarray]:
    """Returns MuJoCo's contacts in the form that `give_contacts` takes."""
    return {name: np.array(getattr(data.contact, name)) for name in GIVEN}


def pierced(mj: mujoco.MjModel, *contacts) -> set[tuple[int, int]]:
    """Returns the pairs of a capsule and a box with a contact deeper than the radius: the segment is in the box.

    It reads contacts alone, so it serves after a step, when `axis_meets_box` would see other poses.

    Ours have the exact depth, by the general method; MuJoCo's are those of spheres on the segment.
    """
    found = set()
    for one in contacts:
        for pair, (dist, _) in _by_pair(one).items():
            low, high = sorted(pair, key=lambda geom: mj.geom_type[geom])
            if (mj.geom_type[low], mj.geom_type[high]) == (CAPSULE, BOX) and -dist >= mj.geom_size[low, 0]:
                found.add(pair)
    return found


def axis_meets_box(mj: mujoco.MjModel, data: mujoco.MjData) -> set[tuple[int, int]]:
    """Returns the pairs of a capsule and a box whose axis meets at the positions `qpos`: MuJoCo's contacts are wrong.

    MuJoCo's contacts are those of spheres on the axis, the engine's have the exact depth (docs/pairs.md).  Updates the
    kinematics of `data`.
    """
    mujoco.mj_kinematics(mj, data)
    pairs = product(*(map(int, np.flatnonzero(mj.geom_type == kind)) for kind in (CAPSULE, BOX)))
    return {pair for pair in pairs if _crosses(mj, data, *pair)}


def _crosses(mj, data, capsule, box) -> bool:
    """Returns whether a capsule's axis meets a box: the interval of the axis between each two faces, cut together."""
    turn, half = data.geom_xmat[box].reshape(3, 3), mj.geom_size[box]
    start = turn.T @ (data.geom_xpos[capsule] - data.geom_xpos[box])
    along = turn.T @ data.geom_xmat[capsule].reshape(3, 3)[:, 2] * mj.geom_size[capsule, 1]
    along = np.where(along == 0.0, 1e-300, along)
    ends = np.sort([(-half - start) / along, (half - start) / along], axis=0)
    return bool(max(-1.0, ends[0].max()) <= min(1.0, ends[1].min()))
