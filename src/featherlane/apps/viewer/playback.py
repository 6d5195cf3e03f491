"""Plays recorded frames of worlds: a file of `featherlane simulate --out`, or the last second of a bad world."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from featherlane import Batch, Data, Model
from featherlane.apps.viewer.history import FRAME
from featherlane.apps.viewer.session import Session
from featherlane.apps.viewer.source import BAD, Clock
from featherlane.errors import ModelError
from featherlane.extension import read_arrays, whole_argument

NEEDED = ("time", "qpos")


class Playback(Clock):
    """Plays frames of worlds.

    Args:
        frames: arrays (nworld, nframe, ...) by name: `time` and `qpos`, optionally `qvel`, `act`, `ctrl`, `mocap_pos`,
            `mocap_quat` and `status`.
        source: name of the frames in error messages.

    Raises:
        ModelError: frames are missing, or do not fit this model.
    """

    reported = False
    batch: Batch
    position: int  # number of the present frame

    def __init__(self, model: Model, frames: Mapping[str, np.ndarray], source: str = "recording"):
        super().__init__()
        self.frames = _checked(model, frames, source)
        nworld, self.nframe = self.frames["time"].shape
        self.batch = Batch(model, nworld, nthread=1)
        self.seek(0)

    @property
    def times(self) -> np.ndarray:
        """Returns the time of each frame of the first world [s]."""
        return self.frames["time"][0]

    @property
    def bad_worlds(self) -> list[int]:
        """Returns the worlds with non-finite or out-of-range state or controls up to the present frame."""
        if "status" not in self.frames:
            return []
        bad = [list(self.batch.status).index(name) for name in BAD]
        return np.flatnonzero(self.frames["status"][:, self.position, bad].any(1)).tolist()

    def seek(self, frame: int) -> None:
        """Shows a frame."""
        self.position = whole_argument("frame", frame, 0, self.nframe - 1)
        for name in FRAME:
            if name in self.frames:
                rows = getattr(self.batch, name)
                rows[...] = self.frames[name][:, frame].reshape(rows.shape)
        if "status" in self.frames:
            kept = self.batch.checkpoint()
            kept["warning"][...] = self.frames["status"][:, frame]
            self.batch.restore(kept)
        self._clock = float(self.times[frame])

    def tick(self, now: float | None = None) -> bool:
        """Shows the frame that is due, and returns whether it has changed; the clock stops at the end."""
        elapsed = self.elapsed(now)
        if elapsed is None:
            self.pace = 0.0
            return False
        before, self.pace = self.position, self.speed
        clock = self._clock + elapsed * self.speed
        ahead = self.times[before:]
        # after a reset the times of a world decrease; then frames are played one by one
        due = before + int(np.searchsorted(ahead, clock, "right")) - 1 if (np.diff(ahead) > 0).all() else before + 1
        if due > before:
            self.seek(min(due, self.nframe - 1))
        self._clock = clock if due >= before else self._clock
        if self.position == self.nframe - 1:
            self.pause()
        return self.position != before

    def run(self) -> None:
        """Plays, from the start if the end is reached."""
        if self.position == self.nframe - 1:
            self.seek(0)
        super().run()

    def advance(self, frames: int = 1) -> None:
        """Advances by some frames, at most to the last one."""
        self.pause()
        self.seek(min(self.position + frames, self.nframe - 1))

    def step_back(self) -> bool:
        """Goes back one frame and returns whether there was one."""
        self.pause()
        if self.position == 0:
            return False
        self.seek(self.position - 1)
        return True

    def reset(self, keyframe: int | str = -1) -> None:
        """Goes to the first frame."""
        self.go_to(0)

    @property
    def place(self) -> tuple[int, int, int]:
        return 0, self.position, max(1, self.nframe - 1)

    @property
    def pitch(self) -> int:
        return 1

    def go_to(self, place: float) -> None:
        """Goes to a frame."""
        self.pause()
        self.seek(int(place))

    def pictures(self, fps: float) -> list[int]:
        # of decreasing times, after a reset, every frame is a picture
        clock = self.times - self.times[0] if (np.diff(self.times) > 0).all() else np.arange(self.nframe) / fps
        moments = np.arange(0.0, clock[-1] + 0.5 / fps, 1.0 / fps)
        # the last frame that is not later than each moment, except by rounding
        return (np.searchsorted(clock, moments + 1e-6 / fps, "right") - 1).tolist()

    def session(self) -> Session:
        """Returns a session that continues from the present frame, which holds only position, velocity and control."""
        return Session.from_batch(self.batch)


def read_recording(path: str | Path) -> dict[str, Any]:
    """Reads a recording of `featherlane simulate --out`, or a bookmark."""
    path = Path(path).expanduser()
    held = read_arrays(path, str(path), "cannot be read as a recording")
    missing = [name for name in NEEDED if name not in held]
    if missing:
        raise ModelError(
            f"{path}: not a recording, {', '.join(missing)} missing (`featherlane simulate --out` writes recordings)"
        )
    return held


def _checked(model: Model, frames: Mapping[str, np.ndarray], source: str) -> dict[str, np.ndarray]:
    """Returns the frames to show, or raises an error that names what does not fit."""
    missing = [name for name in NEEDED if name not in frames]
    if missing:
        raise ModelError(f"{source}: {', '.join(missing)} missing")
    lead = np.shape(frames["time"])
    if len(lead) != 2 or not all(lead):
        raise ModelError(f"{source}: time has shape {lead}, allowed is (worlds, frames) with at least one of each")
    kept = {name: np.asarray(frames[name]) for name in (*FRAME, "status") if name in frames}
    data = Data(model)
    for name, array in kept.items():
        shape = (*lead, *((len(data.status),) if name == "status" else np.shape(getattr(data, name))))
        if array.shape != shape:
            raise ModelError(
                f"{source}: {name} has shape {array.shape}, allowed with the model {model.source} is {shape}"
            )
        if array.dtype.kind not in "fiu":
            raise ModelError(f"{source}: {name} is {array.dtype}, allowed are real numbers")
    return kept
