"""Kernels of the tasks' observations, rewards and terminations, with the order of NumPy's operations.

They give the bits of the NumPy functions of the tasks.  NumPy sums fewer than 8 numbers in turn; from 8 numbers on (at
most 128) it keeps eight sums, adds them in pairs, and adds the rest.

A task has up to three kernels (d, p, at_start), with the record p of LaneFunctions: `remember` writes p.next before a
step, which is p.before when `score` adds the terms of p.reward after it; `observe` writes p.obs.  at_start is 1 for
the first observation of an episode.
"""

from __future__ import annotations

from typing import Any

from featherlane import Batch
from featherlane.lanes import Kernel, kernel, where


def sum_of_squares(value: Kernel) -> Kernel:
    """Returns a kernel (d, p, n) that sums the squares of value(d, p, 0) to value(d, p, n - 1), n up to 128."""

    @kernel
    def square(d, p, k):
        """Returns value(d, p, k)^2."""
        x = value(d, p, k)
        return x * x

    @kernel
    def total(d, p, n):
        """Returns the sum of the first n squares, in NumPy's order."""
        result = 0.0
        if n < 8:
            for k in range(n):
                result += square(d, p, k)
        else:
            # eight sums, of every eighth square
            sums = tuple(square(d, p, k) for k in range(8))
            for k in range(8, n - n % 8, 8):
                sums = tuple(sums[j] + square(d, p, k + j) for j in range(8))
            result = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
            # the rest
            for k in range(n - n % 8, n):
                result += square(d, p, k)
        return result

    return total


@kernel
def control(d, p, k):
    """Returns control k."""
    return d.ctrl[k]


controls_squared = sum_of_squares(control)


@kernel
def add_reward(p, term):
    """reward <- reward + term."""
    p.reward[0] = p.reward[0] + term


@kernel
def observe_state(d, p, hidden, nq, nv):
    """obs <- positions from number `hidden` on, then velocities; returns the number of values."""
    for i in range(hidden, nq):
        p.obs[i - hidden] = d.qpos[i]
    for i in range(nv):
        p.obs[nq - hidden + i] = d.qvel[i]
    return nq - hidden + nv


def state_observer(worlds: Batch, hidden: int) -> Kernel:
    """Returns `observe` of the positions from number `hidden` on, then velocities."""
    nq, nv = worlds.model.nq, worlds.model.nv

    @kernel
    def observe(d, p, at_start):
        """obs <- positions from number `hidden` on and velocities."""
        observe_state(d, p, hidden, nq, nv)

    return observe


@kernel
def is_between(low, x, high):
    """Returns where low < x < high."""
    return (low < x) & (x < high)


@kernel
def survive(p, healthy, reward, terminates):
    """Adds the reward of healthy worlds, a mask, and terminates the others if `terminates` is 1."""
    p.reward[0] = where(healthy, p.reward[0] + reward, p.reward[0])
    if terminates:
        p.terminated[0] = where(healthy, 0.0, 1.0)


def forward_motion(task: Any, nu: int, nbefore: int) -> tuple[Kernel, Kernel]:
    """Returns `remember` of the first `nbefore` positions, and `score` of the velocity along x minus a control cost."""
    weight, cost, dt = float(task.forward_reward_weight), float(task.ctrl_cost_weight), float(task.dt)

    @kernel
    def remember(d, p, at_start):
        """p.next <- the first positions."""
        for k in range(nbefore):
            p.next[k] = d.qpos[k]

    @kernel
    def score(d, p, at_start):
        """reward += weight (x - x_before) / dt - cost |controls|^2."""
        add_reward(p, weight * ((d.qpos[0] - p.before[0]) / dt))
        add_reward(p, -(cost * controls_squared(d, p, nu)))

    return remember, score
