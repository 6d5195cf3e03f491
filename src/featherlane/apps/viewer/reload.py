"""Reloads a model after a change of its file, or of a file that it includes or refers to."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from featherlane.apps.viewer.session import Session
from featherlane.errors import ModelError
from featherlane.extension import mujoco_module, specification

INTERVAL = 0.5  # time between two looks at the files [s]


class ModelFile:
    """The file of a session's model.

    Args:
        path: the file.
        load: function that loads it, and returns a session of it at the defaults.
    """

    def __init__(self, path: str | Path, load: Callable[[], Session]):
        self.path, self._load = Path(path), load
        self._seen, self._next = _times(self.path), 0.0

    def changed(self) -> bool:
        """Returns whether a file has changed since the last call; looks twice a second."""
        if (now := time.perf_counter()) < self._next:
            return False
        self._next = now + INTERVAL
        if all(_time(path) == at for path, at in self._seen.items()):
            return False
        seen, self._seen = self._seen, _times(self.path)
        if len(self._seen) == 1:  # an error in the text hides the other files
            self._seen = {path: _time(path) for path in seen}
        return True

    def session(self, before: Session) -> Session:
        """Loads the file, and returns a session that runs like the one before."""
        session = self._load()
        session.file, session.speed, session.history.seconds = self, before.speed, before.history.seconds
        if before.running:
            session.run()
        return session


def _time(path: Path) -> int:
    """Returns when a file was written; 0 if it does not exist."""
    return path.stat().st_mtime_ns if path.is_file() else 0


def _times(path: Path) -> dict[Path, int]:
    """Returns when a model's file, and the files that MuJoCo reads for it, were written."""
    mujoco = mujoco_module()
    try:
        found = mujoco.mju_getXMLDependencies(str(path))
        if path.suffix.lower() == ".urdf":  # MuJoCo lists files of MJCF only
            found += [mesh.file for mesh in specification(path).meshes]
    except (mujoco.FatalError, ModelError):
        found = []
    return {file: _time(file) for file in {path, *(path.parent / name for name in found)}}
