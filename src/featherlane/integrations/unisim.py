"""Backend of UniSim (`unisim-core` 2.2) on Featherlane.

    from featherlane.integrations import unisim as featherlane_unisim
    backend = featherlane_unisim.create_backend(scene=scene, num_envs=64, sim_dt=0.01)   # a unisim.SimBackend
    with featherlane_unisim.use():
        backend = unisim.create_backend("mujoco", scene=scene, num_envs=64, sim_dt=0.01)   # the same

`FeatherlaneBackend` is UniSim's `mujoco` backend with Featherlane as its executor: scenes, names, sensors, domain
randomization, resets and playback are UniSim's, and the physics is Featherlane's.

Source: unisim-core 2.2.0, SimBackend.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import mujoco
import numpy as np
from numpy.typing import DTypeLike

from featherlane import Batch, load
from featherlane.errors import ArgumentError, ModelError
from featherlane.extension import requiring
from featherlane.integrations.models import LoadedModels
from featherlane.integrations.unisim_executor import Executor

with requiring("unisim", "featherlane.integrations.unisim"):
    from unisim.backend.base import HeightScanner
    from unisim.backend.mujoco import backend as _module
    from unisim.backend.mujoco.backend import MuJoCoBackend
    from unisim.dr.types import (
        RESET_TERM_GEOM_SIZE,
        RESET_TERM_KD,
        RESET_TERM_KP,
        DomainRandomizationCapabilities,
    )
    from unisim.errors import UnsupportedCapabilityError

    from featherlane.integrations.unisim_rays import FeatherlaneRayCaster
    from featherlane.integrations.unisim_variants import GROUP, Recorder, declared

__all__ = ["FeatherlaneBackend", "FeatherlaneRayCaster", "Scanner", "create_backend", "use"]


class FeatherlaneBackend(MuJoCoBackend):
    """UniSim's `mujoco` backend with Featherlane's physics.

    Args:
        given, options: as for UniSim's `mujoco` backend.
        dtype: float64 or float32, of the state and of all arithmetic.

    Raises:
        unisim.UnsupportedCapabilityError: the scene, or a fixed variant of it, has a feature that Featherlane does not
            support.
    """

    def __init__(self, *given: Any, dtype: DTypeLike = "float64", **options: Any):
        self._dtype, self._models = dtype, LoadedModels()
        self._variants: Any = None  # Featherlane's model of a scene with fixed variants
        super().__init__(*given, **options)
        self._loaded_model()

    def _loaded_model(self):
        """Returns Featherlane's model of the scene, all of whose sensors are supported."""
        try:
            build = self._fixed_variant_build
            if build is not None and self._variants is None:
                self._variants = load(self._recorder.spec, variants={GROUP: declared(self._recorder, build.pack)})
                del self._recorder
            model = self._variants or self._models.of([self._model])[0]
            Batch(model, 1, 1).bind("sensordata")
            return model
        except ModelError as error:
            raise UnsupportedCapabilityError(f"featherlane: {error}") from error

    def _build_pool(self) -> Executor:  # pyright: ignore[reportIncompatibleMethodOverride]
        pool = Executor(self._loaded_model(), self.num_envs, self._n_threads, self._dtype, self._cpu_ids)
        if self._fixed_variant_build is not None:
            pool.set_variants(GROUP, self._fixed_variant_build.executor_assignment)
        pool.bind("qpos", self._np_dtype)[:] = self._qpos_view
        pool.bind("qvel", self._np_dtype)[:] = self._qvel_view
        pool.forward()
        return pool

    def executor(self) -> Executor:
        """Returns what steps the worlds; before `materialize`, a temporary executor in the initial state."""
        return self._build_pool() if self._pool is None else self._pool

    def get_dr_capabilities(self) -> DomainRandomizationCapabilities:
        found = super().get_dr_capabilities()
        if tuple(map(int, mujoco.__version__.split(".")[:2])) >= (3, 16):
            return found
        left = frozenset({RESET_TERM_GEOM_SIZE})  # an older mj_setConst does not recompute the bounding volumes
        return replace(
            found,
            supported_reset_terms=found.supported_reset_terms - left,
            supported_device_reset_terms=found.supported_device_reset_terms - left,
        )

    def _load_fixed_variant_build(self, *given: Any, **options: Any):
        self._recorder = Recorder()
        before, _module.VariantPack = _module.VariantPack, self._recorder  # whose `builder` UniSim calls
        try:
            return super()._load_fixed_variant_build(*given, **options)
        finally:
            _module.VariantPack = before

    def _reset_term_default_from_pool(self, term: str) -> np.ndarray:
        pool = self._pool
        if term == RESET_TERM_KP:
            return np.array(pool.values("actuator_gainprm")[:, :, 0], dtype=np.float64)
        if term == RESET_TERM_KD:
            return np.array(-pool.values("actuator_biasprm")[:, :, 2], dtype=np.float64)
        return np.array(pool.values(term), dtype=np.float64)

    def bind_height_scanner(
        self,
        *,
        hfield_geom_id: int,
        offsets: np.ndarray,
        frame_body_id: int,
        alignment: str = "yaw",
        output: str = "height",
    ) -> Scanner:
        points = np.array(offsets, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ArgumentError(f"offsets must have shape (num_points, 2), got {points.shape}")
        if output != "height":
            raise ArgumentError(f"featherlane: output={output!r}, allowed is 'height'")
        if alignment not in ("world", "yaw"):
            raise ArgumentError(f"featherlane: alignment={alignment!r}, allowed are 'world' and 'yaw'")
        if self._model.geom_type[hfield_geom_id] != int(mujoco.mjtGeom.mjGEOM_HFIELD):
            raise ArgumentError(f"featherlane: geom {hfield_geom_id} is no height field")
        return Scanner(self, int(hfield_geom_id), int(frame_body_id), points, alignment)

    def get_body_ipos(self, env_ids=None) -> np.ndarray:
        if env_ids is None or self._pool is None:
            return super().get_body_ipos(env_ids)
        return np.array(self._pool.values("body_ipos")[self._validate_env_ids(env_ids)], dtype=np.float64)


class Scanner(HeightScanner):
    """Samples a height field below a body.

    Args:
        backend: the worlds.
        given: arguments of `Executor.sample_hfield`.
    """

    def __init__(self, backend: FeatherlaneBackend, *given: Any):
        self._backend, self._given, self._dtype = backend, given, backend.get_init_qvel().dtype

    def scan(self) -> np.ndarray:
        """Returns the heights of the surface at the points, (num_envs, num_points) [m]."""
        return self._backend.executor().sample_hfield(*self._given).astype(self._dtype)


def create_backend(
    scene=None, num_envs: int = 1, sim_dt: float = 0.01, *, dtype: DTypeLike = "float64", **options
) -> Any:
    """Returns a backend with Featherlane's physics, not materialized yet.

    Args:
        scene: a `unisim.scene.SceneCfg`.
        num_envs: worlds.
        sim_dt: time step [s].
        dtype: float64 or float32, of the state and of all arithmetic.
        options: the other arguments of `unisim.create_backend("mujoco", ...)`.

    Raises:
        unisim.UnsupportedCapabilityError: the scene has a feature that Featherlane does not support.

    Source: unisim.create_backend.
    """
    create = import_module("unisim").create_backend
    with use(dtype):
        return create("mujoco", scene=scene, num_envs=num_envs, sim_dt=sim_dt, **options)


@contextmanager
def use(dtype: DTypeLike = "float64") -> Iterator[None]:
    """Constructs Featherlane's backend under UniSim's name `mujoco` until the end of the `with` block.

    UniSim 2.2 has a fixed list of backends and no registry for others.

    Args:
        dtype: float64 or float32, of the state and of all arithmetic.
    """

    class Chosen(FeatherlaneBackend):
        def __init__(self, *given: Any, **options: Any):
            super().__init__(*given, dtype=dtype, **options)

    Chosen.__name__ = Chosen.__qualname__ = FeatherlaneBackend.__name__  # UniSim's messages contain it
    before, _module.MuJoCoBackend = _module.MuJoCoBackend, Chosen
    try:
        yield
    finally:
        _module.MuJoCoBackend = before
