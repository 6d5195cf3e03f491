"""Rows of equalities, friction loss and limits: J is the derivative of the error, c is ODE's formula."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import EQUALITY, FRICTION_DOF, FRICTION_TENDON, LIMIT_JOINT
from featherlane.engine.solver.lcp.rows import joint
from featherlane.engine.solver.lcp.rows.assembly import clear_rows
from featherlane.engine.solver.lcp.rows.metric import factor_step_inertia
from featherlane.engine.solver.lcp.rows.softness import loss_cfm, softness
from scenes.lcp import SCENE as ONE_OF_EACH
from scenes.lcp_records import Rows

H, STEP = 0.004, 1e-5
# so that no element is the first of its kind
SCENE = ONE_OF_EACH.replace('name="b"', 'name="b" frictionloss=".3"').replace(
    "<tendon>", '<tendon><fixed name="first"><joint joint="b" coef="1"/></fixed>'
)
SLOPE = 1e-6  # central differences with this step
EXACT = 1e-9  # of values through a mass matrix
INF = np.inf


def beyond_limits(model, rng):
    """Returns two states beyond the limits of hinges, slide, ball and tendon, with violated equalities."""
    qpos = np.array([model.qpos0, model.qpos0])
    qpos[:, :2] = [[0.75, -0.6], [-0.8, 0.6]]
    qpos[:, 2:6] = [[np.cos(0.4), 0, np.sin(0.4), 0], [np.cos(0.3), np.sin(0.3), 0, 0]]
    qpos[:, 6:8] = [[0.25, 0.3], [-0.22, -0.4]]
    qpos[:, -7:-4] += 0.05
    return qpos, 10.0 * rng.standard_normal((2, model.nv))


def scene(rng, qpos=None, qvel=None, **options):
    model = fl.load(SCENE)
    for name, value in options.items():
        (setattr(model.opt, name, value) if hasattr(model.opt, name) else getattr(model, name).__setitem__(..., value))
    state = beyond_limits(model, rng) if qpos is None else (qpos, qvel)
    tile = Rows(model, *state)
    clear_rows(tile.m, tile.d)
    tile.run(factor_step_inertia)
    joint.append_equality_rows(tile.m, tile.d)
    joint.append_bounded_rows(tile.m, tile.d, 0)
    return tile


def listed(tile, world):
    """Returns (k, row of the LCP) of each row that a world has."""
    d = tile.d
    return [(k, d.row_lcprow[k]) for k in range(d.nrow[0]) if d.row_present.array[k, world] > 0.0]


def row_field(tile, k, name, world):
    return getattr(tile.d, f"row_{name}").array[k, world]


def type_of(tile, k):
    return tile.d.row_type[k]


@pytest.mark.parametrize("world", [0, 1])
def test_rows_are_the_derivative_of_the_error(world, rng):
    """J equals central differences of the constraint layer's errors, along the velocity of each dof."""
    tile = scene(rng)
    mj, found, checked = mujoco.MjModel.from_xml_string(SCENE), tile.lcp(world), set()
    qpos, n = tile.d.qpos.array[: mj.nq, world], mj.nv
    moved = np.repeat([qpos], 2 * n, 0)
    for i in range(2 * n):
        mujoco.mj_integratePos(mj, moved[i], np.eye(n)[i % n], STEP if i < n else -STEP)
    width = 1 << (2 * n - 1).bit_length()
    moved = np.concatenate([moved, np.repeat([qpos], width - 2 * n, 0)])
    near = scene(rng, moved, np.zeros((width, n)))
    errors = {}
    for k, _ in listed(near, 0):
        key = type_of(near, k), near.d.row_id[k]
        errors.setdefault(key, []).append(row_field(near, k, "pos", slice(None)))
    for k, r in listed(tile, world):
        kind = type_of(tile, k)
        if kind in (FRICTION_DOF, FRICTION_TENDON):
            continue
        key = kind, tile.d.row_id[k]
        slopes = [(e[:n] - e[n : 2 * n]) / (2 * STEP) for e in errors[key]]
        assert min(np.abs(found.J[r] - slope).max() for slope in slopes) < SLOPE
        checked.add(kind)
    assert EQUALITY in checked and LIMIT_JOINT in checked and len(checked) >= 3


def expected_speed(tile, k, J, world, erp):
    """Returns (c, lo, hi) by ODE's formulas."""
    kind, v = type_of(tile, k), J @ tile.d.qvel.array[: tile.model.nv, world]
    if kind in (FRICTION_DOF, FRICTION_TENDON):
        loss = 0.3 if kind == FRICTION_DOF else 0.2
        return 0.0, -loss, loss
    err = row_field(tile, k, "pos", world) - row_field(tile, k, "margin", world)
    c = -erp / H * err
    if kind == EQUALITY:
        return c, -INF, INF
    if kind == LIMIT_JOINT:
        e = tile.model.jnt_stop_bounce[tile.d.row_id[k]]
        c = max(c, -e * v) if v < 0.0 and e > 0.0 else c
    return c, 0.0, INF


@pytest.mark.parametrize("bounce", [0.0, 0.8])
def test_right_sides_and_bounds(bounce, rng):
    tile, kinds = scene(rng, erp=0.3, cfm=1e-4, jnt_stop_bounce=bounce), set()
    for world in range(2):
        found = tile.lcp(world)
        for k, r in listed(tile, world):
            c, lo, hi = expected_speed(tile, k, found.J[r], world, 0.3)
            np.testing.assert_allclose(found.c[r], c, rtol=1e-8, atol=EXACT)
            assert (found.lo[r], found.hi[r], found.findex[r], found.add[r]) == (lo, hi, -1, 0.0)
            np.testing.assert_allclose(found.cfm[r], 1e-4)
            kinds.add((k < tile.d.ndofrow[0], type_of(tile, k)))
    assert len(kinds) == 6 and len(set(r for *_, r in listed(tile, 0))) == len(listed(tile, 0))
    assert not tile.d.dual.mark.array.any()


def test_each_has_its_own_erp_and_cfm(rng):
    own = {"jnt_stop_erp": 0.5, "jnt_stop_cfm": 3e-3, "eq_erp": 0.7, "eq_cfm": 2e-3}
    tile = scene(rng, **own)
    found = tile.lcp()
    numbers = {EQUALITY: (0.7, 2e-3), LIMIT_JOINT: (0.5, 3e-3)}
    for k, r in listed(tile, 0):
        erp, cfm = numbers.get(type_of(tile, k), (0.2, 1e-10))
        np.testing.assert_allclose(found.cfm[r], cfm, rtol=1e-6)
        np.testing.assert_allclose(found.c[r], expected_speed(tile, k, found.J[r], 0, erp)[0], atol=EXACT)


def test_softness_by_solref_equals_that_of_the_elements(rng):
    """For equalities, at the norm of the errors of all their rows."""
    model, own = fl.load(SCENE), {"softness": "solref"}
    for what in ("dof_sol{}", "jnt_sol{}", "eq_sol{}", "tendon_sol{}_fri", "tendon_sol{}_lim"):
        n = len(getattr(model, what.format("ref")))
        own[what.format("ref")] = rng.uniform([0.02, 0.5], [0.05, 1.5], (n, 2))
        own[what.format("imp")] = rng.uniform([0.5, 0.91, 0.05, 0.3, 2.0], [0.9, 0.98, 0.5, 0.6, 2.0], (n, 5))
    tile = scene(rng, **own)
    m, d, model, found, none = tile.m, tile.d, tile.model, tile.lcp(), np.float64(-1.0)
    for k, r in listed(tile, 0):
        kind, e = type_of(tile, k), d.row_id[k]
        D, err = row_field(tile, k, "D", 0), row_field(tile, k, "pos", 0)
        if kind in (FRICTION_DOF, FRICTION_TENDON):
            fields = (model.dof_solref, model.dof_solimp) if kind == FRICTION_DOF else (
                model.tendon_solref_fri, model.tendon_solimp_fri)  # fmt: skip
            cfm = loss_cfm(m, fields[0][e], fields[1][e], D)
        else:
            if kind == EQUALITY:
                n = d.nrow[0]
                same = (d.row_type.array[:n] == kind) & (d.row_id.array[:n] == e)
                err = np.linalg.norm(d.row_pos.array[:n, 0][same])
            names = {EQUALITY: ("eq_solref", "eq_solimp"), LIMIT_JOINT: ("jnt_solref", "jnt_solimp")}
            solref, solimp = names.get(kind, ("tendon_solref_lim", "tendon_solimp_lim"))
            err -= 0.0 if kind == EQUALITY else row_field(tile, k, "margin", 0)
            _, cfm = softness(m, none, none, getattr(model, solref)[e], getattr(model, solimp)[e], err, D)
        np.testing.assert_allclose(found.cfm[r], np.ravel(cfm)[0], rtol=1e-9)


def test_rows_beyond_the_capacity_are_omitted(rng):
    tile = scene(rng)
    whole = tile.d.lcp.n[0]
    clear_rows(tile.m, tile.d)
    tile.d.nlcp = whole
    joint.append_equality_rows(tile.m, tile.d)
    joint.append_bounded_rows(tile.m, tile.d, 0)
    assert tile.d.lcp.n[0] == whole and tile.d.con_overflow[0] == 0
    clear_rows(tile.m, tile.d)
    tile.d.nlcp = 4
    joint.append_equality_rows(tile.m, tile.d)
    joint.append_bounded_rows(tile.m, tile.d, 0)
    assert whole > 4 == tile.d.lcp.n[0] and tile.d.con_overflow[0] == 1
    rows = [*tile.d.row_lcprow.array[: tile.d.nrow[0]]]
    assert sorted(r for r in rows if r >= 0) == [0, 1, 2, 3] and rows.count(-1) == len(rows) - 4
