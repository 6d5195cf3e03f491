"""A hook of the site: long pages are cut at their headings into pages of a folder.

A page of `PAGES` keeps what is above its first heading, and a list of its parts with the anchors of their headings.
Links to an anchor of the page, from any page, lead to the part that has it.
"""

from __future__ import annotations

import posixpath
import re

from mkdocs.structure.files import File
from pymdownx.slugs import slugify
from sources import LINK, outside_code

PAGES = ("speed", "contact-benchmark", "fields", "diagnostics", "chapters/contact", "reference/api")
DEEPER = {"fields": ("data",), "reference/api": ("worlds",)}  # anchors of sections that are cut at their headings, too
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


def part(text: str, level: int) -> str:
    """Returns a section as a page: its heading becomes the title."""
    heads = {start: end for _, _, start, end in headings(text)}
    lines, last = [], 0
    for start, end in heads.items():
        lines += [text[last:start], text[start + level - 1 : end]]
        last = end
    return below("".join([*lines, text[last:]]))


def cut(name: str, text: str) -> tuple[str, dict[str, str]]:
    """Returns what remains of a page, and its parts by the names of their files."""
    heads, deeper = headings(text), DEEPER.get(name, ())
    cuts, section = [], ""
    for level, title, start, _ in heads:
        section = anchor(title) if level == 2 else section
        if level == 2 or (level == 3 and section in deeper):
            cuts.append((level, title, start))
    if not cuts:
        raise ValueError(f"{name}.md has no heading to cut at")
    parts, listed, at = {}, [], moved.setdefault(f"{name}.md", {})
    for (level, title, start), following in zip(cuts, [*cuts[1:], (0, "", len(text))], strict=True):
        path = f"{name}/{anchor(title).lower()}.md"
        parts[path] = part(text[start : following[2]], level)
        inner = [anchor(head) for _, head, begin, _ in heads if start <= begin < following[2]]
        at |= dict.fromkeys(inner, path)
        shown, last = ATTRIBUTE.sub("", title), posixpath.basename
        marks = "".join(f'<span id="{mark}"></span>' for mark in inner)
        listed.append(f"{'    ' * (level - 2)}- {marks}[{shown}]({last(name)}/{last(path)})")
    return text[: cuts[0][2]] + "\n".join(listed) + "\n", parts


def expanded(nav, parts: dict[str, list[str]]):
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
    made: dict[str, list[str]] = {}
    for name in PAGES:
        whole = files.get_file_from_path(f"{name}.md")
        rest, parts = cut(name, whole.content_string)
        whole.content_string = rest
        made[f"{name}.md"] = list(parts)
        for path, text in parts.items():
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
