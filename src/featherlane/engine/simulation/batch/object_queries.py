"""Defines `ObjectQueries`: Jacobians, velocities and matrices of the dynamics of a batch's worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.assignment import broadcast_reals, flag
from featherlane.engine.model.enums import OBJ_UNKNOWN
from featherlane.engine.model.names import index_of
from featherlane.engine.simulation.batch.world_fields import WorldFields
from featherlane.engine.simulation.query.jacobian import (
    ANGULAR_MOMENTUM,
    CORIOLIS,
    INERTIA,
    JAC,
    JAC_DOT,
    OBJECT_ACCELERATION,
    OBJECT_VELOCITY,
    PARAMETERS,
    REGRESSOR,
    SUBTREE_JAC,
    Objects,
)
from featherlane.engine.simulation.query.moments import MomentArms
from featherlane.engine.simulation.query.objects import Object, objects_of
from featherlane.engine.simulation.query.query import Query
from featherlane.errors import ModelError

WORLD = [(OBJ_UNKNOWN, 0)], True  # the object of a quantity of the whole world


class ObjectQueries(WorldFields):
    """Computes quantities of bodies, geoms, sites and cameras, and matrices of the dynamics of the present states."""

    def query(self, query: Query, chosen: np.ndarray) -> Any:
        """Returns the result of a query of the present states of worlds; see `Runner.query`."""
        return self.runner.query(query, chosen)

    def jac(
        self,
        point: ArrayLike | Object | list[Object],
        body: int | str | np.ndarray | None = None,
        *,
        ids: ArrayLike | None = None,
        local: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the Jacobians of a point that moves with a body, in each world's present state.

        Args:
            point: with `body`, a point in world axes [m] that broadcasts to (n, 3) for the n worlds of the call.
                Without `body`, an object, whose origin is the point: a body by name or number, or a pair of a kind
                (`body` for its centre of mass, `xbody`, `geom`, `site`) and a name or number.  Or a list of k objects.
            body: name or number of the body that carries it; or an array of numbers (n,), one for each world.
            ids: the worlds; None for all.
            local: whether velocities are in the axes of the object (of the body, for a point); else in world axes.

        Returns:
            (jacp, jacr), each (n, 3, nv): velocity of the point and angular velocity of the body by DoF; of a list of k
            objects (n, k, 3, nv).  State and bound outputs do not change.

        Raises:
            UnknownNameError: an unknown object.
            ModelError: points that do not broadcast, an unknown kind.

        Source: Featherstone eq. 2.24; MuJoCo mj_jac, mj_jacBody, mj_jacBodyCom, mj_jacGeom, mj_jacSite.
        """
        return self._jacobians(JAC, point, body, ids, local)

    def jac_dot(
        self,
        point: ArrayLike | Object | list[Object],
        body: int | str | np.ndarray | None = None,
        *,
        ids: ArrayLike | None = None,
        local: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the time derivatives of the Jacobians of `jac`, in each world's present state.

        Args:
            point, body, ids: as for `jac`.
            local: whether the derivatives, taken in world axes, are in the axes of the object.

        Returns:
            (jacp, jacr), each (n, 3, nv) [m/s or 1/s, and rad/s by DoF]; of a list of objects (n, k, 3, nv).

        Raises:
            UnknownNameError, ModelError: as `jac` does.

        Source: MuJoCo mj_jacDot.
        """
        return self._jacobians(JAC_DOT, point, body, ids, local)

    def jac_body(self, body: int | str, *, ids: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the Jacobians (jacp, jacr), each (n, 3, nv) [m or 1, and rad by DoF], of a body's frame; see `jac`.

        Raises:
            UnknownNameError: an unknown body.

        Source: MuJoCo mj_jacBody.
        """
        return self.jac(("xbody", body), ids=ids)

    def jac_site(self, site: int | str, *, ids: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the Jacobians (jacp, jacr), each (n, 3, nv) [m or 1, and rad by DoF], of a site; see `jac`.

        Raises:
            UnknownNameError: an unknown site.

        Source: MuJoCo mj_jacSite.
        """
        return self.jac(("site", site), ids=ids)

    def _jacobians(self, quantity: int, point, body, ids, local) -> tuple[np.ndarray, np.ndarray]:
        chosen, local = self._ids(ids), flag("local", local)
        if body is None:
            both = self._quantity(quantity, objects_of(self.model, point, "point"), chosen, local)
            return both[..., :3, :], both[..., 3:, :]
        if not isinstance(body, np.ndarray):
            one = [(OBJ_UNKNOWN, index_of(self.model, "body", body))], True
            both = self._quantity(quantity, one, chosen, local, point)
            return both[:, :3], both[:, 3:]
        if body.shape != chosen.shape or body.dtype.kind not in "iu":
            raise ModelError(f"body: got {body.dtype} of shape {body.shape}, allowed are whole numbers {chosen.shape}")
        points = broadcast_reals("point", point, (len(chosen), 3))
        jac = np.zeros((2, len(chosen), 3, self.model.nv), self.dtype)
        for number in np.unique(body).tolist():
            at = np.flatnonzero(body == number)
            jac[:, at] = self._jacobians(quantity, points[at], number, chosen[at], local)
        return jac[0], jac[1]

    def jac_subtree_com(self, body: int | str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the Jacobian (n, 3, nv) [m or 1] of the centre of mass of a body's subtree; zeros for a subtree
        without mass.

        Raises:
            UnknownNameError: an unknown body.

        Source: MuJoCo mj_jacSubtreeCom.
        """
        return self._quantity(SUBTREE_JAC, objects_of(self.model, body, "body"), self._ids(ids))[..., :3, :]

    def angular_momentum_matrix(self, body: int | str, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the matrix H with H qvel = angular momentum of a body's subtree, in each world's present state.

        Args:
            body: name or number; or a list of k bodies.
            ids: the worlds; None for all.

        Returns:
            (n, 3, nv) [kg m^2, kg m]: about the subtree's centre of mass, in world axes; of a list (n, k, 3, nv).

        Raises:
            UnknownNameError: an unknown body.

        Source: MuJoCo mj_angmomMat.
        """
        return self._quantity(ANGULAR_MOMENTUM, objects_of(self.model, body, "body"), self._ids(ids))[..., :3, :]

    def full_m(self, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the joint-space inertia matrix in each world's present state, (n, nv, nv) [kg, kg m, kg m^2].

        Raises:
            ModelError: ids out of range or repeated.

        Source: MuJoCo mj_fullM.
        """
        return self._quantity(INERTIA, WORLD, self._ids(ids))

    def moment_arms(self, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the moment arms of the actuators in each world's present state, (n, nout, nv) [m or m/rad].

        They are the derivatives of the actuators' lengths with respect to the DoFs; see `fl.query.moment_arms`.

        Raises:
            ModelError: ids out of range or repeated.

        Source: MuJoCo mjData.actuator_moment, dense; OpenSim's moment arms have the opposite sign.
        """
        chosen = self._ids(ids)
        return self.query(MomentArms(self.model, len(chosen), self.dtype), chosen)

    def coriolis_matrix(self, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the Coriolis matrix C of each world's present state, (n, nv, nv) [kg/s, kg m/s, kg m^2/s].

        C qvel are the Coriolis and centrifugal forces; see `fl.query.coriolis_matrix`.

        Raises:
            ModelError: ids out of range or repeated.

        Source: Echeandia, Wensing, J. Comput. Nonlinear Dyn. 16 (2021); Pinocchio computeCoriolisMatrix.
        """
        return self._quantity(CORIOLIS, WORLD, self._ids(ids))

    def inertial_parameters(self, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the ten inertial parameters of each body and world, (n, nbody, 10) [kg m^2, kg m, kg].

        Their order is that of `fl.query.inertial_parameters`.

        Raises:
            ModelError: ids out of range or repeated.

        Source: Featherstone eq. 2.63; Pinocchio toDynamicParameters (in another order).
        """
        return self._quantity(PARAMETERS, self._bodies(), self._ids(ids))

    def torque_regressor(self, qacc: ArrayLike, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the matrix Y of inverse dynamics in each world's present state, for identification.

        The sum over bodies of Y[:, :, body] @ parameters[body] is the force that gives the bodies the acceleration
        qacc; see `fl.query.torque_regressor`.

        Args:
            qacc: accelerations [m/s^2, rad/s^2] that broadcast to (n, nv) for the n worlds of the call.
            ids: the worlds; None for all.

        Returns:
            (n, nv, nbody, 10) [N or N m by parameter], in the order of `inertial_parameters`.

        Raises:
            ModelError: an invalid shape, non-numeric values; ids out of range or repeated.

        Source: Atkeson, An, Hollerbach, Int. J. Robotics Research 5 (1986); Pinocchio computeJointTorqueRegressor.
        """
        rows = self._quantity(REGRESSOR, self._bodies(), self._ids(ids), qacc=qacc)
        return np.ascontiguousarray(np.swapaxes(rows, 1, 2))

    def _bodies(self) -> tuple[list[tuple[int, int]], bool]:
        return [(OBJ_UNKNOWN, body) for body in range(self.model.nbody)], False

    def object_velocity(
        self, object: Object | list[Object], *, local: bool = False, ids: ArrayLike | None = None
    ) -> np.ndarray:
        """Returns the angular and linear velocity of an object at its origin, in each world's present state.

        Args:
            object: a body's frame by name or number, or a pair of a kind (`body` for its centre of mass, `xbody`,
                `geom`, `site`, `camera`) and a name or number; or a list of k objects.
            local: whether the result is in the object's axes; otherwise it is in world axes.
            ids: the worlds; None for all.

        Returns:
            (n, 6): rotation [rad/s], then translation [m/s]; of a list (n, k, 6).

        Raises:
            ModelError: another kind.
            UnknownNameError: an unknown object.

        Source: MuJoCo mj_objectVelocity.
        """
        return self._motion(OBJECT_VELOCITY, object, local, ids)

    def object_acceleration(
        self, object: Object | list[Object], *, local: bool = False, ids: ArrayLike | None = None
    ) -> np.ndarray:
        """Returns the angular and linear acceleration of an object at its origin, in each world's present state.

        The accelerations of forward dynamics are computed first.  As in MuJoCo, a body at rest has the acceleration
        -g, which an accelerometer measures.

        Args:
            object, local, ids: as for `object_velocity`.

        Returns:
            (n, 6): rotation [rad/s^2], then translation [m/s^2]; of a list (n, k, 6).

        Raises:
            ModelError: another kind.
            UnknownNameError: an unknown object.

        Source: MuJoCo mj_objectAcceleration.
        """
        return self._motion(OBJECT_ACCELERATION, object, local, ids)

    def _motion(self, quantity: int, object: Object | list[Object], local, ids) -> np.ndarray:
        objects = objects_of(self.model, object, "object")
        return self._quantity(quantity, objects, self._ids(ids), flag("local", local))

    def _quantity(
        self, quantity: int, objects, chosen: np.ndarray, local: bool = False, point=None, qacc=None
    ) -> np.ndarray:
        """Returns a quantity of one object (n, ...) or of a list of k objects (n, k, ...)."""
        listed, single = objects
        found = self.query(Objects(self.model, len(chosen), self.dtype, quantity, listed, local, point, qacc), chosen)
        return found[:, 0] if single else found
