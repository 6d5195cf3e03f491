"""Computes the parameters of contacts between two geoms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from featherlane.engine.collision.mixing import contact_dim, friction, margin_and_gap, reference_and_impedance
from featherlane.engine.lanes.record import Rows
from featherlane.engine.model.model import Model, check_model, peek

READS = (
    "geom_friction geom_solmix geom_solref geom_solimp geom_priority geom_condim geom_margin geom_gap pair_dim"
    " pair_friction pair_solref pair_solimp pair_margin pair_gap opt_o_margin opt_o_friction opt_o_solref opt_o_solimp"
).split()


class ContactParameters(NamedTuple):
    """Holds the parameters of contacts between two geoms.

    Attributes:
        dim: dimension of the contact space: 1, 3, 4 or 6.
        friction: (5,) coefficients of friction: two sliding, one torsional [m], two rolling [m].
        solref: (2,) reference, as in MuJoCo.
        solimp: (5,) impedance, as in MuJoCo.
        margin, gap: distances of detection and activation [m].
    """

    dim: int
    friction: np.ndarray
    solref: np.ndarray
    solimp: np.ndarray
    margin: float
    gap: float


def contact_parameters(model: Model, geom1: int | str, geom2: int | str) -> ContactParameters:
    """Computes the parameters of contacts between two geoms: those of an explicit pair, else mixed from both geoms.

    Args:
        model: the model, with its edits.
        geom1, geom2: numbers or names of the geoms.

    Returns:
        The parameters: friction (5,), solref (2,), solimp (5,), margin and gap [m], and the dimension.

    Raises:
        UnknownNameError: the model has no such geom.

    Source: MuJoCo, chapter Computation, "Contact parameters".
    """
    check_model(model)
    ids = [model.geom(geom).id for geom in (geom1, geom2)]
    g, h = sorted(ids, key=lambda i: (model.geom_type[i], i))  # as a contact orders them, for the same rounding
    explicit = np.sort([model.mj_model.pair_geom1, model.mj_model.pair_geom2], axis=0)
    explicit = np.flatnonzero((explicit[0] == min(ids)) & (explicit[1] == max(ids)))
    m = SimpleNamespace(
        **{name: Rows(peek(model, name).ravel(), name, model.layout[name].rows) for name in READS},
        opt_enableflags=model.opt_enableflags,
    )
    pair = int(explicit[0]) if len(explicit) else -1, g, h
    (ref, imp), (margin, gap) = reference_and_impedance(m, *pair), margin_and_gap(m, *pair)
    mu = np.array([*friction(m, *pair)], float)
    return ContactParameters(
        int(contact_dim(m, *pair)), mu, np.array([*ref], float), np.array([*imp], float), float(margin), float(gap)
    )
