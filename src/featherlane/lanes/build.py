"""Ahead of time: stages into the object cache, over several processes, and from there into one object per CPU level.

The wheel's build hook calls `compile_all` for its CPU levels and then `link_stages`; `featherlane compile` calls
`compile_all` for this machine.  What the cache already holds is not compiled again.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

from featherlane.lanes import cache, processor
from featherlane.lanes.cores import cores
from featherlane.lanes.kernel import Stage, variant
from featherlane.lanes.link import link
from featherlane.lanes.runtime import LAYOUT_SYMBOL, KernelError, Library

VARIANTS = (("f64", 8), ("f32", 16), ("f64", 1))  # (precision, width) of what is compiled ahead of time: all that runs
MOST_PROCESSES = 4  # a process holds about a quarter of a GiB


def compile_all(
    library: Library,
    stages: Iterable[Stage],
    variants: Iterable[tuple[str, int]] = VARIANTS,
    levels: Iterable[str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    processes: int | None = None,
) -> int:
    """Compile stages into the cache.

    A process keeps to one variant as long as it can: a kernel that several stages contain is typed once there.

    Args:
        library: the layouts of the stages' records.
        stages: what to compile; with more than one process, stages that their modules name.
        variants: (`f64` or `f32`, worlds in a tile).
        levels: CPU levels; this machine's where none are given.
        progress: called with (done, total, what was compiled last) after each stage in one variant.
        processes: how many at once; all cores, at most 4, where it is not given.

    Returns:
        How many stages, each in one variant, were compiled; the others lay in the cache.

    Raises:
        ImportError: the compiler is not installed.
    """
    levels, variants, stages = tuple(levels or (processor.cpu_level(),)), tuple(variants), tuple(stages)
    wanted = forms(stages, variants)
    todo = {v: [s for s in wanted[v] if _missing(library, s, *v, levels)] for v in variants}
    todo = {v: rest for v, rest in todo.items() if rest}
    count, total = sum(map(len, todo.values())), sum(map(len, wanted.values()))
    done = total - count

    def tell(stage, variant):
        nonlocal done
        done += 1
        if progress:
            progress(done, total, f"{stage.name} {variant[0]}x{variant[1]}")

    if progress:
        progress(done, total, "")
    processes = min(processes or cores(), MOST_PROCESSES, count)
    if processes > 1:
        _in_processes(library, todo, levels, processes, tell)
        return count
    for form, rest in todo.items():
        for s in rest:
            compile_stage(library, s, *form, levels)
            tell(s, form)
    return count


def forms(stages: Iterable[Stage], variants: Iterable[tuple[str, int]]) -> dict[tuple[str, int], list[Stage]]:
    """The stages that exist in each variant: those of one world at a time are the same in all."""
    stages = tuple(stages)
    return {v: [s for s in stages if variant(s, *v) == v] for v in variants}


def compile_stage(library: Library, stage: Stage, base: str, width: int, levels: Iterable[str]) -> None:
    """One stage in one variant into the cache, for those CPU levels that it lacks: one front end run for all."""
    missing = _missing(library, stage, base, width, levels)
    if missing:
        from featherlane.lanes import toolchain

        code = toolchain.lower(stage, library.records, base, width)
        for level, name in missing.items():
            cache.write(name, toolchain.emit(code, level))


def link_stages(library: Library, stages: Iterable[Stage], variants, level: str, out: Path) -> None:
    """One shared object from the cached objects of a CPU level; it carries the layout hash.

    Raises:
        KernelError: an object is not in the cache.
        RuntimeError: see `link`.
    """
    names = [
        cache.key(s, library.records, *v, level, False) for v in tuple(variants) for s in stages if variant(s, *v) == v
    ]
    with tempfile.TemporaryDirectory() as folder:
        objects = [str(Path(folder, name)) for name in names]
        for name, path in zip(names, objects, strict=True):
            code = cache.read(name)
            if code is None:
                raise KernelError(
                    f"{name} is not in {cache.directory()}: the sources changed while they were compiled, "
                    "or the folder cannot be written (FEATHERLANE_CACHE names another)"
                )
            Path(path).write_bytes(code)
        link(objects, str(out), {LAYOUT_SYMBOL: library.layout_hash()})


def _missing(library, stage, base, width, levels) -> dict[str, str]:
    """CPU level -> name of the object that the cache lacks."""
    names = {level: cache.key(stage, library.records, base, width, level, False) for level in levels}
    return {level: name for level, name in names.items() if not cache.holds(name)}


def _in_processes(library, todo, levels, processes, tell):
    """Hand out stages one by one; a process whose variant is used up helps where most is left."""
    spawn = multiprocessing.get_context("spawn")
    left = {v: list(rest) for v, rest in todo.items()}
    with contextlib.ExitStack() as stack:
        running = {}  # future -> (process, stage, variant)

        def hand_out(process, variant):
            if not left.get(variant):
                busy = [v for _, _, v in running.values()]
                open_ = [v for v, rest in left.items() if rest]
                if not open_:
                    return
                variant = min(open_, key=lambda v: (busy.count(v), -len(left[v])))
            s = left[variant].pop(0)
            origin = s.function.__module__, s.function.__qualname__
            running[process.submit(_remote, library.records, *origin, *variant, levels)] = process, s, variant

        for _ in range(processes):
            hand_out(stack.enter_context(ProcessPoolExecutor(1, mp_context=spawn)), None)
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                process, s, variant = running.pop(future)
                future.result()
                tell(s, variant)
                hand_out(process, variant)


def _remote(records, module, name, base, width, levels):
    """`compile_stage` in another process, which finds the stage by its module."""
    stage = getattr(importlib.import_module(module), name)
    compile_stage(Library(records), stage, base, width, levels)
