"""Rows against MuJoCo's: every kind of row, every form of its parameters, at the ends of their ranges."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.constraint import make_rows, row_capacity
from featherlane.engine.model import load
from featherlane.engine.model.enums import LIMIT_JOINT
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles.efc import efc
from oracles.rows import SOLIMPS, SOLREFS, TOLERANCE, assert_rows_equal, check, edited, random_states
from sampling import in_ci
from scenes.constraints import CONTACTS, JOINTS, forward, tile
from scenes.states import kicked


@pytest.fixture(params=[1, 8])
def width(request):
    return request.param


@pytest.mark.parametrize("solref", SOLREFS)
def test_references_of_friction_and_limits_equal_mujoco(solref, width, rng):
    mj = edited(JOINTS, jnt_solref=solref, dof_solref=solref)
    assert check(mj, rng, width) > 5 * width


@pytest.mark.parametrize("solimp", SOLIMPS)
def test_impedances_of_friction_and_limits_equal_mujoco(solimp, width, rng):
    mj = edited(JOINTS, jnt_solimp=solimp, dof_solimp=solimp)
    assert check(mj, rng, width) > 5 * width


@pytest.mark.parametrize("solref", SOLREFS)
def test_references_of_contacts_equal_mujoco(solref, width, rng):
    mj = edited(CONTACTS, geom_solref=solref, pair_solref=solref)
    assert check(mj, rng, width, position=0.002) > 5 * width


@pytest.mark.parametrize("solimp", SOLIMPS)
def test_impedances_of_contacts_equal_mujoco(solimp, width, rng):
    mj = edited(CONTACTS, geom_solimp=np.multiply(solimp, (1, 1, 0.1, 1, 1)), pair_solimp=solimp)
    assert check(mj, rng, width, position=0.002) > 5 * width


@pytest.mark.parametrize("impratio", [0.3, 10.0])
def test_contacts_as_the_model_declares_them_equal_mujoco(impratio, width, rng):
    mj = edited(CONTACTS, impratio=impratio)
    states = random_states(mj, rng, width, position=0.002)
    assert_rows_equal(tile(mj, states, make_rows), states)
    # 1 in the gap and 3 between bodies welded to each other: both have no rows
    assert {c.exclude for data in states for c in data.contact} >= {0, 1, 3}
    assert {c.dim for data in states for c in data.contact} == {1, 3}


@pytest.mark.parametrize("cone", [0, 1])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("impratio", [0.3, 10.0])
def test_contacts_of_every_dimension_equal_mujoco(cone, condim, impratio, width, rng):
    mj = edited(CONTACTS, cone=cone, impratio=impratio, geom_condim=condim, pair_dim=condim)
    mj.geom_friction[:] = rng.uniform(0.01, 1.0, mj.geom_friction.shape)
    mj.pair_friction[:] = rng.uniform(0.01, 1.0, mj.pair_friction.shape)
    states = random_states(mj, rng, width, position=0.002)
    assert_rows_equal(tile(mj, states, make_rows), states)
    assert {c.dim for data in states for c in data.contact} == {condim}


@pytest.mark.parametrize("cone", [0, 1])
@pytest.mark.parametrize("solref", [*SOLREFS, (0.02, 0.0), (0.0, -5.0)])
def test_explicit_pairs_have_a_separate_friction_reference(solref, cone, width, rng):
    mj = edited(CONTACTS, cone=cone, pair_solreffriction=solref)
    states = random_states(mj, rng, width, position=0.002)
    assert_rows_equal(tile(mj, states, make_rows), states)
    assert any(tuple(c.solreffriction) == solref and c.efc_address >= 0 for data in states for c in data.contact)


def test_a_row_without_inverse_inertia_has_the_least_regularisation(rng):
    mj = edited(JOINTS, dof_invweight0=0.0)
    states = random_states(mj, rng, 1)
    rows = efc(load(mj), tile(mj, states, make_rows).arrays)
    np.testing.assert_allclose(rows.D, states[0].efc_D, rtol=TOLERANCE)


def test_the_larger_entry_of_its_range_limits_a_ball(width, rng):
    mj = edited(JOINTS)
    mj.jnt_range[mj.jnt_type == mujoco.mjtJoint.mjJNT_BALL] = 0.4, 0.1
    check(mj, rng, width)


def test_the_force_of_a_slot_lies_between_its_bounds(rng):
    mj = edited(JOINTS, jnt_margin=1.0)
    data = forward(mj, *kicked(mj, rng))
    workspace = tile(mj, [data], make_rows)
    n, d = int(workspace.arrays["ndofrow"][0]), {name: a.ravel() for name, a in workspace.arrays.items()}
    D, J, aref, dof, lo, hi = (d[f"row_{name}"][:n] for name in "D J aref dof lo hi".split())
    force = np.clip(-D * (J * data.qacc[dof] - aref), lo, hi)
    np.testing.assert_allclose(np.bincount(dof, J * force, mj.nv)[:2], data.qfrc_constraint[:2], rtol=1e-9)
    J, axes = d["row_J"][n : n + 3], slice(2, 5)
    force = np.clip(-d["row_D"][n] * (J @ data.qacc[axes] - d["row_aref"][n]), d["row_lo"][n], d["row_hi"][n])
    assert force > 0.0
    np.testing.assert_allclose(force, data.efc_force[(data.efc_id == 2) & (data.efc_type == LIMIT_JOINT)][0], rtol=1e-9)


@pytest.mark.parametrize("flag", ["REFSAFE", "CONSTRAINT", "LIMIT", "FRICTIONLOSS"])
def test_disable_flags_act_as_in_mujoco(flag, width, rng):
    mj = edited(JOINTS, jnt_solref=(0.003, 1.0), dof_solref=(0.003, 1.0))
    mj.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    assert (check(mj, rng, width) > 0) == (flag != "CONSTRAINT")


@pytest.mark.parametrize("flag", ["CONSTRAINT", "CONTACT"])
def test_disabled_contacts_have_no_rows(flag, width, rng):
    mj = edited(CONTACTS)
    states = random_states(mj, rng, width, position=0.002)
    mj.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    arrays = tile(mj, states, make_rows).arrays
    assert arrays["ncon_slot"][0] > 0
    assert not any(arrays[name].any() for name in ("con_D", "con_damping", "con_stiffpos"))


def test_both_limits_of_a_joint_act_within_a_wide_margin(width, rng):
    mj = edited(JOINTS, jnt_margin=1.0)
    states = random_states(mj, rng, width, position=0.05)
    assert all(data.nl == 3 * 2 + 1 for data in states)
    assert_rows_equal(tile(mj, states, make_rows), states)


@pytest.mark.parametrize("margin", [0.0, 1e-3, -0.02])
def test_a_limit_acts_below_its_margin(margin, width):
    mj = edited(JOINTS, jnt_margin=margin)
    qpos = mj.qpos0.copy()
    states = []
    for offset in (-1e-9, 0.0, 1e-9, -1.0, 1.0, 1e-4, 0.5, -1e-4)[:width]:
        qpos[1] = mj.jnt_range[1, 1] - margin + offset
        states.append(forward(mj, qpos, np.ones(mj.nv)))
    assert_rows_equal(tile(mj, states, make_rows), states)


# exactly pi is a half turn in either direction; a zero quaternion is the identity
@pytest.mark.parametrize("angle", [0.0, 1e-17, 1e-9, 1e-4, 1.0, np.pi - 1e-6, np.pi, np.pi + 1e-6, 5.0, 2 * np.pi])
@pytest.mark.parametrize("length", [1.0, -1.0, 1.7, 1e-16])
def test_ball_limits_equal_mujoco_at_every_angle(angle, length, width):
    mj = edited(JOINTS, jnt_range=(0.0, 0.0), jnt_margin=0.01)
    qpos, axis = mj.qpos0.copy(), np.array([2.0, -1.0, 2.0]) / 3.0
    qpos[2:6] = length * np.array([np.cos(angle / 2), *np.sin(angle / 2) * axis])
    states = [forward(mj, qpos, np.linspace(-1, 1, mj.nv))] * width
    assert_rows_equal(tile(mj, states, make_rows), states)


def test_a_ball_without_a_rotation_turns_about_x():
    mj = edited(JOINTS, jnt_range=(0.0, 0.0), jnt_margin=0.01)
    for w in (1.0, -1.0):
        qpos = mj.qpos0.copy()
        qpos[2] = w
        arrays = tile(mj, [forward(mj, qpos, np.ones(mj.nv))], make_rows).arrays
        np.testing.assert_array_equal(arrays["row_J"][arrays["ndofrow"][0] :][:3, 0], [-1.0, 0.0, 0.0])


def alone_and_together(xml, rng, position, dtype):
    """Returns tiles of one world each, and one tile of all of them, some worlds far from any row."""
    mj = edited(xml)
    states = random_states(mj, rng, 8, position)
    for lane in (0, 3):
        qpos = mj.qpos0.copy()
        if xml == CONTACTS:
            qpos[[2, 10, 17, 24, 31]] += 5.0 * np.arange(1, 6)
        states[lane] = forward(mj, qpos, np.ones(mj.nv))
    return [tile(mj, [data], make_rows, dtype) for data in states], tile(mj, states, make_rows, dtype)


@pytest.mark.parametrize("dtype", [np.float64, in_ci(np.float32)])
@pytest.mark.parametrize(("xml", "position"), [(JOINTS, 0.3), (CONTACTS, 0.002)])
def test_rows_of_a_world_are_bitwise_equal_in_any_batch(xml, position, dtype, rng):
    alone, together = alone_and_together(xml, rng, position, dtype)
    for lane, single in enumerate(alone):
        one, many = efc(single.model, single.arrays), efc(together.model, together.arrays, lane)
        for name in "type id pos margin frictionloss vel D aref J".split():
            np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


@pytest.mark.parametrize(("xml", "position"), [(JOINTS, 0.3), (CONTACTS, 0.002)])
def test_a_world_that_lacks_a_row_holds_zeros(xml, position, rng):
    _, together = alone_and_together(xml, rng, position, np.float64)
    arrays, absences = together.arrays, 0
    n = int(arrays["nrow"][0])
    absent = arrays["row_present"][:n] == 0.0
    absences += absent.sum()
    for name in "pos margin vel D aref lo hi".split():
        assert not arrays[f"row_{name}"][:n][absent].any()
    entries = np.repeat(absent, arrays["row_dofnum"][:n], axis=0)
    assert not arrays["row_J"][: len(entries)][entries].any()
    n = int(arrays["ncon_slot"][0])
    absent = arrays["con_present"][:n] == 0.0
    absences += absent.sum()
    assert not any(arrays[name][:n][absent].any() for name in ("con_D", "con_damping", "con_stiffpos"))
    assert absences > 0


def test_parameters_can_differ_by_world(rng):
    mj = edited(JOINTS)
    states = random_states(mj, rng, 8)
    workspace = Workspace(load(mj), 8)
    loss = workspace.rows.record.arrays["dof_frictionloss"]
    loss[...] = 0.0
    loss[1, 2] = 0.4
    workspace.arrays["qvel"][:] = np.array([data.qvel for data in states]).T
    workspace.run(make_rows)
    arrays = workspace.arrays
    assert arrays["row_dof"][0] == 1 and arrays["row_type"][1] != arrays["row_type"][0]
    np.testing.assert_array_equal(arrays["row_hi"][0], np.where(np.arange(8) == 2, 0.4, 0.0))


def test_the_capacity_covers_every_possible_row():
    mj = edited(JOINTS, jnt_margin=1e3, dof_frictionloss=1.0)
    mj.jnt_range[:] = -50.0, 50.0
    arrays = tile(mj, [forward(mj, mj.qpos0, np.zeros(mj.nv))], make_rows).arrays
    capacity, one = row_capacity(load(mj)), mj.nv + 2 * 3
    assert capacity == {"nrowmax": one + 2, "ndofrowmax": one, "nrowJmax": one + 6}
    assert arrays["ndofrow"][0] == one and arrays["nrow"][0] == one + 2


@pytest.mark.parametrize("name", ["gymnasium/humanoid", "gymnasium/walker2d", "gymnasium/ant"])
def test_rows_of_real_models_equal_mujoco(name, real_model, width, rng):
    mj = mujoco.MjModel.from_xml_path(str(real_model(name)))
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    mj.opt.cone, mj.opt.solver = mujoco.mjtCone.mjCONE_PYRAMIDAL, mujoco.mjtSolver.mjSOL_NEWTON
    check(mj, rng, width)


def test_a_model_without_dofs_may_have_equalities():
    bodies = "<body name='a'/><body name='b' pos='0 0 1'/>"
    kinds = "<connect body1='a' body2='b' anchor='.1 0 0'/><weld body1='a'/>"
    model = fl.load(f"<mujoco><worldbody>{bodies}</worldbody><equality>{kinds}</equality></mujoco>")
    data, batch = fl.Data(model), fl.Batch(model, 3, nthread=1)
    data.step()
    batch.step()
    assert data.nefc == 0 and data.time == batch.time[2] == model.opt.timestep


def test_a_model_without_dofs_has_no_rows():
    mj = edited("<mujoco><worldbody><geom type='plane' size='1 1 1'/></worldbody></mujoco>")
    rows = efc(load(mj), tile(mj, [forward(mj, [], [])], make_rows).arrays)
    assert rows.nefc == 0 and rows.J.shape == (0, 0)
