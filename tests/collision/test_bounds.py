"""Bounding boxes: they never separate a pair within reach, and rarely keep one out of reach."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.broad.bounds import boxes_overlap, boxes_separate, geom_box
from featherlane.engine.lanes.record import python_record
from featherlane.engine.simulation.step.forward import forward_position
from featherlane.engine.simulation.tile.workspace import Workspace

POSES = 400
XML = """<mujoco><worldbody>
<body><freejoint/><geom type="{0}" size="{1}" margin="0.02" contype="0" conaffinity="0"/></body>
<body><freejoint/><geom type="{2}" size="{3}" gap="0.01" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
SIZES = {"box": "0.1 0.2 0.3", "cylinder": "0.2 0.1", "ellipsoid": "0.3 0.1 0.05", "capsule": "0.05 0.3"}
REACH = 0.03


def posed(first, second, rng, parallel):
    """Returns a tile of random poses, its records for uncompiled kernels, and MuJoCo's distances."""
    mj = mujoco.MjModel.from_xml_string(XML.format(first, SIZES[first], second, SIZES[second]))
    model = fl.load(mj)
    ws = Workspace(model, POSES)
    qpos = np.zeros((POSES, 14))
    qpos[:, 7:10] = rng.uniform(-0.8, 0.8, (POSES, 3))
    for k in (3, 10):
        q = rng.normal(size=(POSES, 4))
        qpos[:, k : k + 4] = (1, 0, 0, 0) if parallel else q / np.linalg.norm(q, axis=1, keepdims=True)
    ws.arrays["qpos"][...] = qpos.T
    m, d = python_record(ws.rows.record), python_record(ws.record)
    forward_position(m, d)
    data, distance = mujoco.MjData(mj), np.zeros(POSES)
    for i in range(POSES):
        data.qpos[:] = qpos[i]
        mujoco.mj_kinematics(mj, data)
        distance[i] = mujoco.mj_geomDistance(mj, data, 0, 1, 10.0, None)
    return m, d, distance


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("second", SIZES)
@pytest.mark.parametrize("first", ["box", "cylinder"])
def test_bounding_boxes_reject_only_pairs_beyond_the_margin(first, second, parallel, rng):
    m, d, distance = posed(first, second, rng, parallel)
    near = rng.random(POSES) < 0.5
    parted = boxes_separate(m, d, 0, 1, np.full(POSES, REACH), np.full(POSES, True))
    assert np.array_equal(boxes_separate(m, d, 0, 1, np.full(POSES, REACH), near)[near], parted[near])
    assert not np.any(parted & (distance <= REACH))
    # round shapes do not fill the corners of their boxes
    far = distance > REACH + 0.15
    assert np.count_nonzero(far) > POSES / 10
    assert np.mean(parted[far]) > 0.9


def test_boxes_in_world_axes_hold_the_geom(rng):
    m, d, distance = posed("box", "ellipsoid", rng, False)
    for i in range(2):
        box = geom_box(m, d, i, 0.0)
        centre = np.stack([d.geom_xpos[i][k] for k in range(3)])
        assert np.all(np.stack(box.low) < centre)
        assert np.all(np.stack(box.high) > centre)
    overlap = boxes_overlap(*(geom_box(m, d, i, 0.0) for i in range(2)))
    assert np.all(overlap[distance <= REACH])
    assert not np.all(overlap)


@pytest.mark.parametrize("kind", ["capsule", "sphere"])
def test_a_step_without_bound_frames_finds_the_contacts_of_round_shapes_with_boxes(kind, rng):
    """A shape's box has three axes, also if the shape is symmetric about one."""
    size = {"capsule": 'size="0.08 0.15"', "sphere": 'size="0.1"'}[kind]
    model = fl.load(f"""<mujoco><worldbody><body><freejoint/><geom type="box" size="0.2 0.3 0.1"/></body>
      <body><freejoint/><geom type="{kind}" {size}/></body>
      <body><freejoint/><geom type="cylinder" size="0.1 0.2"/></body></worldbody></mujoco>""")
    bare, framed = (fl.Batch(model, 64, nthread=1) for _ in range(2))
    framed.bind("geom_xmat")
    bare.qpos[:, [0, 1, 2, 7, 8, 9, 14, 15, 16]] = rng.uniform(-0.15, 0.15, (64, 9))
    for first in (3, 10, 17):
        bare.qpos[:, first : first + 4] = rng.standard_normal((64, 4))
    bare.qpos = fl.normalize_quat(model, bare.qpos)
    framed.qpos = bare.qpos
    for batch in (bare, framed):
        batch.step()
    assert bare.ncon.min() > 0
    np.testing.assert_array_equal(bare.ncon, framed.ncon)
    assert bare.qvel.tobytes() == framed.qvel.tobytes()


TOUCHING = """<mujoco><worldbody><body pos="0 .8 0"><geom type="cylinder" size=".017 .044" pos="0 0 .061"/>{low}
  <body pos="0 0 .124"><joint axis="0 0 1"/><geom type="cylinder" size=".032 .02" pos="0 0 .001"/>{high}</body></body>
  </worldbody></mujoco>"""


def test_touching_pairs_are_found_for_any_other_worlds_in_the_tile():
    """Rounding separated the body boxes in some worlds, but the other worlds of the tile still had the pair tested."""
    low, high = ("".join(f'<geom size=".01" pos="{x} 0 {z}"/>' for x in (-0.02, 0, 0.02)) for z in (0.03, 0.01))
    model = fl.load(TOUCHING.format(low=low, high=high))
    assert model.ngroup == 1  # body boxes are tested
    angles = np.random.default_rng(1).uniform(-3, 3, (64, 1))
    batch, data = fl.Batch(model, 64), fl.Data(model)
    batch.qpos[:] = angles
    batch.forward()
    for angle, ncon in zip(angles, batch.ncon, strict=True):
        data.qpos[:] = angle
        fl.forward(model, data)
        assert data.ncon == ncon == 1
