"""Backwards along a trajectory: how a loss moves with each state and control, step by step.

    l_k = A_k^T l_k+1 + dL/dx_k,     dL/du_k <- B_k^T l_k+1 + dL/du_k,     dL/dp <- dL/dp + P_k^T l_k+1

A part of the steps at a time: products without derivatives where formulas serve (product_worlds.py), else derivatives,
then products (jacobians.py).
Source: Griewank and Walther, Evaluating Derivatives (2008), ch. 3.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np

from featherlane.sensitivity.adjoint.trajectory import States, Trajectory

#: number and states of a step -> dL/dx (nworld, 2 nv + na) and dL/du (nworld, nu), each None where it vanishes
Loss = Callable[[int, States], tuple[np.ndarray | None, np.ndarray | None]]


class Gradients(NamedTuple):
    """Gradients of a loss through some steps, or through all.

    Attributes:
        state: (nworld, 2 nv + na) by the state before the first step.
        control: (nworld, n, nu) by the controls of the steps.
        parameters: field -> (nworld, ...).
        switching: (nworld,) the least of all steps.
    """

    state: np.ndarray
    control: np.ndarray
    parameters: dict[str, np.ndarray]
    switching: np.ndarray


class Steps(Protocol):
    """Takes costates back through steps of a trajectory.

    Attributes:
        each: how many steps of each world at a time, at most.
    """

    each: int

    def entered(self, trajectory: Trajectory) -> AbstractContextManager:
        """Serve a trajectory, whose worlds have inputs and a model of their own."""
        ...

    def pull_back(self, states: States, first: int, costate: np.ndarray, direct: np.ndarray) -> Gradients:
        """Through the steps from number `first` on.

        Args:
            states: (nworld, n, ...) before each.
            first: number of the first.
            costate: (nworld, 2 nv + na) after the last.
            direct: (nworld, n, 2 nv + na) how the loss moves with the states before each.
        """
        ...


def sweep(trajectory: Trajectory, final: np.ndarray, loss: Loss, steps: Steps) -> Gradients:
    """Gradients by what a rollout starts from.

    Args:
        trajectory: the rollout.
        final: (nworld, 2 nv + na) dL/dx by the last state.
        loss: called for each step, from the last to the first, with the states before it: how the loss moves with them
            and with the step's controls directly.
        steps: takes costates back.
    """
    nworld, nx = final.shape
    costate, by_u, nearest = final, np.zeros(trajectory.control.shape), np.full(nworld, np.inf)
    by_p: dict[str, np.ndarray] = {}
    with steps.entered(trajectory):
        for start, states in trajectory.segments():
            length = next(iter(states.values())).shape[1]
            for last in range(length, 0, -steps.each):
                part = slice(max(0, last - steps.each), last)
                direct = np.zeros((nworld, part.stop - part.start, nx))
                some = {name: a[:, part] for name, a in states.items()}
                first = start + part.start
                for k in range(last - part.start - 1, -1, -1):
                    at_x, at_u = loss(first + k, {name: a[:, k] for name, a in some.items()})
                    direct[:, k] = 0.0 if at_x is None else at_x
                    by_u[:, first + k] = 0.0 if at_u is None else at_u
                pulled = steps.pull_back(some, first, costate, direct)
                costate, nearest = pulled.state, np.minimum(nearest, pulled.switching)  # NaN where it is not known
                by_u[:, first : start + last] += pulled.control
                for name, value in pulled.parameters.items():
                    by_p[name] = by_p[name] + value if name in by_p else value
    costate, bad = np.array(costate), trajectory.bad
    for array in (costate, by_u, *by_p.values(), nearest):
        array[bad] = np.nan  # a world that was reset went on from the model's defaults, which nothing moves
    return Gradients(costate, by_u, by_p, nearest)
