"""Computes the moment arms of actuators: the derivative of each actuator's length with respect to the DoFs.

The arms of a world are a sparse matrix, actuator_moment, with the pattern moment_rowadr, moment_rownnz, moment_colind;
queries return it dense.  The arms of an actuator that acts through contacts depend on the contacts, so forward dynamics
are computed for a model that has one.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.actuator.transmission import transmission
from featherlane.engine.dynamics.tendon.length import tendon
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.jacobian import object_accelerations, object_frames
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import over_tiles


@kernel
def output_lengths(m, d):
    """Computes lengths and moments of tendons and actuators from the frames and motion axes."""
    tendon(m, d)
    transmission(m, d)


@over_tiles
def moment_tiles(m, d, b, thread, tile):
    """Computes the moment arms of the actuators in the worlds of a tile.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    if m.nadhesion > 0:
        object_accelerations(m, d)
    else:
        object_frames(m, d)
        output_lengths(m, d)
    write_records(b, thread, tile, s=0)


def moments_need_contacts(model: Model) -> bool:
    """Returns whether an actuator of the model acts through contacts."""
    return model.nadhesion > 0


def dense_moments(model: Model, rows: np.ndarray) -> np.ndarray:
    """Returns the matrices (nout, nv) or (n, nout, nv) of sparse moments (nmoment,) or (n, nmoment)."""
    dense = np.zeros((*rows.shape[:-1], model.nout * model.nv), rows.dtype)
    # rows of the pattern follow each other without gaps; world by world takes half of the time of all at once
    place = model.nv * np.repeat(np.arange(model.nout), model.moment_rownnz) + model.moment_colind
    for target, source in zip(np.atleast_2d(dense), np.atleast_2d(rows), strict=True):
        target[place] = source
    return dense.reshape(*rows.shape[:-1], model.nout, model.nv)


class MomentArms(Query):
    """Queries the moment arms of some worlds; the answer is (nworld, nout, nv).

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
    """

    loop = moment_tiles
    number = 1

    def __init__(self, model: Model, nworld: int, dtype):
        if moments_need_contacts(model):
            self.reads = (*DATA.that("lasts"), *DATA.of("count"))
        self.model = model
        self.taken = {"actuator_moment": np.zeros((nworld, 1, model.nmoment), dtype)}

    def answer(self) -> np.ndarray:
        return dense_moments(self.model, self.taken["actuator_moment"][:, 0])
