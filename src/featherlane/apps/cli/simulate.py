"""`featherlane simulate`: simulates many worlds of a model and measures the run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from featherlane import Batch, load
from featherlane.apps import video
from featherlane.apps.cli.controls import control_source
from featherlane.apps.cli.exit import BAD_WORLDS, INTERRUPTED, complain
from featherlane.apps.cli.nodes import open_batch, threads_by_worker
from featherlane.apps.cli.output import check_target, console, name_value_table, print_json, progress, table
from featherlane.apps.cli.recording import Recording, frame_interval, write_failures
from featherlane.apps.cli.settings import set_options
from featherlane.errors import ModelError, few, near
from featherlane.extension import bounded, check_counts, configuration

MOST_STEPS = 1e12  # years on any machine
SECONDS = 5.0  # default simulated time, unless a file of controls determines it
STORY_ROWS = 10
NAMED = 20  # most bad worlds that a message lists
LISTED = 3  # most failure files that the closing table lists
METER_WORLDS = 256  # number of worlds whose energy is computed at once
FIRST = np.arange(1)  # the world whose motion is printed
# reports by their name in the results: field of a batch, statistic over worlds and frames, least value
SAMPLED = {
    "contacts": ("ncon", np.mean, 0),
    "solver_iterations": ("solver_niter", np.mean, 0),
    "solver_residual": ("solver_residual", np.median, 0.0),
    "solver_gap": ("solver_gap", np.median, 0.0),
}


@dataclass
class Request:
    """Arguments of the command."""

    source: str
    worlds: int = 1
    seconds: float | None = None
    controls: str = "zero"
    seed: int = 0
    keyframe: str | None = None
    threads: int = 0
    dtype: str = "float64"
    fps: float | None = None
    out: Path | None = None
    record_failures: int = 0
    nodes: str | None = None
    video: Path | None = None
    camera: str | None = None
    settings: tuple[str, ...] = ()
    as_json: bool = False


class Samples:
    """Solver reports of all worlds, sampled at each frame."""

    def __init__(self) -> None:
        self.middle: dict[str, list[float]] = {name: [] for name in SAMPLED}
        self.most = {name: least for name, (_, _, least) in SAMPLED.items()}

    def take(self, batch) -> None:
        """Records the last step's reports."""
        for name, (field, middle, _) in SAMPLED.items():
            rows = getattr(batch, field)
            self.middle[name].append(float(middle(rows)))
            self.most[name] = max(self.most[name], rows.max().item())

    def plain(self) -> dict[str, dict[str, float]]:
        """Returns the mean or the median over the frames, and the maximum."""
        return {
            name: {middle.__name__: middle(self.middle[name]), "max": self.most[name]}
            for name, (_, middle, _) in SAMPLED.items()
        }


class Meter:
    """Computes energies and centres of mass of a batch in a separate batch, without changing the measured one."""

    def __init__(self, batch):
        self.batch = batch
        self.probe = Batch(batch.model, min(batch.nworld, METER_WORLDS), nthread=1, dtype=batch.dtype)
        self.energy, self.com = self.probe.bind("energy"), self.probe.bind("subtree_com")

    def _look(self, first: int, count: int) -> None:
        for name in ("qpos", "qvel", "mocap_pos", "mocap_quat"):
            getattr(self.probe, name)[:count] = self.batch.get(name, ids=np.arange(first, first + count))
        self.probe.forward(np.arange(count))

    def mean_energy(self) -> tuple[float, float]:
        """Computes the potential and kinetic energy [J], means over all worlds."""
        total, n, size = np.zeros(2), self.batch.nworld, self.probe.nworld
        for first in range(0, n, size):
            count = min(size, n - first)
            self._look(first, count)
            total += self.energy[:count].sum(axis=0, dtype=np.float64)
        return float(total[0] / n), float(total[1] / n)

    def world(self) -> dict[str, float]:
        """Returns a summary of world 0."""
        self._look(0, 1)
        qvel = self.probe.qvel[0]
        return {
            "time": float(self.batch.get("time", ids=FIRST)[0]),
            "height": self._height(),
            "potential": float(self.energy[0, 0]),
            "kinetic": float(self.energy[0, 1]),
            "speed": float(np.abs(qvel).max()) if qvel.size else 0.0,
            "contacts": int(self.batch.get("ncon", ids=FIRST)[0]),
        }

    def _height(self) -> float:
        """Computes the height of the centre of mass of moving bodies [m]."""
        model = self.batch.model
        roots = np.flatnonzero((np.asarray(model.body_parentid) == 0) & (np.arange(model.nbody) > 0))
        mass = np.asarray(model.body_subtreemass)[roots]
        return float(np.average(self.com[0, roots, 2], weights=mass)) if mass.sum() > 0 else 0.0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C after `done` steps of all worlds."""

    def __init__(self, done: int):
        super().__init__()
        self.done = done


def simulate(request: Request) -> int:
    """Runs the simulation, writes the requested files, and prints the results.

    Returns:
        The exit code: BAD_WORLDS if a world became non-finite or out of range, INTERRUPTED after Ctrl-C (the frames
        recorded so far are still written).

    Raises:
        ModelError: the request is invalid; no file is written.
    """
    _check(request)
    if request.video:
        video.check_encoder()
    model = load(request.source)
    set_options(model, request.settings)
    camera = video.camera_of(model, request.camera) if request.video or request.camera else -1
    kept = request.record_failures if request.out else 0
    options = {"nthread": request.threads, "dtype": request.dtype, "record_failures": kept}
    with open_batch(request.nodes, model, request.worlds, **options) as batch:
        return _simulated(request, batch, camera)


def _simulated(request: Request, batch, camera: int) -> int:
    """Simulates an existing batch, writes the files and prints the results."""
    model = batch.model
    if request.keyframe is not None:
        batch.reset(keyframe=keyframe_of(model, request.keyframe))
    controls = control_source(request.controls, model, batch.nworld, request.seed)
    nstep = _steps(request, model.opt.timestep, controls.nstep)
    every = frame_interval(batch, nstep, model.opt.timestep, request.fps, request.out is not None)
    recording = Recording(batch, 1 + -(-nstep // every)) if request.out else None
    pictures: list[dict[str, np.ndarray]] | None = [] if request.video else None

    try:
        result = _run(batch, controls, nstep, every, recording, pictures, request)
    except Interrupted as stop:
        return _stopped(stop.done, nstep, recording, request, batch)
    failures = []
    if recording is not None and request.out:
        recording.write(request.out, model)
        failures = write_failures(batch, request.out)
    if pictures is not None and request.video:
        with progress(request.as_json) as bar:
            task = bar.add_task("drawing", total=len(pictures))
            rate = 1.0 / (every * model.opt.timestep)
            video.write_video(request.video, model, camera, pictures, rate, lambda: bar.advance(task))
    result["files"] = {"out": str(request.out or ""), "video": str(request.video or ""), "failures": failures}
    if request.as_json:
        print_json(result)
    else:
        _print(result)
    return _report_failed(result["bad_worlds"], batch.nworld)


def _stopped(done: int, nstep: int, recording: Recording | None, request: Request, batch) -> int:
    """Reports where Ctrl-C stopped the run, and writes what was recorded."""
    h, kept = batch.model.opt.timestep, ""
    if recording is not None and request.out:
        recording.write(request.out, batch.model)
        kept = f"; {request.out} contains the {recording.count} frames recorded so far"
        write_failures(batch, request.out)
    _report_failed(_bad_worlds(batch), batch.nworld)
    return complain(
        f"interrupted after {done:,} of {nstep:,} steps, {done * h:g} of {nstep * h:g} s simulated{kept}", INTERRUPTED
    )


def _bad_worlds(batch) -> list[int]:
    """Returns the worlds that became non-finite or out of range."""
    return np.flatnonzero(batch.status["non_finite"]).tolist()


def _report_failed(worlds: list[int], nworld: int) -> int:
    """Returns the exit code; reports bad worlds on stderr."""
    if not worlds:
        return 0
    return complain(
        f"values became non-finite or larger than 1e10 in {len(worlds)} of {nworld} worlds: {few(worlds, NAMED)}",
        BAD_WORLDS,
    )


def _check(request: Request) -> None:
    """Checks what can be checked before a model is loaded."""
    check_counts(request, {"worlds": 1, "threads": 0, "seed": 0, "record_failures": 0})
    for name in ("seconds", "fps"):
        if (value := getattr(request, name)) is not None:
            bounded(name, value, 0.0, above=True)
    if request.out:
        check_target(request.out, ".npz")
    if request.video:
        check_target(request.video, ".mp4")


def keyframe_of(model, given: str) -> str | int:
    """Returns the name or number of the keyframe that `--keyframe` gives.

    Raises:
        ModelError: the keyframe does not exist.
    """
    names = model.names("keyframe")
    if given in names:
        return given
    if given.isdigit() and int(given) < len(names):
        return int(given)
    known = ", ".join(repr(n) if n else str(i) for i, n in enumerate(names)) or "none"
    raise ModelError(f"keyframe: got {given!r}, allowed are {known}{near(given, names)}")


def _steps(request: Request, timestep: float, given: int | None) -> int:
    """Computes the number of steps."""
    seconds = SECONDS if request.seconds is None else request.seconds
    if request.seconds is None and given:
        return given
    if not seconds / timestep <= MOST_STEPS:
        raise ModelError(
            f"seconds: got {seconds:g}, that is {seconds / timestep:.3g} steps of {timestep:g} s; "
            f"allowed are at most {MOST_STEPS:.0e} steps"
        )
    nstep = max(1, round(seconds / timestep))
    if given is not None and given < nstep:
        raise ModelError(
            f"{request.controls}: got controls for {given} steps, but {request.seconds:g} s are {nstep} steps"
        )
    return nstep


def _run(batch, controls, nstep: int, every: int, recording, pictures, request: Request) -> dict:
    """Runs the simulation frame by frame."""

    def frame():
        if recording is not None:
            recording.take()
        if pictures is not None:
            pictures.append({"qpos": batch.get("qpos", ids=FIRST)[0].astype(np.float64)})

    meter, samples, story = Meter(batch), Samples(), []
    energy = meter.mean_energy()  # also loads or compiles every kernel before the time measurement
    batch.forward(np.arange(1))
    story.append(meter.world())
    frame()
    wall, done, reported = 0.0, 0, 0
    with progress(request.as_json) as bar:
        task = bar.add_task("simulating", total=nstep)
        try:
            while done < nstep:
                count = min(every, nstep - done)
                start = time.perf_counter()
                controls.advance(batch, done, count)
                wall += time.perf_counter() - start
                samples.take(batch)
                frame()
                done += count
                if done * STORY_ROWS // nstep > reported:
                    reported = done * STORY_ROWS // nstep
                    story.append(meter.world())
                bar.update(task, completed=done)
        except KeyboardInterrupt:
            raise Interrupted(done) from None
    return _result(batch, nstep, every, wall, samples, energy, meter.mean_energy(), story)


def _result(batch, nstep: int, every: int, wall: float, samples: Samples, before, after, story) -> dict:
    model = batch.model
    simulated = nstep * model.opt.timestep
    return {
        "model": model.source,
        "dropped": model.dropped,
        "worlds": batch.nworld,
        "workers": len(threads_by_worker(batch)),
        "threads": sum(threads_by_worker(batch)),
        "dtype": batch.dtype.name,
        "kernels": configuration()["kernels"],
        "steps": nstep,
        "timestep": model.opt.timestep,
        "simulated_seconds": simulated,
        "wall_seconds": wall,
        "world_steps_per_second": batch.nworld * nstep / wall,
        "real_time_factor": batch.nworld * simulated / wall,
        "frame_interval": every,
        **samples.plain(),
        "energy": {
            "potential": {"start": before[0], "end": after[0]},
            "kinetic": {"start": before[1], "end": after[1]},
        },
        "status": {name: int(count.sum()) for name, count in batch.status.items()},
        "worlds_reset": int((batch.nreset > 0).sum()),
        "bad_worlds": _bad_worlds(batch),
        "world_0": story,
    }


def _print(result: dict) -> None:
    """Prints the motion of world 0 and the closing table."""
    screen, energy = console(), result["energy"]
    columns = ["time [s]", "com height [m]", "potential [J]", "kinetic [J]", "largest |qvel|", "contacts"]
    rows = [
        [
            f"{r['time']:.2f}",
            f"{r['height']:.3f}",
            f"{r['potential']:.4g}",
            f"{r['kinetic']:.3g}",
            f"{r['speed']:.3g}",
            r["contacts"],
        ]
        for r in result["world_0"]
    ]
    screen.print(table("World 0", columns, rows))
    status = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in result["status"].items() if count)
    contacts, iterations, residual = result["contacts"], result["solver_iterations"], result["solver_residual"]
    gap = result["solver_gap"]
    closing = {
        "model": result["model"],
        "worlds": f"{result['worlds']:,} in {result['dtype']} on {result['threads']} threads"
        + f" in {result['workers']} workers" * (result["workers"] > 1)
        + f", {result['kernels']}",
        "steps": f"{result['steps']:,} of {result['timestep']:g} s: {result['simulated_seconds']:g} s simulated",
        "wall time": f"{result['wall_seconds']:.3g} s",
        "world-steps/s": f"{result['world_steps_per_second']:,.0f}",
        "real-time factor": f"{result['real_time_factor']:,.0f}",
        "contacts": f"mean {contacts['mean']:.1f}, maximum {contacts['max']}",
        "solver iterations": f"mean {iterations['mean']:.2f}, maximum {iterations['max']}",
        "solver residual": f"median {residual['median']:.1e}, maximum {residual['max']:.1e}",
        "duality gap": f"median {gap['median']:.1e}, maximum {gap['max']:.1e}",
        "kinetic energy": f"{energy['kinetic']['start']:.4g} J -> {energy['kinetic']['end']:.4g} J, mean over all "
        f"worlds",
        "potential energy": f"{energy['potential']['start']:.4g} J -> {energy['potential']['end']:.4g} J",
        "status": (status or "no warnings")
        + (f"; {result['worlds_reset']} worlds reset" * bool(result["worlds_reset"])),
    }
    files = dict(result["files"])
    if failures := files.pop("failures"):
        files["failures"] = f"{few(failures, LISTED)}: featherlane.load_failure(...).replay()"
    closing |= {"wrote " + name: path for name, path in files.items() if path}
    screen.print(name_value_table("Simulation", closing))
