"""Records frames of a simulation at an interval and writes them to a file; also writes files of failed steps."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from featherlane.extension import whole_file

FRAMES_PER_SECOND = 25.0
LARGEST = 256 << 20  # largest recording in bytes, unless the user sets the frame rate


def frame_interval(batch, nstep: int, timestep: float, rate: float | None, kept: bool) -> int:
    """Computes the number of steps between frames.

    Args:
        timestep: time step of the model [s].
        rate: frames per simulated second; None for 25, or fewer where frames are kept and would exceed 256 MiB.
        kept: whether all frames are kept.
    """
    # a rate near 0 gives one frame at the end
    every = max(1, round(1.0 / max((rate or FRAMES_PER_SECOND) * timestep, 1.0 / nstep)))
    if rate is None and kept:
        limit = max(1, LARGEST // frame_bytes(batch) - 1)
        every = max(every, -(-nstep // limit))
    return min(every, nstep)


def frame_bytes(batch) -> int:
    """Computes the size of one frame of all worlds [bytes]."""
    reals = sum(getattr(batch, name).shape[1] for name in ("qpos", "qvel", "ctrl"))
    return batch.nworld * (8 + reals * batch.dtype.itemsize + 4 * len(batch.status))  # time is float64


class Recording:
    """Frames of a batch: time, qpos, qvel, ctrl, status, each (nworld, nframe, ...).

    `status` counts per world since the start: contacts full, rows full, non-finite or out of range, not converged.
    """

    def __init__(self, batch, nframe: int):
        self.batch, self.count, n = batch, 0, batch.nworld
        self.causes = tuple(batch.status)
        self.arrays: dict[str, np.ndarray] = {"time": np.empty((n, nframe), batch.time.dtype)}
        for name in ("qpos", "qvel", "ctrl"):
            self.arrays[name] = np.empty((n, nframe, getattr(batch, name).shape[1]), batch.dtype)
        self.arrays["status"] = np.zeros((n, nframe, len(self.causes)), np.int32)

    def take(self) -> None:
        """Records the present state of the batch."""
        k, batch = self.count, self.batch
        for name in ("time", "qpos", "qvel", "ctrl"):
            self.arrays[name][:, k] = getattr(batch, name)
        for i, counts in enumerate(batch.status.values()):
            self.arrays["status"][:, k, i] = counts
        self.count += 1

    def write(self, path: Path, model) -> None:
        """Writes all recorded frames, the names of the status columns, the model's source and its time step."""
        about = {"status_names": np.array(self.causes), "model": np.array(model.source), "timestep": model.opt.timestep}
        with whole_file(path) as part, part.open("wb") as file:
            np.savez(file, **{name: a[:, : self.count] for name, a in self.arrays.items()}, **about)


def write_failures(batch, out: Path) -> list[str]:
    """Writes the failures of a batch to `OUT.failure-WORLD-STEP.npz`; removes those of an earlier run.

    Returns:
        The written files.
    """
    stale = re.compile(rf"{re.escape(out.stem)}\.failure-\d+-\d+\.npz")
    for path in out.parent.iterdir():
        if stale.fullmatch(path.name):
            path.unlink()
    files = []
    for failure in getattr(batch, "failures", ()):
        path = out.with_name(f"{out.stem}.failure-{failure.world}-{failure.step}.npz")
        failure.save(path)
        files.append(str(path))
    return files
