"""A hook of the site: writes each tutorial as a Jupyter notebook, and links it below the title of its page.

A notebook is JSON in the format nbformat 4.5.  Its code cells are those of the script, so that the test of the script
(`tests/test_tutorials.py`) tests them.  Links within the documentation become plain text, because a downloaded notebook
has no pages next to it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS, FOLDER = Path(__file__).parents[1], "tutorials"
CUT = re.compile(r"^# %%.*\n", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:)[^)\s]*\)")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cells(text: str) -> list[tuple[str, str]]:
    """Returns the Markdown and the code of each cell of a script."""
    found = []
    for part in CUT.split(text):
        lines = part.strip("\n").splitlines()
        k = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        words = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:k])
        found.append((words, "\n".join(lines[k:]).strip("\n")))
    return [cell for cell in found if any(cell)]


def notebook(text: str) -> str:
    """Returns the notebook of a script, as JSON."""
    parts = []
    for words, code in cells(text):
        if words:
            parts.append({"cell_type": "markdown", "metadata": {}, "source": LINK.sub(r"\1", words)})
        if code:
            parts.append({"cell_type": "code", "metadata": {}, "source": code, "execution_count": None, "outputs": []})
    for k, part in enumerate(parts):
        part["id"] = f"cell-{k}"
        part["source"] = part["source"].splitlines(keepends=True)
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": parts}, indent=1)


def on_files(files, config):
    """Adds a notebook for each tutorial."""
    from mkdocs.structure.files import File

    for path in sorted((DOCS / FOLDER).glob("*.py")):
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.ipynb", content=notebook(path.read_text())))
    return files


def on_page_markdown(markdown, page, config, files):
    """Adds the link below the title of a tutorial."""
    folder, _, name = page.file.src_uri.rpartition("/")
    if folder != FOLDER:
        return markdown
    title, _, rest = markdown.partition("\n")
    link = f"{name.removesuffix('.md')}.ipynb"
    return f"{title}\n\n[Download this tutorial as a Jupyter notebook]({link}).\n{rest}"
