"""Deep contacts push shapes out of each other, and shapes at rest stay there, in both precisions."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from oracles.penetration import signed_distance, solids

PLATE = """<mujoco><option gravity="0 0 0"/><worldbody>
  <geom name="plate" type="box" size=".3 .3 .02"/>
  <body pos=".05 0 {z}"><freejoint/><geom name="rod" type="capsule" size=".03 .1" mass="1"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("z", "depth"), [(0.0, 0.15), (0.06, 0.09), (0.09, 0.06), (-0.06, 0.09)])
def test_a_capsule_through_a_plate_has_the_exact_depth_and_leaves_it(z, depth, dtype):
    model = fl.load(PLATE.format(z=z))
    batch = fl.Batch(model, 1, dtype=dtype)
    contacts = batch.contacts(output=("dist", "normal"))
    np.testing.assert_allclose(contacts.dist[0, : contacts.found[0]].min(), -depth, rtol=1e-6)
    np.testing.assert_allclose(np.abs(contacts.normal[0, 0]), (0.0, 0.0, 1.0), rtol=0, atol=1e-6)
    batch.step(500)
    reach = float(batch.qpos[0, 2])
    assert abs(reach) > 0.149 and (z == 0.0 or reach * z > 0.0)


LYING = """<mujoco><option timestep=".005"/><worldbody><geom type="box" size="1 1 .5" pos="0 0 -.5"/>
  <body pos="0 0 .02" euler="90 {yaw} 0"><freejoint/><geom type="cylinder" size=".02 .049" mass="1"/></body>
</worldbody></mujoco>"""
# of a float32 batch in 6 s: rolling is neutral, so that rounding of the pose moves the cylinder slowly
SPEED, CREEP = 1e-4, 2e-5


@pytest.mark.parametrize("yaw", [13, 45, 77])
@pytest.mark.parametrize("contact_model", ["lcp", "convex", "coulomb"])
def test_a_float32_cylinder_lies_on_a_box_in_two_points(contact_model, yaw):
    model = fl.load(LYING.format(yaw=yaw))
    model.opt.contact_model = contact_model
    batch = fl.Batch(model, 1, dtype="float32")
    batch.step(200)
    start = np.array(batch.qpos[0, :3])
    for _ in range(120):
        batch.step(10)
        assert batch.ncon[0] == 2
        assert np.abs(batch.qvel[0]).max() < SPEED
    assert np.abs(batch.qpos[0, :3] - start).max() < CREEP


INCLINED = """<mujoco><asset><mesh name="cube" vertex="-1 -1 -1 1 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 1 -1 1 1 1 1 -1 1 1"
  scale=".1 .1 .1"/></asset><worldbody><geom {0}/><body pos="0 {y} {z}"><freejoint/><geom {1}/></body>
</worldbody></mujoco>"""
CUBES = {"mesh": 'type="mesh" mesh="cube"', "box": 'type="box" size=".1 .1 .1"'}


@pytest.mark.parametrize("angle", [1e-5, 1e-4, 5e-4, 9.9e-4, 1.1e-3, 1e-2])
@pytest.mark.parametrize("shapes", [("mesh", "mesh"), ("box", "mesh"), ("mesh", "box")])
def test_the_depth_of_almost_parallel_faces_is_that_of_their_supporting_edges(shapes, angle, rng):
    """The upper cube overhangs the edge of the lower one, and is inclined about this edge's direction."""
    y, z = 0.1, 0.1001
    model = fl.load(INCLINED.format(*(CUBES[name] for name in shapes), y=y, z=z))
    data = fl.Data(model)
    for sign in (-1.0, 1.0):
        data.qpos[:] = [0, y, z, np.cos(0.5 * angle), sign * np.sin(0.5 * angle), 0, 0]
        data.forward()
        exact = signed_distance(*solids(model, data.geom_xpos, data.geom_xmat), rng)
        np.testing.assert_allclose(min(c.dist for c in data.contact), exact, rtol=0, atol=1e-8)
