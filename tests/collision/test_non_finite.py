"""Non-finite poses and sizes: every pair of shapes returns a result, and the other worlds are not affected."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.collision import collision
from featherlane.engine.model.enums import MESH
from featherlane.engine.model.pair import PAIR_FUNCTIONS
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.contacts import contacts
from scenes.poses import random_quat

SHAPES = (
    'type="plane" size="1 1 1"',
    'type="hfield" hfield="land"',
    'type="sphere" size=".1"',
    'type="capsule" size=".1 .2"',
    'type="ellipsoid" size=".1 .2 .3"',
    'type="cylinder" size=".1 .2"',
    'type="box" size=".1 .2 .3"',
    'type="mesh" mesh="rock"',
)
SCENE = """
<mujoco>
  <asset>
    <mesh name="rock" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3 .2 .2 .2"/>
    <hfield name="land" nrow="4" ncol="4" size="1 1 .2 .1" elevation="0 1 0 2 1 3 0 1 2 0 1 1 0 2 3 1"/>
  </asset>
  <worldbody>
    <body mocap="true"><geom {first} margin=".05"/></body>
    <body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom {second} margin=".05"/></body>
  </worldbody>
</mujoco>"""
BAD = (np.nan, np.inf, -np.inf, 1e300, 1e30, 0.0, -1.0)
W = 8
TYPES = [(t1, t2) for _, t1, t2, _ in PAIR_FUNCTIONS if t2 <= MESH]
NAMES = [f"{SHAPES[a].split(chr(34))[1]}-{SHAPES[b].split(chr(34))[1]}" for a, b in TYPES]


@pytest.fixture(params=TYPES, ids=NAMES)
def pair(request):
    first, second = (SHAPES[kind] for kind in request.param)
    return fl.load(SCENE.format(first=first, second=second))


def poses(rng, n: int):
    """Returns geom_xpos and geom_xmat of two overlapping geoms, (6, n) and (18, n)."""
    xpos, xmat = rng.uniform(-0.05, 0.05, (6, n)), np.zeros((18, n))
    for k in range(n):
        for g, quat in enumerate(random_quat(rng, 2)):
            out = np.zeros(9)
            mujoco.mju_quat2Mat(out, quat)
            xmat[9 * g : 9 * g + 9, k] = out
    return xpos, xmat


def tile(model, xpos, xmat) -> Workspace:
    """Returns a tile with separate memory for the model: its sizes may be changed world by world."""
    ws = Workspace(model, W)
    ws.arrays["geom_xpos"][:], ws.arrays["geom_xmat"][:] = xpos, xmat
    return ws


def found(ws, lane: int) -> bytes:
    return contacts(ws.model, ws.arrays, lane).tobytes()


def test_non_finite_frames_and_sizes_terminate_and_affect_only_their_world(pair, rng):
    xpos, xmat = poses(rng, W)
    ws = tile(pair, xpos, xmat)
    ws.run(collision)
    good = [found(ws, lane) for lane in range(W)]
    for value in BAD:
        for _ in range(3):
            ws = tile(pair, xpos, xmat)
            size = ws.rows.record.arrays["geom_size"]
            field = (ws.arrays["geom_xpos"], ws.arrays["geom_xmat"], size)[rng.integers(3)]
            worlds = rng.permutation(W)[: W // 2]
            for w in worlds:
                field[rng.integers(len(field), size=rng.integers(1, len(field) + 1)), w] = value
            ws.bound(collision)()
            assert (ws.arrays["ncon"] <= pair.cand_npoint.sum()).all()
            for w in set(range(W)) - set(worlds):
                assert found(ws, w) == good[w]


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_worlds_with_non_finite_mocap_poses_are_counted_and_the_others_continue(pair, rng):
    worlds, spoiled = fl.Batch(pair, W), fl.Batch(pair, W)
    for batch in (worlds, spoiled):
        batch.mocap_pos[:] = [0, 0, -0.1]
    spoiled.mocap_pos[1] = np.nan
    spoiled.mocap_quat[4] = np.nan
    spoiled.mocap_pos[6, 0, 2] = 1e300
    for batch in (worlds, spoiled):
        batch.step(5)
    others = [0, 2, 3, 5, 7]
    assert spoiled.qpos[others].tobytes() == worlds.qpos[others].tobytes()
    assert np.isfinite(spoiled.qpos).all() and np.isfinite(spoiled.qvel).all()
