"""Reads the points of tactile sensors, and the cells of touch grids (a plugin of MuJoCo), for kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import SENS_PLUGIN, SENS_TACTILE
from featherlane.engine.model.plugins import instances
from featherlane.engine.spatial.types import Vec3

if TYPE_CHECKING:
    import mujoco

TOUCH_GRID = "mujoco.sensor.touch_grid"
_field = Declare()


@derived(
    size("ntaxel", "points of all tactile sensors"),
    _field.int("sensor_taxel", "nsensor", "1", "first point of a tactile sensor, -1: another sensor"),
    _field.rows(Vec3, "taxel_pos", "ntaxel", "m", "position in the frame of the sensor's geom", shared=True),
    _field.scalar("taxel_tangent", "ntaxel 6", "1", "two tangents; zeros if the mesh defines no tangents"),
)
def taxels(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Returns vertices of the meshes of tactile sensors, and their tangents.

    A mesh defines tangents if it has three normals for each vertex; the second and the third are tangents.
    Source: MuJoCo's documentation, XML reference, sensor/tactile.
    """
    first, pos, tangent, n = np.full(mj.nsensor, -1), [np.zeros((0, 3))], [np.zeros((0, 6))], 0
    for i in np.flatnonzero(mj.sensor_type == SENS_TACTILE):
        mesh = mj.sensor_objid[i]
        number, start = int(mj.mesh_vertnum[mesh]), int(mj.mesh_normaladr[mesh])
        first[i], n = n, n + number
        vertices = int(mj.mesh_vertadr[mesh])
        pos.append(mj.mesh_vert[vertices : vertices + number].astype(float))
        sides = np.zeros((number, 2, 3))
        if mj.mesh_normalnum[mesh] == 3 * number:
            sides = mj.mesh_normal[start : start + 3 * number].astype(float).reshape(number, 3, 3)[:, 1:]
        tangent.append(sides.reshape(number, 6))
    return {"sensor_taxel": first, "taxel_pos": np.concatenate(pos), "taxel_tangent": np.concatenate(tangent)}


@derived(
    size("ngridedge", "edges of the cells of all touch grids"),
    _field.int("sensor_grid", "nsensor 4", "1", "touch grid: columns, rows, channels, first edge; -1: another sensor"),
    _field.scalar("grid_edge", "ngridedge", "rad", "azimuths of columns' edges, then elevations of rows' edges"),
)
def touch_grids(mj: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Returns sizes and edges of the cells of the touch grids.

    Edges divide the field of view evenly; with a fovea gamma, an edge x in [-1, 1] moves to gamma x^5 + (1 - gamma) x.
    Source: MuJoCo's plugin `mujoco.sensor.touch_grid` and its documentation.
    """
    grid, edges, plugins = np.full((mj.nsensor, 4), -1), [], instances(mj)
    for i in np.flatnonzero(mj.sensor_type == SENS_PLUGIN).tolist():
        name, config = plugins[mj.sensor_plugin[i]]
        if name == TOUCH_GRID:
            numbers = {key: [float(x) for x in config.get(key, "").split()] for key in CONFIG}
            gamma, view = (numbers["gamma"] or [0.0])[0], numbers["fov"]
            cells = [int(x) for x in numbers["size"]]
            grid[i] = (*cells, int((numbers["nchannel"] or [0])[0]) or 1, len(edges))
            for n, angle in zip(cells, view, strict=True):
                edges += [_fovea(x, gamma) * (angle * np.pi / 180) for x in _evenly(n + 1)]
    return {"sensor_grid": grid, "grid_edge": np.array(edges, float)}


CONFIG = ("size", "fov", "gamma", "nchannel")


def _evenly(n: int) -> list[float]:
    """Returns n numbers from -1 to 1, with the rounding of repeated additions."""
    found, step = [-1.0], 2.0 / (n - 1)
    for _ in range(n - 1):
        found.append(found[-1] + step)
    return found


def _fovea(x: float, gamma: float) -> float:
    return gamma * x**5 + (1 - gamma) * x if gamma else x
