"""Computes matrices of the joint-space dynamics of one world, and products and solves with its inertia matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.dynamics.inertia.joint_space import half_solve as _half_solve
from featherlane.engine.dynamics.inertia.joint_space import mul_m as _mul_m
from featherlane.engine.dynamics.inertia.joint_space import solve_m as _solve_m
from featherlane.engine.lanes import Stage
from featherlane.engine.model.assignment import broadcast_reals, reals
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.jacobian import CORIOLIS, INERTIA, PARAMETERS, REGRESSOR
from featherlane.engine.simulation.query.moments import dense_moments
from featherlane.engine.simulation.query.present import matrix, present
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.errors import ModelError


def solve_m(model: Model, data: Data, x: ArrayLike) -> np.ndarray:
    """Returns M^-1 x, with the joint-space inertia matrix of the present state.

    Args:
        model: the model.
        data: the world.
        x: one vector (nv,) or many (..., nv) [N, N m].

    Returns:
        The same shape [m/s^2, rad/s^2].

    Raises:
        ModelError: the last axis of x is not nv long.

    Source: Featherstone sec. 6.5, table 6.5; MuJoCo mj_solveM.
    """
    world, vectors = ready(model, data), _vectors(model, x)
    return present(world, lambda workspace: _applied(workspace, vectors, _solve_m, "qvec"), inertia=1)


def half_solve(model: Model, data: Data, x: ArrayLike) -> np.ndarray:
    """Returns D^-1/2 L^-T x, whose square is x^T M^-1 x, from the factors of `factor_m`.

    Args:
        model: the model.
        data: the world, with `factor_m` valid.
        x: one vector (nv,) or many (..., nv).

    Returns:
        The same shape.

    Raises:
        ModelError: the last axis of x is not nv long.

    Source: MuJoCo mj_solveM2 (which takes D^-1/2 as an argument).
    """
    return from_fields(ready(model, data), x, _half_solve, "qvec")


def mul_m(model: Model, data: Data, x: ArrayLike) -> np.ndarray:
    """Returns M x, with the joint-space inertia matrix of the present state.

    Args:
        model: the model.
        data: the world.
        x: one vector (nv,) or many (..., nv) [m/s^2, rad/s^2].

    Returns:
        The same shape [N, N m].

    Raises:
        ModelError: the last axis of x is not nv long.

    Source: MuJoCo mj_mulM.
    """
    world, vectors = ready(model, data), _vectors(model, x)
    return present(world, lambda workspace: _applied(workspace, vectors, _mul_m, "qproduct"), inertia=1)


def full_m(model: Model, data: Data) -> np.ndarray:
    """Returns the joint-space inertia matrix, dense and symmetric, (nv, nv) [kg, kg m, kg m^2].

    Source: MuJoCo mj_fullM.
    """
    return matrix(model, data, INERTIA)


def moment_arms(model: Model, data: Data) -> np.ndarray:
    """Returns the moment arms of the actuators: the derivatives of their lengths with respect to the DoFs.

    With the matrix R, the velocities of the actuators are R qvel, and their forces in joint space are
    R^T actuator_force.  A muscle's force is negative, because it shortens the muscle.

    Returns:
        (nout, nv) [m or m/rad; rad or 1 for an actuator whose length is an angle]: row i belongs to element i of
        `actuator_length`, which is actuator i unless an actuator has several outputs.  Entries are 0 for DoFs that do
        not change the length.  An actuator that acts through contacts has the mean over the contacts of its body.

    Source: MuJoCo mjData.actuator_moment, dense; OpenSim's moment arms have the opposite sign.
    """
    world = ready(model, data)
    rows = present(world, lambda workspace: workspace.arrays["actuator_moment"][: model.nmoment, 0].copy(), lengths=1)
    return dense_moments(model, rows)


def coriolis_matrix(model: Model, data: Data) -> np.ndarray:
    """Returns the matrix C with C qvel = Coriolis and centrifugal forces of the bodies, in the present state.

    C qvel + gravity forces is `data.qfrc_bias`.  The rate of the inertia matrix is C + C^T, therefore dM/dt - 2 C is
    skew-symmetric.  The armature of spatial tendons is not included.

    Returns:
        (nv, nv) [kg/s, kg m/s, kg m^2/s].

    Source: Echeandia, Wensing, J. Comput. Nonlinear Dyn. 16 (2021); Pinocchio computeCoriolisMatrix.
    """
    return matrix(model, data, CORIOLIS)


def inertial_parameters(model: Model, data: Data) -> np.ndarray:
    """Returns the ten inertial parameters of each body, in its axes.

    Returns:
        (nbody, 10): the rotational inertia Ixx Iyy Izz Ixy Ixz Iyz about the origin of the body's frame [kg m^2], the
        mass times the centre of mass (3,) [kg m], and the mass [kg].  Zeros for the world.

    Source: Featherstone eq. 2.63; Pinocchio toDynamicParameters (in another order).
    """
    ready(model, data)
    return np.stack([matrix(model, data, PARAMETERS, key=body) for body in range(model.nbody)])


def torque_regressor(model: Model, data: Data, qacc: ArrayLike) -> np.ndarray:
    """Returns the matrix Y of inverse dynamics as a linear function of inertial parameters, for identification.

    The sum over bodies of Y[:, body] @ parameters[body] is the force that gives the bodies the acceleration qacc in the
    present state: inertia, Coriolis, centrifugal and gravity forces.  Armature, passive forces and constraints are not
    included.

    Args:
        model: the model.
        data: the world.
        qacc: accelerations [m/s^2, rad/s^2] that broadcast to (nv,).

    Returns:
        (nv, nbody, 10) [N or N m by parameter], in the order of `inertial_parameters`.  Zeros for bodies that a DoF
        does not move.

    Raises:
        ModelError: qacc does not broadcast to (nv,).

    Source: Atkeson, An, Hollerbach, Int. J. Robotics Research 5 (1986); Pinocchio computeJointTorqueRegressor.
    """
    world, given = ready(model, data), broadcast_reals("qacc", qacc, (model.nv,))
    return np.stack([matrix(model, world, REGRESSOR, key=body, qacc=given) for body in range(model.nbody)], axis=1)


def from_fields(data: Data, x: ArrayLike, stage: Stage, result: str) -> np.ndarray:
    """Runs a stage on vectors (..., nv) with the fields of a `Data` as they are; see `_applied`."""
    return hold(data._turns, _applied, data.workspace, _vectors(data.model, x), stage, result)


def _vectors(model: Model, x: ArrayLike) -> np.ndarray:
    """Returns vectors (..., nv), checked."""
    x = reals("x", x, f"are numbers (..., {model.nv})")
    if x.shape[-1:] != (model.nv,):
        raise ModelError(f"x: got shape {x.shape}, allowed is (..., {model.nv})")
    return x


def _applied(workspace: Workspace, x: np.ndarray, stage: Stage, result: str) -> np.ndarray:
    """Runs the stage on each vector of x; its result is in the field `result`."""
    out, run, n = np.empty_like(x, order="C"), workspace.bound(stage), x.shape[-1]
    source, target = workspace.arrays["qvec"][:n, 0], workspace.arrays[result][:n, 0]
    for vector, answer in zip(x.reshape(-1, n), out.reshape(-1, n), strict=True):
        source[:] = vector
        run()
        answer[:] = target
    return out
