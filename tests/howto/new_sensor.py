"""Adds a kind of sensor from outside the package, as docs/extending.md explains: how far a body has been lifted.

`test_howto.py` runs this file in a separate process, in which no stage is compiled yet.
"""

from __future__ import annotations

import mujoco
import numpy as np

import featherlane as fl
from featherlane.engine.model.sensor import POSITION, Sensor, register

KIND = int(mujoco.mjtSensor.mjSENS_USER)  # without a function it is not supported
XML = """<mujoco><worldbody><body name="b" pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody>
  <sensor><clock/><user name="lift" dim="1" objtype="body" objname="b" cutoff="2"/></sensor></mujoco>"""


@fl.kernel
def lift(m, d, i):
    """Computes sensor i: height of a body above its rest position."""
    b = m.sensor_objid[i]
    d.sensor_now[m.sensor_adr[i]] = d.xpos[b].z - m.body_pos[b].z


def loaded() -> fl.Model:
    """Returns the model, its second sensor of the new kind."""
    return fl.load(XML)


def is_refused(model: fl.Model) -> bool:
    """Returns whether the new kind raises an error that names it."""
    try:
        fl.Data(model).sensordata  # noqa: B018
    except fl.UnsupportedFeatureError as error:
        return "lift" in str(error)
    return False


if __name__ == "__main__":
    refused = is_refused(loaded())
    register(Sensor(KIND, POSITION, lift))
    model = loaded()
    data, batch = fl.Data(model), fl.Batch(model, nworld=9)
    heights = np.linspace(0.0, 4.0, 9)
    batch.qpos[:, 2] = 1.0 + heights
    measured = batch.bind("sensordata")
    batch.forward()
    data.qpos[2] = 1.5
    fl.forward(model, data)
    assert refused, "before it is registered, the sensor is an error"
    assert data.sensordata[1] == 0.5
    np.testing.assert_array_equal(measured[:, 1], np.minimum(heights, 2.0))  # the engine applies the cutoff
