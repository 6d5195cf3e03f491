"""Converts materials, textures, meshes and lights of a MuJoCo model to the tables that kernels take for colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from featherlane.engine.lanes.record import address
from featherlane.engine.model.assignment import reals
from featherlane.engine.model.enums import LIGHT_DIRECTIONAL, LIGHT_IMAGE, MESH
from featherlane.engine.model.model import Model
from featherlane.engine.sensor.shading import CUBE, FLAT, HEADLIGHT, LIGHT, NO_TEXTURE, SURFACE, TRIANGLE
from featherlane.errors import ModelError

if TYPE_CHECKING:
    import mujoco

UNSET = np.array((0.5, 0.5, 0.5, 1.0), np.float32)  # colour of a geom without one: its material's counts
RGB, FLAT_IMAGE, SKYBOX = 1, 0, 2  # role of a texture in a material; types of textures
SRGB = 2  # mjCOLORSPACE_SRGB
WITHOUT_LIGHT = 0.3  # ambient light of a scene that has no light
PART = 4096  # texels' addresses are passed in two parts, since float32 holds integers up to 2^24

_loaded: WeakKeyDictionary[Model, tuple[Any, np.ndarray, np.ndarray, np.ndarray]] = WeakKeyDictionary()


def geom_colours(mj: mujoco.MjModel, rgba: np.ndarray, material: np.ndarray) -> np.ndarray:
    """Returns colours (..., ngeom, 3) from 0 to 1; a geom without a colour has its material's.

    Args:
        mj: the model with the materials.
        rgba: (ngeom, 4) or (..., ngeom, 4) colours of geoms.
        material: (ngeom,) or (..., ngeom) numbers of their materials, -1: none.

    Raises:
        ModelError: a number of a material that does not exist.

    Source: MuJoCo's XML reference, `rgba` of a geom.
    """
    wrong = material[(material < -1) | (material >= mj.nmat)]
    if wrong.size:
        raise ModelError(f"geom_material: got {wrong[0]}, allowed are -1 to {mj.nmat - 1}")
    shape = np.broadcast_shapes(material.shape, rgba.shape[:-1])
    material, rgba = np.broadcast_to(material, shape), np.broadcast_to(rgba, (*shape, 4))
    unset = (material >= 0) & (rgba == UNSET).all(-1)
    out = np.array(np.clip(rgba[..., :3], 0.0, 1.0), float)
    out[unset] = mj.mat_rgba[material[unset], :3]
    return out


def _linear(values: np.ndarray) -> np.ndarray:
    """Returns the linear values 0 to 255, rounded, of values of an image in sRGB.   Source: IEC 61966-2-1."""
    x = values / 255.0
    return np.rint(255.0 * np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4))


def _texels(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Returns all texels, red + 256 green + 65536 blue, and (ntex,) the first of each texture.

    Images in sRGB are converted to linear values, as OpenGL does for MuJoCo.
    """
    images, count = [], np.array(mj.tex_width, np.int64) * mj.tex_height
    for i in range(mj.ntex):
        channels, first = int(mj.tex_nchannel[i]), int(mj.tex_adr[i])
        data = mj.tex_data[first : first + count[i] * channels]
        if channels not in (1, 2, 3, 4) or len(data) != count[i] * channels or not count[i]:
            raise ModelError(
                f"texture {mj.tex(i).name!r}: got {len(data)} values for {mj.tex_width[i]} x {mj.tex_height[i]} pixels"
                f" of {channels} channels, allowed are complete images of 1 to 4 channels"
            )
        image = data.reshape(-1, channels).astype(float)
        image = image[:, :3] if channels >= 3 else np.repeat(image[:, :1], 3, axis=1)
        if int(mj.tex_colorspace[i]) == SRGB:
            image = _linear(image)
        images.append(image @ (1.0, 256.0, 65536.0))
    return np.concatenate([*images, np.zeros(1)]), np.cumsum(count) - count


def _triangles(model: Model) -> np.ndarray:
    """Returns (n, TRIANGLE) corners, normals and texture coordinates of triangles, ordered as trianglegroup_face."""
    mj, row = model.mj_model, np.ravel(model.trianglegroup_face)
    if not mj.nmesh or not len(row):
        return np.zeros((1, TRIANGLE))
    row = np.maximum(row, 0)
    mesh = np.searchsorted(np.asarray(mj.mesh_faceadr), row, side="right") - 1
    corner = mj.mesh_vert[mj.mesh_vertadr[mesh][:, None] + mj.mesh_face[row]].astype(float)
    normal = mj.mesh_normal[mj.mesh_normaladr[mesh][:, None] + mj.mesh_facenormal[row]].astype(float)
    flat = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-300)
    place, mapped = np.zeros((len(row), 3, 2)), mj.mesh_texcoordadr[mesh] >= 0
    if mapped.any():
        at = mj.mesh_texcoordadr[mesh[mapped]][:, None] + mj.mesh_facetexcoord[row[mapped]]
        place[mapped] = mj.mesh_texcoord[at]
    # MuJoCo renders an edge as sharp if a normal is far from the triangle's
    sharp = ~mapped[:, None] & (np.einsum("nij,nj->ni", normal, flat) < 0.8)
    normal = np.where(sharp[..., None], flat[:, None], normal)
    return np.concatenate([a.reshape(len(row), -1) for a in (corner, normal, place)], axis=1)


def _images(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns texels, first texel of each texture, and triangles; computed once for each MuJoCo model."""
    found = _loaded.get(model)
    if found is None or found[0] is not model.mj_model:
        found = _loaded[model] = model.mj_model, *_texels(model.mj_model), _triangles(model)
    return found[1:]


def _surfaces(mj: mujoco.MjModel, start: np.ndarray) -> np.ndarray:
    """Returns (ngeom, SURFACE) materials and textures of geoms."""
    out = np.zeros((max(mj.ngeom, 1), SURFACE))
    out[:, 1:3], out[:, 8:10] = (0.5, 64.0), 1.0
    out[: mj.ngeom, 12] = mj.geom_type
    has = np.flatnonzero(mj.geom_matid >= 0)
    if not len(has):
        return out
    material = mj.geom_matid[has]
    out[has, 0], out[has, 1] = mj.mat_emission[material], mj.mat_specular[material]
    out[has, 2] = 128.0 * mj.mat_shininess[material]
    texture = mj.mat_texid[material, RGB]
    wrong = texture >= mj.ntex
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ModelError(
            f"material {mj.mat(material[i]).name!r}: got texture {texture[i]}, allowed are -1 to {mj.ntex - 1}"
        )
    has, material, texture = (a[texture >= 0] for a in (has, material, texture))
    flat = mj.tex_type[texture] == FLAT_IMAGE
    out[has, 3] = np.where(flat, FLAT, CUBE) if len(has) else NO_TEXTURE
    out[has, 4], out[has, 5] = start[texture] // PART, start[texture] % PART
    out[has, 6] = mj.tex_width[texture]
    # rows of an image; rows from one face of a cube to the next, 0 if all are the same
    wide, high = mj.tex_width[texture], mj.tex_height[texture]
    out[has, 7] = np.where(flat, high, np.where(high > wide, wide, 0))
    repeat = mj.mat_texrepeat[material]
    out[has, 8:10] = np.where(repeat > 0.0, repeat, 1.0)
    out[has, 10] = mj.mat_texuniform[material]
    mesh = np.where(mj.geom_type[has] == MESH, mj.geom_dataid[has], -1)
    out[has, 11] = [m >= 0 and mj.mesh_texcoordadr[m] >= 0 for m in mesh]
    return out


def _lights(mj: mujoco.MjModel) -> np.ndarray:
    """Returns (n, LIGHT) the headlight and the active lights."""
    head, active = mj.vis.headlight, np.flatnonzero(mj.light_active & (mj.light_type != LIGHT_IMAGE))
    out = np.zeros((len(active) + 1, LIGHT))
    out[0, [0, 3]], out[0, 20:29] = (
        (HEADLIGHT, LIGHT_DIRECTIONAL),
        np.concatenate([head.ambient, head.diffuse, head.specular]) * (head.active != 0),
    )
    if not head.active and not len(active):
        out[0, 20:23] = WITHOUT_LIGHT
    names = "mode bodyid targetbodyid type castshadow pos dir poscom0 pos0 dir0 ambient diffuse specular attenuation"
    if not len(active):
        return out
    columns = [
        np.asarray(getattr(mj, f"light_{name}"), float)[active].reshape(len(active), -1) for name in names.split()
    ]
    cutoff = mj.light_cutoff[active].astype(float)
    spot = (mj.light_type[active] == 0) & (cutoff < 180.0)
    columns += [np.where(spot, np.cos(np.deg2rad(cutoff)), -1.0)[:, None], mj.light_exponent[active][:, None]]
    out[1:] = np.concatenate(columns, axis=1)
    return out


def _checked_colours(model: Model, colours: Any, nworld: int) -> np.ndarray:
    """Returns colours of geoms (nworld or 1, ngeom, 3), checked."""
    given = reals("geom_rgb", colours, "are numbers from 0 to 1")
    if given.shape[-2:] != (model.ngeom, 3) or given.shape[:-2] not in ((), (nworld,)):
        raise ModelError(
            f"geom_rgb: got shape {given.shape}, allowed are {(model.ngeom, 3)} and {(nworld, model.ngeom, 3)}"
        )
    if not ((given >= 0.0) & (given <= 1.0)).all():
        raise ModelError("geom_rgb: got a number outside of 0 to 1")
    return np.ascontiguousarray(given.reshape(-1, model.ngeom, 3), float)


class Appearance:
    """Holds the tables of colours, materials, textures, triangles and lights.

    Args:
        model: the model; its `mj_model` has the appearance.
        colours: colours of geoms (ngeom, 3) or (nworld, ngeom, 3) from 0 to 1 that replace those of the fields; None:
            these.
        nworld: worlds of the batch.
        chosen: (n,) numbers of the worlds of the call.
        field: function that returns a field of the model by name: (ngeom, ...), or (n, ngeom, ...) if it differs by
            world.

    Attributes:
        sizes: addresses and sizes that kernels take.

    Raises:
        ModelError: a texture without complete data, or wrong colours.
    """

    def __init__(self, model: Model, colours: Any, nworld: int, chosen: np.ndarray, field: Callable[[str], np.ndarray]):
        mj = model.mj_model
        texels, start, triangles = _images(model)
        if colours is None:
            material = field("geom_material").astype(int)
            found = geom_colours(mj, field("geom_rgba"), material)
            self.colours = found if found.ndim == 3 else found[None]
        else:
            each = _checked_colours(model, colours, nworld)
            self.colours = each[chosen] if len(each) > 1 else each
        self.tables = {
            "texels": texels,
            "triangles": triangles,
            "surfaces": _surfaces(mj, start),
            "lights": _lights(mj),
        }
        sky = np.flatnonzero(mj.tex_type == SKYBOX)[:1]
        wide = int(mj.tex_width[sky[0]]) if len(sky) else 0
        self.sizes = {name: address(table) for name, table in self.tables.items()} | {
            "nlight": len(self.tables["lights"]),
            "sky_width": wide,
            "sky_texel": int(start[sky[0]]) if len(sky) else 0,
            "sky_stride": wide if len(sky) and mj.tex_height[sky[0]] > wide else 0,
        }

    def sizes_of(self, first: int) -> dict[str, int]:
        """Returns addresses and sizes for worlds of the call from `first` on."""
        stride = self.colours[0].size if len(self.colours) > 1 else 0
        table = self.colours[first:] if stride else self.colours
        return self.sizes | {"colours": address(table) if table.size else 0, "colour_stride": stride}
