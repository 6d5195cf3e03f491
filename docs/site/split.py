"""A hook of the site: long pages are cut at their headings into pages of a folder.

A page of `PAGES` keeps what is above its first heading, and a list of its parts with the anchors of their headings.
Sections of `DEEPER` are cut at their headings, too, and list their parts.  Links to an anchor of the page, from any
page, lead to the part that has it.
"""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise
from typing import NamedTuple

from mkdocs.structure.files import File
from pymdownx.slugs import slugify
from sources import LINK, outside_code

ENVIRONMENTS = "environments/robots", "environments/gymnasium", "environments/dm_control"
BENCHMARKS = "speed", "contact-benchmark"
MODULES = "api results query stages environments distributed lcp tree lanes extension controllers".split()
REFERENCE = "fields", *(f"reference/{name}" for name in MODULES)
PAGES = (*BENCHMARKS, *REFERENCE, "diagnostics", "chapters/contact", *ENVIRONMENTS)
# anchors of sections that are cut, too
DEEPER = {
    "fields": ("data",),
    "reference/api": ("worlds", "Batch", "models"),
    "reference/distributed": ("distributed-batches", "Batch"),
}
ATTRIBUTE = re.compile(r" *\{ *#([\w.-]+) *\}$")
slug = slugify(case="lower")
moved: dict[str, dict[str, str]] = {}  # by page: the page of each anchor


def headings(text: str) -> list[tuple[int, str, int, int]]:
    """Returns level, title, start and end of the headings of a page outside of code."""
    code = [(block.start(), block.end()) for block in re.finditer(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE)]
    found = re.finditer(r"^(#{1,6}) +(.+?) *$", text, re.MULTILINE)
    return [
        (len(head[1]), head[2], head.start(), head.end())
        for head in found
        if not any(start <= head.start() < end for start, end in code)
    ]


def anchor(title: str) -> str:
    """Returns the anchor of a heading: the one that it names, or the one made from its words."""
    if named := ATTRIBUTE.search(title):
        return named[1]
    return slug(re.sub(r"\]\([^)]*\)|[`\[*]", "", title), "-")


def below(text: str) -> str:
    """Returns a text whose links start from a folder below."""

    def relink(link) -> str:
        target = link[2]
        return link[0] if re.match(r"[a-z]+:|#|/", target) else f"{link[1]}../{target}{link[3]}"

    text = outside_code(text, lambda part: LINK.sub(relink, part))
    return re.sub(r'(<img [^>]*src=")(?![a-z]+:)', r"\1../", text)


def part_page(text: str, level: int) -> str:
    """Returns a section as a page: its heading becomes the title."""
    heads = {start: end for _, _, start, end in headings(text)}
    lines, last = [], 0
    for start, end in heads.items():
        lines += [text[last:start], text[start + level - 1 : end]]
        last = end
    return below("".join([*lines, text[last:]]))


class Part(NamedTuple):
    """A section that becomes a page.

    Attributes:
        level: level of its heading.
        title: heading.
        start: where it begins in the page.
        path: file of the page.
    """

    level: int
    title: str
    start: int
    path: str


def sections(name: str, text: str) -> list[Part]:
    """Returns the sections of a page that become pages.

    Raises:
        ValueError: the page has no heading.
    """
    found, above, deeper = [], {}, DEEPER.get(name, ())
    for level, title, start, _ in headings(text):
        above[level] = anchor(title)
        if level == 2 or (level > 2 and above.get(level - 1) in deeper):
            found.append(Part(level, ATTRIBUTE.sub("", title), start, f"{name}/{anchor(title).lower()}.md"))
    if not found:
        raise ValueError(f"{name}.md has no heading to cut at")
    return found


def inside(parts: list[Part], k: int) -> list[Part]:
    """Returns the sections inside of section k."""
    after = parts[k + 1 :]
    return after[: next((i for i, other in enumerate(after) if other.level <= parts[k].level), len(after))]


def tree(parts: list[Part]) -> list:
    """Returns sections as entries of the navigation; one with others inside is a section of it."""
    entries, k = [], 0
    while k < len(parts):
        inner = inside(parts, k)
        title = re.sub(r"[`*]", "", parts[k].title)
        entries.append({title: [parts[k].path, *tree(inner)]} if inner else parts[k].path)
        k += 1 + len(inner)
    return entries


def contents(parts: list[Part], marks: dict[str, list[str]], folder: str = "") -> str:
    """Returns a list of sections, with the anchors of their headings."""
    lines = []
    for part in parts:
        spans = "".join(f'<span id="{mark}"></span>' for mark in marks.get(part.path, ()))
        place = posixpath.join(folder, posixpath.basename(part.path))
        lines.append(f"{'    ' * (part.level - parts[0].level)}- {spans}[{part.title}]({place})\n")
    return "".join(lines)


def cut(name: str, text: str) -> tuple[str, dict[str, str], list]:
    """Returns what remains of a page, its parts by the names of their files, and their entries in the navigation."""
    parts, heads = sections(name, text), headings(text)
    pages, marks = {}, {}
    for k, (at, end) in enumerate(pairwise([*(part.start for part in parts), len(text)])):
        marks[parts[k].path] = [anchor(head) for _, head, begin, _ in heads if at <= begin < end]
        listed = contents(inside(parts, k), {})
        pages[parts[k].path] = part_page(text[at:end], parts[k].level) + (f"\n{listed}" if listed else "")
    moved[f"{name}.md"] = {mark: path for path, found in marks.items() for mark in found}
    rest = text[: parts[0].start] + contents(parts, marks, posixpath.basename(name))
    return rest, pages, tree(parts)


def expanded(nav, parts: dict[str, list]):
    """Returns the navigation with a section in place of each page that was cut."""
    if isinstance(nav, list):
        return [expanded(entry, parts) for entry in nav]
    if isinstance(nav, str):
        return nav
    (title, place), *_ = nav.items()
    if isinstance(place, list):
        return {title: expanded(place, parts)}
    return {title: [place, *parts[place]]} if place in parts else nav


def on_files(files, config):
    """Replaces the pages by their parts, which the navigation then has."""
    moved.clear()
    made: dict[str, list] = {}
    for name in PAGES:
        whole = files.get_file_from_path(f"{name}.md")
        whole.content_string, pages, made[f"{name}.md"] = cut(name, whole.content_string)
        for path, text in pages.items():
            files.append(File.generated(config, path, content=text))
    config.nav = expanded(config.nav, made)
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to an anchor of a page that was cut lead to the part with the anchor."""
    here = page.file.src_uri
    base = posixpath.dirname(here)
    origin = f"{base}.md" if f"{base}.md" in moved else here  # the page of which this one is a part

    def relink(link) -> str:
        path, mark, target = link[2].partition("#")
        if not mark or re.match(r"[a-z]+:", path):
            return link[0]
        of = posixpath.normpath(posixpath.join(base, path)) if path else origin
        place = moved.get(of, {}).get(target)
        if place is None:
            return link[0]
        shown = posixpath.relpath(place, base or ".") if place != here else ""
        return f"{link[1]}{shown}#{target}{link[3]}"

    return outside_code(markdown, lambda text: LINK.sub(relink, text))
