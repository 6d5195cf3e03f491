"""Fixed variants of UniSim's scenes (`SceneCfg.fixed_variant_plan`) as variants of a model.

UniSim's `mujoco` backend compiles each variant and passes its spec to a builder of mjbatch, which merges the meshes of
all variants into one spec and returns an index of a mesh of it for each geom and variant.  `Recorder` is such a builder
that keeps the specs.

Source: mjbatch-uni 0.2.5, VariantPackBuilder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
from mjbatch.variants import VariantPackBuilder  # pyright: ignore[reportMissingImports]

from featherlane.integrations.spec_edits import BODY, GEOM, copy_attributes

GROUP = "fixed variants"  # name of the group of variants
SHAPE = ("fromto", "size", "contype", "conaffinity")


class Recorder(VariantPackBuilder):
    """Builds mjbatch's variants and keeps the specs.

    Attributes:
        specs: the spec of each variant.
        spec: the spec with the meshes of all variants.
    """

    spec: Any

    def __init__(self) -> None:
        super().__init__()
        self.specs: list[Any] = []

    def builder(self) -> Recorder:
        """Returns this builder, as `VariantPack.builder` returns one."""
        return self

    def add_variant(self, spec: Any, model: Any = None) -> Any:
        self.specs.append(spec.copy())
        return super().add_variant(spec, model)

    def build(self, canonical_spec: Any) -> Any:
        pack = super().build(canonical_spec)
        self.spec = canonical_spec.copy()
        return pack


def declared(recorder: Recorder, pack: Any) -> dict[str, Callable[[Any], None]]:
    """Returns what `load` takes as variants of `recorder.spec`: edits by the number of the variant.

    Args:
        recorder: the recorded specs.
        pack: the `VariantPack` that it built.
    """
    return {str(k): _edit(source, pack, k) for k, source in enumerate(recorder.specs)}


def _edit(source: Any, pack: Any, variant: int) -> Callable[[Any], None]:
    """Returns the function that makes the merged scene one variant."""

    def edit(spec) -> None:
        geoms = {geom.name: geom for geom in source.geoms}
        for geom in list(spec.geoms):
            own = geoms.get(geom.name)
            if own is None:
                spec.delete(geom)
                continue
            copy_attributes(own, geom, (*GEOM, *SHAPE))
            if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
                number = pack.fields["geom_dataid"][variant, pack.model.geom(geom.name).id]
                geom.meshname = pack.model.mesh(number).name
        for own, body in zip(source.bodies[1:], spec.bodies[1:], strict=True):
            copy_attributes(own, body, BODY)

    return edit
