"""Reads signed distance fields (SDFs) of geoms for kernels: octrees of meshes, and MuJoCo's first-party plugins.

Source: MuJoCo mjmodel.h (`oct_*`) and its plugins `mujoco.sdf.*`: names and defaults of their attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.closed_mesh import merged_mesh, open_edges
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import BOX, HFIELD, MESH, SDF
from featherlane.engine.model.names import element
from featherlane.engine.model.pair import FIELD_PAIR, MESH_FIELD
from featherlane.engine.model.plugins import Instance, instances, plugin_number
from featherlane.engine.spatial.types import Box
from featherlane.errors import ModelError

if TYPE_CHECKING:
    import mujoco

# kinds of fields: the geom types of primitive shapes, and those of SDF geoms
NO_FIELD = -1
OCTREE, TORUS, BOLT, NUT, GEAR, BOWL = range(10, 16)
NPARAM = 10  # numbers per plugin instance in sdf_param
LARGEST_TREE = 1 << 24  # nodes of all octrees: kernels hold their numbers in reals, also in float32
_field = Declare()


# ---- plugins: parameters of the kernels, from the attributes ---------------------------------------------------------
def _bowl(height: float, radius: float, thickness: float) -> list[float]:
    """Returns height and radius of the rim's circle, radius of the sphere, and thickness."""
    if not abs(height) <= radius:
        raise ModelError(f"height is {height:g}, allowed is -radius to radius ({radius:g})")
    return [height, math.sqrt(radius * radius - height * height), radius, thickness]


def _gear(alpha: float, diameter: float, teeth: float, thickness: float, inner: float) -> list[float]:
    """Returns rotation, half thickness, radii of hole, tip, root and base, angles of a tooth, and blending lengths.

    Source: MuJoCo's plugin `mujoco.sdf.gear`: involute teeth; the pressure angle depends on the number of teeth.
    """
    if not (diameter > 0 and teeth > 0):
        raise ModelError(f"diameter and teeth are {diameter:g} and {teeth:g}, allowed are numbers > 0")
    pressure = 3.096e-5 * teeth * teeth - 6.557e-3 * teeth + 0.551
    module, pitch_radius = diameter / teeth, diameter / 2
    tip = (diameter + 2 * module) / 2
    height = 2.2 * module
    hole = inner / 2 if inner >= 0 else tip - height - 0.14 * diameter
    base = diameter * math.cos(pressure) / 2
    stride = math.pi * module / pitch_radius
    angle = math.acos(base / pitch_radius)
    shift = stride / 2 - 2 * (math.tan(angle) - angle)
    return [alpha, thickness / 2, hole, tip, tip - height, base, stride, shift, 0.0035 * diameter, base - tip + height]


def _attributes(*values: float) -> list[float]:
    return list(values)


PLUGINS: dict[str, tuple[int, dict[str, float], Callable[..., list[float]]]] = {
    "mujoco.sdf.torus": (TORUS, {"radius1": 0.35, "radius2": 0.15}, _attributes),
    "mujoco.sdf.bolt": (BOLT, {"radius": 0.26}, _attributes),
    "mujoco.sdf.nut": (NUT, {"radius": 0.26}, _attributes),
    "mujoco.sdf.gear": (
        GEAR,
        {"alpha": 0.0, "diameter": 2.8, "teeth": 25.0, "thickness": 0.2, "innerdiameter": -1.0},
        _gear,
    ),
    "mujoco.sdf.bowl": (BOWL, {"height": 0.4, "radius": 1.0, "thickness": 0.02}, _bowl),
}


def _parameters(mj: mujoco.MjModel, i: int, instance: Instance) -> list[float]:
    """Returns the NPARAM parameters of a plugin instance; zeros for other plugins.

    Raises:
        ModelError: an attribute is not a number, or not allowed; with the instance and the attribute.
    """
    if instance.plugin not in PLUGINS:
        return [0.0] * NPARAM
    _, defaults, convert = PLUGINS[instance.plugin]
    numbers = [plugin_number(mj, i, instance.config, key, default) for key, default in defaults.items()]
    try:
        found = convert(*numbers)
    except ModelError as error:
        raise ModelError(f"{element(mj, 'plugin', i)}: {error}") from None
    return found + [0.0] * (NPARAM - len(found))


# ---- octrees ---------------------------------------------------------------------------------------------------------
def _first_children(mj: mujoco.MjModel) -> np.ndarray:
    """Returns the first child of each node, numbered over all octrees; -1 for leaves.  A node's children are in order.

    Raises:
        ModelError: a mesh has an octree with another layout, or the octrees have too many nodes.
    """
    child = np.asarray(mj.oct_child).reshape(-1, 8)
    if len(child) > LARGEST_TREE:
        largest = int(np.argmax(mj.mesh_octnum))
        raise ModelError(
            f"{element(mj, 'mesh', largest)}: its octree has {mj.mesh_octnum[largest]} nodes, and all octrees "
            f"{len(child)}, allowed are {LARGEST_TREE}; set a lower octree_maxdepth"
        )
    first = np.full(len(child), -1.0)
    for mesh in np.flatnonzero(mj.mesh_octnum).tolist():
        rows = slice(mj.mesh_octadr[mesh], mj.mesh_octadr[mesh] + mj.mesh_octnum[mesh])
        here = child[rows]
        leaf = here[:, 0] < 0
        in_order = np.where(leaf[:, None], -1, here[:, :1] + np.arange(8))
        if (here != in_order).any() or here.max(initial=0) >= len(here):
            raise ModelError(f"{element(mj, 'mesh', mesh)}: the children of an octree's node are not consecutive")
        first[rows] = np.where(leaf, -1, here[:, 0] + mj.mesh_octadr[mesh])
    return first


def _check_closed(mj: mujoco.MjModel, geom: int) -> None:
    """Requires that the mesh of a geom is watertight, else the sign of its field is not defined.

    Raises:
        ModelError: with the geom, its mesh, and the number of open edges.
    """
    mesh = int(mj.geom_dataid[geom])
    number = open_edges(merged_mesh(mj, mesh)[1])
    if number:
        raise ModelError(
            f"{element(mj, 'geom', geom)}: {element(mj, 'mesh', mesh)} has {number} open edges, allowed is a "
            f"watertight mesh for a signed distance field"
        )


# ---- fields of the model ---------------------------------------------------------------------------------------------
def field_kind(mj: mujoco.MjModel, geom: int, plugins: list[Instance]) -> int:
    """Returns the kind of a geom's field; NO_FIELD for height fields, convex meshes and unknown plugins."""
    kind, plugin = int(mj.geom_type[geom]), int(mj.geom_plugin[geom])
    if kind == SDF and plugin >= 0:
        return PLUGINS[plugins[plugin].plugin][0] if plugins[plugin].plugin in PLUGINS else NO_FIELD
    if kind in (SDF, MESH):
        return OCTREE if mj.geom_dataid[geom] >= 0 and mj.mesh_octadr[mj.geom_dataid[geom]] >= 0 else NO_FIELD
    return kind if kind <= BOX and kind != HFIELD else NO_FIELD


@derived(
    size("noctree", "nodes of the octrees of all meshes"),
    size("nminimized", "geoms that may collide by minimization of signed distance fields"),
    size("nfieldparam", "parameters of the plugins of signed distance fields"),
    _field.int("geom_field", "ngeom", "1", "kind of its signed distance field: geom type or plugin; -1: none"),
    _field.int("geom_fieldadr", "ngeom", "1", "octree: mesh; plugin: first parameter"),
    _field.scalar("sdf_param", "nfieldparam", "m, rad", "parameters of a plugin instance, as `signed_distance` lists"),
    _field.int("mesh_octree", "nmesh", "1", "root of the mesh's octree, -1: none"),
    _field.rows(Box, "mesh_octbox", "nmesh", "m", "box of the octree: centre, half sides", shared=True),
    _field.scalar("octree_child", "noctree", "1", "first of the node's eight children, -1: leaf"),
    _field.scalar("octree_coeff", "noctree 8", "m", "signed distances of the node's corners, x fastest"),
)
def signed_distances(mj: mujoco.MjModel, pairs: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns the kinds of the geoms' signed distance fields, the parameters of the plugins, and the octrees."""
    plugins = instances(mj)
    kind = np.array([field_kind(mj, g, plugins) for g in range(mj.ngeom)], np.int32)
    minimized = minimized_fields(mj, pairs)
    for geom in minimized:
        if kind[geom] == OCTREE:
            _check_closed(mj, geom)
    is_plugin = (mj.geom_type == SDF) & (mj.geom_plugin >= 0)
    box = np.zeros((mj.nmesh, 6))
    has_tree = mj.mesh_octadr >= 0
    box[has_tree] = np.asarray(mj.oct_aabb).reshape(-1, 6)[mj.mesh_octadr[has_tree]]
    return {
        "nminimized": len(minimized),
        "geom_field": kind,
        "geom_fieldadr": np.where(is_plugin, NPARAM * mj.geom_plugin, mj.geom_dataid),
        "sdf_param": np.array([x for i, each in enumerate(plugins) for x in _parameters(mj, i, each)], float),
        "mesh_octree": mj.mesh_octadr,
        "mesh_octbox": box,
        "octree_child": _first_children(mj),
        "octree_coeff": np.asarray(mj.oct_coeff, float).reshape(-1, 8),
    }


def minimized_fields(mj: mujoco.MjModel, pairs: dict[str, np.ndarray]) -> list[int]:
    """Returns the SDF geoms that may collide by minimization of their fields; planes touch their convex hulls."""
    rows = np.isin(pairs["cand_function"], (FIELD_PAIR, MESH_FIELD))
    geoms = np.union1d(pairs["cand_geom1"][rows], pairs["cand_geom2"][rows])
    return geoms[mj.geom_type[geoms] == SDF].tolist()


def field_problems(mj: mujoco.MjModel, pairs: dict[str, np.ndarray]) -> Iterator[str]:
    """Yields the SDF geoms in these candidate pairs without a supported field, with the name of their plugin."""
    plugins = instances(mj)
    for g in minimized_fields(mj, pairs):
        if field_kind(mj, g, plugins) == NO_FIELD:
            plugin = int(mj.geom_plugin[g])
            reason = f"plugin {plugins[plugin].plugin}" if plugin >= 0 else "its mesh has no octree"
            yield f"{element(mj, 'geom', g)}: {reason}"
