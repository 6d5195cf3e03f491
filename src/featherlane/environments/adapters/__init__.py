"""Doors: worlds of a task in the habits of the libraries that learn.

    tensors.py            `TensorEnv`: PyTorch's tensors on the memory of the observations
    stable_baselines3.py  a `VecEnv`
    rsl_rl.py             a `VecEnv` on tensors
    skrl.py               a `Wrapper`
    torchrl.py            an `EnvBase` of batch size [n]
    rllib.py              names for RLlib's environment runners
    opening.py            what they have in common

Each is thin, and imports its library when it is imported itself.  Its `make(task, num_envs, ...)` takes a task or a
name, and the keyword arguments of both the task and `TaskEnv`; its class goes around a `TaskEnv` that is there.
Gymnasium's own habit needs no door: `gymnasium.make_vec("featherlane/Ant-v5", num_envs=4096)`.
"""
