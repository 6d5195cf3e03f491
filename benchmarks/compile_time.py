"""Processor time of compiling all kernels for this machine's CPU level, by package and by variant; two minutes.

    python benchmarks/compile_time.py

One process compiles the stages of each package together, as the wheel's build does.  It keeps nothing: neither the
cache nor the installed kernels are read or written.
Compare two versions in turns on an idle machine: on a busy one the processor time grows by up to half.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from report import markdown, origin

from featherlane.engine.lanes import build, processor, toolchain
from featherlane.engine.simulation.tile.library import library, stages

COLUMNS = ("", "stages", "front end [s]", "optimiser [s]", "code generator [s]", "sum [s]", "objects [MB]")


def measure(group, base: str, width: int, level: str) -> Counter:
    """Processor time of the three parts of the compiler, and bytes of the object, of a group in one variant."""
    start = time.process_time()
    text = toolchain.lower(group, library().records, base, width)
    lowered = time.process_time()
    machine, module = toolchain.optimised(text, toolchain.compile_target(level), toolchain.effort(group, width))
    optimised = time.process_time()
    code = machine.emit_object(module)
    done = time.process_time()
    return Counter(
        stages=len(group), front=lowered - start, optimise=optimised - lowered, emit=done - optimised, bytes=len(code)
    )


def row(name: str, c: Counter) -> list[str]:
    """A row of the table."""
    parts = c["front"], c["optimise"], c["emit"]
    return [name, str(c["stages"]), *(f"{x:.1f}" for x in (*parts, sum(parts))), f"{c['bytes'] / 1e6:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", default=processor.cpu_level(), help="CPU level to compile for")
    level = parser.parse_args().level
    packages: dict[str, Counter] = {}
    variants: dict[str, Counter] = {}
    for group, (base, width) in build.groups(stages().values(), build.VARIANTS, by_package=True):
        found = measure(group, base, width, level)
        packages.setdefault(build.group_label(group), Counter()).update(found)
        variants.setdefault(f"{base}x{width}", Counter()).update(found)
    rows = [row(name, c) for name, c in sorted(packages.items(), key=lambda item: -item[1]["optimise"])]
    rows += [row(name, c) for name, c in variants.items()]
    rows.append(row("all", sum(variants.values(), Counter())))
    print(markdown(COLUMNS, rows), origin(), sep="\n\n")


if __name__ == "__main__":
    main()
