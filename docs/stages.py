"""Write stages.md and stages.pyi, the stub of what is made of stages, from the docstrings: `python docs/stages.py`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path

import featherlane as fl
from featherlane.engine.lanes import Stage
from featherlane.engine.simulation import stages as alone
from featherlane.engine.simulation.docstring import sections
from featherlane.engine.simulation.tile.library import stages

PAGE = Path(__file__).parent / "stages.md"
STUB = Path(__file__).parents[1] / "src/featherlane/engine/simulation/stages.pyi"
HEAD = """# Compiled stages

Written by `docs/stages.py` from the docstrings of the kernels.

A *stage* is a part of a step that is compiled as a separate function. It reads [fields](fields.md) that other stages
wrote, and writes its results to fields. `src/featherlane/engine/simulation/step/forward.py` runs the stages of a step
in their order. Each function of `featherlane.stages` runs one stage.

The table lists the stages with their arguments. Some arguments are records, which group fields:

- `m`: the model.
- `d`: a [tile](chapters/lanes.md#tiles), which is a group of worlds that are stepped together.
- `b`: the rows of a batch.
- `p`: the arguments and results of a computation outside of a step, or stand-alone LCPs.

A stage whose records have a `1` in their names, such as `m1` and `d1`, computes one world at a time. All other stages
compute the worlds of a tile together. The docstring of a stage lists the fields that it reads and writes.
"""
STUB_HEAD = '''"""The public functions of `stages.py`, for type checkers and editors: `python docs/stages.py`."""

from featherlane.engine.model.model import Model
from featherlane.engine.simulation.world.data import Data

'''


# ---- the stub --------------------------------------------------------------------------------------------------------
def made() -> list[Callable]:
    """The functions of `stages.py`, in its order."""
    return [
        f
        for name, f in vars(alone).items()
        if inspect.isfunction(f) and name in fl.stages.__all__
    ]


def stub() -> str:
    """The whole stub."""
    return STUB_HEAD + "\n".join(map(declaration, made()))


def declaration(function: Callable) -> str:
    """A function without its body."""
    signature = str(inspect.signature(function)).replace("'", "")
    doc = textwrap.indent(
        f'"""{inspect.getdoc(function)}\n"""', "    ", lambda line: line.strip() != ""
    )
    return f"def {function.__name__}{signature}:\n{doc}\n"


# ---- the page --------------------------------------------------------------------------------------------------------
def by_file() -> dict[str, list[Stage]]:
    """All stages by the file that they stand in."""
    found: dict[str, list[Stage]] = {}
    for stage in stages().values():
        found.setdefault(
            stage.function.__module__.removeprefix("featherlane.").replace(".", "/"), []
        ).append(stage)
    return {
        file: sorted(found[file], key=lambda s: s.function.__code__.co_firstlineno)
        for file in sorted(found)
    }


def page() -> str:
    """The whole page."""
    parts = [HEAD, "\n| file | stage | what it does |\n| --- | --- | --- |\n"]
    for file, its in by_file().items():
        for stage in its:
            first = sections(stage.function)[""].replace("|", "\\|")
            parts.append(f"| {file} | `{stage.signature()}` | {first} |\n")
    return "".join(parts)


if __name__ == "__main__":
    for path, text in ((PAGE, page()), (STUB, stub())):
        path.write_text(text)
        print(f"wrote {path}")
