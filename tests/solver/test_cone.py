"""Friction in up to five directions, elliptic and pyramidal: optimality conditions, MuJoCo, bitwise independence."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import stage
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.model import bundled, load
from featherlane.engine.model.enums import CONTACT_ELLIPTIC
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian.equation import assemble_hessian
from featherlane.engine.solver.inverse import constraint_forces
from oracles.efc import efc
from oracles.hessians import dense_hessian

PARITY = 1e-8  # relative: difference of two solvers' steps at tolerance 0
ROWS = 1e-9  # relative: the same formulas in a different order
OPTIMAL = 1e-9  # relative: rounding at the optimum
CURVATURE = 1e-6  # relative: central differences of the force
SINGLE = 2e-3  # relative: float32 through the condition of H, about 1e4
SINGLE_LANE = pytest.param(np.float32, 1, marks=pytest.mark.slow)  # a tile width that no batch uses: compiled here
CONES, CONDIMS = ("pyramidal", "elliptic"), (1, 3, 4, 6)

# spheres, capsules and a box on the ground, on each other, jointed; one explicit pair has separate coefficients
SCENE = """<mujoco>
  <option cone="{cone}" impratio="{impratio}" timestep="0.004" jacobian="dense"
          tolerance="0" iterations="100" ls_iterations="100"/>
  <default><geom condim="{condim}" friction="0.7 0.02 0.005"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" conaffinity="3"/>
    <body pos="0 0 0.095"><freejoint/><geom name="ball" size="0.1"/></body>
    <body pos="0.17 0 0.12"><freejoint/><geom type="capsule" size="0.1 0.1" euler="0 80 0"/>
      <body pos="0.25 0 -0.04"><joint axis="0 1 0"/><joint axis="1 0 0" frictionloss="0.1"/>
        <geom type="capsule" size="0.08" fromto="0 0 0.02 0.2 0 0.01"/></body></body>
    <body pos="0.08 0.03 0.27"><freejoint/><geom size="0.1"/></body>
    <body pos="1 0 0.195"><freejoint/><geom type="box" size="0.1 0.15 0.2" contype="2" conaffinity="0"/></body>
  </worldbody>
  <contact><pair geom1="floor" geom2="ball" condim="{condim}" friction="0.7 0.5 0.02 0.003 0.004"
                 solreffriction="0.05 0.7"/></contact>
</mujoco>"""


@stage
def curved(m, d):
    """Assembles the Hessian at the solver's final rows."""
    d.primal.live[0] = 1.0
    assemble_hessian(m, d)


def scene(cone="elliptic", condim=6, impratio=1.0):
    return mujoco.MjModel.from_xml_string(SCENE.format(cone=cone, condim=condim, impratio=impratio))


def motion(mj, count, seed=1, speed=1.0):
    """Returns MuJoCo's data in states of a motion with kicks: sticking, slipping and separating contacts."""
    rng, data, found = np.random.default_rng(seed), mujoco.MjData(mj), []
    data.qvel[:] = rng.normal(0, speed, mj.nv)
    for k in range(6 * count):
        mujoco.mj_step(mj, data)
        if k % 30 == 29:
            data.qvel[:] += rng.normal(0, 0.5 * speed, mj.nv)
        if k % 6 == 5:
            one = mujoco.MjData(mj)
            one.qpos[:], one.qvel[:], one.qacc_warmstart[:] = data.qpos, data.qvel, data.qacc_warmstart
            mujoco.mj_forward(mj, one)
            found.append(one)
    return found


def put(w, lane, data):
    for name in ("qpos", "qvel", "qacc_warmstart"):
        w.arrays[name][: getattr(data, name).size, lane] = getattr(data, name)


def relative(a, b):
    return np.abs(a - b).max(initial=0) / max(1.0, np.abs(b).max(initial=0))


def contacts_of(model, w):
    """Yields (slot, rows of efc, coefficients) of each contact that has rows."""
    rows = efc(model, w.arrays)
    for k, i in zip(rows.contact_slot, rows.contact_efc_address, strict=True):
        if i >= 0:
            dim = w.arrays["con_dim"][k]
            yield k, slice(i, i + dim), w.arrays["con_friction"][5 * k : 5 * k + dim - 1, 0]


def in_the_cone(rng, mu, scale):
    """Returns forces of the cone, many on its surface."""
    n = rng.uniform(0, scale, (64, 1))
    t = rng.normal(size=(64, len(mu)))
    t *= rng.choice([0.0, 0.5, 1.0], (64, 1)) / np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-30)
    return np.hstack([n, n * t * mu])


@pytest.mark.parametrize("condim", CONDIMS)
@pytest.mark.parametrize("cone", CONES)
@pytest.mark.parametrize("impratio", [1.0, 10.0])
def test_rows_and_motion_equal_mujoco(cone, condim, impratio):
    mj = scene(cone, condim, impratio)
    model = load(mj)
    data, touched = fl.Data(model), 0
    for truth in motion(mj, 30):
        data.qpos, data.qvel, data.qacc_warmstart = truth.qpos, truth.qvel, truth.qacc_warmstart
        fl.forward(model, data)
        touched += data.nefc
        np.testing.assert_array_equal(data.efc_type, truth.efc_type)
        np.testing.assert_array_equal(data.contact.efc_address, truth.contact.efc_address)
        for name in "J D R pos margin vel aref KBIP diagA".split():
            assert relative(getattr(data, f"efc_{name}").ravel(), np.ravel(getattr(truth, f"efc_{name}"))) < ROWS, name
        for name in ("qacc", "qfrc_constraint", "efc_force"):
            assert relative(getattr(data, name), getattr(truth, name)) < PARITY, name
        for i in range(truth.ncon):
            force = np.zeros(6)
            mujoco.mj_contactForce(mj, truth, i, force)
            assert relative(fl.query.contact_force(model, data, i), force) < PARITY
    assert touched > 100


@pytest.mark.parametrize("condim", [3, 4, 6])
def test_forces_are_the_best_of_their_cone_and_satisfy_the_equation_of_motion(condim, rng):
    """f minimizes f R f / 2 + f x over the cone: (x + R f) . (g - f) >= 0 for every other g of the cone."""
    mj = scene(condim=condim)
    model = load(mj)
    w, kinds = Workspace(model, 1), set()
    for truth in motion(mj, 20):
        put(w, 0, truth)
        w.run(forward)
        rows, qacc = efc(model, w.arrays), w.arrays["qacc"][: model.nv, 0]
        total, x = rows.force.copy(), rows.J @ qacc - rows.aref
        for k, at, mu in contacts_of(model, w):
            assert (rows.type[at] == CONTACT_ELLIPTIC).all()
            f = w.arrays["con_force"][6 * k : 6 * k + len(mu) + 1, 0]
            total[at] = f
            scale = max(1.0, f[0])
            across = np.linalg.norm(f[1:] / mu)
            assert across <= f[0] + OPTIMAL * scale
            pull = x[at] + rows.R[at] * f
            assert np.abs(pull @ f) < OPTIMAL * scale * max(1.0, np.abs(pull).max())
            assert ((in_the_cone(rng, mu, 2 * scale) - f) @ pull).min() > -OPTIMAL * scale * max(
                1.0, np.abs(pull).max()
            )
            kinds.add("parts" if f[0] == 0 else "slips" if across > f[0] * (1 - 1e-12) else "sticks")
        inertia = np.zeros((mj.nv, mj.nv))
        mujoco.mj_fullM(mj, truth, inertia)
        assert relative(inertia @ qacc, w.arrays["qfrc_smooth"][: model.nv, 0] + rows.J.T @ total) < OPTIMAL
    assert kinds == {"parts", "slips", "sticks"}


@pytest.mark.parametrize(("cone", "condim"), [("elliptic", 3), ("elliptic", 4), ("elliptic", 6), ("pyramidal", 6)])
def test_hessian_is_the_derivative_of_the_gradient(cone, condim, rng):
    mj = scene(cone, condim)
    model = load(mj)
    w, between = Workspace(model, 1), 0
    for truth in motion(mj, 16, speed=0.1):
        put(w, 0, truth)
        w.run(forward)
        pushed = w.arrays["con_force"][::6, 0] * w.arrays["con_present"][:, 0] > 0
        between += (pushed & (w.arrays["con_body"][1::2] > 0)).sum()
        rows, qacc = efc(model, w.arrays), w.arrays["qacc"].copy()
        w.run(curved)
        H = dense_hessian(w)
        H += np.tril(H, -1).T
        inertia = np.zeros((mj.nv, mj.nv))
        mujoco.mj_fullM(mj, truth, inertia)
        for p in rng.normal(size=(3, model.nv)):
            force = []
            for h in (1e-5, -1e-5):
                w.arrays["qacc"][: model.nv, 0] = qacc[: model.nv, 0] + h * p
                w.run(constraint_forces, 1)
                force.append(efc(model, w.arrays).force)
            expected = inertia @ p - rows.J.T @ (force[0] - force[1]) / 2e-5
            assert relative(H @ p, expected) < CURVATURE
    assert between > 3


@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
@pytest.mark.parametrize("impratio", [1.0, 10.0])
def test_bundled_robots_on_elliptic_contacts_move_as_in_mujoco(name, impratio, rng):
    model = bundled(name)
    model.opt.cone, model.opt.tolerance, model.opt.impratio = "elliptic", 0.0, impratio
    model.opt.iterations = model.opt.ls_iterations = 100
    mj = model.to_mujoco()
    assert mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    truth, data, slipping = mujoco.MjData(mj), fl.Data(model), 0
    for _ in range(60):
        truth.ctrl[:] = rng.uniform(-1, 1, mj.nu)
        for _ in range(5):
            mujoco.mj_step(mj, truth)
        mujoco.mj_forward(mj, truth)
        for field in ("qpos", "qvel", "ctrl", "qacc_warmstart"):
            setattr(data, field, getattr(truth, field))
        fl.forward(model, data)
        slipping += int((truth.efc_state == mujoco.mjtConstraintState.mjCNSTRSTATE_CONE).sum())
        assert relative(data.qacc, truth.qacc) < PARITY
    assert slipping > 0


@pytest.mark.parametrize(("dtype", "lanes"), [(np.float64, 1), (np.float32, 16), SINGLE_LANE])
@pytest.mark.parametrize(("cone", "condim"), [("elliptic", 3), ("elliptic", 6), ("pyramidal", 4)])
def test_a_world_is_bitwise_equal_alone_and_in_a_tile(cone, condim, dtype, lanes):
    """Covers tiles of one lane, and tiles with resting worlds in the other lanes."""
    mj, width = scene(cone, condim), tile_width(dtype)
    model = load(mj)
    model.opt.tolerance = 1e-8
    found = motion(mj, width)
    for k in (0, 3):
        found[k].qpos[[2, 9, 18, 25]] += 5.0 * np.arange(1, 5)  # a world without contacts: its slots are zeros
    alone, tile = Workspace(model, lanes, dtype), Workspace(model, width, dtype)
    for lane, data in enumerate(found):
        put(tile, lane, data)
    tile.run(forward)
    n = tile.arrays["ncon_slot"][0]
    absent = tile.arrays["con_present"][:n] == 0
    assert absent.any() and not absent.all()
    for name in ("con_D", "con_Dt", "con_slip", "con_damping", "con_frictiondamping", "con_stiffpos"):
        assert not tile.arrays[name][:n][absent].any(), name
    assert not tile.arrays["con_force"][: 6 * n][np.repeat(absent, 6, axis=0)].any()
    for lane, data in enumerate(found):
        put(alone, 0, data)
        alone.run(forward)
        for name in ("qacc", "qfrc_constraint", "solver_niter", "solver_residual"):
            assert np.isfinite(alone.arrays[name]).all()
            assert alone.arrays[name][:, 0].tobytes() == tile.arrays[name][:, lane].tobytes(), (name, lane)


@pytest.mark.parametrize("impratio", [1.0, 10.0])
@pytest.mark.parametrize("condim", [3, 6])
def test_float32_converges_in_as_few_iterations_as_float64(condim, impratio):
    mj = scene(condim=condim, impratio=impratio)
    model = load(mj)
    model.opt.tolerance = 1e-8
    found, count, motions = motion(mj, 48), {}, {}
    for dtype in (np.float64, np.float32):
        width = tile_width(dtype)
        w, total, motions[dtype] = Workspace(model, width, dtype), 0, []
        for first in range(0, len(found), width):
            for lane, data in enumerate(found[first : first + width]):
                put(w, lane, data)
            w.arrays["qacc_warmstart"][...] = 0.0
            w.run(forward)
            total += w.arrays["solver_niter"][0].sum()
            motions[dtype] += list(w.arrays["qacc"][: model.nv].T.astype(float))
        assert not w.arrays["warning"][3].any()
        count[dtype] = total
    assert 0 < count[np.float32] <= 1.1 * count[np.float64]
    assert max(relative(a, b) for a, b in zip(motions[np.float32], motions[np.float64], strict=True)) < SINGLE


BALL = """<mujoco><option cone="{}" timestep="0.002"/><worldbody>
  <geom type="plane" size="9 9 1" condim="1" friction="0 0 0"/>
  <body pos="0 0 0.1"><freejoint/><geom size="0.1" mass="1" condim="{}" friction="0.8 0.004 0.003"/></body>
</worldbody></mujoco>"""


def after_half_a_second(cone, condim, qvel):
    """Returns the velocity of a ball on the ground, half a second after its start."""
    model = load(BALL.format(cone, condim))
    data = fl.Data(model)
    for k in range(350):
        if k == 100:
            data.qvel = qvel
        fl.step(model, data)
    return data.qvel


@pytest.mark.parametrize("cone", CONES)
def test_torsional_friction_acts_from_condim_4_and_rolling_friction_from_6(cone):
    """A solid ball loses its spin by mu_3 g / (2/5 r^2), and its rolling speed by mu_4 g / (7/5 r)."""
    spin, roll = (0, 0, 0, 0, 0, 10.0), (1.0, 0, 0, 0, 10.0, 0)
    slowed_spin, slowed_roll = 10.0 - 0.5 * 0.004 * 9.81 / (0.4 * 0.1**2), 1.0 - 0.5 * 0.003 * 9.81 / (1.4 * 0.1)
    for condim, expected in ((3, 10.0), (4, slowed_spin), (6, slowed_spin)):
        assert after_half_a_second(cone, condim, spin)[5] == pytest.approx(expected, rel=0.01)
    for condim, expected in ((3, 1.0), (4, 1.0), (6, slowed_roll)):
        assert after_half_a_second(cone, condim, roll)[0] == pytest.approx(expected, rel=0.01)
