"""Policies that are evaluated in lanes, and rollouts of worlds with a policy in the loop.

network.py    kernels of a multilayer perceptron: one value per world in each lane
mlp.py        `MLP`: weights, normalization of observations and range of the controls
play.py       kernels of an environment's step: observation, policy, time steps, reward, termination, reset
"""
