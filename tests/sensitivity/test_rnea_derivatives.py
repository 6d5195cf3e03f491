"""Derivatives of Newton-Euler forces against differences, and against Pinocchio's if it is installed."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.bundle import resolve_name
from scenes.joints import XML
from scenes.states import kicked
from sensitivity.test_transition import relative

EXACT = 1e-8  # error of extrapolated differences over 1e-5, for forces of some tens
ROUNDING = 1e-12


def forces(model, data, qpos, qvel, qacc):
    """Returns RNEA(q, v, a)."""
    data.qpos, data.qvel, data.qacc = qpos, qvel, qacc
    fl.stages.forward_position(model, data)
    fl.stages.com_vel(model, data)
    return fl.stages.rne(model, data, True).copy()


def differenced(model, data):
    """Returns the three derivatives by Richardson extrapolation of central differences of `rne`."""
    state, other, out = (data.qpos.copy(), data.qvel.copy(), data.qacc.copy()), fl.Data(model), []
    for kind in range(3):
        columns = []
        for i in range(model.nv):
            ends = []
            for eps in (2e-5, 1e-5):
                pair = []
                for sign in (1.0, -1.0):
                    moved, step = [a.copy() for a in state], sign * eps * np.eye(model.nv)[i]
                    moved[kind] = fl.integrate_pos(model, moved[0], step, 1.0) if kind == 0 else moved[kind] + step
                    pair.append(forces(model, other, *moved))
                ends.append((pair[0] - pair[1]) / (2 * eps))
            columns.append((4 * ends[1] - ends[0]) / 3)
        out.append(np.array(columns).T)
    return out


@pytest.mark.parametrize("name", [XML, "humanoid", "arm"])
def test_they_are_the_rates_of_newton_eulers_forces(name, rng):
    model = fl.load(resolve_name(name))
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    data.qacc = rng.normal(size=model.nv)
    found = fl.rnea_derivatives(model, data)
    for ours, expected in zip(found, differenced(model, data), strict=True):
        assert ours.shape == (model.nv, model.nv)
        assert relative(ours, expected) < EXACT


def test_by_acceleration_it_is_the_inertia_of_the_bodies(rng):
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    fl.forward(model, data)
    M = fl.query.full_m(model, data) - np.diag(model.dof_armature)
    assert relative(fl.rnea_derivatives(model, data).DtauDa, M) < ROUNDING


def test_they_equal_pinocchio(rng):
    """Compares derivatives for the arm, and its acceleration's by position and velocity, under gravity only."""
    pin = pytest.importorskip("pinocchio")
    model = fl.bundled("arm")
    theirs = pin.buildModelFromMJCF(str(Path(fl.__file__).parent / "engine" / "model" / "bundled" / "arm.xml"))
    known, data = theirs.createData(), fl.Data(model)
    data.qpos, data.qvel, data.qacc = rng.normal(size=(3, model.nv))
    pin.computeRNEADerivatives(theirs, known, data.qpos, data.qvel, data.qacc)
    found = fl.rnea_derivatives(model, data)
    assert relative(found.DtauDq, known.dtau_dq) < ROUNDING
    assert relative(found.DtauDv, known.dtau_dv) < ROUNDING
    M = np.triu(known.M) + np.triu(known.M, 1).T
    assert relative(found.DtauDa + np.diag(model.dof_armature), M) < ROUNDING
    model.opt.disableflags = "constraint, actuation, spring, damper"
    pin.computeABADerivatives(theirs, known, data.qpos, data.qvel, np.zeros(model.nv))
    moved = fl.acceleration_derivatives(model, data)
    assert relative(moved.DaDq, known.ddq_dq) < 100 * ROUNDING
    assert relative(moved.DaDv, known.ddq_dv) < 100 * ROUNDING


def test_a_batch_is_bitwise_equal_to_its_worlds(rng):
    model = fl.bundled("humanoid")
    batch = fl.Batch(model, 19, nthread=1)
    batch.expand("body_mass")[:] *= rng.uniform(0.8, 1.2, (19, 1))
    batch.expand("opt.gravity")[:] *= rng.uniform(0.5, 1.0, (19, 1))
    batch.qvel[:] = rng.normal(size=batch.qvel.shape)
    qacc = rng.normal(size=batch.qvel.shape)
    found, two = fl.rnea_derivatives(model, batch, qacc), fl.rnea_derivatives(model, batch, qacc, nthread=2)
    for w in (0, 11, 18):
        data = batch.get_data(w)
        for one, every, threaded in zip(fl.rnea_derivatives(data.model, data, qacc[w]), found, two, strict=True):
            assert one.tobytes() == every[w].tobytes() == threaded[w].tobytes()
    assert np.isfinite(fl.rnea_derivatives(model, batch).DtauDq).all()  # at the acceleration of forward dynamics


def test_edges():
    model = fl.load("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    assert fl.rnea_derivatives(model, fl.Data(model)).DtauDq.shape == (0, 0)
    model = fl.bundled("arm")
    with pytest.raises(fl.ModelError):
        fl.rnea_derivatives(model, fl.Data(model), [1.0, 2.0])
    with pytest.raises(fl.ModelError):
        fl.rnea_derivatives(model, fl.Data(model), nthread=-1)
    with pytest.raises(fl.errors.ArgumentTypeError):
        fl.rnea_derivatives(model, None)
    data = fl.Data(model)
    before = pickle.dumps(data)
    fl.rnea_derivatives(model, data)
    assert pickle.dumps(data) == before
