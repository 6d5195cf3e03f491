"""Adds a pair of shapes from outside the package, as docs/extending.md explains: a flat height field and a torus.

MuJoCo has no torus: a geom's type is changed after compilation.  `test_howto.py` runs this file in a separate
process, in which no stage is compiled yet.
"""

from __future__ import annotations

import mujoco
import numpy as np

import featherlane as fl
from featherlane.engine.collision.frame import frame_of
from featherlane.engine.collision.slot import append
from featherlane.engine.lanes import dot, sqrt
from featherlane.engine.model.enums import HFIELD, SDF
from featherlane.engine.model.pair import PairFunction, register

NUMBER = 10  # below FIRST_SCALAR: all worlds at once
RING, TUBE = 0.3, 0.1  # m
XML = f"""<mujoco><option gravity="0 0 0"/><asset><hfield name="flat" nrow="2" ncol="2" size="2 2 1 1"/></asset>
  <worldbody><geom type="hfield" hfield="flat" euler="20 30 0"/>
  <body><freejoint/><geom name="torus" size="{RING + TUBE}" margin=".05"/></body></worldbody></mujoco>"""
TOLERANCE = 1e-14  # m: rounding


@fl.kernel
def field_torus_points(m, d, g, h, near, limit):
    """Finds up to one point: the lowest of the torus, over a height field whose heights are all 0."""
    n = d.geom_xmat[g].columns[2]
    R, centre = d.geom_xmat[h], d.geom_xpos[h]
    local = R.T @ n
    flat = sqrt(local.x * local.x + local.y * local.y)
    dist = dot(n, centre - d.geom_xpos[g]) - m.geom_size[h][0] * flat - m.geom_size[h][1]
    # the ring's lowest point is along the part of -n in its plane: the axis times its share, less n
    down = m.geom_size[h][0] / flat * (local.z * R.columns[2] - n)
    point = centre + down - (m.geom_size[h][1] + 0.5 * dist) * n
    append(d, 0, near & (dist <= limit), dist, point, frame_of(n))


def loaded() -> fl.Model:
    """Returns the model, its second geom a torus."""
    mj = mujoco.MjModel.from_xml_string(XML)
    mj.geom_type[1], mj.geom_size[1] = SDF, (RING, TUBE, 0.0)
    return fl.load(mj)


def is_refused() -> bool:
    """Returns whether the pair raises an error that names it."""
    try:
        loaded()
    except fl.UnsupportedFeatureError as error:
        return "sdf" in str(error)
    return False


if __name__ == "__main__":
    assert is_refused(), "before it is registered, the pair is an error"
    register(PairFunction(NUMBER, ((HFIELD, SDF, 1),), field_torus_points))
    model = loaded()
    rng, worlds = np.random.default_rng(0), 33
    q, quat = rng.uniform(0.0, 0.7, (worlds, 3)), rng.normal(size=(worlds, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    batch, data = fl.Batch(model, nworld=worlds), fl.Data(model)
    batch.bind("geom_xmat")
    batch.bind("ncon")
    batch.qpos[:] = np.concatenate([q, quat], axis=1)
    batch.forward()
    ground = np.zeros(9)
    mujoco.mju_quat2Mat(ground, model.mj_model.geom_quat[0])
    n = ground[2::3]
    slope = np.array(batch.geom_xmat[:, 1]).reshape(worlds, 3, 3).transpose(0, 2, 1) @ n
    gap = q @ n - RING * np.hypot(slope[:, 0], slope[:, 1]) - TUBE
    touching = gap < 0.05
    assert 3 < touching.sum() < worlds - 3
    np.testing.assert_array_equal(np.asarray(batch.ncon).ravel() > 0, touching)
    for k in np.flatnonzero(touching):
        data.qpos[:] = batch.qpos[k]
        fl.forward(model, data)
        assert abs(data.contact.dist[0] - gap[k]) < TOLERANCE
