"""Finite differences with large displacements, for analytic residuals.

A central difference over 2e-7 avoids nonsmooth points, and keeps nine of sixteen digits.  A long chain, whose inertia
has a condition number of 1e6, then loses six of them in the solve.  An analytic residual has no rows, no clamped
forces, no fluid, and only polynomials of a joint's own coordinate.  There, three differences over e, 2e and 3e are
weighted so that all terms up to the sixth order vanish:

    1.5 D(e) - 0.6 D(2e) + 0.1 D(3e),    D(e) = (g(x + e) - g(x - e)) / 2e.

With e = 1e-3 the rounding error is 5000 times smaller, and the truncation error is of the order of 36 e^6.
Source: Fornberg, Generation of Finite Difference Formulas on Arbitrarily Spaced Grids, 1988.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from featherlane.model.enums import DISABLE_CONSTRAINT
from featherlane.model.model import Model
from featherlane.sensitivity.systems.served import motors_are_affine

FAR = 1e-3  # e [m, rad, m/s, rad/s]
WEIGHTS = 1.5, -0.6, 0.1
# if one of these is not 0, forces are nonsmooth
BENDING = (
    "jnt_actfrclimited",
    "actuator_forcelimited",
    "jnt_stiffnesspoly",
    "dof_dampingpoly",
    "actuator_dampingpoly",
    "opt_density",
    "opt_viscosity",
)


def are_analytic(model: Model, disabled: int, own: Mapping[str, np.ndarray], worlds: np.ndarray) -> np.ndarray:
    """Returns (k,) whether a world's residual is an analytic function of position and velocity, far around its state.

    Args:
        model: the model.
        disabled: flags that are set in addition to the model's.
        own: fields with separate values for each world, (nworld, ...) by name.
        worlds: (k,) indices of the worlds to check.
    """
    rows = not (model.opt_disableflags | disabled) & DISABLE_CONSTRAINT
    bends = np.zeros(len(worlds), bool)
    if rows or model.ntendon or model.nplastic or model.user_actuators or not motors_are_affine(model):
        return bends
    for name in BENDING:
        if name in own:
            bends |= (own[name][worlds].reshape(len(worlds), -1) != 0.0).any(1)
        elif getattr(model, name).any():
            bends[:] = True
    return ~bends
