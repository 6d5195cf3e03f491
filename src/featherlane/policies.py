"""Policies that are evaluated in vector lanes, for rollouts without Python between the steps.

    policy = featherlane.policies.MLP.from_torch(network)
    rollout = environment.rollout(64, policy, noise)

`environment` is a `featherlane.environments.TaskEnv`.
"""

from featherlane.tools.policy.functions import LaneFunctions
from featherlane.tools.policy.mlp import MLP, gaussian_noise

__all__ = ["MLP", "LaneFunctions", "gaussian_noise"]
