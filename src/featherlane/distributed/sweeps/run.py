"""`sweep`: many rollouts of one model, each with different parameters, reduced to a table; for long computations.

    result = sweep(
        fl.bundled("humanoid"),
        {"body_mass": uniform(0.8, 1.2, apply="scale"), "geom_friction[floor, 0]": grid([0.4, 0.8, 1.2])},
        {"nstep": 500, "control": "random"},
        {"height": "final qpos[2]"},
        nsample=300,
        out="runs/friction",
    )

Samples run in chunks, as worlds of batches, in this process or as Ray tasks.  The result of a sample does not depend on
its chunk: each sample has a separate random generator, its world is bitwise independent, and it is reduced separately.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.distributed.cluster import Cluster
from featherlane.distributed.sweeps.chunk import Columns, Pace, timed_chunk, try_one
from featherlane.distributed.sweeps.identity import identity
from featherlane.distributed.sweeps.plan import Plan, make_plan
from featherlane.distributed.sweeps.reduction import Function, Named
from featherlane.distributed.sweeps.result import NAMED, Sweep, join_chunks
from featherlane.distributed.sweeps.run_directory import RunDirectory, read_chunks
from featherlane.distributed.sweeps.values import Source
from featherlane.distributed.sweeps.workers import Workers
from featherlane.errors import InstallationError, ModelError, NonFiniteWarning, few
from featherlane.extension import binary, whole_argument
from featherlane.lanes import Kernel

Chunks = Generator[tuple[np.ndarray, Columns]]
Watcher = Callable[[int, int], None]


# message of the comparison with sample 0 alone
DEPENDENT = "but {own} when computed alone: `control` or `reduce` makes samples depend on each other"
WORKER = "but {own} on this machine: a worker uses other kernels, libraries or functions"
ELSEWHERE = "but {own} on this machine: the run directory was written with other kernels or libraries"


class SweepInterrupted(KeyboardInterrupt):
    """Raised by Ctrl-C in a sweep, after the local computation has ended.

    Attributes:
        done: number of finished samples.
        nsample: total number of samples.
        path: run directory with the results; None without one.
    """

    def __init__(self, done: int, nsample: int, path: Path | None):
        kept = f"; they are kept in {path}, and the same call continues the run" if path else ""
        super().__init__(f"interrupted after {done} of {nsample} samples{kept}")
        self.done, self.nsample, self.path = done, nsample, path


def sweep(
    model: Model,
    parameters: Mapping[str, Any],
    rollout: Mapping[str, Any] | int,
    *,
    reduce: Function | Mapping[str, str],
    nsample: int = 1,
    seed: int = 0,
    out: str | Path | None = None,
    chunk: int = 0,
    nthread: int = 0,
    nodes: int | str | Cluster | None = None,
    progress: bool | Watcher = True,
) -> Sweep:
    """Runs many rollouts of a model with different parameters, and reduces each to a few numbers.

    Args:
        model: the model.
        parameters: values by field.  A field is a real field of the model (`body_mass`), an option (`opt.timestep`), an
            editable integer field (`eq_active0`), or a field of the initial state (`qpos`).  Brackets select entries:
            `body_mass[torso]`, `geom_friction[:, 0]`, `qpos[2]`.  Two fields joined by ` + ` take the same value:
            `body_mass + body_inertia`.  Values are a list with one value per sample, or `grid`, `uniform`,
            `log_uniform`, `normal`, `choice` or `drawn`, in SI units.  Dependent fields (`dof_invweight0`) are
            recomputed.  Each option or integer value requires a separate model.
        rollout: a dict of `nstep`, `control`, `record`, `keyframe` and `dtype`; a single number is `nstep`.  `control`
            is None, "random" (uniform within the actuators' ranges, held for 0.1 s), an array (nstep, nu) or (all
            samples, nstep, nu), or a kernel or a function as in `Batch.rollout`.
        reduce: a function from the recordings of one sample, name -> (nstep, ...), to numbers by name.  Or reductions
            by name, such as {"height": "final qpos[2]"}: first, final, mean, std, rms, min, max, peak (the greatest
            magnitude) or sum, followed by a field with its entries.
        nsample: number of samples at each point of the grids and lists.
        seed: seed of all random numbers.
        out: a run directory, which keeps finished chunks; repeating the call resumes the run.
        chunk: number of samples that run at once; 0 for as many as take some seconds.
        nthread: number of threads; 0 for one per core; with Ray, threads per task.
        nodes: None: this process alone, without Ray.  A number: so many workers, on the Ray that this process is
            connected to, or else on a Ray that is started on this machine.  An address ("HOST:PORT" or "auto") or a
            `Cluster`: the workers of this cluster.  This process stores the results.
        progress: whether to show a progress bar on stderr, if it is a terminal; or a function of (done, nsample).

    Returns:
        A `Sweep`: parameters (n, ...), results (n,) and status (n,) of every sample.

    Raises:
        TypeError: `model` is not a `Model`.
        ModelError: a field is unknown, a value has a wrong shape or is out of range, a reduction returns a non-number,
            or the run directory belongs to another run; raised before anything runs, for any sample.  Also if the
            result of a sample depends on other samples, or a function cannot be serialized.
        InstallationError: Ray is not installed, or a node has other versions.
        SweepInterrupted: Ctrl-C was pressed; it is a KeyboardInterrupt.

    Source: MuJoCo has no such function.  Samples are ordered as in nested loops, from the outer to the inner loop:
        grids in the given order, lists (which vary together), and the `nsample` samples of each point.

    Note:
        The bits of a sample's result depend only on the model, the parameters' names and values, the seed and the
        sample's number.  They do not depend on chunks, threads, other samples, or interruptions of the run.
    """
    plan = make_plan(model, parameters, rollout, reduce, seed, nsample)
    pace, nthread = Pace(plan, whole_argument("chunk", chunk, 0)), whole_argument("nthread", nthread, 0)
    watcher = _watcher(progress)
    trial = try_one(plan, nthread if nodes is None else 1)
    with contextlib.ExitStack() as stack:
        workers = None if nodes is None else stack.enter_context(Workers(plan, nodes, nthread))
        if workers is not None:
            if out is None:
                workers.begin([(0, plan.nsample)], pace)  # sample 0 is compared before any chunk is kept
            _compare(trial, np.zeros(1, np.int64), workers.try_one(), WORKER)
        store = None if out is None else open_run(out, plan)
        if store is not None:
            stack.enter_context(store.held())
        done = [] if store is None else read_chunks(store.chunks, plan.nsample)
        for samples, columns in done:
            _compare(trial, samples, columns, ELSEWHERE)
        left = _left(done, plan.nsample)
        say = stack.enter_context(watcher(plan.nsample))
        if workers is not None and store is not None:
            workers.begin(left, pace)
        chunks = _local(plan, left, pace, nthread) if workers is None else workers.chunks(pace)
        with contextlib.closing(chunks):
            _collect(plan, chunks, trial, done, store, say)
    result = join_chunks(done, plan.nsample)
    if store is not None:
        result.save(store.path / "result.npz")
        with contextlib.suppress(InstallationError):
            result.save(store.path / "result.parquet")
    _warn_of_failed(result)
    return result


def _collect(plan: Plan, chunks: Chunks, trial: Columns, done: list, store: RunDirectory | None, say) -> None:
    """Stores chunks as they arrive."""
    count_done = sum(len(samples) for samples, _ in done)
    say(count_done)
    try:
        for samples, columns in chunks:
            _compare(trial, samples, columns, DEPENDENT)
            if store is not None:
                store.write_chunk(samples, columns)
            done.append((samples, columns))
            count_done += len(samples)
            say(count_done)
    except KeyboardInterrupt:
        raise SweepInterrupted(count_done, plan.nsample, store.path if store else None) from None


def _local(plan: Plan, left: list[tuple[int, int]], pace: Pace, nthread: int) -> Chunks:
    """Yields chunks that are computed in this process, in sequence."""
    for start, stop in left:
        while start < stop:
            samples = np.arange(start, min(stop, start + pace.size))
            columns, seconds = timed_chunk(plan, samples, nthread)
            pace.saw(len(samples), seconds)
            yield samples, columns
            start += len(samples)


def _left(done: list[tuple[np.ndarray, Columns]], nsample: int) -> list[tuple[int, int]]:
    """Returns the ranges of unfinished samples."""
    is_done = np.zeros(nsample + 2, bool)
    is_done[[0, -1]] = True
    for samples, _ in done:
        is_done[samples + 1] = True
    change = np.flatnonzero(np.diff(is_done))
    return [(int(a), int(b)) for a, b in zip(change[::2], change[1::2], strict=True)]


def _compare(trial: Columns, samples: np.ndarray, columns: Columns, how: str) -> None:
    """Raises an error if sample 0 in a chunk is not bitwise identical to sample 0 alone."""
    at = np.flatnonzero(samples == 0)
    if not len(at):
        return
    for name, own in trial.items():
        found = columns.get(name)
        if found is None or found[at].tobytes() != own.astype(found.dtype).tobytes():
            got = "nothing" if found is None else found[at[0]]
            raise ModelError(f"sample 0: {name.partition(':')[2]}: got {got}, {how.format(own=own[0])}")


def open_run(out: str | Path, plan: Plan) -> RunDirectory:
    """Opens the run directory of a plan."""

    if not isinstance(out, str | Path) or not str(out):
        raise ModelError(f"out: got {out!r}, allowed is the path of a folder")
    run, model = plan.rollout, plan.model
    about = {
        "source": model.source,
        "nsample": plan.nsample,
        "draws": plan.draws,
        "seed": plan.seed,
        "parameters": {path: _described(source) for path, source in plan.sources.items()},
        "rollout": {
            "nstep": run.nstep,
            "control": run.control if isinstance(run.control, str | None) else _named(run.control),
            "record": list(run.record),
            "keyframe": run.keyframe,
            "dtype": run.dtype,
        },
        "reduce": plan.reduce.given if isinstance(plan.reduce, Named) else _named(plan.reduce),
        "results": list(plan.names or ()),
    }
    return RunDirectory(
        out, identity(plan), about, lambda path: Path(path).write_bytes(binary(model.to_mujoco()).tobytes())
    )


def _described(source: Source) -> dict[str, Any]:
    """Describes a parameter in words."""
    words = {"kind": source.kind, "apply": source.apply, "each": source.each}
    if source.function is not None:
        return words | {"function": _named(source.function)}
    return words | {"numbers": [np.asarray(option).tolist() for option in source.options]}


def _named(given: Any) -> str:
    """Describes a function or an array in words."""
    if isinstance(given, np.ndarray):
        return f"numbers {given.shape}"
    function = given.function if isinstance(given, Kernel) else given
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"


def _warn_of_failed(result: Sweep) -> None:
    bad = result.bad()
    if len(bad):
        import warnings

        warnings.warn(
            f"samples {few(bad, NAMED)} had values that are NaN or larger than 1e10, or non-finite "
            f"results: see Sweep.status, Sweep.bad()",
            NonFiniteWarning,
            stacklevel=3,
        )


# ---- progress --------------------------------------------------------------------------------------------------------
def _watcher(progress: bool | Watcher) -> Callable[[int], contextlib.AbstractContextManager[Callable[[int], None]]]:
    """Returns the context manager that reports progress."""
    if callable(progress):
        return lambda total: contextlib.nullcontext(lambda done: progress(done, total))
    if not isinstance(progress, bool | np.bool_):
        raise ModelError(f"progress: got {progress!r}, allowed are True, False or a function progress(done, nsample)")
    return _bar if progress else lambda total: contextlib.nullcontext(lambda done: None)


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """Shows a transient progress bar on stderr; nothing if it is not a terminal."""
    from rich import console, progress

    screen, times = console.Console(stderr=True), (progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
    if not screen.is_terminal:  # a disabled bar of rich 13 prints an empty line
        yield lambda done: None
        return
    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(), *times
    with progress.Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("samples", total=total)
        yield lambda done: bar.update(task, completed=done)
