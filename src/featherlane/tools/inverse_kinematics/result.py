"""Defines the result of inverse kinematics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherlane.engine.model.status import StatusCode


class IkStatus(StatusCode):
    """How the inverse kinematics of a world ended."""

    REACHED = 0  # all errors of targets and equality constraints are within the tolerance
    STATIONARY = 1  # no small step lowers the errors: a target out of reach, or a local minimum
    ITERATION_LIMIT = 2  # after the largest number of iterations
    NON_FINITE = 3  # the errors of the initial position are NaN, infinite or beyond 1e30


class IkSolution(NamedTuple):
    """Holds positions that bring objects to their targets, for n worlds.

    Attributes:
        qpos: (n, nq) positions [m, rad, quaternions].
        position_error: (n, ntarget) distance of each object to its target [m]; 0 for a target without a position.
        orientation_error: (n, ntarget) angle to the orientation, or between the axis and the direction of `look_at`
            [rad]; 0 for a target without these.
        niter: (n,) int, iterations, those of all restarts.
        status: (n,) int, an `IkStatus` each.
        restart: (n,) int, the restart that found the result; 0: the first start.
        equality_error: (n, neq, 2) distance and angle by which each equality constraint is violated [m], [rad]; 0 if it
            is not active or depends on no DoF that moves.
    """

    qpos: np.ndarray
    position_error: np.ndarray
    orientation_error: np.ndarray
    niter: np.ndarray
    status: np.ndarray
    restart: np.ndarray
    equality_error: np.ndarray
