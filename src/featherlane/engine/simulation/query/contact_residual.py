"""Computes by how much the contact forces of one world violate Signorini's conditions and Coulomb's law."""

from __future__ import annotations

import numpy as np

from featherlane.engine.dynamics.inertia.joint_space import crb, mul_m
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.product import from_fields
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.errors import ModelError


def contact_residual(model: Model, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Returns the residual of the nonlinear complementarity problem of the contact model `coulomb`, by contact.

    The row forces f alone determine the acceleration a = a0 + M^-1 J^T f, and the slack w = J a - aref + R f of each
    contact.  The residual is the distance of the contact's force from its next projection,

        normal     f_n - max(f_n - w_n / g, 0)
        friction   f_t - P(f_t - w_t / g),      P the projection to |f_t| <= mu f_n

    with g = A_ii + R_ii, the inverse mass of the row.  It is 0 if and only if the force obeys both laws.  The velocity
    is h g times the force: the error of the velocity at the end of the step.  Rows of other dimensions count in units
    of sliding friction: torques are divided by their coefficient [m] over that of sliding.

    Args:
        model: the model, with the contact model `coulomb`.
        data: the world after a step or a `forward`, whose forces are evaluated.

    Returns:
        (force, velocity), each (ncon,) [N], [m/s]: norms over normal and friction; 0 for a contact without rows.

    Raises:
        ModelError: another contact model.

    Source: Alart and Curnier, A mixed formulation for frictional contact problems (1991), the projections.
    """
    world = ready(model, data)
    if model.opt.contact_model != "coulomb":
        raise ModelError(f"contact_residual: got the contact model {model.opt.contact_model!r}, allowed is 'coulomb'")
    hold(data._turns, data.workspace.bound(crb))  # a step computes M only if its solver reads it
    J, f, contacts = np.reshape(world.efc_J, (-1, model.nv)), world.efc_force, world.contact
    moved = np.linalg.solve(from_fields(world, np.eye(model.nv), mul_m, "qproduct"), J.T) if model.nv else J.T
    w = J @ (world.qacc_smooth + moved @ f) - world.efc_aref + f / world.efc_D
    g = np.einsum("ij,ji->i", J, moved) + 1.0 / world.efc_D
    force, velocity = np.zeros(len(contacts.dim)), np.zeros(len(contacts.dim))
    for k, (i, dim, mu) in enumerate(zip(contacts.efc_address, contacts.dim, contacts.friction, strict=True)):
        if i >= 0:
            errors = [f[i] - max(f[i] - w[i] / g[i], 0.0)], [g[i]]
            if dim > 1 and mu[0] > 0.0:
                rows, scale = slice(i + 1, i + dim), np.maximum(mu[: dim - 1], np.finfo(float).tiny)
                mass = (g[rows] * scale**2).max()
                s = f[rows] / scale
                z = s - scale * w[rows] / mass
                z *= min(1.0, max(f[i], 0.0) / max(np.linalg.norm(z), np.finfo(float).tiny))
                errors[0].append(mu[0] * np.linalg.norm(s - z))
                errors[1].append(mass / mu[0] ** 2)
            force[k] = np.linalg.norm(errors[0])
            velocity[k] = model.opt.timestep * np.linalg.norm(np.multiply(*errors))
    return force, velocity
