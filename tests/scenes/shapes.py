"""Defines pairs of convex shapes without a scene, and their references."""

from __future__ import annotations

import functools
import os

import mujoco
import numpy as np

from featherlane.engine.collision.convex.pair import closest, convex
from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import Workspace

COMPILED = os.environ.get("FEATHERLANE_MODE") != "python"
KINDS = {"sphere": 2, "capsule": 3, "ellipsoid": 4, "cylinder": 5, "box": 6, "table": 6, "mesh": 7, "prism": 8}
SIZES = {
    "sphere": (0.1, 0, 0),
    "capsule": (0.05, 0.1, 0),
    "ellipsoid": (0.1, 0.12, 0.15),
    "cylinder": (0.1, 0.12, 0),
    "box": (0.1, 0.12, 0.15),
    "table": (0.3, 0.3, 0.15),
}
BOX = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)


def ball(n: int, seed: int = 5) -> np.ndarray:
    """Returns n points of an ellipsoid's surface."""
    v = np.random.default_rng(seed).standard_normal((n, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True) * (0.1, 0.12, 0.15)


# vertices of the meshes of the tests; MuJoCo transforms them into their inertial frame
MESHES = {
    "cube": 0.1 * BOX,
    "tetrahedron": np.array([[0.1, 0, 0], [-0.05, 0.1, 0], [-0.05, -0.1, 0], [0, 0, 0.15]]),
    "stone": ball(40),
    "pebble": ball(500),
    "needle": BOX * (1e-3, 1e-3, 0.2),
    "plate": BOX * (0.1, 0.15, 1e-5),
}


# pairs of every kind
PAIRS = [
    ("sphere", "ellipsoid"),
    ("sphere", "stone"),
    ("capsule", "ellipsoid"),
    ("capsule", "cylinder"),
    ("capsule", "pebble"),
    ("ellipsoid", "ellipsoid"),
    ("ellipsoid", "cylinder"),
    ("ellipsoid", "box"),
    ("ellipsoid", "stone"),
    ("cylinder", "cylinder"),
    ("cylinder", "box"),
    ("cylinder", "stone"),
    ("box", "tetrahedron"),
    ("box", "pebble"),
    ("cube", "stone"),
    ("pebble", "pebble"),
    ("needle", "plate"),
]


def assets() -> str:
    """Returns the meshes as MJCF."""
    rows = (f'<mesh name="{k}" vertex="{" ".join(map(repr, v.ravel().tolist()))}"/>' for k, v in MESHES.items())
    return f"<asset>{''.join(rows)}</asset>"


def geom(kind: str) -> str:
    """Returns a shape as attributes of a geom."""
    if kind in MESHES:
        return f'type="mesh" mesh="{kind}"'
    count = {"sphere": 1, "capsule": 2, "cylinder": 2}.get(kind, 3)
    name = "box" if kind == "table" else kind
    return f'type="{name}" size="{" ".join(map(str, SIZES[kind][:count]))}"'


def few(n: int) -> int:
    """Returns how many of n poses to use: a tenth for uncompiled kernels, which take some milliseconds per pair."""
    return n if COMPILED else max(n // 10, 3)


def turn(axis, angle: float) -> np.ndarray:
    """Returns the rotation by an angle about an axis, (3, 3)."""
    quat, out = np.zeros(4), np.zeros(9)
    mujoco.mju_axisAngle2Quat(quat, np.asarray(axis, float) / np.linalg.norm(axis), angle)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)


def random_turn(rng) -> np.ndarray:
    """Returns a uniform rotation, (3, 3)."""
    q, out = rng.standard_normal(4), np.zeros(9)
    mujoco.mju_quat2Mat(out, q / np.linalg.norm(q))
    return out.reshape(3, 3)


def direction(rng) -> np.ndarray:
    """Returns a uniform unit vector."""
    v = rng.standard_normal(3)
    return v / np.linalg.norm(v)


@functools.cache
def _model():
    bodies = "".join(f'<body><freejoint/><geom {geom(k)} mass="1" contype="1" conaffinity="0"/></body>' for k in MESHES)
    return load(f"<mujoco>{assets()}<worldbody>{bodies}</worldbody></mujoco>")


class Pair:
    """Holds two shapes in a workspace: `put` each, then call `distance` or `points`."""

    def __init__(self):
        self.model = _model()
        self.workspace = Workspace(self.model, 1)
        self.arrays = self.workspace.arrays

    def put(self, side: int, kind: str, pos=(0, 0, 0), mat=None, size=None) -> None:
        """Sets one shape: a kind of `SIZES`, a mesh of `MESHES`, or prism."""
        a, mesh = self.arrays, kind in MESHES
        a["shapes.type"][side] = KINDS["mesh" if mesh else kind]
        a["shapes.data"][side] = list(MESHES).index(kind) if mesh else -1
        a["shapes.size"][3 * side : 3 * side + 3] = SIZES.get(kind, (0, 0, 0)) if size is None else size
        self.move(side, pos, mat)

    def move(self, side: int, pos, mat=None) -> None:
        """Sets one shape's pose."""
        self.arrays["shapes.pos"][3 * side : 3 * side + 3] = pos
        self.arrays["shapes.mat"][9 * side : 9 * side + 9] = np.ravel(np.eye(3) if mat is None else mat)

    def run(self, stage, limit: float) -> None:
        self.arrays["shapes.limit"][0] = limit
        self.workspace.bound(stage)()

    def distance(self, limit: float = 10.0):
        """Returns (signed distance, normal, nearest points (2, 3))."""
        self.run(closest, limit)
        a = self.arrays
        return float(a["convex.dist"][0]), a["convex.normal"].copy(), a["convex.witness"].reshape(2, 3).copy()

    def points(self, limit: float = 0.0):
        """Returns (distances (n,), positions (n, 3), normals (n, 3)) of the contact points."""
        self.run(convex, limit)
        a = self.arrays
        n = int(a["manifold.count"][0])
        dist, pos, normal = (a[f"manifold.{k}"].copy() for k in ("dist", "pos", "normal"))
        return dist[:n], pos.reshape(-1, 3)[:n], normal.reshape(-1, 3)[:n]

    def vertices(self, side: int) -> np.ndarray:
        """Returns a polytope's vertices in world axes, (n, 3)."""
        a, m = self.arrays, self.model
        kind, mesh = int(a["shapes.type"][side]), int(a["shapes.data"][side])
        if kind == KINDS["mesh"]:
            start = m.hull_vertadr[mesh]
            v = m.hull_vert.reshape(-1, 3)[start : start + m.hull_vertnum[mesh]]
        elif kind == KINDS["box"]:
            v = BOX * a["shapes.size"][3 * side : 3 * side + 3]
        else:
            v = a["shapes.prism"].reshape(6, 3)
        R = a["shapes.mat"][9 * side : 9 * side + 9].reshape(3, 3)
        return v @ R.T + a["shapes.pos"][3 * side : 3 * side + 3]


class Oracle:
    """Runs MuJoCo on two geoms in given poses, with its search at the highest accuracy."""

    def __init__(self, first: str, second: str):
        option = '<option ccd_iterations="500" ccd_tolerance="1e-12"/>'
        body = f'<geom {geom(first)} mass="1"/><body><freejoint/><geom {geom(second)} mass="1"/></body>'
        xml = f"<mujoco>{option}{assets()}<worldbody>{body}</worldbody></mujoco>"
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, self.data)

    def place(self, pos, mat) -> None:
        """Sets both geoms' positions (2, 3) and orientations (2, 3, 3)."""
        self.data.geom_xpos[:], self.data.geom_xmat[:] = pos, np.reshape(mat, (2, 9))

    def distance(self, limit: float = 10.0):
        """Returns (signed distance, fromto (2, 3))."""
        fromto = np.zeros(6)
        return mujoco.mj_geomDistance(self.model, self.data, 0, 1, limit, fromto), fromto.reshape(2, 3)

    def points(self):
        """Returns (distances, positions, normals) of its contacts."""
        mujoco.mj_collision(self.model, self.data)
        c = self.data.contact
        return c.dist.copy(), c.pos.copy(), c.frame.reshape(-1, 9)[:, :3].copy()
