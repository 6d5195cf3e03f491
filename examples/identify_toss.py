"""Identifies friction, stiffness, damping and inertia from recorded tosses of a cube, by the cross-entropy method.

Argument: a .npz file with `start`, `position`, `quaternion`, `velocity` and `angular_velocity` of all samples.
`python benchmarks/toss_recording.py ADDRESS tosses.npz` makes it from public data.  See docs/real-impacts.md.
"""

import itertools
import sys

import numpy as np

import featherlane as fl

RATE, HALF = 148.0, 0.0524  # samples per second; half of the cube's width [m]
SCENE = f"""<mujoco><option timestep="{1.0 / RATE}" cone="elliptic"/><worldbody>
  <geom name="board" type="plane" size="1 1 1" pos="0 0 -0.0012" priority="1"/>
  <body name="cube"><freejoint/>
    <inertial pos="0 0 0" mass="0.37" diaginertia="8.1e-4 8.1e-4 8.1e-4"/>
    <geom name="cube" type="box" size="{HALF} {HALF} {HALF}"/></body></worldbody></mujoco>"""
UNKNOWN = {  # unknown: field, its index in a world, initial guess
    "friction": ("geom_friction", (0, 0), 0.3),
    "time constant [s]": ("geom_solref", (0, 0), 0.03),
    "damping ratio": ("geom_solref", (0, 1), 1.0),
    "inertia [kg m2]": ("body_inertia", (1,), 8.1e-4),
}
TOSSES, SAMPLES = (24, 100)  # used for the identification
CANDIDATES, BEST, ROUNDS = (48, 10, 15)


def load(path):
    """Return tosses as (poses (samples, 7), velocity (6,) at the first sample)."""
    with np.load(path) as data:
        pose = np.concatenate([data["position"], data["quaternion"]], axis=1)
        velocity = np.concatenate([data["velocity"], data["angular_velocity"]], axis=1)
        # a velocity is the difference to the sample before, so the first sample has none
        spans = [(a + 1, b) for a, b in itertools.pairwise(data["start"])]
    return [(pose[a:b], velocity[a]) for a, b in spans]


def errors(model, tosses, candidates):
    """Return the mean errors of position [m] and angle [rad], each (candidates, tosses)."""
    n, length = len(tosses), min(SAMPLES, *(len(pose) for pose, _ in tosses))
    batch = fl.Batch(model, len(candidates) * n)
    for k, (field, at, _) in enumerate(UNKNOWN.values()):
        values = batch.expand(field)
        each = np.repeat(candidates[:, k], n)
        # a moment of inertia is that of all three axes
        values[(slice(None), *at)] = each[:, None] if field == "body_inertia" else each
    batch.set_const()
    batch.qpos[:] = np.tile([pose[0] for pose, _ in tosses], (len(candidates), 1))
    batch.qvel[:] = np.tile([velocity for _, velocity in tosses], (len(candidates), 1))
    found = batch.rollout(length - 1, record=("qpos",))["qpos"]
    found = found.reshape(len(candidates), n, length - 1, 7)
    real = np.array([pose[1:length] for pose, _ in tosses])
    distance = np.linalg.norm(found[..., :3] - real[..., :3], axis=-1)
    cosine = np.minimum(abs((found[..., 3:] * real[..., 3:]).sum(-1)), 1.0)
    return distance.mean(-1), 2.0 * np.arccos(cosine).mean(-1)


def show(label, model, tosses, values):
    """Print the errors of some tosses."""
    distance, angle = errors(model, tosses, values[None])
    share, degrees = (50.0 * distance.mean() / HALF, np.degrees(angle.mean()))
    print(f"{label}: {share:.1f} % of the width, {degrees:.1f} degrees")


def main(path):
    model = fl.load(SCENE)
    tosses = load(path)
    order = np.random.default_rng(0).permutation(len(tosses))
    fit = [tosses[k] for k in order[:TOSSES]]
    # a recording of few tosses has no others
    held = [tosses[k] for k in order[TOSSES : 3 * TOSSES]] or fit
    guess = np.array([first for *_, first in UNKNOWN.values()])
    show("before", model, held, guess)
    rng, mean, spread = (np.random.default_rng(0), np.log(guess), np.full(4, 0.4))
    for _ in range(ROUNDS):
        tries = mean + spread * rng.standard_normal((CANDIDATES, len(guess)))
        distance, angle = errors(model, fit, np.exp(tries))
        loss = (distance + HALF * angle).mean(axis=1)
        best = tries[np.argsort(loss)[:BEST]]
        mean, spread = (best.mean(axis=0), best.std(axis=0) + 1e-3)
    show("after", model, held, np.exp(mean))
    for name, first, value in zip(UNKNOWN, guess, np.exp(mean), strict=True):
        print(f"{name:>20}: {first:.3g} -> {value:.3g}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
