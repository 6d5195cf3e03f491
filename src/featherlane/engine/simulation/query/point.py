"""Computes Jacobians, velocities and forces of points, bodies and contacts of one world.

A body, geom, site or camera is given by name or number.  J qvel is the velocity of a point and the angular velocity of
the body that carries it, in world axes.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.assignment import flag, reals
from featherlane.engine.model.enums import OBJ_BODY, OBJ_GEOM, OBJ_SITE, OBJ_UNKNOWN, OBJ_XBODY
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.jacobian import (
    ANGULAR_MOMENTUM,
    JAC,
    JAC_DOT,
    OBJECT_ACCELERATION,
    OBJECT_VELOCITY,
    SUBTREE_JAC,
)
from featherlane.engine.simulation.query.objects import Object, object_of
from featherlane.engine.simulation.query.present import matrix
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.errors import ModelError, OutOfRangeError

Key = str | int


def _vector(name: str, value) -> np.ndarray:
    vector = reals(name, value, "is (3,) of numbers")
    if vector.shape != (3,):
        raise ModelError(f"{name}: got shape {vector.shape}, allowed is (3,)")
    return vector


def jac(model: Model, data: Data, point: ArrayLike, body: Key) -> tuple[np.ndarray, np.ndarray]:
    """Returns the Jacobians of a point that moves with a body.

    Args:
        model: the model.
        data: the world, in its present state.
        point: (3,) in world axes [m].
        body: the body that carries it.

    Returns:
        (jacp, jacr), each (3, nv): velocity of the point and angular velocity of the body for each DoF.

    Raises:
        UnknownNameError: an unknown body.
        ModelError: the point is not (3,).

    Source: Featherstone eq. 2.24; MuJoCo mj_jac.
    """
    both = matrix(model, data, JAC, OBJ_UNKNOWN, body, point=_vector("point", point))
    return both[0], both[1]


def jac_body(model: Model, data: Data, body: Key) -> tuple[np.ndarray, np.ndarray]:
    """Returns the Jacobians (jacp, jacr), each (3, nv) [m or 1, and rad by DoF], of a body's frame.

    Raises:
        UnknownNameError: an unknown body.

    Source: MuJoCo mj_jacBody.
    """
    both = matrix(model, data, JAC, OBJ_XBODY, body)
    return both[0], both[1]


def jac_body_com(model: Model, data: Data, body: Key) -> tuple[np.ndarray, np.ndarray]:
    """Returns the Jacobians (jacp, jacr), each (3, nv) [m or 1, and rad by DoF], of a body's centre of mass.

    Raises:
        UnknownNameError: an unknown body.

    Source: MuJoCo mj_jacBodyCom.
    """
    both = matrix(model, data, JAC, OBJ_BODY, body)
    return both[0], both[1]


def jac_subtree_com(model: Model, data: Data, body: Key) -> np.ndarray:
    """Returns the Jacobian (3, nv) [m or 1] of the centre of mass of a body's subtree.

    It is zero for a subtree without mass.

    Raises:
        UnknownNameError: an unknown body.

    Source: MuJoCo mj_jacSubtreeCom.
    """
    return matrix(model, data, SUBTREE_JAC, key=body)[0]


def jac_dot(model: Model, data: Data, point: ArrayLike, body: Key) -> tuple[np.ndarray, np.ndarray]:
    """Returns the time derivatives of the Jacobians of a point that moves with a body.

    Args:
        model: the model.
        data: the world, in its present state.
        point: (3,) in world axes [m].
        body: the body that carries it.

    Returns:
        (jacp, jacr), each (3, nv) [m/s or 1/s, and rad/s by DoF].

    Raises:
        UnknownNameError: an unknown body.
        ModelError: the point is not (3,).

    Source: MuJoCo mj_jacDot.
    """
    both = matrix(model, data, JAC_DOT, OBJ_UNKNOWN, body, point=_vector("point", point))
    return both[0], both[1]


def angular_momentum_matrix(model: Model, data: Data, body: Key) -> np.ndarray:
    """Returns the matrix H with H qvel = angular momentum of a body's subtree about its centre of mass.

    Args:
        model: the model.
        data: the world, in its present state.
        body: name or number.

    Returns:
        (3, nv) [kg m^2, kg m], in world axes.

    Raises:
        UnknownNameError: an unknown body.

    Source: MuJoCo mj_angmomMat.
    """
    return matrix(model, data, ANGULAR_MOMENTUM, key=body)[0]


def jac_geom(model: Model, data: Data, geom: Key) -> tuple[np.ndarray, np.ndarray]:
    """Returns the Jacobians (jacp, jacr), each (3, nv) [m or 1, and rad by DoF], of a geom's centre.

    Raises:
        UnknownNameError: an unknown geom.

    Source: MuJoCo mj_jacGeom.
    """
    both = matrix(model, data, JAC, OBJ_GEOM, geom)
    return both[0], both[1]


def jac_site(model: Model, data: Data, site: Key) -> tuple[np.ndarray, np.ndarray]:
    """Returns the Jacobians (jacp, jacr), each (3, nv) [m or 1, and rad by DoF], of a site.

    Raises:
        UnknownNameError: an unknown site.

    Source: MuJoCo mj_jacSite.
    """
    both = matrix(model, data, JAC, OBJ_SITE, site)
    return both[0], both[1]


def apply_ft(model: Model, data: Data, force: ArrayLike, torque: ArrayLike, point: ArrayLike, body: Key) -> np.ndarray:
    """Returns the generalized force of a force and a torque on a body.

    Args:
        model: the model.
        data: the world, in its present state.
        force: (3,) in world axes [N].
        torque: (3,) in world axes [N m].
        point: (3,) point at which the force acts, in world axes [m].
        body: the body on which it acts.

    Returns:
        (nv,) [N, N m], to be added to `data.qfrc_applied`.

    Raises:
        UnknownNameError: an unknown body.
        ModelError: a vector is not (3,).

    Source: MuJoCo mj_applyFT (which adds into an array).
    """
    jacp, jacr = jac(model, data, point, body)
    return jacp.T @ _vector("force", force) + jacr.T @ _vector("torque", torque)


def object_velocity(model: Model, data: Data, object: Object, *, local: bool = False) -> np.ndarray:
    """Returns the angular and linear velocity of a body, geom, site or camera at its origin.

    Args:
        model: the model.
        data: the world, in its present state.
        object: a body's frame by name or number, or a pair of a kind (`body` for its centre of mass, `xbody`, `geom`,
            `site`, `camera`) and a name or number.
        local: in the object's axes; else in world axes.

    Returns:
        (6,): rotation [rad/s], then translation [m/s].

    Raises:
        ModelError: another kind.
        UnknownNameError: an unknown object.

    Source: MuJoCo mj_objectVelocity.
    """
    world = ready(model, data)
    number, i = object_of(model, object, "object")
    return matrix(model, world, OBJECT_VELOCITY, number, i, int(flag("local", local)))


def object_acceleration(model: Model, data: Data, object: Object, *, local: bool = False) -> np.ndarray:
    """Returns the angular and linear acceleration of a body, geom, site or camera at its origin.

    The accelerations of forward dynamics are computed first.  As in MuJoCo, a body at rest has the acceleration -g,
    which an accelerometer measures.

    Args:
        model: the model.
        data: the world, in its present state.
        object, local: as for `object_velocity`.

    Returns:
        (6,): rotation [rad/s^2], then translation [m/s^2].

    Raises:
        ModelError: another kind.
        UnknownNameError: an unknown object.

    Source: MuJoCo mj_objectAcceleration.
    """
    world = ready(model, data)
    number, i = object_of(model, object, "object")
    return matrix(model, world, OBJECT_ACCELERATION, number, i, int(flag("local", local)))


def contact_force(model: Model, data: Data, contact: int) -> np.ndarray:
    """Returns the force that the solver computed for a contact, in the contact's frame.

    Args:
        model: the model.
        data: the world.
        contact: number of the contact in `data.contact`.

    Returns:
        (6,): force along the normal and the two tangents [N], then torque about them [N m], zero in dimensions 1 and 3;
        zeros for a contact without rows.  It acts on the second geom's body, its opposite on the first's.  An adhesive
        contact's normal force is that of its rows minus its adhesion: negative if it pulls.

    Raises:
        IndexError: an unknown contact.
        ModelError: not an integer.

    Source: MuJoCo mj_contactForce.
    """
    slots = ready(model, data).contact_slots()
    try:
        number = operator.index(contact)
    except TypeError:
        raise ModelError(f"contact: got {contact!r}, allowed is a whole number") from None
    if not 0 <= number < len(slots):
        allowed = f"allowed are 0 to {len(slots) - 1}" if slots.size else "the world has no contact"
        raise OutOfRangeError(f"contact: got {contact}, {allowed}")
    k = slots[number]
    force = data.con_force[k].copy()
    if model.flg_adhesion:
        force[0] -= data.con_adhesion[k]
    return np.where(data.con_D[k] != 0.0, force, 0.0)
