"""Reloads a model after a change of its file, or of a file that it includes or refers to."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from featherlane.apps.viewer.session import Session

INTERVAL = 0.5  # time between two looks at the files [s]
FILE = re.compile(r"\b(?:file|filename)\s*=\s*[\"']([^\"']+)[\"']")
FOLDER = re.compile(r"\b(?:meshdir|texturedir|assetdir)\s*=\s*[\"']([^\"']+)[\"']")
TEXTS = (".xml", ".urdf", ".mjcf")


class ModelFile:
    """The file of a session's model.

    Args:
        path: the file.
        load: function that loads it, and returns a session of it at the defaults.
    """

    def __init__(self, path: str | Path, load: Callable[[], Session]):
        self.path, self._load = Path(path), load
        self._seen, self._next = self._times(), 0.0

    def changed(self) -> bool:
        """Returns whether a file has changed since the last call; looks twice a second."""
        if (now := time.perf_counter()) < self._next:
            return False
        self._next, before, self._seen = now + INTERVAL, self._seen, self._times()
        return before != self._seen

    def session(self, before: Session) -> Session:
        """Loads the file, and returns a session that runs like the one before.

        Raises:
            FeatherlaneError: the file has an error.
        """
        session = self._load()
        session.file, session.speed, session.history.seconds = self, before.speed, before.history.seconds
        if before.running:
            session.run()
        return session

    def _times(self) -> dict[Path, int]:
        """Returns when the model's file, and all files that it names, were written."""
        found: dict[Path, int] = {}
        waiting, folders = [self.path], {self.path.parent}
        while waiting:
            path = waiting.pop()
            if path in found or not path.is_file():
                continue
            found[path] = path.stat().st_mtime_ns
            if path.suffix.lower() in TEXTS:
                text = path.read_text(errors="replace")
                folders |= {path.parent, *(path.parent / folder for folder in FOLDER.findall(text))}
                waiting += [folder / name for folder in folders for name in FILE.findall(text)]
        return found
