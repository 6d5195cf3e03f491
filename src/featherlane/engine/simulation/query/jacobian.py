"""Computes Jacobians and motions of bodies, geoms, sites, cameras or points of a batch: checks arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import com_pos, com_vel
from featherlane.engine.dynamics.body.coriolis import coriolis_matrix
from featherlane.engine.dynamics.body.jacobian import (
    JACOBIAN,
    angular_momentum_matrix,
    jacobian,
    jacobian_dot,
    object_motion,
    subtree_jacobian,
)
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.dynamics.body.object_motion import object_mat
from featherlane.engine.dynamics.body.regressor import inertial_parameters, torque_regressor
from featherlane.engine.dynamics.inertia.joint_space import crb, dense_inertia
from featherlane.engine.dynamics.tendon.length import tendon
from featherlane.engine.lanes import Field, Layout
from featherlane.engine.lanes.record import address
from featherlane.engine.model.assignment import broadcast_reals
from featherlane.engine.model.model import Model
from featherlane.engine.sensor.camera import cameras
from featherlane.engine.sensor.wrench import interaction_forces
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import over_tiles

# what is computed of an object, in the order of what it needs: positions, velocities, accelerations
(
    JAC,
    SUBTREE_JAC,
    ANGULAR_MOMENTUM,
    INERTIA,
    PARAMETERS,
    JAC_DOT,
    CORIOLIS,
    REGRESSOR,
    OBJECT_VELOCITY,
    OBJECT_ACCELERATION,
) = range(10)
MATRICES = (JAC, SUBTREE_JAC, ANGULAR_MOMENTUM, JAC_DOT)

OBJECT_RECORD = Layout(
    "Objects",
    (
        *JACOBIAN.fields,
        Field("quantity", "size", doc="what is computed"),
        Field("local", "size", doc="1: in the axes of the object"),
        Field(
            "objects", "size", doc="address of kind, as mjtObj, and index of each object; 0: a given point of a body"
        ),
    ),
)


@kernel
def to_local(p, R):
    """Rotates the columns of the Jacobian p.jac into the axes R.

    p.jac has 6 rows of n entries: three translational, then three rotational ones.
    """
    n = p.jac_nv
    for column in range(2 * n):  # of the translational rows, then of the rotational ones
        e = 3 * n * (column // n) + column % n  # the column's first entry
        v = R.T @ Vec3(p.jac[e], p.jac[e + n], p.jac[e + 2 * n])
        p.jac[e], p.jac[e + n], p.jac[e + 2 * n] = v[0], v[1], v[2]


@stage(p=JACOBIAN)
def object_quantity(m, d, p, quantity, kind, i, local):
    """Computes a quantity of an object; the tile has the positions, velocities or accelerations on which it depends.

    quantity: JAC, ...; kind: an mjtObj, or 0 for a point of a body in world axes; i: index of the object; local: 1: in
    the axes of the object, 0: in world axes.
    Reads:  what `jacobian`, `jacobian_dot`, `subtree_jacobian`, `angular_momentum_matrix`, `dense_inertia`,
            `inertial_parameters`, `coriolis_matrix`, `torque_regressor` and `object_motion` read; jac.
    Writes: jac; what these stages write.
    """
    if quantity == JAC:
        jacobian(m, d, p, kind, i)
    elif quantity == JAC_DOT:
        jacobian_dot(m, d, p, kind, i)
    elif quantity == SUBTREE_JAC:
        subtree_jacobian(m, d, p, i)
    elif quantity == ANGULAR_MOMENTUM:
        angular_momentum_matrix(m, d, p, i)
    elif quantity == INERTIA:
        dense_inertia(m, d, p)
    elif quantity == PARAMETERS:
        inertial_parameters(m, p, i)
    elif quantity == CORIOLIS:
        coriolis_matrix(m, d, p)
    elif quantity == REGRESSOR:
        torque_regressor(m, d, p, i)
    else:
        is_acceleration = 1 if quantity == OBJECT_ACCELERATION else 0
        object_motion(m, d, p, kind, i, is_acceleration, is_local=local)
    # `object_motion` rotates by itself; the others are always in world axes.  Kind 0: a point in its body's axes
    if local and quantity in (JAC, JAC_DOT):
        to_local(p, object_mat(m, d, OBJ_XBODY if kind == OBJ_UNKNOWN else kind, i))


@kernel
def object_frames(m, d):
    """Computes the frames of bodies, geoms, sites and cameras, and the motion axes at the centres of mass."""
    kinematics(m, d)
    frames(m, d)
    com_pos(m, d)
    cameras(m, d)


@kernel
def joint_space_inertia(m, d):
    """Computes M from the frames and motion axes; tendons, whose armature it includes, are measured first."""
    tendon(m, d)
    crb(m, d)


@stage
def object_accelerations(m, d):
    """Computes forward dynamics, the frames of all objects, and the accelerations of bodies.

    Reads:  what `forward` reads.
    Writes: what `forward`, `frames`, `cameras` and `interaction_forces` write.
    """
    forward(m, d)
    frames(m, d)
    interaction_forces(m, d)
    cameras(m, d)


@over_tiles(p=OBJECT_RECORD)
def object_tiles(m, d, b, p, thread, tile):
    """Computes a quantity of nstep objects, one after the other, in the worlds of a tile.

    Reads:  the rows that the transfers of b bring in; the memory at p.objects.
    Writes: those that they take back; active, recall_address, tree_settled, the record p, and all else of this
            thread's workspace.
    """
    quantity = p.quantity
    if quantity == OBJECT_ACCELERATION:
        object_accelerations(m, d)
    else:
        object_frames(m, d)
        if quantity >= JAC_DOT:  # these depend on velocities
            com_vel(m, d)
        if quantity == INERTIA:
            joint_space_inertia(m, d)
    for s in range(b.nstep):  # objects
        copy_step_inputs(b, thread, tile, s)  # p.jac_point or p.jac_qacc, if they are given
        objects = doubles(b, p.objects)
        # (type, id) of the object, mjtObj
        kind, i = whole(read_lane(objects, 2 * s, 0)), whole(read_lane(objects, 2 * s + 1, 0))
        object_quantity(m, d, p, quantity, kind, i, p.local)
        write_records(b, thread, tile, s)


# ---- arguments -------------------------------------------------------------------------------------------------------
class Objects(Query):
    """Holds objects and a given point as kernels take them, checked, and the rows of a quantity of them.

    The answer is the quantity of each object, (nworld, nobject, ...).

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        quantity: JAC, ...
        objects: kind, as mjtObj, and index of each; kind 0 for a given point of a body.
        local: whether vectors are in the axes of the object.
        point: with kind 0, what broadcasts to (nworld, 3).
        qacc: of a REGRESSOR, what broadcasts to (nworld, nv).
    """

    loop = object_tiles

    def __init__(
        self,
        model: Model,
        nworld: int,
        dtype,
        quantity: int,
        objects: Sequence[tuple[int, int]],
        local: bool = False,
        point: ArrayLike | None = None,
        qacc: ArrayLike | None = None,
    ):
        self.number = len(objects)
        if quantity >= JAC_DOT:
            self.reads = (*DATA.that("lasts"), *DATA.of("count"))
        self.objects = np.array(objects, float)
        name, shape = "motion", (6,)
        if quantity in MATRICES:
            name, shape = "jac", (6, model.nv)
        elif quantity in (INERTIA, CORIOLIS):
            name, shape = "jac_M" if quantity == INERTIA else "jac_C", (model.nv, model.nv)
        elif quantity == PARAMETERS:
            name, shape = "jac_parameters", (10,)
        elif quantity == REGRESSOR:
            name, shape = "jac_regressor", (model.nv, 10)
        self.taken = {name: np.zeros((nworld, self.number, *shape), dtype)}
        self.sizes = {"jac_nv": model.nv, "jac_nbody": model.nbody, "quantity": quantity, "local": int(local)}
        self.sizes |= {"objects": address(self.objects)}
        if point is not None:
            points = np.ascontiguousarray(broadcast_reals("point", point, (nworld, 3)), dtype)
            self.brought = {"jac_point": points.reshape(nworld, 1, 3)}
        if qacc is not None:
            rows = np.ascontiguousarray(broadcast_reals("qacc", qacc, (nworld, model.nv)), dtype)
            # the same row for each body
            self.brought = {"jac_qacc": np.broadcast_to(rows[:, None], (nworld, self.number, model.nv))}

    def answer(self) -> np.ndarray:
        return next(iter(self.taken.values()))
