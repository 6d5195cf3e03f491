"""What mjlab computes with functions of mujoco_warp: rays and images of sensors, the Jacobian of differential IK."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch
from mjlab.envs.mdp.actions.differential_ik import DifferentialIKAction  # pyright: ignore[reportMissingImports]
from mjlab.sensor import raycast_sensor  # pyright: ignore[reportMissingImports]
from mjlab.sensor.sensor_context import SensorContext  # pyright: ignore[reportMissingImports]

from featherlane import Camera
from featherlane.errors import ModelError
from featherlane.extension import private
from featherlane.integrations.mjlab.simulation import Simulation
from featherlane.integrations.mjlab.tensors import DataTensors, ModelTensors

FARTHEST = 1e10  # [m], beyond which nothing is seen; mujoco_warp's MJ_MAXVAL

_rays = raycast_sensor.rays  # mujoco_warp's
_compute_jacobian = private("mjlab", DifferentialIKAction, "_compute_jacobian")


class ImageSensorContext(SensorContext):
    """Connects ray and camera sensors to the simulation, without the structures of mujoco_warp.

    Images are computed in `Simulation.sense`: depth [m] along the optical axis, 0 where nothing is seen; segmentation
    as pairs of an id and the type of a geom, (-1, -1) where nothing is seen; colours as `Batch.render` computes them.

    Source: mjlab.sensor.SensorContext 1.6.0, mujoco_warp.render (conventions of images).
    """

    def _create_context(self, mj_model: mujoco.MjModel) -> None:
        if not isinstance(self._data, DataTensors):  # an environment that was created before `use`
            super()._create_context(mj_model)
            return
        self._ctx: Any = None
        self._images = [empty_images(sensor, self._data.nworld) for sensor in self.camera_sensors]
        for sensor in self.camera_sensors:
            size, shape = mj_model.cam_sensorsize[sensor.camera_idx], (sensor.cfg.width, sensor.cfg.height)
            self._data.batch.model.cam_sensorsize[sensor.camera_idx] = cropped(size, shape)
        if self.camera_sensors:
            # the appearance of the batch's model: one for all cameras, as mjlab requires
            own, settings = self._data.batch.model.mj_model, self.camera_sensors[0].cfg
            own.light_castshadow[:] = mj_model.light_castshadow & settings.use_shadows
            own.mat_texid[:] = mj_model.mat_texid if settings.use_textures else -1

    def render(self, model: ModelTensors) -> None:
        """Computes the images of all camera sensors, in the worlds' present states."""
        if not isinstance(self._data, DataTensors):
            return
        batch = self._data.batch
        colours = colours_by_world(model, np.asarray(batch.model.mj_model.geom_matid))
        for sensor, images in zip(self.camera_sensors, self._images, strict=True):
            groups = [int(group in sensor.cfg.enabled_geom_groups) for group in range(6)]
            size, outputs = (sensor.cfg.width, sensor.cfg.height), tuple(images)
            camera = Camera(
                sensor.camera_idx,
                width=size[0],
                height=size[1],
                output=outputs,
                geomgroup=groups,
                near=0.0,
                far=FARTHEST,
                geom_rgb=colours,
            )
            found = batch.render(camera)
            if found.depth is not None:
                depth = np.where(found.depth < FARTHEST, found.depth, 0.0)
                images["depth"][..., 0] = torch.from_numpy(depth.astype(np.float32))
            if found.segmentation is not None:
                seen = found.segmentation >= 0
                pair = np.stack([found.segmentation, np.where(seen, int(mujoco.mjtObj.mjOBJ_GEOM), -1)], axis=-1)
                images["segmentation"][:] = torch.from_numpy(pair.astype(np.int32))
            if found.rgb is not None:
                images["rgb"][:] = torch.from_numpy(found.rgb)

    def get_rgb(self, cam_idx: int) -> torch.Tensor:
        """Returns colours (num_envs, height, width, 3) uint8 of a camera."""
        return self._image(cam_idx, "rgb") if isinstance(self._data, DataTensors) else super().get_rgb(cam_idx)

    def get_depth(self, cam_idx: int) -> torch.Tensor:
        """Returns depths (num_envs, height, width, 1) of a camera [m]."""
        return self._image(cam_idx, "depth") if isinstance(self._data, DataTensors) else super().get_depth(cam_idx)

    def get_segmentation(self, cam_idx: int) -> torch.Tensor:
        """Returns ids and types of objects (num_envs, height, width, 2) int32 of a camera."""
        if not isinstance(self._data, DataTensors):
            return super().get_segmentation(cam_idx)
        return self._image(cam_idx, "segmentation")

    def _image(self, camera: int, output: str) -> torch.Tensor:
        if camera not in self._cam_idx_to_list_idx:
            raise ModelError(f"camera: got {camera}, allowed are {sorted(self._cam_idx_to_list_idx)}")
        images = self._images[self._cam_idx_to_list_idx[camera]]
        if output not in images:
            raise ModelError(f"camera {camera}: got the image {output!r}, allowed are {', '.join(images)}")
        return images[output]


def cropped(size: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Returns the part of an image sensor (2,) [m] with the sides' ratio of an image; zeros for a camera without one.

    MuJoCo's renderer stretches the image instead.
    Source: mujoco_warp, compute_ray.
    """
    ratio = shape[0] / shape[1]
    return np.array([min(size[0], size[1] * ratio), min(size[1], size[0] / ratio)])


def empty_images(sensor: Any, nworld: int) -> dict[str, torch.Tensor]:
    """Returns zeros for the images of a camera sensor, by name."""
    kinds = {"rgb": (3, torch.uint8), "depth": (1, torch.float32), "segmentation": (2, torch.int32)}
    size = nworld, sensor.cfg.height, sensor.cfg.width
    return {name: torch.zeros((*size, kinds[name][0]), dtype=kinds[name][1]) for name in sensor.cfg.data_types}


def colours_by_world(model: ModelTensors, material: np.ndarray) -> np.ndarray | None:
    """Returns colours of geoms (num_envs, ngeom, 3), clamped to 0 to 1, if they or the materials' were read, else None.

    Args:
        model: the tensors of the model.
        material: (ngeom,) material of each geom, -1: none.
    """
    if not {"geom_rgba", "mat_rgba"} & model.__dict__.keys():
        return None
    rgba = model.geom_rgba.numpy()
    unset = (material >= 0) & (rgba == np.array((0.5, 0.5, 0.5, 1.0), np.float32)).all(-1)
    if unset.any():
        rgba = np.where(unset[..., None], model.mat_rgba.numpy()[:, np.maximum(material, 0)], rgba)
    return np.clip(rgba[..., :3].astype(float), 0.0, 1.0)


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
    simulation = private("mjlab", action, "_env").sim
    if not isinstance(simulation, Simulation):
        _compute_jacobian(action)
        return
    model, data = simulation.mj_model, simulation.data
    body = private("mjlab", action, "_body_id")
    axes: torch.Tensor = data.cdof  # (n, nv, 6), angular part first, about the center of mass of the tree
    moves = torch.zeros(model.nv)
    dof = int(simulation.batch.model.body_lastdof[body])
    while dof >= 0:
        moves[dof] = 1.0
        dof = int(model.dof_parentid[dof])
    offset = private("mjlab", action, "_point_torch") - data.subtree_com[:, int(model.body_rootid[body])]
    angular = axes[..., :3] * moves[:, None]
    linear = axes[..., 3:] * moves[:, None] + torch.cross(angular, offset[:, None].expand_as(angular), dim=-1)
    private("mjlab", action, "_jacp_torch")[:] = linear.transpose(1, 2)
    private("mjlab", action, "_jacr_torch")[:] = angular.transpose(1, 2)
