"""Text on the page; only here do names from a model, a file or a visitor enter markup.

The page renders Markdown with raw HTML, links and (in other releases of viser) JavaScript, and the server reads images
that Markdown names.  So the panel contains no Markdown: its texts are constant HTML templates, and each value is
escaped.  All other texts (labels, options, titles, notes) are sent as plain text, which the page never parses.
"""

from __future__ import annotations

import html
from typing import Any

LONGEST = 4000  # characters of a value
STYLE = "padding:0 .75em .5em;font-size:.875em;overflow-wrap:anywhere"


def markup(template: str, *values: Any) -> str:
    """Formats a constant HTML template with values in which nothing is markup."""
    return template.format(*(html.escape(plain(value)) for value in values))


def plain(value: Any) -> str:
    """Returns text that is safe to send: a lone surrogate, as in a file's name, would close all connections."""
    text = str(value).encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def labels(given: list[str]) -> tuple[str, ...]:
    """Returns unique names, with numbers for unnamed elements."""
    named = set(given)
    return tuple(name or (f"#{k}" if str(k) in named else str(k)) for k, name in enumerate(given))


class Prose:
    """A paragraph of the panel: a template and values, as in `markup`."""

    def __init__(self, gui, template: str = "", *values: Any):
        self._handle = gui.add_html("")
        self.show(template, *values)

    @property
    def content(self) -> str:
        """Returns the HTML that the page shows."""
        return self._handle.content

    def show(self, template: str, *values: Any) -> None:
        """Replaces the text; an equal text is not sent again."""
        content = f'<div style="{STYLE}">{markup(template, *values)}</div>' if template else ""
        if self._handle.content != content:
            self._handle.content = content
