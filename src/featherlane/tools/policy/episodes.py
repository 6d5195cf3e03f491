"""`PolicyLoop`: episodes of a batch's worlds with a policy in the loop, without Python between the steps.

A piece of a call runs within one bytecode, as for `Batch.step`.  The number of episodes that end in a piece is unknown
before it, so initial states are sampled ahead.  If they do not suffice, the piece is repeated from its beginning with
more; a repetition changes no result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes.record import address
from featherlane.engine.model.arguments import instance, one_of, whole_argument
from featherlane.engine.model.assignment import as_real_array, check_finite
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.runner import PIECE_SECONDS, STAGES
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.tile.work import work
from featherlane.errors import ModelError
from featherlane.tools.policy.functions import LaneFunctions, connect, stages
from featherlane.tools.policy.mlp import MLP
from featherlane.tools.policy.play import play_tiles

DECAY = 0.98  # of `most_started`; a repetition of a piece takes as long as the piece
UNLIMITED = 2**53


class InitialStates(Protocol):
    """Initial states that were sampled ahead.

    Attributes:
        rows: (n, k, nq + nv) positions and velocities of the next k episodes of each world.
    """

    rows: np.ndarray

    def leave(self, used: np.ndarray) -> None:
        """Sets random number generators to their states after `used` (n,) episodes of each world."""
        ...


class PolicyLoop:
    """Runs episodes of a batch's worlds with a policy in the loop, as Gymnasium's autoreset mode NEXT_STEP does.

    The caller sets the arrays of the present state before `run`, which changes them.

    Args:
        batch: the worlds.
        functions: compiled observation, reward and termination.
        label: name of the task, for messages.
        ninput: length k of an observation.
        fields: derived fields that the functions read; they are bound.
        frame_skip: time steps of an action.
        limit: actions after which an episode is truncated; None: no limit.
        forward_at_start: meaning of the start stage "task" of the functions, see `LaneFunctions`.

    Attributes:
        observations: (n, k) of the present states.
        before: (n, functions.nbefore) what the reward needs of the present states.
        done: (n,) 1 in worlds whose next step starts an episode, else 0.
        elapsed: (n,) actions since the start of the episode.
        faults: (n,) counts of the statuses `non_finite` and `bad_control`; a higher count ends an episode.
        most_started: the most episodes that a world started in a piece, per step; it decreases from piece to piece.

    Raises:
        ModelError: a function that is no kernel of the parameters (d, p, at_start) or reads a field that is not
            computed; an unknown start stage; a batch with `record_failures`.
    """

    def __init__(
        self,
        batch: Batch,
        functions: LaneFunctions,
        *,
        label: str,
        ninput: int,
        fields: Sequence[str] = (),
        frame_skip: int = 1,
        limit: int | None = None,
        forward_at_start: bool = True,
    ):
        if batch.runner.recorder is not None:
            raise ModelError("rollout: got an environment with record_failures, allowed is 0")
        for name in fields:
            batch.bind(name)
        stage = one_of(f"{label}: start_stage", functions.start_stage, ("task", "none", *STAGES))
        if stage == "task":
            stage = "acceleration" if forward_at_start and batch.bound else "none"
        self.batch, self.label, self.limit = batch, label, UNLIMITED if limit is None else limit
        self._functions, self._start_stage = stages(label, functions, fields), STAGES.get(stage, 0)
        self._frame_skip, self.most_started = frame_skip, 0.0
        widths = {"obs": ninput, "before": functions.nbefore, "done": 1, "bad": 1, "used": 1}
        self._kept = {name: np.zeros((batch.nworld, k), batch.dtype) for name, k in widths.items()}
        self._kept["elapsed"] = np.zeros((batch.nworld, 1))
        self.observations, self.before = self._kept["obs"], self._kept["before"]
        self.done, self.elapsed, self.faults = (self._kept[name][:, 0] for name in ("done", "elapsed", "bad"))
        self._found = np.zeros(batch.nworld, bool)

    def run(
        self, nstep: int, policy: MLP, sample: Callable[[int], InitialStates], noise: ArrayLike | None = None
    ) -> tuple[np.ndarray, ...]:
        """Runs nstep steps of the environments of all worlds.

        Args:
            nstep: steps of the environments, at least 1.
            policy: the policy, with k inputs and nu outputs.
            sample: function of k that returns initial states of the next k episodes of each world.
            noise: (n, nstep, nu) noise of the standard normal distribution; None: none.

        Returns:
            Observations (n, nstep + 1, k), actions and their means (n, nstep, nu), rewards (n, nstep) float64, and
            which episodes are terminated or truncated or started in each step, (n, nstep) bool.

        Raises:
            ModelError: a policy or noise of another shape; a function that cannot be compiled.
            InstallationError: no compiler is installed.
            RuntimeError: another call of the batch is running.
        """
        batch, kept, dtype = self.batch, self._kept, self.batch.dtype
        nstep, n, nu = whole_argument("nstep", nstep, 1), batch.nworld, batch.model.nu
        width = kept["obs"].shape[1]
        instance("policy", policy, MLP, "a featherlane.policies.MLP")
        if (policy.ninput, policy.noutput) != (width, nu):
            given = f"{policy.ninput} inputs and {policy.noutput} outputs"
            raise ModelError(f"policy: got {given}, allowed are {width} inputs and {nu} outputs")
        rows_of_noise = _noise(noise, (n, nstep, nu), dtype)
        widths = {"obs": width, "action": nu, "mean": nu}
        widths |= dict.fromkeys(("reward", "terminated", "truncated", "done", "non_finite"), 1)
        rows = {
            name: np.empty((n, nstep + (name in ("obs", "done")), k), np.float64 if name == "reward" else dtype)
            for name, k in widths.items()
        }
        rows["obs"][:, 0], rows["done"][:, 0] = kept["obs"], kept["done"]
        taken = {name: a[:, 1:] if name in ("obs", "done") else a for name, a in rows.items()}
        done, runner = 0, batch.runner
        while done < nstep:
            part = slice(done, min(nstep, done + max(1, runner.at_once // (n * self._frame_skip))))
            begin = time.perf_counter()
            part_of_noise = None if rows_of_noise is None else rows_of_noise[:, part]
            self._piece(policy, part, sample, part_of_noise, {name: a[:, part] for name, a in taken.items()})
            done, seconds = part.stop, max(time.perf_counter() - begin, 1e-9)
            runner.at_once = max(1, int((part.stop - part.start) * n * self._frame_skip * PIECE_SECONDS / seconds))
        self._found = np.asarray(rows["non_finite"].any(axis=(1, 2)))
        flags = {name: rows[name][..., 0] > 0 for name in ("terminated", "truncated", "done")}
        return (
            rows["obs"], rows["action"], rows["mean"], rows["reward"][..., 0], flags["terminated"], flags["truncated"],
            flags["done"][:, :-1],
        )  # fmt: skip

    def warn(self, level: int) -> None:
        """Warns of worlds that had non-finite values or lost contacts in the last run, as a step of the batch does.

        Args:
            level: number of frames above this one at which the user's call stands.
        """
        self.batch.runner.warn_of_found(found=self._found, level=level + 1)

    def _piece(
        self,
        policy: MLP,
        part: slice,
        sample: Callable[[int], InitialStates],
        noise: np.ndarray | None,
        taken: Mapping[str, np.ndarray],
    ) -> None:
        """Runs some steps of a rollout, with as many initial states as are needed."""
        n, nstep, kept = self.batch.nworld, part.stop - part.start, self._kept
        before = self.batch.checkpoint(), {name: rows.copy() for name, rows in kept.items()}
        ends = kept["done"].any() or kept["elapsed"].max() + nstep >= self.limit
        expected = int(np.ceil(self.most_started * nstep)) + (self.most_started > 0)
        k = min(max(expected, int(ends)), -(-nstep // 2) + 1)
        while True:
            starts = sample(k)
            hold((self.batch.runner.turn,), self._play, policy, nstep, starts.rows, noise, taken)
            used = kept["used"][:, 0].astype(np.int64)
            starts.leave(np.minimum(used, k))
            most = int(used.max())
            if most <= k:
                break
            # an initial state was missing: repeat the piece from its beginning with more of them
            self.batch.restore(before[0])
            for name, rows in before[1].items():
                kept[name][...] = rows
            starts.leave(np.zeros(n, np.int64))
            k = most
        self.most_started = max(most / nstep, DECAY * self.most_started)
        kept["used"][...] = 0

    def _play(
        self, policy: MLP, nstep: int, start: np.ndarray, noise: np.ndarray | None, taken: Mapping[str, np.ndarray]
    ) -> None:
        """Runs nstep steps of all worlds, with initial states (n, k, nq + nv), and records into `taken`."""
        runner = self.batch.runner
        runner.ready()
        plans, numbers = runner.plans, policy.numbers(runner.arrays.dtype)
        sizes = policy.sizes() | {"numbers": address(numbers), "frame_skip": self._frame_skip, "nskip": 0}
        sizes |= {"nbefore": self.before.shape[1], "nstart": start.shape[1], "nstate": start.shape[2]}
        sizes |= {"limit": self.limit, "start_stage": self._start_stage}
        sizes |= dict.fromkeys(("observe", "remember", "score"), 0)
        if plans.skips_outputs:
            sizes["nskip"] = self._frame_skip - 1
        brought = {} if noise is None else {"noise": noise}
        plan = plans.loop_plan(play_tiles, self._kept, {"start": start}, brought, taken, sizes)
        every = np.arange(self.batch.nworld)
        for (record,) in plan.own:
            policy.fill(record.arrays)
            connect(self.label, record, self._functions)
        work([plans.begun(plan, nstep, every, every)], plans.team)
        for (record,), w in zip(plan.own, plan.workspaces, strict=True):
            for each in (record, w.record):
                each.check_faults(self.label, ModelError)
        runner.after(every)


def _noise(noise: ArrayLike | None, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the noise of a rollout, checked."""
    if noise is None:
        return None
    rows = as_real_array("noise", noise, f"is an array {shape} of numbers")
    if rows.shape != shape:
        raise ModelError(f"noise: got shape {rows.shape}, allowed are finite numbers {shape}")
    check_finite("noise", rows)
    return np.ascontiguousarray(rows, dtype)
