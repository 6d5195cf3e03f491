"""`--nodes`: where worlds and samples are computed, in place of this process."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from featherlane.simulation.batch.batch import Batch


def where(nodes: str | None) -> int | str | None:
    """What `--nodes` means: a number of workers on this machine, or the address of a cluster; None: neither."""
    return int(nodes) if nodes is not None and nodes.isdecimal() else nodes


def opened(nodes: str | None, model, nworld: int, **options: Any) -> contextlib.AbstractContextManager[Any]:
    """A batch that is ended with the context: here, or one whose worlds are spread over workers of Ray.

    Raises:
        ModelError, InstallationError: as the batch does.
    """
    if nodes is None:
        return contextlib.nullcontext(Batch(model, nworld, **options))
    from featherlane.distributed.batch import Batch as SpreadBatch

    return SpreadBatch(model, nworld, nodes=where(nodes), **options)


def rows_of(batch, name: str, ids: np.ndarray) -> np.ndarray:
    """A state field of some worlds, and of no others: those of a spread batch travel."""
    return getattr(batch, name)[ids] if isinstance(batch, Batch) else batch.get(name, ids)


def threads_of(batch) -> int:
    """All its threads."""
    return batch.nthread if isinstance(batch, Batch) else sum(batch.threads)


def workers_of(batch) -> int:
    """How many processes step its worlds."""
    return 1 if isinstance(batch, Batch) else len(batch.threads)
