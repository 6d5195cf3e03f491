"""`mujoco.rollout` on Featherlane: `rollout` and `Rollout` with the signatures of `mujoco.rollout`.

    from featherlane.integrations import mujoco_rollout as rollout   # instead of: from mujoco import rollout
    state, sensordata = rollout.rollout(model, data, initial_state, control)

Rollouts of equal models run in parallel in the vector lanes of the CPU.  Results equal MuJoCo's up to rounding, because
the engines sum in different orders.  `data` only sets the number of threads, as in MuJoCo; its fields are not written.
"""

from __future__ import annotations

import atexit
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from featherlane.integrations.models import LoadedModels
from featherlane.model.model import Model
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.tile.fields import DATA, STATUS
from featherlane.simulation.world.state import places, state_size

FULL = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
CTRL, USER = int(mujoco.mjtState.mjSTATE_CTRL), int(mujoco.mjtState.mjSTATE_USER)
RESET = STATUS.index("non_finite")


class Rollout:
    """Computes rollouts with threads, models and memory that are shared between calls.

    Args:
        nthread: threads; 0 or None for the calling thread alone.
    """

    def __init__(self, *, nthread: int | None = None):
        self.nthread = nthread or 0
        self._models: LoadedModels | None = LoadedModels()
        self._batches: dict[tuple[int, int], Batch] = {}

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def close(self) -> None:
        """Releases the memory; `rollout` raises an error afterwards."""
        self._models = None
        self._batches = {}

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
        before, self._batches = self._batches, {}  # only the batches of one call are kept
        for loaded in dict.fromkeys(of_each) if nstep else ():
            chosen = np.flatnonzero([each is loaded for each in of_each])
            key = id(loaded), len(chosen)
            batch = self._batches[key] = before.get(key) or self._new_batch(loaded, len(chosen))
            batch.reset(forward=False)
            batch.set_state(np.asarray(initial_state)[chosen], FULL)
            if initial_warmstart is not None:
                batch.qacc_warmstart = np.asarray(initial_warmstart)[chosen]
            inputs = None if control is None else _inputs(loaded, np.asarray(control)[chosen], control_spec)
            _roll(batch, nstep, inputs, chosen, state, sensordata)
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

    def _new_batch(self, model: Model, nworld: int) -> Batch:
        """Returns a batch of a model that emits no warnings."""
        batch = Batch(model, nworld, max(self.nthread, 1))
        batch.mute()
        return batch


def _inputs(model: Model, control: np.ndarray, spec: int) -> dict[str, np.ndarray]:
    """Returns inputs of the steps by field, (n, nstep, ...), from vectors of `control_spec`."""
    sizes = model.size_values()
    shapes = {field: (*control.shape[:2], *DATA[field].dims(sizes)) for field, _ in places(model, spec)}
    return {field: control[..., at].reshape(shapes[field]) for field, at in places(model, spec)}


def _roll(
    batch: Batch, nstep: int, inputs: dict[str, np.ndarray] | None, chosen: np.ndarray, state, sensordata
) -> None:
    """Steps a batch and records into the rows `chosen` of the results."""
    parts, n = list(places(batch.model, FULL)), len(chosen)
    found = batch.rollout(
        nstep, inputs, ["warning", *(field for field, _ in parts), *["sensordata"] * (sensordata is not None)]
    )
    vector = np.zeros((n, nstep, state_size(batch.model, FULL)))
    for field, at in parts:
        vector[..., at] = found[field].reshape(n, nstep, -1)
    resets = found["warning"][..., RESET] > 0
    if resets.any():  # MuJoCo stops such a rollout and repeats its last values
        last = np.where(resets.any(1), resets.argmax(1), nstep - 1)
        step = np.minimum(np.arange(nstep), last[:, None])[..., None]
        vector = np.take_along_axis(vector, step, 1)
        if sensordata is not None:
            found["sensordata"] = np.take_along_axis(found["sensordata"], step, 1)
    if state is not None:
        state[chosen] = vector
    if sensordata is not None:
        sensordata[chosen] = found["sensordata"]


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


def shutdown_persistent_pool() -> None:
    """Releases the memory shared by calls with `persistent_pool`."""
    global _persistent
    if _persistent is not None:
        _persistent.close()
    _persistent = None


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
        persistent_pool: share models and memory with all other calls that set this argument.
        how: the keyword arguments of `Rollout.rollout`.
    """
    global _persistent
    given = data if isinstance(data, list) else [data]
    nthread = len(given) if len(given) > 1 else 0
    if not persistent_pool:
        with Rollout(nthread=nthread) as made:
            return made.rollout(model, given, initial_state, control, **how)
    if _persistent is None or _persistent.nthread != nthread:
        shutdown_persistent_pool()
        _persistent = Rollout(nthread=nthread)
    return _persistent.rollout(model, given, initial_state, control, **how)
