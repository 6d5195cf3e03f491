"""A textured mesh as a binary glTF file, and a picture as a PNG file: what the page takes of textures.

Source: Khronos Group, glTF 2.0 specification, sec. 4.4 (GLB), 3.6 (buffers), 3.9 (materials); W3C, PNG specification.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from featherlane.viewer.look import Look, linear
from featherlane.viewer.shapes import Mesh, normals

FLOAT, UINT = 5126, 5125  # component types
VERTICES, INDICES = 34962, 34963  # what a part of the buffer holds
LINEAR, MIPMAPS, REPEAT = 9729, 9987, 10497
CHANNELS = {1: 0, 3: 2, 4: 6}  # PNG's types of colour


def png(picture: np.ndarray) -> bytes:
    """A picture (height, width, 1, 3 or 4) uint8 as a PNG file."""
    height, width, channels = picture.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter, 0: none
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, CHANNELS[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def glb(mesh: Mesh, rgba: Sequence[float], look: Look, picture: np.ndarray) -> bytes:
    """A mesh with its texture.

    Args:
        mesh: triangles with places in the picture.
        rgba: a colour by which the picture is multiplied.
        look: the material.
        picture: (height, width, channels) uint8, the first row above.
    """
    assert mesh.uv is not None
    buffer, views, accessors = bytearray(), [], []

    def view(data: bytes, target: int | None) -> int:
        views.append({"buffer": 0, "byteOffset": len(buffer), "byteLength": len(data)})
        if target is not None:
            views[-1]["target"] = target
        buffer.extend(data + b"\0" * (-len(data) % 4))
        return len(views) - 1

    def accessor(array: np.ndarray, target: int) -> int:
        kind = {1: "SCALAR", 2: "VEC2", 3: "VEC3"}[1 if array.ndim == 1 else array.shape[1]]
        entry: dict[str, Any] = {
            "bufferView": view(array.tobytes(), target),
            "componentType": UINT if target == INDICES else FLOAT,
            "count": len(array),
            "type": kind,
        }
        if target == VERTICES:
            entry |= {"min": array.min(0).tolist(), "max": array.max(0).tolist()}
        accessors.append(entry)
        return len(accessors) - 1

    attributes = {
        "POSITION": accessor(mesh.vertices.astype("<f4"), VERTICES),
        "NORMAL": accessor(normals(mesh).astype("<f4"), VERTICES),
        "TEXCOORD_0": accessor(mesh.uv.astype("<f4"), VERTICES),
    }
    indices = accessor(mesh.faces.reshape(-1).astype("<u4"), INDICES)
    factors: dict[str, Any] = {
        "baseColorFactor": [*linear(np.asarray(rgba[:3])).tolist(), rgba[3]],  # linear
        "metallicFactor": look.metallic,
        "roughnessFactor": look.roughness,
    }
    factors["baseColorTexture"] = {"index": 0}
    material: dict[str, Any] = {"pbrMetallicRoughness": factors}
    if rgba[3] < 1:
        material["alphaMode"] = "BLEND"
    if look.emission > 0:
        material["emissiveFactor"] = linear(look.emission * np.asarray(rgba[:3])).tolist()
        material["emissiveTexture"] = {"index": 0}
    document: dict[str, Any] = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}],
        "materials": [material],
        "images": [{"bufferView": view(png(picture), None), "mimeType": "image/png"}],
        "samplers": [{"magFilter": LINEAR, "minFilter": MIPMAPS, "wrapS": REPEAT, "wrapT": REPEAT}],
        "textures": [{"source": 0, "sampler": 0}],
    }
    document |= {"buffers": [{"byteLength": len(buffer)}], "bufferViews": views, "accessors": accessors}
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    total = 12 + 8 + len(text) + 8 + len(buffer)
    parts = (struct.pack("<4sII", b"glTF", 2, total), struct.pack("<I4s", len(text), b"JSON"), text)
    return b"".join((*parts, struct.pack("<I4s", len(buffer), b"BIN\0"), buffer))
