"""Policies that are evaluated in lanes, and rollouts of worlds with a policy in the loop.

network.py      kernels of a multilayer perceptron: one value per world in each lane
mlp.py          `MLP`: weights, normalization of observations, range of the controls; noise
play.py         kernels of an environment's step: policy, time steps, reward, termination, reset
functions.py    `LaneFunctions`: the compiled functions of a task
episodes.py     `PolicyLoop`: calls of the kernels of `play.py` for all worlds of a batch
"""
