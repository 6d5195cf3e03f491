"""A failure out of a file, ready to be replayed."""

from __future__ import annotations

from pathlib import Path

from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.failure_file import read


def load_failure(path: str | Path) -> Failure:
    """Read a failure that `Failure.save`, or `featherlane simulate --out`, wrote.

    Args:
        path: of the file.

    Returns:
        The failure, with its model.  It replays to the bits that it had, by the same release.  Kernels of the user are
        not in the file: assign `failure.control`, and call `set_user_actuator(failure.model, ...)`, before a replay.

    Raises:
        ModelError: the file is not there, is no such file, or was written by a release with other fields or with a
            MuJoCo whose models the one that is installed does not read.
    """
    parts = read(path)
    edits, needed = parts.pop("_edits"), parts.pop("_needed")
    failure = Failure(**parts, kind=Batch)
    failure._edits, failure._needed = edits, needed
    return failure
