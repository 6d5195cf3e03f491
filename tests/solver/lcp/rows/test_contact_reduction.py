"""Contacts that get rows: touching ones; of many points of a pair, the corners and the deepest."""

from types import SimpleNamespace

import numpy as np
import pytest

from featherlane.engine.collision.user_contacts import NO_CANDIDATE
from featherlane.engine.lanes.record import Objects
from featherlane.engine.model.enums import Disable
from featherlane.engine.solver.lcp.rows import contact_reduction as reduction
from oracles.uncompiled import typed

SQUARE = [[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]]
R = 1.0  # bounding radius


def tile(points, depths, width=2, **given):
    """Returns points of one pair from (m, d), all present, the same in all worlds."""
    n = len(points)

    def field(value, name="con_dist"):
        return typed(np.repeat(np.ravel(value)[:, None], width, 1).astype(float), name)

    m = SimpleNamespace(geom_rbound=field([R, R]), body_weldid=[0, 1, 1], opt_disableflags=0, opt_enableflags=0)
    d = SimpleNamespace(
        ncon_slot=[n], con_pos=field(points, "con_pos"), con_dist=field(np.negative(depths)), con_D=field(np.zeros(n)),
        con_frame=field(n * [np.eye(3)], "con_frame"), con_includemargin=field(np.zeros(n)),
        con_present=field(np.ones(n)), con_cand=n * [0], con_pair=n * [-1], con_geom=n * [0, 1], con_carrier=n * [0, 1],
        width=width, shape=(width,), dtype=np.dtype(np.float64),
    )  # fmt: skip
    for name, value in given.items():
        setattr(d, name, value)
    for name in ("con_geom", "con_carrier", "con_cand", "con_pair"):
        setattr(d, name, typed(np.array(getattr(d, name)), name))
    d.contact = Objects(d, "con_")
    return m, d


def chosen(m, d, world=0):
    reduction.mark_contacts_with_rows(m, d)
    return np.nonzero(d.con_D.array[:, world] > 0.0)[0].tolist()


def test_interior_points_are_removed_and_corners_kept():
    """Points on an edge, as deep as the edge, are dropped; an inner point and one off the line stay."""
    more = [[0.0, -1.0, 0.0], [0.2, 0.3, 0.0], [0.5, 1.001, 0.0], [1.0, 1.0, 0.0]]
    m, d = tile(SQUARE + more, 8 * [0.01])
    assert chosen(m, d) == [0, 1, 2, 3, 5, 6]


def test_the_deepest_point_is_kept():
    tilted = [0.01, 0.03, 0.03, 0.01]
    middle = [[0.0, -1.0, 0.0], [0.0, 1.0, 0.0], [0.5, -1.0, 0.0]]
    m, d = tile(SQUARE + middle, [*tilted, 0.02, 0.021, 0.0251])  # as deep as the edge; deeper; deeper
    assert chosen(m, d) == [0, 1, 2, 3, 5, 6]


def test_four_points_are_not_reduced():
    m, d = tile([*SQUARE[:3], [0.0, -1.0, 0.0]], 4 * [0.01])
    assert chosen(m, d) == [0, 1, 2, 3]
    m, d = tile([*SQUARE, [0.0, -1.0, 0.0]], 5 * [0.01])
    d.con_present.array[2, 1] = 0.0  # four in this world
    assert chosen(m, d) == [0, 1, 2, 3] and np.nonzero(d.con_D.array[:, 1])[0].tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize("apart", ["con_cand", "con_pair", "con_geom", "normal", "given", "distance"])
def test_points_of_other_pairs_do_not_count(apart):
    points = [*SQUARE, [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]]
    m, d = tile(points, 6 * [0.01])
    if apart == "normal":
        d.con_frame.array[9:12] = [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]  # of point 1: the first edge ends there
        assert chosen(m, d) == [0, 1, 2, 3, 4]
    elif apart == "distance":
        d.con_dist.array[1] = 1.0  # point 1 is not in contact
        assert chosen(m, d) == [0, 2, 3, 4]
    elif apart == "given":
        d.con_cand.array[:] = NO_CANDIDATE
        assert chosen(m, d) == [0, 1, 2, 3, 4, 5]
    else:
        rows = getattr(d, apart).array
        rows[-2 if apart == "con_geom" else -1] = 1
        assert chosen(m, d) == [0, 1, 2, 3, 5]  # the last one belongs to another pair


def test_coincident_points_are_merged():
    m, d = tile([*SQUARE, [1.0, 1.0 + 5e-7, 0.0], [1.0, 1.0 + 5e-3, 0.0]], 6 * [0.01])
    assert chosen(m, d) == [0, 1, 3, 5] or chosen(m, d) == [0, 1, 2, 3, 5]
    m, d = tile(6 * [[0.3, 0.2, 0.1]], 6 * [0.01])
    assert chosen(m, d) == [0]


def test_contacts_act_where_they_touch():
    """A tolerance of 1e-6 of both radii is added to includemargin; given contacts use their margin only."""
    gaps = [0.0, 1.9e-6, 2.1e-6, 0.1, 0.1]
    m, d = tile(5 * [[0.0, 0.0, 0.0]], np.negative(gaps), con_cand=[0, 1, 2, 3, 4])
    d.con_includemargin.array[3] = 0.1
    d.con_present.array[0, 1], d.con_D.array[0] = 0.0, 40.0
    assert chosen(m, d) == [0, 1, 3] and np.nonzero(d.con_D.array[:, 1])[0].tolist() == [1, 3]
    assert d.con_D.array[0, 0] == 40.0 and d.con_D.array[1, 0] == 1.0  # a nonzero 1 / R stays
    d.con_cand.array[:] = NO_CANDIDATE
    assert chosen(m, d) == [0, 3]


@pytest.mark.parametrize("flag", [Disable.CONTACT, Disable.CONSTRAINT])
def test_disabled_and_welded_contacts_are_omitted(flag):
    m, d = tile(SQUARE, 4 * [0.01])
    d.con_carrier.array[:2] = 1, 2  # welded to each other
    assert chosen(m, d) == [1, 2, 3]
    m.opt_disableflags = int(flag)
    assert chosen(m, d) == []
