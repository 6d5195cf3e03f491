"""Writes fields.md, the reference of all fields, from their declarations: `python docs/fields.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from featherlane.lanes.layout import Field
from featherlane.lanes.role import ROLES
from featherlane.model.fields import MODEL
from featherlane.simulation.tile.fields import FIELD_MODULES

PAGE = Path(__file__).parent / "fields.md"
HEAD = """# Fields

This page lists every field of a model and of its data, with kind, shape and unit. Most users need the
[model](#model) fields, and the fields of the data whose [role](#roles) is `state`, `drive`, `input` or `output`.
`docs/fields.py` writes the page from the declarations in `model/fields.py`, at the functions
that compute fields of the model, and in the `fields.py` of each package.

- A *real* field may differ between worlds. `batch.expand(name)` gives a field of the model one row per world;
  `batch.bind(name)` returns a live array of a field of the data.
- A *real, float64* field has 64 bits in every precision.
- A *real, Vec3* field has one `Vec3` per row in kernels, see [row types](kernel-language.md#row-types). NumPy arrays
  have the shape of the table.
- An *int* field is shared by all worlds; a *size* is one integer.
- Shapes are without the world axis.
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

One section per package of the source. A name in brackets after the role is a condition: the field is computed only if
this size is not 0, or if the feature is used. The stage that writes a field is at the end of its meaning.
"""

MODEL_HEAD = """
## Model

The function that computes a field when a model is loaded is at the end of its meaning. The other fields are copied
from MuJoCo's model.

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
