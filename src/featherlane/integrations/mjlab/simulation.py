"""`Simulation`: mjlab's simulation class, with the physics of a `featherlane.Batch`."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import torch
import warp  # pyright: ignore[reportMissingImports]
from mjlab.entity.variants import VARIANT_DEPENDENT_FIELDS  # pyright: ignore[reportMissingImports]
from mjlab.managers.event_manager import RecomputeLevel  # pyright: ignore[reportMissingImports]
from mjlab.sim import sim as mjlabs  # pyright: ignore[reportMissingImports]
from mjlab.utils.nan_guard import NanGuard  # pyright: ignore[reportMissingImports]

from featherlane import Batch, Model, load
from featherlane.errors import ArgumentError, ModelError, UnsupportedFeatureError
from featherlane.extension import compile_source, dependent_fields
from featherlane.integrations.mjlab.tensors import DataTensors, ModelTensors, check_device, worlds_that_differ
from featherlane.integrations.mjlab.variants import assigned, declared, shown

# mjlab's randomization of geom sizes computes the bounding volumes itself; MuJoCo 3.11 does not
VOLUMES = ("geom_rbound", "geom_aabb")
BOTH = ("eq_data", "geom_fluid", "tendon_lengthspring")  # dependent fields with parts that others do not determine
MESH_AND_MATERIAL = {"geom_dataid": "geom_variant", "geom_matid": "geom_material"}
Original = mjlabs.Simulation  # mjlab's class, also while it is replaced


class Simulation(Original):
    """Steps the worlds of an mjlab environment.

    Args:
        num_envs: worlds.
        cfg: mjlab's configuration.  `mujoco` and `nan_guard` are used; sizes and options of mujoco_warp (`nconmax`,
            `njmax`, `contact_sensor_maxmatch`, `broadphase`) have no effect.
        model: the compiled model, or
        spec: the scene to compile.
        device: "cpu".
        variant_info: the entities of the scene with mesh variants.

    Attributes:
        batch: the `featherlane.Batch`, (num_envs) worlds.
        data: tensors of the state, the inputs and the outputs.
        model: tensors of the model's fields.
        mj_model: the compiled `mujoco.MjModel`.

    Raises:
        UnsupportedFeatureError: a feature of the model.
        ModelError: another device than the CPU, or an invalid assignment of variants.

    Source: mjlab.sim.Simulation 1.6.0.
    """

    dtype = "float32"
    nthread = 0

    def __init__(
        self,
        num_envs: int,
        cfg: mjlabs.SimulationCfg,
        model: mujoco.MjModel | None = None,
        device: str = "cpu",
        *,
        spec: mujoco.MjSpec | None = None,
        variant_info: list[tuple[str, Any]] | None = None,
    ):
        check_device(device)
        if spec is None and model is None:
            raise ArgumentError("Either model or spec must be provided.")
        mj_model: Any = compile_source(spec).mj_model if spec is not None else model
        cfg.mujoco.apply(mj_model)
        self.cfg, self.device, self.num_envs = cfg, device, num_envs
        self.wp_device = warp.get_device(device)
        if spec is not None and variant_info:
            scene = spec.copy()
            cfg.mujoco.apply(SimpleNamespace(opt=scene.option))  # type: ignore[arg-type]
            self.batch = self.new_batch(load(scene, variants=declared(variant_info)))
        else:
            self.batch = self.new_batch(load(mj_model))
        self.batch.mute()  # mjlab's terminations report non-finite worlds
        self.batch.forward()
        self._mj_model, self._mj_data = mj_model, mujoco.MjData(mj_model)
        mujoco.mj_forward(mj_model, self._mj_data)
        self._default_model_fields: dict[str, torch.Tensor] = {}
        self._per_world_default_fields: set[str] = set()
        self._expanded_fields: set[str] = set()
        self._world_to_variant: dict[str, torch.Tensor] = {}
        self._data_bridge: Any = DataTensors(self.batch)
        self._model_bridge: Any = ModelTensors(self.batch, mj_model)
        self._constants: dict[str, np.ndarray] = {}  # inputs of the last `recompute_constants`
        self._sensor_context: Any = None
        self._set_variants(variant_info or [])
        self.use_cuda_graph = False
        self.nan_guard = NanGuard(cfg.nan_guard, num_envs, mj_model)

    def new_batch(self, model: Model) -> Batch:
        """Returns a batch of the model; a subclass may choose other settings."""
        return Batch(model, self.num_envs, self.nthread, dtype=self.dtype)

    def _set_variants(self, variant_info: list[tuple[str, Any]]) -> None:
        """Gives the worlds their variants; fields that depend on them differ by world from now on, as in mjlab."""
        for prefix, metadata in variant_info:
            numbers = assigned(prefix, metadata, self.num_envs)
            for k, name in enumerate(metadata.variant_names):
                self.batch.set_variant(prefix, name, ids=numbers == k)
            self._world_to_variant[prefix.rstrip("/")] = torch.from_numpy(numbers)
        if variant_info:
            self.expand_model_fields(VARIANT_DEPENDENT_FIELDS)
            for name in VARIANT_DEPENDENT_FIELDS:
                self._default_model_fields[name] = getattr(self._model_bridge, name).clone()
            self._per_world_default_fields.update(VARIANT_DEPENDENT_FIELDS)
            for name, field in MESH_AND_MATERIAL.items():
                self._model_bridge.__dict__[name] = shown(self.batch, name, field, self._mj_model)
            self._expanded_fields.update(MESH_AND_MATERIAL)
            self.batch.forward()

    def create_graph(self) -> None:
        """Does nothing: the CPU has no graphs."""

    @property
    def wp_model(self) -> Any:
        """Raises an error, because there is no model of mujoco_warp.

        Raises:
            UnsupportedFeatureError: always.
        """
        raise UnsupportedFeatureError(["sim.wp_model"], what="not available: Featherlane has no model of mujoco_warp")

    @property
    def wp_data(self) -> Any:
        """Raises an error, because there is no data of mujoco_warp.

        Raises:
            UnsupportedFeatureError: always.
        """
        raise UnsupportedFeatureError(["sim.wp_data"], what="not available: Featherlane has no data of mujoco_warp")

    def expand_model_fields(self, fields: tuple[str, ...]) -> None:
        """Gives fields of the model separate values in each world (domain randomization).

        Args:
            fields: names of the model's fields.

        Raises:
            ModelError: an unknown field.
            UnsupportedFeatureError: a field that all worlds share.
        """
        unknown = [name for name in fields if not hasattr(self._mj_model, name)]
        if unknown:
            raise ModelError(f"Fields not found in model: {unknown}")
        self._model_bridge.expand(tuple(name for name in fields if name not in self._expanded_fields))
        self._expanded_fields.update(fields)

    def recompute_constants(self, level: RecomputeLevel) -> None:
        """Recomputes the model fields that depend on others, in the worlds whose fields were edited.

        Args:
            level: all levels recompute all of these fields.
        """
        if level == RecomputeLevel.none:
            return
        self._model_bridge.push()
        others = {*self._dependent, *VOLUMES, "geom_size"} - {*BOTH}
        inputs = {name: array for name, array in self.batch.expanded_fields.items() if name not in others}
        worlds = worlds_that_differ(self._constants, inputs, self.num_envs)
        if len(worlds):
            self.set_constants(worlds, tuple(inputs))
            self._model_bridge.forget()
            self._model_bridge.pull()
            self._constants = {name: array.copy() for name, array in inputs.items()}

    @functools.cached_property
    def _dependent(self) -> list[str]:
        """Returns the fields that `recompute_constants` sets."""
        (found,) = dependent_fields(self.batch.model, [{}])
        return [name for name in found if name not in VOLUMES]

    def set_constants(self, worlds: np.ndarray, inputs: tuple[str, ...]) -> None:
        """Recomputes the dependent fields of worlds.

        Only fields that differ from the model's get separate values, because each one takes time in every step:
        `Batch.set_const` would give them to 17 fields, and a step of the Go1 would take 1.2 times as long.

        Args:
            worlds: (n,) numbers.
            inputs: the fields that differ by world and do not depend on others alone.
        """
        batch, model = self.batch, self.batch.model
        fields = batch.expanded_fields
        rows = ({name: fields[name][w].astype(np.float64) for name in inputs} for w in worlds)
        found = dependent_fields(model, rows)
        for name in self._dependent:
            rows = np.stack([values[name] for values in found])
            if name in fields or (rows != getattr(model, name)).any():
                batch.expand(name)[worlds] = rows

    def forward(self) -> None:
        """Computes all outputs of the present state."""
        self._push()
        self.batch.forward()
        self._data_bridge.pull()

    def step(self) -> None:
        """Advances all worlds by one time step.

        A world whose state became non-finite has NaN in `data.qpos` and `data.qvel` afterwards, as in mjlab, so that
        the termination `nan_detection` ends its episode.
        """
        with self.nan_guard.watch(self.data):
            self._push()
            before = self.batch.nreset.copy()
            self.batch.step()
            failed = self.batch.nreset != before
            if failed.any():
                self._data_bridge.mark(np.flatnonzero(failed))
            self._data_bridge.pull()

    def reset(self, env_ids: torch.Tensor | None = None) -> None:
        """Sets worlds to the model's default state, with zero inputs.

        Args:
            env_ids: the worlds, as an index of a tensor; None for all.
        """
        chosen = torch.ones(self.num_envs, dtype=torch.bool)
        if env_ids is not None:
            chosen[:] = False
            chosen[env_ids] = True
        worlds = np.flatnonzero(chosen.numpy())
        self._push()
        self.batch.reset(worlds, forward=False)
        self._data_bridge.clear(worlds)

    def sense(self) -> None:
        """Computes the images of cameras, and casts the rays of all ray and height sensors."""
        context = self._sensor_context
        if context is None:
            return
        context.prepare()
        for sensor in context.raycast_sensors:
            sensor.raycast_kernel(rc=None)  # type: ignore[arg-type]
        if context.camera_sensors:
            self._push()
            context.render(self._model_bridge)
        context.finalize()

    def _push(self) -> None:
        """Copies edits of tensors to the batch."""
        self._data_bridge.push()
        self._model_bridge.push()
