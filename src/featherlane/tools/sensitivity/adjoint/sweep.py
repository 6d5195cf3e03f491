"""Backward sweep along a trajectory: gradients of a loss by each state and control, step by step.

    l_k = A_k^T l_k+1 + dL/dx_k,     dL/du_k <- B_k^T l_k+1 + dL/du_k,     dL/dp <- dL/dp + P_k^T l_k+1

Each call takes some of the steps.  Where formulas apply, products are computed without derivatives (product_worlds.py);
otherwise derivatives are computed and multiplied (jacobians.py).
Source: Griewank and Walther, Evaluating Derivatives (2008), ch. 3.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np

from featherlane.tools.sensitivity.adjoint.trajectory import States, Trajectory

#: number and states of a step -> dL/dx (nworld, 2 nv + na) and dL/du (nworld, nu), each None where it vanishes
Loss = Callable[[int, States], tuple[np.ndarray | None, np.ndarray | None]]


class Gradients(NamedTuple):
    """Holds the gradients of a loss through some or all steps.

    Attributes:
        state: (nworld, 2 nv + na) by the state before the first step.
        control: (nworld, n, nu) by the controls of the steps.
        parameters: field -> (nworld, ...).
        switching: (nworld,) minimum over all steps.
    """

    state: np.ndarray
    control: np.ndarray
    parameters: dict[str, np.ndarray]
    switching: np.ndarray


class Steps(Protocol):
    """Propagates costates backwards through steps of a trajectory.

    Attributes:
        each: the largest number of steps of each world in one call.
    """

    each: int

    def entered(self, trajectory: Trajectory) -> AbstractContextManager:
        """Returns a context in which a trajectory with its inputs and model can be processed."""
        ...

    def pull_back(self, states: States, first: int, costate: np.ndarray, direct: np.ndarray) -> Gradients:
        """Propagates through the steps from number `first` on.

        Args:
            states: (nworld, n, ...) before each.
            first: number of the first.
            costate: (nworld, 2 nv + na) after the last.
            direct: (nworld, n, 2 nv + na) partial derivative of the loss by the state before each step.

        The gradients by parameters are (nworld, n, ...), those of each step.
        """
        ...


def backward_sweep(trajectory: Trajectory, final: np.ndarray, loss: Loss, steps: Steps) -> Gradients:
    """Computes gradients by the inputs of a rollout.

    Args:
        trajectory: the rollout.
        final: (nworld, 2 nv + na) dL/dx by the last state.
        loss: called for each step, from the last to the first, with the states before it; returns the partial
            derivatives of the loss by these and by the step's controls.
        steps: propagates costates backwards.
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
                costate, nearest = pulled.state, np.minimum(nearest, pulled.switching)  # NaN where it is unknown
                by_u[:, first : start + last] += pulled.control
                for name, value in pulled.parameters.items():
                    total = by_p.setdefault(name, np.zeros_like(value[:, 0]))
                    for k in reversed(range(value.shape[1])):  # the order of the sum does not depend on `steps.each`
                        total += value[:, k]
    costate, bad = np.array(costate), trajectory.bad
    for array in (costate, by_u, *by_p.values(), nearest):
        array[bad] = np.nan  # a reset world continued from the model's defaults, which have no derivative
    return Gradients(costate, by_u, by_p, nearest)
