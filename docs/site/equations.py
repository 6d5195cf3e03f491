r"""A hook of the site: equations become MathML when it is built, so that a browser needs no script for them.

In a page they stand as the repository shows them, too: `$...$` within a line, `$$...$$` alone.
"""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content, page, config, files):
    """MathML in place of what `pymdownx.arithmatex` left."""
    content = BLOCK.sub(
        lambda m: f'<div class="equation">{convert(html.unescape(m[1]), display="block")}</div>', content
    )
    return INLINE.sub(lambda m: convert(html.unescape(m[1])), content)
