"""Write fields.md, the reference of all fields, from their declarations: `python docs/fields.py`."""

from __future__ import annotations

from pathlib import Path

from featherlane.model.fields import MODEL
from featherlane.simulation.tile.fields import DATA

PAGE = Path(__file__).parent / "fields.md"
HEAD = """# Fields

Written by `docs/fields.py` from the declarations in `model/fields.py` and `simulation/tile/fields.py`. A *real* may
differ by world: `batch.expand` gives a field of the model rows of its own, `batch.bind` shows a field of the data. An
*int* is shared by all worlds; a *size* is one whole number. Shapes leave the world axis out.
"""


def table(layout, title: str, column: str) -> str:
    """One layout as a Markdown table."""
    lines = [f"\n## {title}\n", f"| field | kind | shape | unit | {column} |", "| --- | --- | --- | --- | --- |"]
    for f in layout.fields:
        shape = f"({', '.join(map(str, f.shape))})" if f.shape else ""
        about = f"{f.doc} · `{f.stage}`" if f.stage else f.doc
        lines.append(f"| `{f.name}` | {f.kind} | {shape} | {f.unit} | {about} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    return HEAD + table(MODEL, "Model", "meaning") + table(DATA, "Data", "meaning · the stage that writes it")


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
