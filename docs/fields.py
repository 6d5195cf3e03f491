"""Writes fields.md, the reference of all fields, from their declarations: `python docs/fields.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from featherlane.engine.lanes.layout import Field
from featherlane.engine.lanes.role import ROLES
from featherlane.engine.model.fields import MODEL
from featherlane.engine.simulation.tile.fields import FIELD_MODULES

PAGE = Path(__file__).parent / "fields.md"
HEAD = """# Fields

This page lists every field of a model and of its data, with kind, shape and unit. Most users need two groups of fields:

- the fields of the [model](#model);
- the fields of the data whose [role](#roles) is `state`, `drive`, `input` or `output`.

`docs/fields.py` writes this page from the declarations of the fields in the source code. A field of the model is
declared in `model/fields.py`, or at the function that computes it. A field of the data is declared in the `fields.py`
of the package that writes it.

The column "kind" has these values:

- *real*: the values may differ between worlds. For a field of the model, `batch.expand(name)` returns an array with one
  row per world. For a field of the data, `batch.bind(name)` returns a live array.
- *real, float64*: the values have 64 bits in every precision.
- *real, Vec3*: in a kernel, an index selects a `Vec3` ([row types](kernel-language.md#row-types)). In NumPy, the array
  has the shape in the table.
- *int*: the values are shared by all worlds.
- *size*: a single integer, shared by all worlds.

The column "shape" does not contain the axis of worlds.
"""
ROLES_HEAD = """
## Roles

The role of a field of the data determines how it may be used:

- `lasts`: its value is kept between calls.
- `bind`: `batch.bind(name)` returns it.
- `read`: user callbacks may read it, after the stage that computes it.
- `reset`: a reset writes zeros, and then the model's defaults.
- `copied`: a copy of the data includes it.

| role | meaning | lasts | bind | read | reset | copied |
| --- | --- | --- | --- | --- | --- | --- |
"""
DATA_HEAD = """
## Data

Each section has the fields of one package of the source code. Two columns need an explanation:

- "role": names of sizes or features can follow the role in brackets. The field is computed only if these sizes are
  not 0 and the model uses these features.
- "meaning · written by": the name at the end is the [stage](stages.md) (a compiled part of a step) that writes the
  field.
"""

MODEL_HEAD = """
## Model

Some fields are computed when a model is loaded. For such a field, the name of the function that computes it is at the
end of the column "meaning". Most other fields are copied from MuJoCo's model.

"""


def table(fields: Iterable[Field], roles: bool) -> str:
    """Returns some fields as a Markdown table."""
    head = "| field | kind | shape | unit |" + (
        " role | meaning · written by |" if roles else " meaning |"
    )
    lines = [head, "| --- " * head.count(" |") + "|"]
    for f in fields:
        shape = f"({', '.join(map(str, f.shape))})" if f.shape else ""
        condition = f" ({', '.join(f.condition.split())})" if f.condition else ""
        role = f" {f.role}{condition} |" if roles else ""
        about = f"{f.doc} · `{f.stage}`" if f.stage else f.doc
        kind = f"{f.kind}, float64" if f.is_wide else f.kind
        kind += f", {f.rows.__name__}" if f.rows else ""
        lines.append(f"| `{f.name}` | {kind} | {shape} | {f.unit} |{role} {about} |")
    return "\n".join(lines) + "\n"


def roles_section() -> str:
    """Returns the roles as a Markdown table."""
    lines = []
    for name, role in ROLES.items():
        traits = " | ".join(
            "yes" if x else ""
            for x in (role.lasts, role.shown, role.read, role.reset, role.copied)
        )
        lines.append(f"| {name} | {role.meaning} | {traits} |")
    return ROLES_HEAD + "\n".join(lines) + "\n"


def module_section(module) -> str:
    """Returns the section of one package of the data."""
    name = (
        module.__name__.removeprefix("featherlane.")
        .removeprefix("engine.")
        .removeprefix("tools.")
        .removesuffix(".fields")
        .replace(".", "/")
    )
    return f"\n### {name}\n\n{module.__doc__.splitlines()[0]}\n\n" + table(
        module.FIELDS, roles=True
    )


def page() -> str:
    """Returns the whole page."""
    modules = "".join(map(module_section, FIELD_MODULES))
    return (
        HEAD
        + roles_section()
        + DATA_HEAD
        + modules
        + MODEL_HEAD
        + table(MODEL.fields, roles=False)
    )


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
