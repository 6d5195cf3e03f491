"""Rejects meshes and height fields that cannot collide, by name, at load time; `limits` checks the sizes of geoms.

MuJoCo's compiler rejects most of them: meshes that are a point, a line or flat, non-finite vertices, height fields
without extent.  Edits of a compiled model can still produce them.  A height field of
constant height is valid: its heights are all 0, and it collides as the flat top of its base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import HFIELD, MESH
from featherlane.engine.model.names import element
from featherlane.errors import ModelError

if TYPE_CHECKING:
    import mujoco

_field = Declare()


def check_shapes(mj: mujoco.MjModel, geoms: np.ndarray) -> None:
    """Raises an error for geoms that may collide and whose shape is degenerate.

    Args:
        geoms: ids of the geoms that may collide.

    Raises:
        ModelError: with the names of the geom, and of its mesh or height field.
    """
    types = mj.geom_type[geoms]
    for geom in geoms[types == MESH]:
        _check_mesh(mj, geom)
    for geom in geoms[types == HFIELD]:
        field = mj.hfield(mj.geom_dataid[geom])
        heights = mj.hfield_data[mj.hfield_adr[field.id] :][: field.nrow[0] * field.ncol[0]]
        if not (_positive(mj.hfield_size[field.id]) and np.isfinite(heights).all()):
            raise ModelError(
                f"height field {field.name!r}: got a size <= 0 or a non-finite height, allowed are "
                f"sizes > 0 and finite heights"
            )


def _check_mesh(mj: mujoco.MjModel, geom: int) -> None:
    mesh = mj.mesh(mj.geom_dataid[geom])
    if mj.mesh_graphadr[mesh.id] < 0:
        raise ModelError(
            f"mesh {mesh.name!r}: it has no convex hull, but {element(mj, 'geom', geom)} may "
            f"collide; set contype, conaffinity or a pair before compiling, so that the compiler computes the hull"
        )
    first, count = mj.mesh_vertadr[mesh.id], mj.mesh_vertnum[mesh.id]
    if not np.isfinite(mj.mesh_vert[first : first + count]).all():
        raise ModelError(f"mesh {mesh.name!r}: got a non-finite vertex, allowed are finite vertices")


def _positive(x: np.ndarray) -> np.ndarray:
    """Returns whether all values of a row are positive and finite."""
    return np.asarray(np.all((x > 0.0) & np.isfinite(x), axis=-1))


@derived(_field.int("geom_visible", "ngeom", "1", "1: rays hit the geom: its colour is not fully transparent", "bool"))
def visible_geoms(mj) -> dict[str, np.ndarray]:
    """Returns whether each geom is visible to rays: neither its alpha nor its material's is 0."""
    return {"geom_visible": visible_with(mj, mj.geom_rgba)}


def visible_with(mj, rgba: np.ndarray) -> np.ndarray:
    """Returns whether each geom of an MjModel is visible to rays with these colours, (ngeom,) bool."""
    alpha, material = rgba[:, 3], mj.geom_matid
    if mj.nmat:
        alpha = np.where(material >= 0, mj.mat_rgba[material, 3], alpha)
    return alpha != 0
