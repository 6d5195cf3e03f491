"""Loads a failure from a file for replay."""

from __future__ import annotations

from pathlib import Path

from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.failure import Failure
from featherlane.engine.simulation.batch.failure_file import read_failure


def load_failure(path: str | Path) -> Failure:
    """Reads a failure that `Failure.save`, or `featherlane simulate --out`, wrote.

    Args:
        path: path of the file.

    Returns:
        The failure, with its model.  Its replay is bitwise identical with the same release.  User kernels are not in
        the file: assign `failure.control`, and call `set_user_actuator(failure.model, ...)`, before a replay.

    Raises:
        ModelError: the file does not exist, is not a failure file, or was written by a release with other fields or
            with a MuJoCo whose models the installed MuJoCo cannot read.
    """
    parts = read_failure(path)
    edits, needed = parts.pop("_edits"), parts.pop("_needed")
    failure = Failure(**parts, kind=Batch)
    failure._edits, failure._needed = edits, needed
    return failure
