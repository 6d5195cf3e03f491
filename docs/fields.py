"""Write fields.md, the reference of all fields, from their declarations: `python docs/fields.py`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from featherlane.lanes.layout import Field
from featherlane.lanes.role import ROLES
from featherlane.model.fields import MODEL
from featherlane.simulation.tile.fields import ROOMS

PAGE = Path(__file__).parent / "fields.md"
HEAD = """# Fields

Written by `docs/fields.py` from the declarations in `model/fields.py`, at the functions that compute fields of the
model, and in the `fields.py` of each room that computes some. A *real* may differ by world: `batch.expand` gives a
field of the model rows of its own, `batch.bind` shows a field of the data. A *real, float64* has 64 bits in every
precision. An *int* is shared by all worlds; a *size* is one whole number. Shapes leave the world axis out.
"""
ROLES_HEAD = """
## Roles

What a field of the data is to the worlds. `bind`: `batch.bind(name)` shows it. `read`: functions of the user may read
it, once it is valid. `reset`: a reset writes zeros (and then what the model says).

| role | meaning | lasts | bind | read | reset | copied |
| --- | --- | --- | --- | --- | --- | --- |
"""
DATA_HEAD = """
## Data

Room by room. Behind a role, in brackets: what asks for the field, where it is not always there.
"""

MODEL_HEAD = """
## Model

Behind the meaning: the function that computes the field when a model is loaded. Other fields are copied from MuJoCo's
model.

"""


def table(fields: Iterable[Field], roles: bool) -> str:
    """Some fields as a Markdown table."""
    head = "| field | kind | shape | unit |" + (" role | meaning · written by |" if roles else " meaning |")
    lines = [head, "| --- " * head.count(" |") + "|"]
    for f in fields:
        shape = f"({', '.join(map(str, f.shape))})" if f.shape else ""
        asked = f" ({', '.join(f.asked.split())})" if f.asked else ""
        role = f" {f.role}{asked} |" if roles else ""
        about = f"{f.doc} · `{f.stage}`" if f.stage else f.doc
        kind = f"{f.kind}, float64" if f.is_wide else f.kind
        lines.append(f"| `{f.name}` | {kind} | {shape} | {f.unit} |{role} {about} |")
    return "\n".join(lines) + "\n"


def roles_section() -> str:
    """The roles as a Markdown table."""
    lines = []
    for name, role in ROLES.items():
        traits = " | ".join("yes" if x else "" for x in (role.lasts, role.shown, role.read, role.reset, role.copied))
        lines.append(f"| {name} | {role.meaning} | {traits} |")
    return ROLES_HEAD + "\n".join(lines) + "\n"


def room_section(room) -> str:
    """The fields of one room of the data."""
    name = room.__name__.removeprefix("featherlane.").removesuffix(".fields").replace(".", "/")
    return f"\n### {name}\n\n{room.__doc__.splitlines()[0]}\n\n" + table(room.FIELDS, roles=True)


def page() -> str:
    """The whole page."""
    rooms = "".join(map(room_section, ROOMS))
    return HEAD + roles_section() + DATA_HEAD + rooms + MODEL_HEAD + table(MODEL.fields, roles=False)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
