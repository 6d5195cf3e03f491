"""Computes matrices of one world, Jacobians and the inertia matrix, in new arrays or in the caller's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from featherlane.dynamics.body.jacobian import JACOBIAN
from featherlane.dynamics.inertia.joint_space import dense_inertia
from featherlane.errors import ModelError
from featherlane.lanes import Stage
from featherlane.lanes.record import allocated
from featherlane.simulation.tile.library import library
from featherlane.simulation.tile.workspace import Workspace
from featherlane.simulation.world.data import Data

Pair = tuple[np.ndarray, np.ndarray]
REAL = np.dtype(float)


class MatrixBuffer:
    """Holds memory for matrices of one world, and the calls that compute them.

    Attributes:
        point: (3,) the given point [m].
        linear, angular: (3, nv) both parts of a Jacobian.
        inertia: (nv, nv) the inertia matrix [kg, kg m, kg m^2].
    """

    def __init__(self, workspace: Workspace):
        nv, nbody = workspace.sizes["nv"], workspace.sizes["nbody"]
        record = allocated(JACOBIAN, {"jac_nv": nv, "jac_nbody": nbody}, 1, REAL)
        self._records = workspace.rows.record, workspace.record, record
        self._calls: dict[Any, Callable[[], None]] = {}
        self.point = record.arrays["jac_point"][:, 0]
        self.linear, self.angular = record.arrays["jac"][: 6 * nv].reshape(2, 3, nv)
        self.inertia = record.arrays["jac_M"][: nv * nv].reshape(nv, nv)
        self.shapes = (3, nv), (nv, nv)

    def call(self, *of: Any) -> Callable[[], None]:
        """Returns the call of a stage with integer arguments, which are converted once."""
        found = self._calls.get(of)
        if found is None:
            found = self._calls[of] = library().bind(of[0], *self._records, numbers=of[1:])
        return found


def pair(data: Data, stage: Stage, kind: int, i: int, out: Pair | None, point: np.ndarray | None = None) -> Pair:
    """Returns both parts of a Jacobian, of object i of a kind or of a given point of body i.

    Args:
        data: the world.
        stage: computes them.
        kind: of the object, as mjtObj; 0 for a point.
        i: number of the object.
        out: arrays for the parts, which are returned; None: new ones.
        point: (3,) [m].

    Raises:
        ModelError: `out` is not a pair of writable float64 arrays (3, nv).
    """
    buffer = data.workspace.take_buffer(MatrixBuffer)
    if point is not None:
        buffer.point[:] = point
    run, results = buffer.call(stage, kind, i), (buffer.linear, buffer.angular)
    if out is None:
        run()
        out = results[0].copy(), results[1].copy()
    else:
        try:
            linear, angular = out
            if not (linear.dtype is angular.dtype is REAL and linear.shape == angular.shape == buffer.shapes[0]):
                _check(out, results)
            run()
            linear[...], angular[...] = results
        except (AttributeError, TypeError, ValueError):
            _check(out, results)
            raise
    data.workspace.put_back(buffer)
    return out


def single(data: Data, stage: Stage, out: np.ndarray | None, *numbers: int) -> np.ndarray:
    """Returns the matrix of a stage, (3, nv), or (nv, nv) of `dense_inertia`, in `out` or in a new array.

    Raises:
        ModelError: `out` is not a writable float64 array of this shape.
    """
    buffer = data.workspace.take_buffer(MatrixBuffer)
    run, result = buffer.call(stage, *numbers), buffer.inertia if stage is dense_inertia else buffer.linear
    if out is None:
        run()
        out = result.copy()
    else:
        try:
            if out.dtype is not REAL or out.shape != result.shape:
                _check((out,), (result,))
            run()
            out[...] = result
        except (AttributeError, TypeError, ValueError):
            _check((out,), (result,))
            raise
    data.workspace.put_back(buffer)
    return out


def _check(out: Any, results: tuple[np.ndarray, ...]) -> None:
    """Raises an error if results cannot be copied to `out`."""
    if not isinstance(out, tuple | list) or len(out) != len(results):
        raise ModelError(f"out: got {type(out).__name__}, allowed is a pair of arrays")
    for k, (given, result) in enumerate(zip(out, results, strict=True)):
        if not isinstance(given, np.ndarray):
            got = type(given).__name__
        elif given.shape != result.shape or given.dtype != REAL:
            got = f"{given.dtype} {given.shape}"
        elif not given.flags.writeable:
            got = "a read-only array"
        else:
            continue
        name = f"out[{k}]" if len(results) > 1 else "out"
        raise ModelError(f"{name}: got {got}, allowed is a writable float64 array {result.shape}")
