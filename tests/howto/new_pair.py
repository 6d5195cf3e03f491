"""Adds a pair of shapes from outside the package, as CONTRIBUTING explains: a sphere and a torus.

MuJoCo has no torus: a geom's type is changed after compilation.  `test_howto.py` runs this file in a separate
process, in which no stage is compiled yet.
"""

from __future__ import annotations

import mujoco
import numpy as np

import featherlane as fl
from featherlane.collision.frame import frame_of
from featherlane.collision.slot import append
from featherlane.lanes import sqrt
from featherlane.model.enums import SDF, SPHERE
from featherlane.model.pair import PairFunction, register
from featherlane.spatial.vector import axpy3, load3, load9, mat_mul_vec, mat_t_mul_vec, normalize3, sub3

NUMBER = 10  # below FIRST_SCALAR: all worlds at once
RING, TUBE, BALL = 0.3, 0.1, 0.05  # m
XML = f"""<mujoco><option gravity="0 0 0"/><worldbody>
  <geom name="torus" size="{RING + TUBE}" euler="20 30 0"/>
  <body><freejoint/><geom size="{BALL}" margin=".05"/></body></worldbody></mujoco>"""
TOLERANCE = 1e-14  # m: rounding


@fl.kernel
def sphere_torus_points(m, d, g, h, near, limit):
    """Finds up to one point: from the sphere's centre and the nearest point of the tube's centre circle."""
    R, centre, ball = load9(d.geom_xmat, 9 * h), load3(d.geom_xpos, 3 * h), load3(d.geom_xpos, 3 * g)
    p = mat_t_mul_vec(R, sub3(ball, centre))
    s = m.geom_size[3 * h] / sqrt(p[0] * p[0] + p[1] * p[1])
    n, height = normalize3(sub3((s * p[0], s * p[1], 0.0 * s), p))
    n, dist = mat_mul_vec(R, n), height - m.geom_size[3 * h + 1] - m.geom_size[3 * g]
    append(d, 0, near & (dist <= limit), dist, axpy3(m.geom_size[3 * g] + 0.5 * dist, n, ball), frame_of(n))


def loaded() -> fl.Model:
    """Returns the model, its first geom a torus."""
    mj = mujoco.MjModel.from_xml_string(XML)
    mj.geom_type[0], mj.geom_size[0] = SDF, (RING, TUBE, 0.0)
    return fl.load(mj)


def is_refused() -> bool:
    """Returns whether the pair raises an error that names it."""
    try:
        loaded()
    except fl.UnsupportedFeatureError as error:
        return "torus" in str(error)
    return False


if __name__ == "__main__":
    assert is_refused(), "before it is registered, the pair is an error"
    register(PairFunction(NUMBER, ((SPHERE, SDF, 1),), sphere_torus_points))
    model = loaded()
    rng, worlds = np.random.default_rng(0), 33
    q = rng.uniform(-0.5, 0.5, (worlds, 3))
    batch, data = fl.Batch(model, nworld=worlds), fl.Data(model)
    batch.qpos[:, :3] = q
    batch.forward()
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, model.mj_model.geom_quat[0])
    local = q @ R.reshape(3, 3)
    gap = np.hypot(np.hypot(local[:, 0], local[:, 1]) - RING, local[:, 2]) - TUBE - BALL
    touching = gap < 0.05
    assert 3 < touching.sum() < worlds - 3
    np.testing.assert_array_equal(np.asarray(batch.ncon).ravel() > 0, touching)
    for k in np.flatnonzero(touching):
        data.qpos[:3] = q[k]
        fl.forward(model, data)
        assert abs(data.contact.dist[0] - gap[k]) < TOLERANCE
