"""Computes the pose of a tumbling box in every frame from measured markers, some of them hidden."""

import sys

import numpy as np

import featherlane as fl

BOX = """
<mujoco>
  <worldbody>
    <body name="box" pos="0 0 1">
      <freejoint/><geom type="box" size=".3 .2 .1"/>
      <site pos=".3 .2 .1"/><site pos="-.3 .2 .1"/><site pos=".3 -.2 .1"/>
      <site pos=".3 .2 -.1"/><site pos="-.3 -.2 -.1"/><site pos="0 -.2 .1"/>
    </body>
  </worldbody>
</mujoco>
"""
NOISE = 1e-3  # [m] standard deviation of a measured coordinate
INCH = 0.0254  # unit of the camera


def main(frames=200):
    model, rng = fl.load(BOX), np.random.default_rng(0)
    data = fl.Data(model)
    data.qvel = 0.5, 0.0, 3.0, 1.0, 4.0, 2.0

    # measured markers in the world frame [inch]; hidden ones are NaN
    seen, poses = np.empty((frames, model.nsite, 3)), np.empty((frames, 3, 3))
    for i in range(frames):
        fl.step(model, data)
        fl.stages.kinematics(model, data)
        seen[i], poses[i] = data.site_xpos, data.body("box").xmat.reshape(3, 3)
    seen = (seen + NOISE * rng.standard_normal(seen.shape)) / INCH
    visible = rng.random(seen.shape[:2]) < 0.7
    seen[~visible] = np.nan

    # all frames in one call
    found = fl.registration.register_points(model.site_pos, seen, weights=visible)
    unique = found.status == fl.registration.RegistrationStatus.UNIQUE
    # no three markers are collinear
    np.testing.assert_array_equal(unique, visible.sum(1) >= 3)
    print(f"{unique.sum()} of {frames} frames show at least three markers")

    # [rad], small angles
    error = np.linalg.norm(found.rotation - poses, axis=(1, 2))[unique] / np.sqrt(2)
    scale = np.median(found.scale[unique])
    print(
        f"orientation within {np.degrees(np.median(error)):.2f} degrees (median); a unit is {1 / scale:.5f} m"
    )
    assert np.median(error) < 0.01 and abs(1 / scale / INCH - 1) < 0.01


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
