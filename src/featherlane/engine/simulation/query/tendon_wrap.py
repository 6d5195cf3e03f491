"""Finds where tendons wrap around geoms in the present states of worlds, for drawing them.

`fl.query.tendon_path` computes this for one world, uncompiled; here it runs in the tiles of a batch.
Element k of the paths of all tendons is a site or a geom (wrap_type), with the index wrap_objid; wrap_sideid is a
geom's side site.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.dynamics.tendon.wrap import wrap
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import over_tiles


@stage
def find_arc(m, d, k):
    """Computes the arc of the tendon around the geom of element k of all paths.

    Source: as `fl.query.tendon_path`.
    Reads:  geom_xpos, geom_xmat, site_xpos.
    Writes: distance.fromto: where the tendon meets the geom, where it leaves it [m]; distance.dist: the length between
            them [m], -1 if it does not wrap there.
    """
    start, geom, end = m.wrap_objid[k - 1], m.wrap_objid[k], m.wrap_objid[k + 1]
    bends, first, last, length = wrap(m, d, start, end, geom, m.wrap_type[k], m.wrap_sideid[k])
    d.distance.fromto[0:3] = first
    d.distance.fromto[3:6] = last
    d.distance.dist[0] = where(bends, length, -1.0)


@over_tiles
def arc_tiles(m, d, b, thread, tile):
    """Computes the frames of the worlds of a tile, then the arcs of each world.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; active, recall_address, tree_settled, and all else of this thread's workspace.
    """
    kinematics(m, d)
    frames(m, d)
    s = 0
    for k in range(m.nwrap):
        if m.wrap_type[k] >= WRAP_SPHERE:  # a sphere or a cylinder
            find_arc(m, d, k)
            write_records(b, thread, tile, s)
            s += 1


class ArcsRoundGeoms(Query):
    """Queries the arcs of all tendons in some worlds.

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
    """

    loop = arc_tiles

    def __init__(self, model: Model, nworld: int, dtype):
        self.number = int(np.count_nonzero(model.wrap_type >= WRAP_SPHERE))
        self.ends = np.empty((nworld, self.number, 6), dtype)
        self.length = np.empty((nworld, self.number, 1), dtype)
        self.taken = {"distance.fromto": self.ends, "distance.dist": self.length}

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns ends (n, k, 2, 3) and lengths (n, k) of the arcs; see `Batch.tendon_arcs`."""
        return self.ends.reshape(*self.ends.shape[:2], 2, 3), self.length[..., 0]
