"""Inverse dynamics with constraints: it inverts forward dynamics and a step, and equals MuJoCo's."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.simulation.tile import capacity
from scenes.joints import XML
from scenes.states import kicked

UNDONE = 1e-10  # relative: a solver's error at tolerance 0
PARITY = 1e-10  # relative: sums of some hundred products
STEP = 1e-8  # relative: a velocity difference over 1e-3 s has 1e3 times the velocity's error
DISCRETE = fl.enums.Enable.INVDISCRETE
FWDINV, EXACT_DIAGONAL = fl.enums.Enable.FWDINV, fl.enums.Enable.DIAGEXACT
STEPPED = "qpos qvel qacc qacc_smooth qfrc_constraint qfrc_passive qfrc_bias efc_D cacc cfrc_ext".split()
INTEGRATORS = ("euler", "implicitfast", "implicit", "discrete")
# contacts of every dimension between trees and with the floor
TOUCHING = """<mujoco><option timestep="0.004" cone="{cone}" impratio="3"/><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.09"><freejoint/><geom size="0.1" condim="6" friction="0.6 0.02 0.01"/>
    <body pos="0.3 0 0"><joint axis="0 1 0" damping="0.4" frictionloss="0.2" range="-20 20" armature="0.01"/>
      <geom type="capsule" size="0.08" fromto="0 0 0 0.2 0 0" condim="1"/></body></body>
  <body pos="0 0.05 0.27"><freejoint/><geom size="0.1" condim="4" friction="0.5 0.03 0.01" priority="1"/></body>
  <body pos="0.3 0.1 0.26"><freejoint/><geom type="box" size="0.1 0.1 0.1" condim="3"/></body>
</worldbody></mujoco>"""


def exact(model):
    """Returns the model, solved to the smallest tolerance."""
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, 100, 100
    return model


def relative(given, expected) -> float:
    return np.abs(given - expected).max(initial=0.0) / max(1.0, np.abs(expected).max(initial=0.0))


def moving(model, rng, n=8, nstep=60):
    """Returns worlds in motion under random controls, with applied forces."""
    batch = fl.Batch(model, n, nthread=1)
    batch.qvel = rng.normal(0, 0.3, batch.qvel.shape)
    batch.ctrl = rng.uniform(-1, 1, batch.ctrl.shape)
    batch.step(nstep)
    batch.qfrc_applied = rng.normal(0, 1, batch.qfrc_applied.shape)
    batch.xfrc_applied[:, 1:] = rng.normal(0, 1, batch.xfrc_applied[:, 1:].shape)
    return batch


def external(model, data) -> np.ndarray:
    """Returns qfrc_applied + J^T xfrc_applied + qfrc_actuator of a world, after forward."""
    total = data.qfrc_applied + data.qfrc_actuator
    for b in range(1, model.nbody):
        force, moment = data.xfrc_applied[b, :3], data.xfrc_applied[b, 3:]
        total = total + fl.query.apply_ft(model, data, force, moment, data.xipos[b], b)
    return total


def shared(model, data, mj) -> mujoco.MjData:
    """Returns MuJoCo's data in the state of ours."""
    other = mujoco.MjData(mj)
    for name in ("qpos", "qvel", "ctrl", "qacc_warmstart", "qfrc_applied", "xfrc_applied"):
        getattr(other, name)[...] = getattr(data, name)
    mujoco.mj_forward(mj, other)
    return other


# ---- laws ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["humanoid", "quadruped", "hand", "box_stack", "touching"])
def test_inverse_undoes_forward(name, rng):
    """Covers both cones; the rows include limits and friction loss."""
    model = exact(fl.load(resolve_name(TOUCHING.format(cone="elliptic") if name == "touching" else name)))
    if name == "quadruped":
        model.dof_frictionloss[6:] = 0.3
    batch = moving(model, rng)
    batch.inverse()
    force = batch.qfrc_inverse
    assert batch.ncon.max() > 0
    for world in range(batch.nworld):
        data = batch.get_data(world)
        kept, rows = data.qfrc_constraint.copy(), data.efc_force.copy()
        expected = external(model, data)
        fl.inverse(model, data)
        assert relative(data.qfrc_inverse, expected) < UNDONE
        assert relative(data.qfrc_constraint, kept) < UNDONE
        assert relative(data.efc_force, rows) < UNDONE
        assert data.qfrc_inverse.tobytes() == force[world].tobytes()


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(
    "name", ["quadruped", XML, TOUCHING.format(cone="pyramidal")], ids=("quadruped", "all", "free")
)
def test_discrete_inverse_undoes_a_step(name, integrator, rng):
    """With the flag, the input acceleration is the change of velocity over a step, divided by its length."""
    model = exact(fl.load(resolve_name(name)))
    model.opt.integrator, model.opt.enableflags = integrator, DISCRETE
    batch = moving(model, rng, n=3, nstep=30)
    for world in range(batch.nworld):
        data = batch.get_data(world)
        expected, before = external(model, data), fl.get_state(model, data, fl.State.INTEGRATION)
        velocity = data.qvel.copy()
        fl.step(model, data)
        data.qacc = (data.qvel - velocity) / model.opt.timestep
        fl.set_state(model, data, before, fl.State.INTEGRATION)
        given = data.qacc.copy()
        fl.inverse(model, data)
        assert relative(data.qfrc_inverse, expected) < STEP
        np.testing.assert_array_equal(data.qacc, given)


def test_runge_kutta_has_no_discrete_inverse():
    model = fl.bundled("double_pendulum")
    model.opt.integrator, model.opt.enableflags = "rk4", DISCRETE
    data, batch = fl.Data(model), fl.Batch(model, 2, nthread=1)
    for call in (lambda: fl.inverse(model, data), batch.inverse):
        with pytest.raises(fl.ModelError):
            call()
    model.opt.enableflags = 0
    fl.inverse(model, data)


def test_without_constraints_it_is_the_smooth_inverse(rng):
    model = fl.load(XML)
    model.opt.disableflags |= 1  # constraints
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    data.qacc = rng.standard_normal(model.nv)
    expected = fl.stages.inverse_smooth(model, data)
    fl.inverse(model, data)
    np.testing.assert_allclose(data.qfrc_inverse, expected, rtol=1e-12, atol=1e-12)
    assert not data.qfrc_constraint.any()


# ---- MuJoCo --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("integrator, flags", [("euler", 0), *((name, DISCRETE) for name in INTEGRATORS)])
@pytest.mark.parametrize("cone, solver", [("pyramidal", "newton"), ("elliptic", "newton"), ("elliptic", "pgs")])
def test_forces_of_any_acceleration_equal_mujoco(cone, solver, integrator, flags, rng):
    """Constraint forces follow from the acceleration, for every solver."""
    model = fl.load(TOUCHING.format(cone=cone))
    batch = moving(model, rng, n=6, nstep=20)
    model.opt.solver, model.opt.integrator, model.opt.enableflags = solver, integrator, flags
    mj, touching = model.to_mujoco(), 0
    for world in range(batch.nworld):
        data = batch.get_data(world)
        other = shared(model, data, mj)
        data.qacc = other.qacc[:] = other.qacc + rng.normal(0, 20, model.nv)
        fl.inverse(model, data)
        mujoco.mj_inverse(mj, other)
        touching += other.ncon > 0
        for name in ("qfrc_inverse", "qfrc_constraint", "efc_force"):
            assert relative(getattr(data, name), getattr(other, name)) < PARITY, name
    assert touching >= 3


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_forces_of_every_joint_and_actuator_equal_mujoco(integrator, rng):
    model = fl.load(XML)
    model.opt.integrator, model.opt.enableflags = integrator, DISCRETE
    mj, data = model.to_mujoco(), fl.Data(model)
    for _ in range(10):
        data.qpos, data.qvel = kicked(model, rng)
        data.ctrl = rng.uniform(-1, 1, model.nu)
        fl.forward(model, data)
        other = shared(model, data, mj)
        data.qacc = other.qacc[:] = rng.normal(0, 20, model.nv)
        fl.inverse(model, data)
        mujoco.mj_inverse(mj, other)
        assert relative(data.qfrc_inverse, other.qfrc_inverse) < PARITY


# ---- comparison ----------------------------------------------------------------------------------------------------
def test_the_comparison_measures_the_solver_error(rng):
    model = fl.bundled("humanoid")
    batch = moving(model, rng, n=1)
    model.opt.iterations = 1
    data = batch.get_data(0)
    expected, constraint = external(model, data), data.qfrc_constraint.copy()
    kept = {name: np.copy(getattr(data, name)) for name in ("qacc", "qfrc_constraint", "con_force", "solver_niter")}
    fl.stages.compare_forward_inverse(model, data)
    found, status = data.solver_fwdinv.copy(), data.status
    for name, value in kept.items():
        np.testing.assert_array_equal(getattr(data, name), value, err_msg=name)
    fl.inverse(model, data)
    norms = [np.linalg.norm(constraint - data.qfrc_constraint), np.linalg.norm(expected - data.qfrc_inverse)]
    np.testing.assert_allclose(found, norms, rtol=1e-9, atol=1e-12)
    assert data.status == status

    exact(model)
    fl.forward(model, data)
    fl.stages.compare_forward_inverse(model, data)
    assert data.solver_fwdinv.max() < 1e-9 < 1.0 < np.linalg.norm(expected)


@pytest.mark.parametrize("flag", [0, EXACT_DIAGONAL], ids=["estimate", "diagexact"])
@pytest.mark.parametrize("integrator", [*INTEGRATORS, "rk4"])
def test_the_comparison_changes_no_result(integrator, flag):
    model = fl.load(TOUCHING.format(cone="pyramidal"))
    model.opt.integrator = integrator
    steps = []
    for compared in (0, FWDINV):
        model.opt.enableflags = flag | compared
        data = fl.Data(model)
        data.qvel = np.linspace(-1.0, 1.0, model.nv)
        for _ in range(5):
            fl.step(model, data)
        steps.append({name: np.copy(getattr(data, name)) for name in [*STEPPED, "efc_force"]})
        assert bool(data.solver_fwdinv.any()) == bool(compared)
    plain, compared = steps
    assert np.abs(plain["qfrc_constraint"]).max() > 1.0
    for name in STEPPED:
        assert plain[name].tobytes() == compared[name].tobytes(), name
    assert relative(compared["efc_force"], plain["efc_force"]) < PARITY  # J qacc - aref is computed again


def test_the_flag_compares_in_each_step_and_changes_no_bit(rng):
    model = fl.bundled("quadruped")
    start = moving(model, rng, n=5)
    plain, compared = (fl.Batch(model, 5, nthread=1) for _ in range(2))
    for batch in (plain, compared):
        batch.restore(start.checkpoint())
    found = compared.bind("solver_fwdinv")
    plain.step(10)
    assert np.isnan(found).all()  # of another batch, which has not stepped
    model.opt.enableflags = FWDINV
    compared.step(10)
    model.opt.enableflags = 0
    assert found.all()
    assert plain.qpos.tobytes() == compared.qpos.tobytes()
    assert plain.qacc_warmstart.tobytes() == compared.qacc_warmstart.tobytes()


# ---- batches -------------------------------------------------------------------------------------------------------
def test_given_accelerations_are_bitwise_equal_to_a_single_world(rng):
    model = fl.bundled("humanoid")
    batch = moving(model, rng, n=11)
    qacc, before = rng.normal(0, 10, (11, model.nv)), batch.checkpoint()
    batch.inverse(qacc)
    force = batch.qfrc_inverse.copy()
    for world in range(11):
        data = batch.get_data(world)
        data.qacc = qacc[world]
        fl.inverse(model, data)
        assert data.qfrc_inverse.tobytes() == force[world].tobytes()
    batch.step()
    np.testing.assert_array_equal(batch.qfrc_inverse, force)  # as of a `Data`, a step does not change it
    batch.restore(before)
    batch.inverse(qacc[0])
    of_first = batch.qfrc_inverse.copy()
    batch.inverse(qacc[[7, 2]], ids=[7, 2])
    np.testing.assert_array_equal(batch.qfrc_inverse[[7, 2]], force[[7, 2]])
    np.testing.assert_array_equal(np.delete(batch.qfrc_inverse, [7, 2], 0), np.delete(of_first, [7, 2], 0))
    batch.inverse(np.tile(qacc[0], (11, 1)))
    np.testing.assert_array_equal(batch.qfrc_inverse, of_first)
    for name, rows in batch.checkpoint().items():
        assert rows.tobytes() == before[name].tobytes(), name


def test_a_tile_whose_contacts_do_not_fit_has_the_same_forces(rng, monkeypatch):
    model = fl.bundled("humanoid")
    start = moving(model, rng, n=8, nstep=100)
    qacc = rng.normal(0, 10, (8, model.nv))
    start.inverse(qacc)
    monkeypatch.setattr(capacity, "CONTACT_LIMIT", int(start.ncon.max()))
    tight = fl.Batch(model, 8, nthread=1)
    tight.restore(start.checkpoint())
    tight.inverse(qacc)
    assert tight.qfrc_inverse.tobytes() == start.qfrc_inverse.tobytes()


def test_invalid_arguments_are_named():
    model = fl.bundled("double_pendulum")
    batch = fl.Batch(model, 3, nthread=1)
    with pytest.raises(fl.ModelError, match="qacc"):
        batch.inverse(np.zeros((3, 5)))
    with pytest.raises(fl.ModelError, match="ids"):
        batch.inverse(ids=[9])
    batch.inverse(np.zeros(2), ids=[])
    assert np.isnan(batch.qfrc_inverse).all()
