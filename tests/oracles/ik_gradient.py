"""Reads cost, gradient and normal equations of inverse kinematics from its stage, for comparisons with oracles."""

from __future__ import annotations

import numpy as np

import featherlane as fl
from featherlane.engine.lanes.record import allocated
from featherlane.engine.simulation.tile.library import library
from featherlane.tools.inverse_kinematics.dofs import Dofs
from featherlane.tools.inverse_kinematics.fields import IK
from featherlane.tools.inverse_kinematics.ik import Problem
from featherlane.tools.inverse_kinematics.residual import ik_residual
from featherlane.tools.inverse_kinematics.targets import Targets


def gradient(model: fl.Model, targets, qpos: np.ndarray, weight: float = 0.0) -> tuple[float, np.ndarray, np.ndarray]:
    """Returns cost, -dF/dq (nv,) and J^T W J (nv, nv) of targets in a position, for all DoFs."""
    batch = fl.Batch(model, 1)
    given = Targets(model, 1, batch.dtype, targets)
    dofs = Dofs(model, given.body, np.arange(model.neq), np.arange(model.nv))
    problem = Problem(batch, np.arange(1), given, dofs, True, np.ones(2))
    record = allocated(IK, problem.sizes | {"most": 0}, 1, np.float64)
    for name, values in problem.tables.items():
        record.arrays[name][: values.size] = values.ravel()
    for name, values in (problem.rows | {"posture": model.qpos0, "stiffness": np.array([weight])}).items():
        record.arrays[name][: values.size, 0] = values.ravel()
    data = fl.Data(model)
    data.qpos = qpos
    data.forward()
    library().bind(ik_residual, data.workspace.rows.record, data.workspace.record, record)()
    n = model.nv
    A = record.arrays["trial_A"][: n * n, 0].reshape(n, n)
    return record.arrays["trial_cost"][0, 0], record.arrays["trial_g"][:n, 0].copy(), np.tril(A) + np.tril(A, -1).T
