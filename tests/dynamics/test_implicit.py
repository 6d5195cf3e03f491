"""The implicit integrators: their linear system, free bodies, stability of damping, order, and parity with MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.dynamics.integrator.implicit import implicit
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth

SOLVED = 1e-12  # relative: rounding of a factorization without pivoting
PARITY = 1e-10  # relative, of the next velocity
FREE = """
<mujoco><option timestep="{h}" gravity="0 0 0"/><worldbody>
  <body><freejoint/><geom type="box" size=".05 .2 .45" mass="10" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>
"""
# body-frame angular velocity of the box after one second (../shared/reference/MECHANICS.md)
OMEGA = (3.42379844155, 2.81918543840, 3.92838444947)
# |H| after that second over |H| at its start, less 1, at h = .002; recorded, equal to MuJoCo 4.0.1's
DRIFT = {"euler": 1.64e-3, "implicit": -1.69e-3, "implicitfast": -1.69e-3, "discrete": -1.69e-3, "rk4": -8e-12}
ALONE = """
<mujoco><option timestep=".01"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body pos="0 0 1"><freejoint name="a"/><geom type="box" size=".1 .2 .3" pos=".05 0 .02"/></body>
  <body pos="1 0 1"><freejoint name="b"/><geom type="box" size=".1 .2 .3"/>
    <body pos=".3 0 0"><geom type="box" size=".1 .05 .03"/></body></body>
  <body pos="2 0 1"><freejoint name="c"/><geom type="box" size=".1 .2 .3" pos=".02 .05 0"/>
    <body pos=".3 0 0"><joint damping=".3"/><geom type="box" size=".1 .05 .03" pos=".1 0 0"/></body></body>
  <body pos="3 0 1"><joint name="d" type="free" damping=".2"/><geom type="box" size=".1 .2 .3" pos="0 .1 0"/>
    <body pos=".3 0 0"><inertial pos="0 0 0" mass="1e-20" diaginertia="1e-20 1e-20 1e-20"/></body></body>
</worldbody><actuator><velocity joint="a" kv=".5" gear="1 0 2 .1 .2 .3"/></actuator></mujoco>
"""


def orientation(quat):
    """Returns the rotation matrix of a quaternion."""
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, np.array(quat))
    return R.reshape(3, 3)


def angular_momentum(model, data):
    """Returns H in world axes of a free body whose centre of mass is its origin."""
    axes = orientation(model.body_iquat[1])
    inertia = axes @ np.diag(model.body_inertia[1]) @ axes.T
    return orientation(data.qpos[3:7]) @ inertia @ data.qvel[3:6]


def spun(integrator, h):
    """Returns, after one second of the box: angular velocity in body axes, and |H| and energy relative to the start."""
    model = fl.load(FREE.format(h=h))
    model.opt.integrator = integrator
    data = fl.Data(model)
    data.qvel[3:] = 0.1, 5.0, 0.1
    before = angular_momentum(model, data)
    fl.forward(model, data)
    fl.stages.energy(model, data)
    energy = data.energy[1]
    fl.step(model, data, round(1.0 / h))
    after = angular_momentum(model, data)
    omega = data.qvel[3:].copy()
    fl.forward(model, data)
    fl.stages.energy(model, data)
    return omega, np.linalg.norm(after) / np.linalg.norm(before), data.energy[1] / energy


# ---- free bodies ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("integrator", DRIFT)
def test_a_tumbling_box_keeps_its_angular_momentum_up_to_the_order(integrator):
    _, momentum, _ = spun(integrator, 0.002)
    assert momentum - 1.0 == pytest.approx(DRIFT[integrator], rel=0.05)


def test_runge_kutta_follows_the_published_spin():
    omega, _, energy = spun("rk4", 0.002)
    np.testing.assert_allclose(omega, OMEGA, rtol=3e-8)  # h^4 and the instability of the spin
    assert abs(energy - 1.0) < 1e-9


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast", "discrete"])
def test_a_tumbling_box_gains_no_energy(integrator):
    _, _, energy = spun(integrator, 1 / 64)
    assert 0.5 < energy < 1.0


@pytest.mark.parametrize(("integrator", "order"), [("euler", 1), ("implicit", 1), ("discrete", 1), ("rk4", 4)])
def test_integrators_converge_with_their_order(integrator, order):
    errors = [np.abs(spun(integrator, h)[0] - OMEGA).max() for h in (1 / 256, 1 / 512)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


def test_implicitfast_equals_implicit_for_a_single_free_body(rng):
    model, velocities = fl.load(FREE.format(h=0.01)), []
    state = rng.standard_normal(6)
    for integrator in ("implicit", "implicitfast"):
        model.opt.integrator = integrator
        data = fl.Data(model)
        data.qvel = 5 * state
        fl.step(model, data)
        velocities.append(data.qvel.copy())
    np.testing.assert_allclose(*velocities, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast", "discrete"])
def test_single_free_bodies_are_detected_as_in_mujoco(rng, integrator):
    """Covers free bodies alone, with a welded body of mass, with a jointed one, with one of almost no mass."""
    model = fl.load(ALONE)
    model.opt.integrator = integrator
    mj = model.to_mujoco()
    data, expected = fl.Data(model), mujoco.MjData(mj)
    for _ in range(5):
        data.qvel = expected.qvel[:] = 4 * rng.standard_normal(model.nv)
        data.ctrl = expected.ctrl[:] = rng.standard_normal(1)
        fl.step(model, data)
        mujoco.mj_step(mj, expected)
        assert smooth.relative(data.qvel, expected.qvel) < PARITY
        data.qpos = expected.qpos


# ---- the linear system ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", smooth.WIDTHS)
def test_the_step_solves_its_linear_system(rng, width):
    """Checks (M - h D) qacc* = M qacc with the whole matrices, dense."""
    model = fl.load(smooth.XML)
    model.opt.integrator, h = "implicit", model.opt.timestep
    ws = Workspace(model, width)
    for k in range(width):
        smooth.fill(ws, k, **smooth.random_state(model, rng))
    smooth.forward(ws)
    ws.arrays["qfrc_constraint"][: model.nv] = rng.standard_normal((model.nv, width))
    force = (ws.arrays["qfrc_smooth"] + ws.arrays["qfrc_constraint"])[: model.nv].copy()
    ws.run(implicit)
    rows = np.repeat(np.arange(model.nv), model.M_rownnz)
    for k in range(width):
        A = np.zeros((model.nv, model.nv))
        A[rows, model.M_colind] = A[model.M_colind, rows] = ws.arrays["M"][: model.nC, k]
        A[np.repeat(np.arange(model.nv), model.D_rownnz), model.D_colind] -= h * ws.arrays["qDeriv"][: model.nD, k]
        assert smooth.relative(A @ ws.arrays["qacc_step"][: model.nv, k], force[:, k]) < SOLVED


@pytest.mark.parametrize("integrator", ["implicit", "implicitfast", "discrete"])
def test_strong_damping_stays_stable_at_large_steps(integrator):
    """h b / I = 50 on the joints and, through a velocity servo, across them: explicit damping would diverge."""
    model = fl.load(
        "<mujoco><option timestep='.05'/><default><geom size='.05' mass='1'/></default><worldbody><body>"
        "<joint name='a' damping='3' axis='0 1 0'/><geom pos='.05 0 0'/><body pos='.1 0 0'><joint name='b' damping='3'"
        " axis='0 1 0'/><geom pos='.05 0 0'/></body></body></worldbody>"
        "<actuator><velocity joint='a' kv='4'/><velocity joint='b' kv='4'/></actuator></mujoco>"
    )
    model.opt.integrator, data = integrator, fl.Data(model)
    model.opt.gravity, data.qvel = (0, 0, 0), (3.0, -5.0)
    fl.step(model, data, 40)
    assert np.abs(data.qvel).max() < 1e-3


def test_a_nan_world_does_not_affect_other_worlds(rng):
    model, results = fl.load(smooth.random_tree(rng, 5)), []
    states = [smooth.random_state(model, rng) for _ in range(8)]
    for spoiled in (False, True):
        ws = Workspace(model, 8)
        for k, state in enumerate(states):
            smooth.fill(ws, k, **state)
        if spoiled:
            ws.arrays["qvel"][:, 5] = np.nan
        smooth.forward(ws)
        ws.run(implicit)
        results.append(np.delete(np.concatenate([ws.arrays["qpos"], ws.arrays["qvel"]]), 5, axis=1))
    assert results[0].tobytes() == results[1].tobytes()
