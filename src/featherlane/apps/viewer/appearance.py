"""Colours, materials and textures of geoms, sites and tendons from MuJoCo's model, as far as the page supports them.

The element's colour has precedence over its material's.  Textures of type `2d` are drawn if they lie on a plane, a
height field or a mesh with texture coordinates, or from above on a shape of unit size; others become their mean colour.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from featherlane.enums import MESH, SDF

UNSET = (0.5, 0.5, 0.5, 1.0)  # default colour, which a material replaces
FLAT_TEXTURE = 0  # mjTEXTURE_2D
LARGEST = 1024  # largest side of a picture [pixels]; larger ones take seconds to send
COLOUR_ROLES = (1, 8)  # roles of textures in a material: RGB, RGBA


def linear(colours: np.ndarray) -> np.ndarray:
    """Converts sRGB colours to linear light, both from 0 to 1.

    Source: IEC 61966-2-1 (sRGB).
    """
    c = np.clip(np.asarray(colours, float), 0.0, 1.0)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


class Look(NamedTuple):
    """The surface of a shape, without its colour."""

    texture: int  # number of the drawn texture, -1 for none
    repeat: tuple[float, float]  # number of repetitions along x and y
    per_metre: bool  # whether `repeat` is per 2 m instead of per shape
    metallic: float  # material parameters from 0 to 1
    roughness: float
    emission: float


PLAIN = Look(-1, (1.0, 1.0), False, 0.0, 1.0, 0.0)


class Looks:
    """Colours and materials of a model."""

    def __init__(self, mj_model):
        self.mj = mj_model
        self._replaced: dict[str, np.ndarray] = {}
        self._pictures: dict[int, np.ndarray] = {}

    def with_fields(self, fields: Mapping[str, np.ndarray]) -> Looks:
        """Returns the looks with other values of `geom_rgba`, `geom_matid` or `geom_dataid`."""
        other = copy.copy(self)
        other._replaced = dict(fields)
        return other

    def _field(self, name: str) -> np.ndarray:
        return self._replaced[name] if name in self._replaced else getattr(self.mj, name)

    def colours(self, kind: str) -> np.ndarray:
        """Returns colours (n, 4) of all "geom", "site" or "tendon" elements; an undrawn texture counts by its mean.

        Source: MuJoCo's XML reference, `rgba` of a geom: a value other than the default replaces the material's.
        """
        own, material = self._field(f"{kind}_rgba"), self._field(f"{kind}_matid")
        out = np.array(own, float)
        unset = (material >= 0) & (own == np.array(UNSET, np.float32)).all(1)
        out[unset] = self.mj.mat_rgba[material[unset]]
        for i, m in enumerate(material):
            texture = self._texture(m)
            if texture >= 0 and not (kind == "geom" and self.look(i).texture == texture):
                out[i, :3] *= self.mean(texture)
        return out

    def look(self, geom: int) -> Look:
        """Returns the material of a geom, with its texture if it can be drawn."""
        material = int(self._field("geom_matid")[geom])
        if material < 0:
            return PLAIN
        texture = self._texture(material)
        if texture >= 0 and (self.mj.tex_type[texture] != FLAT_TEXTURE or not self._has_places(geom)):
            texture = -1
        metallic, roughness = (float(getattr(self.mj, f"mat_{name}")[material]) for name in ("metallic", "roughness"))
        shininess = float(self.mj.mat_shininess[material])
        return Look(
            texture,
            (float(self.mj.mat_texrepeat[material, 0]), float(self.mj.mat_texrepeat[material, 1])),
            bool(self.mj.mat_texuniform[material]),
            max(metallic, 0.0),
            roughness if roughness >= 0 else 1.0 - 0.7 * shininess,  # below 0: unset
            float(self.mj.mat_emission[material]),
        )

    def _texture(self, material: int) -> int:
        """Returns the texture that defines a material's colours, -1 for none."""
        if material < 0:
            return -1
        return next((int(t) for t in self.mj.mat_texid[material, COLOUR_ROLES] if t >= 0), -1)

    def _has_places(self, geom: int) -> bool:
        """Returns whether the geom can be textured: it has texture coordinates, or it has unit size."""
        mesh = self._field("geom_dataid")[geom]
        return self.mj.geom_type[geom] not in (MESH, SDF) or (mesh >= 0 and self.mj.mesh_texcoordadr[mesh] >= 0)

    def picture(self, texture: int) -> np.ndarray:
        """Returns a texture (height, width, channels) uint8, the top row first; a large one is subsampled."""
        if texture not in self._pictures:
            mj, start = self.mj, int(self.mj.tex_adr[texture])
            sides = int(mj.tex_height[texture]), int(mj.tex_width[texture]), int(mj.tex_nchannel[texture])
            whole = mj.tex_data[start : start + int(np.prod(sides))].reshape(sides)
            k = -(-max(sides[:2]) // LARGEST)
            self._pictures[texture] = np.ascontiguousarray(whole[::k, ::k])
        return self._pictures[texture]

    def mean(self, texture: int) -> np.ndarray:
        """Computes the mean colour (3,) of a texture, from 0 to 1."""
        return self._means[texture]

    @cached_property
    def _means(self) -> np.ndarray:
        means = [self.picture(i).reshape(-1, self.picture(i).shape[2]).mean(0)[:3] / 255 for i in range(self.mj.ntex)]
        return np.array([np.broadcast_to(mean, 3) if len(mean) == 1 else mean for mean in means])
