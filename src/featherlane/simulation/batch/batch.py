"""Defines `Batch`: many worlds of one model, stepped together in the vector lanes of the processor.

Each state field is stored as `(nworld, n)` in C order, one row per world.  A thread loads the rows of W worlds into its
workspace, steps them while they are in cache, and writes them back.  The assignment of worlds to tiles does not affect
results, so worlds with similar contacts are grouped for speed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.errors import ArgumentTypeError, ModelError, UnknownAttributeError, near
from featherlane.lanes import Kernel
from featherlane.lanes.cores import cores, pinned_cores
from featherlane.model.arguments import instance, one_of, several_of, whole_argument
from featherlane.model.assignment import assign, flag, is_mixed, real_number
from featherlane.model.enums import OBJ_UNKNOWN, State
from featherlane.model.fields import MODEL
from featherlane.model.model import Model
from featherlane.model.names import NamedAccess, index_of
from featherlane.model.set_const import model_of_world
from featherlane.model.variant import values_of
from featherlane.simulation.batch.arrays import (
    LASTING,
    ON_DEMAND,
    SLEEP_ROWS,
    STATE,
    WorldArrays,
    chosen_worlds,
    keyframe_numbers,
    not_kept,
    precision,
)
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.filming import Filming, Record, split_cameras
from featherlane.simulation.batch.padded import PaddedRows
from featherlane.simulation.batch.recorder import Recorder
from featherlane.simulation.batch.reduction import Reduction, check_rollout, over_worlds
from featherlane.simulation.batch.runner import Runner, stage_number
from featherlane.simulation.query.camera import VISIBLE, Camera, Images
from featherlane.simulation.query.contact import (
    MARGIN,
    REDUCTIONS,
    ContactLists,
    ContactQuery,
    Side,
    contact_outputs,
    selections_of,
)
from featherlane.simulation.query.distance import Distances, Pairs
from featherlane.simulation.query.ground import PLACED, PLACES, divided
from featherlane.simulation.query.imaging import camera_of, images_of, warn_of_black
from featherlane.simulation.query.inverse import Accelerations
from featherlane.simulation.query.jacobian import (
    ANGULAR_MOMENTUM,
    INERTIA,
    JAC,
    JAC_DOT,
    OBJECT_ACCELERATION,
    OBJECT_VELOCITY,
    SUBTREE_JAC,
    Objects,
    broadcast_points,
)
from featherlane.simulation.query.objects import Object, object_of, objects_of
from featherlane.simulation.query.pattern import RayPattern
from featherlane.simulation.query.pose import Poses
from featherlane.simulation.query.query import Query
from featherlane.simulation.query.ray import Hits, Rays, check_geoms, hit_geoms
from featherlane.simulation.query.scan import FIELDS, Scan, Scans, excluded_body, scan_result
from featherlane.simulation.steps import check_inverse
from featherlane.simulation.tile.call_lock import hold
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.tile.team import Team
from featherlane.simulation.world.contacts import Contacts, takes_contacts
from featherlane.simulation.world.data import Data
from featherlane.simulation.world.mujoco_data import read_world
from featherlane.simulation.world.recordings import (
    BINDABLE,
    Control,
    check_bindable,
    control_of_step,
    recordings,
)
from featherlane.simulation.world.state import read_state, write_state
from featherlane.simulation.world.user_contacts import contact_capacity

MOST_THREADS = 1024  # each has a separate workspace
MOST_CONTACTS = 1 << 20  # of a list


class Batch(NamedAccess):
    """Steps nworld worlds of one model.

    Args:
        model: the model; edits take effect at the next call.
        nworld: number of worlds, at least 1.
        nthread: threads, 0 for one for each core.
        dtype: float64 or float32, of the state and of all arithmetic; times are float64 in both.
        given_contacts: the largest number of contacts that `give_contacts` may give to a world.
        record_failures: steps to keep of each world, so that a failed step can be replayed; 0: none.
        cpu_ids: cores to which the threads are pinned, one for each thread (Linux).  Each thread then steps mostly the
            same worlds, whose state is in memory near its core, and the caller of a method only waits.  None: threads
            are not pinned.

    State fields are live arrays: `batch.qpos` (nworld, nq), `qvel`, `act`, `ctrl`, `time` (nworld,), `qacc_warmstart`,
    `qfrc_applied`, `xfrc_applied`, `mocap_pos`, `mocap_quat`, `eq_active`.  Derived fields are bound
    (`bind`) and refreshed by every call that computes them.

    Attributes:
        status: worlds' counts of `contacts_full`, `rows_full`, `non_finite`, `not_converged` and `bad_control`, each
            (nworld,).
        nreset: resets of each world for non-finite or out-of-range values, (nworld,); the first emits
            `NonFiniteWarning`.
        ncon, solver_niter, solver_residual, solver_gap: of each world's last step, (nworld,).
        failures: with record_failures, a list of `Failure`: steps in which a count of `status` grew, each with the
            world's last states and inputs for a bitwise identical replay.  It keeps each world's first failure of each
            cause, 64 in all, the oldest; removing failures makes space for others (`batch.failures.clear()`).

    Raises:
        TypeError: `model` is not a Model.
        ModelError: nworld, nthread, given_contacts or record_failures out of range, an unknown dtype; `cpu_ids` on a
            system that cannot pin threads, or that are not different cores of this process, one for each thread.
    """

    layout = DATA
    world_axes = 1
    model: Model
    nworld: int
    nthread: int
    dtype: np.dtype
    ngiven: int  # contacts that the caller may give to a world
    width: int  # worlds of a tile
    arrays: WorldArrays  # internal
    runner: Runner  # internal
    failures: list[Failure]

    def __init__(
        self,
        model: Model,
        nworld: int,
        nthread: int = 0,
        dtype: DTypeLike = "float64",
        given_contacts: int = 0,
        record_failures: int = 0,
        cpu_ids: Sequence[int] | None = None,
    ):
        instance("Batch", model, Model, "a Model (created by featherlane.load)", ArgumentTypeError)
        real, nworld = precision(dtype), whole_argument("nworld", nworld, 1)
        ngiven, nthread = contact_capacity(given_contacts), whole_argument("nthread", nthread, 0, MOST_THREADS)
        kept = whole_argument("record_failures", record_failures, 0)
        cpus = pinned_cores(cpu_ids, nthread)
        team = Team(len(cpus) or nthread or cores(), cpus)
        arrays = WorldArrays(model, nworld, real, ngiven, team.place if cpus else None)
        self._start(arrays, Runner(arrays, team, Recorder(nworld, kept, type(self)) if kept else None))

    def _start(self, arrays: WorldArrays, runner: Runner) -> None:
        own, shown = self.__dict__, ("model", "nworld", "dtype", "ngiven")
        own.update({name: getattr(arrays, name) for name in shown}, arrays=arrays, runner=runner)
        own["nthread"], own["width"] = runner.team.nthread, runner.width
        if runner.recorder is not None:
            own["failures"] = runner.recorder.failures

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("arrays")
        if arrays is not None and (name in arrays.rows or name in ON_DEMAND or name in SLEEP_ROWS):
            # stored as an ordinary attribute from now on, which is read twenty times as fast
            self.__dict__[name] = shown = DATA[name].public(arrays.lasting(name))
            return shown
        if name in BINDABLE:
            check_bindable(self.model, "bind", name)
            self._check_kept(name)
            return self._bind(name)
        if name == "failures":
            message = "batch has no failures: they are recorded with featherlane.Batch(..., record_failures=n)"
            raise UnknownAttributeError(message)
        raise UnknownAttributeError(f"batch has no attribute {name!r}{near(name, BINDABLE)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in STATE:
            assign(name, getattr(self, name), value, mixed=is_mixed(name))
        elif name in DATA or name in self.__dict__ or hasattr(type(self), name):
            raise UnknownAttributeError(
                f"{name} is computed and cannot be set, allowed are the state fields {', '.join(STATE)}"
            )
        else:
            raise UnknownAttributeError(f"batch has no field {name!r} to set{near(name, STATE)}")

    def __dir__(self):
        return sorted({*super().__dir__(), *BINDABLE})

    @property
    def status(self) -> dict[str, np.ndarray]:
        """Returns the counts since the last reset of each world, by name, each (nworld,) int64."""
        return self.arrays.status

    def count_of(self, *causes: str) -> np.ndarray:
        """Returns how often each world had one of these causes of `status` since its last reset, (nworld,)."""
        return self.arrays.count_of(*causes)

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        """Advances worlds by nstep time steps.

        Bound outputs are those of the state before the last step.  With `stage`, those of earlier stages are computed
        again for the new state: "position" (frames, centres of mass, tendons, lengths of actuators, position sensors),
        "velocity" (also `cvel`, subtree velocities, rates of tendons and actuators, velocity sensors), or
        "acceleration" (all, as `forward`).  The others, such as forces, accelerations and touch sensors, remain those
        of the last step.  A stage changes no trajectory.

        After an interrupt (Ctrl-C), all worlds of the call are at the same step.  The interrupt is raised after at most
        about 0.2 s, or after one step of all worlds if that takes longer.  `time` shows how far the worlds advanced,
        and continuing the batch from there gives bitwise identical results.

        Args:
            nstep: time steps, at least 1.
            ids: the worlds, by number or as a mask; None for all.
            stage: "position", "velocity" or "acceleration"; None for none.

        Raises:
            ModelError: nstep below 1, ids out of range or repeated, an unknown stage.
            RuntimeError: another thread is in a call of this batch.

        Source: MuJoCo mj_step, then mj_step1 or mj_forward.
        """
        self.runner.run(whole_argument("nstep", nstep, 1), self._ids(ids), stage=stage_number(stage))

    def forward(self, ids: ArrayLike | None = None) -> None:
        """Computes all derived fields of the present state, without a step."""
        self.runner.run(0, self._ids(ids))

    def reset(self, ids: ArrayLike | None = None, keyframe: int | str | np.ndarray = -1, forward: bool = True) -> None:
        """Sets worlds to the model's defaults or to keyframes, and recomputes bound outputs.

        Args:
            ids: the worlds; None for all.
            keyframe: a keyframe's name or number for all of them, or one number each; -1 for the defaults.
            forward: False does not recompute bound outputs, for a caller that sets the state next.

        Raises:
            ModelError: an unknown keyframe; `forward` is not a bool.
        """
        chosen, forward = self._ids(ids), flag("forward", forward)
        keys = keyframe_numbers(self.model, keyframe, len(chosen))
        hold((self.runner.turn,), self._reset, chosen, keys)
        if forward:
            self.forward_bound(chosen)

    def _reset(self, chosen: np.ndarray, keys: np.ndarray) -> None:
        self._forget(chosen)
        self.arrays.reset(chosen, keys)

    def forward_bound(self, ids: ArrayLike | None = None) -> None:
        """Computes the bound outputs of worlds that were set; the other outputs have no values from now on."""
        self.arrays.computed = True
        if self.arrays.bound:
            self.forward(ids)

    def rollout(
        self,
        nstep: int,
        control: Control | None = None,
        record: Record = ("qpos",),
        ids: ArrayLike | None = None,
        out: Mapping[str, np.ndarray] | None = None,
        reduce: Reduction | None = None,
    ) -> dict[str, np.ndarray]:
        """Advances worlds by nstep steps and records fields after each.

        After an interrupt, worlds are as after an interrupted `step`; `out` holds what was recorded until then.

        Args:
            nstep: time steps, at least 1.
            control: (n, nstep, nu) controls for the n worlds of the call, or (nstep, nu) for all of them; a dict of
                such arrays by input (`ctrl`, `xfrc_applied`, `mocap_pos`, ...); a function
                `control(batch, step)`, called between steps, whose result broadcasts to (n, nu); a kernel
                `control(m, d)`, compiled and called within each step after positions and velocities are computed,
                which sets `d.ctrl` (or `d.qfrc_applied`, `d.xfrc_applied`); or None to leave `ctrl` unchanged.
            record: names of state or derived fields, and cameras (`fl.Camera`).
            ids: the worlds; None for all.
            out: arrays to record into, by name, of the shapes and dtype returned; missing ones are allocated.
            reduce: `mean`, `sum`, `min`, `max` or a `Histogram` over the worlds; None to return the recordings.

        Returns:
            name -> (n, nstep, ...), of a scalar field (`time`, `ncon`) (n, nstep).  State is that after the step,
            derived fields those of the state before it.  Images are of the state after the step: "camera/output" ->
            (n, nstep, height, width, ...).  With `reduce`, name -> (nstep, ...), of a histogram (nstep, ..., nbin).

        Raises:
            ModelError: invalid shapes, names or counts; a kernel that cannot be compiled, or fails in a trial
                call, see `set_user_actuator`.
            InstallationError: a kernel is given and no compiler is installed.

        Source: MuJoCo mjcb_control (a kernel; under RK4 it is called in each of the four stages, as in MuJoCo).
        """
        nstep, chosen = whole_argument("nstep", nstep, 1), self._ids(ids)
        how = check_rollout(reduce, out, len(chosen))
        names, cameras = split_cameras(record, how)
        for name in names:
            check_bindable(self.model, "record", name)
        dims = lambda name: DATA[name].dims(self.arrays.sizes)  # noqa: E731
        film = Filming(self, cameras, (len(chosen), nstep), out)
        result = recordings(names, (len(chosen), nstep), film.rest, dims, self.dtype)
        if cameras:
            return film.run(control, chosen, result, dims)
        if callable(control) and not isinstance(control, Kernel):
            self._driven(control, nstep, chosen, result)
        else:
            share, reads = self.runner.share(nstep, chosen, control, result)
            self.runner.run(nstep, chosen, share.brought, share.taken, share.control)
            self.runner.measure_recorded(chosen, reads, result)
        return result if how is None else over_worlds(how, result, chosen)

    def _driven(self, control, nstep: int, chosen: np.ndarray, result) -> None:
        """Runs a rollout step by step, with controls that a function computes between steps."""
        shape = (len(chosen), self.model.nu)
        for k in range(nstep):
            values = control_of_step(control(self, k), k, shape, self.dtype)
            for name, rows in self.rollout(1, values[:, None], list(result), chosen).items():
                result[name][:, k] = rows[:, 0]

    def inverse(self, qacc: ArrayLike | None = None, ids: ArrayLike | None = None) -> np.ndarray:
        """Computes inverse dynamics: the external force that gives each world an acceleration in its present state.

        Args:
            qacc: what broadcasts to (n, nv) [m/s^2, rad/s^2] for the n worlds of the call; None for the accelerations
                of forward dynamics, for which the result is the sum of applied and actuator forces.
            ids: the worlds; None for all.

        Returns:
            qfrc_inverse (n, nv) [N, N m], as `fl.inverse` computes it.  State and bound outputs do not change.

        Raises:
            ModelError: an invalid shape, non-numeric values; as `fl.inverse` does.
        """
        check_inverse(self.model)
        chosen = self._ids(ids)
        return self.query(Accelerations(self.model, len(chosen), self.dtype, qacc), chosen)

    def ray(
        self,
        point: ArrayLike,
        direction: ArrayLike,
        geomgroup: ArrayLike | None = None,
        flg_static: bool = True,
        bodyexclude: ArrayLike | str | None = -1,
        cutoff: float = np.inf,
        ids: ArrayLike | None = None,
    ) -> Hits:
        """Intersects rays with the geoms of each world in its present state, and returns the nearest surfaces.

        Args:
            point: start of the rays [m]: what broadcasts to (n, nray, 3) for the n worlds of the call, (nray, 3) for
                the same rays in every world, (3,) for one.
            direction: direction of the rays, of any length, with the shapes of `point`.
            geomgroup: six flags, which groups of geoms are tested; None for all.
            flg_static: whether geoms that are welded to the world are tested.
            bodyexclude: a body whose geoms are not tested, by name or number, or numbers (n, nray); -1 for none.
            cutoff: surfaces from this distance on are ignored [m].
            ids: the worlds; None for all.

        Returns:
            `Hits`: distance (n, nray) in lengths of the direction, geom (n, nray), outward normal (n, nray, 3); if
            point and direction are (3,): (n,), (n,) and (n, 3).  A ray without a hit has -1, -1 and zeros.  State and
            bound outputs do not change.

        Raises:
            ModelError, UnknownNameError, UnsupportedFeatureError: as `fl.query.ray` does.
        """
        chosen = self._ids(ids)
        check_geoms(self.model, geomgroup, flg_static)
        rays = Rays(self.model, len(chosen), self.dtype, point, direction, geomgroup, flg_static, bodyexclude, cutoff)
        return self.query(rays, chosen)

    def camera(
        self,
        camera: int | str | Camera,
        width: int | None = None,
        height: int | None = None,
        output: str | Sequence[str] = ("depth",),
        ids: ArrayLike | None = None,
        *,
        geomgroup: ArrayLike | None = VISIBLE,
        near: float | None = None,
        far: float | None = None,
    ) -> Images:
        """Computes images of a camera in each world's present state, by casting a ray through the centre of each pixel.

        The field of view, the sensor's size, focal lengths, principal point, projection and mode are the camera's, with
        the conventions of MuJoCo's renderer; `cam_resolution` is not used.  As in MuJoCo's visualizer, back faces are
        not seen, nor are geoms with an alpha of 0.  Colours are those of `model.mj_model`: materials, textures, lights.

        Args:
            camera: name or number; or a `Camera`, which has all options and also noise and colours by world.
            width, height: size of the images [pixels].
            output: names of the images: `depth`, `segmentation`, `normal`, `rgb`.
            ids: the worlds; None for all.
            geomgroup: six flags, which groups of geoms are seen; None for all.
            near, far: distances of the planes between which surfaces are seen [m]; None for `vis.map.znear` and
                `zfar` times the model's extent.

        Returns:
            `Images` of the n worlds, row 0 at the top: depth (n, height, width) float32 [m], segmentation
            (n, height, width) int32, normal (n, height, width, 3) float32, rgb (n, height, width, 3) uint8.

        Raises:
            ModelError: an unknown output, a size that is not positive, wrong flags, planes or colours, an incomplete
                texture.
            UnknownNameError: an unknown camera.
            UnsupportedFeatureError: a signed distance field of an unsupported plugin is among the geoms.
            MemoryError: the images do not fit into memory.

        Warns:
            NonFiniteWarning: an image `rgb` of a world with a pose that is not finite; it is black.

        Source: MuJoCo mjv_cameraFrustum, mj_ray, mjr_render.
        """
        wanted = camera_of(camera, (width, height), output, geomgroup, near, far)
        images, black = images_of(self, wanted, self._ids(ids))
        warn_of_black(wanted, black)
        return images

    def scan(
        self,
        body: Object,
        pattern: RayPattern | ArrayLike,
        alignment: str = "base",
        output: str | Sequence[str] = ("distance",),
        ids: ArrayLike | None = None,
        *,
        geomgroup: ArrayLike | None = None,
        bodyexclude: int | str | None = "parent",
        cutoff: float = np.inf,
    ) -> Scan:
        """Casts the rays of a pattern from a frame in each world's present state, as a lidar does.

        Args:
            body: the frame that carries the pattern: a body by name or number, or a pair of a kind (`body` for its
                centre of mass, `xbody`, `geom`, `site`) and a name or number.
            pattern: a pattern of `fl.patterns`, or directions (nray, 3) of rays from the frame's origin.
            alignment: axes of the pattern: "base" for the frame's, "yaw" for its heading (rotation about the vertical
                alone), "world" for those of the world.
            output: names of the results: `distance`, `geom`, `normal`, `point`.
            ids: the worlds; None for all.
            geomgroup: six flags, which groups of geoms are tested; None for all.
            bodyexclude: a body whose geoms are not tested, by name or number; "parent" for the frame's, -1 for none.
            cutoff: surfaces from this distance on are ignored [m].

        Returns:
            `Scan`: distance (n, nray) [m], geom (n, nray), normal (n, nray, 3) and point (n, nray, 3) [m]; a ray
            without a hit has -1, -1, zeros and its origin.  State and bound outputs do not change.

        Raises:
            ModelError: an unknown alignment or output, wrong rays, flags or numbers.
            UnknownNameError: an unknown object.
            UnsupportedFeatureError: a signed distance field of an unsupported plugin is among the geoms.

        Source: MuJoCo mj_ray; mjlab and Isaac Lab, ray casters, for the alignments.
        """
        names = dict.fromkeys(FIELDS[name] for name in several_of("output", output, FIELDS))
        chosen = self._ids(ids)
        found = self._scanned(body, pattern, alignment, chosen, (geomgroup, bodyexclude), (cutoff, -1.0), names)
        return scan_result(found)

    def height_scan(
        self,
        body: Object,
        pattern: RayPattern | ArrayLike,
        alignment: str = "yaw",
        ids: ArrayLike | None = None,
        *,
        geomgroup: ArrayLike | None = None,
        cutoff: float = np.inf,
        miss: float | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Computes heights of a frame above the surfaces that the rays of a pattern hit, in each world's present state.

        Args:
            body, pattern, alignment, ids, geomgroup, cutoff: as for `scan`; the frame's body is not tested.
            miss: result of a ray without a hit; None for `cutoff`.
            out: array for the result, of the batch's precision; None to allocate it.

        Returns:
            (n, nray) z of the frame minus z of the surface [m]; NaN in a world with a pose that is not finite.

        Raises:
            ModelError, UnknownNameError, UnsupportedFeatureError: as `scan` does; a wrong `out`.

        Source: mjlab and Isaac Lab, height_scan.
        """
        if miss is not None:
            miss = float(real_number("miss", miss, "is a number or None"))
        chosen = self._ids(ids)
        return self._scanned(body, pattern, alignment, chosen, (geomgroup, "parent"), (cutoff, miss), {"heights": out})[
            "heights"
        ]

    def _scanned(self, body, pattern, alignment, chosen, geoms, limits, targets) -> dict[str, np.ndarray]:
        frame = object_of(self.model, body, "body")
        check_geoms(self.model, geoms[0], True)
        poses = lambda: self.query(Poses(self.model, 1, self.dtype, PLACES), chosen[:1])  # noqa: E731
        placed = len(chosen) and PLACED.isdisjoint(self.arrays.expanded)
        tested, cells = divided(self.model, hit_geoms(self.model, geoms[0], True), poses if placed else None)
        batch = len(chosen), self.dtype, self.runner.width
        geoms = tested, cells, excluded_body(self.model, geoms[1])
        return self.query(Scans(batch, frame, pattern, alignment, geoms, limits, targets), chosen)

    def geom_distance(
        self, geom1: ArrayLike, geom2: ArrayLike, distmax: float = np.inf, ids: ArrayLike | None = None
    ) -> Distances:
        """Computes signed distances of pairs of geoms and their nearest points, in each world's present state.

        Args:
            geom1, geom2: geoms by name or number: one, or arrays that broadcast to (n, npair) for the n worlds of the
                call, (npair,) for the same pairs in every world.
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

    def jac(
        self,
        point: ArrayLike | Object | list[Object],
        body: int | str | np.ndarray | None = None,
        ids: ArrayLike | None = None,
        local: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the Jacobians of a point that moves with a body, in each world's present state.

        Args:
            point: what broadcasts to (n, 3) for the n worlds of the call, in world axes [m]; or, without `body`, the
                origin of an object: a body by name or number, or a pair of a kind (`body` for its centre of mass,
                `xbody`, `geom`, `site`) and a name or number; or a list of k objects.
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

    def jac_body(self, body: int | str, ids: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the Jacobians (jacp, jacr), each (n, 3, nv) [m or 1, and rad by DoF], of a body's frame; see `jac`.

        Raises:
            UnknownNameError: an unknown body.

        Source: MuJoCo mj_jacBody.
        """
        return self.jac(("xbody", body), None, ids)

    def jac_site(self, site: int | str, ids: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns the Jacobians (jacp, jacr), each (n, 3, nv) [m or 1, and rad by DoF], of a site; see `jac`.

        Raises:
            UnknownNameError: an unknown site.

        Source: MuJoCo mj_jacSite.
        """
        return self.jac(("site", site), None, ids)

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
        points = broadcast_points(point, len(chosen))
        jac = np.zeros((2, len(chosen), 3, self.model.nv), self.dtype)
        for number in np.unique(body).tolist():
            at = np.flatnonzero(body == number)
            jac[:, at] = self._jacobians(quantity, points[at], number, chosen[at], local)
        return jac[0], jac[1]

    def _quantity(self, quantity: int, objects, chosen: np.ndarray, local: bool = False, point=None) -> np.ndarray:
        """Returns a quantity of one object (n, ...) or of a list of k objects (n, k, ...)."""
        listed, single = objects
        found = self.query(Objects(self.model, len(chosen), self.dtype, quantity, listed, local, point), chosen)
        return found[:, 0] if single else found

    def jac_subtree_com(self, body: int | str, ids: ArrayLike | None = None) -> np.ndarray:
        """Returns the Jacobian (n, 3, nv) [m or 1] of the centre of mass of a body's subtree; zeros without mass.

        Raises:
            UnknownNameError: an unknown body.

        Source: MuJoCo mj_jacSubtreeCom.
        """
        return self._quantity(SUBTREE_JAC, objects_of(self.model, body, "body"), self._ids(ids))[..., :3, :]

    def angular_momentum_matrix(self, body: int | str, ids: ArrayLike | None = None) -> np.ndarray:
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
        return self._quantity(INERTIA, ([(OBJ_UNKNOWN, 0)], True), self._ids(ids))

    def object_velocity(
        self, kind: str, key: int | str | list[int | str], local: bool = False, ids: ArrayLike | None = None
    ) -> np.ndarray:
        """Returns the angular and linear velocity of a body, geom or site at its origin, in each world's present state.

        Args:
            kind: `body` (at its centre of mass), `xbody` (at its frame), `geom` or `site`.
            key: name or number; or a list of k of them.
            local: in the object's axes; else in world axes.
            ids: the worlds; None for all.

        Returns:
            (n, 6): rotation [rad/s], then translation [m/s]; of a list (n, k, 6).

        Raises:
            ModelError: another kind.
            UnknownNameError: an unknown object.

        Source: MuJoCo mj_objectVelocity.
        """
        return self._motion(OBJECT_VELOCITY, kind, key, local, ids)

    def object_acceleration(
        self, kind: str, key: int | str | list[int | str], local: bool = False, ids: ArrayLike | None = None
    ) -> np.ndarray:
        """Returns the angular and linear acceleration of an object at its origin, in each world's present state.

        The accelerations of forward dynamics are computed first.  As in MuJoCo, a body at rest has the acceleration
        -g, which an accelerometer measures.

        Args:
            kind, key, local, ids: as for `object_velocity`.

        Returns:
            (n, 6): rotation [rad/s^2], then translation [m/s^2]; of a list (n, k, 6).

        Raises:
            ModelError: another kind.
            UnknownNameError: an unknown object.

        Source: MuJoCo mj_objectAcceleration.
        """
        return self._motion(OBJECT_ACCELERATION, kind, key, local, ids)

    def _motion(self, quantity: int, kind: str, key, local, ids) -> np.ndarray:
        objects = [(kind, one) for one in key] if isinstance(key, list) else (kind, key)
        return self._quantity(quantity, objects_of(self.model, objects, "kind"), self._ids(ids), flag("local", local))

    # ---- contacts ----------------------------------------------------------------------------------------------------
    def contacts(
        self,
        first: Side | list[Side] = None,
        second: Side | list[Side] = None,
        output: str | Sequence[str] = ("geom", "dist", "pos", "normal", "force"),
        ids: ArrayLike | None = None,
        *,
        num: int | None = None,
        reduce: str = "none",
    ) -> ContactLists:
        """Lists contacts and their forces in each world's present state.

        Contacts and forces are those of forward dynamics, which are computed first.  A selection matches contacts
        between two objects, or of one object with any other, as MuJoCo's contact sensor does.

        Args:
            first, second: an object: a body by name or number, or a pair of a kind (`geom`, `body`, `subtree`) and a
                name or number; None for any.  Lists of f objects make f selections.
            output: names of the results: `force`, `torque`, `dist`, `pos`, `normal`, `tangent`, `linvel`, `angvel`,
                `geom`; the number `found` is always returned.
            ids: the worlds; None for all.
            num: contacts to list of each selection; None for all.
            reduce: order of the list: "none" for MuJoCo's order, "mindist" for the smallest distance first,
                "maxforce" for the largest force first; "netforce" for one contact that stands for all: their total
                force and torque, in world axes, at the centre of pressure.

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

    def contact_force(
        self, body: Side | list[Side], other: Side | list[Side] = None, ids: ArrayLike | None = None
    ) -> np.ndarray:
        """Returns the total force of contacts on an object, in each world's present state.

        Args:
            body: the object: a body by name or number, or a pair of a kind (`geom`, `body`, `subtree`) and a name or
                number; or a list of f objects.
            other: only contacts with this object, given likewise; None for all contacts of the first one.
            ids: the worlds; None for all.

        Returns:
            (n, 3) [N] in world axes; of a list (n, f, 3).  `contacts(reduce="netforce")` also returns the torque.

        Raises:
            ModelError, UnknownNameError: as `contacts` does.

        Source: MuJoCo mj_contactForce, summed over contacts.
        """
        if body is None:
            raise ModelError("body: got None, allowed are a body, or a kind and a name or number")
        force = self.contacts(other, body, "force", ids, reduce="netforce").force
        assert force is not None
        return force[..., 0, :]

    # ---- outputs -----------------------------------------------------------------------------------------------------
    def bind(self, name: str) -> np.ndarray:
        """Returns a live array over a field: a state field, or an output that each call refreshes.

        After `step` an output is that of the last step's old state, as in MuJoCo; after `forward` it is current.  An
        output is zero until the first `step`, `forward` or `reset`.  An output that is bound later is NaN until the
        next call computes it, because no call kept its values; reading `batch.xpos` instead raises an error then.

        Args:
            name: a state field or a derived field of `fl.Data` (`xpos`, `cvel`, `qfrc_constraint`, ...).

        Returns:
            (nworld, ...) array; outputs are read-only.

        Raises:
            ModelError: an unknown field, or one that belongs to a tile and not to a world.
            UnsupportedFeatureError: `sensordata` of a model with unsupported sensors.
        """
        check_bindable(self.model, "bind", name)
        if name in LASTING or name in self.arrays.rows:
            return getattr(self, name)
        return self._bind(name)

    def _bind(self, name: str) -> np.ndarray:
        """Returns a live array over an output."""
        array = self.arrays.output(name)
        if name in self.__dict__:
            return self.__dict__[name]
        view = DATA[name].public(array).view()
        view.flags.writeable = False
        if name != "sensordata":  # reading all sensors raises an error that names the unsupported ones
            self.__dict__[name] = view
        return view

    def _check_kept(self, name: str) -> None:
        """Raises an error if the last call did not keep the values of an output."""
        if self.arrays.computed and name not in self.arrays.bound:
            raise not_kept(name)

    def writable(self, name: str) -> np.ndarray:
        """Returns a writable array of an output of the last call; written values last until the next call.

        Raises:
            ModelError: it was not bound before the last call.
        """
        getattr(self, name)
        return self.arrays.bound[name]

    def sensor_values(self, sensor: int) -> np.ndarray:
        """Returns `sensordata`, to read one sensor.

        Raises:
            ModelError: it was not bound before the last call.
            UnsupportedFeatureError: the sensor is not computed.
        """
        from featherlane.model.features import refuse_sensors

        refuse_sensors(self.model, [sensor])
        self._check_kept("sensordata")
        return self._bind("sensordata")

    def expand(self, name: str) -> np.ndarray:
        """Gives a real model field separate values in each world, as for domain randomization.

        After writing fields that others depend on (masses, inertias, ...), call `set_const`.  A field may be 0 in the
        model and nonzero in a world, and the reverse: each call checks the values of all worlds.

        Args:
            name: a real field of the model (`body_mass`), options as `opt.timestep` or `opt_timestep`.

        Returns:
            (nworld, ...) live array, initialized with the model's values.

        Raises:
            ModelError: an unknown real field.
            RuntimeError: another thread is in a call of this batch.
        """
        if isinstance(name, str):
            name = name.replace("opt.", "opt_")
        if not isinstance(name, str) or name not in MODEL or MODEL[name].kind != "real":
            allowed = [f.name for f in MODEL.fields if f.kind == "real"]
            raise ModelError(f"expand: {name!r} is not a real field of the model{near(name, allowed)}")
        hold((self.runner.turn,), self.arrays.expand, name)
        return self.arrays.expanded.lend(name)

    def expanded(self, name: str) -> np.ndarray | None:
        """Returns the per-world values of a model field, or None if all worlds share the model's."""
        if isinstance(name, str):
            name = name.replace("opt.", "opt_")
        return self.arrays.expanded.lend(name) if isinstance(name, str) and name in self.arrays.expanded else None

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Recomputes, world by world, the model fields that depend on expanded ones; they become per-world.

        Raises:
            ModelError: ids out of range, values that fields cannot hold.
            RuntimeError: another thread is in a call of this batch.
        """
        hold((self.runner.turn,), self.arrays.set_const, self._ids(ids))

    def set_variant(self, geom: str, ids: ArrayLike | None, variant: str, *, inertia: bool = True) -> None:
        """Gives worlds a variant of a geom, of a body, or of another group of `fl.load(..., variants=...)`.

        Sets the meshes, sizes, bounding volumes, materials and colours of geoms, and the masses and inertias of bodies,
        as MuJoCo compiles them for this variant; a world may also lack geoms.  Fields that depend on these are
        recomputed, as by `set_const`.  The results of the world are then those of a model with this variant alone.  A
        reset keeps the variant.

        Args:
            geom: name of the group: a geom, a body, or the key of functions.
            ids: the worlds; None for all.
            variant: name of the variant.
            inertia: whether the masses and inertias of bodies are set, too; False leaves them as they are.

        Raises:
            UnknownNameError: the model has no such group or variant.
            ModelError: ids out of range or repeated; `inertia` is not a bool.
            RuntimeError: another thread is in a call of this batch.

        Source: mjlab's entity variants.
        """
        values = values_of(self.model.variants, geom, variant, flag("inertia", inertia))
        hold((self.runner.turn,), self.arrays.set_variant, self._ids(ids), values)

    # ---- given contacts ----------------------------------------------------------------------------------------------
    @takes_contacts
    def give_contacts(
        self,
        contacts: Contacts,
        *,
        replace: ArrayLike = False,
        count: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> None:
        """Gives each world separate contacts, in addition to detected contacts or in place of them.

        Works as `Data.give_contacts`, with a leading axis of worlds: arrays broadcast to (nworld, n, ...), so (n, ...)
        gives all worlds the same.  Contacts are stored in the rows of their world: a reset clears them, a checkpoint
        contains them, and worlds whose contacts join other bodies may share a tile.

        Args:
            contacts: a `featherlane.Contacts`; or its fields as keyword arguments.
            replace: () or (nworld,): no contacts are detected in this world.
            count: (nworld,) number of a world's contacts, the first ones of its row; None: all n.
            ids: the worlds, by number or as a mask, to which contacts are given; None for all.

        Raises:
            ModelError: as in `Data.give_contacts`; `Batch(..., given_contacts=n)` sets the capacity.
        """
        self.arrays.give_contacts(contacts, replace, count, self._ids(ids))

    def clear_given_contacts(self, ids: ArrayLike | None = None) -> None:
        """Removes given contacts from these worlds and detects contacts again."""
        if self.ngiven:
            for name in ("given_present", "given_replace"):
                self.arrays.rows[name][self._ids(ids)] = 0

    # ---- memory ------------------------------------------------------------------------------------------------------
    @property
    def rows(self) -> Mapping[str, np.ndarray]:
        """Returns persistent arrays (state, inputs in use, reports) by field, (nworld, ...); writes are unchecked."""
        return MappingProxyType(self.arrays.rows)

    @property
    def bound(self) -> Mapping[str, np.ndarray]:
        """Returns the memory of the bound outputs by field, (nworld, ...)."""
        return MappingProxyType(self.arrays.bound)

    @property
    def expanded_fields(self) -> Mapping[str, np.ndarray]:
        """Returns the memory of per-world model fields, (nworld, ...); `expanded` returns arrays with checks."""
        return MappingProxyType(self.arrays.expanded)

    def row_memory(self, name: str) -> np.ndarray:
        """Returns the memory of a state field, allocated at the first use."""
        return self.arrays.lasting(name)

    def get_state(self, bits: int = State.INTEGRATION) -> np.ndarray:
        """Returns parts of the state, (nworld, state_size); the default is all that a step reads; see `get_state`."""
        return read_state(self, (self.nworld,), self.dtype, bits)

    def set_state(self, state: ArrayLike, bits: int = State.INTEGRATION) -> None:
        """Sets parts of the state from what broadcasts to (nworld, state_size); see `set_state`."""
        write_state(self, (self.nworld,), state, bits)

    def is_left_out(self, name: str) -> bool:
        """Returns whether a field is an input that has not been accessed yet, and is zero in all worlds."""
        return isinstance(name, str) and name in ON_DEMAND and name not in self.arrays.rows

    # ---- for programs that display or run a user's batch -------------------------------------------------------------
    @property
    def is_busy(self) -> bool:
        """Returns whether a call is running."""
        return self.runner.turn.is_held

    def mute(self) -> None:
        """Emits no NonFiniteWarning from now on: the caller reports what `status` counts."""
        self.runner.warned = True

    def watch(self, function: Callable[[], None] | None) -> None:
        """Calls a function at the end of each call, in the thread of that call; None for no function."""
        self.runner.watcher = function

    @property
    def pair_memory(self) -> np.ndarray:
        """Returns each world's cached data of candidate pairs, (nworld, n); it saves time, and changes no result."""
        return self.runner.pair_memory()

    def query(self, query: Query, chosen: np.ndarray) -> Any:
        """Returns the result of a query of the present states of worlds; see `Runner.query`."""
        return self.runner.query(query, chosen)

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _ids(self, ids) -> np.ndarray:
        """Returns world numbers (n,) int64, checked."""
        return chosen_worlds(ids, self.nworld)

    def _world(self, world) -> int:
        """Returns one world's number, checked."""
        return whole_argument("world", world, 0, self.nworld - 1)

    def get_model(self, world: int) -> Model:
        """Returns one world's model: a copy with its expanded fields."""
        w = self._world(world)
        return model_of_world(self.model, {name: rows[w] for name, rows in self.arrays.expanded.items()})

    def get_data(self, world: int) -> Data:
        """Returns one world as an `fl.Data` in float64, forward computed."""
        w = self._world(world)
        data = Data(self.get_model(world), self.ngiven)
        for name, rows in self.arrays.rows.items():
            if name in LASTING:
                data.workspace.arrays[name][: rows[w].size, 0] = rows[w].reshape(-1)
        data.forward()
        return data

    def to_mujoco(self, world: int, mj_data: Any) -> None:
        """Copies one world to an MjData, with the outputs of its present state; see `Data.to_mujoco`.

        Args:
            world: number of the world.
            mj_data: a `mujoco.MjData` of a model with the sizes of this one.

        Raises:
            TypeError, ModelError: as `Data.to_mujoco`; `world` is out of range.
        """
        self.get_data(world).to_mujoco(mj_data)

    def from_mujoco(self, world: int, mj_data: Any) -> None:
        """Copies an MjData to one world: its state, inputs and bound outputs; see `Data.from_mujoco`.

        A float32 batch rounds the values.  A batch stores no contacts and rows; the next call computes them.

        Args:
            world: number of the world.
            mj_data: a `mujoco.MjData` of a model with the sizes of this one.

        Raises:
            TypeError: no MjData.
            ModelError: other sizes; `world` is out of range.  Nothing is written then.
            RuntimeError: another thread is in a call of this batch.
        """
        hold((self.runner.turn,), self._from_mujoco, self._world(world), mj_data)

    def _from_mujoco(self, world: int, mj_data: Any) -> None:
        read_world(self.arrays, world, mj_data)
        self._forget(np.array([world]))

    # ---- checkpoints and copies --------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        """Returns copies of state, reports and expanded model fields, for `restore`, np.savez and pickle."""
        return self.arrays.checkpoint()

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Restores a checkpoint; the worlds continue bit for bit.

        Raises:
            ModelError: a field is missing, or has another shape or dtype; nothing is restored then.
            RuntimeError: another thread is in a call of this batch; nothing is restored then.
        """
        instance("restore", kept, Mapping, "the result of checkpoint()")
        hold((self.runner.turn,), self._restore, self.arrays.checked_checkpoint(kept))

    def _restore(self, values: Mapping[str, np.ndarray]) -> None:
        self._forget(slice(None))
        self.arrays.restore(values)

    def _forget(self, worlds: slice | np.ndarray) -> None:
        """Discards the recorded steps of worlds whose state is about to be set."""
        if self.runner.recorder is not None:
            self.runner.recorder.forget(worlds)

    def move_into(self, rows: PaddedRows) -> None:
        """Moves all arrays into parts of arrays that several batches share (`MixedBatch`)."""
        for name in self.arrays.rows.keys() | self.arrays.bound.keys():
            self.__dict__.pop(name, None)  # a view of the old array
        self.arrays.move_into(rows)

    def __getstate__(self):
        return {"arrays": self.arrays, "runner": self.runner}

    def __setstate__(self, state):
        self._start(**state)

    def copy(self) -> Batch:
        """Returns a batch with its own worlds, in the same state, of the same model."""
        return copy.deepcopy(self, {id(self.model): self.model})

    __copy__ = copy

    def __repr__(self) -> str:
        return f"Batch({self.model!r}, nworld={self.nworld}, nthread={self.nthread}, dtype={self.dtype.name})"
