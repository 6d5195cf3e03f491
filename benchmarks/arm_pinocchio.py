"""Prints Pinocchio's torques for recorded_arm.py, which runs this file under an interpreter with Pinocchio.

    python arm_pinocchio.py URDF states.npz

The file has positions, velocities and accelerations (n, 6), and inertial parameters in Featherlane's order, (6, 10).
The torques by Pinocchio's regressor, (n, 6), are written to torques.npy in the same folder.
"""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

# its order is m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
ORDER = [9, 6, 7, 8, 0, 3, 1, 4, 5, 2]


def main(urdf: str, path: str) -> None:
    model = pin.buildModelFromUrdf(urdf)
    data = model.createData()
    with np.load(path) as given:
        x = given["parameters"][:, ORDER].ravel()
        rows = zip(given["q"], given["v"], given["a"], strict=True)
        torque = [pin.computeJointTorqueRegressor(model, data, *row) @ x for row in rows]
    np.save(Path(path).with_name("torques.npy"), torque)


if __name__ == "__main__":
    main(*sys.argv[1:])
