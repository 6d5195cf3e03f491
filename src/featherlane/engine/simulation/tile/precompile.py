"""Compiles all kernels into the cache, so that later runs do not wait for the compiler."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from featherlane.engine.lanes import build, cache, processor
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.simulation.tile.library import library, stages
from featherlane.errors import InstallationError


def compile_kernels(
    dtype: str | None = None,
    processes: int = 0,
    force: bool = False,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Compiles the kernels that this machine's cache lacks; none if prebuilt kernels are in use.

    Args:
        dtype: float64 or float32; None for both.
        processes: number of concurrent processes; 0: one per core, at most 4.
        force: whether to compile even if prebuilt kernels are in use.
        on_progress: called with the kernels done, their total, and the name of the last one.

    Returns:
        `kernels`, `object`: how kernels are compiled, and the prebuilt ones (`none`, or their name); `stages`,
        `variants`: what is compiled; `compiled`, `cached`: numbers of kernels; `seconds`; `cache`: the folder.

    Raises:
        ModelError: `processes` is out of range.
        InstallationError: the compiler is not installed.
    """
    whole_argument("processes", processes, 0)
    configuration, base = library().configuration(), processor.base_of(dtype) if dtype else None
    variants = [v for v in processor.compiled_variants() if base in (None, v[0])]
    every = list(stages().values()) if configuration["object"] == "none" or force else []
    start, compiled = time.perf_counter(), 0
    try:
        if every:
            compiled = build.compile_all(library(), every, variants, progress=on_progress, processes=processes or None)
    except ImportError:
        raise InstallationError(
            "compiling requires llvmlite; install it with: pip install 'featherlane[jit]'"
        ) from None
    return {
        "kernels": configuration["kernels"],
        "object": configuration["object"],
        "stages": len(every),
        "variants": [f"float{base[1:]} x {width}" for base, width in variants],
        "compiled": compiled,
        "cached": sum(map(len, build.forms(every, variants).values())) - compiled,
        "seconds": time.perf_counter() - start,
        "cache": str(cache.directory()),
    }
