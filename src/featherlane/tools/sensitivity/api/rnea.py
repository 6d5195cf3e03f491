"""`rnea_derivatives`: derivatives of the recursive Newton-Euler algorithm, the forces that accelerate the bodies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.api.transition import check_differentiable, given_accelerations, threads
from featherlane.tools.sensitivity.systems.inverse import rnea_columns
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds, as_given, borrowed
from featherlane.tools.sensitivity.worlds.force_rates import force_rates


class RneaDerivatives(NamedTuple):
    """Holds derivatives of tau = RNEA(q, v, a), the forces that accelerate bodies: DtauDq[..., i, j] = dtau_i / dq_j.

    Attributes:
        DtauDq: (..., nv, nv) by position, dof by dof.
        DtauDv: (..., nv, nv) by velocity.
        DtauDa: (..., nv, nv) by acceleration: the inertia matrix of the bodies, without armatures.
    """

    DtauDq: np.ndarray
    DtauDv: np.ndarray
    DtauDa: np.ndarray


def rnea_derivatives(
    model: Model, data: Data | Batch, qacc: ArrayLike | None = None, *, nthread: int = 0
) -> RneaDerivatives:
    """Computes derivatives of `rne` by position, velocity and acceleration with the composite-body algorithm.

    Gravity is included.  Forces of joints, actuators, contacts and a fluid, and armatures are not; use
    `inverse_derivatives` for them.  Positions are displaced in the tangent space.

    Args:
        model: the model.
        data: the world, or a batch of the model; neither is changed.
        qacc: accelerations (nv,), for a batch (nworld, nv) [m/s^2, rad/s^2]; None for `data.qacc`, in a batch for those
            of forward dynamics.
        nthread: threads, 0: as many as the work is worth.

    Returns:
        `RneaDerivatives`; for a batch with a leading axis of worlds.

    Raises:
        ModelError: an invalid shape; the model is not the data's.
        TypeError: `data` is neither a `Data` nor a `Batch`.
        UnsupportedFeatureError: the flag `sleep` or `speculative` is on.

    Source: Carpentier, Mansard, Analytical derivatives of rigid body dynamics algorithms (RSS 2018); Pinocchio
        computeRNEADerivatives, whose dtau_da includes armatures.
    """
    nv = check_differentiable(model, data)["nv"]
    with borrowed(OwnWorlds, model, data, 3 * nv, threads(nthread), 0) as worlds:
        out, _ = force_rates(worlds, rnea_columns, given_accelerations(model, data, worlds.batch.nworld, qacc))
    out = as_given(data, out.swapaxes(1, 2))
    return RneaDerivatives(*(out[..., k * nv : (k + 1) * nv] for k in range(3)))
