"""Writes a textured mesh as a binary glTF file.

trimesh writes the file.  The factors of the material are set afterwards: trimesh rounds a colour to 8 bits, which is
too coarse for linear light, and stores a texture once for each use.
Source: Khronos Group, glTF 2.0 specification, sec. 3.9 (materials).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import trimesh
from PIL import Image
from trimesh.exchange.gltf import export_glb
from trimesh.visual import TextureVisuals
from trimesh.visual.material import PBRMaterial

from featherlane.apps.viewer.appearance import Look, linear
from featherlane.apps.viewer.shapes import Mesh, normals


def glb(mesh: Mesh, rgba: Sequence[float], look: Look, picture: np.ndarray) -> bytes:
    """Returns a mesh with its texture as a file.

    Args:
        mesh: triangles with texture coordinates.
        rgba: colour that multiplies the picture.
        picture: (height, width, 1, 3 or 4) uint8, the top row first.
    """
    assert mesh.uv is not None

    def set_factors(document) -> None:
        (material,) = document["materials"]
        material["pbrMetallicRoughness"]["baseColorFactor"] = [*linear(np.asarray(rgba[:3])).tolist(), rgba[3]]
        if look.emission > 0:
            material["emissiveFactor"] = linear(look.emission * np.asarray(rgba[:3])).tolist()
            material["emissiveTexture"] = {"index": 0}

    material = PBRMaterial(
        baseColorTexture=Image.fromarray(picture.squeeze(2) if picture.shape[2] == 1 else picture),
        metallicFactor=look.metallic,
        roughnessFactor=look.roughness,
        alphaMode="BLEND" if rgba[3] < 1 else None,
    )
    visual = TextureVisuals(mesh.uv * (1.0, -1.0) + (0.0, 1.0), material=material)  # v from below
    whole = trimesh.Trimesh(mesh.vertices, mesh.faces, vertex_normals=normals(mesh), visual=visual, process=False)
    return export_glb(trimesh.Scene(whole), include_normals=True, tree_postprocessor=set_factors)
