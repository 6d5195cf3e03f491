"""Checks contacts that the caller gives, and completes them to the fields `given_*` of worlds.

Missing parameters are those that MuJoCo would mix from the two geoms, or MuJoCo's defaults if the contact is given by
bodies.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from featherlane.engine.collision.mixing import MINMU
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.model.assignment import described, reals, regular
from featherlane.engine.simulation.tile.capacity import CONTACT_LIMIT
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.spatial.vector import MINVAL
from featherlane.errors import ModelError

DIMS = (1, 3, 4, 6)
ORTHONORMAL = 1e-5  # tolerance that frames in float32 satisfy

# MuJoCo's defaults, for a contact given by bodies
DEFAULTS = {
    "dim": 3,
    "includemargin": 0.0,
    "friction": (1.0, 1.0, 0.005, 0.0001, 0.0001),
    "solref": (0.02, 1.0),
    "solimp": (0.9, 0.95, 0.001, 0.5, 2.0),
    "adhesion": 0.0,
    "erp": -1.0,
    "cfm": -1.0,
    "restitution": 0.0,
    "restitution_vel": 0.0,
    "slip": (0.0, 0.0),
    "frictionforce": 0.0,
}
# smallest and largest value
RANGES = {
    "friction": (0.0, np.inf),
    "erp": (-np.inf, 1.0),
    "restitution": (0.0, 1.0),
    "restitution_vel": (0.0, np.inf),
    "slip": (0.0, np.inf),
    "frictionforce": (0.0, 1.0),
}


def contact_capacity(given) -> int:
    """Returns the capacity for given contacts of a world, checked."""
    return whole_argument("given_contacts", given, 0, CONTACT_LIMIT)


def given_fields(
    model, capacity: int, nworld: int, values: Callable[[str], np.ndarray], adhesive, replace, count, contacts
):
    """Returns the rows of the fields `given_*` of nworld worlds.

    Args:
        model: the model.
        capacity: largest number of given contacts of a world.
        nworld: number of worlds; 1 for arrays without a world axis.
        values: a real model field's values by name, (nworld, ...) or (1, ...).
        adhesive: `flg_adhesion` of all worlds.
        replace: whether detection is off, () or (nworld,).
        count: contacts of each world, (nworld,), or None for as many as were given.
        contacts: the `Contacts`.

    Returns:
        field -> (nworld, ...) float64.

    Raises:
        ModelError: an invalid argument; the message lists the allowed values.
    """
    what = dict(vars(contacts))
    n = _number(what["dist"], capacity)
    present = _present(count, nworld, n)
    geom, body = _carriers(model, what.pop("geom"), what.pop("body"), (nworld, n, 2), present)
    filled = {name: value for name, value in what.items() if value is not None}
    if geom is None:
        filled = DEFAULTS | filled
    elif any(name not in filled for name in DEFAULTS):
        filled = mixed_parameters(model, values, adhesive, geom) | filled

    rows = {}
    for name, value in filled.items():
        shape = (nworld, n, *DATA[f"given_{name}"].shape[1:])
        rows[name] = _frames(value, shape[:2], present) if name == "frame" else _floats(name, value, shape, present)
    if not np.isin(rows["dim"][present], DIMS).all():
        raise ModelError(f"give_contacts: dim: got {what['dim']!r}, allowed are {', '.join(map(str, DIMS))}")
    for name, limits in RANGES.items():
        _refuse_outside(name, rows[name], *limits)
    if rows["adhesion"].any() and not adhesive:
        raise ModelError(
            "give_contacts: adhesion: got a non-zero force, allowed is 0: no geom or pair of the "
            "model is adhesive; after edits of geom_adhesion call fl.set_const(model)"
        )
    rows["friction"] = np.maximum(rows["friction"], MINMU)
    rows |= {"present": present, "body": body, "geom": np.full(body.shape, -1) if geom is None else geom}

    out = {"given_replace": _replaced(replace, nworld)}
    for field in (DATA[name] for name in DATA.of("given") if name not in out):
        value = rows.get(field.name.removeprefix("given_"))
        out[field.name] = np.zeros((nworld, capacity, *map(int, field.shape[1:])))
        if value is not None:
            out[field.name][:, :n] = value
    return out


def mixed_parameters(model, values: Callable[[str], np.ndarray], adhesive, geom: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the parameters of contacts of pairs of geoms, (nworld, n, 2), ignoring explicit pairs.

    Source: MuJoCo mj_contactParam, as in the kernels of `collision.mixing`.
    """
    lead = np.sign(model.geom_priority[geom[..., 0]] - model.geom_priority[geom[..., 1]])

    def pair(name):
        rows = values(name)
        both = np.asarray(rows[np.arange(len(rows))[:, None, None], geom], float)
        return both[:, :, 0], both[:, :, 1]

    def led(a, b, mixed):
        """Selects the value of the geom of higher priority, else the mixed one."""
        sign = lead.reshape(*lead.shape, *[1] * (mixed.ndim - 2))
        return np.where(sign > 0, a, np.where(sign < 0, b, mixed))

    dim = model.geom_condim[geom]
    margin, adhesion, friction, solref, solimp, (a, b) = map(
        pair, ("geom_margin", "geom_adhesion", "geom_friction", "geom_solref", "geom_solimp", "geom_solmix")
    )
    a, b = np.where(a >= MINVAL, a, 0.0), np.where(b >= MINVAL, b, 0.0)
    w = np.where(a + b > 0.0, a / np.where(a + b > 0.0, a + b, 1.0), 0.5)[..., None]
    standard = (solref[0][..., :1] > 0.0) & (solref[1][..., :1] > 0.0)
    reference = np.where(standard, w * solref[0] + (1.0 - w) * solref[1], np.minimum(*solref))
    return {
        "dim": led(dim[..., 0], dim[..., 1], dim.max(axis=-1)),
        "includemargin": margin[0] + margin[1],
        "adhesion": led(*adhesion, adhesion[0] + adhesion[1]) * bool(adhesive),
        "friction": led(*friction, np.maximum(*friction))[..., [0, 0, 1, 2, 2]],
        "solref": led(*solref, reference),
        "solimp": led(*solimp, w * solimp[0] + (1.0 - w) * solimp[1]),
        **_lcp_parameters(model, pair, led, geom),
    }


def _lcp_parameters(model, pair, led, geom) -> dict[str, np.ndarray]:
    """Returns the parameters of the contact model lcp, mixed as by the kernels `solver.lcp.rows.contact_parameters`."""
    erp, force = pair("geom_erp"), model.geom_frictionforce[geom] != 0
    largest = {name: pair(f"geom_{name}") for name in ("cfm", "restitution", "restitution_vel", "slip")}
    softer = np.where(erp[0] < 0.0, erp[1], np.where(erp[1] < 0.0, erp[0], np.minimum(*erp)))
    return {
        "erp": led(*erp, softer),
        "frictionforce": led(force[..., 0], force[..., 1], force.any(axis=-1)),
        **{name: led(*both, np.maximum(*both)) for name, both in largest.items()},
    }


def _number(dist, capacity: int) -> int:
    """Returns how many contacts are given to a world."""
    shape = regular("give_contacts: dist", dist).shape
    if not shape:
        raise ModelError("give_contacts: dist: got a number, allowed is an array (n,), with n = 1 for one contact")
    if shape[-1] > capacity:
        raise ModelError(
            f"give_contacts: got {shape[-1]} contacts, allowed are at most {capacity}; set the "
            f"capacity with fl.Data(model, given_contacts=n) or fl.Batch(..., given_contacts=n)"
        )
    return shape[-1]


def _replaced(replace, nworld: int) -> np.ndarray:
    """Returns whether detection is off, (nworld, 1) float64."""
    given = regular("give_contacts: replace", replace)
    if given.dtype.kind not in "biu" or not np.isin(given, (0, 1)).all() or given.shape not in ((), (nworld,)):
        allowed = f"allowed are True and False, () or ({nworld},)"
        raise ModelError(f"give_contacts: replace: got {described(replace)}, {allowed}")
    return np.broadcast_to(given.astype(float), (nworld,))[:, None]


def _present(count, nworld: int, n: int) -> np.ndarray:
    """Returns a mask (nworld, n) of the first `count` contacts of each world."""
    number = regular("give_contacts: count", n if count is None else count)
    if number.dtype.kind not in "iu" or number.shape not in ((), (nworld,)) or ((number < 0) | (number > n)).any():
        raise ModelError(f"give_contacts: count: got {count!r}, allowed are whole numbers 0 to {n}, () or ({nworld},)")
    return np.arange(n) < np.broadcast_to(number, (nworld,))[:, None]


def _carriers(model, geom, body, shape, present):
    """Returns geoms (None: not given) and bodies of the contacts, each (nworld, n, 2)."""
    if (geom is None) == (body is None):
        raise ModelError("give_contacts: got both or neither of geom and body, allowed is one of them")
    if body is not None:
        return None, _numbers("body", body, shape, model.nbody, present)
    geom = _numbers("geom", geom, shape, model.ngeom, present)
    return geom, model.geom_bodyid[geom]


def _numbers(name: str, value, shape, limit: int, present) -> np.ndarray:
    """Returns integers below the limit, broadcast to (nworld, n, 2); 0 for absent contacts."""
    array = regular(f"give_contacts: {name}", value)
    if array.dtype.kind not in "iu" and array.size:
        raise ModelError(f"give_contacts: {name}: got {array.dtype}, allowed are whole numbers 0 to {limit - 1}")
    array = _spread(name, array, shape, present).astype(np.int64)
    wrong = array[(array < 0) | (array >= limit)]
    if wrong.size:
        raise ModelError(f"give_contacts: {name}: got {wrong[0]}, allowed are 0 to {limit - 1}")
    return array


def _floats(name: str, value, shape, present) -> np.ndarray:
    """Returns finite values, broadcast to (nworld, n, ...); 0 for absent contacts."""
    array = reals(f"give_contacts: {name}", value, "are numbers")
    array = _spread(name, array, shape, present)
    if not np.isfinite(array).all():
        raise ModelError(f"give_contacts: {name}: got a non-finite number")
    return array


def _refuse_outside(name: str, array: np.ndarray, least: float, most: float) -> None:
    """Raises an error for values out of their range."""
    wrong = array[(array < least) | (array > most)]
    if wrong.size:
        lower = "" if np.isinf(least) else f" from {least:g}"
        upper = "" if np.isinf(most) else f" to {most:g}"
        raise ModelError(f"give_contacts: {name}: got {wrong[0]:g}, allowed are numbers{lower}{upper}")


def _spread(name: str, array: np.ndarray, shape, present) -> np.ndarray:
    """Returns an array broadcast to (nworld, n, ...), 0 for absent contacts."""
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        allowed = f"{shape} or {shape[1:]}" if shape[0] > 1 else str(shape[1:])
        raise ModelError(
            f"give_contacts: {name}: got shape {array.shape}, allowed is what broadcasts to {allowed}"
        ) from None
    return np.where(present.reshape(*present.shape, *[1] * (len(shape) - 2)), array, 0)


def _frames(frame, shape, present) -> np.ndarray:
    """Returns frames (nworld, n, 9) from frames or from normals, which are scaled to length 1 and get tangents."""
    given = regular("give_contacts: frame", frame)
    columns = (given.shape or (0,))[-1]
    if columns not in (3, 9):
        raise ModelError(f"give_contacts: frame: got shape {given.shape}, allowed are normals (n, 3) or axes (n, 9)")
    array = _floats("frame", frame, (*shape, columns), present)
    if columns == 3:
        return _with_tangents(array, present)
    R = array.reshape(*shape, 3, 3)
    error = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(axis=(-1, -2)) > ORTHONORMAL
    if (present & (error | (np.linalg.det(R) < 0.0))).any():
        raise ModelError(
            "give_contacts: frame: got axes that are not orthonormal and right-handed, allowed are "
            "rows of the normal and two tangents"
        )
    return array


def _with_tangents(normal: np.ndarray, present) -> np.ndarray:
    """Returns frames of normals: the first tangent is y, or z for a normal close to y, made orthogonal to the normal.

    Source: MuJoCo mju_makeFrame.
    """
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    if (present & (length[..., 0] < MINVAL)).any():
        raise ModelError("give_contacts: frame: got a normal of length 0")
    n = normal / np.where(present[..., None], length, 1.0)
    e = np.where(np.abs(n[..., 1:2]) < 0.5, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    t = e - (n * e).sum(axis=-1, keepdims=True) * n
    t /= np.linalg.norm(t, axis=-1, keepdims=True)
    return np.where(present[..., None], np.concatenate([n, t, np.cross(n, t)], axis=-1), 0.0)
