"""Number of processor cores that this process may use."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence

from featherlane.errors import ModelError


def cores() -> int:
    """Returns the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pinned_cores(cpu_ids: Sequence[int] | None, nthread: int) -> tuple[int, ...]:
    """Returns the cores to which threads are pinned, checked; none for None.

    Args:
        cpu_ids: one core for each thread.
        nthread: number of threads that was requested; 0: as many as cores.

    Raises:
        ModelError: this system cannot pin threads; no core, a core twice, a core that this process may not use, or
            another number of cores than threads.
    """
    if cpu_ids is None:
        return ()
    if not hasattr(os, "sched_setaffinity"):
        raise ModelError(f"cpu_ids: got {cpu_ids!r}, allowed is None: this operating system cannot pin threads")
    try:
        given = tuple(map(operator.index, cpu_ids))
    except TypeError:
        raise ModelError(f"cpu_ids: got {cpu_ids!r}, allowed are numbers of cores") from None
    usable = os.sched_getaffinity(0)
    unusable = [cpu for cpu in given if cpu not in usable]
    if unusable or not given or len({*given}) < len(given):
        wrong, allowed = unusable[0] if unusable else list(given), ", ".join(map(str, sorted(usable)))
        raise ModelError(f"cpu_ids: got {wrong}, allowed are different cores of this process: {allowed}")
    if nthread not in (0, len(given)):
        raise ModelError(f"cpu_ids: got {len(given)} cores for {nthread} threads, allowed is one for each thread")
    return given
