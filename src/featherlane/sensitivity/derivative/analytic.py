"""Differences over long ways, where what is differenced is analytic.

A central difference over 2e-7 stays clear of whatever bends, and keeps nine of sixteen digits; a long chain, whose
inertia's condition number is 1e6, then loses six of them in the solve.  Where nothing bends (no rows, no clamped
forces, no medium, polynomials of a joint's own coordinate alone) three differences, over e, 2e and 3e, are weighted so
that all terms up to the sixth order vanish:

    1.5 D(e) - 0.6 D(2e) + 0.1 D(3e),    D(e) = (g(x + e) - g(x - e)) / 2e.

With e = 1e-3 rounding is 5000 times less, and what is left out is of the order of 36 e^6.
Source: Fornberg, Generation of Finite Difference Formulas on Arbitrarily Spaced Grids, 1988.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from featherlane.model.enums import DISABLE_CONSTRAINT
from featherlane.model.model import Model
from featherlane.sensitivity.derivative.formulas import motors_are_simple

FAR = 1e-3  # e [m, rad, m/s, rad/s]
WEIGHTS = 1.5, -0.6, 0.1
# where one of these is not 0, forces bend
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
    """(k,) of each world: is its residual an analytic function of position and velocity, far around?

    Args:
        model: the model.
        disabled: flags that are set besides its own.
        own: fields of which each world has numbers of its own, (nworld, ...) by name.
        worlds: (k,) numbers of the worlds that are asked for.
    """
    rows = not (model.opt_disableflags | disabled) & DISABLE_CONSTRAINT
    bends = np.zeros(len(worlds), bool)
    if rows or model.ntendon or model.nplastic or model.user_actuators or not motors_are_simple(model, False):
        return bends
    for name in BENDING:
        if name in own:
            bends |= (own[name][worlds].reshape(len(worlds), -1) != 0.0).any(1)
        elif getattr(model, name).any():
            bends[:] = True
    return ~bends
