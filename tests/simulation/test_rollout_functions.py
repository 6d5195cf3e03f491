"""Rollouts as functions of arrays, with vector-Jacobian products: the interface for PyTorch and JAX."""

import subprocess
import sys

import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.adjoint.dynamics import Dynamics
from sensitivity.test_rollout_gradient import quotient, sliding, started

SLOPE = 2e-6  # relative, of differences over 1e-7


@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_products_are_slopes_along_directions(contact_model):
    """Compares a random cotangent with differences along random directions of all arguments; any quaternion length."""
    model, rng = sliding(contact_model), np.random.default_rng(0)
    batch = started(model, rng, 2)
    worlds, nstep = Dynamics(batch), 4
    given = [batch.qpos.copy(), batch.qvel.copy(), batch.act.copy(), rng.uniform(-0.5, 0.5, (2, nstep, model.nu))]
    given[0][:, 3:7] *= 1.7
    run = worlds.run(*given)
    cotangents = [rng.standard_normal(after.shape) for after in run.after]
    gradients = worlds.pull_back(run, *cotangents)[:4]

    def loss(h, direction):
        after = worlds.run(*(a + h * x for a, x in zip(given, direction, strict=True))).after
        return sum((g * x).sum((1, 2)) for g, x in zip(cotangents, after, strict=True))

    for _ in range(4):
        direction = [rng.standard_normal(a.shape) for a in given]
        slope = quotient(lambda h, direction=direction: loss(h, direction), 1e-7)
        ours = sum((g * x).reshape(2, -1).sum(1) for g, x in zip(gradients, direction, strict=True))
        assert np.abs(ours - slope).max() < SLOPE * np.abs(slope).max()
    again = worlds.pull_back(run, *cotangents)[:4]
    assert all(one.tobytes() == other.tobytes() for one, other in zip(gradients, again, strict=True))


def test_given_fields_apply_for_one_call(rng):
    """Calls with masses, with friction, and with neither alternate in any order; per-world fields of the batch stay."""
    model = sliding()
    batch = started(model, rng, 2)
    batch.expand("geom_friction")[1] *= 0.5
    worlds, control = Dynamics(batch), np.zeros((2, 5, model.nu))
    given = batch.qpos, batch.qvel, batch.act, control
    mass, rough = np.tile(model.body_mass, (2, 1)) * 1.3, np.tile(model.geom_friction, (2, 1, 1)) * 1.5
    cases = {"mass": {"body_mass": mass}, "rough": {"geom_friction": rough}, "plain": {}}
    first = {name: worlds.run(*given, fields).after[1].tobytes() for name, fields in cases.items()}
    assert len(set(first.values())) == 3
    for name in ("plain", "rough", "mass", "plain"):
        assert worlds.run(*given, cases[name]).after[1].tobytes() == first[name], name
    out = fl.Batch(model, 2, nthread=1)
    out.restore(batch.checkpoint())
    out.expand("body_mass")[:] = mass
    out.set_const()
    assert out.rollout(5, control, ("qvel",))["qvel"].tobytes() == first["mass"]
    run = worlds.run(*given, cases["mass"])
    worlds.run(*given, cases["rough"])  # a call in between changes no gradient
    weights = np.ones((2, 5, model.nv))
    found = worlds.pull_back(run, None, weights, None)[4]["body_mass"]
    assert found.tobytes() == Dynamics(batch).pull_back(run, None, weights, None)[4]["body_mass"].tobytes()


def test_invalid_arguments_are_named():
    model = sliding()
    batch = fl.Batch(model, 2, nthread=1)
    worlds, given = Dynamics(batch), [batch.qpos, batch.qvel, batch.act]
    with pytest.raises(fl.ModelError, match="control"):
        worlds.run(*given, np.zeros((2, 0, 2)))
    with pytest.raises(fl.ModelError, match="qvel"):
        worlds.run(batch.qpos, batch.qpos, batch.act, np.zeros((2, 1, 2)))
    with pytest.raises(fl.ModelError, match="geom_size_of"):
        worlds.run(*given, np.zeros((2, 1, 2)), {"geom_size_of": 1.0})
    with pytest.raises(fl.ModelError, match="body_mass"):
        worlds.run(*given, np.zeros((2, 1, 2)), {"body_mass": 1.0})
    with pytest.raises(fl.errors.ArgumentTypeError):
        Dynamics("batch")


def test_an_adapter_names_its_missing_library():
    """`import featherlane` needs neither, and loads neither."""
    code = "import sys, featherlane; assert not {'torch', 'jax'} & sys.modules.keys(); sys.modules['{0}'] = None\n"
    for name in ("torch", "jax"):
        text = code.replace("{0}", name) + f"import featherlane.integrations.{name}"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=900)
        assert f"InstallationError: featherlane.integrations.{name} requires" in done.stderr
        assert f"pip install 'featherlane[{name}]'" in done.stderr
