"""Where the time of a batch's step goes: its stages one after the other, on the tiles that the batch would make."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from featherlane.collision.collision import collision
from featherlane.dynamics.body.kinematics import path_frames
from featherlane.dynamics.inertia.articulated import needs_factor, needs_inertia
from featherlane.dynamics.integrator.integrate import advance, euler
from featherlane.lanes import Stage
from featherlane.lanes.record import python_record
from featherlane.measure.race import Lineup
from featherlane.model.integrator import SCHEMES
from featherlane.model.load import load
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.runner import sizes_wanted
from featherlane.simulation.step import forward
from featherlane.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.simulation.step.part import SOLVE, solve_in_parts
from featherlane.simulation.tile.workspace import Workspace

STEPS = 6  # in a row, from the settled states; the first does not count
TRIALS = 3  # of a tile; of each stage in each step the quickest counts
SOLVES = "solve_constraint"
OF_ROWS = ("collision", "make_constraint", SOLVES)  # what a tile without room does in parts


def stage_times(lineup: Lineup, told: Callable[[int], None] = lambda done: None) -> dict[str, float]:
    """Microseconds per world of each stage of a step of the batch, of the whole step, and of what no stage explains.

    Tiles are those of the batch (worlds of alike contacts together, piles one by one), and so is what is asked of a
    step.  Each tile takes some steps stage by stage, each stage timed as it finds the caches there, and the same steps
    as the batch does; the quickest trial counts, less the cost of a call from Python.  Worlds that do not fill a tile
    are left out.

    Returns:
        Times by the stage's name in the order of the step, then `rest`, which may be a little below 0, and `step`.
    """
    total: dict[str, float] = {}
    timed = 0
    for tile in tiles(lineup):
        for name, seconds in _tile_times(lineup, tile).items():
            total[name] = total.get(name, 0.0) + seconds
        timed += len(tile.worlds)
        told(timed)
    step = total.pop("step", 0.0)
    total |= {"rest": step - sum(total.values()), "step": step}
    return {name: 1e6 * seconds / max(timed, 1) for name, seconds in total.items()}


class Tile(NamedTuple):
    """Worlds that a batch puts side by side.

    Attributes:
        workspace: for them, with what is asked of a step of the batch; that of other tiles, too.
        worlds: their numbers.
        nothing: a stage of such tiles that has nothing to do: it costs what a call from Python does.
    """

    workspace: Workspace
    worlds: np.ndarray
    nothing: Callable[[], None]

    def put(self, lineup: Lineup) -> None:
        """The worlds back to their settled states."""
        for name, value in lineup.states.items():
            self.workspace.arrays[name][: value.shape[1]] = value[self.worlds].T
        self.workspace.arrays["con_overflow"][...] = 0


def tiles(lineup: Lineup) -> Iterator[Tile]:
    """The tiles that the batch would make of the settled states, but for one that is not full."""
    course = lineup.course
    counter = Batch(lineup.model, course.worlds, nthread=1, dtype=course.dtype)
    lineup.put(counter)
    counter.forward()
    for width, some in counter.runner.parts(np.arange(course.worlds)):
        part = counter.runner.arrange(some, width, 0)
        workspace = Workspace(lineup.model, width, course.dtype)
        for name, value in sizes_wanted(lineup.model, course.worlds).items():
            workspace.record.set_size(name, value)
        nothing = Workspace(load("<mujoco/>"), width, course.dtype).bound(path_frames)
        for worlds in part[: len(part) // width * width].reshape(-1, width):
            yield Tile(workspace, worlds, nothing)


def _tile_times(lineup: Lineup, tile: Tile) -> dict[str, float]:
    """Seconds of each stage that a step runs on a tile, one after the other as there, and of the step."""
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
    """The least seconds of what runs again and again, by its name and the number of the step.

    Args:
        nothing: runs before each; its time is what a call costs where caches are as they are then, and is taken off.
    """

    def __init__(self, nothing: Callable[[], None]):
        self._nothing = nothing
        self._calls: dict[str, dict[int, float]] = {}
        self._runs: dict[str, dict[int, float]] = {}

    def time(self, name: str, k: int, run: Callable[..., None], *numbers: int) -> None:
        """Run something in step k."""
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
        """By name, then by the number of the step."""
        return {
            name: {k: seconds - self._calls[name][k] for k, seconds in steps.items()}
            for name, steps in self._runs.items()
        }


def stages_of_step(model, workspace) -> list:
    """The stages that a step of this model runs, in their order: without checks of numbers, sensors and sleep."""
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
    """The stage that takes the step of this model's integrator."""
    scheme = SCHEMES[int(model.opt.integrator)]
    if scheme.accelerations > 1:
        return forward.runge_kutta
    if isinstance(scheme.advance, Stage):
        return scheme.advance
    return advance if model.opt.contact_model == "lcp" else euler
