"""Models of the simulations of `mujoco_batch.Batch`: expanded fields, constants, models of the caller."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from featherlane.integrations.batch.arguments import checked_sim
from featherlane.integrations.batch.calls import Calls
from featherlane.integrations.batch.fields import INTEGRATION, MODEL_FIELDS, set_values, unexpandable, values

KEYS = {"key_time": "time", "key_qpos": "qpos", "key_qvel": "qvel", "key_act": "act", "key_ctrl": "ctrl"}
KEYS |= {"key_mpos": "mocap_pos", "key_mquat": "mocap_quat", "key_plastic": "plastic"}
REFITTED = ("bvh_aabb", "light_pos0", "light_poscom0", "light_dir0")  # fields that mj_setConst sets for rendering


class Models(Calls):
    """Gives each simulation its own values of model fields, or its own model."""

    def __init__(self, model: Any, nsim: int, nthread: int = 0, persistent: bool = False):
        super().__init__(model, nsim, nthread, persistent)
        self._expanded: dict[str, np.ndarray] = {}
        self._constant = False  # set_const was called
        self._models: Any = None  # as given to set_models

    @property
    def models(self) -> Any:
        """Returns what `set_models` was given: None, an MjModel, or a tuple of one for each simulation."""
        return self._models

    def _refuse_models(self, call: str) -> None:
        if self.models is not None:
            raise mujoco.FatalError(f"{call}: the simulations have models of the caller (set_models)")

    def expand(self, name: str) -> np.ndarray:
        """Gives a field of MjModel separate values in each simulation, as for domain randomization.

        After a write to a field that others depend on (masses, sizes, ...), call `set_const`.

        Args:
            name: one of `MODEL_FIELDS`; options as `opt.timestep`.

        Returns:
            (nsim, ...) live array.  Fields that Featherlane does not read only change the models of `get_model`.

        Raises:
            ValueError: another name.
            FatalError: the simulations have models of the caller (`set_models`).
        """
        if name in self._expanded:
            return self._expanded[name]
        if name not in MODEL_FIELDS:
            raise unexpandable(self.model, name)
        self._refuse_models("expand")
        rows = self._worlds.expand(name)
        if name == "bvh_aabb":  # those of bodies precede those of meshes
            end = int(self.model.mesh_bvhadr[self.model.mesh_bvhnum > 0].min(initial=self.model.nbvhstatic))
            rows = self._worlds.own[name] = np.ascontiguousarray(rows[:, :end])
        self._expanded[name] = rows
        if name in REFITTED and self._constant:
            self._refit(self._worlds.every, [name])
        return rows

    def expanded(self, name: str) -> np.ndarray | None:
        """Returns a read-only array of a field's per-simulation values; None if all simulations have the model's.

        Raises:
            ValueError: a name that is not in `MODEL_FIELDS`.
        """
        if name not in MODEL_FIELDS:
            raise unexpandable(self.model, name)
        return self._expanded_values(name)

    def _expanded_values(self, name: str) -> np.ndarray | None:
        rows = self._worlds.expanded(name)
        if rows is not None:
            rows = rows.view()
            rows.flags.writeable = False
        return rows

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Recomputes the model fields that depend on expanded ones, by simulation, as mj_setConst.

        Raises:
            SimulationError: mj_setConst raised an error in some simulations.
            FatalError: the simulations have models of the caller (`set_models`).
        """
        chosen = self.chosen(ids)
        self._refuse_models("set_const")
        if not self._expanded:
            return
        failed = self._worlds.set_const(chosen)
        self._constant = True
        self._refit(np.setdiff1d(chosen, [*failed]), [name for name in REFITTED if name in self._expanded])
        self._finish(chosen, failed)

    def _refit(self, sims: np.ndarray, names: Sequence[str]) -> None:
        """Sets expanded fields that mj_setConst computes and Featherlane does not read."""
        for sim in sims if names else ():
            model = self._model(sim, skipped=names)
            for name in names:
                self._expanded[name][sim] = values(model, name)[: self._expanded[name].shape[1]]

    def set_models(self, models: Any) -> None:
        """Sets the model of each simulation.

        Models may differ in all values, with the sizes of the batch's model.  Set them again after an edit.

        Args:
            models: an MjModel for each simulation, one for all, or None for the batch's model.

        Raises:
            ValueError: the number of models is not nsim.
            FatalError: a model of other sizes; a field is expanded.
            UnsupportedFeatureError: a model with a feature that Featherlane does not support.
        """
        if models is None and self._models is None:
            return
        one = isinstance(models, mujoco.MjModel)
        each = [models] * self.nsim if one else None if models is None else list(models)
        if each is not None:
            if len(each) != self.nsim:
                raise ValueError(f"set_models needs a model per simulation, got {len(each)} for {self.nsim}")
            if self._expanded:
                raise mujoco.FatalError("set_models: the batch has per-simulation model fields (expand, set_const)")
        self._worlds.set_models(each)
        self._models = models if one or each is None else tuple(each)

    def _set_keyframes(self, sims: np.ndarray, keys: np.ndarray) -> None:
        """Sets the state of simulations to that of a keyframe of each one's model."""
        state, places, models = self._worlds.rows.state, self._worlds.rows.places, self._worlds.models
        for name, field in KEYS.items():
            if name not in MODEL_FIELDS:
                continue
            if models is not None:
                rows = np.stack([getattr(models[sim], name)[key] for sim, key in zip(sims, keys, strict=True)])
            elif name in self._expanded:
                rows = self._expanded[name][sims, keys]
            else:
                rows = getattr(self._worlds.model, name)[keys]
            state[sims, places[field]] = rows.reshape(len(sims), math.prod(rows.shape[1:]))

    def get_model(self, sim: int, model: Any = None) -> Any:
        """Returns the MjModel of a simulation, with its expanded fields.

        Args:
            sim: the simulation.
            model: an MjModel of the same sizes to write into; None for a new one.
        """
        return self._model(checked_sim(sim, self.nsim), model)

    def _model(self, sim: int, model: Any = None, skipped: Sequence[str] = ()) -> Any:
        source = self._worlds.model if self._worlds.models is None else self._worlds.models[sim]
        if model is None:
            model = copy.copy(source)
        else:
            for name in MODEL_FIELDS:
                set_values(model, name, values(source, name))
        if self.models is not None:
            return model
        expanded = {name: rows for name in MODEL_FIELDS if (rows := self._worlds.expanded(name)) is not None}
        for again in range(1 + self._constant):
            for name in expanded.keys() - {*skipped}:
                set_values(model, name, expanded[name][sim])
            if self._constant and not again:  # fields that Featherlane does not read
                mujoco.mj_setConst(model, mujoco.MjData(model))
        return model

    def get_data(self, sim: int, data: Any = None) -> Any:
        """Returns the state of a simulation as an MjData; a persistent batch also computes its derived fields.

        Args:
            sim: the simulation.
            data: an MjData to write into; None for a new one.
        """
        sim = checked_sim(sim, self.nsim)
        data = mujoco.MjData(self.model) if data is None else data
        model = self.get_model(sim) if self.persistent else self.model
        mujoco.mj_setState(model, data, self._worlds.rows.state[sim], INTEGRATION)
        if self.persistent:
            mujoco.mj_forward(model, data)
        return data
