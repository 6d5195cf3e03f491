"""Batched inverse kinematics: an arm reaches 64 viewpoints around a globe, each in a separate world."""

import sys

import numpy as np

import featherlane as fl
from featherlane.results import IkStatus

DISTANCE = 0.2  # of the grip from the centre of the globe [m]


def viewpoints(n, centre):
    """Return points around a centre, on the upper half of a sphere and the robot's side, (n, 3) [m]."""
    k = np.arange(n) + 0.5
    height, angle = (
        k / n,
        np.arctan2(-centre[1], -centre[0]) + 2.8 * ((0.618 * k) % 1 - 0.5),
    )
    flat = np.sqrt(1 - height**2)
    return centre + DISTANCE * np.stack(
        [flat * np.cos(angle), flat * np.sin(angle), height], -1
    )


def main(n=64):
    model = fl.bundled("arm")
    batch = fl.Batch(model, n)
    batch.qpos = [0.0, 0.6, 0.0, 1.2, 0.0, 0.6, 0.0]

    # the grip is at its viewpoint, and its z axis points to the centre of the globe
    centre = model.geom("globe").pos
    points = viewpoints(n, centre)
    target = fl.IkTarget(
        ("site", "grip"), position=points, look_at=centre, axis=(0, 0, 1)
    )
    found = fl.ik(
        batch, target, posture=batch.qpos[0], posture_weight=0.02, restarts=10
    )

    reached = found.status == IkStatus.REACHED
    print(f"{reached.sum()} of {n} viewpoints are within reach")
    print(
        f"largest errors of these: {found.position_error[reached].max():.0e} m, ",
        end="",
    )
    print(f"{found.orientation_error[reached].max():.0e} rad")
    if not reached.all():
        print(
            f"the others are {1000 * found.position_error[~reached].mean():.0f} mm away on average"
        )

    batch.bind("site_xpos")
    batch.qpos = found.qpos
    batch.forward()
    assert np.allclose(batch.site("grip").xpos[reached], points[reached], atol=1e-6)
    assert reached.mean() > 0.5
    return batch


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
