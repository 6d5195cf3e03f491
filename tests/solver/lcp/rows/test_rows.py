"""Appended rows: their columns, whitened entries, right-hand sides, bounds, and the memory that they use."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.constraint.chains import BOTH, FIRST, SECOND
from featherlane.engine.solver.lcp.rows import rows
from featherlane.engine.solver.lcp.rows.assembly import clear_rows
from featherlane.engine.solver.lcp.rows.metric import factor_step_inertia
from scenes.lcp_records import Rows
from scenes.states import kicked

EXACT = 1e-9  # of values through a mass matrix
# two branches from one hinge, and a separate tree
TREE = """<mujoco><option timestep=".003"/><worldbody>
  <body><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
    <body pos=".3 0 0"><joint axis="1 0 0"/><geom size=".1" pos="0 .2 0"/>
      <body name="left" pos="0 .3 0"><joint type="ball"/><geom size=".1" pos="0 0 .3"/></body></body>
    <body name="right" pos="0 .3 0"><joint axis="0 1 0" damping=".3"/><geom size=".1" pos=".1 0 .2"/></body></body>
  <body name="alone" pos="3 0 0"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
</worldbody></mujoco>"""
LEFT, RIGHT, ALONE = 3, 4, 5  # bodies; dofs: 0, 1, 2-4; 5; 6


@pytest.fixture
def tile(rng):
    model = fl.load(TREE)
    tile = Rows(model, *zip(*(kicked(model, rng) for _ in range(2)), strict=True))
    clear_rows(tile.m, tile.d)
    tile.run(factor_step_inertia)
    return tile


def append(tile, J, start, n, **given):
    """Appends a row with J (W, nv) at n columns from start on; returns its number, J v and J Mh^-1 f."""
    for i in tile.d.lcp.col.array[start : start + n]:
        tile.d.primal.search.array[i] = J[:, i]
    r, v, a = rows.append_jacobian_row(tile.m, tile.d, start, n)
    here = np.array(given.pop("present", [True, True]))
    numbers = {"c": 0.0, "cfm": 0.0, "lo": 0.0, "hi": 0.0} | given
    c, cfm, *bounds = (v * 0.0 + x for x in numbers.values())
    rows.set_row(tile.m, tile.d, (r, v, a), here, c, cfm, bounds)
    return r, v, a


def test_columns_are_ancestor_dofs_marked_by_body(tile):
    m, d = tile.m, tile.d
    assert rows.list_pair_columns(m, d, LEFT, RIGHT, 0) == 6
    assert d.lcp.col.array[:6].tolist() == [5, 4, 3, 2, 1, 0]
    both, first, second = BOTH, FIRST, SECOND
    assert d.dual.mark.array.tolist() == [both, first, first, first, first, second, 0]
    rows.clear_column_marks(d, 0, 6)
    assert not d.dual.mark.array.any()
    assert rows.list_pair_columns(m, d, ALONE, LEFT, 2) == 6 and d.lcp.col.array[2:8].tolist() == [6, 4, 3, 2, 1, 0]
    assert d.dual.mark.array.tolist() == [second] * 5 + [0, first]
    rows.clear_column_marks(d, 2, 6)
    assert rows.list_pair_columns(m, d, 0, 0, 0) == 0


def test_a_group_shares_its_columns(tile, rng):
    """Y Y^T = J Mh^-1 J^T, and b, v and a from J; the next group starts after it."""
    m, d, h = tile.m, tile.d, tile.model.opt.timestep
    J, v, a = np.zeros((5, 2, 7)), {}, {}
    for group, bodies, count in (([0, 1, 2], (LEFT, RIGHT), 3), ([3, 4], (ALONE, RIGHT), 2)):
        start = rows.first_free_column(d)
        n = rows.list_pair_columns(m, d, *bodies, start)
        for r in group:
            J[r][:, d.lcp.col.array[start : start + n]] = rng.standard_normal((2, n))
            number, v[r], a[r] = append(tile, J[r], start, n, c=0.1 * r, cfm=0.2 * r, lo=-r, hi=2 * r)
            assert number == r and len(group) == count
        rows.clear_column_marks(d, start, n)
    assert rows.first_free_column(d) == 6 + 3 and rows.first_free_entry(d) == 3 * 6 + 2 * 3
    for world in range(2):
        found, Mh = tile.lcp(world), tile.inertia(world)
        np.testing.assert_allclose(found.J, J[:, world], atol=EXACT)
        A = J[:, world] @ np.linalg.solve(Mh, J[:, world].T) + np.diag(0.2 * np.arange(5) / h)
        np.testing.assert_allclose(found.A, A, atol=EXACT * np.abs(A).max())
        speed, pull = d.qvel.array[:, world], np.linalg.solve(Mh, d.qfrc_smooth.array[:, world])
        b = 0.1 * np.arange(5) / h - J[:, world] @ (speed / h + pull)
        np.testing.assert_allclose(found.b, b, atol=EXACT * np.abs(b).max())
        for r in range(5):
            np.testing.assert_allclose([v[r][world], a[r][world]], [J[r, world] @ speed, J[r, world] @ pull], atol=1e-7)
    np.testing.assert_array_equal(found.lo, [0, -1, -2, -3, -4])
    np.testing.assert_array_equal(found.hi, [0, 2, 4, 6, 8])
    assert (found.findex == -1).all() and not found.add.any()


def test_a_world_without_the_row_holds_zeros(tile):
    d, here = tile.d, np.array([True, False])
    n = rows.list_pair_columns(tile.m, d, ALONE, 0, 0)
    J = np.array([[1.0] * 7, [0.0] * 7])
    for _ in range(2):
        append(tile, J, 0, n, c=3.0, cfm=0.1, lo=-1.0, hi=2.0, present=here)
    d.lcp.add.array[...] = 5.0
    rows.set_friction(d, 1, 0, here, 0.7, np.array([0.0, 0.0]))
    for name in ("b", "cfm", "diag", "lo", "hi", "add"):
        assert not getattr(d.lcp, name).array[:2, 1].any() or name == "add", name
    assert d.lcp.add.array[1].tolist() == [0.0, 0.0]
    assert rows.is_present(d, 1).tolist() == [True, False]


def test_friction_is_a_share_of_the_normal_or_a_force(tile):
    d, here = tile.d, np.array([True, True])
    rows.set_friction(d, 3, 2, here, np.array([0.7, 0.4]), np.array([0.0, 1.0]))
    assert (d.lcp.findex[3], d.lcp.lo.array[3].tolist()) == (2, [0.0, 0.0])
    assert d.lcp.hi.array[3].tolist() == [0.7, 0.0] and d.lcp.add.array[3].tolist() == [0.0, 0.4]
    assert rows.is_present(d, 3).all()
    d.lcp.lo.array[3], d.lcp.hi.array[3], d.lcp.add.array[3] = [-1.0, 0.0], 0.0, 0.0
    assert rows.is_present(d, 3).tolist() == [True, False]


@pytest.mark.parametrize(("size", "room"), [("nlcp", 5), ("nlcpcol", 6 + 7), ("nlcpY", 3 * 6 + 2 * 7)])
def test_capacity_is_checked_before_rows_are_added(size, room, tile):
    """3 rows of 6 entries exist, two more of up to 7 dofs are added."""
    m, d = tile.m, tile.d
    n = rows.list_pair_columns(m, d, LEFT, RIGHT, 0)
    for _ in range(3):
        append(tile, np.ones((2, 7)), 0, n)
    for name in ("nlcp", "nlcpcol", "nlcpY"):
        setattr(d, name, 1000)
    setattr(d, size, room)
    assert rows.has_capacity(m, d, 2)
    setattr(d, size, room - 1)
    assert not rows.has_capacity(m, d, 2)


def test_a_full_tile_is_split_and_a_single_world_counts_once(tile):
    d = tile.d
    rows.report_full_rows(d)
    assert d.con_overflow[0] == 1 and not d.warning.array[1].any()
    d.con_overflow[0], d.one.status[0], d.active.array[0] = 0, 0, [0.0, 1.0]
    for _ in range(3):
        rows.report_full_rows(d)
    assert d.con_overflow[0] == 0 and d.warning.array[1].tolist() == [0.0, 1.0] and d.one.status[0] == rows.FULL
