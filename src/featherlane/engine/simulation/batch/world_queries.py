"""Defines `WorldQueries`: quantities of the present states of a batch's worlds, which they do not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import one_of, whole_argument
from featherlane.engine.model.assignment import broadcast_reals, flag
from featherlane.engine.model.enums import OBJ_UNKNOWN
from featherlane.engine.model.names import index_of
from featherlane.engine.simulation.batch.world_fields import WorldFields
from featherlane.engine.simulation.query.camera import Camera, Images
from featherlane.engine.simulation.query.contact import (
    MARGIN,
    REDUCTIONS,
    ContactLists,
    ContactQuery,
    Side,
    contact_outputs,
    selections_of,
)
from featherlane.engine.simulation.query.distance import Distances, Pairs
from featherlane.engine.simulation.query.equality import EqualityForces
from featherlane.engine.simulation.query.imaging import images_of
from featherlane.engine.simulation.query.inverse import Accelerations
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
from featherlane.engine.simulation.query.moving import FRAMES, MOVING, Moving
from featherlane.engine.simulation.query.objects import Object, objects_of
from featherlane.engine.simulation.query.pose import Poses
from featherlane.engine.simulation.query.query import Query
from featherlane.engine.simulation.query.ray import Hits, Rays, check_geoms
from featherlane.engine.simulation.query.scan import ScanRequest, scan_of
from featherlane.engine.simulation.query.tendon_wrap import ArcsRoundGeoms
from featherlane.engine.simulation.steps import check_inverse
from featherlane.engine.simulation.world.recordings import check_bindable, field_names
from featherlane.errors import ModelError

MOST_CONTACTS = 1 << 20  # of a list
WORLD = [(OBJ_UNKNOWN, 0)], True  # the object of a quantity of the whole world


class WorldQueries(WorldFields):
    """Computes quantities of the present states of worlds; state and bound outputs do not change."""

    def query(self, query: Query, chosen: np.ndarray) -> Any:
        """Returns the result of a query of the present states of worlds; see `Runner.query`."""
        return self.runner.query(query, chosen)

    def _images(self, camera: Camera, chosen: np.ndarray) -> tuple[Images, list[int]]:
        return images_of(self, camera, chosen)

    def _scanned(self, request: ScanRequest, chosen: np.ndarray, out: np.ndarray | None = None) -> list[np.ndarray]:
        return scan_of(self, request, chosen, out)

    def inverse(self, qacc: ArrayLike | None = None, *, ids: ArrayLike | None = None) -> None:
        """Computes inverse dynamics: the external force that gives each world an acceleration in its present state.

        Writes `qfrc_inverse` (nworld, nv) [N, N m] of these worlds, as `fl.inverse` does, and binds it.  No other
        method changes it.  State and other bound outputs do not change.

        Args:
            qacc: accelerations [m/s^2, rad/s^2] that broadcast to (n, nv) for the n worlds of the call.  None: the
                accelerations of forward dynamics; the result is then the sum of applied and actuator forces.
            ids: the worlds; None for all.

        Raises:
            ModelError: an invalid shape, non-numeric values; as `fl.inverse` does.
        """
        check_inverse(self.model)
        chosen = self._ids(ids)
        found = self.query(Accelerations(self.model, len(chosen), self.dtype, qacc), chosen)["qfrc_inverse"]
        self.arrays.output("qfrc_inverse")[chosen] = found

    def ray(
        self,
        point: ArrayLike,
        direction: ArrayLike,
        geomgroup: ArrayLike | None = None,
        flg_static: bool = True,
        bodyexclude: ArrayLike | str | None = -1,
        *,
        cutoff: float = np.inf,
        geoms: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Hits:
        """Returns the first intersections of rays with the geoms of each world, in its present state.

        Args:
            point: start of the rays [m], which broadcasts to (n, nray, 3) for the n worlds of the call.  (nray, 3): the
                same rays in every world.  (3,): one ray.
            direction: direction of the rays, of any length, with the shapes of `point`.
            geomgroup: six flags that select the groups of geoms to test; None for all.
            flg_static: whether geoms that are welded to the world are tested.
            bodyexclude: a body whose geoms are not tested, by name or number, or numbers (n, nray); -1 for none.
            cutoff: surfaces at this distance or farther are ignored [m].
            geoms: the geoms to test among those that `geomgroup` and `flg_static` select, by name or number; None for
                all.
            ids: the worlds; None for all.

        Returns:
            `Hits`: distance (n, nray) in lengths of the direction, geom (n, nray), outward normal (n, nray, 3); if
            point and direction are (3,): (n,), (n,) and (n, 3).  A ray without a hit has -1, -1 and zeros.  State and
            bound outputs do not change.

        Raises:
            ModelError, UnknownNameError, UnsupportedFeatureError: as `fl.query.ray` does.
        """
        chosen = self._ids(ids)
        check_geoms(self.model, geomgroup, flg_static, geoms)
        given = point, direction, geomgroup, flg_static, bodyexclude, cutoff, geoms
        return self.query(Rays(self.model, len(chosen), self.dtype, *given), chosen)

    def geom_distance(
        self, geom1: ArrayLike, geom2: ArrayLike, distmax: float = np.inf, *, ids: ArrayLike | None = None
    ) -> Distances:
        """Computes signed distances of pairs of geoms and their nearest points, in each world's present state.

        Args:
            geom1, geom2: geoms by name or number: one each, or arrays that broadcast to (n, npair) for the n worlds of
                the call.  (npair,): the same pairs in every world.
            distmax: the largest distance to search for [m].
            ids: the worlds; None for all.

        Returns:
            `Distances`: distance (n, npair) [m] and fromto (n, npair, 6) [m]; if geom1 and geom2 are one geom each,
            (n,) and (n, 6).  A pair that is farther apart has distmax and zeros.  State and bound outputs do not
            change.

        Raises:
            ModelError, UnknownNameError: as `fl.query.geom_distance` does.
        """
        chosen = self._ids(ids)
        return self.query(Pairs(self.model, len(chosen), self.dtype, geom1, geom2, distmax), chosen)

    def present_fields(self, names: str | Sequence[str], *, ids: ArrayLike | None = None) -> dict[str, np.ndarray]:
        """Returns fields of each world that depend on positions and velocities only, in its present state.

        Takes less time than `bind` and `forward`, because no contacts, constraints and accelerations are computed.

        Args:
            names: names of fields: frames and axes, `cvel`, lengths and velocities of tendons and actuators, and
                `sensordata`, in which elements of sensors that need contacts or forces are NaN.
            ids: the worlds; None for all.

        Returns:
            name -> (n, ...) for the n worlds of the call, in the units of the field.  State and bound outputs do not
            change.

        Raises:
            ModelError: another field; ids out of range or repeated.
            UnsupportedFeatureError: `sensordata` of a model with unsupported sensors.
        """
        chosen, names = self._ids(ids), field_names("present_fields", names)
        for name in names:
            check_bindable(self.model, "present_fields", one_of("present_fields", name, MOVING))
        query = Poses if FRAMES.issuperset(names) else Moving
        return self.query(query(self.model, len(chosen), self.dtype, names), chosen)

    # ---- kinematics --------------------------------------------------------------------------------------------------
    def tendon_arcs(self, *, ids: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Computes where spatial tendons wrap around geoms, in each world's present state.

        Element k of the results belongs to geom k on the paths of all tendons: those with `model.wrap_type` WRAP_SPHERE
        or WRAP_CYLINDER, in order.

        Args:
            ids: the worlds; None for all.

        Returns:
            (ends, length) for the n worlds of the call.  `ends` (n, k, 2, 3) are the points at which the tendon meets
            and leaves the geom [m].  `length` (n, k) is the length of the arc between them [m]; -1 if the tendon does
            not touch the geom.  State and bound outputs do not change.

        Raises:
            ModelError: ids out of range or repeated.

        Source: MuJoCo mj_tendon; `fl.query.tendon_path` returns the whole path of a tendon of one world.
        """
        chosen = self._ids(ids)
        return self.query(ArcsRoundGeoms(self.model, len(chosen), self.dtype), chosen)

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

    # ---- contacts ----------------------------------------------------------------------------------------------------
    def contacts(
        self,
        first: Side | list[Side] = None,
        second: Side | list[Side] = None,
        *,
        output: str | Sequence[str] = ("geom", "dist", "pos", "normal", "force"),
        ids: ArrayLike | None = None,
        num: int | None = None,
        reduce: str = "none",
    ) -> ContactLists:
        """Lists contacts and their forces in each world's present state.

        Forward dynamics are computed first.  A selection matches the contacts between two objects, or those of one
        object with any other object, as MuJoCo's contact sensor does.

        Args:
            first, second: an object: a body by name or number, or a pair of a kind (`geom`, `body`, `subtree`) and a
                name or number; None for any.  Lists of f objects make f selections.
            output: names of the results: `force`, `torque`, `dist`, `pos`, `normal`, `tangent`, `linvel`, `angvel`,
                `geom`; the number `found` is always returned.
            ids: the worlds; None for all.
            num: contacts to list of each selection; None for all.
            reduce: order of the list: "none" for MuJoCo's order, "mindist" for the smallest distance first, "maxforce"
                for the largest force first; "netforce" for a single contact with their total force and torque, in world
                axes, at the centre of pressure.

        Returns:
            `ContactLists`: arrays (n, k, ...) for the n worlds of the call, zeros beyond `found` contacts; of f
            selections (n, f, k, ...).  State and bound outputs do not change.

        Raises:
            ModelError: an unknown kind, output or order; lists of different lengths; num below 1.
            UnknownNameError: an unknown object.

        Source: MuJoCo mj_contactForce; its documentation, XML reference, sensor/contact.
        """
        chosen, (selections, single) = self._ids(ids), selections_of(self.model, first, second)
        outputs, how = contact_outputs(output), REDUCTIONS[one_of("reduce", reduce, REDUCTIONS)]
        limit = 1 if reduce == "netforce" else None if num is None else whole_argument("num", num, 1, MOST_CONTACTS)
        k = limit or int(self.arrays.rows["ncon"][chosen].max(initial=0)) + MARGIN
        found, parts = self._listed(chosen, selections, outputs, k, how)
        if limit is None:
            most = int(found.max(initial=0))
            if most > k:
                found, parts = self._listed(chosen, selections, outputs, most, how)
            parts = {name: a[:, :, :most] for name, a in parts.items()}
        if single:
            found, parts = found[:, 0], {name: a[:, 0] for name, a in parts.items()}
        return ContactLists(found, *(parts.get(name) for name in ContactLists._fields[1:]))

    def _listed(self, chosen, selections, outputs, k: int, how: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return self.query(ContactQuery(len(chosen), self.dtype, selections, outputs, k, how), chosen)

    def net_contact_force(
        self, body: Side | list[Side], other: Side | list[Side] = None, *, ids: ArrayLike | None = None
    ) -> np.ndarray:
        """Returns the total force of contacts on an object, in each world's present state.

        Args:
            body: the object: a body by name or number, or a pair of a kind (`geom`, `body`, `subtree`) and a name or
                number; or a list of f objects.
            other: second object, given likewise: only contacts between the two objects count.  None: all contacts of
                `body`.
            ids: the worlds; None for all.

        Returns:
            (n, 3) [N] in world axes; of a list (n, f, 3).  `contacts(reduce="netforce")` also returns the torque.

        Raises:
            ModelError, UnknownNameError: as `contacts` does.

        Source: MuJoCo mj_contactForce, summed over contacts.
        """
        if body is None:
            raise ModelError("body: got None, allowed are a body, or a kind and a name or number")
        force = self.contacts(other, body, output="force", ids=ids, reduce="netforce").force
        assert force is not None
        return force[..., 0, :]

    def equality_force(self, equality: str | int, *, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the force of an equality constraint in each world's present state, by row.

        Forward dynamics are computed first.

        Args:
            equality: name or number of the equality constraint.
            ids: the worlds; None for all.

        Returns:
            (n, k): rows as `fl.query.equality_force` returns them, zeros in worlds in which it is not active.

        Raises:
            UnknownNameError: an unknown equality.
            ModelError: ids out of range or repeated.

        Source: MuJoCo's `efc_force` in the rows of the equality.
        """
        e, chosen = index_of(self.model, "equality", equality), self._ids(ids)
        return self.query(EqualityForces(self.model, len(chosen), self.dtype, e), chosen)
