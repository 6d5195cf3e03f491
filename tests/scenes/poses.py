"""Defines poses of geoms, MuJoCo's contacts in them, and the same poses as tiles."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.engine.collision.collision import collision
from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.contacts import contacts
from oracles.exact_contacts import assert_exact, is_disputed
from oracles.penetration import signed_distance, solids

COMPARED = ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp", "dim", "geom")

# a pair of shapes: the first and the second geom, and the distance of their centres at about contact
PAIRS = {
    "plane-sphere": ('type="plane" size="1 1 1"', 'size="0.3"', 0.4),
    "plane-capsule": ('type="plane" size="1 1 1"', 'type="capsule" size="0.1 0.3"', 0.4),
    "plane-box": ('type="plane" size="1 1 1"', 'type="box" size="0.1 0.2 0.3"', 0.4),
    "sphere-sphere": ('size="0.2"', 'size="0.3"', 0.6),
    "sphere-capsule": ('size="0.2"', 'type="capsule" size="0.1 0.3"', 0.5),
    "capsule-capsule": ('type="capsule" size="0.15 0.2"', 'type="capsule" size="0.1 0.3"', 0.5),
    "plane-ellipsoid": ('type="plane" size="1 1 1"', 'type="ellipsoid" size="0.1 0.2 0.3"', 0.3),
    "plane-cylinder": ('type="plane" size="1 1 1"', 'type="cylinder" size="0.2 0.3"', 0.35),
    "plane-mesh": ('type="plane" size="1 1 1"', 'type="mesh" mesh="rock"', 0.4),
    "sphere-cylinder": ('size="0.2"', 'type="cylinder" size="0.2 0.3"', 0.5),
    "sphere-box": ('size="0.2"', 'type="box" size="0.1 0.2 0.3"', 0.45),
    "capsule-box": ('type="capsule" size="0.15 0.2"', 'type="box" size="0.1 0.2 0.3"', 0.55),
    "box-box": ('type="box" size="0.1 0.2 0.3"', 'type="box" size="0.15 0.2 0.1"', 0.5),
}
IDENTITY = (1.0, 0.0, 0.0, 0.0)
EXACT = 1e-7  # m: error of the distance and of the overlap along the normal, where centres coincide
# an antiprism with seven and seven corners and one more at the side
ROCK = [(0.25 * np.cos(a), 0.2 * np.sin(a), -0.15) for a in np.arange(7) * 2 * np.pi / 7]
ROCK += [(0.25 * np.cos(a), 0.2 * np.sin(a), 0.15) for a in (np.arange(7) + 0.4) * 2 * np.pi / 7] + [(0.3, 0.0, 0.0)]

SCENE = """
<mujoco>
  <asset><mesh name="rock" vertex="{rock}"/></asset>
  <worldbody>
    <body mocap="true"><geom {first}/></body>
    <body><freejoint/><geom {second}/></body>
  </worldbody>
</mujoco>
"""


def pair_model(first: str, second: str, margin: float = 0.0, gap: float = 0.0):
    """Returns a model of two geoms: the first on a mocap body, the second free."""
    if margin or gap:
        first += f' margin="{margin}" gap="{gap}"'
    rock = " ".join(f"{x:.9g}" for x in np.ravel(ROCK))
    return load(SCENE.format(first=first, second=second, rock=rock))


def random_quat(rng: np.random.Generator, n: int) -> np.ndarray:
    """Returns uniform orientations, (n, 4)."""
    q = rng.standard_normal((n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def random_poses(rng, name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions (n, 2, 3) and quaternions (n, 2, 4), from deep overlap to out of reach."""
    distance = 1.5 * PAIRS[name][2] * rng.uniform(size=(n, 1))
    direction = rng.standard_normal((n, 3))
    first = rng.standard_normal((n, 3))
    second = first + distance * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    quat = np.stack([random_quat(rng, n), random_quat(rng, n)], axis=1)
    return np.stack([first, second], axis=1), quat


def quat_mul(a, b) -> np.ndarray:
    """Returns the product of two quaternions."""
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, np.asarray(a, float), np.asarray(b, float))
    return out


def aligned_poses(rng, offsets, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns degenerate poses: axes parallel, or almost, the second geom where faces, edges and centres coincide.

    A third is in the world's frame, the rest in random frames.  The second geom's axes are rotated by multiples of 45
    degrees, half of them off by a random power of ten from 1e-17 to 1e-2.  Its centre, in the first
    geom's frame, takes each coordinate from the given values.
    """
    pos, quat = np.zeros((n, 2, 3)), np.zeros((n, 2, 4))
    for k in range(n):
        base = np.array(IDENTITY) if k % 3 == 0 else random_quat(rng, 1)[0]
        axis, angle = np.eye(3)[rng.integers(3)], rng.integers(8) * np.pi / 4 if k % 5 else rng.uniform(0, 2 * np.pi)
        turn = quat_mul((np.cos(angle / 2), *np.sin(angle / 2) * axis), np.eye(4)[rng.integers(4)])
        if k % 2:
            turn = quat_mul(turn, (1, *rng.standard_normal(3) * 10.0 ** rng.uniform(-17, -2)))
        turn /= np.linalg.norm(turn)
        away, first = np.zeros(3), rng.standard_normal(3) if k % 4 else np.zeros(3)
        mujoco.mju_rotVecQuat(away, np.array([rng.choice(values) for values in offsets], float), base)
        pos[k], quat[k] = (first, first + away), (base, quat_mul(base, turn))
    return pos, quat


def frames(model, pos, quat) -> tuple[np.ndarray, np.ndarray]:
    """Returns geom_xpos (n, ngeom, 3), geom_xmat (n, ngeom, 9) of a pair model, from poses (n, 2, 3) and (n, 2, 4)."""
    data = mujoco.MjData(model.mj_model)
    out = []
    for p, q in zip(np.asarray(pos, float), np.asarray(quat, float), strict=True):
        data.mocap_pos[0], data.mocap_quat[0] = p[0], q[0]
        data.qpos[:3], data.qpos[3:] = p[1], q[1]
        mujoco.mj_kinematics(model.mj_model, data)
        out.append((data.geom_xpos.copy(), data.geom_xmat.copy()))
    xpos, xmat = zip(*out, strict=True)
    return np.array(xpos), np.array(xmat)


def contacts_of(data) -> dict[str, np.ndarray]:
    """Returns MuJoCo's contacts, by field."""
    return {name: np.array(getattr(data.contact, name)) for name in (*COMPARED, "exclude")}


def oracle(model, xpos, xmat) -> list[dict[str, np.ndarray]]:
    """Returns MuJoCo's contacts in each pose of a pair model."""
    mj, out = model.to_mujoco(), []
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    for p, R in zip(xpos, xmat, strict=True):
        data.geom_xpos[:], data.geom_xmat[:] = p, R
        mujoco.mj_collision(mj, data)
        out.append(contacts_of(data))
    return out


def oracle_of_bodies(model, pos, quat) -> list[dict[str, np.ndarray]]:
    """Returns MuJoCo's contacts as `oracle`, with the bodies moved: fields turn by the bodies' quaternions."""
    mj, out = model.to_mujoco(), []
    data = mujoco.MjData(mj)
    for p, q in zip(np.asarray(pos, float), np.asarray(quat, float), strict=True):
        data.mocap_pos[0], data.mocap_quat[0] = p[0], q[0]
        data.qpos[:3], data.qpos[3:] = p[1], q[1]
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_collision(mj, data)
        out.append(contacts_of(data))
    return out


def fill(ws: Workspace, xpos, xmat) -> None:
    """Writes the poses of up to W worlds into a tile; the other worlds repeat the last one."""
    for w in range(ws.width):
        k = min(w, len(xpos) - 1)
        ws.arrays["geom_xpos"][:, w] = np.ravel(xpos[k])
        ws.arrays["geom_xmat"][:, w] = np.ravel(xmat[k])


def collide(model, xpos, xmat, width: int, ws: Workspace | None = None) -> list[np.recarray]:
    """Returns contacts in each pose, computed in tiles."""
    ws, out = ws or Workspace(model, width), []
    for start in range(0, len(xpos), width):
        fill(ws, xpos[start : start + width], xmat[start : start + width])
        ws.run(collision)
        out += [contacts(model, ws.arrays, w) for w in range(min(width, len(xpos) - start))]
    return out


def same_contacts(ours: np.recarray, theirs: dict[str, np.ndarray], tolerance: float) -> None:
    """Asserts that one world has MuJoCo's contacts, in its order."""
    assert len(ours) == len(theirs["dist"])
    for name in (*COMPARED, "exclude"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=tolerance, err_msg=name)


def equal_in(model, poses, width: int, tolerance: float = 1e-10) -> list[int]:
    """Asserts MuJoCo's contacts in poses (position of the second geom, both quaternions); returns their numbers."""
    pos = [((0, 0, 0), p) for p, _, _ in poses]
    quat = [(a, b) for _, a, b in poses]
    return equal_at(model, pos, quat, width, tolerance)


def equal_at(model, pos, quat, width: int, tolerance: float = 1e-10) -> list[int]:
    """Asserts MuJoCo's contacts in poses of both geoms, or exact ones; returns the number in each."""
    xpos, xmat = frames(model, pos, quat)
    found = collide(model, xpos, xmat, width)
    for p, R, ours, theirs in zip(xpos, xmat, found, oracle(model, xpos, xmat), strict=True):
        same_or_exact_contacts(model, p, R, ours, theirs, tolerance)
    return [len(c) for c in found]


def same_or_exact_contacts(model, p, R, ours: np.recarray, theirs: dict[str, np.ndarray], tolerance: float) -> bool:
    """Asserts MuJoCo's contacts in one pose, or the exact depth if MuJoCo's are not exact; returns whether they are."""
    rng = np.random.default_rng(0)
    if int(model.geom_type[1]) in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF):
        same_contacts(ours, theirs, tolerance)
        return True
    a, b = solids(model, p, R)
    if not is_disputed(a, b, theirs, rng):
        same_contacts(ours, theirs, tolerance)
        return True
    limit = float(np.max(model.geom_margin) * 2.0) + float(np.max(model.geom_gap) * 2.0)
    assert_exact(a, b, ours, signed_distance(a, b, rng), limit, EXACT, EXACT)
    return False
