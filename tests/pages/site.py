"""Reads the site that `mkdocs build` writes: its links, anchors and loaded resources."""

from __future__ import annotations

import posixpath
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "image": "href"}
PASSIVE = {"canonical", "next", "prev"}  # links of a head that load nothing


class Page(HTMLParser):
    """Collects anchors, links and loaded resources of one page, and the text outside of code."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.prose: list[str] = []
        self.code = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.anchors |= {told[key] for key in ("id", "name") if told.get(key)}
        if tag == "a" and told.get("href"):
            self.links.append(told["href"])
        if tag in LOADS and told.get(LOADS[tag]) and told.get("rel") not in PASSIVE:
            self.loads.append(told[LOADS[tag]])
        self.code += tag in ("pre", "code", "script", "style")

    def handle_endtag(self, tag):
        self.code -= tag in ("pre", "code", "script", "style")

    def handle_data(self, data):
        if not self.code:
            self.prose.append(data)


def pages(folder: Path) -> dict[str, Page]:
    """Returns all pages of a site by their path in it, except the error page, whose links start at the root."""
    paths = sorted(path for path in folder.rglob("*.html") if path.name != "404.html")
    return {path.relative_to(folder).as_posix(): Page(path.read_text()) for path in paths}


def broken(folder: Path, site: dict[str, Page]) -> list[str]:
    """Returns links and resources that do not exist, and anchors without a heading."""
    wrong = []
    for name, page in site.items():
        for target in dict.fromkeys(page.links + page.loads):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (
                posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
            )
            if path.startswith("..") or not (folder / path).is_file():
                wrong.append(f"{name}: {target} is not there")
            elif parts.fragment and path in site and unquote(parts.fragment) not in site[path].anchors:
                wrong.append(f"{name}: {target} has no such anchor")
    return wrong


def foreign(site: dict[str, Page]) -> list[str]:
    """Returns external resources that pages load."""
    return [f"{name}: {url}" for name, page in site.items() for url in page.loads if urlsplit(url).netloc]


def unread(site: dict[str, Page]) -> list[str]:
    """Returns Markdown marks in a page's text: tables, lists, blocks or equations that were not recognized."""
    marks = ("| ---", "|---", "```", "](", "\\(", "$$")
    found = []
    for name, page in site.items():
        text = "".join(page.prose)
        found += [f"{name}: {text[max(0, text.find(mark) - 30) :][:80]!r}" for mark in marks if mark in text]
        lines = text.splitlines()
        found += [f"{name}: {line!r}" for line in lines if line.startswith(("- ", "* ", "1. ", "## "))]
    return found
