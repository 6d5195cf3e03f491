"""`featherlane compile`: compiles all kernels into the cache, so that later runs do not wait for the compiler."""

from __future__ import annotations

import time

from featherlane.apps.cli.output import console, print_json, progress
from featherlane.engine.lanes import build, cache, processor
from featherlane.engine.simulation.tile.library import library, stages
from featherlane.errors import InstallationError
from featherlane.extension import whole_argument


def compile_kernels(dtype: str | None, processes: int, force: bool, as_json: bool) -> None:
    """Compiles the kernels that this machine's cache lacks.

    Args:
        dtype: float64 or float32; None for both.
        processes: number of concurrent processes; 0 for all cores.
        force: whether to compile even if prebuilt kernels are in use.
        as_json: whether to print JSON.

    Raises:
        ModelError: `processes` is out of range.
        ImportError: the compiler is not installed; the message has the command that installs it.
    """
    whole_argument("processes", processes, 0)
    configuration = library().configuration()
    base = processor.base_of(dtype) if dtype else None
    variants = [v for v in processor.compiled_variants() if base in (None, v[0])]
    every = list(stages().values()) if configuration["object"] == "none" or force else []
    start, compiled = time.perf_counter(), 0
    if every:
        compiled = _compile(build, library(), every, variants, processes, as_json)
    result = {
        "kernels": configuration["kernels"],
        "stages": len(every),
        "variants": [f"float{base[1:]} x {width}" for base, width in variants],
        "compiled": compiled,
        "cached": sum(map(len, build.forms(every, variants).values())) - compiled,
        "seconds": time.perf_counter() - start,
        "cache": str(cache.directory()),
    }
    if as_json:
        print_json(result)
    elif not every:
        console().print(f"nothing to compile: {configuration['object']} fits this machine (--force compiles anyway)")
    else:
        console().print(
            f"{compiled} kernels compiled in {result['seconds']:.1f} s, {result['cached']} were "
            f"already in {result['cache']}"
        )


def _compile(build, library, every, variants, processes: int, quiet: bool) -> int:
    with progress(quiet) as bar:
        task = bar.add_task("compiling")

        def tell(done, total, what):
            bar.update(task, completed=done, total=total, description=f"compiling {what}")

        try:
            return build.compile_all(library, every, variants, progress=tell, processes=processes or None)
        except ImportError:
            raise InstallationError(
                "compiling requires llvmlite; install it with: pip install 'featherlane[jit]'"
            ) from None
