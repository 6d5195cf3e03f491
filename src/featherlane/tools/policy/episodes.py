"""Runs rollouts of a batch's worlds with a policy in the loop: plans, pieces of long calls, initial states.

A piece of a call runs within one bytecode, as for `Batch.step`.  The number of episodes that end in a piece is unknown
before it, so the caller provides initial states for some.  If they do not suffice, the piece is repeated from its
beginning with more; a repetition changes no result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.lanes.record import address
from featherlane.engine.simulation.batch.runner import Runner
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.work import work
from featherlane.errors import ModelError
from featherlane.tools.policy.functions import connect
from featherlane.tools.policy.mlp import MLP
from featherlane.tools.policy.play import play_tiles


class Program(NamedTuple):
    """Describes the environments that a rollout steps.

    Attributes:
        label: name of the task, for messages.
        functions: stages of the task by name.
        nbefore: number of values in `before`.
        frame_skip: time steps of an action.
        limit: actions after which an episode is truncated; None: no limit.
        start_stage: number of the stage up to which the derived fields of initial states are computed; 0: none.
    """

    label: str
    functions: Mapping[str, Any]
    nbefore: int
    frame_skip: int
    limit: int | None
    start_stage: int


def kept_rows(n: int, ninput: int, nbefore: int, dtype: np.dtype) -> dict[str, np.ndarray]:
    """Returns the arrays (n, ...) that continue from call to call, by field of `PLAY`."""
    widths = {"obs": ninput, "before": nbefore, "done": 1, "bad": 1, "used": 1}
    return {name: np.zeros((n, k), dtype) for name, k in widths.items()} | {"elapsed": np.zeros((n, 1))}


def play(
    runner: Runner,
    policy: MLP,
    program: Program,
    nstep: int,
    kept: Mapping[str, np.ndarray],
    start: np.ndarray,
    noise: np.ndarray | None,
    taken: Mapping[str, np.ndarray],
) -> None:
    """Runs nstep steps of the environments of all worlds.

    Args:
        runner: runner of the worlds.
        policy: the policy.
        program: the environments.
        nstep: steps of the environments.
        kept: arrays of `kept_rows`, which change.
        start: (n, k, nq + nv) initial states of the next k episodes of each world.
        noise: (n, nstep, nu) noise of the actions, or None.
        taken: (n, nstep, ...) arrays to record into, by field of `PLAY`.

    Raises:
        RuntimeError: another call of the batch is running.
    """
    hold((runner.turn,), _play, runner, policy, program, nstep, kept, start, noise, taken)


def _play(runner: Runner, policy: MLP, program: Program, nstep: int, kept, start, noise, taken) -> None:
    runner.ready()
    arrays, plans, numbers = runner.arrays, runner.plans, policy.numbers(runner.arrays.dtype)
    sizes = policy.sizes() | {"numbers": address(numbers), "frame_skip": program.frame_skip, "nskip": 0}
    sizes |= {"nbefore": program.nbefore, "nstart": start.shape[1], "nstate": start.shape[2]}
    sizes |= {"limit": 2**53 if program.limit is None else program.limit, "start_stage": program.start_stage}
    sizes |= dict.fromkeys(("observe", "remember", "score"), 0)
    if plans.skips_outputs:
        sizes["nskip"] = program.frame_skip - 1
    brought = {} if noise is None else {"noise": noise}
    plan = plans.loop_plan(play_tiles, kept, {"start": start}, brought, taken, sizes)
    every = np.arange(arrays.nworld)
    for (record,) in plan.own:
        policy.fill(record.arrays)
        connect(program.label, record, program.functions)
    work([plans.begun(plan, nstep, every, every)], plans.team)
    for (record,), w in zip(plan.own, plan.workspaces, strict=True):
        for each in (record, w.record):
            each.check_faults(program.label, ModelError)
    runner.after(every)
