"""`mujoco.rollout` on Featherlane: `rollout` and `Rollout` with the signatures of `mujoco.rollout`.

    from featherlane.integrations import mujoco_rollout as rollout   # instead of: from mujoco import rollout
    state, sensordata = rollout.rollout(model, data, initial_state, control)

Rollouts of equal models run in parallel in the vector lanes of the CPU.  Results equal MuJoCo's up to rounding, because
the engines sum in different orders.  `data` only sets the number of threads, as in MuJoCo; its fields are not written.
"""

from __future__ import annotations

import atexit
import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from featherlane import Batch, Model
from featherlane.extension import DATA, STATUS, cores, roll_together
from featherlane.integrations.batch.records import places
from featherlane.integrations.models import LoadedModels

FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
CTRL, USER = int(mujoco.mjtState.mjSTATE_CTRL), int(mujoco.mjtState.mjSTATE_USER)
RESET = STATUS.index("non_finite")
SMALL = 64  # worlds whose memory is kept between calls without a persistent pool
REUSED = 1 << 18  # bytes of the largest array that a later call reuses


class Rollout:
    """Computes rollouts with threads, models and memory that are shared between calls.

    Args:
        nthread: threads, of which at most one for each core is used; 0 or None for the calling thread alone.
    """

    def __init__(self, *, nthread: int | None = None):
        self.nthread = nthread or 0
        self._nthread = min(max(self.nthread, 1), cores())  # some callers have a thread for each rollout
        self._models: LoadedModels | None = LoadedModels()
        self._rolled: dict[tuple[int, int], RolledBatch] = {}

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def close(self) -> None:
        """Releases the memory; `rollout` raises an error afterwards."""
        self._models = None
        self._rolled = {}

    def release(self) -> None:
        """Releases the memory of the worlds if there are more than `SMALL`."""
        if sum(n for _, n in self._rolled) > SMALL:
            self._rolled = {}

    def rollout(
        self,
        model: Any,
        data: Any,
        initial_state: ArrayLike,
        control: ArrayLike | None = None,
        *,
        control_spec: int = CTRL,
        skip_checks: bool = False,
        nstep: int | None = None,
        initial_warmstart: ArrayLike | None = None,
        state: np.ndarray | None = None,
        sensordata: np.ndarray | None = None,
        chunk_size: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rolls out trajectories from initial states under given controls.

        Args:
            model: an MjModel, or one for each rollout, of equal sizes.
            data: an MjData, or a list of `nthread` of them.
            initial_state: (nbatch or 1, nstate) states of mjSTATE_FULLPHYSICS.
            control: (nbatch or 1, nstep or 1, ncontrol) vectors of `control_spec`.
            control_spec: `mjtState` bits of inputs.
            skip_checks: use arrays without checks; all of them must be given, with all axes.
            nstep: steps; None: those of the arrays.
            initial_warmstart: (nbatch or 1, nv) accelerations at which the solver starts; None: zeros.
            state: (nbatch, nstep, nstate) array to record into.
            sensordata: (nbatch, nstep, nsensordata) array to record into.
            chunk_size: accepted and ignored, because threads process tiles of worlds.

        Returns:
            state (nbatch, nstep, nstate) after each step, and sensordata (nbatch, nstep, nsensordata) of the state
            before it, as in mj_step.  A rollout whose state becomes non-finite repeats its last state.

        Raises:
            RuntimeError: `close` was called.
            ValueError: invalid shapes, types or sizes, with MuJoCo's messages; an unsupported feature.

        Source: mujoco.rollout.
        """
        if self._models is None:
            raise RuntimeError("rollout requested after thread pool shutdown")
        self._check_data(data)
        _check_count("nstep", nstep, 0, "non-negative")
        _check_count("chunk_size", chunk_size, 1, "a positive integer")
        if not skip_checks:
            arrays = {"initial_state": initial_state, "initial_warmstart": initial_warmstart, "control": control}
            arrays |= {"state": state, "sensordata": sensordata}
            models, found, nstep = _inferred(model, arrays, nstep, control_spec)
            initial_state, initial_warmstart, control, state, sensordata = found.values()
        else:
            models = [model] if isinstance(model, mujoco.MjModel) else list(model)
        nbatch, nstep = len(np.asarray(initial_state)), 1 if nstep is None else int(nstep)
        of_each = self._models.of((models * nbatch if len(models) == 1 else models)[:nbatch])
        before, self._rolled = self._rolled, {}  # only the batches of one call are kept
        for loaded in dict.fromkeys(of_each) if nstep else ():
            chosen: Any = slice(None)
            if any(each is not loaded for each in of_each):
                chosen = np.flatnonzero([each is loaded for each in of_each])
            given = [None if a is None else np.asarray(a)[chosen] for a in (initial_state, initial_warmstart, control)]
            key = id(loaded), len(given[0])  # type: ignore[arg-type]
            rolled = self._rolled[key] = before.get(key) or RolledBatch(loaded, key[1], self._nthread)
            targets = [None if a is None else a[chosen] for a in (state, sensordata)]
            if targets[0] is None:
                targets[0] = np.zeros((key[1], nstep, mujoco.mj_stateSize(loaded.mj_model, FULL)))
            rolled.run(given, control_spec, *targets)  # type: ignore[arg-type]
            if not isinstance(chosen, slice):  # the targets are copies
                for array, target in zip((state, sensordata), targets, strict=True):
                    if array is not None:
                        array[chosen] = target
        return state, sensordata  # type: ignore[return-value]

    def _check_data(self, data) -> None:
        """Raises MuJoCo's errors if the number of `data` objects does not match the threads."""
        given = data if isinstance(data, list) else [data]
        if not given:
            raise ValueError("The list of data instances is empty")
        for k, one in enumerate(given):
            if getattr(one, "threadpool", 0):
                raise ValueError(f"data[{k}] has a thread pool, which runs within one simulation; rollouts use threads")
        if self.nthread == 0 and len(given) > 1:
            raise ValueError("More than one data instance passed but rollout is configured to run on main thread")
        if self.nthread and len(given) != self.nthread:
            raise ValueError(f"Length of data: {len(given)} not equal to nthread: {self.nthread}")


class RolledBatch:
    """Rolls out worlds of one model.

    Arrays of the size of one rollout are reused in the next call, so that Python prepares it in some 100 us.

    Args:
        model: the model.
        nworld: worlds.
        nthread: threads.
    """

    def __init__(self, model: Model, nworld: int, nthread: int):
        self._batch, self._chosen = Batch(model, nworld, nthread), np.arange(nworld)
        self._batch.mute()
        self._arrays: dict[str, np.ndarray] = {}
        self._columns: dict[int, list[tuple[str, slice]]] = {}
        self._defaults: dict[str, np.ndarray] = {}

    def run(self, given: Sequence[np.ndarray | None], spec: int, state: np.ndarray, sensors: np.ndarray | None) -> None:
        """Rolls out all worlds.

        Args:
            given: (nworld, nstate) states; (nworld, nv) warm starts or None; (nworld, nstep, ncontrol) inputs or None.
            spec: `mjtState` bits of the inputs.
            state: (nworld, nstep, nstate) array to record into.
            sensors: (nworld, nstep, nsensordata) array to record into, or None.
        """
        start, warm, control = given
        nstep = state.shape[1]
        targets = {"state": state, "warning": np.empty((*state.shape[:2], len(STATUS)))}
        targets |= {} if sensors is None else {"sensordata": sensors}
        found = {name: self._recordable(name, target) for name, target in targets.items()}
        taken = found | {name: found["state"][..., at] for name, at in self._places(FULL)}
        del taken["state"]
        inputs = {} if control is None else self._inputs(control, spec)
        self._reset()
        rows = self._batch.rows
        for name, at in self._places(FULL):
            np.copyto(rows[name].reshape(len(start), math.prod(rows[name].shape[1:])), start[:, at])  # type: ignore[index, arg-type]
        if warm is not None:
            np.copyto(rows["qacc_warmstart"], warm)
        roll_together(nstep, [(self._batch, self._chosen, inputs or None, taken)])
        repeat_last(found.pop("warning"), found)
        for name, values in found.items():
            if values is not targets[name]:
                np.copyto(targets[name], values)

    def _places(self, bits: int) -> list[tuple[str, slice]]:
        """Returns field and columns of the parts of a state vector."""
        if bits not in self._columns:
            found = places(self._batch.model.mj_model, bits)
            self._columns[bits] = [(name, at) for name, at in found.items() if name in DATA]
        return self._columns[bits]

    def _reused(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Returns an array in the memory of the last call; zeros in a new one."""
        if name not in self._arrays or self._arrays[name].shape != shape:
            self._arrays[name] = np.zeros(shape)
        return self._arrays[name]

    def _recordable(self, name: str, target: np.ndarray) -> np.ndarray:
        """Returns an array to record into: a reused one, or the target itself if it is large."""
        if target.nbytes <= REUSED or not target.flags.c_contiguous or target.dtype != float:
            return self._reused(name, target.shape)
        if name == "state":
            target[...] = 0.0  # parts that are not recorded
        return target

    def _inputs(self, control: np.ndarray, spec: int) -> dict[str, np.ndarray]:
        """Returns inputs of the steps by field, (nworld, nstep, ...), from vectors of `control_spec`."""
        lead, sizes, inputs = control.shape[:2], self._batch.model.size_values(), {}
        for name, at in self._places(spec):
            shape = (*lead, *DATA[name].dims(sizes))
            if control.nbytes > REUSED:
                inputs[name] = control[..., at].reshape(shape)
            else:
                inputs[name] = self._reused(f"input {name}", shape)
                np.copyto(inputs[name].reshape(*lead, math.prod(shape[2:])), control[..., at])
        return inputs

    def _reset(self) -> None:
        """Sets all worlds to the defaults."""
        batch = self._batch
        if self._defaults.keys() != batch.rows.keys():  # an input is used for the first time
            batch.reset(forward=False)
            self._defaults = {name: rows.copy() for name, rows in batch.rows.items()}
        for name, rows in batch.rows.items():
            np.copyto(rows, self._defaults[name])


def repeat_last(warnings: np.ndarray, found: dict[str, np.ndarray]) -> None:
    """Repeats the records of a rollout from the step at which its state became non-finite, where MuJoCo stops.

    Args:
        warnings: (n, nstep, nstatus) counts after each step.
        found: arrays (n, nstep, ...) to change.
    """
    resets = warnings[..., RESET] > 0
    for k in np.flatnonzero(resets.any(1)).tolist():
        step = int(resets[k].argmax())
        for values in found.values():
            values[k, step + 1 :] = values[k, step]


# ---- arguments -------------------------------------------------------------------------------------------------------
def _check_count(name: str, value: Any, least: int, what: str) -> None:
    """Raises an error unless the value is an integer of at least `least`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer")
    if value < least:
        raise ValueError(f"{name} must be {what}")


def _inferred(model, arrays: dict[str, Any], nstep, spec: int) -> tuple[list, dict[str, Any], int]:
    """Returns models, arrays with all axes, and the number of steps, checked; the messages are MuJoCo's.

    Raises:
        ValueError: invalid arguments.
    """
    if spec & ~USER:
        raise ValueError("control_spec can only contain bits in mjSTATE_USER")
    axes = {"initial_state": 2, "initial_warmstart": 2, "control": 3, "state": 3, "sensordata": 3}
    for name, value in arrays.items():
        if value is not None and not isinstance(value, np.ndarray | float):
            raise ValueError(f"{name} must be a numpy array or float")
    full = {}
    for name, value in arrays.items():
        if value is not None and np.ndim(value) > axes[name]:
            raise ValueError(f"{name} can have at most {axes[name]} dimensions")
        full[name] = None if value is None else np.array(value, float, ndmin=axes[name], copy=None, order="C")
    nbatch = _dimension(0, 1, full)
    models = [model] if isinstance(model, mujoco.MjModel) else list(model)
    if len(models) > 1 and nbatch == 1:
        nbatch = len(models)
    if len(models) not in (1, nbatch):
        raise ValueError(f"nbatch inferred as {nbatch} but model is length {len(models)}")
    nstep = _dimension(1, 1 if nstep is None else int(nstep), {name: a for name, a in full.items() if axes[name] == 3})
    sizes = [(mujoco.mj_stateSize(m, FULL), mujoco.mj_stateSize(m, spec), m.nv, m.nsensordata) for m in models]
    if len(set(sizes)) > 1:
        raise ValueError("models are not compatible")
    nstate, ncontrol, nv, nsensordata = sizes[0]
    ends = {"initial_state": nstate, "state": nstate, "control": ncontrol, "initial_warmstart": nv}
    for name, end in (ends | {"sensordata": nsensordata}).items():
        if full[name] is not None and full[name].shape[-1] != end:
            raise ValueError(f"trailing dimension of {name} must be {end}, got {full[name].shape[-1]}")
    for name in ("initial_state", "initial_warmstart", "control"):
        if full[name] is not None:
            lead = (nbatch, nstep)[: axes[name] - 1]
            full[name] = np.broadcast_to(full[name], (*lead, full[name].shape[-1]))
    for name, end in (("state", nstate), ("sensordata", nsensordata)):
        if full[name] is None:
            full[name] = np.empty((nbatch, nstep, end))
    return models, full, nstep


def _dimension(axis: int, size: int, arrays: dict[str, Any]) -> int:
    """Returns the common length of an axis of the arrays; length 1 matches every length."""
    for name, a in arrays.items():
        if a is not None and a.shape[axis] not in (size, 1):
            if size != 1:
                raise ValueError(f"dimension {axis} inferred as {size} but {name} has {a.shape[axis]}")
            size = a.shape[axis]
    return size


# ---- the function ----------------------------------------------------------------------------------------------------
_persistent: Rollout | None = None
_idle: dict[int, Rollout] = {}  # by threads: loaded models and small arrays of calls without a persistent pool


def shutdown_persistent_pool() -> None:
    """Releases the memory that is shared between calls of `rollout`."""
    global _persistent
    if _persistent is not None:
        _persistent.close()
    _persistent = None
    _idle.clear()


atexit.register(shutdown_persistent_pool)


def rollout(
    model: Any,
    data: Any,
    initial_state: ArrayLike,
    control: ArrayLike | None = None,
    *,
    persistent_pool: bool = False,
    **how,
) -> tuple[np.ndarray, np.ndarray]:
    """Rolls out trajectories from initial states under given controls; see `Rollout.rollout`.

    Args:
        model, data, initial_state, control: as for `Rollout.rollout`.
        persistent_pool: keep the memory of all worlds for the next call that sets this argument.  Loaded models and
            at most 64 worlds are kept in any case.
        how: the keyword arguments of `Rollout.rollout`.
    """
    global _persistent
    given = data if isinstance(data, list) else [data]
    nthread = len(given) if len(given) > 1 else 0
    if not persistent_pool:
        made = _idle.pop(nthread, None) or Rollout(nthread=nthread)  # calls of several threads do not share one
        try:
            return made.rollout(model, given, initial_state, control, **how)
        finally:
            made.release()
            _idle[nthread] = made
    if _persistent is None or _persistent.nthread != nthread:
        shutdown_persistent_pool()
        _persistent = Rollout(nthread=nthread)
    return _persistent.rollout(model, given, initial_state, control, **how)
