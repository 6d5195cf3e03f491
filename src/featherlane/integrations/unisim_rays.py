"""Ray caster of UniSim's contract: depth cameras, lidars and height scans of UniSim's scenes.

Each body of the scene is a mocap body of a model, so that its pose can be set in each world.

Source: unisim-core 2.2.0, RayCaster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import DTypeLike

# pyright: reportMissingImports=false
from unisim.errors import BackendError, UnsupportedCapabilityError
from unisim.ray_query import (
    RayCaster,
    RayCasterCapabilities,
    RayCollisionDescription,
    RayGeomType,
    RaySceneDescription,
    RayTraceFilter,
    RayTraceOutputs,
    RayTraceResult,
)

from featherlane.engine.model import load
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.query.ray import Rays
from featherlane.errors import ArgumentError, ModelError

SHAPES = {kind: getattr(mujoco.mjtGeom, f"mjGEOM_{kind.name}") for kind in RayGeomType}


class FeatherlaneRayCaster(RayCaster):
    """Casts rays in the worlds of a scene, as `mj_ray` does: a plane is seen from its front only.

    Args:
        num_envs: worlds.
        num_rays: rays of each world.
        collision: the scene with its meshes; needed for geoms that are meshes and for filters by tags and ancestors.
        nthread: threads; 0: one for each core.
        dtype: float64 or float32, of all arithmetic.

    Raises:
        ModelError: a number is out of range, or an unknown dtype.
    """

    caster_type = "featherlane"
    _ray_capabilities = RayCasterCapabilities(
        supports_pose_sync=True,
        supports_per_env_rays=True,
        supports_host_readback=True,
        supports_hit_point=True,
        supports_host_normal=True,
        supports_geom_id=True,
        supports_body_id=True,
        supports_static_filter=True,
        supports_min_distance=True,
    )

    def __init__(
        self,
        num_envs: int = 1,
        num_rays: int = 1,
        *,
        collision: RayCollisionDescription | None = None,
        nthread: int = 0,
        dtype: DTypeLike = "float64",
    ):
        self._num_envs, self._num_rays = (
            whole_argument("num_envs", num_envs, 1),
            whole_argument("num_rays", num_rays, 1),
        )
        self._collision, self._nthread, self._dtype = collision, nthread, dtype
        self._batch: Batch | None = None
        self._is_closed = False

    @property
    def num_envs(self) -> int:
        return self._num_envs

    @property
    def num_rays(self) -> int:
        return self._num_rays

    def materialize(self, scene: RaySceneDescription) -> None:
        """Creates the worlds with all bodies at the origin.

        Raises:
            BackendError: it is closed or has a scene already.
            UnsupportedCapabilityError: a mesh without `collision`, or a geom that cannot be compiled.
        """
        if self._is_closed or self._batch is not None:
            raise BackendError(f"featherlane: the ray caster {'is closed' if self._is_closed else 'has a scene'}")
        if self._collision is None:
            if RayGeomType.MESH in scene.geom_types:
                raise UnsupportedCapabilityError(
                    "featherlane: the scene has meshes; pass their RayCollisionDescription as `collision`"
                )
            self._collision = RayCollisionDescription(scene)
        if self._collision.scene.geom_types != scene.geom_types:
            raise ArgumentError("collision: describes another scene")
        try:
            model = load(_spec(self._collision))
            batch = Batch(model, self._num_envs, self._nthread, dtype=self._dtype)
        except ModelError as error:
            raise UnsupportedCapabilityError(f"featherlane: {error}") from error
        # numbers of the geoms in the model and in the scene: the compiler orders geoms by body
        self._place = np.array([model.geom(str(i)).id for i in range(scene.num_geoms)], int)
        self._number, self._body = np.argsort(self._place), scene.geom_body_ids
        self._batch = batch

    def _worlds(self) -> Batch:
        if self._batch is None:
            raise BackendError(f"featherlane: the ray caster {'is closed' if self._is_closed else 'has no scene yet'}")
        return self._batch

    def update_pose(
        self, body_pos: np.ndarray, body_quat: np.ndarray, env_ids: Sequence[int] | np.ndarray | None = None
    ) -> None:
        """Sets the poses of the bodies of worlds.

        Args:
            body_pos: (n, num_bodies, 3) [m].
            body_quat: (n, num_bodies, 4) unit quaternions.
            env_ids: the worlds; None for all.
        """
        batch, rows = self._worlds(), self._resolve_selected_rows(env_ids)
        poses = []
        for name, value, target in (
            ("body_pos", body_pos, batch.mocap_pos),
            ("body_quat", body_quat, batch.mocap_quat),
        ):
            pose, shape = np.asarray(value, float), (len(rows), *target.shape[1:])
            if pose.shape != shape or not np.isfinite(pose).all():
                raise ArgumentError(f"{name}: got shape {pose.shape}, allowed are finite numbers of shape {shape}")
            poses.append(pose)
        if not np.allclose(np.linalg.norm(poses[1], axis=-1), 1.0, rtol=1e-5, atol=1e-6):
            raise ArgumentError("body_quat: got a quaternion of another length than 1")
        batch.mocap_pos[rows], batch.mocap_quat[rows] = poses

    def trace(
        self,
        ray_origins: np.ndarray,
        ray_directions: np.ndarray,
        max_distance: float,
        env_ids: Sequence[int] | np.ndarray | None = None,
        outputs: RayTraceOutputs | None = None,
        *,
        min_distance: float = 0.0,
        ray_filter: RayTraceFilter | None = None,
    ) -> RayTraceResult:
        """Returns the nearest surfaces; arguments and results are those of UniSim's `RayCaster.trace`."""
        batch, rows, wanted = self._worlds(), self._resolve_selected_rows(env_ids), self._check_trace_outputs(outputs)
        nearest = self._check_trace_query(max_distance, min_distance, ray_filter)
        origin, direction = self._resolve_ray_batch(ray_origins, ray_directions, len(rows))
        start = origin + nearest * direction
        query = Rays(batch.model, len(rows), batch.dtype, start, direction, None, True, -1, np.inf)
        if ray_filter is not None:
            geoms = np.sort(self._place[ray_filter.geom_mask(self._collision)])
            query.shared = {**query.shared, "ray.seen": geoms, "ray.ngeom": len(geoms)}
        found = batch.query(query, rows)
        distance = found.distance + nearest
        hit = (found.geom >= 0) & (distance <= max_distance)
        distance = np.where(hit, distance, max_distance).astype(batch.dtype)
        result: dict[str, Any] = {"distance": distance, "hit": hit}
        if wanted.hit_point:
            result["hit_point"] = origin + distance[..., None] * direction
        if wanted.normal:
            behind = np.einsum("nri,nri->nr", found.normal, direction) > 0.0
            result["normal"] = np.where(behind[..., None], -found.normal, found.normal)
        geom = np.where(hit, self._number[found.geom] if len(self._number) else -1, -1)
        if wanted.geom_id:
            result["geom_id"] = geom
        if wanted.body_id:
            result["body_id"] = np.where(hit, self._body[geom] if len(self._body) else -1, -1)
        return RayTraceResult(**result)

    def close(self) -> None:
        """Frees the worlds."""
        self._batch, self._is_closed = None, True


def _spec(collision: RayCollisionDescription) -> Any:
    """Returns a `mujoco.MjSpec` of a scene; geoms are named by their numbers and do not collide."""
    spec, scene = mujoco.MjSpec(), collision.scene
    for k, mesh in enumerate(collision.meshes):
        spec.add_mesh(
            name=str(k),
            uservert=mesh.points.ravel(),
            userface=mesh.indices,
            inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
        )
    bodies = [spec.worldbody.add_body(name=f"body {k}", mocap=True) for k in range(scene.num_bodies)]
    for i, kind in enumerate(scene.geom_types):
        kind = RayGeomType(kind)
        mesh = {"meshname": str(collision.geom_mesh_ids[i])} if kind is RayGeomType.MESH else {}
        bodies[scene.geom_body_ids[i]].add_geom(
            name=str(i),
            type=SHAPES[kind],
            size=(0.0, 0.0, 1.0) if kind is RayGeomType.PLANE else scene.geom_sizes[i],
            pos=scene.geom_local_pos[i],
            quat=scene.geom_local_quat[i],
            contype=0,
            conaffinity=0,
            **mesh,
        )
    return spec
