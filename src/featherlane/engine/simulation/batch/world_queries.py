"""Defines `WorldQueries`: rays, distances, fields and contacts of the present states of a batch's worlds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import one_of, whole_argument
from featherlane.engine.model.names import index_of
from featherlane.engine.simulation.batch.object_queries import ObjectQueries
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
from featherlane.engine.simulation.query.moving import FRAMES, MOVING, Moving
from featherlane.engine.simulation.query.pose import Poses
from featherlane.engine.simulation.query.ray import Hits, Rays, check_geoms
from featherlane.engine.simulation.query.scan import ScanRequest, scan_of
from featherlane.engine.simulation.query.tendon_wrap import ArcsRoundGeoms
from featherlane.engine.simulation.steps import check_inverse
from featherlane.engine.simulation.world.recordings import check_bindable, field_names
from featherlane.errors import ModelError

MOST_CONTACTS = 1 << 20  # of a list


class WorldQueries(ObjectQueries):
    """Computes rays, distances, fields and contacts of the present states; state and bound outputs do not change."""

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

        Forward dynamics are computed first; only their positions and contacts if no force is requested, which takes
        less time.  A selection matches the contacts between two objects, or those of one object with any other object,
        as MuJoCo's contact sensor does.

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
        return self.query(ContactQuery(self.model, len(chosen), self.dtype, selections, outputs, k, how), chosen)

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
