"""`Batch`: many worlds of one model, stepped side by side in the lanes of the processor.

What lasts is a row per world for each state field, `(nworld, n)` in C order.  A thread takes W worlds, moves their rows
into its workspace, steps there while they are in cache, and writes them back.  Which worlds share a tile never shows in
a result, so worlds with alike contacts are put together for speed.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..errors import ModelError, near
from ..lanes import processor
from ..model.fields import MODEL
from ..model.model import Model
from ..model.names import NamedAccess
from .fields import DATA, ON_REQUEST
from .library import library
from .tiles import run_tiles
from .transfer import Transfer, transfer_record
from .workspace import ModelRows, Workspace, mocap_defaults

INPUTS = ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
EVOLVING = ("time", "qpos", "qvel", "act", "qacc_warmstart")
STATE = EVOLVING + INPUTS
ON_DEMAND = ("qfrc_applied", "xfrc_applied")  # kept once somebody asks for them
REPORTS = ("ncon", "solver_niter", "solver_residual", "warning", "nbad", "signature")
STATUS = ("contacts_full", "rows_full", "bad_number", "not_converged")
HIDDEN = ("con_", "dofrow_", "genrow_", "H", "pair_", "part", "body_")  # slots and scratch: of a tile, not of a world
LATE_FRAMES = ("geom_xpos", "geom_xmat", "site_xpos", "site_xmat")


class Batch(NamedAccess):
    """nworld worlds of one model.

    Args:
        model: the model; edits take effect at the next call.
        nworld: number of worlds, at least 1.
        nthread: threads, 0 for one for each core.
        dtype: float64 or float32, of the state and of all arithmetic.

    State fields are live arrays: `batch.qpos` (nworld, nq), `qvel`, `act`, `ctrl`, `time` (nworld,), `qacc_warmstart`,
    `qfrc_applied`, `xfrc_applied`, `mocap_pos`, `mocap_quat`.  Derived fields are bound (`bind`) and refreshed by every
    call that computes them.

    Attributes:
        status: worlds' counts of `contacts_full`, `rows_full`, `bad_number` and `not_converged`, each (nworld,).
        nbad: times each world was reset for bad numbers, (nworld,).
        ncon, solver_niter, solver_residual: of each world's last step, (nworld,).

    Raises:
        ModelError: nworld or nthread out of range, an unknown dtype.
    """

    layout = DATA
    world_axes = 1
    model: Model
    dtype: np.dtype
    nworld: int
    nthread: int
    width: int
    _arrays: dict[str, np.ndarray]
    _bound: dict[str, np.ndarray]
    _expanded: dict[str, np.ndarray]
    _workspaces: list[Workspace]
    _shared: ModelRows
    _pool: ThreadPoolExecutor | None
    _lock: threading.Lock
    _pid: int

    def __init__(self, model: Model, nworld: int, nthread: int = 0, dtype="float64"):
        try:
            processor.base_of(dtype)
        except ValueError as e:
            raise ModelError(str(e)) from None
        own = self.__dict__
        own["model"], own["dtype"] = model, np.dtype(dtype)
        own["nworld"], own["nthread"] = _count("nworld", nworld, 1), _count("nthread", nthread, 0) or _cores()
        own["_arrays"], own["_bound"], own["_expanded"] = {}, {}, {}
        for name in (*EVOLVING, *REPORTS, "ctrl", "mocap_pos", "mocap_quat"):
            own["_arrays"][name] = self._rows(DATA[name])
        self._start()
        self._set_defaults(np.arange(nworld))

    def _start(self):
        """What a process or a copy has to make anew: threads, workspaces, the lock."""
        own = self.__dict__
        own["width"] = processor.tile_width(self.dtype)
        own["_lock"], own["_pid"], own["_pool"] = threading.Lock(), os.getpid(), None
        own["_workspaces"] = []

    def _rows(self, field) -> np.ndarray:
        return np.zeros((self.nworld, *field.dims(self._sizes)), self.dtype)

    @property
    def _sizes(self):
        if "_size_table" not in self.__dict__:
            self.__dict__["_size_table"] = Workspace(self.model, 1).sizes
        return self.__dict__["_size_table"]

    # ---- fields ------------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str):
        arrays = self.__dict__.get("_arrays", {})
        if name in arrays:
            a = arrays[name]
            return a[:, 0] if a.ndim == 2 and DATA[name].shape == (1,) else a
        if name in ON_DEMAND:
            arrays[name] = self._rows(DATA[name])
            return arrays[name]
        if name in DATA and self._bindable(name):
            return self.bind(name)
        raise AttributeError(f"batch has no {name!r}{near(name, [n for n in DATA.index if self._bindable(n)])}")

    def __setattr__(self, name: str, value):
        if name in STATE:
            target = getattr(self, name)
            try:
                np.copyto(target, value, casting="same_kind")
            except (TypeError, ValueError):
                given = f"shape {np.shape(value)}" if np.shape(value) else repr(value)
                raise ModelError(f"{name}: got {given}, allowed is what broadcasts to {target.shape}") from None
        elif name in DATA or name in self.__dict__:
            raise AttributeError(f"{name} is computed; it cannot be set (state fields are {', '.join(STATE)})")
        else:
            raise AttributeError(f"batch has no {name!r} to set{near(name, STATE)}")

    @staticmethod
    def _bindable(name: str) -> bool:
        f = DATA[name]
        return (f.kind == "real" and f.stage != "" and not name.startswith(HIDDEN)) or name in STATE

    def bind(self, name: str) -> np.ndarray:
        """A live array over a field: state itself, or an output that each call refreshes.

        After `step` an output is that of the last step's old state, as in MuJoCo; after `forward` it is current.  An
        output bound between calls is zero until the next call.

        Args:
            name: a state field or a derived field of `fl.Data` (`xpos`, `cvel`, `qfrc_constraint`, ...).

        Returns:
            (nworld, ...) array; outputs are read-only.

        Raises:
            ModelError: no such field, or one that belongs to a tile and not to a world.
        """
        if name not in DATA or not self._bindable(name):
            allowed = [n for n in DATA.index if self._bindable(n)]
            raise ModelError(f"bind: {name!r} is no field of a world{near(name, allowed)}")
        if name in STATE or name in self._arrays:
            return getattr(self, name)
        if name not in self._bound:
            self._bound[name] = self._rows(DATA[name])
        view = self._bound[name].view()
        view.flags.writeable = False
        return view

    def expand(self, name: str) -> np.ndarray:
        """Give a real model field its own values in each world.

        After writing fields that others depend on (masses, inertias, ...), call `set_const`.

        Args:
            name: a real field of the model (`body_mass`), options as `opt.timestep` or `opt_timestep`.

        Returns:
            (nworld, ...) live array, at first the model's values.

        Raises:
            ModelError: no such real field.
        """
        name = name.replace("opt.", "opt_")
        if name not in MODEL or MODEL[name].kind != "real":
            allowed = [f.name for f in MODEL.fields if f.kind == "real"]
            raise ModelError(f"expand: {name!r} is no real field of a model{near(name, allowed)}")
        if name not in self._expanded:
            value = self.model.__dict__[name]
            self._expanded[name] = np.ascontiguousarray(np.broadcast_to(value, (self.nworld, *value.shape)), self.dtype)
            self.__dict__["_workspaces"] = None
        return self._expanded[name]

    def expanded(self, name: str) -> np.ndarray | None:
        """The per-world values of a model field, or None where all worlds share the model's."""
        return self._expanded.get(name.replace("opt.", "opt_"))

    def set_const(self, ids=None) -> None:
        """Recompute, world by world, the model fields that depend on expanded ones; they become per-world."""
        from ..model.set_const import DEPENDENT_REALS, Constants

        chosen, constants = self._ids(ids), Constants(self.model)
        inputs = {n: a for n, a in self._expanded.items() if n not in DEPENDENT_REALS}
        targets = {n: self.expand(n) for n in DEPENDENT_REALS}
        for w in chosen:
            for name, value in constants({n: a[w].astype(np.float64) for n, a in inputs.items()}).items():
                targets[name][w] = value

    @property
    def status(self) -> dict[str, np.ndarray]:
        """Counts since the last reset of each world, by name, each (nworld,) int64."""
        return {n: self._arrays["warning"][:, k].astype(np.int64) for k, n in enumerate(STATUS)}

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, ids=None) -> None:
        """Advance worlds by nstep time steps.

        Args:
            nstep: time steps, at least 1.
            ids: the worlds, by number or as a mask; None for all.

        Raises:
            ModelError: nstep below 1, ids out of range or repeated.
            RuntimeError: another thread is in a call of this batch.
        """
        self._run(_count("nstep", nstep, 1), self._ids(ids), None)

    def forward(self, ids=None) -> None:
        """Compute all derived fields of the present state, without a step."""
        self._run(0, self._ids(ids), None)

    def reset(self, ids=None, keyframe: int | str | np.ndarray = -1) -> None:
        """Worlds to the model's defaults, or to keyframes; bound outputs follow.

        Args:
            ids: the worlds; None for all.
            keyframe: a keyframe's name or number for all of them, or one number each; -1 for the defaults.

        Raises:
            ModelError: no such keyframe.
        """
        chosen = self._ids(ids)
        keys = self._keyframes(keyframe, len(chosen))
        with self._entered():
            self._set_defaults(chosen)
            for k in np.unique(keys[keys >= 0]):
                at, model = chosen[keys == k], self.model
                self._arrays["time"][at] = model.key_time[k]
                for name in ("qpos", "qvel", "act", "ctrl"):
                    self._arrays[name][at] = getattr(model, f"key_{name}")[k]
                for name, key in (("mocap_pos", "key_mpos"), ("mocap_quat", "key_mquat")):
                    shape = self._arrays[name].shape[1:]
                    self._arrays[name][at] = getattr(model, key)[k].reshape(shape)
        if self._bound:
            self.forward(chosen)

    def rollout(self, nstep: int, control=None, record=("qpos",), ids=None, out=None) -> dict[str, np.ndarray]:
        """Advance worlds by nstep steps and record fields after each.

        Args:
            nstep: time steps, at least 1.
            control: (n, nstep, nu) controls for the n worlds of the call, or None to leave `ctrl` as it is.
            record: names of state or derived fields.
            ids: the worlds; None for all.
            out: arrays to record into, by name, of the shapes and dtype returned; missing ones are made.

        Returns:
            name -> (n, nstep, ...).  State is that after the step, derived fields those of the state before it.

        Raises:
            ModelError: shapes, names or counts that do not fit.
        """
        nstep, chosen = _count("nstep", nstep, 1), self._ids(ids)
        n, result, names = len(chosen), {}, [record] if isinstance(record, str) else list(record)
        transfers = {"control": [], "record": []}
        if control is not None:
            control = self._control(control, (n, nstep, self.model.nu))
            transfers["control"].append(Transfer("ctrl", control))
        spare = sorted(set(out or {}) - set(names))
        if spare:
            raise ModelError(f"out: {spare[0]!r} is not recorded{near(spare[0], names)}")
        for name in names:
            if name not in DATA or not self._bindable(name):
                allowed = [f for f in DATA.index if self._bindable(f)]
                raise ModelError(f"record: {name!r} is no field of a world{near(name, allowed)}")
            shape = (n, nstep, *DATA[name].dims(self._sizes))
            given = (out or {}).get(name)
            result[name] = np.empty(shape, self.dtype) if given is None else self._recordable(name, given, shape)
            transfers["record"].append(Transfer(name, result[name]))
        self._run(nstep, chosen, transfers)
        if control is not None:
            self._arrays["ctrl"][chosen] = control[:, -1]
        return result

    def _control(self, control, shape) -> np.ndarray:
        """Controls of a rollout, checked."""
        try:
            control = np.ascontiguousarray(control, self.dtype)
        except (TypeError, ValueError):
            raise ModelError(f"control: got {type(control).__name__}, allowed are numbers {shape}") from None
        if control.shape != shape:
            raise ModelError(f"control: got shape {control.shape}, allowed is {shape}")
        return control

    def _recordable(self, name: str, given, shape) -> np.ndarray:
        """An array to record into, checked."""
        allowed = f"allowed is a writable C-order array of {self.dtype} {shape}"
        if not isinstance(given, np.ndarray):
            raise ModelError(f"out[{name!r}]: got {type(given).__name__}, {allowed}")
        fits = given.shape == shape and given.dtype == self.dtype
        if not (fits and given.flags.c_contiguous and given.flags.writeable):
            raise ModelError(f"out[{name!r}]: got {given.dtype} {given.shape}, {allowed}")
        return given

    def _run(self, nstep: int, chosen: np.ndarray, extra) -> None:
        """One call of the compiled loop over the tiles, on all threads."""
        if not len(chosen):
            return
        with self._entered():
            self._prepare()
            order = self._arrange(chosen)
            place = order if len(chosen) == self.nworld else np.argsort(chosen)[np.searchsorted(np.sort(chosen), order)]
            record = self._call_record(nstep, order, place, extra)
            bad = self._arrays["nbad"][chosen, 0].copy()
            ntile = -(-len(order) // self.width)
            chunk = max(1, min(64, ntile // (4 * self.nthread)))
            starts = iter(range(0, ntile, chunk))
            lock = threading.Lock()

            def work(thread):
                w = self._workspaces[thread]
                run = library().bind(run_tiles, w.rows.record, w.record, record)
                while True:
                    with lock:
                        start = next(starts, None)
                    if start is None:
                        return
                    run(thread, start, min(start + chunk, ntile))

            used = min(self.nthread, -(-ntile // chunk))
            if used == 1:
                work(0)
            else:
                list(self._threads().map(work, range(used)))
            fresh = chosen[self._arrays["nbad"][chosen, 0] > bad]
            if len(fresh):
                self._clear_inputs(fresh)

    def _entered(self):
        return _Entry(self)

    def _threads(self) -> ThreadPoolExecutor:
        pool = self._pool
        if pool is None:
            pool = self.__dict__["_pool"] = ThreadPoolExecutor(self.nthread, thread_name_prefix="featherlane")
        return pool

    def _prepare(self):
        """Workspaces for the fields as they are asked for now, with the model as it is now."""
        own = self.__dict__
        if not self._workspaces:
            shared = ModelRows(self.model, self.width, self.dtype)
            names = list(self._expanded)
            own["_shared"] = shared
            own["_workspaces"] = [
                Workspace(self.model, self.width, self.dtype, shared.own(names) if names else shared)
                for _ in range(self.nthread)
            ]
        self._shared.refresh()
        for w in self._workspaces:
            if w.rows is not self._shared:
                w.rows.refresh_sizes()

    def _arrange(self, chosen: np.ndarray) -> np.ndarray:
        """Worlds in the order in which they fill tiles: those that touched alike in their last step together."""
        if len(chosen) <= self.width:
            return chosen
        return np.ascontiguousarray(chosen[np.lexsort(self._arrays["signature"][chosen].T[::-1])])

    def _call_record(self, nstep, order, place, extra):
        names = [n for n in STATE if n in self._arrays]
        load = [Transfer(n, self._arrays[n]) for n in (*names, "warning", "nbad")]
        load += [Transfer(n, a, True) for n, a in self._expanded.items()]
        store = [Transfer(n, self._arrays[n]) for n in (*EVOLVING, *REPORTS)]
        store += [Transfer(n, a) for n, a in self._bound.items()]
        if nstep == 0:
            store = [t for t in store if t.field not in EVOLVING]
        wanted = set(self._bound) | {t.field for t in (extra or {}).get("record", ())}
        for w in self._workspaces:
            w.record.set_size("want_frames", int(bool(wanted & set(LATE_FRAMES))))
            w.record.set_size("want_energy", int("energy" in wanted))
            w.record.set_size("want_all", int(bool(wanted & ON_REQUEST)))
        transfers = {"load": load, "store": store, **(extra or {})}
        return transfer_record(self._workspaces, len(order), nstep, transfers, order, place)

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _ids(self, ids) -> np.ndarray:
        """World numbers (n,) int64, checked."""
        if ids is None:
            return np.arange(self.nworld)
        a = np.asarray(ids)
        if a.dtype == bool:
            if a.shape != (self.nworld,):
                raise ModelError(f"ids: got a mask of shape {a.shape}, allowed is ({self.nworld},)")
            return np.flatnonzero(a)
        a = np.atleast_1d(a)
        if a.size == 0:
            return np.zeros(0, np.int64)
        if a.ndim != 1 or a.dtype.kind not in "iu":
            raise ModelError(f"ids: got {a.dtype} of shape {a.shape}, allowed are whole numbers (n,) or a mask")
        wrong = a[(a < 0) | (a >= self.nworld)]
        if wrong.size:
            raise ModelError(f"ids: got {wrong[0]}, allowed are 0 to {self.nworld - 1}")
        if len(np.unique(a)) != len(a):
            raise ModelError("ids: a world is named twice")
        return a.astype(np.int64)

    def _keyframes(self, keyframe, n: int) -> np.ndarray:
        if isinstance(keyframe, str):
            keyframe = self.model.keyframe(keyframe).id
        try:
            keys = np.broadcast_to(np.asarray(keyframe), (n,))
        except ValueError:
            raise ModelError(f"keyframe: got shape {np.shape(keyframe)}, allowed is () or ({n},)") from None
        if keys.dtype.kind not in "iu" or ((keys < -1) | (keys >= self.model.nkey)).any():
            raise ModelError(f"keyframe: got {keyframe!r}, allowed are -1 to {self.model.nkey - 1}, or a name")
        return keys

    def _set_defaults(self, at: np.ndarray) -> None:
        """The model's default state, with per-world qpos0 where it is expanded."""
        for name in (*EVOLVING, *REPORTS):
            self._arrays[name][at] = 0
        q0 = self._expanded.get("qpos0")
        self._arrays["qpos"][at] = self.model.qpos0 if q0 is None else q0[at]
        self._clear_inputs(at)

    def _clear_inputs(self, at: np.ndarray) -> None:
        for name in INPUTS:
            if name in self._arrays:
                self._arrays[name][at] = 0
        for name, value in mocap_defaults(self.model).items():
            self._arrays[name][at] = value

    # ---- keeping -----------------------------------------------------------------------------------------------------
    def checkpoint(self) -> dict[str, np.ndarray]:
        """Copies of all that lasts: state rows, reports, expanded model fields; for `restore`, np.savez, pickle."""
        kept = {name: a.copy() for name, a in self._arrays.items()}
        return kept | {f"model.{name}": a.copy() for name, a in self._expanded.items()}

    def restore(self, kept) -> None:
        """Take over a checkpoint; the worlds go on bit for bit.

        Raises:
            ModelError: a field is missing, or of another shape or dtype; nothing is taken over then.
        """
        for name in self._arrays:
            if name not in kept and name not in ON_DEMAND:
                raise ModelError(f"restore: the checkpoint lacks {name!r}")
        plan = []
        for key in kept:
            name = key.removeprefix("model.")
            target = self.expand(name) if key.startswith("model.") else self.__dict__["_arrays"].get(name)
            if target is None and name in ON_DEMAND:
                target = getattr(self, name)
            value = np.asarray(kept[key])
            if target is None or value.shape != target.shape or value.dtype != self.dtype:
                allowed = "no such field" if target is None else f"allowed is {self.dtype} {target.shape}"
                raise ModelError(f"restore: {key}: got {value.dtype} {value.shape}, {allowed}")
            plan.append((target, value))
        for target, value in plan:
            target[...] = value
        for name in ON_DEMAND:
            if name in self._arrays and name not in kept:
                self._arrays[name][...] = 0
        for name, rows in self._expanded.items():
            if f"model.{name}" not in kept:
                rows[...] = self.model.__dict__[name]

    def __getstate__(self):
        made_anew = ("_lock", "_pid", "_pool", "_workspaces", "_shared", "width")
        return {k: v for k, v in self.__dict__.items() if k not in made_anew}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._start()

    def get_data(self, world: int):
        """One world as an `fl.Data` in float64, forward computed."""
        from .data import Data

        (w,) = self._ids([world])
        data = Data(self.get_model(world))
        for name in STATE:
            if name in self._arrays:
                value = self._arrays[name][w]
                setattr(data, name, value[0] if name == "time" else value)
        data.forward()
        return data

    def get_model(self, world: int):
        """One world's model: a copy with its expanded fields."""
        import copy

        (w,) = self._ids([world])
        model = copy.deepcopy(self.model)
        for name, a in self._expanded.items():
            model.__dict__[name][...] = a[w]
        return model

    def __repr__(self) -> str:
        return f"Batch({self.model!r}, nworld={self.nworld}, nthread={self.nthread}, dtype={self.dtype.name})"


class _Entry:
    """One call at a time: a second thread is told, a fork starts its own threads."""

    def __init__(self, batch: Batch):
        self.batch = batch

    def __enter__(self):
        if self.batch._pid != os.getpid():
            self.batch._start()
        if not self.batch._lock.acquire(blocking=False):
            raise RuntimeError("another thread is in a call of this batch; give each thread a batch of its own")

    def __exit__(self, *error):
        self.batch._lock.release()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _count(name: str, value, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ModelError(f"{name}: got {value!r}, allowed is a whole number from {least}")
    return int(value)
