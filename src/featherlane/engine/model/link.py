"""Links: joints between any two bodies in addition to the kinematic tree, as in ODE's maximal coordinates.

A link is specified in world axes, for the model in qpos0; the model stores it in the frames of its two bodies.
Source: ODE manual, sec. "Joint types and joint functions", "Stops and motor parameters".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.arguments import LARGEST, bounded, instance, one_of
from featherlane.engine.model.assignment import encodable, real_number, reals
from featherlane.engine.model.derived import derived
from featherlane.engine.model.ordered_sums import turned_back
from featherlane.engine.spatial.types import Quat, Range, Vec3
from featherlane.errors import ModelError, UnknownNameError, near

KINDS = ("ball", "hinge", "slider", "fixed")
LINK_BALL, LINK_HINGE, LINK_SLIDER, LINK_FIXED = range(4)
HAS_ANCHOR, HAS_AXIS = (LINK_BALL, LINK_HINGE), (LINK_HINGE, LINK_SLIDER)
OF_MODEL = -1.0  # value of an ERP or CFM: use the model's option
# optional parameters of a link, with their least and largest value
FRACTIONS = ("erp", "stop_erp", "motor_fudge", "stop_bounce")
NOT_NEGATIVE = ("cfm", "stop_cfm", "motor_cfm", "motor_force")
SMALL = 1e-12  # m: the least length of an axis
_field = Declare()


@dataclass(frozen=True)
class Link:
    """Describes a joint between two bodies outside the kinematic tree, for the contact model `lcp`.

    A link adds constraint rows, and the bodies keep their coordinates.  Links between free bodies form a model in
    maximal coordinates, as in ODE.  A link between bodies of a tree closes a loop.  Pass links to
    `fl.load(source, links=[...])`.  MuJoCo has no links, so `model.to_mujoco()` omits them.

    Attributes:
        kind: `"ball"` (a common point), `"hinge"` (a common point and axis), `"slider"` (translates along an axis and
            does not rotate), `"fixed"`.
        body1: name or id of a body that can move.
        body2: name or id of the other body, None for the world.
        name: for `model.link(name)`, `data.link(name)`, `batch.link(name)`.
        anchor: (3,) [m] the common point of a ball or hinge, in world axes with the model in qpos0.
        axis: (3,) axis of a hinge or slider, of any length, in world axes with the model in qpos0.
        range: (2,) [rad, m] stops of a hinge or slider: bounds of `data.link_position`, the rotation or translation of
            the first body relative to the second since qpos0.  Either bound may be infinite.  A hinge's position is in
            -pi to pi.
        erp: fraction of an error that a step removes, 0 to 1; None: `opt.erp`.
        cfm: [m/(s N)] velocity error per unit force, >= 0; None: `opt.cfm`.
        motor_vel: [rad/s, m/s] target velocity of the motor of a hinge or slider.
        motor_force: [N m, N] largest force of the motor; 0: no motor.
        motor_cfm: softness of the motor; None: `opt.cfm`.
        motor_fudge: fraction of its force with which a motor drives away from an active stop, 0 to 1.
        stop_erp: ERP of the stops; None: `opt.erp`.
        stop_cfm: CFM of the stops; None: `opt.cfm`.
        stop_bounce: restitution of the stops, 0 to 1.

    Source: ODE manual, sec. "Joint types and joint functions", "Stops and motor parameters".
    """

    kind: str
    body1: str | int
    body2: str | int | None = None
    _: KW_ONLY
    name: str = ""
    anchor: ArrayLike | None = None
    axis: ArrayLike | None = None
    range: ArrayLike | None = None
    erp: float | None = None
    cfm: float | None = None
    motor_vel: float = 0.0
    motor_force: float = 0.0
    motor_cfm: float | None = None
    motor_fudge: float = 1.0
    stop_erp: float | None = None
    stop_cfm: float | None = None
    stop_bounce: float = 0.0


def listed(links: Link | Iterable[Link]) -> list[Link]:
    """Returns links as a list; a single link becomes a list of one.

    Raises:
        ModelError: an entry is not a link.
    """
    if isinstance(links, Link):
        return [links]
    numbers = isinstance(links, np.ndarray) and links.dtype != object  # an array of numbers, of any length
    if numbers or isinstance(links, str | bytes | dict) or not isinstance(links, Iterable):
        raise ModelError(f"links: got {type(links).__name__}, allowed are fl.Link objects and lists of them")
    return list(links)


@derived(
    size("nlink", "number of links: joints between any two bodies that add no coordinates; contact model lcp"),
    _field.int("link_type", "nlink", "1", "0 ball, 1 hinge, 2 slider, 3 fixed"),
    _field.int("link_body", "nlink 2", "1", "the two connected bodies, 0: the world"),
    _field.int("link_limited", "nlink", "1", "a hinge or slider has stops", "bool"),
    _field.rows(Vec3, "link_anchor", "nlink 2", "m", "anchor in the frame of either body"),
    _field.rows(Vec3, "link_axis", "nlink 2", "1", "axis in the frame of either body"),
    _field.rows(Quat, "link_quat", "nlink", "1", "orientation of the second body in the frame of the first, at rest"),
    _field.rows(Vec3, "link_offset", "nlink", "m", "first com less second; slider: second's frame, fixed: first's"),
    _field.real("link_erp", "nlink", "1", "ERP of the rows, negative: opt_erp"),
    _field.real("link_cfm", "nlink", "m/(s N)", "CFM of the rows, negative: opt_cfm"),
    _field.rows(Range, "link_range", "nlink", "m, rad", "lower and upper stop"),
    _field.real("link_motor_vel", "nlink", "m/s, rad/s", "target velocity of the motor"),
    _field.real("link_motor_force", "nlink", "N, N m", "largest force of the motor, 0: no motor"),
    _field.real("link_motor_cfm", "nlink", "m/(s N)", "CFM of the motor, negative: opt_cfm"),
    _field.real("link_motor_fudge", "nlink", "1", "fraction of the motor force at a stop"),
    _field.real("link_stop_erp", "nlink", "1", "ERP of the stop, negative: opt_erp"),
    _field.real("link_stop_cfm", "nlink", "m/(s N)", "CFM of the stop, negative: opt_cfm"),
    _field.real("link_stop_bounce", "nlink", "1", "restitution of the stop"),
)
def link_fields(mj, links: Sequence[Link]) -> dict[str, np.ndarray]:
    """Returns the fields of links, one row per link.

    Raises:
        ModelError: an invalid link; with its index, the given value and the allowed values.
    """
    fields = {f.name: np.zeros(f.dims({"nlink": len(links)})) for f in link_fields.fields if f.kind != "size"}
    if links:
        frames, names = _frames(mj), set()
        for i, link in enumerate(links):
            if not isinstance(link, Link):
                raise ModelError(f"links[{i}]: got {type(link).__name__}, allowed is an fl.Link")
            named = link.name if isinstance(link.name, str) and link.name else i
            label = f"link {named!r} ({link.kind} of {link.body1!r} and {link.body2!r})"
            for name, value in _row(mj, frames, link, label).items():
                fields[f"link_{name}"][i] = value
            if link.name in names:
                raise ModelError(f"{label}: got a name that another link has, allowed are unique names")
            names.update(filter(None, [link.name]))
    return fields


def _frames(mj_model):
    """Returns an MjData with the frames of the bodies in qpos0."""
    import mujoco

    mj_data = mujoco.MjData(mj_model)
    mujoco.mj_kinematics(mj_model, mj_data)
    return mj_data


def _row(mj_model, frames, link: Link, label: str) -> dict[str, Any]:
    """Returns the fields of one link in the frames of its bodies."""
    kind = _kind(link, label)
    a = _body(mj_model, link.body1, f"{label}: body1")
    b = 0 if link.body2 is None else _body(mj_model, link.body2, f"{label}: body2")
    _check_pair(mj_model, a, b, label)
    anchor, axis = _place(link, label, kind)
    turned = [frames.xmat[body].reshape(3, 3) for body in (a, b)]
    com = [frames.xipos[body] for body in (a, b)]
    apart = com[0] - (com[1] if b else 0.0)
    row: dict[str, Any] = {"type": kind, "body": (a, b), "quat": _relative(frames.xquat[a], frames.xquat[b])}
    row["anchor"] = [turned_back(R, anchor - frames.xpos[body]) for R, body in zip(turned, (a, b), strict=True)]
    row["axis"] = [turned_back(R, axis) for R in turned]
    row["offset"] = turned_back(turned[1 if kind == LINK_SLIDER else 0], apart) if b else apart
    return row | _numbers(link, label, kind)


def _kind(link: Link, label: str) -> int:
    encodable(f"{label}: name", instance(f"{label}: name", link.name, str, "text"))
    return KINDS.index(one_of(f"{label}: kind", link.kind, KINDS))


def _body(mj_model, body, label: str) -> int:
    """Returns the id of a body."""
    import mujoco

    if isinstance(body, str):
        encodable(label, body)
        number = mujoco.mj_name2id(mj_model, mujoco.mjtObj.mjOBJ_BODY, body)
        if number < 0:
            names = [mj_model.body(i).name for i in range(mj_model.nbody)]
            raise UnknownNameError(f"{label}: unknown body {body!r}{near(body, names)}")
        return number
    if isinstance(body, bool) or not isinstance(body, int | np.integer) or not 0 <= body < mj_model.nbody:
        raise ModelError(f"{label}: got {body!r}, allowed are names of bodies and numbers 0 to {mj_model.nbody - 1}")
    return int(body)


def _check_pair(mj_model, a: int, b: int, label: str) -> None:
    """Checks that the first body can move, and that the two can move relative to each other."""
    weld = mj_model.body_weldid
    if weld[a] == 0:
        raise ModelError(
            f"{label}: body1: got body {a} ({mj_model.body(a).name!r}), which is static; a static "
            f"body is allowed as body2"
        )
    if weld[a] == weld[b]:
        raise ModelError(
            f"{label}: got the bodies {a} and {b}, which are welded together; allowed are bodies "
            f"that can move relative to each other"
        )


def _place(link: Link, label: str, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns anchor and unit axis; zeros if the kind has none."""
    anchor = _vector(link, label, "anchor", kind in HAS_ANCHOR)
    axis = _vector(link, label, "axis", kind in HAS_AXIS)
    length = math.sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
    if kind in HAS_AXIS and length < SMALL:
        raise ModelError(f"{label}: axis: got {link.axis!r}, allowed are three numbers that are not all 0")
    return anchor, axis / (length or 1.0)


def _vector(link: Link, label: str, name: str, required: bool) -> np.ndarray:
    """Returns three numbers, zeros if the kind does not need them."""
    value = getattr(link, name)
    if value is None and not required:
        return np.zeros(3)
    if not required:
        raise ModelError(f"{label}: {name}: got {value!r}, allowed for the kind {link.kind} is None")
    array = reals(f"{label}: {name}", value, "are three numbers")
    if array.shape != (3,) or not np.isfinite(array).all():
        raise ModelError(f"{label}: {name}: got {value!r}, allowed are three numbers")
    return array


def _relative(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns first* second."""
    import mujoco

    inverse, out = np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(inverse, first)
    mujoco.mju_mulQuat(out, inverse, second)
    return out


def _numbers(link: Link, label: str, kind: int) -> dict[str, Any]:
    """Returns softness, stops and motor, checked."""
    row: dict[str, Any] = {name: _number(link, label, name, 0.0, 1.0) for name in FRACTIONS}
    row |= {name: _number(link, label, name, 0.0) for name in NOT_NEGATIVE}
    row["motor_vel"] = _number(link, label, "motor_vel", -LARGEST)
    row["limited"], row["range"] = link.range is not None, (-np.inf, np.inf)
    if kind not in HAS_AXIS and (link.range is not None or row["motor_force"] > 0.0):
        raise ModelError(f"{label}: got a range or a motor with the kind {link.kind}, allowed with hinge and slider")
    if link.range is not None:
        stops = reals(f"{label}: range", link.range, "are two numbers, the lower one first")
        if stops.shape != (2,) or not stops[0] <= stops[1]:
            raise ModelError(f"{label}: range: got {link.range!r}, allowed are two numbers, the lower one first")
        row["range"] = stops
    return row


def _number(link: Link, label: str, name: str, low: float, high: float = LARGEST) -> float:
    """Returns a number in its range, OF_MODEL if it is omitted."""
    value, what = getattr(link, name), f"{label}: {name}"
    return OF_MODEL if value is None else bounded(what, real_number(what, value), low, high)
