"""Defines targets of inverse kinematics, checks them, and converts them to the arrays that kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import bounded
from featherlane.engine.model.assignment import reals
from featherlane.engine.model.enums import OBJ_GEOM, OBJ_SITE, OBJ_XBODY
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.query.objects import Object, object_of
from featherlane.engine.spatial.vector import MINVAL
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.tools.inverse_kinematics.fields import GOAL
from featherlane.tools.inverse_kinematics.residual import LOOK_AT, ORIENTATION, POSITION

KINDS = {"xbody": ("body", OBJ_XBODY), "geom": ("geom", OBJ_GEOM), "site": ("site", OBJ_SITE)}
PARTS = {
    "position": (POSITION, 0, 3),
    "orientation": (ORIENTATION, 3, 4),
    "look_at": (LOOK_AT, 7, 3),
}  # bit, column, columns
AXIS = 10  # column of the axis


@dataclass(frozen=True, eq=False)
class IkTarget:
    """Describes the target of one object of each world: at least one of `position`, `orientation` and `look_at`.

    The residual is position_weight times the distance, and orientation_weight times the angle.

    Args:
        object: a body's frame by name or number, or a pair of a kind (`xbody`, `geom`, `site`) and a name or number.
        position: (3,) or (n, 3) in world axes [m].
        orientation: (4,) or (n, 4) quaternion (w, x, y, z) in world axes, of any length but 0.
        look_at: (3,) or (n, 3) point in world axes [m] to which `axis` points; not together with `orientation`.
        axis: (3,) or (n, 3) direction in the object's frame, of any length but 0.
        position_weight: of position errors [1/m], > 0.
        orientation_weight: of angles [1/rad], > 0.
    """

    object: Object
    _: KW_ONLY
    position: ArrayLike | None = None
    orientation: ArrayLike | None = None
    look_at: ArrayLike | None = None
    axis: ArrayLike = (0.0, 0.0, 1.0)
    position_weight: float = 1.0
    orientation_weight: float = 1.0


class Targets:
    """Holds targets as kernels read them.

    Args:
        model: the model.
        nworld: worlds.
        dtype: float64 or float32.
        targets: one or several.

    Attributes:
        number: targets.
        body: (number,) the body that carries each object.
        tables: ints by field of the record.
        rows: reals (nworld, 1, ...) by field of the record.

    Raises:
        ModelError, UnknownNameError, TypeError: as `ik` does.
    """

    def __init__(self, model: Model, nworld: int, dtype: np.dtype, targets: IkTarget | Sequence[IkTarget]):
        given = _listed(targets)
        self.number = len(given)
        kind, index, prescribed = (np.zeros(self.number, np.int32) for _ in range(3))
        goal, weight = np.zeros((nworld, 1, self.number, GOAL), dtype), np.empty((nworld, 1, self.number, 2), dtype)
        for t, target in enumerate(given):
            where = "targets" if len(given) == 1 else f"targets[{t}]"
            kind[t], index[t] = object_of(model, target.object, f"{where}.object", KINDS)
            prescribed[t] = _set_goals(where, target, goal[:, 0, t])
            for k, name in enumerate(("position_weight", "orientation_weight")):
                weight[:, 0, t, k] = bounded(f"{where}.{name}", getattr(target, name), 0.0, above=True)
        owners = {OBJ_SITE: model.site_bodyid, OBJ_XBODY: np.arange(model.nbody), OBJ_GEOM: model.geom_bodyid}
        self.body = np.array([owners[k][i] for k, i in zip(kind.tolist(), index, strict=True)], int)
        self.tables = {"kind": kind, "object": index, "prescribed": prescribed}
        self.rows = {"goal": goal, "weight": weight}

    def of(self, at: np.ndarray) -> Targets:
        """Returns the same targets for some of the worlds."""
        some = copy(self)
        some.rows = {name: rows[at] for name, rows in self.rows.items()}
        return some


def _listed(targets: Any) -> list[IkTarget]:
    """Returns the targets as a list, checked to be some."""
    allowed = "allowed are one IkTarget and a list of them"
    given = [targets] if isinstance(targets, IkTarget) else targets
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"targets: got {type(targets).__name__}, {allowed}")
    found = []
    for target in given:  # one by one, because a wrong array may not fit into memory as a list
        if not isinstance(target, IkTarget):
            raise ArgumentTypeError(f"targets: got {type(target).__name__}, {allowed}")
        found.append(target)
    if not found:
        raise ModelError(f"targets: got none, {allowed}")
    return found


def _set_goals(where: str, target: IkTarget, goal: np.ndarray) -> int:
    """Writes the goals of a target to its columns (nworld, GOAL); returns the bits of what it prescribes."""
    prescribed = 0
    for name, (bit, first, n) in PARTS.items():
        value = getattr(target, name)
        if value is not None:
            goal[:, first : first + n] = rows_of_worlds(f"{where}.{name}", value, len(goal), n)
            prescribed |= bit
    if not prescribed:
        raise ModelError(f"{where}: got no goal, allowed are {', '.join(PARTS)}")
    if prescribed & ORIENTATION and prescribed & LOOK_AT:
        raise ModelError(f"{where}: got orientation and look_at, allowed is one of them")
    if prescribed & ORIENTATION:
        _check_length(f"{where}.orientation", goal[:, 3:7])
    if prescribed & LOOK_AT:
        goal[:, AXIS:] = rows_of_worlds(f"{where}.axis", target.axis, len(goal), 3)
        _check_length(f"{where}.axis", goal[:, AXIS:])
    return prescribed


def rows_of_worlds(name: str, value: ArrayLike, nworld: int, n: int) -> np.ndarray:
    """Returns finite numbers of each world, (nworld, n)."""
    allowed = f"are finite numbers ({n},) or ({nworld}, {n})"
    given = reals(name, value, allowed)
    if given.shape not in ((n,), (1, n), (nworld, n)):
        raise ModelError(f"{name}: got shape {given.shape}, allowed {allowed}")
    bad = np.argwhere(~np.isfinite(given))
    if len(bad):
        at = tuple(bad[0].tolist())
        raise ModelError(f"{name}[{', '.join(map(str, at))}]: got {given[at]}, allowed {allowed}")
    return np.broadcast_to(given, (nworld, n))


def _check_length(name: str, rows: np.ndarray) -> None:
    """Checks that no vector (nworld, n) has a length of 0."""
    short = np.flatnonzero(np.abs(rows).max(axis=1, initial=0.0) < MINVAL)
    if short.size:
        raise ModelError(f"{name}: got a length of 0 in world {short[0]} of the call, allowed is any other length")
