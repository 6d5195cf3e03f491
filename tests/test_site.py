"""The documentation as a site: it builds without a warning, no link is broken, nothing comes from elsewhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pages import site

pytest.importorskip("material")
pytest.importorskip("latex2mathml")

ROOT = Path(__file__).parents[1]
MOST_BYTES = 20e6  # of a site that is read on a telephone, too


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The site, built with warnings as errors."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def pages(folder):
    return site.pages(folder)


def test_no_link_is_broken(folder, pages):
    assert len(pages) > 40
    assert site.broken(folder, pages) == []


def test_nothing_is_loaded_from_elsewhere(pages):
    assert site.foreign(pages) == []
    assert not any("mermaid" in page.anchors for page in pages.values())


def test_everything_was_read_as_it_was_meant(pages):
    assert site.unread(pages) == []


def test_every_page_has_its_place(folder, pages):
    """One can find every page of docs from the home page, in the navigation."""
    home = {link.partition("#")[0] for link in pages["index.html"].links}
    paths = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")} - {
        Path("reference/examples.md")
    }
    there = {path.with_suffix(".html").as_posix() for path in paths}  # examples stand at the names that they show
    assert there <= home, f"not linked: {sorted(there - home)}"


def test_the_search_knows_every_page(folder, pages):
    index = json.loads((folder / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {name for name in pages if not name.startswith("source/")} - {"index.html"} <= found


def test_it_is_small(folder):
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < MOST_BYTES


def test_the_checks_find_what_is_wrong(tmp_path):
    """Each fault once, and nothing else."""
    (tmp_path / "a.html").write_text(
        '<h1 id="here">x</h1><a href="#here"></a><a href="#there"></a><a href="b.html"></a><a href="c.html#x"></a>'
        '<a href="https://other.org"></a><img src="https://other.org/x.png"><p>\n| --- |\n- x</p><code>\n- y</code>'
    )
    (tmp_path / "c.html").write_text('<h2 id="x">x</h2><a href="a.html#here"></a>')
    found = site.pages(tmp_path)
    assert site.broken(tmp_path, found) == ["a.html: #there has no such anchor", "a.html: b.html is not there"]
    assert site.foreign(found) == ["a.html: https://other.org/x.png"]
    assert len(site.unread(found)) == 2
