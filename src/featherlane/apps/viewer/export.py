"""`fl.export_html`: a recorded motion as one HTML file, which a browser shows without Featherlane or a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.view import view
from featherlane.errors import ModelError
from featherlane.extension import bounded


def export_html(
    model: Model | Any,
    frames: Mapping[str, np.ndarray] | str | Path,
    path: str | Path,
    *,
    fps: float = 30.0,
    worlds: int | None = None,
) -> Path:
    """Writes a recorded motion as an HTML file with its own player.

        recorded = batch.rollout(500, record=("time", "qpos"))
        fl.export_html(model, recorded, "motion.html")

    A notebook shows the file by `IPython.display.IFrame("motion.html", "100%", 400)`.

    Args:
        model: a `Model`, or a name or source as for `fl.view`.
        frames: arrays (nworld, nframe, ...) by name as for `fl.view`; or the path of a recording of `featherlane
            simulate --out`.
        path: path of the file, `.html`.
        fps: pictures per second of the recorded time [1/s].
        worlds: number of worlds to draw, side by side; None for up to 64.

    Returns:
        The path.

    Raises:
        InstallationError: viser is not installed (`pip install 'featherlane[view]'`).
        ModelError: frames that do not fit the model, a path that does not end in .html or cannot be written, a number
            out of range.
    """
    from featherlane.apps.viewer.playback import read_recording

    path, fps = Path(path), bounded("fps", fps, 0.0, 1000.0, above=True)
    if path.suffix != ".html":
        raise ModelError(f"path: got {path.name!r}, allowed is a name that ends in .html")
    held = read_recording(frames) if isinstance(frames, str | Path) else frames
    with view(model, frames=held, port=0, paused=True, worlds=worlds) as page:
        text = page.worker.ask(lambda: page.page.recorded(fps))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None
    return path
