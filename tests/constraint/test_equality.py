"""Equality constraints: rows against MuJoCo's and against finite differences, switches, motion, extreme values."""

import copy

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.constraint import make_rows, row_capacity
from featherlane.engine.model.enums import EQUALITY
from featherlane.engine.solver.inverse import constraint_forces
from oracles.efc import efc
from oracles.rows import SOLIMPS, SOLREFS, assert_rows_equal, check, edited, random_states
from scenes.constraints import CONTACTS, JOINTS, forward, tile
from scenes.equalities import EQUALITIES, WELDED
from scenes.states import kicked

PARITY = 1e-8  # relative: difference of two solvers' optima at tolerance 0
DIFFERENCE = 1e-6  # relative: a central difference with a step of 1e-5
WIDTH = 8


@pytest.fixture(params=[1, WIDTH])
def width(request):
    return request.param


# ---- rows against MuJoCo's ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solref", SOLREFS)
def test_references_of_equalities_equal_mujoco(solref, width, rng):
    check(edited(EQUALITIES, eq_solref=solref), rng, width)


@pytest.mark.parametrize("solimp", SOLIMPS)
def test_impedances_of_equalities_equal_mujoco(solimp, width, rng):
    check(edited(EQUALITIES, eq_solimp=solimp), rng, width)


def test_equalities_as_the_model_declares_them_equal_mujoco(width, rng):
    assert check(edited(EQUALITIES), rng, width) >= 33 * width


@pytest.mark.parametrize("solref", [(1e10, 1.0), (1e-10, 1.0), (-1e12, -1e6), (0.02, 1e8)])
def test_extreme_references_equal_mujoco(solref, width, rng):
    check(edited(EQUALITIES, eq_solref=solref), rng, width)


@pytest.mark.parametrize("flag", ["EQUALITY", "CONSTRAINT", "REFSAFE"])
def test_disable_flags_act_as_in_mujoco(flag, width, rng):
    mj = edited(EQUALITIES, eq_solref=(0.003, 1.0))
    mj.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    states = random_states(mj, rng, width)
    assert_rows_equal(tile(mj, states, make_rows), states)
    assert (states[0].ne > 0) == (flag == "REFSAFE")


@pytest.mark.parametrize("scene", [JOINTS, EQUALITIES])
def test_the_exact_diagonal_of_joint_rows_equals_mujoco(scene, width, rng):
    mj = edited(scene, enableflags=int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT))
    assert check(mj, rng, width) > 5 * width


@pytest.mark.parametrize("cone", [0, 1])
@pytest.mark.parametrize("condim", [1, 3, 6])
def test_the_exact_diagonal_of_contacts_equals_mujoco(cone, condim, width, rng):
    # the pair whose normal passes through a ball joint has none
    xml = CONTACTS.replace('<pair geom1="left" geom2="near" friction="0.5 0.9 0 0 0" condim="3"/>', "")
    mj = edited(xml, cone=cone, geom_condim=condim, enableflags=int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT))
    mj.geom_friction[:] = rng.uniform(0.1, 1.0, mj.geom_friction.shape)
    assert check(mj, rng, width, position=0.002) >= 3 * width


def test_the_exact_diagonal_equals_that_of_the_inverse_inertia(rng):
    mj = edited(EQUALITIES, enableflags=int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT))
    data = fl.Data(fl.load(mj))
    data.qpos, data.qvel = kicked(mj, rng)
    data.forward()
    M = fl.query.full_m(data.model, data)
    expected = np.einsum("ri,ri->r", data.efc_J, np.linalg.solve(M, data.efc_J.T).T)
    np.testing.assert_allclose(data.efc_diagA, expected, rtol=1e-9)


def test_the_exact_diagonal_works_in_a_batch(rng):
    mj = edited(EQUALITIES, enableflags=int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT))
    model = fl.load(mj)
    data, batch = fl.Data(model), fl.Batch(model, 3, nthread=1)
    data.qpos, data.qvel = kicked(mj, rng)
    batch.qpos, batch.qvel = data.qpos, data.qvel
    fl.step(model, data)
    batch.step()
    np.testing.assert_array_equal(batch.qvel, np.tile(data.qvel, (3, 1)))


# ---- laws -----------------------------------------------------------------------------------------------------------
def moved(mj, data, qvel, time):
    """Returns MuJoCo's data after a motion at constant qvel."""
    qpos = data.qpos.copy()
    mujoco.mj_integratePos(mj, qpos, qvel, time)
    return qpos


def rows_at(model, qpos, qvel):
    data = fl.Data(model)
    data.qpos, data.qvel = qpos, qvel
    data.forward()
    return data.efc_type == EQUALITY, data


def test_velocity_is_the_rate_of_the_error(rng):
    mj, h = edited(EQUALITIES), 1e-5
    model, state = fl.load(mj), forward(mj, *kicked(mj, rng))
    equal, data = rows_at(model, state.qpos, state.qvel)
    after, before = (rows_at(model, moved(mj, state, state.qvel, t), state.qvel)[1] for t in (h, -h))
    rate = (after.efc_pos[: data.ne] - before.efc_pos[: data.ne]) / (2.0 * h)
    np.testing.assert_allclose(rate, data.efc_vel[equal], rtol=DIFFERENCE, atol=DIFFERENCE)


# MuJoCo 4.0.1 has a different value here (docs/migration.md)
BALL_AND_SLIDE = """<mujoco><worldbody><body pos="0 0 1"><joint type="ball"/><joint type="slide" axis="1 2 3"/>
    <geom size=".1 .2 .3" type="box" pos=".1 .2 0"/>
    <body name="b" pos=".3 .1 0"><joint axis="0 1 1"/><geom size=".1"/></body></body></worldbody>
  <equality><connect body1="b" anchor=".1 0 .2"/></equality></mujoco>"""


@pytest.mark.parametrize("scene", [EQUALITIES, BALL_AND_SLIDE])
def test_the_reference_includes_the_jacobian_derivative_term(scene, rng):
    """aref + B J v + K d r = -(dJ/dt) v, the rate of J v at constant qvel; a joint's row has none."""
    mj, h = edited(scene), 1e-5
    model, state = fl.load(mj), forward(mj, *kicked(mj, rng))
    equal, data = rows_at(model, state.qpos, state.qvel)
    after, before = (rows_at(model, moved(mj, state, state.qvel, t), state.qvel)[1] for t in (h, -h))
    rate = (after.efc_vel[: data.ne] - before.efc_vel[: data.ne]) / (2.0 * h)
    K, B, imp, _ = data.efc_KBIP[equal].T
    given = -(data.efc_aref[equal] + B * data.efc_vel[equal] + K * imp * data.efc_pos[equal])
    joint = model.eq_type[data.efc_id[equal]] == 2
    np.testing.assert_allclose(given[~joint], rate[~joint], rtol=DIFFERENCE, atol=DIFFERENCE * np.abs(rate).max())
    np.testing.assert_allclose(given[joint], 0.0, atol=1e-9)


# ---- the solution ---------------------------------------------------------------------------------------------------
def solved(mj, states):
    """Returns accelerations by MuJoCo and by a batch of these states, both to tolerance 0."""
    mj = copy.copy(mj)
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_iterations = 0.0, 100, 100
    batch, expected = fl.Batch(fl.load(mj), len(states), nthread=1), []
    qacc = batch.bind("qacc")
    for w, state in enumerate(states):
        data = mujoco.MjData(mj)
        data.qpos[:], data.qvel[:], data.eq_active[:] = state.qpos, state.qvel, state.eq_active
        mujoco.mj_forward(mj, data)
        batch.qpos[w], batch.qvel[w], batch.eq_active[w] = data.qpos, data.qvel, data.eq_active
        expected.append(data.qacc.copy())
    batch.forward()
    return qacc, np.array(expected)


@pytest.mark.parametrize("scene", [EQUALITIES, WELDED])
def test_accelerations_equal_mujoco(scene, width, rng):
    mj = edited(scene)
    states = [forward(mj, *kicked(mj, rng, 0.2)) for _ in range(width)]
    for state in states[1:]:
        state.eq_active[:] = rng.random(mj.neq) < 0.7
    given, expected = solved(mj, states)
    np.testing.assert_allclose(given, expected, rtol=PARITY, atol=PARITY * np.abs(expected).max())


def test_contradictory_equalities_have_finite_accelerations():
    """One body is held at two places: it stays between them."""
    data = fl.Data(fl.load(WELDED))
    data.eq_active = [0, 0, 1, 1]
    for _ in range(500):
        fl.step(data.model, data)
    assert np.isfinite(data.qpos).all() and np.abs(data.qvel).max() < 10.0
    np.testing.assert_allclose(data.efc_pos[[0, 3]], [0.1, -0.1], atol=1e-6)


@pytest.mark.parametrize("solref", [(1e10, 1.0), (1e-10, 1.0), (-1e12, -1e6), (-1e12, 0.0), (0.02, 1e8)])
@pytest.mark.parametrize("solimp", [(0.9, 0.95, 0.0, 0.5, 2.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)])
def test_extreme_parameters_have_finite_accelerations(solref, solimp, rng):
    mj = edited(EQUALITIES, eq_solref=solref, eq_solimp=solimp)
    data = fl.Data(fl.load(mj))
    data.qpos, data.qvel = kicked(mj, rng)
    data.forward()
    assert np.isfinite(data.qacc).all()


def test_a_redundant_loop_stays_closed():
    """Three rows hold a point that moves in a plane: over 5 s of a crank that changes direction."""
    model = fl.bundled("slider_crank")
    data, batch, rng = fl.Data(model), fl.Batch(model, 2, nthread=1), np.random.default_rng(0)
    for _ in range(50):
        control = rng.uniform(-1, 1)
        data.ctrl, batch.ctrl = control, control
        for _ in range(50):
            fl.step(model, data)
            assert np.abs(data.efc_pos[:3]).max() < 2e-3
        batch.step(50)
    assert data.ne == 3 and np.abs(data.qpos[0]) > 1.0
    np.testing.assert_array_equal(batch.qpos, np.tile(data.qpos, (2, 1)))


# ---- user changes and switches --------------------------------------------------------------------------------------
def test_a_body_follows_the_mocap_body_to_which_it_is_welded():
    mj = edited(WELDED)
    mj.opt.tolerance, mj.opt.iterations = 0.0, 100
    model, oracle = fl.load(mj), mujoco.MjData(mj)
    data, batch = fl.Data(model), fl.Batch(model, 3, nthread=1)
    for k in range(200):
        place = [0.001 * k, 0.0, 1.0 + 0.2 * np.sin(0.01 * k)]
        data.mocap_pos, batch.mocap_pos, oracle.mocap_pos[:] = place, place, place
        fl.step(model, data)
        batch.step()
        mujoco.mj_step(mj, oracle)
    assert np.linalg.norm(data.body("held").xpos - data.mocap_pos[0]) < 0.1
    np.testing.assert_allclose(data.qpos, oracle.qpos, atol=PARITY)
    np.testing.assert_array_equal(batch.qpos, np.tile(data.qpos, (3, 1)))


def test_equalities_are_switched_per_world_without_affecting_others(rng):
    model = fl.load(WELDED)
    switches = rng.random((WIDTH, 3, model.neq)) < 0.5
    batch = fl.Batch(model, WIDTH, nthread=1)
    for phase in range(3):
        batch.eq_active = switches[:, phase].astype(float)
        batch.step(20)
    for w in range(WIDTH):
        data = fl.Data(model)
        for phase in range(3):
            data.eq_active = switches[w, phase].astype(float)
            for _ in range(20):
                fl.step(model, data)
        np.testing.assert_array_equal(batch.qpos[w], data.qpos)
        np.testing.assert_array_equal(batch.qvel[w], data.qvel)


def test_equality_switches_are_part_of_the_state():
    model = fl.load(WELDED)
    data, batch = fl.Data(model), fl.Batch(model, 2)
    np.testing.assert_array_equal(data.eq_active, model.eq_active0)
    data.eq_active[0] = 0
    batch.eq_active[1, 0] = 0
    data.forward()
    assert data.ne == 6 and copy.copy(data).eq_active[0] == 0 and batch.get_data(1).ne == 6
    kept = batch.checkpoint()
    model.eq_active0[1] = False
    data.reset()
    batch.reset()
    np.testing.assert_array_equal(data.eq_active, [1, 0, 0, 0])
    np.testing.assert_array_equal(batch.eq_active, [[1, 0, 0, 0]] * 2)
    batch.restore(kept)
    np.testing.assert_array_equal(batch.eq_active, [[1, 1, 0, 0], [0, 1, 0, 0]])
    assert not model.to_mujoco().eq_active0[1]


def test_a_world_without_a_row_holds_zeros(rng):
    mj = edited(EQUALITIES)
    states = random_states(mj, rng, WIDTH)
    for w, state in enumerate(states):
        state.eq_active[:] = np.arange(mj.neq) % WIDTH != w
    arrays = tile(mj, states, make_rows).arrays
    n = int(arrays["nrow"][0])
    absent = arrays["row_present"][:n] == 0.0
    assert absent.any()
    for name in "pos margin vel D aref lo hi".split():
        assert not arrays[f"row_{name}"][:n][absent].any()
    for k in range(n):
        entries = slice(arrays["row_dofadr"][k], arrays["row_dofadr"][k] + arrays["row_dofnum"][k])
        assert not arrays["row_J"][entries][:, absent[k]].any()


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_non_finite_equality_affects_only_its_world(rng):
    model = fl.load(edited(EQUALITIES))
    batch, clean = fl.Batch(model, WIDTH, nthread=1), fl.Batch(model, WIDTH, nthread=1)
    for w in range(WIDTH):
        qpos, qvel = kicked(model, rng, 0.1)
        for b in (batch, clean):
            b.qpos[w], b.qvel[w] = qpos, qvel
    batch.expand("eq_data")[3] = 1e200
    batch.step(3)
    clean.step(3)
    others = np.arange(WIDTH) != 3
    np.testing.assert_array_equal(batch.qpos[others], clean.qpos[others])
    assert batch.nreset[3] > 0 and not batch.nreset[others].any()


# ---- capacity and row fields ----------------------------------------------------------------------------------------
def test_the_capacity_covers_every_possible_row(rng):
    mj = edited(EQUALITIES)
    state = forward(mj, *kicked(mj, rng))
    state.eq_active[:] = 1
    arrays, capacity = tile(mj, [state], make_rows).arrays, row_capacity(fl.load(mj))
    n, one = int(arrays["nrow"][0]), int(arrays["ndofrow"][0])
    balls = n - one - state.ne - 3  # the connect that was off is on now
    assert capacity["nrowmax"] - capacity["ndofrowmax"] == state.ne + 3 + 1
    last = arrays["row_dofadr"][n - 1] + arrays["row_dofnum"][n - 1] - one
    assert capacity["nrowJmax"] - capacity["ndofrowmax"] == last + 3 * (1 - balls)


def test_states_of_rows_equal_mujoco(rng):
    for scene in (EQUALITIES, JOINTS):
        # with islands MuJoCo leaves row states in a different order
        mj = edited(scene, disableflags=int(mujoco.mjtDisableBit.mjDSBL_ISLAND), tolerance=0.0, iterations=100)
        for state in random_states(mj, rng, 5):
            workspace = tile(mj, [state], make_rows)
            workspace.run(constraint_forces, 1)
            np.testing.assert_array_equal(efc(workspace.model, workspace.arrays).state, state.efc_state)


def test_set_const_computes_the_second_anchor():
    model = fl.load(EQUALITIES)
    model.eq_data[0, :3] += 0.05
    fl.set_const(model)
    expected = model.to_mujoco()
    mujoco.mj_setConst(expected, mujoco.MjData(expected))
    np.testing.assert_array_equal(model.eq_data, expected.eq_data)
    batch = fl.Batch(model, 2)
    batch.expand("eq_data")[1, 0, :3] += 0.1
    batch.set_const()
    expected.eq_data[0, :3] += 0.1
    mujoco.mj_setConst(expected, mujoco.MjData(expected))
    np.testing.assert_allclose(batch.expanded("eq_data"), [model.eq_data, expected.eq_data], atol=1e-15)
