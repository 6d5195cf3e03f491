"""Variants of a model: worlds that differ in meshes, geom types or link lengths, not only in field values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.edit import apply_edit
from featherlane.engine.model.load import load_unchecked, specification
from featherlane.engine.model.model import Model
from featherlane.errors import ModelError


class Variants(NamedTuple):
    """Holds models, and the world of each given parameter.

    Attributes:
        models: pairs (model, number of worlds), for `MixedBatch`.
        parameters: for each model, the parameter of its edit.
        place: (n,) for each given parameter, the index of its world in the `MixedBatch`.
    """

    models: list[tuple[Model, int]]
    parameters: list[Hashable]
    place: np.ndarray


def variants(source: Any, parameters: Sequence[Hashable], edit: Callable[[Any, Any], None]) -> Variants:
    """Compiles a model once for each distinct parameter.

    Worlds that differ only in masses, sizes or frictions share one model, see `Batch.expand`.  If a mesh, a geom
    type, a joint or a link length differs, each kind of world needs a separate model, compiled by MuJoCo: derived
    constants such as `dof_invweight0` are then correct.

        found = fl.variants("quadruped.xml", [0.2, 0.25, 0.2, 0.3], lengthen)  # three models, four worlds
        batch = fl.MixedBatch(found.models)
        batch.qpos[found.place]                                                # ordered as the parameters

    Args:
        source: a bundled name, a path, XML text or an MjSpec.
        parameters: one for each world; worlds with equal parameters share a model.
        edit: `edit(spec, parameter)` changes a fresh `mujoco.MjSpec` of the source.

    Returns:
        `Variants`: the models in order of the first occurrence of their parameters.

    Raises:
        ModelError: no parameters, a parameter that cannot be compared with others, or a variant that cannot be
            compiled, with its parameter; also as `load` and `specification` do.
        UnsupportedFeatureError: as `load` does.
    """
    try:
        given = list(parameters)
    except (TypeError, MemoryError):
        given = None
    if not given:
        raise ModelError(f"variants: parameters: got {parameters!r}, allowed is a list of at least one parameter")
    if not callable(edit):
        raise ModelError(f"variants: edit: got {type(edit).__name__}, allowed is a function edit(spec, parameter)")
    worlds: dict[Hashable, list[int]] = {}
    for world, parameter in enumerate(given):
        try:
            worlds.setdefault(parameter, []).append(world)
        except TypeError:
            allowed = "allowed are numbers, strings, tuples and other hashable objects"
            raise ModelError(f"variants: parameters[{world}]: got {type(parameter).__name__}, {allowed}") from None
    original, models = specification(source), []
    for parameter in worlds:
        models.append((_variant(original, parameter, edit), len(worlds[parameter])))
    place = np.empty(len(given), np.int64)
    place[[world for group in worlds.values() for world in group]] = np.arange(len(given))
    return Variants(models, list(worlds), place)


def _variant(original, parameter, edit) -> Model:
    """Returns the model of one parameter."""
    spec = original.copy()
    apply_edit(f"variant {parameter!r}", edit, spec, parameter)
    try:
        model = load_unchecked(spec)  # with the files that `specification` read
        model.check_edits()
        return model
    except ModelError as error:
        error.args = (f"variant {parameter!r}: {error}",)
        raise
    except ValueError as error:
        raise ModelError(f"variant {parameter!r}: {str(error).strip()}") from None
