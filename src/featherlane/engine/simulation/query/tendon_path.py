"""Computes the path of a tendon for drawing: sites, and the two ends of each arc around a geom.

Lengths and moments do not depend on it, so a step does not store it.  It is computed on request, uncompiled, by the
functions that measure the path's length (dynamics/tendon/wrap.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherlane.engine.dynamics.tendon.wrap import wrap
from featherlane.engine.lanes.record import python_record
from featherlane.engine.model.enums import WRAP_JOINT, WRAP_PULLEY, WRAP_SPHERE
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.present import present
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.world.data import Data, ready

ON_SITE, AT_PULLEY = -1, -2  # values of `obj` that are not geoms


class TendonPath(NamedTuple):
    """Holds points along a spatial tendon.

    Attributes:
        pos: (n, 3) [m] in world axes.  At a pulley, where one branch ends and the next one begins, zeros.
        obj: (n,) the geom of the point, -1: a site, -2: a pulley.
    """

    pos: np.ndarray
    obj: np.ndarray

    def branches(self) -> list[np.ndarray]:
        """Returns the polylines (k, 3) between pulleys."""
        parts = np.split(self.pos, np.flatnonzero(self.obj == AT_PULLEY))
        return [part[1:] if i else part for i, part in enumerate(parts)]


def _arc(m, d, k: int) -> list[np.ndarray]:
    """Returns the two ends of the arc around the geom of element k; none if the tendon does not touch the geom."""
    start, geom, end = (int(m.wrap_objid[k + i]) for i in (-1, 0, 1))
    bends, first, last, _ = wrap(m, d, start, end, geom, m.wrap_type[k], m.wrap_sideid[k])
    return [np.ravel(point) for point in (first, last)] if np.all(bends) else []


def tendon_path(model: Model, data: Data, tendon: str | int) -> TendonPath:
    """Computes the path of a tendon.

    Args:
        model: the model.
        data: the world, in its present state.
        tendon: name or number of the tendon.

    Returns:
        Its points; none for a fixed tendon, which has no path.

    Raises:
        UnknownNameError: an unknown tendon.

    Source: MuJoCo mj_tendon, which writes these points to `wrap_xpos` and `wrap_obj` from `ten_wrapadr` on.
    """
    world, i = ready(model, data), model.tendon(tendon).id
    return present(world, lambda workspace: _path(model, workspace, i))


def _path(model: Model, workspace: Workspace, i: int) -> TendonPath:
    """Returns the path of tendon i from the frames of a workspace."""
    m, d = python_record(workspace.rows.record), python_record(workspace.record)
    points, obj = [], []
    for k in range(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i]):
        kind, here = int(model.wrap_type[k]), int(model.wrap_objid[k])
        if kind == WRAP_JOINT:
            continue
        if kind >= WRAP_SPHERE:
            ends, mark = _arc(m, d, k), here
        elif kind == WRAP_PULLEY:
            ends, mark = [np.zeros(3)], AT_PULLEY
        else:
            ends, mark = [workspace.view("site_xpos")[here].copy()], ON_SITE
        points += ends
        obj += [mark] * len(ends)
    return TendonPath(np.reshape(points, (-1, 3)), np.array(obj, np.int32))
