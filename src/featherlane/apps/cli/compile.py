"""`featherlane compile`: compiles all kernels into the cache, so that later runs do not wait for the compiler."""

from __future__ import annotations

from featherlane import extension
from featherlane.apps.cli.output import console, print_json, progress


def compile_kernels(dtype: str | None, processes: int, force: bool, as_json: bool) -> None:
    """Compiles kernels as `extension.compile_kernels` does, with a progress bar, and prints the result."""
    with progress(as_json) as bar:
        task = bar.add_task("compiling")

        def show(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=f"compiling {what}")

        result = extension.compile_kernels(dtype, processes, force, show)
    prebuilt = result.pop("object")
    if as_json:
        print_json(result)
    elif not result["stages"]:
        console().print(f"nothing to compile: {prebuilt} fits this machine (--force compiles anyway)")
    else:
        console().print(
            f"{result['compiled']} kernels compiled in {result['seconds']:.1f} s, {result['cached']} were "
            f"already in {result['cache']}"
        )
