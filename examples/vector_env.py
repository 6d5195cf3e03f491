"""Defines a Gymnasium vector environment from functions: a humanoid whose reward is its forward speed."""

import sys

import numpy as np
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from featherlane.environments import BatchEnv

FALLEN = 0.6  # height of the trunk [m]


def observation(batch):
    """Return positions, except x and y of the root, and velocities."""
    return np.concatenate([batch.qpos[:, 2:], batch.qvel], axis=1)


def reward(batch, before):
    """Return 1 for a standing humanoid plus its velocity along x, minus the control cost."""
    speed = (batch.qpos[:, 0] - before.qpos[:, 0]) / batch.model.opt.timestep
    return 1.0 + 0.25 * speed - 0.1 * np.square(batch.ctrl).sum(axis=1)


def fallen(batch):
    return batch.qpos[:, 2] < FALLEN


def start(batch, ids, rng):
    """Set upright initial states with noise."""
    batch.qpos[ids, 7:] += rng.uniform(-0.05, 0.05, (len(ids), batch.model.nq - 7))
    batch.qvel[ids] += rng.uniform(-0.1, 0.1, (len(ids), batch.model.nv))


def humanoids(num_envs, **settings):
    """Return the environment; settings are those of `BatchEnv`."""
    settings = {"max_episode_steps": 1000, **settings}
    return BatchEnv(
        "humanoid",
        num_envs,
        observation=observation,
        reward=reward,
        terminated=fallen,
        start=start,
        **settings,
    )


def main(num_envs=256, nstep=300):
    env = RecordEpisodeStatistics(humanoids(num_envs))
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(nstep):
        env.step(env.action_space.sample())
    print(f"{env.episode_count} episodes ended")
    if env.length_queue:
        lengths, returns = np.mean(env.length_queue), np.mean(env.return_queue)
        print(
            f"the last {len(env.length_queue)}: {lengths:.0f} steps and a return of {returns:.0f} on average"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
