"""Computes quantities of objects in one world, from its present fields: the kernels are those of a batch's queries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featherlane.dynamics.body.jacobian import JACOBIAN
from featherlane.lanes.record import allocated
from featherlane.model.enums import OBJ_UNKNOWN
from featherlane.simulation.query.jacobian import INERTIA, MATRICES, object_quantity
from featherlane.simulation.tile.library import library
from featherlane.simulation.tile.workspace import Workspace
from featherlane.simulation.world.data import Data


class MatrixBuffer(dict[tuple[int, ...], Callable[[], None]]):
    """Memory for quantities of one world, and the calls that compute them, bound at first use.

    Attributes:
        point: (3,) the given point [m].
        results: (2, 3, nv) both parts of a Jacobian, (nv, nv) the inertia matrix [kg, kg m, kg m^2] or (6,) the motion
            of an object, by quantity.
    """

    def __init__(self, workspace: Workspace):
        nv, nbody = workspace.sizes["nv"], workspace.sizes["nbody"]
        record = allocated(JACOBIAN, {"jac_nv": nv, "jac_nbody": nbody}, 1, np.float64)
        self._records, arrays = (workspace.rows.record, workspace.record, record), record.arrays
        self.point, self._motion = arrays["jac_point"][:, 0], arrays["motion"][:, 0]
        jac = arrays["jac"][: 6 * nv].reshape(2, 3, nv)
        self.results = {quantity: jac for quantity in MATRICES}
        self.results[INERTIA] = arrays["jac_M"][: nv * nv].reshape(nv, nv)

    def __missing__(self, numbers: tuple[int, ...]) -> Callable[[], None]:
        """Binds the stage to its integer arguments, which are converted once."""
        bound = self[numbers] = library().bind(object_quantity, *self._records, numbers=numbers)
        self.results.setdefault(numbers[0], self._motion)
        return bound


def matrix(
    data: Data, quantity: int, kind: int = OBJ_UNKNOWN, i: int = 0, local: int = 0, point: np.ndarray | None = None
) -> np.ndarray:
    """Returns a copy of a quantity of an object: (2, 3, nv) of a Jacobian, (nv, nv) or (6,).

    Args:
        data: the world.
        quantity: JAC, ...
        kind, i: the object, as mjtObj, and its index; kind 0 for a given point of body i.
        local: 1: in the axes of the object; 0: in world axes.
        point: (3,) the given point [m].
    """
    unused = data._matrices  # a buffer in use belongs to the calling thread
    try:
        buffer = unused.pop()
    except IndexError:
        buffer = MatrixBuffer(data.workspace)
    if point is not None:
        buffer.point[:] = point
    buffer[quantity, kind, i, local]()
    found = buffer.results[quantity].copy()
    unused.append(buffer)
    return found
