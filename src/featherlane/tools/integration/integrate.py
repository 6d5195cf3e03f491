"""Integrates a world or a batch with error control: each world chooses its step sizes separately."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.arguments import bounded, whole_argument
from featherlane.engine.model.assignment import as_real_array, described, reals
from featherlane.engine.model.enums import Enable
from featherlane.engine.model.integrator import SCHEMES
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import element
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.one_world import checked_worlds
from featherlane.engine.simulation.step.non_finite import LARGEST as LARGEST_STATE
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.world.data import Data
from featherlane.engine.simulation.world.recordings import check_bindable, field_names
from featherlane.errors import ModelError, UnsupportedFeatureError
from featherlane.tools.integration.result import Integration
from featherlane.tools.integration.run import Request, integrated
from featherlane.tools.integration.source import Source
from featherlane.tools.integration.step_size import StepBounds

FINEST = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}  # accuracies above the rounding of states
SHARE = 0.05  # part of the accuracy that a step may use: errors of many steps add up
MOST = 1_000_000


def integrate(
    model: Model,
    data: Data | Batch,
    until: ArrayLike,
    *,
    accuracy: float = 1e-3,
    times: ArrayLike = (),
    record: str | Sequence[str] = ("qpos", "qvel"),
    control: ArrayLike | Kernel | Callable[[Any, Any], ArrayLike] | None = None,
    event: Callable[[Any, Any], ArrayLike] | None = None,
    min_step: float = 1e-9,
    max_step: float = 0.1,
    max_steps: int = MOST,
    velocity_time: float = 1.0,
) -> Integration:
    """Integrates worlds up to a time with error control; the step size of each world follows from its error.

    An attempt of size h computes one step of h and two steps of h / 2 with the model's integrator, contact model and
    solver.  Their difference estimates the local error: its largest component over positions (in the tangent space),
    velocities times `velocity_time`, and activations.  A step is accepted if the estimate is at most 0.05 `accuracy`;
    its result is extrapolated.  The global error grows with the number of steps and with the sensitivity of the motion,
    as for every method that controls the local error.  docs/chapters/contact.md describes the method, and
    docs/contact-benchmark.md has measurements.

    The first step size is `model.opt.timestep`.  A step of size `min_step` is accepted with any error (a forced step),
    so that the integration proceeds through impacts of rigid bodies.  Use `rk4` for smooth motion and `discrete` for
    stiff contact.

    Args:
        model: the model.
        data: the world, or a batch of the model; it advances to `until`.  Its derived fields (a batch: bound outputs)
            are those of the final state.  After an interrupt (Ctrl-C) each world is at its last accepted step.
        until: end time [s], not before the present time; for a batch (nworld,) or one for all.
        accuracy: accuracy of the state [m, rad; with `velocity_time`, m/s and rad/s; 1], > 0.
        times: (k,) times at which to record [s], ascending, from the present time to `until`.
        record: names of state or derived fields; both are recorded for the state at the requested times.
        control: (nu,) or (nworld, nu) constant controls; a kernel `control(m, d)`, called in each evaluation of
            accelerations; a function `control(time, worlds)`, called at the start of each step with a copy of the
            worlds, whose result broadcasts to (nu,) or (nworld, nu); None: `ctrl` is unchanged.  A function holds the
            controls during a step, so the order of `rk4` is 1 with it.
        event: a function `event(time, worlds)` of a copy of the worlds, which returns a number, for a batch (nworld,).
            A world ends where its sign changes, located to `min_step`; `worlds.forward()` computes derived fields.  As
            in SciPy, an attribute `event.direction` selects sign changes: > 0 from negative to positive, < 0 from
            positive to negative, 0 (default) both.  A sign change within 10 `min_step` of the start is not an event,
            so an integration can continue from the previous event.
        min_step: smallest step [s], > 0.
        max_step: largest step [s], >= min_step.
        max_steps: most attempts of a world, after which it ends.
        velocity_time: weight of velocity errors [s], >= 0; 0 measures positions and activations only.

    Returns:
        `Integration`: times, statuses, counts of steps and the recordings.

    Raises:
        ModelError: `until` before the present time, `accuracy` <= 0 or below rounding, times that do not ascend or out
            of range, an unknown field, NaN or out-of-range values in the state; invalid controls or event values.
        UnsupportedFeatureError: the flag `sleep`; delays of actuators or sensors (their histories store one sample for
            each step).
        TypeError: `data` is neither a `Data` nor a `Batch`.
        RuntimeError: another thread is in a call of the worlds.

    Source: step doubling: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, sec. II.4; with contact:
        Kurtz and Castro, CENIC, 2025.  Step sizes and norm: Drake's IntegratorBase.
    """
    source = _checked_worlds(model, data)
    names = field_names("record", record)
    for name in names:
        check_bindable(model, "record", name)
    ends = _end_times(source, until)
    requested = _requested_times(source, times, ends)
    direction = _direction(event)
    bounds = _bounds(source, accuracy, min_step, max_step, callable(control) and not isinstance(control, Kernel))
    most, weight = whole_argument("max_steps", max_steps, 1), bounded("velocity_time", velocity_time, 0.0)
    if control is not None and not callable(control):
        source.row("ctrl")[...] = _constant_control(source, control)
        control = None
    request = Request(ends, requested, names, control, event, direction, bounds, most, weight)
    result = hold(source.turns, integrated, source, request)
    source.forward(np.arange(source.nworld))
    return result


# ---- arguments -------------------------------------------------------------------------------------------------------
def _checked_worlds(model: Model, data: Data | Batch) -> Source:
    """Returns the worlds, checked to be of this model, without unsupported features and in a finite state."""
    source = Source(checked_worlds(model, data))
    refused = list(_refused(model))
    if refused:
        raise UnsupportedFeatureError(refused, what="not supported by integrate")
    for name in ("time", "qpos", "qvel", "act"):
        rows = source.row(name).reshape(source.nworld, -1)
        bad = ~(np.abs(rows) <= LARGEST_STATE)
        if bad.any():
            world, i = np.argwhere(bad)[0]
            where = f"{name}[{i}]" if source.is_one else f"{name}[{world}, {i}]"
            raise ModelError(f"{where}: got {rows[world, i]}, allowed are numbers up to {LARGEST_STATE:g}")
    return source


def _refused(model: Model) -> Iterator[str]:
    """Yields the features of a model whose state depends on the number of steps."""
    if model.opt_enableflags & Enable.SLEEP:
        yield "flag sleep: trees fall asleep after a number of steps"
    for kind in ("actuator", "sensor"):
        for i in np.flatnonzero(getattr(model, f"{kind}_history")[:, 0] > 0):
            yield f"{element(model, kind, i)}: its history stores one sample for each step"


def _direction(event: Any) -> int:
    """Returns the sign of the attribute `direction` of an event function, checked; the attribute is SciPy's."""
    if event is not None and not callable(event):
        raise ModelError(f"event: got {type(event).__name__}, allowed is a function event(time, worlds)")
    terminal, direction = getattr(event, "terminal", True), getattr(event, "direction", 0)
    if terminal not in (True, 1):
        raise ModelError(f"event.terminal: got {terminal!r}, allowed is True, because a world ends at its event")
    return int(np.sign(bounded("event.direction", direction)))


def _end_times(source: Source, until: ArrayLike) -> np.ndarray:
    """Returns the end time of each world, (n,) [s]."""
    n, now = source.nworld, source.rows["time"][:, 0]
    allowed = "is a time [s]" if source.is_one else f"are times () or ({n},) [s]"
    given = reals("until", until, allowed)
    if given.shape not in ((), source.shown(now).shape) or not np.isfinite(given).all():
        raise ModelError(f"until: got {described(until)}, allowed {allowed}, finite")
    ends = np.broadcast_to(given, n).copy()
    early = np.flatnonzero(ends < now)
    if early.size:
        raise ModelError(f"until: got {ends[early[0]]:g}, allowed are times from the present one on, {now[early[0]]:g}")
    return ends


def _requested_times(source: Source, times: ArrayLike, ends: np.ndarray) -> np.ndarray:
    """Returns the times at which to record, (k,) [s]."""
    now, last = float(source.rows["time"].max()), float(ends.max())
    allowed = f"are ascending times (k,) from {now:g} to {last:g} [s]"
    given = reals("times", times, allowed)
    if given.ndim != 1 or not (np.diff(given) > 0.0).all() or not ((given >= now) & (given <= last)).all():
        raise ModelError(f"times: got {described(times)}, allowed {allowed}")
    return given


def _bounds(source: Source, accuracy: float, min_step: float, max_step: float, sampled: bool) -> StepBounds:
    """Returns the bounds of the steps; `sampled` controls are constant during a step."""
    finest = FINEST[source.dtype]
    given = bounded("accuracy", accuracy, 0.0, above=True)
    if given < finest:
        raise ModelError(f"accuracy: got {accuracy!r}, allowed with {source.dtype} is a number >= {finest:g}")
    smallest = bounded("min_step", min_step, 0.0, above=True)
    largest = bounded("max_step", max_step, smallest)
    order = 1 if sampled else SCHEMES[source.model.opt_integrator].order
    return StepBounds(SHARE * given, order, smallest, largest)


def _constant_control(source: Source, control: ArrayLike) -> np.ndarray:
    """Returns controls that are constant, checked."""
    ctrl = source.row("ctrl")
    shape = source.shown(ctrl).shape
    allowed = f"is what broadcasts to {shape}, a kernel or a function control(time, worlds)"
    given = as_real_array("control", control, allowed)
    if given.shape not in (shape, shape[-1:]):
        raise ModelError(f"control: got {described(control)}, allowed {allowed}")
    return given
