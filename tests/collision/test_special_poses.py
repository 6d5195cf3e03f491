"""The deepest contact of every pair of shapes in special poses, in both precisions, against brute force.

The poses are concentric, deep, on one axis, with parallel or almost parallel axes, with faces, edges or centres on
surfaces.  A contact's normal n proves its depth: the shapes overlap by -dist along n.  No direction that the oracle
(`oracles/penetration.py`) finds has less overlap.  The points lie on both surfaces.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.penetration import overlap, signed_distance, solids
from sampling import every
from scenes.poses import aligned_poses, collide, frames

POSES = 40
CUBE = 0.1 * np.array(list(itertools.product((-1, 1), repeat=3)))
# three sizes of each shape: usual, thin, long [m]
SIZES = {
    "plane": ("1 1 1",) * 3,
    "sphere": (".1", ".02", ".3"),
    "capsule": (".05 .12", ".01 .3", ".15 .02"),
    "ellipsoid": (".1 .07 .05", ".2 .02 .2", ".02 .02 .3"),
    "cylinder": (".08 .1", ".3 .01", ".01 .3"),
    "box": (".06 .08 .1", ".3 .3 .02", ".02 .02 .3"),
    "mesh": ("1 1 1", "2 2 .2", ".2 .2 3"),
}
PAIRS = [pair for pair in itertools.combinations_with_replacement(SIZES, 2) if pair != ("plane", "plane")]
CASES = [(pair, sizes) for pair in PAIRS for sizes in ((0, 0), (0, 1), (1, 2), (2, 1))]
SCENE = """<mujoco>
  <asset><mesh name="first" scale="{2}" vertex="{4}"/><mesh name="second" scale="{3}" vertex="{4}"/></asset>
  <worldbody><body mocap="true"><geom {0}/></body><body><freejoint/><geom {1} mass="1"/></body></worldbody></mujoco>"""
# m: error of a distance, and of the overlap along a normal: the normal's error times the size, up to 0.6 m.  The normal
# of cores that almost coincide has an error of about the square root of the rounding error
DISTANCE = {np.float64: 1e-7, np.float32: 2e-6}
OVERLAP = {np.float64: 1e-8, np.float32: 2e-4}
INCLINED = 0.0888 * 0.6  # m: faces and edges that are inclined by up to five degrees have points between them
# MuJoCo's rules: the distances of capsules within 1e-4 of parallel are those at the ends of their overlap; of boxes, a
# face is preferred to a pair of edges whose depth is less by up to 5 %
RULES = {("capsule", "capsule"): (1e-4 * 0.6, 0.0), ("box", "box"): (0.0, 0.05)}


def model_of(pair, sizes):
    numbers = [SIZES[kind][k] for kind, k in zip(pair, sizes, strict=True)]
    geoms = [
        f'type="mesh" mesh="{name}"' if kind == "mesh" else f'type="{kind}" size="{size}"'
        for kind, size, name in zip(pair, numbers, ("first", "second"), strict=True)
    ]
    scales = [size if kind == "mesh" else "1 1 1" for kind, size in zip(pair, numbers, strict=True)]
    return fl.load(SCENE.format(*geoms, *scales, " ".join(map(str, CUBE.ravel()))))


def special_poses(model, rng):
    """Returns frames of both geoms in poses where faces, edges, axes and centres coincide."""
    data = fl.Data(model)
    fl.forward(model, data)
    a, b = solids(model, data.geom_xpos, data.geom_xmat)
    first = np.zeros(3) if a.kind == "plane" else a.local_height(np.eye(3))
    second = b.local_height(np.eye(3))
    offsets = [
        (0.0, 0.0, 0.0, e, e + f, e - f, 0.5 * e, f, 0.9 * (e + f), -0.9 * (e + f), 1e-12, 1e-7)
        for e, f in zip(first, second, strict=True)
    ]
    pos, quat = aligned_poses(rng, offsets, POSES)
    pos[: POSES // 8] = 0.0  # concentric
    return frames(model, pos, quat)


def check(model, pair, points, pose, exact, dtype):
    """Asserts that the contacts of one pose have the exact distance; returns whether there are any."""
    a, b = solids(model, *pose)
    if len(points) == 0:
        assert exact > -DISTANCE[dtype], (pair, exact)
        return False
    n = points.frame[:, :3].astype(float)
    deepest = int(np.argmin(points.dist))
    dist = float(points.dist[deepest])
    constant, relative = RULES.get(pair, (0.0, 0.0))
    allowed = DISTANCE[dtype] + constant + relative * abs(exact)
    # the search of directions finds at most the exact distance, and the normal proves it
    assert dist > exact - allowed, (pair, dist, exact)
    assert abs(dist + overlap(a, b, n[deepest])[0]) < OVERLAP[dtype] + allowed, (pair, dist, exact)
    for point, d, normal in zip(points.pos.astype(float), points.dist.astype(float), n, strict=True):
        assert max(a.beyond(point - 0.5 * d * normal), b.beyond(point + 0.5 * d * normal)) < INCLINED
    return True


@pytest.mark.parametrize(("pair", "sizes"), every(4, CASES))
def test_the_deepest_contact_has_the_exact_depth(pair, sizes, rng):
    model, touching = model_of(pair, sizes), 0
    xpos, xmat = special_poses(model, rng)
    exact = [signed_distance(*solids(model, p, R), rng) for p, R in zip(xpos, xmat, strict=True)]
    for dtype, width in ((np.float64, 8), (np.float32, 16)):
        pos, mat = xpos.astype(dtype).astype(float), xmat.astype(dtype).astype(float)
        found = collide(model, pos, mat, width, Workspace(model, width, dtype))
        for points, *pose, distance in zip(found, pos, mat, exact, strict=True):
            touching += check(model, pair, points, pose, distance, dtype)
    assert touching > POSES // 2
