"""Ahead-of-time compilation: stages into the object cache in several processes, then one shared object per CPU level.

The wheel's build hook calls `compile_all` for its CPU levels and then `link_stages`; `featherlane compile` calls
`compile_all` for this machine.  Cached objects are not compiled again.

The wheel's stages are compiled by package: a kernel that several stages of a package contain is optimised once, not
once per stage, which saves a fifth of the compile time.  `featherlane compile` compiles each stage alone, as the
just-in-time compiler does.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from featherlane.engine.lanes import cache, processor
from featherlane.engine.lanes.cores import cores
from featherlane.engine.lanes.kernel import Stage, variant
from featherlane.engine.lanes.link import SUFFIXES, link
from featherlane.engine.lanes.runtime import LAYOUT_SYMBOL, KernelError, Library

VARIANTS = (("f64", 8), ("f32", 16), ("f64", 1))  # all (precision, width) that are compiled ahead of time
MOST_PROCESSES = 4  # a process needs about a quarter of a GiB
PACKAGE_DEPTH = 4  # featherlane.engine.solver.lcp: stages of its subfolders belong to it
Group = tuple[Stage, ...]  # stages that are compiled into one object


def compile_all(
    library: Library,
    stages: Iterable[Stage],
    variants: Iterable[tuple[str, int]] = VARIANTS,
    levels: Iterable[str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    processes: int | None = None,
    by_package: bool = False,
) -> int:
    """Compiles stages into the cache, the costliest groups first, so that all processes finish together.

    Args:
        library: the layouts of the stages' records.
        stages: stages to compile.
        variants: (`f64` or `f32`, worlds in a tile).
        levels: CPU levels, as in `processor.target_name`; None: this machine's.
        progress: called with (done, total, name of the last group) after each group; counts stages in one variant.
        processes: number of processes; None: one per core, at most 4.
        by_package: compile the stages of a package into one object, for `link_stages`; else each into its own.

    Returns:
        How many stages, each in one variant, were compiled; the others were in the cache.

    Raises:
        ImportError: the compiler is not installed.
    """
    levels = tuple(levels or (processor.cpu_level(),))
    required = groups(stages, variants, by_package)
    todo = [(g, v) for g, v in required if _missing(library, g, *v, levels)]
    todo.sort(key=lambda item: -_cost(item[0]))
    total, count = (sum(len(g) for g, _ in part) for part in (required, todo))
    done = total - count

    def tell(group, variant):
        nonlocal done
        done += len(group)
        if progress:
            progress(done, total, f"{group_label(group)} {variant[0]}x{variant[1]}")

    if progress:
        progress(done, total, "")
    processes = min(processes or cores(), MOST_PROCESSES, len(todo))
    if processes > 1:
        _in_processes(library, todo, levels, processes, tell)
        return count
    for g, v in todo:
        _keep(_emit(*_lowered(library, g, *v, levels)))
        tell(g, v)
    return count


def forms(stages: Iterable[Stage], variants: Iterable[tuple[str, int]]) -> dict[tuple[str, int], list[Stage]]:
    """Returns the stages of each variant: stages for one world at a time exist in one variant only."""
    stages = tuple(stages)
    return {v: [s for s in stages if variant(s, *v) == v] for v in variants}


def groups(stages: Iterable[Stage], variants, by_package: bool) -> list[tuple[Group, tuple[str, int]]]:
    """Returns (stages of one object, variant): the stages of a package, or single stages."""
    found: dict[tuple, list[Stage]] = {}
    for v, rest in forms(stages, variants).items():
        for s in rest:
            found.setdefault((_package(s) if by_package else s.name, v), []).append(s)
    return [(tuple(group), v) for (_, v), group in found.items()]


def link_stages(library: Library, stages: Iterable[Stage], variants, level: str, out: Path) -> None:
    """Links the cached objects of packages for a CPU level into one shared object, which contains the layout hash.

    Raises:
        KernelError: an object is not in the cache.
        RuntimeError: see `link`.
    """
    names = [cache.group_key(g, library.records, *v, level) for g, v in groups(stages, variants, True)]
    with tempfile.TemporaryDirectory() as folder:
        objects = [str(Path(folder, name)) for name in names]
        for name, path in zip(names, objects, strict=True):
            code = cache.read_object(name)
            if code is None:
                raise KernelError(
                    f"{name} is not in {cache.directory()}: the sources changed during the compilation, or "
                    f"the folder is not writable (set FEATHERLANE_CACHE to another folder)"
                )
            Path(path).write_bytes(code)
        link(objects, str(out), {LAYOUT_SYMBOL: library.layout_hash()}, processor.split_target(level)[1])


def shared_object(library: Library, forms: Mapping[tuple[str, int], Iterable[Stage]], level: str) -> bytes:
    """Returns a shared object with stages and all that they call: the prebuilt one of a CPU level, or one linked now.

    Args:
        forms: stages by (`f64` or `f32`, worlds in a tile).
        level: a CPU level, as in `processor.target_name`.

    Raises:
        KernelError: the stages have to be compiled, but the compiler is not installed.
        RuntimeError: see `link`.
    """
    found = library.prebuilt_object(level)
    if found is not None:
        return found
    every = (
        (s, variant(s, *form)) for form, stages in forms.items() for stage in stages for s in library.required(stage)
    )
    needed = {f"{s.name}-{form[0]}x{form[1]}": (s, form) for s, form in every}
    try:  # one after the other: a new process would run the main module of a script again
        codes = {name: library.object_code(s, *form, cpu=level) for name, (s, form) in needed.items()}
    except ImportError as error:
        raise KernelError(
            f"kernels for {level} have to be compiled, because this installation lacks them. "
            "Install the compiler with: pip install 'featherlane[jit]'"
        ) from error
    place = processor.split_target(level)[1]
    with tempfile.TemporaryDirectory() as folder:
        objects = [Path(folder, f"{name}.o") for name in codes]
        for path, code in zip(objects, codes.values(), strict=True):
            path.write_bytes(code)
        out = Path(folder, f"kernels{SUFFIXES[place[0]]}")
        link(map(str, objects), str(out), {LAYOUT_SYMBOL: library.layout_hash()}, place)
        return out.read_bytes()


def _package(stage: Stage) -> str:
    """Returns the package of a stage's module, at most `PACKAGE_DEPTH` names long; one name for all derivatives."""
    if stage.is_derivative:
        return "featherlane.derivatives"
    return ".".join(stage.function.__module__.split(".")[:-1][:PACKAGE_DEPTH])


def group_label(group: Group) -> str:
    """Returns the name of a group: its stage, or its package."""
    return group[0].name if len(group) == 1 else _package(group[0]).removeprefix("featherlane.").removeprefix("engine.")


def _cost(group: Group) -> int:
    """Returns the bytecode size of all kernels in a group [bytes], about proportional to its compile time."""
    kernels = {k.function.__code__ for s in group for k in s.contained()}
    return sum(len(code.co_code) for code in kernels)


def _missing(library, group, base, width, levels) -> dict[str, str]:
    """Returns CPU level -> name, for the objects that are not in the cache."""
    names = {level: cache.group_key(group, library.records, base, width, level) for level in levels}
    return {level: name for level, name in names.items() if not cache.has_object(name)}


def _in_processes(library, todo, levels, processes, tell):
    """Writes LLVM IR in this process, so that each kernel is read once, and compiles it in other processes.

    After an error or an interruption no further group is started.
    """
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            running = {pool.submit(_emit, *_lowered(library, g, *v, levels)): (g, v) for g, v in todo}
            for future in as_completed(running):
                _keep(future.result())
                tell(*running[future])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _lowered(library, group, base, width, levels):
    """Returns the arguments of `_emit`: a group's LLVM IR, its optimisation effort, and missing objects by level."""
    from featherlane.engine.lanes import toolchain

    missing = _missing(library, group, base, width, levels)
    return toolchain.lower(group, library.records, base, width), toolchain.effort(group, width), missing


def _emit(text, effort, missing) -> dict[str, bytes]:
    """Returns name -> object code."""
    from featherlane.engine.lanes import toolchain

    return {name: toolchain.emit(text, level, effort) for level, name in missing.items()}


def _keep(objects: dict[str, bytes]) -> None:
    for name, code in objects.items():
        cache.write_object(name, code)
