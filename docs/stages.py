"""Write stages.md and stages.pyi, the stub of what is made of stages, from the docstrings: `python docs/stages.py`."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import featherlane as fl
from featherlane.lanes import Stage
from featherlane.simulation import stages as alone
from featherlane.simulation import steps
from featherlane.simulation.docstring import sections
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.tile.library import stages

PAGE = Path(__file__).parent / "stages.md"
STUB = Path(__file__).parents[1] / "src/featherlane/simulation/stages.pyi"
HEAD = """# Stages

Written by `docs/stages.py` from the docstrings of the functions; where one runs a stage alone, that is the docstring of
its kernel.

A *stage* is a kernel that is compiled alone. What is listed here runs one or several on one world: it reads what others
left in its [fields](fields.md) and leaves its results there. A step is these in order, as
`src/featherlane/simulation/step/forward.py` has them. Quantities are in SI units; shapes leave the world axis out; "for
itself" is memory that means nothing afterwards.

```python
import featherlane as fl

model = fl.load("arm")
data = fl.Data(model)
fl.kinematics(model, data)
fl.com_pos(model, data)
fl.crb(model, data)
print(fl.full_m(model, data))
```

All take the model and the data first, and raise `TypeError` where these are something else, `ModelError` where the
model's sizes are not the data's or a field of the model has a number that it cannot hold, `RuntimeError` while another
thread is in a call of the data.
"""
ALL_HEAD = """
## All stages

What is compiled, by file. Records: `m` the model, `d` a tile of worlds, `b` the rows of a batch, `p` LCPs that stand
alone; with `1` behind it only what all worlds of a tile share is in view. The docstring of each says what it reads and
writes.
"""
STUB_HEAD = '''"""The public functions of `stages.py`, for type checkers and editors: `python docs/stages.py`."""

from featherlane.model.model import Model
from featherlane.simulation.world.data import Data

'''
FIELD = re.compile(r"(?<![\w`.])([A-Za-z]\w*\*?)(?![\w`*])")


# ---- the stub --------------------------------------------------------------------------------------------------------
def made() -> list[Callable]:
    """The functions of `stages.py`, in its order."""
    return [f for name, f in vars(alone).items() if inspect.isfunction(f) and name in fl.__all__]


def stub() -> str:
    """The whole stub."""
    return STUB_HEAD + "\n".join(map(declaration, made()))


def declaration(function: Callable) -> str:
    """A function without its body."""
    signature = str(inspect.signature(function)).replace("'", "")
    doc = textwrap.indent(f'"""{inspect.getdoc(function)}\n"""', "    ", lambda line: line.strip() != "")
    return f"def {function.__name__}{signature}:\n{doc}\n"


# ---- the page --------------------------------------------------------------------------------------------------------
def groups() -> dict[str, list[Callable]]:
    """The public functions that run stages, under the comments of the public list."""
    found: dict[str, list[Callable]] = {}
    source, title = inspect.getsource(fl).partition("__all__ = [")[2], ""
    for comment, name in re.findall(r'^    (?:# (.+)|"(\w+)",)$', source, re.MULTILINE):
        title = comment or title
        function = getattr(fl, name, None) if name else None
        if inspect.isfunction(function) and inspect.getmodule(function) in (alone, steps):
            found.setdefault(title, []).append(function)
    return found


def marked(text: str) -> str:
    """Names of fields as code."""
    return FIELD.sub(lambda m: f"`{m[1]}`" if is_field(m[1]) else m[1], text)


def is_field(word: str) -> bool:
    """A field by its name, or several by a star."""
    return word in DATA or (word.endswith("*") and any(name.startswith(word[:-1]) for name in DATA.index))


def arguments(function: Callable) -> str:
    """Names, and what they are where nothing is given."""
    given = inspect.signature(function).parameters.values()
    return ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in given)


COMMON = ("model", "data", "TypeError", "RuntimeError")  # arguments and errors of all


def items(function: Callable, label: str) -> list[str]:
    """What stands under `Args` or `Raises`, without what all functions have."""
    block = (inspect.getdoc(function) or "").partition(f"\n{label}:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", block, re.MULTILINE)
    return [f"`{name}`: {' '.join(text.split())}" for name, text in found if name not in COMMON]


def entry(function: Callable) -> str:
    """A function: what it does, then its sections."""
    parts = sections(function)
    lines = [f"\n### `fl.{function.__name__}({arguments(function)})`\n", parts.pop("")]
    if "Text" in parts:
        lines += ["", *textwrap.wrap(parts.pop("Text"), 116, break_on_hyphens=False, break_long_words=False)]
    lines.append("")
    for label, text in parts.items():
        if label not in ("Args", "Raises"):
            lines.append(f"- {label}: {marked(text) if label in ('Reads', 'Writes') else text}")
        elif inspect.getmodule(function) is steps:
            lines += [f"- {label}: {item}" for item in items(function, label)]
    return "\n".join(lines).rstrip() + "\n"


def rooms() -> dict[str, list[Stage]]:
    """All stages by the file that they stand in."""
    found: dict[str, list[Stage]] = {}
    for stage in stages().values():
        found.setdefault(stage.function.__module__.removeprefix("featherlane.").replace(".", "/"), []).append(stage)
    return {room: sorted(found[room], key=lambda s: s.function.__code__.co_firstlineno) for room in sorted(found)}


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, functions in groups().items():
        parts.append(f"\n## {title[0].upper()}{title[1:]}\n")
        parts += map(entry, functions)
    parts += [ALL_HEAD, "\n| file | stage | what it does |\n| --- | --- | --- |\n"]
    for room, of_room in rooms().items():
        for stage in of_room:
            first = sections(stage.function)[""].replace("|", "\\|")
            parts.append(f"| {room} | `{stage.signature()}` | {first} |\n")
    return "".join(parts)


if __name__ == "__main__":
    for path, text in ((PAGE, page()), (STUB, stub())):
        path.write_text(text)
        print(f"wrote {path}")
