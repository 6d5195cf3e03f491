"""Runs the blocks of code in a page: in their order, in one namespace, each as a separate file.

The output of a block may follow it, as a block of text, and is then compared:

    ```python
    model = fl.bundled("humanoid")
    print(model.nv)
    ```

    ```text
    27
    ```

`PYTHONPATH=tests python -m pages.blocks PAGE...` writes the output into pages.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

PYTHON = re.compile(
    r"^```python\n(?P<shown>.*?)^```$(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def python(page: str) -> list[str]:
    """Returns the Python blocks."""
    return [block["shown"] for block in PYTHON.finditer(page)]


def run(page: str, folder: Path, compare: bool = True) -> tuple[dict, str]:
    """Runs all blocks of a page; returns their namespace, and the page with their output.

    Kernels are read from their source, so a block is a file.  With `compare`, an output that differs from the block
    after it is an AssertionError.
    """
    left: dict = {"__name__": "page"}
    parts, last = [], 0
    for k, block in enumerate(PYTHON.finditer(page)):
        code = block["shown"]
        path = folder / f"block_{k}.py"
        path.write_text(code)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, str(path), "exec"), left)
        if block["printed"] is not None:
            told = "\n".join(line.rstrip() for line in said.getvalue().splitlines()) + "\n"
            if compare:
                assert told == block["printed"], f"the block\n{code}prints\n{told}and the page says\n{block['printed']}"
            parts += [page[last : block.start("printed")], told]
            last = block.end("printed")
    return left, "".join(parts) + page[last:]


def commands(page: str) -> list[str]:
    """Returns the lines that call `featherlane`, without comments."""
    lines = [line.split("  #")[0] for block in SHELL.findall(page) for line in block.splitlines()]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part for part in parts if part.startswith("featherlane ")]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as made:
            Path(name).write_text(run(Path(name).read_text(), Path(made), compare=False)[1])
