"""`inverse_derivatives`: derivatives of inverse dynamics, contacts included."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import one_of
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.enums import Disable, Enable
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.steps import check_inverse
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.api.transition import (
    METHODS,
    InverseDerivatives,
    check_differentiable,
    given_accelerations,
    inverse_fd,
    no_differences,
    threads,
)
from featherlane.tools.sensitivity.systems.inverse import inverse_columns
from featherlane.tools.sensitivity.systems.served import serves
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds, as_given, borrowed
from featherlane.tools.sensitivity.worlds.force_rates import force_rates


def inverse_derivatives(
    model: Model,
    data: Data | Batch,
    *,
    method: Literal["analytic", "finite_difference"] = "analytic",
    actuation: bool = False,
    qacc: ArrayLike | None = None,
    eps: float | None = None,
    centered: bool | None = None,
    nthread: int = 0,
) -> InverseDerivatives:
    """Computes the derivatives of inverse dynamics by position, velocity and acceleration, in the present state.

    `analytic` uses formulas.  The active set of constraints is that of the given acceleration.  Where formulas do not
    apply (`invdiscrete`, the integrator discrete, adhesion; docs/derivatives.md), it differences inverse dynamics, as
    `finite_difference` does.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        method: `analytic` or `finite_difference`.
        actuation: differentiate qfrc_inverse - qfrc_actuator, the forces beyond those of the actuators.
        qacc: accelerations (nv,), for a batch (nworld, nv) [m/s^2, rad/s^2]; None for `data.qacc`, in a batch for those
            of forward dynamics.
        eps: displacement of each coordinate under `finite_difference`; None: 1e-6.
        centered: central differences under `finite_difference`; None: True.
        nthread: threads, 0: as many as the work is worth.

    Returns:
        `InverseDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: an invalid shape; the model is not the data's; an unknown method; eps is not positive, or given with
            `analytic`; as `inverse` does.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: the flag `sleep` or `speculative` is on.

    Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018); MuJoCo
        mjd_inverseFD, which uses finite differences.
    """
    if method != "analytic":
        one_of("method", method, METHODS)
        step, both = 1e-6 if eps is None else eps, True if centered is None else centered
        return inverse_fd(model, data, step, both, actuation, qacc, nthread)
    no_differences(eps, centered)
    nv = check_differentiable(model, data)["nv"]
    check_inverse(model)
    actuation, discrete = flag("actuation", actuation), model.opt_enableflags & int(Enable.INVDISCRETE)
    if not nv or discrete or not serves(model):
        return inverse_fd(model, data, 1e-6, True, actuation, qacc, nthread)
    disabled = 0 if actuation else int(Disable.ACTUATION)
    with borrowed(OwnWorlds, model, data, 3 * nv, threads(nthread), disabled) as worlds:
        acceleration = given_accelerations(model, data, worlds.batch.nworld, qacc)
        out, left = force_rates(worlds, inverse_columns, acceleration)
    if len(left):
        steps = inverse_fd(model, data, 1e-6, True, actuation, acceleration, nthread)
        out[left] = np.concatenate(steps, -2).reshape(out.shape)[left]
    out = as_given(data, out)
    return InverseDerivatives(*(out[..., k * nv : (k + 1) * nv, :] for k in range(3)))
