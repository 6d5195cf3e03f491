"""The deepest contact of every pair of shapes in special poses, in both precisions, against brute force.

The poses are concentric, deep, on one axis, with parallel or almost parallel axes, with faces, edges or centres on
surfaces.
"""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.exact_contacts import assert_exact
from oracles.penetration import overlap, signed_distance, solids
from sampling import every
from scenes.poses import aligned_poses, collide, frames, random_quat

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


@pytest.mark.parametrize(("pair", "sizes"), every(4, CASES))
def test_the_deepest_contact_has_the_exact_depth(pair, sizes, rng):
    model, touching = model_of(pair, sizes), 0
    xpos, xmat = special_poses(model, rng)
    exact = [signed_distance(*solids(model, p, R), rng) for p, R in zip(xpos, xmat, strict=True)]
    for dtype, width in ((np.float64, 8), (np.float32, 16)):
        pos, mat = xpos.astype(dtype).astype(float), xmat.astype(dtype).astype(float)
        found = collide(model, pos, mat, width, Workspace(model, width, dtype))
        for points, *pose, distance in zip(found, pos, mat, exact, strict=True):
            assert_exact(*solids(model, *pose), points, distance, 0.0, DISTANCE[dtype], OVERLAP[dtype])
            touching += len(points) > 0
    assert touching > POSES // 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sizes", [(0, 0), (1, 1), (2, 2)])
def test_the_normal_of_a_sphere_on_the_rim_of_a_cylinder_is_radial(sizes, dtype, rng):
    model = model_of(("sphere", "cylinder"), sizes)
    radius, half = model.geom_size[1][:2]
    angle, gap = rng.uniform(0.0, 2.0 * np.pi, POSES), 10.0 ** rng.uniform(-17, -7, (POSES, 1))
    rim = np.stack([radius * np.cos(angle), radius * np.sin(angle), half * (-1.0) ** np.arange(POSES)], axis=1)
    turn = random_quat(rng, 2 * POSES).reshape(POSES, 2, 4)
    pos = np.zeros((POSES, 2, 3))
    for k in range(POSES):
        mujoco.mju_rotVecQuat(pos[k, 0], (rim + gap * rng.standard_normal((POSES, 3)))[k], turn[k, 1])
    width = 8 if dtype == np.float64 else 16
    xpos, xmat = (x.astype(dtype).astype(float) for x in frames(model, pos, turn))
    found = collide(model, xpos, xmat, width, Workspace(model, width, dtype))
    for points, p, R in zip(found, xpos, xmat, strict=True):
        a, b = solids(model, p, R)
        along = overlap(a, b, points.frame[0, :3].astype(float))[0]
        np.testing.assert_allclose([points.dist[0], -along], -a.radius, rtol=0, atol=OVERLAP[dtype] + 5.0 * gap.max())
