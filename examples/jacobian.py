"""Moves the hand of an arm to a point: inverse kinematics by damped least squares."""

import sys

import numpy as np

import featherlane as fl

DAMPING = 0.05
TARGET = np.array([0.35, 0.25, 0.45])  # [m]


def main(niter=100):
    model = fl.bundled("arm")
    data = fl.Data(model)
    data.qpos = [0.3, 0.4, 0.0, 0.8, 0.0, 0.4, 0.0]
    low, high = model.jnt_range.T
    for k in range(niter):
        fl.stages.kinematics(model, data)
        fl.stages.frames(model, data)
        fl.stages.com_pos(model, data)
        error = TARGET - data.site("grip").xpos
        if k % 10 == 0 or np.linalg.norm(error) < 1e-6:
            print(f"{k:3d}: {1000 * np.linalg.norm(error):9.4f} mm")
        if np.linalg.norm(error) < 1e-6:
            break

        # J qvel is the velocity of the point: the step solves (J^T J + damping^2) dq = J^T error
        J, _ = fl.query.jac_site(model, data, "grip")
        dq = J.T @ np.linalg.solve(J @ J.T + DAMPING**2 * np.eye(3), error)
        data.qpos = np.clip(data.qpos + dq, low, high)
    print(f"joints: {np.round(data.qpos, 3)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
