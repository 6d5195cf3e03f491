"""Reads pages in Markdown: their links, the anchors of their headings, their tables."""

from __future__ import annotations

import re
from collections import Counter


def text(page: str) -> str:
    """Returns the page without blocks of code."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def links(page: str) -> list[str]:
    """Returns targets inside the repository: files, anchors and images, but no addresses."""
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text(page)))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page: str) -> set[str]:
    """Returns the anchors of the headings, as GitHub forms them: lower case, spaces to hyphens, no punctuation."""
    found, seen = set(), Counter()
    for heading in re.findall(r"^#+ +(.+?) *$", text(page), re.MULTILINE):
        shown = re.sub(r"\]\([^)]*\)", "", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def rows(section: str) -> list[list[str]]:
    """Returns the cells of the first table of a section, without its head."""
    table = re.search(r"(?:^\|.*\n?)+", section, re.MULTILINE)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
