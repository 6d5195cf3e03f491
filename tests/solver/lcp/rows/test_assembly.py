"""The rows of a tile in their order: A and b are those of the rows' Jacobian, independent of the batch."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Disable
from featherlane.engine.solver.lcp.rows.assembly import clear_rows, make_lcp
from scenes.lcp import SCENE
from scenes.lcp_records import Rows
from scenes.states import kicked

EXACT = 1e-9  # relative, of values through a mass matrix
LINKED = SCENE.replace('joint name="p"', 'joint name="p" damping=".3"')


def scene(rng, width=2):
    links = [fl.Link("hinge", "box", "upper", anchor=(0.9, 0, 0.2), axis=(0, 0, 1), motor_force=2.0, motor_vel=1.0)]
    model = fl.load(LINKED, links=links)
    model.jnt_motor_force[0], model.opt.cfm = 3.0, 1e-5
    return Rows(model, *zip(*(kicked(model, rng, 0.05) for _ in range(width)), strict=True))


@pytest.fixture
def tile(rng):
    tile = scene(rng)
    tile.run(make_lcp)
    return tile


def test_rows_are_ordered_unbounded_bounded_contacts(tile):
    d, n = tile.d, tile.d.lcp.n[0]
    contacts = [r for r in d.con_lcprow.array[: d.ncon_slot[0]] if r >= 0]
    general = d.row_lcprow.array[d.ndofrow[0] : d.nrow[0]]
    equalities = [r for r in general if np.isinf(d.lcp.lo.array[r]).any()]
    first = [*equalities, *range(d.link_lcprow[0], d.link_lcprow[0] + 5)]
    others = [r for r in general if r not in equalities]
    dofs = d.row_lcprow.array[: d.ndofrow[0]].tolist()
    motors = [max(dofs + others) + 1, d.link_lcprow[1]]
    assert [*first, *dofs, *others, *motors] == list(range(min(contacts)))
    assert d.lcp.n[0] == n > max(contacts) and len(first) >= 10 and others and dofs
    for r in range(n):
        k = d.lcp.findex[r]
        assert (k == -1) if r < min(contacts) else (k in contacts and k < r) or (r in contacts and k == -1)


@pytest.mark.parametrize("world", [0, 1])
def test_the_problem_is_that_of_its_rows(world, tile):
    """A = J Mh^-1 J^T + cfm / h,  b = c / h - J (v / h + Mh^-1 f)."""
    found, Mh, h, d, nv = tile.lcp(world), tile.inertia(world), 0.004, tile.d, tile.model.nv
    J = found.J
    A = J @ np.linalg.solve(Mh, J.T) + np.diag(found.cfm / h)
    np.testing.assert_allclose(found.A, A, atol=EXACT * np.abs(A).max())
    pull = np.linalg.solve(Mh, d.qfrc_smooth.array[:nv, world])
    np.testing.assert_allclose(d.qacc_step.array[:nv, world], pull, atol=EXACT * np.abs(pull).max())
    b = found.c / h - J @ (d.qvel.array[:nv, world] / h + pull)
    np.testing.assert_allclose(found.b, b, atol=EXACT * np.abs(b).max())
    assert np.linalg.matrix_rank(J) > 10 and found.n == d.lcp.n[0]


def test_the_problem_can_be_rebuilt(tile):
    """Tested for any memory left by earlier rows."""
    d, n = tile.d, tile.d.lcp.n[0]
    before = {name: getattr(d.lcp, name).array.copy() for name in ("Y", "b", "lo", "hi", "add", "cfm", "col")}
    d.dual.mark.array[...] = 3
    d.lcp.dense[0], d.one.status[0] = 1, -1
    tile.run(make_lcp)
    assert (d.lcp.n[0], d.lcp.dense[0], d.one.status[0]) == (n, 0, 0)
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(d.lcp, name).array, array, err_msg=name)


def test_rows_of_a_world_do_not_depend_on_the_batch(rng):
    """Absent rows are zero and have no force."""
    tile = scene(rng, 4)
    tile.run(make_lcp)
    for world in range(4):
        alone = Rows(tile.model, tile.d.qpos.array[: tile.model.nq, [world]].T, tile.d.qvel.array[:, [world]].T)
        alone.run(make_lcp)
        own, shared = alone.lcp(0), tile.lcp(world)
        held = (shared.lo < 0.0) | (shared.hi > 0.0) | (shared.add > 0.0)
        normal = np.where(shared.findex >= 0, held[shared.findex], True)
        here = held & normal
        there = (own.lo < 0.0) | (own.hi > 0.0) | (own.add > 0.0)
        for name in ("b", "lo", "hi", "add", "cfm", "J"):
            np.testing.assert_array_equal(getattr(own, name)[there], getattr(shared, name)[here], err_msg=name)
        assert not shared.J[~held].any() and not shared.b[~held].any()


def test_rows_can_be_switched_off(tile):
    tile.m.opt_disableflags = int(Disable.CONSTRAINT)
    for name in ("ndofrow", "nrow"):
        getattr(tile.d, name)[0] = 0  # the constraint layer made no rows
    tile.run(make_lcp)
    assert tile.d.lcp.n[0] == 0 and np.isfinite(tile.d.qacc_step.array).all()
    clear_rows(tile.m, tile.d)
    assert tile.d.lcp.n[0] == 0 and not tile.d.dual.mark.array.any()
