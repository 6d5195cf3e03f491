"""The blocks of code in a page, and how they are run: in their order, in one namespace, each as a file of its own.

What a reader has already, a model or a batch, stands in a comment before a block, which no page shows:

    <!-- before
    model = fl.load("humanoid")
    -->
"""

from __future__ import annotations

import re
from pathlib import Path

PYTHON = re.compile(r"^<!-- before\n(.*?)^-->$|^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def python(page: str) -> list[str]:
    """The blocks in Python, those before them in comments, too."""
    return [before or shown for before, shown in PYTHON.findall(page)]


def run(page: str, folder: Path) -> dict:
    """Run all blocks of a page; what they leave. Kernels are read from their source, so a block is a file."""
    left: dict = {"__name__": "page"}
    for k, block in enumerate(python(page)):
        path = folder / f"block_{k}.py"
        path.write_text(block)
        exec(compile(block, str(path), "exec"), left)
    return left


def commands(page: str) -> list[str]:
    """The lines that call `featherlane`, without comments."""
    lines = [line.split("  #")[0] for block in SHELL.findall(page) for line in block.splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part for part in parts if part.startswith("featherlane ")]
