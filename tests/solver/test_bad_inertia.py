"""Inertias that no body has: a finite result with its residual, and no effect on the other worlds.

Calls raise an error for them; kernels are unprotected against an inertia that becomes invalid later, and tolerate it.
"""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.batch.arrays import WorldArrays

SCENE = """
<mujoco><worldbody>
  <geom type="plane" size="5 5 0.1"/>
  <body pos="0 0 0.09"><freejoint/><geom size="0.1"/></body>
  <body pos="0 0 0.28"><freejoint/><geom size="0.1"/>
    <body pos="0.1 0 0"><joint/><geom size="0.05"/></body>
  </body>
</worldbody></mujoco>
"""
WORLDS, NEGATIVE, ZERO, ARMATURE = 9, 3, 5, 6


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
@pytest.mark.parametrize("solver", ["newton", "cg", "pgs"])
def test_an_indefinite_inertia_stays_in_its_world(solver, monkeypatch):
    monkeypatch.setattr(WorldArrays, "check_edits", lambda self: None)
    model = fl.load(SCENE)
    model.opt.solver = solver
    batch, healthy = fl.Batch(model, WORLDS, nthread=1), fl.Batch(model, WORLDS, nthread=1)
    batch.expand("body_inertia")[NEGATIVE, 2] = -5.0
    batch.expand("body_inertia")[ZERO, 2] = 0.0
    batch.expand("dof_armature")[ARMATURE] = -10.0
    for _ in range(50):
        batch.step()
        healthy.step()
    assert np.isfinite(batch.qpos).all() and np.isfinite(batch.qvel).all()
    others = [world for world in range(WORLDS) if world not in (NEGATIVE, ZERO, ARMATURE)]
    for name in ("qpos", "qvel", "solver_residual", "solver_gap"):
        assert np.array_equal(getattr(batch, name)[others], getattr(healthy, name)[others]), name
    status = batch.status
    reported = status["non_finite"] + status["not_converged"] + status["singular_inertia"] > 0
    assert reported[ARMATURE] or batch.solver_gap[ARMATURE] > 1.0
    assert not reported[others].any()
