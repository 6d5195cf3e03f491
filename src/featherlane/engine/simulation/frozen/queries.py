"""Lists the queries that a frozen world can have: kernels, their arguments and results.

A query reads the fields of the last step or forward pass, as MuJoCo's functions do.  Fields are those of the world, or
of the record JACOBIAN, which the file has if a chosen query takes numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.collision.rays.ray import cast
from featherlane.engine.dynamics.body.jacobian import JACOBIAN
from featherlane.engine.dynamics.integrator.smooth import energy
from featherlane.engine.lanes import Record, Stage
from featherlane.engine.lanes.record import allocated
from featherlane.engine.model.arguments import one_of, whole_argument
from featherlane.engine.model.enums import OBJ_BODY, OBJ_CAMERA, OBJ_GEOM, OBJ_SITE, OBJ_UNKNOWN, OBJ_XBODY
from featherlane.engine.simulation.query.jacobian import INERTIA, JAC, JAC_DOT, OBJECT_VELOCITY, object_quantity
from featherlane.engine.simulation.query.ray import Rays, check_geoms
from featherlane.engine.simulation.step.inverse import inverse
from featherlane.engine.simulation.world.data import Data
from featherlane.errors import ModelError

UNIT = 1e-9  # largest deviation of the length of a direction from 1
KINDS = {  # of an object -> (mjtObj, kind of its name, number of them)
    "point": (OBJ_UNKNOWN, "body", "nbody"),
    "com": (OBJ_BODY, "body", "nbody"),
    "body": (OBJ_XBODY, "body", "nbody"),
    "geom": (OBJ_GEOM, "geom", "ngeom"),
    "site": (OBJ_SITE, "site", "nsite"),
    "camera": (OBJ_CAMERA, "camera", "ncam"),
}


class FrozenQuery(NamedTuple):
    """Describes a query.

    Attributes:
        stage: the kernel.
        numbers: its integers: constants, and the names of those that a caller gives.
        inputs: argument -> (field, value without the argument; None: required).
        results: fields.
    """

    stage: Stage
    numbers: tuple[int | str, ...] = ()
    inputs: Mapping[str, tuple[str, Any]] = {}
    results: tuple[str, ...] = ()


def _of_object(quantity: int, result: str, *, has_point: bool = False) -> FrozenQuery:
    inputs = {"point": ("jac_point", 0.0)} if has_point else {}
    return FrozenQuery(object_quantity, (quantity, "kind", "id", 0), inputs, (result,))


RAY = {"point": ("ray.point", None), "direction": ("ray.direction", None), "exclude": ("ray.exclude", -1.0)}
QUERIES = {
    "jac": _of_object(JAC, "jac", has_point=True),
    "jac_dot": _of_object(JAC_DOT, "jac", has_point=True),
    "object_velocity": _of_object(OBJECT_VELOCITY, "motion"),
    "full_m": FrozenQuery(object_quantity, (INERTIA, 0, 0, 0), {}, ("jac_M",)),
    "energy": FrozenQuery(energy, (), {}, ("energy",)),
    "inverse": FrozenQuery(inverse, (), {"qacc": ("qacc", None)}, ("qfrc_inverse",)),
    "ray": FrozenQuery(cast, (), RAY, ("ray.distance", "ray.geom", "ray.normal")),
}


def prepared(world: Data, names: Sequence[str]) -> Record:
    """Returns the record of queries; sets the geoms that rays meet, which are all visible ones."""
    model = world.model
    if "ray" in names:
        check_geoms(model, None, True)
        Rays(model, None, np.float64, (0, 0, 0), (0, 0, 1), None, True, -1, np.inf).enter(world.workspace)
    return allocated(JACOBIAN, {"jac_nv": model.nv, "jac_nbody": model.nbody}, 1, np.float64)


def numbers_of(world: Any, name: str, kind: str | None, id: int | str | None) -> list[int]:
    """Returns the integers that a query of a `FrozenWorld` takes for an object.

    Raises:
        ModelError, UnknownNameError: an unknown query, kind or object; an object for a query without one.
    """
    query = QUERIES[one_of("query", name, QUERIES)]
    if "kind" not in query.numbers:
        if kind is not None or id is not None:
            raise ModelError(f"{name}: got kind={kind!r}, id={id!r}, allowed is a call without an object")
        return []
    code, named, size = KINDS[one_of("kind", kind, KINDS)]
    return [code, world.id(named, id) if isinstance(id, str) else whole_argument("id", id, 0, getattr(world, size) - 1)]


def values_of(name: str, given: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Returns the values of the inputs of a query, by field.

    Raises:
        ModelError: an unknown or missing argument, a direction that is no unit vector.
    """
    inputs = QUERIES[name].inputs
    if not given.keys() <= inputs.keys():
        unknown, allowed = ", ".join(sorted(given.keys() - inputs.keys())), ", ".join(inputs) or "kind and id"
        raise ModelError(f"{name}: got {unknown}, allowed are {allowed}")
    values = {argument: given.get(argument, default) for argument, (_, default) in inputs.items()}
    lacking = [argument for argument, value in values.items() if value is None]
    if lacking:
        raise ModelError(f"{name}: lacks the argument {lacking[0]}")
    length = np.linalg.norm(np.asarray(values.get("direction", 1.0), float))
    if not abs(length - 1.0) < UNIT:
        raise ModelError(f"direction: got a vector of length {length:g}, allowed is a unit vector")
    return {inputs[argument][0]: value for argument, value in values.items()}
