"""Variants of mjlab's entities: their meshes, materials and inertias as variants of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import numpy as np
import torch
from mjlab.entity.variants import SlotKey, allocate_worlds  # pyright: ignore[reportMissingImports]

from featherlane import Batch
from featherlane.errors import ModelError
from featherlane.integrations.spec_edits import BODY, GEOM, copy_attributes


def declared(variant_info: list[tuple[str, Any]]) -> dict[str, dict[str, Callable[[Any], None]]]:
    """Returns what `load` takes as variants: for each entity's prefix the edits of its variants by name.

    Args:
        variant_info: prefixes of entities and their `VariantMetadata`.
    """
    return {
        prefix: {name: _edit(prefix, name, metadata, k) for k, name in enumerate(metadata.variant_names)}
        for prefix, metadata in variant_info
    }


def assigned(prefix: str, metadata: Any, num_envs: int) -> np.ndarray:
    """Returns the number of the variant of each world, (num_envs,).

    Raises:
        ModelError: a function `assignment` returned numbers of another count, or that are no variants.

    Source: mjlab.entity.variants.build_variant_model 1.6.0.
    """
    given = metadata.assignment
    numbers = np.array(given(num_envs) if callable(given) else allocate_worlds(given, num_envs), int)
    count = len(metadata.variant_names)
    if numbers.shape != (num_envs,) or ((numbers < 0) | (numbers >= count)).any():
        raise ModelError(
            f"assignment of the entity {prefix.rstrip('/')}: got {numbers.tolist()}, allowed are {num_envs} numbers"
            f" from 0 to {count - 1}"
        )
    return numbers


def shown(batch: Batch, name: str, field: str, mj_model: mujoco.MjModel) -> torch.Tensor:
    """Returns meshes or materials of the worlds as mjlab stores them, (num_envs, ngeom): -1 for none and no geom."""
    rows = batch.expanded_fields.get(field)
    if rows is None:
        rows = np.broadcast_to(getattr(mj_model, name), (batch.nworld, mj_model.ngeom))
    return torch.from_numpy(np.maximum(rows, -1).astype(np.int32))


def _edit(prefix: str, name: str, metadata: Any, k: int) -> Callable[[Any], None]:
    """Returns the function that leaves one variant's geoms in the merged scene, as its source declares them."""

    def edit(spec) -> None:
        source = metadata.variant_source_specs[k]
        geoms = dict(_slots(source))
        for slot in metadata.slots:
            target = spec.geom(prefix + slot.template_geom_name)
            if slot.key not in geoms:
                spec.delete(target)
                continue
            own = geoms[slot.key]
            copy_attributes(own, target, GEOM)
            target.meshname = f"{prefix}{name}/{own.meshname}"
            target.material = f"{prefix}{name}/{own.material}" if own.material else ""
        for _, body in _bodies(source.worldbody.bodies[0]):
            copy_attributes(body, spec.body(prefix + body.name), BODY)

    return edit


def _bodies(body: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the bodies of an entity with their paths, parents first."""
    path = f"{path}/{body.name}"
    yield path, body
    for child in body.bodies:
        yield from _bodies(child, path)


def _slots(source: Any) -> Iterator[tuple[SlotKey, Any]]:
    """Yields the mesh geoms of a variant with mjlab's keys: body, visual or collision, and number among these."""
    for path, body in _bodies(source.worldbody.bodies[0]):
        count = {"visual": 0, "collision": 0}
        for geom in (g for g in body.geoms if g.type == mujoco.mjtGeom.mjGEOM_MESH):
            role = "collision" if geom.contype or geom.conaffinity else "visual"
            yield SlotKey(body_path=path, role=role, ordinal=count[role]), geom
            count[role] += 1
