"""Poses of geoms, MuJoCo's contacts in them, and the same poses as tiles."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.collision.collision import collision
from featherlane.collision.contact import contacts
from featherlane.model import load
from featherlane.simulation.workspace import Workspace

COMPARED = ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp", "dim", "geom")

# a pair of shapes: what the first and the second geom are, and how far apart their centres are about to touch
PAIRS = {
    "plane-sphere": ('type="plane" size="1 1 1"', 'size="0.3"', 0.4),
    "plane-capsule": ('type="plane" size="1 1 1"', 'type="capsule" size="0.1 0.3"', 0.4),
    "plane-box": ('type="plane" size="1 1 1"', 'type="box" size="0.1 0.2 0.3"', 0.4),
    "sphere-sphere": ('size="0.2"', 'size="0.3"', 0.6),
    "sphere-capsule": ('size="0.2"', 'type="capsule" size="0.1 0.3"', 0.5),
    "capsule-capsule": ('type="capsule" size="0.15 0.2"', 'type="capsule" size="0.1 0.3"', 0.5),
}

SCENE = """
<mujoco>
  <worldbody>
    <body mocap="true"><geom {first}/></body>
    <body><freejoint/><geom {second}/></body>
  </worldbody>
</mujoco>
"""


def pair_model(first: str, second: str, margin: float = 0.0, gap: float = 0.0):
    """A model of two geoms: the first on a mocap body, the second free."""
    if margin or gap:
        first += f' margin="{margin}" gap="{gap}"'
    return load(SCENE.format(first=first, second=second))


def random_quat(rng: np.random.Generator, n: int) -> np.ndarray:
    """Uniform orientations, (n, 4)."""
    q = rng.standard_normal((n, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def frames(model, pos, quat) -> tuple[np.ndarray, np.ndarray]:
    """geom_xpos (n, ngeom, 3) and geom_xmat (n, ngeom, 9) of a pair model, from poses (n, 2, 3) and (n, 2, 4)."""
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
    """MuJoCo's contacts, by field."""
    return {name: np.array(getattr(data.contact, name)) for name in (*COMPARED, "exclude")}


def oracle(model, xpos, xmat) -> list[dict[str, np.ndarray]]:
    """MuJoCo's contacts in each pose of a pair model."""
    mj, out = model.to_mujoco(), []
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    for p, R in zip(xpos, xmat, strict=True):
        data.geom_xpos[:], data.geom_xmat[:] = p, R
        mujoco.mj_collision(mj, data)
        out.append(contacts_of(data))
    return out


def fill(ws: Workspace, xpos, xmat) -> None:
    """Write the poses of up to W worlds into a tile; the other worlds repeat the last one."""
    for w in range(ws.width):
        k = min(w, len(xpos) - 1)
        ws.arrays["geom_xpos"][:, w] = np.ravel(xpos[k])
        ws.arrays["geom_xmat"][:, w] = np.ravel(xmat[k])


def collide(model, xpos, xmat, width: int, ws: Workspace | None = None) -> list[np.recarray]:
    """Contacts in each pose, computed in tiles."""
    ws, out = ws or Workspace(model, width), []
    for start in range(0, len(xpos), width):
        fill(ws, xpos[start : start + width], xmat[start : start + width])
        ws.run(collision)
        out += [contacts(model, ws.arrays, w) for w in range(min(width, len(xpos) - start))]
    return out


def same_contacts(ours: np.recarray, theirs: dict[str, np.ndarray], tolerance: float) -> None:
    """Assert that one world has MuJoCo's contacts, in its order."""
    assert len(ours) == len(theirs["dist"])
    for name in (*COMPARED, "exclude"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=tolerance, err_msg=name)
