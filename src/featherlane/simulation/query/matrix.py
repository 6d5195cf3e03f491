"""Computes matrices of one world, Jacobians and the inertia matrix, and motions of objects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featherlane.dynamics.body.jacobian import JACOBIAN, object_motion
from featherlane.dynamics.inertia.joint_space import dense_inertia
from featherlane.lanes import Stage
from featherlane.lanes.record import allocated
from featherlane.simulation.tile.library import library
from featherlane.simulation.tile.workspace import Workspace
from featherlane.simulation.world.data import Data


class MatrixBuffer(dict[tuple[Stage, tuple[int, ...]], Callable[[], None]]):
    """Memory for matrices of one world, and the calls that compute them: by stage and integers, bound at first use.

    Attributes:
        point: (3,) the given point [m].
        jac: (2, 3, nv) both parts of a Jacobian.
        inertia: (nv, nv) the inertia matrix [kg, kg m, kg m^2].
        motion: (6,) the motion of an object, rotation and translation.
    """

    def __init__(self, workspace: Workspace):
        nv, nbody = workspace.sizes["nv"], workspace.sizes["nbody"]
        record = allocated(JACOBIAN, {"jac_nv": nv, "jac_nbody": nbody}, 1, np.float64)
        self._records = workspace.rows.record, workspace.record, record
        self.point = record.arrays["jac_point"][:, 0]
        self.jac = record.arrays["jac"][: 6 * nv].reshape(2, 3, nv)
        self.motion = record.arrays["motion"][:, 0]
        self.inertia = record.arrays["jac_M"][: nv * nv].reshape(nv, nv)

    def __missing__(self, call: tuple[Stage, tuple[int, ...]]) -> Callable[[], None]:
        """Binds a stage to its integer arguments, which are converted once."""
        stage, numbers = call
        bound = self[call] = library().bind(stage, *self._records, numbers=numbers)
        return bound


def matrix(data: Data, stage: Stage, *numbers: int, point: np.ndarray | None = None) -> np.ndarray:
    """Returns a copy of what a stage computes: (nv, nv) of `dense_inertia`, (6,) of `object_motion`, or (2, 3, nv).

    Args:
        data: the world.
        stage: the stage.
        numbers: its integer arguments.
        point: (3,) for a stage that reads a point [m].
    """
    unused = data._matrices  # a buffer in use belongs to the calling thread
    try:
        buffer = unused.pop()
    except IndexError:
        buffer = MatrixBuffer(data.workspace)
    if point is not None:
        buffer.point[:] = point
    buffer[stage, numbers]()
    results = {dense_inertia: buffer.inertia, object_motion: buffer.motion}
    found = results.get(stage, buffer.jac).copy()
    unused.append(buffer)
    return found
