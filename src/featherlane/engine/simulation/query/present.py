"""Computes what queries of one world read, for its present state; the world's fields do not change.

A query reads the fields of the `Data` if they belong to the present state: after `forward`, until the state changes.
Otherwise it reads those of a separate workspace, a probe, which computes them from a copy of the state.
In kernels m and d are the model and the world, e is the probe, p the record PROBE of the query, s that of the last pass
of d.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import com_vel
from featherlane.engine.dynamics.body.jacobian import JACOBIAN
from featherlane.engine.dynamics.inertia.joint_space import factor_m
from featherlane.engine.lanes import Field, Layout
from featherlane.engine.lanes.record import allocated
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import index_of
from featherlane.engine.simulation.query.jacobian import (
    CORIOLIS,
    INERTIA,
    JAC_DOT,
    MATRICES,
    OBJECT_ACCELERATION,
    PARAMETERS,
    REGRESSOR,
    joint_space_inertia,
    object_accelerations,
    object_frames,
    object_quantity,
)
from featherlane.engine.simulation.query.moments import moments_need_contacts, output_lengths
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.engine.simulation.world.last_pass import (
    LAST_PASS,
    copy_positions,
    copy_velocities,
    has_positions,
    has_velocities,
)

R = TypeVar("R")

PROBE = Layout(
    "Probe",
    (
        *JACOBIAN.fields,
        Field("has_positions", "int", (1,), doc="1: the probe's frames, centres of mass and cameras are current"),
        Field("has_velocities", "int", (1,), doc="1: its velocities of bodies are current"),
        Field("has_inertia", "int", (1,), doc="1: its inertia matrix and the factor are current"),
        Field("has_lengths", "int", (1,), doc="1: its lengths and moments of tendons and actuators are current"),
        Field("has_accelerations", "int", (1,), doc="1: its accelerations of bodies are current"),
        Field("is_used", "int", (1,), doc="1: the query reads the probe, 0: the fields of the world"),
    ),
)
FLAGS = ("has_positions", "has_velocities", "has_inertia", "has_lengths", "has_accelerations")
STATE = DATA.that("lasts")
SIZES = tuple(f.name for f in DATA.fields if f.kind == "size")
LOOKUPS = {OBJ_GEOM: "geom", OBJ_SITE: "site", OBJ_CAMERA: "camera"}  # of objects that are not bodies


# ---- kernels ---------------------------------------------------------------------------------------------------------
@kernel
def pass_is_current(m, d, s, velocities):
    """Returns 1 if the fields of d belong to its present positions, and to its velocities if `velocities` is 1."""
    if s.kept[0] == 0:
        return 0
    if has_positions(m, d, s) == 0:
        return 0
    if velocities and has_velocities(m, d, s) == 0:
        return 0
    return 1


@kernel
def update_probe(m, d, e, p, velocities, inertia, lengths):
    """Computes the fields of the probe e that do not belong to the present state of d; the last arguments are requests.

    New positions invalidate all other fields of the probe, new velocities its accelerations.
    """
    if p.has_positions[0] == 0 or has_positions(m, d, e) == 0:
        copy_positions(m, d, e)
        p.has_velocities[0], p.has_inertia[0], p.has_lengths[0], p.has_accelerations[0] = 0, 0, 0, 0
        object_frames(m, e)
        p.has_positions[0] = 1
    if velocities and (p.has_velocities[0] == 0 or has_velocities(m, d, e) == 0):
        copy_velocities(m, d, e)
        p.has_accelerations[0] = 0
        com_vel(m, e)
        p.has_velocities[0] = 1
    if inertia and p.has_inertia[0] == 0:
        joint_space_inertia(m, e)
        factor_m(m, e)
        p.has_inertia[0] = 1
    if lengths and p.has_lengths[0] == 0:
        output_lengths(m, e)
        p.has_lengths[0] = 1


@stage(e=DATA, p=PROBE, s=LAST_PASS)
def present_fields(m, d, e, p, s, velocities, inertia, lengths):
    """Computes fields of the probe e for the present state of d, unless those of d are current: sets is_used.

    Reads:  qpos, qvel, mocap_pos, mocap_quat of d; those of the last pass; what the probe has.
    Writes: is_used; of the probe: what `kinematics`, `frames`, `com_pos`, `cameras` write; if `velocities` is 1, what
            `com_vel` writes; if `inertia` is 1, what `tendon`, `crb` and `factor_m` write; if `lengths` is 1, what
            `tendon` and `transmission` write.
    """
    p.is_used[0] = 1 - pass_is_current(m, d, s, velocities)
    if p.is_used[0]:
        update_probe(m, d, e, p, velocities, inertia, lengths)


@stage(e=DATA, p=PROBE, s=LAST_PASS)
def present_quantity(m, d, e, p, s, quantity, kind, i, local):
    """Computes a quantity of an object, as `object_quantity` does, for the present state of d.

    Accelerations are those of the probe, which the caller computes.
    Reads:  what `present_fields` and `object_quantity` read.
    Writes: what `present_fields` and `object_quantity` write.
    """
    velocities, inertia = 1 if quantity >= JAC_DOT else 0, 1 if quantity == INERTIA else 0
    p.is_used[0] = 1 if quantity == OBJECT_ACCELERATION else 1 - pass_is_current(m, d, s, velocities)
    if p.is_used[0]:
        update_probe(m, d, e, p, velocities, inertia, lengths=0)
        object_quantity(m, e, p, quantity, kind, i, local)
    else:
        object_quantity(m, d, p, quantity, kind, i, local)


# ---- the probe of a world --------------------------------------------------------------------------------------------
class Probe(dict[tuple, Any]):
    """Memory for queries of one world, and the calls that compute what they read, bound at first use.

    A key (quantity, kind, name or number of the object, its type, local) has the function that computes this quantity
    into `results`, and one that copies the result; (velocities, inertia, lengths) has that of `present_fields`.

    Attributes:
        workspace: the separate workspace.
        point: (3,) the given point [m].
        qacc: (nv,) the given accelerations [m/s^2, rad/s^2].
        results: memory of each quantity: (2, 3, nv) both parts of a Jacobian, (nv, nv) the inertia or Coriolis matrix,
            (nv, 10) a regressor, (10,) inertial parameters, or (6,) the motion of an object.
    """

    def __init__(self, data: Data):
        self._source = source = data.workspace
        self.workspace = Workspace(data.model, 1, rows=source.rows, given=data.ngiven)
        for name in SIZES:
            self.workspace.record.set_size(name, source.record.size(name))
        names = (name for name in STATE if DATA[name].count(source.sizes))
        self._state = [(self.workspace.arrays[name], source.arrays[name]) for name in names]
        nv, nbody = source.sizes["nv"], source.sizes["nbody"]
        record = allocated(PROBE, {"jac_nv": nv, "jac_nbody": nbody}, 1, np.float64)
        last, arrays = source.others["s"], record.arrays
        self._flags, self._is_used = [arrays[name] for name in FLAGS], arrays["is_used"]
        self.point, self._motion = arrays["jac_point"][:, 0], arrays["motion"][:, 0]
        self.qacc = arrays["jac_qacc"][:nv, 0]
        jac = arrays["jac"][: 6 * nv].reshape(2, 3, nv)
        self.results = {quantity: jac for quantity in MATRICES}
        for quantity, name in ((INERTIA, "jac_M"), (CORIOLIS, "jac_C")):
            self.results[quantity] = arrays[name][: nv * nv].reshape(nv, nv)
        self.results[REGRESSOR] = arrays["jac_regressor"][: 10 * nv].reshape(nv, 10)
        self.results[PARAMETERS] = arrays["jac_parameters"][:, 0]
        self._records = (source.rows.record, source.record, self.workspace.record, record, last)

    def forget(self) -> None:
        """Marks the fields of the probe as those of another state, because the model has changed."""
        for has in self._flags:
            has[0] = 0

    def fields(self, *requests: int) -> Workspace:
        """Returns the workspace whose fields belong to the present state: the world's, or that of the probe."""
        self[requests]()
        return self.workspace if self._is_used[0] else self._source

    def __missing__(self, key: tuple) -> Any:
        """Binds `present_fields` or `present_quantity` to integers, which are converted once; raises as `index_of`."""
        if len(key) == 3:
            self[key] = run = library().bind(present_fields, *self._records, numbers=key)
            return run
        quantity, kind, given, _, local = key
        numbers = quantity, kind, index_of(self.workspace.model, LOOKUPS.get(kind, "body"), given), local
        run = library().bind(present_quantity, *self._records, numbers=numbers)
        self[key] = bound = run, self.results.get(quantity, self._motion).copy
        return bound

    def accelerate(self) -> None:
        """Computes the accelerations of forward dynamics in the probe, if the state or an input has changed."""
        has_all = all(has[0] for has in self._flags)
        if has_all and all(copied.tobytes() == given.tobytes() for copied, given in self._state):
            return
        self.forget()
        for copied, given in self._state:
            copied[...] = given
        self.workspace.arrays["tree_settled"][...] = 0  # its value belongs to another state
        self.workspace.calls.connect()
        self.workspace.bound(object_accelerations)()
        for has in self._flags:
            has[0] = 1


def matrix(
    model: Model,
    data: Data,
    quantity: int,
    kind: int = OBJ_UNKNOWN,
    key: str | int = 0,
    local: int = 0,
    point: np.ndarray | None = None,
    qacc: np.ndarray | None = None,
) -> np.ndarray:
    """Returns a copy of a quantity of an object, with the shape in `Probe.results`.

    Args:
        model, data: the world.
        quantity: JAC, ...
        kind, key: the object, as mjtObj, and its name or number; kind 0 for a given point of a body.
        local: 1: in the axes of the object; 0: in world axes.
        point: (3,) the given point [m].
        qacc: (nv,) the given accelerations [m/s^2, rad/s^2].

    Raises:
        UnknownNameError: an unknown object; and as `ready`.
    """
    # as `ready` does, without a call: benchmarks/latency.py, `dynamics` of the Panda
    if type(data) is not Data or data.model is not model or not (data._stamp is model._stamp is not None):
        ready(model, data)
    unused = data._probes  # a probe in use belongs to the calling thread
    try:
        probe = unused.pop()
    except IndexError:
        probe = Probe(data)
    try:
        run, copied = probe[quantity, kind, key, key.__class__, local]
    except TypeError:  # an integer that has no hash
        key = index_of(model, LOOKUPS.get(kind, "body"), key)
        run, copied = probe[quantity, kind, key, int, local]
    if point is not None:
        probe.point[:] = point
    elif qacc is not None:
        probe.qacc[:] = qacc
    elif quantity == OBJECT_ACCELERATION:
        hold(data._turns, probe.accelerate)
    run()
    found = copied()
    unused.append(probe)
    return found


def present(
    data: Data, function: Callable[[Workspace], R], velocities: int = 0, inertia: int = 0, lengths: int = 0
) -> R:
    """Calls a function of the workspace whose fields belong to the present state of a world.

    Args:
        data: the world; other calls of it are excluded meanwhile.
        function: the function.
        velocities, inertia, lengths: 1: it reads velocities of bodies, the inertia matrix and its factor, or lengths
            and moments of actuators.  Moments that depend on contacts are those of forward dynamics.
    """
    unused = data._probes

    def call() -> R:
        try:
            probe = unused.pop()
        except IndexError:
            probe = Probe(data)
        if lengths and moments_need_contacts(data.model):
            probe.accelerate()
            found = function(probe.workspace)
        else:
            found = function(probe.fields(velocities, inertia, lengths))
        unused.append(probe)
        return found

    return hold(data._turns, call)
