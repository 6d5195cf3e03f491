"""Computes the forces of an equality constraint: of one world after a pass, and of the present states of a batch.

All contact models have one row for each number of an equality's error, and store the force of the row.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes.record import address
from featherlane.engine.model.enums import EQ_CONNECT, EQ_WELD, EQUALITY
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.engine.simulation.query.contact import NOTHING, contact_tiles
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.data import Data, ready

ROWS = {EQ_CONNECT: 3, EQ_WELD: 6}  # of an equality by its type; all others have one row


def row_number(model: Model, equality: int) -> int:
    """Returns the number of rows of an equality."""
    return ROWS.get(int(model.eq_type[equality]), 1)


def equality_force(model: Model, data: Data, equality: str | int) -> np.ndarray:
    """Returns the force that the solver computed for an equality constraint, by row.

    Args:
        model: the model, with any contact model.
        data: the world after a step or a `forward`.
        equality: name or number of the equality constraint.

    Returns:
        (k,): of a connect the force on its first body at the anchor, in world axes (3,) [N]; of a weld this force, then
        three numbers that act on its rotation error, (6,); of a joint or tendon its force, (1,) [N, N m].  The opposite
        acts on the second body.  Zeros if the equality is not active.

    Raises:
        UnknownNameError: an unknown equality.

    Source: MuJoCo's `efc_force` in the rows whose `efc_type` is mjCNSTR_EQUALITY and whose `efc_id` is the equality.
    """
    world, e = ready(model, data), index_of(model, "equality", equality)
    arrays = world.workspace.arrays
    rows = slice(int(arrays["nrow"][0]))
    kind, ident = arrays["row_type"][rows], arrays["row_id"][rows]
    own = np.flatnonzero((kind == EQUALITY) & (ident == e))
    force = np.zeros(row_number(model, e))
    force[: len(own)] = np.where(
        world.workspace.view("row_present")[own] != 0, world.workspace.view("row_force")[own], 0
    )
    return force


class EqualityForces(Query):
    """Holds an equality, and the forces of its rows, (n, 1, 1, 6); the answer is (n, k).

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        equality: number of the equality.
    """

    loop, number = contact_tiles, 1
    reads = (*DATA.that("lasts"), *DATA.of("count"))

    def __init__(self, model: Model, nworld: int, dtype, equality: int):
        self.rows, self.chosen = row_number(model, equality), np.array([equality], float)
        self.sizes = NOTHING | {"nequality": 1, "equalities": address(self.chosen)}
        self.taken = {"eq_force": np.zeros((nworld, 1, 1, 6), dtype)}

    def answer(self) -> np.ndarray:
        return self.taken["eq_force"][:, 0, 0, : self.rows].copy()
