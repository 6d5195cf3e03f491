"""Identifies inertia, rotor inertia and friction of a real arm, a UR10e, from its recorded motions by least squares.

Argument: a clone of the public repository with the recordings,
`git clone https://github.com/shamilmamedov/dynamic_calibration`.  See docs/real-arm.md.
"""

import sys
from pathlib import Path

import numpy as np

import featherlane as fl

FIT = "ur-20_02_10-30sec_12harm", "ur-20_02_12-40sec_12harm"
HELD = "ur-20_02_12-50sec_12harm"
GAINS = np.array([11.976, 11.976, 9.839, 10.76, 10.76, 10.76])  # [N m/A]
RATE, WIDTH = 100.0, 0.018  # samples per second; deviation of the smoothing [s]


def smooth(rows):
    """Return the weighted means of neighbouring rows, by a symmetric bell that adds no delay."""
    time = np.arange(-4 * WIDTH, 4 * WIDTH, 1 / RATE)
    bell = np.exp(-0.5 * (time / WIDTH) ** 2)
    return np.stack([np.convolve(x, bell / bell.sum(), "same") for x in rows.T], axis=1)


def load(path):
    """Return positions, velocities, accelerations and torques, each (samples, 6)."""
    data = np.loadtxt(path, delimiter=",")
    moving = np.flatnonzero(np.abs(data[:, 7:13]).max(axis=1) > 1e-3)
    data = data[moving[0] : moving[-1]]
    # the robot logs at times that are only nearly even
    time = np.arange(data[0, 0], data[-1, 0], 1 / RATE)
    even = np.stack([np.interp(time, data[:, 0], x) for x in data[:, 1:19].T], axis=1)
    q, v, torque = even[:, :6], smooth(even[:, 6:12]), smooth(even[:, 12:] * GAINS)
    a = smooth(np.gradient(v, 1 / RATE, axis=0))
    cut = slice(60, -60)  # at the ends, the means have too few neighbours
    return q[cut], v[cut], a[cut], torque[cut]


def equations(model, q, v, a):
    """Return the derivative of the torques by all unknowns, (samples, 6, unknowns)."""
    batch = fl.Batch(model, len(q))
    batch.qpos[:], batch.qvel[:] = q, v
    # inverse dynamics is linear in ten inertial parameters of each body
    bodies = batch.torque_regressor(a)[:, :, 1:].reshape(len(q), 6, -1)
    # of each joint: rotor inertia, Coulomb and viscous friction, offset
    terms = [a, np.tanh(v / 0.02), v, np.ones_like(v)]
    joints = [term[:, :, None] * np.eye(6) for term in terms]
    return np.concatenate([bodies, *joints], axis=2)


def show(label, torque, found):
    """Print the RMS error of each joint as a share of its torque."""
    share = np.linalg.norm(found - torque, axis=0) / np.linalg.norm(torque, axis=0)
    print(
        f"{label:>20}:", " ".join(f"{100 * x:5.1f}" for x in share), "% of the torque"
    )


def main(path):
    folder = Path(path)
    model = fl.load(folder / "URe/urdf/ur10e.urdf", repair=True)
    nominal = fl.query.inertial_parameters(model, fl.Data(model))[1:].ravel()
    known = len(nominal)

    motions = [load(folder / f"dataset_ur10e/identification_data/{x}.csv") for x in FIT]
    Y = np.concatenate([equations(model, *motion[:3]) for motion in motions])
    torque = np.concatenate([motion[3] for motion in motions])
    # all joints count equally, though their torques differ
    weight = (1 / torque.std(axis=0))[:, None]

    # what the nominal parameters of the URDF leave, by friction only and by all
    rest = ((torque - Y[:, :, :known] @ nominal)[..., None] * weight).ravel()
    rows = (Y * weight).reshape(len(rest), -1)
    friction = np.linalg.lstsq(rows[:, known + 6 :], rest)[0]
    # many changes of the parameters move no joint: this is the least one
    change = np.linalg.lstsq(rows, rest, rcond=1e-6)[0]

    *motion, torque = load(folder / f"dataset_ur10e/identification_data/{HELD}.csv")
    Y = equations(model, *motion)
    fixed = Y[:, :, :known] @ nominal
    print(f"{HELD}: {len(torque)} samples that were not used")
    show("nominal", torque, fixed)
    show("nominal, friction", torque, fixed + Y[:, :, known + 6 :] @ friction)
    show("identified", torque, fixed + Y @ change)
    for k, name in enumerate(["rotor inertia", "Coulomb friction", "viscous friction"]):
        values = change[known + 6 * k : known + 6 * k + 6]
        print(f"{name:>20}:", " ".join(f"{x:5.2f}" for x in values))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
