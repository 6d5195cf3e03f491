"""Trains a half-cheetah by RLlib's PPO, with many worlds in each runner; needs pip install '.[rllib]'."""

import math
import sys
import time
import warnings

import ray
from ray.rllib.algorithms.ppo import PPOConfig

# the module before the colon registers the environment in each process; it is a vector environment
TASK = "featherlane.environments:featherlane/HalfCheetah-v5"


def configuration(runners, worlds, length):
    """PPO with `runners` processes of `worlds` worlds, which step `length` times between updates."""
    steps = max(1, runners) * worlds * length
    return (
        PPOConfig()
        .environment(TASK, env_config={"nthread": 1})
        .env_runners(
            gym_env_vectorize_mode="vector_entry_point",
            num_env_runners=runners,
            num_envs_per_env_runner=worlds,
            rollout_fragment_length=length,
        )
        .training(
            train_batch_size=steps,
            minibatch_size=min(4096, steps),
            num_epochs=10,
            lr=3e-4,
            gamma=0.99,
            lambda_=0.95,
            clip_param=0.2,
        )
        .debugging(seed=0)
    )


def main(updates=100, runners=2, worlds=64, length=64):
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    with ray.init(
        address="local",
        num_cpus=1 + runners,
        include_dashboard=False,
        log_to_driver=False,
    ):
        algorithm, start = (
            configuration(runners, worlds, length).build_algo(),
            time.perf_counter(),
        )
        shown = "no episode has ended"
        for update in range(1, updates + 1):
            found = algorithm.train()
            steps = int(found["num_env_steps_sampled_lifetime"])
            # NaN if no episode has ended
            mean = found["env_runners"].get("episode_return_mean", math.nan)
            shown = shown if math.isnan(mean) else f"mean return {mean:.0f}"
            print(
                f"update {update}: {steps} steps in {time.perf_counter() - start:.0f} s, {shown}",
                flush=True,
            )
        algorithm.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
