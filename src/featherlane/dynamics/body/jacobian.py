"""Jacobians of points and bodies, in NumPy from one world's fields.

J qvel is the velocity of a point and the angular velocity of its body, in world axes; both parts are (3, nv).  The dofs
that move a body are its own and its ancestors', the chain of dof_parentid; all motion axes of a tree refer to its
centre of mass, so the velocity of a point follows by the lever arm.
Source: Featherstone, Rigid Body Dynamics Algorithms, eq. 2.24; MuJoCo mj_jac.
"""

from __future__ import annotations

import numpy as np

from featherlane.errors import OutOfRangeError


def chain(model, body: int) -> list[int]:
    """Dofs that move a body, the nearest first."""
    while body > 0 and model.body_dofnum[body] == 0:
        body = int(model.body_parentid[body])
    if body == 0:
        return []
    dof, found = int(model.body_dofadr[body] + model.body_dofnum[body] - 1), []
    while dof >= 0:
        found.append(dof)
        dof = int(model.dof_parentid[dof])
    return found


def jac(model, data, point, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of a point that moves with a body.

    Args:
        model: the model.
        data: one world whose `kinematics` and `com_pos` are valid.
        point: (3,) in world axes [m].
        body: id of the body that carries it.

    Returns:
        (jacp, jacr): velocity of the point and angular velocity of the body, each (3, nv).

    Raises:
        IndexError: there is no such body.
    """
    if not 0 <= body < model.nbody:
        raise OutOfRangeError(f"body is {body}, allowed are 0 to {model.nbody - 1}")
    jacp, jacr = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    dofs = chain(model, body)
    if dofs:
        axes = np.asarray(data.cdof).reshape(model.nv, 6)[dofs]
        com = np.asarray(data.subtree_com).reshape(model.nbody, 3)[model.body_rootid[body]]
        jacr[:, dofs] = axes[:, :3].T
        jacp[:, dofs] = (axes[:, 3:] + np.cross(axes[:, :3], np.asarray(point, dtype=float) - com)).T
    return jacp, jacr


def jac_body(model, data, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of a body's frame; see `jac`."""
    return jac(model, data, _row(data.xpos, body), body)


def jac_body_com(model, data, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of a body's centre of mass; see `jac`."""
    return jac(model, data, _row(data.xipos, body), body)


def jac_subtree_com(model, data, body: int) -> np.ndarray:
    """Jacobian (3, nv) of the centre of mass of a body and all below it.

    Zeros where the subtree has no mass.
    """
    total, mass = np.zeros((3, model.nv)), 0.0
    inside = np.zeros(model.nbody, bool)
    for i in range(model.nbody):
        inside[i] = i == body or (i > 0 and inside[model.body_parentid[i]])
        if inside[i] and model.body_mass[i] > 0:
            total += model.body_mass[i] * jac_body_com(model, data, i)[0]
            mass += model.body_mass[i]
    return total / mass if mass > 0 else total


def jac_geom(model, data, geom: int) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of a geom's centre; see `jac`."""
    return jac(model, data, _row(data.geom_xpos, geom), int(model.geom_bodyid[geom]))


def jac_site(model, data, site: int) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of a site; see `jac`."""
    return jac(model, data, _row(data.site_xpos, site), int(model.site_bodyid[site]))


def _row(field, i: int) -> np.ndarray:
    return np.asarray(field).reshape(-1, 3)[i]
