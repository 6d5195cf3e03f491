"""Trains one policy for five different quadrupeds: random search over a batch of several models.

Source: Mania, Guy and Recht, Simple random search provides a competitive approach to reinforcement learning, 2018.
"""

import sys

import numpy as np

import featherlane as fl

LEGS = ("front_left", "front_right", "hind_left", "hind_right")
# length of the legs, mass of the trunk
ROBOTS = [(0.7, 0.7), (0.85, 1.5), (1.0, 1.0), (1.15, 0.6), (1.3, 1.3)]
PHASE = np.array([0.0, np.pi, np.pi, 0.0])  # diagonal legs swing together
SIDE = np.array([1.0, -1.0, 1.0, -1.0])
# abduction, hip and knee [rad]; steps a second
HOME, RATE = (np.array([0.0, np.pi / 4, -np.pi / 2]), 2.0)
SECONDS, TIMESTEP, FRAMES = 3.0, 0.004, 5


def build(spec, robot):
    """Return a quadruped with other link lengths and another mass of the trunk."""
    length, mass = robot
    for leg in LEGS:
        spec.body(f"{leg}_shank").pos[2] *= length
        for part in ("thigh", "shank"):
            spec.geom(f"{leg}_{part}").fromto[5] *= length
        for part in (spec.geom(f"{leg}_foot"), spec.site(f"{leg}_foot")):
            part.pos[2] = -0.2 * length
    for side in ("trunk_left", "trunk_right"):
        spec.geom(side).mass *= mass


def features(batch, time):
    """Return the inputs of each leg's policy, (nworld, 4, 8): phase, attitude of the trunk, velocities, 1."""
    w, x, y, z = batch.qpos[:, 3:7].T
    pitch, roll = 2 * (w * y - x * z), 2 * (w * x + y * z)
    seen = [
        pitch,
        roll,
        batch.qvel[:, 0],
        batch.qvel[:, 4],
        batch.qvel[:, 3],
        np.ones(len(w)),
    ]
    out = np.empty((len(w), 4, 8))
    out[..., 2:] = np.stack(seen, axis=1)[:, None]
    out[..., [3, 6]] *= SIDE[:, None]
    angle = 2 * np.pi * RATE * time + PHASE
    out[..., 0], out[..., 1] = np.sin(angle), np.cos(angle)
    return out


def walk(batch, policies, record=None):
    """Return the distance before a fall minus half of the sideways distance [m], (nworld,); policies (nworld, 3, 8)."""
    batch.reset(keyframe="home")
    for group, (length, _) in zip(batch.groups, ROBOTS, strict=True):
        group.qpos[:, 2] = 0.283 * length + 0.025  # feet on the floor
    score, upright = np.zeros(batch.nworld), np.ones(batch.nworld, bool)
    for k in range(round(SECONDS / (FRAMES * TIMESTEP))):
        angles = np.einsum(
            "nlf,naf->nla", features(batch, k * FRAMES * TIMESTEP), policies
        )
        batch.ctrl = (HOME + 0.5 * np.tanh(angles)).reshape(-1, 12)
        batch.step(FRAMES)
        _, x, y, _ = batch.qpos[:, 3:7].T
        upright &= 1 - 2 * (x * x + y * y) > 0.8
        score = np.where(upright, batch.qpos[:, 0] - 0.5 * abs(batch.qpos[:, 1]), score)
        if record is not None:
            record.append(batch.qpos.copy())
    return score


def main(generations=20, directions=16, spread=0.05, rate=0.1):
    """Search by antithetic noise: the policy moves towards the better of each pair."""
    tries = 2 * directions + 1  # the last one is the policy without noise
    found, rng = (
        fl.variants("quadruped", ROBOTS * tries, build),
        np.random.default_rng(0),
    )
    batch, policy, best, least = (
        fl.MixedBatch(found.models),
        np.zeros((3, 8)),
        None,
        -np.inf,
    )
    for generation in range(generations):
        noise = rng.normal(size=(directions, 3, 8))
        tried = policy + spread * np.concatenate([noise, -noise, np.zeros((1, 3, 8))])
        worlds = np.empty((batch.nworld, 3, 8))
        worlds[found.place] = np.repeat(tried, len(ROBOTS), axis=0)
        far = walk(batch, worlds)[found.place].reshape(tries, len(ROBOTS))
        if far[-1].min() > least:
            best, least = policy.copy(), far[-1].min()
        # the mean of the five, and the worst one
        score = far.mean(axis=1) + 2.0 * far.min(axis=1)
        better = score[:directions] - score[directions:-1]
        policy += rate * np.tensordot(better, noise, 1) / (directions * score.std())
        if generation % 5 == 4:
            print(f"generation {generation + 1}: distances {np.round(far[-1], 2)} m")
    five, path = fl.variants("quadruped", ROBOTS, build), []
    far = walk(
        fl.MixedBatch(five.models), np.broadcast_to(best, (len(ROBOTS), 3, 8)), path
    )
    print(
        f"one policy of {best.size} numbers, five quadrupeds, {SECONDS:g} s: {np.round(far, 2)} m"
    )
    assert far.min() > 0.5
    return five, np.array(path)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
