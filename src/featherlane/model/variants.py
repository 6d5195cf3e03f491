"""Variants of a model: worlds that differ in more than numbers, in meshes, kinds of geoms or lengths of links."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.load import load, specification
from featherlane.model.model import Model


class Variants(NamedTuple):
    """Models, and which worlds they are for.

    Attributes:
        models: pairs (model, number of worlds), for `MixedBatch`.
        parameters: for each model the parameter that made it.
        place: (n,) the world of the `MixedBatch` in which each parameter that was given is found.
    """

    models: list[tuple[Model, int]]
    parameters: list[Hashable]
    place: np.ndarray


def variants(source, parameters: Sequence[Hashable], edit: Callable[[Any, Any], None]) -> Variants:
    """Compile a model once for each kind of world.

    Worlds whose masses, sizes or frictions differ need one model alone, see `Batch.expand`.  Where a mesh, the kind of
    a geom, a joint or the length of a link differs, and all that follows from it, each kind of world has a model of its
    own, compiled by MuJoCo: constants such as `dof_invweight0` are right without being asked for.

        found = fl.variants("quadruped.xml", [0.2, 0.25, 0.2, 0.3], lengthen)  # three models, four worlds
        batch = fl.MixedBatch(found.models)
        batch.qpos[found.place]                                                # in the order of the parameters

    Args:
        source: as for `load`, but no MjModel, which cannot be edited.
        parameters: one for each world; worlds with equal ones share a model.
        edit: `edit(spec, parameter)` changes a fresh `mujoco.MjSpec` of the source.

    Returns:
        `Variants`: the models in the order in which their parameters appear.

    Raises:
        ModelError: no parameters, one that cannot be compared with others, a variant that cannot be compiled, with its
            parameter; as `load` and `specification` do.
        UnsupportedFeatureError: as `load` does.
    """
    try:
        given = list(parameters)
    except (TypeError, MemoryError):
        given = None
    if not given:
        raise ModelError(f"variants: got {parameters!r} for parameters, allowed is a list of at least one")
    if not callable(edit):
        raise ModelError(f"variants: got {type(edit).__name__} for edit, allowed is a function edit(spec, parameter)")
    worlds: dict[Hashable, list[int]] = {}
    for world, parameter in enumerate(given):
        try:
            worlds.setdefault(parameter, []).append(world)
        except TypeError:
            allowed = "allowed are numbers, texts, tuples, ..., which can be told apart by =="
            raise ModelError(f"variants: parameter {world} is {type(parameter).__name__}; {allowed}") from None
    original, models = specification(source), []
    for parameter in worlds:
        models.append((_variant(original, parameter, edit), len(worlds[parameter])))
    place = np.empty(len(given), np.int64)
    place[[world for group in worlds.values() for world in group]] = np.arange(len(given))
    return Variants(models, list(worlds), place)


def _variant(original, parameter, edit) -> Model:
    """The model of one parameter."""
    spec = original.copy()
    edit(spec, parameter)
    try:
        return load(spec)
    except ModelError as error:
        error.args = (f"variant {parameter!r}: {error}",)
        raise
    except ValueError as error:
        raise ModelError(f"variant {parameter!r}: {str(error).strip()}") from None
