"""`mujoco.batch` on Featherlane: `Batch` with the signatures of `mujoco.batch.Batch`.

    from featherlane.integrations import mujoco_batch as batch   # instead of: from mujoco import batch
    simulations = batch.Batch(model, nsim=1024)
    simulations.ctrl = 0.5
    simulations.step()

Simulations run in parallel in the vector lanes of the CPU.  Results equal MuJoCo's up to rounding, because the engines
sum in different orders.  Any MuJoCo that Featherlane supports can be installed, also one without `mujoco.batch`.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from featherlane.integrations import batch_records as records
from featherlane.integrations.batch_arguments import (
    ACC,
    NONE,
    check_callbacks,
    checked_sim,
    checked_stage,
    checked_whole,
)
from featherlane.integrations.batch_arguments import checked_ids as _ids
from featherlane.integrations.batch_fields import (
    DATA_FIELDS,
    INTEGRATION,
    MODEL_FIELDS,
    STATE,
    WHOLE,
    computed,
    place,
    set_values,
    template,
    unbindable,
    unexpandable,
    values,
)
from featherlane.integrations.batch_named import KINDS, MODEL_KINDS, method
from featherlane.integrations.batch_named import structural as _structural
from featherlane.integrations.batch_warnings import Warnings
from featherlane.integrations.batch_worlds import Part, Worlds, step

__all__ = ["DATA_FIELDS", "MODEL_FIELDS", "Batch", "SimulationError"]

REFITTED = ("bvh_aabb", "light_pos0", "light_poscom0", "light_dir0")  # fields that mj_setConst sets for rendering
KEYS = {"key_time": "time", "key_qpos": "qpos", "key_qvel": "qvel", "key_act": "act", "key_ctrl": "ctrl"}
KEYS |= {"key_mpos": "mocap_pos", "key_mquat": "mocap_quat"}


class SimulationError(RuntimeError):
    """Reports errors in some simulations of a call: these kept their state, the others ran.

    Attributes:
        ids: numbers of the simulations; `Batch.error` returns the message of each.
    """

    def __init__(self, ids: np.ndarray, message: str, ncall: int | None = None):
        self.ids = ids
        shown = ", ".join(map(str, ids[:5])) + ", ..." * (len(ids) > 5)
        of = "" if ncall is None else f" of {ncall}"
        super().__init__(f"errors in {len(ids)}{of} simulations ({shown}); simulation {ids[0]}: {message}")


class Batch:
    """Steps nsim simulations of a copy of a model.

    Args:
        model: an MjModel.
        nsim: simulations.
        nthread: threads, 0 for one for each core.
        persistent: `get_data` computes the derived fields; required for models with sleep, as in MuJoCo.

    Attributes:
        model: the model that was given.
        status: (nsim,) int32, 1: the simulation's last call raised an error.

    Raises:
        ValueError: nsim or nthread out of range, a Python callback, a model with sleep that is not persistent.
        UnsupportedFeatureError: a feature that Featherlane does not support.

    Source: mujoco.batch.
    """

    def __init__(self, model: Any, nsim: int, nthread: int = 0, persistent: bool = False):
        if nsim < 1:
            raise ValueError("nsim must be positive")
        check_callbacks()
        if model.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_SLEEP) and not persistent:
            raise ValueError("models with sleep need a persistent batch: Batch(..., persistent=True)")
        self.model, self.persistent = model, persistent
        self._worlds = Worlds(model, int(nsim), max(int(nthread), 0))
        self._warnings = Warnings(self._worlds, model.nq)
        self.status = np.zeros(nsim, np.int32)
        self._status, self.status = self.status, self.status.view()
        self.status.flags.writeable = False
        self._errors: dict[int, str] = {}
        self._expanded: dict[str, np.ndarray] = {}
        self._whole: dict[str, np.ndarray] = {}  # outputs that are integers in MjData
        self._constant = False  # set_const was called
        self._models: Any = None  # as given to set_models

    @cached_property
    def template(self) -> Any:
        """Returns an MjData of the model, for shapes and types of fields."""
        return mujoco.MjData(self.model)

    @property
    def nsim(self) -> int:
        """Returns the number of simulations."""
        return self._worlds.nsim

    @property
    def nthread(self) -> int:
        """Returns the number of threads."""
        return self._worlds.base.nthread

    @property
    def nstate(self) -> int:
        """Returns the length of a state vector."""
        return self._worlds.rows.state.shape[1]

    @property
    def state(self) -> np.ndarray:
        """Returns the state vectors of mjSTATE_INTEGRATION, (nsim, nstate), live."""
        self._worlds.use_inputs()
        return self._worlds.rows.state

    @property
    def warning(self) -> np.ndarray:
        """Returns the warning counters, (nsim, mjNWARNING, 2) int32; the number is the last entry, the first is 0."""
        return self._warnings.numbers

    @property
    def models(self) -> Any:
        """Returns what `set_models` was given: None, an MjModel, or a tuple of one for each simulation."""
        return self._models

    def error(self, sim: int) -> str:
        """Returns the message of the error of a simulation's last call, or ''."""
        return self._errors.get(checked_sim(sim, self.nsim), "")

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> np.ndarray:
        if name in DATA_FIELDS:
            return self.bind(name)
        hint = "" if name.startswith("__") else place(name, DATA_FIELDS)
        raise AttributeError(f"'Batch' object has no attribute {name!r}{hint}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in DATA_FIELDS:
            object.__setattr__(self, name, value)
        elif name in STATE:
            self.bind(name)[...] = value
        else:
            raise computed(name)

    def bind(self, name: str) -> np.ndarray:
        """Returns a live array over a field of MjData: state, or an output that each call refreshes.

        Args:
            name: one of `DATA_FIELDS`.

        Returns:
            (nsim, ...) array; outputs are read-only, and zero until the next call.

        Raises:
            ValueError: another name.
            UnsupportedFeatureError: `sensordata` of a model with unsupported sensors.
        """
        if name not in DATA_FIELDS:
            raise unbindable(self.template, name)
        if name in self._whole:
            return self._whole[name]
        shape, worlds = template(self.template, name).shape, self._worlds  # type: ignore[union-attr]
        if name in STATE:
            worlds.use_inputs(name)
            rows = worlds.rows.state[:, worlds.rows.places[name]]
            return rows[:, 0] if name == "time" else rows.reshape(self.nsim, *shape)
        rows = worlds.bind(name)
        if name not in WHOLE:
            return rows.reshape(self.nsim, *shape)
        whole = self._whole[name] = np.zeros((self.nsim, *shape), np.int32)
        view = self._whole[name] = whole.view()
        view.flags.writeable = False
        return view

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

    def rows_of(self, field: str, view: np.ndarray, write: bool) -> np.ndarray | None:
        """Returns rows of a field of MjModel for named access; None if all simulations have the model's values."""
        if write and _structural(field, view) and field not in self._expanded:
            raise ValueError(f"{field} is structural: it is the same in every simulation")
        return self.expand(field) if write or field in self._expanded else self._expanded_values(field)

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, ids: ArrayLike | None = None, nstep: int = 1, stage: int = NONE) -> None:
        """Advances simulations by nstep steps; outputs are those of the last step's old state, as in mj_step.

        Args:
            ids: the simulations, ascending numbers or a mask; None for all.
            nstep: steps, at least 1.
            stage: mjtStage; if it is not mjSTAGE_NONE, outputs of the new state are computed, of all stages.

        Raises:
            SimulationError: a simulation has an invalid value of a field of the model; it keeps its state.
            ValueError: invalid ids, a Python callback.
            FatalError: nstep or stage out of range.
        """
        nstep, chosen = operator.index(nstep), self._ids(ids)
        if nstep < 1:
            raise mujoco.FatalError("step: nstep must be positive")
        stage, bad = checked_stage(stage), self._warnings.scan()
        failed = self._call(chosen, step(nstep))
        self._warnings.count(bad)
        if stage != NONE:
            self._call(np.setdiff1d(chosen, [*failed]), step(0))
        self._finish(chosen, failed)

    def forward(self, ids: ArrayLike | None = None, stage: int = ACC) -> None:
        """Computes the outputs of the present state; the arguments are those of `step`."""
        chosen, failed = self._ids(ids), {}
        if checked_stage(stage) != NONE:
            failed = self._call(chosen, step(0))
            self._warnings.skip(chosen)
        self._finish(chosen, failed)

    def reset(self, ids: ArrayLike | None = None, keyframe: ArrayLike = -1, stage: int = ACC) -> None:
        """Sets simulations to the model's defaults or to keyframes, and computes outputs.

        Args:
            ids: the simulations, ascending numbers or a mask; None for all.
            keyframe: a keyframe, or one for each simulation of the call; -1 for the defaults.
            stage: mjtStage; mjSTAGE_NONE computes no outputs.

        Raises:
            ValueError: an unknown keyframe, invalid ids.
        """
        chosen, worlds = self._ids(ids), self._worlds
        nkey = min((model.nkey for model in worlds.models or ()), default=self.model.nkey)
        keys = checked_whole(keyframe, (len(chosen),), -1, nkey, "keyframe")

        def do(parts: Sequence[Part]) -> None:
            for batch, sims, at in parts:
                batch.reset(sims, keys[at], forward=False)

        failed = self._call(chosen, do)
        self._warnings.clear(chosen)
        worlds.rows.state[chosen, worlds.rows.places["userdata"]] = 0.0
        for name in KEYS.keys() & self._expanded.keys():
            sims, key = chosen[keys >= 0], keys[keys >= 0]
            part = self._expanded[name][sims, key]
            worlds.rows.state[sims, worlds.rows.places[KEYS[name]]] = part.reshape(len(sims), -1)
        if checked_stage(stage) != NONE and worlds.bound:
            failed |= self._call(chosen, step(0))
        self._finish(chosen, failed)

    def rollout(
        self,
        nstep: int,
        control: ArrayLike | None = None,
        control_spec: int = records.CTRL,
        record: Sequence[Any] = ("qpos",),
        ids: ArrayLike | None = None,
        out: Mapping[Any, np.ndarray] | None = None,
    ) -> dict[Any, np.ndarray]:
        """Advances simulations by nstep steps and records fields after each.

        A simulation with a bad state, acceleration or control stops, and its remaining records repeat the last ones.

        Args:
            nstep: steps, at least 1.
            control: what broadcasts to (n, nstep, ncontrol), the inputs before each step; None: they do not change.
            control_spec: mjtState bits of the inputs.
            record: names of fields of MjData, or mjtState bits of state vectors.
            ids: the simulations, ascending numbers or a mask; None for all.
            out: arrays to record into, by item of `record`.

        Returns:
            item -> (n, nstep, ...); state after the step, outputs of the state before it.

        Raises:
            ValueError: invalid shapes, types or names.
            SimulationError: as `step`.
        """
        chosen = self._ids(ids)
        plan = records.Records(self.model, self.template, len(chosen), nstep, record, out)
        inputs = records.Inputs(self.model, len(chosen), nstep, control, control_spec)
        self._worlds.use_inputs(*inputs.fields)
        bad = self._warnings.scan()
        failed = self._call(chosen, lambda parts: records.roll(self._worlds, parts, plan, inputs))
        self._warnings.count(bad)
        self._finish(chosen, failed)
        return plan.out

    # ---- queries -----------------------------------------------------------------------------------------------------
    def jac(self, body: ArrayLike, point: ArrayLike, ids: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Returns Jacobians of points that move with bodies, in the present states.

        Args:
            body: number of a body, or one for each simulation of the call.
            point: what broadcasts to (n, 3), in world axes [m].
            ids: the simulations, ascending numbers or a mask; None for all.

        Returns:
            (jacp, jacr), each (n, 3, nv): velocity of the point and angular velocity of the body for each DoF.

        Source: MuJoCo mj_jac.
        """
        chosen, nv = self._ids(ids), self.model.nv
        bodies = checked_whole(body, (len(chosen),), 0, self.model.nbody, "body")
        points = np.broadcast_to(np.asarray(point, float), (len(chosen), 3))
        found = np.zeros((2, len(chosen), 3, nv))

        def do(parts: Sequence[Part]) -> None:
            for batch, sims, at in parts:
                places = self._worlds.every[: len(chosen)][at]
                for number in np.unique(bodies[at]).tolist():
                    these = np.flatnonzero(bodies[at] == number)
                    found[:, places[these]] = batch.jac(points[places[these]], number, sims[these])

        self._finish(chosen, self._call(chosen, do))
        return found[0], found[1]

    def ray(
        self,
        pnt: ArrayLike,
        vec: ArrayLike,
        geomgroup: ArrayLike | None = None,
        flg_static: bool = True,
        bodyexclude: ArrayLike = -1,
        ids: ArrayLike | None = None,
        normal: bool = False,
    ) -> tuple[np.ndarray, ...]:
        """Intersects rays with the geoms of each simulation in its present state.

        Args:
            pnt: start of the rays [m], what broadcasts to (n, nray, 3); (3,) is one ray.
            vec: directions, likewise.
            geomgroup: (6,) flags of the groups to test; None for all.
            flg_static: whether geoms that are welded to the world are tested.
            bodyexclude: a body whose geoms are not tested, -1 for none, what broadcasts to (n, nray).
            ids: the simulations, ascending numbers or a mask; None for all.
            normal: whether to return the surface normals.

        Returns:
            dist and geomid (n, nray), -1 without a hit; with `normal` also normals (n, nray, 3).

        Source: MuJoCo mj_ray.
        """
        chosen = self._ids(ids)
        n, starts, rays = len(chosen), np.atleast_2d(np.asarray(pnt, float)), np.atleast_2d(np.asarray(vec, float))
        shape = n, np.broadcast_shapes(starts.shape[:-1], rays.shape[:-1])[-1]
        starts, rays = np.broadcast_to(starts, (*shape, 3)), np.broadcast_to(rays, (*shape, 3))
        exclude = checked_whole(bodyexclude, shape, -1, self.model.nbody, "bodyexclude")
        distance, geom, normals = np.full(shape, -1.0), np.full(shape, -1, np.int32), np.zeros((*shape, 3))

        def do(parts: Sequence[Part]) -> None:
            for batch, sims, at in parts:
                hits = batch.ray(starts[at], rays[at], geomgroup, flg_static, exclude[at], ids=sims)
                distance[at], geom[at], normals[at] = hits

        self._finish(chosen, self._call(chosen, do))
        return (distance, geom, normals) if normal else (distance, geom)

    # ---- models ------------------------------------------------------------------------------------------------------
    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Recomputes the model fields that depend on expanded ones, by simulation, as mj_setConst.

        Raises:
            SimulationError: mj_setConst raised an error in some simulations.
            FatalError: the simulations have models of the caller (`set_models`).
        """
        chosen = self._ids(ids)
        self._refuse_models("set_const")
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
        one = isinstance(models, mujoco.MjModel)
        each = [models] * self.nsim if one else None if models is None else list(models)
        if each is not None:
            if len(each) != self.nsim:
                raise ValueError(f"set_models needs a model per simulation, got {len(each)} for {self.nsim}")
            if self._expanded or self._constant:
                raise mujoco.FatalError("set_models: the batch has per-simulation model fields (expand, set_const)")
        self._worlds.set_models(each)
        self._models = models if one or each is None else tuple(each)

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

    # ---- calls -------------------------------------------------------------------------------------------------------
    def _ids(self, ids: ArrayLike | None) -> np.ndarray:
        found = _ids(ids, self.nsim)
        return self._worlds.every if found is None else found.astype(np.int64)

    def _refuse_models(self, call: str) -> None:
        if self.models is not None:
            raise mujoco.FatalError(f"{call}: the simulations have models of the caller (set_models)")

    def _call(self, chosen: np.ndarray, do: Callable[[list[Part]], None]) -> dict[int, str]:
        """Runs a function of the parts of a call; returns the messages of the simulations with errors."""
        check_callbacks()
        return self._worlds.run(chosen, do) if len(chosen) else {}

    def _finish(self, chosen: np.ndarray, failed: Mapping[int, str]) -> None:
        """Refreshes integer outputs, sets `status`, and raises the error of the failed simulations."""
        for name, view in self._whole.items():
            rows, whole = self._worlds.bind(name), view.base
            if WHOLE.get(name):
                whole[:, 0] = rows.reshape(self.nsim, -1)[:, 0]
            else:
                whole[...] = rows.reshape(whole.shape)
        if self._errors:
            self._status[chosen] = 0
            self._errors = {sim: text for sim, text in self._errors.items() if self._status[sim]}
        if failed:
            ids = np.array(sorted(failed))
            self._status[ids], self._errors = 1, self._errors | dict(failed)
            raise SimulationError(ids, failed[int(ids[0])], len(chosen))


for _kind in (*KINDS, *MODEL_KINDS):
    setattr(Batch, _kind, method(_kind))
