"""Defines the result of an integration with error control."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherlane.engine.model.status import StatusCode


class IntegrationStatus(StatusCode):
    """How the integration of a world ended."""

    REACHED = 0  # at `until`; every step met the accuracy
    FORCED = 1  # at `until`; some steps of the smallest size did not meet the accuracy
    EVENT = 2  # at the first sign change of the event function
    STEP_LIMIT = 3  # before `until`, after the largest number of attempts
    NON_FINITE = 4  # before `until`, because steps of the smallest size give NaN or infinite values


class Integration(NamedTuple):
    """Describes an integration with error control; arrays of a batch have a leading axis of n worlds.

    Attributes:
        time: (n,) final time [s].
        status: (n,) int, an `IntegrationStatus` each.
        accepted: (n,) int, accepted steps.
        rejected: (n,) int, rejected attempts.
        forced: (n,) int, accepted steps of size `min_step` whose error exceeds the accuracy.
        evaluations: (n,) int, computed time steps: three for each attempt of `rk4`, four for each attempt of other
            integrators.
        smallest_step: (n,) smallest accepted step [s]; infinite without steps.
        largest_step: (n,) largest accepted step [s]; 0 without steps.
        error: (n,) largest estimate of the local error among the accepted steps that are not forced.
        times: (k,) requested times [s].
        recorded: field -> (n, k, ...) values at the requested times; NaN at times that a world did not reach.
    """

    time: np.ndarray
    status: np.ndarray
    accepted: np.ndarray
    rejected: np.ndarray
    forced: np.ndarray
    evaluations: np.ndarray
    smallest_step: np.ndarray
    largest_step: np.ndarray
    error: np.ndarray
    times: np.ndarray
    recorded: dict[str, np.ndarray]
