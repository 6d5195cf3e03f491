"""Computes Jacobians of a body, geom, site or point in the worlds of a batch: checks arguments and shapes results."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.dynamics.body.com import com_pos
from featherlane.dynamics.body.jacobian import JACOBIAN, jacobian
from featherlane.dynamics.body.kinematics import frames, kinematics
from featherlane.errors import ModelError
from featherlane.lanes import Field, Layout
from featherlane.model.assignment import reals
from featherlane.model.model import Model
from featherlane.simulation.query.query import Query
from featherlane.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.simulation.tile.tiles import over_tiles

JACOBIANS = Layout(
    "Jacobians",
    (
        *JACOBIAN.fields,
        Field("jac_kind", "size", doc="kind of the object, as mjtObj; 0: a given point of a body"),
        Field("jac_object", "size", doc="index of the object"),
    ),
)


@over_tiles(p=JACOBIANS)
def jacobian_tiles(m, d, b, p, thread, tile):
    """Computes the Jacobians of one object in the worlds of a tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    copy_step_inputs(b, thread, tile, 0)
    jacobian(m, d, p, p.jac_kind, p.jac_object)
    write_records(b, thread, tile, 0)


def broadcast_points(point: ArrayLike, nworld: int) -> np.ndarray:
    """Returns a point of each world, (nworld, 3).

    Raises:
        ModelError: what does not broadcast to this shape.
    """
    given = reals("point", point, f"are numbers that broadcast to ({nworld}, 3)")
    try:
        return np.broadcast_to(given, (nworld, 3))
    except ValueError:
        text = f"point: got shape {given.shape}, allowed is what broadcasts to ({nworld}, 3)"
        raise ModelError(text) from None


class Jacobians(Query):
    """Holds an object and its given points as kernels take them, checked, and the rows of the Jacobians.

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        kind: kind of the object, as mjtObj; 0 for a given point of a body.
        index: index of the object.
        point: with kind 0, what broadcasts to (nworld, 3).
    """

    loop = jacobian_tiles
    number = 1

    def __init__(self, model: Model, nworld: int, dtype, kind: int, index: int, point: ArrayLike | None = None):
        self.sizes = {"jac_nv": model.nv, "jac_nbody": model.nbody, "jac_kind": kind, "jac_object": index}
        self.jac = np.zeros((nworld, 1, 6, model.nv), dtype)
        self.point: np.ndarray | None = None
        if point is not None:
            self.point = np.ascontiguousarray(broadcast_points(point, nworld), dtype).reshape(nworld, 1, 3)

    def brought(self) -> dict[str, np.ndarray]:
        """Returns the rows of the points, if they are given."""
        return {} if self.point is None else {"jac_point": self.point}

    def taken(self) -> dict[str, np.ndarray]:
        """Returns the rows of the Jacobians."""
        return {"jac": self.jac}

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns (jacp, jacr), each (nworld, 3, nv)."""
        return self.jac[:, 0, :3], self.jac[:, 0, 3:]
