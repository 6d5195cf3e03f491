"""Adhesive contacts: rows, passive force and accelerations against MuJoCo's, and laws for every engine."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.step.inverse import inverse
from featherlane.engine.simulation.tile import capacity
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.errors import ModelError
from oracles import smooth
from oracles.contact_parity import GIVEN
from oracles.efc import efc
from oracles.rows import COMPARED

PASSIVE, ROWS, ACCELERATION = 1e-11, 1e-11, 1e-8  # relative
GEOMETRY = 1e-13  # the same points, in a different order of operations
# D of rolling is 1e-6 of the normal's: forces follow from accelerations of 1e3, with rounding times that
FORCE = 1e-9
EXACT = 1e-12

# contacts within the margin and in the gap, of one and of several points, of two moving bodies, of an explicit
# pair, of a geom with priority, of one with repulsion, and of geoms without adhesion
SCENE = """
<mujoco>
  <option cone="{cone}" tolerance="0" iterations="200" integrator="{integrator}"><flag {flag}/></option>
  <default><geom condim="{dim}" friction=".8 .02 .003" gap=".01" margin=".002"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" adhesion="1"/>
    <body pos="0 0 .102"><freejoint/><geom name="box" type="box" size=".1 .1 .1" adhesion=".5"/>
      <site name="box" size=".2"/></body>
    <body pos=".05 0 .3"><freejoint/><geom name="ball" size=".1" adhesion="2"/></body>
    <body pos="1 0 .103"><freejoint/><geom name="pill" type="capsule" size=".1 .2" euler="90 20 0"/></body>
    <body pos="-1 0 .1"><freejoint/><geom name="leads" size=".1" adhesion="3" priority="1"/></body>
    <body pos="-2 0 .1"><freejoint/><geom name="repelled" size=".1" adhesion="-1.3"/></body>
    <body pos="0 2 .5"><joint axis="0 1 0" damping=".1"/><joint axis="1 0 0" stiffness="1"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 -.3"/>
      <body pos=".3 0 -.3"><joint axis="0 1 0" frictionloss=".01"/>
        <geom name="tip" type="capsule" size=".05" fromto="0 0 0 .2 0 -.14"/></body>
    </body>
    <body pos="0 -1 .1"><freejoint/><geom name="dry" size=".1" contype="0"/></body>
  </worldbody>
  <contact>
    <pair geom1="tip" geom2="floor" adhesion="1.7" condim="3" gap=".02" margin=".01"/>
    <pair geom1="dry" geom2="floor" condim="3"/>
  </contact>
  <sensor>
    <touch site="box"/><contact geom1="box" geom2="floor" num="4" reduce="maxforce" data="found force dist"/>
    <contact geom1="ball" data="found force torque pos" reduce="netforce"/><force site="box"/>
  </sensor>
</mujoco>
"""


def scene(cone="pyramidal", dim=3, integrator="Euler", flag=""):
    return fl.load(SCENE.format(cone=cone, dim=dim, integrator=integrator, flag=flag))


def states(model, rng, n):
    """Yields states near qpos0: some contacts of a world are within the margin and others in the gap."""
    for _ in range(n):
        qpos = model.qpos0 + 0.005 * rng.standard_normal(model.nq)
        yield {"qpos": fl.normalize_quat(model, qpos), "qvel": 0.2 * rng.standard_normal(model.nv)}


def of_mujoco(mj, state, run=mujoco.mj_forward):
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = state["qpos"], state["qvel"]
    run(mj, data)
    return data


def assert_contacts_equal(given, expected):
    np.testing.assert_array_equal(given.dim, expected.dim)
    np.testing.assert_array_equal(given.geom, expected.geom)
    np.testing.assert_array_equal(given.exclude, expected.exclude)
    np.testing.assert_array_equal(given.adhesion, expected.adhesion)
    for name in ("dist", "pos", "frame", "friction", "solimp", "includemargin"):
        np.testing.assert_allclose(getattr(given, name), getattr(expected, name), atol=GEOMETRY)


def assert_rows_equal(rows, expected):
    np.testing.assert_array_equal(rows.type, expected.efc_type)
    for name in COMPARED:
        value = getattr(rows, name)
        other = np.ravel(getattr(expected, f"efc_{name}"))[: value.size].reshape(value.shape)
        if name == "force":
            assert smooth.relative(value, other) < FORCE
        else:
            assert smooth.relative(value, other) < ROWS, name


@pytest.mark.parametrize("integrator", ["Euler", "discrete"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("dim", [1, 3, 4, 6])
def test_rows_forces_and_accelerations_equal_mujoco(dim, cone, integrator, rng):
    model = scene(cone, dim, integrator)
    mj, tile, both = model.to_mujoco(), Workspace(model, 8), 0
    met = list(states(model, rng, 8))
    for lane, state in enumerate(met):
        smooth.fill(tile, lane, **state)
    tile.run(forward)
    for lane, state in enumerate(met):
        expected, alone = of_mujoco(mj, state), fl.Data(model)
        alone.qpos, alone.qvel = state["qpos"], state["qvel"]
        fl.forward(model, alone)
        assert_contacts_equal(alone.contact, expected.contact)
        assert_rows_equal(efc(model, tile.arrays, lane), expected)
        for name, bound in {"qfrc_adhesion": PASSIVE, "qfrc_passive": PASSIVE, "qacc": ACCELERATION}.items():
            values = tile.arrays[name][: model.nv, lane]
            assert smooth.relative(values, getattr(expected, name)) < bound, name
            assert values.tobytes() == getattr(alone, name).tobytes(), name
        gap = alone.contact.dist > alone.contact.includemargin
        both += gap.any() and not gap.all()
    assert both >= 4


FLAGS = (
    "",
    'diagexact="enable"',
    'override="enable"',
    'spring="disable" damper="disable"',
    'spring="disable"',
    'contact="disable"',
    'island="disable"',
    'warmstart="disable" gravity="disable"',
)


@pytest.mark.parametrize("flag", FLAGS)
def test_accelerations_equal_mujoco_under_flags(flag, rng):
    for cone in ("pyramidal", "elliptic"):
        model = scene(cone, 3, "implicitfast", flag)
        data = fl.Data(model)
        for state in states(model, rng, 3):
            expected = of_mujoco(model.to_mujoco(), state)
            data.qpos, data.qvel = state["qpos"], state["qvel"]
            fl.forward(model, data)
            for name, bound in {"qfrc_adhesion": PASSIVE, "efc_aref": ROWS, "qacc": ACCELERATION}.items():
                assert smooth.relative(getattr(data, name), getattr(expected, name)) < bound, name


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4", "discrete"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_steps_and_sensors_equal_mujoco(cone, integrator, rng):
    model = scene(cone, 3, integrator)
    mj, data = model.to_mujoco(), fl.Data(model)
    for state in states(model, rng, 2):
        expected = of_mujoco(mj, state, lambda m, d: None)
        data.reset()
        data.qpos, data.qvel = state["qpos"], state["qvel"]
        for _ in range(3):
            mujoco.mj_step(mj, expected)
            fl.step(model, data)
            for name in ("qpos", "qvel", "sensordata"):
                assert smooth.relative(getattr(data, name), getattr(expected, name)) < ACCELERATION, name


def test_net_contact_forces_equal_mujoco(rng):
    for cone in ("pyramidal", "elliptic"):
        model = scene(cone, 4)
        mj, data = model.to_mujoco(), fl.Data(model)
        for state in states(model, rng, 3):
            expected = of_mujoco(mj, state)
            data.qpos, data.qvel = state["qpos"], state["qvel"]
            fl.forward(model, data)
            for i in range(expected.ncon):
                force = np.zeros(6)
                mujoco.mj_contactForce(mj, expected, i, force)
                np.testing.assert_allclose(fl.query.contact_force(model, data, i), force, atol=ACCELERATION)
            fl.stages.rne_post_constraint(model, data)
            mujoco.mj_rnePostConstraint(mj, expected)
            assert smooth.relative(data.cfrc_ext, expected.cfrc_ext) < ACCELERATION


@pytest.mark.parametrize("integrator", ["Euler", "discrete"])
def test_inverse_dynamics_equals_mujoco_and_undoes_forward(integrator, rng):
    model = scene("elliptic", 6, integrator)
    mj, tile = model.to_mujoco(), Workspace(model, 8)
    met = list(states(model, rng, 8))
    for lane, state in enumerate(met):
        smooth.fill(tile, lane, **state)
    tile.run(forward)
    qacc = tile.arrays["qacc"].copy()
    tile.run(inverse)
    assert np.abs(tile.arrays["qfrc_inverse"]).max() < ACCELERATION * np.abs(tile.arrays["qfrc_bias"]).max()
    tile.arrays["qacc"][...] = qacc + 1.0
    tile.run(inverse)
    for lane, state in enumerate(met):
        expected = of_mujoco(mj, state)
        expected.qacc[:] = qacc[: model.nv, lane] + 1.0
        mujoco.mj_inverse(mj, expected)
        assert smooth.relative(tile.arrays["qfrc_inverse"][: model.nv, lane], expected.qfrc_inverse) < ACCELERATION


@pytest.mark.parametrize("solver", ["cg", "pgs"])
def test_other_solvers_reach_the_same_acceleration(solver, rng):
    model = scene("pyramidal", 3)
    data, exact = fl.Data(model), fl.Data(model)
    for state in states(model, rng, 2):
        for d in (data, exact):
            d.reset()
            d.qpos, d.qvel = state["qpos"], state["qvel"]
        model.opt.solver, model.opt.iterations = "newton", 200
        fl.forward(model, exact)
        model.opt.solver, model.opt.iterations = solver, 3000
        fl.forward(model, data)
        assert smooth.relative(data.qacc, exact.qacc) < 1e-6  # first-order methods


# ---- laws -----------------------------------------------------------------------------------------------------------
HANGING = """
<mujoco><option gravity="0 0 9.81" cone="{cone}"/><worldbody>
  <geom name="floor" type="plane" size="1 1 1" adhesion="{adhesion}" gap="{gap}"/>
  <body pos="0 0 .0999"><freejoint/><geom size=".1" mass="1" condim="{dim}"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("dim", [1, 3, 6])
@pytest.mark.parametrize("adhesion", [9.0, 10.5])
def test_a_contact_resists_pulling_up_to_its_adhesion(adhesion, dim, cone):
    """A ball of 9.81 N below a ceiling falls if the contact pulls with less, and hangs if with more."""
    model = fl.load(HANGING.format(adhesion=adhesion, gap=0.01, dim=dim, cone=cone))
    data = fl.Data(model)
    fl.step(model, data, 500)
    held = adhesion > 9.81
    assert (data.qpos[2] < 0.105) == held
    assert (data.ncon == 1) == held
    if held:
        assert fl.query.contact_force(model, data, 0)[0] == pytest.approx(-9.81, rel=1e-6)


def test_adhesion_does_not_change_pushing_contacts():
    """The passive force and the row's bias cancel if the contact does not slip."""
    results = []
    for adhesion in (0.0, 7.0):
        model = fl.load(HANGING.format(adhesion=adhesion, gap=0, dim=1, cone="elliptic"))
        model.opt.gravity[2] *= -1
        data = fl.Data(model)
        fl.step(model, data, 200)
        results.append((data.qacc.copy(), data.qpos.copy(), fl.query.contact_force(model, data, 0)))
    for plain, sticky in zip(*results, strict=True):
        np.testing.assert_allclose(sticky, plain, atol=EXACT * 10)


def test_adhesion_increases_the_friction_limit():
    """A ball of 10 N that cannot roll resists a push up to mu times the sum of its weight and its adhesion."""
    model = fl.load(
        '<mujoco><option gravity="0 0 -10" cone="elliptic" impratio="10"/><worldbody>'
        '<geom type="plane" size="1 1 1" friction=".5" adhesion="10"/><body pos="0 0 .0995">'
        '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><geom size=".1" mass="1" friction=".5"/>'
        "</body></worldbody></mujoco>"
    )
    for push, slips in ((9.5, False), (10.5, True)):
        data = fl.Data(model)
        data.qfrc_applied = [push, 0]
        fl.step(model, data, 25)
        force = fl.query.contact_force(model, data, 0)
        assert (data.qvel[0] > 0.01) == slips  # m/s; sticking contacts creep because they are soft
        assert np.hypot(force[1], force[2]) == pytest.approx(min(push, 0.5 * (force[0] + 10)), rel=1e-3)


# ---- worlds ---------------------------------------------------------------------------------------------------------
def test_adhesion_can_differ_by_world(rng):
    model = scene("elliptic", 3)
    factor = np.linspace(0.0, 2.0, 9)
    batch = fl.Batch(model, 9, nthread=1)
    batch.expand("geom_adhesion")[...] *= factor[:, None]
    batch.expand("pair_adhesion")[...] *= factor[:, None]
    (state,) = states(model, rng, 1)
    batch.qpos, batch.qvel = state["qpos"], state["qvel"]
    out = batch.rollout(3, record=("qvel", "qfrc_adhesion"))
    for w, f in enumerate(factor):
        alone = scene("elliptic", 3)
        alone.geom_adhesion[:] *= f
        alone.pair_adhesion[:] *= f
        data = fl.Data(alone)
        data.qpos, data.qvel = state["qpos"], state["qvel"]
        fl.step(alone, data, 3)
        assert data.qvel.tobytes() == np.ascontiguousarray(out["qvel"][w, -1]).tobytes()


def test_a_world_is_bitwise_equal_in_any_batch(rng):
    """In float32, sixteen worlds to a tile: those within the margin and in the gap share slots in different orders."""
    model, results = scene("pyramidal", 4), []
    met, order = list(states(model, rng, 16)), rng.permutation(16)
    for chosen in (np.arange(16), order):
        batch = fl.Batch(model, 16, nthread=1, dtype="float32")
        batch.qpos, batch.qvel = (np.array([met[i][name] for i in chosen]) for name in ("qpos", "qvel"))
        results.append(batch.rollout(3, record=("qvel",))["qvel"])
    assert np.isfinite(results[0]).all()
    assert results[0][order].tobytes() == results[1].tobytes()


def test_adhesion_in_a_split_tile_equals_single_worlds(monkeypatch, rng):
    model, results = scene("pyramidal", 3), []
    met = list(states(model, rng, 13))
    for split in (False, True):
        if split:
            limit = int(results[0]["ncon"].max())
            tile = Workspace(model, 8)
            for lane, state in enumerate(met[:8]):
                smooth.fill(tile, lane, **state)
            tile.run(forward)
            assert tile.arrays["ncon_slot"][0] > limit  # together eight worlds have more
            monkeypatch.setattr(capacity, "CONTACT_LIMIT", limit)
        batch = fl.Batch(model, 13, nthread=1)
        batch.qpos, batch.qvel = (np.array([state[name] for state in met]) for name in ("qpos", "qvel"))
        results.append(batch.rollout(5, record=("qvel", "qacc", "ncon", "qfrc_adhesion", "qfrc_passive")))
        assert not batch.status["contacts_full"].any()
    for name, values in results[0].items():
        assert values.tobytes() == results[1][name].tobytes(), name


def test_user_contacts_adhere_like_detected_contacts(rng):
    model = scene("elliptic", 4)
    met = list(states(model, rng, 8))
    batch = fl.Batch(model, 8, nthread=1, given_contacts=16)
    found = []
    for state in met:
        data = fl.Data(model)
        data.qpos, data.qvel = state["qpos"], state["qvel"]
        fl.forward(model, data)
        found.append(data)
    for w, data in enumerate(found):
        # the dimension within the margin: in the gap it becomes 1
        what = {name: data.contact[name][None] for name in (*GIVEN, "adhesion") if name != "dim"}
        dim = np.where(data.contact.dim == 1, 3, data.contact.dim)[None]
        batch.give_contacts(**what, dim=dim, replace=True, ids=[w])
    batch.qpos, batch.qvel = (np.array([state[name] for state in met]) for name in ("qpos", "qvel"))
    out = batch.rollout(1, record=("qacc",))
    for w, data in enumerate(found):
        assert smooth.relative(out["qacc"][w, 0], data.qacc) < EXACT


def test_adhesion_of_user_contacts_needs_an_adhesive_model():
    model = fl.load(HANGING.format(adhesion=0, gap=0, dim=3, cone="elliptic"))
    data = fl.Data(model, given_contacts=1)
    with pytest.raises(ModelError, match="adhesion"):
        data.give_contacts([-0.001], [[0, 0, 0]], [[0, 0, 1]], geom=[[0, 1]], adhesion=[1.0])
