"""Examples of the reference: the block whose heading names a public name or a member of a public class."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "reference"
FILES = FOLDER / "examples.md", FOLDER / "members.md"


def examples() -> dict[tuple[str, str], str]:
    """Returns the text below the heading of each name, by module and name; a member is `Class.member`."""
    found: dict[tuple[str, str], str] = {}
    for path in FILES:
        module = ""
        for part in re.split(r"^(?=#{2,3} )", path.read_text(), flags=re.MULTILINE):
            head, _, rest = part.partition("\n")
            if head.startswith("## "):
                module = head.removeprefix("## ").strip()
            elif head.startswith("### "):
                found |= {(module, name.strip()): rest.strip() for name in head.removeprefix("### ").split(",")}
    return found


class Examples:
    """The examples of a module; a block of several names is shown at the first one, and the others link it."""

    def __init__(self, module: str):
        self.blocks = {name: block for (of, name), block in examples().items() if of == module}
        self.first: dict[str, str] = {}

    def lines(self, name: str) -> list[str]:
        """Returns the example of a name, or the link to it; nothing if there is none."""
        block = self.blocks.get(name)
        if block is None:
            return []
        at = self.first.setdefault(block, name)
        return ["**Example**", "", block, ""] if at == name else [f"**Example** at [`{at}`](#{at})", ""]
