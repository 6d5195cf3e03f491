"""Checks the values of real model fields: a negative mass, NaN etc. raises an error that names the element.

Values must be finite, except ranges and maximum forces, which may be infinite.  Values to which MuJoCo gives a meaning
are allowed: negative damping and stiffness, `solref` of either sign, `solimp` out of its range.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherlane.engine.model import inertias, simple_bodies
from featherlane.engine.model.arguments import LARGEST
from featherlane.engine.model.enums import (
    ABSENT_GEOM,
    DYN_DCMOTOR,
    DYN_FILTER,
    DYN_FILTEREXACT,
    DYN_MUSCLE,
    DYN_PID,
    GAIN_DCMOTOR,
    GYRO_EXPLICIT,
    GYRO_OFF,
    INTEGRAL,
    PID_PLUGIN,
    RK4,
    SLEW,
    TRN_SLIDERCRANK,
    WRAP_CYLINDER,
    WRAP_SPHERE,
    Gyroscopic,
)
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.geom import SHAPES
from featherlane.engine.model.joint import is_scalar
from featherlane.engine.model.names import KINDS as NAMED
from featherlane.engine.model.protocol import ModelFields
from featherlane.errors import ModelError

LEAST = float(np.nextafter(np.float32(0.0), np.float32(1.0)))  # above 0 in both precisions
INF = float("inf")
UNIT = 1e-4  # maximum deviation of a unit length from 1
KINDS = {"jnt": "joint", "eq": "equality", "cam": "camera"}  # field prefix -> kind of its element, if they differ


class Limit(NamedTuple):
    """The allowed range of a value, from low to high, and its text."""

    low: float
    high: float
    words: str


FINITE = Limit(-LARGEST, LARGEST, "finite numbers")
NUMBER = Limit(-INF, INF, "numbers")
NOT_NEGATIVE = Limit(0.0, LARGEST, "finite numbers >= 0")
MAGNITUDE = Limit(0.0, INF, "numbers >= 0")
POSITIVE = Limit(LEAST, LARGEST, "finite numbers > 0")
FRACTION = Limit(0.0, 1.0, "numbers from 0 to 1")
SHARE = Limit(-LARGEST, 1.0, "numbers <= 1; a negative number selects the option's value")
BETWEEN = Limit(LEAST, float(np.nextafter(np.float32(2.0), np.float32(0.0))), "numbers above 0 and below 2")

_NAMES = {
    NUMBER: "jnt_range jnt_actfrcrange jnt_springyield tendon_range tendon_actfrcrange tendon_springyield link_range"
    " actuator_ctrlrange actuator_forcerange actuator_actrange actuator_lengthrange actuator_pidprm sensor_cutoff",
    NOT_NEGATIVE: "body_mass body_inertia dof_armature dof_frictionloss tendon_armature tendon_frictionloss"
    " actuator_armature actuator_delay sensor_delay geom_friction pair_friction site_size geom_slip"
    " geom_friction_static geom_restitution_vel opt_tolerance opt_ls_tolerance opt_noslip_tolerance opt_density"
    " opt_viscosity opt_cfm opt_contact_min_depth opt_lcp_tolerance opt_ccd_tolerance opt_sdf_tolerance",
    MAGNITUDE: "jnt_motor_force link_motor_force opt_contact_max_vel",
    POSITIVE: "opt_timestep opt_impratio stat_meaninertia geom_stribeck_vel",
    FRACTION: "opt_erp geom_restitution jnt_stop_bounce link_stop_bounce",
    SHARE: "geom_erp jnt_stop_erp eq_erp link_erp link_stop_erp",
    BETWEEN: "opt_lcp_relaxation",
}
LIMITS = {name: limit for limit, names in _NAMES.items() for name in names.split()}


# ---- limits by element type: masks (..., n) of invalid rows, and the text of what is allowed -------------------------
def _sizes(model: ModelFields, rows: np.ndarray):
    """Checks geom sizes; a geom that cannot collide may have size 0."""
    number = np.array([SHAPES[kind].nsize if kind in SHAPES else 0 for kind in model.geom_type.tolist()], int)
    least = np.where(np.isin(np.arange(model.ngeom), model.collide_geom), np.finfo(float).tiny, 0.0)
    low = np.where(np.arange(rows.shape[-1]) < number[:, None], least[:, None], -np.inf)
    return (rows < low).any(-1), "sizes > 0"


def _all(*checks):
    """Returns a check of several conditions; the first that fails names what is allowed."""

    def check(model: ModelFields, rows: np.ndarray):
        results = [check(model, rows) for check in checks]
        return next((found for found in results if found[0].any()), results[0])

    return check


def _rotations(model: ModelFields, rows: np.ndarray):
    return ~(np.abs(np.linalg.norm(rows, axis=-1) - 1.0) <= UNIT), "quaternions of length 1"


def _directions(model: ModelFields, rows: np.ndarray):
    return ~(np.linalg.norm(rows, axis=-1) > 0.0), "quaternions of length > 0"


def _axes(model: ModelFields, rows: np.ndarray):
    has_axis = is_scalar(model.jnt_type)
    return has_axis & ~(np.abs(np.linalg.norm(rows, axis=-1) - 1.0) <= UNIT), "axes of length 1"


def _rods(model: ModelFields, rows: np.ndarray):
    return (model.actuator_trntype == TRN_SLIDERCRANK) & ~(rows > 0.0), "lengths > 0"


def _gyroscopic(model: ModelFields, rows: np.ndarray):
    """Checks the gyroscopic mode: the implicit torque is first order, RK4 is fourth order."""
    if model.opt_integrator == RK4:
        return ~np.isin(rows, (-1, GYRO_EXPLICIT, GYRO_OFF)), "-1, 0 and 2 with the integrator rk4"
    return ~np.isin(rows, (-1, *Gyroscopic)), "-1, 0, 1 and 2"


def _compiled(model: ModelFields, rows: np.ndarray, table: tuple[tuple[int, int, int], ...]):
    """Checks that the activations are those of the compiled model: a parameter above 0 requires one in the state."""
    wrong, states = np.zeros(rows.shape[:-1], bool), model.actuator_states
    motor = (model.actuator_dyntype == DYN_DCMOTOR) | (model.actuator_gaintype == GAIN_DCMOTOR)
    for kind, column, bit in table:
        chosen = motor if kind == DYN_DCMOTOR else model.actuator_dyntype == kind
        wrong |= chosen & ((rows[..., column] > 0.0) != (states & bit != 0))
    return wrong, "parameters that keep the set of activations of the compiled model"


def _gains(model: ModelFields, rows: np.ndarray):
    return _compiled(model, rows, ((DYN_PID, 0, 2), (DYN_DCMOTOR, 5, 2)))


def _dynamics(model: ModelFields, rows: np.ndarray):
    kind = model.actuator_dyntype
    wrong = np.isin(kind, (DYN_FILTER, DYN_MUSCLE)) & ~(rows[..., 0] > 0.0)
    wrong |= (kind == DYN_MUSCLE) & ~(rows[..., 1] > 0.0)
    wrong |= (kind == DYN_FILTEREXACT) & ~(rows[..., 0] >= 0.0)
    if wrong.any():
        return wrong, "time constants > 0 (filterexact: >= 0)"
    motor = ((DYN_DCMOTOR, column, bit) for column, bit in ((7, 1), (2, 4), (5, 8), (0, 16)))
    return _compiled(model, rows, ((DYN_PID, 1, 1), *motor))


def _pid_plugins(model: ModelFields, rows: np.ndarray):
    """Checks kp, ki, kd, imax and slewmax of the plugin mujoco.pid; an integral and a slew rate are activations."""
    states, (_, ki, _, imax, slewmax) = model.actuator_states, np.moveaxis(rows, -1, 0)
    plugin, opposed = states & PID_PLUGIN != 0, np.isfinite(imax) & (np.sign(imax) * np.sign(ki) < 0.0)
    wrong = ~np.isfinite(rows[..., :3]).all(-1) | np.isnan(imax) | opposed | ~(slewmax >= 0.0)
    if (plugin & wrong).any():
        return plugin & wrong, "finite gains, imax with the sign of ki, and slewmax >= 0"
    wrong = ((ki != 0.0) != (states & INTEGRAL != 0)) | ((slewmax < np.inf) & (states & SLEW == 0))
    return plugin & wrong, "parameters that keep the set of activations of the compiled model"


def _side_sites(model: ModelFields, rows: np.ndarray):
    """Checks that a geom on a tendon's path keeps its compiled side site, which determines what a step computes."""
    around = np.isin(model.wrap_type, (WRAP_SPHERE, WRAP_CYLINDER))
    return around & (np.rint(rows) != model.wrap_sideid), "the side site of the compiled model"


def _shapes(model: ModelFields, rows: np.ndarray):
    """Checks the meshes of geoms: those of the variants, which have convex hulls and bounding volumes."""
    known = set(enumerate(model.geom_dataid.tolist()))
    for group in model.variants.values():
        at = group.places.get("geom_variant", np.zeros(0, int)).tolist()
        for values in group.values.values() if at else ():
            known |= set(zip(at, values["geom_variant"].tolist(), strict=True))
    allowed = np.zeros((model.ngeom, max(model.nmesh, model.nhfield) + 2), bool)
    for geom, shape in known:
        allowed[geom, int(shape) - ABSENT_GEOM] = True
    number = np.clip(np.nan_to_num(rows), ABSENT_GEOM, allowed.shape[1] + ABSENT_GEOM - 1).astype(int)
    return ~(allowed[np.arange(model.ngeom), number - ABSENT_GEOM] & (number == rows)), "the meshes of its variants"


def _compiled_with(attribute: str, field: str, column: int | None = None):
    """Checks values that only have an effect if the element was compiled with this attribute, as `field` shows."""

    def check(model: ModelFields, rows: np.ndarray):
        given = model.__dict__[field] if column is None else model.__dict__[field][:, column] - 1
        return (rows != 0.0) & (given < 0), f"zeros, because the element was compiled without {attribute}"

    return check


def _ordered(flag: str):
    """Checks the order of ranges, for elements whose flag enables the limit."""

    def check(model: ModelFields, rows: np.ndarray):
        limited = model.__dict__[flag].astype(bool)
        if flag == "jnt_limited":
            limited = limited & (is_scalar(model.jnt_type))
        return limited & (rows[..., 0] > rows[..., 1]), "limits with lower <= upper"

    return check


ROWS = {
    "geom_size": _sizes,
    "geom_variant": _shapes,
    "body_quat": _directions,
    **dict.fromkeys(("geom_quat", "site_quat", "cam_quat", "link_quat"), _rotations),
    "body_mass": inertias.masses,
    "body_inertia": inertias.moments,
    **simple_bodies.ROWS,
    "body_iquat": _all(_rotations, simple_bodies.principal_axes),
    "jnt_axis": _all(_axes, simple_bodies.axes),
    "body_gyroscopic": _gyroscopic,
    "actuator_cranklength": _rods,
    "actuator_dynprm": _dynamics,
    "actuator_gainprm": _gains,
    "actuator_pidprm": _pid_plugins,
    "wrap_prm": _side_sites,
    "actuator_delay": _compiled_with("nsample", "actuator_history", 0),
    "sensor_delay": _compiled_with("nsample", "sensor_history", 0),
    "jnt_springyield": _compiled_with("springyield", "jnt_plasticadr"),
    "tendon_springyield": _compiled_with("springyield", "tendon_plasticadr"),
    "jnt_range": _ordered("jnt_limited"),
    "tendon_range": _ordered("tendon_limited"),
    "link_range": _ordered("link_limited"),
    "actuator_ctrlrange": _ordered("actuator_ctrllimited"),
    "actuator_forcerange": _ordered("actuator_forcelimited"),
    "jnt_actfrcrange": _ordered("jnt_actfrclimited"),
    "tendon_actfrcrange": _ordered("tendon_actfrclimited"),
}


# ---- the check -------------------------------------------------------------------------------------------------------
def _limits(name: str, dtype: np.dtype) -> tuple[float, float, str]:
    """Returns the least and greatest value of a field in a precision, and the text of what is allowed."""
    low, high, words = LIMITS.get(name, FINITE)
    if dtype == np.float32:
        top = float(np.finfo(dtype).max)
        low, high = -top if low == -LARGEST else low, top if high == LARGEST else high
    return low, high, words


def holds_each(model: ModelFields, name: str, values: np.ndarray) -> bool:
    """Returns whether the field can hold these values of worlds, and all between them.

    False if the limits depend on the whole row.  Those of a mass have no upper end, so its least values decide.
    """
    low, high, _ = _limits(name, values.dtype)
    rows = name not in ROWS or (name == "body_mass" and not ROWS[name](model, values)[0].any())
    return rows and bool(((values >= low) & (values <= high)).all())


def check_field(model: ModelFields, name: str, values: np.ndarray, worlds: bool = False) -> None:
    """Raises an error for values that a field cannot hold.

    Args:
        model: the model, for types and names.
        name: a real field.
        values: values of the field's shape, with a leading axis of worlds if `worlds` is set.

    Raises:
        ModelError: with the field, the element, the given value and the allowed values.
    """
    if not values.size:
        return
    low, high, words = _limits(name, values.dtype)
    # both pass on a NaN, which fails either comparison
    if not (low <= values.min() and values.max() <= high):
        wrong = ~((values >= low) & (values <= high))
        _refuse(model, name, values, tuple(np.argwhere(wrong)[0]), words, worlds)
    if name in ROWS:
        wrong, words = ROWS[name](model, values)
        if wrong.any():
            _refuse(model, name, values, tuple(np.argwhere(wrong)[0]), words, worlds)
    if name == "body_inertia":
        inertias.warn_of_moments(model, values)


def check_displaced(model: ModelFields, name: str, entries: np.ndarray) -> None:
    """Raises an error if the field cannot differ from its value in these entries (flat indices), by any amount.

    Raises:
        ModelError: with the field, the element and the allowed values.
    """
    checks = {**simple_bodies.ROWS, "actuator_pidprm": _pid_plugins}  # of what a compiled model cannot gain
    if name in checks:
        rows = model.__dict__[name].copy()
        rows.reshape(-1)[entries] += 0.5
        wrong, words = checks[name](model, rows)
        if wrong.any():
            label = entry_label(model, name, tuple(np.argwhere(wrong)[0].tolist()))
            raise ModelError(f"parameters: {label}: it cannot change, allowed are {words}")


def check_precision(model: ModelFields, dtype: np.dtype) -> None:
    """Raises an error for model values that must be finite but become infinite in this precision.

    Raises:
        ModelError: with the field, the element, the given value and the allowed values.
    """
    top = float(np.finfo(dtype).max)
    beyond = np.isfinite(model.real_buffer) & (np.abs(model.real_buffer) > top)
    if not beyond.any():
        return
    for field in MODEL.fields:
        if field.kind == "real" and np.isfinite(LIMITS.get(field.name, FINITE).high):
            values = model.__dict__[field.name]
            wrong = np.isfinite(values) & (np.abs(values) > top)
            if wrong.any():
                words = f"numbers up to {top:.3g} in {dtype.name}"
                _refuse(model, field.name, values, tuple(np.argwhere(wrong)[0]), words, worlds=False)


def _refuse(model: ModelFields, name: str, values: np.ndarray, at: tuple, words: str, worlds: bool) -> None:
    given = values[at]
    place = tuple(int(i) for i in at[int(worlds) :])
    world = f" in world {at[0]}" if worlds else ""
    shown = f"{given:g}" if np.ndim(given) == 0 else "(" + ", ".join(f"{x:g}" for x in given) + ")"
    raise ModelError(f"{entry_label(model, name, place)}{world}: got {shown}, allowed are {words}")


def entry_label(model: ModelFields, name: str, place: tuple[int, ...]) -> str:
    """Returns the text of an entry of a field, with its element's kind and name: `body_mass of body 'torso'`."""
    prefix, i = name.partition("_")[0], place[0]
    if prefix in ("opt", "stat"):
        return f"option {name.removeprefix('opt_')}"
    if prefix == "dof":
        name, prefix, i = f"{name}[{i}]", "jnt", int(model.dof_jntid[i])
    kind, size = KINDS.get(prefix, prefix), MODEL[name.partition("[")[0]].shape[0]
    if kind == "actuator" and size != "nactuator":
        first = model.actuator_ctrladr if size == "nu" else model.actuator_outadr
        i = int(np.searchsorted(first, i, side="right")) - 1
    if kind == "equality":
        own = model.compiled.eq(i).name
    elif kind in NAMED:
        own = model.names(kind)[i]
    else:
        return f"{name}[{', '.join(map(str, place))}]"
    return f"{name} of {kind} {own!r}" if own else f"{name} of {kind} #{i}"
