"""Measures the time of each stage of a batch's step, on the tiles that the batch would form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from featherlane.engine.collision.collision import collision
from featherlane.engine.dynamics.body.kinematics import path_frames
from featherlane.engine.dynamics.inertia.articulated import needs_factor, needs_inertia
from featherlane.engine.dynamics.integrator.integrate import advance, euler
from featherlane.engine.lanes import Stage
from featherlane.engine.lanes.record import python_record
from featherlane.engine.model.integrator import SCHEMES
from featherlane.engine.model.load import load
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.order import LASTS
from featherlane.engine.simulation.batch.plans import step_flags
from featherlane.engine.simulation.step import forward
from featherlane.engine.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.engine.simulation.step.part import SOLVE, solve_in_parts
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.tools.profile.settled_states import SettledStates

STEPS = 6  # consecutive steps from the settled states; the first is not counted
TRIALS = 3  # trials per tile; the fastest time of each stage and step counts
SOLVES = "solve_constraint"
OF_ROWS = ("collision", "make_constraint", SOLVES)  # stages that a tile at its capacity processes in parts


def stage_times(lineup: SettledStates, on_progress: Callable[[int], None] = lambda done: None) -> dict[str, float]:
    """Measures microseconds per world of each stage, of the whole step, and of the unexplained rest.

    Tiles and requested outputs are those of the batch (it groups worlds with similar contacts, and piles one by one).
    Each tile takes some steps stage by stage, each stage timed with the caches as it finds them, and the same steps as
    the batch takes them.  The fastest trial counts, less the overhead of a call from Python.  Worlds that do not fill a
    tile are left out.

    Returns:
        Times by stage name, in step order, then `rest`, which can be slightly negative, and `step`.
    """
    total: dict[str, float] = {}
    timed = 0
    for tile in tiles(lineup):
        for name, seconds in _tile_times(lineup, tile).items():
            total[name] = total.get(name, 0.0) + seconds
        timed += len(tile.worlds)
        on_progress(timed)
    step = total.pop("step", 0.0)
    total |= {"rest": step - sum(total.values()), "step": step}
    return {name: 1e6 * seconds / max(timed, 1) for name, seconds in total.items()}


class Tile(NamedTuple):
    """Worlds that a batch processes together.

    Attributes:
        workspace: their workspace, with the outputs of the batch's step; other tiles share it.
        worlds: their numbers.
        nothing: a stage without work on such tiles, whose time is the overhead of a call from Python.
    """

    workspace: Workspace
    worlds: np.ndarray
    nothing: Callable[[], None]

    def put(self, lineup: SettledStates) -> None:
        """Sets the worlds to their settled states."""
        for name, value in lineup.states.items():
            self.workspace.arrays[name][: value.shape[1]] = value[self.worlds].T
        self.workspace.arrays["con_overflow"][...] = 0


def tiles(lineup: SettledStates) -> Iterator[Tile]:
    """Yields the tiles that the batch would form from the settled states, except an incomplete one."""
    course = lineup.course
    counter = Batch(lineup.model, course.worlds, nthread=1, dtype=course.dtype)
    lineup.put(counter)
    counter.forward()
    plans = counter.runner.plans
    for width, some in plans.parts(np.arange(course.worlds)):
        plans.arrange(some, width, LASTS)  # ends the order of `forward`, which began without contacts
        part = plans.arrange(some, width, 0)
        workspace = Workspace(lineup.model, width, course.dtype)
        for name, value in step_flags(lineup.model, course.worlds).items():
            workspace.record.set_size(name, value)
        nothing = Workspace(load("<mujoco/>"), width, course.dtype).bound(path_frames)
        for worlds in part[: len(part) // width * width].reshape(-1, width):
            yield Tile(workspace, worlds, nothing)


def _tile_times(lineup: SettledStates, tile: Tile) -> dict[str, float]:
    """Measures the seconds of each stage of a step on a tile, in step order, and of the whole step."""
    workspace, least = tile.workspace, LeastTimes(tile.nothing)
    chain = [(stage.name, workspace.bound(stage)) for stage in stages_of_step(lineup.model, workspace)]
    in_parts, step = workspace.bound(solve_in_parts), workspace.bound(forward.step)
    overflow = workspace.arrays["con_overflow"]
    for _ in range(TRIALS):
        tile.put(lineup)
        for k in range(STEPS):
            for name, run in chain:
                if not (overflow[0] and name in OF_ROWS):
                    least.time(name, k, run)
                if overflow[0] and name == SOLVES:
                    least.time(solve_in_parts.name, k, in_parts, SOLVE)
        tile.put(lineup)
        for k in range(STEPS):
            least.time("step", k, step)
    return {
        name: sum(seconds for k, seconds in steps.items() if k > 0) / (STEPS - 1)
        for name, steps in least.seconds().items()
    }


class LeastTimes:
    """The least seconds of repeated runs, by name and step number.

    Args:
        nothing: runs before each measurement; its time, the call overhead with the present caches, is subtracted.
    """

    def __init__(self, nothing: Callable[[], None]):
        self._nothing = nothing
        self._calls: dict[str, dict[int, float]] = {}
        self._runs: dict[str, dict[int, float]] = {}

    def time(self, name: str, k: int, run: Callable[..., None], *numbers: int) -> None:
        """Runs and times a function in step k."""
        self._nothing()
        start = time.perf_counter()
        self._nothing()
        between = time.perf_counter()
        run(*numbers)
        end = time.perf_counter()
        for least, seconds in ((self._calls, between - start), (self._runs, end - between)):
            steps = least.setdefault(name, {})
            steps[k] = min(steps.get(k, seconds), seconds)

    def seconds(self) -> dict[str, dict[int, float]]:
        """Returns seconds by name, then by step number."""
        return {
            name: {k: seconds - self._calls[name][k] for k, seconds in steps.items()}
            for name, steps in self._runs.items()
        }


def stages_of_step(model, workspace) -> list:
    """Returns the stages of a step of this model in order, without checks of values, sensors and sleep."""
    m, d = python_record(workspace.rows.record), python_record(workspace.record)
    every, early = bool(d.want_all), forces_need_contacts(model)
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
        (forward.make_constraint, True),
        (forward.solve_constraint, True),
        (_last_stage(model), True),
    ]
    return [stage for stage, runs in chain if runs]


def _last_stage(model):
    """Returns the stage that advances the state with this model's integrator."""
    scheme = SCHEMES[int(model.opt.integrator)]
    if scheme.accelerations > 1:
        return forward.runge_kutta
    if isinstance(scheme.advance, Stage):
        return scheme.advance
    return advance if model.opt.contact_model == "lcp" else euler
