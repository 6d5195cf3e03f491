"""A hook of the site: scripts in `docs/tutorials` are run when it is built, and become pages.

A script is cut into cells by lines `# %%`.  Comments at the head of a cell are Markdown, the rest is code; below it
stands what it printed, and each figure of Matplotlib that it left open.  A cell that fails fails the build.
"""

from __future__ import annotations

import contextlib
import functools
import io
from pathlib import Path

import matplotlib
from mkdocs.structure.files import File
from notebooks import cells

matplotlib.use("Agg")

DOCS, FOLDERS = Path(__file__).parents[1], ("tutorials",)
DOTS = 100  # per inch of a picture


def pictures() -> list[bytes]:
    """The figures that are open, which are closed."""
    import matplotlib.pyplot as plt

    made = []
    for number in plt.get_fignums():
        buffer = io.BytesIO()
        plt.figure(number).savefig(buffer, dpi=DOTS, metadata={"Software": None})
        made.append(buffer.getvalue())
        plt.close(number)
    return made


@functools.lru_cache(maxsize=64)
def told(folder: str, name: str, text: str) -> tuple[str, tuple[bytes, ...]]:
    """Returns the page of a script and its pictures; the script runs in a separate namespace."""
    parts, drawn, left = [], [], {"__name__": name}
    for words, code in cells(text):
        parts.append(words)
        if not code:
            continue
        parts.append(f"```python\n{code}\n```")
        said, path = io.StringIO(), DOCS / folder / f"{name}.py"
        # as many empty lines before it as there are in the file: an error names its line, a kernel finds its source
        above = text[: text.index(code)].count("\n")
        with contextlib.redirect_stdout(said), matplotlib.rc_context({"figure.constrained_layout.use": True}):
            exec(compile("\n" * above + code, str(path), "exec"), left)
            shown = pictures()
        if said.getvalue().strip():
            parts.append(f"```text\n{said.getvalue().rstrip()}\n```")
        for picture in shown:
            drawn.append(picture)
            parts.append(f"![What the code above draws]({name}_{len(drawn)}.png)")
    parts.append(f"This page is the script `docs/{folder}/{name}.py`, which was run when the site was built.")
    return "\n\n".join(parts) + "\n", tuple(drawn)


def on_files(files, config):
    """A page and its pictures for each script."""
    for folder in FOLDERS:
        for path in sorted((DOCS / folder).glob("*.py")):
            page, drawn = told(folder, path.stem, path.read_text())
            files.append(File.generated(config, f"{folder}/{path.stem}.md", content=page))
            for k, picture in enumerate(drawn):
                files.append(File.generated(config, f"{folder}/{path.stem}_{k + 1}.png", content=picture))
    return files
