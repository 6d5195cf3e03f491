"""Sensors with meshes as sites or geoms: by their hulls; an error names those that need a ray to hit one."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl

PARITY = 1e-12
SCENE = """<mujoco><asset><mesh name="wedge" vertex="0 0 0 .5 0 0 0 .4 0 0 0 .6 .3 .3 .3"/></asset><worldbody>
<geom name="block" type="mesh" mesh="wedge" pos=".1 .1 .1" euler="20 30 10"/>
<site name="room" type="mesh" mesh="wedge" pos="0 .05 0" euler="10 20 30"/>
<body name="ball" pos=".2 .2 .2"><freejoint/><geom name="ball" size=".1"/></body></worldbody>
<sensor>{sensors}</sensor></mujoco>"""
INSIDE = '<insidesite objtype="geom" objname="ball" site="room"/><contact site="room" data="found dist pos"/>'
APART = '<distance geom1="ball" geom2="block" cutoff="2"/><fromto geom1="block" geom2="ball" cutoff="2"/>'


def test_mesh_hulls_have_the_sensor_values_of_mujoco(rng):
    model = fl.load(SCENE.format(sensors=INSIDE + APART))
    mj = model.to_mujoco()
    data, expected, inside = fl.Data(model), mujoco.MjData(mj), 0
    batch = fl.Batch(model, 9, dtype="float32")
    shown = batch.bind("sensordata")
    for _ in range(40):
        expected.qpos[:3] = rng.uniform(-0.1, 0.5, 3)
        data.qpos = batch.qpos = expected.qpos
        mujoco.mj_forward(mj, expected)
        fl.forward(model, data)
        batch.forward()
        inside += expected.sensordata[0]
        assert data.sensordata[0] == shown[0, 0] == expected.sensordata[0]
        if data.ncon == expected.ncon and np.abs(data.contact.pos - expected.contact.pos).max(initial=0) < PARITY:
            np.testing.assert_allclose(data.sensordata[:6], expected.sensordata[:6], atol=PARITY)
        if expected.sensordata[6] > 0.001:  # separated: two searches for the depth of overlapping shapes may differ
            np.testing.assert_allclose(data.sensordata[6:], expected.sensordata[6:], atol=1e-6)
    assert 3 < inside < 37


@pytest.mark.parametrize(
    ("sensors", "message"),
    [
        ('<touch site="room"/>', "touch, with a mesh site"),
        (INSIDE.replace("/>", ' enclosed="true"/>', 1), "insidesite enclosed"),
    ],
)
def test_unsupported_geoms_are_refused_by_name(sensors, message):
    model = fl.load(SCENE.format(sensors=sensors + '<clock name="clock"/>'))
    data = fl.Data(model)
    data.forward()
    assert data.sensor("clock").data == 0.0
    with pytest.raises(fl.UnsupportedFeatureError, match=message):
        _ = data.sensordata
