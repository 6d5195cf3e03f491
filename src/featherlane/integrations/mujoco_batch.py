"""`mujoco.batch` on Featherlane: `Batch` with the signatures of `mujoco.batch.Batch`.

    from featherlane.integrations import mujoco_batch as batch   # instead of: from mujoco import batch
    simulations = batch.Batch(model, nsim=1024)
    simulations.ctrl = 0.5
    simulations.step()

Simulations run in parallel in the vector lanes of the CPU.  Results equal MuJoCo's up to rounding, because the engines
sum in different orders.  Any MuJoCo that Featherlane supports can be installed, also one without `mujoco.batch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from featherlane.integrations.batch import records
from featherlane.integrations.batch.arguments import ACC, NONE, checked_number, checked_stage, checked_whole
from featherlane.integrations.batch.arguments import checked_ids as _ids  # noqa: F401
from featherlane.integrations.batch.calls import SimulationError
from featherlane.integrations.batch.fields import (
    DATA_FIELDS,
    MODEL_FIELDS,
    STATE,
    WHOLE,
    computed,
    place,
    template,
    unbindable,
)
from featherlane.integrations.batch.models import Models
from featherlane.integrations.batch.named import KINDS, MODEL_KINDS, method
from featherlane.integrations.batch.named import structural as _structural
from featherlane.integrations.batch.worlds import Part, step

__all__ = ["DATA_FIELDS", "MODEL_FIELDS", "Batch", "SimulationError"]


class Batch(Models):
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

    @property
    def nstate(self) -> int:
        """Returns the length of a state vector."""
        return self._worlds.rows.state.shape[1]

    @property
    def state(self) -> np.ndarray:
        """Returns the state vectors of mjSTATE_INTEGRATION, (nsim, nstate), live."""
        self._worlds.use_inputs()
        return self._worlds.rows.state

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
            return self._whole[name][1]
        shape, worlds = template(self.template, name).shape, self._worlds  # type: ignore[union-attr]
        if name in STATE:
            worlds.use_inputs(name)
            rows = worlds.rows.state[:, worlds.rows.places[name]]
            return rows[:, 0] if name == "time" else rows.reshape(self.nsim, *shape)
        rows = worlds.bind(name)
        if name not in WHOLE:
            return rows.reshape(self.nsim, *shape)
        whole = np.zeros((self.nsim, *shape), np.int32)
        self._whole[name] = whole, whole.view()
        self._whole[name][1].flags.writeable = False
        return self._whole[name][1]

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
            stage: mjtStage; outputs up to this stage are those of the new state.

        Raises:
            SimulationError: a simulation has an invalid value of a field of the model; it keeps its state.
            ValueError: invalid ids, a Python callback.
            FatalError: nstep or stage out of range.
        """
        nstep, chosen = checked_number(nstep, "nstep"), self.chosen(ids)
        if nstep < 1:
            raise mujoco.FatalError("step: nstep must be positive")
        failed = self._call(chosen, step(nstep, checked_stage(stage)))
        self._warnings.count()
        self._finish(chosen, failed)

    def forward(self, ids: ArrayLike | None = None, stage: int = ACC) -> None:
        """Computes the outputs of the present state; the arguments are those of `step`.

        A simulation with a bad position or velocity is reset and counted, as in a step.
        """
        chosen = self.chosen(ids)
        self._finish(chosen, {} if checked_stage(stage) == NONE else self._forward(chosen))

    def _forward(self, chosen: np.ndarray) -> dict[int, str]:
        failed = self._call(chosen, step(0))
        sims, kinds = self._warnings.count(stepped=False)
        if sims.size and not self._worlds.model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_AUTORESET):
            failed |= self._reset(sims)
            self._warnings.restart(sims, kinds)
            failed |= self._call(sims, step(0))
            self._warnings.count(stepped=False)
        return failed

    def reset(self, ids: ArrayLike | None = None, keyframe: ArrayLike = -1, stage: int = ACC) -> None:
        """Sets simulations to the model's defaults or to keyframes, and computes outputs.

        Args:
            ids: the simulations, ascending numbers or a mask; None for all.
            keyframe: a keyframe, or one for each simulation of the call; -1 for the defaults.
            stage: mjtStage; mjSTAGE_NONE computes no outputs.

        Raises:
            ValueError: an unknown keyframe, invalid ids.
        """
        chosen, worlds, stage = self.chosen(ids), self._worlds, checked_stage(stage)
        nkey = np.array([model.nkey for model in worlds.models])[chosen] if worlds.models else self.model.nkey
        keys = checked_whole(keyframe, (len(chosen),), -1, np.max(nkey, initial=0), "keyframe")
        wrong = chosen[np.flatnonzero(keys >= nkey)]
        if wrong.size:
            raise ValueError(f"keyframe: the model of simulation {wrong[0]} has no such keyframe")

        failed = self._reset(chosen)
        if (keys >= 0).any():
            self._set_keyframes(chosen[keys >= 0], keys[keys >= 0])
        if stage != NONE and worlds.bound:
            failed |= self._forward(chosen)
        self._finish(chosen, failed)

    def _reset(self, chosen: np.ndarray) -> dict[int, str]:
        def do(parts: Sequence[Part]) -> None:
            for batch, sims, _ in parts:
                batch.reset(sims, forward=False)

        failed, rows = self._call(chosen, do), self._worlds.rows
        self._warnings.clear(chosen)
        rows.state[chosen, rows.places["userdata"]] = 0.0
        return failed

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
        nstep, chosen = checked_number(nstep, "nstep"), self.chosen(ids)
        plan = records.Records(self.model, self.template, len(chosen), nstep, record, out)
        inputs = records.inputs_of(self.model, len(chosen), nstep, control, control_spec)
        self._worlds.use_inputs(*inputs)
        failed = self._call(chosen, lambda parts: records.roll(self._worlds, parts, plan, inputs))
        self._warnings.count()
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
        chosen, nv = self.chosen(ids), self.model.nv
        bodies = checked_whole(body, (len(chosen),), 0, self.model.nbody, "body")
        points = np.broadcast_to(np.asarray(point, float), (len(chosen), 3))
        found = np.zeros((2, len(chosen), 3, nv))

        def do(parts: Sequence[Part]) -> None:
            for batch, sims, at in parts:
                found[:, at] = batch.jac(points[at], bodies[at], ids=sims)

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
        chosen = self.chosen(ids)
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


for _kind in (*KINDS, *MODEL_KINDS):
    setattr(Batch, _kind, method(_kind))
