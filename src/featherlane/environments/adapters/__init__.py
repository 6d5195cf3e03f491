"""Adapters from `TaskEnv` to the environment interfaces of reinforcement learning libraries.

    tensors.py            `TensorEnv`: PyTorch tensors that share the memory of the observations
    stable_baselines3.py  a `VecEnv`
    rsl_rl.py             a `VecEnv` on tensors
    skrl.py               a `Wrapper`
    torchrl.py            an `EnvBase` of batch size [n]
    shared.py             code shared by the adapters

Each adapter is thin and imports its library on import.  `make(task, num_envs, ...)` takes a task or a task name, and
the keyword arguments of the task and of `TaskEnv`; the adapter's class wraps an existing `TaskEnv`.
Gymnasium and RLlib need no adapter: `gymnasium.make_vec("featherlane/Ant-v5", num_envs=4096)`.
"""
