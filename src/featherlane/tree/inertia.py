"""The joint-space inertia matrix, column by column, from any inverse dynamics.

Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 6.1, eq. 6.1-6.2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import whole_argument
from featherlane.errors import ArgumentError, ArgumentTypeError


def inertia_from_inverse_dynamics(inverse_dynamics: Callable[[np.ndarray], ArrayLike], n: int) -> np.ndarray:
    """Computes H with column j = ID_delta(e_j) = ID(q, qvel, e_j) - ID(q, qvel, 0).

    Args:
        inverse_dynamics: maps accelerations (n,) to joint forces (n,), or (..., n) for many worlds, at a fixed position
            and velocity. The difference cancels terms that do not depend on the acceleration (gravity, velocity,
            springs), most exactly if these are zero.
        n: number of DoFs, 0 or more.

    Returns:
        H, (..., n, n) [kg, kg m, kg m^2], not symmetrised: its asymmetry shows the rounding of the inverse dynamics.

    Raises:
        ValueError: n below 0, or a result of inverse_dynamics of another shape.

    Cost: n + 1 calls, against one pass of the composite-rigid-body algorithm: a check, or for systems without one.
    """
    if not callable(inverse_dynamics):
        raise ArgumentTypeError(f"inverse_dynamics is a {type(inverse_dynamics).__name__}, allowed is a function")
    whole_argument("n", n, 0, error=ArgumentError)
    bias = _forces(inverse_dynamics, np.zeros(n))
    H = np.empty((*bias.shape, n), dtype=bias.dtype)
    for j in range(n):
        # a new vector for each call: the callable may keep it
        unit = np.zeros(n)
        unit[j] = 1.0
        column = _forces(inverse_dynamics, unit)
        if column.shape != bias.shape:
            raise ArgumentError(
                f"inverse_dynamics returned shape {column.shape} after {bias.shape}, allowed is the same shape"
            )
        H[..., j] = column - bias
    return H


def _forces(inverse_dynamics: Callable[[np.ndarray], ArrayLike], qacc: np.ndarray) -> np.ndarray:
    """Returns a copy of the joint forces for an acceleration: the callable may reuse its result."""
    forces = np.array(inverse_dynamics(qacc))
    if forces.dtype.kind in "biu":
        forces = forces.astype(np.float64)
    if forces.ndim == 0 or forces.shape[-1] != qacc.size:
        raise ArgumentError(f"inverse_dynamics returned shape {forces.shape}, allowed is (..., {qacc.size})")
    return forces
