"""`--nodes`: computes worlds and samples on other processes or machines."""

from __future__ import annotations

import contextlib
from typing import Any

from featherlane import Batch


def parse_nodes(nodes: str | None) -> int | str | None:
    """Parses `--nodes`: a number of workers on this machine, the address of a cluster, or None."""
    return int(nodes) if nodes is not None and nodes.isdecimal() else nodes


def open_batch(nodes: str | None, model, nworld: int, **options: Any) -> contextlib.AbstractContextManager[Any]:
    """Opens a local batch, or a batch that is spread over Ray workers; the context closes it.

    Raises:
        ModelError, InstallationError: raised by the batch.
    """
    if nodes is None:
        return contextlib.nullcontext(Batch(model, nworld, **options))
    from featherlane.distributed.batch import Batch as SpreadBatch

    return SpreadBatch(model, nworld, nodes=parse_nodes(nodes), **options)


def threads_by_worker(batch) -> list[int]:
    """Returns the number of threads of each process that steps the worlds."""
    return [batch.nthread] if isinstance(batch, Batch) else batch.threads
