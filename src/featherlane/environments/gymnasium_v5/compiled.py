"""Kernels of the tasks' observations, rewards and terminations, with the order of NumPy's operations.

They give the bits of the NumPy functions of the tasks.  NumPy sums fewer than 8 numbers in turn; from 8 numbers on (at
most 128) it keeps eight sums, adds them in pairs, and adds the rest.
"""

from __future__ import annotations

from typing import Any

from featherlane.prelude import *
from featherlane.lanes import Kernel


def sum_of_squares(value: Kernel) -> Kernel:
    """Returns a kernel (d, p, n) that sums the squares of value(d, p, 0) to value(d, p, n - 1), n up to 128."""

    @kernel
    def square(d, p, k):
        x = value(d, p, k)
        return x * x

    @kernel
    def total(d, p, n):
        s = 0.0
        if n < 8:
            for k in range(n):
                s += square(d, p, k)
        else:
            e = tuple(square(d, p, k) for k in range(8))
            for k in range(8, n - n % 8, 8):
                e = tuple(e[j] + square(d, p, k + j) for j in range(8))
            s = ((e[0] + e[1]) + (e[2] + e[3])) + ((e[4] + e[5]) + (e[6] + e[7]))
            for k in range(n - n % 8, n):
                s += square(d, p, k)
        return s

    return total


@kernel
def control(d, p, k):
    return d.ctrl[k]


controls_squared = sum_of_squares(control)


@kernel
def pay(p, term):
    """reward <- reward + term."""
    p.reward[0] = p.reward[0] + term


@kernel
def observe_state(d, p, hidden, nq, nv):
    """obs <- positions from number `hidden` on, velocities; returns their number."""
    for k in range(hidden, nq):
        p.obs[k - hidden] = d.qpos[k]
    for k in range(nv):
        p.obs[nq - hidden + k] = d.qvel[k]
    return nq - hidden + nv


@kernel
def is_between(low, x, high):
    """Returns where low < x < high."""
    return (low < x) & (x < high)


@kernel
def is_finite(x):
    """Returns where x is neither infinite nor NaN."""
    return x - x == 0.0


@kernel
def state_is_finite(d, nq, nv):
    """Returns the mask of worlds with finite positions and velocities."""
    good = true_mask(d)
    for k in range(nq):
        good = good & is_finite(d.qpos[k])
    for k in range(nv):
        good = good & is_finite(d.qvel[k])
    return good


@kernel
def survive(p, healthy, reward, terminates):
    """Adds the reward of healthy worlds, and terminates the others if `terminates`."""
    p.reward[0] = where(healthy, p.reward[0] + reward, p.reward[0])
    if terminates:
        p.terminated[0] = where(healthy, 0.0, 1.0)


def forward_motion(task: Any, nu: int, nbefore: int) -> tuple[Kernel, Kernel]:
    """Returns `remember` of the first `nbefore` positions, and `score` of the velocity along x minus a control cost."""
    weight, cost, dt = float(task.forward_reward_weight), float(task.ctrl_cost_weight), float(task.dt)

    @kernel
    def remember(d, p, at_start):
        for k in range(nbefore):
            p.next[k] = d.qpos[k]

    @kernel
    def score(d, p, at_start):
        pay(p, weight * ((d.qpos[0] - p.before[0]) / dt))
        pay(p, -(cost * controls_squared(d, p, nu)))

    return remember, score
