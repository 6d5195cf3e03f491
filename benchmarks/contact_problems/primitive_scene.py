"""Scenes without the meshes that only draw, so that their files are not needed."""

from __future__ import annotations

from pathlib import Path

import mujoco


def primitive_scene(path: Path) -> mujoco.MjSpec:
    """Returns a scene without meshes; its motion is that of the whole scene.

    Raises:
        ValueError: a mesh collides, or a body's inertia comes from a mesh.
    """
    spec = mujoco.MjSpec.from_file(str(path))
    for geom in [geom for geom in spec.geoms if geom.type == mujoco.mjtGeom.mjGEOM_MESH]:
        if geom.contype or geom.conaffinity:
            raise ValueError(f"{path.name}: the mesh {geom.meshname!r} of body {geom.parent.name!r} collides")
        weightless = geom.mass == 0.0 or geom.density == 0.0
        if not (geom.parent.explicitinertial or weightless):
            raise ValueError(f"{path.name}: body {geom.parent.name!r} has the inertia of the mesh {geom.meshname!r}")
        spec.delete(geom)
    for kind in (spec.meshes, spec.textures, spec.materials):
        for element in list(kind):
            if kind is spec.meshes or getattr(element, "file", ""):
                spec.delete(element)
    return spec
