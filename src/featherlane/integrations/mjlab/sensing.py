"""What mjlab computes with functions of mujoco_warp: rays of sensors, and the Jacobian of differential IK."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch
from mjlab.envs.mdp.actions.differential_ik import DifferentialIKAction  # pyright: ignore[reportMissingImports]
from mjlab.sensor import raycast_sensor  # pyright: ignore[reportMissingImports]
from mjlab.sensor.sensor_context import SensorContext  # pyright: ignore[reportMissingImports]

from featherlane.errors import UnsupportedFeatureError
from featherlane.integrations.mjlab.simulation import Simulation
from featherlane.integrations.mjlab.tensors import DataTensors

_rays = raycast_sensor.rays  # mujoco_warp's
_compute_jacobian = DifferentialIKAction._compute_jacobian


class RaySensorContext(SensorContext):
    """Connects ray sensors to the simulation, without the acceleration structures of mujoco_warp.

    Raises:
        UnsupportedFeatureError: camera sensors, with their names.
    """

    def _create_context(self, mj_model: mujoco.MjModel) -> None:
        if not isinstance(self._data, DataTensors):  # an environment that was created before `use`
            super()._create_context(mj_model)
            return
        self._ctx: Any = None
        if self.camera_sensors:
            names = [f"camera sensor {sensor.cfg.name}" for sensor in self.camera_sensors]
            raise UnsupportedFeatureError(names, what="not supported: Featherlane renders no images")


def rays(m, d, pnt, vec, geomgroup, flg_static, bodyexclude, dist, geomid, normal, rc=None) -> None:
    """Intersects the rays of a sensor with the geoms of each world.

    A world with a ray that is not finite has no hits.

    Args:
        m, d: what the sensor was initialized with: `ModelTensors`, `DataTensors`.
        pnt, vec: (num_envs, nray) points [m] and directions.
        geomgroup: six numbers, 0 for a group of geoms that is not tested.
        flg_static: test geoms that are welded to the world.
        bodyexclude: (nray,) body whose geoms are not tested, -1 for none.
        dist, geomid, normal: (num_envs, nray) results: distance in lengths of the direction, geom, unit normal; -1, -1
            and zeros without a hit.
        rc: unused.

    Source: mujoco_warp.rays.
    """
    if not isinstance(d, DataTensors):
        _rays(m, d, pnt, vec, geomgroup, flg_static, bodyexclude, dist, geomid, normal, rc)
        return
    point, direction = pnt.numpy(), vec.numpy()
    finite = np.flatnonzero(np.isfinite(point).all((1, 2)) & np.isfinite(direction).all((1, 2)))
    groups = [int(group != 0) for group in geomgroup]
    d.push()
    exclude = np.broadcast_to(bodyexclude.numpy(), (len(finite), point.shape[1]))
    hits = d.batch.ray(point[finite], direction[finite], groups, bool(flg_static), exclude, ids=finite)
    for target, found, missing in ((dist, hits.distance, -1), (geomid, hits.geom, -1), (normal, hits.normal, 0)):
        target = target.numpy()
        target[...] = missing
        target[finite] = found


def frame_jacobian(action: DifferentialIKAction) -> None:
    """Computes the Jacobian of the controlled frame in each world: linear (n, 3, nv) and angular (n, 3, nv) rows.

    Source: mj_jac of MuJoCo, from `cdof` and `subtree_com`.
    """
    simulation = action._env.sim
    if not isinstance(simulation, Simulation):
        _compute_jacobian(action)
        return
    model, data = simulation.mj_model, simulation.data
    body = action._body_id
    axes: torch.Tensor = data.cdof  # (n, nv, 6), angular part first, about the center of mass of the tree
    moves = torch.zeros(model.nv)
    dof = _last_dof(model, body)
    while dof >= 0:
        moves[dof] = 1.0
        dof = int(model.dof_parentid[dof])
    offset = action._point_torch - data.subtree_com[:, int(model.body_rootid[body])]
    angular = axes[..., :3] * moves[:, None]
    linear = axes[..., 3:] * moves[:, None] + torch.cross(angular, offset[:, None].expand_as(angular), dim=-1)
    action._jacp_torch[:] = linear.transpose(1, 2)
    action._jacr_torch[:] = angular.transpose(1, 2)


def _last_dof(model: mujoco.MjModel, body: int) -> int:
    """Returns the last DoF that moves a body, -1 if it is static."""
    while body and not model.body_dofnum[body]:
        body = int(model.body_parentid[body])
    return int(model.body_dofadr[body] + model.body_dofnum[body] - 1) if body else -1
