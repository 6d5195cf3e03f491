"""`mjbatch` on Featherlane: `Batch` with the signatures of `mjbatch.Batch`.

    from featherlane.integrations.mjbatch import Batch   # instead of: from mjbatch import Batch
    batch = Batch(model, num_sims=4096)
    qpos, ctrl = batch.bind("qpos"), batch.bind("ctrl")
    ctrl[:] = 0.5
    batch.step()

Simulations run in parallel in the vector lanes of the CPU.  Results equal MuJoCo's up to rounding, because the engines
sum in different orders.  mjbatch does not need to be installed.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.extension import cores
from featherlane.integrations import mujoco_batch
from featherlane.integrations.batch.arguments import ACC, NONE
from featherlane.integrations.batch.fields import DATA_FIELDS, MODEL_FIELDS, STATE, near, template, values
from featherlane.integrations.mirrors import Mirrors, bits

__all__ = ["Actuator", "Batch", "Body", "Joint", "Site"]

QPOS_SIZE, DOF_SIZE = (7, 4, 1, 1), (6, 3, 1, 1)  # by mjtJoint: free, ball, slide, hinge
SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
FLOATS, INTEGERS = (np.dtype(np.float64), np.dtype(np.float32)), (np.dtype(np.int32), np.dtype(np.int64))
MODEL_NAMES = {name.removeprefix("opt."): name for name in MODEL_FIELDS}  # options without `opt.`


@dataclass(frozen=True)
class Joint:
    """Holds a joint's coordinates (num_sims, 7, 4 or 1) and velocities (num_sims, 6, 3 or 1), live."""

    qpos: np.ndarray
    qvel: np.ndarray


@dataclass(frozen=True)
class Actuator:
    """Holds an actuator's control and force [N or N m], each (num_sims,), live."""

    ctrl: np.ndarray
    force: np.ndarray


@dataclass(frozen=True)
class Body:
    """Holds a body's position (num_sims, 3) [m], quaternion (num_sims, 4) and `cvel` (num_sims, 6), live."""

    xpos: np.ndarray
    xquat: np.ndarray
    cvel: np.ndarray


@dataclass(frozen=True)
class Site:
    """Holds a site's position (num_sims, 3) [m] and rotation matrix (num_sims, 9), live."""

    xpos: np.ndarray
    xmat: np.ndarray


class Batch:
    """Steps num_sims simulations of a copy of a model.

    Calls from several threads are serialized.

    Args:
        model: an MjModel.
        num_sims: simulations.
        num_threads: threads, 0 for one for each core.
        forward: whether each step ends with a forward pass, so that derived fields are those of the new state.

    Attributes:
        model: the model that was given, for names, ids and sizes.

    Raises:
        ValueError: num_sims out of range, a model with sleep.
        UnsupportedFeatureError: a feature that Featherlane does not support; a ValueError.

    Source: mjbatch 0.1.4.
    """

    def __init__(self, model: Any, num_sims: int, num_threads: int = 0, forward: bool = False):
        if operator.index(num_sims) < 1:
            raise ValueError(f"num_sims must be at least 1, got {num_sims}")
        if model.opt.enableflags & SLEEP:
            raise ValueError("sleep is not supported")
        self.model, self._forward = model, bool(forward)
        threads = num_threads if num_threads > 0 else cores()
        self._batch = mujoco_batch.Batch(model, num_sims, min(int(threads), num_sims))
        self._rows = self._batch.state_rows
        self._seen = self._rows.copy()  # the states at the end of each simulation's last call
        self._bound: dict[str, np.ndarray] = {}  # as `bind` returned them
        self._expanded: dict[str, np.ndarray] = {}  # as `expand` returned them
        self._mirrors, self._model_mirrors = Mirrors(), Mirrors()  # of fields of MjData and of MjModel
        self._lock = threading.RLock()

    @property
    def num_sims(self) -> int:
        """Returns the number of simulations."""
        return self._batch.nsim

    @property
    def num_threads(self) -> int:
        """Returns the number of threads."""
        return self._batch.nthread

    @property
    def nstate(self) -> int:
        """Returns the length of a state vector of mjSTATE_INTEGRATION."""
        return self._rows.shape[1]

    # ---- fields ------------------------------------------------------------------------------------------------------
    def bind(self, name: str, dtype: DTypeLike | None = None) -> np.ndarray:
        """Returns a live array over a field of MjData.

        State fields of type float64 are views of the state vectors.  Arrays of another type are copies: each call reads
        their changed elements and refreshes them.  Derived fields are zero until the next call.

        Args:
            name: a field of MjData, `state` (vectors of mjSTATE_INTEGRATION), or `warning` (counters).
            dtype: float32 for a copy of a float64 field; None for the field's type.

        Returns:
            (num_sims, ...) array.

        Raises:
            ValueError: an unknown field, another dtype, a field that is bound with another dtype.
            UnsupportedFeatureError: `sensordata` of a model with unsupported sensors.
        """
        with self._lock:
            if name in ("state", "warning"):
                rows = self._batch.state if name == "state" else self._batch.warning
                own = rows.dtype
            elif name in DATA_FIELDS:
                rows = self._batch.bind(name).view()
                rows.flags.writeable = True  # as in mjbatch; calls overwrite what is written to derived fields
                own = template(self._batch.template, name).dtype  # type: ignore[union-attr]
            else:
                raise _unknown(name, DATA_FIELDS, MODEL_NAMES, "MjModel", "expand")
            wanted = _checked_dtype(name, own, dtype, single=name != "state")
            if name not in self._bound:
                self._bound[name] = self._mirrors.shown(name, rows, wanted, name in STATE)
            return _of_type(name, self._bound[name], wanted)

    def expand(self, name: str, dtype: DTypeLike | None = None) -> np.ndarray:
        """Gives a field of MjModel separate values in each simulation, as for domain randomization.

        After a write to a field that others depend on (masses, sizes, ...), call `set_const`.

        Args:
            name: a field of MjModel, or of its options without `opt.` (`gravity`, `timestep`).
            dtype: float32 for a copy of a float64 field; None for the field's type.

        Returns:
            (num_sims, ...) live array; options have (num_sims,) or (num_sims, size).

        Raises:
            ValueError: an unknown field, asset data, another dtype, a field that is expanded with another dtype.
        """
        with self._lock:
            if name not in MODEL_NAMES:
                if isinstance(getattr(self.model, str(name), None), np.ndarray):
                    raise ValueError(f"{name} is asset data, which all simulations share")
                raise _unknown(name, MODEL_NAMES, DATA_FIELDS, "MjData", "bind")
            wanted = _checked_dtype(name, values(self.model, MODEL_NAMES[name]).dtype, dtype)
            if name not in self._expanded:
                rows = self._batch.expand(MODEL_NAMES[name])
                self._expanded[name] = shown = self._model_mirrors.shown(name, rows, wanted)
                rows[...] = shown  # rounded, as the caller reads them
            return _of_type(name, self._expanded[name], wanted)

    def sensor(self, name: str, dtype: DTypeLike | None = None) -> np.ndarray:
        """Returns the values of a sensor, (num_sims, dim), live; `dtype` as for `bind`."""
        sensor = self.model.sensor(name)
        return self.bind("sensordata", dtype)[:, sensor.adr[0] : sensor.adr[0] + sensor.dim[0]]

    def joint(self, name: str, dtype: DTypeLike | None = None) -> Joint:
        """Returns the coordinates and velocities of a joint; `dtype` as for `bind`."""
        joint = self.model.joint(name)
        kind, q, v = joint.type.item(), joint.qposadr.item(), joint.dofadr.item()
        qpos, qvel = self.bind("qpos", dtype), self.bind("qvel", dtype)
        return Joint(qpos[:, q : q + QPOS_SIZE[kind]], qvel[:, v : v + DOF_SIZE[kind]])

    def actuator(self, name: str, dtype: DTypeLike | None = None) -> Actuator:
        """Returns the control and the force of an actuator; `dtype` as for `bind`."""
        return Actuator(*self._columns(self.model.actuator(name).id, dtype, "ctrl", "actuator_force"))

    def body(self, name: str, dtype: DTypeLike | None = None) -> Body:
        """Returns the pose and the velocity of a body; `dtype` as for `bind`."""
        return Body(*self._columns(self.model.body(name).id, dtype, "xpos", "xquat", "cvel"))

    def site(self, name: str, dtype: DTypeLike | None = None) -> Site:
        """Returns the pose of a site; `dtype` as for `bind`."""
        return Site(*self._columns(self.model.site(name).id, dtype, "site_xpos", "site_xmat"))

    def _columns(self, column: int, dtype: DTypeLike | None, *names: str) -> list[np.ndarray]:
        return [self.bind(name, dtype)[:, column] for name in names]

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, ids: ArrayLike | None = None, nstep: int = 1, history: np.ndarray | None = None) -> None:
        """Advances simulations by nstep steps; derived fields are those of the last step's old state, as in mj_step.

        Args:
            ids: the simulations, ascending numbers or a mask; None for all.
            nstep: steps, at least 1.
            history: (n, nstep, nstate) float64, filled with the state vectors after each step.

        Raises:
            RuntimeError: a simulation has an invalid value of a field of the model; it keeps its state.
            ValueError: invalid arguments, a simulation with sleep.
        """
        nstep = operator.index(nstep)
        if nstep < 1:
            raise ValueError(f"nstep must be at least 1, got {nstep}")
        stage = ACC if self._forward else NONE
        if history is not None:
            axes = {"sims": len(self._chosen(ids)), "nstep": nstep, "nstate": self.nstate}
            _checked_array("history", history, axes, FLOATS[:1], output=True)

        def do(chosen: np.ndarray) -> None:
            if history is None:
                return self._batch.step(chosen, nstep, stage)
            good, error = np.arange(len(chosen)), None
            for k in range(nstep):
                try:
                    self._batch.step(chosen[good], 1, stage if k == nstep - 1 else NONE)
                except mujoco_batch.SimulationError as failed:
                    good, error = good[~np.isin(chosen[good], failed.ids)], failed
                history[good, k] = self._rows[chosen[good]]
            if error is not None:
                raise error

        self._run(ids, do)

    def forward(self, ids: ArrayLike | None = None) -> None:
        """Computes the derived fields of the present states; the arguments are those of `step`."""
        self._run(ids, self._batch.forward)

    def reset(self, ids: ArrayLike | None = None, keyframe: int = -1) -> None:
        """Sets simulations to the model's defaults or to a keyframe, and computes the derived fields.

        Elements of the state that the caller wrote since the simulation's last call keep their values.

        Args:
            ids: the simulations, ascending numbers or a mask; None for all.
            keyframe: a keyframe, -1 for the defaults.

        Raises:
            ValueError: an unknown keyframe, invalid ids.
            RuntimeError: as `step`.
        """
        if not -1 <= operator.index(keyframe) < self.model.nkey:
            raise ValueError(f"keyframe must be in [-1, {self.model.nkey}), got {keyframe}")

        def do(chosen: np.ndarray) -> None:
            state = self._rows[chosen]
            written = bits(state) != bits(self._seen[chosen])
            self._batch.reset(chosen, keyframe, NONE)
            self._rows[chosen] = np.where(written, state, self._rows[chosen])
            self._batch.forward(chosen)

        self._run(ids, do)

    def set_const(self, ids: ArrayLike | None = None) -> None:
        """Recomputes the model fields that depend on expanded ones, by simulation, as mj_setConst.

        A field that changes for the first time is recomputed in all simulations.

        Raises:
            RuntimeError: mj_setConst raised an error in a simulation.
        """

        with self._lock, self._errors():
            chosen = self._chosen(ids)
            self._model_mirrors.push()
            try:
                if len(chosen) == self.num_sims:
                    return self._batch.set_const()
                known = self._different() | {MODEL_NAMES[name] for name in self._expanded}
                self._batch.set_const(chosen)
                if self._different() - known:
                    self._batch.set_const()
            finally:
                self._model_mirrors.pull()

    def _different(self) -> set[str]:
        """Returns the fields of MjModel whose values in a simulation differ from the model's."""
        rows = {name: self._batch.expanded(name) for name in MODEL_FIELDS}
        return {name for name, each in rows.items() if each is not None and np.any(each != values(self.model, name))}

    def _run(self, ids: ArrayLike | None, do: Callable[[np.ndarray], None]) -> None:
        """Runs a call of some simulations between a transfer of the caller's writes and one of the results."""
        with self._lock, self._errors():
            chosen = self._chosen(ids)
            self._put(chosen)
            try:
                do(chosen)
            except mujoco_batch.SimulationError as error:
                self._take(np.setdiff1d(chosen, error.ids))
                raise
            self._take(chosen)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Reports errors of simulations as mjbatch does."""
        try:
            yield
        except mujoco_batch.SimulationError as error:
            sim = int(error.ids[0])
            raise RuntimeError(f"sim {sim}: {self._batch.error(sim)}") from error

    def _chosen(self, ids: ArrayLike | None) -> np.ndarray:
        """Returns the numbers of the simulations of a call, checked."""
        chosen = self._batch.chosen(ids)
        if "enableflags" in self._expanded:
            asleep = chosen[(self._expanded["enableflags"][chosen] & SLEEP) != 0]
            if asleep.size:
                raise ValueError(f"sim {asleep[0]}: sleep is not supported")
        return chosen

    def _put(self, chosen: np.ndarray, once: bool = True) -> None:
        """Writes changed elements of copies into the state and the expanded fields."""
        self._mirrors.push(self._sims(chosen), once)
        self._model_mirrors.push()

    @contextmanager
    def _query(self, ids: ArrayLike | None) -> Iterator[np.ndarray]:
        """Gives the simulations of a query, whose states have the caller's writes during the query only."""
        with self._lock, self._errors():
            chosen = self._chosen(ids)
            kept = self._rows[chosen] if self._mirrors else None
            self._put(chosen, once=False)
            try:
                yield chosen
            finally:
                if kept is not None:
                    self._rows[chosen] = kept

    def _take(self, chosen: np.ndarray) -> None:
        """Refreshes copies after a call, and stores the states with which `reset` compares."""
        sims = self._sims(chosen)
        self._seen[sims] = self._rows[sims]
        self._mirrors.pull(sims)

    def _sims(self, chosen: np.ndarray) -> np.ndarray | slice:
        return slice(None) if len(chosen) == self.num_sims else chosen

    # ---- queries -----------------------------------------------------------------------------------------------------
    def rays(
        self,
        pnt: np.ndarray,
        vec: np.ndarray,
        dist: np.ndarray,
        geomid: np.ndarray | None = None,
        normal: np.ndarray | None = None,
        geomgroup: np.ndarray | None = None,
        flg_static: bool = True,
        bodyexclude: np.ndarray | None = None,
        ids: ArrayLike | None = None,
    ) -> None:
        """Intersects rays with the geoms of each simulation in its present state; fills the rows of its simulations.

        Args:
            pnt: (num_sims, nray, 3) start of the rays [m], float64 or float32.
            vec: (num_sims, nray, 3) directions.
            dist: (num_sims, nray) receives the distances in lengths of `vec`, -1 without a hit.
            geomid: (num_sims, nray) int32, receives the geoms, -1 without a hit.
            normal: (num_sims, nray, 3) receives the surface normals, zero without a hit.
            geomgroup: (6,) flags of the groups to test; None for all.
            flg_static: whether geoms that are welded to the world are tested.
            bodyexclude: (nray,) bodies whose geoms are not tested, -1 for none.
            ids: the simulations, ascending numbers or a mask; None for all.

        Raises:
            ValueError: an array of another shape or type.

        Source: MuJoCo mj_ray.
        """
        lead = {"num_sims": self.num_sims, "nray": np.shape(pnt)[1] if np.ndim(pnt) > 1 else 0}
        each, kind = lead | {"3": 3}, (_checked_array("pnt", pnt, lead | {"3": 3}, FLOATS).dtype,)
        _checked_array("vec", vec, each, kind)
        outputs = {"dist": (dist, lead, kind), "geomid": (geomid, lead, INTEGERS[:1]), "normal": (normal, each, kind)}
        for name, (array, axes, kinds) in outputs.items():
            if array is not None:
                _checked_array(name, array, axes, kinds, output=True)
        exclude = -1
        if bodyexclude is not None:
            exclude = _checked_array("bodyexclude", bodyexclude, {"nray": lead["nray"]}, INTEGERS)
        with self._query(ids) as chosen:
            found = self._batch.ray(pnt[chosen], vec[chosen], geomgroup, flg_static, exclude, chosen, normal=True)
            for (array, *_), rows in zip(outputs.values(), found, strict=True):
                if array is not None:
                    array[chosen] = rows

    def jac(
        self,
        jacp: np.ndarray | None,
        jacr: np.ndarray | None,
        point: np.ndarray,
        body: np.ndarray,
        ids: ArrayLike | None = None,
    ) -> None:
        """Computes Jacobians of points that move with bodies, in the present states; fills the rows of its simulations.

        Args:
            jacp: (num_sims, 3, nv) receives the derivatives of the points' velocities; None: not computed.
            jacr: (num_sims, 3, nv) receives the derivatives of the bodies' angular velocities; None: not computed.
            point: (num_sims, 3) in world axes [m], float64 or float32.
            body: (num_sims,) numbers of the bodies.
            ids: the simulations, ascending numbers or a mask; None for all.

        Raises:
            ValueError: an array of another shape or type, an unknown body.

        Source: MuJoCo mj_jac.
        """
        axes, outputs = {"num_sims": self.num_sims, "3": 3, "nv": self.model.nv}, {"jacp": jacp, "jacr": jacr}
        kind = (_checked_array("point", point, {"num_sims": self.num_sims, "3": 3}, FLOATS).dtype,)
        for name, array in outputs.items():
            if array is not None:
                _checked_array(name, array, axes, kind, output=True)
        body = _checked_array("body", body, {"num_sims": self.num_sims}, INTEGERS)
        with self._query(ids) as chosen:
            wrong = body[chosen][(body[chosen] < 0) | (body[chosen] >= self.model.nbody)]
            if wrong.size:
                raise ValueError(f"body must be in [0, nbody = {self.model.nbody}), got {wrong[0]}")
            found = self._batch.jac(body[chosen], point[chosen], chosen)
            for array, rows in zip(outputs.values(), found, strict=True):
                if array is not None:
                    array[chosen] = rows


# ---- arguments -------------------------------------------------------------------------------------------------------
def _checked_dtype(name: str, own: np.dtype, dtype: DTypeLike | None, single: bool = True) -> np.dtype:
    """Returns the type of the array of a field whose own type is `own`, checked."""
    wanted = own if dtype is None else np.dtype(dtype)
    if wanted != own and not (single and own == FLOATS[0] and wanted == FLOATS[1]):
        also = " or float32" if single and own == FLOATS[0] else ""
        raise ValueError(f"{name} cannot be {wanted}: its type is {own}{also}")
    return wanted


def _of_type(name: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns an array, checked: `bind` and `expand` return one array for each field."""
    if array.dtype != dtype:
        raise ValueError(f"{name} is already bound with another dtype, {array.dtype}")
    return array


def _unknown(name: Any, names: Iterable[str], others: Iterable[str], owner: str, call: str) -> ValueError:
    """Returns the error for a name that a call does not accept; `others` are names of the other call."""
    if name in others:
        return ValueError(f'{name} is a field of {owner}; use {call}("{name}")')
    return ValueError(f"unknown field {name}{near(str(name), names)}")


def _checked_array(
    name: str, array: Any, axes: Mapping[str, int], kinds: tuple[np.dtype, ...], output: bool = False
) -> np.ndarray:
    """Returns an array of the caller, checked; an output must be writable and C-contiguous."""
    if not isinstance(array, np.ndarray) or array.shape != (*axes.values(),) or array.dtype not in kinds:
        given = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        allowed = " or ".join(map(str, kinds))
        raise ValueError(f"{name} must be {allowed}, shape ({', '.join(axes)}) = {(*axes.values(),)}, got {given}")
    if output and not (array.flags.writeable and array.flags.c_contiguous):
        raise ValueError(f"{name} must be writable and C-contiguous")
    return array
