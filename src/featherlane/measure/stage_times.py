"""Where the time of a batch's step goes: each stage by itself, on the tiles that the batch would make."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from featherlane.collision.collision import collision
from featherlane.dynamics.body.kinematics import path_frames
from featherlane.dynamics.inertia.articulated import needs_factor, needs_inertia
from featherlane.dynamics.integrator.integrate import advance, euler
from featherlane.lanes import Stage
from featherlane.lanes.record import python_record
from featherlane.measure.race import Lineup
from featherlane.model.integrator import SCHEMES, has_metric
from featherlane.model.load import load
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.step import forward
from featherlane.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.simulation.step.part import SOLVE, solve_in_parts
from featherlane.simulation.tile.workspace import Workspace

REPEATS = 5  # runs of a stage in a trial
TRIALS = 3  # of a stage on a tile; the quickest counts
LAST_OF_ROWS = ("solve", "solve_constraint")
OF_ROWS = ("collision", "make_rows", "make_constraint", *LAST_OF_ROWS)  # what a tile without room does in parts


def stage_times(lineup: Lineup, told: Callable[[int], None] = lambda done: None) -> dict[str, float]:
    """Microseconds per world of each stage of a step of the batch, of the whole step, and of what no stage explains.

    Tiles are those of the batch (worlds of alike contacts together, piles one by one), and so is what is asked of a
    step.  Each stage runs on its tile several times; the quickest trial counts, less the cost of a call from Python.
    Worlds that do not fill a tile are left out.

    Returns:
        Times by the stage's name in the order of the step, then `rest`, which may be a little below 0, and `step`.
    """
    course = lineup.course
    counter = Batch(lineup.model, course.worlds, nthread=1, dtype=course.dtype)
    lineup.put(counter)
    counter.forward()
    total, timed, tiles = {}, 0, 0
    for width, part in counter._parts(np.argsort(counter.ncon, kind="stable")):
        workspace, call = Workspace(lineup.model, width, course.dtype), _call_cost(width, course.dtype)
        for name, value in counter._wanted(set()).items():
            workspace.record.set_size(name, value)
        for worlds in part[: len(part) // width * width].reshape(-1, width):
            for name, seconds in _tile_times(lineup, workspace, worlds).items():
                total[name] = total.get(name, 0.0) + seconds - call
            timed, tiles = timed + width, tiles + 1
            told(timed)
    step = total.pop("step", 0.0)
    total |= {"rest": step - sum(total.values()), "step": step}
    return {name: 1e6 * seconds / max(timed, 1) for name, seconds in total.items()}


def _tile_times(lineup: Lineup, workspace, worlds: np.ndarray) -> dict[str, float]:
    """Seconds of each stage that a step runs on a tile, one after the other as there, and of the step."""
    stages, times = stages_of_step(lineup.model, workspace), {}

    def timed(stage, *numbers):
        times.setdefault(stage.name, []).append(_seconds(workspace.bound(stage), numbers))

    for _ in range(TRIALS):
        _put_tile(lineup, workspace, worlds)
        overflow = workspace.arrays["con_overflow"]
        overflow[...] = 0
        for stage in stages:
            if not (overflow[0] and stage.name in OF_ROWS):
                timed(stage)
            if overflow[0] and stage.name in LAST_OF_ROWS:
                timed(solve_in_parts, SOLVE)
        _put_tile(lineup, workspace, worlds)
        timed(forward.step)
    return {name: min(seconds) for name, seconds in times.items()}


def _seconds(run: Callable[..., None], numbers: tuple[int, ...] = ()) -> float:
    """Of one of several runs, one after the other, as a batch steps its tile; the first one does not count."""
    run(*numbers)
    start = time.perf_counter()
    for _ in range(REPEATS):
        run(*numbers)
    return (time.perf_counter() - start) / REPEATS


def _put_tile(lineup: Lineup, workspace, worlds: np.ndarray) -> None:
    """The settled states of these worlds into a tile."""
    for name, value in lineup.states.items():
        workspace.arrays[name][: value.shape[1]] = value[worlds].T


def stages_of_step(model, workspace) -> list:
    """The stages that a step of this model runs, in their order: without checks of numbers, sensors and sleep."""
    m, d = python_record(workspace.rows.record), python_record(workspace.record)
    every, discrete = bool(d.want_all), has_metric(model)
    early = forces_need_contacts(model)
    chain = [
        (forward.kinematics, True),
        (forward.frames if d.want_frames else forward.collision_frames, True),
        (forward.path_frames, not d.want_frames and model.nstepsite + model.nstepgeom > 0),
        (forward.com_pos, True),
        (forward.link_positions, model.nlink > 0),
        (forward.tendon, model.ntendon > 0),
        (forward.crb, needs_inertia(m, d)),
        (forward.factor_m, needs_factor(m, d)),
        (forward.transmission, model.nu > 0),
        (early_contacts, early),
        (forward.com_vel, every),
        (forward.rne if every else forward.bias, True),
        (forward.tendon_velocity, model.ntendon > 0),
        (forward.passive, True),
        (forward.actuation, True),
        (forward.smooth_acceleration, True),
        (collision, not early),
        (forward.make_constraint if discrete else forward.make_rows, True),
        (forward.solve_constraint if discrete else forward.solve, True),
        (_last_stage(model), True),
    ]
    return [stage for stage, runs in chain if runs]


def _last_stage(model):
    """The stage that takes the step of this model's integrator."""
    scheme = SCHEMES[int(model.opt.integrator)]
    if scheme.accelerations > 1:
        return forward.runge_kutta
    if isinstance(scheme.advance, Stage):
        return scheme.advance
    return advance if model.opt.contact_model == "lcp" else euler


def _call_cost(width: int, dtype: str) -> float:
    """Seconds of a call of a stage that has nothing to do."""
    run = Workspace(load("<mujoco/>"), width, dtype).bound(path_frames)
    return float(np.median([_seconds(run) for _ in range(200)]))
